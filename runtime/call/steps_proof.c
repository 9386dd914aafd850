/* SPDX-License-Identifier: MIT */
/*
 * Whether steps give the same bits as rows of one call as alone is found out by running them. Each
 * row has a sequence of its own, of some steps, so that positions and mutable buffers differ. From
 * there one step runs alone and, in copies of the same states, with others: first two rows, then
 * three, and so on. The results and the whole content of the buffers afterwards are compared.
 *
 * The states of all rows together take at most as much memory as the pool of the trials has.
 */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/siblings.h"
#include "runtime/call/steps_trial.h"
#include "runtime/program/state_cells.h"

/* Measurements of each way; the best one counts. */
#define RACES 2
/* Of the state of a row that are there at a time. */
#define GENERATIONS 4
/* Joining has to save one part in this many: less may be chance. */
#define GAIN 10

struct row {
    struct rt_state *before;    /* owned: the sequence before the step that is compared */
    struct rt_state *alone;     /* owned: after that step, alone */
    struct rt_invocation *call; /* owned: the step alone, with its results */
    uint32_t steps;             /* of the sequence before it */
};

struct proof {
    struct rt_method *const *methods; /* borrowed: rows take turns; the first one has the forms */
    uint32_t method_count;
    struct hal_pool *pool; /* borrowed */
    const struct rt_pace *pace;
    struct row rows[RT_STEPS_ROWS_MAX];
    uint32_t row_count;
};

static struct rt_method *method_of(const struct proof *proof, uint32_t row)
{
    return proof->methods[row % proof->method_count];
}

/* ---- sequences ------------------------------------------------------------------------------- */

/* A state with the content of |from|, which no call advances any more. */
static enum status copy_state(struct rt_state *from, struct rt_state **out_state, struct error *err)
{
    TRY(rt_state_new(from->program, out_state, err));
    rt_state_share(*out_state, from, RT_STATE_ALL_ROWS);
    return ST_OK;
}

static enum status run_alone(const struct proof *proof, struct rt_state *state, uint32_t row,
                             uint32_t number, struct rt_invocation **out_call, struct error *err)
{
    uint64_t ns;
    TRY(rt_trial_check(proof->pace, err));
    TRY(rt_trial_new_call(method_of(proof, row), proof->pool, state, row, number, out_call, err));
    if (rt_trial_run(out_call, 1, false, &ns, err) != ST_OK) {
        rt_invocation_free(*out_call);
        *out_call = NULL;
        return err->code;
    }
    return ST_OK;
}

/* One more sequence, and its step alone. */
static enum status add_row(struct proof *proof, struct error *err)
{
    uint32_t index = proof->row_count;
    struct row *row = &proof->rows[proof->row_count++];
    row->steps = index % 3; /* the first one begins with the contents of the file */
    TRY(rt_state_new(method_of(proof, index)->program, &row->before, err));
    for (uint32_t i = 0; i < row->steps; i++) {
        struct rt_invocation *call;
        TRY(run_alone(proof, row->before, index, i, &call, err));
        rt_invocation_free(call);
    }
    TRY(copy_state(row->before, &row->alone, err));
    return run_alone(proof, row->alone, index, row->steps, &row->call, err);
}

/* Each row has the generation before its step, the one after it, and two of the step that runs with
 * others. Rows differ by a few steps only, so the last one tells how much the next one takes. */
static enum status check_room(const struct proof *proof, struct error *err)
{
    size_t bytes = 0, all;
    if (proof->row_count > 0) {
        bytes = rt_state_touched_bytes(proof->rows[proof->row_count - 1].alone);
    }
    if (!mul_size(bytes, GENERATIONS * ((size_t)proof->row_count + 1), &all)) {
        all = SIZE_MAX;
    }
    if (all > hal_pool_size(proof->pool)) {
        return error_set(err, ST_UNSUPPORTED,
                         "to compare %u steps, states would take %zu bytes, more than the memory "
                         "for requests (%zu)",
                         proof->row_count + 1, all, hal_pool_size(proof->pool));
    }
    return ST_OK;
}

static void free_rows(struct proof *proof)
{
    for (uint32_t i = 0; i < proof->row_count; i++) {
        rt_invocation_free(proof->rows[i].call);
        rt_state_unref(proof->rows[i].alone);
        rt_state_unref(proof->rows[i].before);
    }
    proof->row_count = 0;
}

/* ---- together -------------------------------------------------------------------------------- */

static bool is_same_bytes(struct hal_buffer *a, struct hal_buffer *b)
{
    size_t size = hal_buffer_size(a);
    return a == b || size == 0 || memcmp(hal_buffer_map(a), hal_buffer_map(b), size) == 0;
}

static enum status compare(const struct proof *proof, uint32_t index, uint32_t count,
                           const struct rt_state *state, const struct rt_invocation *call,
                           struct error *err)
{
    const struct row *row = &proof->rows[index];
    bool is_same = true;
    for (uint32_t i = 0; i < rt_method_result_count(proof->methods[0]); i++) {
        struct span a = rt_invocation_result(row->call, i)->bytes;
        struct span b = rt_invocation_result(call, i)->bytes;
        is_same &= a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
    }
    if (!is_same) {
        return error_set(err, ST_UNSUPPORTED,
                         "row %u of %u joined steps differs from the same step run alone", index,
                         count);
    }
    for (uint32_t i = 0; is_same && i < state->cells->count; i++) {
        is_same = is_same_bytes(row->alone->current[i], state->current[i]);
    }
    return is_same ? ST_OK
                   : error_set(err, ST_UNSUPPORTED,
                               "row %u of %u joined steps leaves other mutable buffers than the "
                               "same step run alone",
                               index, count);
}

/* The steps of the first |count| rows, as one or side by side; |compares|: with the steps alone. */
static enum status run_rows(const struct proof *proof, uint32_t count, bool is_joined,
                            bool compares, uint64_t *out_ns, struct error *err)
{
    struct rt_state *states[RT_STEPS_ROWS_MAX] = {0};
    struct rt_invocation *calls[RT_STEPS_ROWS_MAX] = {0};
    enum status status = rt_trial_check(proof->pace, err);
    for (uint32_t i = 0; status == ST_OK && i < count; i++) {
        status = copy_state(proof->rows[i].before, &states[i], err);
        if (status == ST_OK) {
            status = rt_trial_new_call(method_of(proof, i), proof->pool, states[i], i,
                                       proof->rows[i].steps, &calls[i], err);
        }
        if (status == ST_OK && rt_steps_rows(calls[i]) == 0) {
            status = error_set(err, ST_UNSUPPORTED, "its smallest call is not a step");
        }
    }
    if (status == ST_OK) {
        status = rt_trial_run(calls, count, is_joined, out_ns, err);
    }
    for (uint32_t i = 0; compares && status == ST_OK && i < count; i++) {
        status = compare(proof, i, count, states[i], calls[i], err);
    }
    for (uint32_t i = 0; i < count; i++) {
        rt_invocation_free(calls[i]);
        rt_state_unref(states[i]);
    }
    return status;
}

static enum status make_form(const struct proof *proof, uint32_t rows, struct error *err)
{
    struct rt_method *first = proof->methods[0];
    return proof->method_count > 1 ? rt_steps_make_mixed_form(first, rows, err)
                                   : rt_steps_make_form(first, rows, err);
}

static enum status prove_rows(struct proof *proof, uint32_t rows, struct error *err)
{
    uint64_t ns;
    TRY(make_form(proof, rows, err));
    while (proof->row_count < rows) {
        TRY(check_room(proof, err));
        TRY(add_row(proof, err));
    }
    return run_rows(proof, rows, true, true, &ns, err);
}

static enum status prove(struct proof *proof, int64_t max, int64_t *io_rows, struct error *err)
{
    uint64_t begin_ns = rt_trial_now_ns();
    int64_t first = *io_rows;
    for (int64_t rows = 2; rows <= first && rows <= max; rows++) {
        if (make_form(proof, (uint32_t)rows, err) != ST_OK) {
            *io_rows = rows - 1; /* so many have a form */
            return err->code;
        }
    }
    for (int64_t rows = first + 1; rows <= max; rows++) {
        TRY(rt_trial_check_time(proof->pace, begin_ns, rows - 1 - first, err));
        TRY(prove_rows(proof, (uint32_t)rows, err));
        *io_rows = rows;
    }
    return ST_OK;
}

static enum status prove_all(struct rt_method *const *methods, uint32_t method_count,
                             struct hal_pool *pool, const struct rt_pace *pace, int64_t rows_max,
                             int64_t *io_rows, struct error *err)
{
    must(rows_max <= RT_STEPS_ROWS_MAX);
    struct proof proof = {
        .methods = methods, .method_count = method_count, .pool = pool, .pace = pace};
    enum status status = prove(&proof, rows_max, io_rows, err);
    free_rows(&proof);
    return status;
}

enum status rt_steps_prove(struct rt_method *method, struct hal_pool *pool,
                           const struct rt_pace *pace, int64_t rows_max, int64_t *io_rows,
                           struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return prove_all(&method, 1, pool, pace, rows_max, io_rows, err);
}

/* ---- whether it is worth it ------------------------------------------------------------------ */

/* Is the step of |count| rows cheaper than that of as many side by side? Both take turns, so that
 * load meets both. */
static enum status weigh(const struct proof *proof, uint32_t count, bool *out_is_worth,
                         struct error *err)
{
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 2 * RACES; i++) {
        uint64_t ns;
        TRY(run_rows(proof, count, i % 2, false, &ns, err));
        best[i % 2] = ns < best[i % 2] ? ns : best[i % 2];
    }
    *out_is_worth = best[1] <= best[0] / GAIN * (GAIN - 1);
    return ST_OK;
}

static enum status measure(struct proof *proof, int64_t rows, int64_t *out_rows, struct error *err)
{
    while (proof->row_count < rows) {
        TRY(add_row(proof, err));
    }
    for (bool is_worth = false; rows > 1; rows /= 2) {
        TRY(weigh(proof, (uint32_t)rows, &is_worth, err));
        if (is_worth) {
            break;
        }
    }
    *out_rows = rows;
    return ST_OK;
}

enum status rt_steps_measure(struct rt_method *method, struct hal_pool *pool,
                             const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                             struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct proof proof = {.methods = &method, .method_count = 1, .pool = pool, .pace = pace};
    if (rows <= 1) { /* there may be no form of a step */
        *out_rows = 1;
        return ST_OK;
    }
    enum status status = measure(&proof, rows, out_rows, err);
    free_rows(&proof);
    return status;
}

/* ---- siblings -------------------------------------------------------------------------------- */

enum status rt_siblings_prove(struct rt_method *method, struct rt_method *other,
                              struct hal_pool *pool, const struct rt_pace *pace, int64_t rows_max,
                              int64_t *io_rows, struct error *err)
{
    struct rt_method *const both[] = {method, other};
    must(rt_siblings_are(method, other));
    enum status status = prove_all(both, 2, pool, pace, rows_max, io_rows, err);
    atomic_store(&method->steps->mixed_rows, (uint32_t)*io_rows);
    return status;
}

enum status rt_siblings_measure(struct rt_method *method, struct rt_method *other,
                                struct hal_pool *pool, const struct rt_pace *pace, int64_t rows,
                                int64_t *out_rows, struct error *err)
{
    struct rt_method *const both[] = {method, other};
    struct proof proof = {.methods = both, .method_count = 2, .pool = pool, .pace = pace};
    must(rows > 1 && rt_siblings_are(method, other));
    enum status status = measure(&proof, rows, out_rows, err);
    free_rows(&proof);
    return status;
}
