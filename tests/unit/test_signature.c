/* SPDX-License-Identifier: MIT */
/* The signatures of the programs of tests/models, and methods that cannot be called. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/program/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "tests/unit/pte_sample.h"
#include "tests/unit/unit.h"

struct golden {
    const char *model, *method;
    const char *f, *readable, *sip, *readable_sip, *fbr;
};

static const struct golden goldens[] = {
    {"methods", "encode", "I10!B7!d-1d10R9!B6!d-1d4", "(float32[?,10]) -> (float32[?,4])",
     "I8!S5!k0_0R3!_0", "[r0] -> r0", "encode$results"},
    {"methods", "decode", "I14!B6!d-1d4B3!d1R10!B7!d-1d10",
     "(float32[?,4], float32[1]) -> (float32[?,10])", "I12!S9!k0_0k1_1R3!_0", "[r0, r1] -> r0",
     "decode$results"},
    {"methods", "get_name", "I1!R4!U1!", "() -> (unrecognized)", "I1!R3!_0", "() -> r0", NULL},
    {"methods", "get_width", "I1!R6!S3!t7", "() -> (sint64)", "I1!R3!_0", "() -> r0", NULL},
    {"methods", "get_scale", "I1!R6!S3!t2", "() -> (float64)", "I1!R3!_0", "() -> r0", NULL},
    {"methods", "is_trained", "I1!R6!S3!t4", "() -> (bool)", "I1!R3!_0", "() -> r0", NULL},
    {"methods", "get_shape", "I1!R11!S3!t7S3!t7", "() -> (sint64, sint64)", "I1!R12!S9!k0_0k1_1",
     "() -> [r0, r1]", NULL},
    {"methods", "get_table", "I1!R8!B5!t7d5", "() -> (sint64[5])", "I1!R3!_0", "() -> r0", NULL},
    {"scalars", "forward", "I27!B3!d6S3!t7S3!t2S3!t4U1!B1!R30!B3!d4S3!t7U1!S3!t2S3!t4B1!B1!",
     "(float32[6], sint64, float64, bool, unrecognized, float32[]) -> "
     "(float32[4], sint64, unrecognized, float64, bool, float32[], float32[])",
     "I29!S25!k0_0k1_1k2_2k3_3k4_4k5_5R33!S29!k0_0k1_1k2_2k3_3k4_4k5_5k6_6",
     "[r0, r1, r2, r3, r4, r5] -> [r0, r1, r2, r3, r4, r5, r6]", NULL},
    {"zero_size", "forward", "I15!B5!d3d4B5!d0d4R32!B5!d3d4B1!B5!d0d4B5!d3d0B5!d0d4",
     "(float32[3,4], float32[0,4]) -> "
     "(float32[3,4], float32[], float32[0,4], float32[3,0], float32[0,4])",
     "I12!S9!k0_0k1_1R25!S21!k0_0k1_1k2_2k3_3k4_4", "[r0, r1] -> [r0, r1, r2, r3, r4]", NULL},
    {"linear", "forward", "I19!B7!d-1d70B7!d33d17R27!B6!d-1d1B7!d-1d17B7!d-1d33",
     "(float32[?,70], float32[33,17]) -> (float32[?,1], float32[?,17], float32[?,33])",
     "I12!S9!k0_0k1_1R17!S13!k0_0k1_1k2_2", "[r0, r1] -> [r0, r1, r2]", "forward$results"},
};

static void load(const char *path, struct hal_device *device, struct rt_program **out_program)
{
    struct error err;
    const struct rt_load_options options = {.device = device};
    assert_ok(err, rt_load_program(path, &options, out_program, &err));
}

static struct hal_device *open_device(void)
{
    const struct hal_device_options options = {.workers = 1};
    struct hal_device *device;
    struct error err;
    assert_ok(err, hal_device_open("cpu", &options, &device, &err));
    return device;
}

static void check_golden(const struct golden *golden, struct hal_device *device)
{
    const char *top = getenv("top_srcdir");
    struct rt_program *program;
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", golden->model);
    load(path, device, &program);
    struct rt_method *method = rt_program_find_method(program, span_str(golden->method));
    assert_non_null(method);
    const struct rt_signature *signature = rt_method_signature(method);
    assert_string_equal(signature->f, golden->f);
    assert_string_equal(signature->readable, golden->readable);
    assert_string_equal(signature->sip, golden->sip);
    assert_string_equal(signature->readable_sip, golden->readable_sip);
    assert_false(signature->is_positional);
    assert_int_equal(signature->fbr != NULL, golden->fbr != NULL);
    if (golden->fbr) {
        assert_string_equal(signature->fbr, golden->fbr);
    }
    rt_program_unref(program);
}

static void test_goldens(void **state)
{
    struct hal_device *device = open_device();
    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++) {
        check_golden(&goldens[i], device);
    }
    hal_device_unref(device);
}

/* Loads a program from the sample's bytes, alone in a folder. The file may be removed
 * afterwards. */
static struct rt_program *load_sample(const struct sample *sample, struct hal_device *device)
{
    struct rt_program *program;
    char folder[] = "/tmp/pted-signature-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/sample.pte", folder);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(sample->writer.bytes, 1, sample->writer.len, file), sample->writer.len);
    assert_int_equal(fclose(file), 0);
    load(path, device, &program);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
    return program;
}

/* The sample needs an unknown delegate, and its stored structure is invalid. */
static void test_methods_with_failures(void **state)
{
    static struct sample sample;
    struct hal_device *device = open_device();
    (void)state;
    sample_make(&sample, SAMPLE_SEGMENTS);
    struct rt_program *program = load_sample(&sample, device);
    struct rt_method *forward = rt_program_find_method(program, span_str("forward"));
    const struct rt_signature *signature = rt_method_signature(forward);
    assert_non_null(rt_method_failure(forward));
    assert_string_equal(signature->f, "I8!B5!d2d3R11!B5!d2d3U1!");
    assert_string_equal(signature->readable, "(float32[2,3]) -> (float32[2,3], unrecognized)");
    assert_string_equal(signature->sip, "I8!S5!k0_0R12!S9!k0_0k1_1");
    assert_string_equal(signature->readable_sip, "[r0] -> [r0, r1]");
    assert_true(signature->is_positional);
    assert_null(signature->fbr);
    signature = rt_method_signature(rt_program_find_method(program, span_str("width")));
    assert_string_equal(signature->f, "I1!R6!S3!t7");
    assert_string_equal(signature->sip, "I1!R3!_0");
    assert_null(signature->fbr);
    rt_program_unref(program);
    hal_device_unref(device);
}

/* Complex numbers exist only inside of programs: no request can contain them. */
static void test_complex_input(void **state)
{
    static struct sample sample;
    struct hal_device *device = open_device();
    (void)state;
    sample_make(&sample, SAMPLE_SEGMENTS);
    sample_set(&sample, sample.values[SV_INPUT], 0, 8, 1);
    sample_set(&sample, sample.values[SV_OUTPUT], 0, 8, 1); /* the input is moved there */
    struct rt_program *program = load_sample(&sample, device);
    struct rt_method *forward = rt_program_find_method(program, span_str("forward"));
    assert_int_equal(rt_method_failure(forward)->code, ST_UNSUPPORTED);
    assert_non_null(strstr(rt_method_failure(forward)->text, "input_0 is complex32"));
    assert_string_equal(rt_method_signature(forward)->readable,
                        "(unrecognized) -> (unrecognized, unrecognized)");
    rt_program_unref(program);
    hal_device_unref(device);
}

/* A missing data file keeps its own status, so that pte can tell it from an unsupported program. */
static void test_missing_data(void **state)
{
    static struct sample sample;
    struct hal_device *device = open_device();
    (void)state;
    sample_make(&sample, SAMPLE_SEGMENTS);
    sample_set(&sample, sample.state_extra, 2, 1, 1); /* where the state's initial bytes are */
    struct rt_program *program = load_sample(&sample, device);
    struct rt_method *forward = rt_program_find_method(program, span_str("forward"));
    assert_int_equal(rt_method_failure(forward)->code, ST_NOT_FOUND);
    assert_non_null(strstr(rt_method_failure(forward)->text, "no data file has 'module.state'"));
    /* Inputs and outputs are known nevertheless. */
    assert_int_equal(rt_method_input_count(forward), 1);
    assert_int_equal(rt_method_input(forward, 0)->kind, RT_IO_TENSOR);
    assert_int_equal(rt_method_input(forward, 0)->dtype, DT_F32);
    assert_int_equal(strncmp(rt_method_signature(forward)->readable, "(float32[", 9), 0);
    rt_program_unref(program);
    hal_device_unref(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_methods_with_failures),
        cmocka_unit_test(test_complex_input),
        cmocka_unit_test(test_missing_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
