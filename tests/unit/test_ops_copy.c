/* SPDX-License-Identifier: MIT */
/*
 * Compares strided copies with a loop over every position, byte by byte, for random boxes and for
 * planes of all sizes around the blocks of a transposition.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/kernels/copy.h"
#include "tests/unit/ops_call.h"

static const enum dtype by_width[] = {DT_U8, DT_F16, DT_F32, DT_I64};

/* Bytes that are not copied keep a mark, in the result and in the expected bytes. */
static void fill(uint8_t *bytes, size_t n, bool is_mark)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i] = is_mark ? 0xee : (uint8_t)draw(256);
    }
}

static void naive(uint8_t *dst, const uint8_t *src, const struct rt_copy *copy, size_t width)
{
    int64_t index[SHAPE_RANK_MAX] = {0};
    uint32_t d;

    for (;;) {
        int64_t to = copy->dst_offset, from = copy->src_offset;
        for (d = 0; d < copy->rank; d++) {
            if (copy->dims[d] == 0) {
                return;
            }
            to += index[d] * copy->dst[d];
            from += index[d] * copy->src[d];
        }
        memcpy(dst + (size_t)to * width, src + (size_t)from * width, width);
        for (d = copy->rank; d-- > 0 && ++index[d] == copy->dims[d];) {
            index[d] = 0;
        }
        if (d == UINT32_MAX) {
            return;
        }
    }
}

/* Copies in both ways between tensors of |dst_count| and |src_count| elements. Returns the
 * kernel. */
static const char *check(const struct rt_copy *copy, enum dtype dtype, int64_t dst_count,
                         int64_t src_count)
{
    static struct rt_emit call;
    struct error err = {.code = ST_OK};
    size_t width = dtype_bytes(dtype), size = (size_t)dst_count * width;
    uint8_t *dst = malloc(size), *want = malloc(size), *src = malloc((size_t)src_count * width);

    assert_true(dst && want && src);
    fill(src, (size_t)src_count * width, false);
    fill(dst, size, true);
    fill(want, size, true);
    naive(want, src, copy, width);
    call_init(&call, NULL, "");
    struct rt_tensor to = call_tensor(&call, dtype, 1, &dst_count, dst);
    struct rt_tensor from = call_tensor(&call, dtype, 1, &src_count, src);
    assert_ok(err, rt_copy_emit(&call, &to, &from, copy, &err));
    assert_memory_equal(dst, want, size);
    free(dst);
    free(want);
    free(src);
    return call.kernel;
}

static void shuffle(uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count; i-- > 1;) {
        uint32_t j = (uint32_t)draw(i + 1), held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

/* Strides of a box whose dims lie in a random order, sometimes with gaps. */
static int64_t random_strides(const struct rt_copy *copy, int64_t *strides)
{
    uint32_t order[SHAPE_RANK_MAX];
    int64_t stride = 1;

    shuffle(order, copy->rank);
    for (uint32_t i = 0; i < copy->rank; i++) {
        strides[order[i]] = stride;
        stride *= copy->dims[order[i]] + (draw(8) == 0);
    }
    return stride;
}

static void test_random_boxes(void **ctx)
{
    (void)ctx;
    for (int round = 0; round < 2000; round++) {
        struct rt_copy copy = {.rank = (uint32_t)draw(6)};
        for (uint32_t d = 0; d < copy.rank; d++) {
            copy.dims[d] = draw(20) == 0 ? draw(40) : 1 + draw(5);
        }
        int64_t dst_count = random_strides(&copy, copy.dst) + draw(3);
        int64_t src_count = random_strides(&copy, copy.src);
        for (uint32_t d = 0; d < copy.rank; d++) {
            if (draw(6) == 0) {
                copy.src[d] = 0;
            } else if (draw(6) == 0 && copy.dims[d] > 0) {
                copy.src_offset += (copy.dims[d] - 1) * copy.src[d];
                copy.src[d] = -copy.src[d];
            }
        }
        check(&copy, by_width[draw(4)], dst_count, src_count);
    }
}

/* Sizes around 4 and 16, because different code transposes the planes on each side. */
static void test_planes(void **ctx)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 130};
    const size_t count = sizeof(sizes) / sizeof(sizes[0]);

    (void)ctx;
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++) {
            for (size_t w = 0; w < 4; w++) {
                int64_t i = sizes[a], j = sizes[b], n = 3 * i * j;
                struct rt_copy copy = {
                    .rank = 3, .dims = {3, j, i}, .dst = {i * j, i, 1}, .src = {i * j, 1, j}};
                assert_string_equal(check(&copy, by_width[w], n, n), "transpose");
            }
        }
    }
}

static void test_large_planes(void **ctx)
{
    struct rt_copy thin = {.rank = 2, .dims = {50176, 3}, .dst = {3, 1}, .src = {1, 50176}};
    struct rt_copy flat = {.rank = 2, .dims = {3, 50176}, .dst = {50176, 1}, .src = {1, 3}};
    struct rt_copy both = {.rank = 2, .dims = {301, 517}, .dst = {517, 1}, .src = {1, 301}};

    (void)ctx;
    check(&thin, DT_F32, 150528, 150528);
    check(&flat, DT_F32, 150528, 150528);
    check(&both, DT_F32, 301 * 517, 301 * 517);
    check(&both, DT_I64, 301 * 517, 301 * 517);
}

static void test_contiguous_is_one_run(void **ctx)
{
    struct rt_copy copy = {
        .rank = 3, .dims = {40, 50, 60}, .dst = {3000, 60, 1}, .src = {3000, 60, 1}};

    (void)ctx;
    assert_string_equal(check(&copy, DT_F32, 120000, 120000), "copy");
}

/* Runs of 2 and 4 elements move as one wider element, also inside a transposition. */
static void test_short_runs(void **ctx)
{
    (void)ctx;
    for (int64_t run = 2; run <= 8; run *= 2) {
        struct rt_copy copy = {
            .rank = 3, .dims = {19, 21, run}, .dst = {21 * run, run, 1}, .src = {run, 19 * run, 1}};
        for (size_t w = 0; w < 4; w++) {
            const char *kernel = check(&copy, by_width[w], 19 * 21 * run, 19 * 21 * run);
            bool fits = (size_t)run * dtype_bytes(by_width[w]) <= 16;
            assert_string_equal(kernel, fits ? "transpose" : "copy");
        }
    }
}

/* Runs of heads: their lines are short or long in the target, and tiles end inside of lines. */
static void test_lines_of_runs(void **ctx)
{
    static const int64_t heads[] = {2, 3, 9}, runs[] = {7, 8, 24, 96, 200};
    (void)ctx;
    for (size_t h = 0; h < 3; h++) {
        for (size_t r = 0; r < 5; r++) {
            int64_t head = heads[h], run = runs[r], row = head * run, n = 5 * 49 * row;
            struct rt_copy copy = {.rank = 4,
                                   .dims = {5, 49, head, run},
                                   .dst = {49 * row, row, run, 1},
                                   .src = {49 * row, run, 49 * run, 1}};
            for (size_t w = 0; w < 4; w++) {
                check(&copy, by_width[w], n, n);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_boxes), cmocka_unit_test(test_planes),
        cmocka_unit_test(test_large_planes), cmocka_unit_test(test_contiguous_is_one_run),
        cmocka_unit_test(test_short_runs),   cmocka_unit_test(test_lines_of_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
