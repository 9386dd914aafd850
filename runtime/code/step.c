/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/step.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/buffer.h"
#include "runtime/graph/op.h"

#define NO_VALUE UINT32_MAX

/* The content of a register while the statements are followed. */
struct held {
    enum rt_kind kind; /* NONE: nothing yet */
    uint32_t value;    /* TENSOR: of the graph that is made */
    struct rt_dim dim; /* INT */
};

struct making {
    struct rt_step *step;
    struct rt_graph *graph; /* the step's */
    const struct rt_code *code;
    const struct rt_step_form *form;
    struct held *registers;
    int64_t rows_min; /* of the tensors whose rows a position counts, where a size depends on it */
    struct error *err;
    /* ---- of the block that is being copied ---- */
    const struct rt_graph *from;
    uint32_t *values;      /* by value: that of |graph|, or NO_VALUE */
    struct rt_dim *dims;   /* by expression */
    uint8_t *states;       /* by expression: enum mapping */
    struct rt_dim *chosen; /* by expression: the value that a requirement gives it */
    bool *is_chosen;
};

enum mapping { UNKNOWN, WORKING, KNOWN };

static enum status refuse(const struct making *m, const char *why)
{
    return error_set(m->err, ST_UNSUPPORTED, "%s", why);
}

static void *take(const struct making *m, size_t count, size_t size)
{
    return arena_array(&m->graph->arena, count, size);
}

static enum status exhausted(const struct making *m)
{
    return arena_fail(&m->graph->arena, "the method", m->err);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool map_expr(const struct making *m, uint32_t expr);

static bool map_dim(const struct making *m, struct rt_dim dim, struct rt_dim *out)
{
    if (!dim.expr) {
        *out = dim;
        return true;
    }
    bool is_known = map_expr(m, dim.expr);
    *out = m->dims[dim.expr];
    return is_known;
}

static bool combine(const struct making *m, const struct rt_expr *e, struct rt_dim *out)
{
    struct rt_dims *dims = &m->graph->dims;
    struct rt_dim a, b;
    if (e->kind == RT_EXPR_SYMBOL) {
        return false; /* no input gives it */
    }
    if (!map_dim(m, e->a, &a) || !map_dim(m, e->b, &b)) {
        return false;
    }
    bool divides = e->kind == RT_EXPR_FLOORDIV || e->kind == RT_EXPR_MOD;
    if (divides && rt_dim_lo(dims, b) < 1) {
        return false;
    }
    *out = rt_dim_apply(dims, e->kind, a, b);
    return true;
}

/* False: it depends on something that is not known. */
static bool map_expr(const struct making *m, uint32_t expr)
{
    const struct rt_dims *dims = &m->from->dims;
    if (m->states[expr] != UNKNOWN) {
        return m->states[expr] == KNOWN;
    }
    m->states[expr] = WORKING;
    const struct rt_expr *e = &dims->exprs[expr];
    bool is_solved = e->kind == RT_EXPR_SYMBOL && dims->solved[expr].expr != expr, is_known = true;
    if (m->is_chosen[expr]) {
        m->dims[expr] = m->chosen[expr];
    } else {
        is_known = is_solved ? map_dim(m, dims->solved[expr], &m->dims[expr])
                             : combine(m, e, &m->dims[expr]);
    }
    m->states[expr] = is_known ? KNOWN : WORKING;
    return is_known;
}

static void give(const struct making *m, struct rt_dim symbol, struct rt_dim dim)
{
    if (symbol.expr && m->from->dims.exprs[symbol.expr].kind == RT_EXPR_SYMBOL &&
        m->states[symbol.expr] == UNKNOWN) {
        m->dims[symbol.expr] = dim;
        m->states[symbol.expr] = KNOWN;
        m->is_chosen[symbol.expr] = true;
        m->chosen[symbol.expr] = dim;
    }
}

/*
 * The requirements hold in every call that the graph is used for. One between a size and a number
 * says what the size is: so the length of a slice that begins at a position does not depend on it.
 */
static enum status take_requirements(const struct making *m)
{
    const struct rt_dims *dims = &m->from->dims;
    for (uint32_t i = 0; i < dims->requirement_count; i++) {
        const struct rt_requirement *r = &dims->requirements[i];
        struct rt_dim a, b;
        if (!map_dim(m, r->a, &a) || !map_dim(m, r->b, &b)) {
            return refuse(m, "a size does not follow from its inputs");
        }
        TRY(rt_dim_require_equal(&m->graph->dims, a, b, r->what, m->err));
        if (rt_dim_is_const(a) && !rt_dim_is_const(b) && r->b.expr) {
            m->is_chosen[r->b.expr] = true;
            m->chosen[r->b.expr] = a;
        } else if (rt_dim_is_const(b) && !rt_dim_is_const(a) && r->a.expr) {
            m->is_chosen[r->a.expr] = true;
            m->chosen[r->a.expr] = b;
        }
    }
    memset(m->states, UNKNOWN, dims->expr_count); /* once more, with the chosen values */
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status copy_dims(const struct making *m, struct rt_dim **dims, uint32_t count)
{
    struct rt_dim *copies = take(m, count, sizeof(*copies));
    if (!copies) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!map_dim(m, (*dims)[i], &copies[i])) {
            return refuse(m, "a size does not follow from its inputs");
        }
    }
    *dims = copies;
    return ST_OK;
}

static enum status copy_value(const struct making *m, uint32_t value, uint32_t *out);

static enum status copy_list(const struct making *m, struct rt_value *v)
{
    uint32_t *items = take(m, v->count, sizeof(*items));
    if (!items) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < v->count; i++) {
        TRY(copy_value(m, v->values[i], &items[i]));
    }
    v->values = items;
    return ST_OK;
}

/* A float or a bool that only a run knows becomes what it is now known to be. */
static enum status copy_symbol(const struct making *m, struct rt_value *v)
{
    struct rt_dim bits;
    if (!v->symbol) {
        return ST_OK;
    }
    if (!map_expr(m, v->symbol)) {
        return refuse(m, "a number does not follow from its inputs");
    }
    bits = m->dims[v->symbol];
    v->symbol = bits.expr;
    if (!bits.expr && v->kind == RT_FLOAT) {
        memcpy(&v->f, &bits.value, sizeof(v->f));
    } else if (!bits.expr) {
        v->b = bits.value != 0;
    }
    return ST_OK;
}

static enum status translate(const struct making *m, struct rt_value *v)
{
    switch (v->kind) {
    case RT_TENSOR:
        v->declared = NULL;
        return copy_dims(m, &v->dims, v->rank);
    case RT_INT:
        return map_dim(m, v->i, &v->i) ? ST_OK
                                       : refuse(m, "a number does not follow from its inputs");
    case RT_INTS:
        return copy_dims(m, &v->ints, v->count);
    case RT_TENSORS:
        return copy_list(m, v);
    case RT_FLOAT:
    case RT_BOOL:
        return copy_symbol(m, v);
    default:
        return ST_OK;
    }
}

static enum status add_value(const struct making *m, struct rt_value value, uint32_t *out)
{
    *out = rt_graph_none(m->graph);
    TRY(rt_graph_check(m->graph, m->err));
    value.node = RT_NO_NODE;
    if (value.buffer) {
        hal_buffer_ref(value.buffer);
    }
    m->graph->values[*out] = value;
    return ST_OK;
}

static enum status copy_value(const struct making *m, uint32_t value, uint32_t *out)
{
    if (m->values[value] == NO_VALUE) {
        struct rt_value copy = m->from->values[value];
        TRY(translate(m, &copy));
        TRY(add_value(m, copy, &m->values[value]));
    }
    *out = m->values[value];
    return ST_OK;
}

static enum status copy_node(const struct making *m, const struct rt_node *node)
{
    uint32_t *args = take(m, node->arg_count, sizeof(*args));
    uint32_t *outs = take(m, node->out_count, sizeof(*outs));
    if (!args || !outs) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < node->arg_count; i++) {
        TRY(copy_value(m, node->args[i], &args[i]));
    }
    for (uint32_t i = 0; i < node->out_count; i++) {
        TRY(copy_value(m, node->outs[i], &outs[i]));
    }
    m->graph->origin = node->origin;
    rt_graph_node(m->graph, node->op, args, node->arg_count, outs, node->out_count);
    return rt_graph_check(m->graph, m->err);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static enum status begin_block(struct making *m, const struct rt_block *block)
{
    size_t values = block->graph.value_count, exprs = block->graph.dims.expr_count;
    m->from = &block->graph;
    m->values = take(m, values, sizeof(*m->values));
    m->dims = take(m, exprs, sizeof(*m->dims));
    m->states = take(m, exprs, sizeof(*m->states));
    m->chosen = take(m, exprs, sizeof(*m->chosen));
    m->is_chosen = take(m, exprs, sizeof(*m->is_chosen));
    if (!m->values || !m->dims || !m->states || !m->chosen || !m->is_chosen) {
        return exhausted(m);
    }
    memset(m->values, 0xff, values * sizeof(*m->values));
    return ST_OK;
}

/* The registers that the block reads give its symbols their values. */
static enum status give_input(const struct making *m, const struct rt_block *block, uint32_t i)
{
    const struct rt_value *v = &m->from->values[m->from->inputs[i]];
    const struct held *held = &m->registers[m->code->stmt_count ? block->ins[i] : i];
    bool is_needed = v->kind == RT_TENSOR || (v->kind != RT_NONE && !rt_value_is_fixed(v));
    if (!is_needed) {
        return ST_OK;
    }
    if (v->kind != held->kind || (v->kind != RT_TENSOR && v->kind != RT_INT)) {
        return refuse(m, "a block takes a number that is no int");
    }
    if (v->kind == RT_INT) {
        give(m, v->i, held->dim);
        return ST_OK;
    }
    const struct rt_value *is = &m->graph->values[held->value];
    if (is->rank != v->rank || is->dtype != v->dtype) {
        return refuse(m, "a block takes another tensor");
    }
    for (uint8_t d = 0; d < v->rank; d++) {
        give(m, v->dims[d], is->dims[d]);
    }
    m->values[m->from->inputs[i]] = held->value;
    return ST_OK;
}

static enum status check_inputs(const struct making *m)
{
    for (uint32_t i = 0; i < m->from->input_count; i++) {
        const struct rt_value *v = &m->from->values[m->from->inputs[i]];
        uint32_t value = m->values[m->from->inputs[i]];
        for (uint8_t d = 0; value != NO_VALUE && d < v->rank; d++) {
            struct rt_dim dim;
            if (!map_dim(m, v->dims[d], &dim) ||
                !rt_dim_same(dim, m->graph->values[value].dims[d])) {
                return refuse(m, "the sizes of its inputs depend on each other");
            }
        }
    }
    return ST_OK;
}

static enum status copy_block(struct making *m, const struct rt_block *block)
{
    TRY(begin_block(m, block));
    for (uint32_t i = 0; i < m->from->input_count; i++) {
        TRY(give_input(m, block, i));
    }
    TRY(take_requirements(m));
    TRY(check_inputs(m));
    for (uint32_t i = 0; i < m->from->node_count; i++) {
        TRY(copy_node(m, &m->from->nodes[i]));
    }
    return ST_OK;
}

static enum status hold(const struct making *m, uint32_t value, struct held *out)
{
    uint32_t copy;
    TRY(copy_value(m, value, &copy));
    const struct rt_value *v = &m->graph->values[copy];
    *out = (struct held){.kind = v->kind, .value = copy};
    if (v->kind == RT_INT) {
        out->dim = v->i;
    }
    return ST_OK;
}

/* All new values first: inputs may be among them. */
static enum status run_block(struct making *m, const struct rt_block *block)
{
    TRY(copy_block(m, block));
    struct held *fresh = take(m, block->out_count, sizeof(*fresh));
    if (!fresh) {
        return exhausted(m);
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        if (out->extent != RT_NO_EXTENT) {
            return refuse(m, "the size of a result depends on data");
        }
        if (out->is_input) {
            fresh[i] = m->registers[block->ins[out->index]];
        } else {
            TRY(hold(m, m->from->outputs[out->index], &fresh[i]));
        }
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        m->registers[block->outs[i].reg] = fresh[i];
    }
    return ST_OK;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool is_single(const struct rt_value *v)
{
    for (uint8_t d = 0; d < v->rank; d++) {
        if (!rt_dim_is(v->dims[d], 1)) {
            return false;
        }
    }
    return true;
}

/* The only tensor that a node of one element takes its element from, or NO_VALUE. */
static uint32_t find_source(const struct rt_graph *graph, const struct rt_node *node)
{
    uint32_t value, source = NO_VALUE;
    for (struct rt_tensors it = rt_node_arg_tensors(graph, node); rt_tensors_next(&it, &value);) {
        source = source == NO_VALUE && is_single(&graph->values[value]) ? value : NO_VALUE;
        if (source == NO_VALUE) {
            break;
        }
    }
    return node->op->flags & (RT_OP_VIEW | RT_OP_MOVES) ? source : NO_VALUE;
}

/* The method's input whose only element |value| is; false: it is none. */
static bool find_input(const struct making *m, uint32_t value, uint32_t *out_input)
{
    while (value != NO_VALUE && m->graph->values[value].node != RT_NO_NODE) {
        value = find_source(m->graph, &m->graph->nodes[m->graph->values[value].node]);
    }
    for (uint32_t i = 0; value != NO_VALUE && i < m->form->input_count; i++) {
        if (m->graph->inputs[i] == value) {
            *out_input = i;
            return m->graph->values[value].dtype == DT_I64;
        }
    }
    return false;
}

static enum status add_number(const struct making *m, uint32_t input, bool is_element,
                              struct rt_dim *out)
{
    struct rt_step *step = m->step;
    struct rt_graph *graph = m->graph;
    uint32_t first = m->form->input_count + m->form->state_count;
    for (uint32_t i = 0; i < step->number_count; i++) {
        if (step->numbers[i].input == input) {
            *out = graph->values[graph->inputs[first + i]].i;
            return ST_OK;
        }
    }
    must(step->number_count < m->form->input_count);
    *out = rt_dim_symbol(&graph->dims, step->number_max);
    step->numbers[step->number_count++] = (struct rt_step_number){input, is_element};
    graph->inputs[graph->input_count++] = rt_graph_int(graph, *out);
    return rt_graph_check(graph, m->err);
}

static enum status read_element(const struct making *m, const struct rt_stmt *stmt)
{
    const struct held *from = &m->registers[stmt->a];
    struct held *to = &m->registers[stmt->target];
    uint32_t input;
    if (from->kind != RT_TENSOR || !is_single(&m->graph->values[from->value]) ||
        !find_input(m, from->value, &input)) {
        return refuse(m, "the host reads a number that the device computes");
    }
    to->kind = RT_INT;
    return add_number(m, input, true, &to->dim);
}

static enum status find_size(const struct making *m, const struct rt_stmt *stmt)
{
    const struct held *from = &m->registers[stmt->a];
    if (from->kind != RT_TENSOR) {
        return refuse(m, "the size of a value is read before anything wrote it");
    }
    const struct rt_value *v = &m->graph->values[from->value];
    struct rt_dim size =
        stmt->op == RT_STMT_NUMEL ? rt_value_numel(m->graph, v) : v->dims[stmt->op];
    m->registers[stmt->target] = (struct held){.kind = RT_INT, .dim = size};
    return ST_OK;
}

static enum status compute(const struct making *m, const struct rt_stmt *stmt)
{
    struct rt_dims *dims = &m->graph->dims;
    const struct held *a = &m->registers[stmt->a], *b = &m->registers[stmt->b];
    bool is_single_arg = rt_scalar_arg_count((enum rt_scalar_op)stmt->op) == 1;
    struct rt_dim result;
    if (a->kind != RT_INT || (!is_single_arg && b->kind != RT_INT)) {
        return refuse(m, "the host computes a number that is no int");
    }
    switch ((enum rt_scalar_op)stmt->op) {
    case RT_SCALAR_ADD:
        result = rt_dim_add(dims, a->dim, b->dim);
        break;
    case RT_SCALAR_SUB:
        result = rt_dim_sub(dims, a->dim, b->dim);
        break;
    case RT_SCALAR_MUL:
        result = rt_dim_mul(dims, a->dim, b->dim);
        break;
    case RT_SCALAR_MAX:
        result = rt_dim_max(dims, a->dim, b->dim);
        break;
    case RT_SCALAR_MIN:
        result = rt_dim_min(dims, a->dim, b->dim);
        break;
    case RT_SCALAR_NEG:
        result = rt_dim_sub(dims, rt_dim_of(0), a->dim);
        break;
    case RT_SCALAR_INT:
        result = a->dim;
        break;
    default:
        return error_set(m->err, ST_UNSUPPORTED, "the host computes %s",
                         rt_scalar_name((enum rt_scalar_op)stmt->op));
    }
    m->registers[stmt->target] = (struct held){.kind = RT_INT, .dim = result};
    return rt_graph_check(m->graph, m->err);
}

static enum status follow(struct making *m, const struct rt_stmt *stmt)
{
    switch (stmt->kind) {
    case RT_STMT_BLOCK:
        return run_block(m, m->code->blocks[stmt->target]);
    case RT_STMT_SCALAR:
        return compute(m, stmt);
    case RT_STMT_SIZE:
        return find_size(m, stmt);
    case RT_STMT_READ:
        return read_element(m, stmt);
    case RT_STMT_JUMP:
    case RT_STMT_JUMP_FALSE:
    case RT_STMT_COPY_INDEX:
        break;
    }
    return refuse(m, reason_text(REASON_CONTROL_FLOW));
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* A method's input in its smallest form. */
static enum status open_input(const struct making *m, uint32_t i)
{
    const struct rt_graph *entry = &m->code->blocks[0]->graph;
    const struct rt_value *v = &entry->values[entry->inputs[i]];
    struct rt_graph *graph = m->graph;
    struct rt_dim dims[SHAPE_RANK_MAX];
    if (v->kind != RT_TENSOR) {
        bool is_number = v->kind != RT_NONE && !rt_value_is_fixed(v);
        graph->inputs[i] = rt_graph_none(graph);
        return is_number ? refuse(m, "an input is a number that each call chooses") : ST_OK;
    }
    for (uint8_t d = 0; d < v->rank; d++) {
        dims[d] = rt_dim_is_const(v->dims[d]) ? v->dims[d] : rt_dim_of(1);
    }
    graph->inputs[i] = rt_graph_tensor(graph, v->dtype, v->rank, dims);
    m->registers[i] = (struct held){.kind = RT_TENSOR, .value = graph->inputs[i]};
    return rt_graph_check(graph, m->err);
}

/* Mutable buffer |i| as the call finds it. */
static enum status open_state(const struct making *m, uint32_t i)
{
    struct rt_graph *graph = m->graph;
    const struct rt_graph *entry = &m->code->blocks[0]->graph;
    uint32_t at = m->form->input_count + i, reg = m->code->stmt_count ? m->form->state_regs[i] : at;
    enum dtype dtype;
    struct shape shape;
    struct rt_dim dims[SHAPE_RANK_MAX];
    if (m->code->stmt_count) {
        dtype = m->code->registers[reg].dtype;
        shape = m->code->registers[reg].bound;
    } else {
        dtype = entry->values[entry->inputs[at]].dtype;
        if (!rt_value_shape(&entry->values[entry->inputs[at]], &shape)) {
            return refuse(m, "the size of a mutable buffer varies");
        }
    }
    for (uint8_t d = 0; d < shape.rank; d++) {
        dims[d] = rt_dim_of(shape.dims[d]);
    }
    graph->inputs[at] = rt_graph_tensor(graph, dtype, shape.rank, dims);
    m->registers[reg] = (struct held){.kind = RT_TENSOR, .value = graph->inputs[at]};
    return rt_graph_check(graph, m->err);
}

static void open_constants(const struct making *m)
{
    for (uint32_t i = 0; m->code->stmt_count && i < m->code->register_count; i++) {
        const struct rt_scalar *initial = &m->code->registers[i].initial;
        if (initial->kind == RT_INT) {
            m->registers[i] = (struct held){.kind = RT_INT, .dim = rt_dim_of(initial->number)};
        }
    }
}

static enum status add_output(const struct making *m, const struct held *held)
{
    if (held->kind != RT_TENSOR) {
        return refuse(m, "a result is no tensor");
    }
    m->graph->outputs[m->graph->output_count++] = held->value;
    return ST_OK;
}

static enum status add_outputs(const struct making *m)
{
    const struct rt_step_form *form = m->form;
    const struct rt_code *code = m->code;
    uint32_t written = form->result_count; /* without statements: the output of the block */
    for (uint32_t i = 0; i < form->result_count; i++) {
        struct held held;
        if (code->stmt_count) {
            held = m->registers[code->results[i].reg];
        } else {
            TRY(hold(m, m->from->outputs[i], &held));
        }
        TRY(add_output(m, &held));
    }
    for (uint32_t i = 0; i < form->state_count; i++) {
        struct held held;
        m->step->state_outputs[i] = RT_NO_OUTPUT;
        if (!form->is_written[i]) {
            continue;
        }
        if (code->stmt_count) {
            held = m->registers[form->state_regs[i]];
        } else {
            TRY(hold(m, m->from->outputs[written++], &held));
        }
        if (held.value != m->graph->inputs[form->input_count + i]) {
            m->step->state_outputs[i] = m->graph->output_count;
            TRY(add_output(m, &held));
        }
    }
    return ST_OK;
}

/* Notes the longest dim of the tensors that |node| reads, which ends what positions can mean. */
static void note_rows(struct making *m, const struct rt_node *node)
{
    int64_t longest = 0;
    uint32_t value;
    struct shape shape;
    for (struct rt_tensors it = rt_node_arg_tensors(m->graph, node);
         rt_tensors_next(&it, &value);) {
        bool is_known = rt_value_shape(&m->graph->values[value], &shape);
        for (uint8_t d = 0; is_known && d < shape.rank; d++) {
            longest = shape.dims[d] > longest ? shape.dims[d] : longest;
        }
    }
    if (longest > 0 && longest < m->rows_min) {
        m->rows_min = longest;
    }
}

/* Sizes must not depend on the numbers: one plan is for all of them. */
static enum status check_graph(struct making *m)
{
    struct rt_graph *graph = m->graph;
    bool is_free = true;
    uint32_t first = m->form->input_count + m->form->state_count;
    for (uint32_t i = first; i < graph->input_count; i++) {
        struct rt_dim number = graph->values[graph->inputs[i]].i;
        if (!rt_dim_same(rt_dim_resolve(&graph->dims, number), number)) {
            return refuse(m, "it is for one position");
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t value;
        struct shape shape;
        for (struct rt_tensors it = rt_node_out_tensors(graph, &graph->nodes[i]);
             rt_tensors_next(&it, &value);) {
            if (!rt_value_shape(&graph->values[value], &shape)) {
                note_rows(m, &graph->nodes[i]);
                error_set(m->err, ST_UNSUPPORTED, "%s: its size depends on a position",
                          graph->nodes[i].op->name);
                is_free = false;
            }
        }
    }
    return is_free ? ST_OK : ST_UNSUPPORTED;
}

static enum status make(struct making *m)
{
    const struct rt_step_form *form = m->form;
    struct rt_graph *graph = m->graph;
    size_t registers = m->code->stmt_count ? m->code->register_count
                                           : (size_t)form->input_count + form->state_count;
    m->registers = take(m, registers, sizeof(*m->registers));
    graph->inputs =
        take(m, 2 * (size_t)form->input_count + form->state_count, sizeof(*graph->inputs));
    graph->outputs =
        take(m, (size_t)form->result_count + form->state_count, sizeof(*graph->outputs));
    m->step->numbers = take(m, form->input_count, sizeof(*m->step->numbers));
    m->step->state_outputs = take(m, form->state_count, sizeof(*m->step->state_outputs));
    if (!m->registers || !graph->inputs || !graph->outputs || !m->step->numbers ||
        !m->step->state_outputs) {
        return exhausted(m);
    }
    open_constants(m);
    for (uint32_t i = 0; i < form->input_count; i++) {
        TRY(open_input(m, i));
    }
    for (uint32_t i = 0; i < form->state_count; i++) {
        TRY(open_state(m, i));
    }
    graph->input_count = form->input_count + form->state_count;
    for (uint32_t i = 0; i < m->code->stmt_count; i++) {
        TRY(follow(m, &m->code->stmts[i]));
    }
    TRY(m->code->stmt_count ? ST_OK : copy_block(m, m->code->blocks[0]));
    TRY(add_outputs(m));
    TRY(rt_graph_compact(graph, m->err));
    return check_graph(m);
}

/* |*rows|: see |rows_min| of struct making. */
static enum status try_max(struct rt_step *step, const struct rt_code *code,
                           const struct rt_step_form *form, int64_t number_max, int64_t *rows,
                           struct error *err)
{
    const struct rt_graph *entry = &code->blocks[0]->graph;
    *step = (struct rt_step){
        .input_count = form->input_count,
        .state_count = form->state_count,
        .result_count = form->result_count,
        .number_max = number_max,
    };
    rt_graph_init(&step->graph, entry->name);
    step->graph.files = entry->files;
    step->graph.precision = entry->precision;
    struct making m = {.step = step,
                       .graph = &step->graph,
                       .code = code,
                       .form = form,
                       .rows_min = number_max,
                       .err = err};
    enum status status = entry->input_count < form->input_count
                             ? refuse(&m, "its entry takes other inputs")
                             : make(&m);
    *rows = m.rows_min;
    if (status != ST_OK) {
        rt_graph_fini(&step->graph);
    }
    return status;
}

enum status rt_step_init(struct rt_step *step, const struct rt_code *code,
                         const struct rt_step_form *form, struct error *err)
{
    int64_t rows;
    enum status status = try_max(step, code, form, RT_STEP_NUMBER_MAX, &rows, err);
    if (status == ST_UNSUPPORTED && rows < RT_STEP_NUMBER_MAX) {
        /* A slice of a table has another size where it is cut at the end of the table. */
        status = try_max(step, code, form, rows - 1, &rows, err);
    }
    /* ST_INVALID: a requirement that cannot hold: there is no call of that size. */
    return status == ST_INVALID ? error_prefix(err, "one step: ") : status;
}

void rt_step_fini(struct rt_step *step)
{
    rt_graph_fini(&step->graph);
}
