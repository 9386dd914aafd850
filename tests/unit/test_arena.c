/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "tests/unit/unit.h"

/* The linker replaces malloc() by this function. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool heap_refuses;

void *__wrap_malloc(size_t size)
{
    return heap_refuses ? NULL : __real_malloc(size);
}

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (size_t size = 0; size < 5000; size += 37) {
        uint8_t *mem = arena_alloc(&arena, size);
        assert_non_null(mem);
        assert_int_equal((uintptr_t)mem % 16, 0);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(mem[i], 0);
            mem[i] = 0xff;
        }
    }
    arena_reset(&arena);
    assert_int_equal(arena.used_bytes, 0);
    uint8_t *again = arena_alloc(&arena, 4096);
    assert_non_null(again);
    assert_int_equal(again[4095], 0);
    arena_fini(&arena);
}

static void test_maximum(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    assert_non_null(arena_alloc(&arena, 990));
    assert_null(arena_alloc(&arena, 64));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_array(&arena, SIZE_MAX / 2, 4));
    arena_fini(&arena);
    arena_fini(NULL);
}

/* The maximum refuses permanently, the heap only temporarily: their errors differ. */
static void test_reasons(void **state)
{
    (void)state;
    struct arena arena;
    struct error err;
    arena_init(&arena, 1000);
    assert_fails(err, arena_fail(&arena, "a thing", &err), ST_EXHAUSTED, "no memory for a thing");
    assert_null(arena_alloc(&arena, 1001));
    assert_fails(err, arena_fail(&arena, "a thing", &err), ST_TOO_LARGE,
                 "a thing needs more than 1000 bytes of memory");
    arena_reset(&arena);
    assert_fails(err, arena_fail(&arena, "a thing", &err), ST_EXHAUSTED, "no memory");
    assert_null(arena_array(&arena, SIZE_MAX, 2));
    assert_fails(err, arena_fail(&arena, "a thing", &err), ST_TOO_LARGE, "1000 bytes");
    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    heap_refuses = true;
    void *refused = arena_alloc(&arena, 1 << 16);
    heap_refuses = false;
    assert_null(refused);
    assert_null(arena_alloc(&arena, 1 << 21));
    assert_fails(err, arena_fail(&arena, "a thing", &err), ST_EXHAUSTED, "no memory for a thing");
    arena_fini(&arena);
}

static void test_strdup(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 1000);
    assert_string_equal(arena_strdup(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_strdup(&arena, "", 0), "");
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned),
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_strdup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
