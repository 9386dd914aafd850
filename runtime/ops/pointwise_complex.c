/* SPDX-License-Identifier: MIT */
/*
 * Pointwise loops of complex numbers, computed as pairs of doubles and rounded once to the type in
 * memory. The parts are written out, so that a multiplication is four products without C's own
 * treatment of infinities.
 */
#include "config.h"

#include "runtime/ops/pointwise.h"

#include <math.h>
#include <string.h>

struct number {
    double re, im;
};

#define LOOP1(name, expr_re, expr_im)                                                              \
    void rt_pointwise_##name##_c128(const struct rt_pointwise_run *run)                            \
    {                                                                                              \
        const struct number *x = run->in[0];                                                       \
        struct number *y = run->out;                                                               \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const struct number a = x[i];                                                          \
            y[i] = (struct number){expr_re, expr_im};                                              \
        }                                                                                          \
    }

#define LOOP2(name, type, expr)                                                                    \
    void rt_pointwise_##name##_c128(const struct rt_pointwise_run *run)                            \
    {                                                                                              \
        const struct number *x0 = run->in[0], *x1 = run->in[1];                                    \
        type *y = run->out;                                                                        \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const struct number a = x0[i], b = x1[i];                                              \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }

static struct number add(struct number a, double scale, struct number b)
{
    return (struct number){a.re + scale * b.re, a.im + scale * b.im};
}

static struct number mul(struct number a, struct number b)
{
    return (struct number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Divides by the larger part of the divisor first, so that the square does not overflow. */
static struct number divide(struct number a, struct number b)
{
    if (fabs(b.re) >= fabs(b.im)) {
        if (b.re == 0 && b.im == 0) {
            return (struct number){a.re / fabs(b.re), a.im / fabs(b.im)};
        }
        double ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return (struct number){(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    double ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
    return (struct number){(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

void rt_pointwise_copy_c128(const struct rt_pointwise_run *run)
{
    memmove(run->out, run->in[0], run->count * sizeof(struct number));
}

LOOP1(abs, hypot(a.re, a.im), 0) /* the result's type is real */
LOOP1(neg, -a.re, -a.im)
LOOP1(conj, a.re, -a.im)
LOOP2(add, struct number, add(a, run->params[0].f, b))
LOOP2(sub, struct number, add(a, -run->params[0].f, b))
LOOP2(mul, struct number, mul(a, b))
LOOP2(div, struct number, divide(a, b))
LOOP2(eq, uint8_t, a.re == b.re && a.im == b.im)
LOOP2(ne, uint8_t, a.re != b.re || a.im != b.im)

void rt_pointwise_where_c128(const struct rt_pointwise_run *run)
{
    const uint8_t *truths = run->in[0];
    const struct number *a = run->in[1], *b = run->in[2];
    struct number *y = run->out;

    for (size_t i = 0; i < run->count; i++) {
        y[i] = truths[i] ? a[i] : b[i];
    }
}
