/* SPDX-License-Identifier: MIT */
/*
 * Products of bfloat16 numbers, on each level that has them, against plain loops in double
 * precision over the same rounded numbers: the edges of tiles and panels, blocks of k, gathered
 * runs, bias, residual, clamp, NaN, and that a row's result is the same bits however it is asked
 * for.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "tests/hal/uk_gemm_support.h"

static void each_bf16_level(uk_test_f *test)
{
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        const struct hal_cpu_uk *uk = hal_cpu_isa_kernels((enum hal_cpu_isa)i);
        if (uk && uk->gemm_bf16 && has_level((enum hal_cpu_isa)i)) {
            test(uk);
        }
    }
    amx_soft_level(test);
}

static void setup(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o)
{
    set_up_product(uk, p, true, o);
}

static void run_problem(const struct hal_cpu_uk *uk, const struct problem *p)
{
    check_product(uk, p, true);
}

/* Every m to past two tiles, every n to past two panels. */
static void level_edges(const struct hal_cpu_uk *uk)
{
    static const uint32_t runs[] = {2, 4, 8, 34, 62};
    for (uint32_t m = 1; m <= 2 * uk->bf16_mr + 1; m++) {
        for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
            run_problem(uk, &(struct problem){1, m, n, runs[(m + n) % 5], 1, SEGMENTS_MAX,
                                              (m & 1) != 0, (n & 1) != 0, n % 3 ? -INFINITY : -0.5f,
                                              m % 3 ? INFINITY : 0.5f});
        }
    }
}

static void test_edges(void **state)
{
    (void)state;
    each_bf16_level(level_edges);
}

/* Deep and wide enough for blocks of k and of panels; runs of which one is in the padding. */
static void level_blocks(const struct hal_cpu_uk *uk)
{
    static const struct problem problems[] = {
        {1, 40, 300, 3002, 1, SEGMENTS_MAX, true, true, 0.0f, INFINITY},
        {1, 5, 200, 2046, 1, SEGMENTS_MAX, false, false, -INFINITY, INFINITY},
        {1, 1, 700, 1200, 1, SEGMENTS_MAX, true, false, -INFINITY, INFINITY},
        {7, 9, 129, 64, 9, 4, true, false, -INFINITY, INFINITY},
        {3, 7, 16, 40, 3, 0, true, true, 0.0f, 6.0f},
        {2, 15, 97, 600, 9, 8, true, true, -INFINITY, INFINITY},
        {1, 30, 64, 36, 9, SEGMENTS_MAX, false, true, -1.0f, 1.0f},
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        run_problem(uk, &problems[i]);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    each_bf16_level(level_blocks);
}

/* Runs of every length to past two steps, all with a short end of their own or merged. */
static void level_runs(const struct hal_cpu_uk *uk)
{
    for (uint32_t run = 2; run <= 70; run += 2) {
        for (uint32_t segments = 1; segments <= 3; segments++) {
            run_problem(uk,
                        &(struct problem){3, 7 + run / 8, 50, run, segments, 3 - run / 2 % segments,
                                          true, false, -INFINITY, INFINITY});
        }
    }
}

static void test_runs(void **state)
{
    (void)state;
    each_bf16_level(level_runs);
}

static void level_same_bits(const struct hal_cpu_uk *uk)
{
    check_same_bits(
        uk, &(struct problem){4, 25, 9 * uk->f32_nr + 5, 342, 9, 7, true, true, -9.0f, 9.0f}, true);
}

static void test_same_bits(void **state)
{
    (void)state;
    each_bf16_level(level_same_bits);
}

static void level_in_place_residual(const struct hal_cpu_uk *uk)
{
    check_residual_in_place(uk, true);
}

static void test_in_place_residual(void **state)
{
    (void)state;
    each_bf16_level(level_in_place_residual);
}

#ifdef PTED_CPU_X86
/* The processor's tiles and those of amx_soft.c, which tests use where it has none, are the same.
 */
static void test_soft_tiles(void **state)
{
    static const uint32_t runs[] = {2, 30, 32, 64, 342, 2046};
    (void)state;
    for (uint32_t i = 0; i < 6 && has_level(HAL_CPU_AMX_BF16); i++) {
        struct problem p = {2, 37, 70, runs[i], 3, i % 3, i % 2 == 0, true, -2.0f, 2.0f};
        struct operands o;
        setup(&amx_soft, &p, &o);
        amx_soft.gemm_bf16(&o.g);
        float *soft = random_floats((size_t)2 * 37 * 73, 0);
        memcpy(soft, o.c, (size_t)2 * 37 * 73 * sizeof(float));
        hal_cpu_isa_kernels(HAL_CPU_AMX_BF16)->gemm_bf16(&o.g);
        for (size_t at = 0; at < (size_t)2 * 37 * 73; at++) {
            assert_true(fabsf(o.c[at] - soft[at]) <= 1e-7f * (float)(3 * runs[i] + 16));
        }
        free(soft);
        teardown(&o);
    }
}
#endif

/* The upper halves of floats, rounded. */
static uint16_t *halves_of(const struct hal_cpu_uk *uk, const float *x, size_t n)
{
    uint16_t *halves = (uint16_t *)(void *)random_floats(n / 2 + 1, 0);
    uk->f32_to_bf16(halves, x, n);
    return halves;
}

/* A that is bfloat16 gives the same bits as floats that round to it; C that is has rounded ones. */
static void check_types(const struct hal_cpu_uk *uk, const struct problem *p)
{
    struct operands o;
    setup(uk, p, &o);
    size_t rows = (size_t)p->lines * p->m, c_floats = rows * (p->n + 3) + 3;
    uk->gemm_bf16(&o.g);
    uint16_t *a = halves_of(uk, o.a, rows * row_floats(p));
    uint16_t *want = halves_of(uk, o.c, c_floats), *got = halves_of(uk, o.c, c_floats);
    float *floats = random_floats(c_floats, 0);
    memcpy(floats, o.c, c_floats * sizeof(float));
    for (size_t i = 0; i < rows * (p->n + 3); i++) {
        if (i % (p->n + 3) < p->n) {
            o.c[i] = 0;
            got[i] = 0;
        }
    }
    o.g.a = (const float *)(const void *)a;
    o.g.a_is_bf16 = true;
    uk->gemm_bf16(&o.g);
    assert_memory_equal(o.c, floats, c_floats * sizeof(float));
    o.g.c = (float *)(void *)got;
    o.g.c_is_bf16 = true;
    uk->gemm_bf16(&o.g);
    assert_memory_equal(got, want, c_floats * sizeof(*got));
    free(a);
    free(want);
    free(got);
    free(floats);
    teardown(&o);
}

static void level_types(const struct hal_cpu_uk *uk)
{
    for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
        check_types(uk, &(struct problem){2, n % 37 + 1, n, 2 + n / 2 * 2, 1 + n % 3, SEGMENTS_MAX,
                                          n & 1, n & 2, -0.5f, INFINITY});
    }
    check_types(uk, &(struct problem){1, 40, 70, 3002, 1, SEGMENTS_MAX, true, true, 0.0f, 1.0f});
    /* one run: rows are read where they lie, and tiles share them unevenly */
    for (uint32_t m = 15; m <= 2 * uk->bf16_mr + 3; m++) {
        check_types(uk, &(struct problem){1 + m % 2, m, 33, 34 + m % 3 * 30, 1, SEGMENTS_MAX, true,
                                          false, -INFINITY, INFINITY});
    }
    /* rows a page apart */
    check_types(uk, &(struct problem){1, 20, 70, 2046, 2, 0, true, false, -INFINITY, INFINITY});
}

/* A residual that is bfloat16 gives the same bits as floats of its values, also in place of C. */
static void check_residual(const struct hal_cpu_uk *uk, const struct problem *p, bool is_active)
{
    struct operands o;
    setup(uk, p, &o);
    size_t rows = (size_t)p->lines * p->m, width = p->n + 3, c_floats = rows * width + 3;
    o.g.activation = is_active ? uk->gelu_short_f32 : NULL;
    uint16_t *residual = halves_of(uk, o.residual, c_floats);
    for (size_t i = 0; i < c_floats; i++) {
        o.residual[i] = (float)round_to_bf16(o.residual[i]);
    }
    uk->gemm_bf16(&o.g);
    float *floats = random_floats(c_floats, 0);
    memcpy(floats, o.c, c_floats * sizeof(float));
    uint16_t *want = halves_of(uk, o.c, c_floats);
    for (size_t i = 0; i < rows; i++) {
        memset(o.c + i * width, 0, p->n * sizeof(float));
        memcpy(want + i * width + p->n, residual + i * width + p->n, 3 * sizeof(*want));
    }
    memcpy(want + rows * width, residual + rows * width, 3 * sizeof(*want));
    o.g.residual = (const float *)(const void *)residual;
    o.g.residual_is_bf16 = true;
    uk->gemm_bf16(&o.g);
    assert_memory_equal(o.c, floats, c_floats * sizeof(float));
    o.g.c = (float *)(void *)residual;
    o.g.c_is_bf16 = true;
    uk->gemm_bf16(&o.g);
    assert_memory_equal(residual, want, c_floats * sizeof(*want));
    free(residual);
    free(floats);
    free(want);
    teardown(&o);
}

static void level_residual(const struct hal_cpu_uk *uk)
{
    for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
        check_residual(uk,
                       &(struct problem){1 + n % 3, n % 37 + 1, n, 34, 1 + n % 2, SEGMENTS_MAX,
                                         n & 1, true, n & 2 ? -0.5f : -INFINITY, INFINITY},
                       n % 5 == 0);
    }
    check_residual(uk, &(struct problem){1, 40, 70, 3002, 1, SEGMENTS_MAX, true, true, 0.0f, 9.0f},
                   false);
}

static void test_residual(void **state)
{
    (void)state;
    each_bf16_level(level_residual);
}

/* Fills the runs of |p| that |skips| leaves out. */
static void fill_skipped(const struct problem *p, float *a, const uint8_t *skips, float with)
{
    for (size_t row = 0; row < (size_t)p->lines * p->m; row++) {
        bool is_first = row % p->m == 0, is_last = row % p->m == p->m - 1;
        for (size_t s = 0; s < p->segments; s++) {
            if ((is_first && skips[s] == UK_SKIP_FIRST) || (is_last && skips[s] == UK_SKIP_LAST)) {
                for (size_t k = 0; k < p->run; k++) {
                    a[row * row_floats(p) + s * (p->run + 1) + k] = with;
                }
            }
        }
    }
}

/* A run that is left out counts as zeros, and what lies there is not looked at. */
static void check_skips(const struct hal_cpu_uk *uk, const struct problem *p, const uint8_t *skips)
{
    struct operands o;
    setup(uk, p, &o);
    size_t rows = (size_t)p->lines * p->m, c_bytes = (rows * (p->n + 3) + 3) * sizeof(float);
    fill_skipped(p, o.a, skips, 0);
    uk->gemm_bf16(&o.g);
    check(p, &o, uk->name);
    float *want = random_floats(c_bytes / sizeof(float), 0);
    memcpy(want, o.c, c_bytes);
    fill_skipped(p, o.a, skips, NAN);
    uint16_t *halves = halves_of(uk, o.a, rows * row_floats(p));
    o.g.skips = skips;
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        o.g.a = is_bf16 ? (const float *)(const void *)halves : o.a;
        o.g.a_is_bf16 = is_bf16;
        for (size_t i = 0; i < rows; i++) {
            memset(o.c + i * (p->n + 3), 0, p->n * sizeof(float));
        }
        uk->gemm_bf16(&o.g);
        assert_memory_equal(o.c, want, c_bytes);
    }
    free(want);
    free(halves);
    teardown(&o);
}

static void level_skips(const struct hal_cpu_uk *uk)
{
    static const uint8_t skips[][4] = {
        {UK_SKIP_FIRST, 0, UK_SKIP_LAST}, {0, UK_SKIP_LAST}, {UK_SKIP_FIRST, UK_SKIP_FIRST, 0, 0}};
    for (uint32_t m = 2; uk->bf16_skips && m <= 2 * uk->bf16_mr + 1; m++) {
        check_skips(uk,
                    &(struct problem){1 + m % 3, m, 10 + m, 32, m % 3 == 1 ? 2 : 3 + m % 3 / 2,
                                      SEGMENTS_MAX, true, m % 2, -INFINITY, INFINITY},
                    skips[m % 3]);
    }
    /* blocks of k begin between runs */
    for (size_t i = 0; uk->bf16_skips && i < 2; i++) {
        check_skips(uk,
                    &(struct problem){3, 7, 40, 600, 3 - (uint32_t)i, SEGMENTS_MAX, true, false,
                                      -INFINITY, INFINITY},
                    skips[i]);
    }
}

static void test_skips(void **state)
{
    (void)state;
    each_bf16_level(level_skips);
}

static void test_types(void **state)
{
    (void)state;
    each_bf16_level(level_types);
}

/* Rows of an odd length are those with a zero behind them. */
static void level_odd(const struct hal_cpu_uk *uk)
{
    for (uint32_t run = 2; run <= 1300; run += run < 80 ? 2 : 406) {
        struct problem p = {2, 9, 40, run, 1, SEGMENTS_MAX, true, true, -INFINITY, INFINITY};
        struct operands o;
        setup(uk, &p, &o);
        size_t c_bytes = (size_t)2 * 9 * 43 * sizeof(float);
        for (size_t row = 0; row < 18; row++) {
            o.a[row * row_floats(&p) + run - 1] = 0;
        }
        memset(o.b + (size_t)(run - 1) * p.n, 0, p.n * sizeof(float));
        uk->pack_bf16(&(struct uk_pack_f32){.src = o.b,
                                            .column = 1,
                                            .inner_stride = p.n,
                                            .n = p.n,
                                            .outer_count = 1,
                                            .inner_count = run,
                                            .packed = o.packed},
                      0, uk_panels_f32(uk, p.n));
        uk->gemm_bf16(&o.g);
        float *want = random_floats(c_bytes / sizeof(float), 0);
        memcpy(want, o.c, c_bytes);
        for (size_t row = 0; row < 18; row++) {
            o.a[row * row_floats(&p) + run - 1] = NAN; /* not read */
        }
        for (size_t j = 0; j < p.n; j++) {
            o.b[(size_t)(run - 1) * p.n + j] = NAN;
        }
        uk->pack_bf16(&(struct uk_pack_f32){.src = o.b,
                                            .column = 1,
                                            .inner_stride = p.n,
                                            .n = p.n,
                                            .outer_count = 1,
                                            .inner_count = run,
                                            .is_odd = true,
                                            .packed = o.packed},
                      0, uk_panels_f32(uk, p.n));
        o.g.is_odd = true;
        uk->gemm_bf16(&o.g);
        assert_memory_equal(o.c, want, c_bytes);
        free(want);
        teardown(&o);
    }
}

static void test_odd(void **state)
{
    (void)state;
    each_bf16_level(level_odd);
}

static void level_nan(const struct hal_cpu_uk *uk)
{
    check_nan(uk, true);
}

static void test_nan(void **state)
{
    (void)state;
    each_bf16_level(level_nan);
}

/* Rows whose numbers lie side by side, if there are so many. */
#ifdef __aarch64__
#define NEIGHBOURS 4
#else
#define NEIGHBOURS 2
#endif

/* Some rows, column by column; a range of panels is that range. */
static void level_pack(const struct hal_cpu_uk *uk)
{
    uint32_t k = 38, n = 3 * uk->f32_nr + 1, nr = uk->f32_nr;
    size_t count = uk_packed_f32_floats(uk, k, n);
    float *nk = random_floats((size_t)n * k, 11);
    uint16_t *packed = (uint16_t *)(void *)random_floats(count / 2, 12);
    struct uk_pack_f32 pack = {.src = nk,
                               .column = k,
                               .inner_stride = 1,
                               .n = n,
                               .outer_count = 1,
                               .inner_count = k,
                               .packed = packed};
    uk->pack_bf16(&pack, 0, 4);
    for (size_t i = 0; i < count; i++) {
        size_t panel = i / (k * nr), first = i / nr % k / NEIGHBOURS * NEIGHBOURS;
        size_t width = k - first < NEIGHBOURS ? 2 : NEIGHBOURS;
        size_t at = i - panel * k * nr - first * nr;
        size_t column = panel * nr + at / width, row = first + at % width;
        uint32_t bits = (uint32_t)packed[i] << 16;
        float got;
        memcpy(&got, &bits, sizeof(got));
        assert_true((double)got == (column < n ? round_to_bf16(nk[column * k + row]) : 0.0));
    }
    memset(packed, 0xab, count * sizeof(*packed));
    uk->pack_bf16(&pack, 1, 3);
    for (size_t i = 0; i < count; i++) {
        size_t panel = i / (k * nr);
        assert_true(packed[i] == 0xabab ? panel < 1 || panel >= 3 : panel >= 1 && panel < 3);
    }
    free(nk);
    free(packed);
}

static void test_pack(void **state)
{
    (void)state;
    each_bf16_level(level_pack);
}

/* As in test_uk_gemm.c, also where C is bfloat16. */
static void level_activation(const struct hal_cpu_uk *uk)
{
    for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
        struct problem p = {1 + n % 2,
                            1 + n % (2 * uk->bf16_mr),
                            n,
                            n % 7 ? 10 : 1500,
                            1,
                            SEGMENTS_MAX,
                            n % 3 != 0,
                            n % 5 == 0,
                            n % 4 ? -9.0f : -0.5f,
                            2.0f};
        struct operands o;
        size_t floats = (size_t)p.lines * p.m * (p.n + 3) + 3;
        setup(uk, &p, &o);
        uk->gemm_bf16(&o.g);
        float *want = random_floats(floats, 0);
        memcpy(want, o.c, floats * sizeof(float));
        for (size_t row = 0; row < (size_t)p.lines * p.m; row++) {
            uk->gelu_short_f32(want + row * (p.n + 3), want + row * (p.n + 3), p.n);
        }
        o.g.activation = uk->gelu_short_f32;
        uk->gemm_bf16(&o.g);
        assert_memory_equal(o.c, want, floats * sizeof(float));
        uint16_t *rounded = halves_of(uk, want, floats), *got = halves_of(uk, want, floats);
        for (size_t i = 0; i < floats - 3; i++) {
            got[i] = i % (p.n + 3) < p.n ? 0 : got[i];
        }
        o.g.c = (float *)(void *)got;
        o.g.c_is_bf16 = true;
        uk->gemm_bf16(&o.g);
        assert_memory_equal(got, rounded, floats * sizeof(*got));
        free(want);
        free(rounded);
        free(got);
        teardown(&o);
    }
}

static void test_activation(void **state)
{
    (void)state;
    each_bf16_level(level_activation);
}

/* Rows of every length to past two vectors; planes of every number. */
static void level_rounding(const struct hal_cpu_uk *uk)
{
    enum { ROWS = 3, MOST = 2 * 16 + 3, GAP = 2 };
    float *x = random_floats((size_t)4 * MOST, 7);
    for (size_t n = 1; n <= MOST && uk->rows_to_bf16; n++) {
        uint16_t got[ROWS * (MOST + GAP)], want[ROWS * MOST];
        memset(got, 0xff, sizeof(got));
        uk->rows_to_bf16(got, (ptrdiff_t)n + GAP, x, ROWS, n);
        uk->f32_to_bf16(want, x, ROWS * n);
        for (size_t i = 0; i < ROWS * (n + GAP); i++) {
            size_t row = i / (n + GAP), at = i % (n + GAP);
            assert_int_equal(got[i], at < n ? want[row * n + at] : 0xffff);
        }
    }
    for (uint32_t planes = 1; planes <= 4 && uk->planes_to_bf16; planes++) {
        for (size_t n = 1; n <= MOST; n++) {
            uint16_t got[4 * MOST + 1], want[4 * MOST];
            memset(got, 0xff, sizeof(got));
            uk->planes_to_bf16(got, x, MOST, planes, n);
            uk->f32_to_bf16(want, x, 4 * MOST);
            for (size_t i = 0; i < 4 * n; i++) {
                assert_int_equal(got[i], i % 4 < planes ? want[i % 4 * MOST + i / 4] : 0);
            }
            assert_int_equal(got[4 * n], 0xffff);
        }
    }
    free(x);
}

static void test_rounding(void **state)
{
    (void)state;
    each_bf16_level(level_rounding);
}

/* A plain maximum: NaN wins, and 0 is above -0. */
static uint16_t greater(uint16_t a, uint16_t b)
{
    if ((a & 0x7fff) > 0x7f80 || (b & 0x7fff) > 0x7f80) {
        return 0x7fff;
    }
    int x = a & 0x8000 ? ~(a & 0x7fff) : a, y = b & 0x8000 ? ~(b & 0x7fff) : b;
    return x > y ? a : b;
}

/* Windows of all sorts of numbers, every count of channels to past two vectors. */
static void level_windows(const struct hal_cpu_uk *uk)
{
    enum { LINES = 3, ROWS = 2, MOST = 67 };
    static const uint16_t special[] = {0x7f80, 0xff80, 0x8000, 0, 1, 0x8001, 0xffc0, 0x7f81};
    uint16_t x[LINES * ROWS * MOST], y[MOST + 1];
    for (size_t i = 0; i < LINES * ROWS * MOST; i++) {
        uint32_t random = (uint32_t)i * 2654435761U >> 13;
        x[i] = random % 5 == 0 ? special[random / 5 % 8] : (uint16_t)(random % 0x8f00 + 0x4000);
    }
    for (size_t n = 1; n <= MOST && uk->window_max_bf16; n++) {
        for (size_t lines = 0; lines <= LINES; lines += LINES) {
            const struct uk_window_bf16 window = {x, ROWS * MOST, MOST, lines, ROWS, n};
            y[n] = 0x1234;
            uk->window_max_bf16(y, &window);
            assert_int_equal(y[n], 0x1234);
            for (size_t j = 0; j < n; j++) {
                uint16_t want = 0xff80;
                for (size_t i = 0; i < lines * ROWS; i++) {
                    want = greater(want, x[i * MOST + j]);
                }
                assert_int_equal(y[j], want);
            }
        }
    }
}

static void test_windows(void **state)
{
    (void)state;
    each_bf16_level(level_windows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),      cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_in_place_residual),
        cmocka_unit_test(test_runs),       cmocka_unit_test(test_nan),
        cmocka_unit_test(test_pack),       cmocka_unit_test(test_types),
        cmocka_unit_test(test_odd),        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_skips),      cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_windows),    cmocka_unit_test(test_residual),
#ifdef PTED_CPU_X86
        cmocka_unit_test(test_soft_tiles),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
