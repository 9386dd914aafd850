/* SPDX-License-Identifier: MIT */
/* The steps of a request, and what makes it go on: see request_steps.c for the loop over them. */
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
#include "server/daemon/request/request_steps.h"
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

void request_proceed(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->step == STEP_READ);
    request_run_steps(request);
}

void request_leave(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    request_go(request, STEP_DONE);
    request_run_steps(request);
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
        request_run_steps(request);
    }
}

/* ---- steps, in their order ------------------------------------------------------------------- */

enum request_step_result request_step_read(struct request *request)
{
    if (request->http_status) {
        request_go(request, STEP_WRITE);
        return STEP_NEXT;
    }
    if (request_route(request)->handler) {
        request_go(request, STEP_PARSE);
        return STEP_NEXT;
    }
    if (request->requests->uses.loop->is_starting) {
        request->infer.absent[0] = '\0';
        return request_advance(request, OUTCOME_LOAD, STEP_PARSE);
    }
    return request_advance(request, infer_settle(&request->infer, &request->err), STEP_PARSE);
}

/* What a handler has printed becomes a message, or is the answer. */
static enum request_step step_after_handler(const struct request *request)
{
    return request_route(request)->grpc.is_on ? STEP_ENCODE : STEP_WRITE;
}

/* A handler that has more to print than a turn has time for is called again. */
static enum request_step_result run_handler(struct request *request)
{
    const struct route *route = request_route(request);
    request->is_unfinished = false;
    enum status status = route->grpc.is_on ? request_grpc_read(request, &request->err) : ST_OK;
    status = status == ST_OK ? route->handler(request, &request->err) : status;
    if (!request->is_unfinished) {
        return request_advance(request, infer_end_step(&request->infer, status, &request->err),
                               route->changes_models ? STEP_CHANGE : step_after_handler(request));
    }
    must(status == ST_OK && !request->is_on_worker);
    turns_add(&request->requests->uses.loop->turns, &request->turn);
    return STEP_WAIT;
}

/* PARSE, DECODE, PREPARE and ENCODE: a function of the call. A request without a call has its
 * handler in the place of PARSE. */
enum request_step_result request_step_call(struct request *request)
{
    const struct request_step_info *step = &request_steps[request->step];
    if (request_route(request)->handler && request->step == STEP_ENCODE) {
        enum status status = request_grpc_print(request, &request->err);
        return request_advance(request, request_outcome_of(status), STEP_WRITE);
    }
    if (request_route(request)->handler) {
        must(request->step == STEP_PARSE);
        return run_handler(request);
    }
    return request_advance(request, step->call(&request->infer, &request->err), step->then);
}

/* Twice: before the threads that read files, and after them. Without memory it all begins again. */
enum request_step_result request_step_media(struct request *request)
{
    if (!request->infer.media.is_read) {
        enum status begun = infer_media_begin(&request->infer, &request->err);
        request->is_on_worker = begun == ST_OK;
        return begun == ST_OK ? STEP_WAIT : request_fail(request);
    }
    enum outcome outcome = infer_end_media(&request->infer, &request->err);
    enum request_step_result result = request_advance(request, outcome, STEP_PREPARE);
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

static enum request_step_result finish_run(struct request *request)
{
    must(!request->is_on_worker);
    must(request->step == STEP_RUN);
    if (request->run.status == ST_UNAVAILABLE) {
        repository_verify_files(&request->serving->repository);
    }
    enum outcome outcome = infer_finish(&request->infer, request->run.status, &request->err);
    bool has_runs = infer_has_runs(&request->infer);
    return request_advance(request, outcome, has_runs ? STEP_SAMPLE : STEP_ENCODE);
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

enum request_step_result request_step_run(struct request *request)
{
    struct rt_sched_queue *queue;
    request->run.is_submitting = true;
    enum status status = infer_submit(&request->infer, &queue, &request->err);
    request->run.is_submitting = false;
    if (status != ST_OK) {
        request->retry_after_s = retry_after_s(queue);
        return request_fail(request);
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
        request_run_steps(request);
    }
}

void request_go_on(struct turn_job *turn)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(turn, struct request, turn), REQUEST_MAGIC);
    must((request->step == STEP_DONE) == request->is_leaving);
    if (request->is_leaving) {
        request_run_steps(request);
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
        request_go(request, STEP_DONE);
    } else if (has_run) {
        finish_run(request);
    }
    request_run_steps(request);
}

enum request_step_result request_step_sample(struct request *request)
{
    must(request->infer.ops != NULL);
    enum outcome outcome = infer_sample(&request->infer, &request->err);
    if (outcome != OUTCOME_HEAVY) { /* otherwise the results are still needed */
        request_release_job(request);
        request->run.is_over = false;
        request->retry.since_ms = 0; /* each step may wait as long as another */
    }
    return request_advance(request, outcome,
                           infer_has_events(&request->infer) ? STEP_SEND
                           : infer_is_over(&request->infer)  ? STEP_ENCODE
                                                             : STEP_DECODE);
}

/* The events are out: the next token, or the end. */
static void go_on_sending(struct request *request)
{
    must(request->step == STEP_SEND);
    buf_reset(&request->out);
    request_go(request, infer_is_over(&request->infer) ? STEP_DONE : STEP_DECODE);
}

enum request_step_result request_step_send(struct request *request)
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
        request_go(request, STEP_DONE);
    } else {
        go_on_sending(request);
    }
    return STEP_NEXT;
}

/* Waits only for memory that pools lack now: see struct infer. */
enum request_step_result request_step_wait_memory(struct request *request)
{
    uint64_t now_ms = uv_now(&request->requests->uses.loop->uv);
    if (request->retry.since_ms == 0) {
        request->retry.since_ms = now_ms;
    }
    if (now_ms - request->retry.since_ms >= TRANSFERS_WAIT_MS_MAX) {
        return request_fail(request);
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

enum request_step_result request_step_load(struct request *request)
{
    if (request->is_unfinished) { /* it has waited, and this is its turn */
        request->is_unfinished = false;
        return request_advance(request, request_outcome_of(request->err.code), request->retry.step);
    }
    enum status status =
        request->load_count++ < LOADS_MAX
            ? changes_need(request->requests->uses.changes, begin_wait(request),
                           request->infer.absent, &request->err)
            : error_set(&request->err, ST_EXHAUSTED,
                        "the models of this request cannot be loaded at the same time: "
                        "--model-bytes-max is too small, or others displace them");
    return status == ST_OK ? STEP_WAIT : request_fail(request);
}

enum request_step_result request_step_change(struct request *request)
{
    enum status status = changes_begin(request->requests->uses.changes, begin_wait(request),
                                       &request->order, &request->err);
    return status == ST_OK ? STEP_WAIT : request_fail(request);
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
    enum request_step_result result =
        request_advance(request, request_outcome_of(status), step_after_handler(request));
    must(result == STEP_NEXT);
    request_run_steps(request);
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
        (void)request_fail(request);
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
        request_go(request, STEP_DONE); /* whether the bytes of a last write arrive is not known */
    }
    request_run_steps(request);
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

enum request_step_result request_step_write(struct request *request)
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
    request_go(request, STEP_DONE);
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
enum request_step_result request_step_done(struct request *request)
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
    request_go(request, request->retry.step);
    request_run_steps(request);
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
    enum request_step_result result = request_fail(request);
    must(result == STEP_NEXT);
    request_run_steps(request);
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
