/* SPDX-License-Identifier: MIT */
/* Rows of a packed panel, gathered from a matrix wherever its elements lie. */
#ifndef PTED_HAL_CPU_UK_PACK_F32_H
#define PTED_HAL_CPU_UK_PACK_F32_H

#include "hal/cpu/uk/level.h"

/* Floats of a column read at a time: a cache line, if they are contiguous. Even. */
#define INNER_BLOCK 16

/* Packs rows [0, count) of a panel; the elements of a column are |stride| apart. */
UK_INLINE void pack_columns(float *panel, const float *src, ptrdiff_t column, ptrdiff_t stride,
                            size_t width, size_t count)
{
    for (size_t j = 0; j < width; j++) {
        const float *from = src + (ptrdiff_t)j * column;
        for (size_t i = 0; i < count; i++) {
            panel[i * UK_NR + j] = from[(ptrdiff_t)i * stride];
        }
    }
    for (size_t i = 0; i < count && width < UK_NR; i++) {
        memset(panel + i * UK_NR + width, 0, (UK_NR - width) * sizeof(float));
    }
}

/* The same for adjacent columns. */
UK_INLINE void pack_rows(float *panel, const float *src, ptrdiff_t stride, size_t width,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(panel + i * UK_NR, src + (ptrdiff_t)i * stride, width * sizeof(float));
        memset(panel + i * UK_NR + width, 0, (UK_NR - width) * sizeof(float));
    }
}

/*
 * Rows [inner, inner + count) of block |outer| of the source, for the |width| columns of a panel
 * from |column| on.
 */
UK_INLINE void pack_block(float *panel, const struct uk_pack_f32 *p, size_t column, size_t outer,
                          size_t inner, size_t width, size_t count)
{
    const float *from = p->src + (ptrdiff_t)column * p->column +
                        (ptrdiff_t)outer * p->outer_stride + (ptrdiff_t)inner * p->inner_stride;
    if (p->column == 1) {
        pack_rows(panel, from, p->inner_stride, width, count);
    } else {
        pack_columns(panel, from, p->column, p->inner_stride, width, count);
    }
}

#endif
