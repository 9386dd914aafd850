/* SPDX-License-Identifier: MIT */
/* Windows of images: both kernels of pool.c, by variant. That file defines the windows. */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/pool.h"

CONSTANTS(rt_pool_constants);

struct Window {
    int64_t begin, count, padded, step;
};

Window window_of(rt_pool_dim dim, int64_t at)
{
    if (K.mode >= RT_POOL_ADAPTIVE) {
        int64_t begin = at * dim.in / dim.out;
        int64_t count = ((at + 1l) * dim.in + dim.out - 1l) / dim.out - begin;
        return Window(begin, count, count, 1l);
    }
    int64_t start = at * dim.stride - dim.pad;
    int64_t skipped = start < 0l ? (dim.dilation - 1l - start) / dim.dilation : 0l;
    int64_t begin = start + skipped * dim.dilation;
    int64_t fitting = begin < dim.in ? (dim.in - 1l - begin) / dim.dilation + 1l : 0l;
    return Window(begin, max(0l, min(dim.kernel - skipped, fitting)),
                  min(dim.kernel, dim.in + dim.pad - start), dim.dilation);
}

int64_t divisor_of(Window h, Window w)
{
    if (K.divisor != 0l) {
        return K.divisor;
    }
    return K.counts_padding == 1u ? h.padded * w.padded : h.count * w.count;
}

/* Computes one output element at |y|; |x| is its channel's image. */
void pool(uint64_t x, uint64_t y, uint64_t index, Window h, Window w)
{
    bool is_max = K.mode == RT_POOL_MAX || K.mode == RT_POOL_ADAPTIVE_MAX;
    bool floats = is_float(K.dtype);
    int64_t best_i = is_max ? INT64_LOWEST : 0l, place = h.begin * K.w.in + w.begin;
    float best_f = is_max ? -INF : 0.0;
    uint width = dtype_width(K.dtype);
    for (int64_t i = 0l; i < h.count; i++) {
        for (int64_t j = 0l; j < w.count; j++) {
            int64_t row = h.begin + i * h.step, column = w.begin + j * w.step;
            uint64_t at = x + uint64_t((row * K.x.h + column * K.x.w) * width);
            float f = floats ? load_float(at, K.dtype) : 0.0;
            int64_t v = floats ? 0l : load_int(at, K.dtype);
            bool above = floats ? f > best_f || is_nan(f) : v > best_i;
            if (is_max) {
                best_f = above ? f : best_f;
                best_i = above ? v : best_i;
                place = above ? row * K.w.in + column : place;
            } else {
                best_f += f;
                best_i += v;
            }
        }
    }
    int64_t divisor = is_max ? 1l : divisor_of(h, w);
    if (floats) {
        store_float(y, K.dtype, is_max ? best_f : best_f / float(divisor));
    } else {
        store_int(y, K.dtype, divisor == 0l ? 0l : best_i / divisor);
    }
    if (index != 0ul) {
        U64(index).at[0] = uint64_t(place);
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
        int64_t y = n * K.y.n + channel * K.y.c + row * K.y.h + column * K.y.w;
        uint64_t index = 0ul;
        if (variant == RT_POOL_ELEMENTS && binding(2) != 0ul) {
            index = binding(2) + uint64_t(8l * (n * K.indices.n + channel * K.indices.c +
                                                row * K.indices.h + column * K.indices.w));
        }
        pool(x, binding(0) + uint64_t(y * width), index, window_of(K.h, row),
             window_of(K.w, column));
    }
}
