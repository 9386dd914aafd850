/* SPDX-License-Identifier: MIT */
/*
 * Forms of inputs, results and tensors that exporters rarely write. The tests make them from
 * bundled programs by changing single fields. Each form works or is refused with a reason, and the
 * other methods of the program can still be called.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/pte/schema.h"
#include "tests/unit/call_support.h"

#define FILE_BYTES_MAX (1 << 20)
#define POOL_BYTES ((size_t)16 << 20)
#define TENSOR 5 /* the union's tag */
#define STEPS_MAX 1000

static struct error err;

/* A program that a test changes, and then loads from a separate file. */
struct form {
    uint8_t bytes[FILE_BYTES_MAX];
    size_t len;
    struct flatbuf fb;
    struct flatbuf_table root, plan;
    struct flatbuf_vector values, inputs, outputs;
    char path[32];
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
};

static struct form form;

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    form.len = fread(form.bytes, 1, sizeof(form.bytes), file);
    fclose(file);
    assert_true(form.len > 0 && form.len < sizeof(form.bytes));
}

/* Method number |method| of a bundled program. */
static void begin(const char *model, uint32_t method)
{
    char path[1024];
    const char *top = getenv("top_srcdir");
    struct flatbuf_vector plans;
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", model);
    read_file(path);
    assert_ok(err, flatbuf_init(&form.fb, span_of(form.bytes, form.len), &err));
    assert_ok(err, flatbuf_root(&form.fb, &form.root, &err));
    assert_ok(err, flatbuf_vector(&form.fb, &form.root, program_execution_plan, 4, &plans, &err));
    assert_ok(err, flatbuf_table_at(&form.fb, plans, method, &form.plan, &err));
    assert_ok(err, flatbuf_vector(&form.fb, &form.plan, plan_values, 4, &form.values, &err));
    assert_ok(err, flatbuf_vector(&form.fb, &form.plan, plan_inputs, 4, &form.inputs, &err));
    assert_ok(err, flatbuf_vector(&form.fb, &form.plan, plan_outputs, 4, &form.outputs, &err));
}

static void put(struct flatbuf_vector vector, uint32_t i, uint32_t value)
{
    assert_true(i < vector.count);
    memcpy(form.bytes + vector.pos + (size_t)i * 4, &value, 4);
}

static uint32_t get(struct flatbuf_vector vector, uint32_t i)
{
    return (uint32_t)flatbuf_i32_at(&form.fb, vector, i);
}

static uint8_t value_at(uint32_t i, struct flatbuf_table *out_table)
{
    struct flatbuf_table entry;
    uint8_t tag;
    assert_ok(err, flatbuf_table_at(&form.fb, form.values, i, &entry, &err));
    assert_ok(err, flatbuf_union(&form.fb, &entry, value_val, &tag, out_table, &err));
    return tag;
}

static bool is_constant(const struct flatbuf_table *tensor)
{
    struct flatbuf_table allocation;
    uint32_t index = 0;
    bool is_planned;
    assert_ok(err, flatbuf_u32(&form.fb, tensor, tensor_data_buffer_idx, &index, &err));
    assert_ok(err, flatbuf_table(&form.fb, tensor, tensor_allocation_info, &allocation, &is_planned,
                                 &err));
    return index > 0 && !is_planned;
}

/* The first value of the kind. */
static uint32_t find(uint8_t tag, bool wants_constant)
{
    for (uint32_t i = 0; i < form.values.count; i++) {
        struct flatbuf_table table;
        if (value_at(i, &table) == tag &&
            (tag != TENSOR || is_constant(&table) == wants_constant)) {
            return i;
        }
    }
    fail();
    return 0;
}

/* The tensor has this field. Exporters write it for dynamic tensors; vtables of other tensors
 * are shared. */
static bool set_dynamism(uint32_t value, uint8_t dynamism)
{
    struct flatbuf_table table;
    const uint8_t *field = NULL;
    if (value_at(value, &table) != TENSOR || is_constant(&table)) {
        return false;
    }
    assert_ok(err, flatbuf_scalar(&form.fb, &table, tensor_shape_dynamism, 1, &field, &err));
    if (field) {
        form.bytes[field - form.bytes] = dynamism;
    }
    return field != NULL;
}

/* Field |field| of instruction |i|. The field must exist: exporters leave out fields that are 0. */
static int32_t *instr_field(uint32_t i, struct flatbuf_field field)
{
    struct flatbuf_vector chains, instrs;
    struct flatbuf_table chain, instr, call;
    const uint8_t *at = NULL;
    uint8_t tag;
    assert_ok(err, flatbuf_vector(&form.fb, &form.plan, plan_chains, 4, &chains, &err));
    assert_ok(err, flatbuf_table_at(&form.fb, chains, 0, &chain, &err));
    assert_ok(err, flatbuf_vector(&form.fb, &chain, chain_instructions, 4, &instrs, &err));
    assert_ok(err, flatbuf_table_at(&form.fb, instrs, i, &instr, &err));
    assert_ok(err, flatbuf_union(&form.fb, &instr, instruction_instr_args, &tag, &call, &err));
    assert_ok(err, flatbuf_scalar(&form.fb, &call, field, 4, &at, &err));
    assert_non_null(at);
    return (int32_t *)(void *)(form.bytes + (at - form.bytes));
}

static void set_int(uint32_t value, int64_t number)
{
    struct flatbuf_table table;
    const uint8_t *at = NULL;
    assert_int_equal(value_at(value, &table), 2);
    assert_ok(err, flatbuf_scalar(&form.fb, &table, scalar_val, 8, &at, &err));
    assert_non_null(at);
    memcpy(form.bytes + (at - form.bytes), &number, sizeof(number));
}

static void open_form(void)
{
    snprintf(form.path, sizeof(form.path), "/tmp/test_forms.XXXXXX");
    int fd = mkstemp(form.path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, form.bytes, form.len), form.len);
    close(fd);
    assert_ok(err, hal_device_open("cpu", NULL, &form.device, &err));
    assert_ok(err, hal_pool_new(form.device, POOL_BYTES, &form.pool, &err));
}

static enum status try_load(void)
{
    open_form();
    const struct rt_load_options options = {.device = form.device, .statements_max = STEPS_MAX};
    return rt_load_program(form.path, &options, &form.program, &err);
}

static void load(void)
{
    assert_ok(err, try_load());
}

static int tear_down(void **state)
{
    (void)state;
    rt_program_unref(form.program);
    hal_pool_free(form.pool);
    hal_device_unref(form.device);
    unlink(form.path);
    form = (struct form){.len = 0};
    return 0;
}

static struct rt_method *method_named(const char *name)
{
    struct rt_method *method = rt_program_find_method(form.program, span_str(name));
    assert_non_null(method);
    return method;
}

static void expect_failure(const char *method, const char *text)
{
    const struct error *failure = rt_method_failure(method_named(method));
    assert_non_null(failure);
    assert_string_equal(failure->text, text);
}

/* Calls with every float input at 0.25; a copy of result |index|. */
static size_t call(const char *name, uint32_t index, void *out, size_t max)
{
    struct rt_method *method = method_named(name);
    struct rt_invocation *invocation;
    void *ptr;
    assert_null(rt_method_failure(method));
    assert_ok(err, rt_invocation_new(method, form.pool, &invocation, &err));
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        assert_int_equal(io->dtype, DT_F32);
        assert_ok(err, rt_invocation_input(invocation, i, DT_F32, &io->shape, &ptr, &err));
        for (int64_t n = 0; n < shape_numel(&io->shape); n++) {
            ((float *)ptr)[n] = 0.25f;
        }
    }
    assert_ok(err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err));
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    struct span bytes = rt_invocation_result(invocation, index)->bytes;
    assert_true(bytes.len <= max);
    memcpy(out, bytes.ptr, bytes.len);
    rt_invocation_free(invocation);
    return bytes.len;
}

/* Inner tensors and results need no bound in the file, because it follows from the inputs. */
static void tensors_without_a_bound(void **state)
{
    static uint8_t want[4096], got[4096];
    uint32_t changed = 0;
    begin("methods", 0);
    load();
    size_t len = call("decode", 0, want, sizeof(want));
    tear_down(state);
    begin("methods", 0);
    for (uint32_t i = 0; i < form.values.count; i++) {
        bool is_input = i == get(form.inputs, 0) || i == get(form.inputs, 1);
        changed += !is_input && set_dynamism(i, 2);
    }
    assert_true(changed > 0);
    load();
    assert_int_equal(call("decode", 0, got, sizeof(got)), len);
    assert_memory_equal(got, want, len);
}

static void an_input_without_a_bound(void **state)
{
    (void)state;
    begin("methods", 0);
    assert_true(set_dynamism(get(form.inputs, 0), 2));
    load();
    expect_failure("decode",
                   "input 0: the shape of a tensor has no upper bound: export the model with one");
    assert_null(rt_method_failure(method_named("encode")));
}

static void a_constant_as_a_result(void **state)
{
    float got[64];
    struct span constant;
    (void)state;
    begin("methods", 0);
    put(form.outputs, 0, find(TENSOR, true));
    load();
    struct rt_method *method = method_named("decode");
    size_t len = call("decode", 0, got, sizeof(got));
    assert_int_equal(len, 40 * sizeof(float));
    assert_true(rt_method_constant_result(method, 0, &constant));
    assert_int_equal(constant.len, len);
    assert_memory_equal(constant.ptr, got, len);
}

/* The result is an input, and the same result is returned twice. */
static void an_input_as_a_result(void **state)
{
    float got[80];
    (void)state;
    begin("methods", 0);
    put(form.outputs, 0, get(form.inputs, 0));
    load();
    assert_int_equal(call("decode", 0, got, sizeof(got)), 32 * sizeof(float));
    assert_true(got[0] == 0.25f && got[31] == 0.25f);
}

/* A list is replaced by its items. */
static void lists_as_results(void **state)
{
    (void)state;
    begin("select_ops", 0);
    put(form.outputs, 0, find(7, false));
    load();
    const struct rt_method *method = method_named("forward");
    assert_null(rt_method_failure(method));
    assert_int_equal(rt_method_result(method, 0)->kind, RT_IO_INT);
}

/* A scalar result has the value in the file, and the signature has it too. */
static void scalars_as_results(void **state)
{
    struct span value;
    int64_t number;
    (void)state;
    begin("select_ops", 0);
    put(form.outputs, 0, find(2, false));
    load();
    struct rt_method *method = method_named("forward");
    assert_null(rt_method_failure(method));
    assert_int_equal(rt_method_result(method, 0)->kind, RT_IO_INT);
    assert_true(rt_method_constant_result(method, 0, &value));
    memcpy(&number, value.ptr, sizeof(number));
    assert_int_equal(number, rt_method_result(method, 0)->value.i);
    assert_false(rt_method_constant_result(method, 1, &value));
}

/* The reason names operator and instruction. It need not name the method, because the caller of
 * rt_method_failure() knows it. */
static void unknown_operators(void **state)
{
    struct flatbuf_vector operators;
    struct flatbuf_table op;
    struct span name;
    float got[64];
    (void)state;
    begin("methods", 0);
    assert_ok(err, flatbuf_vector(&form.fb, &form.plan, plan_operators, 4, &operators, &err));
    assert_ok(err, flatbuf_table_at(&form.fb, operators, operators.count - 1, &op, &err));
    assert_ok(err, flatbuf_string(&form.fb, &op, operator_name, &name, &err));
    form.bytes[name.ptr + 6 - form.bytes] = '!';
    load();
    const struct error *failure = rt_method_failure(method_named("decode"));
    assert_non_null(failure);
    assert_int_equal(failure->code, ST_UNSUPPORTED);
    assert_non_null(strstr(failure->text, "instruction "));
    assert_non_null(strstr(failure->text, "operator 'aten::!"));
    assert_true(call("encode", 0, got, sizeof(got)) > 0);
}

/* A file that can be read is not damaged because a shape function refuses its arguments. */
static void refused_arguments(void **state)
{
    (void)state;
    begin("select_ops", 0);
    set_int(6, 99); /* the dim of the second index_select */
    load();
    const struct error *failure = rt_method_failure(method_named("forward"));
    assert_non_null(failure);
    assert_int_equal(failure->code, ST_UNSUPPORTED);
    assert_non_null(strstr(failure->text, "dim 99 does not exist"));
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Makes one call with all bytes of the inputs 0. Returns the text of the error, or "". */
static const char *run_zeros(void)
{
    static struct error reason;
    struct rt_method *method = method_named("forward");
    struct rt_invocation *invocation;
    size_t bytes = 0;
    void *ptr;
    reason = (struct error){.code = ST_OK};
    if (rt_method_failure(method)) {
        reason = *rt_method_failure(method);
        return reason.text;
    }
    assert_ok(err, rt_invocation_new(method, form.pool, &invocation, &err));
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        assert_ok(err, rt_invocation_input(invocation, i, io->dtype, &io->shape, &ptr, &err));
        assert_ok(err, shape_bytes(&io->shape, io->dtype, &bytes, &err));
        memset(ptr, 0, bytes);
    }
    if (rt_invocation_prepare(invocation, RT_PREPARE_ALL, &reason) == ST_OK &&
        submit_and_wait(invocation, false) != ST_OK) {
        reason = *rt_invocation_error(invocation);
    }
    rt_invocation_free(invocation);
    return reason.text;
}

static void expect(const char *text)
{
    const char *got = run_zeros();
    if (!strstr(got, text) || (text[0] == '\0' && got[0] != '\0')) {
        fail_msg("'%s', expected '%s'", got, text);
    }
}

/* The numbers of instructions and values are those that `pte inspect` prints. */
static void change_branches(uint32_t instr, struct flatbuf_field field, int32_t number,
                            const char *text)
{
    begin("branches", 0);
    *instr_field(instr, field) = number;
    if (try_load() == ST_OK) {
        expect(text);
    } else {
        assert_int_equal(err.code, ST_CORRUPT);
        assert_true(text[0] != '\0');
        assert_non_null(strstr(err.text, text));
    }
    tear_down(NULL);
}

static void jumps(void **state)
{
    (void)state;
    change_branches(0, jump_destination_instruction, -1, "destination");
    change_branches(0, jump_destination_instruction, 34, "destination");
    change_branches(0, jump_destination_instruction, 33, "'output_0' was never written");
    change_branches(17, jump_destination_instruction, 17, "");
    change_branches(3, jump_destination_instruction, 3, "");
    change_branches(0, jump_cond_value_index, 8, "the condition is int, expected a bool");
    change_branches(0, jump_cond_value_index, 1, "expected a bool");
    change_branches(0, jump_cond_value_index, -1, "value");
    change_branches(0, jump_cond_value_index, 59, "value");
    begin("branches", 0);
    *instr_field(24, jump_destination_instruction) = 24; /* its condition stays false */
    load();
    expect("more than 1000 statements");
}

static void moves(void **state)
{
    (void)state;
    change_branches(20, move_move_from, 8, "moves a value of kind int over one of kind tensor");
    change_branches(20, move_move_to, 45, "moves over a constant tensor");
    change_branches(20, move_move_to, 4, "another element type or rank");
    change_branches(20, move_move_to, 42, "another element type or rank");
    change_branches(20, move_move_to, -1, "value");
    change_branches(20, move_move_from, 59, "value");
    change_branches(20, move_move_to, 1, "a value is read before anything wrote it");
    change_branches(20, move_move_from, 49, ""); /* it has the value of the last call */
}

static void rows_of_accumulators(void **state)
{
    (void)state;
    begin("loops", 0);
    set_int(17, -1); /* the counter goes down */
    load();
    expect("row -1 of a result");
    tear_down(NULL);
    begin("loops", 0);
    set_int(17, 2); /* it passes the end */
    load();
    expect("elements of the indexed dim: got 7, expected at least 9");
    tear_down(NULL);
    begin("loops", 0);
    set_int(17, INT64_MAX);
    load();
    expect("a size that follows from the inputs' dims is too large, or divided by 0");
}

static void endless_loops(void **state)
{
    (void)state;
    begin("loops", 0);
    set_int(34, 0);
    load();
    expect("more than 1000 statements");
}

static void numbers_that_are_not_sizes(void **state)
{
    static const int64_t numbers[] = {INT64_MIN,        -((int64_t)1 << 40), -1,       0, 3,
                                      (int64_t)1 << 31, (int64_t)1 << 40,    INT64_MAX};
    static const uint32_t ints[] = {6, 11, 24, 32}; /* the sizes that are not 0 */
    unsigned refused = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
        for (size_t j = 0; j < sizeof(numbers) / sizeof(numbers[0]); j++) {
            begin("sizes", 0);
            set_int(ints[i], numbers[j]);
            load();
            refused += run_zeros()[0] != '\0';
            tear_down(NULL);
        }
    }
    assert_true(refused >= 4); /* a step of 0 or less, numbers that overflow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(tensors_without_a_bound, tear_down),
        cmocka_unit_test_teardown(an_input_without_a_bound, tear_down),
        cmocka_unit_test_teardown(a_constant_as_a_result, tear_down),
        cmocka_unit_test_teardown(an_input_as_a_result, tear_down),
        cmocka_unit_test_teardown(lists_as_results, tear_down),
        cmocka_unit_test_teardown(scalars_as_results, tear_down),
        cmocka_unit_test_teardown(unknown_operators, tear_down),
        cmocka_unit_test_teardown(refused_arguments, tear_down),
        cmocka_unit_test_teardown(jumps, tear_down),
        cmocka_unit_test_teardown(moves, tear_down),
        cmocka_unit_test_teardown(rows_of_accumulators, tear_down),
        cmocka_unit_test_teardown(endless_loops, tear_down),
        cmocka_unit_test_teardown(numbers_that_are_not_sizes, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
