/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/import/kernels.h"

#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "runtime/import/import_priv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"

/* Calls of a method, and views between them. Placing values and finding elided views compare all
 * pairs, so this limit bounds the time that a file can take; real programs have a few thousand. */
#define NODES_MAX 32768

#define ARGS_MAX 64
#define OUTS_MAX 16

/* ---- kernel calls ---------------------------------------------------------------------------- */

/* The set of kinds that a letter of a signature accepts. */
static uint32_t kinds_of(char letter)
{
    switch (letter) {
    case 'T':
        return 1u << RT_TENSOR;
    case 'I':
        return 1u << RT_INT;
    case 'F':
        return 1u << RT_FLOAT | 1u << RT_INT;
    case 'B':
        return 1u << RT_BOOL;
    case 'S':
        return 1u << RT_FLOAT | 1u << RT_INT | 1u << RT_BOOL;
    case 'Z':
        return 1u << RT_STRING;
    case 'L':
        return 1u << RT_INTS;
    case 'D':
        return 1u << RT_FLOATS;
    case 'O':
        return 1u << RT_BOOLS;
    case 'X':
    case 'Y':
        return 1u << RT_TENSORS;
    default:
        unreachable();
    }
}

static const char *const kind_names[] = {
    [RT_NONE] = "none",   [RT_TENSOR] = "a tensor", [RT_INT] = "an int", [RT_FLOAT] = "a float",
    [RT_BOOL] = "a bool", [RT_STRING] = "a string", [RT_INTS] = "ints",  [RT_FLOATS] = "floats",
    [RT_BOOLS] = "bools", [RT_TENSORS] = "tensors",
};
TABLE_ENDS_WITH(kind_names, RT_TENSORS);

static enum status check_kind(struct import *im, uint32_t position, char letter, bool is_optional,
                              uint32_t value)
{
    const struct rt_value *v = &im->graph->values[value];
    bool fits = v->kind == RT_NONE ? is_optional : kinds_of(letter) >> v->kind & 1;
    for (uint32_t i = 0; letter == 'X' && v->kind == RT_TENSORS && i < v->count; i++) {
        fits &= im->graph->values[v->values[i]].kind == RT_TENSOR;
    }
    if (letter != 'S' && (v->kind == RT_FLOAT || v->kind == RT_BOOL) && v->symbol != 0) {
        return error_set(im->err, ST_UNSUPPORTED,
                         "argument %u is %s that is only known during a call", position,
                         kind_names[v->kind]);
    }
    if (!fits) {
        return error_set(im->err, ST_INVALID, "argument %u is %s, the signature is %s", position,
                         kind_names[v->kind], im->op->args);
    }
    return ST_OK;
}

/* A new value for the out tensor |index|; a kernel must not write into constants. */
static enum status declare_out(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind != PTE_TENSOR) {
        return error_set(im->err, ST_INVALID, "the output is %s, expected a tensor",
                         pte_kind_name(v->kind));
    }
    if (v->tensor->storage == PTE_CONSTANT) {
        return error_set(im->err, ST_INVALID,
                         "cannot write the output to value %u: it is a constant", index);
    }
    return rt_import_declare(im, v->tensor, out_value);
}

static enum status declare_out_list(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind != PTE_TENSOR_LIST) {
        return error_set(im->err, ST_INVALID, "the output is %s, expected a tensor list",
                         pte_kind_name(v->kind));
    }
    uint32_t *items = arena_array(&im->graph->arena, v->list.count, sizeof(*items));
    if (!items) {
        return rt_import_fail_full(im);
    }
    for (uint32_t i = 0; i < v->list.count; i++) {
        TRY(declare_out(im, v->list.values[i], &items[i]));
    }
    *out_value = rt_graph_tensors(im->graph, items, v->list.count);
    return rt_graph_check(im->graph, im->err);
}

static enum status declare_out_int(struct import *im, uint32_t index, uint32_t *out_value)
{
    enum pte_kind kind = im->plan->values[index].kind;
    if (kind != PTE_INT) {
        return error_set(im->err, ST_INVALID, "the output is %s, expected an int",
                         pte_kind_name(kind));
    }
    *out_value = rt_graph_int(im->graph, rt_dim_of(0));
    return rt_graph_check(im->graph, im->err);
}

static enum status declare(struct import *im, char letter, uint32_t index, uint32_t *out_value)
{
    switch (letter) {
    case 'T':
        return declare_out(im, index, out_value);
    case 'X':
        return declare_out_list(im, index, out_value);
    case 'I':
        return declare_out_int(im, index, out_value);
    default:
        unreachable();
    }
}

/*
 * Other names for the memory of value |index| have to be looked up again: the content has changed.
 */
static void forget_aliases(struct import *im, uint32_t index)
{
    const struct pte_value *values = im->plan->values;
    for (uint32_t i = 0; values[index].kind == PTE_TENSOR && i < im->plan->value_count; i++) {
        struct rt_import_content *content = &im->contents[i];
        if (i != index && content->current && content->place == RT_PLACE_NONE &&
            values[i].kind == PTE_TENSOR &&
            rt_import_same_place(values[i].tensor, values[index].tensor)) {
            content->current = 0;
        }
    }
}

/* Stores the new content of a mutable buffer under the plan value that it was first seen as. */
static enum status publish_state(struct import *im, struct rt_state_use *state, uint32_t index,
                                 uint32_t value)
{
    state->is_written = true;
    if (state->index != index) {
        TRY(rt_import_view(im, value, state->tensor, &value));
        rt_import_set(im, state->index, value);
    }
    rt_import_settle(im, state->index);
    return ST_OK;
}

static enum status publish_single(struct import *im, uint32_t index, uint32_t value)
{
    const struct pte_value *v = &im->plan->values[index];
    rt_import_set(im, index, value);
    if (v->kind != PTE_TENSOR) {
        return ST_OK;
    }
    struct rt_state_use *state = rt_import_find_state(im, v->tensor);
    rt_import_settle(im, index);
    return state ? publish_state(im, state, index, value) : ST_OK;
}

enum status rt_import_publish(struct import *im, uint32_t index, uint32_t value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind != PTE_TENSOR_LIST) {
        return publish_single(im, index, value);
    }
    for (uint32_t i = 0; i < v->list.count; i++) {
        TRY(publish_single(im, v->list.values[i], im->graph->values[value].values[i]));
    }
    return ST_OK;
}

static enum status wrong_count(struct import *im, const struct pte_instr *instr)
{
    return error_set(im->err, ST_INVALID, "got %u arguments, the signature is %s", instr->arg_count,
                     im->op->args);
}

/* A call during its import: the parts of its node. */
struct call {
    uint32_t args[ARGS_MAX], outs[OUTS_MAX];
    uint32_t arg_count, out_count; /* of the node */
    uint32_t published[OUTS_MAX];  /* by output: the plan value that it becomes */
};

/* An argument that is changed in place gets a new value, declared like the old one. */
static enum status import_changed(struct import *im, uint32_t index, struct call *call)
{
    must(call->out_count < OUTS_MAX);
    call->published[call->out_count] = index;
    return declare_out(im, index, &call->outs[call->out_count++]);
}

/* The argument's content, or none if the call overwrites all of it. */
static enum status import_arg(struct import *im, uint32_t index, bool is_overwritten,
                              uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (!is_overwritten || v->kind != PTE_TENSOR) {
        return rt_import_argument(im, index, out_value);
    }
    TRY(rt_import_note_overwritten(im, index));
    *out_value = rt_graph_none(im->graph);
    return rt_graph_check(im->graph, im->err);
}

static enum status import_args(struct import *im, const struct pte_instr *instr, struct call *call)
{
    for (const char *letter = im->op->args; *letter != '>'; letter++, call->arg_count++) {
        uint32_t position = call->arg_count, *arg = &call->args[position];
        bool is_optional = letter[1] == '?', is_changed = letter[1 + is_optional] == '!';
        must(position < ARGS_MAX);
        if (position == instr->arg_count) {
            return wrong_count(im, instr);
        }
        if (position == 1 && im->index_list) {
            *arg = im->index_list;
        } else {
            TRY(import_arg(im, instr->args[position],
                           is_changed && (im->op->flags & RT_OP_OVERWRITES), arg));
        }
        TRY(check_kind(im, position, *letter, is_optional, *arg));
        letter += is_optional + is_changed;
    }
    return ST_OK;
}

static enum status import_outs(struct import *im, const struct pte_instr *instr, struct call *call)
{
    const char *letters = strchr(im->op->args, '>') + 1;
    bool has_extent = im->op->flags & RT_OP_EXTENT; /* the extent is not an argument of the call */
    uint32_t declared = (uint32_t)strlen(letters) - has_extent;
    uint32_t given = instr->arg_count - call->arg_count;
    must(declared <= OUTS_MAX);
    if (given != declared && given != declared + 1) {
        return wrong_count(im, instr);
    }
    for (; call->out_count < declared; call->out_count++) {
        uint32_t i = call->out_count;
        call->published[i] = instr->args[call->arg_count + i];
        TRY(declare(im, letters[i], call->published[i], &call->outs[i]));
    }
    if (has_extent) {
        call->outs[call->out_count++] = rt_graph_tensor(im->graph, DT_I64, 0, NULL);
    }
    const char *letter = im->op->args;
    for (uint32_t position = 0; *letter != '>'; letter++, position++) {
        letter += letter[1] == '?';
        if (letter[1] == '!') {
            letter++;
            TRY(import_changed(im, instr->args[position], call));
        }
    }
    return ST_OK;
}

/* A call's arguments are the schema's, then the outs, then the operator's return value: nothing for
 * primitive operators, else the outs again as one value. */
static bool is_argument(const struct pte_instr *instr, uint32_t arg_count, uint32_t index)
{
    for (uint32_t i = 0; i < arg_count; i++) {
        if (instr->args[i] == index) {
            return true;
        }
    }
    return false;
}

/* The outputs of the call become the contents of their plan values. */
static enum status publish_call(struct import *im, const struct pte_instr *instr,
                                const struct call *call)
{
    uint32_t written = (uint32_t)strlen(strchr(im->op->args, '>') + 1);
    if (im->op->flags & RT_OP_EXTENT) {
        must(call->out_count == 2);
        return rt_import_extent(im, call->published[0], call->outs[0], call->outs[1]);
    }
    for (uint32_t i = 0; i < call->out_count; i++) {
        if (i >= written || is_argument(instr, call->arg_count, call->published[i])) {
            forget_aliases(im, call->published[i]);
        }
        TRY(rt_import_publish(im, call->published[i], call->outs[i]));
    }
    return ST_OK;
}

static enum status import_call(struct import *im, const struct pte_instr *instr)
{
    struct call call = {.arg_count = 0};
    TRY(import_args(im, instr, &call));
    TRY(import_outs(im, instr, &call));
    uint32_t node =
        rt_graph_node(im->graph, im->op, call.args, call.arg_count, call.outs, call.out_count);
    TRY(rt_graph_check(im->graph, im->err));
    TRY(rt_graph_infer(im->graph, node, im->err));
    return publish_call(im, instr, &call);
}

/* Imports a call as a node; masks in a list of indices are replaced first. */
static enum status import_node(struct import *im, const struct pte_instr *instr)
{
    TRY(rt_import_settle_call(im, instr));
    im->index_list = 0;
    if (im->op == rt_op_known(RT_KNOWN_index)) {
        TRY(rt_import_masks(im, instr));
    }
    return import_call(im, instr);
}

/* The row of |kernel|. If the file does not know the length of the result, the row whose length
 * depends on data. */
static const struct rt_op *find_row(const struct import *im, const struct pte_instr *instr,
                                    const char *kernel)
{
    const struct rt_op *op = rt_op_find_kernel(span_str(kernel));
    if (op != rt_op_known(RT_KNOWN_repeat_interleave) || instr->arg_count < 3) {
        return op;
    }
    const struct pte_value *length = &im->plan->values[instr->args[1]];
    const struct pte_value *out = &im->plan->values[instr->args[2]];
    bool is_found =
        length->kind == PTE_NULL && out->kind == PTE_TENSOR && out->tensor->dynamism != PTE_STATIC;
    return is_found ? rt_op_known(RT_KNOWN_repeat_interleave_found) : op;
}

static enum status import_kernel(struct import *im, const struct pte_instr *instr)
{
    const char *kernel = im->plan->operators[instr->index];
    bool is_done;
    enum status status = rt_import_host_call(im, instr, &is_done);
    if (status == ST_OK && !is_done) {
        im->op = find_row(im, instr, kernel);
        if (!im->op) {
            return error_set(im->err, ST_UNSUPPORTED, "operator '%s' is not supported", kernel);
        }
        status = import_node(im, instr);
    }
    return status == ST_OK ? ST_OK : error_prefix(im->err, "%s, ", kernel);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static enum status import_instr(struct import *im, const struct pte_instr *instr)
{
    im->op = NULL;
    switch (instr->kind) {
    case PTE_KERNEL:
        return import_kernel(im, instr);
    case PTE_FREE:
        return ST_OK; /* planned memory is not used here */
    case PTE_DELEGATE:
        TRY(rt_import_settle_call(im, instr));
        return rt_import_delegate(im, instr);
    case PTE_MOVE:
        return rt_import_move(im, instr);
    case PTE_JUMP_FALSE:
        return rt_import_jump(im, instr);
    }
    unreachable();
}

/* ---- the method ------------------------------------------------------------------------------ */

/* The file allows each dim of a dynamic input to be smaller than its bound; inference finds the
 * dims that cannot be. A bound of 1 never means that the dim may vary. */
static uint32_t declare_input(struct import *im, const struct pte_tensor *t)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        int64_t bound = t->shape.dims[i];
        bool is_free = t->dynamism != PTE_STATIC && bound > 1;
        dims[i] = is_free ? rt_dim_symbol(&im->graph->dims, bound) : rt_dim_of(bound);
    }
    return rt_graph_tensor(im->graph, t->dtype, t->shape.rank, dims);
}

/* Input |i|, in register |i|, becomes input |i| of the first block. */
static enum status import_input(struct import *im, uint32_t i)
{
    uint32_t index = im->plan->inputs[i], value;
    const struct pte_value *v = &im->plan->values[index];
    struct rt_import_content *content = &im->contents[index];
    must(v->kind <
         PTE_INT_LIST); /* lists are expanded; a plan that has a constant as input is corrupt */
    if (v->kind != PTE_TENSOR || content->current != 0) {
        TRY(rt_import_use(im, index, &value));
        return rt_import_add_input(im, i, value);
    }
    must(v->tensor->storage != PTE_CONSTANT);
    if (v->tensor->dynamism == PTE_DYNAMIC_UNBOUND) {
        return error_set(im->err, ST_UNSUPPORTED,
                         "the shape of a tensor has no upper bound: export the model with one");
    }
    value = declare_input(im, v->tensor);
    rt_import_set(im, index, value);
    content->place = RT_PLACE_REGISTER;
    content->reg = i + 1;
    rt_import_settle(im, index);
    return rt_import_add_input(im, i, value);
}

/* Each instruction settles its own arguments and the items of their lists; states are settled
 * twice. */
static size_t residents_max(const struct pte_plan *plan)
{
    size_t count = plan->input_count;
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        for (uint32_t j = 0; j < plan->instrs[i].arg_count; j++) {
            const struct pte_value *v = &plan->values[plan->instrs[i].args[j]];
            count += v->kind == PTE_TENSOR_LIST ? 2 * (size_t)v->list.count : 2;
        }
    }
    return count + IMPORT_STATES_MAX;
}

static bool allocate(struct import *im)
{
    struct arena *arena = &im->code->arena;
    const struct pte_plan *plan = im->plan;
    im->contents = arena_array(arena, plan->value_count, sizeof(*im->contents));
    im->touched = arena_array(arena, plan->value_count, sizeof(*im->touched));
    im->residents = arena_array(arena, residents_max(plan), sizeof(*im->residents));
    im->stmt_of = arena_array(arena, (size_t)plan->instr_count + 1, sizeof(*im->stmt_of));
    im->states->items = arena_array(arena, IMPORT_STATES_MAX, sizeof(*im->states->items));
    return im->contents && im->touched && im->residents && im->stmt_of && im->states->items;
}

/* Copies |plan| with room for values that the file does not have. */
static enum status make_room(struct import *im, const struct pte_plan *plan,
                             struct pte_plan *out_plan)
{
    size_t count = (size_t)plan->value_count + IMPORT_STATES_MAX;
    struct pte_value *values = arena_array(&im->code->arena, count, sizeof(*values));
    if (!values || count > UINT32_MAX) {
        return rt_import_fail_full(im);
    }
    memcpy(values, plan->values, plan->value_count * sizeof(*values));
    for (uint32_t i = plan->value_count; i < count; i++) {
        values[i].kind = PTE_NULL;
    }
    *out_plan = *plan;
    out_plan->values = values;
    out_plan->value_count = (uint32_t)count;
    im->own_values = values + plan->value_count;
    im->plan = out_plan;
    return ST_OK;
}

static enum status import_instrs(struct import *im)
{
    const struct pte_plan *plan = im->plan;
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        uint32_t before = im->graph->node_count;
        const struct rt_graph *graph = im->graph;
        enum status status = rt_import_arrive(im, i);
        if (status != ST_OK || import_instr(im, &plan->instrs[i]) != ST_OK) {
            return error_prefix(im->err, "instruction %u: ", i);
        }
        nodes += im->graph->node_count - (im->graph == graph ? before : 0);
        if (nodes > NODES_MAX || plan->instr_count > NODES_MAX) {
            return error_set(im->err, ST_TOO_LARGE, "more than %d kernel calls", NODES_MAX);
        }
    }
    return ST_OK;
}

enum status rt_import_kernels(struct rt_files *files, const struct pte_plan *plan,
                              struct hal_device *device, struct rt_code *code,
                              struct rt_state_uses *states, struct error *err)
{
    struct import im = {
        .files = files,
        .device = device,
        .code = code,
        .states = states,
        .err = err,
    };
    struct pte_plan roomy;
    TRY(make_room(&im, plan, &roomy));
    if (!allocate(&im)) {
        return rt_import_fail_full(&im);
    }
    TRY(rt_liveness_make(&im.live, im.plan, &code->arena, err));
    TRY(rt_import_begin(&im));
    for (uint32_t i = 0; i < plan->input_count; i++) {
        if (import_input(&im, i) != ST_OK) {
            return error_prefix(err, "input %u: ", i);
        }
    }
    TRY(import_instrs(&im));
    return rt_import_end(&im);
}
