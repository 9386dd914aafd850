/* SPDX-License-Identifier: MIT */
/* The rules of the lower pass; lower.c has the table of rules. */
#ifndef PTED_RUNTIME_PASSES_LOWER_H
#define PTED_RUNTIME_PASSES_LOWER_H

#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/conv.h"

#define RT_LOWER_OUTS_MAX 3

/* Adds nodes that compute |node|; |outs| gets the replacement for each of its outputs. */
typedef enum status rt_lower_f(struct rt_graph *graph, const struct rt_node *node,
                               uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err);

rt_lower_f rt_lower_convolution, rt_lower_convolution_backward, rt_lower_fft_r2c, rt_lower_fft_c2r,
    rt_lower_fft_c2c, rt_lower_complex, rt_lower_polar, rt_lower_angle;
rt_lower_f rt_lower_update_cache, rt_lower_update_cache_at, rt_lower_attention_cached,
    rt_lower_attention_quantized, rt_lower_tile_crop, rt_lower_moe_ffn;
rt_lower_f rt_lower_mixed_mm, rt_lower_mixed_linear, rt_lower_add_quantized;

/*
 * Returns the type in which constant |weights| are packed: bfloat16 if the graph's precision
 * permits that. Then |pairs|, the numbers of an input that are neighbours in the sum, have to be
 * even; and a thread copies as many rows of |depth| inputs as it multiplies at a time.
 */
enum dtype rt_lower_packed_type(const struct rt_graph *graph, uint32_t weights, struct rt_dim pairs,
                                struct rt_dim depth);

/* Is this convolution one of volumes that can be one of planes? */
bool rt_lower_is_volume(const struct rt_graph *graph, const uint32_t args[RT_CONV_ARGS]);

/* Replaces arguments of a convolution of volumes, whose result is |depth| deep, by those of a
 * convolution of planes. */
MUST_CHECK enum status rt_lower_volume(struct rt_graph *graph, uint32_t args[RT_CONV_ARGS],
                                       struct rt_dim depth, struct error *err);

/* Makes volumes, with the dims of |like|, of the planes that this gives. */
MUST_CHECK enum status rt_lower_planes_as(struct rt_graph *graph, uint32_t like, uint32_t *planes,
                                          struct error *err);

/* A product x @ w, or x @ w transposed, plus bias and residual if they are not none. */
struct rt_product {
    uint32_t x, weights, bias, residual; /* values; bias is a row, residual has the result's dims */
    struct rt_dim n;
    bool is_transposed; /* the weights are [n, k] */
};

/* Adds nodes that compute a product. The tensors may have different types; halves are computed in
 * f32. The result has type |dtype|. */
MUST_CHECK enum status rt_lower_product(struct rt_graph *graph, struct rt_product product,
                                        enum dtype dtype, uint32_t *out_value, struct error *err);

#endif
