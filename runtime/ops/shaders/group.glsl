/* SPDX-License-Identifier: MIT */
/*
 * What the lanes of a workgroup find together. Rows that are long are a workgroup's each; of short
 * ones, or where neighbours lie side by side, each lane has its own, and nothing has to be shared.
 *
 *     bool alone = lanes_work_alone(length);
 *     EACH_ROW(row, first, end) { EACH_ELEMENT(i, length) { ... } sum = alone ? sum : all_sum(sum); }
 *
 * All lanes must come to an all_...(): what decides that is the same for them.
 */
shared float group_floats[gl_WorkGroupSize.x];

bool lanes_work_alone(int64_t length)
{
    return length < 4l * lanes();
}

#define EACH_ROW(row, first, end)                                                                  \
    for (int64_t row = first + (alone ? lane() : 0u); row < end; row += alone ? lanes() : 1u)

#define EACH_ELEMENT(i, length)                                                                    \
    for (int64_t i = alone ? 0u : lane(); i < length; i += alone ? 1u : lanes())

/* In halves, whatever the number of lanes. */
#define DEFINE_ALL(name, type, memory, expr)                                                       \
    type name(type value)                                                                          \
    {                                                                                              \
        memory[lane()] = value;                                                                    \
        barrier();                                                                                 \
        for (uint have = lanes(); have > 1u;) {                                                    \
            uint half_ = (have + 1u) / 2u;                                                         \
            if (lane() + half_ < have) {                                                           \
                type a = memory[lane()], b = memory[lane() + half_];                               \
                memory[lane()] = expr;                                                             \
            }                                                                                      \
            barrier();                                                                             \
            have = half_;                                                                          \
        }                                                                                          \
        value = memory[0];                                                                         \
        barrier();                                                                                 \
        return value;                                                                              \
    }

DEFINE_ALL(all_sum, float, group_floats, a + b)
DEFINE_ALL(all_max, float, group_floats, is_nan(a) || a > b ? a : b)

/* sum += v, what rounding takes off being kept in |lost|. */
void add_exactly(inout float sum, inout float lost, float v)
{
    precise float y = v - lost;
    precise float t = sum + y;
    precise float d = t - sum;
    lost = is_inf(t) ? 0.0 : d - y;
    sum = t;
}
