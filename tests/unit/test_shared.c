/* SPDX-License-Identifier: MIT */
/* One copy of every constant: which buffers are shared, how long, and by several threads. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/buffer.h"
#include "runtime/code/recipe.h"
#include "runtime/code/shared.h"
#include "runtime/program/held.h"
#include "tests/unit/call_support.h"
#include "tests/unit/graph_support.h"
#include "tests/unit/unit.h"

#define BYTES 100000

static struct hal_device *device;
static struct hal_pool *pool;

static int open_all(void **state)
{
    (void)state;
    open_two_workers(&device, &pool);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    close_two_workers(device, pool);
    return 0;
}

/* A buffer whose byte |at| is |mark|, and all others 0. */
static struct hal_buffer *make(size_t bytes, size_t at, uint8_t mark)
{
    struct hal_buffer *buffer;
    struct error err;
    assert_ok(err, hal_buffer_new_constant(device, bytes, &buffer, &err));
    memset(hal_buffer_map(buffer), 0, bytes);
    ((uint8_t *)hal_buffer_map(buffer))[at] = mark;
    hal_buffer_freeze(buffer);
    return buffer;
}

static struct hal_buffer *put(const struct rt_recipe *recipe, struct hal_buffer *buffer)
{
    struct error err;
    assert_ok(err, rt_shared_put(recipe, &buffer, NULL, &err));
    return buffer;
}

static void test_equal_bytes(void **state)
{
    (void)state;
    struct hal_buffer *a = put(NULL, make(BYTES, 0, 1));
    struct hal_buffer *b = put(NULL, make(BYTES, 0, 1));
    assert_ptr_equal(a, b);
    assert_ptr_equal(put(NULL, b), b); /* it is there already */
    hal_buffer_unref(a);
    hal_buffer_unref(b);
}

/* The digest of large buffers looks at pieces; all bytes are compared. */
static void test_one_byte_differs(void **state)
{
    (void)state;
    struct hal_buffer *a = put(NULL, make(BYTES, 0, 0));
    for (size_t at = 0; at < BYTES; at += 997) {
        struct hal_buffer *b = put(NULL, make(BYTES, at, 1));
        assert_ptr_not_equal(a, b);
        hal_buffer_unref(b);
    }
    struct hal_buffer *longer = put(NULL, make(BYTES + 1, 0, 0));
    assert_ptr_not_equal(a, longer);
    hal_buffer_unref(longer);
    hal_buffer_unref(a);
}

static void test_recipes(void **state)
{
    (void)state;
    const struct rt_recipe first = {{1, 2, 3, 4}}, second = {{1, 2, 3, 5}}, other = {{9, 9, 9, 9}};
    struct rt_recipe found;
    assert_null(rt_shared_find(&first, NULL));
    struct hal_buffer *a = put(&first, make(BYTES, 5, 1));
    struct hal_buffer *b = put(&second, make(BYTES, 5, 1));
    assert_ptr_equal(a, b);
    struct hal_buffer *c = rt_shared_find(&second, NULL);
    assert_ptr_equal(c, a);
    assert_null(rt_shared_find(&other, NULL));
    assert_true(rt_shared_recipe(a, &found));
    assert_memory_equal(&found, &first, sizeof(found));
    hal_buffer_unref(a);
    hal_buffer_unref(b);
    assert_true(rt_shared_recipe(c, &found)); /* there is one user left */
    hal_buffer_unref(c);
    assert_null(rt_shared_find(&first, NULL));
    assert_null(rt_shared_find(&second, NULL));
}

/* Constants that nothing was computed of have recipes of their own. */
static void test_own_recipes(void **state)
{
    (void)state;
    struct rt_recipe of_a, of_b;
    struct hal_buffer *a = put(NULL, make(10, 0, 1));
    struct hal_buffer *b = put(NULL, make(10, 0, 2));
    assert_true(rt_shared_recipe(a, &of_a) && rt_shared_recipe(b, &of_b));
    assert_memory_not_equal(&of_a, &of_b, sizeof(of_a));
    hal_buffer_unref(a);
    hal_buffer_unref(b);
}

/* What is computed of a constant with no known place has no recipe, nor what is computed of that.
 */
static void test_recipes_need_places(void **state)
{
    (void)state;
    float numbers[4] = {0};
    struct rt_value_recipe recipes[16] = {0};
    struct fixture storage = {.device = device}, *f = &storage;
    graph_begin(f);
    graph_use_numbers(numbers, 4, 4);
    uint32_t constant = CONSTANT(0, 4);
    uint32_t first = apply(f, "neg", (const uint32_t[]){constant}, 1);
    uint32_t second = apply(f, "neg", (const uint32_t[]){first}, 1);
    assert_true(f->graph.value_count <= 16);
    rt_recipes_find(&f->graph, device, recipes);
    assert_false(recipes[first].is_known);
    assert_false(recipes[second].is_known);
    rt_graph_fini(&f->graph);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define TURNS 500
#define KINDS 5

/* Loads and unloads: whatever comes back has the right bytes. */
static void *run_thread(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct hal_buffer *held[KINDS] = {NULL};
    for (uint32_t i = 0; i < TURNS; i++) {
        uint8_t kind = (uint8_t)(rand_r(&seed) % KINDS);
        const struct rt_recipe recipe = {{kind + 100u, 0, 0, 1}};
        if (held[kind]) {
            hal_buffer_unref(held[kind]);
            held[kind] = NULL;
            continue;
        }
        held[kind] = rt_shared_find(&recipe, NULL);
        if (!held[kind]) {
            held[kind] = put(&recipe, make(BYTES, 7, kind));
        }
        assert_int_equal(((uint8_t *)hal_buffer_map(held[kind]))[7], kind);
    }
    for (uint32_t i = 0; i < KINDS; i++) {
        hal_buffer_unref(held[i]);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, (void *)(i + 1)), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const struct rt_recipe recipe = {{kind + 100u, 0, 0, 1}};
        assert_null(rt_shared_find(&recipe, NULL));
    }
}

/* ---- programs: tests/models/weights ---------------------------------------------------------- */

static struct rt_program *load(const char *name)
{
    char model[64], data[1024];
    const char *top = getenv("top_srcdir"), *paths[] = {data};
    bool is_external = strcmp(name, "base") == 0 || strcmp(name, "adapter") == 0;
    const struct rt_load_options options = {
        .device = device, .data_paths = paths, .data_count = is_external ? 1 : 0};
    snprintf(data, sizeof(data), "%s/tests/models/weights/foundation.ptd", top ? top : ".");
    snprintf(model, sizeof(model), "weights/%s", name);
    return load_model(model, &options);
}

/* The memory of constants grows by |more| of each 100 bytes of |of| at most. */
static void expect_growth(uint64_t before, uint64_t of, unsigned more)
{
    assert_true(rt_held_total() >= before && (rt_held_total() - before) * 100 <= of * more);
}

static void test_two_methods(void **state)
{
    (void)state;
    struct rt_program *one = load("one");
    uint64_t bytes = rt_held_total();
    assert_true(bytes > 2 * 64 * 64 * sizeof(float));
    assert_int_equal(rt_program_held(one).own, bytes);
    rt_program_unref(one);
    assert_int_equal(rt_held_total(), 0);
    struct rt_program *two = load("two");
    expect_growth(0, bytes, 105);
    assert_int_equal(rt_program_held(two).own, rt_held_total());
    rt_program_unref(two);
    assert_int_equal(rt_held_total(), 0);
}

/* A data file is mapped once; an adapter adds its own weights. */
static void test_two_programs(void **state)
{
    (void)state;
    struct rt_program *base = load("base");
    uint64_t bytes = rt_held_total();
    struct rt_program *adapter = load("adapter");
    struct rt_held_bytes held = rt_program_held(adapter);
    assert_true(held.own > 0 && held.shared > 0 && held.shared <= bytes);
    assert_int_equal(rt_held_total(), bytes + held.own);
    expect_growth(bytes, held.own, 110);
    rt_program_unref(base); /* what the adapter needs stays */
    assert_int_equal(rt_held_total(), held.own + held.shared);
    assert_int_equal(rt_program_held(adapter).own, held.own + held.shared);
    base = load("base");
    assert_int_equal(rt_held_total(), bytes + held.own);
    rt_program_unref(adapter);
    assert_int_equal(rt_held_total(), bytes);
    rt_program_unref(base);
}

/* The same weights in another file are found by their content. */
static void test_copies(void **state)
{
    (void)state;
    struct rt_program *base = load("base");
    uint64_t bytes = rt_held_total();
    struct rt_program *copy = load("copy"), *again = load("copy");
    expect_growth(bytes, bytes, 5);
    rt_program_unref(base);
    rt_program_unref(copy);
    assert_int_equal(rt_program_held(again).shared, 0);
    rt_program_unref(again);
    assert_int_equal(rt_held_total(), 0);
}

static void *load_in_thread(void *arg)
{
    for (uint32_t i = 0; i < 20; i++) {
        rt_program_unref(load(arg));
    }
    return NULL;
}

static void test_loads_of_threads(void **state)
{
    static char names[][8] = {"base", "adapter", "copy", "two"};
    pthread_t threads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, load_in_thread, names[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(rt_held_total(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_bytes),      cmocka_unit_test(test_one_byte_differs),
        cmocka_unit_test(test_recipes),          cmocka_unit_test(test_own_recipes),
        cmocka_unit_test(test_threads),          cmocka_unit_test(test_two_methods),
        cmocka_unit_test(test_two_programs),     cmocka_unit_test(test_copies),
        cmocka_unit_test(test_loads_of_threads), cmocka_unit_test(test_recipes_need_places),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
