/* SPDX-License-Identifier: MIT */
/*
 * Kernels choose their loops by sizes, and sums depend on their order. So whether rows together
 * give the same bits as rows apart is a property of a model and a processor, and running the model
 * is the way to find it out: each of |rows| samples apart, then the first two together, the first
 * three, and so on. If every row has its own bits for every count up to n, then so has any split of
 * n rows into requests.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
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
    uint8_t *alone;           /* owned: the results of each sample, row after row */
    size_t row_bytes;         /* of all results of one sample */
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
                               "row %lld of %lld together has other bits than alone",
                               (long long)row, (long long)rows);
        }
    }
    rt_invocation_free(inv);
    return status;
}

/* Bytes of the results of one sample. */
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
    rt_invocation_free(inv);
    return status;
}

/* The times of |budget_ns| that the first two rows may take: with fewer a model runs alone. */
#define PATIENCE 4

/* How many rows may be joined, at most |max|; 1: |err| is the reason. */
static int64_t prove(struct proof *proof, int64_t max, uint64_t budget_ns, struct error *err)
{
    uint64_t begin = rt_trial_now_ns();
    int64_t proven = 1;
    rt_trial_fail_late(err);
    bool is_equal = try_rows(proof, 0, 1, err) == ST_OK;
    for (int64_t rows = 2; is_equal && rows <= max; rows++) {
        if (rt_trial_now_ns() - begin >= budget_ns * (rows == 2 ? PATIENCE : 1)) {
            break;
        }
        is_equal =
            try_rows(proof, rows - 1, 1, err) == ST_OK && try_rows(proof, 0, rows, err) == ST_OK;
        proven = is_equal ? rows : proven;
    }
    return proven;
}

int64_t rt_batch_prove(struct rt_method *method, struct hal_pool *pool, int64_t rows_max,
                       uint64_t budget_ns, struct error *why_not)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->steps) {
        return rt_steps_prove(method, pool, rows_max, budget_ns, why_not);
    }
    struct proof proof = {.method = method, .pool = pool};
    int64_t max = rows_max;
    if (measure(&proof, why_not) != ST_OK) {
        return 1;
    }
    if (proof.row_bytes && max > (int64_t)(KEPT_BYTES_MAX / proof.row_bytes)) {
        max = (int64_t)(KEPT_BYTES_MAX / proof.row_bytes);
    }
    proof.alone = malloc((size_t)max * proof.row_bytes + 1);
    if (!proof.alone) {
        error_set(why_not, ST_EXHAUSTED, "no memory for %lld results", (long long)max);
        return 1;
    }
    int64_t proven = prove(&proof, max, budget_ns, why_not);
    free(proof.alone);
    return proven;
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

/* ns of |count| calls as one, if that takes less time than side by side; otherwise 0. */
static uint64_t time_joined(const struct proof *proof, uint32_t count, struct error *err)
{
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 2 * RACES; i++) {
        uint64_t ns;
        if (race(proof, count, i % 2, &ns, err) != ST_OK) {
            return 0;
        }
        best[i % 2] = ns < best[i % 2] ? ns : best[i % 2];
    }
    if (best[1] > best[0] / GAIN * (GAIN - 1)) {
        error_set(err, ST_UNSUPPORTED, "%u together took %llu us, apart %llu us", count,
                  (unsigned long long)best[1] / 1000, (unsigned long long)best[0] / 1000);
        return 0;
    }
    return best[1] ? best[1] : 1;
}

void rt_batch_stop_proving(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->steps) {
        atomic_store(&method->steps->is_stopped, true);
    }
}

int64_t rt_batch_measure(struct rt_method *method, struct hal_pool *pool, int64_t rows,
                         struct error *why_not)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (method->steps) {
        return rt_steps_measure(method, pool, rows, why_not);
    }
    const struct proof proof = {.method = method, .pool = pool};
    int64_t best = 1;
    uint64_t best_ns = UINT64_MAX; /* of a row */
    rows = rows < RT_BATCH_CALLS_MAX ? rows : RT_BATCH_CALLS_MAX;
    for (; rows > 1; rows /= 2) {
        uint64_t ns = time_joined(&proof, (uint32_t)rows, why_not) / (uint64_t)rows;
        if (ns && ns < best_ns / GAIN * (GAIN - 1)) {
            best = rows;
            best_ns = ns;
        }
    }
    return best;
}
