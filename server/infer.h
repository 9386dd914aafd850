/* SPDX-License-Identifier: MIT */
/*
 * The inference part of a request: what its steps share. Functions are named after the step that
 * calls them (request.def); those of ANYWHERE steps touch nothing but the request.
 */
#ifndef PTED_SERVER_INFER_H
#define PTED_SERVER_INFER_H

#include <stdbool.h>

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "hal/queue.h"
#include "protocol/call.h"
#include "protocol/oip.h"
#include "protocol/oip_reply.h"
#include "runtime/call/invocation.h"
#include "runtime/sched/sched.h"
#include "server/body.h"
#include "server/coding.h"
#include "server/model.h"

struct bundle;
struct hal_pool;
struct request;
struct rt_culprit;
struct rt_invocation;
struct rt_sequence;

/* Calls that a request may consist of, those of a pipeline's steps among them, and of those so many
 * as the loop makes itself. */
#define INFER_CALLS_MAX 512
#define INFER_CALLS_INLINE_MAX 64

#define INFER_OUTPUTS_MAX 256
#define INFER_SPANS_MAX (1 + INFER_OUTPUTS_MAX) /* of an answer: JSON and binary tensors */

/* A result that the client wants, in its order. */
struct infer_output {
    const struct model_io *io;
    const char *name; /* that the answer has for it: the one that the client used */
    bool is_binary;
};

/*
 * One call of a model: all that a request is, or one of the list that it is (server/bundle.h).
 */
struct infer_call {
    const struct model *model; /* borrowed from request->serving */
    const struct infer_form *form;
    struct oip_request oip;                  /* of infer_form_oip; borrows from the body */
    struct call_request tree;                /* of infer_form_call; likewise */
    const struct oip_parameters *parameters; /* of whichever it is */
    struct tensor_nan nan;                   /* how its text writes NaN */
    struct infer_output *outputs;
    size_t output_count;
    struct rt_sequence *sequence; /* held; NULL: the call stands alone */
    bool is_sequence_end;
    struct rt_invocation *invocation; /* owned; NULL again once its results are text */
    int64_t sample_count;             /* once it has run, for the statistics */
};

/*
 * How calls and their answers are written. parse() leaves what it found in |call|, and in
 * |out_rest|, unless that is NULL, what follows of the binary data; decode() lists the outputs and
 * fills the invocation, but for what is promised; print() adds the answer's members to
 * request->out and to infer->encoded, print_tail() what the form has behind the JSON.
 */
struct infer_form {
    enum status (*parse)(struct request *request, struct infer_call *call,
                         const struct oip_body *parts, struct span *out_rest, struct error *err);
    enum status (*decode)(struct request *request, struct infer_call *call, struct error *err);
    enum status (*print)(struct request *request, struct infer_call *call, struct error *err);
    void (*print_tail)(struct request *request, const struct infer_call *call); /* (optional) */
    /* Puts what the client calls raw input |index|, and |behind|, before the text in |err|. */
    enum status (*name_input)(const struct infer_call *call, uint32_t index, const char *behind,
                              struct error *err);
};

extern const struct infer_form infer_form_oip;  /* infer_oip.c */
extern const struct infer_form infer_form_call; /* infer_call.c */

/* What differs between a call and a list of them: one row each, called by the functions below. */
struct infer_ops {
    /* Before the body: what the target names is there and works. 200, or the status. */
    int (*find)(struct request *request);
    enum status (*parse)(struct request *request, const struct oip_body *parts, struct error *err);
    enum status (*decode)(struct request *request, struct error *err);
    /* Once all is decoded: the sequences that it names. */
    enum status (*open_states)(struct request *request, struct error *err);
    void (*undo)(struct request *request); /* what decode() has done, to try again */
    enum status (*prepare)(struct request *request, enum rt_prepare_mode mode, struct error *err);
    /* Of memory for requests, bodies apart: what it takes at least in all, as far as that is known
     * before it runs; what it holds. */
    size_t (*demand)(const struct request *request);
    size_t (*held_bytes)(const struct request *request);
    struct rt_sched_queue *(*enter)(struct request *request); /* sets what the job has of it */
    /* As of struct rt_sched_job_ops; the request's error says why not. */
    bool (*start)(struct request *request, enum hal_caller caller);
    bool (*cancel)(struct request *request); /* as of struct rt_sched_job_ops */
    enum status (*finish)(struct request *request, enum status status, struct error *err);
    size_t (*encode_bytes)(const struct request *request); /* of results that become text */
    enum status (*print)(struct request *request, struct error *err);
    /* The results are text: their memory goes. Or it is |pool|'s from now on, as far as that may
     * hold so much. */
    void (*release)(struct request *request);
    enum status (*hand_over)(struct request *request, struct hal_pool *pool, struct error *err);
    void (*count)(const struct request *request, uint64_t now_ns); /* statistics */
};

extern const struct infer_ops infer_ops_one; /* infer_one.c */

/* Jobs of calls that run as one: of struct rt_sched_job_ops. */
bool infer_start_batch(struct rt_sched_job *const *jobs, uint32_t count);
bool infer_fits(struct rt_sched_job *a, struct rt_sched_job *b);

struct infer {
    const struct infer_ops *ops; /* NULL: not for a model */
    struct infer_call call;      /* of a request for one model */
    struct bundle *bundle;       /* of a list; in |arena| */
    struct arena arena;          /* what the request made us allocate */
    struct body inflated;        /* the body without its content coding */
    struct body *body;           /* whichever of the two is read; empty once all is decoded */
    bool is_short;               /* with ST_EXHAUSTED: of memory for requests, for now */
    size_t bound_bytes;          /* of it, that inputs use where they lie */
    struct hal_pool *pool;       /* owned: of what the request holds before it runs, a member of */
    struct hal_pool *share;      /* ..the model's pool, or that of lists; NULL: of none yet */
    struct hal_pool *run_pool;   /* owned: of what it takes to run, likewise */
    size_t steps_bytes;          /* of heap, for the steps of pipelines that it calls */
    size_t charged_bytes;        /* of it and of |arena|, to |pool| */
    uint64_t timeout_us;         /* that the client asked for; 0: none */
    uint32_t priority;           /* likewise; 0: the default */
    struct rt_sched_turn turn;   /* of a call in a sequence */
    struct oip_encoded encoded;  /* the answer's spans */
    struct buf deflated;         /* the answer with a content coding */
    enum coding coding;          /* of the answer */
};

MUST_CHECK enum status infer_init(struct request *request, const struct params *params,
                                  struct error *err);
void infer_fini(struct request *request);
void infer_reset(struct request *request);

/* The body is complete: its memory, and all that the request takes until it runs, is held by the
 * pool of its model, or of lists. */
MUST_CHECK enum status infer_settle(struct request *request, struct error *err);

/* Before the body: the model exists, works, and the request's coding is known. 200 or the status.
 */
int infer_begin(struct request *request);

MUST_CHECK enum status infer_parse(struct request *request, struct error *err);
MUST_CHECK enum status infer_decode(struct request *request, struct error *err);
/* ST_WOULD_PLAN with RT_PREPARE_CACHED: call it again, with RT_PREPARE_ALL, on a thread. */
MUST_CHECK enum status infer_prepare(struct request *request, enum rt_prepare_mode mode,
                                     struct error *err);
/* The run has ended with |status|: what the client is told of it. */
MUST_CHECK enum status infer_finish(struct request *request, enum status status, struct error *err);
MUST_CHECK enum status infer_encode(struct request *request, struct error *err);

/* The answer cannot be written at once: its memory is held by the pool of clients from now on.
 * False: that may not hold so much now. */
MUST_CHECK bool infer_hand_over(struct request *request);

/* What every request may have at most. */
struct call_limits infer_call_limits(const struct request *request);
struct oip_limits infer_limits(const struct request *request);

/*
 * Each input of |oip| is one of the model's, and no two are the same one: the parser has compared
 * their names, but an input has an alias beside its name. With |needs_all| none is missing.
 */
MUST_CHECK enum status infer_check_names(struct arena *arena, const struct model *model,
                                         const struct oip_request *oip, bool needs_all,
                                         struct error *err);

/* The limits of a request beside those of its head: the shorter time, the higher priority. */
void infer_take_parameters(struct infer *infer, const struct oip_parameters *parameters);

/* |why| the call failed, with which of the client's elements is to blame, if one is. */
void infer_explain(const struct infer_call *call, const struct error *why,
                   const struct rt_culprit *culprit, struct error *err);

/* ST_TIMEOUT: "not done after 50 ms". */
enum status infer_fail_late(const struct request *request, struct error *err);

/*
 * The sequence that the call's parameters name, if it has use for one: its invocation gets the
 * state. Once the rest of the call is known to be right, so that a wrong one starts none anew.
 */
MUST_CHECK enum status infer_open_sequence(struct request *request, struct infer_call *call,
                                           struct error *err);

/* The call has run; if it was to be the last of its sequence, that ends. */
void infer_end_sequence(const struct infer_call *call);

/* Lets go of it, if there is one. */
void infer_close_sequence(struct request *request, struct infer_call *call);

/* For the forms: raw input |index| lies at |bytes| in the body, which is in a buffer. */
MUST_CHECK enum status infer_bind(struct infer *infer, struct infer_call *call, uint32_t index,
                                  enum dtype dtype, const struct shape *shape,
                                  const struct oip_layout *layout, struct span bytes,
                                  struct error *err);

/* Likewise: memory for |stored| bytes, in which it lies like that once they are written. */
MUST_CHECK enum status infer_stage(struct infer_call *call, uint32_t index, enum dtype dtype,
                                   const struct shape *shape, const struct oip_layout *layout,
                                   size_t stored, void **out_ptr, struct error *err);

union infer_scalar {
    int64_t i;
    double f;
    bool b;
};

MUST_CHECK enum status infer_scalar(struct infer_call *call, enum rt_io_kind kind, uint32_t index,
                                    const union infer_scalar *value, struct error *err);

/* Bytes of the call's results that become text. */
size_t infer_text_bytes(const struct request *request, const struct infer_call *call);

/* Bytes of results that ENCODE has to touch, to decide who does it. */
size_t infer_encode_bytes(const struct request *request);

/* How long the request may wait and run: the daemon's limit or the client's shorter one. */
uint64_t infer_time_limit_ns(const struct request *request);

/*
 * |err|, ST_EXHAUSTED, says that there is no memory for |demand| bytes beside bodies: for now, so
 * that it is worth waiting, or never, which makes it ST_TOO_LARGE.
 */
enum status infer_refuse_memory(struct request *request, size_t demand, struct error *err);

/* Bytes of memory for requests that the request holds while it waits to run. */
size_t infer_held_bytes(const struct request *request);

#endif
