/* SPDX-License-Identifier: MIT */
/*
 * Pointwise operators: each output element is a function of the elements in the same position. A
 * row names its loop, the arguments that are the loop's operands (tensors, broadcast, or numbers)
 * and parameters, and the rule for the type to compute in; everything else is shared.
 *
 * The type is PyTorch's: promoted over the operands, regardless of their rank, then converted to
 * the declared type of the output. uint64 can only be copied and converted.
 */
#include "config.h"

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/pointwise.h"

enum rule {
    PROMOTE, /* the operands' common type */
    KEEP,    /* the common type of the tensors among them */
    REAL,    /* the common type, integers as float32 */
    CONVERT, /* one operand, any type to any type */
    SAME,    /* one operand; the output's type is independent of it */
};

/* A string argument may select another loop. */
struct variant {
    const char *text; /* NULL: the row for an absent argument */
    enum rt_pointwise_op op;
    enum rule rule;
};

struct row {
    const char *operands; /* indices of the arguments, in the loop's order */
    enum rt_pointwise_op op;
    enum rule rule;
    const char *params;  /* indices of the arguments, or NULL */
    bool params_promote; /* parameters take part in the type */
    bool is_like;     /* the output's dims are argument 0's; otherwise they are broadcast from the
                         operands */
    bool is_declared; /* the output takes the dims that the file declares, if they are static */
    uint8_t variant_arg;
    const struct variant *variants; /* ends with a row that matches any text */
};

/* A row applied to a node's arguments. */
struct choice {
    enum rt_pointwise_op op;
    enum rule rule;
    enum dtype dtype; /* promoted */
    enum rt_class class;
};

typedef const struct rt_value *value_f(const void *from, uint32_t index);

static const struct rt_value *shape_value(const void *from, uint32_t index)
{
    return rt_shape_arg(from, index);
}

static const struct rt_value *emit_value(const void *from, uint32_t index)
{
    return rt_emit_value(from, index);
}

static uint32_t digit(char c)
{
    return (uint32_t)(c - '0');
}

static const char *params_of(const struct row *row)
{
    return row->params ? row->params : "";
}

/* ---- which loop, which type ---------------------------------------------------------------- */

/* A number does not widen a tensor's type of the same kind. */
static enum dtype promote_value(enum dtype dtype, const struct rt_value *value)
{
    enum dtype_kind kind = dtype_infos[dtype].kind;
    bool is_float = kind == DTYPE_FLOAT || kind == DTYPE_COMPLEX;

    switch (value->kind) {
    case RT_TENSOR:
        return rt_convert_promote(dtype, value->dtype);
    case RT_FLOAT:
        return is_float ? dtype : DT_F32;
    case RT_INT:
        return dtype == DT_BOOL ? DT_I64 : dtype;
    default:
        return dtype;
    }
}

/* Tensors come first: a number is compared with their common type. */
static enum dtype promote_args(const char *args, uint32_t but, enum dtype dtype, bool tensors,
                               value_f *value_at, const void *from)
{
    for (uint32_t i = 0; args[i] != '\0'; i++) {
        const struct rt_value *value = value_at(from, digit(args[i]));
        if ((but >> i & 1) == 0 && (value->kind == RT_TENSOR) == tensors) {
            dtype = promote_value(dtype, value);
        }
    }
    return dtype;
}

static void choose_variant(const struct row *row, struct choice *choice, value_f *value_at,
                           const void *from)
{
    const struct rt_value *text = value_at(from, row->variant_arg);

    for (const struct variant *v = row->variants; v->op != RT_PW_COUNT; v++) {
        if (v->text ? text->kind == RT_STRING && span_is(text->bytes, v->text)
                    : text->kind == RT_NONE) {
            choice->op = v->op;
            choice->rule = v->rule;
            return;
        }
    }
    choice->op = RT_PW_COUNT;
}

/* choice->op is RT_PW_COUNT if the row does not know the string argument. */
static struct choice choose(const struct row *row, value_f *value_at, const void *from)
{
    struct choice choice = {.op = row->op, .rule = row->rule};

    if (row->variants) {
        choose_variant(row, &choice, value_at, from);
        if (choice.op == RT_PW_COUNT) {
            return choice;
        }
    }
    uint32_t truths = rt_pointwise_infos[choice.op].truths;
    const char *more = row->params_promote ? params_of(row) : "";
    choice.dtype = promote_args(row->operands, truths, DT_BOOL, true, value_at, from);
    if (choice.rule != KEEP) {
        choice.dtype = promote_args(row->operands, truths, choice.dtype, false, value_at, from);
    }
    choice.dtype = promote_args(more, 0, choice.dtype, false, value_at, from);
    enum dtype_kind kind = dtype_infos[choice.dtype].kind;
    if (choice.rule == REAL && kind != DTYPE_FLOAT && kind != DTYPE_COMPLEX) {
        choice.dtype = DT_F32;
    }
    if (choice.op == RT_PW_conj && kind != DTYPE_COMPLEX) {
        choice.op = RT_PW_copy;
    }
    if (choice.op == RT_PW_bitwise_not && choice.dtype == DT_BOOL) {
        choice.op = RT_PW_logical_not;
    }
    choice.class = rt_convert_class(choice.dtype);
    if (rt_pointwise_infos[choice.op].truths == (1u << rt_pointwise_infos[choice.op].inputs) - 1) {
        choice.class = RT_CLASS_TRUTH;
    }
    return choice;
}

/* ---- shapes -------------------------------------------------------------------------------- */

static enum status find_dims(struct rt_shape_call *call, const struct row *row,
                             struct rt_dim dims[SHAPE_RANK_MAX], uint8_t *out_rank)
{
    *out_rank = 0;
    for (const char *arg = row->operands; *arg != '\0'; arg++) {
        const struct rt_value *value = rt_shape_arg(call, digit(*arg));
        struct rt_dim both[SHAPE_RANK_MAX];
        if (value->kind == RT_TENSOR) {
            TRY(rt_shape_need_dtype(call, digit(*arg), call->node->op->dtypes));
            TRY(rt_shape_broadcast(call, *out_rank, dims, value->rank, value->dims, both,
                                   out_rank));
            memcpy(dims, both, *out_rank * sizeof(*dims));
        }
    }
    return ST_OK;
}

/* The operands broadcast to argument 0 without enlarging it. */
static enum status set_out_like(struct rt_shape_call *call, uint8_t rank, const struct rt_dim *dims)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim both[SHAPE_RANK_MAX];
    uint8_t both_rank;

    TRY(rt_shape_broadcast(call, self->rank, self->dims, rank, dims, both, &both_rank));
    if (both_rank != self->rank) {
        return rt_shape_refuse(call, "a tensor of rank %d does not fit into one of rank %d", rank,
                               self->rank);
    }
    for (uint8_t d = 0; d < both_rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, both[d], self->dims[d],
                                 "size of the source (must fit the destination's)", call->err));
    }
    return rt_shape_set_out_like(call, 0, 0);
}

/* The operands replace the content of a tensor that is not an argument. */
static enum status set_out_declared(struct rt_shape_call *call, uint8_t rank,
                                    const struct rt_dim *dims)
{
    const struct rt_value *out = rt_node_out(call->graph, call->node, 0);
    struct rt_dim both[SHAPE_RANK_MAX];
    uint8_t both_rank;

    if (!out->declared || !out->is_static) {
        return rt_shape_set_out(call, 0, rank, dims);
    }
    TRY(rt_shape_broadcast(call, out->rank, out->declared, rank, dims, both, &both_rank));
    return rt_shape_set_out(call, 0, both_rank, both);
}

/* Beside integer tensors numbers must be integers. */
static enum status check_numbers(struct rt_shape_call *call, const struct row *row,
                                 const struct choice *choice)
{
    if (choice->class != RT_CLASS_I64 || choice->op == RT_PW_clamp) { /* bounds are truncated */
        return ST_OK;
    }
    for (const char *p = params_of(row); *p != '\0'; p++) {
        const struct rt_value *value = rt_shape_arg(call, digit(*p));
        if (value->kind == RT_FLOAT && value->symbol == 0 &&
            value->f != (double)rt_convert_to_i64(value->f)) {
            return rt_shape_refuse(call, "%g is not an integer, but the tensors are %s", value->f,
                                   dtype_text(choice->dtype));
        }
    }
    return ST_OK;
}

static enum status check_types(struct rt_shape_call *call, const struct row *row,
                               const struct choice *choice)
{
    enum dtype out = rt_shape_out_dtype(call, 0);
    const char *from = dtype_text(choice->dtype), *to = dtype_text(out);
    bool is_complex = choice->class == RT_CLASS_C128 && choice->op != RT_PW_abs;

    if (!rt_pointwise_has_loop(choice->op, choice->class)) {
        return rt_shape_unsupported(call, "not of %s", from);
    }
    if (choice->rule == SAME && choice->dtype != out) {
        return rt_shape_refuse(call, "a copy of %s cannot be %s", from, to);
    }
    if (choice->rule == CONVERT || choice->rule == SAME ||
        rt_pointwise_infos[choice->op].gives_truth) {
        return ST_OK;
    }
    if (is_complex || dtype_infos[out].kind == DTYPE_COMPLEX) {
        return is_complex && dtype_infos[out].kind == DTYPE_COMPLEX
                   ? ST_OK
                   : rt_shape_refuse(call, "a result of type %s cannot be %s", from, to);
    }
    if (out == DT_U64 || (choice->class != RT_CLASS_I64 && !dtype_is_float(out)) ||
        (out == DT_BOOL && choice->dtype != DT_BOOL)) {
        return rt_shape_refuse(call, "a result of type %s cannot be %s", from, to);
    }
    return check_numbers(call, row, choice);
}

static enum status pointwise_shape(struct rt_shape_call *call)
{
    const struct row *row = call->node->op->detail;
    struct rt_dim dims[SHAPE_RANK_MAX];
    struct choice choice = choose(row, shape_value, call);
    uint8_t rank;

    if (choice.op == RT_PW_COUNT) {
        struct span text = rt_shape_arg(call, row->variant_arg)->bytes;
        return rt_shape_unsupported(call, "mode \"%.*s\" is not known", SPAN_FMT(text));
    }
    TRY(find_dims(call, row, dims, &rank));
    TRY(check_types(call, row, &choice));
    return row->is_like       ? set_out_like(call, rank, dims)
           : row->is_declared ? set_out_declared(call, rank, dims)
                              : rt_shape_set_out(call, 0, rank, dims);
}

/* ---- recording ----------------------------------------------------------------------------- */

/* Replacements for absent bounds: the first for a lower one, the second for an upper one. */
static struct rt_number missing(enum rt_pointwise_op op, uint32_t position)
{
    if (op == RT_PW_logit) {
        return (struct rt_number){.f = -1};
    }
    return position == 0 ? (struct rt_number){-INFINITY, INT64_MIN}
                         : (struct rt_number){INFINITY, INT64_MAX};
}

/* Powers with a cheaper equivalent, which PyTorch uses too. The exception is roots of float16:
 * there the root of -inf is inf. */
static enum rt_pointwise_op cheaper_power(double exponent, enum dtype dtype)
{
    static const struct {
        double exponent;
        enum rt_pointwise_op op;
    } powers[] = {{2, RT_PW_square},
                  {0.5, RT_PW_sqrt},
                  {-0.5, RT_PW_rsqrt},
                  {1, RT_PW_copy},
                  {-1, RT_PW_reciprocal}};

    for (size_t i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
        if (exponent == powers[i].exponent && (powers[i].op != RT_PW_sqrt || dtype != DT_F16)) {
            return powers[i].op;
        }
    }
    return RT_PW_pow;
}

/*
 * A number beside tensors is converted to their type: 300 beside int8 is 44, 1e6 beside float16 is
 * infinite, 0.5 beside bool is true. Products, quotients and powers of halves use the number
 * unconverted.
 */
static struct rt_number number_as(struct rt_number number, const struct choice *choice)
{
    enum dtype_kind kind = dtype_infos[choice->dtype].kind;
    bool is_exact = choice->op == RT_PW_mul || choice->op == RT_PW_div ||
                    choice->op == RT_PW_div_trunc || choice->op == RT_PW_div_floor;
    uint64_t element = 0;

    if (choice->op == RT_PW_copy || kind == DTYPE_COMPLEX || (kind == DTYPE_FLOAT && is_exact)) {
        return number;
    }
    rt_convert_store_number(number, choice->dtype, &element);
    rt_convert_load(choice->dtype, RT_CLASS_F64)(&number.f, (const char *)&element, 0, 1);
    rt_convert_load(choice->dtype, RT_CLASS_I64)(&number.i, (const char *)&element, 0, 1);
    return number;
}

/* The nest's operands and the loop's inputs. */
static void open_operands(struct rt_emit *emit, const struct row *row, const struct choice *choice,
                          struct rt_pointwise_constants *k, struct hal_binding *bindings)
{
    bool is_power = choice->op == RT_PW_pow;

    for (uint32_t i = 0; row->operands[i] != '\0'; i++) {
        uint32_t arg = digit(row->operands[i]);
        enum rt_kind kind = rt_emit_value(emit, arg)->kind;
        if (kind == RT_TENSOR) {
            const struct rt_tensor *tensor = rt_emit_arg(emit, arg);
            k->inputs[i] =
                (struct rt_pointwise_operand){.loop = k->loop.operands, .dtype = tensor->dtype};
            bindings[k->loop.operands] = tensor->binding;
            rt_loop_add(&k->loop, tensor);
        } else {
            struct rt_number number =
                kind == RT_NONE ? missing(k->op, i - 1) : rt_convert_arg(emit, arg);
            bool is_taken = kind == RT_NONE || (is_power && i == 1); /* as it is */
            k->inputs[i].number = is_taken ? number : number_as(number, choice);
        }
    }
}

enum rt_work rt_pointwise_work(uint32_t cost)
{
    return cost > 20 ? RT_WORK_DEAR : RT_WORK_ELEMENTS;
}

enum status rt_pointwise_record(struct rt_emit *emit, struct rt_pointwise_constants *k,
                                const struct hal_binding *bindings, struct error *err)
{
    uint32_t cost = rt_pointwise_infos[k->op].cost;

    rt_loop_cut(&k->loop, rt_emit_machine(emit, rt_pointwise_kernel(k)), rt_pointwise_work(cost));
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = rt_pointwise_kernel(k),
                                .grid = {rt_loop_tiles(&k->loop), 1, 1},
                                .constants = k,
                                .constants_bytes = sizeof(*k),
                                .bindings = bindings,
                                .binding_count = k->loop.operands,
                                .scratch_bytes = RT_PW_SCRATCH_BYTES,
                                .cost = (uint64_t)k->loop.numel * cost / 10,
                            },
                            err);
}

static void add_box_operand(struct rt_loop *loop, const struct rt_copy *box, const int64_t *strides,
                            int64_t offset, enum dtype dtype)
{
    int64_t width = (int64_t)dtype_bytes(dtype), bytes[SHAPE_RANK_MAX];

    for (uint32_t d = 0; d < box->rank; d++) {
        bytes[d] = strides[d] * width;
    }
    rt_loop_add_strides(loop, bytes, offset * width);
}

/*
 * The class in which a conversion computes, chosen so that each part of a number is rounded once.
 */
static enum rt_class convert_class(enum dtype from, enum dtype to)
{
    enum dtype_kind from_kind = dtype_infos[from].kind, to_kind = dtype_infos[to].kind;
    bool int_to_float = from_kind != DTYPE_FLOAT && to_kind == DTYPE_FLOAT;

    if (from_kind == DTYPE_COMPLEX || to_kind == DTYPE_COMPLEX) {
        return RT_CLASS_C128;
    }
    return rt_convert_class(int_to_float ? to : from);
}

enum status rt_pointwise_convert(struct rt_emit *emit, const struct rt_tensor *dst,
                                 const struct rt_tensor *src, const struct rt_copy *box,
                                 struct error *err)
{
    struct hal_binding bindings[2] = {dst->binding, src->binding};
    struct rt_pointwise_constants k = {
        .op = RT_PW_copy,
        .class = convert_class(src->dtype, dst->dtype),
        .out = dst->dtype,
        .inputs = {{.loop = 1, .dtype = src->dtype}},
    };

    if (dst->dtype == src->dtype) {
        return rt_copy_emit(emit, dst, src, box, err);
    }
    rt_loop_init(&k.loop, (uint8_t)box->rank, box->dims);
    add_box_operand(&k.loop, box, box->dst, box->dst_offset, dst->dtype);
    add_box_operand(&k.loop, box, box->src, box->src_offset, src->dtype);
    return rt_pointwise_record(emit, &k, bindings, err);
}

static enum status emit_broadcast(struct rt_emit *emit, const struct rt_tensor *out,
                                  const struct rt_tensor *in, struct error *err)
{
    struct rt_copy box = rt_copy_to(out);
    uint32_t skip = (uint32_t)(out->rank - in->rank);

    for (uint32_t d = 0; d < in->rank; d++) {
        box.src[skip + d] = in->dims[d] == 1 ? 0 : in->strides[d];
    }
    return rt_pointwise_convert(emit, out, in, &box, err);
}

static void emit_params(const struct rt_emit *emit, const struct row *row,
                        const struct choice *choice, struct rt_pointwise_constants *k)
{
    const char *params = params_of(row);
    for (uint32_t i = 0; params[i] != '\0'; i++) {
        uint32_t arg = digit(params[i]);
        bool is_none = rt_emit_value(emit, arg)->kind == RT_NONE;
        k->params[i] = is_none ? missing(k->op, i) : rt_convert_arg(emit, arg);
        if (!is_none && k->op == RT_PW_clamp && dtype_infos[choice->dtype].kind == DTYPE_UINT) {
            k->params[i] = number_as(k->params[i], choice); /* for u8 a bound of -2 is 254 */
        }
    }
}

static enum status pointwise_emit(struct rt_emit *emit, struct error *err)
{
    const struct row *row = rt_emit_op(emit)->detail;
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    uint32_t first = digit(row->operands[0]);
    struct choice choice = choose(row, emit_value, emit);
    struct hal_binding bindings[RT_LOOP_OPERANDS_MAX] = {out->binding};
    struct rt_pointwise_constants k = {.op = choice.op, .class = choice.class, .out = out->dtype};

    if (k.op == RT_PW_copy && rt_emit_value(emit, first)->kind == RT_TENSOR) {
        return emit_broadcast(emit, out, rt_emit_arg(emit, first), err);
    }
    if (k.op == RT_PW_copy) {
        /* A number, rounded once from double and compared with 0 before the rounding. */
        enum dtype_kind kind = dtype_infos[out->dtype].kind;
        k.class = kind == DTYPE_INT || kind == DTYPE_UINT ? RT_CLASS_I64 : RT_CLASS_F64;
    }
    emit_params(emit, row, &choice, &k);
    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    open_operands(emit, row, &choice, &k, bindings);
    if ((k.op == RT_PW_add || k.op == RT_PW_sub) && choice.dtype == DT_BOOL) {
        k.params[0] = number_as(k.params[0], &choice);
    }
    if ((k.op == RT_PW_div_trunc || k.op == RT_PW_div_floor) && k.inputs[1].loop != 0 &&
        (choice.dtype == DT_F16 || choice.dtype == DT_BF16)) {
        k.params[0].i = choice.dtype;
    }
    if (k.op == RT_PW_pow && k.inputs[1].loop == 0 && k.class != RT_CLASS_I64) {
        k.op = cheaper_power(k.inputs[1].number.f, choice.dtype);
    }
    return rt_pointwise_record(emit, &k, bindings, err);
}

/* ---- nodes as steps of a chain ------------------------------------------------------------- */

struct graph_node {
    const struct rt_graph *graph;
    const struct rt_node *node;
};

static const struct rt_value *node_value(const void *from, uint32_t index)
{
    const struct graph_node *place = from;
    return rt_node_arg(place->graph, place->node, index);
}

/* Writes a number that every call shares to |out_number|. */
static bool read_number(const struct rt_value *value, double *out_number)
{
    struct shape shape;
    float f;

    if (value->kind == RT_TENSOR) {
        if (!value->is_constant || value->dtype != DT_F32 || !rt_value_shape(value, &shape) ||
            shape_numel(&shape) != 1) {
            return false;
        }
        memcpy(&f, value->bytes.ptr, sizeof(f));
        *out_number = (double)f;
        return true;
    }
    if (value->kind == RT_NONE || !rt_value_is_fixed(value)) {
        return false;
    }
    *out_number = rt_value_number(value);
    return true;
}

static bool read_operand(const struct rt_graph *graph, uint32_t value,
                         struct rt_pointwise_step *step, uint32_t index)
{
    const struct rt_value *v = &graph->values[value];

    step->values[index] = RT_PW_NUMBER;
    if (read_number(v, &step->numbers[index])) {
        return true;
    }
    step->values[index] = value;
    return v->kind == RT_TENSOR && v->dtype == DT_F32 && !v->is_packed;
}

/* Parameters follow the operands; a factor of 1 is left out. */
static bool read_params(const struct rt_graph *graph, const struct rt_node *node,
                        struct rt_pointwise_step *step)
{
    const char *params = params_of(node->op->detail);
    uint32_t inputs = rt_pointwise_infos[step->op].inputs;

    for (uint32_t i = 0; params[i] != '\0'; i++) {
        const struct rt_value *value = rt_node_arg(graph, node, digit(params[i]));
        double *number = &step->numbers[inputs + i];
        step->values[inputs + i] = RT_PW_NUMBER;
        if (value->kind == RT_NONE) {
            *number = missing(step->op, i).f;
        } else if (!read_number(value, number)) {
            return false;
        }
    }
    return (step->op != RT_PW_add && step->op != RT_PW_sub) || step->numbers[inputs] == 1;
}

bool rt_pointwise_read_step(const struct rt_graph *graph, const struct rt_node *node,
                            struct rt_pointwise_step *out_step)
{
    const struct row *row = node->op->detail;
    const struct graph_node place = {graph, node};

    if (node->op->emit != pointwise_emit || rt_node_out(graph, node, 0)->dtype != DT_F32) {
        return false;
    }
    struct choice choice = choose(row, node_value, &place);
    if (choice.op == RT_PW_COUNT || choice.dtype != DT_F32) {
        return false;
    }
    *out_step = (struct rt_pointwise_step){.op = choice.op};
    for (uint32_t i = 0; row->operands[i] != '\0'; i++) {
        if (!read_operand(graph, node->args[digit(row->operands[i])], out_step, i)) {
            return false;
        }
    }
    if (out_step->op == RT_PW_pow && out_step->values[1] == RT_PW_NUMBER) {
        out_step->op = cheaper_power(out_step->numbers[1], choice.dtype);
    }
    return read_params(graph, node, out_step);
}

/* ---- the operators ------------------------------------------------------------------------- */

/* uint64 does not fit into the class of integers. */
#define ALL (RT_DTYPES_ALL & ~(1u << DT_U64))
#define REALS (RT_DTYPES_REAL & ~(1u << DT_U64))
#define WHOLE (ALL & ~RT_DTYPES_FLOAT)

/* Adds complex types to a row's types if its loop has a form for them. */
#define COMPLEX_C RT_DTYPES_COMPLEX
#define COMPLEX_G RT_DTYPES_COMPLEX
#define COMPLEX_Z RT_DTYPES_COMPLEX
#define COMPLEX_N 0
#define COMPLEX_F 0
#define COMPLEX_I 0
#define COMPLEX_T 0
#define COMPLEX_S 0
enum {
#define PW(name, classes, ...) COMPLEX_OF_RT_PW_##name = COMPLEX_##classes,
    RT_PW_LOOPS(PW)
#undef PW
};

#define ROW_AS(name_, kernels_, args_, flags_, operands_, op_, rule_, dtypes_, ...)                \
    {                                                                                              \
        .name = (name_), .kernels = (kernels_), .args = (args_), .shape = pointwise_shape,         \
        .emit = pointwise_emit, .flags = RT_OP_POINTWISE | RT_OP_COMPLEX | (flags_),               \
        .layout = RT_LAYOUT_ELEMENTWISE, .dtypes = (dtypes_) | COMPLEX_OF_##op_,                   \
        .runs = &rt_pointwise_kernels[RT_CLASS_F32][op_], .detail = &(const struct row)            \
        {                                                                                          \
            .operands = (operands_), .op = (op_), .rule = (rule_), __VA_ARGS__                     \
        }                                                                                          \
    }
/* Argument 0 is an operand and is overwritten in place. */
#define ROW(name, kernels, args, ...) ROW_AS(name, kernels, args, RT_OP_IN_PLACE, __VA_ARGS__)
#define UNARY(name, op, rule, dtypes)                                                              \
    ROW(name, "aten::" name ".out", "T>T", "0", RT_PW_##op, rule, dtypes, )
#define BINARY(name, kernels, op, rule, dtypes)                                                    \
    ROW(name, kernels, "TT>T", "01", RT_PW_##op, rule, dtypes, )
#define SCALAR(name, kernels, op, rule, dtypes)                                                    \
    ROW(name, kernels, "TS>T", "01", RT_PW_##op, rule, dtypes, )
/* A comparison with a tensor and one with a number. */
#define COMPARISON(name)                                                                           \
    BINARY(#name, "aten::" #name ".Tensor_out", name, PROMOTE, ALL),                               \
        SCALAR(#name "_scalar", "aten::" #name ".Scalar_out", name, PROMOTE, ALL)
#define BITWISE(name)                                                                              \
    BINARY(#name, "aten::" #name ".Tensor_out", name, PROMOTE, WHOLE),                             \
        SCALAR(#name "_scalar", "aten::" #name ".Scalar_out", name, PROMOTE, WHOLE)

/* By a tensor and by a number, also under the |name| of Python's operator; and of a number. */
#define SHIFT(side, name)                                                                          \
    BINARY("bitwise_" #side "_shift",                                                              \
           "aten::bitwise_" #side "_shift.Tensor_out aten::" name ".Tensor_out", shift_##side,     \
           PROMOTE, WHOLE),                                                                        \
        SCALAR("bitwise_" #side "_shift_scalar",                                                   \
               "aten::bitwise_" #side "_shift.Tensor_Scalar_out aten::" name ".Scalar_out",        \
               shift_##side, PROMOTE, WHOLE),                                                      \
        ROW_AS("scalar_bitwise_" #side "_shift",                                                   \
               "aten::bitwise_" #side "_shift.Scalar_Tensor_out", "ST>T", 0, "01",                 \
               RT_PW_shift_##side, PROMOTE, WHOLE, )

static const struct variant div_modes[] = {
    {NULL, RT_PW_div, REAL},
    {"trunc", RT_PW_div_trunc, PROMOTE},
    {"floor", RT_PW_div_floor, PROMOTE},
    {NULL, RT_PW_COUNT, PROMOTE},
};
static const struct variant gelu_forms[] = {
    {"none", RT_PW_gelu, REAL},
    {"tanh", RT_PW_gelu_tanh, REAL},
    {NULL, RT_PW_COUNT, REAL},
};

const struct rt_op rt_ops_pointwise[] = {
    /* arithmetic */
    ROW("add", "aten::add.out", "TTS>T", "01", RT_PW_add, PROMOTE, ALL, .params = "2"),
    ROW("add_scalar", "aten::add.Scalar_out", "TSS>T", "01", RT_PW_add, PROMOTE, ALL,
        .params = "2"),
    ROW("sub", "aten::sub.out", "TTS>T", "01", RT_PW_sub, PROMOTE, REALS, .params = "2"),
    ROW("sub_scalar", "aten::sub.Scalar_out", "TSS>T", "01", RT_PW_sub, PROMOTE, REALS,
        .params = "2"),
    ROW("rsub_scalar", "aten::rsub.Scalar_out", "TSS>T", "10", RT_PW_sub, PROMOTE, REALS,
        .params = "2"),
    BINARY("mul", "aten::mul.out", mul, PROMOTE, ALL),
    SCALAR("mul_scalar", "aten::mul.Scalar_out", mul, PROMOTE, ALL),
    BINARY("div", "aten::div.out", div, REAL, ALL),
    SCALAR("div_scalar", "aten::div.Scalar_out", div, REAL, ALL),
    ROW("div_mode", "aten::div.out_mode", "TTZ?>T", "01", RT_PW_div, REAL, ALL, .variant_arg = 2,
        .variants = div_modes),
    ROW("div_scalar_mode", "aten::div.Scalar_mode_out", "TSZ?>T", "01", RT_PW_div, REAL, ALL,
        .variant_arg = 2, .variants = div_modes),
    BINARY("floor_divide", "aten::floor_divide.out", div_floor, PROMOTE, ALL),
    BINARY("fmod", "aten::fmod.Tensor_out", fmod, PROMOTE, ALL),
    SCALAR("fmod_scalar", "aten::fmod.Scalar_out", fmod, PROMOTE, ALL),
    BINARY("remainder", "aten::remainder.Tensor_out", remainder, PROMOTE, ALL),
    SCALAR("remainder_scalar", "aten::remainder.Scalar_out", remainder, PROMOTE, ALL),
    BINARY("pow", "aten::pow.Tensor_Tensor_out", pow, PROMOTE, ALL),
    SCALAR("pow_scalar", "aten::pow.Tensor_Scalar_out", pow, PROMOTE, ALL),
    ROW_AS("scalar_pow", "aten::pow.Scalar_out", "ST>T", 0, "01", RT_PW_pow, PROMOTE, ALL, ),
    BINARY("atan2", "aten::atan2.out", atan2, REAL, ALL),
    BINARY("maximum", "aten::maximum.out", maximum, PROMOTE, ALL),
    BINARY("minimum", "aten::minimum.out", minimum, PROMOTE, ALL),

    /* comparisons, logic, bits */
    COMPARISON(eq),
    COMPARISON(ne),
    COMPARISON(lt),
    COMPARISON(le),
    COMPARISON(gt),
    COMPARISON(ge),
    BINARY("logical_and", "aten::logical_and.out", logical_and, PROMOTE, RT_DTYPES_ALL),
    BINARY("logical_or", "aten::logical_or.out", logical_or, PROMOTE, RT_DTYPES_ALL),
    BINARY("logical_xor", "aten::logical_xor.out", logical_xor, PROMOTE, RT_DTYPES_ALL),
    UNARY("logical_not", logical_not, PROMOTE, RT_DTYPES_ALL),
    BITWISE(bitwise_and),
    BITWISE(bitwise_or),
    BITWISE(bitwise_xor),
    UNARY("bitwise_not", bitwise_not, PROMOTE, WHOLE),
    SHIFT(left, "__lshift__"),
    SHIFT(right, "__rshift__"),
    UNARY("isnan", isnan, REAL, ALL),
    UNARY("isinf", isinf, REAL, ALL),

    /* choices */
    ROW_AS("where", "aten::where.self_out", "TTT>T", 0, "012", RT_PW_where, PROMOTE, ALL, ),
    ROW("masked_fill", "aten::masked_fill.Scalar_out", "TTS>T", "120", RT_PW_where, KEEP, ALL, ),
    ROW("clamp", "aten::clamp.out", "TS?S?>T", "0", RT_PW_clamp, PROMOTE, ALL, .params = "12",
        .params_promote = true),
    ROW("clamp_tensor", "aten::clamp.Tensor_out", "TT?T?>T", "012", RT_PW_bounds, PROMOTE, ALL, ),
    ROW("hardtanh", "aten::hardtanh.out", "TSS>T", "0", RT_PW_clamp, PROMOTE, REALS,
        .params = "12"),

    /* activations */
    UNARY("relu", relu, PROMOTE, REALS),
    ROW("leaky_relu", "aten::leaky_relu.out", "TS>T", "0", RT_PW_leaky_relu, PROMOTE,
        RT_DTYPES_FLOAT, .params = "1"),
    ROW("elu", "aten::elu.out", "TSSS>T", "0", RT_PW_elu, PROMOTE, RT_DTYPES_FLOAT,
        .params = "123"),
    ROW("gelu", "aten::gelu.out", "TZ>T", "0", RT_PW_gelu, REAL, RT_DTYPES_FLOAT, .variant_arg = 1,
        .variants = gelu_forms),
    UNARY("sigmoid", sigmoid, REAL, ALL),
    ROW("logit", "aten::logit.out", "TF?>T", "0", RT_PW_logit, REAL, ALL, .params = "1"),

    /* functions */
    UNARY("abs", abs, PROMOTE, ALL),
    UNARY("neg", neg, PROMOTE, REALS),
    UNARY("sign", sign, PROMOTE, ALL),
    UNARY("exp", exp, REAL, ALL),
    UNARY("expm1", expm1, REAL, ALL),
    UNARY("log", log, REAL, ALL),
    UNARY("log1p", log1p, REAL, ALL),
    UNARY("log2", log2, REAL, ALL),
    UNARY("log10", log10, REAL, ALL),
    UNARY("sqrt", sqrt, REAL, ALL),
    UNARY("rsqrt", rsqrt, REAL, ALL),
    UNARY("reciprocal", reciprocal, REAL, ALL),
    UNARY("erf", erf, REAL, ALL),
    UNARY("sin", sin, REAL, ALL),
    UNARY("cos", cos, REAL, ALL),
    UNARY("tan", tan, REAL, ALL),
    UNARY("asin", asin, REAL, ALL),
    UNARY("acos", acos, REAL, ALL),
    UNARY("atan", atan, REAL, ALL),
    UNARY("sinh", sinh, REAL, ALL),
    UNARY("cosh", cosh, REAL, ALL),
    UNARY("tanh", tanh, REAL, ALL),
    UNARY("asinh", asinh, REAL, ALL),
    UNARY("acosh", acosh, REAL, ALL),
    UNARY("atanh", atanh, REAL, ALL),
    UNARY("floor", floor, PROMOTE, REALS),
    UNARY("ceil", ceil, PROMOTE, REALS),
    UNARY("trunc", trunc, PROMOTE, REALS),
    UNARY("round", round, PROMOTE, REALS),

    /* copies and conversions */
    ROW("conj", "aten::_conj_physical.out aten::_conj_copy.out", "T>T", "0", RT_PW_conj, SAME,
        RT_DTYPES_ALL, ),
    ROW_AS("to_dtype", "dim_order_ops::_to_dim_order_copy.out", "TBL?>T", RT_OP_COPY, "0",
           RT_PW_copy, CONVERT, RT_DTYPES_ALL, ),
    ROW_AS("to_dtype_format", "aten::_to_copy.out", "TBI?>T", RT_OP_COPY, "0", RT_PW_copy, CONVERT,
           RT_DTYPES_ALL, ),
    ROW_AS("clone", "dim_order_ops::_clone_dim_order.out", "TBL?>T", RT_OP_COPY, "0", RT_PW_copy,
           SAME, RT_DTYPES_ALL, ),
    ROW_AS("clone_format", "aten::clone.out", "TI?>T", RT_OP_COPY, "0", RT_PW_copy, SAME,
           RT_DTYPES_ALL, ),
    ROW_AS("alias",
           "aten::alias_copy.out aten::detach_copy.out aten::lift_fresh_copy.out "
           "et_copy::_h2d_copy.out et_copy::_d2h_copy.out llama::fallback.out",
           "T>T", RT_OP_COPY, "0", RT_PW_copy, SAME, RT_DTYPES_ALL, ),
    ROW_AS("copy", "aten::copy.out", "TTB>T", RT_OP_COPY, "1", RT_PW_copy, CONVERT, RT_DTYPES_ALL,
           .is_like = true),
    ROW_AS("copy_into", "aten::copy_", "T?!TB>", RT_OP_COPY | RT_OP_OVERWRITES, "1", RT_PW_copy,
           CONVERT, RT_DTYPES_ALL, .is_declared = true),
    ROW_AS("fill", "aten::fill.Scalar_out", "TS>T", 0, "1", RT_PW_copy, CONVERT, RT_DTYPES_ALL,
           .is_like = true),
    ROW_AS("fill_tensor", "aten::fill.Tensor_out", "TT>T", 0, "1", RT_PW_copy, CONVERT,
           RT_DTYPES_ALL, .is_like = true),
    {.name = NULL},
};
