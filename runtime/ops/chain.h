/* SPDX-License-Identifier: MIT */
/*
 * Chains: several pointwise nodes over floats, joined into one node "chain". It walks its tensors
 * once and keeps intermediate values in a few KiB of scratch. rt_pass_chain() makes such nodes.
 *
 * A chain computes values that are numbered from 0: first its tensors, then the result of each
 * step; the last value is the output. In a graph a chain has up to three tensors, the names of the
 * steps' loops, and for each step in order the operands and parameters of its loop: a value's
 * number, or -1 - n for entry n of the list of floats:
 *
 *     chain(%x, none, none, "add clamp mul", [0,-1, 1,-2,-3, 0,2], [3, 0, 6])
 *         x * clamp(x + 3, 0, 6)
 *
 * Only the pass makes chains, so a malformed one is a defect of ours.
 */
#ifndef PTED_RUNTIME_OPS_CHAIN_H
#define PTED_RUNTIME_OPS_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/kernels/loop.h"
#include "runtime/ops/pointwise.h"

#define RT_CHAIN_TENSORS_MAX (RT_LOOP_OPERANDS_MAX - 1)
#define RT_CHAIN_STEPS_MAX 16
#define RT_CHAIN_NUMBERS_MAX 24
#define RT_CHAIN_VALUES_MAX (RT_CHAIN_TENSORS_MAX + RT_CHAIN_STEPS_MAX)
#define RT_CHAIN_ARGS_MAX (RT_PW_INPUTS_MAX + RT_PW_PARAMS_MAX)

/* A loop with the sources of its operands and then its parameters, in the encoding above. */
struct rt_chain_step {
    enum rt_pointwise_op op;
    int args[RT_CHAIN_ARGS_MAX];
};

struct rt_chain {
    uint32_t tensors, step_count, number_count;
    struct rt_chain_step steps[RT_CHAIN_STEPS_MAX];
    double numbers[RT_CHAIN_NUMBERS_MAX];
};

/* ---- what the kernel is told -------------------------------------------------------------- */

/* How a step is executed. */
enum rt_chain_form {
    RT_CHAIN_LOOP,     /* any loop, over tensors */
    RT_CHAIN_BINARY,   /* a binary micro-kernel; a sum has no factor here */
    RT_CHAIN_SCALAR,   /* a binary micro-kernel whose second operand is a constant */
    RT_CHAIN_REVERSED, /* a binary micro-kernel whose first operand is a constant */
};

/* Buffers by number. A tensor that is read in place has a number of its own. */
struct rt_chain_run {
    uint8_t op;   /* enum rt_pointwise_op */
    uint8_t form; /* enum rt_chain_form */
    uint8_t out, in[RT_PW_INPUTS_MAX];
    uint8_t params; /* index of the first */
};

struct rt_chain_constants {
    struct rt_loop loop;
    uint32_t tensors, step_count, piece;
    uint32_t period; /* positions of a row, if some operand repeats one row or one number in rows */
    uint32_t repeated, spread; /* operands: one row for all, one number for each row */
    uint32_t row_strides[RT_LOOP_OPERANDS_MAX]; /* bytes between numbers that are spread */
    struct rt_chain_run steps[RT_CHAIN_STEPS_MAX];
    float numbers[RT_CHAIN_NUMBERS_MAX];
};
_Static_assert(sizeof(struct rt_chain_constants) <= HAL_CONSTANTS_MAX,
               "constants are copied whole");

#ifndef HAL_SHADER
/* Returns the number of the loop's operands and parameters inside a chain: a sum has no factor
 * there. */
uint32_t rt_chain_arg_count(enum rt_pointwise_op op);

/* Returns the loop with that name, which must be in a chain. */
enum rt_pointwise_op rt_chain_op_named(struct span name);

/* Has the chain one step, a loop of one tensor without parameters? Then |out_input| receives the
 * tensor and |out_name| the value with the loop's name. */
bool rt_chain_find_only_step(const struct rt_graph *graph, const struct rt_node *chain,
                             uint32_t *out_input, uint32_t *out_name);

/* Can the loop be a step whose operands are constants where |numbers| has a bit? */
bool rt_chain_takes(enum rt_pointwise_op op, uint32_t numbers);
#endif

#endif
