/* SPDX-License-Identifier: MIT */
/*
 * The Vulkan delegate's dialect. A payload is a flatbuffer: calls of operators by their functional
 * ATen names, in the order in which they run, over values that are known by number.
 *
 * vulkan_read.c turns the bytes into the plain structs below and checks everything that can be seen
 * without knowing what a call means; vulkan_ops.c has a row for each operator; vulkan_llm.c has
 * caches and rotations, vulkan_quant.c and vulkan_conv.c what unpacks weights; vulkan.c holds them
 * together: arguments, results, and values as an operator here wants them.
 *
 * Tensors are logical and row-major, whatever texture layout the payload asks for: how they lie is
 * the device's business, as are its shared memory objects. Half precision is a form of storage: a
 * f16 constant is widened once and the arithmetic is f32, at least as exact as what was asked for.
 * Dims of what is no constant are upper bounds and not looked at: shape functions find them.
 */
#ifndef PTED_RUNTIME_IMPORT_VULKAN_H
#define PTED_RUNTIME_IMPORT_VULKAN_H

#include "base/arena.h"
#include "base/shape.h"
#include "runtime/import/delegate.h"
#include "runtime/ops/apply.h"

#define VK_ARGS_MAX 24 /* of a call */

/* The file's numbers of the union GraphTypes. */
enum vk_kind {
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
    VK_SYMINT, /* an int that a call computes: of dims, or the content of a tensor of rank 0 */
    VK_KIND_COUNT
};

struct vk_value {
    enum vk_kind kind;
    enum dtype dtype;   /* TENSOR: of its elements in the file */
    bool is_constant;   /* TENSOR: |bytes| is the content, |shape| its dims */
    bool is_kept;       /* constant TENSOR: a cache, |bytes| are only what it is at first */
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
        uint32_t *values; /* numbers of values that are no lists */
    };
    uint32_t graph; /* TENSOR, SYMINT: what stands for it; 0: nothing yet */
    uint32_t cache; /* TENSOR: the number of the constant that it is and that calls change, + 1 */
};

struct vk_call {
    struct span name;
    uint32_t handle; /* what exporters call the node */
    uint32_t *args;  /* numbers of values: the schema's arguments, then the result */
    uint32_t arg_count;
};

struct vk_graph {
    struct vk_value *values;
    struct vk_call *calls;
    uint32_t *inputs, *outputs; /* numbers of values, as the delegate's arguments */
    uint32_t value_count, call_count, input_count, output_count;
};

/*
 * Decodes and verifies |call|'s payload into |arena|; spans borrow from the program. Errors name
 * the call or value of the payload.
 */
MUST_CHECK enum status vk_read(struct rt_delegate_call *call, struct arena *arena,
                               struct vk_graph *out_graph);

/* ---- importing ------------------------------------------------------------------------------- */

struct vk_import {
    struct rt_delegate_call *call;
    struct rt_graph *graph; /* the delegate call's */
    struct vk_graph payload;
    const struct vk_call *current;
    struct error *err;
};

typedef enum status vk_import_f(struct vk_import *v);

/* An operator of the payload. */
struct vk_row {
    const char *name;
    uint8_t arg_count; /* of the schema: the result comes behind them */
    /*
     * Either |op| and where its arguments come from, a character each: 0 to 9 the call's own, '_'
     * none; or a function.
     */
    const char *op, *args;
    uint8_t long_args; /* by bit: arguments of |op| that must be i64 */
    uint8_t long_outs; /* likewise results, which the payload has in 32 bits */
    vk_import_f *import;
};

const struct vk_row *vk_row_find(struct span name);

/* Argument |index| of the current call. */
const struct vk_value *vk_arg(const struct vk_import *v, uint32_t index);

/* As a tensor, which f16 storage has become f32 in. */
MUST_CHECK enum status vk_tensor(struct vk_import *v, uint32_t index, uint32_t *out_value);
/* As a number that is known: an int, a double or a bool. */
MUST_CHECK enum status vk_number(struct vk_import *v, uint32_t index, double *out_number);
MUST_CHECK enum status vk_whole(struct vk_import *v, uint32_t index, int64_t *out_whole);
/*
 * As argument kind |letter| of an operator's signature (runtime/ops/op.h); numbers of any kind
 * become the kind that is wanted, as long as that keeps their value.
 */
MUST_CHECK enum status vk_argument(struct vk_import *v, uint32_t index, char letter,
                                   bool is_optional, uint32_t *out_value);
bool vk_is_null(const struct vk_import *v, uint32_t index);

/* rt_op_apply() into the delegate call's graph. */
MUST_CHECK enum status vk_apply(struct vk_import *v, const char *op, const uint32_t *args,
                                uint32_t arg_count, enum dtype dtype, uint32_t *out_value);
/* |value| as another element type. */
MUST_CHECK enum status vk_convert(struct vk_import *v, uint32_t value, enum dtype dtype,
                                  uint32_t *out_value);
/* The first |count| places along dim |dim|; all of them when |value| has no more. */
MUST_CHECK enum status vk_front(struct vk_import *v, uint32_t value, int64_t dim, int64_t count,
                                uint32_t *out_value);

/* The current call's result, or item |item| of it when it is a list, is |value|. */
MUST_CHECK enum status vk_define(struct vk_import *v, uint32_t item, uint32_t value);
/* From here on, reading the tensor at argument |index| is reading |value|. */
void vk_replace(struct vk_import *v, uint32_t index, uint32_t value);
/* What the result is in the file. */
const struct vk_value *vk_result(const struct vk_import *v, uint32_t item);

/* Finds the constants that are caches: calls change them, and they outlive the delegate's call. */
void vk_find_caches(struct vk_graph *payload);

/* Of the element type that tensors of |dtype| have in the graph. */
enum dtype vk_dtype(enum dtype dtype);

/* ---- integers that stand for numbers (vulkan_quant.c) ------------------------------------------
 */

/* Argument |tensor| as numbers; its scale and zero point are the arguments behind |scale|. */
MUST_CHECK enum status vk_decode_arg(struct vk_import *v, uint32_t tensor, uint32_t scale,
                                     uint32_t *out_value);
/* The result: |numbers| by the scale and zero point at argument |scale|. */
MUST_CHECK enum status vk_define_encoded(struct vk_import *v, uint32_t numbers, uint32_t scale);
/* Argument |index|, which has to be a constant matrix of |dtype|, as the file has it. */
MUST_CHECK enum status vk_matrix(struct vk_import *v, uint32_t index, enum dtype dtype,
                                 uint32_t *out_value);
/* Numbers of weights with a scale for each place of dim 0, at argument |scales_index|. */
MUST_CHECK enum status vk_channel_weights(struct vk_import *v, uint32_t weights,
                                          uint32_t scales_index, uint32_t *out_value);
/* The activation that the string at argument |index| names. */
MUST_CHECK enum status vk_activate(struct vk_import *v, uint32_t index, uint32_t *value);

/* ---- operators with functions of their own (vulkan_ops.c, vulkan_llm.c, ...) --------
 */

vk_import_f vk_import_select_as_int, vk_import_rotary, vk_import_rotary_interleaved,
    vk_import_rotary_halves, vk_import_update_cache, vk_import_cached_sdpa, vk_import_caching_sdpa,
    vk_import_grid_priors;
vk_import_f vk_import_q4gsw, vk_import_q4gsw_backward, vk_import_q8csw,
    vk_import_q8ta_conv_transposed, vk_import_dq8ca_q4gsw, vk_import_qcs4w, vk_import_q8ta_q8csw,
    vk_import_q8ta_linear, vk_import_q8ta_conv, vk_import_q8ta_conv_dw, vk_import_q8ta_add,
    vk_import_q8ta_relu, vk_import_q8ta_pixel_shuffle, vk_import_choose_qparams, vk_import_quantize,
    vk_import_dequantize, vk_import_dequantize_channels, vk_import_dequantize_affine,
    vk_import_embedding_q4gsw;

/* The importer of a call; see delegate.h. */
rt_import_delegate_f rt_import_vulkan;

#endif
