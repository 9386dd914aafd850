/* SPDX-License-Identifier: MIT */
/*
 * A kind of request: one row of functions, in three parts. The steps of infer.c and infer_encode.c
 * call them, and nobody else does. There are the call of one model (infer_one.c), the list of calls
 * (bundle.c), and requests of many calls of one model (server/daemon/generation/).
 *
 * NULL means: what the call of one model has (infer_one_ops), or the default that the comment
 * names. Threads as in infer.h.
 */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_OPS_H
#define PTED_SERVER_DAEMON_INFER_INFER_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/queue.h"
#include "runtime/call/invocation.h"

struct buf;
struct hal_pool;
struct infer;
struct oip_body;
struct rt_sched_queue;

/* The steps of a call that may take longer than their bytes say. */
enum infer_step { INFER_PARSE, INFER_DECODE, INFER_SAMPLE, INFER_ENCODE, INFER_OTHER };

/* From the head to the inputs, the memory, and the end. */
struct infer_life {
    bool is_apart; /* models are known after the body, so its memory is that of lists */
    /* Before the body: does the target name something that works? 200, or the status to answer
     * with. */
    int (*find)(struct infer *infer, struct error *err);
    /* May |step| take longer than its bytes say? NULL: no. Kinds that have it read texts. */
    bool (*is_long)(const struct infer *infer, enum infer_step step);
    /* Begins anew in a repeated attempt: infer->own is NULL. */
    enum status (*parse)(struct infer *infer, const struct oip_body *parts, struct error *err);
    enum status (*decode)(struct infer *infer, struct error *err);
    void (*undo)(struct infer *infer); /* undoes decode(), to try again */
    /* Memory for requests, bodies apart: the least that the request takes in all, as far as it is
     * known before the call runs; the memory that its calls hold; and that infer->own has beside
     * them (NULL: none). */
    size_t (*demand)(const struct infer *infer);
    size_t (*held_bytes)(const struct infer *infer);
    size_t (*own_bytes)(const struct infer *infer);
    /* Statistics. |http_status| of the answer; 0: it has no error as a whole. */
    void (*count)(const struct infer *infer, int http_status, uint64_t now_ns);
    /* At the end, on the loop: cancels what runs beside the steps. False: it still runs, and
     * env->note_left() tells its end. NULL: nothing ever does. infer->own is there. */
    bool (*leave)(struct infer *infer);
    /* Frees infer->own, which is there. NULL: the kind has none. */
    void (*free)(struct infer *infer);
};

/* From the inputs to the results. */
struct infer_run {
    /* When everything is decoded: opens the sequences that the request names. */
    enum status (*open_states)(struct infer *infer, struct error *err);
    enum status (*prepare)(struct infer *infer, enum rt_prepare_mode mode, struct error *err);
    bool is_prepared_once; /* prepare() that fails has freed the calls: nobody tries again */
    struct rt_sched_queue *(*enter)(struct infer *infer); /* fills in the job; returns the queue */
    /* As in struct rt_sched_job_ops; if it cannot start, |err| is the reason. */
    bool (*start)(struct infer *infer, enum hal_caller caller, struct error *err);
    bool (*cancel)(struct infer *infer); /* as in struct rt_sched_job_ops */
    enum status (*finish)(struct infer *infer, enum status status, struct error *err);
    /*
     * Of kinds with several runs, such as one for each token; others have NULL. count_run(): on the
     * loop, a run has succeeded, before finish(). sample(): step SAMPLE after each; the run's
     * invocation, if it has one, is freed behind it, unless it ends with ST_WOULD_BE_HEAVY.
     * is_over(): it was the last run.
     */
    void (*count_run)(struct infer *infer);
    enum status (*sample)(struct infer *infer, struct error *err);
    bool (*is_over)(const struct infer *infer);
};

/* From the results to the answer. */
struct infer_print {
    size_t (*encode_bytes)(const struct infer *infer); /* bytes of results that become text */
    /* Bytes of memory that print() takes at a time beside the text, at most. */
    size_t (*print_bytes)(const struct infer *infer);
    size_t (*tensor_count)(const struct infer *infer); /* at most, behind the text */
    /* Prints the text of the answer to infer->out, then adds the tensors behind it. */
    enum status (*print)(struct infer *infer, struct error *err);
    void (*print_tail)(struct infer *infer);
    /* release(): the results are text, so their memory is freed. hand_over(): |pool| holds it from
     * now on, as far as that pool may hold so much. */
    void (*release)(struct infer *infer);
    enum status (*hand_over)(struct infer *infer, struct hal_pool *pool, struct error *err);
    /* Of kinds with streams; others have NULL. Are there events instead of an answer? The error as
     * the last one. */
    bool (*is_stream)(const struct infer *infer);
    void (*print_error_event)(const struct infer *infer, const struct error *why, int http_status,
                              struct buf *out);
};

struct infer_ops {
    struct infer_life life;
    struct infer_run run;
    struct infer_print print;
};

#endif
