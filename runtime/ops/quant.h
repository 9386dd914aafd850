/* SPDX-License-Identifier: MIT */
/* Between the two halves of the quantisation family: quant.c the operators, quant_kernels.c the
 * kernels. */
#ifndef PTED_RUNTIME_OPS_QUANT_H
#define PTED_RUNTIME_OPS_QUANT_H

#ifndef HAL_SHADER
#include "hal/cpu/uk.h"
#endif
#include "runtime/ops/convert.h"
#include "runtime/ops/iter.h"

/* Elements that are converted at a time. */
#define RT_QUANT_CHUNK 512
#define RT_QUANT_SCRATCH_BYTES ((size_t)RT_QUANT_CHUNK * (8 + 4 + 8))

/* Types of quantised tensors. */
#define RT_DTYPES_QUANT (1u << DT_I8 | 1u << DT_U8 | 1u << DT_I16 | 1u << DT_U16 | 1u << DT_I32)

/* Operands: output, input, and where they are tensors scales and zero points. */
struct rt_quant_constants {
    struct rt_loop loop;
    enum dtype real, whole; /* of the floats and of the integers */
    enum dtype scales, zero_points;
    uint32_t has_scales, has_zero_points; /* else |scale| and |zero_point| are those of all */
    float scale;
    int32_t zero_point, min, max;
};

/* Variants of the SPIR-V form. */
enum rt_quant_variant { RT_QUANTIZE, RT_DEQUANTIZE };

/* Rows of floats, each with the scale and the zero point that its own range gives. */
struct rt_quant_rows {
    int64_t rows, length, tile; /* of a tile: rows */
    enum dtype real, scale, zero_point;
    int32_t min, max;
};

/* Variants of the SPIR-V form: the parameters only, or the numbers as well. */
enum rt_quant_rows_variant { RT_CHOOSE_PARAMS, RT_QUANTIZE_DYNAMIC };

/* The least step of choose_qparams: inverses of less are out of a half's range. */
#define RT_QUANT_STEP_MIN 6.1e-5f

/* Rows of a table of integers, those below 8 bits packed: see quant_layers.c. */
struct rt_quant_embed {
    int64_t places, rows;         /* how many are taken, of how many */
    int64_t width, bytes, groups; /* of a row: elements, bytes, scales */
    int64_t tile;
    uint32_t bits;
    uint32_t has_zero_points;
    enum dtype weights, scales, zero_points, places_type, out;
};

#ifndef HAL_SHADER
/* Rows of groups that share a scale. */
struct rt_quant_groups {
    int64_t rows, length, group, tile;
    enum dtype scales;
};

/* Rows of |length| four-bit integers, two in a byte; every row begins with a byte. */
struct rt_quant_nibbles {
    int64_t rows, length, tile;
    bool high_first;
};

/* Bindings: the loop's operands. */
extern const struct hal_kernel rt_quantize_kernel, rt_dequantize_kernel;
/* The same, where the floats are doubles. */
extern const struct hal_kernel rt_quantize_f64_kernel, rt_dequantize_f64_kernel;
/* Bindings: scales, zero points, x; the second of doubles. */
extern const struct hal_kernel rt_choose_kernel, rt_choose_f64_kernel;
/* Bindings: quantised, scales, zero points, x; the second of doubles. */
extern const struct hal_kernel rt_quantize_dynamic_kernel, rt_quantize_dynamic_f64_kernel;
/* Bindings: floats, integers, scales. */
extern const struct hal_kernel rt_dequantize_groups_kernel;
/* Bindings: integers, bytes. */
extern const struct hal_kernel rt_unpack_int4_kernel;
#endif

#endif
