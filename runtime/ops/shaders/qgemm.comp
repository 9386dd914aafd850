/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of qgemm.c: images of u8 pixels times packed s8 weights, in the two forms that
 * gemm.comp has. Neighbours in k are taken four at a time, as a word, and multiplied as floats:
 * multiplying and adding those is fast everywhere, and EXACT products of 8 bits by 8 bits have a
 * sum that a float holds. Variants: see enum rt_qgemm_variant.
 *
 * form qgemm_gpu: -DGPU
 * form qgemm:
 */
#include "runtime/ops/shaders/element.glsl"
#include "runtime/ops/qgemm.h"

CONSTANTS(rt_qgemm);

#define WORD 4u
#define EXACT 512u /* 255 * 128 * 512 < 2^24 */
#define ROWS 4u    /* of outputs in a lane's registers */
#define COLUMNS 8u

/* Of the tile, the same for all lanes. */
struct Block {
    int y, x, nx; /* output positions */
    uint pixels, columns;
    uint64_t in_, weights, columns_at, scales; /* addresses: of the image's group, its panels */
    int64_t row, column;                       /* of the output: pixels and channels before it */
};

Block find_block()
{
    Block b;
    uvec3 t = tile();
    int64_t image = int64_t(t.y) / K.groups, group = int64_t(t.y) % K.groups;
    int64_t outs = K.outs / K.groups, panels = (outs + K.width - 1l) / K.width;
    int64_t first = int64_t(t.z) * K.panels, panel = group * panels + first;
    b.y = int(int64_t(t.x) / K.bands_x * K.band_y);
    b.x = int(int64_t(t.x) % K.bands_x * K.band_x);
    b.nx = int(min(K.band_x, K.x.out - b.x));
    b.pixels = uint(min(K.band_y, K.y.out - b.y)) * uint(b.nx);
    b.columns = uint(min(K.panels * K.width, outs - first * K.width));
    b.in_ = binding(RT_QGEMM_IN) + uint64_t(image * K.y.in * K.x.in * K.channels +
                                            group * (K.channels / K.groups));
    b.weights = binding(RT_QGEMM_WEIGHTS) + uint64_t(panel * K.panel_bytes);
    b.columns_at = binding(RT_QGEMM_COLUMNS) + uint64_t(panel * 4l * UK_COLUMN_ARRAYS * K.width);
    if (variant == RT_QGEMM_GROUPED) {
        b.scales = binding(RT_QGEMM_GROUPS) + uint64_t(panel * 4l * (K.k / K.group) * K.width);
    }
    b.row = image * K.y.out * K.x.out;
    b.column = group * outs + first * K.width;
    return b;
}

/* A pixel of the block: its place in the output's image, and the input position of its tap 0. */
struct Pixel {
    uint exists;
    int row;
    int in_y, in_x;
};

Pixel find_pixel(Block b, uint index)
{
    Pixel p;
    p.exists = uint(index < b.pixels);
    index = min(index, b.pixels - 1u);
    int y = b.y + int(index / uint(b.nx)), x = b.x + int(index % uint(b.nx));
    p.row = y * int(K.x.out) + x;
    p.in_y = y * int(K.y.stride) - int(K.y.padding);
    p.in_x = x * int(K.x.stride) - int(K.x.padding);
    return p;
}

/* ---- words --------------------------------------------------------------------------------- */

/* The runs of a pixel, as they are packed: see gather() in qgemm.c. */
struct Runs {
    uint count, whole, padded; /* and numbers of each, padded to whole words */
    uint channels, width;      /* of a tap; taps of a line that are runs of their own */
};

Runs find_runs()
{
    Runs r;
    uint taps = K.merges == 1u ? uint(K.x.kernel) : 1u, unit = K.is_4bit == 1u ? 8u : 4u;
    r.channels = uint(K.channels / K.groups);
    r.width = uint(K.x.kernel) / taps;
    r.count = uint(K.y.kernel) * r.width;
    r.whole = r.channels * taps;
    r.padded = (r.whole + unit - 1u) / unit * unit;
    return r;
}

vec4 unsigned_word(uint bits)
{
    return vec4(bits & 0xffu, bits >> 8 & 0xffu, bits >> 16 & 0xffu, bits >> 24);
}

vec4 signed_word(uint bits)
{
    return vec4(int(bits << 24) >> 24, int(bits << 16) >> 24, int(bits << 8) >> 24,
                int(bits) >> 24);
}

/* Where a tap has its channels; 0: in the padding. */
uint64_t tap_address(Block b, Pixel p, uint ty, uint tx)
{
    int y = p.in_y + int(ty) * int(K.y.dilation), x = p.in_x + int(tx) * int(K.x.dilation);
    bool inside = y >= 0 && y < int(K.y.in) && x >= 0 && x < int(K.x.in);
    return inside ? b.in_ + uint64_t((int64_t(y) * K.x.in + x) * K.channels) : 0ul;
}

/* Of run |run|, numbers k to k + 3. */
vec4 input_word(Block b, Runs r, Pixel p, uint run, uint k)
{
    uint ty = run / r.width, tx = run % r.width, c = k;
    vec4 word = vec4(0.0);
    if (r.whole != r.channels) {
        tx = k / r.channels;
        c = k - tx * r.channels;
    }
    uint64_t at = tap_address(b, p, ty, tx);
    if (c + WORD <= r.channels && (at == 0ul || ((uint(at) + c) & 3u) == 0u)) {
        return at == 0ul ? vec4(K.x_zero) : unsigned_word(U32(at + c).at[0]);
    }
    for (uint i = 0u; i < WORD && k + i < r.whole; i++) {
        word[i] = at == 0ul ? float(K.x_zero) : float(uint(U8(at + c).at[0]));
        if (++c == r.channels) {
            c = 0u;
            at = tap_address(b, p, ty, ++tx);
        }
    }
    return word;
}

/* Rows k to k + 3 of column |j|, as pack_u8.c puts them. */
vec4 weight_word(Block b, uint k, uint j)
{
    uint width = K.width, word = K.word;
    uint64_t panel = b.weights + uint64_t(int64_t(j / width) * K.panel_bytes);
    j %= width;
    if (word == WORD) {
        uint row = K.is_4bit == 1u ? k / 8u : k / 4u;
        uint bits = U32(panel).at[row * width + j];
        if (K.is_4bit == 1u) {
            bits = (k & 4u) == 0u ? bits << 4 : bits;
        }
        return signed_word(K.is_4bit == 1u ? bits & 0xf0f0f0f0u : bits);
    }
    if (K.is_4bit == 1u) {
        uint bits = uint(U16(panel).at[k / 4u * width + j]);
        return signed_word((bits << 4 & 0xf0f0u) | (bits & 0xf0f0u) << 16);
    }
    uint low = uint(U16(panel).at[k / 2u * width + j]);
    return signed_word(low | uint(U16(panel).at[(k / 2u + 1u) * width + j]) << 16);
}

/* ---- results ------------------------------------------------------------------------------- */

/* What a lane has of its outputs: [row][column]. */
struct Sums {
    float part[ROWS * COLUMNS];  /* exact; since the last flush */
    int whole[ROWS * COLUMNS];   /* RT_QGEMM_PLAIN */
    float total[ROWS * COLUMNS]; /* RT_QGEMM_GROUPED */
};

void clear(inout Sums s)
{
    for (uint i = 0u; i < ROWS * COLUMNS; i++) {
        s.part[i] = s.total[i] = 0.0;
        s.whole[i] = 0;
    }
}

/* The products up to |k|, which is a group's end or EXACT of them; columns are |step| apart. */
void flush(inout Sums s, Block b, uint k, uint column, uint step)
{
    for (uint j = 0u; j < COLUMNS; j++) {
        float scale = 1.0;
        if (variant == RT_QGEMM_GROUPED) {
            uint c = min(column + j * step, b.columns - 1u), groups = uint(K.k) / K.group;
            uint row = c / K.width * groups + (max(k, 1u) - 1u) / K.group;
            scale = F32(b.scales).at[row * K.width + c % K.width];
        }
        for (uint m = 0u; m < ROWS; m++) {
            uint i = m * COLUMNS + j;
            if (variant == RT_QGEMM_GROUPED) {
                s.total[i] += s.part[i] * scale;
            } else {
                s.whole[i] += int(s.part[i]);
            }
            s.part[i] = 0.0;
        }
    }
}

bool is_end(uint k)
{
    return k % EXACT == 0u || (variant == RT_QGEMM_GROUPED && k % K.group == 0u);
}

void multiply(inout Sums s, vec4 a[ROWS], vec4 w, uint j)
{
    for (uint m = 0u; m < ROWS; m++) {
        s.part[m * COLUMNS + j] += dot(a[m], w);
    }
}

/* See struct uk_gemm_u8. */
void write_out(Block b, Pixel p, uint column, int whole, float total)
{
    if (p.exists == 0u || column >= b.columns) {
        return;
    }
    uint64_t at = b.columns_at +
                  uint64_t(4u * (column / K.width * UK_COLUMN_ARRAYS * K.width + column % K.width));
    int64_t row = b.row + p.row, to = row * K.outs + b.column + column;
    precise float scale = F32(at).at[UK_COLUMN_SCALE * K.width], row_scale = 1.0;
    precise float bias = F32(at).at[UK_COLUMN_BIAS * K.width];
    int zero = 0;
    if (binding(RT_QGEMM_ROW_SCALES) != 0ul) {
        row_scale = F32(binding(RT_QGEMM_ROW_SCALES) + uint64_t(4l * row)).at[0];
        zero = int(U32(binding(RT_QGEMM_ROW_ZEROS) + uint64_t(4l * row)).at[0]);
    }
    precise float factor = scale * row_scale, y;
    if (variant == RT_QGEMM_GROUPED) {
        total += F32(at).at[UK_COLUMN_OFFSET * K.width];
        total -= float(zero) * F32(at).at[UK_COLUMN_SUM * K.width];
        y = total * factor + bias;
    } else {
        whole += int(U32(at).at[UK_COLUMN_OFFSET * K.width]);
        whole -= zero * int(U32(at).at[UK_COLUMN_SUM * K.width]);
        y = float(whole) * factor + bias;
    }
    y = is_nan(y) ? y : min(max(y, K.min), K.max);
    if (K.is_f32 == 1u) {
        F32(binding(RT_QGEMM_OUT) + uint64_t(4l * to)).at[0] = y;
    } else {
        U8(binding(RT_QGEMM_OUT) + uint64_t(to)).at[0] = uint8_t(int(roundEven(y)) + K.zero);
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
        Sums s;
        clear(s);
        for (uint m = 0u; m < ROWS; m++) {
            pixels[m] = find_pixel(b, first + m);
        }
        for (uint run = 0u; run < r.count; run++) {
            for (uint i = 0u; i < r.padded; i += WORD) {
                vec4 a[ROWS];
                for (uint m = 0u; m < ROWS; m++) {
                    a[m] = input_word(b, r, pixels[m], run, i);
                }
                for (uint j = 0u; j < COLUMNS; j++) {
                    multiply(s, a, weight_word(b, k, min(column + j, b.columns - 1u)), j);
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
shared vec4 shared_a[DEPTH][HIGH];
shared vec4 shared_b[DEPTH][WIDE];

/* Up to DEPTH words of a run from |i| on, which are rows from |k| on. */
void share(Block b, Runs r, uint column, uint run, uint i, uint k, uint words)
{
    for (uint at = lane(); at < HIGH * words; at += lanes()) {
        uint d = at % words, m = at / words;
        shared_a[d][m] = input_word(b, r, shared_pixels[m], run, i + d * WORD);
    }
    for (uint at = lane(); at < WIDE * words; at += lanes()) {
        uint j = at % WIDE, d = at / WIDE;
        shared_b[d][j] = weight_word(b, k + d * WORD, min(column + j, b.columns - 1u));
    }
}

/*
 * HIGH x WIDE outputs. A lane's rows and columns lie as many apart as there are lanes beside it:
 * neighbours read neighbouring words, of different banks, and write neighbouring results.
 */
void multiply_shared(Block b, Runs r, uint first, uint column)
{
    const uint across = WIDE / COLUMNS, down = HIGH / ROWS;
    for (uint part = 0u; part < across * down; part += lanes()) {
        uint x = (part + lane()) % across, y = (part + lane()) / across, k = 0u;
        bool works = y < down;
        Sums s;
        clear(s);
        y = works ? y : 0u;
        for (uint run = 0u; run < r.count; run++) {
            for (uint i = 0u; i < r.padded;) {
                uint words = min((r.padded - i) / WORD, DEPTH);
                share(b, r, column, run, i, k, words);
                barrier();
                for (uint d = 0u; d < words; d++) {
                    vec4 a[ROWS];
                    for (uint m = 0u; m < ROWS; m++) {
                        a[m] = shared_a[d][y + m * down];
                    }
                    for (uint j = 0u; j < COLUMNS; j++) {
                        multiply(s, a, shared_b[d][x + j * across], j);
                    }
                    k += WORD;
                    if (is_end(k)) {
                        flush(s, b, k, column + x, across);
                    }
                }
                i += words * WORD;
                barrier();
            }
        }
        flush(s, b, k, column + x, across);
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
        barrier();
        for (uint m = lane(); m < HIGH; m += lanes()) {
            shared_pixels[m] = find_pixel(b, first + m);
        }
        barrier();
        for (uint column = 0u; column < b.columns; column += WIDE) {
            multiply_shared(b, r, first, column);
        }
    }
}

#endif
