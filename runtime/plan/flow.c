/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/plan/flow.h"

#include "base/check.h"
#include "runtime/ops/op.h"

static uint32_t find(struct rt_flow *flow, uint32_t value)
{
    while (flow->class_of[value] != value) {
        flow->class_of[value] = flow->class_of[flow->class_of[value]];
        value = flow->class_of[value];
    }
    return value;
}

static bool is_view(const struct rt_node *node)
{
    return node->op->flags & RT_OP_VIEW;
}

/* Are the tensors that |node| joins already parts of its output? */
static bool is_joined(const struct rt_flow *flow, const struct rt_node *node)
{
    const struct rt_value *list = rt_node_arg(flow->graph, node, 0);
    return node->op->flags & RT_OP_JOINS && list->count > 0 &&
           flow->whole[list->values[0]] == node->outs[0];
}

/* Is its output a run of bytes of its argument? */
static bool is_cut(const struct rt_flow *flow, const struct rt_node *node)
{
    return node->op->flags & RT_OP_CUTS && flow->is_cut[node->outs[0]];
}

static bool runs_nothing(const struct rt_flow *flow, const struct rt_node *node)
{
    return is_view(node) || is_joined(flow, node) || is_cut(flow, node);
}

/* ---- parts of images ------------------------------------------------------------------------- */

static void count_uses(const struct rt_graph *graph, uint32_t *uses)
{
    uint32_t value;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (struct rt_tensors it = rt_node_arg_tensors(graph, &graph->nodes[i]);
             rt_tensors_next(&it, &value);) {
            uses[value]++;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uses[graph->outputs[i]]++;
    }
}

static bool has_channels_inside(const struct rt_value *v)
{
    return v->kind == RT_TENSOR && v->rank >= 3 && v->order && v->order[v->rank - 1] == 1 &&
           !v->is_half && !v->is_packed;
}

/* Can |value| be a part of |whole|? */
static bool may_be_part(const struct rt_graph *graph, uint32_t value, const struct rt_value *whole)
{
    const struct rt_value *v = &graph->values[value];
    if (v->kind != RT_TENSOR || v->node == RT_NO_NODE) {
        return false;
    }
    const struct rt_node *producer = &graph->nodes[v->node];
    const struct rt_epilogue *e = producer->op->detail;
    return producer->op->flags & RT_OP_PARTS && producer->outs[0] == value &&
           rt_node_arg(graph, producer, e->residual)->kind == RT_NONE && has_channels_inside(v) &&
           v->order == whole->order && v->dtype == whole->dtype && rt_dim_is_const(v->dims[1]);
}

static void find_parts(struct rt_flow *flow, const struct rt_node *node, const uint32_t *uses)
{
    const struct rt_graph *graph = flow->graph;
    const struct rt_value *list = rt_node_arg(graph, node, 0);
    const struct rt_value *whole = rt_node_out(graph, node, 0);
    struct rt_dim dim = rt_node_arg(graph, node, 1)->i;
    bool may = has_channels_inside(whole) && list->count > 0 &&
               (rt_dim_is(dim, 1) || rt_dim_is(dim, 1 - (int64_t)whole->rank));
    for (uint32_t i = 0; may && i < list->count; i++) {
        may = uses[list->values[i]] == 1 && may_be_part(graph, list->values[i], whole);
    }
    int64_t channel = 0;
    for (uint32_t i = 0; may && i < list->count; i++) {
        flow->whole[list->values[i]] = node->outs[0];
        flow->channel[list->values[i]] = channel;
        channel += graph->values[list->values[i]].dims[1].value;
    }
}

static void find_all_parts(struct rt_flow *flow, uint32_t *uses)
{
    const struct rt_graph *graph = flow->graph;
    count_uses(graph, uses);
    for (uint32_t i = 0; graph->is_host && i < graph->node_count; i++) {
        if (graph->nodes[i].op->flags & RT_OP_JOINS) {
            find_parts(flow, &graph->nodes[i], uses);
        }
    }
}

/* ---- runs of elements ------------------------------------------------------------------------ */

/* Returns how many elements of |v| lie between one index of |dim| and the next, if the indices
 * follow each other in memory; 0: they do not, or that is not known. */
static int64_t pitch_of(const struct rt_value *v, uint8_t dim)
{
    int64_t pitch = 1;
    bool is_outside = true;
    for (uint8_t i = 0; i < v->rank; i++) {
        uint8_t d = v->order ? v->order[i] : i;
        if (d == dim) {
            is_outside = false;
        } else if (!rt_dim_is_const(v->dims[d]) || (is_outside && v->dims[d].value != 1) ||
                   !mul_i64(pitch, v->dims[d].value, &pitch)) {
            return 0;
        }
    }
    return pitch;
}

static bool has_step(const struct rt_graph *graph, const struct rt_node *node)
{
    const struct rt_value *step = node->arg_count > 4 ? rt_node_arg(graph, node, 4) : NULL;
    return step && step->kind != RT_NONE && !rt_dim_is(step->i, 1);
}

/* The first index of a dim of |size| that |node| takes, and it takes |count|. False: only a call
 * knows, or they are not all there. */
static bool find_first(const struct rt_graph *graph, const struct rt_node *node, int64_t size,
                       int64_t count, int64_t *out_first)
{
    const struct rt_value *start = rt_node_arg(graph, node, 2);
    struct rt_dim first = start->kind == RT_NONE ? rt_dim_of(0) : start->i;
    *out_first = first.value + (first.value < 0 ? size : 0);
    return rt_dim_is_const(first) && *out_first >= 0 && *out_first <= size &&
           count <= size - *out_first;
}

/* Does |node| take elements that follow each other in memory? |*out_begin|: the byte of the first
 * one. */
static bool find_cut(const struct rt_flow *flow, const struct rt_node *node, size_t *out_begin)
{
    const struct rt_graph *graph = flow->graph;
    const struct rt_value *from = rt_node_arg(graph, node, 0), *to = rt_node_out(graph, node, 0);
    bool is_alike = from->order == to->order && (!from->order || from->rank == to->rank);
    if (!is_alike || from->is_packed || flow->whole[node->args[0]] || has_step(graph, node)) {
        return false;
    }
    uint8_t dim = rt_dim_from_first(rt_node_arg(graph, node, 1)->i.value, from->rank);
    struct rt_dim size = from->dims[dim];
    struct rt_dim count = from->rank == to->rank ? to->dims[dim] : rt_dim_of(1);
    int64_t first, bytes, pitch = pitch_of(from, dim);
    bool is_known = pitch > 0 && rt_dim_is_const(size) && rt_dim_is_const(count) &&
                    find_first(graph, node, size.value, count.value, &first) &&
                    mul_i64(first, pitch, &bytes) &&
                    mul_i64(bytes, (int64_t)dtype_bytes(from->dtype), &bytes);
    *out_begin = is_known ? (size_t)bytes : 0;
    return is_known;
}

static void find_cuts(struct rt_flow *flow)
{
    const struct rt_graph *graph = flow->graph;
    for (uint32_t i = 0; graph->is_host && i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        if (node->op->flags & RT_OP_CUTS) {
            flow->is_cut[node->outs[0]] = find_cut(flow, node, &flow->begin[node->outs[0]]);
        }
    }
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Nodes that run in a row of regions of their own. */
struct wave {
    size_t bytes_max; /* SIZE_MAX: all nodes are one wave */
    size_t bytes;     /* that its nodes make */
    uint32_t first;   /* region */
};

/* Bytes that |node| makes; SIZE_MAX: only a call knows. */
static size_t bytes_made(const struct rt_graph *graph, const struct rt_node *node)
{
    size_t sum = 0;
    uint32_t value;
    for (struct rt_tensors it = rt_node_out_tensors(graph, node); rt_tensors_next(&it, &value);) {
        struct shape shape;
        struct error ignored;
        size_t bytes;
        const struct rt_value *v = &graph->values[value];
        if (!rt_value_shape(v, &shape) ||
            shape_bytes(&shape, v->dtype, &bytes, &ignored) != ST_OK ||
            !add_size(sum, bytes, &sum)) {
            return SIZE_MAX;
        }
    }
    return sum;
}

/* |node| is in this wave, or begins the next one. */
static void join_wave(const struct rt_flow *flow, const struct rt_node *node, struct wave *wave)
{
    if (wave->bytes_max == SIZE_MAX || runs_nothing(flow, node)) {
        return;
    }
    size_t bytes = bytes_made(flow->graph, node);
    if (!add_size(wave->bytes, bytes, &wave->bytes) || wave->bytes > wave->bytes_max) {
        wave->first = flow->region_count;
        wave->bytes = bytes;
    }
}

/* |ready| of a value is the first region that may read it: 0 for inputs and constants, otherwise
 * the region after its producer's. */
static void assign_regions(struct rt_flow *flow, size_t wave_bytes, uint32_t *ready)
{
    struct wave wave = {.bytes_max = wave_bytes};
    for (uint32_t i = 0; i < flow->graph->node_count; i++) {
        const struct rt_node *node = &flow->graph->nodes[i];
        join_wave(flow, node, &wave);
        uint32_t region = wave.first, value;
        for (struct rt_tensors it = rt_node_arg_tensors(flow->graph, node);
             rt_tensors_next(&it, &value);) {
            region = ready[value] > region ? ready[value] : region;
            flow->is_used[value] = true;
        }
        flow->region[i] = region;
        for (struct rt_tensors it = rt_node_out_tensors(flow->graph, node);
             rt_tensors_next(&it, &value);) {
            ready[value] = runs_nothing(flow, node) ? region : region + 1;
        }
        if (!runs_nothing(flow, node) && region >= flow->region_count) {
            flow->region_count = region + 1;
        }
    }
}

/* Counting sort of the dispatching nodes by region. */
static void sort_nodes(struct rt_flow *flow, uint32_t *begin)
{
    const struct rt_graph *graph = flow->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!runs_nothing(flow, &graph->nodes[i])) {
            begin[flow->region[i] + 1]++;
            flow->order_count++;
        }
    }
    for (uint32_t r = 0; r < flow->region_count; r++) {
        begin[r + 1] += begin[r];
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!runs_nothing(flow, &graph->nodes[i])) {
            flow->order[begin[flow->region[i]]++] = i;
        }
    }
}

/* ---- classes --------------------------------------------------------------------------------- */

static void join_views(struct rt_flow *flow)
{
    for (uint32_t i = 0; i < flow->graph->value_count; i++) {
        flow->class_of[i] = flow->whole[i] ? flow->whole[i] : i;
    }
    for (uint32_t i = 0; i < flow->graph->node_count; i++) {
        const struct rt_node *node = &flow->graph->nodes[i];
        if (is_view(node) || is_cut(flow, node)) {
            uint32_t out = node->outs[0];
            flow->class_of[out] = find(flow, node->args[0]);
            flow->is_cut[out] |= flow->is_cut[node->args[0]];
            flow->begin[out] += flow->begin[node->args[0]];
        }
    }
}

/* Regions ascend in the order of the nodes. */
static void settle_homes(struct rt_flow *flow)
{
    const struct rt_graph *graph = flow->graph;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct rt_value *v = &graph->values[i];
        if (v->kind == RT_TENSOR && v->is_constant) {
            flow->classes[i].home = RT_HOME_CONSTANT;
        }
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (graph->values[graph->inputs[i]].kind == RT_TENSOR) {
            flow->classes[graph->inputs[i]] = (struct rt_storage){
                .home = i < flow->staging.inputs ? RT_HOME_WORKSPACE : RT_HOME_INPUT, .index = i};
        }
    }
    for (uint32_t i = 0; i < flow->order_count; i++) {
        const struct rt_node *node = &graph->nodes[flow->order[i]];
        uint32_t region = flow->region[flow->order[i]], value;
        for (struct rt_tensors it = rt_node_out_tensors(flow->graph, node);
             rt_tensors_next(&it, &value);) {
            struct rt_storage *class = &flow->classes[find(flow, value)];
            uint32_t first = class->home == RT_HOME_WORKSPACE ? class->first : region;
            *class = (struct rt_storage){.home = RT_HOME_WORKSPACE, .first = first, .last = region};
        }
    }
}

/*
 * The first result of a transient class is computed where the caller wants it; others are copied,
 * and so are parts of one.
 */
static void settle_results(struct rt_flow *flow)
{
    const struct rt_graph *graph = flow->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = graph->outputs[i];
        if (graph->values[value].kind != RT_TENSOR) {
            continue;
        }
        struct rt_storage *class = &flow->classes[find(flow, value)];
        flow->is_used[value] = true;
        class->last = flow->region_count;
        if (class->home == RT_HOME_WORKSPACE && i >= flow->staging.results &&
            !flow->is_cut[value]) {
            class->home = RT_HOME_RESULT;
            class->index = i;
        } else {
            flow->copies[flow->copy_count++] = (struct rt_result_copy){i, value};
        }
    }
}

static void note_reads(struct rt_flow *flow)
{
    for (uint32_t i = 0; i < flow->order_count; i++) {
        const struct rt_node *node = &flow->graph->nodes[flow->order[i]];
        uint32_t region = flow->region[flow->order[i]], value;
        for (struct rt_tensors it = rt_node_arg_tensors(flow->graph, node);
             rt_tensors_next(&it, &value);) {
            struct rt_storage *class = &flow->classes[find(flow, value)];
            if (region > class->last) {
                class->last = region;
                class->last_uses = 0;
            }
            class->last_uses += region == class->last;
        }
    }
}

/* The argument whose memory output 0 may use, if all else agrees: the first one, or the residual of
 * a product. In place of a residual of floats no sums can be kept between parts of a product. */
static bool find_shared(const struct rt_graph *graph, const struct rt_node *node, uint32_t *index)
{
    const struct rt_epilogue *e = node->op->flags & RT_OP_EPILOGUE ? node->op->detail : NULL;
    bool has_residual = e && e->residual && rt_node_arg(graph, node, e->residual)->dtype == DT_BF16;
    *index = has_residual ? e->residual : 0;
    return has_residual || node->op->flags & RT_OP_IN_PLACE;
}

static bool may_share(struct rt_flow *flow, const struct rt_node *node, uint32_t arg,
                      uint32_t region)
{
    const struct rt_graph *graph = flow->graph;
    const struct rt_value *in = rt_node_arg(graph, node, arg), *out = rt_node_out(graph, node, 0);
    if (in->kind != RT_TENSOR || in->dtype != out->dtype || in->order != out->order ||
        flow->is_cut[node->args[arg]] || !rt_value_same_dims(in, out)) {
        return false;
    }
    const struct rt_storage *from = &flow->classes[find(flow, node->args[arg])];
    const struct rt_storage *to = &flow->classes[find(flow, node->outs[0])];
    return from->home == RT_HOME_WORKSPACE &&
           (to->home == RT_HOME_WORKSPACE || to->home == RT_HOME_RESULT) && from->last == region &&
           from->last_uses == 1;
}

static void join_in_place(struct rt_flow *flow)
{
    for (uint32_t i = 0; i < flow->order_count; i++) {
        const struct rt_node *node = &flow->graph->nodes[flow->order[i]];
        uint32_t arg;
        if (node->arg_count == 0 || node->out_count == 0 || !find_shared(flow->graph, node, &arg) ||
            !may_share(flow, node, arg, flow->region[flow->order[i]])) {
            continue;
        }
        uint32_t in = find(flow, node->args[arg]), out = find(flow, node->outs[0]);
        flow->class_of[out] = in;
        flow->classes[in].home = flow->classes[out].home;
        flow->classes[in].index = flow->classes[out].index;
        flow->classes[in].last = flow->classes[out].last;
        flow->classes[in].last_uses = flow->classes[out].last_uses;
    }
}

bool rt_flow_is_uploaded(const struct rt_flow *flow, uint32_t index)
{
    must(index < flow->graph->input_count);
    uint32_t value = flow->graph->inputs[index];
    return index < flow->staging.inputs && flow->graph->values[value].kind == RT_TENSOR &&
           flow->is_used[value];
}

static enum status make(struct rt_flow *flow, const struct rt_graph *graph,
                        struct rt_staging staging, size_t wave_bytes, struct arena *arena,
                        struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    uint32_t values = graph->value_count, nodes = graph->node_count;
    *flow = (struct rt_flow){
        .graph = graph,
        .staging = staging,
        .class_of = arena_array(arena, values, sizeof(*flow->class_of)),
        .classes = arena_array(arena, values, sizeof(*flow->classes)),
        .is_used = arena_array(arena, values, sizeof(*flow->is_used)),
        .whole = arena_array(arena, values, sizeof(*flow->whole)),
        .channel = arena_array(arena, values, sizeof(*flow->channel)),
        .is_cut = arena_array(arena, values, sizeof(*flow->is_cut)),
        .begin = arena_array(arena, values, sizeof(*flow->begin)),
        .order = arena_array(arena, nodes, sizeof(*flow->order)),
        .region = arena_array(arena, nodes, sizeof(*flow->region)),
        .copies = arena_array(arena, graph->output_count, sizeof(*flow->copies)),
    };
    uint32_t *ready = arena_array(arena, values, sizeof(*ready));
    uint32_t *begin = arena_array(arena, (size_t)nodes + 2, sizeof(*begin));
    uint32_t *uses = arena_array(arena, values, sizeof(*uses));
    if (!flow->class_of || !flow->classes || !flow->is_used || !flow->whole || !flow->channel ||
        !flow->is_cut || !flow->begin || !flow->order || !flow->region || !flow->copies || !ready ||
        !begin || !uses) {
        return arena_fail(arena, "the method", err);
    }
    find_all_parts(flow, uses);
    find_cuts(flow);
    assign_regions(flow, wave_bytes, ready);
    sort_nodes(flow, begin);
    join_views(flow);
    settle_homes(flow);
    settle_results(flow);
    note_reads(flow);
    join_in_place(flow);
    for (uint32_t i = 0; i < values; i++) {
        flow->class_of[i] = find(flow, i);
    }
    return ST_OK;
}

enum status rt_flow_make(struct rt_flow *flow, const struct rt_graph *graph,
                         struct rt_staging staging, struct arena *arena, struct error *err)
{
    return make(flow, graph, staging, SIZE_MAX, arena, err);
}

enum status rt_flow_make_waves(struct rt_flow *flow, const struct rt_graph *graph,
                               size_t wave_bytes, struct arena *arena, struct error *err)
{
    must(graph->input_count == 0);
    return make(flow, graph, (struct rt_staging){0}, wave_bytes, arena, err);
}
