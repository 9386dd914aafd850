/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hal/suballoc.h"

#define SIZE 100000u
#define LIVE_MAX 100

/* Checks that ranges are in order, without gaps, and that no two neighbours are free. Returns their
 * number. */
static size_t check(const struct hal_suballoc *suballoc, size_t size)
{
    const struct hal_range *before = NULL;
    size_t at = 0, count = 0;
    for (const struct hal_range *r = suballoc->first; r; r = r->behind, count++) {
        assert_int_equal(r->begin, at);
        assert_true(r->size > 0);
        assert_ptr_equal(r->before, before);
        assert_false(before && before->state == HAL_RANGE_FREE && r->state == HAL_RANGE_FREE);
        if (r->state == HAL_RANGE_KEPT) { /* follows its owner */
            assert_true(before && before->state == HAL_RANGE_USED);
        }
        at += r->size;
        before = r;
    }
    assert_int_equal(at, size);
    return count;
}

static void test_whole(void **state)
{
    (void)state;
    struct hal_suballoc suballoc;
    assert_true(hal_suballoc_init(&suballoc, SIZE));
    assert_null(hal_suballoc_alloc(&suballoc, SIZE + 1, 0));
    struct hal_range *all = hal_suballoc_alloc(&suballoc, SIZE, 0);
    assert_non_null(all);
    assert_null(hal_suballoc_alloc(&suballoc, 1, 0));
    hal_suballoc_free(&suballoc, all);
    struct hal_range *one = hal_suballoc_alloc(&suballoc, 1, SIZE_MAX);
    assert_int_equal(one->begin, 0);
    assert_true(hal_suballoc_resize(&suballoc, one, SIZE));
    assert_false(hal_suballoc_resize(&suballoc, one, SIZE + 1));
    assert_int_equal(check(&suballoc, SIZE), 1);
    assert_true(hal_suballoc_resize(&suballoc, one, 1));
    assert_int_equal(check(&suballoc, SIZE), 2);
    hal_suballoc_free(&suballoc, one);
    assert_int_equal(check(&suballoc, SIZE), 1);
    hal_suballoc_fini(&suballoc);
    hal_suballoc_fini(&suballoc);
}

/* A range is found even if its size is not the smallest of its bin. */
static void test_exact_fit(void **state)
{
    (void)state;
    for (size_t size = 1; size < 3000; size++) {
        struct hal_suballoc suballoc;
        assert_true(hal_suballoc_init(&suballoc, size));
        struct hal_range *all = hal_suballoc_alloc(&suballoc, size, 7);
        assert_non_null(all);
        hal_suballoc_free(&suballoc, all);
        hal_suballoc_fini(&suballoc);
    }
}

struct model {
    uint8_t owner[SIZE]; /* for each byte: 0, or the number of a live range */
    struct hal_range *live[LIVE_MAX + 1];
    uint32_t count;
};

static void paint(struct model *model, size_t begin, size_t size, uint8_t from, uint8_t to)
{
    for (size_t i = begin; i < begin + size; i++) {
        assert_int_equal(model->owner[i], from);
        model->owner[i] = to;
    }
}

static size_t largest_gap(const struct model *model)
{
    size_t largest = 0, run = 0;
    for (size_t i = 0; i < SIZE; i++) {
        run = model->owner[i] ? 0 : run + 1;
        largest = run > largest ? run : largest;
    }
    return largest;
}

static void allocate(struct hal_suballoc *suballoc, struct model *model, uint8_t number,
                     size_t size, size_t growth)
{
    struct hal_range *range = hal_suballoc_alloc(suballoc, size, growth);
    if (!range) { /* only a part of a bin is searched, and free and kept ranges are not joined */
        assert_true(size * 2 > largest_gap(model) / 2);
        return;
    }
    assert_int_equal(range->size, size);
    paint(model, range->begin, size, 0, number);
    model->live[number] = range;
    model->count++;
}

static void change(struct hal_suballoc *suballoc, struct model *model, uint8_t number, size_t size)
{
    struct hal_range *range = model->live[number];
    size_t before = range->size, begin = range->begin;
    if (!hal_suballoc_resize(suballoc, range, size)) {
        assert_true(size > before);
        assert_int_equal(range->size, before);
        return;
    }
    assert_int_equal(range->size, size);
    assert_int_equal(range->begin, begin);
    if (size > before) {
        paint(model, begin + before, size - before, 0, number);
    } else {
        paint(model, begin + size, before - size, number, 0);
    }
}

static void test_random(void **state)
{
    (void)state;
    static struct model model;
    struct hal_suballoc suballoc;
    uint32_t random = 1, most = 0;
    memset(&model, 0, sizeof(model));
    assert_true(hal_suballoc_init(&suballoc, SIZE));
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        uint8_t number = (uint8_t)(1 + (random >> 24) % LIVE_MAX);
        size_t size = 1 + (random >> 8) % ((random >> 20) % 8 == 0 ? SIZE / 2 : 2000);
        if (!model.live[number]) {
            allocate(&suballoc, &model, number, size, step % 3 == 0 ? size * 2 : 0);
        } else if (random % 3 == 0) {
            change(&suballoc, &model, number, size);
        } else {
            struct hal_range *range = model.live[number];
            paint(&model, range->begin, range->size, number, 0);
            hal_suballoc_free(&suballoc, range);
            model.live[number] = NULL;
            model.count--;
        }
        most = model.count > most ? model.count : most;
        if (step % 100 == 0) {
            check(&suballoc, SIZE);
        }
    }
    assert_true(most > 20);
    for (uint32_t number = 1; number <= LIVE_MAX; number++) {
        if (model.live[number]) {
            hal_suballoc_free(&suballoc, model.live[number]);
        }
    }
    assert_int_equal(check(&suballoc, SIZE), 1);
    hal_suballoc_fini(&suballoc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_exact_fit),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
