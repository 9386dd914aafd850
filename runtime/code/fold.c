/* SPDX-License-Identifier: MIT */
/* Constant folding: see fold.h. It finds the foldable nodes, in rounds; round.c computes a round.
 */
#include "config.h"

#include "runtime/code/fold.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/code/round.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/rewrite.h"
#include "runtime/pte/files.h"

/* A node is not folded if its output is much larger than its inputs: `full([1000, 1000], 0)`. All
 * of them together are bounded as well, so that a chain of such nodes cannot fill the memory. */
#define FOLD_GROWTH 8
/* Packed weights have whole panels and blocks: up to so much for each byte of a matrix with few
 * columns, or of a narrow depthwise kernel. The bound for all nodes holds for them, too. */
#define FOLD_PACKED_GROWTH 32
#define FOLD_SMALL (64u << 10)

/* Outputs up to this part of all constants are folded however much they grow, too, but none beyond
 * FOLD_LARGE: Swin's masks of shifted windows are 0.6 MB, made of a few numbers. */
#define FOLD_PART 64
#define FOLD_LARGE (1u << 20)

/* Bytes after which a round takes no more nodes: values that only this round needs are freed at its
 * end. */
#define FOLD_ROUND_BYTES ((size_t)64 << 20)

/* A round that made so much has read about as much from the files, mostly for the last time. */
#define FOLD_RELEASE_MIN (1u << 20)

struct fold {
    struct rt_graph *graph;
    bool *is_known;            /* by value: constant, or an output of a foldable node */
    bool *is_foldable;         /* by node */
    bool *waits;               /* by value: it is computed when it is packed */
    uint32_t count, out_count; /* of foldable nodes, of their outputs */
    size_t small;              /* bytes of outputs that may grow however much */
    size_t budget;             /* bytes that may still be made */
    size_t made;               /* bytes that this round makes */
};

static bool is_static(const struct rt_value *v, size_t *bytes)
{
    struct shape shape;
    struct error ignored;
    size_t more;
    return rt_value_shape(v, &shape) && shape_bytes(&shape, v->dtype, &more, &ignored) == ST_OK &&
           add_size(*bytes, more, bytes);
}

static bool args_are_known(const struct fold *f, const struct rt_node *node, size_t *bytes)
{
    struct rt_tensors tensors = rt_node_arg_tensors(f->graph, node);
    for (uint32_t value; rt_tensors_next(&tensors, &value);) {
        if (!f->is_known[value] || !is_static(&f->graph->values[value], bytes)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        const struct rt_value *v = rt_node_arg(f->graph, node, i);
        bool is_symbolic = !rt_value_is_fixed(v);
        for (uint32_t j = 0; v->kind == RT_INTS && j < v->count; j++) {
            is_symbolic |= !rt_dim_is_const(v->ints[j]);
        }
        if (is_symbolic) {
            return false;
        }
    }
    return true;
}

static bool outs_fit(struct fold *f, const struct rt_node *node, size_t bytes_in)
{
    size_t bytes = 0;
    size_t growth = FOLD_GROWTH;
    if (node->out_count > RT_ROUND_OUTPUTS_MAX - f->out_count || f->made >= FOLD_ROUND_BYTES) {
        return false;
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        const struct rt_value *v = rt_node_out(f->graph, node, i);
        if (v->kind != RT_TENSOR || !is_static(v, &bytes)) {
            return false;
        }
        growth = v->is_packed ? FOLD_PACKED_GROWTH : growth;
    }
    if (bytes > f->budget || (bytes > f->small && bytes / growth > bytes_in)) {
        return false;
    }
    f->budget -= bytes;
    f->made += bytes;
    return true;
}

/* A value computed from a weight keeps the weight's name. */
static void keep_name(const struct fold *f, const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(f->graph, node);
    const char *name = NULL;
    for (uint32_t value; !name && rt_tensors_next(&tensors, &value);) {
        name = f->graph->values[value].name;
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        rt_node_out(f->graph, node, i)->name = name;
    }
}

/* Until the layout pass tensors are row-major, whatever order the kernel prefers. */
static bool waits_for_layout(const struct fold *f, const struct rt_node *node)
{
    return node->op->layout == RT_LAYOUT_CHANNELS_LAST && !rt_node_out(f->graph, node, 0)->order;
}

/* ---- weights that will be packed ------------------------------------------------------------- */

/* A permute of a large constant that only convolutions read as their weights is computed when they
 * are packed: then it need not have memory of its own. A pass gives them packed weights. */
#define WAITING_MIN FOLD_SMALL

static bool is_large_permute(const struct rt_graph *graph, const struct rt_node *node)
{
    size_t bytes = 0;
    return rt_op_is(node->op, RT_KNOWN_permute) && rt_node_arg(graph, node, 0)->is_constant &&
           is_static(rt_node_out(graph, node, 0), &bytes) && bytes >= WAITING_MIN;
}

static bool reads_as_weights(const struct rt_node *node, uint32_t value)
{
    return rt_op_is(node->op, RT_KNOWN_convolution) && node->args[RT_CONV_W] == value &&
           node->args[RT_CONV_X] != value;
}

static void find_waiting(struct fold *f)
{
    const struct rt_graph *graph = f->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        struct rt_tensors tensors = rt_node_arg_tensors(graph, node);
        for (uint32_t value; rt_tensors_next(&tensors, &value);) {
            f->waits[value] = f->waits[value] && reads_as_weights(node, value);
        }
        if (is_large_permute(graph, node)) {
            f->waits[node->outs[0]] = true;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        f->waits[graph->outputs[i]] = false;
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Nodes that the lower pass replaces cannot be computed yet. */
static bool has_kernel(const struct rt_node *node)
{
    return (node->op->emit && !(node->op->flags & RT_OP_RANDOM)) || (node->op->flags & RT_OP_VIEW);
}

static void find_foldable(struct fold *f)
{
    for (uint32_t i = 0; i < f->graph->value_count; i++) {
        f->is_known[i] = f->graph->values[i].is_constant;
    }
    for (uint32_t i = 0; i < f->graph->node_count; i++) {
        const struct rt_node *node = &f->graph->nodes[i];
        size_t bytes_in = 0;
        f->is_foldable[i] = has_kernel(node) && !waits_for_layout(f, node) &&
                            !f->waits[node->outs[0]] && args_are_known(f, node, &bytes_in) &&
                            outs_fit(f, node, bytes_in);
        for (uint32_t j = 0; f->is_foldable[i] && j < node->out_count; j++) {
            f->is_known[node->outs[j]] = true;
        }
        if (f->is_foldable[i]) {
            keep_name(f, node);
        }
        f->count += f->is_foldable[i];
        f->out_count += f->is_foldable[i] ? node->out_count : 0;
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Does |permute| leave all elements where they are, because it moves only dims of 1? */
static bool moves_nothing(const struct rt_graph *graph, const struct rt_node *permute)
{
    const struct rt_value *in = rt_node_arg(graph, permute, 0);
    const struct rt_value *order = rt_node_arg(graph, permute, 1);
    uint8_t last = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        uint8_t dim = rt_dim_from_first(order->ints[i].value, in->rank);
        if (!rt_dim_is(in->dims[dim], 1)) {
            if (dim < last) {
                return false;
            }
            last = dim;
        }
    }
    return true;
}

/* Has the output of |node| the bytes of argument 0, a constant? */
static bool is_view_of_constant(const struct rt_graph *graph, const struct rt_node *node)
{
    size_t bytes = 0;
    bool is_permute = rt_op_is(node->op, RT_KNOWN_permute);
    if (!is_permute && !(node->op->flags & RT_OP_VIEW)) {
        return false;
    }
    const struct rt_value *in = rt_node_arg(graph, node, 0), *out = rt_node_out(graph, node, 0);
    return in->is_constant && !in->order && !out->order && in->dtype == out->dtype &&
           is_static(out, &bytes) && bytes == in->bytes.len &&
           (!is_permute || moves_nothing(graph, node));
}

/* Such views become constants that share the bytes, so that nothing is copied. */
static enum status share_views(struct rt_graph *graph, struct error *err)
{
    bool has_any = false;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_node *node = &graph->nodes[i];
        if (is_view_of_constant(graph, node)) {
            const struct rt_value *in = rt_node_arg(graph, node, 0);
            struct rt_value *out = rt_node_out(graph, node, 0);
            out->is_constant = node->is_dead = has_any = true;
            out->node = RT_NO_NODE;
            out->bytes = in->bytes;
            out->buffer = in->buffer ? hal_buffer_ref(in->buffer) : NULL;
            out->name = in->name;
        }
    }
    return has_any ? rt_graph_compact(graph, err) : ST_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The foldable nodes as a graph of their own; its outputs are the values that other nodes read. */
static enum status extract(const struct fold *f, struct rt_graph *sub, struct error *err)
{
    struct rt_graph *graph = f->graph;
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    *sub = *graph;
    sub->nodes = arena_array(&graph->arena, f->count, sizeof(*sub->nodes));
    sub->outputs = arena_array(&graph->arena, graph->value_count, sizeof(*sub->outputs));
    if (!sub->nodes || !sub->outputs) {
        graph->failed = true;
        return rt_graph_check(graph, err);
    }
    sub->node_count = sub->output_count = sub->input_count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (f->is_foldable[i]) {
            rt_rewrite_drop_uses(&rw, &graph->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_node *node = &graph->nodes[i];
        for (uint32_t j = 0; f->is_foldable[i] && j < node->out_count; j++) {
            if (rt_rewrite_uses(&rw, node->outs[j]) > 0) {
                sub->outputs[sub->output_count++] = node->outs[j];
            }
        }
        if (f->is_foldable[i]) {
            sub->nodes[sub->node_count++] = *node;
        }
    }
    return ST_OK;
}

/* Folds as many nodes as one command buffer has slots for; |budget| becomes the rest. */
static enum status fold_some(struct rt_graph *graph, struct hal_device *device, size_t small,
                             size_t *budget, uint32_t *out_count, struct error *err)
{
    TRY(share_views(graph, err));
    struct fold f = {
        .graph = graph,
        .is_known = arena_array(&graph->arena, graph->value_count, sizeof(*f.is_known)),
        .is_foldable = arena_array(&graph->arena, graph->node_count, sizeof(*f.is_foldable)),
        .waits = arena_array(&graph->arena, graph->value_count, sizeof(*f.waits)),
        .small = small,
        .budget = *budget,
    };
    struct rt_graph sub;
    graph->failed |= !f.is_known || !f.is_foldable || !f.waits;
    TRY(rt_graph_check(graph, err));
    find_waiting(&f);
    find_foldable(&f);
    *budget = f.budget;
    *out_count = f.count;
    if (f.count == 0) {
        return ST_OK;
    }
    TRY(extract(&f, &sub, err));
    TRY(rt_round_compute(graph, &sub, device, err));
    if (f.made >= FOLD_RELEASE_MIN && graph->files) {
        rt_files_release(graph->files);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i].is_dead |= f.is_foldable[i];
    }
    return rt_graph_compact(graph, err);
}

enum status rt_fold_constants(struct rt_graph *graph, struct hal_device *device, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    size_t constants = 0, budget = SIZE_MAX;
    uint32_t count;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (graph->values[i].is_constant && !is_static(&graph->values[i], &constants)) {
            return error_set(err, ST_TOO_LARGE, "the constants exceed memory");
        }
    }
    if (constants < SIZE_MAX / FOLD_GROWTH - FOLD_SMALL) {
        budget = (constants + FOLD_SMALL) * FOLD_GROWTH;
    }
    size_t part = constants / FOLD_PART < FOLD_LARGE ? constants / FOLD_PART : FOLD_LARGE;
    size_t small = part > FOLD_SMALL ? part : FOLD_SMALL;
    do {
        TRY(fold_some(graph, device, small, &budget, &count, err));
    } while (count > 0);
    return ST_OK;
}
