/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/load/carry.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/carries.h"
#include "runtime/pte/pte.h"

/* Where a rewritten plan keeps the rows of a cache of rank 4. */
#define ROW_DIM 2

/* What a cache that grows takes beside what all of them share. */
#define VALUES_OF_ONE 6
#define VALUES_SHARED 2
#define INSTRS_OF_ONE 3

/* Operators that the file may not have. */
#define OPERATORS_NEW 5

/* The number of int64 in a file. */
#define SCALAR_TYPE_LONG 4

/* Places of planned memory, in bytes. */
#define PLACE_ALIGN 64

#define NAME_SIZE 32

struct carrier {
    struct arena *arena;
    const struct pte_plan *from;
    struct pte_plan *plan; /* being made; the arrays below are its own */
    struct pte_value *values;
    const char **operators;
    uint64_t *memory_bytes; /* with one memory more, for the buffers */
    struct pte_instr *head, *tail;
    uint32_t head_count, tail_count;
    uint32_t rows; /* the int of their number; PTE_NO_VALUE: no cache grows */
    uint32_t rows_input;
    struct rt_carried *out;
    struct error *err;
};

static enum status fail_full(struct carrier *c)
{
    return arena_fail(c->arena, "the method", c->err);
}

/* ---- values and instructions ----------------------------------------------------------------- */

static uint32_t add_value(struct carrier *c, struct pte_value value)
{
    c->values[c->plan->value_count] = value;
    return c->plan->value_count++;
}

static uint32_t add_int(struct carrier *c, int64_t value)
{
    return add_value(c, (struct pte_value){.kind = PTE_INT, .int_value = value});
}

static uint32_t find_operator(struct carrier *c, const char *name)
{
    uint32_t i = 0;
    while (i < c->plan->operator_count && strcmp(c->operators[i], name) != 0) {
        i++;
    }
    if (i == c->plan->operator_count) {
        c->operators[c->plan->operator_count++] = name;
    }
    return i;
}

static bool make_call(struct carrier *c, const char *name, const uint32_t *args, uint32_t count,
                      struct pte_instr *out)
{
    uint32_t *copy = arena_array(c->arena, count, sizeof(*copy));
    if (copy) {
        memcpy(copy, args, count * sizeof(*copy));
        *out = (struct pte_instr){
            .kind = PTE_KERNEL, .index = find_operator(c, name), .arg_count = count, .args = copy};
    }
    return copy != NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const struct pte_tensor *tensor_of(const struct carrier *c, uint32_t value)
{
    return c->from->values[value].kind == PTE_TENSOR ? c->from->values[value].tensor : NULL;
}

/* A copy of |t| that has |dim| elements in dim |d|, and no place yet. */
static struct pte_tensor *resized(struct carrier *c, const struct pte_tensor *t, uint8_t d,
                                  int64_t dim)
{
    struct pte_tensor *copy = arena_alloc(c->arena, sizeof(*copy));
    if (!copy) {
        (void)fail_full(c);
        return NULL;
    }
    *copy = *t;
    copy->shape.dims[d] = dim;
    copy->storage = PTE_UNBOUND;
    copy->name = "";
    return shape_bytes(&copy->shape, copy->dtype, &copy->byte_count, c->err) == ST_OK ? copy : NULL;
}

/* Makes |t| a mutable buffer, the one of pair |number|. */
static enum status keep(struct carrier *c, struct pte_tensor *t, uint32_t number)
{
    c->out->caches[number].buffer = t;
    uint64_t *end = &c->memory_bytes[c->from->memory_count];
    char *name = arena_alloc(c->arena, NAME_SIZE);
    if (!name) {
        return fail_full(c);
    }
    snprintf(name, NAME_SIZE, "carried.%u", number);
    t->name = name;
    t->storage = PTE_PLANNED;
    t->dynamism = PTE_STATIC;
    t->is_external = false;
    t->bytes = (struct span){0};
    t->memory = c->from->memory_count;
    t->offset = *end;
    *end += align_up(t->byte_count, PLACE_ALIGN);
    return ST_OK;
}

/* ---- caches of a fixed size ------------------------------------------------------------------ */

static bool is_result(const struct carrier *c, uint32_t value)
{
    for (uint32_t i = 0; i < c->from->output_count; i++) {
        if (c->from->outputs[i] == value) {
            return true;
        }
    }
    return false;
}

/* The input is a buffer; unless the method changes it itself, the result is copied into it. */
static enum status keep_fixed(struct carrier *c, uint32_t number, uint32_t input, uint32_t result,
                              int64_t rows)
{
    const struct pte_tensor *t = tensor_of(c, input);
    bool varies = rows > 0 && t->shape.rank == 4 && t->dynamism != PTE_STATIC;
    uint8_t d = t->shape.rank == 4 ? ROW_DIM : 0;
    if (varies && rows > t->shape.dims[d]) {
        return error_set(c->err, ST_INVALID, "a cache has %lld rows, the program takes up to %lld",
                         (long long)rows, (long long)t->shape.dims[d]);
    }
    struct pte_tensor *buffer = resized(c, t, d, varies ? rows : t->shape.dims[d]);
    if (!buffer) {
        return c->err->code;
    }
    TRY(keep(c, buffer, number));
    c->values[input].tensor = buffer;
    if (is_result(c, input)) {
        return ST_OK;
    }
    const uint32_t copy[] = {input, result, add_int(c, 0), input};
    return make_call(c, "aten::copy_", copy, 4, &c->tail[c->tail_count++]) ? ST_OK : fail_full(c);
}

/* ---- caches that grow ------------------------------------------------------------------------ */

/* The input of the caches' rows, and the int that it holds. */
static enum status add_rows(struct carrier *c)
{
    if (c->rows != PTE_NO_VALUE) {
        return ST_OK;
    }
    struct pte_tensor *t = arena_alloc(c->arena, sizeof(*t));
    if (!t) {
        return fail_full(c);
    }
    *t = (struct pte_tensor){.dtype = DT_I64,
                             .scalar_type = SCALAR_TYPE_LONG,
                             .shape = {.rank = 1, .dims = {1}},
                             .byte_count = sizeof(int64_t),
                             .name = ""};
    c->rows_input = add_value(c, (struct pte_value){.kind = PTE_TENSOR, .tensor = t});
    c->rows = add_int(c, 0);
    const uint32_t item[] = {c->rows_input, c->rows};
    return make_call(c, "aten::_local_scalar_dense", item, 2, &c->head[c->head_count++])
               ? ST_OK
               : fail_full(c);
}

/*
 *     input = slice(buffer, d, 0, rows)              before everything else
 *     all = size(result, d)                          behind everything else
 *     added = slice(result, d, rows, all)
 *     buffer = slice_scatter(buffer, added, d, rows, all)
 */
static enum status keep_growing(struct carrier *c, uint32_t number, uint32_t input, uint32_t result,
                                uint8_t d)
{
    const struct pte_tensor *before = tensor_of(c, input), *after = tensor_of(c, result);
    int64_t most = before->shape.dims[d];
    struct pte_tensor *buffer = resized(c, before, d, most);
    struct pte_tensor *added = resized(c, after, d, after->shape.dims[d] - most);
    if (!buffer || !added) {
        return c->err->code;
    }
    TRY(keep(c, buffer, number));
    TRY(add_rows(c));
    uint32_t rows = c->rows, dim = add_int(c, d), zero = add_int(c, 0), one = add_int(c, 1);
    uint32_t all = add_int(c, 0);
    uint32_t state = add_value(c, (struct pte_value){.kind = PTE_TENSOR, .tensor = buffer});
    uint32_t more = add_value(c, (struct pte_value){.kind = PTE_TENSOR, .tensor = added});
    const uint32_t cut[] = {state, dim, zero, rows, one, input, input};
    const uint32_t size[] = {result, dim, all};
    const uint32_t take[] = {result, dim, rows, all, one, more, more};
    const uint32_t put[] = {state, more, dim, rows, all, one, state, state};
    bool is_made =
        make_call(c, "aten::slice_copy.Tensor_out", cut, 7, &c->head[c->head_count++]) &&
        make_call(c, "aten::sym_size.int", size, 3, &c->tail[c->tail_count++]) &&
        make_call(c, "aten::slice_copy.Tensor_out", take, 7, &c->tail[c->tail_count++]) &&
        make_call(c, "aten::slice_scatter.out", put, 8, &c->tail[c->tail_count++]);
    return is_made ? ST_OK : fail_full(c);
}

/* ---- one pair -------------------------------------------------------------------------------- */

/* The only dim of which |after| has more, at |*out_dim|; the number of dims that differ. */
static uint32_t compare(const struct pte_tensor *before, const struct pte_tensor *after,
                        uint8_t *out_dim)
{
    uint32_t differ = 0;
    *out_dim = 0;
    for (uint8_t d = 0; d < before->shape.rank; d++) {
        if (before->shape.dims[d] != after->shape.dims[d]) {
            differ += after->shape.dims[d] > before->shape.dims[d] ? 1 : 2;
            *out_dim = d;
        }
    }
    return differ;
}

static enum status keep_pair(struct carrier *c, const struct rt_carries *carries, uint32_t number)
{
    const struct pte_plan *from = c->from;
    const struct rt_carry *carry = &carries->items[number];
    uint32_t first = from->output_count - carries->result_count;
    uint32_t input = from->inputs[carry->input], result = from->outputs[first + carry->result];
    c->out->caches[number] =
        (struct rt_carried_cache){.input = carry->input, .result = first + carry->result};
    const struct pte_tensor *before = tensor_of(c, input), *after = tensor_of(c, result);
    if (!before || !after || before->dtype != after->dtype ||
        before->shape.rank != after->shape.rank || before->storage == PTE_CONSTANT) {
        return error_set(c->err, ST_INVALID,
                         "input %u and result %u are no cache of one type and rank", carry->input,
                         first + carry->result);
    }
    uint8_t d;
    uint32_t differ = compare(before, after, &d);
    bool grows = differ == 1 && before->shape.rank == 4 && d == ROW_DIM;
    c->out->caches[number].grows = grows;
    c->out->may_grow &= grows || input == result;
    if (differ == 0) {
        return keep_fixed(c, number, input, result, carries->rows);
    }
    if (differ > 1 || before->dynamism == PTE_STATIC) {
        return error_set(c->err, ST_UNSUPPORTED,
                         "a cache has %lld rows before each call and %lld behind it: export it "
                         "with dynamic shapes",
                         (long long)before->shape.dims[d], (long long)after->shape.dims[d]);
    }
    return keep_growing(c, number, input, result, d);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static bool is_carried(const struct rt_carries *carries, bool is_input, uint32_t index)
{
    for (uint32_t i = 0; i < carries->count; i++) {
        if ((is_input ? carries->items[i].input : carries->items[i].result) == index) {
            return true;
        }
    }
    return false;
}

/* The other inputs, then the rows of caches that grow. */
static enum status list_inputs(struct carrier *c, const struct rt_carries *carries)
{
    uint32_t *inputs = arena_array(c->arena, (size_t)c->from->input_count + 1, sizeof(*inputs));
    if (!inputs) {
        return fail_full(c);
    }
    c->plan->input_count = 0;
    for (uint32_t i = 0; i < c->from->input_count; i++) {
        if (!is_carried(carries, true, i)) {
            inputs[c->plan->input_count++] = c->from->inputs[i];
        }
    }
    if (c->rows != PTE_NO_VALUE) {
        inputs[c->plan->input_count++] = c->rows_input;
    }
    c->plan->inputs = inputs;
    return ST_OK;
}

/* The other results; those in front of the counted ones are inputs that the method changes. */
static enum status list_outputs(struct carrier *c, const struct rt_carries *carries)
{
    uint32_t first = c->from->output_count - carries->result_count;
    uint32_t *outputs = arena_array(c->arena, carries->result_count, sizeof(*outputs));
    if (!outputs) {
        return fail_full(c);
    }
    c->plan->output_count = 0;
    for (uint32_t i = 0; i < carries->result_count; i++) {
        if (!is_carried(carries, false, i)) {
            outputs[c->plan->output_count++] = c->from->outputs[first + i];
        }
    }
    c->plan->outputs = outputs;
    return ST_OK;
}

/* The new calls around the old ones, whose jumps lead as far as before. */
static enum status join_instrs(struct carrier *c)
{
    const struct pte_plan *from = c->from;
    uint32_t count = c->head_count + from->instr_count + c->tail_count;
    struct pte_instr *instrs = arena_array(c->arena, count, sizeof(*instrs));
    if (!instrs) {
        return fail_full(c);
    }
    memcpy(instrs, c->head, c->head_count * sizeof(*instrs));
    for (uint32_t i = 0; i < from->instr_count; i++) {
        struct pte_instr *instr = &instrs[c->head_count + i];
        *instr = from->instrs[i];
        instr->index += instr->kind == PTE_JUMP_FALSE ? c->head_count : 0;
    }
    memcpy(instrs + c->head_count + from->instr_count, c->tail, c->tail_count * sizeof(*instrs));
    c->plan->instrs = instrs;
    c->plan->instr_count = count;
    return ST_OK;
}

static enum status make_room(struct carrier *c, uint32_t count)
{
    const struct pte_plan *from = c->from;
    c->plan = arena_alloc(c->arena, sizeof(*c->plan));
    c->values =
        arena_array(c->arena, from->value_count + VALUES_SHARED + (size_t)count * VALUES_OF_ONE,
                    sizeof(*c->values));
    c->operators =
        arena_array(c->arena, (size_t)from->operator_count + OPERATORS_NEW, sizeof(*c->operators));
    c->memory_bytes =
        arena_array(c->arena, (size_t)from->memory_count + 1, sizeof(*c->memory_bytes));
    c->head = arena_array(c->arena, (size_t)count + 1, sizeof(*c->head));
    c->tail = arena_array(c->arena, (size_t)count * INSTRS_OF_ONE, sizeof(*c->tail));
    if (!c->plan || !c->values || !c->operators || !c->memory_bytes || !c->head || !c->tail) {
        return fail_full(c);
    }
    *c->plan = *from;
    memcpy(c->values, from->values, from->value_count * sizeof(*c->values));
    memcpy(c->operators, from->operators, from->operator_count * sizeof(*c->operators));
    memcpy(c->memory_bytes, from->memory_bytes, from->memory_count * sizeof(*c->memory_bytes));
    c->memory_bytes[from->memory_count] = 0;
    return ST_OK;
}

static enum status check_fit(const struct pte_plan *plan, const struct rt_carries *carries,
                             struct error *err)
{
    bool fits = carries->result_count <= plan->output_count;
    for (uint32_t i = 0; i < carries->count; i++) {
        fits &= carries->items[i].input < plan->input_count &&
                carries->items[i].result < carries->result_count;
    }
    return fits ? ST_OK
                : error_set(err, ST_INVALID,
                            "the description of the caches has %u results, the method has %u "
                            "inputs and %u results",
                            carries->result_count, plan->input_count, plan->output_count);
}

enum status rt_carry_apply(const struct pte_plan *plan, const struct rt_carries *carries,
                           struct arena *arena, struct rt_carried *out, struct error *err)
{
    struct carrier c = {.arena = arena, .from = plan, .rows = PTE_NO_VALUE, .out = out, .err = err};
    *out = (struct rt_carried){
        .caches = arena_array(arena, carries->count, sizeof(*out->caches)),
        .count = carries->count,
        /* Results in front of those that are counted would go, and only this form drops them. */
        .may_grow = carries->result_count == plan->output_count,
    };
    if (!out->caches) {
        return fail_full(&c);
    }
    TRY(check_fit(plan, carries, err));
    TRY(make_room(&c, carries->count));
    for (uint32_t i = 0; i < carries->count; i++) {
        TRY(keep_pair(&c, carries, i));
    }
    TRY(list_inputs(&c, carries));
    TRY(list_outputs(&c, carries));
    TRY(join_instrs(&c));
    c.plan->values = c.values;
    c.plan->operators = c.operators;
    c.plan->memory_bytes = c.memory_bytes;
    c.plan->memory_count = plan->memory_count + 1;
    c.plan->encoded_inputs = c.plan->encoded_outputs = ""; /* they count what is gone */
    out->plan = c.plan;
    return ST_OK;
}
