/* SPDX-License-Identifier: MIT */
/*
 * Activations that a product computes itself: of each result, before it is stored. In a graph such
 * an activation is the name of its loop (pointwise.h), a string.
 */
#ifndef PTED_RUNTIME_OPS_ACTIVATION_H
#define PTED_RUNTIME_OPS_ACTIVATION_H

#include "runtime/graph/graph.h"

/* If |node| computes such an activation of a tensor of floats and nothing else, true; |out_input|
 * receives the tensor and |out_name| a value with the name, which may be new. */
bool rt_activation_find(struct rt_graph *graph, const struct rt_node *node, uint32_t *out_input,
                        uint32_t *out_name);

/* Reads the activation as struct rt_gemm has it. 0: |name| is none, or a loop that products do not
 * have. */
uint32_t rt_activation_read(const struct rt_value *name);

#endif
