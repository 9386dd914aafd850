/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "runtime/graph/op.h"
#include "runtime/program/method.h"
#include "runtime/program/names.h"

#define ORIGIN_BYTES_MAX 1024

/* A value that is wanted: output |output| of block |block|. */
struct kept {
    const char *name; /* in the arena of the method's signature */
    uint32_t block, value, output;
    uint32_t extent; /* as of struct rt_block_out */
};

/* The choice of the values of one method. */
struct keeping {
    struct rt_method *method;
    const struct rt_keep *keep;
    struct rt_notes notes;
    struct kept *items; /* owned */
    uint32_t count;
    size_t capacity;
    bool *varies; /* owned; by value of the block at hand: it depends on the call */
    bool *is_used;
    struct buf text, origin;
    struct error *err;
};

/* ---- which values ---------------------------------------------------------------------------- */

/* Marks what follows from the inputs of the graph, and what is used. */
static void mark_node(struct keeping *k, const struct rt_graph *graph, const struct rt_node *node)
{
    struct rt_tensors args = rt_node_arg_tensors(graph, node);
    struct rt_tensors outs = rt_node_out_tensors(graph, node);
    bool varies = false;
    for (uint32_t value; rt_tensors_next(&args, &value);) {
        k->is_used[value] = true;
        varies |= k->varies[value];
    }
    for (uint32_t value; rt_tensors_next(&outs, &value);) {
        k->varies[value] = varies;
    }
}

static void mark_all(struct keeping *k, const struct rt_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        k->varies[graph->inputs[i]] = true;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!graph->nodes[i].is_dead) {
            mark_node(k, graph, &graph->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        k->is_used[graph->outputs[i]] = true;
    }
}

static bool is_value(const struct keeping *k, const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    return v->kind == RT_TENSOR && !v->is_constant && v->dims && dtype_is_public(v->dtype) &&
           k->varies[value] && k->is_used[value];
}

/* ---- names ----------------------------------------------------------------------------------- */

/* "conv.12" or "block1.conv.12", behind |layer|; false: that is no name. */
static bool print_name(struct keeping *k, uint32_t block, const struct rt_node *node,
                       uint32_t value, bool has_layer)
{
    buf_reset(&k->text);
    if (has_layer) {
        rt_node_print_layer(&k->method->code.blocks[block]->graph, node, &k->text);
        buf_add_str(&k->text, k->text.len ? "." : "");
    }
    if (k->method->code.stmt_count > 0) {
        buf_printf(&k->text, "block%u.", block);
    }
    buf_printf(&k->text, "%s.%u", node->op->name, value);
    return !buf_failed(&k->text) && rt_name_is_valid(buf_span(&k->text), RT_RESULT);
}

/* A layer whose name no result can have is left out. The name in the arena, or NULL. */
static const char *choose_name(struct keeping *k, uint32_t block, const struct rt_node *node,
                               uint32_t value)
{
    if (!print_name(k, block, node, value, true)) {
        bool is_name = print_name(k, block, node, value, false);
        must(is_name || k->text.lacks_memory);
    }
    return arena_strdup(&k->method->signature_arena, k->text.ptr, k->text.len);
}

/* ---- the choice ------------------------------------------------------------------------------ */

static enum status offer(struct keeping *k, uint32_t block, const struct rt_node *node,
                         uint32_t value)
{
    const char *name = choose_name(k, block, node, value);
    if (!name || !ARRAY_ROOM(k->items, k->capacity, k->count + 1)) {
        return error_no_memory(k->err, "kept values");
    }
    buf_reset(&k->text);
    buf_reset(&k->origin);
    rt_value_print(&k->method->code.blocks[block]->graph, value, &k->text);
    rt_node_print_origin(node, &k->notes, "", &k->origin);
    const struct rt_keep_value told = {
        .name = name,
        .origin = buf_failed(&k->origin) ? span_str("") : buf_span(&k->origin),
        .type = buf_failed(&k->text) ? span_str("") : buf_span(&k->text),
    };
    if (k->keep->wants(k->keep->arg, k->method, &told)) {
        k->items[k->count++] =
            (struct kept){.name = name, .block = block, .value = value, .extent = RT_NO_EXTENT};
    }
    return ST_OK;
}

static enum status offer_block(struct keeping *k, uint32_t block)
{
    const struct rt_graph *graph = &k->method->code.blocks[block]->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct rt_node *node = &graph->nodes[i];
        struct rt_tensors outs = rt_node_out_tensors(graph, node);
        for (uint32_t value; !node->is_dead && rt_tensors_next(&outs, &value);) {
            TRY(is_value(k, graph, value) ? offer(k, block, node, value) : ST_OK);
        }
    }
    return ST_OK;
}

static enum status choose(struct keeping *k)
{
    const struct rt_code *code = &k->method->code;
    enum status status = ST_OK;
    for (uint32_t b = 0; status == ST_OK && b < code->block_count; b++) {
        const struct rt_graph *graph = &code->blocks[b]->graph;
        if (!rt_code_reaches(code, b)) {
            continue;
        }
        k->varies = calloc(graph->value_count, sizeof(*k->varies));
        k->is_used = calloc(graph->value_count, sizeof(*k->is_used));
        if (k->varies && k->is_used) {
            mark_all(k, graph);
            status = offer_block(k, b);
        } else {
            status = error_no_memory(k->err, "kept values");
        }
        free(k->varies);
        free(k->is_used);
    }
    return status;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Puts the kept values of block |b| behind its first |first| outputs. */
static enum status add_outputs(struct keeping *k, uint32_t b, uint32_t first)
{
    struct rt_graph *graph = &k->method->code.blocks[b]->graph;
    uint32_t *outputs =
        arena_array(&graph->arena, (size_t)graph->output_count + k->count, sizeof(*outputs));
    uint32_t count = first;
    if (!outputs) {
        return arena_fail(&graph->arena, "kept values", k->err);
    }
    for (uint32_t i = 0; i < first; i++) {
        outputs[i] = graph->outputs[i];
    }
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->items[i].block == b) {
            k->items[i].output = count;
            outputs[count++] = k->items[i].value;
        }
    }
    for (uint32_t i = first; i < graph->output_count; i++) {
        outputs[count++] = graph->outputs[i];
    }
    graph->outputs = outputs;
    graph->output_count = count;
    return ST_OK;
}

static bool is_in_block(const struct keeping *k, uint32_t b)
{
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->items[i].block == b) {
            return true;
        }
    }
    return false;
}

/* If the block writes the value to a register, it says there how many of its rows are valid. */
static uint32_t find_extent(const struct rt_block *block, uint32_t value)
{
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        if (!out->is_input && block->graph.outputs[out->index] == value) {
            return out->extent;
        }
    }
    return RT_NO_EXTENT;
}

/* The block writes its kept values to registers of their own, the first of which is |reg|. */
static enum status add_outs(struct keeping *k, uint32_t b, uint32_t reg)
{
    struct rt_block *block = k->method->code.blocks[b];
    struct rt_block_out *outs =
        arena_array(&block->graph.arena, (size_t)block->out_count + k->count, sizeof(*outs));
    if (!outs) {
        return arena_fail(&block->graph.arena, "kept values", k->err);
    }
    if (block->out_count) {
        memcpy(outs, block->outs, block->out_count * sizeof(*outs));
    }
    block->outs = outs;
    for (uint32_t i = 0; i < k->count; i++) {
        struct kept *item = &k->items[i];
        if (item->block == b) {
            item->extent = find_extent(block, item->value);
            outs[block->out_count++] = (struct rt_block_out){
                .reg = reg + i, .index = item->output, .extent = item->extent};
        }
    }
    return ST_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static void describe(struct rt_io *io, const struct rt_value *v)
{
    io->kind = RT_IO_TENSOR;
    io->dtype = v->dtype;
    io->shape.rank = v->rank;
    for (uint8_t d = 0; d < v->rank; d++) {
        io->shape.dims[d] = v->dims[d].value;
        io->dynamic_dims |= rt_dim_is_const(v->dims[d]) ? 0 : 1u << d;
    }
}

/* The aliases of |ios| lie behind them: those of the method's own results are taken over. */
static void take_over(const struct rt_method *method, struct rt_io *ios)
{
    for (uint32_t i = 0; i < method->result_count; i++) {
        const struct rt_io *old = &method->results[i];
        const char *alias = ios[i].alias;
        ios[i] = *old;
        ios[i].alias = alias;
        ios[i].name = old->name == old->alias ? alias : old->name;
    }
}

static enum status add_ios(struct keeping *k)
{
    struct rt_method *method = k->method;
    struct rt_io *ios;
    TRY(rt_names_allocate(&ios, method->result_count + k->count, RT_RESULT, k->err));
    take_over(method, ios);
    for (uint32_t i = 0; i < k->count; i++) {
        const struct kept *item = &k->items[i];
        struct rt_io *io = &ios[method->result_count + i];
        io->name = io->label = io->path = item->name;
        describe(io, &method->code.blocks[item->block]->graph.values[item->value]);
    }
    free(method->results);
    method->results = ios;
    return ST_OK;
}

static enum status add_results(struct keeping *k, uint32_t reg)
{
    struct rt_code *code = &k->method->code;
    struct rt_code_result *results =
        arena_array(&code->arena, (size_t)code->result_count + k->count, sizeof(*results));
    if (!results) {
        return arena_fail(&code->arena, "kept values", k->err);
    }
    if (code->result_count) {
        memcpy(results, code->results, code->result_count * sizeof(*results));
    }
    code->results = results;
    for (uint32_t i = 0; i < k->count; i++) {
        const struct kept *item = &k->items[i];
        results[code->result_count++] = (struct rt_code_result){
            .reg = code->stmt_count > 0 ? reg + i : 0,
            .block = item->block,
            .output = item->output,
            .has_source = true,
            .is_extent = item->extent != RT_NO_EXTENT,
            .is_kept = true,
        };
    }
    return ST_OK;
}

static enum status add_registers(struct keeping *k)
{
    struct rt_code *code = &k->method->code;
    struct rt_register *registers =
        arena_array(&code->arena, (size_t)code->register_count + k->count, sizeof(*registers));
    if (!registers) {
        return arena_fail(&code->arena, "kept values", k->err);
    }
    if (code->register_count) {
        memcpy(registers, code->registers, code->register_count * sizeof(*registers));
    }
    code->registers = registers;
    for (uint32_t i = 0; i < k->count; i++) {
        const struct rt_io *io = &k->method->results[k->method->result_count + i];
        struct rt_register *r = &registers[code->register_count++];
        *r = (struct rt_register){.kind = RT_TENSOR, .dtype = io->dtype, .bound = io->shape};
        r->fixed_dims = ((1u << io->shape.rank) - 1) & ~io->dynamic_dims;
        r->fixed_dims &= k->items[i].extent == RT_NO_EXTENT ? UINT32_MAX : ~1u;
        if (shape_bytes(&r->bound, r->dtype, &r->bytes, NULL) != ST_OK) {
            r->bytes = SIZE_MAX; /* the bound says nothing of the sizes of a call */
        }
    }
    return ST_OK;
}

static enum status add_all(struct keeping *k)
{
    struct rt_code *code = &k->method->code;
    uint32_t reg = code->register_count;
    for (uint32_t b = 0; b < code->block_count; b++) {
        uint32_t first =
            code->stmt_count > 0 ? code->blocks[b]->graph.output_count : k->method->result_count;
        TRY(is_in_block(k, b) ? add_outputs(k, b, first) : ST_OK);
        TRY(code->stmt_count > 0 && is_in_block(k, b) ? add_outs(k, b, reg) : ST_OK);
    }
    TRY(add_ios(k));
    TRY(code->stmt_count > 0 ? add_registers(k) : ST_OK);
    TRY(add_results(k, reg));
    k->method->result_count += k->count;
    k->method->kept_count = k->count;
    return ST_OK;
}

enum status rt_keep_values(struct rt_method *method, const struct rt_keep *keep, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(method->code.block_count > 0);
    struct keeping k = {
        .method = method,
        .keep = keep,
        .notes = rt_method_notes(method),
        .err = err,
    };
    buf_init(&k.text, ORIGIN_BYTES_MAX);
    buf_init(&k.origin, ORIGIN_BYTES_MAX);
    enum status status = choose(&k);
    if (status == ST_OK && k.count > 0) {
        status = add_all(&k);
    }
    buf_fini(&k.origin);
    buf_fini(&k.text);
    free(k.items);
    return status;
}

uint32_t rt_method_kept_count(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->kept_count;
}
