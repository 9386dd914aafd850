/* SPDX-License-Identifier: MIT */
/*
 * Strided copies: the base of nearly every operator that only moves elements. The operator
 * describes a box of positions and the strides of source and target over it; the order of loops,
 * the element width and the kernel follow from the strides.
 *
 * A box counts in elements of the two tensors, which have one element size. Strides of the source
 * may be 0 (repeat) or negative (flip). No two positions share an element of the target.
 */
#ifndef PTED_RUNTIME_KERNELS_COPY_H
#define PTED_RUNTIME_KERNELS_COPY_H

#include "runtime/kernels/loop.h"

/* Constants for the kernels; operand 0 is the target, operand 1 the source. */
struct rt_copy_constants {
    struct rt_loop loop;
    uint32_t width;                     /* bytes of an element */
    int64_t tile_i, tile_j, tile_outer; /* of a transposition */
    int64_t steps[2]; /* bytes by which an operand moves for each unit of the place; binding 2 holds
                         the place unless both are 0 */
};

/* Variants of the SPIR-V form. */
enum rt_copy_variant { RT_COPY_RUNS, RT_COPY_TRANSPOSE };

#ifndef HAL_SHADER
#include "runtime/emit/emit.h"

struct rt_copy {
    uint32_t rank;
    int64_t dims[SHAPE_RANK_MAX];
    int64_t dst[SHAPE_RANK_MAX], src[SHAPE_RANK_MAX];
    int64_t dst_offset, src_offset;
    struct rt_place place; /* factor of the steps; the kernel reads it in each run */
    int64_t dst_step, src_step;
};

/* Returns a box over all of |dst|; the strides of the source are 0 until the caller sets them. */
struct rt_copy rt_copy_to(const struct rt_tensor *dst);

/* Both sides begin later by |place| times their step, in elements. */
void rt_copy_move(struct rt_copy *copy, struct rt_place place, int64_t dst_step, int64_t src_step);

/* Adds an innermost dim; dims of 1 are left out. False when there are too many dims. */
bool rt_copy_add_dim(struct rt_copy *copy, int64_t dim, int64_t dst, int64_t src);

/* Records the copy, or nothing when a dim is 0. The box lies inside both tensors at all places. */
MUST_CHECK enum status rt_copy_emit(struct rt_emit *emit, const struct rt_tensor *dst,
                                    const struct rt_tensor *src, const struct rt_copy *copy,
                                    struct error *err);

/* Does the same outside an operator: |bindings| are target and source, elements have |width| bytes,
 * |machine| is the device's. */
MUST_CHECK enum status rt_copy_record(struct hal_command *command, const struct rt_copy *copy,
                                      uint32_t width, const struct rt_machine *machine,
                                      const struct hal_binding bindings[2], struct error *err);

/* ---- in kernels ------------------------------------------------------------------------------ */

/* |n| elements of |width| bytes (1, 2, 4, 8 or 16), strides in bytes. */
void rt_copy_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                 uint32_t width);

/* Copies of runs of elements; most movements of data use them. */
extern const struct hal_kernel rt_copy_kernel;
#endif

#endif
