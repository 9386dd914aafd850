/* SPDX-License-Identifier: MIT */
/*
 * Sums of parallel convolutions become one. All numbers are small integers, whose products and sums
 * are exact, so the result of one convolution has the bytes of the sum.
 */
#include "config.h"

#include <string.h>

#include "hal/buffer.h"
#include "runtime/code/fold.h"
#include "runtime/passes/passes.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define RESULTS_MAX 4096

/* A branch: a kernel of |height| x |width| with padding; 0 x 0: a batch norm of the image. */
struct branch {
    int64_t height, width, pad_top, pad_left;
};

struct sum {
    int64_t channels, groups, stride, extent, count;
    struct branch branches[4];
    bool has_bias, begins_with_zero;
};

static uint32_t convolve_as(struct fixture *f, uint32_t x, const struct sum *s,
                            const struct branch *b, int64_t dilation, bool is_transposed)
{
    uint32_t args[] = {
        x,
        WEIGHTS4(s->channels, s->channels / s->groups, b->height, b->width),
        s->has_bias ? WEIGHTS(s->channels) : rt_graph_none(&f->graph),
        INTS(s->stride, s->stride),
        INTS(b->pad_top, b->pad_left),
        INTS(dilation, dilation),
        rt_graph_bool(&f->graph, is_transposed),
        INTS(0, 0),
        number(f, s->groups),
    };
    return apply(f, "convolution", args, 9);
}

static uint32_t branch_of(struct fixture *f, uint32_t x, const struct sum *s,
                          const struct branch *b)
{
    if (b->height > 0) {
        return convolve_as(f, x, s, b, 1, false);
    }
    uint32_t args[] = {x, WEIGHTS(s->channels), WEIGHTS(s->channels)};
    return apply(f, "affine", args, 3);
}

static uint32_t zero(struct fixture *f)
{
    uint32_t value = WEIGHTS(-1);
    memset(hal_buffer_map(f->graph.values[value].buffer), 0, sizeof(float));
    return value;
}

static uint32_t sum_of(struct fixture *f, uint32_t x, const struct sum *s)
{
    uint32_t sum = branch_of(f, x, s, &s->branches[0]);
    if (s->begins_with_zero) {
        sum = add(f, sum, zero(f));
    }
    for (int64_t i = 1; i < s->count; i++) {
        sum = add(f, sum, branch_of(f, x, s, &s->branches[i]));
    }
    return sum;
}

static const struct sum sums[] = {
    {6, 1, 1, 7, 3, {{3, 3, 1, 1}, {1, 1, 0, 0}, {0}}, true, false},              /* RepVGG's */
    {6, 1, 2, 7, 2, {{1, 1, 0, 0}, {3, 3, 1, 1}}, false, false},                  /* with a step */
    {8, 8, 1, 6, 4, {{0}, {1, 1, 0, 0}, {3, 3, 1, 1}, {3, 3, 1, 1}}, true, true}, /* MobileOne's */
    {8, 1, 1, 6, 4, {{0}, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1, 0, 0}}, true, true},
    {6, 2, 1, 6, 3, {{0}, {3, 3, 1, 1}, {1, 1, 0, 0}}, false, false},
    {6, 3, 1, 9, 2, {{5, 3, 2, 1}, {0}}, true, false},
    {4, 1, 1, 9, 2, {{3, 5, 1, 2}, {1, 1, 0, 0}}, false, false},
    {1, 1, 1, 5, 3, {{0}, {1, 1, 0, 0}, {3, 3, 1, 1}}, true, false}, /* one channel */
};

/* Computes the sum of an image, as it is or as one convolution. */
static size_t solve(struct fixture *f, const struct sum *s, bool joins, float *out)
{
    f->graph.precision = joins ? PRECISION_FAST : PRECISION_EXACT;
    give(f, sum_of(f, WEIGHTS4(2, s->channels, s->extent, s->extent), s));
    assert_ok(f->err, rt_pass_parallel(&f->graph, &f->err));
    assert_int_equal(count_ops(f, "convolution") + count_ops(f, "affine"), joins ? 1 : s->count);
    lay_out(f);
    assert_ok(f->err, rt_fold_constants(&f->graph, f->device, &f->err));
    const struct rt_value *v = &f->graph.values[f->graph.outputs[0]];
    assert_true(v->is_constant && v->bytes.len > 0 && v->bytes.len <= RESULTS_MAX * sizeof(*out));
    memcpy(out, v->bytes.ptr, v->bytes.len);
    return v->bytes.len;
}

static void one_convolution_gives_the_sum(void **state)
{
    static float want[RESULTS_MAX], got[RESULTS_MAX];
    for (size_t i = 0; i < LENGTH(sums); i++) {
        start_again(state);
        size_t bytes = solve(*state, &sums[i], false, want);
        start_again(state);
        assert_int_equal(solve(*state, &sums[i], true, got), bytes);
        if (memcmp(got, want, bytes) != 0) {
            fail_msg("sum %zu: %g, %g, not %g, %g", i, (double)got[0], (double)got[1],
                     (double)want[0], (double)want[1]);
        }
    }
}

/* Convolutions that are left of the sum of two, of which the second one is |other|. */
static uint32_t left_of(struct fixture *f, uint32_t other, uint32_t first)
{
    f->graph.precision = PRECISION_FAST;
    give(f, add(f, first, other));
    assert_ok(f->err, rt_pass_parallel(&f->graph, &f->err));
    return count_ops(f, "convolution") + count_ops(f, "affine");
}

static const struct sum plain = {.channels = 4, .groups = 1, .stride = 1};
static const struct branch wide = {3, 3, 1, 1}, tap = {1, 1, 0, 0};

static void other_sums_stay(void **state)
{
    struct sum grouped = plain;
    grouped.groups = 2;
    for (int i = 0; i < 6; i++) {
        start_again(state);
        struct fixture *f = *state;
        uint32_t x = INPUT(1, 4, 6, 6), y = INPUT(1, 4, 6, 6);
        uint32_t first = convolve_as(f, x, &plain, &wide, 1, false), other = 0;
        switch (i) {
        case 0: /* of another image */
            other = convolve_as(f, y, &plain, &tap, 1, false);
            break;
        case 1: /* in groups */
            other = convolve_as(f, x, &grouped, &tap, 1, false);
            break;
        case 2: /* transposed */
            other = convolve_as(f, x, &plain, &wide, 1, true);
            break;
        case 3: /* of other taps */
            other = convolve_as(f, x, &plain, &(struct branch){3, 3, 2, 2}, 2, false);
            break;
        case 4: /* of several taps, but fewer */
            other = convolve_as(f, x, &plain, &(struct branch){1, 3, 0, 1}, 1, false);
            break;
        default: /* read by somebody else */
            other = convolve_as(f, x, &plain, &tap, 1, false);
            give(f, other);
            break;
        }
        assert_int_equal(left_of(f, other, first), 2);
    }
}

/* Weights that a call brings are not joined in each call. */
static void weights_of_a_call_stay(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 6, 6), w = INPUT(4, 4, 1, 1);
    uint32_t first = convolve_as(f, x, &plain, &wide, 1, false);
    assert_int_equal(left_of(f, convolve(f, x, w, 0, 1, false), first), 2);
}

/* A file may have each of a few values lead to the one before in several ways. */
static void looks_at_weights_are_bounded(void **state)
{
    static const struct {
        int steps;
        uint32_t left;
    } cases[] = {{4, 1}, {6, 2}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        start_again(state);
        struct fixture *f = *state;
        uint32_t x = INPUT(1, 4, 6, 6), w = WEIGHTS4(4, 4, 1, 1);
        for (int step = 0; step < cases[i].steps; step++) {
            w = add(f, w, w);
        }
        uint32_t first = convolve_as(f, x, &plain, &wide, 1, false);
        assert_int_equal(left_of(f, convolve(f, x, w, 0, 1, false), first), cases[i].left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_convolution_gives_the_sum),
        TEST(other_sums_stay),
        TEST(weights_of_a_call_stay),
        TEST(looks_at_weights_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
