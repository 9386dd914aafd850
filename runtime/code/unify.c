/* SPDX-License-Identifier: MIT */
/*
 * Contents of registers have numbers, equal ones for equal contents. One walk along the statements
 * gives them: see unify.h. A second one, backwards, drops what has lost its readers.
 */
#include "config.h"

#include "runtime/code/unify.h"

#include "base/check.h"
#include "base/hash.h"
#include "runtime/code/code.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* A search in the table of results ends after so many: a file may choose its statements so that
 * they collide. Not to find one that is there is right, too. */
#define PROBES_MAX 16

/* A statement by its operands' contents, and the number of what it computes; 0: free. */
struct result {
    enum rt_stmt_kind kind;
    uint8_t op;
    uint32_t operands[3];
    uint32_t number;
};

struct walk {
    struct rt_code *code;
    struct arena *arena; /* the code's */
    const bool *is_state;
    struct error *err;
    /* ---- contents ---- */
    uint32_t *numbers;     /* by register */
    uint32_t *ages;        /* by register: its number is known if this is |age| */
    uint32_t age;          /* the part of the code that no jump enters, from 1 on */
    uint32_t number_count; /* [0] means nothing */
    struct result *results;
    size_t mask;
    /* ---- of the block at hand, by number ---- */
    uint32_t *first; /* the first input with this content, if |of_block| says so */
    uint32_t *of_block;
    /* ---- readers ---- */
    bool *is_target; /* by statement, and its end: a jump arrives there */
    bool *is_gone;   /* by statement */
    bool *has_run;   /* by block */
    bool *has_lost;  /* by register: there were more readers once */
    uint32_t *readers;
};

static enum status exhausted(const struct walk *w)
{
    return arena_fail(w->arena, "the method", w->err);
}

static bool is_jump(const struct rt_stmt *stmt)
{
    return stmt->kind == RT_STMT_JUMP || stmt->kind == RT_STMT_JUMP_FALSE;
}

/* Does it compute a number that depends on its operands alone? */
static bool is_pure(const struct rt_stmt *stmt)
{
    return stmt->kind == RT_STMT_SCALAR || stmt->kind == RT_STMT_SIZE || stmt->kind == RT_STMT_READ;
}

/* ---- numbers of contents --------------------------------------------------------------------- */

/* Numbers that the walk may need: for each register that is written, or read without being known.
 */
static size_t numbers_max(const struct rt_code *code)
{
    size_t count = 1 + (size_t)code->register_count + 4 * (size_t)code->stmt_count;
    for (uint32_t i = 0; i < code->block_count; i++) {
        count += (size_t)code->blocks[i]->graph.input_count + code->blocks[i]->out_count;
    }
    return count;
}

static uint32_t new_number(struct walk *w)
{
    return w->number_count++;
}

static void put(const struct walk *w, uint32_t reg, uint32_t number)
{
    w->numbers[reg] = number;
    w->ages[reg] = w->age;
}

static uint32_t number_of(struct walk *w, uint32_t reg)
{
    if (w->ages[reg] != w->age) {
        put(w, reg, new_number(w));
    }
    return w->numbers[reg];
}

static bool are_same(const struct result *a, const struct result *b)
{
    return a->kind == b->kind && a->op == b->op && a->operands[0] == b->operands[0] &&
           a->operands[1] == b->operands[1] && a->operands[2] == b->operands[2];
}

static size_t place_of(const struct walk *w, const struct result *result)
{
    uint64_t hash = (uint64_t)result->kind << 8 | result->op;
    for (int i = 0; i < 3; i++) {
        hash = hash_mix(hash, result->operands[i]);
    }
    return (size_t)hash & w->mask;
}

/* The number of what |stmt| computes. */
static uint32_t number_result(struct walk *w, const struct rt_stmt *stmt)
{
    struct result result = {.kind = stmt->kind, .op = stmt->op};
    uint32_t operands[3], count = rt_stmt_operands(stmt, operands);
    for (uint32_t i = 0; i < count; i++) {
        result.operands[i] = number_of(w, operands[i]);
    }
    size_t at = place_of(w, &result);
    for (int probe = 0; probe < PROBES_MAX; probe++, at = (at + 1) & w->mask) {
        struct result *known = &w->results[at];
        if (known->number == 0) {
            *known = result;
            known->number = new_number(w);
            return known->number;
        }
        if (are_same(known, &result)) {
            return known->number;
        }
    }
    return new_number(w);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Can both have the same content, as far as the graph says? */
static bool are_alike(const struct rt_value *a, const struct rt_value *b)
{
    bool are = a->kind == b->kind && a->kind != RT_NONE;
    if (a->kind != RT_TENSOR) {
        return are;
    }
    are = are && a->dtype == b->dtype && a->rank == b->rank && !a->is_constant && !b->is_constant;
    for (uint8_t d = 0; are && d < a->rank; d++) {
        bool are_const = rt_dim_is_const(a->dims[d]) && rt_dim_is_const(b->dims[d]);
        are = !are_const || rt_dim_same(a->dims[d], b->dims[d]);
    }
    return are;
}

/* Readers of input |from| read input |to|, which has the same content. */
static enum status unite(struct rt_rewrite *rw, uint32_t from, uint32_t to, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    struct rt_value *a = &graph->values[from], *b = &graph->values[to];
    for (uint8_t d = 0; a->kind == RT_TENSOR && d < a->rank; d++) {
        TRY(rt_dim_require_equal(&graph->dims, a->dims[d], b->dims[d], "size of a value", err));
    }
    if (a->kind == RT_INT) {
        TRY(rt_dim_require_equal(&graph->dims, a->i, b->i, "a number", err));
    }
    rt_rewrite_replace(rw, from, to);
    return ST_OK;
}

/* Each input's first one with the same content, into |same|; returns how many are not their own. */
static uint32_t find_same(struct walk *w, const struct rt_block *block, uint32_t stamp,
                          uint32_t *same)
{
    const struct rt_graph *graph = &block->graph;
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        uint32_t number = number_of(w, block->ins[i]);
        if (w->of_block[number] != stamp) {
            w->of_block[number] = stamp;
            w->first[number] = i;
        }
        uint32_t first = w->first[number];
        bool is_same = first != i && are_alike(&graph->values[graph->inputs[i]],
                                               &graph->values[graph->inputs[first]]);
        same[i] = is_same ? first : i;
        count += is_same;
    }
    return count;
}

/* The inputs that are their own move together; |same| becomes their new places. */
static void drop_inputs(const struct walk *w, struct rt_block *block, uint32_t *same)
{
    struct rt_graph *graph = &block->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (same[i] != i) {
            w->has_lost[block->ins[i]] = true;
            same[i] = same[same[i]];
            continue;
        }
        graph->inputs[kept] = graph->inputs[i];
        block->ins[kept] = block->ins[i];
        same[i] = kept++;
    }
    graph->input_count = kept;
    for (uint32_t i = 0; i < block->out_count; i++) {
        if (block->outs[i].is_input) {
            block->outs[i].index = same[block->outs[i].index];
        }
    }
}

/* The entry keeps its inputs, the method's. */
static enum status unite_inputs(struct walk *w, struct rt_block *block, uint32_t index)
{
    struct rt_graph *graph = &block->graph;
    struct rt_rewrite rw;
    if (index == 0) {
        return ST_OK;
    }
    uint32_t *same = arena_array(w->arena, graph->input_count, sizeof(*same));
    if (!same) {
        return exhausted(w);
    }
    if (find_same(w, block, index, same) == 0) {
        return ST_OK;
    }
    TRY(rt_rewrite_begin(&rw, graph, w->err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (same[i] != i) {
            TRY(unite(&rw, graph->inputs[i], graph->inputs[same[i]], w->err));
        }
    }
    TRY(rt_rewrite_end(&rw, w->err));
    drop_inputs(w, block, same);
    return ST_OK;
}

/* Numbers for the registers that the block writes. All of them first: inputs may be among them. */
static enum status number_outs(struct walk *w, const struct rt_block *block)
{
    const struct rt_graph *graph = &block->graph;
    uint32_t *by_value = arena_array(w->arena, graph->value_count, sizeof(*by_value));
    uint32_t *fresh = arena_array(w->arena, block->out_count, sizeof(*fresh));
    if (!by_value || !fresh) {
        return exhausted(w);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        by_value[graph->inputs[i]] = number_of(w, block->ins[i]);
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        const struct rt_block_out *out = &block->outs[i];
        if (out->is_input) {
            fresh[i] = number_of(w, block->ins[out->index]);
            continue;
        }
        uint32_t *known = &by_value[graph->outputs[out->index]];
        bool is_known = *known && out->extent == RT_NO_EXTENT;
        fresh[i] = is_known ? *known : new_number(w);
        *known = out->extent == RT_NO_EXTENT ? fresh[i] : *known;
    }
    for (uint32_t i = 0; i < block->out_count; i++) {
        put(w, block->outs[i].reg, fresh[i]);
    }
    return ST_OK;
}

static enum status walk_block(struct walk *w, uint32_t index)
{
    struct rt_block *block = w->code->blocks[index];
    w->has_run[index] = true;
    TRY(rt_pass_resolve(&block->graph, w->err)); /* before inputs are compared by their sizes */
    TRY(unite_inputs(w, block, index));
    TRY(rt_block_prepare(block, w->err));
    return number_outs(w, block);
}

static enum status walk_stmts(struct walk *w)
{
    for (uint32_t i = 0; i < w->code->stmt_count; i++) {
        const struct rt_stmt *stmt = &w->code->stmts[i];
        w->age += w->is_target[i];
        if (stmt->kind == RT_STMT_BLOCK) {
            TRY(walk_block(w, stmt->target));
        } else if (is_pure(stmt)) {
            put(w, stmt->target, number_result(w, stmt));
        } else if (stmt->kind == RT_STMT_COPY_INDEX) {
            put(w, stmt->target, new_number(w));
        }
    }
    for (uint32_t i = 0; i < w->code->block_count; i++) {
        TRY(w->has_run[i] ? ST_OK : rt_block_prepare(w->code->blocks[i], w->err));
    }
    return ST_OK;
}

/* ---- what nobody reads any more -------------------------------------------------------------- */

static void count_readers(const struct walk *w)
{
    const struct rt_code *code = w->code;
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        const struct rt_stmt *stmt = &code->stmts[i];
        uint32_t operands[3], count = rt_stmt_operands(stmt, operands);
        for (uint32_t k = 0; k < count; k++) {
            w->readers[operands[k]]++;
        }
        const struct rt_block *block =
            stmt->kind == RT_STMT_BLOCK ? code->blocks[stmt->target] : NULL;
        for (uint32_t k = 0; block && k < block->graph.input_count; k++) {
            w->readers[block->ins[k]]++;
        }
    }
    for (uint32_t i = 0; i < code->result_count; i++) {
        w->readers[code->results[i].reg]++;
    }
}

static bool is_unread(const struct walk *w, uint32_t reg)
{
    return w->has_lost[reg] && w->readers[reg] == 0 && !w->is_state[reg];
}

/* A block keeps one output: one without outputs would never run. */
static void drop_outs(const struct walk *w, struct rt_block *block)
{
    uint32_t kept = 0, left = block->out_count;
    for (uint32_t i = 0; i < block->out_count; i++) {
        if (left > 1 && is_unread(w, block->outs[i].reg)) {
            left--;
        } else {
            block->outs[kept++] = block->outs[i];
        }
    }
    block->out_count = kept;
}

static void drop_unread(const struct walk *w)
{
    for (uint32_t i = w->code->stmt_count; i-- > 0;) {
        const struct rt_stmt *stmt = &w->code->stmts[i];
        uint32_t operands[3], count = rt_stmt_operands(stmt, operands);
        if (stmt->kind == RT_STMT_BLOCK) {
            drop_outs(w, w->code->blocks[stmt->target]);
        }
        w->is_gone[i] = is_pure(stmt) && is_unread(w, stmt->target);
        for (uint32_t k = 0; w->is_gone[i] && k < count; k++) {
            w->readers[operands[k]]--;
            w->has_lost[operands[k]] = true;
        }
    }
}

/* Moves the other statements together; |places|: by old number, the new one. */
static void remove_stmts(const struct walk *w, uint32_t *places)
{
    struct rt_code *code = w->code;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        places[i] = kept;
        if (!w->is_gone[i]) {
            code->stmts[kept++] = code->stmts[i];
        }
    }
    places[code->stmt_count] = kept;
    code->stmt_count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        if (is_jump(&code->stmts[i])) {
            code->stmts[i].target = places[code->stmts[i].target];
        }
    }
}

/* ---- outputs of graphs ----------------------------------------------------------------------- */

typedef void output_f(uint32_t *output, uint32_t *places);

static void mark_output(uint32_t *output, uint32_t *places)
{
    places[*output] = 1;
}

static void renumber_output(uint32_t *output, uint32_t *places)
{
    *output = places[*output];
}

/* Calls |fn| for each number of an output of block |index|. */
static void each_output(const struct walk *w, uint32_t index, output_f *fn, uint32_t *places)
{
    struct rt_code *code = w->code;
    for (uint32_t i = 0; i < code->blocks[index]->out_count; i++) {
        struct rt_block_out *out = &code->blocks[index]->outs[i];
        if (!out->is_input) {
            fn(&out->index, places);
        }
        if (out->extent != RT_NO_EXTENT) {
            fn(&out->extent, places);
        }
    }
    for (uint32_t i = 0; i < code->result_count; i++) {
        struct rt_code_result *result = &code->results[i];
        if (result->has_source && result->block == index) {
            fn(&result->output, places);
        }
    }
}

/* Keeps the outputs of block |index| that registers or results of the method are. */
static enum status drop_outputs(const struct walk *w, uint32_t index)
{
    struct rt_block *block = w->code->blocks[index];
    struct rt_graph *graph = &block->graph;
    uint32_t *places = arena_array(w->arena, graph->output_count, sizeof(*places)), kept = 0;
    if (!places) {
        return exhausted(w);
    }
    each_output(w, index, mark_output, places);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (places[i]) {
            graph->outputs[kept] = graph->outputs[i];
            places[i] = kept++;
        }
    }
    graph->output_count = kept;
    each_output(w, index, renumber_output, places);
    return rt_graph_compact(graph, w->err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status begin(struct walk *w)
{
    const struct rt_code *code = w->code;
    size_t numbers = numbers_max(code), size = 64;
    while (size < 2 * (size_t)code->stmt_count) {
        size *= 2;
    }
    w->mask = size - 1;
    w->results = arena_array(w->arena, size, sizeof(*w->results));
    w->numbers = arena_array(w->arena, code->register_count, sizeof(*w->numbers));
    w->ages = arena_array(w->arena, code->register_count, sizeof(*w->ages));
    w->first = arena_array(w->arena, numbers, sizeof(*w->first));
    w->of_block = arena_array(w->arena, numbers, sizeof(*w->of_block));
    w->is_target = arena_array(w->arena, (size_t)code->stmt_count + 1, sizeof(*w->is_target));
    w->is_gone = arena_array(w->arena, code->stmt_count, sizeof(*w->is_gone));
    w->has_run = arena_array(w->arena, code->block_count, sizeof(*w->has_run));
    w->has_lost = arena_array(w->arena, code->register_count, sizeof(*w->has_lost));
    w->readers = arena_array(w->arena, code->register_count, sizeof(*w->readers));
    if (!w->results || !w->numbers || !w->ages || !w->first || !w->of_block || !w->is_target ||
        !w->is_gone || !w->has_run || !w->has_lost || !w->readers) {
        return exhausted(w);
    }
    for (uint32_t i = 0; i < code->stmt_count; i++) {
        if (is_jump(&code->stmts[i])) {
            w->is_target[code->stmts[i].target] = true;
        }
    }
    return ST_OK;
}

enum status rt_code_unify(struct rt_code *code, const bool *is_state, struct error *err)
{
    struct walk w = {.code = code,
                     .arena = &code->arena,
                     .is_state = is_state,
                     .err = err,
                     .age = 1,
                     .number_count = 1};
    if (code->stmt_count == 0) {
        return rt_block_prepare(code->blocks[0], err);
    }
    TRY(begin(&w));
    TRY(walk_stmts(&w));
    count_readers(&w);
    drop_unread(&w);
    uint32_t *places = arena_array(w.arena, (size_t)code->stmt_count + 1, sizeof(*places));
    if (!places) {
        return exhausted(&w);
    }
    remove_stmts(&w, places);
    for (uint32_t i = 0; i < code->block_count; i++) {
        TRY(w.has_run[i] ? drop_outputs(&w, i) : ST_OK);
    }
    return ST_OK;
}
