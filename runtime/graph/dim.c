/* SPDX-License-Identifier: MIT */
/*
 * Canonical integer expressions.
 *
 * A sum is a list of terms sorted by expression number, each a non-constant product with a constant
 * coefficient, plus one constant. A product is a list of factors sorted by number. Both are taken
 * apart, merged and put together again through rt_dim_intern(), which returns the same number for
 * the same expression. The lists are short (a handful of symbols in real programs) and have a fixed
 * maximum: a file that needs more is refused, so work here is bounded by the number of nodes.
 */
#include "config.h"

#include "runtime/graph/dim.h"

#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/check.h"
#include "runtime/graph/dim_priv.h"

enum status rt_dims_check(const struct rt_dims *dims, struct error *err)
{
    if (!dims->failed) {
        return ST_OK;
    }
    return dims->arena->refusal == ST_EXHAUSTED
               ? arena_fail(dims->arena, "the sizes of the method", err)
               : error_set(err, ST_TOO_LARGE,
                           "the sizes of the method are too many or too involved");
}

void rt_dims_init(struct rt_dims *dims, struct arena *arena)
{
    *dims = (struct rt_dims){.arena = arena, .expr_count = 1, .resolved_count = 1};
}

static int64_t sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    return add_i64(a, b, &sum) ? sum : (a < 0 ? INT64_MIN : INT64_MAX);
}

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t product;
    return mul_i64(a, b, &product) ? product : ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN);
}

int64_t rt_dim_lo(const struct rt_dims *dims, struct rt_dim d)
{
    return d.expr ? dims->exprs[d.expr].lo : d.value;
}

struct rt_dim_range rt_dim_range_of(const struct rt_dims *dims, const struct rt_expr *e,
                                    const struct rt_dim_range *ranges)
{
    struct rt_dim_range a = rt_dim_range_in(dims, e->a, ranges);
    struct rt_dim_range b = rt_dim_range_in(dims, e->b, ranges);
    switch (e->kind) {
    case RT_EXPR_SYMBOL:
        break;
    case RT_EXPR_SUM:
        return (struct rt_dim_range){sat_add(a.lo, b.lo), sat_add(a.hi, b.hi)};
    case RT_EXPR_PRODUCT: {
        int64_t p = sat_mul(a.lo, b.lo), q = sat_mul(a.lo, b.hi);
        int64_t r = sat_mul(a.hi, b.lo), s = sat_mul(a.hi, b.hi);
        return (struct rt_dim_range){min_i64(min_i64(p, q), min_i64(r, s)),
                                     max_i64(max_i64(p, q), max_i64(r, s))};
    }
    case RT_EXPR_FLOORDIV:
        /* The divisor is at least 1 during evaluation, so the quotient is not further from 0. */
        return (struct rt_dim_range){a.lo < 0 ? a.lo : 0,
                                     a.hi > 0 ? floor_div(a.hi, max_i64(b.lo, 1)) : 0};
    case RT_EXPR_MOD:
        return (struct rt_dim_range){0, max_i64(b.hi - (b.hi > 0), 0)};
    case RT_EXPR_MAX:
        return (struct rt_dim_range){max_i64(a.lo, b.lo), max_i64(a.hi, b.hi)};
    case RT_EXPR_MIN:
        return (struct rt_dim_range){min_i64(a.lo, b.lo), min_i64(a.hi, b.hi)};
    case RT_EXPR_DOUBLE:
    case RT_EXPR_DIFFERENCE:
    case RT_EXPR_STEPS:
    case RT_EXPR_TRUNC:
        return rt_dim_double_range(dims, e, ranges);
    }
    unreachable();
}

static void bounds_of(const struct rt_dims *dims, struct rt_expr *e)
{
    if (e->kind != RT_EXPR_SYMBOL) {
        struct rt_dim_range range = rt_dim_range_of(dims, e, NULL);
        e->lo = range.lo;
        e->hi = range.hi;
    }
}

static uint32_t hash(enum rt_expr_kind kind, struct rt_dim a, struct rt_dim b)
{
    uint64_t mixed = (a.expr ? a.expr : (uint64_t)a.value * 31) * 0x9e3779b97f4a7c15;
    mixed =
        (mixed + (b.expr ? b.expr : (uint64_t)b.value * 31) + (uint64_t)kind) * 0xd6e8feb86659fd93;
    return (uint32_t)(mixed >> 32) % RT_DIM_HEADS;
}

static struct rt_dim append(struct rt_dims *dims, struct rt_expr e)
{
    size_t count = (size_t)dims->expr_count + 1;
    if (count > RT_DIM_EXPRS_MAX ||
        !ARENA_ROOM(dims->arena, dims->exprs, dims->expr_capacity, count) ||
        !ARENA_ROOM(dims->arena, dims->solved, dims->solved_capacity, count)) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    uint32_t expr = dims->expr_count++, *head = &dims->heads[hash(e.kind, e.a, e.b)];
    e.next = *head;
    *head = expr;
    dims->exprs[expr] = e;
    dims->solved[expr] = (struct rt_dim){.value = e.hi, .expr = expr};
    return rt_dim_of_expr(dims, expr);
}

struct rt_dim rt_dim_symbol(struct rt_dims *dims, int64_t bound)
{
    must(bound >= 0);
    return append(dims, (struct rt_expr){.kind = RT_EXPR_SYMBOL, .hi = bound});
}

struct rt_dim rt_dim_any(struct rt_dims *dims)
{
    return append(dims, (struct rt_expr){.kind = RT_EXPR_SYMBOL, .lo = INT64_MIN, .hi = INT64_MAX});
}

struct rt_dim rt_dim_intern(struct rt_dims *dims, enum rt_expr_kind kind, struct rt_dim a,
                            struct rt_dim b)
{
    must(a.expr < dims->expr_count && b.expr < dims->expr_count);
    for (uint32_t i = dims->heads[hash(kind, a, b)]; i; i = dims->exprs[i].next) {
        const struct rt_expr *e = &dims->exprs[i];
        if (e->kind == kind && rt_dim_same(e->a, a) && rt_dim_same(e->b, b)) {
            return rt_dim_of_expr(dims, i);
        }
    }
    struct rt_expr e = {.kind = kind, .a = a, .b = b};
    bounds_of(dims, &e);
    return append(dims, e);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Multiplies |product| (factors in items, coefficient in constant) by |d|. */
static void collect_factors(const struct rt_dims *dims, struct rt_dim d, struct rt_terms *product)
{
    while (d.expr && dims->exprs[d.expr].kind == RT_EXPR_PRODUCT) {
        collect_factors(dims, dims->exprs[d.expr].b, product); /* b is a single factor */
        d = dims->exprs[d.expr].a;
    }
    if (!d.expr) {
        product->overflow |= !mul_i64(product->constant, d.value, &product->constant);
        return;
    }
    if (product->count == RT_TERMS_MAX) {
        product->overflow = true;
        return;
    }
    uint32_t at = product->count++;
    for (; at > 0 && product->items[at - 1].expr > d.expr; at--) {
        product->items[at] = product->items[at - 1];
    }
    product->items[at] = (struct rt_term){.expr = d.expr};
}

static struct rt_dim build_product(struct rt_dims *dims, const struct rt_terms *product)
{
    if (product->constant == 0) {
        return rt_dim_of(0);
    }
    struct rt_dim result = rt_dim_of(product->constant);
    for (uint32_t i = 0; i < product->count; i++) {
        struct rt_dim factor = rt_dim_of_expr(dims, product->items[i].expr);
        result =
            rt_dim_is(result, 1) ? factor : rt_dim_intern(dims, RT_EXPR_PRODUCT, result, factor);
    }
    return result;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_term(struct rt_terms *sum, uint32_t expr, int64_t coefficient)
{
    uint32_t at = 0;
    while (at < sum->count && sum->items[at].expr < expr) {
        at++;
    }
    if (at < sum->count && sum->items[at].expr == expr) {
        sum->overflow |=
            !add_i64(sum->items[at].coefficient, coefficient, &sum->items[at].coefficient);
        if (sum->items[at].coefficient == 0) {
            sum->count--;
            memmove(&sum->items[at], &sum->items[at + 1],
                    (sum->count - at) * sizeof(sum->items[0]));
        }
        return;
    }
    if (sum->count == RT_TERMS_MAX) {
        sum->overflow = true;
        return;
    }
    memmove(&sum->items[at + 1], &sum->items[at], (sum->count - at) * sizeof(sum->items[0]));
    sum->items[at] = (struct rt_term){expr, coefficient};
    sum->count++;
}

void rt_dim_collect_terms(struct rt_dims *dims, struct rt_dim d, int64_t scale,
                          struct rt_terms *sum)
{
    while (d.expr && dims->exprs[d.expr].kind == RT_EXPR_SUM) {
        struct rt_dim single = dims->exprs[d.expr].b;
        d = dims->exprs[d.expr].a;
        rt_dim_collect_terms(dims, single, scale, sum);
    }
    struct rt_terms product = {.constant = scale};
    collect_factors(dims, d, &product);
    sum->overflow |= product.overflow;
    if (product.count == 0) {
        sum->overflow |= !add_i64(sum->constant, product.constant, &sum->constant);
        return;
    }
    int64_t coefficient = product.constant;
    product.constant = 1;
    struct rt_dim unit = build_product(dims, &product);
    if (coefficient != 0 && unit.expr) {
        add_term(sum, unit.expr, coefficient);
    }
}

static struct rt_dim build_sum(struct rt_dims *dims, const struct rt_terms *sum)
{
    struct rt_dim result = {0};
    bool is_first = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        struct rt_terms product = {.constant = sum->items[i].coefficient};
        collect_factors(dims, rt_dim_of_expr(dims, sum->items[i].expr), &product);
        struct rt_dim term = build_product(dims, &product);
        result = is_first ? term : rt_dim_intern(dims, RT_EXPR_SUM, result, term);
        is_first = false;
    }
    if (is_first) {
        return rt_dim_of(sum->constant);
    }
    return sum->constant ? rt_dim_intern(dims, RT_EXPR_SUM, result, rt_dim_of(sum->constant))
                         : result;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static struct rt_dim add_scaled(struct rt_dims *dims, struct rt_dim a, struct rt_dim b,
                                int64_t scale)
{
    if (!a.expr && !b.expr) {
        return rt_dim_of(sat_add(a.value, sat_mul(b.value, scale)));
    }
    struct rt_terms sum = {0};
    rt_dim_collect_terms(dims, a, 1, &sum);
    rt_dim_collect_terms(dims, b, scale, &sum);
    if (sum.overflow) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    return build_sum(dims, &sum);
}

struct rt_dim rt_dim_add(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    return add_scaled(dims, a, b, 1);
}

struct rt_dim rt_dim_sub(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    return add_scaled(dims, a, b, -1);
}

struct rt_dim rt_dim_mul(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    if (!a.expr && !b.expr) {
        return rt_dim_of(sat_mul(a.value, b.value));
    }
    struct rt_terms product = {.constant = 1};
    collect_factors(dims, a, &product);
    collect_factors(dims, b, &product);
    if (product.overflow) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    return build_product(dims, &product);
}

/* Removes factors that both products have; removes a coefficient only if one divides the other. */
static void cancel_common(struct rt_terms *a, struct rt_terms *b)
{
    for (uint32_t i = 0; i < b->count;) {
        uint32_t j = 0;
        while (j < a->count && a->items[j].expr != b->items[i].expr) {
            j++;
        }
        if (j == a->count) {
            i++;
            continue;
        }
        a->count--;
        memmove(&a->items[j], &a->items[j + 1], (a->count - j) * sizeof(a->items[0]));
        b->count--;
        memmove(&b->items[i], &b->items[i + 1], (b->count - i) * sizeof(b->items[0]));
    }
    if (b->constant > 0 && a->constant % b->constant == 0) {
        a->constant /= b->constant;
        b->constant = 1;
    }
}

struct rt_dim rt_dim_floordiv(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    if (!b.expr && b.value <= 0) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    if (!a.expr && !b.expr) {
        return rt_dim_of(floor_div(a.value, b.value));
    }
    struct rt_terms above = {.constant = 1}, below = {.constant = 1};
    collect_factors(dims, a, &above);
    collect_factors(dims, b, &below);
    if (!above.overflow && !below.overflow) {
        cancel_common(&above, &below);
        a = build_product(dims, &above);
        b = build_product(dims, &below);
    }
    if (!a.expr && !b.expr && b.value > 0) {
        return rt_dim_of(floor_div(a.value, b.value));
    }
    return rt_dim_is(b, 1) ? a : rt_dim_intern(dims, RT_EXPR_FLOORDIV, a, b);
}

struct rt_dim rt_dim_ceildiv(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    /* In this order a saturated sum is still enough: MAX / b is 1 or more. */
    struct rt_dim up = rt_dim_add(dims, a, rt_dim_sub(dims, b, rt_dim_of(1)));
    return rt_dim_floordiv(dims, up, b);
}

struct rt_dim rt_dim_mod(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    if (!b.expr && b.value <= 0) {
        dims->failed = true;
        return rt_dim_of(0);
    }
    if (!a.expr && !b.expr) {
        return rt_dim_of(floor_mod(a.value, b.value));
    }
    return rt_dim_is(b, 1) ? rt_dim_of(0) : rt_dim_intern(dims, RT_EXPR_MOD, a, b);
}

/* The operand that is the larger (smaller) one for all symbols, if the bounds show that. */
static bool bounds_decide(const struct rt_dims *dims, struct rt_dim a, struct rt_dim b,
                          struct rt_dim *larger, struct rt_dim *smaller)
{
    if (rt_dim_same(a, b) || rt_dim_lo(dims, a) >= b.value) {
        *larger = a;
        *smaller = b;
        return true;
    }
    if (rt_dim_lo(dims, b) >= a.value) {
        *larger = b;
        *smaller = a;
        return true;
    }
    return false;
}

struct rt_dim rt_dim_max(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    struct rt_dim larger, smaller;
    return bounds_decide(dims, a, b, &larger, &smaller) ? larger
           : a.expr < b.expr                            ? rt_dim_intern(dims, RT_EXPR_MAX, a, b)
                                                        : rt_dim_intern(dims, RT_EXPR_MAX, b, a);
}

struct rt_dim rt_dim_min(struct rt_dims *dims, struct rt_dim a, struct rt_dim b)
{
    struct rt_dim larger, smaller;
    return bounds_decide(dims, a, b, &larger, &smaller) ? smaller
           : a.expr < b.expr                            ? rt_dim_intern(dims, RT_EXPR_MIN, a, b)
                                                        : rt_dim_intern(dims, RT_EXPR_MIN, b, a);
}
