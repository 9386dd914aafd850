/* SPDX-License-Identifier: MIT */
/* Fourier transforms over several dims as one "fft" for each dim: see passes.def. */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/fft.h"
#include "runtime/ops/known.h"
#include "runtime/passes/lower.h"

struct transform {
    uint8_t dim;
    enum rt_fft_mode mode;
    bool is_inverse;
    int64_t length, out; /* numbers to transform, and to write */
    double scale;
};

static enum status make_fft(struct rt_graph *graph, uint32_t x, const struct transform *t,
                            uint32_t *out, struct error *err)
{
    enum dtype dtype = graph->values[x].dtype;
    enum dtype part = t->mode == RT_FFT_FROM_REAL ? dtype : rt_convert_part(dtype);
    uint32_t length = rt_graph_int(graph, rt_dim_of(t->length)), table;

    TRY(rt_op_apply(graph, RT_OP(fft_table), &length, 1, part, &table, err));
    uint32_t args[] = {
        x,
        table,
        rt_graph_int(graph, rt_dim_of(t->dim)),
        rt_graph_int(graph, rt_dim_of((int64_t)t->mode)),
        rt_graph_bool(graph, t->is_inverse),
        length,
        rt_graph_int(graph, rt_dim_of(t->out)),
        rt_graph_float(graph, t->scale),
    };
    return rt_op_apply(graph, RT_OP(fft), args, 8,
                       t->mode == RT_FFT_TO_REAL ? part : rt_convert_complex(part), out, err);
}

/* Item |i| of the list of dims, as a dim of the node's first argument. */
static uint8_t dim_at(const struct rt_graph *graph, const struct rt_node *node, uint32_t i)
{
    return rt_dim_from_first(rt_node_arg(graph, node, 1)->ints[i].value,
                             rt_node_arg(graph, node, 0)->rank);
}

/* 1, 1 / sqrt(n) or 1 / n; n is the product of the lengths on the real side. */
static double scale_of(const struct rt_graph *graph, const struct rt_node *node,
                       const struct rt_value *real)
{
    int64_t normalization = rt_node_arg(graph, node, 2)->i.value;
    double n = 1;

    for (uint32_t i = 0; i < rt_node_arg(graph, node, 1)->count; i++) {
        n *= (double)real->dims[dim_at(graph, node, i)].value;
    }
    return normalization == 0 ? 1 : normalization == 1 ? 1 / sqrt(n) : 1 / n;
}

/* Transforms all dims of the list except the last one. */
static enum status make_others(struct rt_graph *graph, const struct rt_node *node, uint32_t x,
                               bool is_inverse, uint32_t *out, struct error *err)
{
    *out = x;
    for (uint32_t i = 0; i + 1 < rt_node_arg(graph, node, 1)->count; i++) {
        uint8_t dim = dim_at(graph, node, i);
        int64_t length = graph->values[x].dims[dim].value;
        struct transform t = {dim, RT_FFT_COMPLEX, is_inverse, length, length, 1};
        TRY(make_fft(graph, *out, &t, out, err));
    }
    return ST_OK;
}

enum status rt_lower_fft_r2c(struct rt_graph *graph, const struct rt_node *node,
                             uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    const struct rt_value *self = rt_node_arg(graph, node, 0), *out = rt_node_out(graph, node, 0);
    uint8_t dim = dim_at(graph, node, rt_node_arg(graph, node, 1)->count - 1);
    struct transform t = {dim,
                          RT_FFT_FROM_REAL,
                          false,
                          self->dims[dim].value,
                          out->dims[dim].value,
                          scale_of(graph, node, self)};
    uint32_t spectrum;

    TRY(make_fft(graph, node->args[0], &t, &spectrum, err));
    return make_others(graph, node, spectrum, false, &outs[0], err);
}

enum status rt_lower_fft_c2r(struct rt_graph *graph, const struct rt_node *node,
                             uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    const struct rt_value *out = rt_node_out(graph, node, 0);
    uint8_t dim = dim_at(graph, node, rt_node_arg(graph, node, 1)->count - 1);
    int64_t length = out->dims[dim].value;
    struct transform t = {dim, RT_FFT_TO_REAL, true, length, length, scale_of(graph, node, out)};
    uint32_t spectrum;

    TRY(make_others(graph, node, node->args[0], true, &spectrum, err));
    return make_fft(graph, spectrum, &t, &outs[0], err);
}

enum status rt_lower_fft_c2c(struct rt_graph *graph, const struct rt_node *node,
                             uint32_t outs[RT_LOWER_OUTS_MAX], struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    const struct rt_value *self = rt_node_arg(graph, node, 0);
    uint8_t dim = dim_at(graph, node, rt_node_arg(graph, node, 1)->count - 1);
    bool is_inverse = !rt_node_arg(graph, node, 3)->b;
    int64_t length = self->dims[dim].value;
    struct transform t = {dim,    RT_FFT_COMPLEX, is_inverse,
                          length, length,         scale_of(graph, node, self)};
    uint32_t part;

    TRY(make_others(graph, node, node->args[0], is_inverse, &part, err));
    return make_fft(graph, part, &t, &outs[0], err);
}
