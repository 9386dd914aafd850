/* SPDX-License-Identifier: MIT */
/* First all writes and all attentions are found, and nothing else may read a buffer; then all of
 * them are made anew. */
#include "config.h"

#include "runtime/passes/caches.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rewrite.h"

enum { PUT_CACHE, PUT_INDICES, PUT_ROWS, PUT_ACCUMULATE };
enum { CAT_LIST, CAT_DIM };
enum { CACHE_BATCH, CACHE_HEADS, CACHE_ROWS = RT_CACHES_ROWS, CACHE_DEPTH };

/* A buffer's write: the node that makes its new content, and the buffer before it. */
struct write {
    uint32_t node, cache, rows, made;
    uint32_t range;      /* the places of the rows; 0: they go behind those that are there */
    struct rt_dim count; /* of the rows */
    uint32_t readers;    /* attentions that have been found */
};

struct attend {
    uint32_t q, key, value; /* the latter are numbers of writes */
    uint32_t out;           /* of the second product */
    double scale;
};

/* The values of an attention that views lie between. */
struct products {
    const struct rt_node *first, *second;
    uint32_t keys, scores, masked; /* keys repeated by group; the scores; with the mask */
};

struct search {
    struct rt_rewrite rw;
    struct rt_graph *graph;
    struct write *writes;
    struct attend *attends;
    uint32_t write_count, attend_count;
    uint32_t *write_of; /* by value: number of the write that makes it, + 1 */
    uint32_t *state_of; /* by value: number of the growing cache whose rows it has, + 1 */
    uint32_t input;     /* the position */
    const struct rt_caches_growing *growing; /* NULL: the buffers are written by index */
};

static const struct rt_value *value_of(const struct search *s, uint32_t value)
{
    return &s->graph->values[value];
}

static const struct rt_node *made_by(const struct search *s, uint32_t value, enum rt_known op)
{
    return rt_rewrite_producer(&s->rw, value, op);
}

static bool is_number(const struct search *s, uint32_t value, double number)
{
    const struct rt_value *v = value_of(s, value);
    bool is_scalar = v->kind == RT_INT || v->kind == RT_FLOAT || v->kind == RT_BOOL;
    return is_scalar && rt_value_is_fixed(v) && rt_value_number(v) == number;
}

/* Is it a tensor of one element with that number? */
static bool is_filled(const struct search *s, uint32_t value, double number)
{
    const struct rt_node *scalar = made_by(s, value, RT_KNOWN_scalar_tensor);
    return scalar && is_number(s, scalar->args[0], number);
}

/* The value of which |value| is another view; the order of elements is the same. */
static uint32_t under_views(const struct search *s, uint32_t value)
{
    const struct rt_node *node;
    while ((node = made_by(s, value, RT_KNOWN_view)) != NULL ||
           (node = made_by(s, value, RT_KNOWN_unsqueeze)) != NULL) {
        value = node->args[0];
    }
    return value;
}

static bool has_dims(const struct rt_value *v, uint8_t rank)
{
    return v->kind == RT_TENSOR && v->rank == rank && v->dims;
}

static bool has_dims_of(const struct search *s, uint32_t value, uint8_t rank,
                        const struct rt_dim *dims)
{
    const struct rt_value *v = value_of(s, value);
    bool has = has_dims(v, rank);
    for (uint8_t d = 0; has && d < rank; d++) {
        has = rt_dim_same(v->dims[d], dims[d]);
    }
    return has;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Numbers of another type wrap or are rounded. */
static bool has_places(const struct rt_value *v)
{
    return v->kind == RT_TENSOR && (v->dtype == DT_I64 || v->dtype == DT_I32);
}

/* Is |value| the numbers from 0 on? */
static bool is_range(const struct search *s, uint32_t value)
{
    const struct rt_node *range = made_by(s, value, RT_KNOWN_arange_start);
    return range && has_places(value_of(s, value)) && is_number(s, range->args[0], 0) &&
           is_number(s, range->args[2], 1);
}

/* The method's input with one position, of which |value| is a view; 0: it is none. */
static uint32_t position_under(const struct search *s, uint32_t value)
{
    value = under_views(s, value);
    const struct rt_value *v = value_of(s, value);
    for (uint32_t i = 0; i < s->graph->input_count; i++) {
        if (s->graph->inputs[i] == value) {
            return has_dims(v, 1) && v->dtype == DT_I64 && rt_dim_is(v->dims[0], 1) ? value : 0;
        }
    }
    return 0;
}

/* The position in position + arange(n), which |value| is; 0: it is another one. */
static uint32_t start_of(const struct search *s, uint32_t value)
{
    const struct rt_node *add = made_by(s, value, RT_KNOWN_add);
    if (!add || !has_dims(value_of(s, value), 1) || !has_places(value_of(s, value)) ||
        !is_number(s, add->args[2], 1)) {
        return 0;
    }
    uint32_t range = is_range(s, add->args[0]) ? 0 : 1;
    return is_range(s, add->args[range]) ? position_under(s, add->args[1 - range]) : 0;
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* An index that names all of a dim of |size|: none, or a column of its numbers in order. */
static bool names_all(const struct search *s, uint32_t index, int64_t size)
{
    const struct rt_value *v = value_of(s, index);
    struct shape shape;
    if (v->kind == RT_NONE) {
        return true;
    }
    if (v->kind != RT_TENSOR || !v->is_constant || v->dtype != DT_I64 ||
        !rt_value_shape(v, &shape) || shape_numel(&shape) != size ||
        v->bytes.len != (size_t)size * sizeof(int64_t)) {
        return false;
    }
    bool is_column = size == 1 || (shape.rank == 2 && shape.dims[1] == 1);
    for (int64_t i = 0; is_column && i < size; i++) {
        int64_t number;
        memcpy(&number, v->bytes.ptr + (size_t)i * sizeof(number), sizeof(number));
        is_column = number == i;
    }
    return is_column;
}

static bool writes_rows(struct search *s, const struct rt_node *put, struct write *out)
{
    const struct rt_value *cache = rt_node_arg(s->graph, put, PUT_CACHE);
    const struct rt_value *list = rt_node_arg(s->graph, put, PUT_INDICES);
    const struct rt_value *rows = rt_node_arg(s->graph, put, PUT_ROWS);
    struct shape shape;
    if (!rt_value_shape(cache, &shape) || shape.rank != 4 || shape.dims[CACHE_BATCH] != 1 ||
        shape.dims[CACHE_HEADS] < 1 || cache->dtype != DT_F32 || list->count != 3 ||
        !has_dims(rows, 4) || !is_number(s, put->args[PUT_ACCUMULATE], 0) ||
        !names_all(s, list->values[0], 1) ||
        !names_all(s, list->values[1], shape.dims[CACHE_HEADS])) {
        return false;
    }
    uint32_t range = list->values[2], input = start_of(s, range);
    bool is_same = input && (s->input == RT_CACHES_NONE || s->input == input);
    for (uint8_t d = 0; is_same && d < 4; d++) {
        struct rt_dim expected = d == CACHE_ROWS ? value_of(s, range)->dims[0] : cache->dims[d];
        is_same = rt_dim_same(rows->dims[d], expected);
    }
    if (is_same) {
        s->input = input;
        *out = (struct write){.cache = put->args[PUT_CACHE],
                              .rows = put->args[PUT_ROWS],
                              .range = range,
                              .count = rows->dims[CACHE_ROWS]};
    }
    return is_same;
}

/* Each buffer that is read is read by one write, and its new content goes to one reader. */
static bool find_writes(struct search *s, uint32_t first_state)
{
    for (uint32_t i = first_state; i < s->graph->input_count; i++) {
        uint32_t uses = rt_rewrite_uses(&s->rw, s->graph->inputs[i]);
        if (uses > 1) {
            return false;
        }
        s->write_of[s->graph->inputs[i]] = uses ? UINT32_MAX : 0; /* to be seen */
    }
    for (uint32_t i = 0; i < s->rw.node_count; i++) {
        const struct rt_node *node = &s->graph->nodes[i];
        struct rt_tensors args = rt_node_arg_tensors(s->graph, node);
        for (uint32_t value; rt_tensors_next(&args, &value);) {
            if (s->write_of[value] != UINT32_MAX) {
                continue;
            }
            struct write *write = &s->writes[s->write_count];
            if (!rt_op_is(node->op, RT_KNOWN_index_put) || node->args[PUT_CACHE] != value ||
                !writes_rows(s, node, write) || rt_rewrite_uses(&s->rw, node->outs[0]) != 2) {
                return false;
            }
            write->node = i;
            s->write_of[value] = 0;
            s->write_of[node->outs[0]] = ++s->write_count;
            break;
        }
    }
    return s->write_count > 0;
}

/* Does |cat| put rows behind those of a cache, which are |before|? |cache|: the buffer. */
static bool appends_rows(const struct search *s, const struct rt_node *cat, uint32_t before,
                         uint32_t cache, struct write *out)
{
    const struct rt_value *list = rt_node_arg(s->graph, cat, CAT_LIST);
    const struct rt_value *c = value_of(s, cache);
    if (list->count != 2 || list->values[0] != before || c->dtype != DT_F32 ||
        !(is_number(s, cat->args[CAT_DIM], CACHE_ROWS) ||
          is_number(s, cat->args[CAT_DIM], CACHE_ROWS - 4))) {
        return false;
    }
    const struct rt_value *rows = value_of(s, list->values[1]);
    bool fits = has_dims(rows, 4) && rows->dtype == DT_F32 && rt_dim_is(c->dims[CACHE_BATCH], 1) &&
                rt_dim_is_const(c->dims[CACHE_HEADS]) && c->dims[CACHE_HEADS].value > 0;
    for (uint8_t d = 0; fits && d < 4; d++) {
        fits = d == CACHE_ROWS || rt_dim_same(rows->dims[d], c->dims[d]);
    }
    if (fits) {
        *out = (struct write){
            .cache = cache, .rows = list->values[1], .count = rows->dims[CACHE_ROWS]};
    }
    return fits;
}

/* The rows before the call have one reader, which puts the new ones behind them, and the sum goes
 * to one reader and to the next call. */
static bool find_appended(struct search *s, uint32_t first_state)
{
    uint32_t states = s->graph->input_count - first_state;
    for (uint32_t i = 0; i < states; i++) {
        uint32_t before = s->growing->before[i];
        if (rt_rewrite_uses(&s->rw, before) != 1) {
            return false;
        }
        s->state_of[before] = i + 1;
    }
    for (uint32_t i = 0; i < s->rw.node_count; i++) {
        const struct rt_node *node = &s->graph->nodes[i];
        struct rt_tensors args = rt_node_arg_tensors(s->graph, node);
        for (uint32_t value; rt_tensors_next(&args, &value);) {
            uint32_t state = s->state_of[value];
            struct write *write = &s->writes[s->write_count];
            if (state == 0) {
                continue;
            }
            if (!rt_op_is(node->op, RT_KNOWN_cat) ||
                !appends_rows(s, node, value, s->graph->inputs[first_state + state - 1], write) ||
                s->growing->after[state - 1] != node->outs[0] ||
                rt_rewrite_uses(&s->rw, node->outs[0]) != 2) {
                return false;
            }
            write->node = i;
            s->write_of[node->outs[0]] = ++s->write_count;
            break;
        }
    }
    return s->write_count == states;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Is [1, heads, 1, T, depth], of the cache |written| [1, heads, T, depth], repeated along dim 2? */
static bool is_group(const struct search *s, const struct rt_node *expand,
                     const struct rt_value *written)
{
    const struct rt_value *to = value_of(s, expand->outs[0]);
    struct rt_dim dims[5] = {rt_dim_of(1), written->dims[CACHE_HEADS], rt_dim_of(1),
                             written->dims[CACHE_ROWS], written->dims[CACHE_DEPTH]};
    bool is = has_dims(to, 5) && rt_dim_is_const(to->dims[2]) && to->dims[2].value > 0 &&
              has_dims_of(s, expand->args[0], 5, dims);
    dims[2] = is ? to->dims[2] : dims[2];
    return is && has_dims_of(s, expand->outs[0], 5, dims);
}

/* Number of the write, + 1, of which |value| is the new content, each head repeated for its group;
 * 0: it is none. Views may be between them, of the same elements in the same order, and nothing
 * else reads what is between them. */
static uint32_t write_under(const struct search *s, uint32_t value, int64_t *out_group)
{
    const struct rt_node *group = NULL;
    while (!s->write_of[value]) {
        const struct rt_node *node = made_by(s, value, RT_KNOWN_view);
        node = node ? node : made_by(s, value, RT_KNOWN_unsqueeze);
        const struct rt_node *expand = node ? NULL : made_by(s, value, RT_KNOWN_expand);
        if ((!node && !expand) || (expand && group) || rt_rewrite_uses(&s->rw, value) != 1) {
            return 0;
        }
        group = expand ? expand : group;
        value = (node ? node : expand)->args[0];
    }
    if (group && !is_group(s, group, value_of(s, value))) {
        return 0;
    }
    *out_group = group ? value_of(s, group->outs[0])->dims[2].value : 1;
    return s->write_of[value];
}

/* Takes a factor away from |*value|. */
static double take_factor(const struct search *s, uint32_t *value)
{
    const struct rt_node *mul = made_by(s, *value, RT_KNOWN_mul_scalar);
    if (!mul || !rt_value_is_fixed(rt_node_arg(s->graph, mul, 1))) {
        return 1;
    }
    *value = mul->args[0];
    return rt_value_number(rt_node_arg(s->graph, mul, 1));
}

/* The softmax whose result |value| is, with or without the check for rows that a mask hides. No one
 * else reads it. NULL: it is none. */
static const struct rt_node *softmax_under(const struct search *s, uint32_t value)
{
    const struct rt_node *softmax = made_by(s, value, RT_KNOWN_softmax);
    const struct rt_node *where = made_by(s, value, RT_KNOWN_where);
    if (rt_rewrite_uses(&s->rw, value) != 1 || softmax || !where) {
        return softmax && rt_rewrite_uses(&s->rw, value) == 1 &&
                       rt_rewrite_uses(&s->rw, softmax->args[0]) == 1
                   ? softmax
                   : NULL;
    }
    softmax = made_by(s, where->args[2], RT_KNOWN_softmax);
    const struct rt_node *zeros = made_by(s, where->args[1], RT_KNOWN_full_like);
    const struct rt_node *not_any = made_by(s, where->args[0], RT_KNOWN_logical_not);
    const struct rt_node *any = not_any ? made_by(s, not_any->args[0], RT_KNOWN_any) : NULL;
    const struct rt_node *seen = any ? made_by(s, any->args[0], RT_KNOWN_logical_not) : NULL;
    const struct rt_node *hidden = seen ? made_by(s, seen->args[0], RT_KNOWN_eq_scalar) : NULL;
    bool is_check = softmax && zeros && hidden && is_number(s, zeros->args[1], 0) &&
                    is_number(s, any->args[1], -1) && is_number(s, hidden->args[1], -INFINITY) &&
                    hidden->args[0] == softmax->args[0] && zeros->args[0] == softmax->outs[0];
    const uint32_t once[] = {where->args[0], where->args[1]};
    for (int i = 0; is_check && i < 2; i++) {
        is_check = rt_rewrite_uses(&s->rw, once[i]) == 1;
    }
    return is_check && rt_rewrite_uses(&s->rw, softmax->outs[0]) == 2 &&
                   rt_rewrite_uses(&s->rw, softmax->args[0]) == 2 &&
                   rt_rewrite_uses(&s->rw, not_any->args[0]) == 1 &&
                   rt_rewrite_uses(&s->rw, any->args[0]) == 1 &&
                   rt_rewrite_uses(&s->rw, seen->args[0]) == 1
               ? softmax
               : NULL;
}

/* Is |value| a tensor of one element, the number of rows before the call? */
static bool is_row_count(const struct search *s, uint32_t value)
{
    const struct rt_node *node;
    value = under_views(s, value);
    while ((node = made_by(s, value, RT_KNOWN_to_dtype)) != NULL) {
        enum dtype dtype = value_of(s, value)->dtype;
        if (dtype != DT_I64 && dtype != DT_I32) {
            return false;
        }
        value = under_views(s, node->args[0]);
    }
    node = made_by(s, value, RT_KNOWN_scalar_tensor);
    const struct rt_value *number = node ? rt_node_arg(s->graph, node, 0) : NULL;
    enum dtype dtype = value_of(s, value)->dtype;
    return number && number->kind == RT_INT && rt_dim_same(number->i, s->growing->rows) &&
           (dtype == DT_I64 || dtype == DT_I32);
}

/* Is |value| the places of the rows of |write|? */
static bool is_places(const struct search *s, uint32_t value, const struct write *write)
{
    value = under_views(s, value);
    if (write->range) {
        return value == write->range;
    }
    const struct rt_node *add = made_by(s, value, RT_KNOWN_add);
    if (!add || !has_places(value_of(s, value)) || !is_number(s, add->args[2], 1)) {
        return false;
    }
    uint32_t range = is_range(s, add->args[0]) ? 0 : 1, numbers = add->args[range];
    return is_range(s, numbers) && rt_dim_same(value_of(s, numbers)->dims[0], write->count) &&
           is_row_count(s, add->args[1 - range]);
}

/* Has |v| four dims, of which only dim |d| may not be 1? */
static bool is_along(const struct rt_value *v, uint8_t d)
{
    bool is = has_dims(v, 4);
    for (uint8_t i = 0; is && i < 4; i++) {
        is = i == d || rt_dim_is(v->dims[i], 1);
    }
    return is;
}

/* The only element of a constant; |none| if it is no constant int64 of one element. */
static int64_t constant_of(const struct search *s, uint32_t value, int64_t none)
{
    const struct rt_value *v = value_of(s, value);
    int64_t number = none;
    if (v->is_constant && v->dtype == DT_I64 && v->rank == 0 && v->bytes.len == sizeof(number)) {
        memcpy(&number, v->bytes.ptr, sizeof(number));
    }
    return number;
}

/* Is |value| the numbers of |count| columns? */
static bool is_columns(const struct search *s, uint32_t value, struct rt_dim count)
{
    const struct rt_value *v = value_of(s, value);
    uint32_t numbers = under_views(s, value);
    const struct rt_node *shift = made_by(s, numbers, RT_KNOWN_add);
    if (shift && has_places(value_of(s, numbers)) && is_number(s, shift->args[2], 1) &&
        constant_of(s, shift->args[1], -1) == 0) {
        numbers = shift->args[0]; /* by the cache's first row, which is 0 */
    }
    return is_along(v, 3) && rt_dim_same(v->dims[3], count) && is_range(s, numbers);
}

static const struct rt_node *both_of(const struct search *s, uint32_t value)
{
    const struct rt_node *node = made_by(s, value, RT_KNOWN_bitwise_and);
    return node ? node : made_by(s, value, RT_KNOWN_logical_and);
}

/* How deep conditions are looked into. */
#define CONDITIONS_MAX 4

/*
 * Is |value| true for each column that a row may see: full of that, or a window of as many rows as
 * the buffer has?
 *
 *     full([], true) & (columns > places - window)
 */
static bool shows_all(const struct search *s, uint32_t value, struct rt_dim count,
                      const struct write *write, int depth)
{
    const struct rt_node *both = both_of(s, value), *gt = made_by(s, value, RT_KNOWN_gt);
    const struct rt_node *full = made_by(s, value, RT_KNOWN_full);
    if (full) {
        return value_of(s, value)->dtype == DT_BOOL && is_number(s, full->args[1], 1);
    }
    if (both && depth < CONDITIONS_MAX) {
        return shows_all(s, both->args[0], count, write, depth + 1) &&
               shows_all(s, both->args[1], count, write, depth + 1);
    }
    const struct rt_node *sub = gt ? made_by(s, gt->args[1], RT_KNOWN_sub) : NULL;
    int64_t rows = value_of(s, write->cache)->dims[CACHE_ROWS].value;
    return sub && has_places(value_of(s, gt->args[1])) && is_number(s, sub->args[2], 1) &&
           constant_of(s, sub->args[1], 0) >= rows && is_columns(s, gt->args[0], count) &&
           is_along(value_of(s, sub->args[0]), 2) && is_places(s, sub->args[0], write);
}

/* Does |mask| [1, 1, n, T] of |scores| hide the columns behind the place that |write| has for the
 * row, and no others? */
static bool hides_later(const struct search *s, uint32_t mask, const struct rt_value *scores,
                        const struct write *write)
{
    const struct rt_node *where = made_by(s, mask, RT_KNOWN_where), *both;
    if (!where || !is_filled(s, where->args[1], 0) || !is_filled(s, where->args[2], -INFINITY)) {
        return false;
    }
    uint32_t condition = where->args[0];
    struct rt_dim count = scores->dims[3];
    for (int depth = 0; depth < CONDITIONS_MAX && (both = both_of(s, condition)); depth++) {
        int other = shows_all(s, both->args[0], count, write, 0) ? 1 : 0;
        if (other == 0 && !shows_all(s, both->args[1], count, write, 0)) {
            return false;
        }
        condition = both->args[other];
    }
    const struct rt_node *le = made_by(s, condition, RT_KNOWN_le);
    return le && is_columns(s, le->args[0], count) && is_along(value_of(s, le->args[1]), 2) &&
           is_places(s, le->args[1], write);
}

/* The first product: q and k, and the factor of both. */
static bool take_scores(const struct search *s, uint32_t scores, struct attend *out,
                        struct products *out_products, int64_t *out_group)
{
    static const uint8_t turned[4] = {0, 1, 3, 2};
    uint32_t product = under_views(s, scores);
    const struct rt_node *bmm = made_by(s, product, RT_KNOWN_bmm);
    if (!bmm || rt_rewrite_uses(&s->rw, product) != 1 || rt_rewrite_uses(&s->rw, scores) != 1) {
        return false;
    }
    uint32_t q = under_views(s, bmm->args[0]), keys = bmm->args[1];
    while (rt_rewrite_uses(&s->rw, keys) == 1 && made_by(s, keys, RT_KNOWN_view)) {
        keys = made_by(s, keys, RT_KNOWN_view)->args[0];
    }
    uint32_t scaled = keys;
    out->scale = take_factor(s, &q) * take_factor(s, &keys);
    const struct rt_node *permute = made_by(s, keys, RT_KNOWN_permute);
    if (!permute || rt_rewrite_uses(&s->rw, keys) != 1 || rt_rewrite_uses(&s->rw, scaled) != 1) {
        return false;
    }
    const struct rt_value *order = rt_node_arg(s->graph, permute, 1);
    for (uint32_t d = 0; d < 4; d++) {
        if (order->count != 4 || !rt_dim_is(order->ints[d], turned[d])) {
            return false;
        }
    }
    out->q = q;
    out_products->keys = permute->args[0];
    out_products->scores = scores;
    out_products->first = bmm;
    out->key = write_under(s, permute->args[0], out_group);
    return out->key > 0;
}

/* Views have been skipped: is what is between them what it is in an attention? */
static bool are_products(const struct search *s, const struct attend *a, const struct products *p)
{
    const struct rt_dim *q = value_of(s, a->q)->dims;
    const struct rt_node *write = &s->graph->nodes[s->writes[a->key - 1].node];
    struct rt_dim one = rt_dim_of(1), heads = q[CACHE_HEADS], n = q[CACHE_ROWS];
    struct rt_dim depth = q[CACHE_DEPTH], all = value_of(s, write->outs[0])->dims[CACHE_ROWS];
    const struct {
        uint32_t value;
        uint8_t rank;
        struct rt_dim dims[4];
    } expected[] = {
        {p->keys, 4, {one, heads, all, depth}},      {p->first->args[0], 3, {heads, n, depth}},
        {p->first->args[1], 3, {heads, depth, all}}, {p->first->outs[0], 3, {heads, n, all}},
        {p->scores, 4, {one, heads, n, all}},        {p->masked, 4, {one, heads, n, all}},
        {p->second->args[0], 3, {heads, n, all}},    {p->second->args[1], 3, {heads, all, depth}},
        {p->second->outs[0], 3, {heads, n, depth}},
    };
    bool are = true;
    for (size_t i = 0; are && i < sizeof(expected) / sizeof(expected[0]); i++) {
        are = has_dims_of(s, expected[i].value, expected[i].rank, expected[i].dims);
    }
    return are;
}

/* q [1, heads, n, depth] fits caches [1, heads / group, T, depth] of which it sees the last n rows
 * that were written. */
static bool fits(const struct search *s, const struct attend *a, int64_t group, int64_t values)
{
    const struct write *key = &s->writes[a->key - 1], *value = &s->writes[a->value - 1];
    const struct rt_value *q = value_of(s, a->q), *k = value_of(s, key->cache);
    const struct rt_value *v = value_of(s, value->cache);
    return key != value && group == values && key->range == value->range && has_dims(q, 4) &&
           q->dtype == DT_F32 && rt_value_same_dims(k, v) && rt_dim_is(q->dims[CACHE_BATCH], 1) &&
           rt_dim_is(q->dims[CACHE_HEADS], k->dims[CACHE_HEADS].value * group) &&
           rt_dim_same(key->count, value->count) && rt_dim_same(q->dims[CACHE_ROWS], key->count) &&
           rt_dim_same(q->dims[CACHE_DEPTH], k->dims[CACHE_DEPTH]) &&
           k->dims[CACHE_DEPTH].value <= RT_ATTENTION_DEPTH_MAX;
}

static bool take_attend(struct search *s, const struct rt_node *bmm)
{
    struct attend a = {.out = bmm->outs[0]};
    struct products products = {.second = bmm};
    int64_t group = 0, values = 0;
    a.value = write_under(s, bmm->args[1], &values);
    uint32_t weights = bmm->args[0];
    while (rt_rewrite_uses(&s->rw, weights) == 1 && made_by(s, weights, RT_KNOWN_view)) {
        weights = made_by(s, weights, RT_KNOWN_view)->args[0];
    }
    const struct rt_node *softmax = a.value ? softmax_under(s, weights) : NULL;
    const struct rt_node *add = softmax ? made_by(s, softmax->args[0], RT_KNOWN_add) : NULL;
    if (!add || !is_number(s, softmax->args[1], -1) || !is_number(s, add->args[2], 1) ||
        !take_scores(s, add->args[0], &a, &products, &group)) {
        return false;
    }
    products.masked = softmax->args[0];
    if (!fits(s, &a, group, values) || !are_products(s, &a, &products) ||
        !hides_later(s, add->args[1], value_of(s, products.masked), &s->writes[a.key - 1])) {
        return false;
    }
    s->writes[a.key - 1].readers++;
    s->writes[a.value - 1].readers++;
    s->attends[s->attend_count++] = a;
    return true;
}

static bool find_attends(struct search *s)
{
    for (uint32_t i = 0; i < s->rw.node_count && s->attend_count < s->write_count; i++) {
        if (rt_op_is(s->graph->nodes[i].op, RT_KNOWN_bmm)) {
            (void)take_attend(s, &s->graph->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < s->write_count; i++) {
        if (s->writes[i].readers != 1) {
            return false;
        }
    }
    return true;
}

/* ---- the new form ---------------------------------------------------------------------------- */

static enum status make_write(struct search *s, struct write *write, uint32_t start,
                              struct error *err)
{
    struct rt_graph *graph = s->graph;
    const struct rt_value *cache = value_of(s, write->cache);
    struct rt_dim heads = cache->dims[CACHE_HEADS], depth = cache->dims[CACHE_DEPTH];
    struct rt_dim *dims = arena_array(&graph->arena, 4, sizeof(*dims));
    if (!dims) {
        return arena_fail(&graph->arena, "the method", err);
    }
    const struct rt_dim whole[4] = {heads, cache->dims[CACHE_ROWS], rt_dim_of(1), depth};
    const struct rt_dim some[4] = {heads, write->count, rt_dim_of(1), depth};
    memcpy(dims, whole, sizeof(whole));
    graph->values[write->cache].dims = dims;
    graph->values[write->cache].declared = NULL;
    uint32_t old = graph->nodes[write->node].outs[0], args[] = {write->cache, 0, start};
    TRY(rt_op_view(graph, write->rows, some, 4, &args[1], err));
    TRY(rt_op_apply(graph, RT_OP(write_rows), args, 3, DT_F32, &write->made, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        graph->outputs[i] = graph->outputs[i] == old ? write->made : graph->outputs[i];
    }
    return ST_OK;
}

/* The heads of a group are neighbours, and read one head of the caches. */
static enum status make_attend(struct search *s, const struct attend *a, uint32_t start,
                               struct error *err)
{
    static const uint8_t swapped[4] = {0, 2, 1, 3};
    struct rt_graph *graph = s->graph;
    struct rt_dim q[4], heads = graph->values[s->writes[a->key - 1].cache].dims[0];
    memcpy(q, value_of(s, a->q)->dims, sizeof(q));
    const struct rt_dim split[4] = {heads, rt_dim_of(q[1].value / heads.value), q[2], q[3]};
    uint32_t value, args[8] = {0, s->writes[a->key - 1].made, s->writes[a->value - 1].made, start};
    TRY(rt_op_view(graph, a->q, split, 4, &value, err));
    TRY(rt_op_permute(graph, value, swapped, 4, &args[0], err));
    args[4] = rt_graph_none(graph);
    args[5] = rt_graph_float(graph, 0);
    args[6] = rt_graph_bool(graph, true);
    args[7] = rt_graph_float(graph, a->scale);
    TRY(rt_op_apply(graph, RT_OP(attention), args, 8, DT_F32, &value, err));
    TRY(rt_op_permute(graph, value, swapped, 4, &value, err));
    TRY(rt_op_view(graph, value, q + 1, 3, &value, err));
    rt_rewrite_replace(&s->rw, a->out, value);
    return ST_OK;
}

static enum status make_all(struct search *s, struct rt_caches_found *out, struct error *err)
{
    struct rt_graph *graph = s->graph;
    out->start = rt_graph_int(graph, s->growing ? s->growing->rows : rt_dim_any(&graph->dims));
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < s->write_count; i++) {
        TRY(make_write(s, &s->writes[i], out->start, err));
    }
    for (uint32_t i = 0; i < s->attend_count; i++) {
        TRY(make_attend(s, &s->attends[i], out->start, err));
    }
    out->input = s->input;
    return rt_rewrite_end(&s->rw, err);
}

enum status rt_pass_caches(struct rt_graph *graph, uint32_t first_state,
                           const struct rt_caches_growing *growing, struct rt_caches_found *out,
                           struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct search s = {.graph = graph, .growing = growing, .input = RT_CACHES_NONE};
    *out = (struct rt_caches_found){.input = RT_CACHES_NONE};
    TRY(rt_rewrite_begin(&s.rw, graph, err));
    uint32_t states = graph->input_count - first_state;
    s.writes = arena_array(&graph->arena, states, sizeof(*s.writes));
    s.attends = arena_array(&graph->arena, states, sizeof(*s.attends));
    s.write_of = arena_array(&graph->arena, graph->value_count, sizeof(*s.write_of));
    s.state_of = arena_array(&graph->arena, graph->value_count, sizeof(*s.state_of));
    if (!s.writes || !s.attends || !s.write_of || !s.state_of) {
        return arena_fail(&graph->arena, "the method", err);
    }
    if (growing) {
        s.input = growing->input;
    }
    bool is_found = growing ? find_appended(&s, first_state) : find_writes(&s, first_state);
    return is_found && find_attends(&s) ? make_all(&s, out, err) : ST_OK;
}
