/* SPDX-License-Identifier: MIT */
/*
 * The Vulkan delegate's dialect. A payload is a flatbuffer: calls of operators by their functional
 * ATen names, in execution order, over numbered values.
 *
 * vulkan_read.c turns the bytes into the plain structs below and checks everything that does not
 * depend on the meaning of a call. vulkan_ops.c has a row for each operator; vulkan_llm.c has
 * caches and rotations, vulkan_quant.c and vulkan_conv.c unpack weights. vulkan.c connects them:
 * arguments, results, and conversion of values to what an operator of the graph expects.
 *
 * Tensors are logical and row-major, whatever texture layout the payload asks for: the device
 * decides on layouts and shared memory objects. Half precision is only a storage format: an f16
 * constant is widened once and arithmetic is f32, at least as exact as requested. The payload's
 * dims of tensors that are not constant are upper bounds and are ignored: shape functions find the
 * dims.
 */
#ifndef PTED_RUNTIME_IMPORT_VULKAN_H
#define PTED_RUNTIME_IMPORT_VULKAN_H

#include "base/arena.h"
#include "base/shape.h"
#include "runtime/import/delegate.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"

#define VK_ARGS_MAX 24 /* of a call */

/* The numbers of the union GraphTypes in the file. */
enum rt_vulkan_kind {
    VK_NONE,
    VK_NULL,
    VK_INT,
    VK_DOUBLE,
    VK_BOOL,
    VK_TENSOR,
    VK_INT_LIST,
    VK_DOUBLE_LIST,
    VK_BOOL_LIST,
    VK_VALUE_LIST,
    VK_STRING,
    VK_SYMINT, /* an int that a call computes, from dims or from a tensor of rank 0 */
    VK_KIND_COUNT
};

struct rt_vulkan_value {
    enum rt_vulkan_kind kind;
    enum dtype dtype;   /* TENSOR: element type in the file */
    bool is_constant;   /* TENSOR: |bytes| is the content, |shape| its dims */
    bool is_kept;       /* constant TENSOR: a buffer; |bytes| is only its first content */
    struct shape shape; /* TENSOR: upper bounds unless constant */
    struct span bytes;  /* constant TENSOR, STRING */
    uint32_t count;     /* lists */
    union {
        int64_t i;
        double f;
        bool b;
        int64_t *ints;
        double *floats;
        bool *bools;
        uint32_t *values; /* numbers of values that are not lists */
    };
    uint32_t graph;  /* TENSOR, SYMINT: its graph value; 0: none yet */
    uint32_t buffer; /* TENSOR: number + 1 of the buffer that it is, or is a copy of; 0: none */
};

struct rt_vulkan_call {
    struct span name;
    uint32_t handle; /* the exporter's name for the node */
    uint32_t *args;  /* numbers of values: the schema's arguments, then the result */
    uint32_t arg_count;
};

struct rt_vulkan_graph {
    struct rt_vulkan_value *values;
    struct rt_vulkan_call *calls;
    uint32_t *inputs, *outputs; /* numbers of values, in the order of the delegate's arguments */
    uint32_t value_count, call_count, input_count, output_count;
};

/* Decodes and checks |call|'s payload into |arena|; spans borrow from the program. Errors name the
 * call or value of the payload. */
MUST_CHECK enum status rt_vulkan_read(struct rt_delegate_call *call, struct arena *arena,
                                      struct rt_vulkan_graph *out_graph);

/* ---- importing ------------------------------------------------------------------------------- */

struct rt_vulkan_import {
    struct rt_delegate_call *call;
    struct rt_graph *graph; /* the delegate call's */
    struct rt_vulkan_graph payload;
    const struct rt_vulkan_call *current;
    struct error *err;
};

typedef enum status rt_vulkan_import_f(struct rt_vulkan_import *v);

/* An operator of the payload. */
struct rt_vulkan_row {
    const char *name;
    uint8_t arg_count; /* of the schema; the result follows them */
    /* Either |op| and the source of its arguments, a character each: 0 to 9 for an argument of the
     * call, '_' for none; or |import|, a function. */
    enum rt_known op;
    const char *args;
    uint8_t long_args; /* bit i: argument i of |op| must be i64 */
    uint8_t long_outs; /* likewise for results, which the payload stores in 32 bits */
    rt_vulkan_import_f *import;
};

const struct rt_vulkan_row *rt_vulkan_row_find(struct span name);

/* Returns argument |index| of the current call. */
const struct rt_vulkan_value *rt_vulkan_arg(const struct rt_vulkan_import *v, uint32_t index);

/* Reads it as a tensor; f16 storage becomes f32. */
MUST_CHECK enum status rt_vulkan_tensor(struct rt_vulkan_import *v, uint32_t index,
                                        uint32_t *out_value);
/* Reads it as a number known now: an int, a double or a bool. */
MUST_CHECK enum status rt_vulkan_number(struct rt_vulkan_import *v, uint32_t index,
                                        double *out_number);
MUST_CHECK enum status rt_vulkan_whole(struct rt_vulkan_import *v, uint32_t index,
                                       int64_t *out_whole);
/* Reads it as argument kind |letter| of an operator's signature (runtime/graph/op.h); a number is
 * converted to that kind if this keeps its value. */
MUST_CHECK enum status rt_vulkan_argument(struct rt_vulkan_import *v, uint32_t index, char letter,
                                          bool is_optional, uint32_t *out_value);
bool rt_vulkan_is_null(const struct rt_vulkan_import *v, uint32_t index);

/* rt_op_apply() in the graph of the delegate's call. */
MUST_CHECK enum status rt_vulkan_apply(struct rt_vulkan_import *v, const struct rt_op *op,
                                       const uint32_t *args, uint32_t arg_count, enum dtype dtype,
                                       uint32_t *out_value);
/* |value| converted to another element type. */
MUST_CHECK enum status rt_vulkan_convert(struct rt_vulkan_import *v, uint32_t value,
                                         enum dtype dtype, uint32_t *out_value);
/* Gives the first |count| elements along dim |dim|; all of |value| if it has no more. */
MUST_CHECK enum status rt_vulkan_front(struct rt_vulkan_import *v, uint32_t value, int64_t dim,
                                       int64_t count, uint32_t *out_value);

/* |value| becomes the current call's result, or item |item| of the result if that is a list. */
MUST_CHECK enum status rt_vulkan_define(struct rt_vulkan_import *v, uint32_t item, uint32_t value);
/* |value| becomes the content of value |number|; if that is one of the delegate's own buffers, it
 * has the same dims, and the buffer's content follows. */
MUST_CHECK enum status rt_vulkan_keep(struct rt_vulkan_import *v, uint32_t number, uint32_t value);
/* Returns the result as the file declares it; NULL: the result is absent. */
const struct rt_vulkan_value *rt_vulkan_result(const struct rt_vulkan_import *v, uint32_t item);

/* Finds the constants that are buffers: calls change them, or have them as results, and their
 * content outlives the delegate's call. */
void rt_vulkan_find_buffers(struct rt_vulkan_graph *payload);

/* Returns the element type in the graph for tensors that the file declares as |dtype|. */
enum dtype rt_vulkan_dtype(enum dtype dtype);

/* ---- integers that stand for numbers (vulkan_quant.c) ---------------------------------------- */

/* Decodes argument |tensor| as numbers; its scale and zero point are arguments |scale| and |scale|
 * + 1. */
MUST_CHECK enum status rt_vulkan_decode_arg(struct rt_vulkan_import *v, uint32_t tensor,
                                            uint32_t scale, uint32_t *out_value);
/* Defines the result as |numbers|, quantized with the scale and zero point at arguments |scale| and
 * |scale| + 1. */
MUST_CHECK enum status rt_vulkan_define_encoded(struct rt_vulkan_import *v, uint32_t numbers,
                                                uint32_t scale);
/* Argument |index| as stored; it has to be a matrix of |dtype| with fixed dims. */
MUST_CHECK enum status rt_vulkan_matrix(struct rt_vulkan_import *v, uint32_t index,
                                        enum dtype dtype, uint32_t *out_value);
/* Gives weights as numbers; argument |scales_index| has a scale for each place of dim 0. */
MUST_CHECK enum status rt_vulkan_channel_weights(struct rt_vulkan_import *v, uint32_t weights,
                                                 uint32_t scales_index, uint32_t *out_value);
/* Applies the activation that the string at argument |index| names. */
MUST_CHECK enum status rt_vulkan_activate(struct rt_vulkan_import *v, uint32_t index,
                                          uint32_t *value);

/* ---- operators with functions of their own (vulkan_ops.c, vulkan_llm.c, ...) ----------------- */

rt_vulkan_import_f rt_vulkan_import_select_as_int, rt_vulkan_import_rotary,
    rt_vulkan_import_rotary_interleaved, rt_vulkan_import_rotary_halves,
    rt_vulkan_import_update_cache, rt_vulkan_import_cached_sdpa, rt_vulkan_import_caching_sdpa,
    rt_vulkan_import_grid_priors;
rt_vulkan_import_f rt_vulkan_import_q4gsw, rt_vulkan_import_q4gsw_backward, rt_vulkan_import_q8csw,
    rt_vulkan_import_q8ta_conv_transposed, rt_vulkan_import_dq8ca_q4gsw, rt_vulkan_import_qcs4w,
    rt_vulkan_import_q8ta_q8csw, rt_vulkan_import_q8ta_linear, rt_vulkan_import_q8ta_conv,
    rt_vulkan_import_q8ta_conv_dw, rt_vulkan_import_q8ta_add, rt_vulkan_import_q8ta_relu,
    rt_vulkan_import_q8ta_pixel_shuffle, rt_vulkan_import_choose_qparams, rt_vulkan_import_quantize,
    rt_vulkan_import_dequantize, rt_vulkan_import_dequantize_channels,
    rt_vulkan_import_dequantize_affine, rt_vulkan_import_embedding_q4gsw;

/* Imports a call; see delegate.h. */
rt_import_delegate_f rt_import_vulkan;

#endif
