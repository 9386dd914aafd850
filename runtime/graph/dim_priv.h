/* SPDX-License-Identifier: MIT */
/* Shared by dim.c, dim_double.c, dim_solve.c and dim_eval.c. */
#ifndef PTED_RUNTIME_GRAPH_DIM_PRIV_H
#define PTED_RUNTIME_GRAPH_DIM_PRIV_H

#include "base/check.h"
#include "runtime/graph/dim.h"

#define RT_TERMS_MAX 16

struct rt_term {
    uint32_t expr;
    int64_t coefficient;
};

struct rt_terms {
    struct rt_term items[RT_TERMS_MAX];
    uint32_t count;
    int64_t constant;
    bool overflow;
};

/* Adds |scale| * |d| to |sum|. */
void rt_dim_collect_terms(struct rt_dims *dims, struct rt_dim d, int64_t scale,
                          struct rt_terms *sum);

/* Bounds of |e|, which is no symbol, by the |ranges| of all expressions; NULL: by their own. */
struct rt_dim_range rt_dim_range_of(const struct rt_dims *dims, const struct rt_expr *e,
                                    const struct rt_dim_range *ranges);
/* Does the same for the kinds of doubles. Bits have no bounds. */
struct rt_dim_range rt_dim_double_range(const struct rt_dims *dims, const struct rt_expr *e,
                                        const struct rt_dim_range *ranges);
/* Evaluates an expression of doubles; |b| is not used by all kinds. False: no int64 has it. */
bool rt_dim_double_eval(enum rt_expr_kind kind, int64_t a, int64_t b, int64_t *out);

/* The most expressions, and the most requirements: solving a symbol looks at all of these. */
#define RT_DIM_EXPRS_MAX 4096

/* Returns the only expression of that kind over these operands; made if it does not exist yet. */
struct rt_dim rt_dim_intern(struct rt_dims *dims, enum rt_expr_kind kind, struct rt_dim a,
                            struct rt_dim b);

static inline struct rt_dim rt_dim_of_expr(const struct rt_dims *dims, uint32_t expr)
{
    const struct rt_expr *e = &dims->exprs[expr];
    if (e->lo == e->hi && e->kind != RT_EXPR_SYMBOL) {
        return rt_dim_of(e->lo);
    }
    return (struct rt_dim){.value = e->hi, .expr = expr};
}

static inline struct rt_dim_range rt_dim_range_in(const struct rt_dims *dims, struct rt_dim d,
                                                  const struct rt_dim_range *ranges)
{
    return ranges ? rt_dim_range_at(d, ranges) : (struct rt_dim_range){rt_dim_lo(dims, d), d.value};
}

static inline int64_t floor_div(int64_t a, int64_t b)
{
    must(b > 0);
    return a / b - (a % b < 0);
}

/* In [0, b). */
static inline int64_t floor_mod(int64_t a, int64_t b)
{
    must(b > 0);
    return a % b < 0 ? a % b + b : a % b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
