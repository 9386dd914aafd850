/* SPDX-License-Identifier: MIT */
/*
 * The compiled graph of a method for people, node by node, so that a program can draw it.
 *
 * rt_method_outline() calls |fn| for the inputs of a block, as a node "input" without arguments,
 * for the block's nodes in the order in which they were compiled, and for its results, as a node
 * "output". It does so for each block that a call may run. Equal numbers of values in one block are
 * the same value: so arguments and results are the edges. Deterministic.
 *
 * Reads what does not change after loading; any thread. Texts are valid during the call of |fn|.
 */
#ifndef PTED_RUNTIME_PROGRAM_OUTLINE_H
#define PTED_RUNTIME_PROGRAM_OUTLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct rt_method;

#define RT_OUTLINE_NO_NODE UINT32_MAX

struct rt_outline_value {
    uint32_t number;  /* in its block */
    bool is_constant; /* a weight or another number of the file */
    struct span type; /* "f32[s1,8]" */
    const char *name; /* of a weight in the file; NULL: none */
};

struct rt_outline_node {
    uint32_t block;
    uint32_t number; /* the |node| of a row of a profile; RT_OUTLINE_NO_NODE: input, output */
    const char *op;
    struct span layer;                         /* "stem.0", or empty */
    struct span source;                        /* "model.py:12: x = self.stem(x)", or empty */
    const struct rt_outline_value *ins, *outs; /* tensors alone */
    uint32_t in_count, out_count;
};

typedef void rt_outline_f(void *arg, const struct rt_outline_node *node);

/* Fails with ST_UNSUPPORTED: a pipeline has no graph of its own; the reason why the method cannot
 * be called; ST_EXHAUSTED. */
MUST_CHECK enum status rt_method_outline(struct rt_method *method, rt_outline_f *fn, void *arg,
                                         struct error *err);

#endif
