/* SPDX-License-Identifier: MIT */
/*
 * Strided copies: what nearly every operator that only moves elements comes down to. The operator
 * says which box of positions there is and how source and target walk it; the order of the loops,
 * the element width and the kernel follow from the strides.
 *
 * A box is written in elements of the two tensors, which have one element size. Strides of the
 * source may be 0 (repeat) or negative (flip); no two positions share an element of the target.
 */
#ifndef PTED_RUNTIME_OPS_COPY_H
#define PTED_RUNTIME_OPS_COPY_H

#include "runtime/ops/op.h"

struct rt_copy {
    uint32_t rank;
    int64_t dims[SHAPE_RANK_MAX];
    int64_t dst[SHAPE_RANK_MAX], src[SHAPE_RANK_MAX];
    int64_t dst_offset, src_offset;
};

/* The box of all of |dst|; the strides of the source are 0 until the caller sets them. */
struct rt_copy rt_copy_to(const struct rt_tensor *dst);

/* One more dim at the end; dims of 1 are left out. False when there are too many. */
bool rt_copy_add_dim(struct rt_copy *copy, int64_t dim, int64_t dst, int64_t src);

/* Records the copy; nothing when a dim is 0. The box lies inside both tensors. */
MUST_CHECK enum status rt_emit_copy(struct rt_emit *emit, const struct rt_tensor *dst,
                                    const struct rt_tensor *src, const struct rt_copy *copy,
                                    struct error *err);

/* The same outside of an operator: |bindings| are target and source, elements
 * have |width| bytes. */
MUST_CHECK enum status rt_record_copy(struct hal_command *command, const struct rt_copy *copy,
                                      uint32_t width, const struct hal_binding bindings[2],
                                      struct error *err);

/* ---- in kernels --------------------------------------------------------------------------------
 */

/* |n| elements of |width| bytes (1, 2, 4, 8 or 16), strides in bytes. */
void rt_copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                 uint32_t width);

#endif
