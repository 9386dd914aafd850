/* SPDX-License-Identifier: MIT */
/*
 * Equal nodes become one: see passes.def. Exporters write a node again for each use: a position is
 * selected for each layer, a table is sliced for each rotation. Passes and analyses that look for
 * one value would see several.
 *
 * Two nodes are equal if they have the same operator and the same arguments: numbers, texts and
 * lists by their content, constants by the bytes that they are, other tensors as values, which are
 * written once. A mutable buffer is another value after each write, so what has been read before a
 * write never equals what is read after it. Nodes stay as they are if they give different numbers
 * each time, if the number of their rows depends on data, or if they change an argument: two
 * buffers with one new content would be one.
 *
 * A hash table finds the earlier node. A file may choose its nodes so that many have one hash, so a
 * search ends after a few of them; then a node stays, which is right, too.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

#define PROBES_MAX 16

/* Nodes by hash; 0: free, else a node's number + 1. */
struct table {
    uint32_t *nodes;
    size_t mask;
};

/* ---- arguments ------------------------------------------------------------------------------- */

enum { SELECT_X, SELECT_DIM, SELECT_INDEX };

/* Argument |arg| of |node|, an int. What a selection counts from the end, it could as well count
 * from the beginning: exporters use both for one element. */
static struct rt_dim int_of(const struct rt_graph *graph, const struct rt_node *node, uint32_t arg)
{
    struct rt_dim i = rt_node_arg(graph, node, arg)->i;
    if (!rt_op_is(node->op, RT_KNOWN_select) || !rt_dim_is_const(i) || i.value >= 0) {
        return i;
    }
    const struct rt_value *x = rt_node_arg(graph, node, SELECT_X);
    uint8_t dim = rt_dim_from_first(rt_node_arg(graph, node, SELECT_DIM)->i.value, x->rank);
    if (arg == SELECT_DIM) {
        return rt_dim_of(dim);
    }
    return rt_dim_is_const(x->dims[dim]) ? rt_dim_of(i.value + x->dims[dim].value) : i;
}

static bool are_same_dims(const struct rt_dim *a, const struct rt_dim *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!rt_dim_same(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

/* Two constants that are the same bytes of the file. */
static bool are_same_constants(const struct rt_value *a, const struct rt_value *b)
{
    return a->is_constant && b->is_constant && a->bytes.ptr == b->bytes.ptr &&
           a->bytes.len == b->bytes.len && a->dtype == b->dtype && a->rank == b->rank &&
           !a->order && !b->order && !a->is_packed && !b->is_packed && a->dims && b->dims &&
           rt_value_same_dims(a, b);
}

static bool are_same_tensors(const struct rt_graph *graph, uint32_t a, uint32_t b)
{
    const struct rt_value *va = &graph->values[a], *vb = &graph->values[b];
    return a == b || (va->kind == RT_NONE && vb->kind == RT_NONE) || are_same_constants(va, vb);
}

static bool are_same_lists(const struct rt_graph *graph, const struct rt_value *a,
                           const struct rt_value *b)
{
    bool are_same = a->count == b->count && a->node == RT_NO_NODE && b->node == RT_NO_NODE;
    for (uint32_t i = 0; are_same && i < a->count; i++) {
        are_same = are_same_tensors(graph, a->values[i], b->values[i]);
    }
    return are_same;
}

/* The content of two values of one kind, no ints. */
static bool are_same_contents(const struct rt_graph *graph, const struct rt_value *a,
                              const struct rt_value *b)
{
    switch (a->kind) {
    case RT_NONE:
        return true;
    case RT_FLOAT: /* by their bits: two zeros, and numbers that equal nothing */
        return a->symbol == b->symbol && (a->symbol || memcmp(&a->f, &b->f, sizeof(a->f)) == 0);
    case RT_BOOL:
        return a->symbol == b->symbol && (a->symbol || a->b == b->b);
    case RT_STRING:
        return span_equal(a->bytes, b->bytes);
    case RT_INTS:
        return a->count == b->count && are_same_dims(a->ints, b->ints, a->count);
    case RT_FLOATS:
        return span_equal(span_of(a->floats, a->count * sizeof(double)),
                          span_of(b->floats, b->count * sizeof(double)));
    case RT_BOOLS:
        return span_equal(span_of(a->bools, a->count * sizeof(bool)),
                          span_of(b->bools, b->count * sizeof(bool)));
    case RT_TENSORS:
        return are_same_lists(graph, a, b);
    case RT_TENSOR:
        return are_same_constants(a, b);
    case RT_INT:
        break;
    }
    unreachable();
}

static bool are_same_args(const struct rt_graph *graph, const struct rt_node *a,
                          const struct rt_node *b)
{
    for (uint32_t i = 0; i < a->arg_count; i++) {
        const struct rt_value *va = rt_node_arg(graph, a, i), *vb = rt_node_arg(graph, b, i);
        bool are_ints = va->kind == RT_INT && vb->kind == RT_INT;
        if (a->args[i] == b->args[i]) {
            continue;
        }
        if (va->kind != vb->kind ||
            (are_ints && !rt_dim_same(int_of(graph, a, i), int_of(graph, b, i))) ||
            (!are_ints && !are_same_contents(graph, va, vb))) {
            return false;
        }
    }
    return true;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t mix_dims(uint64_t hash, const struct rt_dim *dims, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hash = hash_mix(hash, dims[i].expr ? dims[i].expr : (uint64_t)dims[i].value);
    }
    return hash;
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = hash_mix(hash, at[i]);
    }
    return hash;
}

static uint64_t mix_tensor(uint64_t hash, const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    return v->kind == RT_NONE ? hash_mix(hash, 0)
           : v->is_constant   ? hash_mix(hash, (uintptr_t)v->bytes.ptr)
                              : hash_mix(hash, value);
}

static uint64_t mix_list(uint64_t hash, const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    if (v->node != RT_NO_NODE) {
        return hash_mix(hash, value);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        hash = mix_tensor(hash, graph, v->values[i]);
    }
    return hash;
}

/* What are_same_args() takes for the same has the same hash. */
static uint64_t mix_arg(uint64_t hash, const struct rt_graph *graph, const struct rt_node *node,
                        uint32_t arg)
{
    const struct rt_value *v = rt_node_arg(graph, node, arg);
    struct rt_dim i;
    switch (v->kind) {
    case RT_INT:
        i = int_of(graph, node, arg);
        return mix_dims(hash, &i, 1);
    case RT_FLOAT:
        return v->symbol ? hash_mix(hash, v->symbol) : mix_bytes(hash, &v->f, sizeof(v->f));
    case RT_BOOL:
        return hash_mix(hash, v->symbol ? v->symbol : v->b);
    case RT_STRING:
        return mix_bytes(hash, v->bytes.ptr, v->bytes.len);
    case RT_INTS:
        return mix_dims(hash, v->ints, v->count);
    case RT_FLOATS:
        return mix_bytes(hash, v->floats, v->count * sizeof(double));
    case RT_BOOLS:
        return mix_bytes(hash, v->bools, v->count * sizeof(bool));
    case RT_TENSORS:
        return mix_list(hash, graph, node->args[arg]);
    case RT_NONE:
    case RT_TENSOR:
        return mix_tensor(hash, graph, node->args[arg]);
    }
    unreachable();
}

static uint64_t hash_of(const struct rt_graph *graph, const struct rt_node *node)
{
    uint64_t hash = hash_mix((uintptr_t)node->op, node->arg_count);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        hash = mix_arg(hash_mix(hash, rt_node_arg(graph, node, i)->kind), graph, node, i);
    }
    return hash;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The file declares types of results, so the arguments do not decide them alone. */
static bool are_alike(const struct rt_graph *graph, uint32_t a, uint32_t b)
{
    const struct rt_value *va = &graph->values[a], *vb = &graph->values[b];
    bool are_same = va->kind == vb->kind;
    if (are_same && va->kind == RT_TENSORS) {
        are_same = va->count == vb->count;
        for (uint32_t i = 0; are_same && i < va->count; i++) {
            are_same = are_alike(graph, va->values[i], vb->values[i]);
        }
        return are_same;
    }
    return are_same && va->kind == RT_TENSOR && va->dtype == vb->dtype && va->rank == vb->rank &&
           va->is_half == vb->is_half && !va->order && !vb->order && va->dims && vb->dims &&
           rt_value_same_dims(va, vb);
}

static bool are_equal(const struct rt_graph *graph, const struct rt_node *a,
                      const struct rt_node *b)
{
    bool are_same = a->op == b->op && a->arg_count == b->arg_count && a->out_count == b->out_count;
    for (uint32_t i = 0; are_same && i < a->out_count; i++) {
        are_same = are_alike(graph, a->outs[i], b->outs[i]);
    }
    return are_same && are_same_args(graph, a, b);
}

static void replace_out(struct rt_rewrite *rw, uint32_t from, uint32_t to)
{
    const struct rt_value *a = &rw->graph->values[from], *b = &rw->graph->values[to];
    for (uint32_t i = 0; a->kind == RT_TENSORS && i < a->count; i++) {
        rt_rewrite_replace(rw, a->values[i], b->values[i]);
    }
    rt_rewrite_replace(rw, from, to);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool may_merge(const struct rt_node *node)
{
    return !node->is_dead && !(node->op->flags & (RT_OP_RANDOM | RT_OP_EXTENT | RT_OP_SCALAR)) &&
           !strchr(node->op->args, '!');
}

/* The earlier node that |node| equals; else NULL, and |node| is in the table, if it has room. */
static const struct rt_node *find_equal(const struct table *table, const struct rt_graph *graph,
                                        const struct rt_node *node)
{
    size_t at = (size_t)hash_of(graph, node) & table->mask;
    for (int probe = 0; probe < PROBES_MAX; probe++, at = (at + 1) & table->mask) {
        if (table->nodes[at] == 0) {
            table->nodes[at] = (uint32_t)(node - graph->nodes) + 1;
            return NULL;
        }
        const struct rt_node *earlier = &graph->nodes[table->nodes[at] - 1];
        if (are_equal(graph, earlier, node)) {
            return earlier;
        }
    }
    return NULL;
}

enum status rt_pass_merge(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    size_t size = 64;
    while (size < (size_t)rw.node_count * 2) {
        size *= 2;
    }
    struct table table = {.nodes = arena_array(&graph->arena, size, sizeof(*table.nodes)),
                          .mask = size - 1};
    if (!table.nodes) {
        return arena_fail(&graph->arena, "the method", err);
    }
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        const struct rt_node *earlier = may_merge(node) ? find_equal(&table, graph, node) : NULL;
        for (uint32_t k = 0; earlier && k < node->out_count; k++) {
            replace_out(&rw, node->outs[k], earlier->outs[k]);
        }
    }
    return rt_rewrite_end(&rw, err);
}
