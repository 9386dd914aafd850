/* SPDX-License-Identifier: MIT */
/* The families of operators, and finding a row in them. */
#ifndef PTED_RUNTIME_OPS_OP_H
#define PTED_RUNTIME_OPS_OP_H

#include "base/status.h"
#include "runtime/graph/op.h"
#include "runtime/ops/shape.h"

/* Families end with a row whose name is NULL. */
extern const struct rt_op rt_ops_gather[], rt_ops_antialias[], rt_ops_attention[], rt_ops_bag[],
    rt_ops_cache_int8[], rt_ops_cat_affine[], rt_ops_chain[], rt_ops_complex[], rt_ops_conv[],
    rt_ops_conv_direct[], rt_ops_create[], rt_ops_expand_dw[], rt_ops_extent[], rt_ops_distance[],
    rt_ops_fft[], rt_ops_gate[], rt_ops_index[], rt_ops_interleave[], rt_ops_join[], rt_ops_llm[],
    rt_ops_masked[], rt_ops_matmul[], rt_ops_moe[], rt_ops_moe_linear[], rt_ops_norm[],
    rt_ops_order[], rt_ops_pad[], rt_ops_pixels[], rt_ops_planes[], rt_ops_pointwise[],
    rt_ops_pool[], rt_ops_pool_back[], rt_ops_pool_volume[], rt_ops_qpointwise[], rt_ops_qproduct[],
    rt_ops_quant[], rt_ops_qweights[], rt_ops_quant_layers[], rt_ops_random[], rt_ops_reduce[],
    rt_ops_softmax[], rt_ops_cumsum[], rt_ops_sample[], rt_ops_scalar[], rt_ops_search[],
    rt_ops_slice[], rt_ops_stride[], rt_ops_upsample[], rt_ops_view[], rt_ops_winograd[];

/* Finds a row by graph name, or by the name a kernel call uses; NULL when there is none. */
const struct rt_op *rt_op_find(const char *name);
const struct rt_op *rt_op_find_kernel(struct span kernel);

/* Calls |fn| for every row of every family. */
void rt_op_each(void (*fn)(const struct rt_op *op, void *arg), void *arg);

/* ---- batch rules (batch.c, batch_spread.c) --------------------------------------------------- */

/* Each index of dim 0 of argument 0 by itself, whatever the others are. */
rt_op_batch_f rt_batch_each;
/* The same for all arguments, broadcast. */
rt_op_batch_f rt_batch_pointwise;
/* The same, without broadcasting: for arguments 0 and 1; for matrices, packed or not; for queries,
 * keys and values. An argument that is the same for all rows is repeated. */
rt_op_batch_f rt_batch_pair, rt_batch_matrices, rt_batch_packed, rt_batch_attention;
/* Argument 0 is a list of tensors, 1 the dim. */
rt_op_batch_f rt_batch_list;
/* Argument 1 is a list of indices: taking and putting. Argument 1 is the dim, 2 has indices. */
rt_op_batch_f rt_batch_index, rt_batch_put, rt_batch_indices;
/* Argument 2 is the dim, or the dims; argument 1 is a part of argument 0 along that dim. */
rt_op_batch_f rt_batch_along_third, rt_batch_roll, rt_batch_put_part;
/* Argument 1 is the dim, or the dims, of which a part stays, or that come and go. */
rt_op_batch_f rt_batch_part;
rt_op_batch_f rt_batch_repeat, rt_batch_last_two, rt_batch_diagonal, rt_batch_samples;
rt_op_batch_f rt_batch_moved;
/* Argument 0 is a table for all rows. */
rt_op_batch_f rt_batch_lookup;
/* Argument 1 is the dim, or the dims, that it works along. */
rt_op_batch_f rt_batch_along;
/* Argument 1 is a list of sizes of the last dims, which it works along; of two numbers a dim. */
rt_op_batch_f rt_batch_trailing, rt_batch_padded;
/* Argument 1 is the order of the dims; arguments 1 and 2 change places; the two dims do. */
rt_op_batch_f rt_batch_permute, rt_batch_transpose, rt_batch_t;
/* Argument 1 has the sizes of the result, whose elements are those of argument 0 in their order. */
rt_op_batch_f rt_batch_sizes;

#endif
