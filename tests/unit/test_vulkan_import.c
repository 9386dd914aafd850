/* SPDX-License-Identifier: MIT */
/*
 * Operators of the Vulkan delegate, each in a payload of its own with one call: what it computes is
 * compared with numbers worked out by hand, and arguments that it cannot take are refused. The
 * tests load whole programs, as a user does.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "runtime/import/operators.h"
#include "runtime/import/vulkan.h"
#include "runtime/load/load.h"
#include "tests/unit/call_support.h"
#include "tests/unit/flatbuf_writer.h"

#define ARGS_MAX 16
#define LIST_MAX 8
#define HEADER_BYTES 30
#define FLAT_AT 32
#define ARENA_BYTES 4096

/* ---- values of a payload --------------------------------------------------------------------- */

struct arg {
    enum rt_vulkan_kind kind;
    enum dtype dtype;
    uint8_t rank; /* of a tensor; items of a list */
    int64_t dims[LIST_MAX];
    const void *content; /* of a constant tensor */
    double number;
    const char *text;
};

#define NUM(n)                                                                                     \
    {                                                                                              \
        .kind = VK_DOUBLE, .number = (n)                                                           \
    }
#define INT(n)                                                                                     \
    {                                                                                              \
        .kind = VK_INT, .number = (n)                                                              \
    }
#define FLAG(n)                                                                                    \
    {                                                                                              \
        .kind = VK_BOOL, .number = (n)                                                             \
    }
#define NIL                                                                                        \
    {                                                                                              \
        .kind = VK_NULL                                                                            \
    }
#define WORD(word)                                                                                 \
    {                                                                                              \
        .kind = VK_STRING, .text = (word)                                                          \
    }
#define INTS(count, ...)                                                                           \
    {                                                                                              \
        .kind = VK_INT_LIST, .rank = (count), .dims = { __VA_ARGS__ }                              \
    }
#define TENSOR(type, count, ...)                                                                   \
    {                                                                                              \
        .kind = VK_TENSOR, .dtype = (type), .rank = (count), .dims = { __VA_ARGS__ }               \
    }
#define F32(count, ...) TENSOR(DT_F32, count, __VA_ARGS__)
#define I8(count, ...) TENSOR(DT_I8, count, __VA_ARGS__)
#define CONSTANT(type, of, count, ...)                                                             \
    {                                                                                              \
        .kind = VK_TENSOR, .dtype = (type), .rank = (count), .dims = {__VA_ARGS__},                \
        .content = (of)                                                                            \
    }
#define FLOATS(...) ((const float[]){__VA_ARGS__})
#define BYTES(...) ((const int8_t[]){__VA_ARGS__})
#define NIBBLES(...) ((const uint8_t[]){__VA_ARGS__})

/* One call: its arguments, the last of which is its result. Tensors without content that are no
 * result are inputs. */
struct call {
    const char *name;
    struct arg args[ARGS_MAX + 1];
    uint32_t count;
    const void *inputs[3];
};

static bool is_input(const struct call *call, uint32_t i)
{
    return call->args[i].kind == VK_TENSOR && !call->args[i].content && i + 1 < call->count;
}

static size_t numel(const struct arg *arg)
{
    size_t count = 1;
    for (uint8_t d = 0; d < arg->rank; d++) {
        count *= (size_t)arg->dims[d];
    }
    return count;
}

static struct shape shape_of(const struct arg *arg)
{
    struct shape shape = {.rank = arg->rank};
    memcpy(shape.dims, arg->dims, arg->rank * sizeof(*arg->dims));
    return shape;
}

/* ---- the payload ----------------------------------------------------------------------------- */

static void set(struct writer *w, size_t table, size_t id, uint64_t value, size_t width)
{
    writer_put(w, writer_field(w, table, id), value, width);
}

static void set_double(struct writer *w, size_t table, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    set(w, table, 0, bits, 8);
}

static uint64_t datatype_of(enum dtype dtype)
{
    static const enum dtype dtypes[] = {DT_BOOL, DT_U8,  DT_I8,  DT_I32,
                                        DT_F16,  DT_F32, DT_F64, DT_I64};
    uint64_t number = 0;
    while (dtypes[number] != dtype) {
        number++;
    }
    return number;
}

static void add_value(struct writer *w, size_t at, const struct arg *arg, int32_t constant)
{
    static const char *const widths[VK_KIND_COUNT] = {
        [VK_NULL] = "",      [VK_INT] = "8",      [VK_DOUBLE] = "8", [VK_BOOL] = "1",
        [VK_TENSOR] = "144", [VK_INT_LIST] = "4", [VK_STRING] = "4"};
    size_t outer = writer_child(w, at, "14");
    set(w, outer, 0, arg->kind, 1);
    size_t table = writer_child(w, writer_field(w, outer, 1), widths[arg->kind]);
    if (arg->kind == VK_INT) {
        set(w, table, 0, (uint64_t)(int64_t)arg->number, 8);
    } else if (arg->kind == VK_DOUBLE) {
        set_double(w, table, arg->number);
    } else if (arg->kind == VK_BOOL) {
        set(w, table, 0, arg->number != 0, 1);
    } else if (arg->kind == VK_TENSOR) {
        set(w, table, 0, datatype_of(arg->dtype), 1);
        writer_numbers(w, writer_field(w, table, 1), arg->dims, arg->rank, 4);
        set(w, table, 2, (uint32_t)constant, 4);
    } else if (arg->kind == VK_INT_LIST) {
        writer_numbers(w, writer_field(w, table, 0), arg->dims, arg->rank, 8);
    } else if (arg->kind == VK_STRING) {
        writer_string(w, writer_field(w, table, 0), arg->text);
    }
}

static void add_constants(struct writer *w, size_t graph, const struct call *call, uint32_t count)
{
    size_t table = writer_vector(w, writer_field(w, graph, 5), count, 4), at = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct arg *arg = &call->args[i];
        if (arg->content) {
            size_t bytes = numel(arg) * dtype_bytes(arg->dtype);
            size_t constant = writer_child(w, table, "884");
            writer_string(w, writer_field(w, constant, 2), "");
            set(w, constant, 0, at, 8);
            set(w, constant, 1, bytes, 8);
            table += 4;
            at += align_up(bytes, 16);
        }
    }
}

static void add_graph(struct writer *w, const struct call *call)
{
    int64_t ids[ARGS_MAX + 1], inputs[ARGS_MAX];
    uint32_t input_count = 0;
    int32_t constants = 0;
    size_t graph = writer_table(w, "044444");
    writer_put(w, FLAT_AT, graph - FLAT_AT, 4);
    for (uint32_t i = 0; i < call->count; i++) {
        ids[i] = i;
        if (is_input(call, i)) {
            inputs[input_count++] = i;
        }
    }
    size_t entry = writer_child(w, writer_vector(w, writer_field(w, graph, 1), 1, 4), "444");
    writer_string(w, writer_field(w, entry, 1), call->name);
    writer_numbers(w, writer_field(w, entry, 2), ids, call->count, 4);
    size_t values = writer_vector(w, writer_field(w, graph, 2), call->count, 4);
    for (uint32_t i = 0; i < call->count; i++) {
        add_value(w, values + 4 * (size_t)i, &call->args[i],
                  call->args[i].content ? constants++ : -1);
    }
    writer_numbers(w, writer_field(w, graph, 3), inputs, input_count, 4);
    writer_numbers(w, writer_field(w, graph, 4), &ids[call->count - 1], 1, 4);
    add_constants(w, graph, call, (uint32_t)constants);
}

static void make_payload(struct writer *w, const struct call *call)
{
    memset(w, 0, sizeof(*w));
    writer_add(w, "\0\0\0\0VH00", 8);
    while (w->len < FLAT_AT + 4) {
        writer_add_int(w, 0, 1);
    }
    writer_add(w, "VK00", 4);
    add_graph(w, call);
    writer_pad(w, 16);
    size_t end = w->len;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct arg *arg = &call->args[i];
        if (arg->content) {
            writer_add(w, arg->content, numel(arg) * dtype_bytes(arg->dtype));
            writer_pad(w, 16);
        }
    }
    writer_put(w, 8, HEADER_BYTES, 2);
    writer_put(w, 10, FLAT_AT, 4);
    writer_put(w, 14, end - FLAT_AT, 4);
    writer_put(w, 18, end, 4);
    writer_put(w, 22, w->len - end, 8);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* A tensor of a plan, with memory of its own at |offset|. */
static void add_tensor(struct writer *w, size_t at, const struct arg *arg, uint32_t offset)
{
    static const int64_t order[] = {0, 1, 2, 3};
    size_t entry = writer_child(w, at, "14");
    set(w, entry, 0, 5, 1);
    size_t table = writer_child(w, writer_field(w, entry, 1), "144414411");
    set(w, table, 0, (uint64_t)dtype_infos[arg->dtype].executorch, 1);
    writer_numbers(w, writer_field(w, table, 2), arg->dims, arg->rank, 4);
    writer_numbers(w, writer_field(w, table, 3), order, arg->rank, 1);
    size_t allocation = writer_child(w, writer_field(w, table, 6), "444");
    set(w, allocation, 0, 1, 4);
    set(w, allocation, 1, offset, 4);
}

static void make_program(struct writer *w, const struct call *call, const struct writer *payload)
{
    int64_t ids[ARGS_MAX];
    uint32_t count = 0;
    const struct arg *tensors[ARGS_MAX];
    memset(w, 0, sizeof(*w));
    for (uint32_t i = 0; i < call->count; i++) {
        if (is_input(call, i) || i + 1 == call->count) {
            ids[count] = count;
            tensors[count++] = &call->args[i];
        }
    }
    writer_add(w, "\0\0\0\0ET12", 8);
    size_t program = writer_child(w, 0, "4444");
    size_t plan = writer_child(w, writer_vector(w, writer_field(w, program, 1), 1, 4), "404444444");
    writer_string(w, writer_field(w, plan, 0), "forward");
    size_t entries = writer_vector(w, writer_field(w, plan, 2), count, 4);
    for (uint32_t i = 0; i < count; i++) {
        add_tensor(w, entries + 4 * (size_t)i, tensors[i], ARENA_BYTES * i);
    }
    writer_numbers(w, writer_field(w, plan, 3), ids, count - 1, 4);
    writer_numbers(w, writer_field(w, plan, 4), &ids[count - 1], 1, 4);
    size_t chain = writer_child(w, writer_vector(w, writer_field(w, plan, 5), 1, 4), "004");
    size_t instr = writer_child(w, writer_vector(w, writer_field(w, chain, 2), 1, 4), "14");
    set(w, instr, 0, 2, 1);
    size_t run = writer_child(w, writer_field(w, instr, 1), "44");
    writer_numbers(w, writer_field(w, run, 1), ids, count, 4);
    writer_vector(w, writer_field(w, plan, 6), 0, 4);
    size_t delegate = writer_child(w, writer_vector(w, writer_field(w, plan, 7), 1, 4), "444");
    writer_string(w, writer_field(w, delegate, 0), "VulkanBackend");
    writer_child(w, writer_field(w, delegate, 1), "14"); /* inline, the first */
    writer_vector(w, writer_field(w, delegate, 2), 0, 4);
    writer_numbers(w, writer_field(w, plan, 8), (const int64_t[]){0, ARENA_BYTES * count}, 2, 8);
    size_t first = writer_child(w, writer_vector(w, writer_field(w, program, 2), 1, 4), "4");
    writer_vector(w, writer_field(w, first, 0), 0, 1);
    size_t data = writer_child(w, writer_vector(w, writer_field(w, program, 3), 1, 4), "4");
    size_t bytes = writer_vector(w, writer_field(w, data, 0), payload->len, 1);
    memcpy(w->bytes + bytes, payload->bytes, payload->len);
}

/* ---- running --------------------------------------------------------------------------------- */

static struct hal_device *device;
static struct hal_pool *pool;
static char path[64];

static int open_device(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "vulkan-%ld.pte", (long)getpid());
    open_two_workers(&device, &pool);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    unlink(path);
    close_two_workers(device, pool);
    return 0;
}

static struct rt_program *load(const struct call *call)
{
    static struct writer payload, program;
    const struct rt_load_options options = {.device = device, .precision = PRECISION_EXACT};
    struct rt_program *loaded = NULL;
    struct error err;
    make_payload(&payload, call);
    make_program(&program, call, &payload);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(program.bytes, 1, program.len, file), program.len);
    assert_int_equal(fclose(file), 0);
    assert_ok(err, rt_load_program(path, &options, &loaded, &err));
    return loaded;
}

static double number_at(enum dtype dtype, const void *bytes, size_t i)
{
    return dtype == DT_F32 ? (double)((const float *)bytes)[i] : ((const int8_t *)bytes)[i];
}

static void compare(const struct call *call, const struct rt_invocation *run, const double *wanted)
{
    const struct arg *result = &call->args[call->count - 1];
    const struct rt_result *got = rt_invocation_result(run, 0);
    for (size_t i = 0; i < numel(result); i++) {
        double number = number_at(result->dtype, got->bytes.ptr, i);
        if (fabs(number - wanted[i]) > 1e-6 * fmax(1, fabs(wanted[i]))) {
            fail_msg("%s: number %zu is %.9g, expected %.9g", call->name, i, number, wanted[i]);
        }
    }
}

static void expect_numbers(const struct call *call, const double *wanted)
{
    struct rt_program *loaded = load(call);
    struct rt_method *method = rt_program_default_method(loaded);
    struct input inputs[3];
    uint32_t count = 0;
    const struct error *failure = rt_method_failure(method);
    if (failure) {
        fail_msg("%s: %s", call->name, failure->text);
    }
    for (uint32_t i = 0; i < call->count; i++) {
        if (is_input(call, i)) {
            inputs[count] =
                (struct input){call->args[i].dtype, shape_of(&call->args[i]), call->inputs[count]};
            count++;
        }
    }
    struct rt_invocation *run = begin_call(method, pool, NULL, inputs, count);
    struct error err;
    assert_ok(err, rt_invocation_prepare(run, RT_PREPARE_ALL, &err));
    assert_int_equal(submit_and_wait(run, false), ST_OK);
    compare(call, run, wanted);
    rt_invocation_free(run);
    rt_program_unref(loaded);
}

static void expect_refusal(const struct call *call, const char *part)
{
    struct rt_program *loaded = load(call);
    const struct error *failure = rt_method_failure(rt_program_default_method(loaded));
    assert_non_null(failure);
    if (!strstr(failure->text, part)) {
        fail_msg("%s: got '%s', expected '%s' in it", call->name, failure->text, part);
    }
    rt_program_unref(loaded);
}

#define COUNT(...) (sizeof((const struct arg[]){__VA_ARGS__}) / sizeof(struct arg))
#define RUN(operator, in, wanted, ...)                                                             \
    do {                                                                                           \
        const struct call call = {                                                                 \
            .name = (operator), .args = {__VA_ARGS__}, .count = COUNT(__VA_ARGS__), .inputs = in}; \
        expect_numbers(&call, (const double[])wanted);                                             \
    } while (0)
#define REFUSED(operator, part, ...)                                                               \
    do {                                                                                           \
        const struct call call = {                                                                 \
            .name = (operator), .args = {__VA_ARGS__}, .count = COUNT(__VA_ARGS__)};               \
        expect_refusal(&call, part);                                                               \
    } while (0)
#define THESE(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- numbers --------------------------------------------------------------------------------- */

static void pointwise(void **state)
{
    (void)state;
    RUN("aten.relu6.default", THESE(FLOATS(-1, 3, 7)), THESE(0, 3, 6), F32(1, 3), F32(1, 3));
    RUN("aten.hardsigmoid.default", THESE(FLOATS(-4, 0, 3)), THESE(0, 0.5, 1), F32(1, 3),
        F32(1, 3));
    RUN("aten.hardswish.default", THESE(FLOATS(-4, 1, 3)), THESE(0, 2.0 / 3, 3), F32(1, 3),
        F32(1, 3));
    RUN("aten.hardshrink.default", THESE(FLOATS(-1, -0.5f, 0.25f, 2)), THESE(-1, 0, 0, 2),
        F32(1, 4), NUM(0.5), F32(1, 4));
}

static void creation(void **state)
{
    (void)state;
    RUN("aten.ones_like.default", THESE(FLOATS(5, 6)), THESE(1, 1), F32(1, 2), NIL, NIL, NIL, NIL,
        NIL, F32(1, 2));
    RUN("aten.zeros_like.default", THESE(FLOATS(5, 6)), THESE(0, 0), F32(1, 2), NIL, NIL, NIL, NIL,
        NIL, F32(1, 2));
    RUN("et_vk.grid_priors.default", THESE(FLOATS(0, 0, 0, 0, 0, 0)),
        THESE(4, 4, 12, 4, 20, 4, 4, 12, 12, 12, 20, 12), F32(4, 1, 1, 2, 3), INT(8), NUM(0.5),
        F32(2, 6, 2));
}

static void repeats(void **state)
{
    (void)state;
    RUN("aten.repeat_interleave.self_int", THESE(FLOATS(1, 2, 3, 4)), THESE(1, 1, 2, 2, 3, 3, 4, 4),
        F32(2, 2, 2), INT(2), INT(-1), NIL, F32(2, 2, 4));
    RUN("aten.repeat_interleave.self_int", THESE(FLOATS(1, 2, 3, 4)), THESE(1, 2, 1, 2, 3, 4, 3, 4),
        F32(2, 2, 2), INT(2), INT(0), NIL, F32(2, 4, 2));
    REFUSED("aten.repeat_interleave.self_int", "cannot repeat 2 times along dim 2 of rank 2",
            F32(2, 2, 2), INT(2), INT(2), NIL, F32(2, 4, 2));
    REFUSED("aten.repeat_interleave.self_int", "cannot repeat -1 times", F32(2, 2, 2), INT(-1),
            INT(0), NIL, F32(2, 4, 2));
}

/* Two channels become two, at three places; the sums are bounded from below. */
static void convolution_of_lines(void **state)
{
    (void)state;
    RUN("et_vk.conv1d_pw.default", THESE(FLOATS(1, 2, 3, 4, 5, 6)),
        THESE(1 + 8 + 0.5, 2 + 10 + 0.5, 3 + 12 + 0.5, 0, 0, 0), F32(3, 1, 2, 3),
        CONSTANT(DT_F32, FLOATS(1, 2, -1, 0), 3, 2, 2, 1), CONSTANT(DT_F32, FLOATS(0.5f, 0), 1, 2),
        INTS(1, 1), INTS(1, 0), INTS(1, 1), INT(1), NUM(0), NIL, F32(3, 1, 2, 3));
}

static void norms_and_gradients(void **state)
{
    const double rms = sqrt(12.5); /* of 3 and 4 */
    (void)state;
    RUN("et_vk.rms_norm.default", THESE(FLOATS(3, 4)), THESE(3 / rms, 8 / rms), F32(2, 1, 2),
        CONSTANT(DT_F32, FLOATS(1, 2), 1, 2), NUM(0), F32(2, 1, 2));
    RUN("et_vk.linear_dW.default", THESE(FLOATS(1, 2), FLOATS(1, 2, 3, 4)), THESE(7, 10),
        F32(2, 2, 1), F32(2, 2, 2), F32(2, 1, 2));
}

static void attention(void **state)
{
    const double first = exp(1) / (exp(1) + 1), second = 1 - first;
    (void)state;
    RUN("et_vk.sdpa.default", THESE(FLOATS(1, 0), FLOATS(1, 0, 0, 1), FLOATS(1, 2, 3, 4)),
        THESE(first + 3 * second, 2 * first + 4 * second), F32(4, 1, 1, 1, 2), F32(4, 1, 1, 2, 2),
        F32(4, 1, 1, 2, 2), NIL, NUM(1), F32(4, 1, 1, 1, 2));
    /* the mask makes both places equal; the scale is 1 / sqrt(2) */
    RUN("et_vk.sdpa.default", THESE(FLOATS(1, 0), FLOATS(1, 0, 0, 1), FLOATS(1, 2, 3, 4)),
        THESE(2, 3), F32(4, 1, 1, 1, 2), F32(4, 1, 1, 2, 2), F32(4, 1, 1, 2, 2),
        CONSTANT(DT_F32, FLOATS(0, (float)M_SQRT1_2), 2, 1, 2), NIL, F32(4, 1, 1, 1, 2));
    REFUSED("et_vk.sdpa.default", "attention expects tensors [B,H,S,D] with a fixed D",
            F32(3, 1, 1, 2), F32(4, 1, 1, 2, 2), F32(4, 1, 1, 2, 2), NIL, NIL, F32(3, 1, 1, 2));
}

/* ---- quantized numbers ----------------------------------------------------------------------- */

static void numbers_are_quantized(void **state)
{
    (void)state;
    RUN("quantized_decomposed.quantize_per_tensor.default", THESE(FLOATS(0.3f, -5, 100)),
        THESE(4, -7, 127), F32(1, 3), NUM(0.5), INT(3), INT(-128), INT(127), NIL, I8(1, 3));
    RUN("quantized_decomposed.dequantize_per_tensor.default", THESE(BYTES(4, -7, 127)),
        THESE(0.5, -5, 62), I8(1, 3), NUM(0.5), INT(3), INT(-128), INT(127), NIL, NIL, F32(1, 3));
    RUN("quantized_decomposed.dequantize_per_channel.default", THESE(BYTES(1, 2, 3, 4)),
        THESE(0.5, 1, 6, 8), I8(2, 2, 2), CONSTANT(DT_F32, FLOATS(0.5f, 2), 1, 2), NIL, INT(0),
        INT(-128), INT(127), NIL, NIL, F32(2, 2, 2));
    RUN("torchao.dequantize_affine.default", THESE(BYTES(1, 2, 3, 4)), THESE(0.5, 1, 6, 8),
        I8(2, 1, 4), INTS(2, 1, 2), CONSTANT(DT_F32, FLOATS(0.5f, 2), 1, 2), NIL, NIL, NIL, NIL,
        NIL, F32(2, 1, 4));
    REFUSED("torchao.dequantize_affine.default", "argument 1: expected blocks of 1 x n",
            I8(2, 1, 4), INTS(2, 2, 2), CONSTANT(DT_F32, FLOATS(0.5f, 2), 1, 2), NIL, NIL, NIL, NIL,
            NIL, F32(2, 1, 4));
    REFUSED("torchao.dequantize_affine.default", "argument 3: the zero points are not all 0",
            I8(2, 1, 4), INTS(2, 1, 2), CONSTANT(DT_F32, FLOATS(0.5f, 2), 1, 2),
            CONSTANT(DT_I8, BYTES(0, 1), 1, 2), NIL, NIL, NIL, NIL, F32(2, 1, 4));
}

/* 5 and 10, plus twice 0 and 2, in halves with a zero point of 1. */
static void quantized_sums(void **state)
{
    (void)state;
    RUN("et_vk.q8ta_add.default", THESE(BYTES(10, 20), BYTES(2, 4)), THESE(11, 29), I8(1, 2),
        I8(1, 2), NUM(0.5), INT(0), NUM(1), INT(2), NUM(0.5), INT(1), NUM(2), I8(1, 2));
    RUN("et_vk.q8ta_relu.default", THESE(BYTES(-4, 6)), THESE(-1, 11), I8(1, 2), NUM(0.5), INT(0),
        NUM(0.25), INT(-1), I8(1, 2));
    RUN("et_vk.q8ta_pixel_shuffle.default", THESE(BYTES(1, 2, 3, 4)), THESE(2, 4, 6, 8),
        I8(4, 1, 4, 1, 1), NUM(1), INT(0), NUM(2), INT(0), INT(2), I8(4, 1, 1, 2, 2));
}

/* ---- quantized weights ----------------------------------------------------------------------- */

/* Four rows, of which two are padding. */
#define ROWS CONSTANT(DT_I8, BYTES(1, 2, 3, 4, 99, 99, 99, 99), 2, 4, 2)
#define ROW_SCALES CONSTANT(DT_F32, FLOATS(0.5f, 2, 99, 99), 1, 4)
#define ROW_BIAS CONSTANT(DT_F32, FLOATS(1, -1, 99, 99), 1, 4)

static void linear_with_a_scale_for_each_row(void **state)
{
    (void)state;
    RUN("aten._weight_int8pack_mm.default", THESE(FLOATS(1, 1)), THESE(1.5, 14), F32(2, 1, 2), ROWS,
        ROW_SCALES, F32(2, 1, 2));
    RUN("et_vk.linear_q8csw.default", THESE(FLOATS(1, 1)), THESE(2.5, 13), F32(2, 1, 2), ROWS,
        ROW_SCALES, ROW_BIAS, F32(2, 1, 2));
    /* 1.1 is stored as 1 */
    RUN("et_vk.linear_q8ta_q8csw.default", THESE(FLOATS(1.1f, 1)), THESE(2.5, 13), F32(2, 1, 2),
        NUM(0.5), INT(3), ROWS, NIL, ROW_SCALES, ROW_BIAS, F32(2, 1, 2));
    RUN("et_vk.q8ta_linear.default", THESE(BYTES(5, 5)), THESE(4, 25), I8(2, 1, 2), NUM(0.5),
        INT(3), ROWS, NIL, ROW_SCALES, NUM(0.5), INT(-1), ROW_BIAS, WORD("none"), I8(2, 1, 2));
    RUN("et_vk.q8ta_linear_gemv.default", THESE(BYTES(1, 1)), THESE(-1, -1), I8(2, 1, 2), NUM(0.5),
        INT(3), ROWS, NIL, ROW_SCALES, NUM(0.5), INT(-1), NIL, WORD("relu"), I8(2, 1, 2));
    REFUSED("et_vk.q8ta_linear.default",
            "argument 9 is not the name of an activation, expected 'none' or 'relu'", I8(2, 1, 2),
            NUM(0.5), INT(3), ROWS, NIL, ROW_SCALES, NUM(0.5), INT(-1), NIL, WORD("gelu"),
            I8(2, 1, 2));
    REFUSED("et_vk.linear_q8csw.default", "argument 1 is not a matrix of i8", F32(2, 1, 2),
            ROW_SCALES, ROW_SCALES, NIL, F32(2, 1, 2));
}

/* Numbers of four bits less 8: of each byte the low ones come first, or the high ones. */
static void linear_with_four_bits(void **state)
{
    (void)state;
    RUN("et_vk.linear_qcs4w.default", THESE(FLOATS(1, 10)), THESE(0.5 * (1 + 20)), F32(2, 1, 2),
        CONSTANT(DT_U8, NIBBLES(0x9a), 2, 1, 1), CONSTANT(DT_F32, FLOATS(0.5f), 1, 1),
        F32(2, 1, 1));
    /* 1, 2 and twice 3, 4 */
    RUN("et_vk.linear_q4gsw.default", THESE(FLOATS(1, 1, 1, 1)), THESE(17.5), F32(2, 1, 4),
        CONSTANT(DT_U8, NIBBLES(0xa9, 0xcb), 2, 1, 2), CONSTANT(DT_F32, FLOATS(1, 2), 2, 2, 1),
        INT(2), CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), F32(2, 1, 1));
    RUN("et_vk.linear_q4gsw_backward.default", THESE(FLOATS(2)), THESE(2, 4, 12, 16), F32(2, 1, 1),
        CONSTANT(DT_U8, NIBBLES(0xa9, 0xcb), 2, 1, 2), CONSTANT(DT_F32, FLOATS(1, 2), 2, 2, 1),
        INT(2), F32(2, 1, 4));
}

static void rows_of_four_bits_are_looked_up(void **state)
{
    static const int64_t index = 1;
    (void)state;
    RUN("et_vk.embedding_q4gsw.default", THESE(&index), THESE(1, 2, 6, 8),
        CONSTANT(DT_U8, NIBBLES(0, 0, 0xa9, 0xcb), 2, 2, 2),
        CONSTANT(DT_F32, FLOATS(9, 9, 1, 2), 2, 2, 2), INT(2), TENSOR(DT_I64, 1, 1), FLAG(1),
        F32(2, 1, 4));
    RUN("et_vk.embedding_q4gsw.default", THESE(&index), THESE(2, 1, 8, 6),
        CONSTANT(DT_U8, NIBBLES(0, 0, 0xa9, 0xcb), 2, 2, 2),
        CONSTANT(DT_F32, FLOATS(9, 9, 1, 2), 2, 2, 2), INT(2), TENSOR(DT_I64, 1, 1), FLAG(0),
        F32(2, 1, 4));
}

/* ---- quantized images ------------------------------------------------------------------------ */

#define IMAGE THESE(BYTES(1, 2, 3, 4, 5, 6, 7, 8, 9))
#define WINDOW INTS(2, 2, 2), INTS(2, 1, 1), INTS(2, 0, 0)

/* 1, 2, 3, 4 over each square of 2 x 2, in halves: 37, 47, 67 and 77. */
static void quantized_convolution(void **state)
{
    (void)state;
    RUN("et_vk.q8ta_conv2d.default", IMAGE, THESE(19, 24, 34, 39), I8(4, 1, 1, 3, 3), NUM(1),
        INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4, 99, 99, 99, 99), 2, 1, 8), NIL,
        CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), NUM(1), INT(0), CONSTANT(DT_F32, FLOATS(0.25f), 1, 1),
        WINDOW, INTS(2, 1, 1), INT(1), WORD("relu"), I8(4, 1, 1, 2, 2));
    RUN("et_vk.q8ta_conv2d_dw.default", IMAGE, THESE(18, 24, 34, 38), I8(4, 1, 1, 3, 3), NUM(1),
        INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4), 3, 2, 2, 1), NIL,
        CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), NUM(1), INT(0), NIL, WINDOW, INTS(2, 1, 1), INT(1),
        WORD("none"), I8(4, 1, 1, 2, 2));
    REFUSED("et_vk.q8ta_conv2d.default", "argument 9 is not a kernel size", I8(4, 1, 1, 3, 3),
            NUM(1), INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4), 2, 1, 4), NIL,
            CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), NUM(1), INT(0), NIL, INTS(2, 0, 2), INTS(2, 1, 1),
            INTS(2, 0, 0), INTS(2, 1, 1), INT(1), WORD("none"), I8(4, 1, 1, 2, 2));
    REFUSED("et_vk.q8ta_conv2d.default", "2 groups do not fit the image's channels",
            I8(4, 1, 1, 3, 3), NUM(1), INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4), 2, 1, 4), NIL,
            CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), NUM(1), INT(0), NIL, WINDOW, INTS(2, 1, 1),
            INT(2), WORD("none"), I8(4, 1, 1, 2, 2));
    REFUSED("et_vk.q8ta_conv2d_dw.default", "argument 3 is not [height, width, channels] of i8",
            I8(4, 1, 1, 3, 3), NUM(1), INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4), 2, 1, 4), NIL,
            CONSTANT(DT_F32, FLOATS(0.5f), 1, 1), NUM(1), INT(0), NIL, WINDOW, INTS(2, 1, 1),
            INT(1), WORD("none"), I8(4, 1, 1, 2, 2));
}

/* Each pixel puts its multiple of the kernel into a square of its own. */
static void quantized_transposed_convolution(void **state)
{
    (void)state;
    RUN("et_vk.q8ta_conv2d_transposed.default", THESE(BYTES(1, 2)), THESE(1, 2, 2, 4, 3, 4, 6, 8),
        I8(4, 1, 1, 1, 2), NUM(1), INT(0), CONSTANT(DT_I8, BYTES(1, 2, 3, 4), 2, 1, 4), NIL,
        CONSTANT(DT_F32, FLOATS(1), 1, 1), NUM(1), INT(0), NIL, INTS(2, 2, 2), INTS(2, 2, 2),
        INTS(2, 0, 0), INTS(2, 0, 0), INTS(2, 1, 1), INT(1), WORD("none"), I8(4, 1, 1, 2, 4));
}

/* ---- the list of operators ------------------------------------------------------------------- */

struct seen {
    unsigned rows, host;
    bool has_relu;
};

static void note_operator(const struct rt_operator *it, void *arg)
{
    struct seen *seen = arg;
    seen->rows++;
    seen->host += strcmp(it->kind, "host") == 0;
    if (it->name && strcmp(it->name, "relu") == 0) {
        seen->has_relu = true;
        assert_non_null(strstr(it->kernels, "aten::relu.out"));
        assert_true(it->drivers & 1);
    }
}

static void operators_are_listed_once(void **state)
{
    struct seen seen = {0};
    (void)state;
    rt_operators_each(note_operator, &seen);
    assert_true(seen.has_relu);
    assert_true(seen.host > 0 && seen.host < seen.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointwise),
        cmocka_unit_test(creation),
        cmocka_unit_test(repeats),
        cmocka_unit_test(convolution_of_lines),
        cmocka_unit_test(norms_and_gradients),
        cmocka_unit_test(attention),
        cmocka_unit_test(numbers_are_quantized),
        cmocka_unit_test(quantized_sums),
        cmocka_unit_test(linear_with_a_scale_for_each_row),
        cmocka_unit_test(linear_with_four_bits),
        cmocka_unit_test(rows_of_four_bits_are_looked_up),
        cmocka_unit_test(quantized_convolution),
        cmocka_unit_test(quantized_transposed_convolution),
        cmocka_unit_test(operators_are_listed_once),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
