/* SPDX-License-Identifier: MIT */
/*
 * Between the two halves of the pointwise family: pointwise.c says what each operator is, in terms
 * of the loops of pointwise_loops.c, and records dispatches; the kernel there runs them.
 *
 * A loop reads up to three packed operands of one class and writes one. Which operators share it,
 * where its operands come from and what types they have is none of its business.
 */
#ifndef PTED_RUNTIME_OPS_POINTWISE_H
#define PTED_RUNTIME_OPS_POINTWISE_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/kernel.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy.h"
#include "runtime/ops/iter.h"

#define RT_PW_INPUTS_MAX 3
#define RT_PW_PARAMS_MAX 3

/*
 * PW(name, classes, inputs, inputs that are truths by bit, is the result a truth, cost)
 * Classes: N all numbers, F floats, I integers, T truths. Cost: tenths of a ns for an f32 element.
 */
/* clang-format off */
#define RT_PW_LOOPS(PW)                                                                            \
    PW(copy, N, 1, 0, 0, 3) PW(abs, N, 1, 0, 0, 3) PW(neg, N, 1, 0, 0, 3)                          \
    PW(sign, N, 1, 0, 0, 3) PW(square, F, 1, 0, 0, 3) PW(relu, N, 1, 0, 0, 3)                      \
    PW(clamp, N, 1, 0, 0, 3) PW(leaky_relu, F, 1, 0, 0, 3) PW(elu, F, 1, 0, 0, 150)                \
    PW(gelu, F, 1, 0, 0, 12) PW(gelu_tanh, F, 1, 0, 0, 12) PW(sigmoid, F, 1, 0, 0, 8)              \
    PW(logit, F, 1, 0, 0, 150) PW(exp, F, 1, 0, 0, 6) PW(expm1, F, 1, 0, 0, 150)                   \
    PW(log, F, 1, 0, 0, 8) PW(log1p, F, 1, 0, 0, 150) PW(log2, F, 1, 0, 0, 100)                    \
    PW(log10, F, 1, 0, 0, 100) PW(sqrt, F, 1, 0, 0, 5) PW(rsqrt, F, 1, 0, 0, 6)                    \
    PW(reciprocal, F, 1, 0, 0, 5) PW(erf, F, 1, 0, 0, 10) PW(sin, F, 1, 0, 0, 8)                   \
    PW(cos, F, 1, 0, 0, 8) PW(tan, F, 1, 0, 0, 150) PW(asin, F, 1, 0, 0, 150)                      \
    PW(acos, F, 1, 0, 0, 150) PW(atan, F, 1, 0, 0, 150) PW(sinh, F, 1, 0, 0, 150)                  \
    PW(cosh, F, 1, 0, 0, 150) PW(tanh, F, 1, 0, 0, 8) PW(asinh, F, 1, 0, 0, 200)                   \
    PW(acosh, F, 1, 0, 0, 200) PW(atanh, F, 1, 0, 0, 200) PW(floor, N, 1, 0, 0, 3)                 \
    PW(ceil, N, 1, 0, 0, 3) PW(trunc, N, 1, 0, 0, 3) PW(round, N, 1, 0, 0, 3)                      \
    PW(isnan, F, 1, 0, 1, 10) PW(isinf, F, 1, 0, 1, 10) PW(logical_not, T, 1, 1, 1, 5)             \
    PW(bitwise_not, I, 1, 0, 0, 10) PW(add, N, 2, 0, 0, 3) PW(sub, N, 2, 0, 0, 3)                  \
    PW(mul, N, 2, 0, 0, 3) PW(div, F, 2, 0, 0, 5) PW(div_trunc, N, 2, 0, 0, 50)                    \
    PW(div_floor, N, 2, 0, 0, 150) PW(fmod, N, 2, 0, 0, 150) PW(remainder, N, 2, 0, 0, 150)        \
    PW(pow, N, 2, 0, 0, 250) PW(atan2, F, 2, 0, 0, 250) PW(maximum, N, 2, 0, 0, 3)                 \
    PW(minimum, N, 2, 0, 0, 3) PW(eq, N, 2, 0, 1, 8) PW(ne, N, 2, 0, 1, 8)                         \
    PW(lt, N, 2, 0, 1, 8) PW(le, N, 2, 0, 1, 8) PW(gt, N, 2, 0, 1, 8) PW(ge, N, 2, 0, 1, 8)        \
    PW(logical_and, T, 2, 3, 1, 5) PW(logical_or, T, 2, 3, 1, 5) PW(logical_xor, T, 2, 3, 1, 5)    \
    PW(bitwise_and, I, 2, 0, 0, 10) PW(bitwise_or, I, 2, 0, 0, 10)                                 \
    PW(bitwise_xor, I, 2, 0, 0, 10) PW(shift_left, I, 2, 0, 0, 10)                                 \
    PW(shift_right, I, 2, 0, 0, 10) PW(where, N, 3, 1, 0, 10) PW(bounds, N, 3, 0, 0, 20)
/* clang-format on */

#define PW(name, ...) RT_PW_##name,
enum rt_pw_op { RT_PW_LOOPS(PW) RT_PW_COUNT };
#undef PW

/* Where an operand comes from: operand |loop| of the nest, or (0) the number. */
struct rt_pw_operand {
    uint32_t loop;
    enum dtype dtype;
    struct rt_number number;
};

struct rt_pw_constants {
    struct rt_loop loop;
    enum rt_pw_op op;
    enum rt_class class;
    enum dtype out;
    struct rt_pw_operand inputs[RT_PW_INPUTS_MAX];
    struct rt_number params[RT_PW_PARAMS_MAX];
};
_Static_assert(sizeof(struct rt_pw_constants) <= HAL_CONSTANTS_MAX, "constants are copied whole");

struct rt_pw_info {
    uint8_t inputs;
    uint8_t truths; /* bit i: input i is loaded as a truth whatever the class */
    bool gives_truth;
    uint16_t cost; /* tenths of a ns for an f32 element */
};

extern const struct rt_pw_info rt_pw_infos[RT_PW_COUNT];

/* Positions that are converted at a time. */
#define RT_PW_CHUNK 512
#define RT_PW_SCRATCH_BYTES ((size_t)RT_PW_CHUNK * RT_CLASS_BYTES_MAX * (RT_PW_INPUTS_MAX + 1))

extern const struct hal_kernel rt_pw_kernel;

/* As rt_emit_copy(), between any two types. */
MUST_CHECK enum status rt_emit_convert(struct rt_emit *emit, const struct rt_tensor *dst,
                                       const struct rt_tensor *src, const struct rt_copy *box,
                                       struct error *err);

#endif
