/* SPDX-License-Identifier: MIT */
/* Arrays that grow, on the heap and in an arena: what they hold stays, and refusals change nothing.
 */
#include "config.h"

#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/check.h"
#include "tests/unit/unit.h"

#define COUNT 1000

static void items_stay(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(ARRAY_ROOM(items, capacity, i + 1));
        items[i] = i;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(items[i], i);
    }
    free(items);
}

static void the_capacity_doubles(void **state)
{
    (void)state;
    char *items = NULL;
    size_t capacity = 0;
    unsigned times = 0;
    for (size_t count = 1; count <= COUNT; count++) {
        size_t before = capacity;
        assert_true(ARRAY_ROOM(items, capacity, count));
        times += capacity != before;
        assert_true(capacity == before || capacity >= 2 * before);
    }
    assert_true(times <= 10);
    assert_true(ARRAY_ROOM(items, capacity, 100 * COUNT));
    assert_true(capacity >= 100 * COUNT);
    free(items);
}

static void items_of_an_arena_are_zeroed(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    uint16_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(ARENA_ROOM(&arena, items, capacity, i + 1));
        for (size_t next = i; next < capacity; next++) {
            assert_int_equal(items[next], 0);
        }
        items[i] = (uint16_t)(i + 1);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(items[i], i + 1);
    }
    arena_fini(&arena);
}

static void a_refusal_changes_nothing(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 4096);
    uint64_t *items = NULL, *wide = NULL;
    size_t capacity = 0, wide_capacity = 0;
    assert_true(ARENA_ROOM(&arena, items, capacity, 8));
    items[7] = 7;
    const uint64_t *before = items;
    assert_false(ARENA_ROOM(&arena, items, capacity, 4096));
    assert_false(ARENA_ROOM(&arena, items, capacity, SIZE_MAX));
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, 8);
    assert_int_equal(items[7], 7);
    arena_fini(&arena);

    assert_true(ARRAY_ROOM(wide, wide_capacity, 3));
    wide[2] = 2;
    assert_false(ARRAY_ROOM(wide, wide_capacity, SIZE_MAX / 4)); /* the bytes would wrap */
    assert_int_equal(wide[2], 2);
    assert_int_equal(wide_capacity, 4);
    free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_stay),
        cmocka_unit_test(the_capacity_doubles),
        cmocka_unit_test(items_of_an_arena_are_zeroed),
        cmocka_unit_test(a_refusal_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
