/* SPDX-License-Identifier: MIT */
/* Packs a matrix, wherever its elements lie, into the panels that the matrix product reads: UK_NR
 * columns each, row after row. Missing columns are zero. */
#include "config.h"

#include "hal/cpu/uk/level.h"

/* Floats of a column read at a time: a cache line, if they are contiguous. */
#define INNER_BLOCK 16

/* Packs rows [0, count) of a panel; the elements of a column are |stride| apart. */
static void pack_columns(float *panel, const float *src, ptrdiff_t column, ptrdiff_t stride,
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
static void pack_rows(float *panel, const float *src, ptrdiff_t stride, size_t width, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(panel + i * UK_NR, src + (ptrdiff_t)i * stride, width * sizeof(float));
        memset(panel + i * UK_NR + width, 0, (UK_NR - width) * sizeof(float));
    }
}

void UK_NAME(pack_f32)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end)
{
    size_t k = (size_t)p->outer_count * p->inner_count;
    must(panel_begin <= panel_end && panel_end <= ((size_t)p->n + UK_NR - 1) / UK_NR);
    must(k == 0 || uk_is_aligned(p->packed));
    for (size_t i = panel_begin; i < panel_end; i++) {
        size_t left = p->n - i * UK_NR, width = left < UK_NR ? left : UK_NR;
        const float *src = p->src + (ptrdiff_t)(i * UK_NR) * p->column;
        float *panel = p->packed + i * k * UK_NR;
        for (size_t outer = 0; outer < p->outer_count; outer++) {
            const float *from = src + (ptrdiff_t)outer * p->outer_stride;
            for (size_t inner = 0; inner < p->inner_count; inner += INNER_BLOCK) {
                size_t rest = p->inner_count - inner;
                size_t count = rest < INNER_BLOCK ? rest : INNER_BLOCK;
                const float *block = from + (ptrdiff_t)inner * p->inner_stride;
                if (p->column == 1) {
                    pack_rows(panel, block, p->inner_stride, width, count);
                } else {
                    pack_columns(panel, block, p->column, p->inner_stride, width, count);
                }
                panel += count * UK_NR;
            }
        }
    }
}
