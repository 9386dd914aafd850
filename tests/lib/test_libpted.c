/* SPDX-License-Identifier: MIT */
/* The library as programs see it: pted.h alone, and the shared library. */
#include "config.h"

#include "tests/lib/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX 65536
#define ROUNDS 100
#define THREADS 4
#define MANY 200

/* ---- helpers --------------------------------------------------------------------------------- */

static size_t read_file(const char *path, unsigned char bytes[FILE_BYTES_MAX])
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return len;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* A copy of a model, under a name of this process. */
static void copy_model(const char *model, char path[PATH_BYTES])
{
    static unsigned char bytes[FILE_BYTES_MAX];
    size_t len = read_file(path_of(model, path), bytes);
    snprintf(path, PATH_BYTES, "libpted-%ld.pte", (long)getpid());
    write_file(path, bytes, len);
}

static void run_add(struct pted_program *program)
{
    struct pted_call *call = new_call(find(program, NULL));
    fill_add(call);
    assert_ok(pted_call_run(call, &err));
    check_add(call);
    pted_call_free(call);
}

/* ---- describing ------------------------------------------------------------------------------ */

static void versions_and_types(void **state)
{
    char version[32];
    (void)state;
    snprintf(version, sizeof(version), "%d.%d.%d", PTED_VERSION_MAJOR, PTED_VERSION_MINOR,
             PTED_VERSION_PATCH);
    assert_string_equal(pted_version(), version);
    assert_string_equal(pted_dtype_name(PTED_BFLOAT16), "bfloat16");
    assert_string_equal(pted_dtype_name(PTED_INT8), "int8");
    assert_int_equal(pted_dtype_bytes(PTED_INT64), 8);
    assert_null(pted_dtype_name((enum pted_dtype)9)); /* complex: not in calls */
    assert_int_equal(pted_dtype_bytes((enum pted_dtype) - 1), 0);
    assert_string_equal(pted_status_text(PTED_CORRUPT), "corrupt data");
    assert_string_equal(pted_status_text(PTED_INTERNAL), "internal error");
    assert_non_null(pted_status_text((enum pted_status)99));
}

static void a_method_says_what_it_takes(void **state)
{
    struct pted_program *program = load("digits.pte");
    const struct pted_method *method = find(program, NULL);
    const struct pted_info *input = pted_method_input(method, 0);
    size_t index = 9;
    (void)state;
    assert_string_equal(pted_method_name(method), "forward");
    assert_string_equal(pted_method_signature(method), "(float32[?,1,?,?]) -> (float32[?,10])");
    assert_int_equal(pted_method_input_count(method), 1);
    assert_int_equal(pted_method_output_count(method), 1);
    assert_string_equal(pted_info_name(input), "input_0");
    assert_int_equal(pted_info_kind(input), PTED_KIND_TENSOR);
    assert_int_equal(pted_info_dtype(input), PTED_FLOAT32);
    assert_int_equal(pted_info_rank(input), 4);
    assert_int_equal(pted_info_dim(input, 0), 360);
    assert_true(pted_info_dim_varies(input, 0));
    assert_int_equal(pted_info_dim(input, 1), 1);
    assert_false(pted_info_dim_varies(input, 1));
    assert_int_equal(pted_info_dim(input, 4), 0);
    assert_null(pted_method_input(method, 1));
    assert_true(pted_method_find_input(method, "input_0", &index));
    assert_int_equal(index, 0);
    assert_true(pted_method_find_output(method, "output_0", &index));
    assert_false(pted_method_find_output(method, "input_0", &index));
    assert_int_equal(pted_program_state_bytes(program), 0);
    pted_program_free(program);
}

static void methods_are_found_by_name(void **state)
{
    struct pted_program *program = load("methods.pte");
    const struct pted_method *method;
    (void)state;
    assert_int_equal(pted_program_method_count(program), 8);
    assert_null(pted_program_method(program, 8));
    assert_string_equal(pted_method_name(pted_program_method(program, 1)), "encode");
    assert_fails(pted_program_find_method(program, NULL, &method, &err), PTED_NOT_FOUND,
                 "no method 'forward', expected a name; the methods are ");
    assert_fails(pted_program_find_method(program, "none", &method, &err), PTED_NOT_FOUND,
                 "no method 'none'; the methods are ");
    assert_null(method);
    assert_true(pted_method_is_constant(find(program, "get_width")));
    assert_false(pted_method_is_constant(find(program, "encode")));
    pted_program_free(program);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void constant_methods_have_values(void **state)
{
    struct pted_program *program = load("methods.pte");
    struct pted_call *name = new_call(find(program, "get_name"));
    struct pted_call *width = new_call(find(program, "get_width"));
    struct pted_call *scale = new_call(find(program, "get_scale"));
    struct pted_call *trained = new_call(find(program, "is_trained"));
    const char *text;
    size_t len;
    int64_t number;
    double real;
    bool flag = true;
    (void)state;
    assert_ok(pted_call_run(name, &err));
    assert_ok(pted_call_output_string(name, 0, &text, &len, &err));
    assert_int_equal(len, 14);
    assert_memory_equal(text, "autoencoder \303\251", 14);
    assert_fails(pted_call_output_int(name, 0, &number, &err), PTED_INVALID,
                 "is a string, expected an int");
    assert_ok(pted_call_run(width, &err));
    assert_ok(pted_call_output_int(width, 0, &number, &err));
    assert_int_equal(number, 10);
    assert_ok(pted_call_run(scale, &err));
    assert_ok(pted_call_output_float(scale, 0, &real, &err));
    assert_true(real == 0.1);
    assert_ok(pted_call_run(trained, &err));
    assert_ok(pted_call_output_bool(trained, 0, &flag, &err));
    assert_false(flag);
    pted_call_free(name);
    pted_call_free(width);
    pted_call_free(scale);
    pted_call_free(trained);
    pted_program_free(program);
}

static void fixed_scalars_take_one_value(void **state)
{
    struct pted_program *program = load("scalars.pte");
    const struct pted_method *method = find(program, NULL);
    struct pted_call *call = new_call(method);
    static const int64_t six[] = {6};
    float offset = 0.25f;
    struct pted_tensor x = tensor_of(digits, sizeof(digits), PTED_FLOAT32, 1, six);
    struct pted_tensor scalar = tensor_of(&offset, sizeof(offset), PTED_FLOAT32, 0, NULL);
    (void)state;
    assert_true(pted_info_is_fixed(pted_method_input(method, 1)));
    assert_ok(pted_call_copy_input(call, 0, &x, &err));
    assert_fails(pted_call_set_int(call, 1, 5, &err), PTED_INVALID, "expected 4");
    assert_ok(pted_call_set_int(call, 1, 4, &err));
    assert_fails(pted_call_set_int(call, 1, 4, &err), PTED_INVALID, "given twice");
    assert_fails(pted_call_set_bool(call, 2, true, &err), PTED_INVALID, "got a bool");
    assert_ok(pted_call_set_float(call, 2, 0.5, &err));
    assert_ok(pted_call_copy_input(call, 5, &scalar, &err));
    assert_fails(pted_call_set_string(call, 0, "x", 1, &err), PTED_INVALID, "got a string");
    assert_ok(pted_call_run(call, &err));
    assert_true(output(call, 0)[3] == 1.75f);
    pted_call_free(call);
    pted_program_free(program);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void inputs_come_in_three_ways(void **state)
{
    struct pted_program *program = load("add.pte");
    struct pted_call *call = new_call(find(program, NULL));
    float odd_memory[8] = {0};
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) { /* borrowed bytes may be misaligned */
        float *moved = (float *)(void *)((char *)odd_memory + shift);
        struct pted_tensor a = add_tensor(NULL), b = add_tensor(moved);
        memcpy(moved, ones, sizeof(ones));
        assert_ok(pted_call_allocate_input(call, 0, &a, &err));
        assert_int_equal(a.bytes, sizeof(digits));
        memcpy(a.data, digits, sizeof(digits));
        assert_ok(pted_call_borrow_input(call, 1, &b, &err));
        assert_ok(pted_call_run(call, &err));
        check_add(call);
        assert_ok(pted_call_reset(call, &err));
    }
    pted_call_free(call);
    pted_program_free(program);
}

/* A transposed and a broadcast tensor. */
static void strided(struct pted_call *call, bool is_copied)
{
    static const int64_t turned[] = {1, 2}, same[] = {0, 0};
    float columns[] = {0, 3, 1, 4, 2, 5}, one = 1;
    struct pted_tensor a = add_tensor(columns), b = add_tensor(&one);
    a.strides = turned;
    b.strides = same;
    b.bytes = sizeof(one);
    if (is_copied) {
        assert_ok(pted_call_copy_input(call, 0, &a, &err));
        assert_ok(pted_call_copy_input(call, 1, &b, &err));
        memset(columns, 0, sizeof(columns));
        one = 0;
    } else {
        assert_ok(pted_call_borrow_input(call, 0, &a, &err));
        assert_ok(pted_call_borrow_input(call, 1, &b, &err));
    }
    assert_ok(pted_call_run(call, &err));
    check_add(call);
    assert_ok(pted_call_reset(call, &err));
}

static void inputs_may_have_strides(void **state)
{
    struct pted_program *program = load("add.pte");
    struct pted_call *call = new_call(find(program, NULL));
    (void)state;
    strided(call, true);
    strided(call, false);
    pted_call_free(call);
    pted_program_free(program);
}

static void outputs_go_where_the_caller_wants(void **state)
{
    struct pted_program *program = load("add.pte");
    struct pted_call *call = new_call(find(program, NULL));
    _Alignas(64) float sums[16] = {0};
    (void)state;
    assert_fails(pted_call_place_output(call, 0, &sums[1], sizeof(sums), &err), PTED_INVALID,
                 "expected a multiple of 64");
    assert_fails(pted_call_place_output(call, 1, sums, sizeof(sums), &err), PTED_INVALID,
                 "output 1");
    fill_add(call);
    assert_ok(pted_call_place_output(call, 0, sums, 8, &err));
    assert_int_not_equal(pted_call_run(call, &err), PTED_OK);
    assert_ok(pted_call_place_output(call, 0, sums, sizeof(sums), &err));
    assert_ok(pted_call_run(call, &err));
    assert_ptr_equal(output(call, 0), sums);
    check_add(call);
    assert_ok(pted_call_reset(call, &err));
    fill_add(call);
    assert_ok(pted_call_run(call, &err));
    assert_ptr_not_equal(output(call, 0), sums);
    pted_call_free(call);
    pted_program_free(program);
}

static void wrong_inputs_are_refused(void **state)
{
    static const int64_t three[] = {3, 3}, less[] = {-1, 3}, huge[] = {INT64_MAX, INT64_MAX};
    static const int64_t far[] = {INT64_MAX, 1}, back[] = {-3, 1};
    struct pted_program *program = load("add.pte");
    struct pted_call *call = new_call(find(program, NULL));
    struct pted_tensor good = add_tensor(digits), bad = good;
    (void)state;
    assert_fails(pted_call_copy_input(call, 2, &good, &err), PTED_INVALID,
                 "input 2: method 'forward' has 2 inputs");
    bad.dtype = PTED_INT32;
    assert_fails(pted_call_copy_input(call, 0, &bad, &err), PTED_INVALID,
                 "input 'input_0': expected float32[2,3], got ");
    bad.dtype = (enum pted_dtype)1000;
    assert_fails(pted_call_borrow_input(call, 0, &bad, &err), PTED_INVALID, "number 1000");
    bad = good;
    bad.dims = three;
    bad.bytes = 36;
    assert_fails(pted_call_allocate_input(call, 0, &bad, &err), PTED_INVALID, "float32[3,3]");
    bad.dims = less;
    assert_int_not_equal(pted_call_copy_input(call, 0, &bad, &err), PTED_OK);
    bad.dims = huge;
    assert_int_not_equal(pted_call_copy_input(call, 0, &bad, &err), PTED_OK);
    bad = good;
    bad.bytes = 23;
    assert_fails(pted_call_copy_input(call, 0, &bad, &err), PTED_INVALID,
                 "input 'input_0': has 23 bytes, expected at least 24");
    assert_fails(pted_call_borrow_input(call, 0, &bad, &err), PTED_INVALID, "has 23 bytes");
    bad = good;
    bad.strides = far;
    assert_fails(pted_call_copy_input(call, 0, &bad, &err), PTED_INVALID, "too far");
    bad.strides = back;
    assert_fails(pted_call_borrow_input(call, 0, &bad, &err), PTED_INVALID, "negative");
    bad = good;
    bad.rank = 17;
    assert_fails(pted_call_copy_input(call, 0, &bad, &err), PTED_INVALID, "17 dims");
    assert_fails(pted_call_set_int(call, 0, 1, &err), PTED_INVALID, "got an int");
    assert_fails(pted_call_run(call, &err), PTED_INVALID, "input 'input_0' is missing");
    fill_add(call);
    assert_fails(pted_call_copy_input(call, 0, &good, &err), PTED_INVALID, "given twice");
    assert_ok(pted_call_run(call, NULL));
    check_add(call);
    pted_call_free(call);
    pted_program_free(program);
}

static void phases_are_checked(void **state)
{
    struct pted_program *program = load("add.pte");
    struct pted_call *call = new_call(find(program, NULL));
    struct pted_tensor tensor = add_tensor(digits);
    (void)state;
    assert_fails(pted_call_wait(call, &err), PTED_INVALID, "has not been submitted");
    assert_fails(pted_call_output(call, 0, &tensor, &err), PTED_INVALID, "has not ended");
    fill_add(call);
    assert_ok(pted_call_run(call, &err));
    assert_ok(pted_call_wait(call, &err));
    assert_fails(pted_call_run(call, &err), PTED_INVALID, "reset it");
    assert_fails(pted_call_copy_input(call, 0, &tensor, &err), PTED_INVALID, "reset it");
    assert_fails(pted_call_output(call, 1, &tensor, &err), PTED_INVALID, "has 1 outputs");
    pted_call_free(call);
    pted_program_free(program);
}

static void an_index_in_the_data_is_named(void **state)
{
    static const int64_t table_dims[] = {5, 3}, rows_dims[] = {3}, places_dims[] = {1, 3};
    struct pted_program *program = load("faults.pte");
    struct pted_call *call = new_call(find(program, NULL));
    float table[15] = {0};
    int64_t rows[] = {4, 5, 3}, places[] = {0, 4, 2};
    struct pted_shape element = {0};
    size_t input = 9;
    struct pted_tensor a = tensor_of(table, sizeof(table), PTED_FLOAT32, 2, table_dims);
    struct pted_tensor b = tensor_of(rows, sizeof(rows), PTED_INT64, 1, rows_dims);
    struct pted_tensor c = tensor_of(places, sizeof(places), PTED_INT64, 2, places_dims);
    (void)state;
    assert_ok(pted_call_borrow_input(call, 0, &a, &err));
    assert_ok(pted_call_borrow_input(call, 1, &b, &err));
    assert_ok(pted_call_borrow_input(call, 2, &c, &err));
    assert_false(pted_call_has_ended(call));
    assert_false(pted_call_culprit(call, &input, &element));
    assert_fails(pted_call_run(call, &err), PTED_INVALID, "input_1[1]: ");
    assert_fails(pted_call_output(call, 0, &a, &err), PTED_INVALID, "has failed");
    assert_true(pted_call_has_ended(call));
    assert_true(pted_call_culprit(call, &input, &element));
    assert_int_equal(input, 1);
    assert_int_equal(element.rank, 1);
    assert_int_equal(element.dims[0], 1);
    assert_ok(pted_call_reset(call, &err));
    assert_false(pted_call_has_ended(call));
    assert_false(pted_call_culprit(call, &input, &element));
    pted_call_free(call);
    pted_program_free(program);
}

/* ---- states: ledger, rows float32[4,3] ------------------------------------------------------- */

/* Writes |value| to row |at| of the ledger. */
static struct pted_call *enter(const struct pted_program *program, struct pted_state *ledger,
                               int64_t at, float value)
{
    static const int64_t at_dims[] = {2}, row_dims[] = {2, 3};
    struct pted_call *call = new_call(find(program, "enter"));
    int64_t places[] = {at, at};
    float rows[] = {value, value, value, value, value, value};
    struct pted_tensor a = tensor_of(places, sizeof(places), PTED_INT64, 1, at_dims);
    struct pted_tensor x = tensor_of(rows, sizeof(rows), PTED_FLOAT32, 2, row_dims);
    assert_ok(pted_call_set_state(call, ledger, &err));
    assert_ok(pted_call_copy_input(call, 0, &a, &err));
    assert_ok(pted_call_copy_input(call, 1, &x, &err));
    return call;
}

static struct pted_call *ask_total(const struct pted_program *program, struct pted_state *ledger)
{
    struct pted_call *call = new_call(find(program, "total"));
    struct pted_tensor scale = tensor_of(ones, sizeof(float), PTED_FLOAT32, 0, NULL);
    assert_ok(pted_call_set_state(call, ledger, &err));
    assert_ok(pted_call_copy_input(call, 0, &scale, &err));
    return call;
}

static float total(const struct pted_program *program, struct pted_state *ledger)
{
    struct pted_call *call = ask_total(program, ledger);
    assert_ok(pted_call_run(call, &err));
    float sum = output(call, 0)[0];
    pted_call_free(call);
    return sum;
}

static void run(struct pted_call *call)
{
    assert_ok(pted_call_run(call, &err));
    pted_call_free(call);
}

static void states_are_apart(void **state)
{
    struct pted_program *program = load("ledger.pte"), *other = load("ledger.pte");
    struct pted_state *a, *b;
    (void)state;
    assert_true(pted_program_state_bytes(program) >= 48);
    assert_ok(pted_state_new(program, &a, &err));
    assert_ok(pted_state_new(program, &b, &err));
    run(enter(program, a, 0, 1));
    run(enter(program, a, 1, 10));
    run(enter(program, b, 0, 5));
    run(enter(program, NULL, 0, 100)); /* dropped */
    assert_true(total(program, a) == 11);
    assert_true(total(program, b) == 5);
    assert_true(total(program, NULL) == 0);
    struct pted_call *failed = enter(program, a, 7, 1); /* there is no row 7 */
    assert_fails(pted_call_run(failed, &err), PTED_INVALID, "out of range");
    pted_call_free(failed);
    assert_true(total(program, a) == 11);
    assert_true(pted_state_bytes(a) > 0);
    assert_ok(pted_state_reset(a, &err));
    assert_true(total(program, a) == 0);
    assert_true(total(program, b) == 5);
    struct pted_call *call = new_call(find(other, "total"));
    assert_fails(pted_call_set_state(call, a, &err), PTED_INVALID, "of another program");
    pted_call_free(call);
    pted_state_free(a);
    pted_state_free(b);
    pted_program_free(program);
    pted_program_free(other);
}

/* All are submitted before the first has ended; each total sees the entries before it. */
static void calls_of_a_state_run_in_order(void **state)
{
    struct pted_program *program = load("ledger.pte");
    struct pted_call *enters[ROUNDS], *totals[ROUNDS];
    struct pted_state *ledger;
    (void)state;
    assert_ok(pted_state_new(program, &ledger, &err));
    for (int i = 0; i < ROUNDS; i++) {
        enters[i] = enter(program, ledger, 2, (float)i);
        totals[i] = ask_total(program, ledger);
    }
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(pted_call_submit(enters[i], NULL, NULL, &err));
        assert_ok(pted_call_submit(totals[i], NULL, NULL, &err));
    }
    for (int i = ROUNDS - 1; i >= 0; i--) {
        assert_ok(pted_call_wait(totals[i], &err));
        assert_ok(pted_call_wait(enters[i], &err));
        assert_true(output(totals[i], 0)[1] == (float)i);
    }
    for (int i = 0; i < ROUNDS; i++) {
        pted_call_free(enters[i]);
        pted_call_free(totals[i]);
    }
    pted_state_free(ledger);
    pted_program_free(program);
}

/* Freed in flight, the first ones first: the rest goes on. */
static void waiting_calls_can_be_freed(void **state)
{
    struct pted_program *program = load("ledger.pte");
    struct pted_call *calls[ROUNDS];
    struct pted_state *ledger;
    (void)state;
    assert_ok(pted_state_new(program, &ledger, &err));
    for (int i = 0; i < ROUNDS; i++) {
        calls[i] = enter(program, ledger, i % 2 ? 7 : 2, (float)i); /* every other one fails */
        assert_ok(pted_call_submit(calls[i], NULL, NULL, &err));
    }
    for (int i = 0; i < ROUNDS - 2; i++) {
        pted_call_free(calls[i]);
    }
    assert_ok(pted_call_wait(calls[ROUNDS - 2], &err));
    assert_fails(pted_call_wait(calls[ROUNDS - 1], &err), PTED_INVALID, "out of range");
    pted_call_free(calls[ROUNDS - 2]);
    pted_call_free(calls[ROUNDS - 1]);
    assert_true(total(program, ledger) == (float)(ROUNDS - 2));
    pted_state_free(ledger);
    pted_program_free(program);
}

/* ---- many calls ------------------------------------------------------------------------------ */

static void count_done(struct pted_call *call, enum pted_status status, void *arg)
{
    struct pted_tensor tensor;
    if (status == PTED_OK && pted_call_output(call, 0, &tensor, NULL) == PTED_OK) {
        atomic_fetch_add((atomic_int *)arg, 1);
    }
}

/* What a call is given when it is submitted stays, also if it is submitted once more. */
static void a_refused_submit_changes_nothing(void **state)
{
    struct pted_program *program = load("add.pte");
    atomic_int done = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        struct pted_call *call = new_call(find(program, NULL));
        fill_add(call);
        assert_ok(pted_call_submit(call, count_done, &done, &err));
        assert_fails(pted_call_submit(call, NULL, NULL, &err), PTED_INVALID, "reset it");
        assert_fails(pted_call_run(call, &err), PTED_INVALID, "reset it");
        assert_ok(pted_call_wait(call, &err));
        pted_call_free(call);
    }
    assert_int_equal(atomic_load(&done), MANY);
    pted_program_free(program);
}

static void calls_overlap(void **state)
{
    struct pted_program *program = load("add.pte");
    struct pted_call *calls[MANY];
    atomic_int done = 0;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        calls[i] = new_call(find(program, NULL));
        fill_add(calls[i]);
        assert_ok(pted_call_submit(calls[i], count_done, &done, &err));
    }
    for (int i = 0; i < MANY; i++) {
        assert_ok(pted_call_wait(calls[i], &err));
        check_add(calls[i]);
        pted_call_free(calls[i]);
    }
    assert_int_equal(atomic_load(&done), MANY);
    pted_program_free(program);
}

static void *call_often(void *arg)
{
    struct pted_program *program = arg;
    for (int i = 0; i < ROUNDS; i++) {
        run_add(program);
    }
    return NULL;
}

static void threads_share_a_program(void **state)
{
    struct pted_program *program = load("add.pte");
    pthread_t threads[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, program), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pted_program_free(program);
}

static void a_cancelled_call_ends(void **state)
{
    struct pted_program *program = load("ledger.pte");
    struct pted_state *ledger;
    (void)state;
    assert_ok(pted_state_new(program, &ledger, &err));
    for (int i = 0; i < ROUNDS; i++) {
        struct pted_call *first = enter(program, ledger, 0, 1);
        struct pted_call *second = enter(program, ledger, 1, 1);
        assert_ok(pted_call_submit(first, NULL, NULL, &err));
        assert_ok(pted_call_submit(second, NULL, NULL, &err));
        pted_call_cancel(second);
        enum pted_status status = pted_call_wait(second, &err);
        assert_true(status == PTED_OK || status == PTED_CANCELLED);
        assert_ok(pted_call_wait(first, &err));
        pted_call_cancel(first); /* it is over */
        assert_ok(pted_call_wait(first, &err));
        pted_call_free(first);
        pted_call_free(second);
    }
    pted_state_free(ledger);
    pted_program_free(program);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void two_devices_in_a_process(void **state)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_device *other;
    struct pted_program *there, *here = load("add.pte");
    char path[PATH_BYTES];
    (void)state;
    options.workers = 1;
    options.memory_bytes = 1 << 20;
    assert_ok(pted_device_open(&options, &other, &err));
    assert_non_null(strstr(pted_device_description(other), "1 worker"));
    assert_ok(pted_program_load(other, path_of("add.pte", path), NULL, &there, &err));
    run_add(there);
    run_add(here);
    pted_program_free(there);
    pted_device_free(other);
    run_add(here);
    pted_program_free(here);
}

static void options_may_be_older(void **state)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_device *other;
    (void)state;
    options.name = "no such device";
    assert_int_equal(pted_device_open(&options, &other, &err), PTED_NOT_FOUND);
    assert_null(other);
    options.size = offsetof(struct pted_device_options, name); /* as if it had only |size| */
    assert_ok(pted_device_open(&options, &other, &err));
    pted_device_free(other);
}

/* A later version has one member more. */
static void options_may_be_newer(void **state)
{
    struct {
        struct pted_device_options known;
        uint64_t unknown;
    } options = {.known = PTED_DEVICE_OPTIONS_INIT, .unknown = 0};
    struct pted_device *other;
    (void)state;
    options.known.size = sizeof(options);
    assert_ok(pted_device_open(&options.known, &other, &err));
    pted_device_free(other);
    options.unknown = 1;
    assert_fails(pted_device_open(&options.known, &other, &err), PTED_UNSUPPORTED,
                 "expected zeros behind");
    assert_null(other);
}

/* What a call needs stays until it is freed. */
static void objects_are_freed_in_any_order(void **state)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_device *other;
    struct pted_program *program;
    struct pted_state *ledger;
    char path[PATH_BYTES];
    (void)state;
    options.workers = 2;
    assert_ok(pted_device_open(&options, &other, &err));
    assert_ok(pted_program_load(other, path_of("ledger.pte", path), NULL, &program, &err));
    assert_ok(pted_state_new(program, &ledger, &err));
    struct pted_call *call = enter(program, ledger, 1, 3);
    pted_device_free(other);
    pted_program_free(program);
    pted_state_free(ledger);
    assert_ok(pted_call_run(call, &err));
    assert_true(output(call, 0)[0] == 18);
    pted_call_free(call);
    pted_call_free(NULL);
    pted_state_free(NULL);
    pted_program_free(NULL);
    pted_device_free(NULL);
}

static void memory_has_a_limit(void **state)
{
    struct pted_device_options options = PTED_DEVICE_OPTIONS_INIT;
    struct pted_device *small;
    struct pted_program *program;
    struct pted_call *calls[64];
    char path[PATH_BYTES];
    int count = 0;
    (void)state;
    options.workers = 1;
    options.memory_bytes = 1024;
    assert_ok(pted_device_open(&options, &small, &err));
    assert_ok(pted_program_load(small, path_of("add.pte", path), NULL, &program, &err));
    enum pted_status status = PTED_OK;
    for (struct pted_tensor a; status == PTED_OK && count < 64; count++) {
        a = add_tensor(digits);
        assert_ok(pted_call_new(find(program, NULL), &calls[count], &err));
        status = pted_call_copy_input(calls[count], 0, &a, &err);
    }
    assert_int_equal(status, PTED_EXHAUSTED);
    while (count > 0) {
        pted_call_free(calls[--count]);
    }
    run_add(program);
    pted_program_free(program);
    pted_device_free(small);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void programs_in_memory(void **state)
{
    static _Alignas(64) unsigned char bytes[FILE_BYTES_MAX + 1];
    struct pted_load_options options = PTED_LOAD_OPTIONS_INIT;
    struct pted_program *program;
    char path[PATH_BYTES];
    size_t len = read_file(path_of("digits.pte", path), bytes);
    (void)state;
    options.files = PTED_FILES_MAPPED;
    assert_fails(pted_program_load_memory(device, bytes + 1, len - 1, &options, &program, &err),
                 PTED_INVALID, "expected a multiple of 64");
    assert_null(program);
    assert_ok(pted_program_load_memory(device, bytes, len, &options, &program, &err));
    pted_program_free(program);
    len = read_file(path_of("add.pte", path), bytes + 1);
    assert_ok(pted_program_load_memory(device, bytes + 1, len, NULL, &program, &err));
    memset(bytes, 0, sizeof(bytes));
    run_add(program);
    pted_program_free(program);
    assert_fails(pted_program_load_memory(device, bytes, 0, NULL, &program, &err), PTED_CORRUPT,
                 "");
}

static void check_load_fails(const char *path, enum pted_status status, const char *part)
{
    struct pted_program *program;
    assert_fails(pted_program_load(device, path, NULL, &program, &err), status, part);
    assert_null(program);
}

static void paths_that_are_no_programs(void **state)
{
    struct pted_load_options options = PTED_LOAD_OPTIONS_INIT;
    struct pted_program *program;
    (void)state;
    check_load_fails("no/such/file.pte", PTED_NOT_FOUND, "no/such/file.pte");
    check_load_fails("/", PTED_INVALID, "is a directory");
    check_load_fails("/dev/null", PTED_INVALID, "not a regular file");
    options.precision = (enum pted_precision)17;
    assert_fails(pted_program_load(device, "x", &options, &program, &err), PTED_INVALID,
                 "precision 17");
    options.precision = PTED_PRECISION_FAST;
    options.files = (enum pted_files) - 1;
    assert_fails(pted_program_load(device, "x", &options, &program, &err), PTED_INVALID,
                 "files -1");
    options.files = PTED_FILES_READ;
    options.data_count = 65;
    assert_fails(pted_program_load(device, "x", &options, &program, &err), PTED_INVALID,
                 "65 data files");
}

/* Files that are cut short or damaged anywhere: an error, or a program that can be freed. */
static void damaged_files_are_errors(void **state)
{
    static unsigned char bytes[FILE_BYTES_MAX], copy[FILE_BYTES_MAX];
    char path[PATH_BYTES];
    size_t len = read_file(path_of("ledger.pte", path), bytes);
    unsigned random = 1, refused = 0;
    (void)state;
    for (size_t i = 0; i < len; i += 7) {
        struct pted_program *program;
        assert_int_not_equal(pted_program_load_memory(device, bytes, i, NULL, &program, &err),
                             PTED_OK);
    }
    for (int round = 0; round < 500; round++) {
        struct pted_program *program;
        memcpy(copy, bytes, len);
        for (int i = 0; i < 4; i++) {
            random = random * 1103515245u + 12345u;
            copy[(random >> 8) % len] ^= (unsigned char)(random >> 24 | 1);
        }
        refused += pted_program_load_memory(device, copy, len, NULL, &program, &err) != PTED_OK;
        pted_program_free(program);
    }
    assert_true(refused > 0);
}

static void data_files_are_found_or_named(void **state)
{
    static unsigned char bytes[FILE_BYTES_MAX];
    struct pted_load_options options = PTED_LOAD_OPTIONS_INIT;
    struct pted_program *program;
    char path[PATH_BYTES], data[PATH_BYTES];
    const char *paths[] = {path_of("weights/foundation.ptd", data)};
    size_t len = read_file(path_of("weights/base.pte", path), bytes);
    (void)state;
    options.data_paths = paths;
    options.data_count = 1;
    assert_ok(pted_program_load(device, path, &options, &program, &err));
    assert_ok(pted_method_verify(find(program, NULL), &err));
    pted_program_free(program);
    assert_ok(pted_program_load_memory(device, bytes, len, &options, &program, &err));
    assert_ok(pted_method_verify(find(program, NULL), &err));
    pted_program_free(program);
    assert_ok(pted_program_load_memory(device, bytes, len, NULL, &program, &err));
    assert_fails(pted_method_verify(find(program, NULL), &err), PTED_NOT_FOUND,
                 "no data file has ");
    struct pted_call *call;
    assert_fails(pted_call_new(find(program, NULL), &call, &err), PTED_NOT_FOUND, "method ");
    assert_null(call);
    pted_program_free(program);
}

/* ---- files that change ----------------------------------------------------------------------- */

static bool has_handler(void)
{
    struct sigaction action;
    assert_int_equal(sigaction(SIGBUS, NULL, &action), 0);
    return (action.sa_flags & SA_SIGINFO) != 0;
}

static struct pted_program *load_copy(enum pted_files files, char path[PATH_BYTES])
{
    struct pted_load_options options = PTED_LOAD_OPTIONS_INIT;
    struct pted_program *program;
    const struct timespec then[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    options.files = files;
    copy_model("mlp.pte", path);
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
    assert_ok(pted_program_load(device, path, &options, &program, &err));
    return program;
}

static enum pted_status run_mlp(struct pted_program *program)
{
    const struct pted_method *method = find(program, NULL);
    const struct pted_info *info = pted_method_input(method, 0);
    struct pted_call *call = new_call(method);
    int64_t dims[PTED_RANK_MAX];
    struct pted_tensor tensor = {
        .dtype = pted_info_dtype(info), .rank = (uint32_t)pted_info_rank(info), .dims = dims};
    for (size_t d = 0; d < pted_info_rank(info); d++) {
        dims[d] = pted_info_dim(info, d);
    }
    assert_ok(pted_call_allocate_input(call, 0, &tensor, &err));
    memset(tensor.data, 0, tensor.bytes);
    enum pted_status status = pted_call_run(call, &err);
    pted_call_free(call);
    return status;
}

static void a_file_that_was_read_may_change(void **state)
{
    char path[PATH_BYTES];
    struct pted_program *program = load_copy(PTED_FILES_READ, path);
    (void)state;
    assert_false(has_handler());
    write_file(path, "x", 1);
    assert_int_equal(run_mlp(program), PTED_OK);
    pted_program_free(program);
    unlink(path);
}

static void a_mapped_file_must_not_change(void **state)
{
    char path[PATH_BYTES];
    struct pted_program *program = load_copy(PTED_FILES_MAPPED, path);
    (void)state;
    assert_false(has_handler());
    assert_int_equal(run_mlp(program), PTED_OK);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    fputc('x', file);
    fclose(file);
    assert_int_equal(run_mlp(program), PTED_UNAVAILABLE);
    pted_program_free(program);
    unlink(path);
}

static volatile sig_atomic_t faults;

static void count_fault(int number)
{
    (void)number;
    faults++;
}

/* The last test of files: the handler stays, and other faults reach the one that was there. */
static void a_guarded_file_may_be_cut_short(void **state)
{
    char path[PATH_BYTES];
    assert_true(signal(SIGBUS, count_fault) != SIG_ERR);
    struct pted_program *program = load_copy(PTED_FILES_GUARDED, path);
    (void)state;
    assert_true(has_handler());
    raise(SIGBUS);
    raise(SIGBUS);
    assert_int_equal(faults, 2);
    assert_int_equal(truncate(path, 1), 0);
    assert_int_equal(run_mlp(program), PTED_UNAVAILABLE);
    pted_program_free(program);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_and_types),
        cmocka_unit_test(a_method_says_what_it_takes),
        cmocka_unit_test(methods_are_found_by_name),
        cmocka_unit_test(constant_methods_have_values),
        cmocka_unit_test(fixed_scalars_take_one_value),
        cmocka_unit_test(inputs_come_in_three_ways),
        cmocka_unit_test(inputs_may_have_strides),
        cmocka_unit_test(outputs_go_where_the_caller_wants),
        cmocka_unit_test(wrong_inputs_are_refused),
        cmocka_unit_test(phases_are_checked),
        cmocka_unit_test(an_index_in_the_data_is_named),
        cmocka_unit_test(states_are_apart),
        cmocka_unit_test(calls_of_a_state_run_in_order),
        cmocka_unit_test(waiting_calls_can_be_freed),
        cmocka_unit_test(a_refused_submit_changes_nothing),
        cmocka_unit_test(calls_overlap),
        cmocka_unit_test(threads_share_a_program),
        cmocka_unit_test(a_cancelled_call_ends),
        cmocka_unit_test(two_devices_in_a_process),
        cmocka_unit_test(options_may_be_older),
        cmocka_unit_test(options_may_be_newer),
        cmocka_unit_test(objects_are_freed_in_any_order),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(programs_in_memory),
        cmocka_unit_test(paths_that_are_no_programs),
        cmocka_unit_test(damaged_files_are_errors),
        cmocka_unit_test(data_files_are_found_or_named),
        cmocka_unit_test(a_file_that_was_read_may_change),
        cmocka_unit_test(a_mapped_file_must_not_change),
        cmocka_unit_test(a_guarded_file_may_be_cut_short),
    };
    return cmocka_run_group_tests(tests, open_shared_device, close_shared_device);
}
