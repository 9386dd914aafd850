/* SPDX-License-Identifier: MIT */
/*
 * request_run_steps() is the only loop over the steps, and request_go() the only function that
 * changes a step. A step moves on (STEP_NEXT), has more work than may be done where it runs
 * (STEP_MOVE), or waits until another part calls request_run_steps() again: the parser for READ, a
 * worker for ANYWHERE steps, the device for RUN, the client for WRITE.
 */
#include "config.h"

#include "server/daemon/request/request_steps.h"

#include "base/check.h"
#include "hal/pool.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/requests.h"
#include "server/http/http.h"

#define NEXT(name) (1u << STEP_##name)
const struct request_step_info request_steps[STEP_COUNT] = {
#define STEP(name, fn, where, next) [STEP_##name] = {#name, fn, NULL, 0, where, next},
#define CALL_STEP(name, call, then, where, next)                                                   \
    [STEP_##name] = {#name, request_step_call, call, STEP_##then, where, next},
#include "server/daemon/request/request.def"
#undef STEP
};

const struct turn_steps request_turn_steps = {
    .count = STEP_COUNT,
    .names =
        {
#define STEP(name, ...) [STEP_##name] = #name,
#include "server/daemon/request/request.def"
#undef STEP
        },
};

static inline bool may_follow(enum request_step from, enum request_step to)
{
    unsigned next = request_steps[from].next | (from != STEP_DONE) << STEP_DONE;
    return (next & 1u << to) != 0;
}

bool request_step_may_follow(enum request_step from, enum request_step to)
{
    must(from < STEP_COUNT && to < STEP_COUNT);
    return may_follow(from, to);
}

const char *request_step_name(enum request_step step)
{
    must(step < STEP_COUNT);
    return request_steps[step].name;
}

void request_go(struct request *request, enum request_step next)
{
    must(may_follow(request->step, next));
    /* A wait for memory says nothing new of the work of a step. */
    if (next != STEP_WAIT_MEMORY && request->step != STEP_WAIT_MEMORY) {
        work_reset(&request->infer.work);
    }
    request->step = next;
}

/* In another task the step stands behind all others that wait, also as a heavy one again. */
static enum request_step_result move_on(struct request *request)
{
    work_move_on(&request->infer.work);
    return STEP_MOVE;
}

enum request_step_result request_advance(struct request *request, enum outcome outcome,
                                         enum request_step next)
{
    switch (outcome) {
    case OUTCOME_DONE:
        break;
    case OUTCOME_FILES:
        next = STEP_MEDIA;
        break;
    case OUTCOME_HEAVY:
        /* only a sample, for a mask of a grammar, is heavy piece by piece */
        must(request->infer.work.place != WORK_HEAVY || request->step == STEP_SAMPLE);
        return move_on(request);
    case OUTCOME_PLAN:
        return move_on(request);
    case OUTCOME_LOAD:
    case OUTCOME_WAIT_MEMORY:
        must(request->step != STEP_WAIT_MEMORY); /* a wait is for a step that has work */
        request->retry.step = request->step;
        next = outcome == OUTCOME_LOAD ? STEP_LOAD : STEP_WAIT_MEMORY;
        break;
    case OUTCOME_FAILED:
        request_refuse(request, request->infer.is_unfit ? 415
                                : request->grpc.refusal ? request->grpc.refusal
                                                        : http_status_of(request->err.code));
        next = STEP_WRITE;
    }
    request_go(request, next);
    return STEP_NEXT;
}

enum request_step_result request_fail(struct request *request)
{
    return request_advance(request, OUTCOME_FAILED, STEP_WRITE);
}

static void on_work(uv_work_t *work);
static void on_work_done(uv_work_t *work, int uv_status);

/* An answer that is computed has its turn, whenever that is. */
static void offload_steps(struct request *request, enum work_place place)
{
    bool has_run = request->step == STEP_ENCODE || request->step == STEP_SAMPLE;
    must(place != WORK_ON_LOOP && request_steps[request->step].where == ANYWHERE);
    request->is_on_worker = true;
    request->infer.work.place = place;
    request->task.client = request->client.id;
    offload_begin_task(request->requests->uses.loop->offload,
                       place == WORK_HEAVY ? OFFLOAD_HEAVY : OFFLOAD_REQUEST, &request->task,
                       on_work, on_work_done,
                       has_run || !request->infer.ops ? RT_SCHED_NEVER
                                                      : infer_wait_due_ns(&request->infer));
}

static enum request_step_result run_at(struct request *request, enum work_place place)
{
    must(place == WORK_ON_LOOP || request_steps[request->step].where == ANYWHERE);
    work_begin(&request->infer.work, place);
    return request_steps[request->step].run(request);
}

/* Runs a step on the loop. |known|: bytes of request_work_place(), for a step that runs ANYWHERE.
 * The memory for inputs that it takes is counted apart from what it says; |*taken|: all that has
 * been taken, before and after it. */
static enum request_step_result run_on_loop(struct request *request, uint64_t known, size_t *taken)
{
    struct turn_watch *watch = &request->requests->uses.loop->watch;
    enum turn_part part = (enum turn_part)request->step;
    turn_watch_enter(watch, part);
    enum request_step_result result = run_at(request, WORK_ON_LOOP);
    if (result != STEP_WAIT) { /* else the request may be over */
        const struct work *work = &request->infer.work;
        size_t now = hal_pool_taken(request->infer.pool), own = now - *taken - work->reserved;
        turn_watch_note_bytes(watch, part, known + (own > work->bytes ? own : work->bytes));
        *taken = now;
    }
    return result;
}

void request_run_steps(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(!request->is_on_worker); /* else it is not the loop's */
    enum request_step_result result = STEP_NEXT;
    size_t taken = hal_pool_taken(request->infer.pool);
    while (result != STEP_WAIT) {
        uint64_t known = 0;
        enum work_place place = request_steps[request->step].where == ANYWHERE
                                    ? request_work_place(request, &known)
                                    : WORK_ON_LOOP;
        if (place != WORK_ON_LOOP) {
            offload_steps(request, place);
            return;
        }
        result = run_on_loop(request, known, &taken);
    }
}

/* On a worker: runs steps as far as this task may. */
static void on_work(uv_work_t *work)
{
    struct request *request;
    OBJ_CAST(request, work->data, REQUEST_MAGIC);
    enum work_place place = request->infer.work.place;
    enum request_step_result result = STEP_NEXT;
    uint64_t known;
    must(request->is_on_worker && place != WORK_ON_LOOP);
    while (result == STEP_NEXT && request_steps[request->step].where == ANYWHERE &&
           request_work_place(request, &known) <= place) {
        result = run_at(request, place);
        must(result != STEP_WAIT);
    }
}

/* No thread was free for its heavy step in time. */
static void give_up_waiting(struct request *request)
{
    request->infer.job.started_ns = 0; /* of an earlier use */
    infer_fail_late(&request->infer, &request->err);
    (void)request_fail(request);
}

static void on_work_done(uv_work_t *work, int uv_status)
{
    struct request *request;
    OBJ_CAST(request, work->data, REQUEST_MAGIC);
    bool is_late = uv_status == UV_ETIMEDOUT;
    must(request->is_on_worker);
    must(uv_status == 0 || is_late || !request->exchange); /* only request_abandon() cancels */
    offload_end_task(request->requests->uses.loop->offload, &request->task);
    if (is_late) {
        give_up_waiting(request);
    }
    turns_add(&request->requests->uses.loop->turns, &request->turn);
}
