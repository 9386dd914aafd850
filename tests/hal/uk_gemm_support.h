/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of products of floats and of products of bfloat16 numbers: a product, its
 * operands, what it has to be in double precision, and the tests that both pass.
 */
#ifndef PTED_TESTS_HAL_UK_GEMM_SUPPORT_H
#define PTED_TESTS_HAL_UK_GEMM_SUPPORT_H

#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

#define GUARD 12345.0f /* bytes around an output, which have to stay */
#define SEGMENTS_MAX 16

/*
 * A row of A has |segments| runs of |run| floats with one float between them. C has |lines| x |m|
 * rows, n + 3 apart. One run may be left out.
 */
struct problem {
    uint32_t lines, m, n, run, segments, left_out; /* SEGMENTS_MAX: none is */
    bool bias, residual;
    float min, max;
};

struct operands {
    float *a, *b, *bias, *residual, *c;
    void *packed, *scratch;
    struct uk_segment segments[SEGMENTS_MAX];
    bool is_bf16; /* the product is of A and B rounded to bfloat16 numbers */
    struct uk_gemm_f32 g;
};

/* To the nearest, of two that are as near to the even one. */
static inline double round_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof(bits));
    return (double)x;
}

static inline size_t row_floats(const struct problem *p)
{
    return (size_t)(p->run + 1) * p->segments;
}

static inline void list_segments(const struct problem *p, struct operands *o)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < p->segments; s++) {
        if (s != p->left_out) {
            o->segments[count++] =
                (struct uk_segment){(ptrdiff_t)s * (p->run + 1), (size_t)s * p->run};
        }
    }
    o->g.segments = o->segments;
    o->g.segment_count = count;
}

static inline void pack_operand(const struct hal_cpu_uk *uk, const struct problem *p,
                                struct operands *o)
{
    size_t bytes = uk_packed_f32_floats(uk, p->run * p->segments, p->n) *
                   (o->is_bf16 ? sizeof(uint16_t) : sizeof(float));
    o->packed = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(o->packed);
    const struct uk_pack_f32 pack = {.src = o->b,
                                     .column = 1,
                                     .outer_stride = (ptrdiff_t)p->run * p->n,
                                     .inner_stride = p->n,
                                     .n = p->n,
                                     .outer_count = p->segments,
                                     .inner_count = p->run,
                                     .packed = o->packed};
    (o->is_bf16 ? uk->pack_bf16 : uk->pack_f32)(&pack, 0, uk_panels_f32(uk, p->n));
}

static inline void set_up_product(const struct hal_cpu_uk *uk, const struct problem *p,
                                  bool is_bf16, struct operands *o)
{
    uint32_t k = p->run * p->segments;
    size_t rows = (size_t)p->lines * p->m, c_floats = rows * (p->n + 3) + 3;
    *o = (struct operands){.is_bf16 = is_bf16};
    o->a = random_floats(rows * row_floats(p), 1);
    o->b = random_floats((size_t)k * p->n, 2);
    o->bias = random_floats(p->n, 3);
    o->residual = random_floats(c_floats, 4);
    o->c = random_floats(c_floats, 5);
    for (size_t i = 0; i < c_floats; i++) {
        o->c[i] = GUARD;
    }
    pack_operand(uk, p, o);
    o->g = (struct uk_gemm_f32){.a = o->a,
                                .a_line = (ptrdiff_t)(p->m * row_floats(p)),
                                .a_row = (ptrdiff_t)row_floats(p),
                                .run = p->run,
                                .b = o->packed,
                                .k = k,
                                .bias = p->bias ? o->bias : NULL,
                                .residual = p->residual ? o->residual : NULL,
                                .residual_line = (ptrdiff_t)p->m * (p->n + 3),
                                .residual_row = (ptrdiff_t)p->n + 3,
                                .c = o->c,
                                .c_line = (ptrdiff_t)p->m * (p->n + 3),
                                .c_row = (ptrdiff_t)p->n + 3,
                                .lines = p->lines,
                                .m = p->m,
                                .n = p->n,
                                .min = p->min,
                                .max = p->max};
    if (is_bf16) {
        o->scratch = aligned_alloc(64, (uk_gemm_bf16_scratch(uk, k) + 64) / 64 * 64);
        assert_non_null(o->scratch);
        o->g.scratch = o->scratch;
        list_segments(p, o); /* floats of one run need no list */
    }
}

static inline void teardown(struct operands *o)
{
    free(o->a);
    free(o->b);
    free(o->bias);
    free(o->residual);
    free(o->c);
    free(o->packed);
    free(o->scratch);
}

static inline void run_product(const struct hal_cpu_uk *uk, const struct operands *o,
                               const struct uk_gemm_f32 *g)
{
    (o->is_bf16 ? uk->gemm_bf16 : uk->gemm_f32)(g);
}

/* ---- what it has to be ----------------------------------------------------------------------- */

static inline double want_at(const struct problem *p, const struct operands *o, size_t row,
                             size_t column)
{
    double sum = p->bias ? (double)o->bias[column] : 0.0;
    for (uint32_t s = 0; s < p->segments; s++) {
        const float *a = o->a + row * row_floats(p) + (size_t)s * (p->run + 1);
        const float *b = o->b + (size_t)s * p->run * p->n + column;
        for (uint32_t k = 0; k < p->run && s != p->left_out; k++) {
            float x = a[k], y = b[(size_t)k * p->n];
            sum += o->is_bf16 ? round_to_bf16(x) * round_to_bf16(y) : (double)x * (double)y;
        }
    }
    sum += p->residual ? (double)o->residual[row * (p->n + 3) + column] : 0.0;
    return sum < (double)p->min ? (double)p->min : sum > (double)p->max ? (double)p->max : sum;
}

/* A sum of |k| products of numbers below 1, rounded at each; a product missing is 0.25. */
static inline double tolerance(uint32_t k)
{
    return 1e-7 * (k + 16.0);
}

static inline void check(const struct problem *p, const struct operands *o, const char *level)
{
    for (size_t i = 0; i < (size_t)p->lines * p->m; i++) {
        const float *c = o->c + i * (p->n + 3);
        for (size_t j = 0; j < p->n; j++) {
            double want = want_at(p, o, i, j);
            if (!(fabs((double)c[j] - want) <= tolerance(p->run * p->segments))) {
                fail_msg("%s: %ux%ux%ux%ux%u at %zu, %zu: %g, expected %g", level, p->lines, p->m,
                         p->n, p->run, p->segments, i, j, (double)c[j], want);
            }
        }
        for (size_t j = p->n; j < p->n + 3; j++) {
            assert_true(c[j] == GUARD);
        }
    }
}

/* ---- tests of both --------------------------------------------------------------------------- */

static inline void check_product(const struct hal_cpu_uk *uk, const struct problem *p, bool is_bf16)
{
    struct operands o;
    set_up_product(uk, p, is_bf16, &o);
    run_product(uk, &o, &o.g);
    check(p, &o, uk->name);
    teardown(&o);
}

/* One row alone, or a few columns, are the bits they are among all the others: |p| has 100 rows and
 * 9 panels with a few columns more. */
static inline void check_same_bits(const struct hal_cpu_uk *uk, const struct problem *p,
                                   bool is_bf16)
{
    struct operands o;
    size_t floats = 100 * (p->n + 3), width = is_bf16 ? sizeof(uint16_t) : sizeof(float);
    set_up_product(uk, p, is_bf16, &o);
    float *whole = random_floats(floats, 0);
    run_product(uk, &o, &o.g);
    memcpy(whole, o.c, floats * sizeof(float));
    memset(o.c, 0, floats * sizeof(float));
    for (uint32_t row = 0; row < 100; row++) {
        for (uint32_t panel = 0; panel < 10; panel += 2) {
            struct uk_gemm_f32 g = o.g;
            uint32_t column = panel * uk->f32_nr;
            g.lines = g.m = 1;
            g.a += row * g.a_row;
            g.b = (const char *)g.b + (size_t)column * g.k * width;
            g.bias += column;
            g.c += row * g.c_row + (ptrdiff_t)column;
            g.residual += row * g.residual_row + (ptrdiff_t)column;
            g.n = p->n - column < 2 * uk->f32_nr ? p->n - column : 2 * uk->f32_nr;
            run_product(uk, &o, &g);
        }
        assert_memory_equal(o.c + row * (p->n + 3), whole + row * (p->n + 3),
                            p->n * sizeof(float));
    }
    free(whole);
    teardown(&o);
}

static inline void check_residual_in_place(const struct hal_cpu_uk *uk, bool is_bf16)
{
    const struct problem p = {1, 30, 300, 1500, 1, SEGMENTS_MAX, true, true, -2.0f, 2.0f};
    struct operands o;
    set_up_product(uk, &p, is_bf16, &o);
    memcpy(o.c, o.residual, (30 * 303) * sizeof(float));
    for (size_t i = 0; i < 30; i++) {
        for (size_t j = 300; j < 303; j++) {
            o.c[i * 303 + j] = GUARD;
        }
    }
    o.g.residual = o.c;
    run_product(uk, &o, &o.g);
    check(&p, &o, uk->name);
    teardown(&o);
}

/* A NaN reaches all of its row, through the clamp, and no other row. */
static inline void check_nan(const struct hal_cpu_uk *uk, bool is_bf16)
{
    const struct problem p = {1, 20, 70, 50, 1, SEGMENTS_MAX, true, true, 0.0f, 6.0f};
    struct operands o;
    set_up_product(uk, &p, is_bf16, &o);
    o.a[3 * 51 + 17] = NAN;
    run_product(uk, &o, &o.g);
    for (size_t i = 0; i < 20; i++) {
        for (size_t j = 0; j < 70; j++) {
            assert_int_equal(isnan(o.c[i * 73 + j]) != 0, i == 3);
        }
    }
    teardown(&o);
}

#endif
