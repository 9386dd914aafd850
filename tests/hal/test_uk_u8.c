/* SPDX-License-Identifier: MIT */
/*
 * The integer micro-kernels of every level against plain loops: sums are exact, and what becomes of
 * them is a rounding away at most. Edges of tiles and panels, gathered rows, 4-bit weights, groups,
 * rows with their own zero points, extreme values that saturate 16 bits where pairs are added in
 * them.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

static void *random_bytes(size_t n, uint32_t seed)
{
    uint8_t *x = aligned_alloc(64, (n + 128) / 64 * 64);
    if (!x) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t r = next_random(&seed);
        x[i] = (uint8_t)(r % 8 == 0 ? 255 : r % 8 == 1 ? 128 : r >> 4);
    }
    return x;
}

struct problem {
    uint32_t lines, m, n;
    uint32_t segments, run; /* of A; the runs are 5 apart more than they are long */
    bool is_4bit, is_f32, has_rows;
    uint32_t group;
    uint32_t gap; /* rows of A between two lines */
};

struct operands {
    uint8_t *a, *packed, *c_u8;
    int8_t *w; /* [n][segments * run] */
    float *scales, *c_f32;
    uint16_t *short_scales; /* the same numbers */
    union uk_number *columns;
    float *row_scales;
    int32_t *row_zeros;
    struct uk_segment segments[8];
    void *scratch;
    size_t a_row, c_row;
};

static uint32_t padded_run(const struct problem *p)
{
    uint32_t unit = p->is_4bit ? 8 : 4;
    return (p->run + unit - 1) / unit * unit;
}

static union uk_number *column(const struct hal_cpu_uk *uk, const struct operands *o,
                               enum uk_column array, uint32_t j)
{
    return &o->columns[(j / uk->u8_nr * UK_COLUMN_ARRAYS + array) * uk->u8_nr + j % uk->u8_nr];
}

static struct uk_pack_u8 pack_call(const struct problem *p, const struct operands *o)
{
    return (struct uk_pack_u8){.src = o->w,
                               .column = p->segments * p->run,
                               .outer_stride = p->run,
                               .inner_stride = 1,
                               .n = p->n,
                               .outer_count = p->segments,
                               .mid_count = 1,
                               .inner_count = p->run,
                               .is_4bit = p->is_4bit,
                               .packed = o->packed};
}

static void pack(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o)
{
    uint32_t panels = uk_panels_u8(uk, p->n);
    o->packed = random_bytes((size_t)p->segments * padded_run(p) * panels * uk->u8_nr, 9);
    struct uk_pack_u8 call = pack_call(p, o);
    uk->pack_u8(&call, 0, panels / 2);
    uk->pack_u8(&call, panels / 2, panels);
}

static void setup_columns(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o)
{
    uint32_t depth = p->segments * p->run, panels = uk_panels_u8(uk, p->n), state = 77;
    uint32_t groups = p->group ? p->run / p->group : 0;
    o->columns = calloc((size_t)panels * UK_COLUMN_ARRAYS * uk->u8_nr, sizeof(*o->columns));
    o->scales = random_floats((size_t)panels * (groups + 1) * uk->u8_nr, 12);
    o->short_scales = calloc((size_t)panels * (groups + 1) * uk->u8_nr, sizeof(uint16_t));
    for (size_t i = 0; i < (size_t)panels * groups * uk->u8_nr; i++) {
        uk->f32_to_bf16(o->short_scales + i, o->scales + i, 1);
        uk->bf16_to_f32(o->scales + i, o->short_scales + i, 1);
    }
    for (uint32_t j = 0; j < p->n; j++) {
        int32_t sum = 0;
        float scaled = 0;
        for (uint32_t k = 0; k < depth; k++) {
            int32_t w = o->w[j * depth + k];
            sum += w;
            if (p->group) {
                size_t at = (j / uk->u8_nr * groups + k / p->group) * uk->u8_nr + j % uk->u8_nr;
                scaled += (float)w * o->scales[at];
            }
        }
        column(uk, o, UK_COLUMN_SUM, j)->i = p->is_4bit ? 16 * sum : sum;
        if (p->group) {
            column(uk, o, UK_COLUMN_SUM, j)->f = p->is_4bit ? 16 * scaled : scaled;
        }
        column(uk, o, UK_COLUMN_OFFSET, j)->i =
            p->group ? 0 : (int32_t)(next_random(&state) % 2000) - 1000;
        float scale = (float)(next_random(&state) % 100 + 1) * 1e-6f;
        column(uk, o, UK_COLUMN_SCALE, j)->f = p->is_4bit ? scale / 16 : scale;
        column(uk, o, UK_COLUMN_BIAS, j)->f = (float)(next_random(&state) % 64) - 32.0f;
    }
}

static void setup(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o)
{
    size_t rows = (size_t)p->lines * p->m, depth = (size_t)p->segments * p->run;
    o->a_row = (size_t)p->segments * (p->run + 5) + 8;
    o->c_row = p->n + 3;
    o->a = random_bytes((rows + (size_t)p->lines * p->gap) * o->a_row, 1);
    o->w = random_bytes(depth * p->n + 1, 2);
    for (size_t i = 0; p->is_4bit && i < depth * p->n; i++) {
        o->w[i] = (int8_t)((uint8_t)o->w[i] % 16 - 8);
    }
    o->c_u8 = random_bytes(rows * o->c_row, 3);
    memset(o->c_u8, 99, rows * o->c_row);
    o->c_f32 = random_floats(rows * o->c_row, 4);
    o->row_scales = calloc(rows, sizeof(float));
    o->row_zeros = calloc(rows, sizeof(int32_t));
    for (size_t i = 0; i < rows; i++) {
        o->c_f32[(i + 1) * o->c_row - 1] = 99;
        o->row_scales[i] = 0.5f + (float)(i % 7);
        o->row_zeros[i] = (int32_t)(i * 37 % 256) - 128;
    }
    pack(uk, p, o);
    setup_columns(uk, p, o);
    for (uint32_t s = 0; s < p->segments; s++) {
        o->segments[s] = (struct uk_segment){(ptrdiff_t)s * (p->run + 5), s * padded_run(p)};
    }
    o->scratch = random_bytes(uk_gemm_u8_scratch(uk, (size_t)p->segments * padded_run(p)), 5);
}

static void teardown(struct operands *o)
{
    free(o->a);
    free(o->packed);
    free(o->c_u8);
    free(o->w);
    free(o->scales);
    free(o->short_scales);
    free(o->c_f32);
    free(o->columns);
    free(o->row_scales);
    free(o->row_zeros);
    free(o->scratch);
}

/* The sum of |count| products; exact, and fast in an emulator. */
static int64_t whole_sum(const uint8_t *x, int32_t zero, const int8_t *w, uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        sum += (x[k] - zero) * w[k];
    }
    return sum;
}

/* The sum of products of row |i| with column |j|, with the scales of groups if there are any. */
static double sum_at(const struct hal_cpu_uk *uk, const struct problem *p, const struct operands *o,
                     size_t i, uint32_t j)
{
    const uint8_t *row = o->a + (i + i / p->m * p->gap) * o->a_row;
    const int8_t *w = o->w + (size_t)j * p->segments * p->run;
    uint32_t group = p->group ? p->group : p->run, groups = p->run / group;
    double sum = 0;
    for (uint32_t g = 0; g < p->segments * groups; g++) {
        const uint8_t *x = row + g / groups * (p->run + 5) + g % groups * group;
        int64_t part = whole_sum(x, p->has_rows ? o->row_zeros[i] : 0, w + g * group, group);
        size_t at = (j / uk->u8_nr * groups + g) * uk->u8_nr + j % uk->u8_nr;
        sum += (double)part * (p->group ? (double)o->scales[at] : 1);
    }
    return sum;
}

static double want_at(const struct hal_cpu_uk *uk, const struct problem *p,
                      const struct operands *o, size_t i, uint32_t j)
{
    double sum = sum_at(uk, p, o, i, j) * (p->is_4bit ? 16 : 1);
    double scale = (double)column(uk, o, UK_COLUMN_SCALE, j)->f;
    sum += column(uk, o, UK_COLUMN_OFFSET, j)->i;
    scale *= p->has_rows ? (double)o->row_scales[i] : 1;
    return sum * scale + (double)column(uk, o, UK_COLUMN_BIAS, j)->f;
}

#define MIN (-90.0f)
#define MAX 100.0f
#define ZERO 120

static double clamp(double x)
{
    return x < (double)MIN ? (double)MIN : x > (double)MAX ? (double)MAX : x;
}

static void check(const struct hal_cpu_uk *uk, const struct problem *p, const struct operands *o)
{
    for (size_t i = 0; i < (size_t)p->lines * p->m; i++) {
        for (uint32_t j = 0; j < p->n; j++) {
            double want = clamp(want_at(uk, p, o, i, j));
            double got = p->is_f32 ? (double)o->c_f32[i * o->c_row + j]
                                   : (double)o->c_u8[i * o->c_row + j] - ZERO;
            /* A sum of groups is rounded in float; a byte is half a step away at most. */
            double tolerance = (p->group ? 2e-3 : 1e-4) + (p->is_f32 ? 0 : 0.5);
            if (!(fabs(got - want) <= tolerance)) {
                fail_msg("%s: %ux%ux%u, %u runs of %u, 4 bit %d, group %u: at %zu, %u: %g, "
                         "expected %g",
                         uk->name, p->lines, p->m, p->n, p->segments, p->run, p->is_4bit, p->group,
                         i, j, got, want);
            }
        }
        assert_int_equal(o->c_u8[(i + 1) * o->c_row - 1], 99);
        assert_true(o->c_f32[(i + 1) * o->c_row - 1] == 99);
    }
}

/* Panels that have scales, of |scale_bytes| each, and columns in them. */
static uint8_t *panels_with_all(const struct hal_cpu_uk *uk, const struct problem *p,
                                const struct operands *o, size_t scale_bytes)
{
    const size_t nr = uk->u8_nr, panels = uk_panels_u8(uk, p->n), groups = p->run / p->group;
    const size_t weights = p->group * nr / (p->is_4bit ? 2 : 1);
    const size_t columns = UK_COLUMN_ARRAYS * nr * sizeof(*o->columns);
    const uint8_t *scales =
        scale_bytes == sizeof(float) ? (const void *)o->scales : (const void *)o->short_scales;
    const size_t bytes = uk_panel_bytes_u8(nr, p->run, p->group, p->is_4bit, scale_bytes);
    uint8_t *all = random_bytes(panels * bytes, 6), *to = all;
    assert_int_equal(bytes, groups * (weights + nr * scale_bytes) + columns);
    for (size_t i = 0; i < panels; i++) {
        for (size_t g = 0; g < groups; g++, to += weights + nr * scale_bytes) {
            memcpy(to, o->packed + (i * groups + g) * weights, weights);
            memcpy(to + weights, scales + (i * groups + g) * nr * scale_bytes, nr * scale_bytes);
        }
        memcpy(to, o->columns + i * UK_COLUMN_ARRAYS * nr, columns);
        to += columns;
    }
    return all;
}

/* The results, which are in |o|, must be the same with scales of either size, wherever they are. */
static void check_same(const struct hal_cpu_uk *uk, const struct problem *p,
                       const struct operands *o, struct uk_gemm_u8 g, size_t scale_bytes,
                       bool are_inside)
{
    size_t count = (size_t)p->lines * p->m * o->c_row;
    float *c_f32 = random_floats(count, 4);
    uint8_t *c_u8 = random_bytes(count, 3), *all = NULL;
    g.c_f32 = p->is_f32 ? c_f32 : NULL;
    g.c_u8 = p->is_f32 ? NULL : c_u8;
    g.has_short_scales = scale_bytes != sizeof(float);
    g.group_scales = g.has_short_scales ? (const void *)o->short_scales : o->scales;
    if (are_inside) {
        all = panels_with_all(uk, p, o, scale_bytes);
        g.b = all;
        g.group_scales = NULL;
        g.columns = NULL;
    }
    uk->gemm_u8(&g);
    for (size_t i = 0; i < (size_t)p->lines * p->m; i++) {
        const size_t at = i * o->c_row;
        assert_true(!p->is_f32 || !memcmp(c_f32 + at, o->c_f32 + at, p->n * sizeof(float)));
        assert_true(p->is_f32 || !memcmp(c_u8 + at, o->c_u8 + at, p->n));
    }
    free(c_f32);
    free(c_u8);
    free(all);
}

/* The results, which are in |o|, must be the same if rows are computed one by one. */
static void check_alone(const struct hal_cpu_uk *uk, const struct problem *p,
                        const struct operands *o, struct uk_gemm_u8 g)
{
    float *c_f32 = random_floats(p->n, 4);
    uint8_t *c_u8 = random_bytes(p->n, 3);
    const uint8_t *a = g.a;
    g.lines = g.m = 1;
    g.c_f32 = p->is_f32 ? c_f32 : NULL;
    g.c_u8 = p->is_f32 ? NULL : c_u8;
    for (size_t i = 0; i < (size_t)p->lines * p->m; i++) {
        const size_t at = i * o->c_row;
        g.a = a + i * o->a_row;
        g.row_scales = p->has_rows ? o->row_scales + i : NULL;
        g.row_zeros = o->row_zeros + i;
        uk->gemm_u8(&g);
        assert_true(!p->is_f32 || !memcmp(c_f32, o->c_f32 + at, p->n * sizeof(float)));
        assert_true(p->is_f32 || !memcmp(c_u8, o->c_u8 + at, p->n));
    }
    free(c_f32);
    free(c_u8);
}

/* Zero as the only bound, as behind a relu, must give the greater of the bytes and of zero. */
static void check_relu(const struct hal_cpu_uk *uk, const struct problem *p,
                       const struct operands *o, struct uk_gemm_u8 g)
{
    size_t count = (size_t)p->lines * p->m * o->c_row;
    uint8_t *positive = random_bytes(count, 3);
    g.min = -INFINITY;
    g.max = INFINITY;
    uk->gemm_u8(&g);
    g.min = 0;
    g.c_u8 = positive;
    uk->gemm_u8(&g);
    for (size_t i = 0; i < count; i++) {
        if (i % o->c_row < p->n) {
            assert_int_equal(positive[i], o->c_u8[i] > ZERO ? o->c_u8[i] : ZERO);
        }
    }
    free(positive);
}

/* Results that no int holds are bounded, too: those of scales, those of biases, and those that are
 * just small enough. */
static void check_far(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o,
                      const struct uk_gemm_u8 *g)
{
    static const float scales[] = {0.5f, 1e8f, 1e-5f, -3e7f}, biases[] = {536870912.0f, 4e9f};
    size_t bytes = (size_t)uk_panels_u8(uk, p->n) * UK_COLUMN_ARRAYS * uk->u8_nr;
    bytes *= sizeof(*o->columns);
    union uk_number *kept = malloc(bytes);
    memcpy(kept, o->columns, bytes);
    for (uint32_t by = 0; by < 4; by++) {
        for (uint32_t j = 0; j < p->n; j++) {
            bool is_far = by == 0 || j % 4 == by;
            column(uk, o, UK_COLUMN_SCALE, j)->f = is_far ? scales[by] : 1e-5f;
            column(uk, o, UK_COLUMN_BIAS, j)->f = is_far && by % 2 == 0 ? biases[by / 2] : 3.0f;
        }
        uk->gemm_u8(g);
        check(uk, p, o);
    }
    memcpy(o->columns, kept, bytes);
    free(kept);
}

/* So are those of groups whose scales are large. */
static void check_far_groups(const struct hal_cpu_uk *uk, const struct problem *p,
                             struct operands *o, const struct uk_gemm_u8 *g)
{
    const size_t scales = (size_t)uk_panels_u8(uk, p->n) * (p->run / p->group) * uk->u8_nr;
    const float factors[] = {0x1p40f, 0x1p-40f};
    for (uint32_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < scales; k++) {
            o->scales[k] *= factors[i];
        }
        for (uint32_t j = 0; j < p->n; j++) {
            column(uk, o, UK_COLUMN_SUM, j)->f *= factors[i];
        }
        if (i == 0) {
            uk->gemm_u8(g);
            check(uk, p, o);
        }
    }
}

/* The results must be the same with sorted words, from small weights and numbers, many of which fit
 * 16 bits together, to the largest ones. */
static void check_sorted(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o,
                         struct uk_gemm_u8 g)
{
    size_t rows = (size_t)p->lines * p->m, count = rows * o->c_row;
    size_t depth = (size_t)p->segments * p->run, a_bytes = (rows + p->lines * p->gap) * o->a_row;
    uint32_t panels = uk_panels_u8(uk, p->n);
    uint8_t *plain = o->packed, *sorted = random_bytes(panels * uk_sorted_panel_u8(uk, g.k), 9);
    float *c_f32 = random_floats(count, 4);
    uint8_t *c_u8 = random_bytes(count, 3);
    for (uint32_t shift = 0; shift < 7; shift++) {
        for (size_t i = 0; i < depth * p->n && shift > 0; i++) {
            o->w[i] = (int8_t)(o->w[i] / 2);
        }
        for (size_t i = 0; i < a_bytes && shift % 3 == 2; i++) {
            o->a[i] /= 2;
        }
        struct uk_pack_u8 call = pack_call(p, o);
        uk->pack_u8(&call, 0, panels);
        call.packed = sorted;
        call.is_sorted = true;
        uk->pack_u8(&call, 0, panels);
        struct uk_gemm_u8 s = g;
        s.b = sorted;
        s.is_sorted = true;
        s.c_f32 = p->is_f32 ? c_f32 : NULL;
        s.c_u8 = p->is_f32 ? NULL : c_u8;
        g.b = plain;
        uk->gemm_u8(&g);
        uk->gemm_u8(&s);
        for (size_t i = 0; i < rows; i++) {
            const size_t at = i * o->c_row;
            assert_true(!p->is_f32 || !memcmp(c_f32 + at, o->c_f32 + at, p->n * sizeof(float)));
            assert_true(p->is_f32 || !memcmp(c_u8 + at, o->c_u8 + at, p->n));
        }
    }
    free(sorted);
    free(c_f32);
    free(c_u8);
}

static void run_problem(const struct hal_cpu_uk *uk, const struct problem *p)
{
    struct operands o;
    setup(uk, p, &o);
    struct uk_gemm_u8 g = {.a = o.a,
                           .a_line = (ptrdiff_t)((p->m + p->gap) * o.a_row),
                           .a_row = (ptrdiff_t)o.a_row,
                           .segments = o.segments,
                           .segment_count = p->segments,
                           .run = padded_run(p),
                           .b = o.packed,
                           .k = (size_t)p->segments * padded_run(p),
                           .is_4bit = p->is_4bit,
                           .group = p->group,
                           .group_scales = o.scales,
                           .columns = o.columns,
                           .row_scales = p->has_rows ? o.row_scales : NULL,
                           .row_zeros = o.row_zeros,
                           .rows_line = p->m,
                           .c_u8 = p->is_f32 ? NULL : o.c_u8,
                           .c_f32 = p->is_f32 ? o.c_f32 : NULL,
                           .c_line = (ptrdiff_t)(p->m * o.c_row),
                           .c_row = (ptrdiff_t)o.c_row,
                           .lines = p->lines,
                           .m = p->m,
                           .n = p->n,
                           .min = MIN,
                           .max = MAX,
                           .zero = ZERO,
                           .scratch = o.scratch};
    if (!p->is_f32) {
        check_far(uk, p, &o, &g);
    }
    if (!p->is_f32 && p->group) {
        check_far_groups(uk, p, &o, &g);
    }
    uk->gemm_u8(&g);
    check(uk, p, &o);
    if (p->group) {
        check_same(uk, p, &o, g, sizeof(float), false);
        check_same(uk, p, &o, g, sizeof(uint16_t), false);
        check_same(uk, p, &o, g, sizeof(float), true);
        check_same(uk, p, &o, g, sizeof(uint16_t), true);
        check_alone(uk, p, &o, g);
    } else if (!p->is_4bit && uk->u8_sorts) {
        check_sorted(uk, p, &o, g);
    }
    if (!p->is_f32) {
        check_relu(uk, p, &o, g);
    }
    teardown(&o);
}

static void level_edges(const struct hal_cpu_uk *uk)
{
    static const uint32_t runs[] = {1, 4, 6, 9, 33, 64, 80, 131};
    assert_int_equal(uk->u8_sorts, !strcmp(uk->name, "avx2") || !strcmp(uk->name, "avx512"));
    for (uint32_t m = 1; m <= 2 * uk->u8_mr + 1; m++) {
        for (uint32_t n = 1; n <= 2 * uk->u8_nr + 1; n += m % 3 + 1) {
            uint32_t v = m + n;
            run_problem(uk, &(struct problem){.lines = v % 5 < 3 ? v % 5 + 1 : 1,
                                              .m = m,
                                              .n = n,
                                              .segments = v % 3 + 1,
                                              .run = runs[v % 8],
                                              .is_f32 = v % 4 == 1,
                                              .has_rows = v % 7 < 3,
                                              .gap = v % 4});
        }
    }
}

static void test_edges(void **state)
{
    (void)state;
    each_level(level_edges);
    soft_levels(level_edges);
}

static void level_4bit(const struct hal_cpu_uk *uk)
{
    for (uint32_t m = 1; m <= uk->u8_mr + 1; m++) {
        for (uint32_t n = 1; n <= 2 * uk->u8_nr + 1; n += m % 5 + 1) {
            uint32_t run = 1 + (m * 7 + n) % 70;
            struct problem p = {1, m, n, 1, run, true, n % 2 == 0, n % 3 != 0, 0, 0};
            run_problem(uk, &p);
            p.run = (p.run % 3 + 1) * 32;
            p.is_f32 = true;
            p.group = 32;
            run_problem(uk, &p);
            p.is_4bit = false;
            run_problem(uk, &p);
        }
    }
}

/* Enough rows and groups for tiles, which are cut in both directions. */
static void level_groups(const struct hal_cpu_uk *uk)
{
    static const uint16_t groups[] = {32, 64, 96, 128, 160};
    for (uint32_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (uint32_t m = 15; m <= 49; m += 8 + i) {
            uint32_t run = groups[i] * (1 + m % 11);
            struct problem p = {1, m, 16 + m, 1, run, true, m % 2, m % 3, 0, 0};
            p.group = groups[i];
            run_problem(uk, &p);
            p.is_4bit = false;
            run_problem(uk, &p);
        }
    }
    struct problem p = {1, 150, 33, 1, 2112, true, true, true, 32, 0};
    run_problem(uk, &p);
    p = (struct problem){3, 16, 33, 1, 1120, true, false, true, 32, 0};
    run_problem(uk, &p);
}

/* Some panels side by side, and those that are left. */
static void level_beside(const struct hal_cpu_uk *uk)
{
    for (uint32_t panels = 1; panels <= 8; panels++) {
        for (uint32_t cut = 0; cut < 2; cut++) {
            uint32_t n = panels * uk->u8_nr - cut * 3;
            struct problem p = {1, 1 + panels % 3, n, 1, 192, true, cut, panels % 2, 32, 0};
            run_problem(uk, &p);
            p.is_4bit = false;
            p.group = 64;
            run_problem(uk, &p);
        }
    }
}

static void test_4bit(void **state)
{
    (void)state;
    each_level(level_4bit);
    soft_levels(level_4bit);
    each_level(level_groups);
    soft_levels(level_groups);
    each_level(level_beside);
    soft_levels(level_beside);
}

/* Deep and wide enough for blocks of panels; rows pages apart. */
static void level_large(const struct hal_cpu_uk *uk)
{
    run_problem(uk, &(struct problem){.lines = 1, .m = 33, .n = 300, .segments = 1, .run = 2560});
    run_problem(uk, &(struct problem){.lines = 1, .m = 20, .n = 100, .segments = 1, .run = 4083});
    run_problem(uk, &(struct problem){.lines = 3, .m = 7, .n = 70, .segments = 7, .run = 21});
    run_problem(uk, &(struct problem){.lines = 1,
                                      .m = 1,
                                      .n = 200,
                                      .segments = 1,
                                      .run = 1000,
                                      .is_f32 = true,
                                      .has_rows = true});
}

static void test_large(void **state)
{
    (void)state;
    each_level(level_large);
    soft_levels(level_large);
}

/* ---- depthwise ------------------------------------------------------------------------------- */

struct depthwise {
    uint32_t channels, rows, width, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
};

/* The scale of every ninth channel: an ordinary one, and one whose results no int holds. */
#define DW_SCALE 1e-4f
#define DW_FAR_SCALE 1e7f

static void check_depthwise(const struct hal_cpu_uk *uk, const struct depthwise *p,
                            const struct uk_dw_u8 *d, const int8_t *w, float scale)
{
    for (size_t at = 0; at < (size_t)p->rows * p->width * p->channels; at++) {
        size_t c = at % p->channels, x = at / p->channels % p->width,
               y = at / p->channels / p->width;
        const uint8_t *block = d->x + c / uk->u8_block * (size_t)d->x_block + c % uk->u8_block;
        int32_t sum = (int32_t)c * 3 - 50;
        for (size_t t = 0; t < (size_t)p->kernel_h * p->kernel_w; t++) {
            size_t line = y * p->stride_h + t / p->kernel_w * p->dilation_h;
            size_t pixel = x * p->stride_w + t % p->kernel_w * p->dilation_w;
            sum += block[line * (size_t)d->x_line + pixel * uk->u8_block] * w[t * p->channels + c];
        }
        double want = clamp(sum * (double)scale * (double)(c % 9 + 1) + 0.25);
        double got = d->y[y * (size_t)d->y_line + x * (size_t)d->y_pixel + c];
        if (!(fabs(got - ZERO - want) <= 0.5001)) {
            fail_msg("%s: %u channels, %ux%u: at %zu: %g, expected %g", uk->name, p->channels,
                     p->kernel_h, p->kernel_w, at, got - ZERO, want);
        }
    }
}

/* Like check_relu(). */
static void check_dw_relu(const struct hal_cpu_uk *uk, const struct uk_dw_u8 *of)
{
    struct uk_dw_u8 d = *of;
    size_t count = (size_t)d.rows * d.width * d.channels;
    uint8_t *positive = random_bytes(count + 1, 3);
    d.min = -INFINITY;
    d.max = INFINITY;
    uk->dw_u8(&d);
    d.min = 0;
    d.y = positive;
    uk->dw_u8(&d);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(positive[i], of->y[i] > ZERO ? of->y[i] : ZERO);
    }
    free(positive);
}

static void run_depthwise(const struct hal_cpu_uk *uk, const struct depthwise *p)
{
    size_t blocks = (p->channels + uk->u8_block - 1) / uk->u8_block, lanes = uk->u8_block;
    size_t width = (p->width - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w + 1;
    size_t height = (p->rows - 1) * p->stride_h + (p->kernel_h - 1) * p->dilation_h + 1;
    uint8_t *x = random_bytes((width * height * blocks + UK_DW_U8_SLACK) * lanes, 1);
    int8_t *w = random_bytes((size_t)p->kernel_h * p->kernel_w * p->channels, 2);
    uint8_t *packed = random_bytes(uk_dw_u8_bytes(uk, p->kernel_h, p->kernel_w, p->channels), 3);
    uint8_t *y = random_bytes((size_t)p->rows * p->width * p->channels + 1, 4);
    union uk_number *columns = calloc(blocks * lanes * UK_COLUMN_ARRAYS, sizeof(*columns));
    for (size_t c = 0; c < p->channels; c++) {
        union uk_number *at = columns + c / lanes * lanes * UK_COLUMN_ARRAYS + c % lanes;
        at[UK_COLUMN_OFFSET * lanes].i = (int32_t)c * 3 - 50;
        at[UK_COLUMN_SCALE * lanes].f = DW_SCALE * (float)(c % 9 + 1);
        at[UK_COLUMN_BIAS * lanes].f = 0.25f;
        for (size_t t = 0; t < (size_t)p->kernel_h * p->kernel_w; t++) {
            at[UK_COLUMN_SUM * lanes].i += w[t * p->channels + c];
        }
    }
    y[(size_t)p->rows * p->width * p->channels] = 77;
    uk->pack_dw_u8(packed, w, p->kernel_h, p->kernel_w, p->channels);
    struct uk_dw_u8 d = {.x = x,
                         .x_line = (ptrdiff_t)(width * lanes),
                         .x_block = (ptrdiff_t)(width * height * lanes),
                         .w = packed,
                         .columns = columns,
                         .y = y,
                         .y_line = (ptrdiff_t)p->width * p->channels,
                         .y_pixel = p->channels,
                         .channels = p->channels,
                         .rows = p->rows,
                         .width = p->width,
                         .kernel_h = p->kernel_h,
                         .kernel_w = p->kernel_w,
                         .stride_h = p->stride_h,
                         .stride_w = p->stride_w,
                         .dilation_h = p->dilation_h,
                         .dilation_w = p->dilation_w,
                         .min = MIN,
                         .max = MAX,
                         .zero = ZERO};
    uk->dw_u8(&d);
    check_depthwise(uk, p, &d, w, DW_SCALE);
    assert_int_equal(y[(size_t)p->rows * p->width * p->channels], 77);
    check_dw_relu(uk, &d);
    for (size_t c = 0; c < p->channels; c++) {
        union uk_number *at = columns + c / lanes * lanes * UK_COLUMN_ARRAYS + c % lanes;
        at[UK_COLUMN_SCALE * lanes].f = DW_FAR_SCALE * (float)(c % 9 + 1);
    }
    uk->dw_u8(&d);
    check_depthwise(uk, p, &d, w, DW_FAR_SCALE);
    free(x);
    free(w);
    free(packed);
    free(y);
    free(columns);
}

static void level_depthwise(const struct hal_cpu_uk *uk)
{
    static const struct depthwise problems[] = {
        {64, 3, 9, 3, 3, 1, 1, 1, 1},  {96, 2, 7, 3, 3, 2, 2, 1, 1},  {33, 2, 5, 5, 5, 1, 1, 1, 1},
        {130, 2, 6, 5, 5, 2, 2, 1, 1}, {20, 2, 6, 4, 2, 1, 3, 1, 1},  {7, 3, 4, 3, 3, 1, 1, 2, 3},
        {1, 1, 1, 1, 1, 1, 1, 1, 1},   {16, 1, 11, 1, 3, 1, 1, 1, 1}, {40, 5, 1, 7, 1, 2, 1, 1, 1},
        {32, 7, 8, 3, 3, 1, 1, 1, 1},  {19, 6, 5, 3, 3, 2, 2, 1, 1},  {24, 7, 3, 5, 5, 1, 1, 1, 1},
        {48, 5, 2, 5, 5, 2, 2, 1, 1},  {17, 4, 9, 7, 7, 1, 1, 1, 1},  {9, 2, 10, 1, 31, 1, 1, 1, 1},
        {5, 2, 5, 3, 5, 2, 3, 2, 2},
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        run_depthwise(uk, &problems[i]);
    }
}

static void test_depthwise(void **state)
{
    (void)state;
    each_level(level_depthwise);
    soft_levels(level_depthwise);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static void assert_near(const char *what, const struct hal_cpu_uk *uk, double got, double want)
{
    if (!(fabs(got - want) <= 0.5001)) {
        fail_msg("%s: %s: %g, expected %g", uk->name, what, got, want);
    }
}

static double between(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}

static void run_vectors(const struct hal_cpu_uk *uk, size_t n)
{
    uint8_t *a = random_bytes(n, 1), *b = random_bytes(n, 2), *y = random_bytes(n + 1, 3);
    uint8_t table[256];
    y[n] = 55;
    uk->add_u8(&(struct uk_add_u8){y, a, b, n, 0.5f, -0.25f, 3.3f, 10, 100});
    for (size_t i = 0; i < n; i++) {
        assert_near("add", uk, y[i], between(a[i] * 0.5 - b[i] * 0.25 + 3.3, 10, 100));
    }
    uk->add_u8(&(struct uk_add_u8){y, a, NULL, n, 0.5f, 0, 3.3f, 0, 255});
    for (size_t i = 0; i < n; i++) {
        assert_near("rescale", uk, y[i], a[i] * 0.5 + 3.3);
    }
    uk->mul_u8(&(struct uk_mul_u8){y, a, b, n, 100, 7, 0.01f, 50, 0, 255});
    for (size_t i = 0; i < n; i++) {
        assert_near("mul", uk, y[i], between((a[i] - 100.0) * (b[i] - 7.0) * 0.01 + 50, 0, 255));
    }
    for (int i = 0; i < 256; i++) {
        table[i] = (uint8_t)(i * 7 + 3);
    }
    uk->lookup_u8(y, a, table, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(y[i], (uint8_t)(a[i] * 7 + 3));
    }
    assert_int_equal(y[n], 55);
    free(a);
    free(b);
    free(y);
}

static void run_rows(const struct hal_cpu_uk *uk, size_t n)
{
    uint8_t *x = random_bytes(5 * (n + 2), 1);
    int32_t *acc = calloc(n + 1, sizeof(*acc));
    uk->rows_add_u8(acc, x, 5, (ptrdiff_t)n + 2, n);
    for (size_t j = 0; j < n; j++) {
        int32_t want = 0;
        for (size_t i = 0; i < 5; i++) {
            want += x[i * (n + 2) + j];
        }
        assert_int_equal(acc[j], want);
    }
    assert_int_equal(acc[n], 0);
    free(x);
    free(acc);
}

static void run_window(const struct hal_cpu_uk *uk, size_t n)
{
    uint8_t *x = random_bytes(6 * (n + 2), 1), *y = random_bytes(n + 1, 2);
    y[n] = 55;
    uk->window_max_u8(y,
                      &(struct uk_window_u8){x, 3 * ((ptrdiff_t)n + 2), (ptrdiff_t)n + 2, 2, 3, n});
    for (size_t j = 0; j < n; j++) {
        uint8_t want = 0;
        for (size_t i = 0; i < 6; i++) {
            want = x[i * (n + 2) + j] > want ? x[i * (n + 2) + j] : want;
        }
        assert_int_equal(y[j], want);
    }
    assert_int_equal(y[n], 55);
    free(x);
    free(y);
}

static void level_vectors(const struct hal_cpu_uk *uk)
{
    for (size_t n = 0; n < 150; n++) {
        run_vectors(uk, n);
        run_rows(uk, n);
        run_window(uk, n);
    }
}

static void test_vectors(void **state)
{
    (void)state;
    each_level(level_vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),   cmocka_unit_test(test_4bit),
        cmocka_unit_test(test_large),   cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
