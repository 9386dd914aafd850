/* SPDX-License-Identifier: MIT */
/*
 * Internal to the quantize pass: its facts about each value. quantize.c walks the graph and calls
 * the others; quantize_moves.c moves quantized numbers through operators that only move them;
 * quantize_products.c makes integer products and convolutions; quantize_between.c makes the
 * operators between these; quantize_scales.c runs first.
 *
 * All integers become u8: 128 is added to each i8 and to its zero point.
 */
#ifndef PTED_RUNTIME_PASSES_QUANTIZE_H
#define PTED_RUNTIME_PASSES_QUANTIZE_H

#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rewrite.h"

enum q_kind {
    Q_UNKNOWN,
    Q_TENSOR,  /* (bytes - zero) * scale */
    Q_ROWS,    /* the same with a scale and a zero point for each row of the last dim */
    Q_WEIGHTS, /* constant i8, zero point 0; a scale for all, each place or each group */
    Q_PRODUCT, /* computed from the above by node |node| */
};

/* Facts about a value: |u8| if it is integers, the rest if it is f32. */
struct q_info {
    uint32_t u8;     /* the same numbers as u8, or 0: the value itself, if it is u8 */
    bool is_flip;    /* |u8| converts the value, instead of replacing it */
    bool is_bounded; /* the clamp that makes the value has already been done */
    uint32_t user;   /* the last node that reads the value */
    enum q_kind kind;
    uint32_t bytes; /* u8; WEIGHTS: i8 */
    double scale;
    int64_t zero;
    uint32_t scales, zeros; /* ROWS: one for each row; WEIGHTS: scales, or 0 */
    uint8_t axis;           /* WEIGHTS: the axis of |scales|, if there are no groups */
    bool is_turned;         /* WEIGHTS: the value is |bytes| transposed */
    int64_t group;          /* WEIGHTS: elements of the last dim that share a scale, or 0 */
    uint32_t node;
};

/* A node that quantizes rows, or RT_NO_NODE, and its integers as u8. */
struct q_rows {
    uint32_t node, u8;
};

struct q_pass {
    struct rt_rewrite rw;
    struct rt_graph *graph;
    struct q_info *info; /* by value; only for values that existed when the pass began */
    bool *is_known;      /* likewise: does it depend only on constants? */
    struct q_rows *rows; /* by value of f32: its quantized rows */
    struct error *err;
};

/* How a result is stored: as u8 numbers clamp(round(y / scale) + zero, min, max). */
struct q_params {
    double scale;
    int64_t zero, min, max;
};

/* Returns the info of a value; of a value that the pass itself made, nothing is known. */
const struct q_info *q_info_of(const struct q_pass *q, uint32_t value);

/* Returns the node that makes |value|, if it existed when the pass began; else NULL. */
const struct rt_node *q_producer(const struct q_pass *q, uint32_t value);

static inline bool q_is(const struct rt_node *node, enum rt_known id)
{
    return rt_op_is(node->op, id);
}

static inline bool q_is_byte(const struct rt_value *v)
{
    return v->kind == RT_TENSOR && (v->dtype == DT_I8 || v->dtype == DT_U8);
}

/* Returns the offset of a zero point or a number of |v| when it becomes u8. */
static inline int64_t q_shift_of(const struct rt_value *v)
{
    return v->dtype == DT_I8 ? 128 : 0;
}

/* Is |v| the same int in every call? */
static inline bool q_fixed_int(const struct rt_value *v, int64_t *out_value)
{
    if (v->kind != RT_INT || !rt_dim_is_const(v->i)) {
        return false;
    }
    *out_value = v->i.value;
    return true;
}

static inline uint32_t q_int(struct q_pass *q, int64_t value)
{
    return rt_graph_int(q->graph, rt_dim_of(value));
}

MUST_CHECK enum status q_quantize(struct q_pass *q, uint32_t x, const struct q_params *params,
                                  uint32_t *out_value);
MUST_CHECK enum status q_dequantize(struct q_pass *q, uint32_t bytes, double scale, int64_t zero,
                                    uint32_t *out_value);

/* ---- quantize_scales.c ----------------------------------------------------------------------- */

/* Replaces scales and zero points in constant tensors by numbers, before the pass begins. */
MUST_CHECK enum status q_settle_scales(struct rt_graph *graph, struct error *err);

/* ---- quantize_moves.c ------------------------------------------------------------------------ */

/* Does |node| only move some or all numbers of its argument 0? */
bool q_can_move(const struct q_pass *q, const struct rt_node *node);

/* Makes such a node |index| move integers, if its argument has them. */
MUST_CHECK enum status q_move(struct q_pass *q, uint32_t index);

/* Concatenates integers, or floats that are all stored with the same scale and zero point. */
MUST_CHECK enum status q_move_cat(struct q_pass *q, uint32_t index);

/* ---- quantize_products.c --------------------------------------------------------------------- */

/* Marks the output of node |index| as Q_PRODUCT if it can be computed from integers. */
void q_note_product(struct q_pass *q, uint32_t index);

/* Makes the node with integers; |params| NULL: its result is floats. */
MUST_CHECK enum status q_make_product(struct q_pass *q, uint32_t index,
                                      const struct q_params *params, uint32_t *out_value);

/* ---- quantize_between.c ---------------------------------------------------------------------- */

/* Stores f32 |value| as |params| say, computed from the stored inputs of its producer; *out_value
 * 0: only by computing the floats. */
MUST_CHECK enum status q_make_between(struct q_pass *q, uint32_t value,
                                      const struct q_params *params, uint32_t *out_value);

/* Stores the same numbers with other parameters. */
MUST_CHECK enum status q_restore(struct q_pass *q, const struct q_info *x,
                                 const struct q_params *params, uint32_t *out_value);

#endif
