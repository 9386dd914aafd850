/* SPDX-License-Identifier: MIT */
/*
 * run_steps() is the only loop over the steps, and go() the only function that changes a step. A
 * step moves on (STEP_NEXT), has more work than may be done where it runs (STEP_MOVE), or waits
 * until another part calls run_steps() again: the parser for READ, a worker for ANYWHERE steps, the
 * device for RUN, the client for WRITE.
 */
#include "config.h"

#include "server/daemon/request/request.h"

#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_log.h"
#include "server/daemon/request/request_priv.h"
#include "server/daemon/request/request_stream.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/routes.h"
#include "server/daemon/request/transfers.h"
#include "server/daemon/serving/recovery.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/http/http.h"
#include "server/process/log.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u

/* The greatest Retry-After: a client would not believe a longer one. */
#define RETRY_AFTER_S_MAX 60

/* Memory that others have waited for this long is taken from any client. */
#define PRESSING_MS 1000

enum step_result {
    STEP_NEXT,
    STEP_MOVE, /* the step goes on, or begins again, at the next place
                  (server/daemon/infer/work.h) */
    STEP_WAIT,
};
enum step_where { LOOP, ANYWHERE };

typedef enum step_result step_f(struct request *request);
typedef enum outcome call_f(struct infer *infer, struct error *err);

struct step_info {
    const char *name;
    step_f *run;
    call_f *call;           /* of step_call() */
    enum request_step then; /* likewise: follows it if it is done */
    enum step_where where;
    unsigned next; /* bits of the steps that may come next */
};

#define NEXT(name) (1u << STEP_##name)
#define STEP(name, fn, where, next) static step_f fn;
#define CALL_STEP(name, call, then, where, next)
#include "server/daemon/request/request.def"
#undef STEP
static step_f step_call;

static const struct step_info steps[STEP_COUNT] = {
#define STEP(name, fn, where, next) [STEP_##name] = {#name, fn, NULL, 0, where, next},
#define CALL_STEP(name, call, then, where, next)                                                   \
    [STEP_##name] = {#name, step_call, call, STEP_##then, where, next},
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
    unsigned next = steps[from].next | (from != STEP_DONE) << STEP_DONE;
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
    return steps[step].name;
}

/* ---- the loop over the steps ----------------------------------------------------------------- */

/* A wait for memory says nothing new of the work of a step. */
static void go(struct request *request, enum request_step next)
{
    must(may_follow(request->step, next));
    if (next != STEP_WAIT_MEMORY && request->step != STEP_WAIT_MEMORY) {
        work_reset(&request->infer.work);
    }
    request->step = next;
}

/* In another task the step stands behind all others that wait, also as a heavy one again. */
static enum step_result move_on(struct request *request)
{
    work_move_on(&request->infer.work);
    return STEP_MOVE;
}

/* The only reader of outcomes: goes on to |next|, or tries the step again somewhere or after a
 * wait, or goes to the answer with the reason. */
static enum step_result advance(struct request *request, enum outcome outcome,
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
    go(request, next);
    return STEP_NEXT;
}

/* Of a step that never begins again. */
static enum outcome outcome_of(enum status status)
{
    return status == ST_OK ? OUTCOME_DONE : OUTCOME_FAILED;
}

static enum step_result fail(struct request *request)
{
    return advance(request, OUTCOME_FAILED, STEP_WRITE);
}

static void on_work(uv_work_t *work);
static void on_work_done(uv_work_t *work, int uv_status);

/* An answer that is computed has its turn, whenever that is. */
static void offload_steps(struct request *request, enum work_place place)
{
    bool has_run = request->step == STEP_ENCODE || request->step == STEP_SAMPLE;
    must(place != WORK_ON_LOOP && steps[request->step].where == ANYWHERE);
    request->is_on_worker = true;
    request->infer.work.place = place;
    request->task.client = request->client.id;
    offload_begin_task(request->requests->uses.loop->offload,
                       place == WORK_HEAVY ? OFFLOAD_HEAVY : OFFLOAD_REQUEST, &request->task,
                       on_work, on_work_done,
                       has_run || !request->infer.ops ? RT_SCHED_NEVER
                                                      : infer_wait_due_ns(&request->infer));
}

static enum step_result run_at(struct request *request, enum work_place place)
{
    must(place == WORK_ON_LOOP || steps[request->step].where == ANYWHERE);
    work_begin(&request->infer.work, place);
    return steps[request->step].run(request);
}

/* Runs a step on the loop. |known|: bytes of request_work_place(), for a step that runs ANYWHERE.
 * The memory for inputs that it takes is counted apart from what it says; |*taken|: all that has
 * been taken, before and after it. */
static enum step_result run_on_loop(struct request *request, uint64_t known, size_t *taken)
{
    struct turn_watch *watch = &request->requests->uses.loop->watch;
    enum turn_part part = (enum turn_part)request->step;
    turn_watch_enter(watch, part);
    enum step_result result = run_at(request, WORK_ON_LOOP);
    if (result != STEP_WAIT) { /* else the request may be over */
        const struct work *work = &request->infer.work;
        size_t now = hal_pool_taken(request->infer.pool), own = now - *taken - work->reserved;
        turn_watch_note_bytes(watch, part, known + (own > work->bytes ? own : work->bytes));
        *taken = now;
    }
    return result;
}

static void run_steps(struct request *request)
{
    must(!request->is_on_worker); /* else it is not the loop's */
    enum step_result result = STEP_NEXT;
    size_t taken = hal_pool_taken(request->infer.pool);
    while (result != STEP_WAIT) {
        uint64_t known = 0;
        enum work_place place = steps[request->step].where == ANYWHERE
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
    enum step_result result = STEP_NEXT;
    uint64_t known;
    must(request->is_on_worker && place != WORK_ON_LOOP);
    while (result == STEP_NEXT && steps[request->step].where == ANYWHERE &&
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
    (void)fail(request);
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

void request_proceed(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->step == STEP_READ);
    run_steps(request);
}

void request_leave(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    go(request, STEP_DONE);
    run_steps(request);
}

/* Its calls go on until all are over. */
static bool is_stream_of_calls(const struct request *request)
{
    return request->grpc.stream && !request->is_on_worker && request->step == STEP_READ;
}

void request_run(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->exchange && !request->is_on_worker);
    must(request->step == STEP_READ);
    request->infer.arrived_ns = uv_hrtime();
    request->grpc.is_complete = true;
    if (is_stream_of_calls(request)) {
        request_stream_end_body(request);
        return;
    }
    if (!request_grpc_is_busy(request) && (request->http_status || request_grpc_go_on(request))) {
        run_steps(request);
    }
}

/* ---- steps, in their order ------------------------------------------------------------------- */

static enum step_result step_read(struct request *request)
{
    if (request->http_status) {
        go(request, STEP_WRITE);
        return STEP_NEXT;
    }
    if (request_route(request)->handler) {
        go(request, STEP_PARSE);
        return STEP_NEXT;
    }
    if (request->requests->uses.loop->is_starting) {
        request->infer.absent[0] = '\0';
        return advance(request, OUTCOME_LOAD, STEP_PARSE);
    }
    return advance(request, infer_settle(&request->infer, &request->err), STEP_PARSE);
}

/* What a handler has printed becomes a message, or is the answer. */
static enum request_step step_after_handler(const struct request *request)
{
    return request_route(request)->grpc.is_on ? STEP_ENCODE : STEP_WRITE;
}

/* A handler that has more to print than a turn has time for is called again. */
static enum step_result run_handler(struct request *request)
{
    const struct route *route = request_route(request);
    request->is_unfinished = false;
    enum status status = route->grpc.is_on ? request_grpc_read(request, &request->err) : ST_OK;
    status = status == ST_OK ? route->handler(request, &request->err) : status;
    if (!request->is_unfinished) {
        return advance(request, infer_end_step(&request->infer, status, &request->err),
                       route->changes_models ? STEP_CHANGE : step_after_handler(request));
    }
    must(status == ST_OK && !request->is_on_worker);
    turns_add(&request->requests->uses.loop->turns, &request->turn);
    return STEP_WAIT;
}

/* PARSE, DECODE, PREPARE and ENCODE: a function of the call. A request without a call has its
 * handler in the place of PARSE. */
static enum step_result step_call(struct request *request)
{
    const struct step_info *step = &steps[request->step];
    if (request_route(request)->handler && request->step == STEP_ENCODE) {
        enum status status = request_grpc_print(request, &request->err);
        return advance(request, outcome_of(status), STEP_WRITE);
    }
    if (request_route(request)->handler) {
        must(request->step == STEP_PARSE);
        return run_handler(request);
    }
    return advance(request, step->call(&request->infer, &request->err), step->then);
}

/* Twice: before the threads that read files, and after them. Without memory it all begins again. */
static enum step_result step_media(struct request *request)
{
    if (!request->infer.media.is_read) {
        enum status begun = infer_media_begin(&request->infer, &request->err);
        request->is_on_worker = begun == ST_OK;
        return begun == ST_OK ? STEP_WAIT : fail(request);
    }
    enum outcome outcome = infer_end_media(&request->infer, &request->err);
    enum step_result result = advance(request, outcome, STEP_PREPARE);
    if (request->step == STEP_WAIT_MEMORY) {
        request->retry.step = STEP_DECODE;
    }
    return result;
}

void request_note_run(struct infer *infer, enum status status)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(infer, struct request, infer), REQUEST_MAGIC);
    must(request->step == STEP_RUN);
    request->run.status = status;
    request->run.is_unreleased = infer->job.started_ns != 0;
    uv_thread_t self = uv_thread_self();
    if (uv_thread_equal(&self, &request->requests->uses.loop->thread) &&
        request->run.is_submitting) {
        request->run.is_over = true;
    } else {
        handback_push(&request->requests->uses.loop->handback, &request->turn);
    }
}

void request_note_left(struct infer *infer)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(infer, struct request, infer), REQUEST_MAGIC);
    handback_push(&request->requests->uses.loop->handback, &request->turn);
}

static enum step_result finish_run(struct request *request)
{
    must(!request->is_on_worker);
    must(request->step == STEP_RUN);
    if (request->run.status == ST_UNAVAILABLE) {
        repository_verify_files(&request->serving->repository);
    }
    enum outcome outcome = infer_finish(&request->infer, request->run.status, &request->err);
    bool has_runs = infer_has_runs(&request->infer);
    return advance(request, outcome, has_runs ? STEP_SAMPLE : STEP_ENCODE);
}

/* The first call that ends without its device starts the recovery. */
static void look_for_loss(const struct request *request)
{
    const struct serving *serving = request->serving;
    if (serving == request->requests->uses.servings->current &&
        hal_device_is_lost(serving->device)) {
        recovery_begin(request->requests->uses.recovery);
    }
}

/* Seconds until there should be room again. */
static uint32_t retry_after_s(struct rt_sched_queue *queue)
{
    uint64_t s = rt_sched_drain_ns(queue) / NS_PER_S + 1;
    return s < RETRY_AFTER_S_MAX ? (uint32_t)s : RETRY_AFTER_S_MAX;
}

static enum step_result step_run(struct request *request)
{
    struct rt_sched_queue *queue;
    request->run.is_submitting = true;
    enum status status = infer_submit(&request->infer, &queue, &request->err);
    request->run.is_submitting = false;
    if (status != ST_OK) {
        request->retry_after_s = retry_after_s(queue);
        return fail(request);
    }
    if (request->run.is_over) {
        look_for_loss(request);
        return finish_run(request);
    }
    alarm_set(request->requests->uses.loop->alarm, rt_sched_due_ns(&request->infer.job));
    return STEP_WAIT;
}

/* An answer of a stream of gRPC is out, or it is the turn of the next one. */
static void go_on_reading(struct request *request, bool is_ok)
{
    must(request->step == STEP_READ);
    request->grpc.is_writing = request->grpc.is_in_turn = false;
    if (!request->exchange || !is_ok) {
        request_leave(request);
        return;
    }
    transfers_update(request->exchange); /* the client has nothing left to take */
    if (request_grpc_go_on(request)) {
        run_steps(request);
    }
}

void request_go_on(struct turn_job *turn)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(turn, struct request, turn), REQUEST_MAGIC);
    must((request->step == STEP_DONE) == request->is_leaving);
    if (request->is_leaving) {
        run_steps(request);
        return;
    }
    if (is_stream_of_calls(request)) {
        request_stream_take_turn(request);
        return;
    }
    if (request->grpc.is_in_turn) {
        go_on_reading(request, !request->grpc.is_broken);
        return;
    }
    bool has_run = !request->is_on_worker && !request->is_unfinished;
    must(!has_run || request->step == STEP_RUN);
    request->requests->uses.waits->told_count -=
        request->step == STEP_LOAD && request->is_unfinished;
    request->is_on_worker = false;
    if (has_run) {
        look_for_loss(request);
        alarm_set(request->requests->uses.loop->alarm, rt_sched_held_ns(request->infer.job.queue));
    }
    if (!request->exchange) {
        go(request, STEP_DONE);
    } else if (has_run) {
        finish_run(request);
    }
    run_steps(request);
}

static enum step_result step_sample(struct request *request)
{
    must(request->infer.ops != NULL);
    enum outcome outcome = infer_sample(&request->infer, &request->err);
    if (outcome != OUTCOME_HEAVY) { /* otherwise the results are still needed */
        request_release_job(request);
        request->run.is_over = false;
        request->retry.since_ms = 0; /* each step may wait as long as another */
    }
    return advance(request, outcome,
                   infer_has_events(&request->infer) ? STEP_SEND
                   : infer_is_over(&request->infer)  ? STEP_ENCODE
                                                     : STEP_DECODE);
}

/* The events are out: the next token, or the end. */
static void go_on_sending(struct request *request)
{
    must(request->step == STEP_SEND);
    buf_reset(&request->out);
    go(request, infer_is_over(&request->infer) ? STEP_DONE : STEP_DECODE);
}

static enum step_result step_send(struct request *request)
{
    bool is_last = infer_is_over(&request->infer);
    request->infer.encoded_ns = is_last ? uv_hrtime() : 0;
    enum exchange_written written = request_answer_send(request, is_last);
    if (written == EXCHANGE_WAITS) {
        if (!is_last) {
            seats_begin_unread(&request->infer);
        }
        transfers_update(request->exchange);
        return STEP_WAIT;
    }
    if (written == EXCHANGE_BROKEN) {
        go(request, STEP_DONE);
    } else {
        go_on_sending(request);
    }
    return STEP_NEXT;
}

/* Waits only for memory that pools lack now: see struct infer. */
static enum step_result step_wait_memory(struct request *request)
{
    uint64_t now_ms = uv_now(&request->requests->uses.loop->uv);
    if (request->retry.since_ms == 0) {
        request->retry.since_ms = now_ms;
    }
    if (now_ms - request->retry.since_ms >= TRANSFERS_WAIT_MS_MAX) {
        return fail(request);
    }
    exchange_wait_for_memory(request->exchange, request->retry.since_ms);
    return STEP_WAIT;
}

/* For models: to change, or to load. */
static struct waiter *begin_wait(struct request *request)
{
    must(list_is_empty(&request->waiter.change_link));
    struct waiter *waiter = &request->waiter;
    const struct infer *infer = &request->infer;
    must(request->step == STEP_LOAD || request->step == STEP_CHANGE);
    waiter->client = request->client.id;
    waiter->model = infer->absent[0] ? infer->absent : request->match.model;
    waiter->arrived_ns = infer->arrived_ns;
    waiter->client_due_ns = infer_client_due_ns(infer);
    return waiter;
}

/* Loads that one request may cause: a list can name many models, which displace each other. */
#define LOADS_MAX 64

static enum step_result step_load(struct request *request)
{
    if (request->is_unfinished) { /* it has waited, and this is its turn */
        request->is_unfinished = false;
        return advance(request, outcome_of(request->err.code), request->retry.step);
    }
    enum status status =
        request->load_count++ < LOADS_MAX
            ? changes_need(request->requests->uses.changes, begin_wait(request),
                           request->infer.absent, &request->err)
            : error_set(&request->err, ST_EXHAUSTED,
                        "the models of this request cannot be loaded at the same time: "
                        "--model-bytes-max is too small, or others displace them");
    return status == ST_OK ? STEP_WAIT : fail(request);
}

static enum step_result step_change(struct request *request)
{
    enum status status = changes_begin(request->requests->uses.changes, begin_wait(request),
                                       &request->order, &request->err);
    return status == ST_OK ? STEP_WAIT : fail(request);
}

void request_note_changed(struct waiter *waiter, enum status status, const struct error *err)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(waiter, struct request, waiter), REQUEST_MAGIC);
    bool is_load = request->step == STEP_LOAD;
    must((is_load || request->step == STEP_CHANGE) && request->exchange);
    must(request->err.code == ST_OK);
    if (status != ST_OK) {
        request->err = *err;
    }
    if (is_load) { /* there may be many of them */
        request->infer.waited_ns = waiter->waited_ns;
        request->is_unfinished = true;
        request->requests->uses.waits->told_count++;
        turns_add(&request->requests->uses.loop->turns, &request->turn);
        return;
    }
    enum step_result result = advance(request, outcome_of(status), step_after_handler(request));
    must(result == STEP_NEXT);
    run_steps(request);
}

static void print_error(struct request *request)
{
    request_log_error(request, request->http_status, &request->err, -1);
    buf_reset(&request->out);
    if (request->grpc.is_on) {
        return; /* the trailers say it */
    }
    if (exchange_has_begun(request->exchange)) {
        infer_print_error_event(&request->infer, &request->err, request->http_status,
                                &request->out);
    } else {
        request_route(request)->print_error(&request->out, request->err.text, request->http_status);
    }
}

/* The client of a stream has taken its events, or has gone. */
static bool end_sending(struct request *request, bool is_here)
{
    if (seats_end_unread(&request->infer, &request->err) == ST_OK) {
        if (is_here) {
            go_on_sending(request);
        }
        return is_here;
    }
    if (is_here) {
        (void)fail(request);
    } else {
        request_log_error(request, http_status_of(request->err.code), &request->err, -1);
    }
    return is_here;
}

void request_written(struct request *request, bool is_ok)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (is_stream_of_calls(request)) {
        request_stream_note_written(request, is_ok);
        return;
    }
    if (request->grpc.is_writing) {
        buf_reset(&request->out);
        go_on_reading(request, is_ok);
        return;
    }
    must(request->step == STEP_SEND || request->step == STEP_WRITE); /* others write nothing */
    if (request->step == STEP_SEND && end_sending(request, request->exchange && is_ok)) {
        transfers_update(request->exchange); /* the client has nothing left to take */
    } else {
        go(request, STEP_DONE); /* whether the bytes of a last write arrive is not known */
    }
    run_steps(request);
}

/* The client takes the answer at its own pace, so the pool of transfers must hold its memory. */
static bool hand_over(struct request *request)
{
    bool is_done = infer_hand_over(&request->infer);
    if (is_done) {
        request_release_job(request);
    }
    return is_done && !transfers_are_over(request->exchange);
}

static enum step_result step_write(struct request *request)
{
    if (request->err.code != ST_OK) {
        request->infer.encoded.has_binary = false;
        request->infer.coding = CODING_IDENTITY;
        request->content_type = request->infer.content_type = NULL;
        print_error(request);
    }
    body_reset(&request->body);
    request->infer.encoded_ns = request->infer.ops ? uv_hrtime() : 0;
    enum exchange_written written = exchange_has_begun(request->exchange)
                                        ? request_answer_send(request, true)
                                        : request_answer_write(request);
    if (written == EXCHANGE_WAITS) {
        transfers_update(request->exchange);
        if (!hand_over(request)) {
            transfers_wait_for_memory(&request->exchange->answer);
        }
        return STEP_WAIT;
    }
    go(request, STEP_DONE);
    return STEP_NEXT;
}

bool request_is_loops(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return !request->is_on_worker && request->step != STEP_RUN;
}

int request_status(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->exchange);
    if (!exchange_has_begun(request->exchange)) {
        return HTTP_GONE;
    }
    return request_is_loops(request) && request->http_status ? request->http_status : 200;
}

/* The answer is out, or the client has gone; the exchange is still known. */
static void note_end(struct request *request)
{
    const struct requests_uses *uses = &request->requests->uses;
    request_log_end(request);
    uses->ops->note_end(uses->owner, request);
}

/* Statistics and logs, once. */
static void note_over(struct request *request)
{
    if (request->infer.ops) {
        request->infer.is_left = !request->exchange;
        infer_count(&request->infer, request->http_status, uv_hrtime());
    }
    if (request->exchange) {
        note_end(request);
    }
}

/* Twice, if something of it still runs: then the exchange goes on meanwhile. */
static enum step_result step_done(struct request *request)
{
    struct exchange *exchange = request->exchange;
    const struct requests_uses *uses = &request->requests->uses;
    must(!request->is_on_worker);
    if (!request->is_leaving) {
        note_over(request);
    }
    bool is_leaving = request->is_leaving = !infer_leave(&request->infer);
    if (is_leaving) {
        request_let_exchange_go(request);
    } else {
        request_give_back(request);
    }
    if (exchange) {
        exchange_end(exchange);
    } else if (!is_leaving) {
        uses->ops->note_gone(uses->owner);
    }
    return STEP_WAIT;
}

/* ---- leaving early --------------------------------------------------------------------------- */

/* It has waited for a thread. */
static void leave_thread(struct request *request)
{
    request->is_on_worker = false;
    request_leave(request);
}

void request_abandon(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->exchange);
    must(request->is_on_worker || request->step != STEP_DONE); /* a worker changes the step */
    note_end(request);
    request->exchange = NULL;
    log_line(LOG_DEBUG, "%.*s: abandoned in step %s", SPAN_FMT(head_path(&request->head)),
             request->is_on_worker ? "of a worker" : request_step_name(request->step));
    if (request->infer.media.open > 0) {
        if (infer_media_leave(&request->infer)) {
            leave_thread(request);
        }
    } else if (request->is_on_worker &&
               offload_forget_task(request->requests->uses.loop->offload, &request->task)) {
        leave_thread(request);
    } else if (request->is_on_worker) {
        uv_cancel((uv_req_t *)&request->task.work); /* too late if it has begun: it comes back */
    } else if (request->step == STEP_LOAD && request->is_unfinished) {
        return; /* request_go_on() ends it in its turn */
    } else if (is_stream_of_calls(request)) {
        request_stream_leave(request);
    } else if (request_grpc_is_busy(request)) {
        return; /* request_written() or request_go_on() ends it */
    } else if (request->step == STEP_CHANGE || request->step == STEP_LOAD) {
        changes_forget(request->requests->uses.changes, &request->waiter);
        request_leave(request);
    } else if (request->step == STEP_READ || request->step == STEP_WAIT_MEMORY) {
        request_leave(request);
    } else if (request->step == STEP_RUN) {
        rt_sched_cancel(&request->infer.job);
    }
}

/* ---- waiting for memory ---------------------------------------------------------------------- */

static bool is_pressing(const struct request *request)
{
    return uv_now(&request->requests->uses.loop->uv) - request->exchange->answer.wait_since_ms >=
           PRESSING_MS;
}

/* Clients hold too much unread, or this answer is still where it was computed and other calls wait
 * for that room. */
static bool retry_hand_over(struct request *request)
{
    int tries = 0;
    while (request->exchange && !hand_over(request)) {
        if (tries++ == TRANSFERS_EVICTIONS_MAX ||
            !transfers_evict_slowest(&request->requests->transfers, NULL, is_pressing(request))) {
            return false;
        }
    }
    return true;
}

/* Runs the step that found no memory again. */
static void retry_step(struct request *request)
{
    transfers_evict_slowest(&request->requests->transfers, request->exchange, is_pressing(request));
    request->err.code = ST_OK;
    request->run.is_over = false;
    go(request, request->retry.step);
    run_steps(request);
}

bool request_is_parked(const struct request *request)
{
    return !request->is_on_worker && request->step == STEP_WAIT_MEMORY &&
           request->retry.step == STEP_READ;
}

void request_give_up(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request_is_parked(request));
    enum step_result result = fail(request);
    must(result == STEP_NEXT);
    run_steps(request);
}

bool request_retry(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->exchange && !request->is_on_worker);
    turn_watch_enter(&request->requests->uses.loop->watch, TURN_RETRY);
    if (request->step == STEP_WRITE) {
        return retry_hand_over(request);
    }
    must(request->step == STEP_WAIT_MEMORY);
    retry_step(request);
    return true;
}
