/* SPDX-License-Identifier: MIT */
/*
 * Running sums along a dim, like cumsum.c except for doubles. In a long row each lane first adds up
 * a stretch, and then starts from the sum of the stretches before it. Float sums keep the rounding
 * error.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/along.h"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_along);

struct Sum {
    float f, lost;
    int64_t i;
};

shared Sum stretches[gl_WorkGroupSize.x];

void add(inout Sum sum, uint64_t from)
{
    if (is_float(K.out)) {
        add_exactly(sum.f, sum.lost, load_f32(from, K.in));
    } else {
        sum.i += load_i64(from, K.in);
    }
}

/* Adds elements [begin, end) of a row; writes the running sums to |to| unless it is 0. */
Sum scan(uint64_t from, uint64_t to, int64_t begin, int64_t end, Sum sum)
{
    int64_t in_step = K.inner * dtype_width(K.in), out_step = K.inner * dtype_width(K.out);
    for (int64_t i = begin; i < end; i++) {
        add(sum, from + uint64_t(i * in_step));
        if (to == 0ul) {
            continue;
        }
        if (is_float(K.out)) {
            store_float(to + uint64_t(i * out_step), K.out, sum.f);
        } else {
            store_int(to + uint64_t(i * out_step), K.out, sum.i);
        }
    }
    return sum;
}

/* The sum of all stretches before this lane's. */
Sum before()
{
    Sum sum = Sum(0.0, 0.0, 0l);
    for (uint l = 0u; l < lane(); l++) {
        add_exactly(sum.f, sum.lost, stretches[l].f);
        sum.i += stretches[l].i;
    }
    return sum;
}

void main()
{
    bool alone = K.inner > 1l || lane_or_all(K.length) == TEAM_LANE;
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.outer * K.inner);
    int64_t stretch = (K.length + lanes() - 1l) / lanes();
    form_teams(alone ? TEAM_LANE : TEAM_ALL);
    EACH_ROW(row, first, end)
    {
        int64_t at = row / K.inner * K.length * K.inner + row % K.inner;
        uint64_t from = binding(1) + uint64_t(at * dtype_width(K.in));
        uint64_t to = binding(0) + uint64_t(at * dtype_width(K.out));
        Sum none = Sum(0.0, 0.0, 0l);
        if (alone) {
            scan(from, to, 0l, K.length, none);
            continue;
        }
        int64_t begin = min(stretch * lane(), K.length);
        int64_t behind = min(begin + stretch, K.length);
        stretches[lane()] = scan(from, 0ul, begin, behind, none);
        barrier();
        scan(from, to, begin, behind, before());
        barrier();
    }
}
