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

#include "runtime/ops/iter.h"

/* What the kernels are told; operand 0 is the target, 1 the source. */
struct rt_copy_constants {
    struct rt_loop loop;
    uint32_t width;                     /* bytes of an element */
    int64_t tile_i, tile_j, tile_outer; /* of a transposition */
    int64_t steps[2];                   /* bytes that an operand moves by for 1 of the place, which
                                           binding 2 has unless both are 0 */
};

/* Variants of the SPIR-V form. */
enum rt_copy_variant { RT_COPY_RUNS, RT_COPY_TRANSPOSE };

#ifndef HAL_SHADER
#include "runtime/ops/op.h"

struct rt_copy {
    uint32_t rank;
    int64_t dims[SHAPE_RANK_MAX];
    int64_t dst[SHAPE_RANK_MAX], src[SHAPE_RANK_MAX];
    int64_t dst_offset, src_offset;
    struct rt_place place; /* read by the kernel: how often the steps are added to the offsets */
    int64_t dst_step, src_step;
};

/* The box of all of |dst|; the strides of the source are 0 until the caller sets them. */
struct rt_copy rt_copy_to(const struct rt_tensor *dst);

/* Both sides begin |place| times their step later, in elements. */
void rt_copy_move(struct rt_copy *copy, struct rt_place place, int64_t dst_step, int64_t src_step);

/* One more dim at the end; dims of 1 are left out. False when there are too many. */
bool rt_copy_add_dim(struct rt_copy *copy, int64_t dim, int64_t dst, int64_t src);

/* Records the copy; nothing when a dim is 0. The box lies inside both tensors, at all places. */
MUST_CHECK enum status rt_emit_copy(struct rt_emit *emit, const struct rt_tensor *dst,
                                    const struct rt_tensor *src, const struct rt_copy *copy,
                                    struct error *err);

/* The same outside of an operator: |bindings| are target and source, elements
 * have |width| bytes, and |machine| is the device's. */
MUST_CHECK enum status rt_record_copy(struct hal_command *command, const struct rt_copy *copy,
                                      uint32_t width, const struct rt_machine *machine,
                                      const struct hal_binding bindings[2], struct error *err);

/* ---- in kernels --------------------------------------------------------------------------------
 */

/* |n| elements of |width| bytes (1, 2, 4, 8 or 16), strides in bytes. */
void rt_copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                 uint32_t width);

/* Runs of elements; most of what only moves them. */
extern const struct hal_kernel rt_copy_kernel;
#endif

#endif
