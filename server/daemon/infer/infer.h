/* SPDX-License-Identifier: MIT */
/*
 * A call of a model or of several, from its head and its body to the text of its answer. It knows
 * no request and no daemon: who drives it lends it both (struct infer_env, infer_init()). Functions
 * are named after the step of a request that calls them (server/daemon/request/request.def). Those
 * of steps that run ANYWHERE touch nothing but the call and what it has been lent.
 */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_H
#define PTED_SERVER_DAEMON_INFER_INFER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "protocol/oip_reply.h"
#include "runtime/call/invocation.h"
#include "runtime/sched/sched.h"
#include "server/daemon/infer/habit.h"
#include "server/daemon/infer/infer_media.h"
#include "server/daemon/infer/infer_ops.h"
#include "server/daemon/infer/outcome.h"
#include "server/daemon/infer/query.h"
#include "server/daemon/infer/seats.h"
#include "server/daemon/infer/work.h"
#include "server/http/body.h"
#include "server/http/client.h"
#include "server/http/coding.h"
#include "server/http/head.h"
#include "server/model/model.h"
#include "server/process/options.h"

struct codec;
struct hal_pool;
struct infer_region;
struct medium;
struct offload;
struct region;
struct regions;
struct infer;
struct rt_culprit;
struct rt_invocation;
struct rt_profile;
struct rt_sequence;
struct serving;

/* The most calls that a request may consist of, steps of pipelines included; and the most calls
 * that the loop makes itself. */
#define INFER_CALLS_MAX 512
#define INFER_CALLS_INLINE_MAX 64

#define INFER_OUTPUTS_MAX 256
#define INFER_MAGIC 0x696e6672u
#define INFER_SPANS_MAX (1 + INFER_OUTPUTS_MAX) /* spans of an answer: JSON and binary tensors */

/* A result that the client wants; results keep the client's order. */
struct infer_output {
    const struct model_io *io;
    const char *name; /* name in the answer, as the client wrote it */
    bool is_binary;
    bool has_order;             /* the client says |is_channels_last| of this output itself */
    bool is_channels_last;      /* the client wants the elements so; else row-major */
    uint32_t class_count;       /* so many classes in place of the tensor; 0: the tensor itself */
    bool is_answer;             /* as the model's card says: boxes, a map, a text */
    bool is_json;               /* then each row as `call` writes it, and not as a file */
    bool is_part;               /* another output's answer says what this one has */
    const struct span *classes; /* of classes and of other answers: the texts, from the step ENCODE
                                   on; in the arena */
    struct shape classes_shape;
    struct span turned; /* from ENCODE on: the tensor as the client wants it, if its method gave it
                           otherwise; in |turned| of struct infer */
    struct region *region; /* the tensor goes there, and not into the answer; held by the request.
                              NULL: it is in the answer */
    uint64_t region_offset;
    size_t region_bytes; /* room for it; when it has been stored, its bytes */
};

/* One call of a model: the whole request, or one call of its list (server/daemon/infer/bundle.h).
 */
struct infer_call {
    struct model *model; /* shared: ref held from the time when it is found; NULL: not found */
    const struct codec *codec;
    struct oip_request oip;                  /* for codec_oip; borrows from the body */
    struct call_request tree;                /* for codec_call; likewise */
    const struct oip_parameters *parameters; /* of the codec in use */
    struct tensor_nan nan;                   /* how the request writes NaN */
    struct image_place *places; /* of the rows of model->picture, in the arena; set in DECODE
                                   if they come as files */
    uint32_t place_count;
    struct infer_output *outputs;
    size_t output_count;
    struct rt_sequence *sequence; /* held; NULL: the call belongs to no sequence */
    bool is_sequence_end;
    struct rt_invocation *invocation; /* owned; NULL again when its results are text */
    struct oip_reply reply;           /* of codec_grpc, from ENCODE on; in the arena */
    int64_t sample_count;             /* set after the run, for the statistics */
    int64_t joined; /* likewise, of a list's call: rows that ran as one with it; 0: it ran alone;
                       -1: they count for an earlier call of the list, or
                       run by run */
};

/* What all calls share. It outlives them. The parts are borrowed. */
struct infer_env {
    const struct options *options;
    const struct params *params; /* of |options| */
    struct offload *offload;
    struct alarm *alarm;
    struct regions *regions;  /* of shared memory; any thread */
    struct seats *seats;      /* any thread */
    atomic_bool is_profiling; /* a call is measured; any thread */
    void *owner;
    /* The threads that read files of |infer| are back: the next turn of the loop goes on with it.
     */
    void (*go_on)(struct infer *infer);
    /* Call |index| of a list has failed. Any thread. */
    void (*note_failure)(struct infer *infer, const struct error *why, uint32_t index);
    /* The run that infer_submit() began has ended with |status|, see infer_finish(). Any thread,
     * also the one that is in infer_submit(). */
    void (*note_run)(struct infer *infer, enum status status);
    /* What infer_leave() has waited for is over. Any thread, also the one that is in it. */
    void (*note_left)(struct infer *infer);
    /* A model of |owner| is idle from |due_ns| on, unless it is used again. The loop. */
    void (*note_idle)(void *owner, uint64_t due_ns);
};

struct infer {
    uint32_t magic;
    /* ---- lent, from infer_init() to infer_fini(); |serving| only while it is in use ---- */
    struct infer_env *env;
    struct serving *serving;
    const struct head *head;
    struct body *received; /* the body as it came */
    struct buf *out;       /* the text of the answer */
    struct habit habit;    /* of the client */
    const struct http_client *client;
    char *model_name; /* that the target has, up to MODEL_NAME_MAX characters; "": none. The name
                         that a body has is put there */
    uint32_t version; /* that the target has; 0: none */
    /* ---- the call's own ---- */
    struct query query;
    struct work work; /* of the present step */
    struct rt_sched_job job;
    struct error *run_err;    /* borrowed while the job is submitted: why it could not start */
    uint64_t arrived_ns;      /* when the message was complete */
    uint64_t waited_ns;       /* while models were loaded */
    uint64_t encoded_ns;      /* when the answer was complete; 0: not yet */
    bool is_left;             /* at the end: the client has gone before it had its answer */
    const char *content_type; /* of the answer; a constant; NULL: JSON */
    /* with ST_WOULD_LOAD: the file that is only listed; empty: the first models are awaited */
    char absent[MODEL_NAME_MAX + 1];
    const struct infer_ops *ops; /* the kind of request; NULL: it calls no model */
    struct infer_call call;      /* if the request is for one model */
    void *own;            /* what the kind needs beside that, such as a list: set by its parse(),
                             freed by its free(). It begins with a magic number */
    struct arena arena;   /* memory that the request made us allocate */
    struct arena turned;  /* results in the order that the client wants; up to the largest answer */
    struct body inflated; /* the body without its content coding */
    struct body *body;    /* the one of both that is read; empty when all is decoded */
    bool is_short;        /* inside a step, with ST_EXHAUSTED: memory is short only for now */
    bool was_alone;       /* no other held memory when this step found too little the last time */
    bool is_unfit;        /* the model takes no body of this kind: 415 */
    bool is_in_stream;    /* it is one of a stream of gRPC, and so are its answers */
    struct model *newest; /* shared: ref held; its pool is |share| while the call is for an
                             older generation. NULL: the call is for the newest one */
    size_t bound_bytes;   /* bytes of the body that inputs use in place */
    uint32_t call_count;  /* calls that the request consists of; from the step PARSE on */
    struct hal_pool
        *pool; /* owned: holds what the request needs before it runs; a member of |share| */
    struct hal_pool *share; /* the model's pool, or that of lists; NULL: not yet a member */
    struct hal_pool
        *run_pool; /* owned: holds what the request needs to run; a member of |running| */
    struct hal_pool *running; /* the model's pool for that; NULL: not yet a member */
    struct hal_pool
        *answer_pool; /* owned: holds an answer that grows from call to call; a member as well */
    struct rt_profile *profile;    /* owned: of a call with ?profile=1; NULL: of no other one */
    size_t steps_bytes;            /* bytes of heap for the steps of pipelines that it calls */
    size_t charged_bytes;          /* bytes of those and of |arena| that are charged to |pool| */
    size_t answer_bytes;           /* bytes that are charged to |answer_pool| */
    uint64_t timeout_us;           /* given by the client; 0: none */
    bool has_keep;                 /* the client says how long its model is kept (keep_alive) */
    uint64_t keep_ns;              /* that long; KEEP_FOR_EVER */
    uint32_t priority;             /* given by the client; 0: the default */
    struct rt_sched_ticket ticket; /* place of a call in its sequence */
    struct infer_media media;      /* files and texts that inputs came as */
    struct seat seat;              /* of a request of many calls */
    struct infer_region
        *regions;               /* of shared memory that the request uses: refs held; in |arena| */
    bool has_shared_outputs;    /* regions are written to */
    uint32_t cut_texts;         /* texts that had more tokens than their model takes */
    struct span id;             /* that the body gave the request, kept in |arena|; or empty */
    struct oip_encoded encoded; /* spans of the answer */
    struct buf deflated;        /* the answer with a content coding */
    enum coding coding;         /* content coding of the answer */
};

/* Makes a call; the caller lends the parts that follow |env| in struct infer. ST_EXHAUSTED. */
MUST_CHECK enum status infer_init(struct infer *infer, struct infer_env *env, struct error *err);
void infer_fini(struct infer *infer);
void infer_reset(struct infer *infer);

/*
 * Returns the outcome of a step that ends with |status|, for handlers of routes as well. A step
 * that begins again has no error, except one that waits for memory: it is told if the wait takes
 * too long.
 */
MUST_CHECK enum outcome infer_end_step(struct infer *infer, enum status status, struct error *err);

/* Call when the body is complete, and its model has to be loaded, or the pool of its model, or of
 * lists, holds its memory and all that the request takes until it runs. */
MUST_CHECK enum outcome infer_settle(struct infer *infer, struct error *err);

/* Call before the body, of a request whose route has |ops| and |codec|: does the model exist and
 * work, and is the request's coding known? |is_starting|: models are not known yet, infer_settle()
 * looks for them. 200 or the status to answer with. */
int infer_begin(struct infer *infer, const struct infer_ops *ops, const struct codec *codec,
                bool is_starting, struct error *err);

/* For find() of a kind whose body names the models: 200, or 503 if none is served, so there is no
 * memory to read a body into. */
int infer_find_any(struct infer *infer, struct error *err);

/* For find() of a call whose target names the model: 200, or the status to answer with. A model
 * that is not loaded yet is looked for again later. */
int infer_find_target(struct infer *infer, struct error *err);

/*
 * Finds the model that the call names: takes a reference to it, in place of an older one.
 * ST_NOT_FOUND, ST_UNAVAILABLE; ST_WOULD_LOAD: infer->absent says which file has to be loaded. Any
 * thread.
 */
MUST_CHECK enum status infer_find_model(struct infer *infer, struct infer_call *call,
                                        const char *name, uint32_t version, struct error *err);

/* Drops the reference. */
void infer_drop_model(struct infer_call *call);

MUST_CHECK enum outcome infer_parse(struct infer *infer, struct error *err);

/* Takes the one message of gRPC that the body is: without its coding it has at most |max| bytes. It
 * borrows from the body, or from infer->inflated. */
MUST_CHECK enum status infer_take_message(struct infer *infer, size_t max, struct span *out,
                                          struct error *err);

/* Has it events instead of an answer? */
bool infer_is_stream(const struct infer *infer);

/* Fills the inputs. OUTCOME_FILES: there are several files to be read, see infer_media_begin(). */
MUST_CHECK enum outcome infer_decode(struct infer *infer, struct error *err);

/* Call when the threads that read files are back: does the rest of infer_decode(). */
MUST_CHECK enum outcome infer_end_media(struct infer *infer, struct error *err);

/* May |step| take longer than its bytes say? */
bool infer_is_long(const struct infer *infer, enum infer_step step);

/* A tokenizer takes about as long for a byte as other work for so many. */
#define INFER_TEXT_WEIGHT 8

/* Returns the weight of text: as many bytes of other work take about as long as a byte of the
 * body. */
unsigned infer_text_weight(const struct infer *infer);

/* Frees infer->own. */
void infer_drop_own(struct infer *infer);

/* Of a request of several runs: its answer so far, and what it takes to go on, are |bytes| of heap
 * memory beside the arena. ST_EXHAUSTED: that is more than its share of the memory for requests
 * now, and ST_TOO_LARGE: at any time. Fewer bytes than before are never refused. Any thread. */
MUST_CHECK enum status infer_count_answer(struct infer *infer, size_t bytes, struct error *err);

/* Makes a call of |method| before its inputs: infer->call.invocation, with memory to run from the
 * share of its model. */
MUST_CHECK enum status infer_invoke(struct infer *infer, struct rt_method *method,
                                    struct error *err);

/* infer->call.invocation has been made: its memory to run is from the share of its model. */
void infer_run_in(struct infer *infer);

/* Gives memory for raw input |index| of |call|, which the step is about to fill: see work_add(). */
MUST_CHECK enum status infer_input(struct infer *infer, struct infer_call *call, uint32_t index,
                                   enum dtype dtype, const struct shape *shape, void **out_ptr,
                                   struct error *err);

/* Plans the call. OUTCOME_PLAN on the loop: call it again on a thread, which makes new plans. */
MUST_CHECK enum outcome infer_prepare(struct infer *infer, struct error *err);

/* Submits a run to |*out_queue|; env->note_run() tells its end, and |err|, borrowed until then, why
 * it could not start. ST_EXHAUSTED: the queue has no place, and there will be no end. */
MUST_CHECK enum status infer_submit(struct infer *infer, struct rt_sched_queue **out_queue,
                                    struct error *err);

/* Call when the run has ended with |status|; sets what the client is told. */
MUST_CHECK enum outcome infer_finish(struct infer *infer, enum status status, struct error *err);

/* Does the call consist of several runs? Step SAMPLE after each; then, was it the last one, and are
 * there events of a stream to be sent? */
bool infer_has_runs(const struct infer *infer);
MUST_CHECK enum outcome infer_sample(struct infer *infer, struct error *err);
bool infer_is_over(const struct infer *infer);
bool infer_has_events(const struct infer *infer);

MUST_CHECK enum outcome infer_encode(struct infer *infer, struct error *err);

/* Call at the end of the request, on the loop, before infer_reset(): nothing of it runs beside its
 * steps. False: it is not to be reset until env->note_left() has told that this is so. */
MUST_CHECK bool infer_leave(struct infer *infer);

/* Prints the last event of a stream that fails. */
void infer_print_error_event(const struct infer *infer, const struct error *why, int http_status,
                             struct buf *out);

/* Statistics, at the end. |http_status| of the answer; 0: it has no error as a whole. */
void infer_count(const struct infer *infer, int http_status, uint64_t now_ns);

/* Applies to the text in infer->out, the answer, the content coding that the client accepts. */
MUST_CHECK enum status infer_compress_text(struct infer *infer, struct error *err);

/* Call when the answer cannot be written at once: the pool of clients holds its memory from now on.
 * False: that pool may not hold so much now. */
MUST_CHECK bool infer_hand_over(struct infer *infer);

/* Limits given in the request beside those of its head: the shorter time and the higher priority
 * win. */
void infer_take_parameters(struct infer *infer, const struct oip_parameters *parameters);

/* Sets |why| the call failed, with the client's element that is to blame, if one is. */
void infer_explain(const struct infer_call *call, const struct error *why,
                   const struct rt_culprit *culprit, struct error *err);

/* Fails with ST_TIMEOUT: "not done after 50 ms". */
enum status infer_fail_late(const struct infer *infer, struct error *err);

/* Returns the bytes of the call's results that become text or go to shared memory, and the cost of
 * their classes. */
size_t infer_text_bytes(const struct infer *infer, const struct infer_call *call);

/* Returns the bytes of results that ENCODE has to touch; they decide which thread does it. */
size_t infer_encode_bytes(const struct infer *infer);

/* |err|, ST_EXHAUSTED, says that there is no memory for |demand| bytes beside bodies. If that is so
 * for now, waiting makes sense; if it is so for ever, the status becomes ST_TOO_LARGE. |can_wait|:
 * the step begins again after a wait. Then a request is refused at the second try in a row that
 * finds it alone: between a try and this question others may have given their memory back. */
enum status infer_refuse_memory(struct infer *infer, size_t demand, bool can_wait,
                                struct error *err);

/* Returns when the step RUN has to be over. A generation has one limit for each of its steps, and
 * one for all of them. */
uint64_t infer_deadline_ns(const struct infer *infer);

/* Returns when the time that the client has given is over; RT_SCHED_NEVER: it has given none. */
uint64_t infer_client_due_ns(const struct infer *infer);

/* Returns until when its first heavy step waits for a thread. */
uint64_t infer_wait_due_ns(const struct infer *infer);

/* Returns the bytes of memory for requests that the request holds while it waits to run. */
size_t infer_held_bytes(const struct infer *infer);

#endif
