/* SPDX-License-Identifier: MIT */
/*
 * The call behind one exchange, from the first byte of the request to the last byte of the answer,
 * driven by the steps of request.def. It knows no protocol and no connection
 * (server/daemon/request/exchange.h). Requests are recycled with their memory, so the usual request
 * does not malloc.
 *
 * A request belongs to the loop, except while a worker runs its ANYWHERE steps, or while its job
 * waits and runs. Then the loop touches nothing but |exchange|, |is_on_worker|, |task| and the
 * cancellation.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/status.h"
#include "runtime/sched/sched.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/loop/turns.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request_grpc.h"
#include "server/daemon/request/route.h"
#include "server/daemon/request/trace.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/waits.h"
#include "server/http/body.h"
#include "server/http/client.h"
#include "server/http/head.h"
#include "server/http/transport.h"
#include "server/process/offload.h"

struct api;
struct metrics_look;
struct repository_index;
struct requests;
struct serving;
struct token_use;

#define REQUEST_MAGIC 0x72657175u

enum request_step {
#define STEP(name, ...) STEP_##name,
#include "server/daemon/request/request.def"
#undef STEP
    STEP_COUNT
};

/* Of the head: who has sent it, and who has admitted it. */
struct request_sender {
    const char *remote; /* the client's address for the log; the exchange's, or |named| */
    const char *via;    /* of the proxy that has named it; the exchange's; NULL: none has */
    char named[TRANSPORT_REMOTE_MAX];
    bool is_counted;             /* in requests->admitted, as one of the client */
    struct token_use *token_use; /* the token that has admitted it; NULL: it needed none */
    const char *challenge;       /* of a refusal: which token is needed; a constant, or NULL */
};

/* The trace that it belongs to; see request_trace(). */
struct request_trace {
    struct trace context;
    char answer[TRACE_PARENT_CHARS]; /* traceparent of the answer */
    bool is_known;                   /* there is |context| */
    bool is_decided;                 /* whether a trace begins with it */
};

/* Of a handler that prints in several turns. */
struct request_page {
    struct repository_index *listing; /* ref held: its models, |listed| of them printed */
    uint32_t listed;
    const struct metrics_look *look; /* of the handler of metrics, in the arena; or NULL */
};

/* Of the steps WAIT_MEMORY and LOAD: what follows them. */
struct request_retry {
    enum request_step step; /* that found no memory, or no model */
    uint64_t since_ms;      /* when a step first found no memory; 0: none has */
};

/* Of the step RUN. */
struct request_run {
    bool is_unreleased; /* the job has run, and the scheduler waits for rt_sched_released() */
    bool is_submitting; /* inside infer_submit() on the loop */
    bool is_over;       /* ...which ran the job inline, or ended it */
    enum status status;
};

struct request {
    uint32_t magic;
    /* While |is_on_worker| these belong to the worker. That flag is the loop's and stands apart,
     * because a compiler may read neighbouring flags as one word. */
    enum request_step step;
    bool is_unfinished; /* set by a handler: it has more to print, in a later turn of the loop */

    struct requests *requests; /* borrowed; outlives every request, like |api| */
    const struct api *api;     /* what handlers use */
    struct serving *serving;   /* held from request_take() until the request is given back */
    struct exchange *exchange; /* the protocol's; NULL when the client has gone */
    struct list link;          /* in requests->idle */
    struct turn_job turn;      /* of the loop, when it waits to go on */

    struct head head;
    const char *method; /* as the client wrote it; NULL: not known yet */
    struct route_match match;
    struct body body;
    struct hal_pool
        *upload_pool; /* owned; a member of the pool of transfers: holds |body| as it comes */

    int http_status; /* status of the answer; 0 while it is open */
    struct error err;
    struct buf out;           /* the answer's JSON */
    const char *content_type; /* of another answer; a constant, or NULL */
    bool is_page;             /* the answer is a file of the console */
    size_t body_bytes;        /* bytes received */
    size_t announced_json;    /* the offset of the tensors in the body as the client gives it: only
                                 the place of the body and the thread of its step depend on it */
    bool is_on_worker;        /* the steps are queued and not back */
    bool is_leaving;          /* over and told, but something of it runs beside its steps */
    struct request_page page;
    uint32_t load_count;        /* times that it has waited for a file */
    struct waiter waiter;       /* for a change of models, or for that file */
    struct changes_order order; /* set by the handler of a request that changes models */
    struct infer infer;

    struct http_client client; /* set with its head */
    struct request_sender sender;
    struct request_trace trace;
    struct request_grpc grpc;
    uint32_t retry_after_s;
    struct request_retry retry;
    struct request_run run;

    struct offload_task task;
    char scratch[EXCHANGE_SCRATCH_BYTES]; /* for the protocol, see exchange_scratch() */
};

/* Returns a request in step READ for |exchange|; NULL without memory. */
struct request *request_take(struct requests *requests, struct exchange *exchange);

/* Call when the head is complete: checks route, limits and memory. False: |http_status| and |err|
 * say what is wrong. */
MUST_CHECK bool request_begin(struct request *request, const struct exchange_head *head);

/* Lets a complete request whose exchange waits for memory (transfers_wait_for_memory()) try again:
 * to go on, or to keep its answer. True: it waits no more. */
MUST_CHECK bool request_retry(struct request *request);

/* Refuses a request whose body waits for room in the pool of its model. */
bool request_is_parked(const struct request *request);
void request_give_up(struct request *request);

/* Step WRITE: the whole answer in one write. */
enum exchange_written request_answer_write(struct request *request);

/* Step SEND: the next write of a stream, of the events in |out|. */
enum exchange_written request_answer_send(struct request *request, bool is_last);

/* Step READ of a stream of calls: the next write of it, of the answer of a call. */
enum exchange_written request_answer_relay(struct request *request, const struct span *spans,
                                           unsigned count);

/* Returns memory that an answer holds while it is written: on the heap; in the pool. */
size_t request_answer_heap_bytes(const struct request *request);
size_t request_answer_pool_bytes(const struct request *request);

/* Call when the answer is going to be an error; |err| is set. */
void request_refuse(struct request *request, int http_status);

/* Call when the message is complete, or has been refused: runs steps until one has to wait. */
void request_run(struct request *request);

/* Call when a write that had to wait is done, see exchange_note_written(). The client may have
 * gone. */
void request_written(struct request *request, bool is_ok);

/* Goes on after the call has ended (handback_push()), after a thread has done the steps that it was
 * given, or with a handler that is unfinished. |turn| is its own. */
void request_go_on(struct turn_job *turn);

/* Call when the client has gone. The one way out of any step before its time; ends the request now
 * or as soon as the worker that has it gives it back. */
void request_abandon(struct request *request);

/* Returns the status that the client got, for logs and counts; HTTP_GONE: it left before its
 * answer. The exchange is known. */
int request_status(const struct request *request);

/* At the end: do the parts of the request belong to the loop? A client may leave while a thread or
 * the device has them. */
bool request_is_loops(const struct request *request);

/* Is that so, and has a model run? Then |job| has the times of this request. */
bool request_has_run(const struct request *request);

/* Returns the request's trace, with the request's id in it: the trace that the client named, or a
 * new one that begins with this call. NULL: there is none. */
const struct trace *request_trace(struct request *request);

void request_free(struct request *request);

/* request.def: may |to| follow |from|? */
bool request_step_may_follow(enum request_step from, enum request_step to);
const char *request_step_name(enum request_step step);

/* The steps, for the watch over turns of the loop. */
extern const struct turn_steps request_turn_steps;

#endif
