/* SPDX-License-Identifier: MIT */
/*
 * The block becomes the second one. The first one selects the only element of the position, and the
 * host reads it between them:
 *
 *     r = block 0(inputs);  n = read(r);  results, buffers = block 1(inputs, buffers, n)
 */
#include "config.h"

#include "runtime/code/caches.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/shape.h"
#include "runtime/code/code.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/caches.h"

struct making {
    struct rt_code *code;
    struct rt_block *entry, *block; /* the new first block, and the old one */
    uint32_t input_count;
    struct rt_code_states *states;
    uint32_t element, number; /* registers: the position as a tensor, and as an int */
    uint32_t first_result;    /* register */
    struct error *err;
};

static enum status exhausted(const struct making *m)
{
    return arena_fail(&m->code->arena, "the method", m->err);
}

static void *take(const struct making *m, size_t count, size_t size)
{
    return arena_array(&m->code->arena, count, size);
}

/* ---- may it be done? ------------------------------------------------------------------------- */

static bool are_plain(const struct rt_graph *graph, const uint32_t *values, uint32_t count,
                      bool may_be_none)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_value *v = &graph->values[values[i]];
        bool is_none = v->kind == RT_NONE && may_be_none;
        if (!is_none && (v->kind != RT_TENSOR || !v->dims || v->is_constant)) {
            return false;
        }
    }
    return true;
}

/* Results that nodes compute. */
static bool are_computed(const struct rt_graph *graph, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (graph->values[graph->outputs[i]].node == RT_NO_NODE) {
            return false;
        }
    }
    return true;
}

static bool is_suitable(const struct rt_code *code, uint32_t input_count,
                        const struct rt_code_states *states)
{
    const struct rt_graph *graph = &code->blocks[0]->graph;
    return code->stmt_count == 0 && code->block_count == 1 && states->count > 0 &&
           graph->input_count == input_count + states->count &&
           are_plain(graph, graph->inputs, input_count, true) &&
           are_plain(graph, graph->inputs + input_count, states->count, false) &&
           are_plain(graph, graph->outputs, graph->output_count, false) &&
           are_computed(graph, code->result_count);
}

/* ---- registers ------------------------------------------------------------------------------- */

static enum status describe(const struct making *m, const struct rt_value *v, bool is_fixed,
                            struct rt_register *out)
{
    *out = (struct rt_register){
        .kind = RT_TENSOR, .dtype = v->dtype, .bound = {.rank = v->rank}, .fixed_dims = 0};
    for (uint8_t d = 0; d < v->rank; d++) {
        out->bound.dims[d] = v->dims[d].value;
        out->fixed_dims |= rt_dim_is_const(v->dims[d]) ? 1u << d : 0;
    }
    out->fixed_dims = is_fixed ? UINT32_MAX : out->fixed_dims;
    return shape_bytes(&out->bound, out->dtype, &out->bytes, m->err);
}

/* The inputs have registers already; buffers, results and the position get theirs. */
static enum status add_registers(struct making *m)
{
    struct rt_code *code = m->code;
    const struct rt_graph *graph = &m->block->graph;
    uint32_t count = code->register_count, results = code->result_count;
    struct rt_register *registers =
        take(m, (size_t)count + m->states->count + results + 2, sizeof(*registers));
    if (!registers) {
        return exhausted(m);
    }
    memcpy(registers, code->registers, count * sizeof(*registers));
    for (uint32_t i = 0; i < m->states->count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[m->input_count + i]];
        TRY(describe(m, v, true, &registers[count]));
        m->states->regs[i] = count++;
    }
    m->first_result = count;
    for (uint32_t i = 0; i < results; i++) {
        TRY(describe(m, &graph->values[graph->outputs[i]], false, &registers[count++]));
    }
    m->element = count;
    registers[count++] =
        (struct rt_register){.kind = RT_TENSOR, .dtype = DT_I64, .bytes = sizeof(int64_t)};
    m->number = count;
    registers[count++] = (struct rt_register){.kind = RT_INT};
    code->registers = registers;
    code->register_count = count;
    return ST_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A register's value as an input of the entry. */
static uint32_t declare(struct rt_graph *graph, const struct rt_value *like)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    if (like->kind == RT_NONE) {
        return rt_graph_none(graph);
    }
    for (uint8_t d = 0; d < like->rank; d++) {
        dims[d] = rt_dim_is_const(like->dims[d]) ? like->dims[d]
                                                 : rt_dim_symbol(&graph->dims, like->dims[d].value);
    }
    return rt_graph_tensor(graph, like->dtype, like->rank, dims);
}

static enum status fill_entry(struct making *m, uint32_t position)
{
    const struct rt_graph *from = &m->block->graph;
    struct rt_graph *graph = &m->entry->graph;
    uint32_t args[3] = {0};
    graph->inputs = arena_array(&graph->arena, m->input_count, sizeof(*graph->inputs));
    graph->outputs = arena_array(&graph->arena, 1, sizeof(*graph->outputs));
    m->entry->ins = arena_array(&graph->arena, m->input_count, sizeof(*m->entry->ins));
    m->entry->outs = arena_array(&graph->arena, 1, sizeof(*m->entry->outs));
    if (!graph->inputs || !graph->outputs || !m->entry->ins || !m->entry->outs) {
        return arena_fail(&graph->arena, "the method", m->err);
    }
    for (uint32_t i = 0; i < m->input_count; i++) {
        graph->inputs[i] = declare(graph, &from->values[from->inputs[i]]);
        m->entry->ins[i] = i;
        args[0] = from->inputs[i] == position ? graph->inputs[i] : args[0];
    }
    graph->input_count = m->input_count;
    args[1] = args[2] = rt_graph_int(graph, rt_dim_of(0));
    TRY(rt_op_apply(graph, RT_OP(select), args, 3, DT_I64, &graph->outputs[0], m->err));
    graph->output_count = m->entry->out_count = 1;
    m->entry->outs[0] = (struct rt_block_out){.reg = m->element, .extent = RT_NO_EXTENT};
    return ST_OK;
}

/* Buffers that the block does not read are not written any more, if nobody else reads them. */
static bool is_kept(const struct making *m, const bool *is_read, uint32_t state)
{
    return m->states->is_written[state] && (is_read[state] || !m->states->are_own);
}

static enum status find_read(const struct making *m, bool *is_read)
{
    const struct rt_graph *graph = &m->block->graph;
    bool *is_used = take(m, graph->value_count, sizeof(*is_used));
    if (!is_used) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_tensors args = rt_node_arg_tensors(graph, &graph->nodes[i]);
        for (uint32_t value; rt_tensors_next(&args, &value);) {
            is_used[value] = true;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        is_used[graph->outputs[i]] = true; /* one buffer's content may become another's */
    }
    for (uint32_t i = 0; i < m->states->count; i++) {
        is_read[i] = is_used[graph->inputs[m->input_count + i]];
    }
    return ST_OK;
}

/* Results, then the buffers that are written, as the outputs of the block. */
static enum status give_outs(struct making *m)
{
    struct rt_block *block = m->block;
    struct rt_graph *graph = &block->graph;
    uint32_t results = m->code->result_count, from = results, count = results;
    bool *is_read = take(m, m->states->count, sizeof(*is_read));
    block->outs = take(m, (size_t)results + m->states->count, sizeof(*block->outs));
    if (!is_read || !block->outs) {
        return exhausted(m);
    }
    TRY(find_read(m, is_read));
    for (uint32_t i = 0; i < results; i++) {
        block->outs[i] =
            (struct rt_block_out){.reg = m->first_result + i, .index = i, .extent = RT_NO_EXTENT};
    }
    for (uint32_t i = 0; i < m->states->count; i++) {
        uint32_t output = m->states->is_written[i] ? from++ : 0;
        bool is_out = is_kept(m, is_read, i);
        if (is_out) {
            graph->outputs[count] = graph->outputs[output];
            block->outs[count] = (struct rt_block_out){
                .reg = m->states->regs[i], .index = count, .extent = RT_NO_EXTENT};
            count++;
        }
        m->states->is_written[i] = is_out;
    }
    must(from == graph->output_count);
    graph->output_count = block->out_count = count;
    return rt_graph_compact(graph, m->err);
}

static enum status give_ins(struct making *m, uint32_t start)
{
    struct rt_graph *graph = &m->block->graph;
    uint32_t count = graph->input_count;
    uint32_t *inputs = take(m, (size_t)count + 1, sizeof(*inputs));
    m->block->ins = take(m, (size_t)count + 1, sizeof(*m->block->ins));
    if (!inputs || !m->block->ins) {
        return exhausted(m);
    }
    memcpy(inputs, graph->inputs, count * sizeof(*inputs));
    for (uint32_t i = 0; i < count; i++) {
        m->block->ins[i] = i < m->input_count ? i : m->states->regs[i - m->input_count];
    }
    inputs[count] = start;
    m->block->ins[count] = m->number;
    graph->inputs = inputs;
    graph->input_count = count + 1;
    return ST_OK;
}

/* ---- the code -------------------------------------------------------------------------------- */

static enum status add_entry(struct making *m)
{
    struct rt_code *code = m->code;
    const struct rt_graph *graph = &m->block->graph;
    struct rt_block **blocks = take(m, 2, sizeof(*blocks));
    m->entry = blocks ? calloc(1, sizeof(*m->entry)) : NULL;
    if (!m->entry) {
        return exhausted(m);
    }
    rt_block_init(m->entry, graph->name, m->block->device, NULL);
    m->entry->graph.files = graph->files;
    blocks[0] = m->entry;
    blocks[1] = m->block;
    code->blocks = blocks;
    code->block_count = 2;
    return ST_OK;
}

static enum status add_stmts(const struct making *m)
{
    struct rt_code *code = m->code;
    const struct rt_stmt stmts[] = {
        {.kind = RT_STMT_BLOCK, .target = 0},
        {.kind = RT_STMT_READ, .target = m->number, .a = m->element},
        {.kind = RT_STMT_BLOCK, .target = 1},
    };
    code->stmts = take(m, 3, sizeof(*code->stmts));
    if (!code->stmts) {
        return exhausted(m);
    }
    memcpy(code->stmts, stmts, sizeof(stmts));
    code->stmt_count = 3;
    for (uint32_t i = 0; i < code->result_count; i++) {
        code->results[i] = (struct rt_code_result){.reg = m->first_result + i,
                                                   .block = 1,
                                                   .output = i,
                                                   .has_source = true,
                                                   .is_computed = true};
    }
    return ST_OK;
}

/* The pass has found the caches of the block: the host reads the position before it. */
static enum status split(struct making *m, const struct rt_caches_found *found)
{
    TRY(add_registers(m));
    TRY(add_entry(m));
    TRY(fill_entry(m, found->input));
    TRY(give_ins(m, found->start));
    TRY(give_outs(m));
    return add_stmts(m);
}

enum status rt_code_find_caches(struct rt_code *code, uint32_t input_count,
                                struct rt_code_states *states, struct error *err)
{
    must(code->block_count > 0);
    struct making m = {.code = code,
                       .block = code->blocks[0],
                       .input_count = input_count,
                       .states = states,
                       .err = err};
    struct rt_caches_found found;
    if (!is_suitable(code, input_count, states)) {
        return ST_OK;
    }
    TRY(rt_pass_caches(&m.block->graph, input_count, NULL, &found, err));
    return found.input == RT_CACHES_NONE ? ST_OK : split(&m, &found);
}

/* ---- caches that grow ------------------------------------------------------------------------ */

/* What the block was before its caches left its inputs and results. */
struct growing {
    struct making making;
    const struct rt_code_cache *caches;
    uint32_t cache_count;
    const struct rt_code_cache **grown; /* by buffer */
    uint32_t *before, *after;           /* values, by buffer */
    struct rt_dim rows;
};

static bool is_cache(const struct growing *g, bool is_input, uint32_t index)
{
    for (uint32_t i = 0; i < g->cache_count; i++) {
        if ((is_input ? g->caches[i].input : g->caches[i].result) == index) {
            return true;
        }
    }
    return false;
}

/* No input and no result is that of two caches. */
static bool are_apart(const struct rt_code_cache *caches, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (caches[i].input == caches[k].input || caches[i].result == caches[k].result) {
                return false;
            }
        }
    }
    return true;
}

static bool is_plain_method(const struct rt_code *code)
{
    const struct rt_graph *graph = &code->blocks[0]->graph;
    return code->stmt_count == 0 && code->block_count == 1 &&
           are_plain(graph, graph->inputs, graph->input_count, true) &&
           are_plain(graph, graph->outputs, graph->output_count, false) &&
           graph->output_count == code->result_count;
}

/* Is what is no cache the result as it is the input, without a reader? */
static enum status check_passed(const struct growing *g, bool *out_is_so)
{
    const struct rt_graph *graph = &g->making.block->graph;
    bool *is_read = take(&g->making, graph->value_count, sizeof(*is_read));
    if (!is_read) {
        return exhausted(&g->making);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct rt_tensors args = rt_node_arg_tensors(graph, &graph->nodes[i]);
        for (uint32_t value; rt_tensors_next(&args, &value);) {
            is_read[value] = true;
        }
    }
    *out_is_so = true;
    for (uint32_t i = 0; i < g->cache_count; i++) {
        uint32_t input = graph->inputs[g->caches[i].input];
        *out_is_so &=
            g->caches[i].shape || (graph->outputs[g->caches[i].result] == input && !is_read[input]);
    }
    return ST_OK;
}

/* All caches have the same number of rows. False: their sizes exclude that, or no call chooses it.
 */
static bool unite_rows(struct growing *g, struct error *err)
{
    struct rt_graph *graph = &g->making.block->graph;
    for (uint32_t i = 0; i < g->making.states->count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[g->grown[i]->input]];
        if (v->kind != RT_TENSOR || v->rank != 4 || g->grown[i]->shape->rank != 4) {
            return false;
        }
        g->rows = i == 0 ? v->dims[RT_CACHES_ROWS] : g->rows;
        if (rt_dim_require_equal(&graph->dims, v->dims[RT_CACHES_ROWS], g->rows,
                                 "rows of the caches", err) != ST_OK) {
            return false;
        }
    }
    g->rows = rt_dim_resolve(&graph->dims, g->rows);
    return g->rows.expr && graph->dims.exprs[g->rows.expr].kind == RT_EXPR_SYMBOL;
}

/* The buffers, and the number of rows as an input, instead of the caches. */
static enum status replace_inputs(struct growing *g)
{
    struct making *m = &g->making;
    struct rt_graph *graph = &m->block->graph;
    uint32_t states = m->states->count, count = 0;
    uint32_t *inputs = take(m, (size_t)graph->input_count + 1, sizeof(*inputs));
    struct rt_register *registers = take(m, (size_t)graph->input_count + 1, sizeof(*registers));
    if (!inputs || !registers) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!is_cache(g, true, i)) {
            registers[count] = m->code->registers[i];
            inputs[count++] = graph->inputs[i];
        }
    }
    const struct rt_dim one = rt_dim_of(1);
    registers[count] = (struct rt_register){.kind = RT_TENSOR,
                                            .dtype = DT_I64,
                                            .bound = {.rank = 1, .dims = {1}},
                                            .fixed_dims = UINT32_MAX,
                                            .bytes = sizeof(int64_t)};
    inputs[count++] = rt_graph_tensor(graph, DT_I64, 1, &one);
    m->input_count = count;
    for (uint32_t i = 0; i < states; i++) {
        const struct shape *shape = g->grown[i]->shape;
        struct rt_dim dims[SHAPE_RANK_MAX];
        g->before[i] = graph->inputs[g->grown[i]->input];
        for (uint8_t d = 0; d < shape->rank; d++) {
            dims[d] = rt_dim_of(shape->dims[d]);
        }
        inputs[count++] =
            rt_graph_tensor(graph, graph->values[g->before[i]].dtype, shape->rank, dims);
    }
    graph->inputs = inputs;
    graph->input_count = count;
    m->code->registers = registers;
    m->code->register_count = m->input_count;
    return rt_graph_check(graph, m->err);
}

/* The other results, then the caches. */
static enum status replace_outputs(struct growing *g)
{
    struct making *m = &g->making;
    struct rt_graph *graph = &m->block->graph;
    uint32_t count = 0;
    uint32_t *outputs = take(m, graph->output_count, sizeof(*outputs));
    if (!outputs) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (!is_cache(g, false, i)) {
            outputs[count++] = graph->outputs[i];
        }
    }
    m->code->result_count = count;
    for (uint32_t i = 0; i < m->states->count; i++) {
        g->after[i] = graph->outputs[g->grown[i]->result];
        outputs[count++] = g->after[i];
        m->states->is_written[i] = true;
    }
    graph->outputs = outputs;
    graph->output_count = count;
    return ST_OK;
}

static enum status list_growing(struct growing *g)
{
    const struct making *m = &g->making;
    uint32_t count = 0;
    g->grown = take(m, g->cache_count, sizeof(*g->grown));
    g->before = take(m, g->cache_count, sizeof(*g->before));
    g->after = take(m, g->cache_count, sizeof(*g->after));
    if (!g->grown || !g->before || !g->after) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < g->cache_count; i++) {
        if (g->caches[i].shape) {
            g->grown[count++] = &g->caches[i];
        }
    }
    must(count == m->states->count);
    return ST_OK;
}

enum status rt_code_find_growing(struct rt_code *code, const struct rt_code_cache *caches,
                                 uint32_t count, struct rt_code_states *states, bool *out_is_found,
                                 struct error *err)
{
    must(code->block_count > 0);
    struct growing g = {
        .making = {.code = code, .block = code->blocks[0], .states = states, .err = err},
        .caches = caches,
        .cache_count = count,
    };
    struct rt_caches_found found;
    struct rt_graph *graph = &code->blocks[0]->graph;
    bool is_passed = false;
    *out_is_found = false;
    TRY(list_growing(&g));
    if (states->count == 0 || !are_apart(caches, count) || !is_plain_method(code) ||
        !unite_rows(&g, err)) {
        return rt_graph_check(graph, err);
    }
    TRY(rt_block_prepare(code->blocks[0], err));
    TRY(check_passed(&g, &is_passed));
    TRY(replace_inputs(&g));
    TRY(replace_outputs(&g));
    if (!is_passed || !are_computed(graph, graph->output_count)) {
        return ST_OK;
    }
    const struct rt_caches_growing growing = {
        .before = g.before,
        .after = g.after,
        .rows = g.rows,
        .input = graph->inputs[g.making.input_count - 1],
    };
    TRY(rt_pass_caches(graph, g.making.input_count, &growing, &found, err));
    *out_is_found = found.input != RT_CACHES_NONE;
    return *out_is_found ? split(&g.making, &found) : ST_OK;
}
