/* SPDX-License-Identifier: MIT */
/*
 * Blocks, and the statements queued after them.
 *
 * Calls go into the current block's graph as long as possible. A call that the host executes is
 * queued after the block, and its result is pending; so are the rows of an output whose extent
 * depends on data. The block ends when a graph needs a pending value, at a jump, and at the target
 * of a jump: values that are still needed go into registers, the queued statements follow, and an
 * empty block begins.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "runtime/import/import_priv.h"
#include "runtime/ops/op.h"

/* Each block has its own graph and plan cache. */
#define BLOCKS_MAX 4096
#define STATEMENTS_MAX 131072

static enum status open_block(struct import *im)
{
    struct rt_code *code = im->code;
    struct rt_block *block;
    if (code->block_count == BLOCKS_MAX) {
        return error_set(im->err, ST_TOO_LARGE, "more than %d blocks", BLOCKS_MAX);
    }
    if (!ARENA_ROOM(&code->arena, code->blocks, im->block_capacity, code->block_count + 1) ||
        !(block = calloc(1, sizeof(*block)))) {
        return rt_import_fail_full(im);
    }
    rt_block_init(block, im->plan->name, im->device, im->files);
    code->blocks[code->block_count++] = block;
    im->block = block;
    im->graph = &block->graph;
    im->graph_inputs_capacity = im->block_inputs_capacity = 0;
    im->graph->origin = (struct rt_origin){.instr = im->position};
    return ST_OK;
}

enum status rt_import_add_stmt(struct import *im, struct rt_stmt stmt)
{
    struct rt_code *code = im->code;
    if (code->stmt_count == STATEMENTS_MAX) {
        return error_set(im->err, ST_TOO_LARGE, "more than %d statements", STATEMENTS_MAX);
    }
    if (!ARENA_ROOM(&code->arena, code->stmts, im->stmt_capacity, code->stmt_count + 1)) {
        return rt_import_fail_full(im);
    }
    code->stmts[code->stmt_count++] = stmt;
    return ST_OK;
}

enum status rt_import_add_out(struct import *im, uint32_t reg, uint32_t value, uint32_t extent)
{
    if (!ARENA_ROOM(&im->code->arena, im->outs, im->out_capacity, im->out_count + 1)) {
        return rt_import_fail_full(im);
    }
    im->outs[im->out_count++] = (struct rt_import_output){reg, value, extent};
    return ST_OK;
}

/* A tensor in a register has one type and rank, whichever block writes it. */
static enum status check_tensor(const struct import *im, uint32_t reg, const struct rt_value *v)
{
    const struct rt_register *r = &im->code->registers[reg];
    if (v->kind == RT_TENSOR && (v->dtype != r->dtype || v->rank != r->bound.rank)) {
        return error_set(im->err, ST_INVALID,
                         "computed a %s tensor of rank %u, the file declares %s of rank %u",
                         dtype_text(v->dtype), v->rank, dtype_text(r->dtype), r->bound.rank);
    }
    return ST_OK;
}

/* Is |kind| the kind of the register? The first writer of a scalar decides the kind of its
 * register. */
static enum status check_register(struct import *im, uint32_t reg, enum rt_kind kind)
{
    struct rt_register *r = &im->code->registers[reg];
    bool is_first = im->writers[reg].count == 0 && r->kind != RT_TENSOR && kind != RT_TENSOR;
    if (r->kind == kind) {
        return ST_OK;
    }
    if (!is_first) {
        return error_set(im->err, ST_UNSUPPORTED, "a value is written with different kinds");
    }
    r->kind = kind;
    r->initial = (struct rt_scalar){.kind = RT_NONE};
    return ST_OK;
}

static uint32_t find_input(const struct rt_graph *graph, uint32_t value)
{
    uint32_t i = 0;
    while (i < graph->input_count && graph->inputs[i] != value) {
        i++;
    }
    return i;
}

/* The position of |value| among the graph's outputs; appends it if needed. */
static uint32_t output_number(struct rt_graph *graph, uint32_t value, uint32_t *number_of)
{
    if (number_of[value] == 0) {
        graph->outputs[graph->output_count++] = value;
        number_of[value] = graph->output_count;
    }
    return number_of[value] - 1;
}

static enum status close_outs(struct import *im)
{
    struct rt_graph *graph = im->graph;
    struct rt_block *block = im->block;
    uint32_t *number_of = arena_array(&graph->arena, graph->value_count, sizeof(*number_of));
    graph->outputs = arena_array(&graph->arena, (size_t)im->out_count * 2, sizeof(uint32_t));
    block->outs = arena_array(&graph->arena, im->out_count, sizeof(*block->outs));
    if (!number_of || !graph->outputs || !block->outs) {
        return rt_import_fail_full(im);
    }
    for (uint32_t i = 0; i < im->out_count; i++) {
        const struct rt_import_output *out = &im->outs[i];
        struct rt_block_out *o = &block->outs[block->out_count++];
        struct rt_import_writer *w = &im->writers[out->reg];
        uint32_t input = find_input(graph, out->value);
        TRY(check_register(im, out->reg, graph->values[out->value].kind));
        TRY(check_tensor(im, out->reg, &graph->values[out->value]));
        *o = (struct rt_block_out){.reg = out->reg, .extent = RT_NO_EXTENT};
        o->is_input = input < graph->input_count;
        o->index = o->is_input ? input : output_number(graph, out->value, number_of);
        if (out->extent) {
            o->extent = output_number(graph, out->extent, number_of);
        }
        w->count++;
        w->block = im->code->block_count - 1;
        w->output = o->index;
        w->is_input = o->is_input;
        w->is_extent = out->extent != 0;
    }
    im->out_count = 0;
    return ST_OK;
}

static enum status flush_queue(struct import *im)
{
    for (uint32_t i = 0; i < im->queue_count; i++) {
        TRY(rt_import_add_stmt(im, im->queue[i]));
    }
    im->queue_count = 0;
    return ST_OK;
}

/* Writes the values that the block made and that are needed at |position| into their registers. */
static enum status save_values(struct import *im, uint32_t position)
{
    for (uint32_t i = 0; i < im->touched_count; i++) {
        uint32_t index = im->touched[i], reg;
        struct rt_import_content *content = &im->contents[index];
        if (content->place != RT_PLACE_GRAPH) {
            continue;
        }
        if (content->is_state || rt_liveness_is_needed(&im->live, index, position)) {
            TRY(rt_import_register_of(im, index, &reg));
            TRY(rt_import_add_out(im, reg, content->current, 0));
            content->place = RT_PLACE_REGISTER;
        } else {
            content->place = RT_PLACE_NONE;
        }
    }
    return ST_OK;
}

/*
 * Forgets the block's graph values. Without a new block, inputs whose register is unchanged stay.
 */
static void forget_values(struct import *im, bool is_new_block)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < im->touched_count; i++) {
        struct rt_import_content *content = &im->contents[im->touched[i]];
        bool is_stale = is_new_block || content->place != RT_PLACE_REGISTER;
        content->place = content->place == RT_PLACE_PENDING ? RT_PLACE_REGISTER : content->place;
        content->is_held = false;
        content->current = is_stale ? 0 : content->current;
        content->is_touched = content->current != 0;
        if (content->is_touched) {
            im->touched[kept++] = im->touched[i];
        }
    }
    im->touched_count = kept;
}

enum status rt_import_end_block(struct import *im, uint32_t position)
{
    TRY(save_values(im, position));
    bool has_outs = im->out_count > 0;
    if (has_outs) {
        TRY(close_outs(im));
        TRY(rt_import_add_stmt(im, (struct rt_stmt){.kind = RT_STMT_BLOCK,
                                                    .target = im->code->block_count - 1,
                                                    .origin = position}));
    }
    TRY(flush_queue(im));
    forget_values(im, has_outs);
    return has_outs ? open_block(im) : ST_OK;
}

enum status rt_import_enqueue(struct import *im, struct rt_stmt stmt)
{
    if (!ARENA_ROOM(&im->code->arena, im->queue, im->queue_capacity, im->queue_count + 1)) {
        return rt_import_fail_full(im);
    }
    stmt.origin = im->position;
    im->queue[im->queue_count++] = stmt;
    return ST_OK;
}

/* ---- values and registers -------------------------------------------------------------------- */

enum status rt_import_fetch(struct import *im, uint32_t index, bool *out_is_there)
{
    struct rt_import_content *content = &im->contents[index];
    const struct pte_value *v = &im->plan->values[index];
    bool is_carried = content->place == RT_PLACE_NONE && im->live.has_jumps && im->has_branched &&
                      rt_liveness_may_hold(&im->live, index, im->position) &&
                      (v->kind != PTE_TENSOR || v->tensor->storage != PTE_CONSTANT);
    if (content->current == 0 && is_carried) {
        uint32_t reg; /* written by an instruction later in the file, but earlier in time */
        TRY(rt_import_register_of(im, index, &reg));
        content->place = RT_PLACE_REGISTER;
    }
    if (content->current == 0 && content->place == RT_PLACE_PENDING) {
        TRY(rt_import_end_block(im, im->position));
    }
    if (content->current == 0 && content->place == RT_PLACE_REGISTER) {
        TRY(rt_import_read_register(im, index));
    }
    *out_is_there = content->current != 0;
    return ST_OK;
}

void rt_import_set(struct import *im, uint32_t index, uint32_t value)
{
    rt_import_touch(im, index);
    im->contents[index].current = value;
    im->contents[index].place = RT_PLACE_GRAPH;
}

void rt_import_note(struct import *im, uint32_t index, uint32_t value)
{
    rt_import_touch(im, index);
    im->contents[index].current = value;
}

enum status rt_import_capture(struct import *im, uint32_t index, uint32_t *out_reg)
{
    struct rt_import_content *content = &im->contents[index];
    const struct pte_value *v = &im->plan->values[index];
    uint32_t value;
    if (content->place == RT_PLACE_NONE && content->current == 0) {
        bool is_scalar = v->kind == PTE_INT || v->kind == PTE_DOUBLE || v->kind == PTE_BOOL;
        if (is_scalar && !(im->has_branched && im->live.is_written[index])) {
            return rt_import_add_register(im, rt_import_describe_register(v), out_reg);
        }
        TRY(rt_import_use(im, index, &value));
    }
    if (content->current == 0) {
        rt_import_touch(im, index);
        content->is_held = true;
        *out_reg = content->reg - 1;
        return ST_OK;
    }
    TRY(rt_import_add_temporary(im, content->current, false, out_reg));
    return rt_import_add_out(im, *out_reg, content->current, 0);
}

enum status rt_import_give_pending(struct import *im, uint32_t index, enum rt_kind kind,
                                   uint32_t *out_reg)
{
    TRY(rt_import_register_of(im, index, out_reg));
    TRY(check_register(im, *out_reg, kind));
    im->writers[*out_reg].count++;
    im->writers[*out_reg].is_input = true; /* no block's output */
    rt_import_touch(im, index);
    im->contents[index].place = RT_PLACE_PENDING;
    im->contents[index].current = 0;
    return ST_OK;
}

enum status rt_import_extent(struct import *im, uint32_t index, uint32_t value, uint32_t extent)
{
    uint32_t reg;
    TRY(rt_import_register_of(im, index, &reg));
    rt_import_touch(im, index);
    im->contents[index].place = RT_PLACE_PENDING;
    im->contents[index].current = 0;
    return rt_import_add_out(im, reg, value, extent);
}

/* ---- between calls --------------------------------------------------------------------------- */

enum status rt_import_begin(struct import *im)
{
    const struct pte_plan *plan = im->plan;
    TRY(open_block(im));
    for (uint32_t i = 0; i < plan->input_count; i++) {
        uint32_t reg;
        TRY(rt_import_add_register(im, rt_import_describe_register(&plan->values[plan->inputs[i]]),
                                   &reg));
        must(reg == i);
    }
    return ST_OK;
}

enum status rt_import_arrive(struct import *im, uint32_t position)
{
    im->position = position;
    im->graph->origin = (struct rt_origin){.instr = position};
    if (!im->live.is_target[position]) {
        return ST_OK;
    }
    TRY(rt_import_end_block(im, position));
    im->has_branched = true;
    im->stmt_of[position] = im->code->stmt_count;
    return ST_OK;
}

/* May |index| be written now, or does a queued statement still have to read or write its register?
 */
static bool is_reserved(const struct import *im, uint32_t index)
{
    return im->contents[index].is_held || im->contents[index].place == RT_PLACE_PENDING;
}

enum status rt_import_settle_value(struct import *im, uint32_t index, bool is_written)
{
    const struct pte_value *v = &im->plan->values[index];
    const struct rt_import_content *content = &im->contents[index];
    bool is_pending = content->place == RT_PLACE_PENDING;
    if (v->kind == PTE_TENSOR && content->place == RT_PLACE_NONE && content->current == 0) {
        uint32_t base = rt_import_find_resident(im, v->tensor);
        is_pending = base != PTE_NO_VALUE && im->contents[base].place == RT_PLACE_PENDING;
    }
    return is_pending || (is_written && is_reserved(im, index))
               ? rt_import_end_block(im, im->position)
               : ST_OK;
}

enum status rt_import_settle_call(struct import *im, const struct pte_instr *instr)
{
    uint32_t reads = rt_liveness_read_count(im->plan, instr);
    bool changes = instr->kind == PTE_DELEGATE || (im->op && strchr(im->op->args, '!'));
    for (uint32_t i = 0; i < instr->arg_count; i++) {
        uint32_t index = instr->args[i];
        const struct pte_value *v = &im->plan->values[index];
        bool is_list = v->kind == PTE_INT_LIST || v->kind == PTE_TENSOR_LIST ||
                       v->kind == PTE_OPTIONAL_TENSOR_LIST;
        for (uint32_t j = 0; is_list && j < v->list.count; j++) {
            if (v->list.values[j] != PTE_NO_VALUE) {
                TRY(rt_import_settle_value(im, v->list.values[j], changes || i >= reads));
            }
        }
        if (!is_list) {
            TRY(rt_import_settle_value(im, index, changes || i >= reads));
        }
    }
    return ST_OK;
}
