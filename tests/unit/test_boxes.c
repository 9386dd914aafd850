/* SPDX-License-Identifier: MIT */
/* Boxes that are left, compared with torchvision's and Ultralytics' results
 * (contrib/export/boxes.py), and candidates that no rule may trust. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/answer/boxes.h"

#define CANDIDATES_MAX 128
#define CLASSES_MAX 4
#define FEATURES (4 + 1 + CLASSES_MAX + 1)
#define OBJECTNESS 4
#define SCORES 5
#define ANGLE (FEATURES - 1)

/* A CASE begins one, each KEPT is a box of it. */
struct row {
    bool is_case;
    uint32_t seed, count, classes;
    struct boxes_rules rules;
    bool has_objectness, is_turned;
    uint32_t kept;
    uint32_t candidate;
    int64_t class;
};

static const struct row rows[] = {
#define CASE(first, number, kinds, form, least, overlap, most, ignores, background, objectness,    \
             turned, left)                                                                         \
    {true,                                                                                         \
     (first),                                                                                      \
     (number),                                                                                     \
     (kinds),                                                                                      \
     {BOXES_##form, (least), (overlap), (most), (ignores), (background)},                          \
     (objectness),                                                                                 \
     (turned),                                                                                     \
     (left),                                                                                       \
     0,                                                                                            \
     0},
#define KEPT(index, label) {.candidate = (index), .class = (label)},
#include "tests/unit/boxes.def"
#undef CASE
#undef KEPT
};

static float table[CANDIDATES_MAX][FEATURES];
static uint32_t random_state;

static uint32_t below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

/* As make() of boxes.py, in the form of the case. */
static void make(const struct row *row)
{
    random_state = row->seed;
    for (uint32_t i = 0; i < row->count; i++) {
        float *at = table[i];
        float left = (float)below(64) / 4, top = (float)below(64) / 4;
        float width = (float)(8 + below(80)) / 4, height = (float)(8 + below(80)) / 4;
        float half = row->rules.form == BOXES_CENTER ? 0.5f : 0;
        bool is_size = row->rules.form != BOXES_CORNERS;
        at[0] = left + half * width;
        at[1] = top + half * height;
        at[2] = is_size ? width : left + width;
        at[3] = is_size ? height : top + height;
        for (uint32_t k = 0; k < row->classes; k++) {
            at[SCORES + k] = (float)below(1024) / 1024;
        }
        at[OBJECTNESS] = (float)below(1024) / 1024;
        at[ANGLE] = ((float)below(256) - 128) / 64;
    }
}

static struct boxes_candidates candidates_of(size_t count, size_t classes)
{
    return (struct boxes_candidates){
        .count = count,
        .class_count = classes,
        .places = {table[0], FEATURES, 1},
        .scores = {table[0] + SCORES, FEATURES, 1},
    };
}

/* Returns the row behind the last box. */
static const struct row *check_case(const struct row *row)
{
    struct boxes_candidates candidates = candidates_of(row->count, row->classes);
    struct box *boxes;
    struct error err;
    uint32_t count;
    make(row);
    candidates.objectness = row->has_objectness ? table[0] + OBJECTNESS : NULL;
    candidates.of_objectness = FEATURES;
    candidates.angles = row->is_turned ? table[0] + ANGLE : NULL;
    candidates.of_angle = FEATURES;
    assert_ok(err, boxes_find(&candidates, &row->rules, &boxes, &count, &err));
    for (uint32_t i = 0; i < count && i < row->kept; i++) {
        const struct row *kept = row + 1 + i;
        if (boxes[i].candidate != kept->candidate || boxes[i].class != kept->class) {
            fail_msg("seed %u, box %u: candidate %u of class %d, expected %u of %d", row->seed, i,
                     boxes[i].candidate, (int)boxes[i].class, kept->candidate, (int)kept->class);
        }
    }
    assert_int_equal(count, row->kept);
    free(boxes);
    return row + 1 + row->kept;
}

static void boxes_are_those_of_other_programs(void **state)
{
    const struct row *row = rows, *end = rows + sizeof(rows) / sizeof(rows[0]);
    int count = 0;
    (void)state;
    for (; row < end; count++) {
        assert_true(row->is_case);
        row = check_case(row);
    }
    assert_int_equal(count, 9);
}

/* ---- candidates by hand ---------------------------------------------------------------------- */

static const struct boxes_rules corners = {.form = BOXES_CORNERS,
                                           .score_least = 0.1,
                                           .overlap_most = 0.5,
                                           .count_max = 4,
                                           .background = -1};

static void put(uint32_t index, float left, float top, float right, float bottom, float score)
{
    const float all[FEATURES] = {left, top, right, bottom, 1, score};
    memcpy(table[index], all, sizeof(all));
}

/* Finds boxes and checks their candidates. */
static void expect(const struct boxes_candidates *candidates, const struct boxes_rules *rules,
                   uint32_t count, const uint32_t *wanted)
{
    struct box *boxes;
    struct error err;
    uint32_t found;
    assert_ok(err, boxes_find(candidates, rules, &boxes, &found, &err));
    assert_int_equal(found, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(boxes[i].candidate, wanted[i]);
    }
    free(boxes);
}

static void each_form_gives_the_same_box(void **state)
{
    static const float numbers[3][4] = {[BOXES_CENTER] = {6, 5, 8, 4},
                                        [BOXES_CORNERS] = {2, 3, 10, 7},
                                        [BOXES_SIZE] = {2, 3, 8, 4}};
    struct boxes_candidates candidates = candidates_of(1, 1);
    struct boxes_rules rules = corners;
    (void)state;
    for (int form = BOXES_CENTER; form <= BOXES_SIZE; form++) {
        struct box *boxes;
        struct error err;
        uint32_t count;
        const float *n = numbers[form];
        rules.form = (enum boxes_form)form;
        put(0, n[0], n[1], n[2], n[3], 0.5f);
        assert_ok(err, boxes_find(&candidates, &rules, &boxes, &count, &err));
        assert_int_equal(count, 1);
        assert_true(boxes->left == 2 && boxes->top == 3 && boxes->right == 10 &&
                    boxes->bottom == 7 && boxes->score == 0.5f);
        free(boxes);
    }
}

/* An overlap of just the limit is none, and so is that of empty boxes. */
static void an_overlap_is_more_than_the_limit(void **state)
{
    struct boxes_candidates candidates = candidates_of(2, 1);
    struct boxes_rules rules = corners;
    (void)state;
    put(0, 0, 0, 4, 4, 0.9f);
    put(1, 0, 0, 4, 2, 0.8f); /* 8 of 16 */
    expect(&candidates, &rules, 2, (const uint32_t[]){0, 1});
    rules.overlap_most = 0.49;
    expect(&candidates, &rules, 1, (const uint32_t[]){0});
    put(0, 1, 1, 1, 1, 0.9f);
    put(1, 1, 1, 1, 1, 0.8f);
    rules.overlap_most = 0;
    expect(&candidates, &rules, 2, (const uint32_t[]){0, 1});
}

static void equal_scores_keep_the_order_of_candidates(void **state)
{
    struct boxes_candidates candidates = candidates_of(3, 1);
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        put(i, 20 * (float)i, 0, 20 * (float)i + 5, 5, 0.5f);
    }
    expect(&candidates, &corners, 3, (const uint32_t[]){0, 1, 2});
}

static void numbers_that_are_none_make_no_box(void **state)
{
    struct boxes_candidates candidates = candidates_of(6, 1);
    struct boxes_rules rules = corners;
    (void)state;
    put(0, 0, 0, 5, 5, NAN);
    put(1, NAN, 0, 5, 5, 0.9f);
    put(2, 0, 0, INFINITY, 5, 0.9f);
    put(3, 0, 0, 5, 5, 0.1f); /* a float, which is more than the double 0.1 */
    put(4, 40, 0, 45, 5, 0.0999f);
    put(5, 80, 0, 85, 5, 0.2f);
    expect(&candidates, &rules, 2, (const uint32_t[]){5, 3});
    candidates.angles = table[0] + ANGLE;
    candidates.of_angle = FEATURES;
    table[5][ANGLE] = INFINITY;
    expect(&candidates, &rules, 1, (const uint32_t[]){3});
    rules.form = BOXES_CENTER; /* whose sums overflow */
    put(3, 3e38f, 0, 3e38f, 5, 0.9f);
    expect(&candidates, &rules, 0, NULL);
}

/* The model has chosen the classes; one of them is the background. */
static void classes_may_be_given(void **state)
{
    static const int64_t classes[] = {7, 0, 7, 9};
    struct boxes_candidates candidates = candidates_of(4, 1);
    struct boxes_rules rules = corners;
    (void)state;
    rules.background = 0;
    candidates.classes = classes;
    for (uint32_t i = 0; i < 4; i++) {
        put(i, 0, 0, 5, 5, 0.9f - 0.1f * (float)i);
    }
    expect(&candidates, &rules, 2, (const uint32_t[]){0, 3});
    rules.ignores_classes = true;
    expect(&candidates, &rules, 1, (const uint32_t[]){0});
}

static void there_are_no_more_boxes_than_allowed(void **state)
{
    struct boxes_candidates candidates = candidates_of(9, 1);
    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        put(i, 20 * (float)i, 0, 20 * (float)i + 5, 5, 0.1f + 0.1f * (float)i);
    }
    expect(&candidates, &corners, 4, (const uint32_t[]){8, 7, 6, 5});
    candidates.count = 0;
    expect(&candidates, &corners, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_those_of_other_programs),
        cmocka_unit_test(each_form_gives_the_same_box),
        cmocka_unit_test(an_overlap_is_more_than_the_limit),
        cmocka_unit_test(equal_scores_keep_the_order_of_candidates),
        cmocka_unit_test(numbers_that_are_none_make_no_box),
        cmocka_unit_test(classes_may_be_given),
        cmocka_unit_test(there_are_no_more_boxes_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
