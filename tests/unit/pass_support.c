/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/pass_support.h"

#include <string.h>

#include "hal/buffer.h"
#include "runtime/code/fold.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/unit.h"

/* Arguments of convolutions of an image. */
static uint32_t stride, padding, dilation, no_padding;

uint32_t one;

float floats[FLOATS_MAX];

int pass_set_up(void **state)
{
    static struct fixture f;
    static const struct hal_device_options generic = {.workers = 1, .cpu_level = "generic"};
    f = (struct fixture){0};
    assert_ok(f.err, hal_device_open("cpu", &generic, &f.device, &f.err));
    graph_begin(&f);
    stride = dilation = graph_ints(&f, (const int64_t[]){1, 1, -1});
    padding = graph_ints(&f, (const int64_t[]){1, 1, -1});
    no_padding = graph_ints(&f, (const int64_t[]){0, 0, -1});
    one = number(&f, 1);
    for (int i = 0; i < FLOATS_MAX; i++) {
        floats[i] = (float)(i % 5 + 1);
    }
    *state = &f;
    return 0;
}

uint32_t weights_of(struct fixture *f, const int64_t sizes[4])
{
    struct shape shape = {.rank = 0};
    while (shape.rank < 4 && sizes[shape.rank] >= 0) {
        shape.dims[shape.rank] = sizes[shape.rank];
        shape.rank++;
    }
    size_t bytes = (size_t)shape_numel(&shape) * sizeof(float);
    assert_true(bytes <= sizeof(floats));
    uint32_t value = rt_graph_constant(&f->graph, DT_F32, &shape, span_of(NULL, 0));
    struct hal_buffer *buffer;
    assert_ok(f->err, hal_buffer_new(f->device, bytes, &buffer, &f->err));
    memcpy(hal_buffer_map(buffer), floats, bytes);
    rt_graph_set_constant(&f->graph, value, buffer);
    return value;
}

uint32_t relu(struct fixture *f, uint32_t x)
{
    return apply(f, "relu", &x, 1);
}

uint32_t add(struct fixture *f, uint32_t a, uint32_t b)
{
    uint32_t args[] = {a, b, one};
    return apply(f, "add", args, 3);
}

uint32_t clamp(struct fixture *f, const char *op, uint32_t x, double min, double max)
{
    uint32_t args[] = {x, rt_graph_float(&f->graph, min), rt_graph_float(&f->graph, max)};
    return apply(f, op, args, 3);
}

uint32_t convolve(struct fixture *f, uint32_t x, uint32_t w, uint32_t bias, int64_t groups,
                  bool is_transposed)
{
    bool is_1x1 = rt_dim_is(f->graph.values[w].dims[2], 1);
    uint32_t args[] = {
        x,
        w,
        bias ? bias : rt_graph_none(&f->graph),
        stride,
        is_1x1 ? no_padding : padding,
        dilation,
        rt_graph_bool(&f->graph, is_transposed),
        no_padding,
        rt_graph_int(&f->graph, rt_dim_of(groups)),
    };
    return apply(f, "convolution", args, 9);
}

uint32_t convert(struct fixture *f, uint32_t value, enum dtype dtype)
{
    uint32_t out;
    assert_ok(f->err, rt_op_convert(&f->graph, value, dtype, &out, &f->err));
    return out;
}

void lower(struct fixture *f)
{
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
}

void fuse(struct fixture *f)
{
    lower(f);
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
}

void lay_out(struct fixture *f)
{
    fuse(f);
    assert_ok(f->err, rt_pass_layout(&f->graph, &f->err));
}

/* The only node with operator |op|. */
const struct rt_node *node_of(const struct fixture *f, const char *op)
{
    const struct rt_node *found = NULL;
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, op) == 0) {
            assert_null(found);
            found = &f->graph.nodes[i];
        }
    }
    assert_non_null(found);
    return found;
}

/* x @ a constant matrix of 16 x 16, in precision bf16. */
uint32_t multiply(struct fixture *f, uint32_t x)
{
    uint32_t args[] = {x, WEIGHTS(16, 16), rt_graph_none(&f->graph)};
    return apply(f, "linear", args, 3);
}

/* The type of argument 0 of the last product. */
enum dtype narrowed(struct fixture *f)
{
    enum dtype dtype = DT_BOOL;
    f->graph.precision = PRECISION_BF16;
    assert_ok(f->err, rt_pass_lower(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_fuse(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_narrow(&f->graph, &f->err));
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (strcmp(f->graph.nodes[i].op->name, "gemm") == 0) {
            dtype = rt_node_arg(&f->graph, &f->graph.nodes[i], 0)->dtype;
        }
    }
    for (uint32_t i = 0; i < f->graph.output_count; i++) {
        assert_int_equal(f->graph.values[f->graph.outputs[i]].dtype, DT_F32);
    }
    return dtype;
}

void start_again(void **state)
{
    graph_tear_down(state);
    pass_set_up(state);
}
