/* SPDX-License-Identifier: MIT */
/*
 * Packs 8-bit weights into the panels that the integer matrix product reads: words of UK_WORD
 * neighbours in k, one for each of UK_NR columns. A byte holds two 4-bit weights, from neighbouring
 * words. Missing weights are zero. A level with products of matrices has words of eight.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

#if defined UK_LEVEL_I8MM
/* Eight neighbours of a column follow each other, if the run has so many; a last word of four lies
 * as on other levels. Of 4-bit weights the high halves of sixteen bytes are columns 2 and 3 of
 * four. */
static void put(const struct uk_pack_u8 *p, uint8_t *run, size_t length, size_t k, size_t j,
                int8_t weight)
{
    size_t block = k / 8 * 8;
    if (p->is_4bit) {
        uint8_t *byte = run + block * UK_NR / 2 + j / 4 * 16 + j % 2 * 8 + k % 8;
        *byte = (uint8_t)(*byte | ((unsigned)weight & 15u) << (j % 4 / 2 * 4));
    } else if (length - block >= 8) {
        run[block * UK_NR + j * 8 + k % 8] = (uint8_t)weight;
    } else {
        run[block * UK_NR + j * 4 + k % 4] = (uint8_t)weight;
    }
}

/* Packs whole blocks of |count| neighbours that begin at |k|; returns how many weights it packed.
 */
static size_t put_words(const struct uk_pack_u8 *p, uint8_t *run, size_t k, size_t j,
                        const int8_t *from, size_t count)
{
    size_t done = 0;
    if (p->inner_stride != 1 || k % 8 != 0) {
        return 0;
    }
    for (; count - done >= 8; done += 8) {
        uint64_t eight, before;
        memcpy(&eight, from + done, sizeof(eight));
        if (!p->is_4bit) {
            memcpy(run + (k + done) * UK_NR + j * 8, &eight, sizeof(eight));
            continue;
        }
        uint8_t *to = run + (k + done) * UK_NR / 2 + j / 4 * 16 + j % 2 * 8;
        memcpy(&before, to, sizeof(before));
        eight = before | (eight & UINT64_C(0x0f0f0f0f0f0f0f0f)) << (j % 4 / 2 * 4);
        memcpy(to, &eight, sizeof(eight));
    }
    return done;
}
#else
/* Weight |k| of a run of |length|, in column |j|. */
static void put(const struct uk_pack_u8 *p, uint8_t *run, size_t length, size_t k, size_t j,
                int8_t weight)
{
    const size_t word = p->is_sorted ? 4 : UK_WORD, width = p->is_sorted ? UK_VL : UK_NR;
    (void)length;
    if (!p->is_4bit) {
        run[(k / word * width + j) * word + k % word] = (uint8_t)weight;
        return;
    }
    uint8_t *byte = &run[(k / (2 * UK_WORD) * UK_NR + j) * UK_WORD + k % UK_WORD];
    unsigned shift = k / UK_WORD % 2 * 4;
    *byte = (uint8_t)(*byte | ((unsigned)weight & 15u) << shift);
}

/* Packs whole words of |count| neighbours that begin at |k|; returns how many weights it packed. */
UK_INLINE size_t put_words_of(const struct uk_pack_u8 *p, uint8_t *run, size_t k, size_t j,
                              const int8_t *from, size_t count, const size_t word,
                              const size_t width)
{
    size_t unit = p->is_4bit ? 2 * word : word, done = 0;
    uint8_t *to = run + (k / unit * width + j) * word;
    if (p->inner_stride != 1 || k % unit != 0) {
        return 0;
    }
    for (; count - done >= unit; done += unit, to += width * word) {
        uint32_t low = 0, high = 0;
        memcpy(&low, from + done, word);
        if (p->is_4bit) {
            memcpy(&high, from + done + word, word);
            low = (low & 0x0f0f0f0f) | (high & 0x0f0f0f0f) << 4;
        }
        memcpy(to, &low, word);
    }
    return done;
}

static size_t put_words(const struct uk_pack_u8 *p, uint8_t *run, size_t k, size_t j,
                        const int8_t *from, size_t count)
{
    return p->is_sorted ? put_words_of(p, run, k, j, from, count, 4, UK_VL)
                        : put_words_of(p, run, k, j, from, count, UK_WORD, UK_NR);
}
#endif

/* Packs column |j| of |panel|, or of a strip of sorted words. */
static void pack_column(const struct uk_pack_u8 *p, uint8_t *panel, size_t j, const int8_t *src)
{
    const size_t unit = p->is_4bit ? 2 * UK_RUN_U8 : UK_RUN_U8;
    const size_t width = p->is_sorted ? UK_VL : UK_NR;
    size_t run = ((size_t)p->mid_count * p->inner_count + unit - 1) / unit * unit;
    for (size_t outer = 0; outer < p->outer_count; outer++) {
        uint8_t *to = panel + outer * run * width / (p->is_4bit ? 2 : 1);
        size_t k = 0;
        for (size_t mid = 0; mid < p->mid_count; mid++) {
            const int8_t *from =
                src + (ptrdiff_t)outer * p->outer_stride + (ptrdiff_t)mid * p->mid_stride;
            size_t inner = put_words(p, to, k, j, from, p->inner_count);
            k += inner;
            for (; inner < p->inner_count; inner++) {
                put(p, to, run, k++, j, from[(ptrdiff_t)inner * p->inner_stride]);
            }
        }
    }
}

#if UK_SORTS
#include "hal/cpu/uk/pack_u8_sorted.h"

static void pack_strip(const struct uk_pack_u8 *p, size_t k, uint8_t *strip, size_t first)
{
    for (size_t j = first; j < p->n && j < first + UK_VL; j++) {
        pack_column(p, strip + uk_sorted_bytes_u8(0, k), j - first,
                    p->src + (ptrdiff_t)j * p->column);
    }
    sort_strip(strip, k / 4);
}
#else
static void pack_strip(const struct uk_pack_u8 *p, size_t k, uint8_t *strip, size_t first)
{
    (void)p;
    (void)k;
    (void)strip;
    (void)first;
}
#endif

/* |panel| is zeros, and |first| its first column. */
static void pack_panel(const struct uk_pack_u8 *p, size_t k, uint8_t *panel, size_t first)
{
    for (size_t j = 0; p->is_sorted && j < UK_NV; j++) {
        pack_strip(p, k, panel + j * uk_sorted_bytes_u8(UK_VL, k), first + j * UK_VL);
    }
    for (size_t j = first; !p->is_sorted && j < p->n && j < first + UK_NR; j++) {
        pack_column(p, panel, j - first, p->src + (ptrdiff_t)j * p->column);
    }
}

void UK_NAME(pack_u8)(const struct uk_pack_u8 *p, uint32_t panel_begin, uint32_t panel_end)
{
    size_t unit = p->is_4bit ? 2 * UK_RUN_U8 : UK_RUN_U8;
    size_t run = ((size_t)p->mid_count * p->inner_count + unit - 1) / unit * unit;
    size_t k = p->outer_count * run;
    size_t bytes =
        p->is_sorted ? UK_NV * uk_sorted_bytes_u8(UK_VL, k) : k * UK_NR / (p->is_4bit ? 2 : 1);
    must(panel_begin <= panel_end && panel_end <= ((size_t)p->n + UK_NR - 1) / UK_NR);
    must(!p->is_sorted || (UK_SORTS && !p->is_4bit && k <= UK_DEPTH_U8_MAX));
    for (size_t i = panel_begin; i < panel_end; i++) {
        uint8_t *panel = p->packed + i * bytes;
        memset(panel, 0, bytes);
        pack_panel(p, k, panel, i * UK_NR);
    }
}

/* Puts tap |tap| of channel |c|, which may lie in another window than the first. With 16 bits,
 * taps 0 and 2 of all channels are in front of taps 1 and 3, but in NEON tap follows tap. */
static void put_tap(uint8_t *row, size_t tap, size_t shift, size_t c, int8_t weight)
{
    size_t window = tap / UK_DW_U8_TAPS * UK_DW_U8_SHIFTS + shift;
    size_t words = UK_DW_U8_TAPS / UK_WORD, word = tap % UK_DW_U8_TAPS % words;
    size_t number = (word * UK_VL + c) * UK_WORD + tap % UK_DW_U8_TAPS / words;
    int16_t wide = weight;
#if defined UK_LEVEL_NEON && UK_WORD == 2
    number = tap % UK_DW_U8_TAPS * UK_VL + c;
#endif
    row += window * UK_DW_WINDOW_BYTES;
    if (UK_WORD == 4) {
        row[number] = (uint8_t)weight;
    } else {
        memcpy(row + number * sizeof(wide), &wide, sizeof(wide));
    }
}

void UK_NAME(pack_dw_u8)(uint8_t *packed, const int8_t *w, uint32_t kernel_h, uint32_t kernel_w,
                         uint32_t channels)
{
    size_t row_bytes = UK_DW_U8_WINDOWS(kernel_w) * UK_DW_U8_SHIFTS * (size_t)UK_DW_WINDOW_BYTES;
    size_t blocks = ((size_t)channels + UK_VL - 1) / UK_VL;
    memset(packed, 0, blocks * kernel_h * row_bytes);
    for (size_t c = 0; c < channels; c++) {
        uint8_t *block = packed + c / UK_VL * kernel_h * row_bytes;
        for (size_t at = 0; at < (size_t)kernel_h * kernel_w; at++) {
            uint8_t *row = block + at / kernel_w * row_bytes;
            for (size_t shift = 0; shift < UK_DW_U8_SHIFTS; shift++) {
                put_tap(row, at % kernel_w + shift, shift, c % UK_VL, w[at * channels + c]);
            }
        }
    }
}
