/* SPDX-License-Identifier: MIT */
/* Packs a matrix into panels like pack_f32.c, rounded to bfloat16, with pairs of rows interleaved:
 * for each column the number of the first row, then the number of the second. On aarch64 four rows
 * are. */
#include "config.h"

#include "hal/cpu/uk/pack_f32.h"
#if defined UK_LEVEL_NEON
#include "hal/cpu/uk/round_bf16.h"
#endif

#if defined UK_LEVEL_NEON
/* Puts two rows of floats, numbers |at| and |at| + 1 of |k|, at their place in a quad. */
static void round_pair(uint16_t *panel, size_t at, size_t k, const float *rows)
{
    const size_t quad = at / 4 * 4;
    const size_t step = quad + 4 <= k ? 4 : 2; /* numbers from one column to the next */
    uint16_t *to = panel + quad * UK_NR + (quad + 4 <= k ? at % 4 : 0);
    for (size_t j = 0; j < UK_NR; j += UK_VL) {
        uint16x4x2_t columns = {
            {round_vector_bf16(v_load(rows + j)), round_vector_bf16(v_load(rows + UK_NR + j))}};
        uint16_t pairs[2 * UK_VL];
        vst2_u16(pairs, columns);
        for (size_t c = 0; c < UK_VL; c++) {
            memcpy(to + (j + c) * step, pairs + 2 * c, 2 * sizeof(*pairs));
        }
    }
}

/* Rounds |count| rows of floats, an even number, to numbers |at| and following of a panel of |k|.
 * Four neighbours of a column are a quad, see gemm_bf16_neon.h. */
static void round_rows(uint16_t *panel, size_t at, size_t k, const float *rows, size_t count)
{
    for (size_t i = 0; i < count;) {
        const float *from = rows + i * UK_NR;
        if (at % 4 != 0 || count - i < 4) {
            round_pair(panel, at, k, from);
            i += 2;
            at += 2;
            continue;
        }
        for (size_t j = 0; j < UK_NR; j += UK_VL) {
            uint16x4x4_t columns = {{round_vector_bf16(v_load(from + j)),
                                     round_vector_bf16(v_load(from + UK_NR + j)),
                                     round_vector_bf16(v_load(from + 2 * UK_NR + j)),
                                     round_vector_bf16(v_load(from + 3 * UK_NR + j))}};
            vst4_u16(panel + at * UK_NR + 4 * j, columns);
        }
        i += 4;
        at += 4;
    }
}
#else
/* Rounds |count| rows of floats, an even number, to numbers |at| and following of a panel. */
static void round_rows(uint16_t *panel, size_t at, size_t k, const float *rows, size_t count)
{
    uint16_t *to = panel + at * UK_NR;
    (void)k;
    for (size_t i = 0; i < count; i += 2) {
        for (size_t j = 0; j < UK_NR; j += UK_VL) {
            __m256bh first = _mm512_cvtneps_pbh((__m512)v_load(rows + i * UK_NR + j));
            __m256bh second = _mm512_cvtneps_pbh((__m512)v_load(rows + (i + 1) * UK_NR + j));
            __m512i low = _mm512_cvtepu16_epi32((__m256i)first);
            __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)second), 16);
            _mm512_storeu_si512(to + i * UK_NR + 2 * j, _mm512_or_si512(low, high));
        }
    }
}
#endif

void UK_NAME(pack_bf16)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end)
{
    float rows[INNER_BLOCK * UK_NR];
    size_t k = (size_t)p->outer_count * p->inner_count;
    must(panel_begin <= panel_end && panel_end <= ((size_t)p->n + UK_NR - 1) / UK_NR);
    must(k == 0 || uk_is_aligned(p->packed));
    must(p->inner_count % 2 == 0);
    for (size_t i = panel_begin; i < panel_end; i++) {
        size_t left = p->n - i * UK_NR, width = left < UK_NR ? left : UK_NR;
        uint16_t *panel = (uint16_t *)p->packed + i * k * UK_NR;
        for (size_t outer = 0; outer < p->outer_count; outer++) {
            for (size_t inner = 0; inner < p->inner_count; inner += INNER_BLOCK) {
                size_t rest = p->inner_count - inner;
                size_t count = rest < INNER_BLOCK ? rest : INNER_BLOCK;
                size_t lacking = p->is_odd && count == rest ? 1 : 0;
                pack_block(rows, p, i * UK_NR, outer, inner, width, count - lacking);
                memset(rows + (count - lacking) * UK_NR, 0, lacking * UK_NR * sizeof(float));
                round_rows(panel, outer * p->inner_count + inner, k, rows, count);
            }
        }
    }
}
