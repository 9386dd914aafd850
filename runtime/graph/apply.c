/* SPDX-License-Identifier: MIT */
/* Nodes ask their operators what their outputs are. The form of a graph (graph.c) knows none. */
#include "config.h"

#include "base/check.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/op.h"

enum status rt_graph_apply(struct rt_graph *graph, const char *op, const uint32_t *args,
                           uint32_t arg_count, enum dtype dtype, uint32_t *out_value,
                           struct error *err)
{
    const struct rt_op *row = rt_op_find(op);
    must(row);
    uint32_t out = rt_graph_tensor(graph, dtype, 0, NULL);
    uint32_t node = rt_graph_node(graph, row, args, arg_count, &out, 1);
    TRY(rt_graph_check(graph, err));
    TRY(rt_graph_infer(graph, node, err));
    *out_value = out;
    return ST_OK;
}

enum status rt_graph_convert(struct rt_graph *graph, uint32_t value, enum dtype dtype,
                             uint32_t *out_value, struct error *err)
{
    const struct rt_value *v = &graph->values[value];
    *out_value = value;
    if (v->kind == RT_NONE || v->dtype == dtype) {
        return ST_OK;
    }
    uint32_t args[] = {value, rt_graph_bool(graph, false), rt_graph_none(graph)};
    return rt_graph_apply(graph, "to_dtype", args, 3, dtype, out_value, err);
}

static bool has_complex(struct rt_tensors tensors)
{
    bool is_found = false;
    for (uint32_t value; !is_found && rt_tensors_next(&tensors, &value);) {
        enum dtype dtype = tensors.graph->values[value].dtype;
        is_found = dtype_infos[dtype].kind == DTYPE_COMPLEX;
    }
    return is_found;
}

/* Most operators have never heard of complex numbers: they are kept from them here. */
static enum status check_complex(const struct rt_graph *graph, const struct rt_node *node,
                                 struct error *err)
{
    if (node->op->flags & RT_OP_COMPLEX || !(has_complex(rt_node_arg_tensors(graph, node)) ||
                                             has_complex(rt_node_out_tensors(graph, node)))) {
        return ST_OK;
    }
    return error_set(err, ST_UNSUPPORTED, "%s: not of complex numbers", node->op->name);
}

/* The first tensor among |values| or their items, and which of them it is; NULL: there is none. */
static const struct rt_value *find_tensor(const struct rt_graph *graph, const uint32_t *values,
                                          uint32_t count, uint32_t *out_index)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_value *v = &graph->values[values[i]];
        if (v->kind == RT_TENSORS && v->count > 0) {
            v = &graph->values[v->values[0]];
        }
        if (v->kind == RT_TENSOR) {
            *out_index = i;
            return v;
        }
    }
    return NULL;
}

static enum status check_dtypes(const struct rt_graph *graph, const struct rt_node *node,
                                struct error *err)
{
    uint32_t index;
    const struct rt_value *arg = find_tensor(graph, node->args, node->arg_count, &index);
    const struct rt_value *v = arg ? arg : find_tensor(graph, node->outs, node->out_count, &index);
    if (!v || node->op->dtypes >> v->dtype & 1) {
        return ST_OK;
    }
    return error_set(err, ST_UNSUPPORTED, "%s: %s %u is of element type %s", node->op->name,
                     arg ? "argument" : "output", index, dtype_text(v->dtype));
}

static bool holds_halves(const struct rt_value *v)
{
    return v->dtype == DT_F16 || v->is_half;
}

/* Of what |node| takes elements from: a copy, from its last tensor. */
static bool moves_halves(const struct rt_graph *graph, const struct rt_node *node)
{
    bool all = true, last = false;
    struct rt_tensors args = rt_node_arg_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&args, &value);) {
        last = holds_halves(&graph->values[value]);
        all &= last;
    }
    return node->op->flags & RT_OP_COPY ? last : all && last;
}

static void mark_halves(const struct rt_graph *graph, const struct rt_node *node)
{
    if (!(node->op->flags & (RT_OP_COPY | RT_OP_VIEW | RT_OP_MOVES)) ||
        !moves_halves(graph, node)) {
        return;
    }
    struct rt_tensors outs = rt_node_out_tensors(graph, node);
    for (uint32_t value; rt_tensors_next(&outs, &value);) {
        struct rt_value *out = &graph->values[value];
        out->is_half = out->dtype == DT_F32;
    }
}

enum status rt_graph_infer(struct rt_graph *graph, uint32_t node, struct error *err)
{
    const struct rt_op *op = graph->nodes[node].op;
    TRY(check_dtypes(graph, &graph->nodes[node], err));
    TRY(check_complex(graph, &graph->nodes[node], err));
    struct rt_shape_call call = {graph, &graph->nodes[node], err};
    if (op->shape(&call) != ST_OK) {
        return error_prefix(err, "%s: ", op->name);
    }
    mark_halves(graph, &graph->nodes[node]);
    return rt_graph_check(graph, err);
}
