/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/torchao.h"

#include <string.h>

#define MAGIC 6712
#define UNIVERSAL 1
#define STEP (RT_TORCHAO_ROWS * RT_TORCHAO_COLUMNS) /* numbers */
#define RUN 8                                       /* columns of a row that are contiguous */

/* Words of the header behind the first two. */
enum { WORD_MAGIC, WORD_FORMAT, WORD_BITS, WORD_OTHERS };

static int64_t step_bytes(const struct rt_torchao *m)
{
    return m->is_4bit ? STEP / 2 : STEP;
}

static int64_t group_bytes(const struct rt_torchao *m)
{
    return m->group / RT_TORCHAO_COLUMNS * step_bytes(m) +
           RT_TORCHAO_ROWS * (int64_t)(sizeof(float) + sizeof(int32_t));
}

static int64_t block_bytes(const struct rt_torchao *m)
{
    return m->columns / m->group * group_bytes(m);
}

int64_t rt_torchao_bytes(const struct rt_torchao *m)
{
    int64_t blocks = (m->rows + RT_TORCHAO_ROWS - 1) / RT_TORCHAO_ROWS;
    return RT_TORCHAO_HEADER_BYTES + blocks * block_bytes(m);
}

enum status rt_torchao_check(struct span packed, const struct rt_torchao *m, struct error *err)
{
    /* no zero points, no bias, the sizes of blocks, in which runs are halves of 16 columns */
    static const uint32_t others[] = {
        0, 0, RT_TORCHAO_ROWS, RT_TORCHAO_COLUMNS, 2, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t words[RT_TORCHAO_HEADER_BYTES / sizeof(uint32_t)];
    uint32_t bits = m->is_4bit ? 4 : 8;

    if (packed.len < sizeof(words)) {
        return error_set(err, ST_INVALID, "%zu bytes are no header of torchao", packed.len);
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        words[i] = load_le32(packed.ptr + i * sizeof(words[0]));
    }
    if (words[WORD_MAGIC] != MAGIC || words[WORD_FORMAT] == 0) {
        return error_set(err, ST_INVALID,
                         "the header of torchao begins with %u and %u, expected %u and a format",
                         words[WORD_MAGIC], words[WORD_FORMAT], MAGIC);
    }
    if (words[WORD_FORMAT] != UNIVERSAL) {
        return error_set(err, ST_UNSUPPORTED,
                         "torchao's format %u is not supported, only %u (universal)",
                         words[WORD_FORMAT], UNIVERSAL);
    }
    if (words[WORD_BITS] != bits) {
        return error_set(err, ST_INVALID, "torchao's header says %u bits, expected %u",
                         words[WORD_BITS], bits);
    }
    return memcmp(words + WORD_OTHERS, others, sizeof(others)) == 0
               ? ST_OK
               : error_set(err, ST_UNSUPPORTED,
                           "torchao's weights with zero points, a bias or other blocks than of "
                           "%d x %d are not supported",
                           RT_TORCHAO_ROWS, RT_TORCHAO_COLUMNS);
}

static void unpack_step(const struct rt_torchao *m, const uint8_t *from, int8_t numbers[STEP])
{
    if (!m->is_4bit) {
        memcpy(numbers, from, STEP);
        return;
    }
    for (int64_t i = 0; i < STEP / 2; i++) {
        int8_t *to = numbers + i / 16 * 32 + i % 16;
        to[0] = (int8_t)((from[i] & 15) - 8);
        to[16] = (int8_t)((from[i] >> 4) - 8);
    }
}

/* |to| is column 0 of a step in row 0. */
static void place_step(const struct rt_torchao *m, const int8_t numbers[STEP],
                       const int64_t places[RT_TORCHAO_ROWS], int8_t *to)
{
    for (int64_t half = 0; half < 2; half++) {
        for (int64_t row = 0; row < RT_TORCHAO_ROWS; row++) {
            const int8_t *from = numbers + (half * RT_TORCHAO_ROWS + row) * RUN;
            if (places[row] >= 0) {
                memcpy(to + places[row] * m->columns + half * RUN, from, RUN);
            }
        }
    }
}

void rt_torchao_unpack(const struct rt_torchao *m, const uint8_t *packed, int64_t block,
                       const int64_t places[RT_TORCHAO_ROWS], int8_t *numbers, float *scales)
{
    int64_t groups = m->columns / m->group;
    const uint8_t *from = packed + block * block_bytes(m);

    for (int64_t g = 0; g < groups; g++, from += group_bytes(m)) {
        const uint8_t *scale = from + m->group / RT_TORCHAO_COLUMNS * step_bytes(m);
        for (int64_t k = 0; k < m->group; k += RT_TORCHAO_COLUMNS) {
            int8_t step[STEP];
            unpack_step(m, from + k / RT_TORCHAO_COLUMNS * step_bytes(m), step);
            place_step(m, step, places, numbers + g * m->group + k);
        }
        for (int64_t row = 0; row < RT_TORCHAO_ROWS; row++) {
            if (places[row] >= 0) {
                memcpy(scales + places[row] * groups + g, scale + row * (int64_t)sizeof(float),
                       sizeof(float));
            }
        }
    }
}
