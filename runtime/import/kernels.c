/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/import/kernels.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/ops/op.h"

/*
 * Calls of a method, and views between them. Placing values and finding elided views looks at all
 * pairs, so this is what bounds the time that a file can take; real programs have some thousand.
 */
#define NODES_MAX 32768

#define ARGS_MAX 64
#define OUTS_MAX 16

/* What was last written to a range of planned memory. */
struct resident {
    uint32_t arena;
    uint64_t offset, bytes;
    enum dtype dtype;
    uint32_t value; /* in the graph */
};

struct import {
    const struct pte_plan *plan;
    struct hal_device *device;
    struct rt_graph *graph;
    uint32_t *current;          /* by plan value: the graph value that stands for it, 0: none yet */
    struct resident *residents; /* newest last */
    uint32_t resident_count;
    const struct rt_op *op; /* of the call being imported */
    struct error *err;
};

static enum status too_large(struct import *im)
{
    return error_set(im->err, ST_EXHAUSTED, "the method is too large");
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool is_row_major(const struct pte_tensor *t)
{
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        if (t->dim_order[i] != i) {
            return false;
        }
    }
    return true;
}

/* Copies a constant stored in its dim_order into row-major bytes. */
static void copy_row_major(const struct pte_tensor *t, uint8_t *to)
{
    size_t size = dtype_bytes(t->dtype), stride = size;
    size_t strides[SHAPE_RANK_MAX];
    int64_t index[SHAPE_RANK_MAX] = {0};
    for (int i = t->shape.rank - 1; i >= 0; i--) {
        strides[t->dim_order[i]] = stride;
        stride *= (size_t)t->shape.dims[t->dim_order[i]];
    }
    for (int64_t n = shape_numel(&t->shape); n > 0; n--, to += size) {
        size_t offset = 0;
        for (uint8_t i = 0; i < t->shape.rank; i++) {
            offset += (size_t)index[i] * strides[i];
        }
        memcpy(to, t->bytes.ptr + offset, size);
        for (int i = t->shape.rank - 1; i >= 0 && ++index[i] == t->shape.dims[i]; i--) {
            index[i] = 0;
        }
    }
}

/* In place when the bytes can be used as they are, else a row-major, aligned copy. */
static enum status import_constant(struct import *im, const struct pte_tensor *t,
                                   uint32_t *out_value)
{
    uint32_t value = rt_graph_constant(im->graph, t->dtype, &t->shape, t->bytes);
    TRY(rt_graph_check(im->graph, im->err));
    *out_value = value;
    bool is_aligned = (uintptr_t)t->bytes.ptr % 16 == 0;
    if (t->byte_count == 0 || (is_row_major(t) && is_aligned)) {
        return ST_OK;
    }
    struct hal_buffer *buffer;
    TRY(hal_buffer_new(im->device, t->byte_count, &buffer, im->err));
    if (is_row_major(t)) {
        memcpy(hal_buffer_map(buffer), t->bytes.ptr, t->byte_count);
    } else {
        copy_row_major(t, hal_buffer_map(buffer));
    }
    rt_graph_set_constant(im->graph, value, buffer);
    return ST_OK;
}

/* A tensor that is to be written, with what the file says of its dims. */
static enum status declare_tensor(struct import *im, const struct pte_tensor *t,
                                  uint32_t *out_value)
{
    uint32_t value = rt_graph_tensor(im->graph, t->dtype, t->shape.rank, NULL);
    struct rt_dim *declared = arena_array(&im->graph->arena, t->shape.rank, sizeof(struct rt_dim));
    if (!declared || value == 0) {
        return too_large(im);
    }
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        declared[i] = rt_dim_of(t->shape.dims[i]);
    }
    im->graph->values[value].declared = declared;
    im->graph->values[value].is_static = t->dynamism == PTE_STATIC;
    *out_value = value;
    return ST_OK;
}

/* Notes that |value| now lies where the plan put |t|. */
static void settle(struct import *im, const struct pte_tensor *t, uint32_t value)
{
    if (t->storage == PTE_PLANNED) {
        im->residents[im->resident_count++] =
            (struct resident){t->arena, t->offset, t->byte_count, t->dtype, value};
    }
}

static bool overlaps(const struct resident *r, const struct pte_tensor *t)
{
    return r->arena == t->arena && r->offset < t->offset + t->byte_count &&
           t->offset < r->offset + r->bytes;
}

/*
 * A tensor nobody wrote under its own name: the newest one that overlaps its memory, if that is the
 * same range and type, seen with other dims. Exporters elide only static views.
 */
static enum status find_view(struct import *im, const struct pte_tensor *t, uint32_t *out_value)
{
    const struct resident *base = NULL;
    for (uint32_t i = im->resident_count; t->storage == PTE_PLANNED && !base && i-- > 0;) {
        base = overlaps(&im->residents[i], t) ? &im->residents[i] : NULL;
    }
    if (!base || base->offset != t->offset || base->bytes != t->byte_count ||
        base->dtype != t->dtype || t->dynamism != PTE_STATIC) {
        return error_set(im->err, ST_UNSUPPORTED,
                         "a tensor is read before anything wrote it: mutable state is not "
                         "supported");
    }
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d < t->shape.rank; d++) {
        dims[d] = rt_dim_of(t->shape.dims[d]);
    }
    uint32_t args[] = {base->value, rt_graph_ints(im->graph, dims, t->shape.rank)};
    uint32_t view = rt_graph_tensor(im->graph, t->dtype, t->shape.rank, dims);
    uint32_t node = rt_graph_node(im->graph, rt_op_find("view"), args, 2, &view, 1);
    TRY(rt_graph_check(im->graph, im->err));
    *out_value = view;
    return rt_graph_infer(im->graph, node, im->err);
}

static enum status import_tensor(struct import *im, const struct pte_tensor *t, uint32_t *out_value)
{
    if (t->storage != PTE_CONSTANT) {
        return find_view(im, t, out_value);
    }
    if (t->is_external) {
        return error_set(im->err, ST_UNSUPPORTED, "the constant '%s' lies in an external file",
                         t->name);
    }
    return import_constant(im, t, out_value);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A scalar, a tensor or a none: what lists are made of. Read once, then what was last written. */
static enum status use_single(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    uint32_t value = im->current[index];
    if (value == 0) {
        switch (v->kind) {
        case PTE_NULL:
            value = rt_graph_none(im->graph);
            break;
        case PTE_INT:
            value = rt_graph_int(im->graph, rt_dim_of(v->int_value));
            break;
        case PTE_BOOL:
            value = rt_graph_bool(im->graph, v->bool_value);
            break;
        case PTE_DOUBLE:
            value = rt_graph_float(im->graph, v->double_value);
            break;
        case PTE_STRING:
            value = rt_graph_string(im->graph, v->string);
            break;
        case PTE_TENSOR:
            TRY(import_tensor(im, v->tensor, &value));
            break;
        default:
            unreachable(); /* pte.h: lists do not nest */
        }
        im->current[index] = value;
    }
    *out_value = value;
    return rt_graph_check(im->graph, im->err);
}

static enum status use_ints(struct import *im, const struct pte_list *list, uint32_t *out_value)
{
    struct rt_dim *items = arena_array(&im->graph->arena, list->count, sizeof(*items));
    if (!items) {
        return too_large(im);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t item;
        TRY(use_single(im, list->values[i], &item));
        items[i] = im->graph->values[item].i;
    }
    *out_value = rt_graph_ints(im->graph, items, list->count);
    return rt_graph_check(im->graph, im->err);
}

static enum status use_tensors(struct import *im, const struct pte_list *list, uint32_t *out_value)
{
    uint32_t *items = arena_array(&im->graph->arena, list->count, sizeof(*items));
    if (!items) {
        return too_large(im);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->values[i] == PTE_NO_VALUE) {
            items[i] = rt_graph_none(im->graph);
        } else {
            TRY(use_single(im, list->values[i], &items[i]));
        }
    }
    *out_value = rt_graph_tensors(im->graph, items, list->count);
    return rt_graph_check(im->graph, im->err);
}

/* Lists are read anew for each use: their items may have been overwritten since the last one. */
static enum status use(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    switch (v->kind) {
    case PTE_INT_LIST:
        return use_ints(im, &v->list, out_value);
    case PTE_DOUBLE_LIST:
        *out_value = rt_graph_floats(im->graph, v->list.doubles, v->list.count);
        return rt_graph_check(im->graph, im->err);
    case PTE_BOOL_LIST:
        *out_value = rt_graph_bools(im->graph, v->list.bools, v->list.count);
        return rt_graph_check(im->graph, im->err);
    case PTE_TENSOR_LIST:
    case PTE_OPTIONAL_TENSOR_LIST:
        return use_tensors(im, &v->list, out_value);
    default:
        return use_single(im, index, out_value);
    }
}

/* ---- kernel calls ---------------------------------------------------------------------------- */

/* What each letter of a signature takes, as a set of kinds. */
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

static enum status check_kind(struct import *im, uint32_t position, char letter, bool is_optional,
                              uint32_t value)
{
    const struct rt_value *v = &im->graph->values[value];
    bool fits = v->kind == RT_NONE ? is_optional : kinds_of(letter) >> v->kind & 1;
    for (uint32_t i = 0; letter == 'X' && v->kind == RT_TENSORS && i < v->count; i++) {
        fits &= im->graph->values[v->values[i]].kind == RT_TENSOR;
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
        return error_set(im->err, ST_INVALID, "the output, value %u, is a constant", index);
    }
    return declare_tensor(im, v->tensor, out_value);
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
        return too_large(im);
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

static void publish_single(struct import *im, uint32_t index, uint32_t value)
{
    const struct pte_value *v = &im->plan->values[index];
    im->current[index] = value;
    if (v->kind == PTE_TENSOR) {
        settle(im, v->tensor, value);
    }
}

/* From here on, reading plan value |index| is reading |value|. */
static void publish(struct import *im, uint32_t index, uint32_t value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind != PTE_TENSOR_LIST) {
        publish_single(im, index, value);
        return;
    }
    for (uint32_t i = 0; i < v->list.count; i++) {
        publish_single(im, v->list.values[i], im->graph->values[value].values[i]);
    }
}

static enum status wrong_count(struct import *im, const struct pte_instr *instr)
{
    return error_set(im->err, ST_INVALID, "%u arguments, the signature is %s", instr->arg_count,
                     im->op->args);
}

static enum status import_args(struct import *im, const struct pte_instr *instr, uint32_t *args,
                               uint32_t *out_count)
{
    uint32_t count = 0;
    for (const char *letter = im->op->args; *letter != '>'; letter++, count++) {
        bool is_optional = letter[1] == '?';
        must(count < ARGS_MAX);
        if (count == instr->arg_count) {
            return wrong_count(im, instr);
        }
        TRY(use(im, instr->args[count], &args[count]));
        TRY(check_kind(im, count, *letter, is_optional, args[count]));
        letter += is_optional;
    }
    *out_count = count;
    return ST_OK;
}

/*
 * A call's arguments are the schema's, then the outs, then what the operator returns: nothing for
 * primitive operators, else the outs once more as one value.
 */
static enum status import_call(struct import *im, const struct pte_instr *instr)
{
    const char *letters = strchr(im->op->args, '>') + 1;
    uint32_t out_count = (uint32_t)strlen(letters), arg_count = 0;
    uint32_t args[ARGS_MAX], outs[OUTS_MAX];
    must(out_count <= OUTS_MAX);
    TRY(import_args(im, instr, args, &arg_count));
    uint32_t given = instr->arg_count - arg_count;
    if (given != out_count && given != out_count + 1) {
        return wrong_count(im, instr);
    }
    for (uint32_t i = 0; i < out_count; i++) {
        TRY(declare(im, letters[i], instr->args[arg_count + i], &outs[i]));
    }
    uint32_t node = rt_graph_node(im->graph, im->op, args, arg_count, outs, out_count);
    TRY(rt_graph_check(im->graph, im->err));
    im->graph->nodes[node].origin = (uint32_t)(instr - im->plan->instrs);
    TRY(rt_graph_infer(im->graph, node, im->err));
    for (uint32_t i = 0; i < out_count; i++) {
        publish(im, instr->args[arg_count + i], outs[i]);
    }
    return ST_OK;
}

static enum status import_kernel(struct import *im, const struct pte_instr *instr)
{
    const char *kernel = im->plan->operators[instr->index];
    im->op = rt_op_find_kernel(span_str(kernel));
    if (!im->op) {
        return error_set(im->err, ST_UNSUPPORTED, "operator '%s' is not supported", kernel);
    }
    enum status status = import_call(im, instr);
    return status == ST_OK ? ST_OK : error_prefix(im->err, "%s, ", kernel);
}

static enum status import_instr(struct import *im, const struct pte_instr *instr)
{
    switch (instr->kind) {
    case PTE_KERNEL:
        return import_kernel(im, instr);
    case PTE_FREE:
        return ST_OK; /* memory has no meaning here */
    case PTE_DELEGATE:
        return error_set(im->err, ST_UNSUPPORTED, "delegate '%s' is not supported",
                         im->plan->delegates[instr->index].id);
    case PTE_MOVE:
    case PTE_JUMP_FALSE:
        return error_set(im->err, ST_UNSUPPORTED, "control flow is not supported");
    }
    unreachable();
}

/* ---- the method ------------------------------------------------------------------------------ */

/*
 * Every dim of a dynamic input may be smaller than its bound as far as the file says; inference
 * finds those that may not. A bound of 1 is never meant to vary.
 */
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

static enum status import_input(struct import *im, uint32_t index, uint32_t *out_value)
{
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind >= PTE_INT_LIST) {
        return error_set(im->err, ST_UNSUPPORTED, "a list");
    }
    if (v->kind != PTE_TENSOR || im->current[index] != 0) {
        return use_single(im, index, out_value);
    }
    if (v->tensor->storage == PTE_CONSTANT) {
        return error_set(im->err, ST_UNSUPPORTED, "a constant");
    }
    if (v->tensor->dynamism == PTE_DYNAMIC_UNBOUND) {
        return error_set(im->err, ST_UNSUPPORTED, "a tensor without a bound");
    }
    *out_value = declare_input(im, v->tensor);
    publish_single(im, index, *out_value);
    return rt_graph_check(im->graph, im->err);
}

static enum status import_output(struct import *im, uint32_t index, uint32_t *out_value)
{
    if (im->plan->values[index].kind >= PTE_INT_LIST) {
        return error_set(im->err, ST_UNSUPPORTED, "a list");
    }
    return use_single(im, index, out_value);
}

/* Every instruction settles at most its own arguments and the items of their lists. */
static size_t residents_max(const struct pte_plan *plan)
{
    size_t count = plan->input_count;
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        for (uint32_t j = 0; j < plan->instrs[i].arg_count; j++) {
            const struct pte_value *v = &plan->values[plan->instrs[i].args[j]];
            count += v->kind == PTE_TENSOR_LIST ? v->list.count : 1;
        }
    }
    return count;
}

enum status rt_import_kernels(const struct pte_plan *plan, struct hal_device *device,
                              struct rt_graph *graph, struct error *err)
{
    struct arena *arena = &graph->arena;
    struct import im = {
        .plan = plan,
        .device = device,
        .graph = graph,
        .current = arena_array(arena, plan->value_count, sizeof(*im.current)),
        .residents = arena_array(arena, residents_max(plan), sizeof(*im.residents)),
        .err = err,
    };
    graph->inputs = arena_array(arena, plan->input_count, sizeof(*graph->inputs));
    graph->outputs = arena_array(arena, plan->output_count, sizeof(*graph->outputs));
    if (!im.current || !im.residents || !graph->inputs || !graph->outputs) {
        return too_large(&im);
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        if (import_input(&im, plan->inputs[i], &graph->inputs[i]) != ST_OK) {
            return error_prefix(err, "input %u: ", i);
        }
        graph->input_count = i + 1;
    }
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        if (import_instr(&im, &plan->instrs[i]) != ST_OK) {
            return error_prefix(err, "instruction %u: ", i);
        }
        if (graph->node_count > NODES_MAX) {
            return error_set(err, ST_TOO_LARGE, "more than %d calls of kernels", NODES_MAX);
        }
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (import_output(&im, plan->outputs[i], &graph->outputs[i]) != ST_OK) {
            return error_prefix(err, "output %u: ", i);
        }
        graph->output_count = i + 1;
    }
    return ST_OK;
}
