/* SPDX-License-Identifier: MIT */
/*
 * Images of bytes, like resample.c: a lane computes a pixel, and filters the lines of its window
 * one after the other. Weights are computed in doubles, as on the CPU; if a device divides less
 * exactly than a processor, a weight may be rounded to the other neighbour. Bindings: output,
 * image.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/shaders/f64.glsl"
#include "runtime/ops/resample.h"

CONSTANTS(rt_resample_constants);

/* The window of an output pixel along one dim. */
struct Window {
    int64_t begin, count;
    float64_t center;         /* with antialiasing: the triangle's centre, */
    float64_t inverse, total; /* its slope, and the sum of its weights */
    float64_t second;         /* without antialiasing: the weight of the second neighbour */
};

float64_t triangle(Window w, int64_t at)
{
    float64_t distance_ = abs((float64_t(at) - w.center + 0.5lf) * w.inverse);
    return distance_ < 1.0lf ? 1.0lf - distance_ : 0.0lf;
}

/* Like rt_antialias_triangle_f64(). */
Window find_triangle(rt_resample_dim dim, int64_t at)
{
    Window w;
    float64_t scale = f64_of_bits(dim.scale), support = f64_of_bits(dim.support);
    float64_t center = scale * (float64_t(at) + 0.5lf), total = 0.0lf;
    float64_t first = center - support + 0.5lf, behind = center + support + 0.5lf;
    w.begin = min(max(int64_t(first), 0l), dim.in - 1l);
    w.count = max(1l, min(min(int64_t(behind), dim.in) - w.begin, dim.taps));
    w.center = center;
    w.inverse = scale >= 1.0lf ? 1.0lf / scale : 1.0lf;
    w.second = 0.0lf;
    for (int64_t i = 0l; i < w.count; i++) {
        total += triangle(w, w.begin + i);
    }
    w.total = total == 0.0lf ? 1.0lf : total;
    return w;
}

float64_t between(int64_t at, float64_t scale)
{
    precise float64_t source = (float64_t(at) + 0.5lf) * scale - 0.5lf;
    return source;
}

/* Like neighbours() in resample.c. */
Window find_neighbours(rt_resample_dim dim, int64_t at)
{
    Window w;
    float64_t scale = f64_of_bits(dim.scale);
    float64_t source = K.how.align_corners == 1u ? float64_t(at) * scale
                                                 : max(0.0lf, between(at, scale));
    w.begin = min(int64_t(source), dim.in - 1l);
    w.count = w.begin == dim.in - 1l ? 1l : 2l;
    w.second = w.count == 1l ? 0.0lf : min(source - float64_t(w.begin), 1.0lf);
    w.center = w.inverse = w.total = 0.0lf;
    return w;
}

Window find_window(rt_resample_dim dim, int64_t at)
{
    if (dim.in == dim.out) {
        return Window(at, 1l, 0.0lf, 0.0lf, 0.0lf, 0.0lf);
    }
    return K.how.antialiases == 1u ? find_triangle(dim, at) : find_neighbours(dim, at);
}

/* Weight |i| of the window, with |places| fraction bits. */
int weight(Window w, int64_t i, int places)
{
    float64_t v = i == 0l ? 1.0lf - w.second : w.second;
    if (w.total != 0.0lf) {
        v = triangle(w, w.begin + i) / w.total;
    }
    return int(v * float64_t(1 << places) + 0.5lf);
}

/* Half a unit of the bits that are cut off: the initial value of a sum. */
int half_of(int places)
{
    return places > 0 ? 1 << places - 1 : 0;
}

/* Filters the window's bytes of a line; |from| is the address of the first byte. */
int filter_line(uint64_t from, Window w)
{
    int sum = half_of(K.w_places);
    for (int64_t i = 0l; i < w.count; i++) {
        sum += int(uint(U8(from + uint64_t(i * K.x.w)).at[0])) * weight(w, i, K.w_places);
    }
    return clamp(sum >> K.w_places, 0, 255);
}

void main()
{
    int64_t image = int64_t(tile().y) / K.channels, channel = int64_t(tile().y) % K.channels;
    int64_t first = int64_t(tile().x) * K.tile, columns = min(K.tile, K.how.w.out - first);
    uint64_t from = binding(1) + uint64_t(image * K.x.n + channel * K.x.c);
    uint64_t to = binding(0) + uint64_t(image * K.y.n + channel * K.y.c);
    for (int64_t at = lane(); at < columns * K.how.h.out; at += lanes()) {
        int64_t row = at / columns, column = first + at % columns;
        Window h = find_window(K.how.h, row), w = find_window(K.how.w, column);
        int sum = half_of(K.h_places);
        for (int64_t i = 0l; i < h.count; i++) {
            uint64_t line = from + uint64_t((h.begin + i) * K.x.h + w.begin * K.x.w);
            sum += filter_line(line, w) * weight(h, i, K.h_places);
        }
        U8(to + uint64_t(row * K.y.h + column * K.y.w)).at[0] =
            uint8_t(clamp(sum >> K.h_places, 0, 255));
    }
}
