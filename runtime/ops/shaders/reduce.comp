/* SPDX-License-Identifier: MIT */
/*
 * Both kernels of reduce_kernels.c, by variant; the variant decides which outputs a tile has and
 * which lanes read together. Float sums keep the rounding error, because there are no doubles. As
 * on the CPU, the first of equal extremes wins, and a NaN wins over all else.
 *
 * form reduce_subgroups: -DSUBGROUPS GL_KHR_shader_subgroup_arithmetic
 * form reduce:
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/reduce.h"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_reduce_constants);

struct State {
    float f;
    int64_t i, index; /* index -1: none yet */
};

shared State group_states[gl_WorkGroupSize.x];

bool beats(State a, State b)
{
    bool is_max = K.fold == RT_FOLD_MAX;
    if (b.index < 0l || a.index < 0l) {
        return a.index >= 0l;
    }
    bool above = is_max ? a.i > b.i : a.i < b.i, same = a.i == b.i;
    if (K.class == RT_CLASS_F32) {
        above = is_nan(a.f) ? !is_nan(b.f) : !is_nan(b.f) && (is_max ? a.f > b.f : a.f < b.f);
        same = a.f == b.f || (is_nan(a.f) && is_nan(b.f));
    }
    return above || (same && a.index < b.index);
}

State combine(State a, State b)
{
    switch (K.fold) {
    case RT_FOLD_SUM:
        return State(a.f + b.f, a.i + b.i, 0l);
    case RT_FOLD_PROD:
        return State(a.f * b.f, a.i * b.i, 0l);
    case RT_FOLD_ANY:
        return State(0.0, a.i | b.i, 0l);
    }
    if (beats(a, b)) {
        return a;
    }
    return b;
}

DEFINE_ALL_IN_HALVES(all_in_halves, State, group_states, combine(a, b))

#ifdef SUBGROUPS
/* Subgroups combine floats, with indices that fit an int. */
bool fits_subgroups()
{
    return K.class == RT_CLASS_F32 && K.reduced.numel <= 0x7fffffffl;
}

int order_for_extremes(float v)
{
    int order = order_of(v == 0.0 ? 0.0 : v);
    return K.fold == RT_FOLD_MAX || is_nan(v) ? order : ~order;
}

/* The first of the most extreme elements, in the order of beats(). */
State extreme_of_subgroup(State s)
{
    int order = s.index < 0l ? -0x7fffffff - 1 : order_for_extremes(s.f);
    bool is_it = order == subgroupMax(order);
    int index = subgroupMin(is_it && s.index >= 0l ? int(s.index) : 0x7fffffff);
    is_it = is_it && int(s.index) == index;
    int bits = subgroupOr(is_it ? floatBitsToInt(s.f) : 0);
    return State(intBitsToFloat(bits), 0l, index == 0x7fffffff ? -1l : int64_t(index));
}

State of_subgroup(State s)
{
    switch (K.fold) {
    case RT_FOLD_SUM:
        return State(subgroupAdd(s.f), 0l, 0l);
    case RT_FOLD_PROD:
        return State(subgroupMul(s.f), 0l, 0l);
    }
    return extreme_of_subgroup(s);
}

DEFINE_ALL(all_floats, State, group_states, combine(a, b), of_subgroup(value))

State all_states(State s)
{
    if (fits_subgroups()) {
        return all_floats(s);
    }
    return all_in_halves(s);
}
#else
bool fits_subgroups()
{
    return false;
}

#define all_states all_in_halves
#endif

int64_t reduced_offset(int64_t position)
{
    int64_t offset = 0l;
    for (uint d = K.reduced.rank; d-- > 0u;) {
        int64_t rest = position / K.reduced.dims[d];
        offset += (position - rest * K.reduced.dims[d]) * K.reduced.strides[d];
        position = rest;
    }
    return offset;
}

int64_t kept_offset(int64_t position)
{
    int64_t offset = 0l;
    for (uint d = K.kept.rank; d-- > 0u;) {
        int64_t rest = position / K.kept.dims[d];
        offset += (position - rest * K.kept.dims[d]) * K.kept.strides[d];
        position = rest;
    }
    return offset;
}

State read_state(uint64_t at, int64_t index)
{
    State s = State(0.0, 0l, index);
    if (K.class == RT_CLASS_F32) {
        s.f = load_f32(at, K.dtype);
    } else if (K.class == RT_CLASS_TRUTH) {
        s.i = int64_t(load_truth(at, K.dtype));
    } else {
        s.i = load_i64(at, K.dtype);
    }
    return s;
}

State fold(uint64_t from)
{
    bool exact = K.fold == RT_FOLD_SUM && K.class == RT_CLASS_F32;
    bool is_product = K.fold == RT_FOLD_PROD;
    State s = State(is_product ? 1.0 : 0.0, is_product ? 1l : 0l, -1l);
    float lost = 0.0;
    EACH_ELEMENT(i, K.reduced.numel)
    {
        State v = read_state(from + uint64_t(reduced_offset(i)), i);
        if (exact) {
            add_exactly(s.f, lost, v.f);
        } else {
            s = combine(s, v);
        }
    }
    return all_states(s);
}

float deviation(uint64_t from, float mean)
{
    float sum = 0.0, lost = 0.0;
    EACH_ELEMENT(i, K.reduced.numel)
    {
        float d = load_f32(from + uint64_t(reduced_offset(i)), K.dtype) - mean;
        add_exactly(sum, lost, d * d);
    }
    return all_sum(sum);
}

void write_outputs(int64_t row, State s, float mean)
{
    float freedom = float(K.reduced.numel) - f64_to_f32(K.correction);
    for (uint o = 0u; o < K.output_count; o++) {
        uint dtype = K.outputs[o].dtype;
        uint64_t to = binding(o) + uint64_t(row * dtype_width(dtype));
        bool is_whole = K.class != RT_CLASS_F32;
        float f = is_whole ? float(s.i) : s.f;
        if (binding(o) == 0ul) {
            continue; /* no node reads it */
        }
        switch (K.outputs[o].result) {
        case RT_RESULT_INDEX:
            store_i64(to, dtype, s.index);
            continue;
        case RT_RESULT_MEAN:
            f = mean;
            is_whole = false;
            break;
        case RT_RESULT_VARIANCE:
            f = s.f / max(freedom, 0.0);
            break;
        }
        if (is_whole) {
            store_i64(to, dtype, s.i);
        } else {
            store_f32(to, dtype, f);
        }
    }
}

void main()
{
    bool has_variance = K.outputs[0].result == RT_RESULT_VARIANCE;
    int64_t first = int64_t(tile().x) * K.tile, end = min(first + K.tile, K.kept.numel);
    if (variant == RT_REDUCE_BY_COLUMNS) {
        int64_t width = K.kept.dims[K.kept.rank - 1u], row = int64_t(tile().y) * width;
        int64_t columns = int64_t(tile().x) * K.tile;
        first = row + columns;
        end = row + min(columns + K.tile, width);
        form_teams(TEAM_LANE);
    } else if (fits_subgroups()) {
        form_teams_for(K.reduced.numel, end - first);
    } else { /* integers are not rounded, so all lanes may share a single row */
        form_teams(end - first == 1l ? TEAM_ALL : lane_or_all(K.reduced.numel));
    }
    EACH_ROW(row, first, end)
    {
        uint64_t from = binding(K.output_count) + uint64_t(kept_offset(row));
        State s = fold(from);
        float mean = s.f / float(K.reduced.numel);
        if (has_variance) {
            s.f = deviation(from, mean);
        }
        if (team.lane == 0u) {
            write_outputs(row, s, mean);
        }
    }
}
