/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/amx_soft.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk/amx.h"

/* Numbers of four bytes in a row of a tile. */
#define ROW_WORDS (AMX_ROW_BYTES / 4)

union row {
    uint8_t bytes[AMX_ROW_BYTES];
    uint32_t words[ROW_WORDS];
    float floats[ROW_WORDS];
};

/* A thread's: |config.palette| is 0 while there are no tiles. */
static _Thread_local struct {
    struct amx_config config;
    union row tiles[AMX_TILES][AMX_ROWS];
} state;

static size_t rows_of(int tile)
{
    must(state.config.palette == 1 && tile >= 0 && tile < AMX_TILES);
    return state.config.rows[tile];
}

static size_t bytes_of(int tile)
{
    must(state.config.palette == 1 && tile >= 0 && tile < AMX_TILES);
    return state.config.row_bytes[tile];
}

void amx_configure(const struct amx_config *config)
{
    must(config->palette == 1 && config->start_row == 0);
    for (size_t i = 0; i < sizeof(config->reserved); i++) {
        must(config->reserved[i] == 0);
    }
    for (int i = 0; i < AMX_ROWS; i++) {
        must(config->rows[i] <= AMX_ROWS && config->row_bytes[i] <= AMX_ROW_BYTES);
        must((config->rows[i] == 0) == (config->row_bytes[i] == 0));
        must(i < AMX_TILES || config->rows[i] == 0);
    }
    memset(&state, 0, sizeof(state));
    state.config = *config;
}

void amx_release(void)
{
    memset(&state, 0, sizeof(state));
}

void amx_soft_zero(int tile)
{
    must(rows_of(tile) > 0);
    memset(state.tiles[tile], 0, sizeof(state.tiles[tile]));
}

void amx_soft_load(int tile, const void *from, ptrdiff_t stride)
{
    amx_soft_zero(tile);
    for (size_t i = 0; i < rows_of(tile); i++) {
        const char *row = (const char *)from + (ptrdiff_t)i * stride;
        memcpy(state.tiles[tile][i].bytes, row, bytes_of(tile));
    }
}

void amx_soft_store(int tile, void *to, ptrdiff_t stride)
{
    must(rows_of(tile) > 0);
    for (size_t i = 0; i < rows_of(tile); i++) {
        char *row = (char *)to + (ptrdiff_t)i * stride;
        memcpy(row, state.tiles[tile][i].bytes, bytes_of(tile));
    }
}

/* Do the shapes of the tiles fit? */
static void check_product(int c, int a, int b)
{
    must(c != a && c != b && a != b);
    must(rows_of(c) > 0 && rows_of(c) == rows_of(a));
    must(bytes_of(c) == bytes_of(b) && bytes_of(a) == 4 * rows_of(b));
    must(bytes_of(c) % 4 == 0);
}

void amx_soft_dot_u8(int c, int a, int b)
{
    check_product(c, a, b);
    for (size_t m = 0; m < rows_of(c); m++) {
        for (size_t k = 0; k < rows_of(b); k++) {
            const uint8_t *x = state.tiles[a][m].bytes + 4 * k;
            for (size_t n = 0; n < bytes_of(c) / 4; n++) {
                const uint8_t *y = state.tiles[b][k].bytes + 4 * n;
                for (int i = 0; i < 4; i++) {
                    int32_t product = (int32_t)x[i] * (int8_t)y[i];
                    state.tiles[c][m].words[n] += (uint32_t)product;
                }
            }
        }
    }
}

/* Numbers below the smallest normal one are zero, in and out. */
static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* The number in the lower or the upper half of a word. */
static float half(uint32_t word, bool is_upper)
{
    uint32_t bits = is_upper ? word & 0xffff0000 : word << 16;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return flush(x);
}

/* A row of C: the even k, the odd ones, both, and then C. */
static void dot_row(union row *c, const union row *a, const union row *b, size_t words, size_t n)
{
    float sums[2][ROW_WORDS] = {0};
    for (size_t k = 0; k < words; k++) {
        for (size_t j = 0; j < n; j++) {
            for (int i = 0; i < 2; i++) {
                float x = half(a->words[k], i), y = half(b[k].words[j], i);
                sums[i][j] = flush(fmaf(x, y, sums[i][j]));
            }
        }
    }
    for (size_t j = 0; j < n; j++) {
        c->floats[j] = flush(flush(c->floats[j]) + flush(sums[0][j] + sums[1][j]));
    }
}

void amx_soft_dot_bf16(int c, int a, int b)
{
    check_product(c, a, b);
    for (size_t m = 0; m < rows_of(c); m++) {
        dot_row(&state.tiles[c][m], &state.tiles[a][m], state.tiles[b], rows_of(b),
                bytes_of(c) / 4);
    }
}
