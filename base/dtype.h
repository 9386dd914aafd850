/* SPDX-License-Identifier: MIT */
/* Element types of tensors. Each type is one row of dtype.def, with all facts about it. Shaders
 * (HAL_SHADER) use the enum only. */
#ifndef PTED_BASE_DTYPE_H
#define PTED_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef HAL_SHADER
#include "base/bytes.h"
#endif

enum dtype {
#define DTYPE(name, ...) DT_##name,
#include "base/dtype.def"
#undef DTYPE
    DTYPE_COUNT
};

enum dtype_kind { DTYPE_FLOAT, DTYPE_INT, DTYPE_UINT, DTYPE_BOOL, DTYPE_COMPLEX };

#ifndef HAL_SHADER
struct dtype_info {
    const char *text;      /* "f32", in graphs */
    const char *oip;       /* "FP32", in requests */
    const char *long_text; /* "float32", "sint64": in signatures; see dtype_name() */
    uint8_t bytes;
    int8_t executorch;
    int8_t signature; /* -1: none */
    enum dtype_kind kind;
};

extern const struct dtype_info dtype_infos[DTYPE_COUNT];

static inline size_t dtype_bytes(enum dtype dtype)
{
    return dtype_infos[dtype].bytes;
}

static inline const char *dtype_text(enum dtype dtype)
{
    return dtype_infos[dtype].text;
}

static inline bool dtype_is_float(enum dtype dtype)
{
    return dtype_infos[dtype].kind == DTYPE_FLOAT;
}

/* Binary digits of a number of a type of floats, with the first one, which is not stored. */
static inline uint32_t dtype_precision(enum dtype dtype)
{
    switch (dtype) {
    case DT_F64:
        return 53;
    case DT_F16:
        return 11;
    case DT_BF16:
        return 8;
    default:
        return 24;
    }
}

/* Names the type as PyTorch and NumPy do: "float32", "int64". */
const char *dtype_name(enum dtype dtype);

/* May tensors of this type appear in requests and answers? */
static inline bool dtype_is_public(enum dtype dtype)
{
    return dtype_infos[dtype].kind != DTYPE_COMPLEX;
}

/* Finds an element type. False: there is none. */
bool dtype_from_executorch(int number, enum dtype *out_dtype);
bool dtype_from_oip(struct span name, enum dtype *out_dtype);
bool dtype_from_signature(int64_t code, enum dtype *out_dtype);
#endif

#endif
