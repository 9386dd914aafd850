/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of qgemm.c: images of u8 pixels times packed s8 weights. It has the forms of
 * gemm.comp; variants as in enum rt_qgemm_variant. Devices without dot products of words multiply
 * the numbers as floats: a float multiply-add is fast everywhere, and the sum of EXACT products of
 * 8 bits by 8 bits is exact in a float.
 *
 * form qgemm_dots: -DGPU -DDOTS GL_EXT_spirv_intrinsics
 * form qgemm_gpu: -DGPU
 * form qgemm:
 */
#ifdef DOTS
#define CENTRED
#endif
#include "runtime/kernels/shaders/qgemm.glsl"

#define ROWS 4u /* outputs in a lane's registers */
#define COLUMNS 8u

/* ---- products of words --------------------------------------------------------------------- */

#ifdef DOTS

/* OpSDotKHR for words of four s8, from SPV_KHR_integer_dot_product: format 0. */
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450) int dot_words(uint a, uint b, spirv_literal int format);

#define NUMBERS uint /* the numbers of a word */
#define PART int     /* a sum of products since the last flush */

uint input_numbers(uint word)
{
    return word ^ 0x80808080u;
}

uint weight_numbers(uint word)
{
    return word;
}

int multiply(uint a, uint w)
{
    return dot_words(a, w, 0);
}

bool is_end(uint k)
{
    return variant == RT_QGEMM_GROUPED && k % K.group == 0u;
}

#else

#define NUMBERS vec4
#define PART float
#define EXACT 512u /* 255 * 128 * 512 < 2^24 */

vec4 input_numbers(uint word)
{
    return vec4(word & 0xffu, word >> 8 & 0xffu, word >> 16 & 0xffu, word >> 24);
}

vec4 weight_numbers(uint word)
{
    return vec4(int(word << 24) >> 24, int(word << 16) >> 24, int(word << 8) >> 24,
                int(word) >> 24);
}

float multiply(vec4 a, vec4 w)
{
    return dot(a, w);
}

bool is_end(uint k)
{
    return k % EXACT == 0u || (variant == RT_QGEMM_GROUPED && k % K.group == 0u);
}

#endif

/* A lane's sums for its outputs: [row][column]. */
struct Sums {
    PART part[ROWS * COLUMNS];   /* exact; since the last flush */
    int whole[ROWS * COLUMNS];   /* RT_QGEMM_PLAIN */
    float total[ROWS * COLUMNS]; /* RT_QGEMM_GROUPED */
};

void clear(inout Sums s)
{
    for (uint i = 0u; i < ROWS * COLUMNS; i++) {
        s.part[i] = PART(0);
        s.total[i] = 0.0;
        s.whole[i] = 0;
    }
}

/* Adds the products up to |k|, where is_end() is true or all end; columns are |step| apart. */
void flush(inout Sums s, Block b, uint k, uint column, uint step)
{
    for (uint j = 0u; j < COLUMNS; j++) {
        float scale = 1.0;
        if (variant == RT_QGEMM_GROUPED) {
            scale = group_scale(b, max(k, 1u) - 1u, min(column + j * step, b.columns - 1u));
        }
        for (uint m = 0u; m < ROWS; m++) {
            uint i = m * COLUMNS + j;
            if (variant == RT_QGEMM_GROUPED) {
                s.total[i] += float(s.part[i]) * scale;
            } else {
                s.whole[i] += int(s.part[i]);
            }
            s.part[i] = PART(0);
        }
    }
}

void add_products(inout Sums s, NUMBERS a[ROWS], NUMBERS w, uint j)
{
    for (uint m = 0u; m < ROWS; m++) {
        s.part[m * COLUMNS + j] += multiply(a[m], w);
    }
}

#ifndef GPU

/* ---- registers ----------------------------------------------------------------------------- */

void multiply_in_registers(Block b)
{
    Runs r = find_runs();
    uint wide = (b.columns + COLUMNS - 1u) / COLUMNS, high = (b.pixels + ROWS - 1u) / ROWS;
    for (uint item = lane(); item < wide * high; item += lanes()) {
        uint column = item % wide * COLUMNS, first = item / wide * ROWS, k = 0u;
        Pixel pixels[ROWS];
        uint64_t columns[COLUMNS];
        Sums s;
        clear(s);
        for (uint m = 0u; m < ROWS; m++) {
            pixels[m] = find_pixel(b, first + m);
        }
        for (uint j = 0u; j < COLUMNS; j++) {
            columns[j] = column_address(b, min(column + j, b.columns - 1u));
        }
        for (uint run = 0u; run < r.count; run++) {
            for (uint i = 0u; i < r.padded; i += WORD) {
                NUMBERS a[ROWS];
                for (uint m = 0u; m < ROWS; m++) {
                    a[m] = input_numbers(input_word(b, r, pixels[m], run, i));
                }
                for (uint j = 0u; j < COLUMNS; j++) {
                    add_products(s, a, weight_numbers(weight_word(columns[j], k)), j);
                }
                k += WORD;
                if (is_end(k)) {
                    flush(s, b, k, column, 1u);
                }
            }
        }
        flush(s, b, k, column, 1u);
        for (uint i = 0u; i < ROWS * COLUMNS; i++) {
            write_out(b, pixels[i / COLUMNS], column + i % COLUMNS, s.whole[i], s.total[i]);
        }
    }
}

void main()
{
    multiply_in_registers(find_block());
}

#else

/* ---- shared memory ------------------------------------------------------------------------- */

#define HIGH 32u  /* pixels that are multiplied at a time */
#define WIDE 64u  /* columns */
#define DEPTH 8u  /* words */

shared Pixel shared_pixels[HIGH];
shared uint64_t shared_columns[WIDE];
shared NUMBERS shared_a[DEPTH][HIGH + 1u]; /* the words of a pixel are in different banks */
shared NUMBERS shared_b[DEPTH][WIDE];

/* Copies |words| words from row |k| on, at most DEPTH. */
void share(Block b, Runs r, uint k, uint words)
{
    for (uint at = lane(); at < HIGH * words; at += lanes()) {
        uint d = at % words, m = at / words, row = k + d * WORD;
        uint run = r.count == 1u ? 0u : row / r.padded;
        shared_a[d][m] =
            input_numbers(input_word(b, r, shared_pixels[m], run, row - run * r.padded));
    }
    for (uint at = lane(); at < WIDE * words; at += lanes()) {
        uint j = at % WIDE, d = at / WIDE;
        shared_b[d][j] = weight_numbers(weight_word(shared_columns[j], k + d * WORD));
    }
}

/*
 * Computes HIGH x WIDE outputs. A lane's rows and columns are as far apart as there are lanes in
 * that direction: neighbouring lanes read neighbouring words, in different banks, and write
 * neighbouring results.
 */
void multiply_shared(Block b, Runs r, uint column)
{
    const uint across = WIDE / COLUMNS, down = HIGH / ROWS;
    for (uint part = 0u; part < across * down; part += lanes()) {
        uint x = (part + lane()) % across, y = (part + lane()) / across, rows = uint(K.k);
        bool works = y < down;
        Sums s;
        clear(s);
        y = works ? y : 0u;
        for (uint k = 0u; k < rows;) {
            uint words = min((rows - k) / WORD, DEPTH);
            share(b, r, k, words);
            barrier();
            for (uint d = 0u; d < words; d++) {
                NUMBERS a[ROWS];
                for (uint m = 0u; m < ROWS; m++) {
                    a[m] = shared_a[d][y + m * down];
                }
                for (uint j = 0u; j < COLUMNS; j++) {
                    add_products(s, a, shared_b[d][x + j * across], j);
                }
                k += WORD;
                if (is_end(k)) {
                    flush(s, b, k, column + x, across);
                }
            }
            barrier();
        }
        flush(s, b, rows, column + x, across);
        for (uint i = 0u; works && i < ROWS * COLUMNS; i++) {
            write_out(b, shared_pixels[y + i / COLUMNS * down], column + x + i % COLUMNS * across,
                      s.whole[i], s.total[i]);
        }
    }
}

void main()
{
    Block b = find_block();
    Runs r = find_runs();
    for (uint first = 0u; first < b.pixels; first += HIGH) {
        for (uint column = 0u; column < b.columns; column += WIDE) {
            barrier();
            for (uint m = lane(); m < HIGH; m += lanes()) {
                shared_pixels[m] = find_pixel(b, first + m);
            }
            for (uint j = lane(); j < WIDE; j += lanes()) {
                shared_columns[j] = column_address(b, min(column + j, b.columns - 1u));
            }
            barrier();
            multiply_shared(b, r, column);
        }
    }
}

#endif
