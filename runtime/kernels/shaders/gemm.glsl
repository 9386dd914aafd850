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

/*
 * What lanes need of the constants for each operand. It is read once, because the compiler reads
 * memory again after every barrier. Steps are bytes between taps.
 */
struct Walk {
    uint channels, depth, taps_x; /* of a group; all summands of an output; taps of a line */
    bool is_in_order;             /* packed row |k| has the weights of summand |k| */
    int64_t in_y, in_x, spread_y, spread_x, step_y, step_x, width;
};

Walk walk;

void find_walk()
{
    walk.channels = uint(K.channels / K.groups);
    walk.taps_x = uint(K.x.taps);
    walk.depth = uint(K.y.taps) * walk.taps_x * walk.channels;
    walk.is_in_order = K.y.k_first == 0l && K.y.k_spread == 1l && K.x.k_first == 0l &&
                       K.x.k_spread == 1l && K.kernel_w == K.x.taps;
    walk.in_y = K.y.in;
    walk.in_x = K.x.in;
    walk.spread_y = K.y.spread;
    walk.spread_x = K.x.spread;
    walk.step_y = 4l * K.y.spread * K.line_in;
    walk.step_x = 4l * K.x.spread * K.channels;
    walk.width = K.width;
}

/* A pixel of the block: the place of its output, and the input position of its tap 0. */
struct Pixel {
    bool exists;
    int64_t out_;  /* floats */
    uint64_t from; /* address of tap 0, which may be in the padding */
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
    p.in_y = (b.y + y) * K.y.step + K.y.first;
    p.in_x = (b.x + x) * K.x.step + K.x.first;
    p.from = binding(1) + uint64_t(4l * (b.in_ + image * K.image_in + p.in_y * K.line_in +
                                         p.in_x * K.channels));
    return p;
}

/* The address of the channels of a pixel's tap; 0: in the padding. */
uint64_t tap_address(Pixel p, int64_t ty, int64_t tx)
{
    int64_t y = p.in_y + ty * walk.spread_y, x = p.in_x + tx * walk.spread_x;
    bool inside = p.exists && y >= 0l && y < walk.in_y && x >= 0l && x < walk.in_x;
    return inside ? p.from + uint64_t(ty * walk.step_y + tx * walk.step_x) : 0ul;
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
    return walk.depth;
}

/* The tap of summand |number|, counted in units of |channels|. */
ivec2 find_tap(uint number)
{
    return walk.depth == walk.channels ? ivec2(0)
                                       : ivec2(number % walk.taps_x, number / walk.taps_x);
}

/* Up to four channels from |c| on of the tap at |at|, one by one. */
vec4 read_singly(uint64_t at, uint c)
{
    vec4 a = vec4(0.0);
    for (uint i = 0u; i < 4u && c + i < walk.channels; i++) {
        a[i] = F32(at).at[c + i];
    }
    return a;
}

/* Four channels of a tap from |c| on, with zeros after the last. */
vec4 read_channels(uint64_t at, uint c)
{
    uint64_t first = at + uint64_t(4u * c);
    if (at == 0ul || c >= walk.channels) {
        return vec4(0.0);
    }
    return c + 4u <= walk.channels && (uint(first) & 15u) == 0u ? F32x4(first).at[0]
                                                                : read_singly(at, c);
}

/* Four summands from |first| on, which several taps may have, with zeros after the last. */
vec4 read_across(Pixel p, uint first)
{
    vec4 a = vec4(0.0);
    uint c = first % walk.channels;
    uint64_t at = 0ul;
    for (uint i = 0u; i < 4u && first + i < walk.depth; i++, c++) {
        if (i == 0u || c == walk.channels) {
            ivec2 tap = find_tap((first + i) / walk.channels);
            at = tap_address(p, tap.y, tap.x);
            c = i == 0u ? c : 0u;
        }
        a[i] = at != 0ul ? F32(at).at[c] : 0.0;
    }
    return a;
}

/* Four summands from |first| on, a multiple of 4, with zeros after the last. */
vec4 read_pixel(Pixel p, uint first)
{
    if (walk.depth == walk.channels) {
        return read_channels(tap_address(p, 0l, 0l), first);
    }
    if (walk.channels % 4u != 0u) {
        return read_across(p, first);
    }
    uint number = first / walk.channels;
    ivec2 tap = find_tap(number);
    return first < walk.depth
               ? read_channels(tap_address(p, tap.y, tap.x), first - number * walk.channels)
               : vec4(0.0);
}

/* The packed row of summand |k|. */
int64_t row_of(uint k)
{
    if (walk.is_in_order) {
        return int64_t(k);
    }
    ivec2 tap = find_tap(k / walk.channels);
    return tap_row(tap.y, tap.x) + k % walk.channels;
}

/* The weights of summand |k| in the four columns whose row 0 is at |weights|; 0: there are none. */
vec4 read_weights(uint64_t weights, uint k)
{
    return weights != 0ul && k < walk.depth
               ? F32x4(weights + uint64_t(4l * row_of(k) * walk.width)).at[0]
               : vec4(0.0);
}

/* The address of row 0 of the columns from |column| on; 0: beyond the last. */
uint64_t weights_of(Block b, uint column)
{
    return column < b.columns ? column_address(b, column) : 0ul;
}
