/* SPDX-License-Identifier: MIT */
/*
 * What happens to a graph between import and planning, in this order (runtime/program.c calls them):
 *
 *     resolve    what import learnt about the symbols goes into every size
 *     fold       nodes with only constant arguments become constants
 *     normalize  batch norm into the convolution before it or a per-channel affine; x*W+b forms into
 *                one linear; fixed no-ops away
 *     fuse       activation, clamp and residual addition into convolution and linear
 *     pack       weights into the form the kernels read (folded at once when constant)
 *     layout     memory orders: channels-last islands around convolutions, reorders at their borders
 *
 * Each pass leaves a valid, compact graph. A pass does not need the ones before it to be correct,
 * only to be useful.
 */
#ifndef PTED_RUNTIME_GRAPH_PASSES_H
#define PTED_RUNTIME_GRAPH_PASSES_H

#include "base/status.h"
#include "runtime/graph/graph.h"

struct hal_device;

/*
 * Rewrites all sizes with the solved symbols replaced, and drops the nodes that only computed sizes:
 * their results are expressions now. The inputs' dims say afterwards which of them may vary.
 */
MUST_CHECK enum status rt_pass_resolve(struct rt_graph *graph, struct error *err);

/* Evaluates constant nodes on |device|, whose memory the host sees. */
MUST_CHECK enum status rt_pass_fold(struct rt_graph *graph, struct hal_device *device,
                                    struct error *err);

MUST_CHECK enum status rt_pass_normalize(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_fuse(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_pack(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_layout(struct rt_graph *graph, struct error *err);

#endif
