/* SPDX-License-Identifier: MIT */
/* The operators of the Vulkan dialect. Most rows name one operator of the graph and the order of
 * its arguments. The others need several operators and have a function. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/import/vulkan.h"

/* ---- small ones ------------------------------------------------------------------------------ */

/* Copies that only change a texture's layout. */
static enum status import_identity(struct rt_vulkan_import *v)
{
    uint32_t value;
    TRY(rt_vulkan_tensor(v, 0, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Converts to the element type of the result; the payload does not store the call's own dtype. */
static enum status import_conversion(struct rt_vulkan_import *v)
{
    return import_identity(v);
}

static enum status filled(struct rt_vulkan_import *v, double number)
{
    const struct rt_vulkan_value *result = rt_vulkan_result(v, 0);
    uint32_t args[2], value;
    TRY(rt_vulkan_argument(v, 0, 'L', false, &args[0]));
    args[1] = rt_graph_float(v->graph, number);
    TRY(rt_vulkan_apply(v, RT_OP(full), args, 2, result ? rt_vulkan_dtype(result->dtype) : DT_F32,
                        &value));
    return rt_vulkan_define(v, 0, value);
}

static enum status import_ones(struct rt_vulkan_import *v)
{
    return filled(v, 1);
}

static enum status filled_like(struct rt_vulkan_import *v, double number)
{
    uint32_t args[3], value;
    TRY(rt_vulkan_tensor(v, 0, &args[0]));
    const struct rt_vulkan_value *result = rt_vulkan_result(v, 0);
    args[1] = rt_graph_float(v->graph, number);
    args[2] = rt_graph_none(v->graph);
    TRY(rt_vulkan_apply(v, RT_OP(full_like), args, 3,
                        result ? rt_vulkan_dtype(result->dtype) : DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}

static enum status import_zeros_like(struct rt_vulkan_import *v)
{
    return filled_like(v, 0);
}

static enum status import_ones_like(struct rt_vulkan_import *v)
{
    return filled_like(v, 1);
}

static enum status clamp(struct rt_vulkan_import *v, uint32_t value, double min, double max,
                         uint32_t *out_value)
{
    uint32_t args[] = {value, rt_graph_float(v->graph, min), rt_graph_float(v->graph, max)};
    return rt_vulkan_apply(v, RT_OP(clamp), args, 3, v->graph->values[value].dtype, out_value);
}

static enum status import_relu6(struct rt_vulkan_import *v)
{
    uint32_t value;
    TRY(rt_vulkan_tensor(v, 0, &value));
    TRY(clamp(v, value, 0, 6, &value));
    return rt_vulkan_define(v, 0, value);
}

/* clamp(x + 3, 0, 6) / 6, times x for hardswish */
static enum status hard_gate(struct rt_vulkan_import *v, uint32_t x, uint32_t *out_value)
{
    enum dtype dtype = v->graph->values[x].dtype;
    uint32_t shifted[] = {x, rt_graph_float(v->graph, 3), rt_graph_int(v->graph, rt_dim_of(1))};
    TRY(rt_vulkan_apply(v, RT_OP(add_scalar), shifted, 3, dtype, out_value));
    TRY(clamp(v, *out_value, 0, 6, out_value));
    uint32_t scaled[] = {*out_value, rt_graph_float(v->graph, 6)};
    return rt_vulkan_apply(v, RT_OP(div_scalar), scaled, 2, dtype, out_value);
}

static enum status import_hardsigmoid(struct rt_vulkan_import *v)
{
    uint32_t x, value;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(hard_gate(v, x, &value));
    return rt_vulkan_define(v, 0, value);
}

static enum status import_hardswish(struct rt_vulkan_import *v)
{
    uint32_t args[2], value;
    TRY(rt_vulkan_tensor(v, 0, &args[0]));
    TRY(hard_gate(v, args[0], &args[1]));
    TRY(rt_vulkan_apply(v, RT_OP(mul), args, 2, v->graph->values[args[0]].dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

/* x where |x| > lambda, else 0 */
static enum status import_hardshrink(struct rt_vulkan_import *v)
{
    uint32_t x, magnitude, is_small, value;
    double lambda;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(rt_vulkan_number(v, 1, &lambda));
    enum dtype dtype = v->graph->values[x].dtype;
    TRY(rt_vulkan_apply(v, RT_OP(abs), &x, 1, dtype, &magnitude));
    uint32_t compared[] = {magnitude, rt_graph_float(v->graph, lambda)};
    TRY(rt_vulkan_apply(v, RT_OP(le_scalar), compared, 2, DT_BOOL, &is_small));
    uint32_t masked[] = {x, is_small, rt_graph_float(v->graph, 0)};
    TRY(rt_vulkan_apply(v, RT_OP(masked_fill), masked, 3, dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Repeats each place |repeats| times along |dim|. */
static enum status import_repeat_interleave(struct rt_vulkan_import *v)
{
    uint32_t x, value, tiled;
    int64_t repeats, dim;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(rt_vulkan_whole(v, 1, &repeats));
    TRY(rt_vulkan_whole(v, 2, &dim));
    struct rt_value tensor = v->graph->values[x];
    dim += dim < 0 ? tensor.rank : 0;
    if (dim < 0 || dim >= tensor.rank || repeats < 0 || tensor.rank == SHAPE_RANK_MAX) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "cannot repeat %" PRId64 " times along dim %" PRId64 " of rank %u",
                         repeats, dim, tensor.rank);
    }
    struct rt_dim times[SHAPE_RANK_MAX], dims[SHAPE_RANK_MAX];
    for (uint8_t d = 0; d <= tensor.rank; d++) {
        times[d] = rt_dim_of(d == dim + 1 ? repeats : 1);
    }
    for (uint8_t d = 0; d < tensor.rank; d++) {
        dims[d] = d == dim ? rt_dim_mul(&v->graph->dims, tensor.dims[d], rt_dim_of(repeats))
                           : tensor.dims[d];
    }
    uint32_t apart[] = {x, rt_graph_int(v->graph, rt_dim_of(dim + 1))};
    TRY(rt_vulkan_apply(v, RT_OP(unsqueeze), apart, 2, tensor.dtype, &tiled));
    uint32_t repeated[] = {tiled, rt_graph_ints(v->graph, times, tensor.rank + 1u)};
    TRY(rt_vulkan_apply(v, RT_OP(repeat), repeated, 2, tensor.dtype, &tiled));
    uint32_t viewed[] = {tiled, rt_graph_ints(v->graph, dims, tensor.rank)};
    TRY(rt_vulkan_apply(v, RT_OP(view), viewed, 2, tensor.dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

static enum status apply_clamp(struct rt_vulkan_import *v, uint32_t value, uint32_t bounds,
                               uint32_t *out_value)
{
    double min = -INFINITY, max = INFINITY;
    *out_value = value;
    if (!rt_vulkan_is_null(v, bounds)) {
        TRY(rt_vulkan_number(v, bounds, &min));
    }
    if (!rt_vulkan_is_null(v, bounds + 1)) {
        TRY(rt_vulkan_number(v, bounds + 1, &max));
    }
    return min != -INFINITY || max != INFINITY ? clamp(v, value, min, max, out_value) : ST_OK;
}

/* Arguments: x, weights, bias, stride, padding, dilation, groups, and optional bounds. */
static enum status import_conv1d(struct rt_vulkan_import *v)
{
    static const char letters[] = "TTTLLL";
    uint32_t args[9], value;
    struct rt_dim zero = rt_dim_of(0);
    for (uint32_t i = 0; i < 6; i++) {
        TRY(rt_vulkan_argument(v, i, letters[i], i == 2, &args[i]));
    }
    args[6] = rt_graph_bool(v->graph, false);
    args[7] = rt_graph_ints(v->graph, &zero, 1);
    TRY(rt_vulkan_argument(v, 6, 'I', false, &args[8]));
    TRY(rt_vulkan_apply(v, RT_OP(convolution), args, 9, v->graph->values[args[0]].dtype, &value));
    TRY(apply_clamp(v, value, 7, &value));
    return rt_vulkan_define(v, 0, value);
}

/* A convolution, then a clamp with optional bounds. */
static enum status import_conv_with_clamp(struct rt_vulkan_import *v)
{
    static const char letters[] = "TTTLLLBLI";
    uint32_t args[9], value;
    for (uint32_t i = 0; i < 9; i++) {
        TRY(rt_vulkan_argument(v, i, letters[i], i == 2, &args[i]));
    }
    TRY(rt_vulkan_apply(v, RT_OP(convolution), args, 9, v->graph->values[args[0]].dtype, &value));
    TRY(apply_clamp(v, value, 9, &value));
    return rt_vulkan_define(v, 0, value);
}

/* x / sqrt(mean(x * x) + eps) * weight over the last dim */
static enum status import_rms_norm(struct rt_vulkan_import *v)
{
    uint32_t x, weight, value;
    double eps;
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(rt_vulkan_tensor(v, 1, &weight));
    TRY(rt_vulkan_number(v, 2, &eps));
    enum dtype dtype = v->graph->values[x].dtype;
    uint32_t square[] = {x, x};
    TRY(rt_vulkan_apply(v, RT_OP(mul), square, 2, dtype, &value));
    struct rt_dim last = rt_dim_of(-1);
    uint32_t mean[] = {value, rt_graph_ints(v->graph, &last, 1), rt_graph_bool(v->graph, true),
                       rt_graph_none(v->graph)};
    TRY(rt_vulkan_apply(v, RT_OP(mean), mean, 4, dtype, &value));
    uint32_t sum[] = {value, rt_graph_float(v->graph, eps), rt_graph_int(v->graph, rt_dim_of(1))};
    TRY(rt_vulkan_apply(v, RT_OP(add_scalar), sum, 3, dtype, &value));
    TRY(rt_vulkan_apply(v, RT_OP(rsqrt), &value, 1, dtype, &value));
    uint32_t normal[] = {x, value};
    TRY(rt_vulkan_apply(v, RT_OP(mul), normal, 2, dtype, &value));
    uint32_t product[] = {value, weight};
    TRY(rt_vulkan_apply(v, RT_OP(mul), product, 2, dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

static enum status as_rows(struct rt_vulkan_import *v, uint32_t index, uint32_t *out_value)
{
    TRY(rt_vulkan_tensor(v, index, out_value));
    const struct rt_value *t = &v->graph->values[*out_value];
    if (t->rank == 0) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "argument %" PRIu32 " has rank 0, expected at least 1", index);
    }
    struct rt_dim dims[] = {rt_dim_of(-1), t->dims[t->rank - 1]};
    uint32_t args[] = {*out_value, rt_graph_ints(v->graph, dims, 2)};
    return rt_vulkan_apply(v, RT_OP(view), args, 2, t->dtype, out_value);
}

/* The gradient of weights, [N, K], from gradients of results [.., N] and inputs [.., K]. */
static enum status import_weight_gradient(struct rt_vulkan_import *v)
{
    uint32_t args[2], value;
    TRY(as_rows(v, 0, &args[0]));
    TRY(as_rows(v, 1, &args[1]));
    uint32_t turned[] = {args[0], rt_graph_int(v->graph, rt_dim_of(0)),
                         rt_graph_int(v->graph, rt_dim_of(1))};
    TRY(rt_vulkan_apply(v, RT_OP(transpose), turned, 3, DT_F32, &args[0]));
    TRY(rt_vulkan_apply(v, RT_OP(mm), args, 2, DT_F32, &value));
    return rt_vulkan_define(v, 0, value);
}

/* ---- attention ------------------------------------------------------------------------------- */

static enum status transpose(struct rt_vulkan_import *v, uint32_t value, int64_t a, int64_t b,
                             uint32_t *out_value)
{
    uint32_t args[] = {value, rt_graph_int(v->graph, rt_dim_of(a)),
                       rt_graph_int(v->graph, rt_dim_of(b))};
    return rt_vulkan_apply(v, RT_OP(transpose), args, 3, v->graph->values[value].dtype, out_value);
}

/* [B, H, S, D] as [B * H, S, D], for bmm. */
static enum status join_heads(struct rt_vulkan_import *v, uint32_t value, uint32_t *out_value)
{
    const struct rt_value *t = &v->graph->values[value];
    struct rt_dim dims[3] = {rt_dim_mul(&v->graph->dims, t->dims[0], t->dims[1]), t->dims[2],
                             t->dims[3]};
    uint32_t args[] = {value, rt_graph_ints(v->graph, dims, 3)};
    return rt_vulkan_apply(v, RT_OP(view), args, 2, t->dtype, out_value);
}

static enum status split_heads(struct rt_vulkan_import *v, uint32_t value,
                               const struct rt_value *like, uint32_t *out_value)
{
    const struct rt_value *t = &v->graph->values[value];
    struct rt_dim dims[4] = {like->dims[0], like->dims[1], t->dims[1], t->dims[2]};
    uint32_t args[] = {value, rt_graph_ints(v->graph, dims, 4)};
    return rt_vulkan_apply(v, RT_OP(view), args, 2, t->dtype, out_value);
}

/* softmax(q @ k' * scale + mask) @ v, of tensors [B, H, S, D]. */
static enum status import_sdpa(struct rt_vulkan_import *v)
{
    uint32_t q, k, value, scores;
    TRY(rt_vulkan_tensor(v, 0, &q));
    TRY(rt_vulkan_tensor(v, 1, &k));
    TRY(rt_vulkan_tensor(v, 2, &value));
    const struct rt_value query = v->graph->values[q];
    if (query.rank != 4 || v->graph->values[k].rank != 4 || v->graph->values[value].rank != 4 ||
        !rt_dim_is_const(query.dims[3]) || query.dims[3].value == 0) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "attention expects tensors [B,H,S,D] with a fixed D");
    }
    double scale = 1 / sqrt((double)query.dims[3].value);
    if (!rt_vulkan_is_null(v, 4)) {
        TRY(rt_vulkan_number(v, 4, &scale));
    }
    TRY(transpose(v, k, 2, 3, &k));
    TRY(join_heads(v, q, &q));
    TRY(join_heads(v, k, &k));
    TRY(join_heads(v, value, &value));
    uint32_t product[] = {q, k};
    TRY(rt_vulkan_apply(v, RT_OP(bmm), product, 2, query.dtype, &scores));
    uint32_t scaled[] = {scores, rt_graph_float(v->graph, scale)};
    TRY(rt_vulkan_apply(v, RT_OP(mul_scalar), scaled, 2, query.dtype, &scores));
    TRY(split_heads(v, scores, &query, &scores));
    if (!rt_vulkan_is_null(v, 3)) {
        uint32_t masked[] = {scores, 0, rt_graph_int(v->graph, rt_dim_of(1))};
        TRY(rt_vulkan_tensor(v, 3, &masked[1]));
        TRY(rt_vulkan_apply(v, RT_OP(add), masked, 3, query.dtype, &scores));
    }
    uint32_t softmax[] = {scores, rt_graph_int(v->graph, rt_dim_of(-1)),
                          rt_graph_bool(v->graph, false)};
    TRY(rt_vulkan_apply(v, RT_OP(softmax), softmax, 3, query.dtype, &scores));
    TRY(join_heads(v, scores, &scores));
    uint32_t weighted[] = {scores, value};
    TRY(rt_vulkan_apply(v, RT_OP(bmm), weighted, 2, query.dtype, &value));
    TRY(split_heads(v, value, &query, &value));
    return rt_vulkan_define(v, 0, value);
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define ROW(name_, count_, op_, args_)                                                             \
    {                                                                                              \
        .name = (name_), .arg_count = (count_), .op = RT_KNOWN_##op_, .args = (args_)              \
    }
#define OWN(name_, count_, import_)                                                                \
    {                                                                                              \
        .name = (name_), .arg_count = (count_), .import = (import_)                                \
    }
#define UNARY(op) ROW("aten." #op ".default", 1, op, "0")
#define BINARY(name, op) ROW("aten." name, 2, op, "01")

/* clang-format off */
static const struct rt_vulkan_row rows[] = {
    /* pointwise */
    ROW("aten.add.Tensor", 3, add, "012"),
    ROW("aten.sub.Tensor", 3, sub, "012"),
    BINARY("mul.Tensor", mul),
    BINARY("div.Tensor", div),
    ROW("aten.div.Tensor_mode", 3, div_mode, "012"),
    BINARY("minimum.default", minimum),
    BINARY("maximum.default", maximum),
    BINARY("pow.Tensor_Tensor", pow),
    BINARY("pow.Tensor_Scalar", pow_scalar),
    BINARY("eq.Tensor", eq), BINARY("eq.Scalar", eq_scalar),
    BINARY("ne.Tensor", ne), BINARY("ne.Scalar", ne_scalar),
    BINARY("lt.Tensor", lt), BINARY("lt.Scalar", lt_scalar),
    BINARY("le.Tensor", le), BINARY("le.Scalar", le_scalar),
    BINARY("gt.Tensor", gt), BINARY("gt.Scalar", gt_scalar),
    BINARY("ge.Tensor", ge), BINARY("ge.Scalar", ge_scalar),
    BINARY("bitwise_and.Tensor", bitwise_and),
    BINARY("bitwise_or.Tensor", bitwise_or),
    BINARY("logical_and.default", logical_and),
    BINARY("logical_or.default", logical_or),
    UNARY(abs), UNARY(bitwise_not), UNARY(cos), UNARY(exp), UNARY(log10), UNARY(logical_not),
    UNARY(neg), UNARY(relu), UNARY(round), UNARY(rsqrt), UNARY(sigmoid), UNARY(sin), UNARY(sqrt),
    UNARY(tan), UNARY(tanh),
    ROW("aten.clamp.default", 3, clamp, "012"),
    ROW("aten.hardtanh.default", 3, hardtanh, "012"),
    ROW("aten.leaky_relu.default", 2, leaky_relu, "01"),
    ROW("aten.gelu.default", 2, gelu, "01"),
    ROW("aten.where.self", 3, where, "012"),
    OWN("aten.relu6.default", 1, import_relu6),
    OWN("aten.hardsigmoid.default", 1, import_hardsigmoid),
    OWN("aten.hardswish.default", 1, import_hardswish),
    OWN("aten.hardshrink.default", 2, import_hardshrink),

    /* copies */
    OWN("aten.clone.default", 2, import_identity),
    OWN("et_vk.prepack.default", 1, import_identity),
    OWN("aten._to_copy.default", 7, import_conversion),
    OWN("dim_order_ops._to_dim_order_copy.default", 7, import_conversion),

    /* shapes */
    ROW("aten.view_copy.default", 2, view, "01"),
    ROW("aten.permute_copy.default", 2, permute, "01"),
    ROW("aten.permute.default", 2, permute, "01"),
    ROW("aten.unsqueeze_copy.default", 2, unsqueeze, "01"),
    ROW("aten.squeeze_copy.dims", 2, squeeze, "01"),
    ROW("aten.expand_copy.default", 3, expand, "012"),
    ROW("aten.repeat.default", 2, repeat, "01"),
    ROW("aten.select_copy.int", 3, select, "012"),
    ROW("aten.select.int", 3, select, "012"),
    ROW("aten.slice_copy.Tensor", 5, slice, "01234"),
    ROW("aten.slice.Tensor", 5, slice, "01234"),
    ROW("aten.split_with_sizes_copy.default", 3, split_sizes, "012"),
    ROW("aten.cat.default", 2, cat, "01"),
    ROW("aten.flip.default", 2, flip, "01"),
    ROW("aten.unfold_copy.default", 4, unfold, "0123"),
    ROW("aten.constant_pad_nd.default", 3, constant_pad, "012"),
    ROW("aten.pixel_shuffle.default", 2, pixel_shuffle, "01"),
    OWN("aten.repeat_interleave.self_int", 4, import_repeat_interleave),

    /* indices */
    ROW("aten.embedding.default", 5, embedding, "01234"),
    ROW("aten.index.Tensor", 2, index, "01"),
    ROW("aten.index_select.default", 3, index_select, "012"),
    {.name = "aten.gather.default", .arg_count = 4, .op = RT_KNOWN_gather, .args = "0123",
     .long_args = 1 << 2},

    /* reductions */
    ROW("aten.sum.dim_IntList", 4, sum, "012_"),
    ROW("aten.mean.dim", 4, mean, "012_"),
    ROW("aten.amax.default", 3, amax, "012"),
    ROW("aten.amin.default", 3, amin, "012"),
    ROW("aten.var.dim", 4, var_unbiased, "0123"),
    {.name = "aten.argmax.default", .arg_count = 3, .op = RT_KNOWN_argmax, .args = "012",
     .long_outs = 1},
    {.name = "aten.argmin.default", .arg_count = 3, .op = RT_KNOWN_argmin, .args = "012",
     .long_outs = 1},
    ROW("aten._softmax.default", 3, softmax, "012"),
    ROW("aten._log_softmax.default", 3, log_softmax, "012"),

    /* products and norms */
    ROW("aten.mm.default", 2, mm, "01"),
    ROW("aten.bmm.default", 2, bmm, "01"),
    ROW("aten.addmm.default", 5, addmm, "01234"),
    ROW("aten.linear.default", 3, linear, "012"),
    ROW("aten.native_layer_norm.default", 5, layer_norm, "01234"),
    ROW("aten.native_group_norm.default", 8, group_norm, "01234567"),
    ROW("aten._native_batch_norm_legit_no_training.default", 7, batch_norm, "0123456"),
    OWN("et_vk.rms_norm.default", 3, import_rms_norm),
    OWN("et_vk.sdpa.default", 5, import_sdpa),
    OWN("et_vk.linear_dW.default", 2, import_weight_gradient),
    OWN("et_vk.apply_rotary_emb.default", 4, rt_vulkan_import_rotary),
    OWN("et_vk.apply_rotary_emb_hf.default", 5, rt_vulkan_import_rotary_halves),
    OWN("et_vk.apply_rotary_emb_interleaved.default", 2, rt_vulkan_import_rotary_interleaved),
    OWN("update_cache.default", 3, rt_vulkan_import_update_cache),
    OWN("sdpa_with_kv_cache.default", 11, rt_vulkan_import_caching_sdpa),
    OWN("llama.custom_sdpa.default", 8, rt_vulkan_import_cached_sdpa),

    /* images */
    ROW("aten.convolution.default", 9, convolution, "012345678"),
    ROW("et_vk.conv2d_gemm.default", 9, convolution, "012345678"),
    OWN("et_vk.conv_with_clamp.default", 11, import_conv_with_clamp),
    OWN("conv_with_clamp.default", 11, import_conv_with_clamp),
    OWN("et_vk.conv1d_pw.default", 9, import_conv1d),
    OWN("et_vk.conv1d_dw.default", 9, import_conv1d),
    OWN("et_vk.grid_priors.default", 3, rt_vulkan_import_grid_priors),
    ROW("aten.avg_pool2d.default", 7, avg_pool2d, "0123456"),
    {.name = "aten.max_pool2d_with_indices.default", .arg_count = 6, .op = RT_KNOWN_max_pool2d,
     .args = "012345", .long_outs = 1 << 1},
    {.name = "aten.max_pool2d.default", .arg_count = 6, .op = RT_KNOWN_max_pool2d, .args = "012345",
     .long_outs = 1 << 1},
    ROW("aten.upsample_bilinear2d.vec", 4, upsample_bilinear2d, "0123"),
    ROW("aten.upsample_nearest2d.vec", 3, upsample_nearest2d, "012"),
    ROW("aten.grid_sampler_2d.default", 5, grid_sampler_2d, "01234"),

    /* creation */
    ROW("aten.full.default", 6, full, "01"),
    ROW("aten.full_like.default", 7, full_like, "01_"),
    ROW("aten.scalar_tensor.default", 5, scalar_tensor, "0"),
    ROW("aten.arange.start_step", 7, arange_start, "012"),
    ROW("aten.zeros.default", 5, zeros, "0"),
    OWN("aten.ones.default", 5, import_ones),
    OWN("aten.zeros_like.default", 6, import_zeros_like),
    OWN("aten.ones_like.default", 6, import_ones_like),

    /* ints */
    ROW("sym_size.int", 2, sym_size, "01"),
    ROW("add", 2, sym_add, "01"),
    ROW("sub", 2, sym_sub, "01"),
    ROW("mul", 2, sym_mul, "01"),
    ROW("floordiv", 2, sym_floordiv, "01"),

    OWN("et_vk.select_as_symint.default", 3, rt_vulkan_import_select_as_int),

    /* quantized operators */
    OWN("quantized_decomposed.quantize_per_tensor.default", 6, rt_vulkan_import_quantize),
    OWN("quantized_decomposed.dequantize_per_tensor.default", 7, rt_vulkan_import_dequantize),
    OWN("quantized_decomposed.dequantize_per_channel.default", 8,
        rt_vulkan_import_dequantize_channels),
    OWN("torchao.dequantize_affine.default", 8, rt_vulkan_import_dequantize_affine),
    OWN("torchao.choose_qparams_affine.default", 10, rt_vulkan_import_choose_qparams),
    OWN("aten._weight_int8pack_mm.default", 3, rt_vulkan_import_q8csw),
    OWN("et_vk.linear_q4gsw.default", 5, rt_vulkan_import_q4gsw),
    OWN("et_vk.q4gsw_linear.default", 5, rt_vulkan_import_q4gsw),
    OWN("et_vk.linear_dq8ca_q4gsw.default", 8, rt_vulkan_import_dq8ca_q4gsw),
    OWN("et_vk.linear_qcs4w.default", 3, rt_vulkan_import_qcs4w),
    OWN("et_vk.linear_q4gsw_backward.default", 4, rt_vulkan_import_q4gsw_backward),
    OWN("et_vk.linear_q8csw.default", 4, rt_vulkan_import_q8csw),
    OWN("et_vk.linear_q8ta_q8csw.default", 7, rt_vulkan_import_q8ta_q8csw),
    OWN("et_vk.q8ta_linear.default", 10, rt_vulkan_import_q8ta_linear),
    OWN("et_vk.q8ta_linear_gemv.default", 10, rt_vulkan_import_q8ta_linear),
    OWN("et_vk.q8ta_conv2d.default", 15, rt_vulkan_import_q8ta_conv),
    OWN("et_vk.q8ta_conv2d_pw.default", 15, rt_vulkan_import_q8ta_conv),
    OWN("et_vk.q8ta_conv2d_general.default", 15, rt_vulkan_import_q8ta_conv),
    OWN("et_vk.q8ta_conv2d_im2col.default", 15, rt_vulkan_import_q8ta_conv),
    OWN("et_vk.q8ta_conv2d_dw.default", 15, rt_vulkan_import_q8ta_conv_dw),
    OWN("et_vk.q8ta_conv2d_transposed.default", 16, rt_vulkan_import_q8ta_conv_transposed),
    OWN("et_vk.q8ta_add.default", 9, rt_vulkan_import_q8ta_add),
    OWN("et_vk.q8ta_relu.default", 5, rt_vulkan_import_q8ta_relu),
    OWN("et_vk.q8ta_pixel_shuffle.default", 6, rt_vulkan_import_q8ta_pixel_shuffle),
    OWN("et_vk.embedding_q4gsw.default", 5, rt_vulkan_import_embedding_q4gsw),
};
/* clang-format on */

const struct rt_vulkan_row *rt_vulkan_row_find(struct span name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_is(name, rows[i].name)) {
            return &rows[i];
        }
    }
    return NULL;
}
