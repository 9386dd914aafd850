/* SPDX-License-Identifier: MIT */
/*
 * The exec model: a flow and its memory become a command buffer. Region by region, every node's
 * operator appends its dispatches; then results that live elsewhere are copied out. Embeds what an
 * operator sees while it does so (struct rt_emit, runtime/emit/planner.h).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/emit/planner.h"
#include "runtime/ops/op.h"
#include "runtime/plan/alloc.h"
#include "runtime/plan/plan.h"
#include "runtime/pte/files.h"

struct exec {
    struct rt_emit emit; /* the operators' view of it */
    const struct rt_flow *flow;
    const struct rt_alloc *alloc;
    struct arena *arena;
    struct rt_plan *plan;
    uint32_t node_index;
};

/* ---- tensors --------------------------------------------------------------------------------- */

struct hal_binding rt_plan_locate(const struct rt_graph *graph, const struct rt_value *v)
{
    must(v->kind == RT_TENSOR && v->is_constant);
    struct hal_binding binding = {.length = v->bytes.len};
    if (v->buffer) {
        return hal_binding_whole(v->buffer);
    }
    if (v->bytes.len > 0) {
        rt_files_locate(graph->files, v->bytes.ptr, &binding);
    }
    return binding;
}

static struct hal_binding bind(const struct exec *e, uint32_t value, size_t bytes)
{
    const struct rt_storage *class = rt_flow_class(e->flow, value);
    /* The value that has the bytes: of a view, the value behind it. */
    const struct rt_value *v = &e->emit.graph->values[e->flow->class_of[value]];
    struct hal_binding binding = {.length = bytes};
    switch (class->home) {
    case RT_HOME_CONSTANT:
        binding = rt_plan_locate(e->emit.graph, v);
        binding.length = bytes;
        break;
    case RT_HOME_INPUT:
        binding.slot = (uint16_t)(RT_SLOT_INPUT + class->index);
        break;
    case RT_HOME_RESULT:
        binding.slot = (uint16_t)rt_slot_result(e->emit.graph->input_count, class->index);
        break;
    case RT_HOME_WORKSPACE:
        binding.slot = RT_SLOT_WORKSPACE;
        binding.offset = e->alloc->offset[e->flow->class_of[value]];
        break;
    case RT_HOME_NONE:
        unreachable();
    }
    return binding;
}

/* |channels|: of dim 1 in memory, more than its size for a part of an image. */
static void stride_tensor(struct rt_tensor *t, const uint8_t *order, int64_t channels)
{
    int64_t stride = 1, row_major = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint8_t d = order ? order[i] : (uint8_t)i;
        int64_t size = d == 1 ? channels : t->dims[d];
        t->strides[d] = stride;
        stride *= size > 0 ? size : 1;
    }
    t->pitch = channels;
    t->is_row_major = true;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->is_row_major &= t->dims[i] <= 1 || t->strides[i] == row_major;
        row_major *= t->dims[i] > 0 ? t->dims[i] : 1;
    }
}

/* Operators count elements, images and tiles in 32 bits; no tensor is so large that they cannot. */
#define MANY_BYTES (UINT64_C(1) << 36)
#define TENSOR_BYTES_MAX (MANY_BYTES < SIZE_MAX / 2 ? (size_t)MANY_BYTES : SIZE_MAX / 2)
#define TENSOR_ELEMENTS_MAX UINT32_MAX

/* Dims of 0 count as 1, because the product of the other dims has to fit as well. */
static enum status check_size(const struct shape *shape, size_t bytes, struct error *err)
{
    char text[SHAPE_TEXT_MAX];
    int64_t elements = 1;
    for (uint8_t d = 0; d < shape->rank; d++) {
        bool fits = mul_i64(elements, shape->dims[d] ? shape->dims[d] : 1, &elements);
        if (!fits || elements > TENSOR_ELEMENTS_MAX) {
            return error_set(err, ST_TOO_LARGE, "a tensor of shape %.200s, at most %u elements",
                             shape_print(shape, text), TENSOR_ELEMENTS_MAX);
        }
    }
    return bytes <= TENSOR_BYTES_MAX ? ST_OK
                                     : error_set(err, ST_TOO_LARGE, "a tensor of %zu bytes", bytes);
}

/* Where a part of a larger image lies. */
static enum status place_part(struct exec *e, uint32_t value, struct rt_tensor *t,
                              struct error *err)
{
    const struct rt_value *v = &e->emit.graph->values[e->flow->whole[value]];
    struct shape shape = rt_concrete_shape(v, e->emit.values);
    size_t bytes, begin = (size_t)e->flow->channel[value] * dtype_bytes(v->dtype);
    TRY(shape_bytes(&shape, v->dtype, &bytes, err));
    TRY(check_size(&shape, bytes, err));
    stride_tensor(t, v->order, shape.dims[1]);
    t->binding = bind(e, value, bytes);
    begin = begin < bytes ? begin : bytes; /* of an image without pixels */
    t->binding.offset += begin;
    t->binding.length -= begin;
    return ST_OK;
}

/* Unless it is there. */
static enum status make_tensor(struct exec *e, uint32_t value, struct error *err)
{
    if (e->emit.tensors[value]) {
        return ST_OK;
    }
    const struct rt_value *v = &e->emit.graph->values[value];
    struct rt_tensor *t = arena_alloc(e->arena, sizeof(*t));
    if (!t) {
        return arena_fail(e->arena, "a plan", err);
    }
    struct shape shape = rt_concrete_shape(v, e->emit.values);
    TRY(shape_bytes(&shape, v->dtype, &t->bytes, err));
    TRY(check_size(&shape, t->bytes, err));
    t->dtype = v->dtype;
    t->rank = v->rank;
    t->is_half = v->is_half;
    for (uint8_t i = 0; i < v->rank; i++) {
        t->dims[i] = shape.dims[i];
    }
    t->numel = shape_numel(&shape);
    if (e->flow->whole[value]) {
        TRY(place_part(e, value, t, err));
    } else {
        stride_tensor(t, v->order, t->rank > 1 ? t->dims[1] : 1);
        t->binding = bind(e, value, t->bytes);
        t->binding.offset += e->flow->begin[value];
    }
    e->emit.tensors[value] = t;
    return ST_OK;
}

static const struct rt_tensor *tensor_of(struct exec *e, uint32_t value)
{
    must(e->emit.tensors[value]); /* by make_tensor() */
    return e->emit.tensors[value];
}

/* Makes what the operator may ask for, so that asking cannot fail. */
static enum status make_tensors(struct exec *e, struct rt_tensors values, struct error *err)
{
    for (uint32_t value; rt_tensors_next(&values, &value);) {
        TRY(make_tensor(e, value, err));
    }
    return ST_OK;
}

/* ---- updates --------------------------------------------------------------------------------- */

static bool is_written_by(const struct exec *e, const struct rt_node *node, uint32_t result)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        const struct rt_value *v = rt_node_out(e->emit.graph, node, i);
        const struct rt_storage *class = rt_flow_class(e->flow, node->outs[i]);
        if (v->kind == RT_TENSOR && class->home == RT_HOME_RESULT && class->index == result) {
            return true;
        }
    }
    return false;
}

static enum status grow_updates(struct rt_plan *plan, struct error *err)
{
    return ARRAY_ROOM(plan->updates, plan->update_capacity, plan->update_count + 1)
               ? ST_OK
               : error_no_memory(err, "a plan");
}

/* Only the first update of a result reads from elsewhere; others find what that one has left. */
static bool may_track(const struct exec *e, int64_t rows, int64_t row_bytes)
{
    const struct rt_storage *from = rt_flow_class(e->flow, e->emit.node->args[0]);
    const struct rt_storage *to = rt_flow_class(e->flow, e->emit.node->outs[0]);
    if (to->home != RT_HOME_RESULT || e->flow->is_cut[e->emit.node->args[0]]) {
        return false;
    }
    struct rt_plan_result *result = &e->plan->results[to->index];
    if (from->home == RT_HOME_INPUT && result->update_count == 0) {
        result->base = from->index;
        result->rows = rows;
        result->row_bytes = row_bytes;
    }
    return (from == to || from->home == RT_HOME_INPUT) && result->base != RT_NO_BASE &&
           result->rows == rows && result->row_bytes == row_bytes;
}

static void add_update(struct rt_plan *plan, const struct rt_plan_update *update)
{
    struct rt_plan_result *result = &plan->results[update->result];
    uint32_t index = plan->update_count++;
    plan->updates[index] = *update;
    if (result->update_count++ == 0) {
        result->first_update = index;
    } else {
        plan->updates[result->last_update].next = index;
    }
    result->last_update = index;
}

static enum status record_update(struct rt_emit *emit, const struct rt_update *update,
                                 struct hal_binding *out_words, struct error *err)
{
    struct exec *e = (struct exec *)emit;
    struct rt_plan *plan = e->plan;
    *out_words = (struct hal_binding){.slot = RT_SLOT_WORKSPACE};
    if (!may_track(e, update->rows, update->row_bytes)) {
        return ST_OK;
    }
    TRY(grow_updates(plan, err));
    uint32_t result = rt_flow_class(e->flow, e->emit.node->outs[0])->index;
    out_words->offset = plan->workspace_bytes;
    out_words->length = RT_UPDATE_WORDS * sizeof(int64_t);
    plan->workspace_bytes += out_words->length;
    add_update(plan, &(struct rt_plan_update){
                         .result = result, .offset = out_words->offset, .of = *update});
    return ST_OK;
}

/* Behind what was laid out before: no region is known to be over when a node asks. */
static enum status add_workspace(struct rt_emit *emit, size_t bytes,
                                 struct hal_binding *out_binding, struct error *err)
{
    struct rt_plan *plan = ((struct exec *)emit)->plan;
    size_t offset = align_up(plan->workspace_bytes, RT_EMIT_WORKSPACE_ALIGN), end;
    if (!add_size(offset, bytes, &end) || end > emit->props->memory_bytes_max) {
        return error_set(err, ST_TOO_LARGE, "the intermediate values need %zu more bytes", bytes);
    }
    *out_binding =
        (struct hal_binding){.slot = RT_SLOT_WORKSPACE, .offset = offset, .length = bytes};
    plan->workspace_bytes = end;
    return ST_OK;
}

/* Notes in |reads|, by input, the first region from which on no node and no copy reads the input.
 * The base of an update is not read by it. */
static void note_reads(const struct exec *e, uint32_t *reads)
{
    const struct rt_flow *flow = e->flow;
    for (uint32_t k = 0; k < flow->order_count; k++) {
        const struct rt_node *node = &e->emit.graph->nodes[flow->order[k]];
        uint32_t region = flow->region[flow->order[k]], value;
        const struct rt_storage *out =
            node->out_count > 0 ? rt_flow_class(flow, node->outs[0]) : NULL;
        bool is_update = out && out->home == RT_HOME_RESULT;
        uint32_t base = is_update ? e->plan->results[out->index].base : RT_NO_BASE;
        for (struct rt_tensors it = rt_node_arg_tensors(e->emit.graph, node);
             rt_tensors_next(&it, &value);) {
            const struct rt_storage *class = rt_flow_class(flow, value);
            bool is_base =
                class->home == RT_HOME_INPUT && class->index == base && value == node->args[0];
            if (class->home == RT_HOME_INPUT && !is_base) {
                reads[class->index] = region + 1;
            }
            base = is_base ? RT_NO_BASE : base; /* as a second argument it is read */
        }
    }
    for (uint32_t i = 0; i < flow->copy_count; i++) {
        const struct rt_storage *class = rt_flow_class(flow, flow->copies[i].value);
        if (class->home == RT_HOME_INPUT) {
            reads[class->index] = UINT32_MAX;
        }
    }
}

/* The region in which result |index| is first written. */
static uint32_t first_write(const struct exec *e, uint32_t index)
{
    const struct rt_flow *flow = e->flow;
    for (uint32_t k = 0; k < flow->order_count; k++) {
        if (is_written_by(e, &e->emit.graph->nodes[flow->order[k]], index)) {
            return flow->region[flow->order[k]];
        }
    }
    return 0;
}

/* A result that something else writes as well is written as a whole. If nothing reads its base once
 * its first row may be written, it may be written there. */
static enum status verify_bases(struct exec *e, struct error *err)
{
    uint32_t inputs = e->plan->input_count;
    uint32_t *reads = arena_array(e->arena, inputs, sizeof(*reads));
    uint32_t *bases = arena_array(e->arena, inputs, sizeof(*bases));
    if (!reads || !bases) {
        return arena_fail(e->arena, "a plan", err);
    }
    for (uint32_t i = 0; i < e->plan->result_count; i++) {
        struct rt_plan_result *result = &e->plan->results[i];
        uint32_t writers = 0;
        for (uint32_t k = 0; result->base != RT_NO_BASE && k < e->flow->order_count; k++) {
            writers += is_written_by(e, &e->emit.graph->nodes[e->flow->order[k]], i);
        }
        result->base = writers == result->update_count ? result->base : RT_NO_BASE;
        if (result->base != RT_NO_BASE) {
            bases[result->base]++;
        }
    }
    note_reads(e, reads);
    for (uint32_t i = 0; i < e->plan->result_count; i++) {
        struct rt_plan_result *result = &e->plan->results[i];
        result->may_overwrite = result->base != RT_NO_BASE && e->emit.props->is_host &&
                                bases[result->base] == 1 &&
                                reads[result->base] <= first_write(e, i);
    }
    return ST_OK;
}

/* An argument whose value no plan is made for. */
static bool place_of(const struct rt_emit *emit, uint32_t index, struct rt_place *out_place)
{
    const struct exec *e = (const struct exec *)emit;
    const struct rt_number_use *use = rt_numbers_find_use(e->flow->numbers, e->node_index, index);
    if (!use) {
        return false;
    }
    if (!use->place.expr) {
        *out_place = (struct rt_place){.known = use->place.value};
        return true;
    }
    uint32_t word = rt_numbers_find_word(e->flow->numbers, use->place.expr);
    must(word != RT_NO_WORD);
    *out_place = (struct rt_place){.is_read = true, .word = word};
    return true;
}

static const struct rt_emit_planner planner = {
    .find_place = place_of, .update = record_update, .workspace = add_workspace};

/* ---- recording ------------------------------------------------------------------------------- */

static enum status emit_node(struct exec *e, uint32_t index, struct error *err)
{
    const struct rt_node *node = &e->emit.graph->nodes[index];
    e->emit.node = node;
    e->emit.label = node->op->name;
    e->node_index = index;
    TRY(make_tensors(e, rt_node_arg_tensors(e->emit.graph, node), err));
    TRY(make_tensors(e, rt_node_out_tensors(e->emit.graph, node), err));
    enum status status = node->op->emit
                             ? node->op->emit(&e->emit, err)
                             : error_set(err, ST_UNSUPPORTED, "no kernel takes these arguments");
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", node->op->name);
}

/* Copies of inputs that the device can only reach slowly. */
static enum status emit_uploads(struct exec *e, uint32_t *out_count, struct error *err)
{
    const struct rt_graph *graph = e->emit.graph;
    *out_count = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!rt_flow_is_uploaded(e->flow, i)) {
            continue;
        }
        TRY(make_tensor(e, graph->inputs[i], err));
        const struct rt_tensor *to = tensor_of(e, graph->inputs[i]);
        const struct hal_binding from = {.slot = (uint16_t)(RT_SLOT_INPUT + i),
                                         .length = to->bytes};
        if (to->bytes > 0) {
            TRY(hal_command_copy(e->emit.command, from, to->binding, err));
            *out_count += 1;
        }
    }
    return *out_count > 0 && e->flow->order_count > 0 ? hal_command_barrier(e->emit.command, err)
                                                      : ST_OK;
}

static enum status emit_copies(struct exec *e, struct error *err)
{
    for (uint32_t i = 0; i < e->flow->copy_count; i++) {
        const struct rt_result_copy *copy = &e->flow->copies[i];
        TRY(make_tensor(e, copy->value, err));
        const struct rt_tensor *from = tensor_of(e, copy->value);
        struct hal_binding to = {
            .slot = (uint16_t)rt_slot_result(e->emit.graph->input_count, copy->result),
            .length = from->bytes,
        };
        if (from->bytes > 0) {
            TRY(hal_command_copy(e->emit.command, from->binding, to, err));
        }
    }
    return ST_OK;
}

static enum status record(struct exec *e, struct error *err)
{
    const struct rt_flow *flow = e->flow;
    uint32_t uploads;
    TRY(emit_uploads(e, &uploads, err));
    for (uint32_t i = 0; i < flow->order_count; i++) {
        if (i > 0 && flow->region[flow->order[i]] != flow->region[flow->order[i - 1]]) {
            TRY(hal_command_barrier(e->emit.command, err));
        }
        TRY(emit_node(e, flow->order[i], err));
    }
    if (flow->copy_count > 0 && (flow->order_count > 0 || uploads > 0)) {
        TRY(hal_command_barrier(e->emit.command, err));
    }
    TRY(emit_copies(e, err));
    if (!rt_plan_has_words(e->plan)) {
        hal_command_set_transient(e->emit.command, RT_SLOT_WORKSPACE);
    }
    return hal_command_end(e->emit.command, err);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static enum status describe_results(struct rt_plan *plan, const struct rt_flow *flow,
                                    const int64_t *values, struct error *err)
{
    const struct rt_graph *graph = flow->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct rt_value *v = &graph->values[graph->outputs[i]];
        struct rt_plan_result *result = &plan->results[i];
        result->base = RT_NO_BASE;
        result->word = RT_NO_WORD;
        if (v->kind == RT_INT || v->kind == RT_FLOAT || v->kind == RT_BOOL) {
            result->word =
                rt_numbers_find_word(flow->numbers, v->kind == RT_INT ? v->i.expr : v->symbol);
        }
        if (v->kind == RT_TENSOR) {
            result->shape = rt_concrete_shape(v, values);
            TRY(shape_bytes(&result->shape, v->dtype, &result->bytes, err));
        } else if (v->kind == RT_INT) {
            result->number = rt_dim_at(v->i, values);
        } else if (v->kind == RT_FLOAT && v->symbol == 0) {
            memcpy(&result->number, &v->f, sizeof(v->f));
        } else if (v->kind == RT_FLOAT || v->kind == RT_BOOL) {
            result->number = v->symbol ? values[v->symbol] : v->b;
        }
    }
    return ST_OK;
}

static enum status make(struct rt_plan *plan, const struct rt_flow *flow, struct hal_device *device,
                        const int64_t *values, struct arena *arena, struct error *err)
{
    const struct rt_graph *graph = flow->graph;
    uint32_t slots = rt_slot_result(graph->input_count, graph->output_count);
    struct rt_alloc alloc;
    if (slots > HAL_SLOTS_MAX) {
        return error_set(err, ST_TOO_LARGE, "%u inputs and results, at most %d are possible",
                         slots - 1, HAL_SLOTS_MAX - 1);
    }
    TRY(rt_alloc_make(&alloc, flow, values, arena, err));
    if (alloc.workspace_bytes > hal_device_props(device)->memory_bytes_max) {
        return error_set(err, ST_TOO_LARGE, "the intermediate values need %zu bytes",
                         alloc.workspace_bytes);
    }
    plan->word_count = flow->numbers ? flow->numbers->word_count : 0;
    plan->words_offset = alloc.workspace_bytes; /* which is a multiple of RT_WORKSPACE_ALIGN */
    plan->workspace_bytes = plan->words_offset + plan->word_count * sizeof(int64_t);
    TRY(describe_results(plan, flow, values, err));
    TRY(hal_command_new(device, slots, &plan->command, err));
    struct exec e = {
        .emit =
            {
                .planner = &planner,
                .graph = graph,
                .values = values,
                .tensors = arena_array(arena, graph->value_count, sizeof(struct rt_tensor *)),
                .is_used = flow->is_used,
                .words = {.slot = RT_SLOT_WORKSPACE, .offset = plan->words_offset},
                .command = plan->command,
                .props = hal_device_props(device),
            },
        .flow = flow,
        .alloc = &alloc,
        .arena = arena,
        .plan = plan,
    };
    if (!e.emit.tensors) {
        return arena_fail(arena, "a plan", err);
    }
    TRY(record(&e, err));
    return verify_bases(&e, err);
}

enum status rt_plan_new(const struct rt_flow *flow, struct hal_device *device,
                        const int64_t *values, struct rt_plan **out_plan, struct error *err)
{
    const struct rt_graph *graph = flow->graph;
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_plan *plan = calloc(1, sizeof(*plan));
    struct arena scratch;
    if (!plan) {
        return error_no_memory(err, "a plan");
    }
    plan->magic = RT_PLAN_MAGIC;
    refs_init(&plan->refs);
    plan->input_count = graph->input_count;
    plan->result_count = graph->output_count;
    plan->is_empty = flow->order_count == 0 && flow->copy_count == 0;
    plan->results = calloc(graph->output_count ? graph->output_count : 1, sizeof(*plan->results));
    arena_init(&scratch, RT_PLAN_SCRATCH_MAX);
    enum status status = plan->results ? make(plan, flow, device, values, &scratch, err)
                                       : error_no_memory(err, "a plan");
    /* The memory of a dispatch: its record, constants and bindings. */
    plan->bytes = sizeof(*plan) + graph->output_count * sizeof(*plan->results) +
                  flow->order_count * (size_t)1024;
    arena_fini(&scratch);
    if (status != ST_OK) {
        rt_plan_unref(plan);
        return status;
    }
    *out_plan = plan;
    return ST_OK;
}

struct rt_plan *rt_plan_ref(struct rt_plan *plan)
{
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    refs_take(&plan->refs);
    return plan;
}

void rt_plan_unref(struct rt_plan *plan)
{
    if (!plan) {
        return;
    }
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    if (refs_drop(&plan->refs)) {
        hal_command_unref(plan->command);
        free(plan->results);
        free(plan->updates);
        plan->magic = 0;
        free(plan);
    }
}

/* The parts of a submission, for a device that has the host at its side. */
static void print_stats(const struct rt_plan *plan, struct buf *out)
{
    struct hal_command_stats stats = {0};
    hal_command_add_stats(plan->command, &stats);
    uint32_t hosted =
        stats.dispatches[HAL_PLACEMENT_NO_FORM] + stats.dispatches[HAL_PLACEMENT_CHEAPER];
    if (stats.device_stages + stats.host_stages > 0) {
        buf_printf(out, "dispatches %u, on the host %u, copies %u, barriers %u, ",
                   hal_command_stats_dispatches(&stats), hosted, stats.copies, stats.barriers);
        buf_printf(out, "submissions to the device %u, to the host %u, transfers between %u\n",
                   stats.device_stages, stats.host_stages, stats.transfers);
    }
}

struct plan_notes {
    const struct rt_graph *graph;
    const struct rt_notes *notes;
};

/* "# conv "stem.weight", model.py:12: x = self.stem(x)" */
static void print_note(const void *arg, uint32_t tag, struct buf *out)
{
    const struct plan_notes *p = arg;
    const struct rt_node *node = &p->graph->nodes[tag];
    buf_printf(out, "# %s", node->op->name);
    rt_node_print_names(p->graph, node, out);
    rt_node_print_origin(node, p->notes, ", ", out);
    buf_add_char(out, '\n');
}

void rt_plan_print(const struct rt_plan *plan, const struct rt_graph *graph,
                   const struct rt_notes *notes, struct buf *out)
{
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    buf_printf(out, "workspace %zu bytes\n", plan->workspace_bytes);
    for (uint32_t i = 0; i < plan->result_count; i++) {
        char text[SHAPE_TEXT_MAX];
        buf_printf(out, "result %u %s %zu bytes\n", i, shape_print(&plan->results[i].shape, text),
                   plan->results[i].bytes);
    }
    print_stats(plan, out);
    const struct plan_notes p = {graph, notes};
    hal_command_print(plan->command, print_note, &p, out);
}
