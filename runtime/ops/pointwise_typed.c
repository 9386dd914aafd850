/* SPDX-License-Identifier: MIT */
/*
 * Pointwise loops in the element type itself, where the result equals that through a class:
 * comparisons, and integer arithmetic, which wraps around in any width. They read and write a
 * fraction of the bytes and vectorise accordingly.
 */
#include "config.h"

#include "runtime/ops/pointwise.h"

#include <string.h>

#define LOOP(name, type, result, expr)                                                             \
    static void loop_##name(const struct rt_pointwise_run *run)                                    \
    {                                                                                              \
        const type *x0 = run->in[0], *x1 = run->in[1];                                             \
        result *y = run->out;                                                                      \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const type a = x0[i], b = x1[i];                                                       \
            y[i] = (result)(expr);                                                                 \
        }                                                                                          \
    }

#define COMPARE(dtype, type)                                                                       \
    LOOP(eq_##dtype, type, uint8_t, a == b)                                                        \
    LOOP(ne_##dtype, type, uint8_t, a != b)                                                        \
    LOOP(lt_##dtype, type, uint8_t, a < b)                                                         \
    LOOP(le_##dtype, type, uint8_t, a <= b)                                                        \
    LOOP(gt_##dtype, type, uint8_t, a > b)                                                         \
    LOOP(ge_##dtype, type, uint8_t, a >= b)

/* |wide| is an unsigned type in which the operation does not overflow before the result is
 * truncated. */
#define INTEGER(dtype, type, wide)                                                                 \
    COMPARE(dtype, type)                                                                           \
    LOOP(add_##dtype, type, type, (wide)a + (wide)b)                                               \
    LOOP(sub_##dtype, type, type, (wide)a - (wide)b)                                               \
    LOOP(mul_##dtype, type, type, (wide)a *(wide)b)                                                \
    LOOP(maximum_##dtype, type, type, a > b ? a : b)                                               \
    LOOP(minimum_##dtype, type, type, a < b ? a : b)                                               \
    LOOP(bitwise_and_##dtype, type, type, a &b)                                                    \
    LOOP(bitwise_or_##dtype, type, type, a | b)                                                    \
    LOOP(bitwise_xor_##dtype, type, type, a ^ b)

COMPARE(F32, float)
COMPARE(F64, double)
INTEGER(I8, int8_t, uint32_t)
INTEGER(U8, uint8_t, uint32_t)
INTEGER(I16, int16_t, uint32_t)
INTEGER(I32, int32_t, uint32_t)
INTEGER(I64, int64_t, uint64_t)
/* A value is true if it differs from 0. */
LOOP(bitwise_and_BOOL, uint8_t, uint8_t, (a != 0) & (b != 0))
LOOP(bitwise_or_BOOL, uint8_t, uint8_t, (a | b) != 0)
LOOP(bitwise_xor_BOOL, uint8_t, uint8_t, (a != 0) != (b != 0))

#define COMPARES(dtype)                                                                            \
    [RT_PW_eq][DT_##dtype] = loop_eq_##dtype, [RT_PW_ne][DT_##dtype] = loop_ne_##dtype,            \
    [RT_PW_lt][DT_##dtype] = loop_lt_##dtype, [RT_PW_le][DT_##dtype] = loop_le_##dtype,            \
    [RT_PW_gt][DT_##dtype] = loop_gt_##dtype, [RT_PW_ge][DT_##dtype] = loop_ge_##dtype
#define BITS(dtype)                                                                                \
    [RT_PW_bitwise_and][DT_##dtype] = loop_bitwise_and_##dtype,                                    \
    [RT_PW_bitwise_or][DT_##dtype] = loop_bitwise_or_##dtype,                                      \
    [RT_PW_bitwise_xor][DT_##dtype] = loop_bitwise_xor_##dtype
#define INTEGERS(dtype)                                                                            \
    COMPARES(dtype), BITS(dtype), [RT_PW_add][DT_##dtype] = loop_add_##dtype,                      \
                                  [RT_PW_sub][DT_##dtype] = loop_sub_##dtype,                      \
                                  [RT_PW_mul][DT_##dtype] = loop_mul_##dtype,                      \
                                  [RT_PW_maximum][DT_##dtype] = loop_maximum_##dtype,              \
                                  [RT_PW_minimum][DT_##dtype] = loop_minimum_##dtype

static rt_pointwise_loop_f *const loops[RT_PW_COUNT][DTYPE_COUNT] = {
    COMPARES(F32), COMPARES(F64), INTEGERS(I8),  INTEGERS(U8),
    INTEGERS(I16), INTEGERS(I32), INTEGERS(I64), BITS(BOOL),
};

/* Can the type represent the number? */
static bool holds(enum dtype dtype, const struct rt_number *number)
{
    int64_t element = 0, whole;

    if (dtype_is_float(dtype)) {
        return true; /* rounded, as in the class */
    }
    rt_convert_store_number(*number, dtype, &element);
    rt_convert_load(dtype, RT_CLASS_I64)(&whole, (const char *)&element, 0, 1);
    return whole == number->i;
}

rt_pointwise_loop_f *rt_pointwise_typed_loop(const struct rt_pointwise_constants *k,
                                             enum dtype *out_dtype)
{
    bool has_alpha = k->op == RT_PW_add || k->op == RT_PW_sub;
    uint32_t tensor = k->inputs[0].loop ? 0 : 1;
    enum dtype dtype = k->inputs[tensor].dtype;

    if (rt_pointwise_infos[k->op].inputs != 2 || !k->inputs[tensor].loop || !loops[k->op][dtype] ||
        k->class != rt_convert_class(dtype) || (has_alpha && k->params[0].i != 1) ||
        k->out != (rt_pointwise_infos[k->op].gives_truth ? DT_BOOL : dtype)) {
        return NULL;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct rt_pointwise_operand *input = &k->inputs[i];
        if (input->loop ? input->dtype != dtype : !holds(dtype, &input->number)) {
            return NULL;
        }
    }
    *out_dtype = dtype;
    return loops[k->op][dtype];
}
