/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/graph/graph.h"

#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/graph/op.h"

/* A graph describes a file, whose size is bounded; this bounds the additions of passes. */
#define GRAPH_BYTES_MAX (1u << 30)

void rt_graph_init(struct rt_graph *graph, const char *name)
{
    *graph =
        (struct rt_graph){.magic = RT_GRAPH_MAGIC, .name = name, .origin = {.instr = RT_NO_INSTR}};
    arena_init(&graph->arena, GRAPH_BYTES_MAX);
    rt_dims_init(&graph->dims, &graph->arena);
    /*
     * Value 0 is a none: functions that build return it without memory, and reading it is harmless.
     */
    rt_graph_none(graph);
}

void rt_graph_fini(struct rt_graph *graph)
{
    if (!graph) {
        return;
    }
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        hal_buffer_unref(graph->values[i].buffer);
    }
    arena_fini(&graph->arena);
    graph->magic = 0;
}

enum status rt_graph_check(const struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return graph->failed ? arena_fail(&graph->arena, "the method", err)
                         : rt_dims_check(&graph->dims, err);
}

/* ---- building -------------------------------------------------------------------------------- */

/* Arena memory; NULL marks the graph as out of memory. */
static void *take(struct rt_graph *graph, size_t count, size_t size)
{
    void *mem = arena_array(&graph->arena, count, size);
    if (!mem) {
        graph->failed = true;
    }
    return mem;
}

static void *copy_array(struct rt_graph *graph, const void *items, size_t count, size_t size)
{
    void *copy = take(graph, count, size);
    if (copy && count) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

static uint32_t add_value(struct rt_graph *graph, struct rt_value value)
{
    if (!ARENA_ROOM(&graph->arena, graph->values, graph->value_capacity, graph->value_count + 1)) {
        graph->failed = true;
        return 0;
    }
    value.node = RT_NO_NODE;
    graph->values[graph->value_count] = value;
    return graph->value_count++;
}

uint32_t rt_graph_none(struct rt_graph *graph)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_NONE});
}

uint32_t rt_graph_int(struct rt_graph *graph, struct rt_dim value)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_INT, .i = value});
}

uint32_t rt_graph_float(struct rt_graph *graph, double value)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_FLOAT, .f = value});
}

uint32_t rt_graph_bool(struct rt_graph *graph, bool value)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_BOOL, .b = value});
}

uint32_t rt_graph_run_float(struct rt_graph *graph, struct rt_dim bits)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_FLOAT, .symbol = bits.expr});
}

struct rt_dim rt_graph_double(struct rt_graph *graph, const struct rt_value *value)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_dim given = {.value = INT64_MAX, .expr = value->symbol};
    switch (value->kind) {
    case RT_FLOAT:
        return value->symbol ? given : rt_dim_of_double(value->f);
    case RT_BOOL:
        return rt_dim_double(&graph->dims, value->symbol ? given : rt_dim_of(value->b));
    default:
        return rt_dim_double(&graph->dims, value->i);
    }
}

uint32_t rt_graph_run_bool(struct rt_graph *graph, struct rt_dim bits)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_BOOL, .symbol = bits.expr});
}

uint32_t rt_graph_string(struct rt_graph *graph, struct span text)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    return add_value(graph, (struct rt_value){.kind = RT_STRING, .bytes = text});
}

uint32_t rt_graph_ints(struct rt_graph *graph, const struct rt_dim *items, uint32_t count)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_dim *copy = copy_array(graph, items, count, sizeof(*items));
    return add_value(graph,
                     (struct rt_value){.kind = RT_INTS, .count = copy ? count : 0, .ints = copy});
}

uint32_t rt_graph_floats(struct rt_graph *graph, const double *items, uint32_t count)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    double *copy = copy_array(graph, items, count, sizeof(*items));
    return add_value(
        graph, (struct rt_value){.kind = RT_FLOATS, .count = copy ? count : 0, .floats = copy});
}

uint32_t rt_graph_bools(struct rt_graph *graph, const bool *items, uint32_t count)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    bool *copy = copy_array(graph, items, count, sizeof(*items));
    return add_value(graph,
                     (struct rt_value){.kind = RT_BOOLS, .count = copy ? count : 0, .bools = copy});
}

uint32_t rt_graph_tensors(struct rt_graph *graph, const uint32_t *items, uint32_t count)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t *copy = copy_array(graph, items, count, sizeof(*items));
    return add_value(
        graph, (struct rt_value){.kind = RT_TENSORS, .count = copy ? count : 0, .values = copy});
}

uint32_t rt_graph_tensor(struct rt_graph *graph, enum dtype dtype, uint8_t rank,
                         const struct rt_dim *dims)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    must(rank <= SHAPE_RANK_MAX);
    struct rt_value value = {.kind = RT_TENSOR, .dtype = dtype, .rank = rank};
    if (dims) {
        value.dims = copy_array(graph, dims, rank, sizeof(*dims));
    }
    return add_value(graph, value);
}

uint32_t rt_graph_constant(struct rt_graph *graph, enum dtype dtype, const struct shape *shape,
                           struct span bytes)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i < shape->rank; i++) {
        dims[i] = rt_dim_of(shape->dims[i]);
    }
    uint32_t value = rt_graph_tensor(graph, dtype, shape->rank, dims);
    if (value) {
        graph->values[value].is_constant = true;
        graph->values[value].bytes = bytes;
    }
    return value;
}

/* Makes |node| the producer of its outputs and of the items of output lists. */
static void claim_outs(struct rt_graph *graph, uint32_t node)
{
    const struct rt_node *n = &graph->nodes[node];
    for (uint32_t i = 0; i < n->out_count; i++) {
        struct rt_value *out = rt_node_out(graph, n, i);
        out->node = node;
        for (uint32_t j = 0; out->kind == RT_TENSORS && j < out->count; j++) {
            graph->values[out->values[j]].node = node;
        }
    }
}

uint32_t rt_graph_node(struct rt_graph *graph, const struct rt_op *op, const uint32_t *args,
                       uint32_t arg_count, const uint32_t *outs, uint32_t out_count)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    must(arg_count <= UINT16_MAX && out_count <= UINT16_MAX);
    uint32_t *arg_copy = copy_array(graph, args, arg_count, sizeof(*args));
    uint32_t *out_copy = copy_array(graph, outs, out_count, sizeof(*outs));
    if (!arg_copy || !out_copy ||
        !ARENA_ROOM(&graph->arena, graph->nodes, graph->node_capacity, graph->node_count + 1)) {
        graph->failed = true;
        return RT_NO_NODE;
    }
    uint32_t node = graph->node_count++;
    graph->nodes[node] = (struct rt_node){.op = op,
                                          .args = arg_copy,
                                          .outs = out_copy,
                                          .arg_count = (uint16_t)arg_count,
                                          .out_count = (uint16_t)out_count,
                                          .origin = graph->origin};
    claim_outs(graph, node);
    return node;
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

/* Most operators do not support complex numbers: this refuses them. */
static enum status check_complex(const struct rt_graph *graph, const struct rt_node *node,
                                 struct error *err)
{
    if (node->op->flags & RT_OP_COMPLEX || !(has_complex(rt_node_arg_tensors(graph, node)) ||
                                             has_complex(rt_node_out_tensors(graph, node)))) {
        return ST_OK;
    }
    return error_set(err, ST_UNSUPPORTED, "%s: not of complex numbers", node->op->name);
}

/* The first tensor among |values| or their items, and its index; NULL: there is none. */
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

/* The tensor from which |node| takes its elements; for a copy, its last tensor. */
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
        out->is_half = out->dtype == DT_F32; /* bfloat16 cannot hold them all */
    }
}

enum status rt_graph_infer(struct rt_graph *graph, uint32_t node, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
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

void rt_graph_set_constant(struct rt_graph *graph, uint32_t value, struct hal_buffer *buffer)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_value *v = &graph->values[value];
    must(v->kind == RT_TENSOR && !v->buffer);
    v->is_constant = true;
    v->node = RT_NO_NODE;
    v->buffer = buffer;
    v->bytes = span_of(hal_buffer_map(buffer), hal_buffer_size(buffer));
    hal_buffer_freeze(buffer);
}

/* ---- looking --------------------------------------------------------------------------------- */

bool rt_value_shape(const struct rt_value *value, struct shape *out_shape)
{
    struct shape shape = {.rank = value->rank};
    if (value->kind != RT_TENSOR || !value->dims) {
        return false;
    }
    for (uint8_t i = 0; i < value->rank; i++) {
        if (!rt_dim_is_const(value->dims[i])) {
            return false;
        }
        shape.dims[i] = value->dims[i].value;
    }
    *out_shape = shape;
    return true;
}

bool rt_value_same_dims(const struct rt_value *a, const struct rt_value *b)
{
    bool same = a->rank == b->rank && a->dims && b->dims;
    for (uint8_t i = 0; same && i < a->rank; i++) {
        same = rt_dim_same(a->dims[i], b->dims[i]);
    }
    return same;
}

bool rt_ints_are(const struct rt_value *list, int64_t value)
{
    bool are = true;
    for (uint32_t i = 0; are && i < list->count; i++) {
        are = rt_dim_is(list->ints[i], value);
    }
    return are;
}

struct rt_dim rt_value_numel(struct rt_graph *graph, const struct rt_value *value)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_dim numel = rt_dim_of(1);
    for (uint8_t i = 0; i < value->rank; i++) {
        numel = rt_dim_mul(&graph->dims, numel, value->dims[i]);
    }
    return numel;
}

bool rt_tensors_next(struct rt_tensors *it, uint32_t *out_value)
{
    while (it->at < it->count) {
        uint32_t value = it->values[it->at];
        const struct rt_value *v = &it->graph->values[value];
        if (v->kind == RT_TENSORS && it->item < v->count) {
            value = v->values[it->item++];
        } else {
            it->at++;
            it->item = 0;
        }
        if (it->graph->values[value].kind == RT_TENSOR) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

bool rt_value_orders_agree(const struct rt_value *v)
{
    bool is_pixel = true;
    must(v->kind == RT_TENSOR);
    for (uint8_t d = 2; d < v->rank; d++) {
        is_pixel = is_pixel && rt_dim_is(v->dims[d], 1);
    }
    return v->rank < 3 || is_pixel || rt_dim_is(v->dims[1], 1);
}

/* ---- tidying --------------------------------------------------------------------------------- */

/* Marks |value| and, if it is a list, its tensors. */
static void mark_needed(const struct rt_graph *graph, uint32_t value, bool *needed)
{
    const struct rt_value *v = &graph->values[value];
    needed[value] = true;
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        needed[v->values[i]] = true;
    }
}

/* Iterates over a node's arguments and their list items; gives the producer of the next one. */
static bool next_producer(const struct rt_graph *graph, const struct rt_node *node, uint32_t *arg,
                          uint32_t *item, uint32_t *out_node)
{
    while (*arg < node->arg_count) {
        const struct rt_value *v = rt_node_arg(graph, node, *arg);
        if (v->kind == RT_TENSORS && *item < v->count) {
            *out_node = graph->values[v->values[(*item)++]].node;
            return true;
        }
        (*arg)++;
        *item = 0;
        if (v->kind != RT_TENSORS) {
            *out_node = v->node;
            return true;
        }
    }
    return false;
}

/* One node on the way down; |arg| and |item| say which arguments have been looked at. */
struct visit {
    uint32_t node, arg, item;
};

/* Appends |root| and, before it, all nodes that it needs and that are not in |order| yet. */
static void place(const struct rt_graph *graph, uint32_t root, struct visit *stack, uint8_t *state,
                  uint32_t *order, uint32_t *count)
{
    uint32_t depth = 0;
    if (state[root]) {
        return;
    }
    stack[depth++] = (struct visit){.node = root};
    state[root] = 1;
    while (depth > 0) {
        struct visit *top = &stack[depth - 1];
        uint32_t producer;
        if (!next_producer(graph, &graph->nodes[top->node], &top->arg, &top->item, &producer)) {
            order[(*count)++] = top->node;
            state[top->node] = 2;
            depth--;
        } else if (producer != RT_NO_NODE && state[producer] == 0) {
            state[producer] = 1;
            stack[depth++] = (struct visit){.node = producer};
        } else {
            must(producer == RT_NO_NODE || state[producer] == 2); /* values are written once */
        }
    }
}

/* Marks the nodes that outputs need, walking backwards; |order| is topological. */
static void drop_unneeded(struct rt_graph *graph, const uint32_t *order, uint32_t count,
                          bool *needed)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        mark_needed(graph, graph->outputs[i], needed);
    }
    for (uint32_t i = count; i-- > 0;) {
        struct rt_node *node = &graph->nodes[order[i]];
        bool is_needed = false;
        for (uint32_t j = 0; j < node->out_count; j++) {
            const struct rt_value *out = rt_node_out(graph, node, j);
            is_needed |= needed[node->outs[j]];
            for (uint32_t k = 0; out->kind == RT_TENSORS && k < out->count; k++) {
                is_needed |= needed[out->values[k]];
            }
        }
        node->is_dead |= !is_needed;
        for (uint32_t j = 0; !node->is_dead && j < node->arg_count; j++) {
            mark_needed(graph, node->args[j], needed);
        }
    }
}

static bool has_out(const struct rt_graph *graph, const struct rt_node *node, uint32_t value)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        const struct rt_value *out = rt_node_out(graph, node, i);
        if (node->outs[i] == value) {
            return true;
        }
        for (uint32_t k = 0; out->kind == RT_TENSORS && k < out->count; k++) {
            if (out->values[k] == value) {
                return true;
            }
        }
    }
    return false;
}

/* No pass has removed the producer of a value that the node |reader| reads. */
static void expect_producer(const struct rt_graph *graph, uint32_t value, uint32_t reader)
{
    must(value < graph->value_count);
    uint32_t producer = graph->values[value].node;
    if (producer != RT_NO_NODE) {
        must(producer < reader && producer < graph->node_count);
        must(has_out(graph, &graph->nodes[producer], value));
    }
}

/* The same for a value or the items of a list. */
static void expect_producers(const struct rt_graph *graph, uint32_t value, uint32_t reader)
{
    const struct rt_value *v = &graph->values[value];
    expect_producer(graph, value, reader);
    for (uint32_t i = 0; v->kind == RT_TENSORS && i < v->count; i++) {
        expect_producer(graph, v->values[i], reader);
    }
}

/* Checks the order on which every pass and the planner rely. */
static void expect_order(const struct rt_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        must(node->op && !node->is_dead && node->out_count > 0);
        for (uint32_t j = 0; j < node->arg_count; j++) {
            expect_producers(graph, node->args[j], i);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        expect_producers(graph, graph->outputs[i], graph->node_count);
    }
}

enum status rt_graph_compact(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    TRY(rt_graph_check(graph, err));
    uint32_t n = graph->node_count, count = 0, kept = 0;
    uint32_t *order = take(graph, n, sizeof(*order));
    uint8_t *state = take(graph, n, sizeof(*state));
    struct visit *stack = take(graph, n, sizeof(*stack));
    bool *needed = take(graph, graph->value_count, sizeof(*needed));
    struct rt_node *nodes = take(graph, n, sizeof(*nodes));
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < n; i++) {
        if (!graph->nodes[i].is_dead) {
            place(graph, i, stack, state, order, &count);
        }
    }
    drop_unneeded(graph, order, count, needed);
    for (uint32_t i = 0; i < count; i++) {
        if (!graph->nodes[order[i]].is_dead) {
            nodes[kept++] = graph->nodes[order[i]];
        }
    }
    graph->nodes = nodes;
    graph->node_count = kept;
    graph->node_capacity = n;
    for (uint32_t i = 0; i < kept; i++) {
        claim_outs(graph, i);
    }
    for (uint32_t i = 0; i < graph->value_count; i++) {
        struct rt_value *v = &graph->values[i];
        if (!needed[i] && v->buffer) {
            hal_buffer_unref(v->buffer);
            v->buffer = NULL;
            v->bytes = (struct span){0};
        }
    }
    expect_order(graph);
    return ST_OK;
}
