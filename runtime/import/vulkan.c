/* SPDX-License-Identifier: MIT */
/* The import of one Vulkan delegate call: its arguments, its operators in order, its results. */
#include "config.h"

#include "runtime/import/vulkan.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "runtime/ops/apply.h"

/* Decoded tables take about ten times the bytes of their payload. */
#define DECODED_BYTES_MAX (64u << 20)

/* ---- values as an operator here wants them --------------------------------------------------- */

static const char *const kind_names[VK_KIND_COUNT] = {
    [VK_NONE] = "nothing",    [VK_NULL] = "null",
    [VK_INT] = "an int",      [VK_DOUBLE] = "a double",
    [VK_BOOL] = "a bool",     [VK_TENSOR] = "a tensor",
    [VK_INT_LIST] = "ints",   [VK_DOUBLE_LIST] = "doubles",
    [VK_BOOL_LIST] = "bools", [VK_VALUE_LIST] = "a list of values",
    [VK_STRING] = "a string", [VK_SYMINT] = "a symbolic int",
};

const struct rt_vulkan_value *rt_vulkan_arg(const struct rt_vulkan_import *v, uint32_t index)
{
    must(index < v->current->arg_count);
    return &v->payload.values[v->current->args[index]];
}

bool rt_vulkan_is_null(const struct rt_vulkan_import *v, uint32_t index)
{
    return rt_vulkan_arg(v, index)->kind == VK_NULL;
}

static enum status unfit(struct rt_vulkan_import *v, uint32_t index, const char *expected)
{
    return error_set(v->err, ST_UNSUPPORTED, "argument %" PRIu32 " is %s, expected %s", index,
                     kind_names[rt_vulkan_arg(v, index)->kind], expected);
}

enum dtype rt_vulkan_dtype(enum dtype dtype)
{
    return dtype == DT_F16 ? DT_F32 : dtype;
}

enum status rt_vulkan_convert(struct rt_vulkan_import *v, uint32_t value, enum dtype dtype,
                              uint32_t *out_value)
{
    return rt_op_convert(v->graph, value, dtype, out_value, v->err);
}

static enum status use_tensor(struct rt_vulkan_import *v, uint32_t number, uint32_t *out_value)
{
    struct rt_vulkan_value *value = &v->payload.values[number];
    if (value->kind != VK_TENSOR) {
        return error_set(v->err, ST_UNSUPPORTED, "value %" PRIu32 " is %s, expected a tensor",
                         number, kind_names[value->kind]);
    }
    if (value->graph == 0 && value->is_kept) {
        TRY(rt_delegate_state(v->call, number, value->dtype, &value->shape, value->bytes,
                              &value->graph));
        TRY(rt_vulkan_convert(v, value->graph, rt_vulkan_dtype(value->dtype), &value->graph));
    } else if (value->graph == 0 && value->is_constant) {
        TRY(rt_delegate_constant(v->call, value->dtype, &value->shape, value->bytes,
                                 &value->graph));
        TRY(rt_vulkan_convert(v, value->graph, rt_vulkan_dtype(value->dtype), &value->graph));
    }
    if (value->graph == 0) {
        return error_set(v->err, ST_UNSUPPORTED, "value %" PRIu32 " is read before it is computed",
                         number);
    }
    *out_value = value->graph;
    return ST_OK;
}

enum status rt_vulkan_tensor(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    return use_tensor(v, v->current->args[index], out_value);
}

/* An int: a constant, or an expression of dims. */
static enum status use_int(struct rt_vulkan_import *v, uint32_t number, struct rt_dim *out_int)
{
    const struct rt_vulkan_value *value = &v->payload.values[number];
    if (value->kind == VK_INT) {
        *out_int = rt_dim_of(value->i);
        return ST_OK;
    }
    if (value->kind != VK_SYMINT || value->graph == 0) {
        return error_set(v->err, ST_UNSUPPORTED, "value %" PRIu32 " is %s, expected an int", number,
                         value->kind == VK_SYMINT ? "not computed yet" : kind_names[value->kind]);
    }
    if (v->graph->values[value->graph].kind == RT_TENSOR) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "value %" PRIu32
                         " is an int read from a tensor, expected one that is known from shapes",
                         number);
    }
    *out_int = v->graph->values[value->graph].i;
    return ST_OK;
}

enum status rt_vulkan_number(struct rt_vulkan_import *v, uint32_t index, double *out_number)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    switch (value->kind) {
    case VK_INT:
        *out_number = (double)value->i;
        return ST_OK;
    case VK_DOUBLE:
        *out_number = value->f;
        return ST_OK;
    case VK_BOOL:
        *out_number = value->b;
        return ST_OK;
    default:
        return unfit(v, index, "a number");
    }
}

enum status rt_vulkan_whole(struct rt_vulkan_import *v, uint32_t index, int64_t *out_whole)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    double number;
    if (value->kind == VK_INT) {
        *out_whole = value->i;
        return ST_OK;
    }
    TRY(rt_vulkan_number(v, index, &number));
    if (!(fabs(number) < 0x1p53) || number != rint(number)) {
        return unfit(v, index, "an int");
    }
    *out_whole = (int64_t)number;
    return ST_OK;
}

static enum status int_argument(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    struct rt_dim dim;
    int64_t whole;
    if (rt_vulkan_arg(v, index)->kind == VK_SYMINT) {
        TRY(use_int(v, v->current->args[index], &dim));
        *out_value = rt_graph_int(v->graph, dim);
        return ST_OK;
    }
    TRY(rt_vulkan_whole(v, index, &whole));
    *out_value = rt_graph_int(v->graph, rt_dim_of(whole));
    return ST_OK;
}

/* Exporters store 1 and 1.0 as one value, of the kind that came first: the kind may be wrong. */
static enum status number_argument(struct rt_vulkan_import *v, uint32_t index, char letter,
                                   uint32_t *out_value)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    double number;
    if (value->kind == VK_INT || value->kind == VK_SYMINT) {
        return int_argument(v, index, out_value);
    }
    TRY(rt_vulkan_number(v, index, &number));
    *out_value = letter == 'S' && value->kind == VK_BOOL ? rt_graph_bool(v->graph, value->b)
                                                         : rt_graph_float(v->graph, number);
    return ST_OK;
}

static enum status bool_argument(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    double number;
    TRY(rt_vulkan_number(v, index, &number));
    *out_value = rt_graph_bool(v->graph, number != 0);
    return ST_OK;
}

/* An empty list may stand for a list of any kind. */
static bool is_empty_list(const struct rt_vulkan_value *value)
{
    return value->kind >= VK_INT_LIST && value->kind <= VK_VALUE_LIST && value->count == 0;
}

static enum status ints_argument(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    if (value->kind != VK_INT_LIST && value->kind != VK_VALUE_LIST && !is_empty_list(value)) {
        return unfit(v, index, "ints");
    }
    struct rt_dim *items = arena_array(&v->graph->arena, value->count, sizeof(*items));
    if (!items) {
        return arena_fail(&v->graph->arena, "the method", v->err);
    }
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == VK_INT_LIST) {
            items[i] = rt_dim_of(value->ints[i]);
        } else {
            TRY(use_int(v, value->values[i], &items[i]));
        }
    }
    *out_value = rt_graph_ints(v->graph, items, value->count);
    return ST_OK;
}

static enum status doubles_argument(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    if (value->kind != VK_DOUBLE_LIST && value->kind != VK_INT_LIST && !is_empty_list(value)) {
        return unfit(v, index, "doubles");
    }
    double *items = arena_array(&v->graph->arena, value->count, sizeof(*items));
    if (!items) {
        return arena_fail(&v->graph->arena, "the method", v->err);
    }
    for (uint32_t i = 0; i < value->count; i++) {
        items[i] = value->kind == VK_INT_LIST ? (double)value->ints[i] : value->floats[i];
    }
    *out_value = rt_graph_floats(v->graph, items, value->count);
    return ST_OK;
}

static enum status tensors_argument(struct rt_vulkan_import *v, uint32_t index, bool or_none,
                                    uint32_t *out_value)
{
    const struct rt_vulkan_value *value = rt_vulkan_arg(v, index);
    if (value->kind != VK_VALUE_LIST) {
        return unfit(v, index, "tensors");
    }
    uint32_t *items = arena_array(&v->graph->arena, value->count, sizeof(*items));
    if (!items) {
        return arena_fail(&v->graph->arena, "the method", v->err);
    }
    for (uint32_t i = 0; i < value->count; i++) {
        if (or_none && v->payload.values[value->values[i]].kind == VK_NULL) {
            items[i] = rt_graph_none(v->graph);
        } else {
            TRY(use_tensor(v, value->values[i], &items[i]));
        }
    }
    *out_value = rt_graph_tensors(v->graph, items, value->count);
    return ST_OK;
}

enum status rt_vulkan_argument(struct rt_vulkan_import *v, uint32_t index, char letter,
                               bool is_optional, uint32_t *out_value)
{
    if (is_optional && rt_vulkan_is_null(v, index)) {
        *out_value = rt_graph_none(v->graph);
        return ST_OK;
    }
    switch (letter) {
    case 'T':
        return rt_vulkan_tensor(v, index, out_value);
    case 'I':
        return int_argument(v, index, out_value);
    case 'F':
    case 'S':
        return number_argument(v, index, letter, out_value);
    case 'B':
        return bool_argument(v, index, out_value);
    case 'L':
        return ints_argument(v, index, out_value);
    case 'D':
        return doubles_argument(v, index, out_value);
    case 'X':
    case 'Y':
        return tensors_argument(v, index, letter == 'Y', out_value);
    case 'Z':
        if (rt_vulkan_arg(v, index)->kind != VK_STRING) {
            return unfit(v, index, "a string");
        }
        *out_value = rt_graph_string(v->graph, rt_vulkan_arg(v, index)->bytes);
        return ST_OK;
    default:
        unreachable(); /* no signature has other letters */
    }
}

/* ---- building -------------------------------------------------------------------------------- */

enum status rt_vulkan_apply(struct rt_vulkan_import *v, const struct rt_op *op,
                            const uint32_t *args, uint32_t arg_count, enum dtype dtype,
                            uint32_t *out_value)
{
    TRY(rt_graph_check(v->graph, v->err));
    return rt_op_apply(v->graph, op, args, arg_count, dtype, out_value, v->err);
}

enum status rt_vulkan_front(struct rt_vulkan_import *v, uint32_t value, int64_t dim, int64_t count,
                            uint32_t *out_value)
{
    const struct rt_value *tensor = &v->graph->values[value];
    if (dim >= tensor->rank) {
        return error_set(v->err, ST_UNSUPPORTED, "a tensor of rank %u, expected at least %" PRId64,
                         tensor->rank, dim + 1);
    }
    if (rt_dim_is(tensor->dims[dim], count)) {
        *out_value = value;
        return ST_OK;
    }
    uint32_t args[] = {
        value, rt_graph_int(v->graph, rt_dim_of(dim)), rt_graph_int(v->graph, rt_dim_of(0)),
        rt_graph_int(v->graph, rt_dim_of(count)), rt_graph_int(v->graph, rt_dim_of(1))};
    return rt_vulkan_apply(v, RT_OP(slice), args, 5, tensor->dtype, out_value);
}

static uint32_t result_number(const struct rt_vulkan_import *v, uint32_t item)
{
    uint32_t last = v->current->args[v->current->arg_count - 1];
    const struct rt_vulkan_value *value = &v->payload.values[last];
    if (value->kind != VK_VALUE_LIST) {
        return item == 0 ? last : UINT32_MAX;
    }
    return item < value->count ? value->values[item] : UINT32_MAX;
}

const struct rt_vulkan_value *rt_vulkan_result(const struct rt_vulkan_import *v, uint32_t item)
{
    uint32_t number = result_number(v, item);
    return number == UINT32_MAX ? NULL : &v->payload.values[number];
}

enum status rt_vulkan_keep(struct rt_vulkan_import *v, uint32_t number, uint32_t value)
{
    struct rt_vulkan_value *changed = &v->payload.values[number];
    uint32_t before, stored;
    if (changed->buffer != 0) {
        uint32_t buffer = changed->buffer - 1;
        TRY(use_tensor(v, buffer, &before));
        if (!v->payload.values[buffer].is_kept ||
            !rt_value_same_dims(&v->graph->values[before], &v->graph->values[value])) {
            return error_set(v->err, ST_UNSUPPORTED,
                             "value %" PRIu32 " gets a content with other dims than its buffer",
                             number);
        }
        TRY(rt_vulkan_convert(v, value, v->payload.values[buffer].dtype, &stored));
        rt_delegate_set_state(v->call, buffer, stored);
    }
    changed->graph = value;
    return ST_OK;
}

/* Is the int stored in a tensor of rank 0? */
static bool is_content(const struct rt_value *value)
{
    return value->kind == RT_TENSOR && value->rank == 0 && value->dtype == DT_I64;
}

/* Does the result replace the content of one of the delegate's own buffers? */
static bool changes_buffer(const struct rt_vulkan_import *v, const struct rt_vulkan_value *result)
{
    return result->buffer != 0 && v->payload.values[result->buffer - 1].is_kept &&
           (result->is_constant || result->graph != 0);
}

enum status rt_vulkan_define(struct rt_vulkan_import *v, uint32_t item, uint32_t value)
{
    uint32_t number = result_number(v, item);
    if (number == UINT32_MAX) {
        return error_set(v->err, ST_UNSUPPORTED, "the call has no value for result %" PRIu32, item);
    }
    struct rt_vulkan_value *result = &v->payload.values[number];
    const struct rt_value *made = &v->graph->values[value];
    bool changes = changes_buffer(v, result);
    bool is_free = changes || (result->graph == 0 && !result->is_constant);
    bool fits = result->kind == VK_TENSOR   ? made->kind == RT_TENSOR
                : result->kind == VK_SYMINT ? made->kind == RT_INT || is_content(made)
                                            : false;
    if (!fits || !is_free) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "cannot store result %" PRIu32 " in value %" PRIu32 ": it is %s", item,
                         number, result->graph ? "computed already" : kind_names[result->kind]);
    }
    if (result->kind == VK_TENSOR) {
        TRY(rt_vulkan_convert(v, value, rt_vulkan_dtype(result->dtype), &value));
    }
    if (changes) {
        return rt_vulkan_keep(v, number, value);
    }
    result->graph = value;
    return ST_OK;
}

/* ---- rows that are one operator -------------------------------------------------------------- */

static enum status make_args(struct rt_vulkan_import *v, const struct rt_vulkan_row *row,
                             const struct rt_op *op, uint32_t *args, uint32_t *out_count)
{
    const char *letter = op->args;
    uint32_t count = 0;
    for (const char *from = row->args; *from; from++, count++) {
        bool is_optional = letter[1] == '?';
        must(*letter != '>' && count < VK_ARGS_MAX);
        if (*from == '_') {
            args[count] = rt_graph_none(v->graph);
        } else {
            TRY(rt_vulkan_argument(v, (uint32_t)(*from - '0'), *letter, is_optional, &args[count]));
        }
        if (row->long_args >> count & 1 && v->graph->values[args[count]].kind == RT_TENSOR) {
            TRY(rt_vulkan_convert(v, args[count], DT_I64, &args[count]));
        }
        letter += is_optional ? 2 : 1;
    }
    must(*letter == '>');
    *out_count = count;
    return ST_OK;
}

static enum dtype out_dtype(const struct rt_vulkan_import *v, const struct rt_vulkan_row *row,
                            uint32_t item)
{
    const struct rt_vulkan_value *result = rt_vulkan_result(v, item);
    if (row->long_outs >> item & 1) {
        return DT_I64;
    }
    return result && result->kind == VK_TENSOR ? rt_vulkan_dtype(result->dtype) : DT_F32;
}

/* Makes the output values; the operator's shape function finds their dims: tensors, the tensors of
 * a list, or an int. */
static enum status declare_outs(struct rt_vulkan_import *v, const struct rt_vulkan_row *row,
                                const struct rt_op *op, uint32_t *outs, uint32_t *out_count)
{
    const char *letters = strchr(op->args, '>') + 1;
    const struct rt_vulkan_value *list = rt_vulkan_arg(v, row->arg_count);
    uint32_t count = 0;
    for (; letters[count]; count++) {
        if (letters[count] == 'I') {
            outs[count] = rt_graph_int(v->graph, rt_dim_of(0));
        } else if (letters[count] == 'T') {
            outs[count] = rt_graph_tensor(v->graph, out_dtype(v, row, count), 0, NULL);
        } else {
            must(letters[count] == 'X' && count == 0);
            uint32_t items = list->kind == VK_VALUE_LIST ? list->count : 0;
            uint32_t *tensors = arena_array(&v->graph->arena, items, sizeof(*tensors));
            if (!tensors) {
                return arena_fail(&v->graph->arena, "the method", v->err);
            }
            for (uint32_t i = 0; i < items; i++) {
                tensors[i] = rt_graph_tensor(v->graph, out_dtype(v, row, i), 0, NULL);
            }
            outs[count] = rt_graph_tensors(v->graph, tensors, items);
        }
    }
    *out_count = count;
    return rt_graph_check(v->graph, v->err);
}

static enum status define_all(struct rt_vulkan_import *v, const uint32_t *outs, uint32_t count)
{
    const struct rt_value *first = &v->graph->values[outs[0]];
    if (first->kind == RT_TENSORS) {
        for (uint32_t i = 0; i < first->count; i++) {
            TRY(rt_vulkan_define(v, i, v->graph->values[outs[0]].values[i]));
        }
        return ST_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || rt_vulkan_result(v, i)) { /* the payload may omit results that are not used */
            TRY(rt_vulkan_define(v, i, outs[i]));
        }
    }
    return ST_OK;
}

static enum status import_operator(struct rt_vulkan_import *v, const struct rt_vulkan_row *row)
{
    const struct rt_op *op = rt_op_known(row->op);
    uint32_t args[VK_ARGS_MAX], outs[VK_ARGS_MAX], arg_count, out_count = 0;
    TRY(make_args(v, row, op, args, &arg_count));
    TRY(declare_outs(v, row, op, outs, &out_count));
    uint32_t node = rt_graph_node(v->graph, op, args, arg_count, outs, out_count);
    TRY(rt_graph_check(v->graph, v->err));
    TRY(rt_graph_infer(v->graph, node, v->err));
    return define_all(v, outs, out_count);
}

static enum status import_call(struct rt_vulkan_import *v, const struct rt_vulkan_call *call)
{
    const struct rt_vulkan_row *row = rt_vulkan_row_find(call->name);
    v->current = call;
    v->graph->origin.handle = call->handle;
    if (!row) {
        return error_set(v->err, ST_UNSUPPORTED, "operator '%.*s' is not supported",
                         SPAN_FMT(call->name));
    }
    if (call->arg_count != row->arg_count + 1u) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "got %" PRIu32 " arguments, expected %u and a result", call->arg_count,
                         row->arg_count);
    }
    return row->import ? row->import(v) : import_operator(v, row);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* The call's inputs and outputs convert between types of one kind, such as 64 and 32 bits, or half
 * and single precision. */
static bool converts(enum dtype a, enum dtype b)
{
    const struct dtype_info *x = &dtype_infos[a], *y = &dtype_infos[b];
    return a == b || (x->kind == y->kind && (x->kind == DTYPE_FLOAT || x->kind == DTYPE_INT));
}

static enum status import_input(struct rt_vulkan_import *v, uint32_t index)
{
    struct rt_vulkan_value *value = &v->payload.values[v->payload.inputs[index]];
    uint32_t given;
    TRY(rt_delegate_input(v->call, index, &given));
    const struct rt_value *g = &v->graph->values[given];
    if (value->graph != 0 || value->is_constant) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "value %" PRIu32 " is a constant or already an input",
                         v->payload.inputs[index]);
    }
    if (value->kind == VK_SYMINT && g->kind == RT_INT) {
        value->graph = given;
        return ST_OK;
    }
    if (value->kind == VK_SYMINT && g->kind == RT_TENSOR) {
        uint32_t args[] = {given, rt_graph_ints(v->graph, NULL, 0)};
        TRY(rt_vulkan_apply(v, RT_OP(view), args, 2, g->dtype, &given));
        return rt_vulkan_convert(v, given, DT_I64, &value->graph);
    }
    if (value->kind != VK_TENSOR || g->kind != RT_TENSOR || !converts(g->dtype, value->dtype)) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "value %" PRIu32 " is %s, the program's input has another type",
                         v->payload.inputs[index], kind_names[value->kind]);
    }
    return rt_vulkan_convert(v, given, rt_vulkan_dtype(value->dtype), &value->graph);
}

static enum status export_output(struct rt_vulkan_import *v, uint32_t index)
{
    uint32_t number = v->payload.outputs[index], argument = v->payload.input_count + index, tensor;
    const struct rt_vulkan_value *value = &v->payload.values[number];
    const struct pte_value *declared = rt_delegate_arg(v->call, argument);
    if (value->kind == VK_SYMINT && declared->kind == PTE_INT && value->graph != 0 &&
        v->graph->values[value->graph].kind == RT_INT) {
        return rt_delegate_output(v->call, argument, value->graph);
    }
    TRY(use_tensor(v, number, &tensor));
    if (declared->kind != PTE_TENSOR ||
        !converts(v->graph->values[tensor].dtype, declared->tensor->dtype)) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "value %" PRIu32
                         " is a tensor of %s, the program's output has another type",
                         number, dtype_text(v->graph->values[tensor].dtype));
    }
    TRY(rt_vulkan_convert(v, tensor, declared->tensor->dtype, &tensor));
    return rt_delegate_output(v->call, argument, tensor);
}

static enum status import_all(struct rt_vulkan_import *v)
{
    rt_vulkan_find_buffers(&v->payload);
    for (uint32_t i = 0; i < v->payload.input_count; i++) {
        if (import_input(v, i) != ST_OK) {
            return error_prefix(v->err, "input %" PRIu32 ": ", i);
        }
    }
    for (uint32_t i = 0; i < v->payload.call_count; i++) {
        const struct rt_vulkan_call *call = &v->payload.calls[i];
        if (import_call(v, call) != ST_OK) {
            return error_prefix(v->err, "call %" PRIu32 ", %.*s: ", i, SPAN_FMT(call->name));
        }
    }
    for (uint32_t i = 0; i < v->payload.output_count; i++) {
        if (export_output(v, i) != ST_OK) {
            return error_prefix(v->err, "output %" PRIu32 ": ", i);
        }
    }
    return ST_OK;
}

enum status rt_import_vulkan(struct rt_delegate_call *call)
{
    struct rt_vulkan_import v = {.call = call, .graph = call->graph, .err = call->err};
    struct arena arena;
    arena_init(&arena, DECODED_BYTES_MAX);
    enum status status = rt_vulkan_read(call, &arena, &v.payload);
    status = status == ST_OK ? import_all(&v) : status;
    arena_fini(&arena);
    return status;
}
