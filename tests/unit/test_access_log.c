/* SPDX-License-Identifier: MIT */
/* Lines of the access log as a whole, for requests that are made up. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "server/daemon/loop/loop.h"
#include "server/process/log.h"
#include "tests/unit/observe_support.h"

#define LONG_BYTES 4000

static struct observed_request observed;
static struct access_log access_log;
static struct loop loop;
static struct error err;

static int set_up(void **state)
{
    (void)state;
    observed_request_init(&observed);
    observed.options.access_log = OPTIONS_ACCESS_ALL;
    loop = (struct loop){.is_starting = false};
    log_gate_init(&loop.log);
    access_log = (struct access_log){
        .options = &observed.options, .loop = &loop, .writer = make_writer(false)};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    access_log_close(&access_log);
    observed_request_fini(&observed);
    log_gate_fini(&loop.log);
    return 0;
}

/* What has been written so far; the log is over. */
static const char *written(void)
{
    struct line_writer *writer = access_log.writer;
    access_log.writer = NULL;
    return kept_lines(writer);
}

static const char *line_of_request(void)
{
    access_log_request(&access_log, &observed.request);
    return written();
}

#define BEGIN                                                                                      \
    "{\"time\":\"2100-01-01T00:00:00.123456Z\",\"remote\":\"192.0.2.1\",\"method\":\"GET\","

static void a_line_has_the_time_the_client_and_the_answer(void **state)
{
    (void)state;
    assert_string_equal(line_of_request(),
                        BEGIN "\"path\":\"/v2/models/m\",\"status\":200,\"bytes_in\":7,"
                              "\"bytes_out\":100,\"model\":\"m\",\"total_us\":31000}\n");
}

static void a_line_has_all_that_is_known(void **state)
{
    struct request *request = &observed.request;
    (void)state;
    observed_request_set_target(&observed, "http://me:secret@host/a?token=secret");
    observed_request_add_field(&observed, "X-Request-Id", "id-1");
    observed_request_add_field(&observed, "User-Agent", "curl/8");
    observed_request_add_field(&observed, "Traceparent",
                               "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    struct trace_source source = observed.requests.traces;
    char span[TRACE_SPAN_CHARS];
    trace_make_span(&source, span);
    request->sender.via = "203.0.113.9";
    request->client.token_name = "team";
    observed.exchange.tls_version = "TLSv1.3";
    observed.exchange.tls_subject = "CN=me";
    char expected[1024];
    snprintf(expected, sizeof(expected),
             "{\"time\":\"2100-01-01T00:00:00.123456Z\",\"remote\":\"192.0.2.1\","
             "\"via\":\"203.0.113.9\",\"method\":\"GET\",\"path\":\"/a\",\"status\":200,"
             "\"bytes_in\":7,\"bytes_out\":100,\"id\":\"id-1\",\"model\":\"m\","
             "\"token\":\"team\",\"tls\":\"TLSv1.3\",\"tls_subject\":\"CN=me\","
             "\"user_agent\":\"curl/8\",\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\","
             "\"span_id\":\"%.16s\",\"parent_id\":\"b7ad6b7169203331\",\"total_us\":31000}\n",
             span);
    assert_string_equal(line_of_request(), expected);
}

static void a_call_has_its_phases(void **state)
{
    (void)state;
    observed_request_set_run(&observed);
    assert_string_equal(line_of_request(),
                        BEGIN "\"path\":\"/v2/models/m\",\"status\":200,\"bytes_in\":7,"
                              "\"bytes_out\":100,\"model\":\"m\",\"batch\":3,\"prepare_us\":1000,"
                              "\"queue_us\":2000,\"compute_us\":4000,\"encode_us\":8000,"
                              "\"total_us\":31000}\n");
}

/* Reading files is told apart from the rest of the preparation. */
static void a_call_with_files_has_the_time_that_reading_took(void **state)
{
    struct infer *infer = &observed.request.infer;
    (void)state;
    observed_request_set_run(&observed);
    infer->job.batch_size = 0;
    infer->encoded_ns = 0; /* the client left before */
    infer->media.began_ns = infer->arrived_ns + 100000;
    infer->media.ended_ns = infer->arrived_ns + 400000;
    const char *line = line_of_request();
    assert_non_null(strstr(line, "\"batch\":1,\"prepare_us\":700,\"decode_us\":300,"));
    assert_non_null(strstr(line, "\"encode_us\":24000,\"total_us\":31000}\n"));
}

/* ---- texts that are kept from line to line --------------------------------------------------- */

static char long_path[300];

/* Where the request comes from, and what it asks for. */
static void set_origin(int odd)
{
    struct request *request = &observed.request;
    request->sender.remote = odd == 1 ? "192.0.2.10" : odd == 2 ? "192.0.2." : "192.0.2.1";
    request->sender.via = odd == 3 ? "203.0.113.9" : NULL;
    request->method = odd == 4 ? NULL : odd == 5 ? "HEAD" : "GET";
    observed_request_set_target(&observed, odd == 6    ? "/v2/models/n"
                                           : odd == 7  ? "/v2/models"
                                           : odd == 8  ? "/v2/models/m?a=\"b"
                                           : odd == 9  ? "/v2/models/\"\\\n"
                                           : odd == 10 ? long_path
                                                       : "/v2/models/m");
}

/* The line of such a request, behind one of another kind. The caller frees it. */
static char *line_behind(int before, int odd)
{
    access_log = (struct access_log){
        .options = &observed.options, .loop = &loop, .writer = make_writer(false)};
    for (int i = 0; i < 2; i++) {
        set_origin(before);
        access_log_request(&access_log, &observed.request);
    }
    set_origin(odd);
    access_log_request(&access_log, &observed.request);
    char *lines = strdup(written()), *end = strrchr(lines, '\n');
    assert_non_null(end);
    *end = '\0';
    char *line = strdup(strrchr(lines, '\n') + 1);
    free(lines);
    return line;
}

static void a_line_does_not_depend_on_the_line_before(void **state)
{
    (void)state;
    (void)written();
    long_path[0] = '/';
    memset(long_path + 1, '\x7f', sizeof(long_path) - 2);
    for (int odd = 0; odd <= 10; odd++) {
        char *alone = line_behind(odd == 6 ? 7 : 6, odd);
        for (int before = 0; before <= 10; before++) {
            char *line = line_behind(before, odd);
            assert_string_equal(line, alone);
            free(line);
        }
        free(alone);
    }
    access_log.writer = make_writer(false); /* for tear_down() */
}

static void an_id_of_the_body_counts_if_no_field_has_one(void **state)
{
    (void)state;
    observed.request.infer.id = span_str("of the body");
    assert_non_null(strstr(line_of_request(), ",\"id\":\"of the body\","));
}

/* The parts of a request whose client leaves may belong to a thread. */
static void a_request_on_a_thread_shows_nothing_of_the_call(void **state)
{
    (void)state;
    observed_request_set_run(&observed);
    observed.request.infer.id = span_str("of the body");
    observed.request.is_on_worker = true;
    observed.exchange.outgoing = EXCHANGE_NO_ANSWER;
    observed.exchange.sent_bytes = 0;
    error_set(&observed.request.err, ST_INTERNAL, "hidden");
    assert_string_equal(line_of_request(),
                        BEGIN "\"path\":\"/v2/models/m\",\"status\":499,\"bytes_in\":7,"
                              "\"bytes_out\":0,\"model\":\"m\",\"total_us\":31000}\n");
}

static void an_error_has_its_text(void **state)
{
    (void)state;
    observed.request.http_status = 400;
    observed.request.match.model[0] = '\0';
    observed.request.method = NULL; /* the head was cut */
    observed.request.infer.arrived_ns = 0;
    error_set(&observed.request.err, ST_INVALID, "expected \"a\",\ngot \x1b[31m");
    assert_string_equal(line_of_request(),
                        "{\"time\":\"2100-01-01T00:00:00.123456Z\",\"remote\":\"192.0.2.1\","
                        "\"method\":\"\",\"path\":\"/v2/models/m\",\"status\":400,\"bytes_in\":7,"
                        "\"bytes_out\":100,\"total_us\":0,"
                        "\"error\":\"expected \\\"a\\\",\\u000agot \\u001b[31m\"}\n");
}

/* ---- hostile texts --------------------------------------------------------------------------- */

static void no_text_forges_a_line_or_a_member(void **state)
{
    (void)state;
    observed_request_set_target(&observed, "/a\",\"status\":200\\\n\x01\xff\xe2\x80\xae");
    observed_request_add_field(&observed, "User-Agent", "\"}\n{\"time\":\"\xc0\x80");
    const char *line = line_of_request();
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    assert_non_null(json);
    assert_non_null(strstr(line, "\"path\":\"/a\\\",\\\"status\\\":200\\\\\\u000a\\u0001\\ufffd"
                                 "\\u202e\",\"status\":200,"));
    assert_non_null(strstr(line, "\"user_agent\":\"\\\"}\\u000a{\\\"time\\\":\\\""));
    cJSON_Delete(json);
}

static void the_longest_texts_fit_into_a_line(void **state)
{
    static char text[LONG_BYTES];
    (void)state;
    memset(text, '\x01', sizeof(text) - 1);
    text[0] = '/';
    observed_request_set_target(&observed, text);
    observed_request_add_field(&observed, "User-Agent", text);
    observed_request_add_field(&observed, "X-Request-Id", text);
    observed.exchange.tls_subject = text;
    memset(observed.request.match.model, '\x01', MODEL_NAME_MAX);
    memset(observed.request.err.text, '\x01', sizeof(observed.request.err.text) - 1);
    observed.request.err.code = ST_INTERNAL;
    observed_request_set_run(&observed);
    const char *line = line_of_request();
    size_t len = strlen(line);
    assert_between(len, 5000, LINE_BYTES_MAX);
    cJSON *json = cJSON_ParseWithOpts(line, NULL, true);
    assert_non_null(json);
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "path"));
    assert_int_equal(strlen(path), 400);
    cJSON_Delete(json);
}

/* ---- which requests -------------------------------------------------------------------------- */

static const int statuses[] = {200, 200, 404, 200, 200, 503, 200};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

static uint32_t lines_of(enum options_access_log which)
{
    observed.options.access_log = which;
    for (size_t i = 0; i < STATUSES; i++) {
        observed.request.http_status = statuses[i];
        access_log_request(&access_log, &observed.request);
    }
    uint64_t added = access_log_counts(&access_log).added;
    const char *text = written();
    assert_int_equal(line_sink_count((const uint8_t *)text, strlen(text)), added);
    return (uint32_t)added;
}

static void all_requests_have_lines(void **state)
{
    (void)state;
    assert_int_equal(lines_of(OPTIONS_ACCESS_ALL), 7);
}

static void errors_alone_have_lines(void **state)
{
    (void)state;
    assert_int_equal(lines_of(OPTIONS_ACCESS_ERRORS), 2);
}

/* The first and the fourth good one, and all errors. */
static void samples_have_lines(void **state)
{
    (void)state;
    observed.options.params.access_log_sample = 3;
    assert_int_equal(lines_of(OPTIONS_ACCESS_SAMPLED), 4);
}

static void without_a_log_nothing_is_written_or_counted(void **state)
{
    struct access_log none = {.options = &observed.options};
    (void)state;
    observed.options.access_log = OPTIONS_ACCESS_OFF;
    assert_ok(err, access_log_open(&none, &loop, &observed.options, &err));
    access_log_request(&none, &observed.request);
    assert_int_equal(access_log_counts(&none).added, 0);
    assert_ok(err, access_log_reopen(&none, &err));
    access_log_close(&none);
}

/* ---- where they go --------------------------------------------------------------------------- */

static void the_journal_gets_fields(void **state)
{
    (void)state;
    access_log.is_journal = true;
    observed.request.http_status = 404;
    observed_request_set_target(&observed, "/a\n\x1ePTED_STATUS=200");
    error_set(&observed.request.err, ST_NOT_FOUND, "no \"a\"");
    assert_string_equal(
        line_of_request(),
        "PRIORITY=6\x1eSYSLOG_IDENTIFIER=pted\x1eMESSAGE=GET /a\\u000a\\u001ePTED_STATUS=200 404"
        "\x1ePTED_REMOTE=192.0.2.1\x1ePTED_METHOD=GET"
        "\x1ePTED_PATH=/a\\u000a\\u001ePTED_STATUS=200\x1ePTED_STATUS=404\x1ePTED_BYTES_IN=7"
        "\x1ePTED_BYTES_OUT=100\x1ePTED_MODEL=m\x1ePTED_TOTAL_US=31000\x1ePTED_ERROR=no \"a\"\n");
}

static void a_file_is_opened_again(void **state)
{
    struct access_log log = {.options = &observed.options};
    char path[] = "/tmp/test_access_log_XXXXXX", old[64], text[256];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(old, sizeof(old), "%s.old", path);
    observed.options.access_log_file = path;
    assert_ok(err, access_log_open(&log, &loop, &observed.options, &err));
    access_log_request(&log, &observed.request);
    access_log_close(&log); /* writes the rest */
    assert_ok(err, access_log_open(&log, &loop, &observed.options, &err));
    assert_int_equal(rename(path, old), 0);
    assert_ok(err, access_log_reopen(&log, &err));
    access_log_request(&log, &observed.request);
    access_log_close(&log);
    const char *const paths[] = {path, old};
    for (size_t i = 0; i < 2; i++) {
        FILE *file = fopen(paths[i], "re");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        assert_non_null(strstr(text, "\"path\":\"/v2/models/m\""));
        assert_null(fgets(text, sizeof(text), file));
        fclose(file);
        unlink(paths[i]);
    }
    observed.options.access_log_file = "/nowhere/at/all";
    assert_fails(err, access_log_open(&log, &loop, &observed.options, &err), ST_NOT_FOUND,
                 "/nowhere/at/all");
}

/* The log says so once in a while. */
static void lines_that_are_lost_are_told(void **state)
{
    char path[] = "/tmp/test_access_log_XXXXXX", text[256];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(err, log_open(path, LOG_WARNING, &err));
    (void)written();
    access_log.writer = make_writer(true);
    for (int i = 0; i < 4000; i++) {
        access_log_request(&access_log, &observed.request);
    }
    uint64_t lost = access_log_counts(&access_log).lost;
    assert_between(lost, 1000, 3999);
    unblock_writer();
    (void)written();
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_non_null(strstr(text, "warning: access log: 1 lines were lost so far\n"));
    fclose(file);
    unlink(path);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_has_the_time_the_client_and_the_answer),
        TEST(a_line_has_all_that_is_known),
        TEST(a_call_has_its_phases),
        TEST(a_call_with_files_has_the_time_that_reading_took),
        TEST(a_line_does_not_depend_on_the_line_before),
        TEST(an_id_of_the_body_counts_if_no_field_has_one),
        TEST(a_request_on_a_thread_shows_nothing_of_the_call),
        TEST(an_error_has_its_text),
        TEST(no_text_forges_a_line_or_a_member),
        TEST(the_longest_texts_fit_into_a_line),
        TEST(all_requests_have_lines),
        TEST(errors_alone_have_lines),
        TEST(samples_have_lines),
        TEST(without_a_log_nothing_is_written_or_counted),
        TEST(the_journal_gets_fields),
        TEST(a_file_is_opened_again),
        TEST(lines_that_are_lost_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
