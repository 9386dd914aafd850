/* SPDX-License-Identifier: MIT */
/* Requests for settings and for regions of shared memory. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "protocol/oip.h"
#include "protocol/oip_settings.h"

#define OIP_LOG_KINDS 4

static void expect_text(struct buf *out, const char *wanted)
{
    assert_false(buf_failed(out));
    assert_int_equal(out->len, strlen(wanted));
    assert_memory_equal(out->ptr, wanted, out->len);
    buf_fini(out);
}

static void log_settings_are_printed(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1024);
    oip_print_log(&out, &(struct oip_log_settings){OIP_LOG_WARNINGS, "a\"b"});
    expect_text(&out, "{\"log_file\":\"a\\\"b\",\"log_error\":true,\"log_warning\":true,"
                      "\"log_info\":false,\"log_verbose_level\":0,\"log_format\":\"ISO8601\"}");
}

/* Every combination of what a request says of the three kinds that can change, from each kind. */
static void each_combination_is_one_level_or_refused(void **state)
{
    static const char *const names[] = {"log_warning", "log_info", "log_verbose_level"};
    static const char *const values[][3] = {{"true", "true", "1"}, {"false", "false", "0"}};
    (void)state;
    for (unsigned c = 0; c < 27 * OIP_LOG_KINDS; c++) {
        unsigned said[3] = {c % 3, c / 3 % 3, c / 9 % 3}; /* 0: on, 1: off, 2: nothing */
        struct oip_log_settings now = {(enum oip_log_kind)(c / 27), ""};
        enum oip_log_kind kind = OIP_LOG_ERRORS;
        struct error err;
        char text[128];
        size_t len = 1;
        bool is_contradiction = false;
        text[0] = '{';
        for (unsigned i = 0; i < 3; i++) {
            if (said[i] < 2) {
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\"%s\":%s",
                                        len > 1 ? "," : "", names[i], values[said[i]][i]);
            }
            for (unsigned j = i; j < 3; j++) {
                is_contradiction |= said[i] == 1 && said[j] == 0;
            }
        }
        snprintf(text + len, sizeof(text) - len, "}");
        enum status status = oip_parse_log(span_str(text), &now, &kind, &err);
        assert_int_equal(status, is_contradiction ? ST_INVALID : ST_OK);
        for (unsigned i = 0; !is_contradiction && i < 3; i++) {
            assert_true(said[i] == 2 || (said[i] == 0) == ((unsigned)kind > i));
        }
        if (said[0] == 2 && said[1] == 2 && said[2] == 2) {
            assert_int_equal(kind, now.kind);
        }
    }
}

static void other_log_settings_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum status code;
        const char *why;
    } cases[] = {
        {"", ST_INVALID, "expected an object"},
        {"[]", ST_INVALID, "expected an object"},
        {"{} x", ST_INVALID, ""},
        {"{\"log_error\":false}", ST_INVALID, "errors are always logged"},
        {"{\"log_info\":1}", ST_INVALID, "log_info: expected"},
        {"{\"log_verbose_level\":true}", ST_INVALID, "log_verbose_level: expected"},
        {"{\"log_verbose_level\":18446744073709551616}", ST_INVALID, "out of range"},
        {"{\"log_info\":true,\"log_info\":true}", ST_INVALID, ""},
        {"{\"log_file\":\"other\"}", ST_UNSUPPORTED, "log_file: expected \"f\""},
        {"{\"log_file\":null}", ST_INVALID, "log_file: expected"},
        {"{\"log_format\":\"default\"}", ST_UNSUPPORTED, "log_format: expected \"ISO8601\""},
        {"{\"log_warnings\":true}", ST_INVALID, "unknown member"},
    };
    (void)state;
    const struct oip_log_settings now = {OIP_LOG_INFOS, "f"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum oip_log_kind kind;
        struct error err;
        assert_fails(err, oip_parse_log(span_str(cases[i].text), &now, &kind, &err), cases[i].code,
                     cases[i].why);
    }
    enum oip_log_kind kind;
    struct error err;
    assert_ok(err, oip_parse_log(span_str("{\"log_file\":\"f\",\"log_format\":\"ISO8601\"}"), &now,
                                 &kind, &err));
    assert_int_equal(kind, OIP_LOG_INFOS);
}

static void trace_settings_are_read(void **state)
{
    (void)state;
    struct oip_trace_change change;
    struct error err;
    struct buf out;
    buf_init(&out, 1024);
    oip_print_trace(&out, &(struct oip_trace_settings){true, 7, -1});
    expect_text(&out, "{\"trace_level\":[\"TIMESTAMPS\"],\"trace_rate\":\"7\","
                      "\"trace_count\":\"-1\",\"log_frequency\":\"0\",\"trace_file\":\"\","
                      "\"trace_mode\":\"opentelemetry\"}");
    assert_ok(err, oip_parse_trace(span_str(""), &change, &err));
    assert_int_equal(change.level, OIP_TRACE_SAME);
    assert_ok(err,
              oip_parse_trace(span_str("{\"trace_level\":[\"TIMESTAMPS\"],\"trace_rate\":\"5\","
                                       "\"trace_count\":9,\"trace_mode\":\"opentelemetry\","
                                       "\"trace_file\":\"\",\"log_frequency\":\"0\"}"),
                              &change, &err));
    assert_int_equal(change.level, OIP_TRACE_ON);
    assert_int_equal(change.rate.value, 5);
    assert_int_equal(change.count.value, 9);
    assert_ok(err, oip_parse_trace(span_str("{\"trace_level\":null,\"trace_rate\":null,"
                                            "\"trace_count\":null,\"trace_file\":null}"),
                                   &change, &err));
    assert_int_equal(change.level, OIP_TRACE_DEFAULT);
    assert_true(change.rate.is_default && change.count.is_default && !change.rate.is_set);
    assert_ok(err, oip_parse_trace(span_str("{\"trace_level\":[\"OFF\"]}"), &change, &err));
    assert_int_equal(change.level, OIP_TRACE_OFF);
    assert_ok(err, oip_parse_trace(span_str("{\"trace_level\":\"TIMESTAMPS\"}"), &change, &err));
    assert_int_equal(change.level, OIP_TRACE_ON);
}

static void other_trace_settings_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum status code;
    } cases[] = {
        {"[]", ST_INVALID},
        {"{\"trace_level\":[]}", ST_INVALID},
        {"{\"trace_level\":\"off\"}", ST_INVALID},
        {"{\"trace_level\":[\"OFF\",\"TIMESTAMPS\"]}", ST_INVALID},
        {"{\"trace_level\":[\"off\"]}", ST_INVALID},
        {"{\"trace_level\":[\"TENSORS\"]}", ST_UNSUPPORTED},
        {"{\"trace_rate\":\"\"}", ST_INVALID},
        {"{\"trace_rate\":\"1x\"}", ST_INVALID},
        {"{\"trace_rate\":\"-1\"}", ST_INVALID},
        {"{\"trace_rate\":\"9223372036854775808\"}", ST_INVALID},
        {"{\"trace_rate\":1.5}", ST_INVALID},
        {"{\"trace_count\":\"-2\"}", ST_INVALID},
        {"{\"trace_count\":[]}", ST_INVALID},
        {"{\"trace_file\":\"x\"}", ST_UNSUPPORTED},
        {"{\"trace_mode\":\"triton\"}", ST_UNSUPPORTED},
        {"{\"log_frequency\":\"1\"}", ST_UNSUPPORTED},
        {"{\"x\":null}", ST_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct oip_trace_change change;
        struct error err;
        assert_int_equal(oip_parse_trace(span_str(cases[i].text), &change, &err), cases[i].code);
    }
}

static void regions_are_read(void **state)
{
    const struct oip_limits limits = {.name_bytes_max = 64};
    struct oip_region region;
    struct arena arena;
    struct error err;
    (void)state;
    arena_init(&arena, 4096);
    assert_ok(err, oip_parse_region(span_str("{\"byte_size\":18446744073709551615,\"x\":[{}],"
                                             "\"key\":\"\\/a\\u00e9\",\"offset\":7}"),
                                    &limits, &arena, &region, &err));
    assert_true(span_is(region.key, "/a\xc3\xa9"));
    assert_int_equal(region.offset, 7);
    assert_true(region.bytes == UINT64_MAX);
    assert_ok(err, oip_parse_region(span_str("{\"key\":\"a\",\"byte_size\":0}"), &limits, &arena,
                                    &region, &err));
    assert_int_equal(region.offset, 0);
    assert_fails(err, oip_parse_region(span_str("{\"key\":\"a\"}"), &limits, &arena, &region, &err),
                 ST_INVALID, "member \"byte_size\" is missing");
    assert_fails(err,
                 oip_parse_region(span_str("{\"byte_size\":1}"), &limits, &arena, &region, &err),
                 ST_INVALID, "member \"key\" is missing");
    assert_fails(err, oip_parse_region(span_str("{\"key\":1}"), &limits, &arena, &region, &err),
                 ST_INVALID, "key: expected a string");
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_settings_are_printed),
        cmocka_unit_test(each_combination_is_one_level_or_refused),
        cmocka_unit_test(other_log_settings_are_refused),
        cmocka_unit_test(trace_settings_are_read),
        cmocka_unit_test(other_trace_settings_are_refused),
        cmocka_unit_test(regions_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
