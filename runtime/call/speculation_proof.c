/* SPDX-License-Identifier: MIT */
/*
 * One sequence runs step by step, and its results are kept. Beside it, from the same state, the
 * same steps run as one call: the results, and the rows of the mutable buffers, must be the same.
 * Then a call with the right first step and wrong ones behind it is followed by the right second
 * step alone, which must not see what the wrong ones have left.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/call/speculation_priv.h"
#include "runtime/call/steps_trial.h"
#include "runtime/program/state_cells.h"

/* Steps before the compared ones, so that the buffers have rows. */
#define BEFORE 2
/* Calls until each generation of a state has memory that holds all but the last rows. */
#define WARM_UP 2
#define RACES 3

struct trial {
    struct rt_method *method; /* borrowed */
    struct hal_pool *pool;    /* borrowed */
    const struct rt_pace *pace;
    struct rt_state *before; /* owned: gets no calls */
    struct rt_state *alone;  /* owned: |step_count| steps later */
    uint32_t step_count;
    uint8_t *results; /* owned: of these steps, behind each other */
    size_t result_bytes;
};

static const struct rt_step *step_of(const struct trial *trial)
{
    return &trial->method->steps->step;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Of one step; |first|: its first result. */
static size_t sum_results(const struct trial *trial, const struct rt_invocation *call,
                          uint32_t first)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < step_of(trial)->result_count; i++) {
        bytes += rt_invocation_result(call, first + i)->bytes.len;
    }
    return bytes;
}

static void keep_results(const struct trial *trial, const struct rt_invocation *call, uint32_t step)
{
    uint8_t *at = trial->results + step * trial->result_bytes;
    for (uint32_t i = 0; i < step_of(trial)->result_count; i++) {
        struct span bytes = rt_invocation_result(call, i)->bytes;
        memcpy(at, bytes.ptr, bytes.len);
        at += bytes.len;
    }
}

/* Are the results from |first| on the results of step |step|? */
static bool has_results(const struct trial *trial, const struct rt_invocation *call, uint32_t first,
                        uint32_t step)
{
    const uint8_t *at = trial->results + step * trial->result_bytes;
    bool is_same = sum_results(trial, call, first) == trial->result_bytes;
    for (uint32_t i = 0; is_same && i < step_of(trial)->result_count; i++) {
        struct span bytes = rt_invocation_result(call, first + i)->bytes;
        is_same = bytes.len == 0 || memcmp(bytes.ptr, at, bytes.len) == 0;
        at += bytes.len;
    }
    return is_same;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Runs compared step |step| alone; the caller frees the call. */
static enum status run_alone(const struct trial *trial, struct rt_state *state, uint32_t step,
                             uint64_t *out_ns, struct rt_invocation **out_call, struct error *err)
{
    TRY(rt_trial_check(trial->pace, err));
    TRY(rt_trial_new_call(trial->method, trial->pool, state, 0, step, out_call, err));
    enum status status = rt_trial_run(out_call, 1, false, out_ns, err);
    if (status != ST_OK) {
        rt_invocation_free(*out_call);
        *out_call = NULL;
    }
    return status;
}

/* Gives integers that are no position another value. */
static void spoil_inputs(const struct trial *trial, struct rt_invocation *call, uint32_t row)
{
    const struct rt_step *step = step_of(trial);
    for (uint32_t i = 0; i < step->input_count; i++) {
        const struct rt_value *v = &step->graph.values[step->graph.inputs[i]];
        const struct rt_bound_input *input = &call->inputs[row * step->input_count + i];
        if (i == step->numbers[0].input || v->kind != RT_TENSOR || v->dtype != DT_I64) {
            continue;
        }
        int64_t *items = hal_buffer_map(input->binding.buffer);
        for (int64_t n = 0; n < shape_numel(&input->shape); n++) {
            items[n] = !items[n];
        }
    }
}

static enum status give_all(const struct trial *trial, struct rt_invocation *call, uint32_t rows,
                            bool is_wrong, struct error *err)
{
    const struct rt_step *step = step_of(trial);
    for (uint32_t row = 0; row < rows; row++) {
        TRY(rt_trial_give_inputs(step, call, row * step->input_count, 0, BEFORE + row, err));
        if (is_wrong && row > 0) {
            spoil_inputs(trial, call, row);
        }
    }
    TRY(rt_speculation_ready(trial->method, call, err));
    return rt_invocation_plan(call, RT_PREPARE_ALL, err);
}

/* |rows| steps behind BEFORE steps as one call, which the caller frees; |is_wrong|: all but the
 * first are other ones. */
static enum status run_speculation(const struct trial *trial, struct rt_state *state, uint32_t rows,
                                   bool is_wrong, uint64_t *out_ns, struct rt_invocation **out_call,
                                   struct error *err)
{
    TRY(rt_trial_check(trial->pace, err));
    TRY(rt_speculation_new(trial->method, trial->pool, rows, out_call, err));
    rt_invocation_set_state(*out_call, state);
    enum status status = give_all(trial, *out_call, rows, is_wrong, err);
    if (status == ST_OK) {
        status = rt_trial_run(out_call, 1, false, out_ns, err);
    }
    if (status != ST_OK) {
        rt_invocation_free(*out_call);
        *out_call = NULL;
    }
    return status;
}

/* ---- the sequence ---------------------------------------------------------------------------- */

static enum status share(const struct trial *trial, struct rt_state **out_state, struct error *err)
{
    TRY(rt_state_new(trial->method->program, out_state, err));
    rt_state_share(*out_state, trial->before, RT_STATE_ALL_ROWS);
    return ST_OK;
}

static enum status walk(struct trial *trial, struct error *err)
{
    struct rt_invocation *call;
    uint64_t ns;
    TRY(rt_state_new(trial->method->program, &trial->before, err));
    for (uint32_t i = 0; i < BEFORE; i++) {
        TRY(run_alone(trial, trial->before, i, &ns, &call, err));
        trial->result_bytes = sum_results(trial, call, 0);
        rt_invocation_free(call);
    }
    trial->results = calloc(trial->step_count, trial->result_bytes + 1);
    if (!trial->results) {
        return error_no_memory(err, "speculative steps");
    }
    TRY(share(trial, &trial->alone, err));
    for (uint32_t i = 0; i < trial->step_count; i++) {
        TRY(run_alone(trial, trial->alone, BEFORE + i, &ns, &call, err));
        bool is_alike = sum_results(trial, call, 0) == trial->result_bytes;
        if (is_alike) {
            keep_results(trial, call, i);
        }
        rt_invocation_free(call);
        if (!is_alike) {
            return error_set(err, ST_UNSUPPORTED, "its results have other sizes in each step");
        }
    }
    return ST_OK;
}

static void end(struct trial *trial)
{
    rt_state_unref(trial->alone);
    rt_state_unref(trial->before);
    free(trial->results);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Are the rows before |end| the same as when the steps have run one by one? */
static bool has_rows(const struct trial *trial, const struct rt_state *state, int64_t end)
{
    bool is_same = true;
    for (uint32_t i = 0; is_same && i < state->cells->count; i++) {
        const struct rt_rows *rows = &state->unsettled[i];
        struct hal_buffer *a = trial->alone->current[i], *b = state->current[i];
        size_t block = (size_t)(rows->rows * rows->row_bytes), size = hal_buffer_size(b);
        size_t bytes = (size_t)((end < rows->rows ? end : rows->rows) * rows->row_bytes);
        if (a == b || size == 0) {
            continue;
        }
        is_same = block > 0 && size % block == 0;
        for (size_t at = 0; is_same && at < size; at += block) {
            is_same = memcmp((uint8_t *)hal_buffer_map(a) + at, (uint8_t *)hal_buffer_map(b) + at,
                             bytes) == 0;
        }
    }
    return is_same;
}

static enum status compare_right(const struct trial *trial, const struct rt_state *state,
                                 const struct rt_invocation *call, uint32_t rows, struct error *err)
{
    for (uint32_t row = 0; row < rows; row++) {
        if (!has_results(trial, call, row * step_of(trial)->result_count, row)) {
            return error_set(err, ST_UNSUPPORTED,
                             "step %u of %u that were guessed differs from the same step run alone",
                             row, rows);
        }
    }
    if (!rt_state_wrote(state, BEFORE, BEFORE + rows)) {
        return error_set(err, ST_UNSUPPORTED,
                         "%u speculative steps write other rows than their own", rows);
    }
    return has_rows(trial, state, BEFORE + rows)
               ? ST_OK
               : error_set(err, ST_UNSUPPORTED,
                           "%u speculative steps leave other mutable buffers than one by one",
                           rows);
}

static enum status try_right(const struct trial *trial, struct rt_state *state, uint32_t rows,
                             struct error *err)
{
    struct rt_invocation *call;
    uint64_t ns;
    TRY(run_speculation(trial, state, rows, false, &ns, &call, err));
    enum status status = compare_right(trial, state, call, rows, err);
    rt_invocation_free(call);
    return status;
}

static enum status try_wrong(const struct trial *trial, struct rt_state *state, uint32_t rows,
                             struct error *err)
{
    struct rt_invocation *call;
    uint64_t ns;
    TRY(run_speculation(trial, state, rows, true, &ns, &call, err));
    bool is_same = has_results(trial, call, 0, 0);
    rt_invocation_free(call);
    TRY(run_alone(trial, state, BEFORE + 1, &ns, &call, err));
    is_same = is_same && has_results(trial, call, 0, 1);
    rt_invocation_free(call);
    return is_same ? ST_OK
                   : error_set(
                         err, ST_UNSUPPORTED,
                         "a step after %u that were given up differs from the same step run alone",
                         rows);
}

static enum status prove_rows(const struct trial *trial, uint32_t rows, struct error *err)
{
    typedef enum status try_f(const struct trial *, struct rt_state *, uint32_t, struct error *);
    static try_f *const tries[] = {try_right, try_wrong};
    TRY(rt_speculation_make_form(trial->method, rows, err));
    for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct rt_state *state;
        TRY(share(trial, &state, err));
        enum status status = tries[i](trial, state, rows, err);
        rt_state_unref(state);
        TRY(status);
    }
    return ST_OK;
}

/* Tries |*io_steps| + 1 steps and more. */
static enum status prove(struct trial *trial, int64_t *io_steps, struct error *err)
{
    int64_t first = *io_steps;
    for (int64_t steps = 2; steps <= first; steps++) {
        if (rt_speculation_make_form(trial->method, (uint32_t)steps, err) != ST_OK) {
            *io_steps = steps - 1; /* so many have a form */
            return err->code;
        }
    }
    if (first >= trial->step_count) {
        return ST_OK;
    }
    TRY(walk(trial, err));
    uint64_t begin_ns = rt_trial_now_ns();
    for (int64_t steps = first + 1; steps <= trial->step_count; steps++) {
        TRY(rt_trial_check_time(trial->pace, begin_ns, steps - 1 - first, err));
        TRY(prove_rows(trial, (uint32_t)steps, err));
        *io_steps = steps;
    }
    return ST_OK;
}

enum status rt_speculation_prove(struct rt_method *method, struct hal_pool *pool,
                                 const struct rt_pace *pace, int64_t steps_max, int64_t *io_steps,
                                 struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(*io_steps >= 1 && *io_steps <= RT_SPECULATION_STEPS_MAX);
    int64_t max = steps_max < RT_SPECULATION_STEPS_MAX ? steps_max : RT_SPECULATION_STEPS_MAX;
    if (max < 2) {
        return ST_OK;
    }
    if (rt_speculation_make_form(method, 2, err) != ST_OK) { /* most methods end here */
        *io_steps = 1;
        return err->code;
    }
    struct trial trial = {
        .method = method, .pool = pool, .pace = pace, .step_count = (uint32_t)max};
    enum status status = prove(&trial, io_steps, err);
    end(&trial);
    return status;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static enum status time_rows(const struct trial *trial, uint32_t rows, uint64_t *out_ns,
                             struct error *err)
{
    struct rt_state *state;
    struct rt_invocation *call;
    enum status status = ST_OK;
    TRY(share(trial, &state, err));
    *out_ns = UINT64_MAX;
    for (uint32_t i = 0; status == ST_OK && i < WARM_UP + RACES; i++) {
        uint64_t ns;
        status = rows == 1 ? run_alone(trial, state, BEFORE, &ns, &call, err)
                           : run_speculation(trial, state, rows, false, &ns, &call, err);
        if (status == ST_OK) {
            rt_invocation_free(call);
            *out_ns = i >= WARM_UP && ns < *out_ns ? ns : *out_ns;
        }
    }
    rt_state_unref(state);
    return status;
}

enum status rt_speculation_measure(struct rt_method *method, struct hal_pool *pool,
                                   const struct rt_pace *pace, uint32_t steps, uint64_t *out_ns,
                                   struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(steps >= 1 && steps <= RT_SPECULATION_STEPS_MAX);
    struct trial trial = {.method = method, .pool = pool, .pace = pace, .step_count = 1};
    enum status status = walk(&trial, err);
    for (uint32_t rows = 1; status == ST_OK && rows <= steps; rows++) {
        status = time_rows(&trial, rows, &out_ns[rows], err);
    }
    end(&trial);
    return status;
}
