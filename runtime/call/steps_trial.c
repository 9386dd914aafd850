/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/steps_trial.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/semaphore.h"
#include "runtime/call/batch.h"

uint64_t rt_trial_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

enum status rt_trial_fail_late(struct error *err)
{
    return error_set(err, ST_TIMEOUT, "the time for the trial was over");
}

enum status rt_trial_check(const struct rt_pace *pace, struct error *err)
{
    return !pace->may_run || pace->may_run(pace->arg) ? ST_OK : rt_trial_fail_late(err);
}

enum status rt_trial_check_time(const struct rt_pace *pace, uint64_t begin_ns, int64_t found,
                                struct error *err)
{
    bool is_over = found > 0 && rt_trial_now_ns() - begin_ns >= pace->budget_ns;
    return is_over ? rt_trial_fail_late(err) : ST_OK;
}

/* ---- one step -------------------------------------------------------------------------------- */

static bool is_number(const struct rt_step *step, uint32_t input)
{
    for (uint32_t i = 0; i < step->number_count; i++) {
        if (step->numbers[i].input == input) {
            return true;
        }
    }
    return false;
}

/* Numbers that every type can represent and that are valid indices. */
static void fill(void *memory, enum dtype dtype, int64_t count, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t bits = state >> 8;
        if (dtype == DT_F32) {
            ((float *)memory)[i] = (float)bits * 0x1p-23f - 1;
        } else if (dtype == DT_I64) {
            ((int64_t *)memory)[i] = bits & 1;
        } else if (dtype == DT_I32) {
            ((int32_t *)memory)[i] = (int32_t)(bits & 1);
        } else {
            memset((uint8_t *)memory + (size_t)i * dtype_bytes(dtype), 0, dtype_bytes(dtype));
        }
    }
}

enum status rt_trial_give_inputs(const struct rt_step *step, struct rt_invocation *inv,
                                 uint32_t first, uint32_t row, uint32_t number, struct error *err)
{
    for (uint32_t i = 0; i < step->input_count; i++) {
        const struct rt_value *v = &step->graph.values[step->graph.inputs[i]];
        struct shape shape;
        if (v->kind != RT_TENSOR || !rt_value_shape(v, &shape)) {
            continue;
        }
        size_t bytes = (size_t)shape_numel(&shape) * dtype_bytes(v->dtype);
        TRY(rt_invocation_reserve_input(inv, first + i, &shape, bytes, err));
        void *memory = bytes ? hal_buffer_map(inv->inputs[first + i].binding.buffer) : NULL;
        bool counts = is_number(step, i) || (shape.rank < 2 && shape_numel(&shape) == 1);
        if (counts && v->dtype == DT_I64) {
            *(int64_t *)memory = number;
        } else if (bytes) {
            fill(memory, v->dtype, shape_numel(&shape), row * 64 + number);
        }
    }
    return ST_OK;
}

enum status rt_trial_new_call(struct rt_method *method, struct hal_pool *pool,
                              struct rt_state *state, uint32_t row, uint32_t number,
                              struct rt_invocation **out_call, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(method->steps != NULL);
    TRY(rt_invocation_new(method, pool, out_call, err));
    (*out_call)->is_trial = true;
    rt_invocation_set_state(*out_call, state);
    enum status status = rt_trial_give_inputs(&method->steps->step, *out_call, 0, row, number, err);
    if (status == ST_OK) {
        status = rt_invocation_plan(*out_call, RT_PREPARE_ALL, err);
    }
    if (status != ST_OK) {
        rt_invocation_free(*out_call);
        *out_call = NULL;
    }
    return status;
}

struct waiting {
    struct hal_semaphore *semaphore;
    atomic_uint left;
    atomic_int status;
};

static void on_done(struct rt_invocation *inv, enum status status, void *arg)
{
    (void)inv;
    struct waiting *waiting = arg;
    if (status != ST_OK) {
        atomic_store(&waiting->status, (int)status);
    }
    if (atomic_fetch_sub(&waiting->left, 1) == 1) {
        hal_semaphore_signal(waiting->semaphore, 1);
    }
}

enum status rt_trial_run(struct rt_invocation *const *calls, uint32_t count, bool is_joined,
                         uint64_t *out_ns, struct error *err)
{
    struct waiting waiting;
    void *args[RT_STEPS_ROWS_MAX];
    TRY(hal_semaphore_new(0, &waiting.semaphore, err));
    atomic_init(&waiting.left, count);
    atomic_init(&waiting.status, (int)ST_OK);
    for (uint32_t i = 0; i < count; i++) {
        args[i] = &waiting;
    }
    uint64_t begin = rt_trial_now_ns();
    enum status status = ST_OK;
    if (is_joined) {
        status = rt_batch_submit(calls, args, count, on_done, err);
    }
    for (uint32_t i = 0; !is_joined && status == ST_OK && i < count; i++) {
        status = rt_invocation_prepare(calls[i], RT_PREPARE_ALL, err);
    }
    for (uint32_t i = 0; !is_joined && status == ST_OK && i < count; i++) {
        rt_invocation_submit(calls[i], HAL_CALLER_BUSY, on_done, &waiting);
    }
    if (status == ST_OK) {
        status = hal_semaphore_wait(waiting.semaphore, 1, UINT64_MAX);
        must(status == ST_OK);
        status = (enum status)atomic_load(&waiting.status);
        status = status == ST_OK ? ST_OK : error_set(err, status, "the model failed");
    }
    for (uint32_t i = 0; is_joined && status == ST_OK && i < count; i++) {
        if (!calls[i]->was_joined) {
            status = error_set(err, ST_UNSUPPORTED, "%u steps cannot run as one", count);
        }
    }
    *out_ns = rt_trial_now_ns() - begin;
    hal_semaphore_unref(waiting.semaphore);
    return status;
}
