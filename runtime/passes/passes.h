/* SPDX-License-Identifier: MIT */
/*
 * The passes between import and planning, in this order (rt_block_prepare() calls the first three,
 * rt_block_compile() the others; fold runs again after permute, lower and layout, because these
 * create new constants):
 *
 *     resolve    replaces solved symbols in all sizes
 *     elide      removes copies that change nothing, and joins trees of concatenations
 *     merge      makes equal nodes one
 *     caches     writes caches row by row (runtime/passes/caches.h; rt_code_find_caches() calls it)
 *     quantize   computes on integers what is computed between quantized values
 *     fold       replaces nodes with only constant arguments by constants (runtime/code/fold.h)
 *     permute    moves permutes towards the outputs and cancels pairs
 *     lines      makes convolutions of one axis of those of images one pixel wide, and joins views
 *     softmax    makes one operator of softmax and the check for rows that a mask hides
 *     normalize  merges batch norm into the convolution before it, or makes it a per-channel affine
 *     channels   renumbers shuffled channels, so that shuffles move nothing
 *     lower      gives packed weights to matrix products and convolutions
 *     caches_int8  keeps caches in 8 bits, where the load asks for it
 *                (runtime/passes/caches_int8.h)
 *     winograd   computes convolutions of 3 x 3 by Winograd's algorithm where that is faster, if
 *                the graph's precision permits it
 *     fuse       merges residual additions, clamps and roundings to halves into the products and
 *                convolutions before them
 *     layout     chooses memory orders: channels-last islands around convolutions,
 *                reorders at their borders
 *     chain      merges float pointwise nodes into the pointwise node that reads them
 *     cat_affine makes one operator of a concatenation and the batch norm behind it, on the CPU
 *     expand_dw  makes one operator of a 1x1 convolution and the depthwise convolution behind it,
 *                on the CPU
 *     activate   computes activations inside the products before them, on the CPU
 *     narrow     stores as bfloat16 what only products of bfloat16 numbers read
 *     moves      makes one copy of several: permutes, selections and slices behind each other
 *
 * Each pass leaves a valid, compact graph. A graph can be planned after resolve, lower and layout;
 * the others make it smaller. The passes that merge several nodes into one (quantize, lines,
 * softmax, normalize, fuse, chain, cat_affine, expand_dw, activate, moves), channels and narrow can
 * be switched off to measure their effect.
 */
#ifndef PTED_RUNTIME_PASSES_PASSES_H
#define PTED_RUNTIME_PASSES_PASSES_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* Replaces the solved symbols in all sizes, and drops the nodes that only computed sizes: their
 * results are expressions now. Afterwards the inputs' dims show which of them may vary. */
MUST_CHECK enum status rt_pass_resolve(struct rt_graph *graph, struct error *err);

/* Readers of a copy read its source instead. A concatenation of concatenations joins their tensors
 * itself. Parts of a constant become tensors that can be folded. */
MUST_CHECK enum status rt_pass_elide(struct rt_graph *graph, struct error *err);

/* Readers of a node read the first one that computes the same. */
MUST_CHECK enum status rt_pass_merge(struct rt_graph *graph, struct error *err);

/*
 * Finds nodes between dequantize and quantize, and replaces them by integer operators: products,
 * convolutions, and the operators between them. Runs before any folding, which would turn weights
 * into floats; weights that stay dequantized are folded afterwards.
 */
MUST_CHECK enum status rt_pass_quantize(struct rt_graph *graph, struct error *err);

MUST_CHECK enum status rt_pass_permute(struct rt_graph *graph, struct error *err);

/* Views by other names than "view" stay. */
MUST_CHECK enum status rt_pass_lines(struct rt_graph *graph, struct error *err);

/* Runs while the tensors still have the dims of the exported program. */
MUST_CHECK enum status rt_pass_softmax(struct rt_graph *graph, struct error *err);

MUST_CHECK enum status rt_pass_normalize(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_channels(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_lower(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_winograd(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_fuse(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_layout(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_chain(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_cat_affine(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_expand_dw(struct rt_graph *graph, struct error *err);
MUST_CHECK enum status rt_pass_activate(struct rt_graph *graph, struct error *err);

/* Does nothing unless the graph's precision is bf16. */
MUST_CHECK enum status rt_pass_narrow(struct rt_graph *graph, struct error *err);

/* Only permutes, selections and slices with views between them; see moves.c. */
MUST_CHECK enum status rt_pass_moves(struct rt_graph *graph, struct error *err);

#endif
