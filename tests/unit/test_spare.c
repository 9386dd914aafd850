/* SPDX-License-Identifier: MIT */
/* An object is taken once, whoever takes it and puts it back. */
#include "config.h"

#include "tests/unit/unit.h"

#include <pthread.h>

#include "base/spare.h"

#define THREADS 4
#define TURNS 20000

static struct spare spare;

static void one_waits(void **state)
{
    (void)state;
    int first, second;
    assert_null(spare_take(&spare));
    assert_null(spare_put(&spare, &first));
    assert_ptr_equal(spare_put(&spare, &second), &first);
    assert_ptr_equal(spare_take(&spare), &second);
    assert_null(spare_take(&spare));
}

/* An object with a count that only its owner changes. */
struct object {
    uint64_t turns;
};

/* Begins with an object; takes another one where it can, so that objects go from thread to thread.
 * Returns the one that it has at the end, or NULL. */
static void *take_turns(void *arg)
{
    struct object *mine = arg;
    for (int i = 0; i < TURNS; i++) {
        mine->turns++;
        struct object *other = spare_put(&spare, mine);
        while (!other && !(other = spare_take(&spare))) {
            if (i == TURNS - 1) {
                return NULL;
            }
        }
        mine = other;
    }
    return mine;
}

/* All objects are there at the end, each once, and no turn is lost. A thread without an object
 * waits for one, which comes as long as another thread has turns left. */
static void none_is_lost_or_doubled(void **state)
{
    (void)state;
    struct object objects[THREADS] = {{0}}, *left[THREADS + 1] = {NULL};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &objects[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *mine;
        assert_int_equal(pthread_join(threads[i], &mine), 0);
        left[i] = mine;
    }
    left[THREADS] = spare_take(&spare);
    uint64_t turns = 0;
    int count = 0;
    for (int i = 0; i < THREADS; i++) {
        turns += objects[i].turns;
        for (int j = 0; j <= THREADS; j++) {
            count += left[j] == &objects[i];
        }
    }
    assert_int_equal(turns, THREADS * TURNS);
    assert_int_equal(count, THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waits),
        cmocka_unit_test(none_is_lost_or_doubled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
