/* SPDX-License-Identifier: MIT */
/*
 * Cooperation of a workgroup's lanes. Teams share the rows, and a team's lanes share the elements
 * of its row. A team is the whole workgroup for long rows; for short rows it is a subgroup, in
 * forms with SUBGROUPS, or a single lane, which is also the choice if neighbouring rows are
 * interleaved.
 *
 *     form_teams_for(length, end - first);
 *     EACH_ROW(row, first, end) { EACH_ELEMENT(i, length) { ... } sum = all_sum(sum); ... }
 *
 * An all_...() returns the same value to all lanes of the team. All of them have to call it, so
 * conditions around it must be the same for the team, and conditions around form_teams() the same
 * for the workgroup.
 */
const uint TEAM_LANE = 0u, TEAM_SUBGROUP = 1u, TEAM_ALL = 2u;

struct Team {
    uint kind;
    uint number, count; /* this team's number, and the number of teams */
    uint lane, lanes;   /* this lane's number in the team, and the number of lanes */
};

Team team;

void form_teams(uint kind)
{
    team = Team(kind, 0u, 1u, lane(), lanes());
    if (kind == TEAM_LANE) {
        team = Team(kind, lane(), lanes(), 0u, 1u);
    }
#ifdef SUBGROUPS
    if (kind == TEAM_SUBGROUP) { /* the last subgroup may not be full */
        team = Team(kind, gl_SubgroupID, gl_NumSubgroups, subgroupExclusiveAdd(1u),
                    subgroupAdd(1u));
    }
#endif
}

/* The kind of team for rows of |length| contiguous elements, without subgroups. */
uint lane_or_all(int64_t length)
{
    return length < 4l * lanes() ? TEAM_LANE : TEAM_ALL;
}

/* Forms teams for |rows| rows of |length| elements. */
void form_teams_for(int64_t length, int64_t rows)
{
    uint kind = lane_or_all(length);
#ifdef SUBGROUPS
    if (kind == TEAM_LANE && length >= gl_SubgroupSize) {
        kind = rows > 1l ? TEAM_SUBGROUP : TEAM_ALL;
    }
#endif
    form_teams(kind);
}

#define EACH_ROW(row, first, end)                                                                  \
    for (int64_t row = first + team.number; row < end; row += team.count)

#define EACH_ELEMENT(i, length) for (int64_t i = team.lane; i < length; i += team.lanes)

/* |expr| combines two values a and b; |within| combines |value| over a subgroup. |memory| has room
 * for a value of each lane, and can be used again after the call. */
#ifdef SUBGROUPS
#define DEFINE_ALL(name, type, memory, expr, within)                                               \
    type name(type value)                                                                          \
    {                                                                                              \
        if (team.kind == TEAM_LANE) {                                                              \
            return value;                                                                          \
        }                                                                                          \
        value = within;                                                                            \
        if (team.kind == TEAM_SUBGROUP) {                                                          \
            return value;                                                                          \
        }                                                                                          \
        if (subgroupElect()) {                                                                     \
            memory[gl_SubgroupID] = value;                                                         \
        }                                                                                          \
        barrier();                                                                                 \
        value = memory[0];                                                                         \
        for (uint s = 1u; s < gl_NumSubgroups; s++) {                                              \
            type a = value, b = memory[s];                                                         \
            value = expr;                                                                          \
        }                                                                                          \
        barrier();                                                                                 \
        return value;                                                                              \
    }
#else
#define DEFINE_ALL(name, type, memory, expr, within) DEFINE_ALL_IN_HALVES(name, type, memory, expr)
#endif

/* For values that subgroups cannot combine: folds halves, for any number of lanes. */
#define DEFINE_ALL_IN_HALVES(name, type, memory, expr)                                             \
    type name(type value)                                                                          \
    {                                                                                              \
        if (team.kind == TEAM_LANE) {                                                              \
            return value;                                                                          \
        }                                                                                          \
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

shared float group_floats[gl_WorkGroupSize.x];
shared int group_ints[gl_WorkGroupSize.x];

DEFINE_ALL(all_sum, float, group_floats, a + b, subgroupAdd(value))
DEFINE_ALL(all_max_int, int, group_ints, max(a, b), subgroupMax(value))

/* Maps floats to integers in the same order, NaN above all: a maximum of floats may lose a NaN. */
int order_of(float v)
{
    int bits = floatBitsToInt(v);
    return is_nan(v) ? 0x7fc00000 : bits ^ (bits >> 31 & 0x7fffffff);
}

float float_of(int order)
{
    return intBitsToFloat(order ^ (order >> 31 & 0x7fffffff));
}

float all_max(float value)
{
    return float_of(all_max_int(order_of(value)));
}

/* sum += v; |lost| keeps the rounding error. */
void add_exactly(inout float sum, inout float lost, float v)
{
    precise float y = v - lost;
    precise float t = sum + y;
    precise float d = t - sum;
    lost = is_inf(t) ? 0.0 : d - y;
    sum = t;
}
