/* SPDX-License-Identifier: MIT */
/* The inside of a call, for the kinds of methods (runtime/program/callable.h). See
 * runtime/call/invocation.h. */
#ifndef PTED_RUNTIME_CALL_INSIDE_H
#define PTED_RUNTIME_CALL_INSIDE_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/list.h"
#include "hal/command.h"
#include "hal/fault.h"
#include "hal/queue.h"
#include "hal/semaphore.h"
#include "runtime/call/invocation.h"
#include "runtime/call/profile.h"
#include "runtime/kernels/copy.h"
#include "runtime/program/method.h"

#define INVOCATION_MAGIC 0x1c0ca110u

struct rt_batch_part;
struct rt_steps_run;

/* A call goes through its phases in this order; a call that is unprepared goes back to FILLING. */
enum rt_phase {
    RT_PHASE_FREE,     /* in the free list of its method */
    RT_PHASE_FILLING,  /* takes inputs */
    RT_PHASE_PREPARED, /* has a plan and memory */
    RT_PHASE_RUNNING,  /* submitted; belongs to the device */
    RT_PHASE_DONE,     /* has results, or an error */
};

struct rt_bound_input {
    struct shape shape;
    struct hal_binding binding; /* buffer: ref held */
    bool is_given;
    /* ref held: memory that is to be converted into |binding|, or NULL */
    struct hal_buffer *source;
    size_t source_offset; /* of its lowest element, in bytes */
    struct rt_copy copy;  /* how */
};

struct rt_invocation {
    uint32_t magic;
    enum rt_phase phase;
    struct list link;                /* in the method's free list */
    size_t heap_bytes;               /* of this, the arrays behind it and its parts */
    struct rt_method *method;        /* its program: ref held while not free */
    struct hal_pool *pool;           /* borrowed from the caller: of the inputs */
    struct hal_pool *run_pool;       /* likewise: of all else */
    struct hal_pool *join_pool;      /* likewise: of a call that it runs in as one with others */
    struct rt_state *state;          /* ref held while not free, or NULL: initial contents */
    struct rt_block *entry;          /* borrowed: the block that runs first; NULL: a pipeline */
    uint32_t orders;                 /* bits of tensors that are not row-major: see orders.h */
    struct rt_block *form;           /* borrowed: of |entry|, for those; from plan on */
    struct rt_plan *plan;            /* ref held from prepare on */
    struct rt_plan *kept_plan;       /* ref held, or NULL: see rt_invocation_keep() */
    int64_t *words;                  /* numbers for its run */
    struct hal_buffer *workspace;    /* owned from prepare to done */
    struct hal_semaphore *semaphore; /* owned */
    uint64_t timepoint;
    struct hal_semaphore_waiter waiter;
    struct hal_semaphore *finished; /* owned; NULL: one block, or nobody has asked for it */
    struct hal_timepoint waits[HAL_TIMEPOINTS_MAX]; /* to be reached first; semaphores: refs held */
    uint32_t wait_count, waits_over;
    bool is_awaited;          /* somebody has its timepoint */
    atomic_bool is_cancelled; /* unless it is part of something that is cancelled as a whole */
    atomic_bool *cancel;
    _Atomic(struct rt_batch_part *) part; /* of a batch that it runs in, see rt_batch_leave() */
    struct rt_steps_run *steps; /* borrowed; of several joined steps: their states; else NULL */
    struct hal_fault_record fault;
    struct error error; /* of the run, once it has failed */
    struct rt_culprit culprit;
    rt_invocation_done_f *done;
    void *arg;
    struct rt_profile *profile; /* borrowed; NULL: the call is not measured */
    struct hal_buffer *small;   /* owned, kept while free: small tensors; NULL: none yet */
    size_t small_used;          /* bytes of it */
    bool uses_small;
    size_t bytes;                  /* of the pool */
    size_t input_bytes;            /* the part of them for inputs, once prepare has begun */
    size_t refused_bytes;          /* of the input that there was no memory for; else 0 */
    bool has_other_labels;         /* some of |given| are not the method's */
    bool is_trial;                 /* may run in a form that is being proven */
    bool was_joined;               /* its run was one with others, until the end */
    uint32_t conversion_count;     /* inputs that have a |source| */
    struct rt_bound_input *inputs; /* the arrays lie behind the struct */
    struct rt_block_input *given;  /* by graph input of the entry */
    struct hal_binding *slots;     /* of the submission that is being made */
    struct hal_binding *bound;     /* of tensor results, then of states written without a struct
                                      rt_state; buffers: ref held until free */
    struct rt_result *results;
    int64_t *numbers; /* storage of scalar results */
    uint32_t bound_count;
    struct rt_sched_job *parent; /* borrowed: of rt_invocation_hand_over(); or NULL */
    void *own; /* of the method's kind, which frees it: runtime/program/callable.h */
};

/* Returns the name of input |index| in messages. */
const char *rt_invocation_label(const struct rt_invocation *invocation, uint32_t index);

/* ---- inputs.c -------------------------------------------------------------------------------- */

/* Gives back the memory of input |index|, which is no longer given. */
void rt_invocation_release_input(struct rt_invocation *invocation, uint32_t index);

/* Reserves memory for input |index|. The caller has checked |shape|, which takes |bytes|. */
MUST_CHECK enum status rt_invocation_reserve_input(struct rt_invocation *invocation, uint32_t index,
                                                   const struct shape *shape, size_t bytes,
                                                   struct error *err);

/* Submits the conversions that the oracle asked for. |out_converted| reaches 1 when they are done;
 * it is NULL if there are none. The caller owns the reference. */
MUST_CHECK enum status rt_invocation_convert(struct rt_invocation *invocation,
                                             struct hal_semaphore **out_converted);

/* ---- small.c --------------------------------------------------------------------------------- */

/* Takes memory for a tensor of |bytes|: the call's own if it is small, else that of |pool|. The
 * caller owns a reference to out->buffer. */
MUST_CHECK enum status rt_invocation_take(struct rt_invocation *invocation, struct hal_pool *pool,
                                          size_t bytes, struct hal_binding *out, struct error *err);

/* Call when the call is over and its tensors are released; |keeps|: the invocation is used again
 * soon. */
void rt_invocation_drop_small(struct rt_invocation *invocation, bool keeps);

/*
 * Keeps all tensors of a call that is over for the next one, with the plan: its inputs have their
 * shapes and bindings, but are not given; its results have bindings. False: they have to be
 * released, for not all of them are small.
 */
bool rt_invocation_keep(struct rt_invocation *invocation);

/* Gives input |index| where the kept one lies. False: there is none of this type and shape; then
 * nothing is kept any more. */
bool rt_invocation_recall_input(struct rt_invocation *invocation, uint32_t index, enum dtype dtype,
                                const struct shape *shape);

/* Makes the kept plan the call's, whose inputs have all been recalled, with memory for its results.
 * False: nothing is kept. */
bool rt_invocation_recall_plan(struct rt_invocation *invocation);

/* Releases what is kept and not recalled yet. Whatever a call has that the last one may not have
 * had calls this first. */
void rt_invocation_forget(struct rt_invocation *invocation);

/* ---- single.c: a call of one block is one submission ----------------------------------------- */

extern const struct rt_callable rt_single_callable;

/* ---- profile.c ------------------------------------------------------------------------------- */

/* Notes that a call is about to submit |plan| of |block|, with *out_spans as its profile; both may
 * be NULL. */
MUST_CHECK enum status rt_profile_note(struct rt_profile *profile, const struct rt_block *block,
                                       const struct rt_plan *plan, struct hal_profile **out_spans,
                                       struct error *err);

/* ---- prepare.c ------------------------------------------------------------------------------- */

/* Finds the plan of |block| for the call's inputs; with RT_PREPARE_CACHED only one that exists. The
 * caller owns the reference. */
MUST_CHECK enum status rt_invocation_find_plan(struct rt_invocation *invocation,
                                               struct rt_block *block, enum rt_prepare_mode mode,
                                               struct rt_plan **out_plan, struct error *err);

/* Returns the bytes that prepare takes from the pool for a call which has its plan. */
size_t rt_invocation_planned_bytes(const struct rt_invocation *invocation);

/* Result |index|, a scalar, is |number| (as in struct rt_scalar) unless the file fixes it. */
void rt_invocation_give_scalar(struct rt_invocation *invocation, uint32_t index, int64_t number);

/* Gives back the memory of results that prepare took, or the caller. */
void rt_invocation_drop_results(struct rt_invocation *invocation);

/* Gives back what plan and prepare took, the caller's memory for results included. */
void rt_invocation_release_results(struct rt_invocation *invocation);

/* Does as rt_invocation_prepare() without the workspace: for a call whose results another call
 * computes. Does nothing if that has been done. rt_invocation_place_workspace() makes it a call of
 * its own. */
MUST_CHECK enum status rt_invocation_prepare_results(struct rt_invocation *invocation,
                                                     enum rt_prepare_mode mode, struct error *err);
MUST_CHECK enum status rt_invocation_place_workspace(struct rt_invocation *invocation,
                                                     struct error *err);

/* Describes result |index| of a prepared call for another call; false: its size is not known yet.
 * A scalar leaves |out_desc| as it is. */
bool rt_invocation_find_result(const struct rt_invocation *invocation, uint32_t index,
                               struct rt_buffer_desc *out_desc);

/* Gives back what prepare took; the plan stays. */
void rt_invocation_unprepare(struct rt_invocation *invocation);

/* ---- states.c -------------------------------------------------------------------------------- */

/* Reserves memory for the mutable buffers that the call writes. */
MUST_CHECK enum status rt_invocation_place_states(struct rt_invocation *invocation,
                                                  struct error *err);

/* Puts the mutable buffers into the slots of the submission. ST_EXHAUSTED: it cannot. */
MUST_CHECK enum status rt_invocation_fill_states(struct rt_invocation *invocation);

/* Call when the call has ended: if it went well, its writes are the state's next generation. */
void rt_invocation_leave_states(struct rt_invocation *invocation, enum status status);

/* ---- steps.c --------------------------------------------------------------------------------- */

/* Does both for a joined call, whose rows have the states. */
void rt_steps_begin(struct rt_invocation *joined);
void rt_steps_end(struct rt_invocation *joined, enum status status);

/* ---- invocation.c ---------------------------------------------------------------------------- */

/* Call when the call is over: |done| is called, which may free the invocation. The same in two
 * parts: the status that the call has in the end, after which nothing may fail it that has advanced
 * its state; and the rest with that status. */
void rt_invocation_end(struct rt_invocation *invocation, enum status status);
MUST_CHECK enum status rt_invocation_judge(struct rt_invocation *invocation, enum status status);
void rt_invocation_finish(struct rt_invocation *invocation, enum status status);

/* Ends a prepared call with |status| instead of running it: |done| is called. |error| has been
 * set. */
void rt_invocation_refuse(struct rt_invocation *invocation, enum status status,
                          rt_invocation_done_f *done, void *arg);

/* Gives up a prepared call that will not be submitted: whatever waits for its timepoint gets
 * |status|. */
void rt_invocation_give_up(struct rt_invocation *invocation, enum status status);

/* Replaces a failed semaphore, which stays failed: the next call needs another one. */
void rt_invocation_replace_semaphore(struct rt_invocation *invocation);

/* Calls |fn| with the invocation's waiter once |semaphore| has reached |value| or has failed. */
void rt_invocation_await(struct rt_invocation *invocation, struct hal_semaphore *semaphore,
                         uint64_t value,
                         void (*fn)(struct hal_semaphore_waiter *waiter, enum status status));

/* Frees all calls and batches that |method| keeps; for the callable's fini(). */
void rt_invocation_free_kept(struct rt_method *method);
void rt_batch_destroy(struct list *link);

/* Finds the heap that one call of |method| takes, without the calls inside it. */
MUST_CHECK enum status rt_invocation_heap_bytes(struct rt_method *method, size_t *out_bytes,
                                                struct error *err);

/* ---- batch.c, batch_proof.c ------------------------------------------------------------------ */

/* Does as rt_invocation_new(), for the form that takes several rows. */
MUST_CHECK enum status rt_batch_joined_new(struct rt_method *method, struct hal_pool *pool,
                                           struct rt_invocation **out_joined, struct error *err);

/*
 * Messages call input |index| by |label| until the invocation is freed; |label| lives until then.
 */
void rt_invocation_say(struct rt_invocation *invocation, uint32_t index, const char *label);

/* ---- storage --------------------------------------------------------------------------------- */

/* Reserves room for an array at the end of one allocation, of which *|at| bytes are taken; returns
 * the array's offset. */
static inline size_t rt_take_array(size_t *at, size_t count, size_t size)
{
    size_t offset = align_up(*at, 16);
    *at = offset + count * size;
    return offset;
}

#endif
