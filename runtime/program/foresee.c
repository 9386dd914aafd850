/* SPDX-License-Identifier: MIT */
/*
 * Statements in sequence are walked once, and each value that is written replaces the one before.
 * With jumps the order is unknown: the value of a register is the join over all statements that
 * write it, until a pass over the statements adds nothing. A size goes from "not written" to one
 * number to "unknown", so this ends.
 */
#include "config.h"

#include "runtime/program/foresee.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/code/code.h"
#include "runtime/program/method.h"
#include "runtime/program/state_cells.h"

/* Passes for methods with jumps; values that need more count as unknown. */
#define PASSES_MAX 16

struct walk {
    const struct rt_code *code;
    struct rt_foreseen *registers;
    int64_t *values; /* by expression, of the block at hand */
    bool *is_known;
    struct rt_dim_range *ranges; /* likewise */
    struct rt_foreseen *outs;    /* of the block at hand */
    bool has_jumps, has_changed;
    bool is_certain; /* the statement runs in every call, with these sizes */
    struct error *err;
};

static bool is_jump(const struct rt_stmt *stmt)
{
    return stmt->kind == RT_STMT_JUMP || stmt->kind == RT_STMT_JUMP_FALSE;
}

static void join(struct rt_foreseen *to, const struct rt_foreseen *from)
{
    uint32_t known = to->known_dims & from->known_dims;
    if (to->shape.rank != from->shape.rank) {
        known = 0;
    }
    for (uint8_t d = 0; d < to->shape.rank && d < from->shape.rank; d++) {
        known &= to->shape.dims[d] == from->shape.dims[d] ? UINT32_MAX : ~(1u << d);
    }
    to->known_dims = known;
    to->is_known = to->is_known && from->is_known && to->number == from->number;
}

/* If the order of statements is unknown, only the file bounds an unknown size. */
static void bound_by_file(const struct walk *w, uint32_t reg, struct rt_foreseen *value)
{
    const struct shape *bound = &w->code->registers[reg].bound;
    for (uint8_t d = 0; w->has_jumps && d < value->shape.rank && d < bound->rank; d++) {
        bool is_known = value->known_dims >> d & 1;
        value->shape.dims[d] = is_known ? value->shape.dims[d] : bound->dims[d];
    }
}

static void put(struct walk *w, uint32_t reg, const struct rt_foreseen *value)
{
    struct rt_foreseen *to = &w->registers[reg], before = *to;
    if (w->has_jumps && to->is_written) {
        join(to, value);
    } else {
        *to = *value;
    }
    bound_by_file(w, reg, to);
    w->has_changed |= !before.is_written || before.known_dims != to->known_dims ||
                      before.is_known != to->is_known;
}

static void put_number(struct walk *w, uint32_t reg, bool is_known, int64_t number)
{
    put(w, reg, &(struct rt_foreseen){.is_written = true, .is_known = is_known, .number = number});
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void know_symbol(struct walk *w, uint32_t expr, int64_t value)
{
    w->values[expr] = value;
    w->is_known[expr] = true;
    w->ranges[expr] = (struct rt_dim_range){value, value};
}

static void know_at_most(struct walk *w, uint32_t expr, int64_t bound)
{
    struct rt_dim_range *range = &w->ranges[expr];
    range->hi = bound < range->hi && bound >= range->lo ? bound : range->hi;
}

/* False: an input is not written yet. */
static bool read_symbols(struct walk *w, const struct rt_block *block)
{
    const struct rt_graph *graph = &block->graph;
    memset(w->is_known, 0, graph->dims.expr_count * sizeof(*w->is_known));
    for (uint32_t i = 1; i < graph->dims.expr_count; i++) {
        w->ranges[i] = (struct rt_dim_range){graph->dims.exprs[i].lo, graph->dims.exprs[i].hi};
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        const struct rt_foreseen *from = &w->registers[block->ins[i]];
        if (!from->is_written) {
            return false;
        }
        for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
            if (!v->dims[d].expr || d >= from->shape.rank) {
                continue;
            }
            if (from->known_dims >> d & 1) {
                know_symbol(w, v->dims[d].expr, from->shape.dims[d]);
            } else {
                know_at_most(w, v->dims[d].expr, from->shape.dims[d]);
            }
        }
        if (v->kind == RT_INT && v->i.expr && from->is_known) {
            know_symbol(w, v->i.expr, from->number);
        }
    }
    return true;
}

static bool dim_is_known(const struct walk *w, struct rt_dim dim)
{
    return rt_dim_is_const(dim) || w->is_known[dim.expr];
}

static struct rt_foreseen read_out(const struct walk *w, const struct rt_block *block,
                                   const struct rt_block_out *out)
{
    const struct rt_value *v = &block->graph.values[block->graph.outputs[out->index]];
    struct rt_foreseen value = {.is_written = true};
    if (v->kind == RT_INT) {
        value.is_known = dim_is_known(w, v->i);
        value.number = value.is_known ? rt_dim_at(v->i, w->values) : 0;
    }
    if (v->kind != RT_TENSOR) {
        return value;
    }
    value.shape.rank = v->rank;
    for (uint8_t d = 0; d < v->rank; d++) {
        bool is_known = dim_is_known(w, v->dims[d]) && (d > 0 || out->extent == RT_NO_EXTENT);
        int64_t most = rt_dim_range_at(v->dims[d], w->ranges).hi;
        value.shape.dims[d] = is_known ? rt_dim_at(v->dims[d], w->values) : most > 0 ? most : 0;
        value.known_dims |= (uint32_t)is_known << d;
    }
    return value;
}

/* Do the known sizes of the inputs meet the block's requirements? */
static enum status check_block(const struct walk *w, const struct rt_block *block)
{
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        const struct rt_foreseen *from = &w->registers[block->ins[i]];
        for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
            if (!(from->known_dims >> d & 1) || !dim_is_known(w, v->dims[d])) {
                continue;
            }
            int64_t given = from->shape.dims[d], wanted = rt_dim_at(v->dims[d], w->values);
            if (given != wanted || given > v->dims[d].value) {
                return error_set(w->err, ST_INVALID,
                                 "dim %u of a value inside is %" PRId64 ", expected %" PRId64, d,
                                 given, given != wanted ? wanted : v->dims[d].value);
            }
        }
    }
    return rt_dims_check_known(&graph->dims, w->values, w->is_known, w->err);
}

/* As in a run, all new values are taken before a register changes. */
static enum status walk_block(struct walk *w, const struct rt_block *block)
{
    if (!read_symbols(w, block)) {
        return ST_OK;
    }
    rt_dims_eval_known(&block->graph.dims, w->values, w->is_known);
    rt_dims_bound(&block->graph.dims, w->ranges);
    if (w->is_certain) {
        TRY(check_block(w, block));
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        w->outs[i] = out->is_input ? w->registers[block->ins[out->index]] : read_out(w, block, out);
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        put(w, block->outs[i].reg, &w->outs[i]);
    }
    return ST_OK;
}

/* ---- statements of the host ------------------------------------------------------------------ */

static void walk_scalar(struct walk *w, const struct rt_stmt *stmt)
{
    const uint32_t regs[] = {stmt->a, stmt->b, stmt->c};
    enum rt_scalar_op op = (enum rt_scalar_op)stmt->op;
    struct rt_scalar args[3], result = {RT_NONE, 0};
    struct error unused;
    bool is_known = true;
    for (uint32_t i = 0; i < rt_scalar_arg_count(op); i++) {
        const struct rt_foreseen *from = &w->registers[regs[i]];
        if (!from->is_written) {
            return;
        }
        args[i] = (struct rt_scalar){RT_INT, from->number};
        is_known &= from->is_known && w->code->registers[regs[i]].kind == RT_INT;
    }
    is_known = is_known && rt_scalar_apply(op, args, &result, &unused) == ST_OK;
    put_number(w, stmt->target, is_known && result.kind == RT_INT, result.number);
}

static void walk_size(struct walk *w, const struct rt_stmt *stmt)
{
    const struct rt_foreseen *from = &w->registers[stmt->a];
    if (!from->is_written) {
        return;
    }
    bool is_all = stmt->op == RT_STMT_NUMEL;
    uint32_t wanted = is_all ? (1u << from->shape.rank) - 1 : 1u << stmt->op;
    bool is_known = (from->known_dims & wanted) == wanted;
    put_number(w, stmt->target, is_known,
               !is_known ? 0
               : is_all  ? shape_numel(&from->shape)
                         : from->shape.dims[stmt->op]);
}

/* The number of rows depends on the last row that is written. */
static void walk_copy_index(struct walk *w, const struct rt_stmt *stmt)
{
    const struct rt_foreseen *from = &w->registers[stmt->b];
    struct rt_foreseen value = {.is_written = true};
    if (!from->is_written || from->shape.rank == SHAPE_RANK_MAX) {
        return;
    }
    value.shape.rank = (uint8_t)(from->shape.rank + 1);
    value.shape.dims[0] = w->code->registers[stmt->target].bound.dims[0];
    memcpy(&value.shape.dims[1], from->shape.dims, from->shape.rank * sizeof(int64_t));
    value.known_dims = from->known_dims << 1;
    put(w, stmt->target, &value);
}

static enum status walk_stmt(struct walk *w, const struct rt_stmt *stmt)
{
    switch (stmt->kind) {
    case RT_STMT_BLOCK:
        return walk_block(w, w->code->blocks[stmt->target]);
    case RT_STMT_SCALAR:
        walk_scalar(w, stmt);
        break;
    case RT_STMT_SIZE:
        walk_size(w, stmt);
        break;
    case RT_STMT_READ:
        put_number(w, stmt->target, false, 0);
        break;
    case RT_STMT_COPY_INDEX:
        walk_copy_index(w, stmt);
        break;
    case RT_STMT_JUMP:
    case RT_STMT_JUMP_FALSE:
        w->is_certain = false;
        break;
    }
    return ST_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct rt_foreseen of_shape(const struct shape *shape)
{
    return (struct rt_foreseen){
        .shape = *shape, .known_dims = (1u << shape->rank) - 1, .is_written = true};
}

/* Before the first statement registers hold the file's scalars, the inputs and the mutable buffers.
 */
static void begin(struct walk *w, const struct rt_method *method, const struct shape *const *inputs)
{
    for (uint32_t i = 0; i < w->code->register_count; i++) {
        const struct rt_scalar *initial = &w->code->registers[i].initial;
        w->registers[i] = (struct rt_foreseen){.is_written = initial->kind != RT_NONE,
                                               .is_known = initial->kind == RT_INT,
                                               .number = initial->number};
    }
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (inputs[i]) {
            w->registers[i] = of_shape(inputs[i]);
        }
    }
    for (uint32_t i = 0; i < method->state_count; i++) {
        uint32_t reg = method->states[i].reg;
        w->registers[reg] = of_shape(&w->code->registers[reg].bound);
    }
}

static enum status walk_all(struct walk *w)
{
    uint32_t passes = 0;
    w->is_certain = true;
    do {
        w->has_changed = false;
        for (uint32_t i = 0; i < w->code->stmt_count; i++) {
            TRY(walk_stmt(w, &w->code->stmts[i]));
        }
    } while (w->has_jumps && w->has_changed && ++passes < PASSES_MAX);
    for (uint32_t i = 0; w->has_jumps && w->has_changed && i < w->code->register_count; i++) {
        w->registers[i].known_dims = 0;
        w->registers[i].is_known = false;
        bound_by_file(w, i, &w->registers[i]);
    }
    return ST_OK;
}

enum status rt_foresee(const struct rt_method *method, const struct shape *const *inputs,
                       struct rt_foreseen *out, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_code *code = &method->code;
    struct walk w = {.code = code, .registers = out, .err = err};
    uint32_t exprs_max = 1;
    for (uint32_t i = 0; i < code->block_count; i++) {
        uint32_t count = code->blocks[i]->graph.dims.expr_count;
        exprs_max = count > exprs_max ? count : exprs_max;
    }
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        w.has_jumps |= is_jump(&code->stmts[i]);
    }
    w.values = calloc(exprs_max, sizeof(*w.values));
    w.is_known = calloc(exprs_max, sizeof(*w.is_known));
    w.ranges = calloc(exprs_max, sizeof(*w.ranges));
    w.outs = calloc((size_t)code->outs_max + 1, sizeof(*w.outs));
    enum status status = ST_EXHAUSTED;
    if (w.values && w.is_known && w.ranges && w.outs) {
        begin(&w, method, inputs);
        status = walk_all(&w);
    } else {
        error_set(err, status, "no memory for the sizes of a method");
    }
    free(w.values);
    free(w.is_known);
    free(w.ranges);
    free(w.outs);
    return status;
}
