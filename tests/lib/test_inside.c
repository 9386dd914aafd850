/* SPDX-License-Identifier: MIT */
/* What the library says of programs beyond their results: shapes before a call, intermediate
 * values, profiles, devices. */
#include "config.h"

#include "tests/lib/support.h"

#include <stdio.h>
#include <stdlib.h>

#define PROFILED 5

/* ---- shapes ---------------------------------------------------------------------------------- */

static void shapes_are_known_before_a_call(void **state)
{
    struct pted_program *program = load("digits.pte");
    const struct pted_method *method = find(program, NULL);
    struct pted_shape image = {4, {7, 1, 8, 8}}, wrong = {4, {361, 1, 8, 8}}, flat = {17, {1}};
    const struct pted_shape *inputs[] = {&image};
    struct pted_output_shape output;
    (void)state;
    assert_ok(pted_method_output_shapes(method, inputs, &output, &err));
    assert_int_equal(output.shape.rank, 2);
    assert_int_equal(output.shape.dims[0], 7);
    assert_int_equal(output.shape.dims[1], 10);
    assert_int_equal(output.bytes, 7 * 10 * sizeof(float));
    assert_int_equal(output.open_dims, 0);
    inputs[0] = &wrong;
    assert_fails(pted_method_output_shapes(method, inputs, &output, &err), PTED_INVALID, "361");
    inputs[0] = &flat;
    assert_fails(pted_method_output_shapes(method, inputs, &output, &err), PTED_INVALID,
                 "input 'input_0': 17 dims");
    inputs[0] = NULL;
    assert_fails(pted_method_output_shapes(method, inputs, &output, &err), PTED_INVALID, "input_0");
    pted_program_free(program);
}

static void dims_may_depend_on_data(void **state)
{
    struct pted_program *program = load("found.pte");
    const struct pted_shape a = {2, {4, 5}}, b = {2, {2, 3}}, *inputs[] = {&a, &b};
    struct pted_output_shape outputs[5];
    (void)state;
    assert_ok(pted_method_output_shapes(find(program, NULL), inputs, outputs, &err));
    assert_int_equal(outputs[0].shape.dims[0], 20);
    assert_int_equal(outputs[0].open_dims, 1);
    assert_int_equal(outputs[1].open_dims, 1);
    assert_int_equal(outputs[2].shape.rank, 0); /* an int */
    assert_int_equal(outputs[2].bytes, 0);
    assert_int_equal(outputs[3].shape.dims[0], 2);
    assert_int_equal(outputs[3].open_dims, 0);
    pted_program_free(program);
}

static void shapes_can_be_chosen(void **state)
{
    struct pted_program *program = load("digits.pte");
    const struct pted_method *method = find(program, NULL);
    struct pted_shape shape = {0}, given = {4, {3, 1, 8, 8}}, wrong = {1, {3}};
    const struct pted_shape *list[] = {&given};
    (void)state;
    assert_ok(pted_method_example_shapes(method, NULL, &shape, &err));
    assert_int_equal(shape.rank, 4);
    assert_int_equal(shape.dims[0], 1);
    assert_int_equal(shape.dims[2], 8);
    assert_ok(pted_method_example_shapes(method, list, &shape, &err));
    assert_int_equal(shape.dims[0], 3);
    list[0] = &wrong;
    assert_int_equal(pted_method_example_shapes(method, list, &shape, &err), PTED_INVALID);
    pted_program_free(program);
}

/* ---- intermediate values --------------------------------------------------------------------- */

static struct pted_program *load_with(const char *model, pted_keep_f *keep, void *arg)
{
    struct pted_load_options options = PTED_LOAD_OPTIONS_INIT;
    struct pted_program *program;
    char path[PATH_BYTES];
    options.keep = keep;
    options.keep_arg = arg;
    assert_ok(pted_program_load(device, path_of(model, path), &options, &program, &err));
    return program;
}

/* Keeps the first value of "total" of ledger, the product. */
static bool wants_product(const struct pted_value *value, void *arg)
{
    int *asked = arg;
    assert_non_null(value->origin);
    assert_true(strlen(value->type) > 0);
    ++*asked;
    return strcmp(value->method, "total") == 0 && strncmp(value->name, "mul.", 4) == 0;
}

static void values_become_outputs(void **state)
{
    int asked = 0;
    struct pted_program *program = load_with("ledger.pte", wants_product, &asked);
    const struct pted_method *method = find(program, "total");
    struct pted_call *call = new_call(method);
    struct pted_tensor scale = tensor_of(ones, sizeof(float), PTED_FLOAT32, 0, NULL), product;
    (void)state;
    assert_true(asked > 3);
    assert_int_equal(pted_method_kept_count(find(program, "enter")), 0);
    assert_int_equal(pted_method_kept_count(method), 1);
    assert_int_equal(pted_method_output_count(method), 2);
    assert_memory_equal(pted_info_name(pted_method_output(method, 1)), "mul.", 4);
    assert_ok(pted_call_copy_input(call, 0, &scale, &err));
    assert_ok(pted_call_run(call, &err));
    assert_ok(pted_call_output(call, 1, &product, &err));
    assert_int_equal(product.rank, 2);
    assert_int_equal(product.dims[0], 4);
    assert_int_equal(product.bytes, 12 * sizeof(float));
    assert_true(output(call, 1)[0] == 0);
    pted_call_free(call);
    pted_program_free(program);
}

static bool wants_all(const struct pted_value *value, void *arg)
{
    (void)value;
    (void)arg;
    return true;
}

/* branches: one of two ways is taken, and the values of the other one are absent. */
static void values_of_other_branches_are_absent(void **state)
{
    struct pted_program *program = load_with("branches.pte", wants_all, NULL);
    const struct pted_method *method = find(program, NULL);
    struct pted_call *call = new_call(method);
    static const int64_t dims[] = {3, 4};
    float numbers[12] = {1};
    bool flag = true;
    struct pted_tensor x = tensor_of(numbers, sizeof(numbers), PTED_FLOAT32, 2, dims);
    struct pted_tensor way = tensor_of(&flag, sizeof(flag), PTED_BOOL, 0, NULL), value;
    size_t count = pted_method_output_count(method), present = 0, absent = 0;
    (void)state;
    assert_ok(pted_call_copy_input(call, 0, &x, &err));
    assert_ok(pted_call_copy_input(call, 1, &way, &err));
    assert_ok(pted_call_run(call, &err));
    for (size_t i = count - pted_method_kept_count(method); i < count; i++) {
        assert_ok(pted_call_output(call, i, &value, &err));
        *(value.data ? &present : &absent) += 1;
    }
    assert_true(present > 0 && absent > 0);
    pted_call_free(call);
    pted_program_free(program);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void fill_mobile(struct pted_call *call)
{
    static const int64_t dims[] = {1, 3, 32, 32};
    struct pted_tensor image = {.dtype = PTED_FLOAT32, .rank = 4, .dims = dims};
    assert_ok(pted_call_allocate_input(call, 0, &image, &err));
    memset(image.data, 0, image.bytes);
}

static void check_rows(const struct pted_profile *profile)
{
    uint64_t busy_ns = 0;
    double macs = 0;
    for (size_t i = 0; i < pted_profile_row_count(profile); i++) {
        const struct pted_profile_row *row = pted_profile_row(profile, i);
        assert_true(row->operation && row->layer && row->source && row->kernel);
        assert_int_equal(row->dispatches % PROFILED, 0);
        busy_ns += row->busy_ns;
        macs += row->macs;
    }
    assert_true(busy_ns > 0 && macs > 0);
    assert_null(pted_profile_row(profile, pted_profile_row_count(profile)));
}

static void check_spans(const struct pted_profile *profile)
{
    struct pted_profile_span span;
    size_t count = pted_profile_span_count(profile);
    assert_true(count >= PROFILED);
    for (size_t i = 0; i < count; i++) {
        assert_true(pted_profile_span(profile, i, &span));
        assert_true(span.row < pted_profile_row_count(profile));
        assert_true(span.begin_ns <= span.end_ns && span.thread <= 2);
    }
    assert_false(pted_profile_span(profile, count, &span));
    assert_int_equal(pted_profile_lost(profile), 0);
}

static void calls_are_profiled(void **state)
{
    struct pted_program *program = load("mobile.pte");
    const struct pted_method *method = find(program, NULL);
    struct pted_call *call = new_call(method);
    struct pted_profile *profile;
    (void)state;
    assert_ok(pted_profile_new(method, 1 << 16, &profile, &err));
    assert_int_equal(pted_profile_row_count(profile), 0);
    assert_ok(pted_profile_read(profile, &err));
    for (int i = 0; i < PROFILED; i++) {
        assert_ok(pted_call_reset(call, &err));
        fill_mobile(call);
        assert_ok(pted_call_set_profile(call, profile, &err));
        assert_ok(pted_call_run(call, &err));
        assert_ok(pted_profile_read(profile, &err));
    }
    check_rows(profile);
    check_spans(profile);
    assert_ok(pted_call_reset(call, &err)); /* which takes the profile away */
    fill_mobile(call);
    assert_ok(pted_call_run(call, &err));
    assert_ok(pted_profile_read(profile, &err));
    check_rows(profile);
    pted_profile_free(profile);
    pted_call_free(call);
    pted_program_free(program);
}

static void profiles_are_of_one_call_at_a_time(void **state)
{
    struct pted_program *program = load("add.pte"), *other = load("digits.pte");
    const struct pted_method *method = find(program, NULL);
    struct pted_call *a = new_call(method), *b = new_call(method), *c = new_call(find(other, NULL));
    struct pted_profile *profile, *full;
    (void)state;
    assert_fails(pted_profile_new(method, 0, &profile, &err), PTED_INVALID, "0 spans, expected 1");
    assert_null(profile);
    assert_fails(pted_profile_new(method, PTED_PROFILE_SPANS_MAX + 1, &profile, &err), PTED_INVALID,
                 "16777217 spans");
    assert_ok(pted_profile_new(method, 100, &profile, &err));
    assert_ok(pted_profile_new(method, 1, &full, &err));
    assert_fails(pted_call_set_profile(c, profile, &err), PTED_INVALID, "of method 'forward'");
    assert_ok(pted_call_set_profile(a, profile, &err));
    assert_ok(pted_call_set_profile(a, profile, &err));
    assert_ok(pted_call_set_profile(b, profile, &err)); /* |a| has it no more */
    fill_add(a);
    fill_add(b);
    assert_ok(pted_call_run(a, &err));
    assert_ok(pted_profile_read(profile, &err));
    assert_int_equal(pted_profile_row_count(profile), 0);
    assert_ok(pted_call_run(b, &err));
    assert_fails(pted_call_set_profile(b, profile, &err), PTED_INVALID, "has been run");
    assert_ok(pted_profile_read(profile, &err));
    assert_int_equal(pted_profile_row_count(profile), 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(pted_call_reset(a, &err));
        fill_add(a);
        assert_ok(pted_call_set_profile(a, full, &err));
        assert_ok(pted_call_run(a, &err));
    }
    assert_true(pted_profile_lost(full) > 0);
    pted_profile_free(profile); /* before the call that has it */
    pted_program_free(program);
    pted_call_free(b);
    pted_call_free(a);
    assert_ok(pted_profile_read(full, &err)); /* after it */
    pted_profile_free(full);
    pted_call_free(c);
    pted_program_free(other);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void a_device_says_what_it_is(void **state)
{
    struct pted_peaks peaks;
    (void)state;
    assert_string_equal(pted_device_name(device), "cpu");
    assert_true(pted_device_is_cpu(device));
    assert_int_equal(pted_device_workers(device), 2);
    assert_ok(pted_device_measure_peaks(device, &peaks, &err));
    assert_true(peaks.float32_macs > 0 && peaks.int8_macs > 0 && peaks.read_bytes > 0);
}

/* ---- placed outputs -------------------------------------------------------------------------- */

static struct pted_call *ask_ring(const struct pted_program *program, struct pted_state *state)
{
    struct pted_call *call = new_call(find(program, NULL));
    static const int64_t dims[] = {1, 1};
    int64_t number = 0;
    struct pted_tensor token = tensor_of(&number, sizeof(number), PTED_INT64, 2, dims);
    struct pted_tensor at = tensor_of(&number, sizeof(number), PTED_INT64, 1, dims);
    assert_ok(pted_call_copy_input(call, 0, &token, &err));
    assert_ok(pted_call_copy_input(call, 1, &at, &err));
    assert_ok(pted_call_set_state(call, state, &err));
    return call;
}

/* An output in the caller's memory takes none of the device: of a call with a state, too. */
static void placed_outputs_take_no_memory(void **unused)
{
    static _Alignas(64) float logits[2][256];
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_device *small;
    struct pted_program *program;
    struct pted_state *state;
    char path[PATH_BYTES];
    (void)unused;
    options.workers = 1;
    options.memory_bytes = 1536; /* less than a call and its output of 1 KiB take */
    assert_ok(pted_device_open(&options, &small, &err));
    assert_ok(pted_program_load(small, path_of("ring.pte", path), NULL, &program, &err));
    assert_ok(pted_state_new(program, &state, &err));
    struct pted_call *a = ask_ring(program, state);
    assert_fails(pted_call_run(a, &err), PTED_TOO_LARGE, "the memory for requests has");
    assert_ok(pted_call_place_output(a, 0, logits[0], 64, &err));
    assert_int_not_equal(pted_call_run(a, &err), PTED_OK);
    assert_ok(pted_call_place_output(a, 0, logits[0], sizeof(logits[0]), &err));
    assert_ok(pted_call_run(a, &err));
    assert_ptr_equal(output(a, 0), logits[0]);
    pted_call_free(a);
    assert_ok(pted_state_reset(state, &err));
    a = ask_ring(program, state);
    assert_ok(pted_call_place_output(a, 0, logits[1], sizeof(logits[1]), &err));
    assert_ok(pted_call_run(a, &err));
    assert_memory_equal(logits[0], logits[1], sizeof(logits[0]));
    pted_call_free(a);
    pted_state_free(state);
    pted_program_free(program);
    pted_device_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_known_before_a_call),
        cmocka_unit_test(dims_may_depend_on_data),
        cmocka_unit_test(shapes_can_be_chosen),
        cmocka_unit_test(values_become_outputs),
        cmocka_unit_test(values_of_other_branches_are_absent),
        cmocka_unit_test(calls_are_profiled),
        cmocka_unit_test(profiles_are_of_one_call_at_a_time),
        cmocka_unit_test(a_device_says_what_it_is),
        cmocka_unit_test(placed_outputs_take_no_memory),
    };
    return cmocka_run_group_tests(tests, open_shared_device, close_shared_device);
}
