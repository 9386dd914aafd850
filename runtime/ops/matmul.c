/* SPDX-License-Identifier: MIT */
/*
 * Matrix products. The file's forms (mm, bmm, addmm, linear) have no kernels of their own: the
 * lower pass turns each into "gemm" over a packed right-hand side. Float32; other types are
 * refused when a method is loaded.
 */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/ops/gemm.h"

#define F32_ONLY (1u << DT_F32)

/* ---- the file's forms ------------------------------------------------------------------------ */

static enum status need_rank(struct rt_shape_call *call, uint32_t index, uint8_t rank)
{
    const struct rt_value *v = rt_arg(call, index);
    if (v->kind != RT_NONE && v->rank != rank) {
        return rt_refuse(call, "argument %u has rank %u, expected %u", index, v->rank, rank);
    }
    return rt_need_dtype(call, index, F32_ONLY);
}

/* Out of [.., m, k] x [.., k, n], |rank| 2 or 3. */
static enum status product(struct rt_shape_call *call, uint32_t left, uint8_t rank)
{
    const struct rt_value *a = rt_arg(call, left), *b = rt_arg(call, left + 1);
    struct rt_dims *dims = &call->graph->dims;
    TRY(need_rank(call, left, rank));
    TRY(need_rank(call, left + 1, rank));
    TRY(rt_need_out_dtype(call, 0, F32_ONLY));
    TRY(rt_dim_require_equal(dims, a->dims[rank - 1], b->dims[rank - 2],
                             "the inner sizes of a matrix product differ", call->err));
    if (rank == 3) {
        TRY(rt_dim_require_equal(dims, a->dims[0], b->dims[0],
                                 "the batches of a matrix product differ", call->err));
    }
    struct rt_dim out[3] = {a->dims[0], a->dims[rank - 2]};
    out[rank - 1] = b->dims[rank - 1];
    return rt_set_out(call, 0, rank, out);
}

static enum status mm_shape(struct rt_shape_call *call)
{
    return product(call, 0, 2);
}

static enum status bmm_shape(struct rt_shape_call *call)
{
    return product(call, 0, 3);
}

static enum status addmm_shape(struct rt_shape_call *call)
{
    const struct rt_value *bias = rt_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t rank;
    TRY(rt_need_dtype(call, 0, F32_ONLY));
    for (uint32_t i = 3; i < 5; i++) {
        if (!rt_value_is_fixed(rt_arg(call, i))) {
            return rt_unsupported(call, "argument %u depends on the inputs' dims", i);
        }
    }
    TRY(product(call, 1, 2));
    const struct rt_value *result = rt_node_out(call->graph, call->node, 0);
    TRY(rt_broadcast(call, bias->rank, bias->dims, 2, result->dims, out, &rank));
    if (rank != 2) {
        return rt_refuse(call, "the bias has rank %u, expected at most 2", bias->rank);
    }
    return ST_OK;
}

static enum status linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_arg(call, 0), *w = rt_arg(call, 1), *bias = rt_arg(call, 2);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim out[SHAPE_RANK_MAX];
    TRY(rt_need_dtype(call, 0, F32_ONLY));
    TRY(rt_need_out_dtype(call, 0, F32_ONLY));
    TRY(need_rank(call, 1, 2));
    TRY(need_rank(call, 2, 1));
    if (x->rank == 0) {
        return rt_refuse(call, "the input has rank 0");
    }
    TRY(rt_dim_require_equal(dims, x->dims[x->rank - 1], w->dims[1],
                             "the input's width is not the weights'", call->err));
    if (bias->kind == RT_TENSOR) {
        TRY(rt_dim_require_equal(dims, bias->dims[0], w->dims[0],
                                 "the bias is not as long as the weights are many", call->err));
    }
    for (uint8_t i = 0; i + 1 < x->rank; i++) {
        out[i] = x->dims[i];
    }
    out[x->rank - 1] = w->dims[0];
    return rt_set_out(call, 0, x->rank, out);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* B as [.., k, n] (pack_kn) or as [n, k] (pack_nk), the last two dims; others count matrices. */
static enum status pack_shape(struct rt_shape_call *call)
{
    const struct rt_value *b = rt_arg(call, 0);
    bool is_transposed = call->node->op->detail != NULL;
    struct rt_dim matrices = rt_dim_of(1), out[4];
    for (uint8_t i = 0; i + 2 < b->rank; i++) {
        matrices = rt_dim_mul(&call->graph->dims, matrices, b->dims[i]);
    }
    must(b->rank >= 2);
    rt_packed_dims(&call->graph->dims, matrices, b->dims[b->rank - (is_transposed ? 1 : 2)],
                   b->dims[b->rank - (is_transposed ? 2 : 1)], out);
    rt_node_out(call->graph, call->node, 0)->is_packed = true;
    return rt_set_out(call, 0, 4, out);
}

static enum status pack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *b = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    bool is_transposed = rt_emit_op(emit)->detail != NULL;
    int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
    struct rt_pack pack = {
        .column = is_transposed ? columns : 1,
        .inner_stride = is_transposed ? 1 : columns,
        .n = is_transposed ? rows : columns,
        .outer_count = 1,
        .inner_count = is_transposed ? columns : rows,
        .source = rows * columns,
        .packed = out->dims[1] * out->dims[2] * out->dims[3],
    };
    return rt_pack_emit(emit, &pack, out->dims[0], err);
}

/* ---- gemm ------------------------------------------------------------------------------------ */

/* x [.., m, k], packed, n, bias?, residual?, min, max. Several packed matrices:
 * one for each x[i]. */
enum { GEMM_X, GEMM_PACKED, GEMM_N, GEMM_BIAS, GEMM_RESIDUAL, GEMM_MIN, GEMM_MAX };

static enum status gemm_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_arg(call, GEMM_X);
    struct rt_dim out[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i + 1 < x->rank; i++) {
        out[i] = x->dims[i];
    }
    out[x->rank - 1] = rt_arg(call, GEMM_N)->i;
    return rt_set_out(call, 0, x->rank, out);
}

static struct hal_binding optional_binding(const struct rt_tensor *t)
{
    return t ? t->binding : (struct hal_binding){0};
}

static enum status gemm_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, GEMM_X), *b = rt_emit_arg(emit, GEMM_PACKED);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t k = b->dims[2], n = rt_emit_int(emit, GEMM_N), matrices = b->dims[0];
    int64_t rows = n > 0 ? out->numel / n : 0;
    int64_t images = matrices > 1 ? matrices : 1, m = rows / images;
    struct rt_gemm gemm = {
        .y = {.out = 1, .in = 1, .step = 1, .taps = 1, .spread = 1, .k_spread = 1},
        .x = {.out = m, .in = m, .step = 1, .taps = 1, .spread = 1, .k_spread = 1},
        .images = images,
        .groups = 1,
        .channels = k,
        .outs = n,
        .kernel_w = 1,
        .k = k,
        .image_in = m * k,
        .image_out = m * n,
        .line_in = m * k,
        .line_out = m * n,
        .pixel_out = n,
        .image_b = matrices > 1 ? b->dims[1] * b->dims[2] * b->dims[3] : 0,
        .min = (float)rt_emit_number(emit, GEMM_MIN),
        .max = (float)rt_emit_number(emit, GEMM_MAX),
    };
    struct rt_gemm_tensors tensors = {
        .out = out->binding,
        .in = x->binding,
        .weights = b->binding,
        .bias = optional_binding(rt_emit_arg(emit, GEMM_BIAS)),
        .residual = optional_binding(rt_emit_arg(emit, GEMM_RESIDUAL)),
    };
    return rt_gemm_emit(emit, &gemm, &tensors, err);
}

static const bool transposed = true;
static const struct rt_epilogue gemm_epilogue = {GEMM_RESIDUAL, GEMM_MIN, GEMM_MAX};

const struct rt_op rt_ops_matmul[] = {
    {"mm", "aten::mm.out", "TT>T", mm_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL},
    {"bmm", "aten::bmm.out", "TT>T", bmm_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL},
    {"addmm", "aten::addmm.out", "TTTSS>T", addmm_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL},
    {"linear", "aten::linear.out", "TTT?>T", linear_shape, NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL},
    {"pack_kn", NULL, "T>T", pack_shape, pack_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL},
    {"pack_nk", NULL, "T>T", pack_shape, pack_emit, 0, RT_LAYOUT_ROW_MAJOR, &transposed},
    {"gemm", NULL, "TTIT?T?FF>T", gemm_shape, gemm_emit, RT_OP_EPILOGUE, RT_LAYOUT_ROW_MAJOR,
     &gemm_epilogue},
    {0},
};
