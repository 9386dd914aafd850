/* SPDX-License-Identifier: MIT */
/* Requirements on sizes during the construction of a graph: each fixes a symbol or is kept for
 * every call. */
#include "config.h"

#include "base/array.h"
#include "base/bytes.h"
#include "runtime/graph/dim_priv.h"

struct rt_dim rt_dim_apply(struct rt_dims *dims, enum rt_expr_kind kind, struct rt_dim a,
                           struct rt_dim b)
{
    switch (kind) {
    case RT_EXPR_SUM:
        return rt_dim_add(dims, a, b);
    case RT_EXPR_PRODUCT:
        return rt_dim_mul(dims, a, b);
    case RT_EXPR_FLOORDIV:
        return rt_dim_floordiv(dims, a, b);
    case RT_EXPR_MOD:
        return rt_dim_mod(dims, a, b);
    case RT_EXPR_MAX:
        return rt_dim_max(dims, a, b);
    case RT_EXPR_MIN:
        return rt_dim_min(dims, a, b);
    case RT_EXPR_DOUBLE:
        return rt_dim_double(dims, a);
    case RT_EXPR_DIFFERENCE:
        return rt_dim_difference(dims, a, b);
    case RT_EXPR_STEPS:
        return rt_dim_steps(dims, a, b);
    case RT_EXPR_TRUNC:
        return rt_dim_trunc(dims, a);
    case RT_EXPR_SYMBOL:
        break;
    }
    unreachable();
}

/* Operands have smaller numbers than their expression, so one ascending pass up to |d| resolves
 * everything below it without recursion. The pass begins where the last one ended. */
struct rt_dim rt_dim_resolve(struct rt_dims *dims, struct rt_dim d)
{
    if (!d.expr) {
        return d;
    }
    for (; dims->resolved_count <= d.expr; dims->resolved_count++) {
        uint32_t i = dims->resolved_count;
        struct rt_expr e = dims->exprs[i];
        if (e.kind == RT_EXPR_SYMBOL) {
            struct rt_dim to = dims->solved[i];
            while (to.expr && to.expr != i && !rt_dim_same(dims->solved[to.expr], to)) {
                to = dims->solved[to.expr];
            }
            dims->solved[i] = to;
            continue;
        }
        struct rt_dim a = e.a.expr ? dims->solved[e.a.expr] : e.a;
        struct rt_dim b = e.b.expr ? dims->solved[e.b.expr] : e.b;
        if (rt_dim_same(a, e.a) && rt_dim_same(b, e.b)) {
            dims->solved[i] = rt_dim_of_expr(dims, i);
        } else {
            struct rt_dim to = rt_dim_apply(dims, e.kind, a, b);
            dims->solved[i] = to;
        }
    }
    return dims->solved[d.expr];
}

static enum status unequal(const struct rt_dims *dims, const struct rt_requirement *r,
                           struct error *err)
{
    struct buf text;
    buf_init(&text, 200);
    buf_add_str(&text, "got ");
    rt_dim_print(dims, r->a, &text);
    buf_add_str(&text, ", expected ");
    rt_dim_print(dims, r->b, &text);
    error_set(err, ST_INVALID, "%s: %.*s", r->what, SPAN_FMT(buf_span(&text)));
    buf_fini(&text);
    return ST_INVALID;
}

/* If |d| is c1 * symbol + c0, solves for == |value|. False if it has another form. */
static bool solve_linear(struct rt_dims *dims, struct rt_dim d, int64_t value, bool *out_possible)
{
    struct rt_terms sum = {0};
    rt_dim_collect_terms(dims, d, 1, &sum);
    if (sum.overflow || sum.count != 1 || dims->exprs[sum.items[0].expr].kind != RT_EXPR_SYMBOL) {
        return false;
    }
    uint32_t symbol = sum.items[0].expr;
    int64_t rest, coefficient = sum.items[0].coefficient;
    /* INT64_MIN / -1 has no result; the number is not a valid size anyway. */
    *out_possible =
        sub_i64(value, sum.constant, &rest) && rest != INT64_MIN && rest % coefficient == 0;
    int64_t solution = *out_possible ? rest / coefficient : 0;
    *out_possible =
        *out_possible && solution >= dims->exprs[symbol].lo && solution <= dims->exprs[symbol].hi;
    if (*out_possible) {
        dims->solved[symbol] = rt_dim_of(solution);
        dims->resolved_count = 1;
    }
    return true;
}

/* The later symbol becomes the earlier one, which gets the tighter of the two bounds. */
static void unite(struct rt_dims *dims, uint32_t a, uint32_t b)
{
    uint32_t keep = a < b ? a : b, drop = a < b ? b : a;
    int64_t hi = min_i64(dims->exprs[keep].hi, dims->exprs[drop].hi);
    dims->exprs[keep].lo = max_i64(dims->exprs[keep].lo, dims->exprs[drop].lo);
    dims->exprs[keep].hi = hi;
    dims->solved[drop] = dims->solved[keep] = (struct rt_dim){.value = hi, .expr = keep};
    dims->resolved_count = 1;
}

/* Kept once, and checked at each evaluation. There are few: at most five in the programs that we
 * have. */
static enum status keep_requirement(struct rt_dims *dims, const struct rt_requirement *requirement,
                                    struct error *err)
{
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        const struct rt_requirement *r = &dims->requirements[i];
        if (rt_dim_same(r->a, requirement->a) && rt_dim_same(r->b, requirement->b)) {
            return ST_OK;
        }
    }
    size_t count = (size_t)dims->requirement_count + 1;
    if (count > RT_DIM_EXPRS_MAX ||
        !ARENA_ROOM(dims->arena, dims->requirements, dims->requirement_capacity, count)) {
        dims->failed = true;
        return rt_dims_check(dims, err);
    }
    dims->requirements[dims->requirement_count++] = *requirement;
    return ST_OK;
}

static bool is_symbol(const struct rt_dims *dims, struct rt_dim d)
{
    return d.expr && dims->exprs[d.expr].kind == RT_EXPR_SYMBOL;
}

enum status rt_dim_require_equal(struct rt_dims *dims, struct rt_dim a, struct rt_dim b,
                                 const char *what, struct error *err)
{
    a = rt_dim_resolve(dims, a);
    b = rt_dim_resolve(dims, b);
    if (rt_dim_same(a, b)) {
        return ST_OK;
    }
    const struct rt_requirement requirement = {a, b, what};
    if (!a.expr && b.expr) {
        a = requirement.b;
        b = requirement.a;
    }
    if (!a.expr || (!b.expr && (b.value < rt_dim_lo(dims, a) || b.value > a.value))) {
        return unequal(dims, &requirement, err);
    }
    bool possible;
    if (!b.expr && solve_linear(dims, a, b.value, &possible)) {
        return possible ? ST_OK : unequal(dims, &requirement, err);
    }
    if (is_symbol(dims, a) && is_symbol(dims, b)) {
        unite(dims, a.expr, b.expr);
        return ST_OK;
    }
    return keep_requirement(dims, &requirement, err);
}
