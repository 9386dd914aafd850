/* SPDX-License-Identifier: MIT */
/*
 * The numbers that a plan is made for, and the numbers that each run is told.
 *
 * Sizes decide how much memory and how many tiles there are. An int that only says where something
 * begins (the row of a cache that a step writes, the row of a table that it reads) does not. Rows
 * of operators name such arguments (struct rt_op, |read|). A plan is made for the values of its
 * keys. The other numbers are words: i64s after the tenants of the workspace, written for each run
 * and read by kernels. So a model that decodes one token after the other, each at its own position,
 * has one plan.
 */
#ifndef PTED_RUNTIME_PLAN_NUMBERS_H
#define PTED_RUNTIME_PLAN_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "runtime/graph/graph.h"

#define RT_NO_WORD UINT32_MAX

/* An argument that kernels read. */
struct rt_number_use {
    uint32_t node, arg;
    struct rt_dim place; /* a constant, or the expression of a word */
};

/* Storage in an arena; read-only once found. */
struct rt_numbers {
    uint32_t *keys; /* expressions: runs with equal values share a plan */
    uint32_t key_count;
    uint32_t *words; /* expressions, by word */
    uint32_t word_count;
    struct rt_number_use *uses; /* by node, then by argument */
    uint32_t use_count;
    bool is_each_evaluated; /* keys or words are not only symbols: every run evaluates all
                               expressions */
};

/*
 * For a graph that no pass changes any more; its sizes may get more expressions and requirements.
 */
MUST_CHECK enum status rt_numbers_find(struct rt_numbers *numbers, struct rt_graph *graph,
                                       struct arena *arena, struct error *err);

/* Returns NULL: the plan knows the argument. |numbers| may be NULL. */
const struct rt_number_use *rt_numbers_find_use(const struct rt_numbers *numbers, uint32_t node,
                                                uint32_t arg);

/* Returns the word for expression |expr|, or RT_NO_WORD. |numbers| may be NULL. */
uint32_t rt_numbers_find_word(const struct rt_numbers *numbers, uint32_t expr);

#endif
