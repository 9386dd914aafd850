/* SPDX-License-Identifier: MIT */
/*
 * Kernels choose their loops by sizes, and sums depend on their order. So whether rows together
 * give the same bits as rows apart is a property of a model and a processor, and running the model
 * is the way to find it out: each of |rows| samples apart, then the first two together, the first
 * three, and so on. If every row has its own bits for every count up to n, then so has any split of
 * n rows into requests. A later try runs the rows that are proven once more apart, to have their
 * results, and goes on with the next count.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/semaphore.h"
#include "runtime/call/batch.h"
#include "runtime/call/inside.h"
#include "runtime/call/steps_trial.h"
#include "runtime/program/method.h"

/* Bytes of results that are kept for the comparison. */
#define KEPT_BYTES_MAX (64u << 20)

/* Measurements of each way; the best one counts. */
#define RACES 3
/* Joining has to save one part in this many: less may be chance, and joining costs latency. */
#define GAIN 10

struct proof {
    struct rt_method *method; /* borrowed */
    struct hal_pool *pool;    /* borrowed */
    const struct rt_pace *pace;
    uint8_t *alone;   /* owned: the results of each sample, row after row */
    size_t row_bytes; /* of all results of one sample */
    uint64_t row_ns;  /* its rough cost on one core */
};

/* Samples that differ in every element: small numbers, which every type can represent and which are
 * valid indices. */
static void fill(void *memory, enum dtype dtype, int64_t first_row, int64_t rows, int64_t row)
{
    uint32_t state = (uint32_t)first_row * 2654435761u + 12345;
    for (int64_t i = 0; i < rows * row; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t bits = state >> 8;
        switch (dtype) {
        case DT_F32:
            ((float *)memory)[i] = (float)bits * 0x1p-23f - 1;
            break;
        case DT_F64:
            ((double *)memory)[i] = (double)bits * 0x1p-23 - 1;
            break;
        case DT_I64:
            ((int64_t *)memory)[i] = bits & 1;
            break;
        case DT_I32:
            ((int32_t *)memory)[i] = (int32_t)(bits & 1);
            break;
        case DT_F16:
            ((uint16_t *)memory)[i] = (uint16_t)(0x3800 | (bits & 0x3ff)); /* 0.5 to 1 */
            break;
        case DT_BF16:
            ((uint16_t *)memory)[i] = (uint16_t)(0x3f00 | (bits & 0x7f));
            break;
        case DT_BOOL:
        case DT_I8:
        case DT_U8:
            ((uint8_t *)memory)[i] = bits & 1;
            break;
        default:
            memset((uint8_t *)memory + (size_t)i * dtype_bytes(dtype), 0, dtype_bytes(dtype));
        }
        if ((i + 1) % row == 0) {
            state = (uint32_t)(first_row + (i + 1) / row) * 2654435761u + 12345;
        }
    }
}

static enum status give_inputs(struct rt_invocation *inv, int64_t first_row, int64_t rows,
                               struct error *err)
{
    struct rt_method *method = rt_invocation_method(inv);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind != RT_IO_TENSOR) {
            continue;
        }
        struct shape shape = io->shape;
        shape.dims[0] = rows;
        size_t bytes = (size_t)shape_numel(&shape) * dtype_bytes(io->dtype);
        TRY(rt_invocation_reserve_input(inv, i, &shape, bytes, err));
        if (bytes > 0) {
            void *memory = hal_buffer_map(inv->inputs[i].binding.buffer);
            fill(memory, io->dtype, first_row, rows, shape_numel(&shape) / rows);
        }
    }
    return ST_OK;
}

struct waiting {
    struct hal_semaphore *semaphore;
    enum status status;
};

static void on_done(struct rt_invocation *inv, enum status status, void *arg)
{
    (void)inv;
    struct waiting *waiting = arg;
    waiting->status = status;
    hal_semaphore_signal(waiting->semaphore, 1);
}

static enum status run(struct rt_invocation *inv, struct error *err)
{
    struct waiting waiting;
    TRY(hal_semaphore_new(0, &waiting.semaphore, err));
    rt_invocation_submit(inv, HAL_CALLER_BUSY, on_done, &waiting);
    enum status status = hal_semaphore_wait(waiting.semaphore, 1, UINT64_MAX);
    must(status == ST_OK);
    hal_semaphore_unref(waiting.semaphore);
    return waiting.status == ST_OK ? ST_OK : error_set(err, waiting.status, "the model failed");
}

/* Compares the results of |row|, one of |rows| that ran together, with its results alone. */
static bool is_same(const struct proof *proof, const struct rt_invocation *inv, int64_t rows,
                    int64_t row)
{
    const uint8_t *alone = proof->alone + (size_t)row * proof->row_bytes;
    for (uint32_t i = 0; i < rt_method_result_count(proof->method); i++) {
        struct span all = rt_invocation_result(inv, i)->bytes;
        size_t bytes = all.len / (size_t)rows;
        if (bytes && memcmp(all.ptr + (size_t)row * bytes, alone, bytes) != 0) {
            return false;
        }
        alone += bytes;
    }
    return true;
}

static void keep(struct proof *proof, const struct rt_invocation *inv, int64_t row)
{
    uint8_t *at = proof->alone + (size_t)row * proof->row_bytes;
    for (uint32_t i = 0; i < rt_method_result_count(proof->method); i++) {
        struct span all = rt_invocation_result(inv, i)->bytes;
        if (all.len) {
            memcpy(at, all.ptr, all.len);
            at += all.len;
        }
    }
}

/*
 * Runs |rows| samples from |first| on; stores the results of one sample, compares the results of
 * several.
 */
static enum status try_rows(struct proof *proof, int64_t first, int64_t rows, struct error *err)
{
    struct rt_invocation *inv;
    TRY(rt_trial_check(proof->pace, err));
    TRY(rows > 1 ? rt_batch_joined_new(proof->method, proof->pool, &inv, err)
                 : rt_invocation_new(proof->method, proof->pool, &inv, err));
    enum status status = give_inputs(inv, first, rows, err);
    if (status == ST_OK) {
        status = rt_invocation_prepare(inv, RT_PREPARE_ALL, err);
    }
    if (status == ST_OK) {
        status = run(inv, err);
    }
    if (status == ST_OK && rows == 1) {
        keep(proof, inv, first);
    }
    for (int64_t row = 0; status == ST_OK && rows > 1 && row < rows; row++) {
        if (!is_same(proof, inv, rows, row)) {
            status = error_set(err, ST_UNSUPPORTED,
                               "row %lld of a batch of %lld differs from the same call run alone",
                               (long long)row, (long long)rows);
        }
    }
    rt_invocation_free(inv);
    return status;
}

/* Bytes of the results of one sample, and its cost. */
static enum status measure(struct proof *proof, struct error *err)
{
    struct rt_invocation *inv;
    TRY(rt_invocation_new(proof->method, proof->pool, &inv, err));
    enum status status = give_inputs(inv, 0, 1, err);
    if (status == ST_OK) {
        status = rt_invocation_prepare(inv, RT_PREPARE_ALL, err);
    }
    for (uint32_t i = 0; status == ST_OK && i < rt_method_result_count(proof->method); i++) {
        proof->row_bytes += rt_invocation_result(inv, i)->bytes.len;
    }
    if (status == ST_OK) {
        proof->row_ns = hal_command_cost(inv->plan->command);
    }
    rt_invocation_free(inv);
    return status;
}

/* Tries |*io_rows| + 1 rows and more, at most |max|. */
static enum status prove(struct proof *proof, int64_t max, int64_t *io_rows, struct error *err)
{
    int64_t first = *io_rows;
    for (int64_t row = 0; row < first && first < max; row++) {
        TRY(try_rows(proof, row, 1, err));
    }
    uint64_t begin_ns = rt_trial_now_ns();
    for (int64_t rows = first + 1; rows <= max; rows++) {
        TRY(rt_trial_check_time(proof->pace, begin_ns, rows - 1 - first, err));
        TRY(try_rows(proof, rows - 1, 1, err));
        TRY(try_rows(proof, 0, rows, err));
        *io_rows = rows;
    }
    return ST_OK;
}

/*
 * The rows that can be tried, at most |rows_max|. If they are fewer, |why_not| is the reason. The
 * runs up to n rows compute n * (n + 3) / 2 rows.
 */
static int64_t choose_max(const struct proof *proof, int64_t rows_max, struct error *why_not)
{
    uint64_t work_ns = proof->pace->work_ns;
    int64_t max = rows_max, affordable = 2;
    if (proof->row_bytes && max > (int64_t)(KEPT_BYTES_MAX / proof->row_bytes)) {
        max = (int64_t)(KEPT_BYTES_MAX / proof->row_bytes);
        error_set(why_not, ST_UNSUPPORTED, "results of more rows take more than %u bytes",
                  KEPT_BYTES_MAX);
    }
    while (work_ns && proof->row_ns && affordable < max &&
           (uint64_t)((affordable + 1) * (affordable + 4) / 2) <= work_ns / proof->row_ns) {
        affordable++;
    }
    if (work_ns && proof->row_ns && affordable < max) {
        max = affordable;
        error_set(why_not, ST_UNSUPPORTED, "to try more rows takes more than about %llu s",
                  (unsigned long long)(work_ns / 1000000000u));
    }
    return max;
}

enum status rt_batch_prove(struct rt_method *method, struct hal_pool *pool,
                           const struct rt_pace *pace, int64_t rows_max, int64_t *io_rows,
                           struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(*io_rows >= 1);
    if (method->steps) {
        return rt_steps_prove(method, pool, pace, rows_max, io_rows, err);
    }
    struct proof proof = {.method = method, .pool = pool, .pace = pace};
    struct error why_not;
    TRY(measure(&proof, err));
    int64_t max = choose_max(&proof, rows_max, &why_not);
    proof.alone = malloc((size_t)(max > 0 ? max : 0) * proof.row_bytes + 1);
    if (!proof.alone) {
        return error_no_memory(err, "%lld results", (long long)max);
    }
    enum status status = prove(&proof, max, io_rows, err);
    free(proof.alone);
    if (status == ST_OK && *io_rows < rows_max) {
        *err = why_not;
        status = err->code;
    }
    return status;
}

/* ---- whether it is worth it ------------------------------------------------------------------ */

struct race {
    struct hal_semaphore *semaphore;
    atomic_uint left;
};

static void on_finish(struct rt_invocation *inv, enum status status, void *arg)
{
    (void)inv;
    (void)status;
    struct race *race = arg;
    if (atomic_fetch_sub(&race->left, 1) == 1) {
        hal_semaphore_signal(race->semaphore, 1);
    }
}

/* Time from the submission of all calls to the end of the last one. */
static enum status race_prepared(struct rt_invocation **calls, uint32_t count, bool is_joined,
                                 uint64_t *out_ns, struct error *err)
{
    struct race race;
    void *args[RT_BATCH_CALLS_MAX];
    TRY(hal_semaphore_new(0, &race.semaphore, err));
    atomic_init(&race.left, count);
    enum status status = ST_OK;
    uint64_t begin = rt_trial_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        args[i] = &race;
        if (!is_joined) {
            rt_invocation_submit(calls[i], HAL_CALLER_BUSY, on_finish, &race);
        }
    }
    if (is_joined) {
        status = rt_batch_submit(calls, args, count, on_finish, err);
    }
    if (status == ST_OK) {
        status = hal_semaphore_wait(race.semaphore, 1, UINT64_MAX);
        must(status == ST_OK);
        *out_ns = rt_trial_now_ns() - begin;
    }
    hal_semaphore_unref(race.semaphore);
    return status;
}

/* The same for |count| new calls of one row. */
static enum status race(const struct proof *proof, uint32_t count, bool is_joined, uint64_t *out_ns,
                        struct error *err)
{
    struct rt_invocation *calls[RT_BATCH_CALLS_MAX];
    enum status status = ST_OK;
    uint32_t made = 0;
    while (status == ST_OK && made < count) {
        status = rt_invocation_new(proof->method, proof->pool, &calls[made], err);
        if (status == ST_OK) {
            made++;
            status = give_inputs(calls[made - 1], made - 1, 1, err);
        }
        if (status == ST_OK) {
            status = rt_invocation_prepare(calls[made - 1], RT_PREPARE_ALL, err);
        }
    }
    if (status == ST_OK) {
        status = race_prepared(calls, count, is_joined, out_ns, err);
    }
    while (made > 0) {
        rt_invocation_free(calls[--made]);
    }
    return status;
}

/* |*out_ns|: of |count| calls as one, if that takes less time than side by side; otherwise 0. */
static enum status time_joined(const struct proof *proof, uint32_t count, uint64_t *out_ns,
                               struct error *err)
{
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 2 * RACES; i++) {
        uint64_t ns = 0;
        TRY(rt_trial_check(proof->pace, err));
        TRY(race(proof, count, i % 2, &ns, err));
        ns = ns ? ns : 1;
        best[i % 2] = ns < best[i % 2] ? ns : best[i % 2];
    }
    *out_ns = best[1] <= best[0] / GAIN * (GAIN - 1) ? best[1] : 0;
    return ST_OK;
}

enum status rt_batch_measure(struct rt_method *method, struct hal_pool *pool,
                             const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                             struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->steps) {
        return rt_steps_measure(method, pool, pace, rows, out_rows, err);
    }
    const struct proof proof = {.method = method, .pool = pool, .pace = pace};
    int64_t best = 1;
    uint64_t best_ns = UINT64_MAX; /* of a row */
    rows = rows < RT_BATCH_CALLS_MAX ? rows : RT_BATCH_CALLS_MAX;
    for (; rows > 1; rows /= 2) {
        uint64_t ns = 0;
        TRY(time_joined(&proof, (uint32_t)rows, &ns, err));
        ns /= (uint64_t)rows;
        if (ns && ns < best_ns / GAIN * (GAIN - 1)) {
            best = rows;
            best_ns = ns;
        }
    }
    *out_rows = best;
    return ST_OK;
}
