/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/conf/conf_print.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "server/process/options.h"

#define PARSE(options, err, ...)                                                                   \
    parse((char *[]){(char[]){"pted"}, __VA_ARGS__, NULL}, options, err)

static enum status parse(char *argv[], struct options *options, struct error *err)
{
    int argc = 0;
    while (argv[argc]) {
        argc++;
    }
    options_init(options);
    return options_add_arguments(options, argc, argv, err);
}

static struct options options;

static void presets(void **state)
{
    (void)state;
    options_init(&options);
    assert_int_equal(options.action, OPTIONS_SERVE);
    assert_int_equal(options.params.body_bytes_max, 64 << 20);
    assert_int_equal(options.params.header_timeout, 10000);
    assert_int_equal(options.listen.count, 0);
}

static void every_param_is_an_option_within_its_limits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t preset, min, max;
        size_t offset;
        enum option_type unit;
    } rows[] = {
#define PARAM(name, preset, min, max, unit, doc)                                                   \
    {#name, preset, min, max, offsetof(struct params, name), OPTION_##unit},
#include "server/process/params.def"
#undef PARAM
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_between(rows[i].preset, rows[i].min, rows[i].max);
        char name[64] = "--", value[32];
        for (size_t c = 0; rows[i].name[c]; c++) {
            name[2 + c] = rows[i].name[c] == '_' ? '-' : rows[i].name[c];
        }
        bool is_time = rows[i].unit == OPTION_MS;
        struct error err;
        if (rows[i].unit == OPTION_PRECISION) {
            continue; /* it is no number: see precision() */
        }
        snprintf(value, sizeof(value), "%llu%s", (unsigned long long)rows[i].max,
                 is_time ? "ms" : "");
        assert_ok(err, PARSE(&options, &err, name, value));
        uint64_t got;
        memcpy(&got, (char *)&options.params + rows[i].offset, sizeof(got));
        assert_int_equal(got, rows[i].max);
        snprintf(value, sizeof(value), "%llu%s", (unsigned long long)rows[i].max + 1,
                 is_time ? "ms" : "");
        assert_fails(err, PARSE(&options, &err, name, value), ST_INVALID, name);
    }
}

static void values(void **state)
{
    (void)state;
    struct error err;
    char a[] = "--body-bytes-max=2M", b[] = "--idle-timeout", c[] = "3m", d[] = "--model";
    char e[] = "x=dir/y.pte", f[] = "--listen=unix:/tmp/s", g[] = "z.pte", h[] = "--",
         i[] = "--odd.pte";
    assert_ok(err, PARSE(&options, &err, a, b, c, d, e, f, g, h, i));
    assert_int_equal(options.params.body_bytes_max, 2 << 20);
    assert_int_equal(options.params.idle_timeout, 180000);
    assert_int_equal(options.model_count, 3);
    assert_int_equal(options.models[0].name_len, 1);
    assert_string_equal(options.models[0].path, "dir/y.pte");
    assert_true(span_is(options_model_name(&options.models[1]), "z"));
    assert_string_equal(options.models[2].path, "--odd.pte");
    assert_string_equal(options.listen.items[0], "unix:/tmp/s");
}

static void names_of_files(void **state)
{
    static const char *const rows[][2] = {
        {"z.pte", "z"},
        {"dir/v1.2_net-x.pte", "v1.2_net-x"},
        {"dir/folder/", "folder"},
        {"yolo11n_executorch_model/", "yolo11n"},
        {"/m/net (1).pte", "net_1"},
        {"a+b.pte", "a_b"},
        {"..a @ b..pte", "a_b."},
        {"\xe6\xa8\xa1\xe5\x9e\x8b.pte", "model"},
        {"n\xc3\xa4her.pte", "n_her"},
        {"...", "model"},
        {"/", "model"},
        {".pte", "pte"},
        {"https://host/a/b%20c.pte?key=x/y.pte#z", "b_20c"},
    };
    (void)state;
    char name[MODEL_NAME_MAX + 1], path[3 * MODEL_NAME_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span made = model_name_of_file(rows[i][0], name);
        assert_string_equal(name, rows[i][1]);
        assert_int_equal(made.len, strlen(name));
        assert_true(model_name_is_valid(made));
    }
    /* Whatever is cut, the name stays valid and within its bound. */
    for (int len = 0; len < 3; len++) {
        snprintf(path, sizeof(path), "%.*s%0*d+%0*d.pte", len, "xx", MODEL_NAME_MAX - 1, 0, 9, 1);
        assert_true(model_name_is_valid(model_name_of_file(path, name)));
        assert_int_equal(strlen(name), MODEL_NAME_MAX - (len == 0));
    }
}

static void numbers(void **state)
{
    (void)state;
    struct error err;
    uint64_t value;
    assert_ok(err, options_parse_number("1G", OPTION_BYTES, 0, UINT64_MAX, &value, &err));
    assert_int_equal(value, 1 << 30);
    assert_ok(err, options_parse_number("10s", OPTION_MS, 0, UINT64_MAX, &value, &err));
    assert_int_equal(value, 10000);
    assert_ok(err, options_parse_number("36h", OPTION_MS, 0, UINT64_MAX, &value, &err));
    assert_int_equal(value, 36 * 3600000);
    assert_ok(err, options_parse_number("0", OPTION_MS, 0, 100, &value, &err));
    assert_int_equal(value, 0);
    assert_fails(err, options_parse_number("0", OPTION_MS, 1, 100, &value, &err), ST_INVALID,
                 "expected 1 to 100 ms");
    static const char *const bad[] = {"", "x", "-1", "1.5", "1 M", "1T", "0x10", "M"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_fails(err, options_parse_number(bad[i], OPTION_BYTES, 0, UINT64_MAX, &value, &err),
                     ST_INVALID, "expected a size");
    }
    assert_fails(err, options_parse_number("10", OPTION_MS, 0, 100, &value, &err), ST_INVALID,
                 "expected a time");
    assert_fails(err,
                 options_parse_number("99999999999999999999", OPTION_COUNT, 0, 9, &value, &err),
                 ST_INVALID, "expected 0 to 9");
    assert_fails(err,
                 options_parse_number("18446744073709551615K", OPTION_BYTES, 0, 9, &value, &err),
                 ST_INVALID, "expected 0 to 9");
}

static void settings_of_a_model(void **state)
{
    (void)state;
    struct error err;
    char a[] = "--set=x:request-timeout=20ms", b[] = "--set", c[] = "y.z:weight=7";
    assert_ok(err, PARSE(&options, &err, a, b, c));
    assert_int_equal(options.setting_count, 2);
    assert_int_equal(options.settings[0].name_len, 1);
    assert_int_equal(options.settings[1].name_len, 3);
    options_apply(&options.settings[0], &options.params);
    options_apply(&options.settings[1], &options.params);
    assert_int_equal(options.params.request_timeout, 20);
    assert_int_equal(options.params.weight, 7);
    static const struct {
        const char *value, *text;
    } bad[] = {
        {"weight=7", "expected NAME:PARAM=VALUE, got 'weight=7'"},
        {":weight=7", "expected NAME:PARAM=VALUE"},
        {"x:weight", "expected NAME:PARAM=VALUE"},
        {"x=1:weight", "expected NAME:PARAM=VALUE"},
        {"x:idle-timeout=1s", "--set: a model has no setting 'idle-timeout'"},
        {"x:=1", "a model has no setting ''"},
        {"x:max-batches=3", "no setting 'max-batches'; did you mean 'max-batch'?"},
        {"x:weight=0", "--set: weight: expected 1 to 1000, got '0'"},
        {"x:max-batch=65", "max-batch: expected 0 to 64"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char value[64];
        snprintf(value, sizeof(value), "%s", bad[i].value);
        assert_fails(err, PARSE(&options, &err, b, value), ST_INVALID, bad[i].text);
    }
}

static void precision(void **state)
{
    (void)state;
    struct error err;
    char exact[] = "--precision=exact", set[] = "--set=x:precision=bf16";
    assert_ok(err, PARSE(&options, &err, exact, set));
    assert_int_equal(options.params.precision, PRECISION_EXACT);
    assert_true(options.settings[0].is_of_file);
    options_apply(&options.settings[0], &options.params);
    assert_int_equal(options.params.precision, PRECISION_BF16);
    char other[] = "--set=x:weight=2";
    assert_ok(err, PARSE(&options, &err, other));
    assert_int_equal(options.params.precision, PRECISION_FAST);
    assert_false(options.settings[0].is_of_file);
    char number[] = "--precision=1", nothing[] = "--set=x:precision=";
    assert_fails(err, PARSE(&options, &err, number), ST_INVALID,
                 "--precision: expected exact, fast or bf16, got '1'");
    assert_fails(err, PARSE(&options, &err, nothing), ST_INVALID,
                 "--set: precision: expected exact, fast or bf16, got ''");
}

static void refused(void **state)
{
    (void)state;
    struct error err;
    char unknown[] = "--nope", dash[] = "-l", listen[] = "--listen", model[] = "--model",
         no_name[] = "=x", level[] = "--log-level=loud", dir[] = "--models=d",
         other[] = "--models=e";
    assert_fails(err, PARSE(&options, &err, unknown), ST_INVALID, "--nope");
    assert_fails(err, PARSE(&options, &err, dash), ST_INVALID, "-l");
    assert_fails(err, PARSE(&options, &err, listen), ST_INVALID, "needs a value");
    assert_fails(err, PARSE(&options, &err, model, no_name), ST_INVALID, "NAME=FILE");
    assert_fails(err, PARSE(&options, &err, level), ST_INVALID, "loud");
    char *argv[1 + OPTIONS_FOLDERS_MAX + 2] = {(char[]){"pted"}};
    for (int i = 1; i <= OPTIONS_FOLDERS_MAX + 1; i++) {
        argv[i] = i == 2 ? other : dir;
    }
    assert_fails(err, parse(argv, &options, &err), ST_INVALID, "--models: given more than 16");
    argv[OPTIONS_FOLDERS_MAX + 1] = NULL;
    assert_ok(err, parse(argv, &options, &err));
    assert_int_equal(options.folder_count, OPTIONS_FOLDERS_MAX);
    assert_string_equal(options.folders[1], "e");
}

static void help_names_every_option(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 65536);
    conf_print_help(&out);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    assert_non_null(strstr((char *)out.ptr, "--body-bytes-max "));
    assert_non_null(strstr((char *)out.ptr, "(64M)"));
    assert_non_null(strstr((char *)out.ptr, "(10s)"));
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets),
        cmocka_unit_test(every_param_is_an_option_within_its_limits),
        cmocka_unit_test(values),
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(numbers),
        cmocka_unit_test(settings_of_a_model),
        cmocka_unit_test(precision),
        cmocka_unit_test(refused),
        cmocka_unit_test(help_names_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
