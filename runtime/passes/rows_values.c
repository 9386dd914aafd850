/* SPDX-License-Identifier: MIT */
/* The values of a graph of rows: copies with the numbers of a row, rows put together and apart. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rows_priv.h"

void *rt_rows_take(const struct rt_rows_making *m, size_t count, size_t size)
{
    void *items = arena_array(&m->graph->arena, count, size);
    if (items && count) {
        memset(items, 0, count * size);
    }
    return items;
}

enum status rt_rows_exhausted(const struct rt_rows_making *m)
{
    return arena_fail(&m->graph->arena, "the method", m->err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static struct rt_dim dim_of(const struct rt_rows_making *m, struct rt_dim dim, uint32_t row)
{
    return dim.expr ? m->dims[(size_t)dim.expr * m->rows + row] : dim;
}

/* The expressions of |from| for a row: each depends on earlier ones. */
static struct rt_dim make_dim(const struct rt_rows_making *m, const struct rt_expr *e, uint32_t row)
{
    struct rt_dims *dims = &m->graph->dims;
    return e->kind == RT_EXPR_SYMBOL
               ? rt_dim_symbol(dims, e->hi)
               : rt_dim_apply(dims, e->kind, dim_of(m, e->a, row), dim_of(m, e->b, row));
}

enum status rt_rows_make_dims(const struct rt_rows_making *m)
{
    const struct rt_dims *dims = &m->from->dims;
    for (uint32_t row = 0; row < m->rows; row++) {
        for (uint32_t i = 1; i < dims->expr_count; i++) {
            m->dims[(size_t)i * m->rows + row] = make_dim(m, &dims->exprs[i], row);
        }
        TRY(rt_dims_check(&m->graph->dims, m->err));
        for (uint32_t i = 0; i < dims->requirement_count; i++) {
            const struct rt_requirement *r = &dims->requirements[i];
            TRY(rt_dim_require_equal(&m->graph->dims, dim_of(m, r->a, row), dim_of(m, r->b, row),
                                     r->what, m->err));
        }
    }
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum status rt_rows_add_value(const struct rt_rows_making *m, struct rt_value value, uint32_t *out)
{
    *out = rt_graph_none(m->graph);
    TRY(rt_graph_check(m->graph, m->err));
    if (*out >= m->value_max) {
        return error_set(m->err, ST_TOO_LARGE, "a graph of %u rows has too many values", m->rows);
    }
    value.node = RT_NO_NODE;
    if (value.buffer) {
        hal_buffer_ref(value.buffer);
    }
    m->graph->values[*out] = value;
    return ST_OK;
}

struct rt_dim *rt_rows_copy_dims(const struct rt_rows_making *m, const struct rt_dim *from,
                                 uint32_t count, uint32_t row)
{
    must(row < m->rows);
    struct rt_dim *dims = rt_rows_take(m, count, sizeof(*dims));
    for (uint32_t i = 0; dims && i < count; i++) {
        dims[i] = dim_of(m, from[i], row);
    }
    return dims;
}

static enum status copy_list(const struct rt_rows_making *m, struct rt_value *v, uint32_t row)
{
    uint32_t *items = rt_rows_take(m, v->count, sizeof(*items));
    if (!items) {
        return rt_rows_exhausted(m);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        TRY(rt_rows_apart(m, v->values[i], row, &items[i]));
    }
    v->values = items;
    return ST_OK;
}

enum status rt_rows_copy_value(const struct rt_rows_making *m, uint32_t value, uint32_t row,
                               uint32_t *out)
{
    must(value < m->from->value_count && row < m->rows);
    struct rt_value v = m->from->values[value];
    v.declared = NULL;
    if (v.kind == RT_TENSORS) {
        TRY(copy_list(m, &v, row));
    } else if (v.kind == RT_INTS) {
        v.ints = rt_rows_copy_dims(m, v.ints, v.count, row);
        TRY(v.ints ? ST_OK : rt_rows_exhausted(m));
    } else if (v.kind == RT_INT) {
        v.i = dim_of(m, v.i, row);
    } else if ((v.kind == RT_FLOAT || v.kind == RT_BOOL) && v.symbol) {
        v.symbol = dim_of(m, (struct rt_dim){.expr = v.symbol}, row).expr;
    }
    return rt_rows_add_value(m, v, out);
}

enum status rt_rows_add_node(const struct rt_rows_making *m, const struct rt_op *op,
                             const uint32_t *args, uint32_t arg_count, const uint32_t *outs,
                             uint32_t out_count)
{
    rt_graph_node(m->graph, op, args, arg_count, outs, out_count);
    return rt_graph_check(m->graph, m->err);
}

static struct rt_value joined_tensor(const struct rt_rows_making *m, uint32_t value)
{
    struct rt_value v = m->from->values[value];
    struct rt_dim *dims = rt_rows_copy_dims(m, v.dims, v.rank, 0);
    if (dims) {
        dims[0] = rt_dim_mul(&m->graph->dims, v.dims[0], rt_dim_of(m->rows));
    }
    v.dims = dims;
    v.declared = NULL;
    return v;
}

bool rt_rows_may_join(const struct rt_rows_making *m, uint32_t value)
{
    must(value < m->from->value_count);
    const struct rt_value *v = &m->from->values[value];
    return v->kind == RT_TENSOR && v->rank > 0 && !v->order && !v->is_packed &&
           !m->is_private[value] && !rt_rows_varies(m, value);
}

/* The rows of |value|, which has them apart, behind each other. */
static enum status join(const struct rt_rows_making *m, uint32_t value)
{
    uint32_t list, dim, out;
    const struct rt_value v = joined_tensor(m, value);
    TRY(v.dims ? ST_OK : rt_rows_exhausted(m));
    list = rt_graph_tensors(m->graph, &m->apart[(size_t)value * m->rows], m->rows);
    dim = rt_graph_int(m->graph, rt_dim_of(0));
    TRY(rt_rows_add_value(m, v, &out));
    const uint32_t args[] = {list, dim};
    TRY(rt_rows_add_node(m, RT_OP(cat), args, 2, &out, 1));
    m->joined[value] = out;
    m->has_rows[out] = true;
    return ST_OK;
}

/* The rows of |value|, which has them behind each other, apart. */
static enum status split(const struct rt_rows_making *m, uint32_t value)
{
    const struct rt_value *v = &m->from->values[value];
    struct rt_dim *sizes = rt_rows_take(m, m->rows, sizeof(*sizes));
    uint32_t *rows = &m->apart[(size_t)value * m->rows];
    TRY(sizes ? ST_OK : rt_rows_exhausted(m));
    for (uint32_t r = 0; r < m->rows; r++) {
        sizes[r] = v->dims[0];
        TRY(rt_rows_copy_value(m, value, r, &rows[r]));
    }
    const uint32_t args[] = {m->joined[value], rt_graph_ints(m->graph, sizes, m->rows),
                             rt_graph_int(m->graph, rt_dim_of(0))};
    uint32_t out = rt_graph_tensors(m->graph, rows, m->rows);
    return rt_rows_add_node(m, RT_OP(split_sizes), args, 3, &out, 1);
}

enum status rt_rows_apart(const struct rt_rows_making *m, uint32_t value, uint32_t row,
                          uint32_t *out)
{
    must(value < m->from->value_count && row < m->rows);
    if (!m->differs[value]) {
        if (m->same[value] == RT_ROWS_NONE) {
            TRY(rt_rows_copy_value(m, value, 0, &m->same[value]));
        }
        *out = m->same[value];
        return ST_OK;
    }
    uint32_t *apart = &m->apart[(size_t)value * m->rows];
    if (apart[row] == RT_ROWS_NONE && m->joined[value] != RT_ROWS_NONE) {
        TRY(split(m, value));
    } else if (apart[row] == RT_ROWS_NONE) { /* a list, or a number */
        TRY(rt_rows_copy_value(m, value, row, &apart[row]));
    }
    *out = apart[row];
    return ST_OK;
}

enum status rt_rows_joined(const struct rt_rows_making *m, uint32_t value, uint32_t *out)
{
    must(value < m->from->value_count);
    const struct rt_value *v = &m->from->values[value];
    if (!m->differs[value]) {
        return rt_rows_apart(m, value, 0, out);
    }
    if (v->kind == RT_TENSORS) {
        struct rt_value list = *v;
        uint32_t *items = rt_rows_take(m, v->count, sizeof(*items));
        TRY(items ? ST_OK : rt_rows_exhausted(m));
        for (uint32_t i = 0; i < v->count; i++) {
            TRY(rt_rows_joined(m, v->values[i], &items[i]));
        }
        list.values = items;
        TRY(rt_rows_add_value(m, list, out));
        m->has_rows[*out] = true;
        return ST_OK;
    }
    if (!rt_rows_may_join(m, value)) {
        return error_set(m->err, ST_UNSUPPORTED, "it cannot be put together");
    }
    if (m->joined[value] == RT_ROWS_NONE) {
        TRY(join(m, value));
    }
    *out = m->joined[value];
    return ST_OK;
}
