/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "protocol/oip_classes.h"

#define ARENA_BYTES (1 << 20)

/* The texts of all rows, with blanks between them. */
static const char *classify(enum dtype dtype, struct shape shape, const void *scores, size_t size,
                            uint32_t wanted, struct shape *out_shape)
{
    static const struct span labels[] = {{(const uint8_t *)"zero", 4}, {(const uint8_t *)"", 0}};
    static char text[1024];
    const struct oip_classes classes = {.dtype = dtype,
                                        .shape = &shape,
                                        .scores = span_of(scores, size),
                                        .labels = labels,
                                        .label_count = 2,
                                        .wanted = wanted};
    const struct span *texts;
    struct arena arena;
    struct error err;
    arena_init(&arena, ARENA_BYTES);
    assert_ok(err, oip_classify(&classes, &arena, &texts, out_shape, &err));
    text[0] = '\0';
    for (int64_t i = 0; i < shape_numel(out_shape); i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%.*s", i ? " " : "", SPAN_FMT(texts[i]));
    }
    arena_fini(&arena);
    return text;
}

static void highest_first(void **state)
{
    const float scores[] = {0.5f, 3, -1, 3, NAN, INFINITY};
    struct shape got;
    (void)state;
    struct shape one = {.rank = 1, .dims = {6}};
    assert_string_equal(classify(DT_F32, one, scores, sizeof(scores), 4, &got),
                        "inf:5 3.000000:1: 3.000000:3 0.500000:0:zero");
    assert_int_equal(got.rank, 1);
    assert_int_equal(got.dims[0], 4);
    assert_string_equal(classify(DT_F32, one, scores, sizeof(scores), UINT32_MAX, &got),
                        "inf:5 3.000000:1: 3.000000:3 0.500000:0:zero -1.000000:2 nan:4");
    struct shape two = {.rank = 2, .dims = {2, 3}};
    assert_string_equal(classify(DT_F32, two, scores, sizeof(scores), 1, &got),
                        "3.000000:1: inf:2");
    assert_int_equal(got.rank, 2);
    assert_int_equal(got.dims[0], 2);
    assert_int_equal(got.dims[1], 1);
    assert_string_equal(classify(DT_F32, (struct shape){0}, scores, 4, 3, &got), "0.500000:0:zero");
    struct shape none = {.rank = 2, .dims = {0, 3}}, empty = {.rank = 2, .dims = {3, 0}};
    assert_string_equal(classify(DT_F32, none, scores, 0, 3, &got), "");
    assert_string_equal(classify(DT_F32, empty, scores, 0, 3, &got), "");
}

static void every_real_type(void **state)
{
    const int8_t small[] = {-3, 4, 127};
    const uint64_t large[] = {1, UINT64_MAX, 2};
    const uint16_t half[] = {0x3c00, 0xbc00, 0x4000}; /* 1, -1, 2 */
    const double longest[] = {-1.7976931348623157e308, 0, 0};
    struct shape got, shape = {.rank = 1, .dims = {3}};
    struct oip_classes classes = {
        .dtype = DT_C64, .shape = &shape, .scores = span_of(longest, 24), .wanted = 3};
    const struct span *texts;
    struct arena arena;
    struct error err;
    (void)state;
    assert_string_equal(classify(DT_I8, shape, small, 3, 2, &got), "127.000000:2 4.000000:1:");
    assert_string_equal(classify(DT_U64, shape, large, 24, 1, &got),
                        "18446744073709551616.000000:1:");
    assert_string_equal(classify(DT_F16, shape, half, 6, 2, &got), "2.000000:2 1.000000:0:zero");
    assert_int_equal(strlen(classify(DT_F64, shape, longest, 24, 3, &got)),
                     strlen("0.000000:1: 0.000000:2 ") + 317 + strlen(":0:zero"));
    arena_init(&arena, ARENA_BYTES);
    assert_fails(err, oip_classify(&classes, &arena, &texts, &got, &err), ST_INVALID,
                 "expected real numbers, the output has COMPLEX64");
    arena_fini(&arena);
    arena_init(&arena, 64);
    classes.dtype = DT_F64;
    assert_fails(err, oip_classify(&classes, &arena, &texts, &got, &err), ST_TOO_LARGE, "classes");
    arena_fini(&arena);
}

/* Beside a plain sort, with many equal scores. */
static void as_a_sort_says(void **state)
{
    enum { COUNT = 1000 };
    uint8_t scores[COUNT];
    struct shape got, shape = {.rank = 1, .dims = {COUNT}};
    const struct oip_classes classes = {
        .dtype = DT_U8, .shape = &shape, .scores = span_of(scores, COUNT), .wanted = COUNT};
    const struct span *texts;
    struct arena arena;
    struct error err;
    uint32_t random = 1, at = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        scores[i] = (uint8_t)(random >> 28);
    }
    arena_init(&arena, ARENA_BYTES);
    assert_ok(err, oip_classify(&classes, &arena, &texts, &got, &err));
    for (int score = 255; score >= 0; score--) {
        for (uint32_t i = 0; i < COUNT; i++) {
            char wanted[32];
            if (scores[i] == score) {
                snprintf(wanted, sizeof(wanted), "%d.000000:%u", score, i);
                assert_true(span_is(texts[at++], wanted));
            }
        }
    }
    assert_int_equal(at, COUNT);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_first),
        cmocka_unit_test(every_real_type),
        cmocka_unit_test(as_a_sort_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
