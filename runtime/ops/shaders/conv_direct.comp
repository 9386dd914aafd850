/* SPDX-License-Identifier: MIT */
/*
 * The kernels of conv_direct.c, by variant: for convolutions a lane computes one output element at
 * a time, for gradients of weights one weight. In float, or in 64-bit integers, which wrap.
 * Bindings: output, input, weights, bias; or weights, the outputs' side, the inputs' side.
 */
#include "runtime/ops/conv_direct.h"
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_direct_constants);

/* A sum in the variant's class. */
struct Sum {
    float f, lost;
    uint64_t i;
};

const bool is_i64 = (variant & RT_DIRECT_I64) != 0u;

/* The address of an element of a binding. */
uint64_t element(uint k, int64_t at)
{
    return binding(k) + uint64_t(at * (is_i64 ? 8l : 4l));
}

void add_product(inout Sum sum, uint64_t a, uint64_t b)
{
    if (is_i64) {
        sum.i += U64(a).at[0] * U64(b).at[0];
    } else {
        add_exactly(sum.f, sum.lost, F32(a).at[0] * F32(b).at[0]);
    }
}

void store_sum(int64_t at, Sum sum)
{
    if (is_i64) {
        U64(element(0u, at)).at[0] = sum.i;
    } else {
        F32(element(0u, at)).at[0] = sum.f;
    }
}

/* The input position from which output |at| reads tap |k|; -1: none. */
int64_t input_of(rt_direct_axis axis, int64_t at, int64_t k)
{
    int64_t place = at * axis.stride - axis.pad + k * axis.dilation;
    if (K.is_transposed == 1u) {
        place = at + axis.pad - k * axis.dilation;
        if (place < 0l || place % axis.stride != 0l) {
            return -1l;
        }
        place /= axis.stride;
    }
    return place >= 0l && place < axis.in ? place : -1l;
}

void add_channel(inout Sum sum, int64_t x, int64_t w, i64vec3 at)
{
    rt_direct_axis z = K.axes[0], v = K.axes[1], h = K.axes[2];
    for (int64_t kz = 0l; kz < z.kernel; kz++) {
        int64_t iz = input_of(z, at.x, kz);
        for (int64_t ky = 0l; iz >= 0l && ky < v.kernel; ky++) {
            int64_t iy = input_of(v, at.y, ky);
            for (int64_t kx = 0l; iy >= 0l && kx < h.kernel; kx++) {
                int64_t ix = input_of(h, at.z, kx);
                if (ix >= 0l) {
                    add_product(sum, element(1u, x + (iz * v.in + iy) * h.in + ix),
                                element(2u, w + (kz * v.kernel + ky) * h.kernel + kx));
                }
            }
        }
    }
}

void convolve(int64_t i)
{
    int64_t line = i / K.axes[2].out, image = line / K.axes[1].out / K.axes[0].out;
    i64vec3 at = i64vec3(line / K.axes[1].out % K.axes[0].out, line % K.axes[1].out,
                         i % K.axes[2].out);
    int64_t o = image % (K.groups * K.outs), n = image / (K.groups * K.outs);
    Sum sum = Sum(0.0, 0.0, 0ul);
    if (binding(3) != 0ul) {
        sum.f = is_i64 ? 0.0 : F32(element(3u, o)).at[0];
        sum.i = is_i64 ? U64(element(3u, o)).at[0] : 0ul;
    }
    for (int64_t c = 0l; c < K.ins; c++) {
        int64_t channel = o / K.outs * K.ins + c;
        int64_t w = K.is_transposed == 1u ? channel * K.outs + o % K.outs : o * K.ins + c;
        add_channel(sum, (n * K.groups * K.ins + channel) * K.in_plane, w * K.taps, at);
    }
    store_sum(i, sum);
}

/* Adds the products of one image; |grad| and |x| are its planes. */
void add_plane(inout Sum sum, int64_t grad, int64_t x, i64vec3 k)
{
    rt_direct_axis z = K.axes[0], v = K.axes[1], h = K.axes[2];
    for (int64_t at_z = 0l; at_z < z.out; at_z++) {
        int64_t iz = input_of(z, at_z, k.x);
        for (int64_t at_y = 0l; iz >= 0l && at_y < v.out; at_y++) {
            int64_t iy = input_of(v, at_y, k.y);
            for (int64_t at_x = 0l; iy >= 0l && at_x < h.out; at_x++) {
                int64_t ix = input_of(h, at_x, k.z);
                if (ix >= 0l) {
                    add_product(sum, element(1u, grad + (at_z * v.out + at_y) * h.out + at_x),
                                element(2u, x + (iz * v.in + iy) * h.in + ix));
                }
            }
        }
    }
}

void differentiate(int64_t w)
{
    int64_t tap = w % K.taps, o = w / K.taps / K.ins;
    int64_t channel = o / K.outs * K.ins + w / K.taps % K.ins;
    i64vec3 k = i64vec3(tap / K.axes[2].kernel / K.axes[1].kernel,
                        tap / K.axes[2].kernel % K.axes[1].kernel, tap % K.axes[2].kernel);
    Sum sum = Sum(0.0, 0.0, 0ul);
    for (int64_t n = 0l; n < K.images; n++) {
        add_plane(sum, (n * K.groups * K.outs + o) * K.out_plane,
                  (n * K.groups * K.ins + channel) * K.in_plane, k);
    }
    store_sum(w, sum);
}

void main()
{
    bool is_gradient = (variant & RT_DIRECT_GRADIENT) != 0u;
    int64_t line = is_gradient ? 1l : K.axes[2].out, first = int64_t(tile().x) * K.tile;
    int64_t end = min(first + K.tile, K.lines) * line;
    for (int64_t i = first * line + lane(); i < end; i += lanes()) {
        if (is_gradient) {
            differentiate(i);
        } else {
            convolve(i);
        }
    }
}
