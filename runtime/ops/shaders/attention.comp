/* SPDX-License-Identifier: MIT */
/*
 * Attention, like attention.c. The workgroup computes the rows of the tile one by one: for each
 * chunk of KEYS keys, each lane computes scores, all lanes together find the greatest score so far,
 * and then each lane adds the chunk's values to its own elements of the sum.
 *
 * form attention_subgroups: -DSUBGROUPS GL_KHR_shader_subgroup_arithmetic
 * form attention:
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/attention.h"
#include "runtime/kernels/shaders/math.glsl"
#include "runtime/kernels/shaders/group.glsl"

CONSTANTS(rt_attention);

#define KEYS 128u

shared float scores[KEYS];
shared float sums[RT_ATTENTION_SHADER_DEPTH_MAX];

float read_at(uint index, int64_t at)
{
    return load_float(binding(index) + uint64_t(at * dtype_width(K.in)), K.in);
}

/* Computes the scores of keys [first, first + n); returns the greatest. */
float find_scores(int64_t q, int64_t keys, int64_t mask, uint n)
{
    float greatest = -INF;
    for (uint j = lane(); j < n; j += lanes()) {
        float sum = 0.0;
        for (uint d = 0u; d < uint(K.depth); d++) {
            sum += read_at(1u, q + d) * K.scale * read_at(2u, keys + j * K.kv_seq + d);
        }
        if (K.has_mask == 1u) {
            sum += F32(binding(4) + uint64_t(4l * (mask + j))).at[0];
        }
        scores[j] = sum;
        greatest = is_nan(sum) || sum > greatest ? sum : greatest;
    }
    return all_max(greatest);
}

void attend(int64_t batch, int64_t head, int64_t row)
{
    int64_t query = row / K.group, depth = K.depth;
    int64_t place = batch * K.q_batch + head * K.group * K.q_head + query * K.q_seq +
                    row % K.group * K.q_head;
    int64_t kv = batch * K.kv_batch + head * K.kv_head;
    int64_t start = binding(5) == 0ul ? K.start : int64_t(U64(binding(5)).at[0]);
    int64_t end = K.has_mask == 1u ? K.rows : start + K.queries;
    int64_t limit = K.is_causal == 1u ? min(start + query + 1l, end) : end;
    float greatest = -INF, total = 0.0;
    for (uint d = lane(); d < uint(depth); d += lanes()) {
        sums[d] = 0.0;
    }
    for (int64_t first = 0l; first < limit; first += KEYS) {
        uint n = uint(min(limit - first, int64_t(KEYS)));
        float now = find_scores(place, kv + first * K.kv_seq, query * K.mask_row + first, n);
        now = is_nan(greatest) || greatest > now ? greatest : now;
        float part = 0.0;
        for (uint j = lane(); j < n; j += lanes()) {
            scores[j] = now == -INF ? 0.0 : exp_f32(scores[j] - now);
            part += scores[j];
        }
        float fade = now == -INF ? 1.0 : exp_f32(greatest - now);
        total = total * fade + all_sum(part);
        greatest = now;
        for (uint d = lane(); d < uint(depth); d += lanes()) {
            float sum = sums[d] * fade;
            for (uint j = 0u; j < n; j++) {
                sum += scores[j] * read_at(3u, kv + (first + j) * K.kv_seq + d);
            }
            sums[d] = sum;
        }
        barrier();
    }
    for (uint d = lane(); d < uint(depth); d += lanes()) {
        uint64_t to = binding(0) + uint64_t((place + d) * dtype_width(K.out));
        store_float(to, K.out, sums[d] / (total == 0 ? 1.0 : total));
    }
}

void main()
{
    int64_t batch = int64_t(tile().y) / K.kv_heads, head = int64_t(tile().y) % K.kv_heads;
    int64_t first = int64_t(tile().x) * K.block, all = K.queries * K.group;
    form_teams(TEAM_ALL);
    for (int64_t row = first; row < min(first + K.block, all); row++) {
        attend(batch, head, row);
    }
}
