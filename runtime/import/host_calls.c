/* SPDX-License-Identifier: MIT */
/* Calls that the host executes as steps after the current block: scalars, sizes, reads, rows. */
#include "config.h"

#include "runtime/import/import_priv.h"
#include "runtime/ops/op.h"

enum status rt_import_look_at(struct import *im, uint32_t index, struct rt_import_operand *o)
{
    const struct rt_import_slot *slot = &im->slots[index];
    const struct pte_value *v = &im->plan->values[index];
    struct rt_register file = rt_import_describe_register(v);
    *o = (struct rt_import_operand){.is_in_graph = slot->current != 0, .kind = file.kind};
    if (slot->current) {
        const struct rt_value *value = &im->graph->values[slot->current];
        o->kind = value->kind;
        o->is_constant = value->kind != RT_TENSOR && rt_value_is_fixed(value);
        o->scalar = value->kind == RT_FLOAT  ? rt_scalar_of_double(value->f)
                    : value->kind == RT_BOOL ? (struct rt_scalar){RT_BOOL, value->b}
                                             : (struct rt_scalar){value->kind, value->i.value};
    } else if (slot->place != RT_PLACE_NONE || (im->has_branched && im->live.is_written[index])) {
        o->kind = slot->reg ? im->code->registers[slot->reg - 1].kind : file.kind;
    } else {
        o->is_constant = true;
        o->scalar = file.initial;
    }
    if (o->kind != RT_INT && o->kind != RT_FLOAT && o->kind != RT_BOOL) {
        return error_set(im->err, ST_INVALID, "an operand is %s, expected a number",
                         pte_kind_name(v->kind));
    }
    return ST_OK;
}

/* Can dim arithmetic express the call, and is at least one operand computed in the graph? */
static bool suits_graph(const struct import *im, enum rt_scalar_op op,
                        const struct pte_instr *instr, const struct rt_import_operand *operands,
                        uint32_t count)
{
    bool has_graph = false;
    if (!rt_op_find_kernel(span_str(rt_scalar_name(op)))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        has_graph |= operands[i].is_in_graph && !operands[i].is_constant;
        if (operands[i].kind != RT_INT || im->slots[instr->args[i]].place == RT_PLACE_PENDING) {
            return false;
        }
    }
    bool divides = op == RT_SCALAR_FLOORDIV || op == RT_SCALAR_FLOORDIV_INT ||
                   op == RT_SCALAR_MOD || op == RT_SCALAR_MOD_INT;
    for (uint32_t i = 0; has_graph && divides && i < count; i++) {
        int64_t lo = operands[i].is_constant ? operands[i].scalar.number : INT64_MIN;
        uint32_t current = im->slots[instr->args[i]].current;
        if (!operands[i].is_constant && current) {
            lo = rt_dim_lo(&im->graph->dims, im->graph->values[current].i);
        }
        has_graph &= lo >= (i == 1 && operands[i].is_constant ? 1 : 0);
    }
    return has_graph;
}

static enum status publish_constant(struct import *im, uint32_t index, struct rt_scalar scalar)
{
    struct rt_graph *graph = im->graph;
    uint32_t value = scalar.kind == RT_INT    ? rt_graph_int(graph, rt_dim_of(scalar.number))
                     : scalar.kind == RT_BOOL ? rt_graph_bool(graph, scalar.number != 0)
                                              : rt_graph_float(graph, rt_scalar_to_double(scalar));
    TRY(rt_graph_check(graph, im->err));
    return rt_import_publish(im, index, value);
}

static enum status check_scalar_target(struct import *im, uint32_t index)
{
    enum pte_kind kind = im->plan->values[index].kind;
    if (kind != PTE_INT && kind != PTE_DOUBLE && kind != PTE_BOOL && kind != PTE_NULL) {
        return error_set(im->err, ST_INVALID, "the output is %s, expected a number",
                         pte_kind_name(kind));
    }
    return ST_OK;
}

static enum status import_scalar(struct import *im, enum rt_scalar_op op,
                                 const struct pte_instr *instr, bool *out_is_done)
{
    uint32_t count = rt_scalar_arg_count(op), target = instr->args[count], regs[3] = {0};
    struct rt_import_operand operands[3] = {0};
    struct rt_scalar scalars[3], result;
    enum rt_kind kinds[3], kind;
    bool is_constant = true;
    TRY(check_scalar_target(im, target));
    for (uint32_t i = 0; i < count; i++) {
        TRY(rt_import_look_at(im, instr->args[i], &operands[i]));
        is_constant &= operands[i].is_constant;
        scalars[i] = operands[i].scalar;
        kinds[i] = operands[i].kind;
    }
    TRY(rt_scalar_kind(op, kinds, &kind, im->err));
    *out_is_done = is_constant || !suits_graph(im, op, instr, operands, count);
    if (!*out_is_done) {
        return ST_OK;
    }
    if (is_constant) {
        TRY(rt_import_settle_value(im, target, true));
        TRY(rt_scalar_apply(op, scalars, &result, im->err));
        return publish_constant(im, target, result);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(rt_import_capture(im, instr->args[i], &regs[i]));
    }
    struct rt_step step = {
        .kind = RT_STEP_SCALAR, .op = (uint8_t)op, .a = regs[0], .b = regs[1], .c = regs[2]};
    TRY(rt_import_give_pending(im, target, kind, &step.target));
    return rt_import_enqueue(im, step);
}

/* Sizes of tensors in the graph become expressions; other sizes are read from the register. */
static enum status import_size(struct import *im, const struct pte_instr *instr, bool is_numel,
                               bool *out_is_done)
{
    uint32_t tensor = instr->args[0], target = instr->args[is_numel ? 1 : 2];
    const struct pte_value *v = &im->plan->values[tensor];
    const struct rt_import_slot *slot = &im->slots[tensor];
    struct rt_step step = {.kind = RT_STEP_SIZE, .op = RT_STEP_NUMEL};
    struct rt_import_operand dim;
    *out_is_done = v->kind == PTE_TENSOR && slot->current == 0 &&
                   (slot->place == RT_PLACE_REGISTER || slot->place == RT_PLACE_PENDING);
    if (!*out_is_done) {
        return ST_OK;
    }
    TRY(check_scalar_target(im, target));
    if (!is_numel) {
        int64_t rank = v->tensor->shape.rank;
        TRY(rt_import_look_at(im, instr->args[1], &dim));
        int64_t d = dim.scalar.number + (dim.scalar.number < 0 ? rank : 0);
        if (!dim.is_constant || dim.kind != RT_INT || d < 0 || d >= rank) {
            return error_set(im->err, ST_INVALID, "a tensor of rank %d has no such dim", (int)rank);
        }
        step.op = (uint8_t)d;
    }
    TRY(rt_import_capture(im, tensor, &step.a));
    TRY(rt_import_give_pending(im, target, RT_INT, &step.target));
    return rt_import_enqueue(im, step);
}

static enum status import_read(struct import *im, const struct pte_instr *instr)
{
    const struct pte_value *v = &im->plan->values[instr->args[0]];
    struct rt_step step = {.kind = RT_STEP_READ};
    if (v->kind != PTE_TENSOR) {
        return error_set(im->err, ST_INVALID, "argument 0 is %s, expected a tensor",
                         pte_kind_name(v->kind));
    }
    enum dtype_kind of = dtype_infos[v->tensor->dtype].kind;
    if (of == DTYPE_COMPLEX) {
        return error_set(im->err, ST_UNSUPPORTED, "cannot read a complex number on the host");
    }
    enum rt_kind kind = of == DTYPE_FLOAT ? RT_FLOAT : of == DTYPE_BOOL ? RT_BOOL : RT_INT;
    TRY(check_scalar_target(im, instr->args[1]));
    TRY(rt_import_capture(im, instr->args[0], &step.a));
    TRY(rt_import_give_pending(im, instr->args[1], kind, &step.target));
    return rt_import_enqueue(im, step);
}

static enum status import_copy_index(struct import *im, const struct pte_instr *instr)
{
    const struct pte_value *to = &im->plan->values[instr->args[0]];
    const struct pte_value *from = &im->plan->values[instr->args[1]];
    struct rt_step step = {.kind = RT_STEP_COPY_INDEX};
    struct rt_import_operand index;
    if (to->kind != PTE_TENSOR || from->kind != PTE_TENSOR ||
        to->tensor->dtype != from->tensor->dtype || to->tensor->storage == PTE_CONSTANT ||
        to->tensor->shape.rank != from->tensor->shape.rank + 1) {
        return error_set(im->err, ST_INVALID, "the source does not fit a row of the target");
    }
    TRY(rt_import_look_at(im, instr->args[2], &index));
    if (index.kind != RT_INT) {
        return error_set(im->err, ST_INVALID, "the index is not an int");
    }
    if (im->slots[instr->args[0]].place == RT_PLACE_GRAPH) {
        TRY(rt_import_end_block(im,
                                im->position)); /* the target's content must be in its register */
    }
    TRY(rt_import_capture(im, instr->args[1], &step.b));
    TRY(rt_import_capture(im, instr->args[2], &step.c));
    TRY(rt_import_give_pending(im, instr->args[0], RT_TENSOR, &step.target));
    rt_import_settle(im, instr->args[0]);
    return rt_import_enqueue(im, step);
}

static enum status check_count(struct import *im, const struct pte_instr *instr, uint32_t count)
{
    if (instr->arg_count != count) {
        return error_set(im->err, ST_INVALID, "got %u arguments, expected %u", instr->arg_count,
                         count);
    }
    return ST_OK;
}

/* Calls that the host always executes, besides scalar arithmetic (runtime/code/scalar.def). */
static const struct host_call {
    const char *kernel;
    uint32_t arg_count;
    enum status (*import)(struct import *im, const struct pte_instr *instr);
} host_calls[] = {
    {"aten::_local_scalar_dense", 2, import_read},
    {"executorch_prim::et_copy_index.tensor", 3, import_copy_index},
};

#define HOST_CALL_COUNT (sizeof(host_calls) / sizeof(host_calls[0]))

void rt_import_host_call_each(void (*fn)(const char *kernel, void *arg), void *arg)
{
    for (int op = 0; op < RT_SCALAR_COUNT; op++) {
        fn(rt_scalar_name((enum rt_scalar_op)op), arg);
    }
    for (size_t i = 0; i < HOST_CALL_COUNT; i++) {
        fn(host_calls[i].kernel, arg);
    }
}

enum status rt_import_host_call(struct import *im, const struct pte_instr *instr, bool *out_is_done)
{
    struct span kernel = span_str(im->plan->operators[instr->index]);
    enum rt_scalar_op op = rt_scalar_find(kernel);
    *out_is_done = true;
    if (op != RT_SCALAR_COUNT) {
        TRY(check_count(im, instr, rt_scalar_arg_count(op) + 1));
        return import_scalar(im, op, instr, out_is_done);
    }
    for (size_t i = 0; i < HOST_CALL_COUNT; i++) {
        if (span_is(kernel, host_calls[i].kernel)) {
            TRY(check_count(im, instr, host_calls[i].arg_count));
            return host_calls[i].import(im, instr);
        }
    }
    *out_is_done = false;
    bool is_numel = span_is(kernel, "aten::sym_numel");
    if (is_numel || span_is(kernel, "aten::sym_size.int")) {
        TRY(check_count(im, instr, is_numel ? 2 : 3));
        return import_size(im, instr, is_numel, out_is_done);
    }
    return ST_OK;
}
