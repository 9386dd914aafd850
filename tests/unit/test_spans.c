/* SPDX-License-Identifier: MIT */
/* Spans of requests as a collector gets them, and which requests have any. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/oip_settings.h"
#include "server/daemon/observe/spans.h"
#include "tests/unit/observe_support.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define LONG_BYTES 4000

static struct observed_request observed;
static struct spans spans;

static int set_up(void **state)
{
    (void)state;
    observed_request_init(&observed);
    spans = (struct spans){
        .traces = &observed.requests.traces, .writer = make_writer(false), .every = 1, .left = -1};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spans_close(&spans);
    observed_request_fini(&observed);
    return 0;
}

static const char *lines_of_request(void)
{
    struct line_writer *writer = spans.writer;
    spans_request(&spans, &observed.request);
    spans.writer = NULL;
    return kept_lines(writer);
}

static void name_trace(const char *flags)
{
    char field[64];
    snprintf(field, sizeof(field), "00-" TRACE "-" PARENT "-%s", flags);
    observed_request_add_field(&observed, "Traceparent", field);
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* The ids that will be made, in order. */
static void foresee_ids(char ids[8][TRACE_SPAN_CHARS + 1])
{
    struct trace_source source = observed.requests.traces;
    for (int i = 0; i < 8; i++) {
        trace_make_span(&source, ids[i]);
        ids[i][TRACE_SPAN_CHARS] = '\0';
    }
}

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define NUMBER(key, value) "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"

static void a_request_is_a_span_of_its_callers_trace(void **state)
{
    char ids[8][TRACE_SPAN_CHARS + 1], expected[2048];
    (void)state;
    name_trace("01");
    observed_request_add_field(&observed, "User-Agent", "curl/8");
    observed.request.sender.via = "203.0.113.9";
    foresee_ids(ids);
    snprintf(expected, sizeof(expected),
             "{\"traceId\":\"" TRACE "\",\"spanId\":\"%s\",\"parentSpanId\":\"" PARENT
             "\",\"kind\":2,\"name\":\"GET /v2/models/{m}[/versions/{v}]\","
             "\"startTimeUnixNano\":\"4102444800092456789\","
             "\"endTimeUnixNano\":\"4102444800123456789\",\"attributes\":["
             "{\"key\":\"http.request.method\",\"value\":{\"stringValue\":\"GET\"}},"
             "{\"key\":\"http.route\",\"value\":{\"stringValue\":"
             "\"/v2/models/{m}[/versions/{v}]\"}},"
             "{\"key\":\"url.path\",\"value\":{\"stringValue\":\"/v2/models/m\"}},"
             "{\"key\":\"client.address\",\"value\":{\"stringValue\":\"192.0.2.1\"}},"
             "{\"key\":\"network.peer.address\",\"value\":{\"stringValue\":\"203.0.113.9\"}},"
             "{\"key\":\"user_agent.original\",\"value\":{\"stringValue\":\"curl/8\"}},"
             "{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":\"200\"}},"
             "{\"key\":\"pted.model\",\"value\":{\"stringValue\":\"m\"}}]}\n",
             ids[0]);
    assert_string_equal(lines_of_request(), expected);
}

/* The line as a list of spans; to be deleted. */
static cJSON *read_spans(const char *lines, int count)
{
    char text[LINE_BYTES_MAX + 8];
    assert_between(strlen(lines), 2, LINE_BYTES_MAX);
    snprintf(text, sizeof(text), "[%s]", lines);
    cJSON *list = cJSON_ParseWithOpts(text, NULL, true);
    assert_non_null(list);
    assert_int_equal(cJSON_GetArraySize(list), count);
    return list;
}

static const char *text_of(const cJSON *span, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(span, key));
}

/* |from| and |to|: ms before now, of |past| for the first span of the list. */
static void check_span(const cJSON *list, int index, const char *name, const char *parent,
                       unsigned from_ms, unsigned to_ms)
{
    const cJSON *span = cJSON_GetArrayItem(list, index);
    char from[32], to[32];
    uint64_t now_ns = UINT64_C(1000000000) * WALL_S + WALL_NS;
    snprintf(from, sizeof(from), "%llu", (unsigned long long)(now_ns - from_ms * 1000000ull));
    snprintf(to, sizeof(to), "%llu", (unsigned long long)(now_ns - to_ms * 1000000ull));
    assert_string_equal(text_of(span, "name"), name);
    assert_string_equal(text_of(span, "traceId"), TRACE);
    assert_string_equal(text_of(span, "parentSpanId"), parent);
    assert_string_equal(text_of(span, "startTimeUnixNano"), from);
    assert_string_equal(text_of(span, "endTimeUnixNano"), to);
}

static void a_call_has_spans_of_its_phases(void **state)
{
    char ids[8][TRACE_SPAN_CHARS + 1];
    (void)state;
    name_trace("01");
    observed_request_set_run(&observed);
    foresee_ids(ids);
    cJSON *list = read_spans(lines_of_request(), 5);
    check_span(list, 0, "GET /v2/models/{m}[/versions/{v}]", PARENT, 31, 0);
    check_span(list, 1, "prepare", ids[0], 31, 30);
    check_span(list, 2, "queue", ids[0], 30, 28);
    check_span(list, 3, "compute", ids[0], 28, 24);
    check_span(list, 4, "encode", ids[0], 24, 16);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(text_of(cJSON_GetArrayItem(list, i), "spanId"), ids[i]);
    }
    char *attributes = cJSON_PrintUnformatted(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, 0), "attributes"));
    assert_non_null(strstr(attributes, NUMBER("pted.batch_size", "3")));
    cJSON_free(attributes);
    cJSON_Delete(list);
}

/* Reading files lies within the preparation; the answer was never complete. */
static void reading_files_is_a_span_within_the_preparation(void **state)
{
    struct infer *infer = &observed.request.infer;
    char ids[8][TRACE_SPAN_CHARS + 1];
    (void)state;
    name_trace("01");
    observed_request_set_run(&observed);
    infer->media.began_ns = infer->arrived_ns;
    infer->media.ended_ns = infer->arrived_ns + 1000000;
    infer->encoded_ns = 0;
    foresee_ids(ids);
    cJSON *list = read_spans(lines_of_request(), 6);
    check_span(list, 2, "decode", ids[1], 31, 30);
    check_span(list, 5, "encode", ids[0], 24, 0);
    cJSON_Delete(list);
}

/* ---- errors and hostile texts ---------------------------------------------------------------- */

static void an_error_of_ours_is_the_status_of_the_span(void **state)
{
    (void)state;
    name_trace("01");
    observed.request.http_status = 500;
    error_set(&observed.request.err, ST_INTERNAL, "it \"broke\"\n");
    assert_non_null(strstr(lines_of_request(),
                           ",\"status\":{\"code\":2,\"message\":\"it \\\"broke\\\"\\u000a\"}}\n"));
}

static void an_error_of_the_client_is_none_of_the_span(void **state)
{
    (void)state;
    name_trace("01");
    observed.request.http_status = 404;
    observed.request.match.id = ROUTE_COUNT;
    observed.request.method = NULL;
    error_set(&observed.request.err, ST_NOT_FOUND, "no");
    const char *line = lines_of_request();
    assert_null(strstr(line, "\"status\":"));
    assert_non_null(strstr(line, "\"name\":\"-\","));
    assert_non_null(strstr(line, TEXT("http.route", "none")));
}

static void no_text_forges_a_span(void **state)
{
    (void)state;
    observed_request_set_target(&observed, "/a\"}},{\n\x01\xff\xe2\x80\xae");
    observed_request_add_field(&observed, "User-Agent", "\\\"]}\n");
    name_trace("01");
    const char *lines = lines_of_request();
    assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
    assert_non_null(strstr(lines, TEXT("url.path", "/a\\\"}},{\\u000a\\u0001\\ufffd\\u202e")));
    cJSON_Delete(read_spans(lines, 1));
}

static void the_longest_texts_fit_into_a_line(void **state)
{
    static char text[LONG_BYTES];
    (void)state;
    memset(text, '\x01', sizeof(text) - 1);
    text[0] = '/';
    observed_request_set_target(&observed, text);
    observed_request_add_field(&observed, "User-Agent", text);
    name_trace("01");
    memset(observed.request.match.model, '\x01', MODEL_NAME_MAX);
    memset(observed.request.err.text, '\x01', sizeof(observed.request.err.text) - 1);
    observed.request.err.code = ST_INTERNAL;
    observed.request.http_status = 500;
    observed_request_set_run(&observed);
    observed.request.infer.media.ended_ns = observed.request.infer.arrived_ns;
    cJSON_Delete(read_spans(lines_of_request(), 6));
}

/* ---- which requests -------------------------------------------------------------------------- */

static void only_traces_that_the_caller_records_have_spans(void **state)
{
    (void)state;
    name_trace("00");
    assert_string_equal(lines_of_request(), "");
}

static void a_request_without_a_trace_has_no_span(void **state)
{
    (void)state;
    assert_string_equal(lines_of_request(), "");
}

static void no_request_has_spans_while_they_are_off(void **state)
{
    (void)state;
    name_trace("01");
    spans.is_off = true;
    assert_string_equal(lines_of_request(), "");
}

static uint32_t traces_of(uint32_t calls)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < calls; i++) {
        struct trace trace = {.flags = 0};
        if (spans_begin_trace(&spans, &trace)) {
            assert_int_equal(trace.flags, TRACE_FLAG_SAMPLED);
            assert_false(trace.has_parent);
            assert_true(trace.id[0] && trace.span[0]);
            count++;
        }
    }
    return count;
}

static void a_trace_begins_with_each_so_many_calls(void **state)
{
    (void)state;
    assert_int_equal(traces_of(10), 10);
    spans.every = 4;
    spans.call_count = 0;
    assert_int_equal(traces_of(10), 3); /* the first, the fifth and the ninth */
    spans.every = 0;
    assert_int_equal(traces_of(10), 0);
}

static void so_many_traces_begin_and_no_more(void **state)
{
    (void)state;
    spans.left = 3;
    assert_int_equal(traces_of(10), 3);
    assert_int_equal(spans.left, 0);
    assert_int_equal(traces_of(10), 0);
}

static void no_trace_begins_without_a_collector(void **state)
{
    struct line_writer *writer = spans.writer;
    (void)state;
    spans.is_off = true;
    assert_int_equal(traces_of(5), 0);
    spans.is_off = false;
    spans.writer = NULL;
    assert_int_equal(traces_of(5), 0);
    assert_int_equal(spans_counts(&spans).added, 0);
    spans.writer = writer;
}

static void what_was_added_is_counted(void **state)
{
    (void)state;
    name_trace("01");
    spans_request(&spans, &observed.request);
    spans_request(&spans, &observed.request);
    assert_int_equal(spans_counts(&spans).added, 2);
    assert_int_equal(spans_counts(&spans).lost, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_a_span_of_its_callers_trace),
        TEST(a_call_has_spans_of_its_phases),
        TEST(reading_files_is_a_span_within_the_preparation),
        TEST(an_error_of_ours_is_the_status_of_the_span),
        TEST(an_error_of_the_client_is_none_of_the_span),
        TEST(no_text_forges_a_span),
        TEST(the_longest_texts_fit_into_a_line),
        TEST(only_traces_that_the_caller_records_have_spans),
        TEST(a_request_without_a_trace_has_no_span),
        TEST(no_request_has_spans_while_they_are_off),
        TEST(a_trace_begins_with_each_so_many_calls),
        TEST(so_many_traces_begin_and_no_more),
        TEST(no_trace_begins_without_a_collector),
        TEST(what_was_added_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
