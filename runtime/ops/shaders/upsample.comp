/* SPDX-License-Identifier: MIT */
/* Nearest and bilinear resampling, by variant, with the arithmetic of upsample.c. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/upsample.h"

CONSTANTS(rt_upsample_constants);

struct Blend {
    int64_t a, b;
    float weight;
};

Blend blend_of(rt_upsample_dim dim, int64_t at)
{
    precise float center = (float(at) + 0.5) * dim.scale;
    precise float source = K.align_corners == 1u ? float(at) * dim.scale : max(0.0, center - 0.5);
    int64_t a = min(int64_t(source), dim.in - 1l);
    return Blend(a, min(a + 1l, dim.in - 1l), min(source - float(a), 1.0));
}

int64_t nearest(rt_upsample_dim dim, int64_t at)
{
    precise float source = float(at) * dim.scale;
    return min(int64_t(floor(source)), dim.in - 1l);
}

float corner(uint64_t x, int64_t row, int64_t column)
{
    uint width = dtype_width(K.dtype);
    return load_float(x + uint64_t((row * K.x.h + column * K.x.w) * width), K.dtype);
}

float bilinear(uint64_t x, Blend h, Blend w)
{
    float upper = (1.0 - w.weight) * corner(x, h.a, w.a) + w.weight * corner(x, h.a, w.b);
    float lower = (1.0 - w.weight) * corner(x, h.b, w.a) + w.weight * corner(x, h.b, w.b);
    return (1.0 - h.weight) * upper + h.weight * lower;
}

void move(uint64_t to, uint64_t from, uint width)
{
    switch (width) {
    case 1:
        U8(to).at[0] = U8(from).at[0];
        break;
    case 2:
        U16(to).at[0] = U16(from).at[0];
        break;
    case 4:
        U32(to).at[0] = U32(from).at[0];
        break;
    default:
        U64(to).at[0] = U64(from).at[0];
    }
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, line = K.w.out * K.channels;
    int64_t end = min(first + K.tile, K.images * K.h.out) * line;
    uint width = dtype_width(K.dtype);
    bool is_innermost = K.y.c == 1l; /* lanes take neighbours in memory */
    for (int64_t i = first * line + lane(); i < end; i += lanes()) {
        int64_t row = i / line, rest = i % line, n = row / K.h.out;
        int64_t channel = is_innermost ? rest % K.channels : rest / K.w.out;
        int64_t column = is_innermost ? rest / K.channels : rest % K.w.out;
        row %= K.h.out;
        uint64_t x = binding(1) + uint64_t((n * K.x.n + channel * K.x.c) * width);
        uint64_t y = binding(0) + uint64_t((n * K.y.n + channel * K.y.c + row * K.y.h +
                                            column * K.y.w) * width);
        if (variant == RT_UPSAMPLE_NEAREST) {
            int64_t at = nearest(K.h, row) * K.x.h + nearest(K.w, column) * K.x.w;
            move(y, x + uint64_t(at * width), width);
        } else {
            store_float(y, K.dtype, bilinear(x, blend_of(K.h, row), blend_of(K.w, column)));
        }
    }
}
