/* SPDX-License-Identifier: MIT */
/*
 * The dispatch of gemm.c: images of pixels times packed weights, in two forms. On vector units a
 * lane has a tile of ROWS x 8 outputs in registers and reads both operands itself; on a GPU the
 * workgroup brings DEPTH channels of both into shared memory, from where each lane multiplies the
 * rows and columns of its own outputs.
 *
 * form gemm_gpu: -DGPU
 * form gemm:
 */
#include "runtime/ops/shaders/element.glsl"
#include "runtime/ops/gemm.h"

CONSTANTS(rt_gemm);

#define ROWS 4u /* of outputs in a lane's registers */

/* Of the tile, the same for all lanes. */
struct Block {
    int64_t y, x, ny, nx;    /* output positions */
    uint pixels;             /* of all images of the tile */
    uint columns;            /* of this tile */
    int64_t out_, in_, bias; /* floats to the tile's first image, group and column */
    uint64_t weights;        /* address of its first panel */
};

Block find_block()
{
    Block b;
    uvec3 t = tile();
    int64_t image = int64_t(t.y) / K.groups * K.band_images, group = int64_t(t.y) % K.groups;
    int64_t group_outs = K.outs / K.groups, column = int64_t(t.z) * K.panels * K.width;
    b.y = int64_t(t.x) / K.bands_x * K.band_y;
    b.x = int64_t(t.x) % K.bands_x * K.band_x;
    b.ny = min(K.band_y, K.y.out - b.y);
    b.nx = min(K.band_x, K.x.out - b.x);
    b.pixels = uint(min(K.band_images, K.images - image) * b.ny * b.nx);
    b.columns = uint(min(K.panels * K.width, group_outs - column));
    b.bias = group * group_outs + column;
    b.out_ = image * K.image_out + b.bias + K.offset_out;
    b.in_ = image * K.image_in + group * (K.channels / K.groups);
    b.weights = binding(2) + uint64_t(4l * (image * K.image_b + group * K.group_b + column * K.k));
    return b;
}

/* A pixel of the block: where it is written, and the input positions of its tap 0. */
struct Pixel {
    bool exists;
    int64_t out_, image_in; /* floats */
    int64_t in_y, in_x;
};

Pixel find_pixel(Block b, uint index)
{
    Pixel p;
    p.exists = index < b.pixels;
    index = min(index, b.pixels - 1u);
    uint nx = uint(b.nx), ny = uint(b.ny), x = index % nx, y = index / nx % ny;
    int64_t image = int64_t(index / nx / ny);
    p.out_ = b.out_ + image * K.image_out + (b.y + y) * K.line_out + (b.x + x) * K.pixel_out;
    p.image_in = b.in_ + image * K.image_in;
    p.in_y = (b.y + y) * K.y.step + K.y.first;
    p.in_x = (b.x + x) * K.x.step + K.x.first;
    return p;
}

/* Where the pixel's tap has its channels; 0: in the padding. */
uint64_t tap_address(Pixel p, int64_t ty, int64_t tx)
{
    int64_t y = p.in_y + ty * K.y.spread, x = p.in_x + tx * K.x.spread;
    bool inside = p.exists && y >= 0l && y < K.y.in && x >= 0l && x < K.x.in;
    return inside ? binding(1) + uint64_t(4l * (p.image_in + y * K.line_in + x * K.channels)) : 0ul;
}

/* The packed row of a tap's first channel. */
int64_t tap_row(int64_t ty, int64_t tx)
{
    return ((K.y.k_first + ty * K.y.k_spread) * K.kernel_w + K.x.k_first + tx * K.x.k_spread) *
           (K.channels / K.groups);
}

/* Where row 0 of the packed weights has column |j| of the block. */
uint64_t column_address(Block b, uint j)
{
    uint width = uint(K.width);
    return b.weights + uint64_t(4l * (int64_t(j / width) * K.width * K.k + int64_t(j % width)));
}

void write_out(Block b, Pixel p, uint column, float v)
{
    if (!p.exists || column >= b.columns) {
        return;
    }
    uint64_t at = uint64_t(4l * (p.out_ + column));
    if (binding(3) != 0ul) {
        v += F32(binding(3) + uint64_t(4l * (b.bias + column))).at[0];
    }
    if (binding(4) != 0ul) {
        v += F32(binding(4) + at).at[0];
    }
    F32(binding(0) + at).at[0] = is_nan(v) ? v : min(max(v, K.min), K.max);
}

#ifndef GPU

/* ---- registers ----------------------------------------------------------------------------- */

void multiply_taps(Block b, Pixel pixels[ROWS], uint column, inout vec4 sums[2u * ROWS])
{
    int64_t channels = K.channels / K.groups;
    for (int64_t ty = 0l; ty < K.y.taps; ty++) {
        for (int64_t tx = 0l; tx < K.x.taps; tx++) {
            uint64_t at[ROWS], any = 0ul;
            vec4 exists;
            for (uint m = 0u; m < ROWS; m++) {
                at[m] = tap_address(pixels[m], ty, tx);
                exists[m] = at[m] != 0ul ? 1.0 : 0.0;
                any = at[m] != 0ul ? at[m] : any;
            }
            if (any == 0ul) {
                continue;
            }
            for (uint m = 0u; m < ROWS; m++) {
                at[m] = at[m] != 0ul ? at[m] : any; /* something to read, and then not to use */
            }
            uint64_t row = column_address(b, column) + uint64_t(4l * tap_row(ty, tx) * K.width);
            for (uint c = 0u; c < uint(channels); c++) {
                vec4 w0 = F32x4(row).at[0], w1 = F32x4(row).at[1];
                row += uint64_t(4l * K.width);
                for (uint m = 0u; m < ROWS; m++) {
                    float a = exists[m] != 0 ? F32(at[m]).at[c] : 0.0;
                    sums[2u * m] += a * w0;
                    sums[2u * m + 1u] += a * w1;
                }
            }
        }
    }
}

void multiply_in_registers(Block b)
{
    uint wide = (b.columns + 7u) / 8u, high = (b.pixels + ROWS - 1u) / ROWS;
    for (uint item = lane(); item < wide * high; item += lanes()) {
        uint column = item % wide * 8u, first = item / wide * ROWS;
        Pixel pixels[ROWS];
        vec4 sums[2u * ROWS];
        for (uint m = 0u; m < ROWS; m++) {
            pixels[m] = find_pixel(b, first + m);
            sums[2u * m] = sums[2u * m + 1u] = vec4(0.0);
        }
        multiply_taps(b, pixels, column, sums);
        for (uint m = 0u; m < ROWS; m++) {
            for (uint j = 0u; j < 8u; j++) {
                write_out(b, pixels[m], column + j, sums[2u * m + j / 4u][j % 4u]);
            }
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
#define DEPTH 16u /* channels */

shared Pixel shared_pixels[HIGH]; /* finding one divides, once for all of its channels */
shared float shared_a[DEPTH][HIGH + 1u]; /* a column's channels are in different banks */
shared vec4 shared_b[DEPTH][WIDE / 4u];

/* Channels [begin, begin + DEPTH) of a tap, zeros behind the last. */
void share(Block b, uint column, int64_t ty, int64_t tx, uint begin)
{
    uint channels = uint(K.channels / K.groups);
    for (uint i = lane(); i < HIGH * DEPTH; i += lanes()) {
        uint c = i % DEPTH, m = i / DEPTH;
        uint64_t at = tap_address(shared_pixels[m], ty, tx);
        shared_a[c][m] = at != 0ul && begin + c < channels ? F32(at).at[begin + c] : 0.0;
    }
    for (uint i = lane(); i < WIDE / 4u * DEPTH; i += lanes()) {
        uint j = i % (WIDE / 4u), c = i / (WIDE / 4u);
        vec4 w = vec4(0.0);
        if (begin + c < channels && column + 4u * j < b.columns) {
            w = F32x4(column_address(b, column + 4u * j) +
                      uint64_t(4l * (tap_row(ty, tx) + begin + c) * K.width)).at[0];
        }
        shared_b[c][j] = w;
    }
}

/*
 * Of HIGH x WIDE outputs those of tile |part| of ROWS x 8, if there is one. Its rows and its two
 * vectors of columns lie as many apart as there are tiles beside it: neighbouring lanes read
 * neighbouring vectors, of different banks, and write neighbouring results.
 */
void multiply_shared(Block b, uint column, uint part)
{
    const uint across = WIDE / 8u, down = HIGH / ROWS;
    uint x = part % across, y = part / across;
    bool works = y < down;
    vec4 sums[2u * ROWS];
    for (uint m = 0u; m < 2u * ROWS; m++) {
        sums[m] = vec4(0.0);
    }
    y = works ? y : 0u;
    for (int64_t ty = 0l; ty < K.y.taps; ty++) {
        for (int64_t tx = 0l; tx < K.x.taps; tx++) {
            for (uint c = 0u; c < uint(K.channels / K.groups); c += DEPTH) {
                share(b, column, ty, tx, c);
                barrier();
                for (uint d = 0u; d < DEPTH; d++) {
                    vec4 w0 = shared_b[d][x], w1 = shared_b[d][x + across];
                    for (uint m = 0u; m < ROWS; m++) {
                        float a = shared_a[d][y + m * down];
                        sums[2u * m] += a * w0;
                        sums[2u * m + 1u] += a * w1;
                    }
                }
                barrier();
            }
        }
    }
    for (uint m = 0u; m < ROWS; m++) {
        Pixel p = shared_pixels[y + m * down];
        p.exists = p.exists && works;
        for (uint j = 0u; j < 8u; j++) {
            uint at = column + 4u * (x + j / 4u * across) + j % 4u;
            write_out(b, p, at, sums[2u * m + j / 4u][j % 4u]);
        }
    }
}

void main()
{
    Block b = find_block();
    for (uint first = 0u; first < b.pixels; first += HIGH) {
        barrier();
        for (uint m = lane(); m < HIGH; m += lanes()) {
            shared_pixels[m] = find_pixel(b, first + m);
        }
        barrier();
        for (uint column = 0u; column < b.columns; column += WIDE) {
            for (uint part = 0u; part < HIGH / ROWS * (WIDE / 8u); part += lanes()) {
                multiply_shared(b, column, part + lane());
            }
        }
    }
}

#endif
