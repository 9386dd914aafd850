/* SPDX-License-Identifier: MIT */
/* Shared by the forms of gemm.c's dispatch: the outputs of a workgroup, the places of outputs and
 * operands, and the operations on a sum before it is written. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/gemm.h"

CONSTANTS(rt_gemm);

/* The outputs of the tile; the same for all lanes. */
struct Block {
    int64_t y, x, ny, nx;    /* output positions */
    uint pixels;             /* of all images of the tile */
    uint columns;            /* of this tile */
    int64_t out_, in_, bias; /* floats before the tile's first image, group and column */
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

/* A pixel of the block: the place of its output, and the input position of its tap 0. */
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

/* The address of the channels of a pixel's tap; 0: in the padding. */
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

/* The address of column |j| of the block in row 0 of the packed weights. */
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
    v = is_nan(v) ? v : min(max(v, K.min), K.max);
    F32(binding(0) + at).at[0] = K.is_rounded != 0l ? f16_to_f32(f32_to_f16(v)) : v;
}

/* ---- operands for shared memory ------------------------------------------------------------ */

/* The number of summands of an output: the channels of all taps. */
uint depth()
{
    return uint(K.y.taps * K.x.taps * (K.channels / K.groups));
}

/* The tap of summand |number|, counted in units of |channels|. */
ivec2 find_tap(uint number)
{
    uint taps_x = uint(K.x.taps);
    return ivec2(number % taps_x, number / taps_x);
}

/* Four summands from |first| on, with zeros after the last. */
vec4 read_pixel(Pixel p, uint first)
{
    vec4 a = vec4(0.0);
    uint channels = uint(K.channels / K.groups), c = first % channels, end = depth();
    uint64_t at = 0ul;
    for (uint i = 0u; i < 4u && first + i < end; i++, c++) {
        if (i == 0u || c == channels) {
            ivec2 tap = find_tap((first + i) / channels);
            at = tap_address(p, tap.y, tap.x);
            c = i == 0u ? c : 0u;
        }
        a[i] = at != 0ul ? F32(at).at[c] : 0.0;
    }
    return a;
}

/* The weights of summand |k| in four columns from |column| on. */
vec4 read_weights(Block b, uint k, uint column)
{
    if (k >= depth() || column >= b.columns) {
        return vec4(0.0);
    }
    uint channels = uint(K.channels / K.groups);
    ivec2 tap = find_tap(k / channels);
    int64_t row = tap_row(tap.y, tap.x) + k % channels;
    return F32x4(column_address(b, column) + uint64_t(4l * row * K.width)).at[0];
}
