/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/graph_support.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "tests/unit/unit.h"

static const float *constants;
static size_t constant_count;

void graph_begin(struct fixture *f)
{
    rt_graph_init(&f->graph, "m");
    f->graph.inputs = f->inputs;
    f->graph.outputs = f->outputs;
}

int graph_tear_down(void **state)
{
    struct fixture *f = *state;
    rt_graph_fini(&f->graph);
    hal_device_unref(f->device);
    return 0;
}

uint8_t graph_dims(const int64_t *sizes, struct rt_dim *dims)
{
    uint8_t rank = 0;
    while (sizes[rank] >= 0) {
        must(rank < SHAPE_RANK_MAX);
        dims[rank] = rt_dim_of(sizes[rank]);
        rank++;
    }
    return rank;
}

uint32_t graph_input(struct fixture *f, const int64_t *sizes)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint8_t rank = graph_dims(sizes, dims);
    uint32_t value = rt_graph_tensor(&f->graph, DT_F32, rank, dims);
    must(f->graph.input_count < FIXTURE_ENDS_MAX);
    f->inputs[f->graph.input_count++] = value;
    return value;
}

uint32_t graph_ints(struct fixture *f, const int64_t *items)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    return rt_graph_ints(&f->graph, dims, graph_dims(items, dims));
}

void graph_use_numbers(float *numbers, size_t count, size_t random)
{
    uint32_t bits = 1;
    for (size_t i = 0; i < random; i++) {
        bits = bits * 1664525U + 1013904223U;
        numbers[i] = (float)(bits >> 8) / 0x1p23F - 1.0F;
    }
    constants = numbers;
    constant_count = count;
}

uint32_t graph_constant(struct fixture *f, const int64_t *sizes, size_t first)
{
    struct shape shape = {.rank = 0};
    for (; sizes[shape.rank] >= 0; shape.rank++) {
        shape.dims[shape.rank] = sizes[shape.rank];
    }
    size_t bytes = (size_t)shape_numel(&shape) * sizeof(float);
    assert_true(first + bytes / sizeof(float) <= constant_count);
    struct span numbers = span_of(constants + first, bytes);
    uint32_t value = rt_graph_constant(&f->graph, DT_F32, &shape, numbers);
    if (f->device) {
        struct hal_buffer *buffer;
        assert_ok(f->err, hal_buffer_new(f->device, bytes, &buffer, &f->err));
        memcpy(hal_buffer_map(buffer), numbers.ptr, bytes);
        rt_graph_set_constant(&f->graph, value, buffer);
    }
    return value;
}

uint32_t number(struct fixture *f, int64_t value)
{
    return rt_graph_int(&f->graph, rt_dim_of(value));
}

uint32_t apply(struct fixture *f, const char *op, const uint32_t *args, uint32_t count)
{
    uint32_t out;
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find(op), args, count, DT_F32, &out, &f->err));
    return out;
}

void give(struct fixture *f, uint32_t value)
{
    must(f->graph.output_count < FIXTURE_ENDS_MAX);
    f->outputs[f->graph.output_count++] = value;
}

uint32_t count_ops(const struct fixture *f, const char *op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        count += strcmp(f->graph.nodes[i].op->name, op) == 0;
    }
    return count;
}

struct hal_device *open_cpu(enum hal_cpu_isa isa, uint32_t workers)
{
    const struct hal_device_options options = {.workers = workers,
                                               .cpu_level = hal_cpu_isa_name(isa)};
    struct hal_device *device;
    struct error err;
    assert_ok(err, hal_device_open("cpu", &options, &device, &err));
    return device;
}

void assert_graph(const struct fixture *f, const char *expected)
{
    struct buf text;
    char got[8192];
    buf_init(&text, sizeof(got) - 1);
    rt_graph_print(&f->graph, NULL, &text);
    assert_false(buf_failed(&text));
    snprintf(got, sizeof(got), "%.*s", SPAN_FMT(buf_span(&text)));
    assert_string_equal(got, expected);
    buf_fini(&text);
}
