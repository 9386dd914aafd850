/* SPDX-License-Identifier: MIT */
/*
 * A program with one delegate call. Its XNNPACK payload has values of every kind of quantization
 * and nodes of every kind of operand. It is written field by field, and the positions of all fields
 * are known.
 */
#ifndef PTED_TESTS_XNN_SAMPLE_H
#define PTED_TESTS_XNN_SAMPLE_H

#include "tests/unit/flatbuf_writer.h"

/* Value V has the id XS_ID(V). */
enum xnn_sample_value {
    XV_IN,         /* fp32 [1,4,4,2], the call's argument 0 */
    XV_QUANTIZED,  /* qint8, the same */
    XV_FILTER,     /* qcint8 [4,3,3,2] */
    XV_BIAS,       /* qcint32 [4] */
    XV_CONVOLVED,  /* qint8 [1,4,4,4] */
    XV_POOLED,     /* [1,2,2,4] */
    XV_TRANSPOSED, /* [1,4,2,2] */
    XV_FLAT,       /* [1,16] */
    XV_FLOATS,     /* fp32 [1,16] */
    XV_ROWS,       /* qdint8 [1,16] */
    XV_NIBBLES,    /* qbint4 [6,16] */
    XV_LINEAR,     /* fp32 [1,6] */
    XV_SLICED,     /* [1,4] */
    XV_PADDED,     /* [1,7] */
    XV_JOINED,     /* [1,11] */
    XV_OUT,        /* the call's argument 1 */
    XV_COUNT
};
#define XS_ID(value) (10u + (unsigned int)(value))

enum xnn_sample_node {
    XN_QUANTIZE,
    XN_CONV,
    XN_POOL,
    XN_TRANSPOSE,
    XN_RESHAPE,
    XN_DEQUANTIZE,
    XN_ENCODE_ROWS,
    XN_LINEAR,
    XN_SLICE,
    XN_PAD,
    XN_JOIN,
    XN_ADD,
    XN_COUNT
};

/* Numbers in the table of constants; 0 is no constant. */
enum xnn_sample_constant {
    XC_NONE,
    XC_FILTER,
    XC_FILTER_SCALES, /* f32, 4 */
    XC_BIAS,
    XC_BIAS_SCALES, /* f32, 4 */
    XC_NIBBLES,
    XC_GROUP_SCALES, /* bf16, two of each row */
    XC_COUNT
};

/* Byte positions in the payload. Tables have all fields of their type. */
struct xnn_sample {
    struct writer payload;
    size_t header;    /* where the header's bytes begin: 0 */
    size_t flat;      /* where the flatbuffer begins */
    size_t graph;     /* XNNGraph */
    size_t nodes_at;  /* elements of xnodes */
    size_t values_at; /* elements of xvalues */
    size_t outers[XV_COUNT], tensors[XV_COUNT], quantized[XV_COUNT], params[XV_COUNT];
    size_t dims[XV_COUNT]; /* elements; their count is the word before */
    size_t node_outers[XN_COUNT], nodes[XN_COUNT], bounds[XN_COUNT];
    size_t lists[XN_COUNT][2]; /* elements */
    size_t constants[XC_COUNT];
    size_t behind; /* the constants' bytes */
    size_t behind_at[XC_COUNT];
};

void xnn_sample_make(struct xnn_sample *sample);

/*
 * The .pte whose method "forward" makes one call with this payload. It has one input tensor, one
 * output tensor, and a constant that the payload does not use, as exporters leave one.
 */
void xnn_sample_program(const struct xnn_sample *sample, struct writer *out_program);

#endif
