/* SPDX-License-Identifier: MIT */
/*
 * Winograd's convolution of every level against plain loops in double precision.
 *
 * The bound for an element: each sum of products in the algorithm is rounded once for each of its
 * terms, and no term is larger than the algorithm with the absolute values of all matrices and
 * numbers makes it. A term passes at most as many roundings as there are channels, and about 20 in
 * the transformations. That bound holds for any numbers but is far away for most. Random numbers
 * must also be within 1e-5 of the largest result, a tenth of what the precision "fast" promises.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

#define GUARD 12345.0f
#define TRANSFORM_ROUNDINGS 20
#define UNIT 0x1p-24 /* largest relative error of a rounding */

#define R2 1.41421356237309504880
#define R1_2 0.70710678118654752440

/* The matrices as interpolation at 0, +-sqrt(1/2), +-sqrt(2) and infinity gives them. */
static const double at_4[4][6] = {{1, 1, 1, 1, 1, 0},
                                  {0, R1_2, -R1_2, R2, -R2, 0},
                                  {0, 0.5, 0.5, 2, 2, 0},
                                  {0, R1_2 / 2, -R1_2 / 2, 2 * R2, -2 * R2, 1}};
static const double g_4[6][3] = {{1, 0, 0},
                                 {-2 / 3.0, -2 / 3.0 * R1_2, -1 / 3.0},
                                 {-2 / 3.0, 2 / 3.0 * R1_2, -1 / 3.0},
                                 {1 / 6.0, R2 / 6, 1 / 3.0},
                                 {1 / 6.0, -R2 / 6, 1 / 3.0},
                                 {0, 0, 1}};
static const double bt_4[6][6] = {{1, 0, -2.5, 0, 1, 0},      {0, -R2, -2, R1_2, 1, 0},
                                  {0, R2, -2, -R1_2, 1, 0},   {0, -R1_2, -0.5, R2, 1, 0},
                                  {0, R1_2, -0.5, -R2, 1, 0}, {0, 1, 0, -2.5, 0, 1}};
static const double at_2[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const double g_2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
static const double bt_2[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};

static double at(uint32_t side, uint32_t i, uint32_t j)
{
    return side == 2 ? at_2[i][j] : at_4[i][j];
}

static double g(uint32_t side, uint32_t i, uint32_t j)
{
    return side == 2 ? g_2[i][j] : g_4[i][j];
}

static double bt(uint32_t side, uint32_t i, uint32_t j)
{
    return side == 2 ? bt_2[i][j] : bt_4[i][j];
}

struct shape {
    uint32_t images, height, width, channels, n;
    uint32_t top, left, bottom, right; /* padding */
};

/* A convolution with room around pixels: elements of x are two floats apart, elements of y three.
 */
struct problem {
    struct shape s;
    struct uk_winograd_f32 w;
    float *x, *kernels, *packed, *bias, *residual, *y, *before;
    /* What terms_of_kernels() and terms_of_patch() find: of each output channel and input channel,
     * and of each input channel of one tile, the largest terms of each element of a patch. */
    double *kernel_terms, *patch_terms;
    size_t y_floats;
    uint64_t tiles;
    double largest, error; /* of the results before the clamp, and from them */
};

static double pixel(const struct problem *p, uint32_t image, int64_t y, int64_t x, uint32_t c)
{
    if (y < 0 || x < 0 || y >= p->s.height || x >= p->s.width) {
        return 0;
    }
    return (double)p->x[image * p->w.x_image + y * p->w.x_line + x * p->w.x_pixel + c];
}

static double kernel(const struct problem *p, uint32_t n, uint32_t c, uint32_t y, uint32_t x)
{
    return (double)p->kernels[((n * p->s.channels + c) * 3 + y) * 3 + x];
}

static double plain(const struct problem *p, uint32_t image, uint32_t y, uint32_t x, uint32_t n)
{
    double sum = 0;
    for (uint32_t c = 0; c < p->s.channels; c++) {
        for (uint32_t t = 0; t < 9; t++) {
            sum += kernel(p, n, c, t / 3, t % 3) * pixel(p, image, (int64_t)y + t / 3 - p->s.top,
                                                         (int64_t)x + t % 3 - p->s.left, c);
        }
    }
    return sum;
}

/* |B|^T |d| |B| of channel |c| for the tile at |y|, |x|, one side after the other. */
static void patch_bounds(const struct problem *p, uint32_t image, int64_t y, int64_t x, uint32_t c,
                         double *out)
{
    uint32_t side = p->w.side, patch = side + 2;
    double half[36] = {0};
    for (uint32_t i = 0; i < patch * patch; i++) {
        double d = fabs(pixel(p, image, y + i / patch, x + i % patch, c));
        for (uint32_t row = 0; row < patch; row++) {
            half[row * patch + i % patch] += fabs(bt(side, row, i / patch)) * d;
        }
    }
    for (uint32_t e = 0; e < patch * patch; e++) {
        out[e] = 0;
        for (uint32_t i = 0; i < patch; i++) {
            out[e] += half[e / patch * patch + i] * fabs(bt(side, e % patch, i));
        }
    }
}

static void terms_of_patch(struct problem *p, uint32_t image, uint32_t y, uint32_t x)
{
    uint32_t elements = (p->w.side + 2) * (p->w.side + 2);
    for (uint32_t c = 0; c < p->s.channels; c++) {
        patch_bounds(p, image, (int64_t)y - p->s.top, (int64_t)x - p->s.left, c,
                     p->patch_terms + (size_t)c * elements);
    }
}

static double kernel_bound(const struct problem *p, uint32_t n, uint32_t c, uint32_t element)
{
    uint32_t side = p->w.side, patch = side + 2;
    double sum = 0;
    for (uint32_t t = 0; t < 9; t++) {
        sum += fabs(g(side, element / patch, t / 3) * kernel(p, n, c, t / 3, t % 3) *
                    g(side, element % patch, t % 3));
    }
    return sum;
}

static void terms_of_kernels(struct problem *p)
{
    uint32_t elements = (p->w.side + 2) * (p->w.side + 2), channels = p->s.channels;
    for (uint32_t i = 0; i < p->s.n * channels * elements; i++) {
        uint32_t kernel = i / elements;
        p->kernel_terms[i] = kernel_bound(p, kernel / channels, kernel % channels, i % elements);
    }
}

/* The largest possible terms of the outputs of the tile that terms_of_patch() read. */
static void term_bounds(const struct problem *p, uint32_t n, double bounds[16])
{
    uint32_t side = p->w.side, patch = side + 2, elements = patch * patch;
    const double *kernels = p->kernel_terms + (size_t)n * p->s.channels * elements;
    memset(bounds, 0, 16 * sizeof(bounds[0]));
    for (uint32_t e = 0; e < elements; e++) {
        double sum = 0;
        for (size_t c = 0; c < p->s.channels; c++) {
            sum += kernels[c * elements + e] * p->patch_terms[c * elements + e];
        }
        for (uint32_t i = 0; i < side * side; i++) {
            bounds[i] += fabs(at(side, i / side, e / patch) * sum * at(side, i % side, e % patch));
        }
    }
}

static void check_element(struct problem *p, const char *level, uint32_t image, uint32_t y,
                          uint32_t x, uint32_t n, double bound)
{
    ptrdiff_t place = image * p->w.y_image + y * p->w.y_line + x * p->w.y_pixel + n;
    double want = plain(p, image, y, x, n) + (p->bias ? (double)p->bias[n] : 0) +
                  (p->residual ? (double)p->residual[place] : 0);
    p->largest = fmax(p->largest, fabs(want));
    want = fmin(fmax(want, (double)p->w.min), (double)p->w.max);
    double error = fabs((double)p->y[place] - want);
    p->error = fmax(p->error, error);
    if (!(error <= UNIT * ((p->s.channels + TRANSFORM_ROUNDINGS) * bound + 4))) {
        fail_msg("%s: %ux%ux%u -> %u, side %u, image %u at %u, %u, channel %u: %.9g, expected %.9g",
                 level, p->s.height, p->s.width, p->s.channels, p->s.n, p->w.side, image, y, x, n,
                 (double)p->y[place], want);
    }
}

/* All outputs of the tile whose first one is at |y|, |x|. */
static void check_tile(struct problem *p, const char *level, uint32_t image, uint32_t y, uint32_t x)
{
    uint32_t side = p->w.side;
    terms_of_patch(p, image, y, x);
    for (uint32_t n = 0; n < p->s.n; n++) {
        double bounds[16];
        term_bounds(p, n, bounds);
        for (uint32_t i = 0; i < side * side; i++) {
            if (y + i / side < p->w.out_height && x + i % side < p->w.out_width) {
                check_element(p, level, image, y + i / side, x + i % side, n, bounds[i]);
            }
        }
    }
}

static void check_results(struct problem *p, const char *level)
{
    terms_of_kernels(p);
    for (uint32_t image = 0; image < p->s.images; image++) {
        for (uint32_t y = 0; y < p->w.out_height; y += p->w.side) {
            for (uint32_t x = 0; x < p->w.out_width; x += p->w.side) {
                check_tile(p, level, image, y, x);
            }
        }
    }
    if (!(p->error <= 1e-5 * p->largest)) {
        fail_msg("%s: error %g, results up to %g", level, p->error, p->largest);
    }
    for (size_t i = 0; i < p->y_floats; i++) {
        assert_true(i % (size_t)p->w.y_pixel < p->s.n || p->y[i] == GUARD);
    }
}

static void describe(struct problem *p, const struct shape *s, uint32_t side)
{
    uint32_t out_height = s->height + s->top + s->bottom - 2;
    uint32_t out_width = s->width + s->left + s->right - 2;
    p->s = *s;
    p->w = (struct uk_winograd_f32){.side = side,
                                    .x_pixel = s->channels + 2,
                                    .height = s->height,
                                    .width = s->width,
                                    .channels = s->channels,
                                    .pad_top = s->top,
                                    .pad_left = s->left,
                                    .y_pixel = s->n + 3,
                                    .out_height = out_height,
                                    .out_width = out_width,
                                    .n = s->n,
                                    .min = -INFINITY,
                                    .max = INFINITY};
    p->w.x_line = s->width * p->w.x_pixel;
    p->w.x_image = s->height * p->w.x_line;
    p->w.y_line = out_width * p->w.y_pixel;
    p->w.y_image = out_height * p->w.y_line;
    p->y_floats = (size_t)(s->images * p->w.y_image);
    p->tiles =
        (uint64_t)s->images * ((out_height + side - 1) / side) * ((out_width + side - 1) / side);
}

static void make_numbers(struct problem *p, const struct hal_cpu_uk *uk, bool has_epilogue)
{
    const struct shape *s = &p->s;
    size_t panels = (s->n + uk->f32_nr - 1) / uk->f32_nr;
    p->w.u_element = panels * s->channels * uk->f32_nr;
    p->x = random_floats(s->images * (size_t)p->w.x_image, 1);
    p->kernels = random_floats((size_t)s->n * s->channels * 9, 2);
    p->packed = random_floats(uk_winograd_elements(p->w.side) * p->w.u_element, 3);
    p->y = random_floats(p->y_floats, 4);
    p->before = random_floats(p->y_floats, 5);
    size_t elements = (size_t)(p->w.side + 2) * (p->w.side + 2);
    p->kernel_terms = calloc(s->n * s->channels * elements, sizeof(double));
    p->patch_terms = calloc(s->channels * elements, sizeof(double));
    assert_true(p->kernel_terms && p->patch_terms);
    p->w.scratch = random_floats(uk_winograd_scratch(p->w.side, s->channels, p->tiles) / 4, 6);
    if (has_epilogue) {
        p->w.bias = p->bias = random_floats(s->n, 7);
        p->w.residual = p->residual = random_floats(p->y_floats, 8);
        p->w.min = -1;
        p->w.max = 2;
    }
    for (size_t i = 0; i < p->y_floats; i++) {
        p->y[i] = GUARD;
    }
    p->w.x = p->x;
    p->w.y = p->y;
    p->w.u = p->packed;
    struct uk_winograd_pack pack = {p->w.side,   p->kernels, s->n,
                                    s->channels, p->packed,  p->w.u_element};
    uk->winograd_pack_f32(&pack, 0, (uint32_t)(panels / 2));
    uk->winograd_pack_f32(&pack, (uint32_t)(panels / 2), (uint32_t)panels);
}

static void free_numbers(struct problem *p)
{
    float *const all[] = {p->x,        p->kernels, p->packed, p->bias,
                          p->residual, p->y,       p->before, p->w.scratch};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        free(all[i]);
    }
    free(p->kernel_terms);
    free(p->patch_terms);
}

/* Any division into calls gives the very bytes of one call: in tiles, and in columns. */
static void check_division(const struct hal_cpu_uk *uk, struct problem *p, uint64_t tiles)
{
    memcpy(p->before, p->y, p->y_floats * sizeof(float));
    for (size_t i = 0; i < p->y_floats; i++) {
        p->y[i] = GUARD;
    }
    for (uint64_t begin = 0; begin < p->tiles; begin += tiles) {
        for (uint32_t column = 0; column < p->s.n; column += uk->f32_nr) {
            struct uk_winograd_f32 part = p->w;
            part.begin = begin;
            part.end = begin + tiles < p->tiles ? begin + tiles : p->tiles;
            part.n = p->s.n - column < uk->f32_nr ? p->s.n - column : uk->f32_nr;
            part.u += column * p->s.channels;
            part.y += column;
            part.bias = part.bias ? part.bias + column : NULL;
            part.residual = part.residual ? part.residual + column : NULL;
            uk->winograd_f32(&part);
        }
    }
    assert_memory_equal(p->y, p->before, p->y_floats * sizeof(float));
}

/* The bytes of the function of all outputs, and of no number between pixels. */
static void check_activation(const struct hal_cpu_uk *uk, struct problem *p)
{
    for (size_t i = 0; i < p->y_floats; i += (size_t)p->w.y_pixel) {
        uk->unary_f32[UK_SILU](p->y + i, p->y + i, p->s.n);
    }
    memcpy(p->before, p->y, p->y_floats * sizeof(float));
    p->w.activation = uk->unary_f32[UK_SILU];
    uk->winograd_f32(&p->w);
    assert_memory_equal(p->y, p->before, p->y_floats * sizeof(float));
}

static void check(const struct hal_cpu_uk *uk, const struct shape *s, uint32_t side,
                  bool has_epilogue)
{
    struct problem p = {0};
    describe(&p, s, side);
    make_numbers(&p, uk, has_epilogue);
    p.w.end = p.tiles;
    uk->winograd_f32(&p.w);
    check_results(&p, uk->name);
    check_division(uk, &p, 1);
    check_activation(uk, &p);
    check_division(uk, &p, 5);
    free_numbers(&p);
}

static const struct shape shapes[] = {
    {1, 8, 8, 16, 16, 1, 1, 1, 1},  /* whole tiles */
    {1, 13, 9, 20, 33, 1, 1, 1, 1}, /* outputs beyond the borders */
    {3, 7, 7, 17, 8, 1, 1, 1, 1},   /* several images */
    {2, 5, 6, 3, 5, 2, 2, 2, 2},    /* patches with more padding than image */
    {1, 6, 11, 8, 70, 0, 0, 0, 0},  /* none; two rounds of columns */
    {1, 9, 10, 9, 7, 0, 2, 1, 0},   /* each border its own */
    {1, 1, 1, 16, 4, 1, 1, 1, 1},   /* one pixel */
    {2, 1, 19, 5, 16, 1, 1, 1, 1},  /* one line */
    {1, 3, 3, 1, 1, 0, 0, 0, 0},    /* one output of one channel */
    {1, 10, 5, 47, 65, 1, 0, 1, 2}, {1, 4, 4, 130, 40, 1, 1, 1, 1},
};

static void level_shapes(const struct hal_cpu_uk *uk)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (uint32_t side = 2; side <= 4; side += 2) {
            check(uk, &shapes[i], side, false);
            check(uk, &shapes[i], side, true);
        }
    }
}

static void test_shapes(void **state)
{
    (void)state;
    each_level(level_shapes);
}

/* A NaN reaches the outputs that read it, through clamps too, and no others than those of tiles
 * that read it. */
static void level_nan(const struct hal_cpu_uk *uk)
{
    const struct shape s = {1, 12, 12, 4, 4, 1, 1, 1, 1};
    for (uint32_t side = 2; side <= 4; side += 2) {
        struct problem p = {0};
        describe(&p, &s, side);
        make_numbers(&p, uk, true);
        p.w.end = p.tiles;
        p.x[5 * p.w.x_line + 5 * p.w.x_pixel] = NAN;
        uk->winograd_f32(&p.w);
        for (uint32_t i = 0; i < 144; i++) {
            uint32_t y = i / 12, x = i % 12;
            bool reads = y >= 4 && y <= 6 && x >= 4 && x <= 6;
            bool is_far = y + side < 5 || x + side < 5 || y > 5 + side || x > 5 + side;
            bool is_nan = isnan(p.y[y * p.w.y_line + x * p.w.y_pixel]);
            assert_true(is_nan || !reads);
            assert_false(is_nan && is_far);
        }
        free_numbers(&p);
    }
}

static void test_nan(void **state)
{
    (void)state;
    each_level(level_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
