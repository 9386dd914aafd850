/* SPDX-License-Identifier: MIT */
/*
 * Kinds of methods. A method of one block, a method whose code has statements, and a pipeline have
 * the same inputs, results and calls; they differ in the functions of one row each:
 *
 *     rt_single_callable      runtime/call/single.c      a call is one submission
 *     vm_callable             runtime/vm/vm.c            a call walks the statements of its code
 *     rt_pipelined_callable   runtime/pipeline/          a call is a cascade of calls
 *
 * A further kind is a further row. The functions of a method may run on any thread; the functions
 * of a call run on the thread that owns it. A function that is marked (optional) is NULL if the
 * kind has nothing to do there.
 */
#ifndef PTED_RUNTIME_PROGRAM_CALLABLE_H
#define PTED_RUNTIME_PROGRAM_CALLABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/shape.h"
#include "base/status.h"
#include "hal/queue.h"

struct hal_pool;
struct hal_semaphore;
struct rt_buffer_desc;
struct rt_invocation;
struct rt_method;
struct rt_result_info;

/*
 * How far a call is prepared. If the method has not seen the inputs' dims lately a plan has to be
 * made, which takes milliseconds for a large model. RT_PREPARE_CACHED returns ST_WOULD_PLAN in that
 * case; the call is then unchanged and holds no more memory than before.
 */
enum rt_prepare_mode { RT_PREPARE_CACHED, RT_PREPARE_ALL };

/* The platform of methods that come from a file. */
#define RT_PLATFORM_FILE "executorch_pte"

struct rt_callable {
    const char *platform;     /* the method's kind, for clients */
    bool has_own_work;        /* weights, plans and dispatches; if false, only the methods that it
                                 calls have them */
    enum reason why_alone;    /* why calls cannot be joined to one; REASON_NONE: they can */
    bool is_one_submission;   /* a call ends when its own semaphore is signalled */
    bool is_planned_in_place; /* planning a call also gives it its memory, from the pool of its
                                 inputs */

    /* ---- the method ---- */

    /* Frees the method's calls, and the part of the method that belongs to its kind. */
    void (*fini)(struct rt_method *method);

    /* As rt_method_measure(); the inputs have their declared types and ranks. |says_paths|: see
     * rt_invocation_say_paths(). */
    enum status (*measure)(struct rt_method *method, const struct shape *const *inputs,
                           bool says_paths, struct rt_result_info *out_infos, size_t *out_bytes,
                           struct error *err);

    /* (optional) As rt_example_shapes(), by what the kind knows; ST_INVALID: the general rules are
     * tried instead. |out_infos|, by result, goes with the shapes. */
    enum status (*choose)(struct rt_method *method, const struct shape *const *given,
                          struct shape *out_shapes, struct rt_result_info *out_infos,
                          struct error *err);

    /* ---- a call ---- */

    /* (optional) open() allocates the kind's part of a call and adds it to the call's heap_bytes;
     * false: no memory. The call is used again and again; close() is called before it is freed. */
    bool (*open)(struct rt_invocation *invocation);
    void (*close)(struct rt_invocation *invocation);

    /* Makes all checks, and the plan; the inputs are complete. */
    enum status (*plan)(struct rt_invocation *invocation, enum rt_prepare_mode mode,
                        struct error *err);
    /* Gives the results memory, after plan(). */
    enum status (*place)(struct rt_invocation *invocation, struct error *err);
    /* (optional) Gives back what these two took from pools. */
    void (*release)(struct rt_invocation *invocation);

    /*
     * Runs the call after its |wait_count| timepoints. ST_OK: rt_invocation_end() is called once,
     * perhaps before this function returns; otherwise the caller ends the call. |semaphore| is the
     * call's own, which the caller has a reference to.
     */
    enum status (*start)(struct rt_invocation *invocation, struct hal_semaphore *semaphore,
                         enum hal_caller caller);

    /* Describes result |index| of a prepared call for another call to read; false: its size is not
     * known before the call is done. */
    bool (*find_result)(const struct rt_invocation *invocation, uint32_t index,
                        struct rt_buffer_desc *out_desc);
    /* (optional) Another call is going to read the results: gives memory to results of known size.
     */
    enum status (*feed)(struct rt_invocation *invocation, struct error *err);

    /* (optional) Pool memory that the kind holds beside the call's own; moves its results to
     * |pool|. */
    size_t (*bytes)(const struct rt_invocation *invocation);
    enum status (*move_results)(struct rt_invocation *invocation, struct hal_pool *pool,
                                struct error *err);
};

#endif
