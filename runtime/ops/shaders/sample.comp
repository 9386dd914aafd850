/* SPDX-License-Identifier: MIT */
/* Images sampled at positions of a grid, with the roundings of sample.c: a lane computes one
 * element at a time. Bindings: out, picture, grid. Tile y is the image. */
#include "runtime/ops/sample.h"
#include "runtime/kernels/shaders/element.glsl"

CONSTANTS(rt_sample_constants);

/* The neighbours along one axis: their offsets in elements, or -1 outside. */
struct Taps {
    int count;
    int64_t offsets[RT_SAMPLE_TAPS_MAX];
    float weights[RT_SAMPLE_TAPS_MAX];
};

float rounded(float v)
{
    switch (K.dtype) {
    case DT_F16:
        return f16_to_f32(f32_to_f16(v));
    case DT_BF16:
        return bf16_to_f32(f32_to_bf16(v));
    }
    return v;
}

float to_pixels(int64_t size, float at)
{
    bool aligns = K.align_corners == 1u;
    float half_ = rounded(float(aligns ? size - 1l : size) / 2.0);
    precise float moved = at + 1.0;
    precise float pixels = rounded(moved) * half_;
    precise float centered = rounded(pixels) - 0.5;
    return aligns ? rounded(pixels) : rounded(centered);
}

float reflected(int64_t size, float at)
{
    bool aligns = K.align_corners == 1u;
    float low = aligns ? 0.0 : -0.5, twice = rounded(float(2l * (aligns ? size - 1l : size)));
    if (twice == 0) {
        return 0.0;
    }
    precise float moved = at - low;
    precise float span = abs(rounded(moved));
    precise float turns = rounded(trunc(rounded(span / twice)) * twice);
    precise float rest = rounded(span - turns);
    precise float back = rounded(twice - rest);
    precise float result = min(rest, back) + low;
    return is_nan(rest) ? rest : rounded(result);
}

/* With padding other than zeros, NaN becomes 0. */
float padded(int64_t size, float at)
{
    if (K.padding == RT_SAMPLE_ZEROS) {
        return at;
    }
    at = K.padding == RT_SAMPLE_REFLECTION ? reflected(size, at) : at;
    return is_nan(at) ? 0.0 : min(max(at, 0.0), float(size - 1l));
}

int64_t offset_of(rt_sample_axis axis, float at)
{
    return at >= 0 && at < float(axis.size) ? int64_t(at) * axis.stride : -1l;
}

float cubic_near(float t)
{
    float slope = rounded(rounded(1.25 * t) - 2.25);
    return rounded(rounded(rounded(slope * t) * t) + 1.0);
}

float cubic_far(float t)
{
    float slope = rounded(rounded(-0.75 * t) + 3.75);
    return rounded(rounded(rounded(rounded(slope * t) - 6.0) * t) + 3.0);
}

Taps find_taps(rt_sample_axis axis, float place)
{
    Taps taps;
    float at = to_pixels(axis.size, place);
    if (K.mode == RT_SAMPLE_BICUBIC) {
        float t = rounded(at - floor(at));
        taps.count = 4;
        for (int i = 0; i < 4; i++) {
            float tap = rounded(floor(at) + float(i - 1));
            taps.offsets[i] = offset_of(axis, padded(axis.size, tap));
        }
        taps.weights[0] = cubic_far(rounded(t + 1.0));
        taps.weights[1] = cubic_near(t);
        taps.weights[2] = cubic_near(rounded(1.0 - t));
        taps.weights[3] = cubic_far(rounded(2.0 - t));
        return taps;
    }
    at = padded(axis.size, at);
    if (K.mode == RT_SAMPLE_NEAREST) {
        taps.count = 1;
        taps.offsets[0] = offset_of(axis, roundEven(at));
        taps.weights[0] = 1.0;
        return taps;
    }
    taps.count = 2;
    taps.offsets[0] = offset_of(axis, floor(at));
    taps.offsets[1] = offset_of(axis, rounded(floor(at) + 1.0));
    taps.weights[1] = rounded(at - floor(at));
    taps.weights[0] = rounded(1.0 - taps.weights[1]);
    return taps;
}

/*
 * A bicubic pixel is a sum over the sums of its rows; other pixels are one sum over all neighbours.
 */
float sampled(uint64_t image, Taps x, Taps y)
{
    bool is_cubic = x.count == 4;
    float sum = 0.0, line = 0.0;
    for (int r = 0; r < y.count; r++) {
        for (int c = 0; c < x.count; c++) {
            bool exists = x.offsets[c] >= 0l && y.offsets[r] >= 0l;
            int64_t at = exists ? x.offsets[c] + y.offsets[r] : 0l;
            float value = load_float(image + uint64_t(at * dtype_width(K.dtype)), K.dtype);
            float weight = is_cubic ? x.weights[c] : rounded(y.weights[r] * x.weights[c]);
            float part = rounded((exists ? value : 0.0) * weight);
            line = c == 0 && (is_cubic || r == 0) ? part : rounded(line + part);
        }
        float part = rounded(line * y.weights[r]);
        sum = r == 0 ? part : rounded(sum + part);
    }
    return is_cubic ? sum : line;
}

void main()
{
    int64_t first = int64_t(tile().x) * K.tile, n = int64_t(tile().y);
    int64_t count = min(K.tile, K.pixels - first), width = int64_t(dtype_width(K.dtype));
    for (int64_t i = lane(); i < count * K.channels; i += lanes()) {
        int64_t channel = i / count, pixel = first + i % count;
        uint64_t grid = binding(2) + uint64_t(width * (n * K.grid[0] +
                                                       pixel / K.out_width * K.grid[1] +
                                                       pixel % K.out_width * K.grid[2]));
        Taps x = find_taps(K.x, load_float(grid, K.dtype));
        Taps y = find_taps(K.y, load_float(grid + uint64_t(width * K.grid[3]), K.dtype));
        uint64_t image = binding(1) + uint64_t(width * (n * K.image + channel * K.channel));
        int64_t to = (n * K.channels + channel) * K.pixels + pixel;
        store_float(binding(0) + uint64_t(width * to), K.dtype, sampled(image, x, y));
    }
}
