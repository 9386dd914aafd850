/* SPDX-License-Identifier: MIT */
/* Packs a matrix, wherever its elements lie, into the panels that the matrix product reads: UK_NR
 * columns each, row after row. Missing columns are zero. */
#include "config.h"

#include "hal/cpu/uk/pack_f32.h"

void UK_NAME(pack_f32)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end)
{
    size_t k = (size_t)p->outer_count * p->inner_count;
    must(panel_begin <= panel_end && panel_end <= ((size_t)p->n + UK_NR - 1) / UK_NR);
    must(k == 0 || uk_is_aligned(p->packed));
    for (size_t i = panel_begin; i < panel_end; i++) {
        size_t left = p->n - i * UK_NR, width = left < UK_NR ? left : UK_NR;
        float *panel = (float *)p->packed + i * k * UK_NR;
        for (size_t outer = 0; outer < p->outer_count; outer++) {
            for (size_t inner = 0; inner < p->inner_count; inner += INNER_BLOCK) {
                size_t rest = p->inner_count - inner;
                size_t count = rest < INNER_BLOCK ? rest : INNER_BLOCK;
                pack_block(panel, p, i * UK_NR, outer, inner, width, count);
                panel += count * UK_NR;
            }
        }
    }
}
