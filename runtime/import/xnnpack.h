/* SPDX-License-Identifier: MIT */
/*
 * The XNNPACK delegate's dialect. A payload is a flatbuffer: nodes in topological order over values
 * with ids; some values are constants, others are the call's arguments.
 *
 * xnnpack_read.c and xnnpack_values.c turn the bytes into the plain structs below and check
 * everything that does not depend on the meaning of a node. xnnpack_quant.c converts between stored
 * values and numbers. xnnpack_nodes.c has a row for each type of node and the function that imports
 * it; xnnpack_conv.c has the functions for nodes on images. xnnpack.c connects them.
 *
 * All dims are physical: the first dim is outermost in memory. Images are [N, H, W, C]. A program's
 * tensor is permuted to that order at the boundary, and images to [N, C, H, W] around the operators
 * that need it; runtime/passes/permute.c removes most of these permutes.
 *
 * The payload's dims of a value that is not constant are hints, often wrong, and are ignored: the
 * operators' shape functions find the dims from the arguments.
 */
#ifndef PTED_RUNTIME_IMPORT_XNNPACK_H
#define PTED_RUNTIME_IMPORT_XNNPACK_H

#include "base/arena.h"
#include "base/shape.h"
#include "runtime/import/delegate.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"

/* Limits of a payload; the exporter's own limits are lower, or the file's size is reached first. */
#define XNN_RANK_MAX 6
#define XNN_EXTERNALS_MAX 4096
#define XNN_LIST_MAX 8 /* entries of a node's list: one for each dim */

/* The numbers in the file (runtime_schema.fbs). */
enum rt_xnnpack_type {
    XNN_INVALID,
    XNN_F32,
    XNN_F16,
    XNN_QINT8,
    XNN_QUINT8,
    XNN_QINT32,
    XNN_QCINT8,
    XNN_QCINT32,
    XNN_QCINT4,
    XNN_QDINT8,
    XNN_QBINT4,
    XNN_QPINT8,
    XNN_INT32,
    XNN_PFP32,
    XNN_BF16,
    XNN_TYPE_COUNT
};

/* How numbers are stored: the tags of the file's union, 0 for none. */
enum rt_xnnpack_quant {
    XNN_PLAIN,       /* as they are */
    XNN_PER_CHANNEL, /* a scale for each place along |channel_dim|, no zero point */
    XNN_PER_TENSOR,  /* one scale and zero point */
    XNN_PER_ROW,     /* chosen at run time, for the last |row_dims| dims together */
    XNN_PER_GROUP,   /* a scale for |group| neighbours along the last dim, no zero point */
    XNN_QUANT_COUNT
};

struct rt_xnnpack_type_info {
    const char *name;
    enum dtype dtype;            /* the type in which the graph stores it */
    bool is_packed;              /* in the file, two elements in a byte, rows padded to bytes */
    enum rt_xnnpack_quant quant; /* the only one that this type allows */
    int32_t min, max;            /* of a per-tensor zero point and of quantized numbers */
};

extern const struct rt_xnnpack_type_info
    rt_xnnpack_types[XNN_TYPE_COUNT]; /* name NULL: does not occur in files */

struct rt_xnnpack_value {
    uint32_t id;
    enum rt_xnnpack_type type;
    struct shape shape; /* physical; ignored unless constant */
    bool is_input, is_output, is_constant;
    bool quantizes_rows;  /* input of an old file: nodes read it as XNN_QDINT8 */
    uint32_t external_id; /* input, output: position among the call's arguments */
    struct span bytes;    /* constant: at least the bytes that |shape| needs */

    float scale; /* XNN_PER_TENSOR */
    int32_t zero_point;
    uint8_t channel_dim; /* XNN_PER_CHANNEL */
    int64_t group;       /* XNN_PER_GROUP */
    uint8_t row_dims;    /* XNN_PER_ROW */
    struct span scales;  /* f32 for channels; bf16 for groups, or f32 if |scales_are_f32| */
    bool scales_are_f32;

    /* Its graph values; 0: none yet. */
    uint32_t stored;                  /* a tensor of the type's dtype */
    uint32_t row_scales, row_offsets; /* XNN_PER_ROW: f32, i32 */
    uint32_t real;                    /* the dequantized numbers, once they are needed */
};

#define XNN_NO_VALUE UINT32_MAX /* an optional operand that is absent */
#define XNN_INPUTS_MAX 5
#define XNN_OUTPUTS_MAX 2
#define XNN_PARAMS_MAX 15

struct rt_xnnpack_list {
    uint32_t count;
    uint32_t items[XNN_LIST_MAX];
};

struct rt_xnnpack_row;

struct rt_xnnpack_node {
    const struct rt_xnnpack_row *row;
    uint32_t inputs[XNN_INPUTS_MAX], input_count; /* indices into the graph's values */
    uint32_t outputs[XNN_OUTPUTS_MAX], output_count;
    uint32_t params[XNN_PARAMS_MAX]; /* in the schema's order */
    struct rt_xnnpack_list lists[2];
    float number;
    float min, max; /* of the output; infinite if there is no bound */
    uint32_t flags;
    uint32_t handle; /* the exporter's name for the node */
};

struct rt_xnnpack_graph {
    struct rt_xnnpack_value *values;
    struct rt_xnnpack_node *nodes;
    uint32_t value_count, node_count;
};

struct rt_xnnpack_import {
    struct rt_delegate_call *call;
    struct rt_graph *graph; /* the call's */
    struct rt_xnnpack_graph payload;
    struct error *err;
};

typedef enum status rt_xnnpack_import_f(struct rt_xnnpack_import *x,
                                        const struct rt_xnnpack_node *node);

/* The flags of nodes that are used here. */
enum rt_xnnpack_flags {
    XNN_TRANSPOSE = 1 << 0, /* the second factor is transposed */
    XNN_SAME_PADDING = 1 << 2,
    XNN_ALIGN_CORNERS = 1 << 3,
    XNN_KEEP_DIMS = 1 << 6,
};

/* A type of node. */
struct rt_xnnpack_row {
    const char *name;
    /* The fields of its table, a letter for each field: i input, b optional input, o output, u a
     * number for params, L a list, f number, g flags, - not used. */
    const char *fields;
    rt_xnnpack_import_f *import;
    uint32_t flags;   /* that nodes may have */
    enum rt_known op; /* the operator, for functions that import several */
};

/* Returns the row for the file's union tag, or NULL. */
const struct rt_xnnpack_row *rt_xnnpack_row_find(uint8_t tag);

/* Decodes and checks |call|'s payload into |arena|; spans borrow from the program. Errors name the
 * node or value of the payload. */
MUST_CHECK enum status rt_xnnpack_read(struct rt_delegate_call *call, struct arena *arena,
                                       struct rt_xnnpack_graph *out_graph);

/* ---- building (xnnpack.c) -------------------------------------------------------------------- */

/* rt_op_apply() in the call's graph. */
MUST_CHECK enum status rt_xnnpack_apply(struct rt_xnnpack_import *x, const struct rt_op *op,
                                        const uint32_t *args, uint32_t arg_count, enum dtype dtype,
                                        uint32_t *out_value);
/* Returns a list of constants. */
uint32_t rt_xnnpack_ints(struct rt_xnnpack_import *x, const int64_t *items, uint32_t count);
uint32_t rt_xnnpack_int(struct rt_xnnpack_import *x, int64_t value);
/* Dim d of the result is dim order[d]; adds no node if the order changes nothing. */
MUST_CHECK enum status rt_xnnpack_permute(struct rt_xnnpack_import *x, uint32_t value,
                                          const uint8_t *order, uint32_t *out_value);
MUST_CHECK enum status rt_xnnpack_view(struct rt_xnnpack_import *x, uint32_t value,
                                       const struct rt_dim *dims, uint8_t rank,
                                       uint32_t *out_value);
/* |value| converted to another element type. */
MUST_CHECK enum status rt_xnnpack_convert(struct rt_xnnpack_import *x, uint32_t value,
                                          enum dtype dtype, uint32_t *out_value);

/* ---- what is stored, and what it stands for (xnnpack_quant.c) -------------------------------- */

/* Operand |index| of a node, as stored. */
MUST_CHECK enum status rt_xnnpack_stored(struct rt_xnnpack_import *x, uint32_t index,
                                         uint32_t *out_value);
/* Gives the dequantized numbers, as f32 (f16 and i32 if stored so). */
MUST_CHECK enum status rt_xnnpack_real(struct rt_xnnpack_import *x, uint32_t index,
                                       uint32_t *out_value);
/* Dequantizes |stored|, which is value |index| in another shape, to f32. Scales of channels now lie
 * along |axis|; rows are still the leading dims. */
MUST_CHECK enum status rt_xnnpack_decode(struct rt_xnnpack_import *x, uint32_t index,
                                         uint32_t stored, uint8_t axis, uint32_t *out_value);
/* Converts numbers to the form in which value |index| is stored. */
MUST_CHECK enum status rt_xnnpack_encode(struct rt_xnnpack_import *x, uint32_t index,
                                         uint32_t numbers, uint32_t *out_value);
/* Do both values store a number in the same way? */
bool rt_xnnpack_same_form(const struct rt_xnnpack_value *a, const struct rt_xnnpack_value *b);
/* Returns the stored form of a number, saturated. */
double rt_xnnpack_quantize(const struct rt_xnnpack_value *value, double number);

/* |stored| becomes value |index|: only once, and not for a constant or an input. */
MUST_CHECK enum status rt_xnnpack_define(struct rt_xnnpack_import *x, uint32_t index,
                                         uint32_t stored);

/* Numbers clamped to the node's bounds. */
MUST_CHECK enum status rt_xnnpack_clamp(struct rt_xnnpack_import *x,
                                        const struct rt_xnnpack_node *node, uint32_t numbers,
                                        uint32_t *out_value);
/* Clamps, encodes and defines the node's first output. */
MUST_CHECK enum status rt_xnnpack_finish(struct rt_xnnpack_import *x,
                                         const struct rt_xnnpack_node *node, uint32_t numbers);

/* ---- images (xnnpack_conv.c) ----------------------------------------------------------------- */

rt_xnnpack_import_f rt_xnnpack_import_conv, rt_xnnpack_import_depthwise, rt_xnnpack_import_deconv,
    rt_xnnpack_import_max_pool, rt_xnnpack_import_avg_pool, rt_xnnpack_import_global_pool,
    rt_xnnpack_import_argmax_pool, rt_xnnpack_import_resize;

/* Is |node| a convolution that is a matrix product of the pixels in memory order? */
bool rt_xnnpack_conv_is_product(const struct rt_xnnpack_node *node);

/* Imports a call; see delegate.h. */
rt_import_delegate_f rt_import_xnnpack;

#endif
