/* SPDX-License-Identifier: MIT */
/*
 * A plan: one block at one set of concrete dims, ready to be submitted. Sizes are numbers, every
 * value has its place, and the work is a recorded command buffer. Made from a graph and its flow;
 * immutable and shared by reference count. It keeps nothing of the graph but what the command
 * buffer references; the graph's constants must outlive it.
 */
#ifndef PTED_RUNTIME_PLAN_PLAN_H
#define PTED_RUNTIME_PLAN_PLAN_H

#include "base/buf.h"
#include "base/refs.h"
#include "base/shape.h"
#include "hal/command.h"
#include "runtime/emit/emit.h"
#include "runtime/plan/flow.h"

struct hal_device;

/* Slots of the command buffer: the workspace, then the inputs, then the results. */
#define RT_SLOT_WORKSPACE 0
#define RT_SLOT_INPUT 1

struct rt_plan_result {
    struct shape shape; /* of a tensor */
    size_t bytes;       /* of a tensor */
    int64_t number;     /* of an int; a float's bits; 0 or 1 of a bool */
    uint32_t word;      /* index of the run's word that is the number, or RT_NO_WORD */
    /*
     * If the tensor's memory holds an older content of input |base|, only some rows are written: by
     * all of its |update_count| updates. Else RT_NO_BASE.
     */
    uint32_t base, update_count;
    uint32_t first_update, last_update; /* of its updates */
    int64_t rows, row_bytes;
    bool may_overwrite; /* its memory may be that of input |base|, too */
};

#define RT_NO_BASE UINT32_MAX

/* A node that writes rows of result |result|; its RT_UPDATE_WORDS i64s are at |offset|. */
struct rt_plan_update {
    uint32_t result;
    uint32_t next; /* update of the result, unless this is its last one */
    size_t offset; /* in the workspace */
    struct rt_update of;
};

/* Scratch memory for making one plan. */
#define RT_PLAN_SCRATCH_MAX (256u << 20)

#define RT_PLAN_MAGIC 0x91a4be11u

struct rt_plan {
    uint32_t magic;
    struct refs refs;
    struct hal_command *command; /* owned */
    size_t workspace_bytes;      /* size of the memory in slot 0 */
    size_t words_offset;         /* offset of the run's words in it */
    uint32_t word_count;
    uint32_t input_count, result_count;
    struct rt_plan_result *results; /* owned */
    struct rt_plan_update *updates; /* owned */
    uint32_t update_count;
    size_t update_capacity;
    bool is_empty; /* nothing has to be submitted */
    size_t bytes;  /* memory that the plan itself takes, approximately */
};

/* Does the host read and write the end of the workspace? Then it must be able to access it. */
static inline bool rt_plan_has_words(const struct rt_plan *plan)
{
    return plan->word_count > 0 || plan->update_count > 0;
}

static inline uint32_t rt_slot_result(uint32_t input_count, uint32_t result)
{
    return RT_SLOT_INPUT + input_count + result;
}

/* |values| holds the evaluated expressions of the graph's dims (rt_dims_eval()). ST_TOO_LARGE if a
 * tensor or the workspace exceeds the device's limits. */
MUST_CHECK enum status rt_plan_new(const struct rt_flow *flow, struct hal_device *device,
                                   const int64_t *values, struct rt_plan **out_plan,
                                   struct error *err);
/* Returns where constant |v| of |graph| lies; the buffer is borrowed. */
struct hal_binding rt_plan_locate(const struct rt_graph *graph, const struct rt_value *v);

struct rt_plan *rt_plan_ref(struct rt_plan *plan);
void rt_plan_unref(struct rt_plan *plan); /* NULL is fine */

/* Prints regions, dispatches and memory, with the nodes of |graph| that they belong to;
 * deterministic. */
void rt_plan_print(const struct rt_plan *plan, const struct rt_graph *graph,
                   const struct rt_notes *notes, struct buf *out);

#endif
