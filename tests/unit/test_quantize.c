/* SPDX-License-Identifier: MIT */
/*
 * The quantize pass on small graphs: the nodes that it makes, and that these compute the same. Each
 * graph runs unchanged in floats, and after the pass at every level. Results are bytes, which may
 * differ by one, or floats.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/cpu/isa.h"
#include "hal/device.h"
#include "hal/queue.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/plan/flow.h"
#include "runtime/plan/plan.h"
#include "tests/hal/levels.h"
#include "tests/unit/unit.h"

struct fixture {
    struct hal_device *device;
    struct rt_graph graph;
    struct error err;
    uint32_t input, output, seed;
    bool is_signed; /* whether activations are i8 */
};

static uint32_t next_random(struct fixture *f)
{
    f->seed = f->seed * 1664525u + 1013904223u;
    return f->seed >> 8;
}

/* ---- building -------------------------------------------------------------------------------- */

static uint32_t number(struct fixture *f, int64_t value)
{
    return rt_graph_int(&f->graph, rt_dim_of(value));
}

static uint32_t pair(struct fixture *f, int64_t a, int64_t b)
{
    struct rt_dim items[2] = {rt_dim_of(a), rt_dim_of(b)};
    return rt_graph_ints(&f->graph, items, 2);
}

static uint32_t apply(struct fixture *f, const char *op, const uint32_t *args, uint32_t count,
                      enum dtype dtype)
{
    uint32_t out;
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find(op), args, count, dtype, &out, &f->err));
    return out;
}

static uint32_t constant(struct fixture *f, enum dtype dtype, const struct shape *shape)
{
    size_t bytes = (size_t)shape_numel(shape) * dtype_bytes(dtype);
    struct hal_buffer *buffer;
    assert_ok(f->err, hal_buffer_new(f->device, bytes, &buffer, &f->err));
    uint8_t *to = hal_buffer_map(buffer);
    for (size_t i = 0; i < bytes / dtype_bytes(dtype); i++) {
        if (dtype == DT_I8) {
            to[i] = (uint8_t)(next_random(f) % 255 - 127);
        } else {
            ((float *)(void *)to)[i] = (float)(next_random(f) % 90 + 10) * 1e-4f;
        }
    }
    uint32_t value = rt_graph_constant(&f->graph, dtype, shape, span_of(NULL, 0));
    rt_graph_set_constant(&f->graph, value, buffer);
    return value;
}

static enum dtype byte_type(const struct fixture *f)
{
    return f->is_signed ? DT_I8 : DT_U8;
}

/* Fills |args| with the least and greatest value of an activation, and the number of its type. */
static void bounds(struct fixture *f, uint32_t args[3])
{
    args[0] = number(f, f->is_signed ? -128 : 0);
    args[1] = number(f, f->is_signed ? 127 : 255);
    args[2] = number(f, dtype_infos[byte_type(f)].executorch);
}

static uint32_t quantize(struct fixture *f, uint32_t x, double scale, int64_t zero)
{
    uint32_t args[6] = {x, rt_graph_float(&f->graph, scale), number(f, zero)};
    bounds(f, args + 3);
    return apply(f, "quantize", args, 6, byte_type(f));
}

static uint32_t dequantize(struct fixture *f, uint32_t x, double scale, int64_t zero)
{
    uint32_t args[7] = {x, rt_graph_float(&f->graph, scale), number(f, zero)};
    bounds(f, args + 3);
    args[6] = rt_graph_none(&f->graph);
    return apply(f, "dequantize", args, 7, DT_F32);
}

/* Weights with |outs| channels, each with its scale. */
static uint32_t weights(struct fixture *f, const struct shape *shape)
{
    struct shape channels = {.rank = 1, .dims = {shape->dims[0]}};
    uint32_t w = constant(f, DT_I8, shape), none = rt_graph_none(&f->graph);
    uint32_t args[] = {w,
                       constant(f, DT_F32, &channels),
                       none,
                       number(f, 0),
                       number(f, -127),
                       number(f, 127),
                       number(f, dtype_infos[DT_I8].executorch),
                       none};
    return apply(f, "dequantize_channels", args, 8, DT_F32);
}

struct conv {
    int64_t channels, outs, height, width, kernel, stride, padding, dilation, groups;
};

/* Of an image of one column, the kernel is one column, too. */
static uint32_t convolve(struct fixture *f, uint32_t x, const struct conv *c)
{
    struct shape shape = {.rank = 4,
                          .dims = {c->outs, c->channels / c->groups, c->kernel,
                                   c->width == 1 ? 1 : c->kernel}};
    struct shape bias = {.rank = 1, .dims = {c->outs}};
    uint32_t args[] = {x,
                       weights(f, &shape),
                       constant(f, DT_F32, &bias),
                       pair(f, c->stride, c->stride),
                       pair(f, c->padding, c->width == 1 ? 0 : c->padding),
                       pair(f, c->dilation, c->dilation),
                       rt_graph_bool(&f->graph, false),
                       pair(f, 0, 0),
                       number(f, c->groups)};
    return apply(f, "convolution", args, 9, DT_F32);
}

static uint32_t input(struct fixture *f, enum dtype dtype, const struct shape *shape)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i < shape->rank; i++) {
        dims[i] = rt_dim_of(shape->dims[i]);
    }
    f->input = rt_graph_tensor(&f->graph, dtype, shape->rank, dims);
    f->graph.inputs = &f->input;
    f->graph.input_count = 1;
    return f->input;
}

static void set_output(struct fixture *f, uint32_t value)
{
    f->output = value;
    f->graph.outputs = &f->output;
    f->graph.output_count = 1;
}

/* ---- running --------------------------------------------------------------------------------- */

static void begin(struct fixture *f, const char *level, uint32_t seed, bool is_signed)
{
    struct hal_device_options options = {.workers = 1, .cpu_level = level};
    *f = (struct fixture){.seed = seed, .is_signed = is_signed};
    assert_ok(f->err, hal_device_open("cpu", &options, &f->device, &f->err));
    rt_graph_init(&f->graph, "m");
}

static void end(struct fixture *f)
{
    rt_graph_fini(&f->graph);
    hal_device_unref(f->device);
}

static void compile(struct fixture *f, bool quantizes)
{
    if (quantizes) {
        assert_ok(f->err, rt_pass_quantize(&f->graph, &f->err));
    }
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
}

/* The number of nodes with operator |op|. */
static uint32_t count(const struct fixture *f, const char *op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        n += strcmp(f->graph.nodes[i].op->name, op) == 0;
    }
    return n;
}

/* Runs the graph on an input made from |seed|. The caller frees the result by free(). */
static uint8_t *run(struct fixture *f, uint32_t seed, size_t *out_bytes)
{
    const struct rt_value *in = &f->graph.values[f->graph.inputs[0]];
    struct hal_binding slots[3] = {0};
    struct hal_semaphore *semaphore;
    struct rt_flow flow;
    struct rt_plan *plan;
    struct shape shape;
    assert_true(rt_value_shape(in, &shape));
    assert_ok(f->err,
              rt_flow_make(&flow, &f->graph, (struct rt_staging){0}, &f->graph.arena, &f->err));
    assert_ok(f->err, rt_plan_new(&flow, f->device, NULL, &plan, &f->err));
    slots[0].length = plan->workspace_bytes;
    slots[1].length = (size_t)shape_numel(&shape) * dtype_bytes(in->dtype);
    slots[2].length = plan->results[0].bytes;
    for (int i = 0; i < 3; i++) {
        size_t bytes = slots[i].length ? slots[i].length : 1;
        assert_ok(f->err, hal_buffer_new(f->device, bytes, &slots[i].buffer, &f->err));
    }
    uint8_t *x = hal_buffer_map(slots[1].buffer);
    f->seed = seed;
    for (size_t i = 0; i < slots[1].length / dtype_bytes(in->dtype); i++) {
        if (in->dtype == DT_F32) {
            ((float *)(void *)x)[i] = (float)(next_random(f) % 2001) * 1e-3f - 0.7f;
        } else {
            x[i] = (uint8_t)next_random(f);
        }
    }
    assert_ok(f->err, hal_semaphore_new(0, &semaphore, &f->err));
    struct hal_submission submission = {.command = plan->command,
                                        .slots = slots,
                                        .slot_count = 3,
                                        .signal = {{semaphore, 1}},
                                        .signal_count = 1};
    assert_ok(f->err, hal_queue_submit(f->device, &submission, &f->err));
    assert_int_equal(hal_semaphore_wait(semaphore, 1, UINT64_MAX), ST_OK);
    *out_bytes = slots[2].length;
    uint8_t *result = malloc(slots[2].length);
    assert_non_null(result);
    memcpy(result, hal_buffer_map(slots[2].buffer), slots[2].length);
    for (int i = 0; i < 3; i++) {
        hal_buffer_unref(slots[i].buffer);
    }
    hal_semaphore_unref(semaphore);
    rt_plan_unref(plan);
    return result;
}

typedef void build_f(struct fixture *f, const void *arg);

static void assert_alike(const struct fixture *f, const uint8_t *a, const uint8_t *b, size_t bytes)
{
    enum dtype dtype = f->graph.values[f->graph.outputs[0]].dtype;
    for (size_t i = 0; i < bytes / dtype_bytes(dtype); i++) {
        double x, y, tolerance = 1;
        if (dtype == DT_F32) {
            x = (double)((const float *)(const void *)a)[i];
            y = (double)((const float *)(const void *)b)[i];
            tolerance = 1e-4 * (1 + fabs(y));
        } else {
            x = dtype == DT_I8 ? (int8_t)a[i] : a[i];
            y = dtype == DT_I8 ? (int8_t)b[i] : b[i];
        }
        if (!(fabs(x - y) <= tolerance)) {
            fail_msg("at %zu: %g, expected %g", i, x, y);
        }
    }
}

/* Runs the graph with and without the pass at every level, signed and unsigned. The pass must make
 * a node of |op|. */
static void compare(build_f *build, const void *arg, const char *op)
{
    for (int isa = 0; isa < HAL_CPU_ISA_COUNT; isa++) {
        const char *level = hal_cpu_isa_name((enum hal_cpu_isa)isa);
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            struct fixture f;
            size_t bytes, same;
            if (!has_level((enum hal_cpu_isa)isa)) {
                continue;
            }
            begin(&f, level, 7, is_signed);
            build(&f, arg);
            compile(&f, false);
            uint8_t *want = run(&f, 99, &bytes);
            end(&f);
            begin(&f, level, 7, is_signed);
            build(&f, arg);
            compile(&f, true);
            assert_true(count(&f, op) > 0);
            assert_int_equal(count(&f, "conv") + count(&f, "conv_dw") + count(&f, "gemm"), 0);
            uint8_t *got = run(&f, 99, &same);
            assert_int_equal(bytes, same);
            assert_alike(&f, got, want, bytes);
            end(&f);
            free(got);
            free(want);
        }
    }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static int64_t zero_of(const struct fixture *f)
{
    return f->is_signed ? -20 : 100;
}

static uint32_t image(struct fixture *f, const struct conv *c)
{
    struct shape shape = {.rank = 4, .dims = {2, c->channels, c->height, c->width}};
    return dequantize(f, input(f, byte_type(f), &shape), 0.02, zero_of(f));
}

static void build_conv(struct fixture *f, const void *arg)
{
    uint32_t y = convolve(f, image(f, arg), arg);
    y = apply(f, "relu", &y, 1, DT_F32);
    set_output(f, quantize(f, y, 1.5, zero_of(f) - 60));
}

static void convolutions(void **state)
{
    static const struct conv convs[] = {
        {3, 20, 11, 9, 3, 2, 1, 1, 1},  {16, 33, 7, 7, 3, 1, 1, 1, 1}, {5, 7, 8, 6, 1, 1, 0, 1, 1},
        {8, 40, 6, 6, 1, 2, 0, 1, 1},   {12, 9, 9, 9, 3, 1, 2, 2, 3},  {8, 16, 5, 5, 5, 1, 2, 1, 2},
        {64, 48, 6, 16, 3, 1, 1, 1, 1}, {7, 5, 9, 9, 3, 1, 1, 2, 1},
        {16, 33, 40, 1, 3, 1, 1, 1, 1}, {7, 20, 41, 1, 5, 2, 4, 2, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        compare(build_conv, &convs[i], "q_conv");
    }
}

static void depthwise_convolutions(void **state)
{
    static const struct conv convs[] = {
        {20, 20, 9, 9, 3, 1, 1, 1, 20},
        {70, 70, 8, 7, 3, 2, 1, 1, 70},
        {16, 16, 9, 9, 5, 1, 2, 1, 16},
        {33, 33, 9, 9, 3, 1, 3, 3, 33},
        {20, 20, 30, 1, 3, 2, 1, 1, 20},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        compare(build_conv, &convs[i], "q_conv_dw");
    }
}

struct linear {
    int64_t m, k, n;
    bool is_float; /* whether the result stays float */
};

static uint32_t product(struct fixture *f, uint32_t x, const struct linear *l)
{
    struct shape shape = {.rank = 2, .dims = {l->n, l->k}}, bias = {.rank = 1, .dims = {l->n}};
    uint32_t args[] = {x, weights(f, &shape), constant(f, DT_F32, &bias)};
    return apply(f, "linear", args, 3, DT_F32);
}

static void build_linear(struct fixture *f, const void *arg)
{
    const struct linear *l = arg;
    struct shape shape = {.rank = 2, .dims = {l->m, l->k}};
    uint32_t x = dequantize(f, input(f, byte_type(f), &shape), 0.02, zero_of(f));
    uint32_t y = product(f, x, l);
    set_output(f, l->is_float ? y : quantize(f, y, 1.0, zero_of(f)));
}

/* Quantizes rows of |x| by their own range, and converts them back. */
static uint32_t restore_rows(struct fixture *f, uint32_t x)
{
    uint32_t args[] = {x, number(f, 1)};
    uint32_t outs[] = {rt_graph_tensor(&f->graph, DT_I8, 0, NULL),
                       rt_graph_tensor(&f->graph, DT_F32, 0, NULL),
                       rt_graph_tensor(&f->graph, DT_I32, 0, NULL)};
    uint32_t node = rt_graph_node(&f->graph, rt_op_find("quantize_dynamic"), args, 2, outs, 3);
    assert_ok(f->err, rt_graph_infer(&f->graph, node, &f->err));
    uint32_t rows[] = {outs[0],
                       outs[1],
                       outs[2],
                       number(f, -128),
                       number(f, 127),
                       number(f, dtype_infos[DT_I8].executorch),
                       number(f, dtype_infos[DT_F32].executorch)};
    return apply(f, "dequantize_rows", rows, 7, DT_F32);
}

static void build_dynamic(struct fixture *f, const void *arg)
{
    const struct linear *l = arg;
    struct shape shape = {.rank = 2, .dims = {l->m, l->k}};
    set_output(f, product(f, restore_rows(f, input(f, DT_F32, &shape)), l));
}

/* Two products of the same rows; each of them quantizes the rows. */
static void rows_are_quantized_once(void **state)
{
    static const struct linear l = {5, 32, 24, true};
    const struct shape shape = {.rank = 2, .dims = {5, 32}};
    struct fixture f;
    (void)state;
    begin(&f, "generic", 7, false);
    uint32_t x = input(&f, DT_F32, &shape);
    uint32_t sum[] = {product(&f, restore_rows(&f, x), &l), product(&f, restore_rows(&f, x), &l),
                      number(&f, 1)};
    set_output(&f, apply(&f, "add", sum, 3, DT_F32));
    compile(&f, true);
    assert_int_equal(count(&f, "q_linear"), 2);
    assert_int_equal(count(&f, "quantize_dynamic"), 1);
    assert_int_equal(count(&f, "q_flip"), 1);
    end(&f);
}

static void linears(void **state)
{
    static const struct linear all[] = {
        {1, 64, 10, false},
        {9, 37, 33, false},
        {17, 128, 70, true},
        {3, 6, 1, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        compare(build_linear, &all[i], "q_linear");
        compare(build_dynamic, &all[i], "q_linear");
    }
}

static const struct conv plain = {16, 16, 7, 5, 3, 1, 1, 1, 1};

static void build_sum(struct fixture *f, const void *arg)
{
    uint32_t x = image(f, &plain);
    uint32_t y = quantize(f, convolve(f, x, &plain), 1.1, zero_of(f));
    uint32_t args[] = {dequantize(f, y, 1.1, zero_of(f)), x, number(f, 1)};
    uint32_t sum = apply(f, arg, args, strcmp(arg, "mul") == 0 ? 2 : 3, DT_F32);
    set_output(f, quantize(f, sum, 1.4, zero_of(f)));
}

static void build_function(struct fixture *f, const void *arg)
{
    uint32_t x = image(f, &plain);
    uint32_t y = apply(f, arg, &x, 1, DT_F32);
    set_output(f, quantize(f, y, 0.01, zero_of(f)));
}

static void build_mean(struct fixture *f, const void *arg)
{
    uint32_t args[] = {image(f, &plain), pair(f, 2, -1), rt_graph_bool(&f->graph, true),
                       rt_graph_none(&f->graph)};
    (void)arg;
    set_output(f, quantize(f, apply(f, "mean", args, 4, DT_F32), 0.011, zero_of(f)));
}

/* Two tensors whose quantization differs from that of their concatenation. */
static void build_cat(struct fixture *f, const void *arg)
{
    uint32_t x = image(f, &plain), y = quantize(f, convolve(f, x, &plain), 1.1, zero_of(f));
    uint32_t items[] = {x, dequantize(f, y, 1.1, zero_of(f))};
    uint32_t args[] = {rt_graph_tensors(&f->graph, items, 2), number(f, 1)};
    (void)arg;
    set_output(f, quantize(f, apply(f, "cat", args, 2, DT_F32), 1.3, zero_of(f)));
}

/* A constant tensor of one element. */
static uint32_t single(struct fixture *f, enum dtype dtype, const void *number)
{
    const struct shape one = {.rank = 1, .dims = {1}};
    struct hal_buffer *buffer;
    assert_ok(f->err, hal_buffer_new(f->device, dtype_bytes(dtype), &buffer, &f->err));
    memcpy(hal_buffer_map(buffer), number, dtype_bytes(dtype));
    uint32_t value = rt_graph_constant(&f->graph, dtype, &one, span_of(NULL, 0));
    rt_graph_set_constant(&f->graph, value, buffer);
    return value;
}

/* Scales and zero points in tensors, as some exporters write them. */
static void build_tensors(struct fixture *f, const void *arg)
{
    const double scale = 1.1;
    const float narrow = 0.9f;
    const int64_t zero = zero_of(f);
    const int32_t narrow_zero = (int32_t)zero;
    uint32_t y[7] = {convolve(f, image(f, arg), arg), single(f, DT_F64, &scale),
                     single(f, DT_I64, &zero)};
    bounds(f, y + 3);
    uint32_t bytes = apply(f, "quantize_tensor", y, 6, byte_type(f));
    uint32_t x[7] = {bytes, single(f, DT_F64, &scale), single(f, DT_I64, &zero)};
    bounds(f, x + 3);
    x[6] = rt_graph_none(&f->graph);
    uint32_t again[7] = {convolve(f, apply(f, "dequantize_tensor", x, 7, DT_F32), arg),
                         single(f, DT_F32, &narrow), single(f, DT_I32, &narrow_zero)};
    bounds(f, again + 3);
    set_output(f, apply(f, "quantize_tensor", again, 6, byte_type(f)));
}

static void scales_in_tensors(void **state)
{
    (void)state;
    compare(build_tensors, &plain, "q_conv");
}

static void operators_between_products(void **state)
{
    (void)state;
    compare(build_sum, "add", "q_add");
    compare(build_sum, "sub", "q_add");
    compare(build_sum, "mul", "q_mul");
    compare(build_function, "sigmoid", "q_lookup");
    compare(build_function, "tanh", "q_lookup");
    compare(build_mean, NULL, "q_mean");
    compare(build_cat, NULL, "q_add");
}

/* Pads, pools and moves integers. There are no floats between the first and the last node. */
static void integers_stay_integers(void **state)
{
    static const char want[] = "method m(%1:u8[2,16,7,5])\n";
    struct fixture f;
    struct buf text;
    (void)state;
    begin(&f, "generic", 7, false);
    build_conv(&f, &plain);
    uint32_t y = f.output, x = dequantize(&f, y, 1.5, zero_of(&f) - 60);
    set_output(&f, quantize(&f, convolve(&f, x, &plain), 2.0, 90));
    compile(&f, true);
    buf_init(&text, 4096);
    rt_graph_print(&f.graph, NULL, &text);
    assert_int_equal(count(&f, "q_conv"), 2);
    assert_int_equal(count(&f, "quantize") + count(&f, "dequantize"), 0);
    assert_memory_equal(text.ptr, want, sizeof(want) - 1);
    buf_fini(&text);
    end(&f);
}

/* Sums that could overflow 32 bits. */
static void others_stay_floats(void **state)
{
    static const struct linear deep = {1, 70000, 1, true};
    struct fixture f;
    (void)state;
    begin(&f, "generic", 7, false);
    build_linear(&f, &deep);
    compile(&f, true);
    assert_int_equal(count(&f, "q_linear"), 0);
    assert_int_equal(count(&f, "gemm"), 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(depthwise_convolutions),
        cmocka_unit_test(linears),
        cmocka_unit_test(rows_are_quantized_once),
        cmocka_unit_test(scales_in_tensors),
        cmocka_unit_test(operators_between_products),
        cmocka_unit_test(integers_stay_integers),
        cmocka_unit_test(others_stay_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
