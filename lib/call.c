/* SPDX-License-Identifier: MIT */
/* Calls: their life, how they begin, how they end. call_values.c has their inputs and outputs. */
#include "config.h"

#include <stdlib.h>

#include "hal/buffer.h"
#include "lib/cards.h"
#include "lib/inside.h"
#include "runtime/call/invocation.h"
#include "runtime/call/profile.h"
#include "runtime/program/program.h"

/* ---- life ------------------------------------------------------------------------------------ */

enum pted_status pted_call_new(const struct pted_method *method, struct pted_call **out_call,
                               struct pted_error *err)
{
    struct error own;
    *out_call = NULL;
    enum pted_status usable = pted_method_verify(method, err);
    if (usable != PTED_OK) {
        return usable;
    }
    struct pted_call *call = calloc(1, sizeof(*call));
    if (!call) {
        return lib_give(error_no_memory(&own, "a call"), &own, err);
    }
    enum status status =
        rt_invocation_new(method->rt, method->program->device->pool, &call->invocation, &own);
    if (status != ST_OK) {
        free(call);
        return lib_give(status, &own, err);
    }
    call->magic = LIB_CALL_MAGIC;
    call->method = method;
    lib_program_ref(method->program);
    list_init(&call->link);
    must(pthread_mutex_init(&call->mutex, NULL) == 0);
    must(pthread_cond_init(&call->changed, NULL) == 0);
    *out_call = call;
    return PTED_OK;
}

bool lib_call_is_in_flight(struct pted_call *call)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    pthread_mutex_lock(&call->mutex);
    bool is = call->phase != LIB_PHASE_FILLING && !call->is_over;
    pthread_mutex_unlock(&call->mutex);
    return is;
}

static void await(struct pted_call *call)
{
    pthread_mutex_lock(&call->mutex);
    while (!call->is_over) {
        pthread_cond_wait(&call->changed, &call->mutex);
    }
    pthread_mutex_unlock(&call->mutex);
}

static void drop_placed(struct pted_call *call)
{
    size_t count = call->placed ? pted_method_output_count(call->method) : 0;
    for (size_t i = 0; i < count; i++) {
        hal_buffer_unref(call->placed[i]);
        call->placed[i] = NULL;
    }
}

void pted_call_free(struct pted_call *call)
{
    if (!call) {
        return;
    }
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (lib_call_is_in_flight(call)) {
        pted_call_cancel(call);
        await(call);
    }
    lib_profile_leave(call);
    rt_invocation_free(call->invocation);
    drop_placed(call);
    free(call->placed);
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->mutex);
    pted_state_free(call->state);
    call->magic = 0;
    pted_program_free(call->method->program);
    free(call);
}

enum pted_status pted_call_reset(struct pted_call *call, struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    struct rt_invocation *fresh, *last = call->invocation;
    struct error own;
    if (lib_call_is_in_flight(call)) {
        return lib_refuse(err, ST_INVALID, "the call is in flight: wait for its end");
    }
    enum status status =
        rt_invocation_new(call->method->rt, call->method->program->device->pool, &fresh, &own);
    if (status != ST_OK) {
        return lib_give(status, &own, err);
    }
    pthread_mutex_lock(&call->mutex);
    call->invocation = fresh;
    call->phase = LIB_PHASE_FILLING; /* from here on pted_call_cancel() leaves it alone */
    call->is_over = call->is_cancelled = false;
    pthread_mutex_unlock(&call->mutex);
    rt_invocation_free(last);
    lib_profile_leave(call);
    drop_placed(call);
    call->joined = NULL;
    return PTED_OK;
}

enum pted_status pted_call_set_state(struct pted_call *call, struct pted_state *state,
                                     struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (call->phase != LIB_PHASE_FILLING || call->joined) {
        return lib_refuse(err, ST_INVALID, "the call has been run with another state: reset it");
    }
    if (state && state->program != call->method->program) {
        return lib_refuse(err, ST_INVALID, "the state is of another program");
    }
    struct pted_state *before = call->state;
    call->state = state ? lib_state_ref(state) : NULL;
    pted_state_free(before);
    return PTED_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Why the call failed, behind the element that is to blame, if one is. */
static void explain(struct pted_call *call, enum status status)
{
    const struct rt_culprit *culprit = rt_invocation_culprit(call->invocation);
    char element[RT_CULPRIT_TEXT_MAX];
    error_set(&call->error, status, "%s", rt_invocation_error(call->invocation)->text);
    if (culprit->is_known) {
        const struct rt_io *io = rt_method_input(call->method->rt, culprit->input);
        (void)error_prefix(&call->error, "%s%s: ", io->name, rt_culprit_print(culprit, element));
    }
}

/* |call->error| says how. The thread that waits may free the call before this returns. */
static void end(struct pted_call *call)
{
    call->phase = LIB_PHASE_ENDED;
    if (call->done) {
        call->done(call, lib_give(call->error.code, &call->error, NULL), call->arg);
    }
    if (call->state) {
        lib_state_go_on(call->state);
    }
    pthread_mutex_lock(&call->mutex);
    call->is_over = true;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->mutex);
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    struct pted_call *call = arg;
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (status == ST_OK) {
        call->error.code = ST_OK;
    } else {
        explain(call, status);
    }
    end(call);
}

/* ---- the begin ------------------------------------------------------------------------------- */

/* The memory that the caller gives: before the plan, which counts what the call takes, and again
 * after each failure. */
static enum status bind_placed(struct pted_call *call, struct error *err)
{
    size_t count = call->placed ? pted_method_output_count(call->method) : 0;
    if (count > 0) {
        rt_invocation_unbind_results(call->invocation);
    }
    for (size_t i = 0; i < count; i++) {
        if (call->placed[i]) {
            TRY(rt_invocation_bind_result(call->invocation, (uint32_t)i, call->placed[i], 0, err));
        }
    }
    return ST_OK;
}

static enum status prepare(struct pted_call *call, struct error *err)
{
    TRY(bind_placed(call, err));
    return rt_invocation_prepare(call->invocation, RT_PREPARE_ALL, err);
}

static void begin(struct pted_call *call, enum hal_caller caller)
{
    if (call->profile) {
        rt_invocation_profile(call->invocation, call->profile->rt);
    }
    call->phase = LIB_PHASE_RUNNING;
    rt_invocation_submit(call->invocation, caller, on_done, call);
}

void lib_call_begin_late(struct pted_call *call)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    pthread_mutex_lock(&call->mutex);
    bool is_cancelled = call->is_cancelled;
    pthread_mutex_unlock(&call->mutex);
    if (is_cancelled) {
        (void)error_set(&call->error, ST_CANCELLED, "%s", status_text(ST_CANCELLED));
    } else if (prepare(call, &call->error) == ST_OK) {
        begin(call, HAL_CALLER_BUSY);
        return;
    }
    end(call);
}

static enum status join_state(struct pted_call *call, struct error *err)
{
    struct rt_state *state = call->state->rt;
    if (call->joined && call->joined != state) {
        return error_set(err, ST_INVALID, "the state was reset meanwhile: reset the call, too");
    }
    if (!call->joined) {
        rt_invocation_set_state(call->invocation, state);
        call->joined = state;
    }
    TRY(bind_placed(call, err));
    return rt_invocation_plan(call->invocation, RT_PREPARE_ALL, err);
}

/* The call waits for its turn, or begins. */
static enum status begin_in_turn(struct pted_call *call, enum hal_caller caller, struct error *err)
{
    struct pted_state *state = call->state;
    TRY(join_state(call, err));
    if (!lib_state_take_turn(state, call)) {
        return ST_OK;
    }
    if (prepare(call, err) != ST_OK) {
        lib_state_go_on(state);
        return err->code;
    }
    begin(call, caller);
    return ST_OK;
}

static enum pted_status submit(struct pted_call *call, enum hal_caller caller, pted_done_f *done,
                               void *arg, struct pted_error *err)
{
    struct error own;
    enum status status = ST_OK;
    if (call->phase != LIB_PHASE_FILLING) {
        return lib_refuse(err, ST_INVALID, "the call has been run: reset it");
    }
    call->done = done;
    call->arg = arg;
    if (call->state) {
        status = begin_in_turn(call, caller, &own);
    } else {
        status = prepare(call, &own);
        if (status == ST_OK) {
            begin(call, caller);
        }
    }
    return lib_give(status, &own, err);
}

enum pted_status pted_call_submit(struct pted_call *call, pted_done_f *done, void *arg,
                                  struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    return submit(call, HAL_CALLER_BUSY, done, arg, err);
}

enum pted_status pted_call_run(struct pted_call *call, struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    enum pted_status status = submit(call, HAL_CALLER_WAITS, NULL, NULL, err);
    return status == PTED_OK ? pted_call_wait(call, err) : status;
}

enum pted_status pted_call_wait(struct pted_call *call, struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (call->phase == LIB_PHASE_FILLING) {
        return lib_refuse(err, ST_INVALID, "the call has not been submitted");
    }
    await(call);
    return lib_give(call->error.code, &call->error, err);
}

bool pted_call_has_ended(struct pted_call *call)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    return call->phase != LIB_PHASE_FILLING && !lib_call_is_in_flight(call);
}

bool pted_call_culprit(const struct pted_call *call, size_t *out_input,
                       struct pted_shape *out_element)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (call->phase != LIB_PHASE_ENDED || call->error.code == ST_OK) {
        return false;
    }
    const struct rt_culprit *culprit = rt_invocation_culprit(call->invocation);
    if (culprit->is_known) {
        *out_input = culprit->input;
        *out_element = lib_shape_give(&culprit->element);
    }
    return culprit->is_known;
}

void pted_call_cancel(struct pted_call *call)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    pthread_mutex_lock(&call->mutex);
    if (call->phase != LIB_PHASE_FILLING && !call->is_over) {
        call->is_cancelled = true;
        rt_invocation_cancel(call->invocation);
    }
    pthread_mutex_unlock(&call->mutex);
}

/* ---- for cards ------------------------------------------------------------------------------- */

struct rt_invocation *lib_call_runtime(const struct pted_call *call)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    return call->invocation;
}
