/* SPDX-License-Identifier: MIT */
/* Shared by quant.c (the operators of quantisation) and quant_kernels.c (their kernels). */
#ifndef PTED_RUNTIME_OPS_QUANT_H
#define PTED_RUNTIME_OPS_QUANT_H

#ifndef HAL_SHADER
#include "hal/cpu/uk.h"
#endif
#include "runtime/kernels/convert.h"
#include "runtime/kernels/loop.h"

/* Elements converted at a time. */
#define RT_QUANT_CHUNK 512
#define RT_QUANT_SCRATCH_BYTES ((size_t)RT_QUANT_CHUNK * (8 + 4 + 8))

/* Element types of quantised tensors. */
#define RT_DTYPES_QUANT (1u << DT_I8 | 1u << DT_U8 | 1u << DT_I16 | 1u << DT_U16 | 1u << DT_I32)

/* Operands: output, input, and scales and zero points if they are tensors. */
struct rt_quant_constants {
    struct rt_loop loop;
    enum dtype real, whole; /* types of the floats and of the integers */
    enum dtype scales, zero_points;
    uint32_t has_scales,
        has_zero_points; /* otherwise |scale| and |zero_point| apply to all elements */
    float scale;
    int32_t zero_point, min, max;
};

/* Variants of the SPIR-V form. */
enum rt_quant_variant { RT_QUANTIZE, RT_DEQUANTIZE };

/* Rows of floats; the range of each row gives its scale and its zero point. */
struct rt_quant_rows {
    int64_t rows, length, tile; /* rows of a tile */
    enum dtype real, scale, zero_point;
    int32_t min, max;
};

/* Variants of the SPIR-V form: the parameters only, or the quantised numbers as well. */
enum rt_quant_rows_variant { RT_CHOOSE_PARAMS, RT_QUANTIZE_DYNAMIC };

/* The least scale that choose_qparams gives: the inverse of a smaller one is outside a half's
 * range. */
#define RT_QUANT_STEP_MIN 6.1e-5f

/* Rows of a table of integers, packed if they have fewer than 8 bits: see quant_layers.c. */
struct rt_quant_embed {
    int64_t places, rows;         /* rows taken, and rows of the table */
    int64_t width, bytes, groups; /* for each row: elements, bytes, scales */
    int64_t tile;
    uint32_t bits;
    uint32_t has_zero_points;
    enum dtype weights, scales, zero_points, places_type, out;
};

#ifndef HAL_SHADER
/* Rows made up of groups that share a scale. */
struct rt_quant_groups {
    int64_t rows, length, group, tile;
    enum dtype scales;
};

/* Rows of |length| four-bit integers, two in a byte; each row begins with a whole byte. */
struct rt_quant_nibbles {
    int64_t rows, length, tile;
    bool high_first;
};

/* Bindings: the loop's operands. */
extern const struct hal_kernel rt_quantize_kernel, rt_dequantize_kernel;
/* The same for doubles. */
extern const struct hal_kernel rt_quantize_f64_kernel, rt_dequantize_f64_kernel;
/* Bindings: scales, zero points, x; the second kernel is for doubles. */
extern const struct hal_kernel rt_choose_kernel, rt_choose_f64_kernel;
/* Bindings: quantised, scales, zero points, x; the second kernel is for doubles. */
extern const struct hal_kernel rt_quantize_dynamic_kernel, rt_quantize_dynamic_f64_kernel;
/* Bindings: floats, integers, scales. */
extern const struct hal_kernel rt_dequantize_groups_kernel;
/* Bindings: integers, bytes. */
extern const struct hal_kernel rt_unpack_int4_kernel;
#endif

#endif
