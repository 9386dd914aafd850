/* SPDX-License-Identifier: MIT */
/* The example shapes of a call, chosen when no shape is given. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/program/example.h"

#include <stdio.h>

#include "hal/pool.h"
#include "runtime/program/results.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define INPUTS_MAX 8

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct error err;
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
}

static void close_world(struct world *w)
{
    close_two_workers(w->device, w->pool);
}

static struct rt_program *load(struct world *w, const char *model)
{
    const struct rt_load_options options = {.device = w->device};
    return load_model(model, &options);
}

static struct rt_method *method_of(struct rt_program *program, const char *name)
{
    struct rt_method *method =
        name ? rt_program_find_method(program, span_str(name)) : rt_program_default_method(program);
    assert_non_null(method);
    return method;
}

/* The chosen shapes of all tensors, such as "[1,5,6] [2,1,8]", or the reason why there are none. */
static void expect_choice(struct world *w, struct rt_method *method,
                          const struct shape *const *given, const char *expected)
{
    struct shape shapes[INPUTS_MAX];
    char got[1024] = "", one[SHAPE_TEXT_MAX];
    size_t len = 0;
    assert_true(rt_method_input_count(method) <= INPUTS_MAX);
    if (rt_example_shapes(method, given, shapes, &w->err) != ST_OK) {
        assert_string_equal(w->err.text, expected);
        return;
    }
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_method_input(method, i)->kind == RT_IO_TENSOR) {
            len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s", len ? " " : "",
                                    shape_print(&shapes[i], one));
        }
    }
    assert_string_equal(got, expected);
}

static void expect_default(struct world *w, const char *model, const char *method,
                           const char *expected)
{
    struct rt_program *program = load(w, model);
    expect_choice(w, method_of(program, method), NULL, expected);
    rt_program_unref(program);
}

static void test_batch_is_one_and_the_rest_is_the_bound(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    expect_default(&w, "residual", NULL, "[1,3,33,33]"); /* images: declared dynamic in all dims */
    expect_default(&w, "digits", NULL, "[1,1,8,8]");
    expect_default(&w, "deep", NULL, "[1,4]");
    expect_default(&w, "methods", "decode", "[1,4] [1]");
    expect_default(&w, "add", NULL, "[2,3] [2,3]"); /* nothing varies */
    close_world(&w);
}

static void test_vectors_have_no_batch(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    expect_default(&w, "sizes", NULL, "[9] [11]");
    expect_default(&w, "scroll", NULL, "[4] [1]");
    close_world(&w);
}

static void test_a_step_of_a_sequence_takes_one_token(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    expect_default(&w, "shapes", "step", "[1,1]");
    expect_default(&w, "vk_tokens", NULL, "[1,6]"); /* without state: the longest text */
    close_world(&w);
}

/* "memory" has the batch as dim 1, and dim 0 must be 2. */
static void test_requirements_hold(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    expect_default(&w, "shapes", "recall", "[1,5,6] [2,1,8]");
    expect_default(&w, "vk_caches", NULL, "[1,10,12] [1]");
    expect_default(&w, "view_ops", NULL, "[1,7,6]");
    close_world(&w);
}

static void test_given_shapes_lead(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    struct rt_program *program = load(&w, "shapes");
    struct rt_method *recall = method_of(program, "recall");
    const struct shape x = {3, {4, 5, 6}}, memory = {3, {2, 3, 8}}, odd = {3, {4, 5, 5}};
    const struct shape *given[2] = {&x, NULL};
    expect_choice(&w, recall, given, "[4,5,6] [2,4,8]");
    given[0] = NULL, given[1] = &memory;
    expect_choice(&w, recall, given, "[3,5,6] [2,3,8]");
    given[0] = &x;
    expect_choice(&w, recall, given,
                  "elements of a view (must equal the tensor's): got 90, expected 120; dim 0 of "
                  "input 'input_0' is 4; dim 1 of input 'input_0' is 5; dim 2 of input 'input_0' "
                  "is 6; dim 1 of input 'input_1' is 3");
    given[0] = &odd, given[1] = NULL;
    expect_choice(&w, recall, given,
                  "elements of a view (must equal the tensor's): got 180, expected 100; dim 0 of "
                  "input 'input_0' is 4; dim 1 of input 'input_0' is 5; dim 2 of input 'input_0' "
                  "is 5; dim 1 of input 'input_1' is 6");
    rt_program_unref(program);
    close_world(&w);
}

static void test_pipelines_take_the_choice_of_their_steps(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    struct rt_program *shapes = load(&w, "shapes");
    const struct rt_source recall[] = {IN(0), IN(1)}, again[] = {IN(0), IN(2)};
    const struct rt_pipeline_step steps[] = {
        {"recall", method_of(shapes, "recall"), recall, 2},
        {"again", method_of(shapes, "recall"), again, 2},
    };
    const struct rt_pipeline_desc desc = {.name = "twice", .steps = steps, .step_count = 2};
    struct rt_program *pipeline = make_pipeline(&desc);
    expect_choice(&w, method_of(pipeline, NULL), NULL, "[1,5,6] [2,1,8] [2,1,8]");
    rt_program_unref(pipeline);
    rt_program_unref(shapes);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_is_one_and_the_rest_is_the_bound),
        cmocka_unit_test(test_vectors_have_no_batch),
        cmocka_unit_test(test_a_step_of_a_sequence_takes_one_token),
        cmocka_unit_test(test_requirements_hold),
        cmocka_unit_test(test_given_shapes_lead),
        cmocka_unit_test(test_pipelines_take_the_choice_of_their_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
