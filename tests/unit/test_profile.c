/* SPDX-License-Identifier: MIT */
/* Profiles of calls: every command that runs is in a row, under the right operator. */
#include "config.h"

#include "runtime/call/profile.h"

#include <string.h>

#include "base/check.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define SPANS 10000
#define INPUT_NUMEL_MAX (360 * 64)

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct rt_profile *profile;
    struct error err;
    const struct rt_profile_row *rows;
    uint32_t count;
};

static void open_world(struct world *w, const char *model)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    w->program = load_model(model, &(struct rt_load_options){.device = w->device});
    w->method = rt_program_default_method(w->program);
    assert_ok(w->err, rt_profile_new(w->method, SPANS, &w->profile, &w->err));
}

/* The profile is freed last: it keeps the program that its rows refer to. */
static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    rt_profile_free(w->profile);
    close_two_workers(w->device, w->pool);
}

/* Makes a call with |rows| rows of ones; 0: as many rows as in the file. */
static void call(struct world *w, int64_t rows, bool is_measured)
{
    static const float ones[INPUT_NUMEL_MAX] = {1, 1, 1, 1};
    struct input inputs[4];
    uint32_t count = rt_method_input_count(w->method);
    must(count <= 4);
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = (struct input){DT_F32, rt_method_input(w->method, i)->shape, ones};
        inputs[i].shape.dims[0] = rows ? rows : inputs[i].shape.dims[0];
        must(shape_numel(&inputs[i].shape) <= INPUT_NUMEL_MAX);
    }
    struct rt_invocation *invocation = begin_call(w->method, w->pool, NULL, inputs, count);
    if (is_measured) {
        rt_invocation_profile(invocation, w->profile);
    }
    assert_ok(w->err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    rt_invocation_free(invocation);
}

static void read_rows(struct world *w)
{
    assert_ok(w->err, rt_profile_read(w->profile, &w->rows, &w->count, &w->err));
}

static void rows_are_operators_in_order(void **state)
{
    static const char *const ops[] = {"gemm", "gemm", "gemm", "softmax"};
    struct world w;
    (void)state;
    open_world(&w, "mlp");
    call(&w, 4, true);
    call(&w, 4, true);
    read_rows(&w);
    assert_int_equal(w.count, 4);
    for (uint32_t i = 0; i < w.count; i++) {
        assert_string_equal(w.rows[i].op, ops[i]);
        assert_int_equal(w.rows[i].commands, 2);
        assert_true(w.rows[i].bytes > 0);
        assert_int_equal(w.rows[i].block, 0);
        assert_string_equal(w.rows[i].source, "");
    }
    assert_true(w.rows[0].macs == 2 * 4 * 12 * 24);
    assert_true(w.rows[3].macs == 0);
    assert_string_equal(w.rows[0].kernel, "gemm_f32");
    close_world(&w);
}

/* Plans for other sizes have the same nodes; calls that are not measured do not count. */
static void sizes_share_rows(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "mlp");
    call(&w, 4, true);
    read_rows(&w);
    call(&w, 32, false);
    call(&w, 32, true);
    read_rows(&w);
    assert_int_equal(w.count, 4);
    assert_int_equal(w.rows[0].commands, 2);
    assert_true(w.rows[0].macs == (4 + 32) * 12 * 24);
    close_world(&w);
}

static void times_are_those_of_the_spans(void **state)
{
    struct world w;
    uint64_t sum = 0, spans_sum = 0;
    size_t count;
    (void)state;
    open_world(&w, "digits");
    call(&w, 0, true);
    read_rows(&w);
    const struct hal_span *spans = rt_profile_spans(w.profile, &count);
    assert_true(count >= w.count);
    for (size_t i = 0; i < count; i++) {
        uint32_t row = rt_profile_row_of(w.profile, &spans[i]);
        assert_true(row < w.count);
        spans_sum += spans[i].end_ns - spans[i].begin_ns;
    }
    for (uint32_t i = 0; i < w.count; i++) {
        sum += w.rows[i].busy_ns;
    }
    assert_int_equal(sum, spans_sum);
    assert_int_equal(rt_profile_lost(w.profile), 0);
    close_world(&w);
}

static void rows_name_their_source(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "traced");
    call(&w, 0, true);
    read_rows(&w);
    assert_int_equal(w.count, 3);
    assert_string_equal(w.rows[0].source, "net.py:8: return torch.relu(self.lin(x))");
    assert_string_equal(w.rows[2].op, "softmax");
    close_world(&w);
}

/* Seven turns of two loops: the block of each runs seven times. */
static void loops_count_each_turn(void **state)
{
    struct world w;
    bool has_chain = false;
    (void)state;
    open_world(&w, "loops");
    call(&w, 0, true);
    read_rows(&w);
    for (uint32_t i = 0; i < w.count; i++) {
        if (strcmp(w.rows[i].op, "chain") == 0) {
            assert_int_equal(w.rows[i].commands, 7);
            assert_true(w.rows[i].block == 1 || w.rows[i].block == 3);
            has_chain = true;
        }
    }
    assert_true(has_chain);
    close_world(&w);
}

static void without_calls_there_are_no_rows(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "mlp");
    read_rows(&w);
    assert_int_equal(w.count, 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_operators_in_order),
        cmocka_unit_test(sizes_share_rows),
        cmocka_unit_test(times_are_those_of_the_spans),
        cmocka_unit_test(rows_name_their_source),
        cmocka_unit_test(loops_count_each_turn),
        cmocka_unit_test(without_calls_there_are_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
