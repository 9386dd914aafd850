/* SPDX-License-Identifier: MIT */
/*
 * Expressions of doubles: how many steps a range has whose ends or step have fractions. They are
 * exactly the few that such a length needs. A double is an int64 with its bits here, so that the
 * same arrays hold all values; only whole numbers have bounds.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "runtime/graph/dim_priv.h"

double rt_dim_to_double(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

struct rt_dim rt_dim_of_double(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return rt_dim_of(bits);
}

static bool whole(double value, int64_t *out)
{
    bool fits = value >= -0x1p63 && value < 0x1p63;
    *out = fits ? (int64_t)value : 0;
    return fits;
}

bool rt_dim_double_eval(enum rt_expr_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case RT_EXPR_DOUBLE:
        *out = rt_dim_of_double((double)a).value;
        return true;
    case RT_EXPR_DIFFERENCE:
        *out = rt_dim_of_double(rt_dim_to_double(a) - rt_dim_to_double(b)).value;
        return true;
    case RT_EXPR_STEPS:
        return whole(ceil(rt_dim_to_double(a) / rt_dim_to_double(b)), out);
    case RT_EXPR_TRUNC:
        return whole(trunc(rt_dim_to_double(a)), out);
    default:
        unreachable();
    }
}

/* ---- bounds ---------------------------------------------------------------------------------- */

struct interval {
    double lo, hi;
};

static double end_of(int64_t bound)
{
    return bound == INT64_MIN ? -INFINITY : bound == INT64_MAX ? INFINITY : (double)bound;
}

/* Of a constant, or of a double that is an int; those of any other double are infinite. */
static struct interval interval_of_leaf(const struct rt_dims *dims, struct rt_dim d,
                                        const struct rt_dim_range *ranges)
{
    if (!d.expr) {
        return (struct interval){rt_dim_to_double(d.value), rt_dim_to_double(d.value)};
    }
    if (dims->exprs[d.expr].kind != RT_EXPR_DOUBLE) {
        return (struct interval){-INFINITY, INFINITY};
    }
    struct rt_dim_range range = rt_dim_range_in(dims, dims->exprs[d.expr].a, ranges);
    return (struct interval){end_of(range.lo), end_of(range.hi)};
}

static struct interval interval_of(const struct rt_dims *dims, struct rt_dim d,
                                   const struct rt_dim_range *ranges)
{
    if (!d.expr || dims->exprs[d.expr].kind != RT_EXPR_DIFFERENCE) {
        return interval_of_leaf(dims, d, ranges);
    }
    struct interval a = interval_of_leaf(dims, dims->exprs[d.expr].a, ranges);
    struct interval b = interval_of_leaf(dims, dims->exprs[d.expr].b, ranges);
    return (struct interval){a.lo - b.hi, a.hi - b.lo};
}

/* A NaN and an infinity are no bounds. */
static struct rt_dim_range whole_range(double lo, double hi)
{
    struct rt_dim_range range;
    if (!whole(lo, &range.lo)) {
        range.lo = INT64_MIN;
    }
    if (!whole(hi, &range.hi)) {
        range.hi = INT64_MAX;
    }
    return range;
}

struct rt_dim_range rt_dim_double_range(const struct rt_dims *dims, const struct rt_expr *e,
                                        const struct rt_dim_range *ranges)
{
    struct interval a;
    double step;
    switch (e->kind) {
    case RT_EXPR_STEPS:
        a = interval_of(dims, e->a, ranges);
        step = e->b.expr ? NAN : rt_dim_to_double(e->b.value);
        return step > 0 ? whole_range(ceil(a.lo / step), ceil(a.hi / step))
                        : whole_range(ceil(a.hi / step), ceil(a.lo / step));
    case RT_EXPR_TRUNC:
        a = interval_of(dims, e->a, ranges);
        return whole_range(trunc(a.lo), trunc(a.hi));
    default:
        return (struct rt_dim_range){INT64_MIN, INT64_MAX};
    }
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static struct rt_dim apply(struct rt_dims *dims, enum rt_expr_kind kind, struct rt_dim a,
                           struct rt_dim b)
{
    int64_t value;
    if (a.expr || b.expr) {
        return rt_dim_intern(dims, kind, a, b);
    }
    if (!rt_dim_double_eval(kind, a.value, b.value, &value)) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    return rt_dim_of(value);
}

struct rt_dim rt_dim_double(struct rt_dims *dims, struct rt_dim a)
{
    return apply(dims, RT_EXPR_DOUBLE, a, rt_dim_of(0));
}

struct rt_dim rt_dim_difference(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    return apply(dims, RT_EXPR_DIFFERENCE, a, b);
}

struct rt_dim rt_dim_steps(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    return apply(dims, RT_EXPR_STEPS, a, b);
}

struct rt_dim rt_dim_trunc(struct rt_dims *dims, struct rt_dim a)
{
    return apply(dims, RT_EXPR_TRUNC, a, rt_dim_of(0));
}
