/* SPDX-License-Identifier: MIT */
/*
 * A block: a graph that runs as one submission, and its plans. A method is one block, or several if
 * the host has to know intermediate results: see runtime/code/code.h.
 *
 * Everything but the plan cache, which a mutex guards, is immutable after compilation.
 */
#ifndef PTED_RUNTIME_CODE_BLOCK_H
#define PTED_RUNTIME_CODE_BLOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/flow.h"
#include "runtime/plan/numbers.h"
#include "runtime/plan/plan.h"

struct hal_device;
struct rt_caches_int8;
struct rt_files;
struct rt_graph_buffers;
struct rt_graph_ends;
struct rt_rows_own;
struct rt_io;

/* A graph input in one run: the shape of a tensor, or the 64 bits of a scalar. */
struct rt_block_input {
    const struct shape *shape; /* borrowed; NULL: a mutable buffer, whose dims never vary */
    int64_t number;            /* of an int; a float's bits; 0 or 1 of a bool */
    const char *label;         /* for messages; NULL: "a value" */
};

/* The source of a register's new value after a block has run. */
struct rt_block_out {
    uint32_t reg;
    bool is_input; /* as graph input |index| has it; else graph output |index| */
    uint32_t index;
    uint32_t extent; /* graph output that says how many rows mean something, or RT_NO_EXTENT */
};

#define RT_NO_EXTENT UINT32_MAX

/* Plans that a block keeps, the most recently used ones. */
#define RT_BLOCK_PLANS_BYTES_MAX ((size_t)64 << 20)

#define RT_BLOCK_MAGIC 0xb10c4a1du

struct rt_block {
    uint32_t magic;
    struct rt_graph graph; /* owned, and the arena of everything else */
    struct rt_flow flow;
    uint32_t *ins; /* by graph input: its register */
    struct rt_block_out *outs;
    uint32_t out_count;
    uint32_t given_count;      /* of the graph's inputs, the first so many are the caller's */
    uint32_t result_count;     /* of the graph's outputs, likewise */
    struct hal_device *device; /* borrowed */
    uint32_t *symbols;         /* expressions that inputs choose */
    uint32_t symbol_count;
    struct rt_numbers numbers;
    pthread_mutex_t mutex; /* guards what follows */
    struct list plans;     /* struct cached_plan, most recently used first */
    uint32_t plan_count;
    size_t plan_bytes;
    atomic_uint_fast64_t found_count; /* plans that were there; not guarded */
    uint64_t made_count;              /* and that were not */
    int64_t *values;                  /* by expression, of the run looked up */
};

/* Makes an empty graph to import into. |name| is the method's; constants may lie in |files|. */
void rt_block_init(struct rt_block *block, const char *name, struct hal_device *device,
                   struct rt_files *files);
void rt_block_fini(struct rt_block *block);

/* Runs the passes that come before everything else, on the imported graph. */
MUST_CHECK enum status rt_block_prepare(struct rt_block *block, struct error *err);

/* Compiles from the prepared graph to one that can be planned. |fuses|: see struct rt_load_options.
 * |caches|: mutable buffers that are kept in 8 bits if that is possible, or NULL. */
MUST_CHECK enum status rt_block_compile(struct rt_block *block, enum precision precision,
                                        bool fuses, const struct rt_caches_int8 *caches,
                                        struct error *err);

/*
 * Makes |block|, which is not initialised, the form of |from| for up to |rows_max| rows along dim 0
 * of all inputs and outputs in which |from| has one row. It borrows from |from|. ST_UNSUPPORTED
 * with the reason (runtime/passes/batch.h) if that is impossible; then there is nothing to fini.
 * |labels|: how messages call the inputs of |from|'s graph and, after them, its outputs.
 */
MUST_CHECK enum status rt_block_batch(struct rt_block *block, const struct rt_block *from,
                                      int64_t rows_max, const char *const *labels,
                                      struct error *err);

/* Makes |block|, which is not initialised, the form of |from| with other orders of memory at its
 * inputs and outputs (runtime/passes/ends.h, which has the same errors); then there is nothing to
 * fini. It borrows from |from|. */
MUST_CHECK enum status rt_block_with_ends(struct rt_block *block, const struct rt_block *from,
                                          const struct rt_graph_ends *ends, struct error *err);

/*
 * Makes |block|, which is not initialised, a block of |rows| calls of |from|, a graph of one call:
 * see runtime/passes/rows.h, which has the same errors; then there is nothing to fini. It borrows
 * from |from|.
 */
MUST_CHECK enum status rt_block_rows(struct rt_block *block, struct hal_device *device,
                                     const struct rt_graph *from, uint32_t rows,
                                     const struct rt_rows_own *own, struct error *err);

/* Does the same for steps of one sequence that follow each other: see rt_graph_speculation(). */
MUST_CHECK enum status rt_block_speculation(struct rt_block *block, struct hal_device *device,
                                            const struct rt_graph *from, uint32_t rows,
                                            const struct rt_graph_buffers *buffers,
                                            struct error *err);

/*
 * Finds the plan for |inputs| (by graph input), from the cache or made now; and the words for its
 * run, numbers.word_count |words|. ST_INVALID if the block does not take one of the shapes or
 * numbers. The caller owns a reference. Any thread.
 */
MUST_CHECK enum status rt_block_plan(struct rt_block *block, const struct rt_block_input *inputs,
                                     int64_t *words, struct rt_plan **out_plan, struct error *err);

/* Counts a plan that is used again. */
static inline void rt_block_note_found(struct rt_block *block)
{
    atomic_fetch_add_explicit(&block->found_count, 1, memory_order_relaxed);
}

/* Does the same, but only from the cache: NULL with ST_OK if the plan would have to be made.
 * |words| may be NULL if the plan is only looked at. */
MUST_CHECK enum status rt_block_find_plan(struct rt_block *block,
                                          const struct rt_block_input *inputs, int64_t *words,
                                          struct rt_plan **out_plan, struct error *err);

/* Drops all plans of the cache; runs keep theirs. Any thread. */
void rt_block_drop_plans(struct rt_block *block);

/*
 * Makes the plan at the upper bounds of all sizes, for people. If no size varies it is the plan of
 * every call, which finds it in the cache. ST_UNSUPPORTED: the bounds exclude each other. The
 * caller owns a reference.
 */
MUST_CHECK enum status rt_block_plan_bounds(struct rt_block *block, struct rt_plan **out_plan,
                                            struct error *err);

/* Puts the symbols' values into |values| (by expression), and everything computed from them.
 * ST_INVALID if two inputs disagree, the block does not take one of them, or a requirement of the
 * block does not hold: the text names the inputs' dims. */
MUST_CHECK enum status rt_block_eval(const struct rt_block *block,
                                     const struct rt_block_input *inputs, int64_t *values,
                                     struct error *err);

#endif
