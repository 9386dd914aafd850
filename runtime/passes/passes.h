/* SPDX-License-Identifier: MIT */
/*
 * What happens to a graph between import and planning, in this order (runtime/program/method.c
 * calls them; fold runs again behind lower and behind layout, for what these made of constants):
 *
 *     resolve    what import learnt about the symbols goes into every size
 *     elide      copies that change nothing
 *     quantize   what is computed between integers is computed of integers
 *     fold       nodes with only constant arguments become constants
 *     permute    permutes move towards the outputs and cancel where they meet
 *     normalize  batch norm goes into the convolution before it, or becomes a per-channel affine
 *     lower      matrix products and convolutions take packed weights
 *     fuse       residual additions, clamps and roundings to halves go into the products and
 *                convolutions before them
 *     layout     memory orders: channels-last islands around convolutions,
 *                reorders at their borders
 *     chain      pointwise nodes over floats that only the next one reads become one with it
 *
 * Each pass leaves a valid, compact graph. Only resolve, lower and layout are needed for a graph
 * that can be planned; the others make it smaller. Those that make one node of several (quantize,
 * normalize, fuse, chain) are left out when somebody wants to know what they are worth.
 */
#ifndef PTED_RUNTIME_PASSES_PASSES_H
#define PTED_RUNTIME_PASSES_PASSES_H

#include "base/status.h"
#include "runtime/graph/graph.h"

struct hal_device;

/*
 * Rewrites all sizes with the solved symbols replaced, and drops the nodes that only computed
 * sizes: their results are expressions now. The inputs' dims say afterwards which of them may vary.
 */
MUST_CHECK enum status rt_pass_resolve(struct rt_graph *graph, struct error *err);

/* Readers of a copy read what it copies. */
MUST_CHECK enum status rt_pass_elide(struct rt_graph *graph, struct error *err);

/*
 * Finds what dequantizes, computes and quantizes, and makes it integer operators: products,
 * convolutions, and what stands between them. Before any folding, which would turn weights into
 * floats; what it leaves dequantized is folded afterwards.
 */
MUST_CHECK enum status rt_pass_quantize(struct rt_graph *graph, struct error *err);

/* Evaluates constant nodes on |device|, whose memory the host sees. */
MUST_CHECK enum status rt_pass_fold(struct rt_graph *graph, struct hal_device *device,
                                    struct error *err);

MUST_CHECK enum status rt_pass_permute(struct rt_graph *graph, struct error *err);

MUST_CHECK enum status rt_pass_normalize(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_lower(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_fuse(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_layout(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_chain(struct rt_graph *graph, struct error *err);

#endif
