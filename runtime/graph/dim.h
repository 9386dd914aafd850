/* SPDX-License-Identifier: MIT */
/*
 * Sizes that may be unknown. A struct rt_dim is a constant or an expression over symbols; a symbol
 * is one dim of one method input. Every size in a graph is an rt_dim, so that a shape function is
 * written once: at load it runs over symbols and yields the method's shape program, which a request
 * only evaluates.
 *
 * Expressions have a canonical form (sums of products, sorted and shared), so that equal sizes
 * nearly always are the same expression. Each has bounds; a comparison that the bounds decide needs
 * no expression.
 *
 * A number with a fraction is an expression, too: its value is the 64 bits of a double. Such
 * expressions are leaves of the algebra: only the functions for doubles below take them.
 *
 * Shape functions state requirements with rt_dim_require_equal(). A requirement that determines a
 * symbol (a weight's width, say) fixes it; any other is kept and checked for each request.
 */
#ifndef PTED_RUNTIME_GRAPH_DIM_H
#define PTED_RUNTIME_GRAPH_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

struct rt_dim {
    int64_t value; /* the constant, or the upper bound of the expression */
    uint32_t expr; /* 0: constant */
};

enum rt_expr_kind {
    RT_EXPR_SYMBOL,
    RT_EXPR_SUM,      /* a + b */
    RT_EXPR_PRODUCT,  /* a * b */
    RT_EXPR_FLOORDIV, /* floor(a / b), b > 0 */
    RT_EXPR_MOD,      /* a - b * floor(a / b), b > 0 */
    RT_EXPR_MAX,
    RT_EXPR_MIN,
    /* Of doubles, given by their 64 bits; for lengths of ranges. */
    RT_EXPR_DOUBLE,     /* the bits of int a as a double */
    RT_EXPR_DIFFERENCE, /* the bits of double a - double b */
    RT_EXPR_STEPS,      /* the int ceil(a / b) of doubles */
    RT_EXPR_TRUNC,      /* the int that double a is without its fraction */
};

struct rt_expr {
    enum rt_expr_kind kind;
    struct rt_dim a, b;
    int64_t lo, hi; /* saturated bounds */
    uint32_t next;  /* the previous expression with the same hash, or 0 */
};

/* An equality that fixed no symbol. */
struct rt_requirement {
    struct rt_dim a, b;
    const char *what; /* for the message to a request that breaks it */
};

#define RT_DIM_HEADS 256

/* All expressions of one method. Owned by the graph; one thread while it grows, then read-only. */
struct rt_dims {
    struct arena *arena;   /* borrowed */
    struct rt_expr *exprs; /* [0] is unused */
    uint32_t expr_count;
    size_t expr_capacity, solved_capacity;
    uint32_t heads[RT_DIM_HEADS]; /* by hash: the newest expression */
    struct rt_dim
        *solved; /* by expression: the value of a solved symbol; a free symbol is itself */
    uint32_t resolved_count; /* how many entries of |solved| are up to date */
    struct rt_requirement *requirements;
    uint32_t requirement_count;
    size_t requirement_capacity;
    bool failed; /* the arena is exhausted, or an expression grew too large */
};

void rt_dims_init(struct rt_dims *dims, struct arena *arena);

/* Call once a function below has failed: ST_EXHAUSTED if the heap had no memory, ST_TOO_LARGE if
 * there are too many sizes or they are too involved. */
MUST_CHECK enum status rt_dims_check(const struct rt_dims *dims, struct error *err);

static inline struct rt_dim rt_dim_of(int64_t value)
{
    return (struct rt_dim){.value = value};
}

static inline bool rt_dim_is_const(struct rt_dim d)
{
    return d.expr == 0;
}

static inline bool rt_dim_is(struct rt_dim d, int64_t value)
{
    return d.expr == 0 && d.value == value;
}

static inline bool rt_dim_same(struct rt_dim a, struct rt_dim b)
{
    return a.expr == b.expr && (a.expr != 0 || a.value == b.value);
}

/*
 * Dim |number| of a tensor with |rank| dims, counted from its first one: a negative number counts
 * from the end. The shape function has checked it, so it exists; that of a scalar is 0.
 */
static inline uint8_t rt_dim_from_first(int64_t number, uint8_t rank)
{
    return (uint8_t)(number < 0 ? number + (rank ? rank : 1) : number);
}

/* Returns a new symbol in [0, bound]. */
struct rt_dim rt_dim_symbol(struct rt_dims *dims, int64_t bound);
/* Returns a new symbol for a number without bounds: an int that only a run knows. */
struct rt_dim rt_dim_any(struct rt_dims *dims);

/* Arithmetic saturates at the ends of int64 in constants: a size that large is refused anyway. */
struct rt_dim rt_dim_add(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_sub(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_mul(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
/* |b| is positive (the caller has checked a constant; an expression is checked at evaluation). */
struct rt_dim rt_dim_floordiv(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_ceildiv(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_mod(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_max(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_min(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);

/*
 * Doubles, by their bits: |a| and |b| of the last three are bits. Arithmetic is that of doubles, so
 * that lengths of ranges are PyTorch's. A quotient or a whole number that no int64 has makes an
 * evaluation fail; the callers have checked constants.
 */
struct rt_dim rt_dim_of_double(double value);
double rt_dim_to_double(int64_t bits);
struct rt_dim rt_dim_double(struct rt_dims *dims, struct rt_dim a); /* of an int */
struct rt_dim rt_dim_difference(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_steps(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);
struct rt_dim rt_dim_trunc(struct rt_dims *dims, struct rt_dim a);

/* Returns the one of them that makes an expression of |kind|, which is no symbol. */
struct rt_dim rt_dim_apply(struct rt_dims *dims, enum rt_expr_kind kind, struct rt_dim a,
                           struct rt_dim b);

/* Returns the lower bound of |d|. */
int64_t rt_dim_lo(const struct rt_dims *dims, struct rt_dim d);

/* |d| with every solved symbol replaced. */
struct rt_dim rt_dim_resolve(struct rt_dims *dims, struct rt_dim d);

/*
 * From now on a == b. ST_INVALID if that is impossible. |what|, a constant text, names the thing of
 * which |a| is the number; a file or request that breaks the requirement is told "|what|: got 4,
 * expected 6".
 */
MUST_CHECK enum status rt_dim_require_equal(struct rt_dims *dims, struct rt_dim a, struct rt_dim b,
                                            const char *what, struct error *err);

/*
 * Evaluates every expression: values[e] for expression e, from the symbols' values, which the
 * caller has stored. ST_INVALID on overflow, division by zero or a broken requirement. Any thread.
 */
MUST_CHECK enum status rt_dims_eval(const struct rt_dims *dims, int64_t *values, struct error *err);

/* Evaluates as much as possible: for a symbol, is_known[e] says whether values[e] is set; for any
 * other expression it is set here. Ignores requirements. Any thread. */
void rt_dims_eval_known(const struct rt_dims *dims, int64_t *values, bool *is_known);

/* Returns the first requirement that the evaluated |values| break, or NULL. */
const struct rt_requirement *rt_dims_broken(const struct rt_dims *dims, const int64_t *values);

/* Sets |out|, by expression, for all expressions that |d| consists of. */
void rt_dim_mark(const struct rt_dims *dims, struct rt_dim d, bool *out);

/* The range of an expression, both ends included; saturated. */
struct rt_dim_range {
    int64_t lo, hi;
};

/* Computes the range of every expression: ranges[e] for expression e, from the symbols' ranges,
 * which the caller has stored. Any thread. */
void rt_dims_bound(const struct rt_dims *dims, struct rt_dim_range *ranges);

static inline struct rt_dim_range rt_dim_range_at(struct rt_dim d,
                                                  const struct rt_dim_range *ranges)
{
    return d.expr ? ranges[d.expr] : (struct rt_dim_range){d.value, d.value};
}

/* Fails with ST_INVALID if a requirement between known values is broken. */
MUST_CHECK enum status rt_dims_check_known(const struct rt_dims *dims, const int64_t *values,
                                           const bool *is_known, struct error *err);

static inline int64_t rt_dim_at(struct rt_dim d, const int64_t *values)
{
    return d.expr ? values[d.expr] : d.value;
}

/* Prints "8", "s1", "2*s1+1". */
void rt_dim_print(const struct rt_dims *dims, struct rt_dim d, struct buf *out);

#endif
