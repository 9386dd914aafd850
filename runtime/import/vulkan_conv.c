/* SPDX-License-Identifier: MIT */
/*
 * Quantized convolutions; vulkan_quant.c has the other quantized operators. The payload stores
 * weights in orders that suit its shaders; here they are brought into the order of the graph's
 * convolution.
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "runtime/import/vulkan.h"

static enum status permute(struct rt_vulkan_import *v, uint32_t value, const int64_t *order,
                           uint32_t *out_value)
{
    struct rt_dim dims[SHAPE_RANK_MAX];
    const struct rt_value *tensor = &v->graph->values[value];
    for (uint8_t d = 0; d < tensor->rank; d++) {
        dims[d] = rt_dim_of(order[d]);
    }
    uint32_t args[] = {value, rt_graph_ints(v->graph, dims, tensor->rank)};
    return rt_vulkan_apply(v, RT_OP(permute), args, 2, tensor->dtype, out_value);
}

/*
 * The arguments of the call: x, scale, zero point, weights, sums, scales, scale, zero point, bias,
 * kernel, stride, padding, output padding if transposed, dilation, groups, activation. |weights|
 * are numbers in the order of the graph's convolution, for |outs| channels.
 */
static enum status convolve(struct rt_vulkan_import *v, uint32_t weights, int64_t outs,
                            bool is_transposed)
{
    uint32_t x, value, none = rt_graph_none(v->graph), more = is_transposed;
    struct rt_dim zeros[2] = {{0}};
    TRY(rt_vulkan_decode_arg(v, 0, 1, &x));
    uint32_t args[] = {x,
                       weights,
                       none,
                       0,
                       0,
                       0,
                       rt_graph_bool(v->graph, is_transposed),
                       rt_graph_ints(v->graph, zeros, 2),
                       0};
    if (!rt_vulkan_is_null(v, 8)) {
        TRY(rt_vulkan_tensor(v, 8, &args[2]));
        TRY(rt_vulkan_front(v, args[2], 0, outs, &args[2]));
    }
    TRY(rt_vulkan_argument(v, 10, 'L', false, &args[3]));
    TRY(rt_vulkan_argument(v, 11, 'L', false, &args[4]));
    if (is_transposed) {
        TRY(rt_vulkan_argument(v, 12, 'L', false, &args[7]));
    }
    TRY(rt_vulkan_argument(v, 12 + more, 'L', false, &args[5]));
    TRY(rt_vulkan_argument(v, 13 + more, 'I', false, &args[8]));
    TRY(rt_vulkan_apply(v, RT_OP(convolution), args, 9, DT_F32, &value));
    TRY(rt_vulkan_activate(v, 14 + more, &value));
    return rt_vulkan_define_encoded(v, value, 6);
}

static enum status kernel_size(struct rt_vulkan_import *v, int64_t *out_height, int64_t *out_width)
{
    const struct rt_vulkan_value *kernel = rt_vulkan_arg(v, 9);
    if (kernel->kind != VK_INT_LIST || kernel->count != 2 || kernel->ints[0] < 1 ||
        kernel->ints[1] < 1 || kernel->ints[0] > INT16_MAX || kernel->ints[1] > INT16_MAX) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "argument 9 is not a kernel size: expected two ints from 1 to 32767");
    }
    *out_height = kernel->ints[0];
    *out_width = kernel->ints[1];
    return ST_OK;
}

/* Weights [O, height * width * I / groups] with padded rows, as [O, height, width, I / groups]. */
static enum status unpad(struct rt_vulkan_import *v, uint32_t groups_index, int64_t *out_groups,
                         uint32_t *out_value)
{
    uint32_t x, weights;
    int64_t height = 1, width = 1, groups;
    TRY(kernel_size(v, &height, &width));
    TRY(rt_vulkan_whole(v, groups_index, &groups));
    TRY(rt_vulkan_tensor(v, 0, &x));
    TRY(rt_vulkan_matrix(v, 3, DT_I8, &weights));
    const struct rt_value *image = &v->graph->values[x];
    if (image->rank != 4 || !rt_dim_is_const(image->dims[1]) || groups < 1 ||
        image->dims[1].value % groups != 0 || image->dims[1].value > INT32_MAX) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "%" PRId64 " groups do not fit the image's channels", groups);
    }
    int64_t channels = image->dims[1].value / groups;
    TRY(rt_vulkan_front(v, weights, 1, height * width * channels, &weights));
    struct rt_dim dims[] = {v->graph->values[weights].dims[0], rt_dim_of(height), rt_dim_of(width),
                            rt_dim_of(channels)};
    uint32_t viewed[] = {weights, rt_graph_ints(v->graph, dims, 4)};
    *out_groups = groups;
    return rt_vulkan_apply(v, RT_OP(view), viewed, 2, DT_I8, out_value);
}

enum status rt_vulkan_import_q8ta_conv(struct rt_vulkan_import *v)
{
    static const int64_t order[] = {0, 3, 1, 2};
    uint32_t weights;
    int64_t groups;
    TRY(unpad(v, 13, &groups, &weights));
    TRY(permute(v, weights, order, &weights));
    int64_t outs = v->graph->values[weights].dims[0].value;
    TRY(rt_vulkan_channel_weights(v, weights, 5, &weights));
    return convolve(v, weights, outs, false);
}

/* The graph's transposed convolution has weights [I, O / groups, height, width]. */
enum status rt_vulkan_import_q8ta_conv_transposed(struct rt_vulkan_import *v)
{
    static const int64_t order[] = {0, 4, 1, 2, 3};
    uint32_t weights;
    int64_t groups;
    TRY(unpad(v, 14, &groups, &weights));
    const struct rt_value packed = v->graph->values[weights];
    int64_t outs = packed.dims[0].value, channels = packed.dims[3].value;
    if (outs % groups != 0) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "%" PRId64 " groups do not divide %" PRId64 " output channels", groups,
                         outs);
    }
    TRY(rt_vulkan_channel_weights(v, weights, 5, &weights));
    struct rt_dim apart[] = {rt_dim_of(groups), rt_dim_of(outs / groups), packed.dims[1],
                             packed.dims[2], packed.dims[3]};
    uint32_t viewed[] = {weights, rt_graph_ints(v->graph, apart, 5)};
    TRY(rt_vulkan_apply(v, RT_OP(view), viewed, 2, DT_F32, &weights));
    TRY(permute(v, weights, order, &weights));
    struct rt_dim joined[] = {rt_dim_of(groups * channels), apart[1], packed.dims[1],
                              packed.dims[2]};
    uint32_t flat[] = {weights, rt_graph_ints(v->graph, joined, 4)};
    TRY(rt_vulkan_apply(v, RT_OP(view), flat, 2, DT_F32, &weights));
    return convolve(v, weights, outs, true);
}

/* Weights [height, width, O] */
enum status rt_vulkan_import_q8ta_conv_dw(struct rt_vulkan_import *v)
{
    static const int64_t order[] = {2, 0, 1};
    uint32_t weights;
    TRY(rt_vulkan_tensor(v, 3, &weights));
    if (v->graph->values[weights].rank != 3 || v->graph->values[weights].dtype != DT_I8) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "argument 3 is not [height, width, channels] of i8");
    }
    TRY(permute(v, weights, order, &weights));
    uint32_t apart[] = {weights, rt_graph_int(v->graph, rt_dim_of(1))};
    TRY(rt_vulkan_apply(v, RT_OP(unsqueeze), apart, 2, DT_I8, &weights));
    int64_t outs = v->graph->values[weights].dims[0].value;
    TRY(rt_vulkan_channel_weights(v, weights, 5, &weights));
    return convolve(v, weights, outs, false);
}
