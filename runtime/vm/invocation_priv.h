/* SPDX-License-Identifier: MIT */
/* The inside of an invocation: what the files of this folder share. See runtime/invocation.h. */
#ifndef PTED_RUNTIME_VM_INVOCATION_PRIV_H
#define PTED_RUNTIME_VM_INVOCATION_PRIV_H

#include <stdatomic.h>

#include "base/list.h"
#include "hal/command.h"
#include "hal/semaphore.h"
#include "runtime/invocation.h"
#include "runtime/method.h"
#include "runtime/ops/copy.h"

#define INVOCATION_MAGIC 0x1c0ca110u

enum step { STEP_FREE, STEP_FILLING, STEP_PREPARED, STEP_RUNNING, STEP_DONE };

struct rt_bound_input {
    struct shape shape;
    struct hal_binding binding; /* buffer: ref held */
    bool is_given;
    struct hal_buffer *source; /* ref held: what has to be converted into |binding|, or NULL */
    size_t source_offset;      /* of its lowest element, in bytes */
    struct rt_copy copy;       /* how */
};

struct rt_invocation {
    uint32_t magic;
    enum step step;
    struct list link;                /* in the method's free list */
    struct rt_method *method;        /* its program: ref held while not free */
    struct hal_pool *pool;           /* borrowed from the caller */
    struct rt_plan *plan;            /* ref held from prepare on */
    struct hal_buffer *arena;        /* owned from prepare to done */
    struct hal_semaphore *semaphore; /* owned */
    uint64_t timepoint;
    struct hal_semaphore_waiter waiter;
    atomic_bool cancel;
    rt_invocation_done_f *done;
    void *arg;
    size_t bytes;
    uint32_t conversion_count;     /* inputs that have a |source| */
    struct rt_bound_input *inputs; /* the arrays lie behind the struct */
    const struct shape **shapes;   /* of the inputs */
    struct hal_binding *slots;     /* of the submission that is being made */
    struct hal_binding *bound;     /* of tensor results; buffers: ref held until free */
    struct rt_result *results;
    int64_t *numbers; /* storage of int results */
};

/*
 * Submits the conversions that the oracle asked for; |out_converted| reaches 1 when they are done,
 * and is NULL where there are none. The caller owns the reference.
 */
MUST_CHECK enum status rt_invocation_convert(struct rt_invocation *invocation,
                                             struct hal_semaphore **out_converted);

#endif
