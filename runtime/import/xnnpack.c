/* SPDX-License-Identifier: MIT */
/* The import of one XNNPACK delegate call: its arguments, its nodes in order, its results. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/import/xnnpack.h"
#include "runtime/ops/apply.h"

/* Decoded tables take about ten times the bytes of their payload. */
#define DECODED_BYTES_MAX (64u << 20)

/* ---- building -------------------------------------------------------------------------------- */

enum status rt_xnnpack_apply(struct rt_xnnpack_import *x, const struct rt_op *op,
                             const uint32_t *args, uint32_t arg_count, enum dtype dtype,
                             uint32_t *out_value)
{
    return rt_op_apply(x->graph, op, args, arg_count, dtype, out_value, x->err);
}

uint32_t rt_xnnpack_int(struct rt_xnnpack_import *x, int64_t value)
{
    return rt_graph_int(x->graph, rt_dim_of(value));
}

uint32_t rt_xnnpack_ints(struct rt_xnnpack_import *x, const int64_t *items, uint32_t count)
{
    struct rt_dim dims[2 * XNN_LIST_MAX];
    for (uint32_t i = 0; i < count; i++) {
        dims[i] = rt_dim_of(items[i]);
    }
    return rt_graph_ints(x->graph, dims, count);
}

enum status rt_xnnpack_permute(struct rt_xnnpack_import *x, uint32_t value, const uint8_t *order,
                               uint32_t *out_value)
{
    uint8_t rank = x->graph->values[value].rank;
    struct rt_dim dims[SHAPE_RANK_MAX];
    bool changes = false;
    for (uint8_t d = 0; d < rank; d++) {
        dims[d] = rt_dim_of(order[d]);
        changes = changes || order[d] != d;
    }
    *out_value = value;
    if (!changes) {
        return ST_OK;
    }
    uint32_t args[] = {value, rt_graph_ints(x->graph, dims, rank)};
    return rt_xnnpack_apply(x, RT_OP(permute), args, 2, x->graph->values[value].dtype, out_value);
}

enum status rt_xnnpack_view(struct rt_xnnpack_import *x, uint32_t value, const struct rt_dim *dims,
                            uint8_t rank, uint32_t *out_value)
{
    uint32_t args[] = {value, rt_graph_ints(x->graph, dims, rank)};
    return rt_xnnpack_apply(x, RT_OP(view), args, 2, x->graph->values[value].dtype, out_value);
}

enum status rt_xnnpack_convert(struct rt_xnnpack_import *x, uint32_t value, enum dtype dtype,
                               uint32_t *out_value)
{
    return rt_op_convert(x->graph, value, dtype, out_value, x->err);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Are the dims of |value| in the payload those of |t| in |order|? */
static bool has_order(const struct rt_xnnpack_value *value, const struct pte_tensor *t,
                      const uint8_t *order)
{
    bool has = value->shape.rank == t->shape.rank;
    for (uint8_t d = 0; has && d < t->shape.rank; d++) {
        has = value->shape.dims[d] == t->shape.dims[order[d]];
    }
    return has;
}

/* The order |order| of |t|'s dims without dims of 1, which have no place in memory. */
static uint8_t leave_out_ones(const struct pte_tensor *t, const uint8_t *order,
                              uint8_t out[SHAPE_RANK_MAX])
{
    uint8_t count = 0;
    for (uint8_t i = 0; i < t->shape.rank; i++) {
        if (t->shape.dims[order[i]] != 1) {
            out[count++] = order[i];
        }
    }
    return count;
}

static bool same_bytes(const struct pte_tensor *t, const uint8_t *a, const uint8_t *b)
{
    uint8_t left[SHAPE_RANK_MAX], right[SHAPE_RANK_MAX];
    uint8_t count = leave_out_ones(t, a, left);
    return leave_out_ones(t, b, right) == count && memcmp(left, right, count) == 0;
}

/*
 * The order of dims in which the payload has |t|, an input or result of the call. With dims of 1
 * several orders are the same bytes. Exporters then declare one for the program, such as
 * [N, H, C, W] for an image of one channel with channels last, and mean another one in the payload.
 * The payload's dims tell which, if the usual orders of images have them and the declared one does
 * not. Results may even be declared in an order of other bytes. Dims of calls whose sizes vary are
 * their bounds on both sides; where the payload has others, what is declared counts.
 */
static void find_order(const struct rt_xnnpack_value *value, const struct pte_tensor *t,
                       uint8_t out[SHAPE_RANK_MAX])
{
    uint8_t usual[2][SHAPE_RANK_MAX], rank = t->shape.rank;
    memcpy(out, t->dim_order, rank);
    for (uint8_t d = 0; d < rank; d++) {
        usual[0][d] = d;
        usual[1][d] = d == 0 ? 0 : d + 1 < rank ? d + 1 : 1; /* channels last */
    }
    for (int i = 0; i < 2 && rank > 1 && !has_order(value, t, out); i++) {
        if (has_order(value, t, usual[i]) &&
            (value->is_output || same_bytes(t, usual[i], t->dim_order))) {
            memcpy(out, usual[i], rank);
        }
    }
}

/* The program's tensor, with its dims in memory order. */
static enum status import_input(struct rt_xnnpack_import *x, uint32_t index)
{
    struct rt_xnnpack_value *value = &x->payload.values[index];
    const struct pte_value *declared = rt_delegate_arg(x->call, value->external_id);
    uint8_t order[SHAPE_RANK_MAX];
    uint32_t tensor;
    TRY(rt_delegate_input(x->call, value->external_id, &tensor));
    const struct rt_value *v = &x->graph->values[tensor];
    if (declared->kind != PTE_TENSOR || v->kind != RT_TENSOR ||
        v->rank != declared->tensor->shape.rank ||
        v->dtype != rt_xnnpack_types[value->type].dtype) {
        return error_set(x->err, ST_UNSUPPORTED,
                         "argument %" PRIu32 " is %s, expected a tensor of %s", value->external_id,
                         v->kind == RT_TENSOR ? dtype_name(v->dtype) : "not a tensor",
                         rt_xnnpack_types[value->type].name);
    }
    find_order(value, declared->tensor, order);
    TRY(rt_xnnpack_permute(x, tensor, order, &tensor));
    return value->quantizes_rows ? rt_xnnpack_encode(x, index, tensor, &value->stored)
                                 : (value->stored = tensor, ST_OK);
}

static enum status export_output(struct rt_xnnpack_import *x, uint32_t index)
{
    const struct rt_xnnpack_value *value = &x->payload.values[index];
    const struct pte_value *declared = rt_delegate_arg(x->call, value->external_id);
    uint8_t order[SHAPE_RANK_MAX], back[SHAPE_RANK_MAX];
    uint32_t tensor;
    TRY(rt_xnnpack_stored(x, index, &tensor));
    if (declared->kind != PTE_TENSOR ||
        x->graph->values[tensor].rank != declared->tensor->shape.rank) {
        return error_set(x->err, ST_UNSUPPORTED, "argument %" PRIu32 " is not a tensor of rank %u",
                         value->external_id, x->graph->values[tensor].rank);
    }
    find_order(value, declared->tensor, order);
    for (uint8_t d = 0; d < declared->tensor->shape.rank; d++) {
        back[order[d]] = d;
    }
    TRY(rt_xnnpack_permute(x, tensor, back, &tensor));
    if (value->type == XNN_INT32 && declared->tensor->dtype == DT_I64) {
        TRY(rt_xnnpack_convert(x, tensor, DT_I64,
                               &tensor)); /* indices, which are 64-bit in PyTorch */
    }
    return rt_delegate_output(x->call, value->external_id, tensor);
}

/* XNNPACK computes a 1 x 1 convolution as a matrix product. Then the quantization is per pixel,
 * although the file says per image. */
static void settle_rows(struct rt_xnnpack_import *x)
{
    for (uint32_t i = 0; i < x->payload.node_count; i++) {
        const struct rt_xnnpack_node *node = &x->payload.nodes[i];
        struct rt_xnnpack_value *value = &x->payload.values[node->inputs[0]];
        if (value->type == XNN_QDINT8 && rt_xnnpack_conv_is_product(node)) {
            value->row_dims = 1;
        }
    }
}

static enum status import_all(struct rt_xnnpack_import *x)
{
    settle_rows(x);
    for (uint32_t i = 0; i < x->payload.value_count; i++) {
        if (x->payload.values[i].is_input) {
            TRY(import_input(x, i));
        }
    }
    for (uint32_t i = 0; i < x->payload.node_count; i++) {
        const struct rt_xnnpack_node *node = &x->payload.nodes[i];
        x->graph->origin.handle = node->handle;
        if (node->row->import(x, node) != ST_OK) {
            return error_prefix(x->err, "node %" PRIu32 ": %s: ", i, node->row->name);
        }
    }
    for (uint32_t i = 0; i < x->payload.value_count; i++) {
        if (x->payload.values[i].is_output) {
            TRY(export_output(x, i));
        }
    }
    return ST_OK;
}

enum status rt_import_xnnpack(struct rt_delegate_call *call)
{
    struct rt_xnnpack_import x = {.call = call, .graph = call->graph, .err = call->err};
    struct arena arena;
    arena_init(&arena, DECODED_BYTES_MAX);
    enum status status = rt_xnnpack_read(call, &arena, &x.payload);
    status = status == ST_OK ? import_all(&x) : status;
    arena_fini(&arena);
    return status;
}
