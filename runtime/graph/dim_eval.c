/* SPDX-License-Identifier: MIT */
/* Evaluates sizes once the sizes of a call's inputs are known. */
#include "config.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/graph/dim_priv.h"

static bool eval_one(const struct rt_expr *e, int64_t a, int64_t b, int64_t *out)
{
    switch (e->kind) {
    case RT_EXPR_SUM:
        return add_i64(a, b, out);
    case RT_EXPR_PRODUCT:
        return mul_i64(a, b, out);
    case RT_EXPR_FLOORDIV:
        *out = b > 0 ? floor_div(a, b) : 0;
        return b > 0;
    case RT_EXPR_MOD:
        *out = b > 0 ? floor_mod(a, b) : 0;
        return b > 0;
    case RT_EXPR_MAX:
        *out = max_i64(a, b);
        return true;
    case RT_EXPR_MIN:
        *out = min_i64(a, b);
        return true;
    case RT_EXPR_DOUBLE:
    case RT_EXPR_DIFFERENCE:
    case RT_EXPR_STEPS:
    case RT_EXPR_TRUNC:
        return rt_dim_double_eval(e->kind, a, b, out);
    case RT_EXPR_SYMBOL:
        break;
    }
    unreachable();
}

/* max(a, x) == a means that a is at least x. */
static bool is_lower_bound(const struct rt_dims *dims, const struct rt_requirement *r)
{
    const struct rt_expr *e = &dims->exprs[r->b.expr];
    return r->b.expr && e->kind == RT_EXPR_MAX &&
           (rt_dim_same(e->a, r->a) || rt_dim_same(e->b, r->a));
}

static enum status check_requirement(const struct rt_dims *dims, const struct rt_requirement *r,
                                     const int64_t *values, struct error *err)
{
    int64_t a = rt_dim_at(r->a, values), b = rt_dim_at(r->b, values);
    return a == b ? ST_OK
                  : error_set(err, ST_INVALID, "%s: got %" PRId64 ", expected %s%" PRId64, r->what,
                              a, is_lower_bound(dims, r) ? "at least " : "", b);
}

enum status rt_dims_eval(const struct rt_dims *dims, int64_t *values, struct error *err)
{
    for (uint32_t i = 1; i < dims->expr_count; i++) {
        const struct rt_expr *e = &dims->exprs[i];
        if (e->kind == RT_EXPR_SYMBOL) {
            /* Expressions made before the symbol was solved are evaluated, too. */
            values[i] = dims->solved[i].expr == i ? values[i] : rt_dim_at(dims->solved[i], values);
        } else if (!eval_one(e, rt_dim_at(e->a, values), rt_dim_at(e->b, values), &values[i])) {
            return error_set(
                err, ST_INVALID,
                "a size that follows from the inputs' dims is too large, or divided by 0");
        }
    }
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        TRY(check_requirement(dims, &dims->requirements[i], values, err));
    }
    return ST_OK;
}

const struct rt_requirement *rt_dims_broken(const struct rt_dims *dims, const int64_t *values)
{
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        const struct rt_requirement *r = &dims->requirements[i];
        if (rt_dim_at(r->a, values) != rt_dim_at(r->b, values)) {
            return r;
        }
    }
    return NULL;
}

/* An expression consists of earlier expressions. */
void rt_dim_mark(const struct rt_dims *dims, struct rt_dim d, bool *out)
{
    out[d.expr] = true;
    for (uint32_t i = d.expr; i > 0; i--) {
        const struct rt_expr *e = &dims->exprs[i];
        if (out[i] && e->kind != RT_EXPR_SYMBOL) {
            out[e->a.expr] = out[e->b.expr] = true;
        }
    }
}

static bool is_known_dim(struct rt_dim d, const bool *is_known)
{
    return d.expr == 0 || is_known[d.expr];
}

void rt_dims_eval_known(const struct rt_dims *dims, int64_t *values, bool *is_known)
{
    for (uint32_t i = 1; i < dims->expr_count; i++) {
        const struct rt_expr *e = &dims->exprs[i];
        if (e->kind != RT_EXPR_SYMBOL) {
            is_known[i] = is_known_dim(e->a, is_known) && is_known_dim(e->b, is_known) &&
                          eval_one(e, rt_dim_at(e->a, values), rt_dim_at(e->b, values), &values[i]);
        } else if (dims->solved[i].expr != i) {
            is_known[i] = is_known_dim(dims->solved[i], is_known);
            values[i] = rt_dim_at(dims->solved[i], values);
        }
    }
}

void rt_dims_bound(const struct rt_dims *dims, struct rt_dim_range *ranges)
{
    for (uint32_t i = 1; i < dims->expr_count; i++) {
        const struct rt_expr *e = &dims->exprs[i];
        if (e->kind != RT_EXPR_SYMBOL) {
            ranges[i] = rt_dim_range_of(dims, e, ranges);
        } else if (dims->solved[i].expr != i) {
            ranges[i] = rt_dim_range_at(dims->solved[i], ranges);
        }
    }
}

enum status rt_dims_check_known(const struct rt_dims *dims, const int64_t *values,
                                const bool *is_known, struct error *err)
{
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        const struct rt_requirement *r = &dims->requirements[i];
        if (is_known_dim(r->a, is_known) && is_known_dim(r->b, is_known)) {
            TRY(check_requirement(dims, r, values, err));
        }
    }
    return ST_OK;
}
