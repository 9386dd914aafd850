/* SPDX-License-Identifier: MIT */
/*
 * The smallest call of a method with state as one graph: every size of its inputs that may vary is
 * 1. For a language model that is the step that decodes one token. The blocks of the code are put
 * behind each other, and the host's statements between them become expressions. A number that the
 * host reads from an input's only element (a position) becomes an input of the graph.
 *
 * The graph is what runtime/passes/rows.h makes a graph of several calls from. Code that branches,
 * or reads other results of the device, has no such graph.
 */
#ifndef PTED_RUNTIME_CODE_STEP_H
#define PTED_RUNTIME_CODE_STEP_H

#include "base/status.h"
#include "runtime/code/code.h"
#include "runtime/passes/rows.h"

/* The form of the code, as the method describes it. */
struct rt_step_form {
    uint32_t input_count, result_count; /* of the method */
    uint32_t state_count;               /* mutable buffers */
    const uint32_t *state_regs;         /* by buffer: its register; unused without statements */
    const bool *is_written;             /* by buffer */
};

/* An int that the graph takes: method input |input| itself, or its only element. */
struct rt_step_number {
    uint32_t input;
    bool is_element;
};

/* The greatest value that a number can have in any step. None is negative. */
#define RT_STEP_NUMBER_MAX INT32_MAX

struct rt_step {
    /* Owned. Inputs: the method's, its mutable buffers, the numbers. Outputs: the method's results,
     * then the buffers that are written. It borrows constants from the code, which outlives it. */
    struct rt_graph graph;
    uint32_t input_count, state_count, number_count, result_count;
    uint32_t *state_outputs; /* by buffer: its output, or RT_NO_OUTPUT */
    struct rt_step_number *numbers;
    /* The greatest value of the numbers: beyond it a row would lie behind the end of a table, and
     * sizes would be others. */
    int64_t number_max;
};

/* |step| is not initialised. ST_UNSUPPORTED with the reason; then there is nothing to fini. */
MUST_CHECK enum status rt_step_init(struct rt_step *step, const struct rt_code *code,
                                    const struct rt_step_form *form, struct error *err);
void rt_step_fini(struct rt_step *step);

#endif
