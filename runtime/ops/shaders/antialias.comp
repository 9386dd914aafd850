/* SPDX-License-Identifier: MIT */
/* Images resampled with a triangle filter, like antialias.c in float. A lane computes one output
 * element at a time. Bindings: output, input. Tile y is a channel's image. */
#include "runtime/ops/antialias.h"
#include "runtime/kernels/shaders/element.glsl"

CONSTANTS(rt_aa_constants);

/* The filter of one output pixel along one dim: its window, its centre, the sum of its weights. */
struct Filter {
    int64_t begin, count;
    float center, inverse, sum;
};

float weight(Filter filter_, int64_t at)
{
    float away = abs((float(at) - filter_.center + 0.5) * filter_.inverse);
    return away < 1.0 ? 1.0 - away : 0.0;
}

Filter filter_at(rt_resample_dim dim, int64_t at)
{
    float scale = f64_to_f32(dim.scale), support = f64_to_f32(dim.support);
    Filter result;
    result.center = scale * (float(at) + 0.5);
    result.inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
    result.begin = min(max(int64_t(result.center - support + 0.5), 0l), dim.in - 1l);
    result.count = min(int64_t(result.center + support + 0.5), dim.in) - result.begin;
    result.count = max(1l, min(result.count, dim.taps));
    result.sum = 0.0;
    for (int64_t i = 0l; i < result.count; i++) {
        result.sum += weight(result, result.begin + i);
    }
    result.sum = result.sum == 0 ? 1.0 : result.sum;
    return result;
}

float filtered(uint64_t x, Filter h, Filter w)
{
    float sum = 0.0;
    for (int64_t i = h.begin; i < h.begin + h.count; i++) {
        float line = 0.0;
        for (int64_t j = w.begin; j < w.begin + w.count; j++) {
            uint64_t at = x + uint64_t((i * K.x.h + j * K.x.w) * dtype_width(K.dtype));
            line += weight(w, j) / w.sum * load_float(at, K.dtype);
        }
        sum += weight(h, i) / h.sum * line;
    }
    return sum;
}

void main()
{
    int64_t n = int64_t(tile().y) / K.channels, channel = int64_t(tile().y) % K.channels;
    int64_t first = int64_t(tile().x) * K.tile, count = min(K.tile, K.w.out - first);
    int64_t width = int64_t(dtype_width(K.dtype));
    uint64_t x = binding(1) + uint64_t((n * K.x.n + channel * K.x.c) * width);
    uint64_t y = binding(0) + uint64_t((n * K.y.n + channel * K.y.c) * width);
    for (int64_t i = lane(); i < K.h.out * count; i += lanes()) {
        int64_t row = i / count, column = first + i % count;
        store_float(y + uint64_t((row * K.y.h + column * K.y.w) * width), K.dtype,
                    filtered(x, filter_at(K.h, row), filter_at(K.w, column)));
    }
}
