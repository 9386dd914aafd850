/* SPDX-License-Identifier: MIT */
/* Single elements of any type, through the classes that numbers are computed in. */
#include "config.h"

#include "runtime/kernels/element.h"

#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"

#define CHUNK 128

union rt_element rt_element_of(const struct rt_emit *emit, uint32_t index, enum dtype dtype)
{
    union rt_element element = {.bits = 0};

    if (rt_emit_value(emit, index)->kind == RT_INT && !dtype_is_float(dtype)) {
        int64_t whole = rt_emit_int(emit, index);
        rt_convert_store(RT_CLASS_I64, dtype)((char *)element.bytes, 0, &whole, 1);
    } else {
        double number = rt_emit_number(emit, index);
        rt_convert_store(RT_CLASS_F64, dtype)((char *)element.bytes, 0, &number, 1);
    }
    return element;
}

#define DEFINE_ADD(name, type)                                                                     \
    static void name(void *restrict a, const void *restrict b, int64_t n)                          \
    {                                                                                              \
        type *x = a;                                                                               \
        const type *y = b;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            x[i] += y[i];                                                                          \
        }                                                                                          \
    }

DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)
DEFINE_ADD(add_u64, uint64_t) /* wraps */

void rt_element_add(char *dst, const char *src, int64_t n, enum dtype dtype)
{
    enum rt_class class = rt_convert_class(dtype);
    int64_t width = (int64_t)dtype_bytes(dtype);
    uint64_t a[CHUNK], b[CHUNK];

    if (dtype == DT_F32) {
        hal_cpu_uk()->binary_f32[UK_ADD]((float *)dst, (const float *)dst, (const float *)src,
                                         (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t count = n - i < CHUNK ? n - i : CHUNK;
        rt_convert_load(dtype, class)(a, dst + i * width, width, count);
        rt_convert_load(dtype, class)(b, src + i * width, width, count);
        if (class == RT_CLASS_F32) {
            add_f32(a, b, count);
        } else if (class == RT_CLASS_F64) {
            add_f64(a, b, count);
        } else {
            add_u64(a, b, count);
        }
        rt_convert_store(class, dtype)(dst + i * width, width, a, count);
    }
}
