/* SPDX-License-Identifier: MIT */
/* Replaces scales and zero points that are constant tensors with one element by numbers, the form
 * that the rest of the quantize pass expects. PyTorch reads the numbers from the tensors, too. */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/quantize.h"

/* Reads the number of a constant with one element; false if |v| is anything else. */
static bool read_number(const struct rt_value *v, double *out_number)
{
    struct shape shape;
    bool is_single = v->kind == RT_TENSOR && v->is_constant && rt_value_shape(v, &shape) &&
                     shape_numel(&shape) == 1 && v->bytes.len >= dtype_bytes(v->dtype);
    uint64_t bits = 0;
    float f32;
    if (!is_single) {
        return false;
    }
    memcpy(&bits, v->bytes.ptr, dtype_bytes(v->dtype));
    switch (v->dtype) {
    case DT_F32:
        memcpy(&f32, &bits, sizeof(f32));
        *out_number = (double)f32;
        return true;
    case DT_F64:
        memcpy(out_number, &bits, sizeof(*out_number));
        return true;
    case DT_I32:
        *out_number = (double)(int32_t)bits;
        return true;
    case DT_I64:
        *out_number = (double)(int64_t)bits;
        return true;
    default:
        return false;
    }
}

/* The operator that is |node| with scale and zero point as numbers, or NULL. */
static const struct rt_op *form_with_numbers(const struct rt_node *node)
{
    return q_is(node, RT_KNOWN_quantize_tensor)     ? RT_OP(quantize)
           : q_is(node, RT_KNOWN_dequantize_tensor) ? RT_OP(dequantize)
                                                    : NULL;
}

enum status q_settle_scales(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        const struct rt_op *form = form_with_numbers(node);
        double scale, zero;
        if (!form || node->arg_count > 7 || !read_number(rt_node_arg(graph, node, 1), &scale) ||
            !read_number(rt_node_arg(graph, node, 2), &zero) || !isfinite(scale) ||
            fabs(zero) > INT32_MAX) {
            continue;
        }
        uint32_t args[7], count = node->arg_count, out = node->outs[0], made;
        memcpy(args, node->args, count * sizeof(*args));
        args[1] = rt_graph_float(graph, scale);
        args[2] = rt_graph_int(graph, rt_dim_of((int64_t)zero));
        TRY(rt_op_apply(graph, form, args, count, graph->values[out].dtype, &made, err));
        rt_rewrite_replace(&rw, out, made);
    }
    return rt_rewrite_end(&rw, err);
}
