/* SPDX-License-Identifier: MIT */
/*
 * Shared by pointwise.c, which describes each operator in terms of loops and records dispatches,
 * and pointwise_loops.c, whose kernel runs the loops.
 *
 * A loop reads up to three packed operands of one class and writes one. It knows neither the
 * operators that use it nor the origin and types of its operands.
 */
#ifndef PTED_RUNTIME_OPS_POINTWISE_H
#define PTED_RUNTIME_OPS_POINTWISE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/kernels/convert.h"
#include "runtime/kernels/loop.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#include "runtime/kernels/copy.h"
#endif

#define RT_PW_INPUTS_MAX 3
#define RT_PW_PARAMS_MAX 3

/*
 * PW(name, classes, inputs, inputs that are truths by bit, is the result a truth, cost)
 * Classes: N all real numbers, F floats, I integers, T truths; C and G as N and F, with complex
 * numbers; Z complex numbers only; S float32 only, in chains (chain.h). Cost: tenths of a ns for an
 * f32 element.
 */
/* clang-format off */
#define RT_PW_LOOPS(PW)                                                                            \
    PW(copy, C, 1, 0, 0, 3) PW(abs, C, 1, 0, 0, 3) PW(neg, C, 1, 0, 0, 3)                          \
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
    PW(bitwise_not, I, 1, 0, 0, 10) PW(add, C, 2, 0, 0, 3) PW(sub, C, 2, 0, 0, 3)                  \
    PW(mul, C, 2, 0, 0, 3) PW(div, G, 2, 0, 0, 5) PW(div_trunc, N, 2, 0, 0, 50)                    \
    PW(div_floor, N, 2, 0, 0, 150) PW(fmod, N, 2, 0, 0, 150) PW(remainder, N, 2, 0, 0, 150)        \
    PW(pow, N, 2, 0, 0, 250) PW(atan2, F, 2, 0, 0, 250) PW(glu, F, 2, 0, 0, 12)                    \
    PW(maximum, N, 2, 0, 0, 3) PW(minimum, N, 2, 0, 0, 3) PW(eq, C, 2, 0, 1, 8)                    \
    PW(ne, C, 2, 0, 1, 8)                                                                          \
    PW(lt, N, 2, 0, 1, 8) PW(le, N, 2, 0, 1, 8) PW(gt, N, 2, 0, 1, 8) PW(ge, N, 2, 0, 1, 8)        \
    PW(logical_and, T, 2, 3, 1, 5) PW(logical_or, T, 2, 3, 1, 5) PW(logical_xor, T, 2, 3, 1, 5)    \
    PW(bitwise_and, I, 2, 0, 0, 10) PW(bitwise_or, I, 2, 0, 0, 10)                                 \
    PW(bitwise_xor, I, 2, 0, 0, 10) PW(shift_left, I, 2, 0, 0, 10)                                 \
    PW(shift_right, I, 2, 0, 0, 10) PW(where, C, 3, 1, 0, 10) PW(bounds, N, 3, 0, 0, 20)\
    PW(conj, Z, 1, 0, 0, 5) PW(silu, S, 1, 0, 0, 9) PW(hardsigmoid, S, 1, 0, 0, 3)                 \
    PW(hardswish, S, 1, 0, 0, 3)
/*
 * The subset of loops over doubles that shaders can compute: shaders have no functions of doubles.
 */
#define RT_PW_F64_LOOPS(PW)                                                                        \
    PW(copy) PW(abs) PW(neg) PW(sign) PW(square) PW(relu) PW(clamp) PW(leaky_relu) PW(sqrt)        \
    PW(rsqrt) PW(reciprocal) PW(floor) PW(ceil) PW(trunc) PW(round) PW(isnan) PW(isinf) PW(add)    \
    PW(sub) PW(mul) PW(div) PW(div_trunc) PW(maximum) PW(minimum) PW(eq) PW(ne) PW(lt) PW(le)      \
    PW(gt) PW(ge) PW(where) PW(bounds)
/* clang-format on */

#define PW(name, ...) RT_PW_##name,
enum rt_pointwise_op { RT_PW_LOOPS(PW) RT_PW_COUNT };
#undef PW

/* Source of an operand: operand |loop| of the nest, or, with 0, the number. */
struct rt_pointwise_operand {
    uint32_t loop;
    enum dtype dtype;
    struct rt_number number;
};

struct rt_pointwise_constants {
    struct rt_loop loop;
    enum rt_pointwise_op op;
    enum rt_class class;
    enum dtype out;
    struct rt_pointwise_operand inputs[RT_PW_INPUTS_MAX];
    struct rt_number params[RT_PW_PARAMS_MAX];
};
_Static_assert(sizeof(struct rt_pointwise_constants) <= HAL_CONSTANTS_MAX,
               "constants are copied whole");

/* The variant of the SPIR-V form. */
#define RT_PW_VARIANT(op, class) ((op)*RT_CLASS_COUNT + (class))

#ifndef HAL_SHADER
struct rt_pointwise_info {
    uint8_t inputs;
    uint8_t truths; /* bit i: input i is loaded as a truth whatever the class */
    bool gives_truth;
    uint16_t cost; /* tenths of a ns for an f32 element */
};

extern const struct rt_pointwise_info rt_pointwise_infos[RT_PW_COUNT];

/* Kernels with a SPIR-V form that needs no doubles, by class and loop; rt_pointwise_kernel()
 * chooses. */
extern const struct hal_kernel rt_pointwise_kernels[RT_CLASS_COUNT][RT_PW_COUNT];

/* A chunk of packed elements for a loop. */
struct rt_pointwise_run {
    void *out;
    const void *in[RT_PW_INPUTS_MAX];
    const struct rt_number *params;
    size_t count;
    const struct hal_args *args; /* for faults */
};

typedef void rt_pointwise_loop_f(const struct rt_pointwise_run *run);

/* Does the loop have a form for that class? */
bool rt_pointwise_has_loop(enum rt_pointwise_op op, enum rt_class class);
rt_pointwise_loop_f *rt_pointwise_loop(enum rt_pointwise_op op, enum rt_class class);

/* Names it as in the list above. */
const char *rt_pointwise_name(enum rt_pointwise_op op);
#define RT_PW_NAME_MAX 16

/* A node as one loop over float32, with the sources of its operands and then its parameters. */
#define RT_PW_NUMBER UINT32_MAX
struct rt_pointwise_step {
    enum rt_pointwise_op op;
    uint32_t values[RT_PW_INPUTS_MAX + RT_PW_PARAMS_MAX]; /* RT_PW_NUMBER: the one beside it */
    double numbers[RT_PW_INPUTS_MAX + RT_PW_PARAMS_MAX];
};

/* False for all other nodes, for instance sums with a factor. A constant tensor of one element
 * counts as a number. */
bool rt_pointwise_read_step(const struct rt_graph *graph, const struct rt_node *node,
                            struct rt_pointwise_step *out_step);

/* Returns a loop in the common type of all operands, if there is one: faster than the loop of the
 * class, with the same result. |out_dtype| receives the type. Defined in pointwise_typed.c. */
rt_pointwise_loop_f *rt_pointwise_typed_loop(const struct rt_pointwise_constants *k,
                                             enum dtype *out_dtype);

/* The loops of complex numbers; pointwise_complex.c. */
rt_pointwise_loop_f rt_pointwise_copy_c128, rt_pointwise_abs_c128, rt_pointwise_neg_c128,
    rt_pointwise_add_c128, rt_pointwise_sub_c128, rt_pointwise_mul_c128, rt_pointwise_div_c128,
    rt_pointwise_eq_c128, rt_pointwise_ne_c128, rt_pointwise_where_c128, rt_pointwise_conj_c128;

/* Positions converted at a time. */
#define RT_PW_CHUNK 512
#define RT_PW_SCRATCH_BYTES ((size_t)RT_PW_CHUNK * RT_CLASS_BYTES_MAX * (RT_PW_INPUTS_MAX + 1))

/*
 * The kernel that runs the loop. It has a SPIR-V form unless doubles or complex numbers take part.
 */
/* Returns the kind of work that an element of this cost is. */
enum rt_work rt_pointwise_work(uint32_t cost);
const struct hal_kernel *rt_pointwise_kernel(const struct rt_pointwise_constants *k);

/* Records the loop; the nest holds all its operands, one for each binding. */
MUST_CHECK enum status rt_pointwise_record(struct rt_emit *emit, struct rt_pointwise_constants *k,
                                           const struct hal_binding *bindings, struct error *err);

/* Does as rt_copy_emit(), between any two types. */
MUST_CHECK enum status rt_pointwise_convert(struct rt_emit *emit, const struct rt_tensor *dst,
                                            const struct rt_tensor *src, const struct rt_copy *box,
                                            struct error *err);
#endif

#endif
