/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/graph_support.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "tests/unit/unit.h"

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
