/* SPDX-License-Identifier: MIT */
/*
 * What a collector is sent, and what happens when it is away. The linker sends curl_load() here:
 * the collector answers what the test says, without any socket. Pauses take no time.
 */
#include "config.h"

#include "tests/unit/log_lines.h"
#include "tests/unit/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/daemon/observe/otlp.h"
#include "server/daemon/observe/spans.h"
#include "server/process/curl.h"
#include "server/process/log.h"

#define TRIES_MAX 8
#define BODY_MAX 4096

/* ---- the collector --------------------------------------------------------------------------- */

static struct {
    char url[256], body[BODY_MAX], header[64], agent[64], protocols[32];
    long answers[TRIES_MAX]; /* its statuses; 0: there is no connection */
    unsigned tries;
    size_t answer_bytes; /* of each answer */
    curl_write_callback write;
    curl_xferinfo_callback progress;
    void *write_data, *progress_data;
    const char *post;
    curl_off_t post_bytes;
    bool has_no_memory; /* for a handle */
    bool is_not_there;  /* the library */
    unsigned easy_count, list_count;
    long paused_ms;
} collector;

static CURL *easy_init(void)
{
    collector.easy_count += !collector.has_no_memory;
    return collector.has_no_memory ? NULL : (CURL *)&collector;
}

static void easy_cleanup(CURL *easy)
{
    assert_ptr_equal(easy, &collector);
    collector.easy_count--;
}

static struct curl_slist *slist_append(struct curl_slist *list, const char *text)
{
    assert_null(list);
    snprintf(collector.header, sizeof(collector.header), "%s", text);
    collector.list_count++;
    return (struct curl_slist *)(void *)collector.header;
}

static void slist_free_all(struct curl_slist *list)
{
    assert_ptr_equal(list, collector.header);
    collector.list_count--;
}

static void copy(char *out, size_t size, va_list *arguments)
{
    snprintf(out, size, "%s", va_arg(*arguments, const char *));
}

static void take_option(CURLoption option, va_list *arguments)
{
    switch ((int)option) {
    case CURLOPT_URL:
        copy(collector.url, sizeof(collector.url), arguments);
        break;
    case CURLOPT_USERAGENT:
        copy(collector.agent, sizeof(collector.agent), arguments);
        break;
    case CURLOPT_PROTOCOLS_STR:
        copy(collector.protocols, sizeof(collector.protocols), arguments);
        break;
    case CURLOPT_WRITEFUNCTION:
        collector.write = va_arg(*arguments, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        collector.write_data = va_arg(*arguments, void *);
        break;
    case CURLOPT_XFERINFOFUNCTION:
        collector.progress = va_arg(*arguments, curl_xferinfo_callback);
        break;
    case CURLOPT_XFERINFODATA:
        collector.progress_data = va_arg(*arguments, void *);
        break;
    case CURLOPT_POSTFIELDS:
        collector.post = va_arg(*arguments, const char *);
        break;
    case CURLOPT_POSTFIELDSIZE_LARGE:
        collector.post_bytes = va_arg(*arguments, curl_off_t);
        break;
    default: /* times and the like */
        break;
    }
}

static CURLcode easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list arguments;
    assert_ptr_equal(easy, &collector);
    va_start(arguments, option);
    take_option(option, &arguments);
    va_end(arguments);
    return CURLE_OK;
}

static CURLcode easy_perform(CURL *easy)
{
    char piece[1024] = "";
    assert_ptr_equal(easy, &collector);
    assert_true(collector.tries < TRIES_MAX && collector.post_bytes < BODY_MAX);
    memcpy(collector.body, collector.post, (size_t)collector.post_bytes);
    collector.body[collector.post_bytes] = '\0';
    if (collector.answers[collector.tries++] == 0) {
        return CURLE_COULDNT_CONNECT;
    }
    for (size_t rest = collector.answer_bytes; rest > 0;) {
        size_t len = rest < sizeof(piece) ? rest : sizeof(piece);
        if (collector.write(piece, 1, len, collector.write_data) != len) {
            return CURLE_WRITE_ERROR;
        }
        rest -= len;
    }
    return CURLE_OK;
}

static CURLcode easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list arguments;
    assert_ptr_equal(easy, &collector);
    assert_int_equal(info, CURLINFO_RESPONSE_CODE);
    va_start(arguments, info);
    *va_arg(arguments, long *) = collector.answers[collector.tries - 1];
    va_end(arguments);
    return CURLE_OK;
}

static const char *easy_strerror(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT ? "no connection" : "another error";
}

enum status __wrap_curl_load(struct error *err, const struct curl **curl);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

enum status __wrap_curl_load(struct error *err, const struct curl **curl)
{
    static const struct curl functions = {
        .easy_init = easy_init,
        .easy_setopt = easy_setopt,
        .easy_perform = easy_perform,
        .easy_getinfo = easy_getinfo,
        .easy_cleanup = easy_cleanup,
        .easy_strerror = easy_strerror,
        .slist_append = slist_append,
        .slist_free_all = slist_free_all,
    };
    *curl = &functions;
    return collector.is_not_there ? error_set(err, ST_UNAVAILABLE, "libcurl is not installed")
                                  : ST_OK;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    collector.paused_ms += time->tv_nsec / 1000000;
    return 0;
}

/* ---- a sink ---------------------------------------------------------------------------------- */

static struct line_sink *sink;
static struct error err;
static char log_file[64];

static int set_up(void **state)
{
    (void)state;
    memset(&collector, 0, sizeof(collector));
    for (int i = 0; i < TRIES_MAX; i++) {
        collector.answers[i] = 200;
    }
    snprintf(log_file, sizeof(log_file), "/tmp/test_otlp_XXXXXX");
    int fd = mkstemp(log_file);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(err, log_open(log_file, LOG_NOTICE, &err));
    assert_ok(err, otlp_sink("http://collector:4318", "my \"service\"", &sink, &err));
    return 0;
}

/* Nothing of the library is left. */
static int tear_down(void **state)
{
    (void)state;
    if (sink) {
        sink->ops->free(sink);
    }
    sink = NULL;
    assert_int_equal(collector.easy_count + collector.list_count, 0);
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    return unlink(log_file);
}

/* Returns how many lines are lost. */
static uint64_t post(const char *lines)
{
    collector.tries = 0;
    collector.paused_ms = 0;
    return sink->ops->write(sink, (const uint8_t *)lines, strlen(lines));
}

/* How often the log says |text|. */
static unsigned said(const char *text)
{
    return log_lines(log_file, text);
}

#define HEAD                                                                                       \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"      \
    "{\"stringValue\":\"my \\\"service\\\"\"}},{\"key\":\"service.version\",\"value\":"            \
    "{\"stringValue\":\"" VERSION "\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"pted\","          \
    "\"version\":\"" VERSION "\"},\"spans\":["

static void lines_become_one_body(void **state)
{
    (void)state;
    assert_int_equal(post("{\"a\":1},{\"b\":2}\n{\"c\":3}\n"), 0);
    assert_string_equal(collector.body, HEAD "{\"a\":1},{\"b\":2},{\"c\":3}]}]}]}");
    assert_int_equal(post("{\"d\":4}\n"), 0); /* the next body has nothing of it */
    assert_string_equal(collector.body, HEAD "{\"d\":4}]}]}]}");
    assert_int_equal(collector.tries, 1);
    assert_string_equal(collector.header, "Content-Type: application/json");
    assert_string_equal(collector.agent, "pted/" VERSION);
    assert_string_equal(collector.protocols, "http,https");
    assert_int_equal(said(""), 0);
}

static void the_path_is_added_once(void **state)
{
    static const char *const endpoints[] = {"http://c:1", "http://c:1/", "http://c:1//",
                                            "http://c:1/v1/traces", "http://c:1/v1/traces/"};
    (void)state;
    assert_string_equal(collector.url, "http://collector:4318/v1/traces");
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        sink->ops->free(sink);
        assert_ok(err, otlp_sink(endpoints[i], "s", &sink, &err));
        assert_string_equal(collector.url, "http://c:1/v1/traces");
    }
    sink->ops->free(sink);
    assert_ok(err, otlp_sink("http://c:1/behind", "s", &sink, &err));
    assert_string_equal(collector.url, "http://c:1/behind/v1/traces");
}

/* ---- a collector that is away or busy -------------------------------------------------------- */

static void a_busy_collector_is_asked_again(void **state)
{
    static const long busy[] = {429, 502, 503, 504, 0};
    (void)state;
    for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++) {
        collector.answers[0] = busy[i];
        assert_int_equal(post("{}\n"), 0);
        assert_int_equal(collector.tries, 2);
        assert_int_equal(collector.paused_ms, 1000);
    }
    assert_int_equal(said(""), 0); /* it took them in the end */
}

static void after_three_tries_the_lines_are_lost(void **state)
{
    (void)state;
    collector.answers[0] = collector.answers[1] = collector.answers[2] = 503;
    assert_int_equal(post("{}\n{}\n"), 2);
    assert_int_equal(collector.tries, 3);
    assert_int_equal(collector.paused_ms, 3000);
    assert_int_equal(post("{}\n"), 1); /* is not told again */
    assert_int_equal(said("warning: traces: the collector answers 503; expected 200"), 1);
    collector.answers[0] = 200;
    assert_int_equal(post("{}\n"), 0);
    assert_int_equal(said("notice: traces: the collector takes spans again"), 1);
    assert_int_equal(said(""), 2);
}

static void a_refusal_is_final(void **state)
{
    static const long refusals[] = {199, 300, 400, 401, 404, 500};
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        collector.answers[0] = refusals[i];
        assert_int_equal(post("{}\n{}\n{}\n"), 3);
        assert_int_equal(collector.tries, 1);
    }
    assert_int_equal(said("the collector answers 199; expected 200"), 1);
    assert_int_equal(said(""), 1);
}

static void a_collector_that_is_away_is_told_once(void **state)
{
    (void)state;
    collector.answers[0] = collector.answers[1] = collector.answers[2] = 0;
    assert_int_equal(post("{}\n"), 1);
    assert_int_equal(post("{}\n"), 1);
    assert_int_equal(said("warning: traces: the collector: no connection"), 1);
}

/* Its text says nothing of use. */
static void an_answer_without_end_is_cut(void **state)
{
    (void)state;
    collector.answer_bytes = 64 << 10;
    assert_int_equal(post("{}\n"), 0);
    collector.answer_bytes++;
    assert_int_equal(post("{}\n"), 1);
    assert_int_equal(said("the collector: another error"), 1);
}

static void a_daemon_that_stops_does_not_wait(void **state)
{
    (void)state;
    assert_int_equal(collector.progress(collector.progress_data, 0, 0, 0, 0), 0);
    collector.answers[0] = 503;
    atomic_store(&sink->is_stopping, true);
    assert_int_equal(post("{}\n"), 1);
    assert_int_equal(collector.tries, 1);
    assert_int_equal(collector.paused_ms, 0);
    /* A request under way has a second from now on. */
    assert_int_equal(collector.progress(collector.progress_data, 0, 0, 0, 0), 0);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void without_libcurl_there_is_no_sink(void **state)
{
    struct line_sink *other = NULL;
    (void)state;
    collector.is_not_there = true;
    assert_fails(err, otlp_sink("http://c", "s", &other, &err), ST_UNAVAILABLE,
                 "traces: libcurl is not installed");
    assert_null(other);
}

static void without_a_handle_there_is_no_memory(void **state)
{
    struct line_sink *other = NULL;
    (void)state;
    collector.has_no_memory = true;
    assert_fails(err, otlp_sink("http://c", "s", &other, &err), ST_EXHAUSTED, "traces");
    assert_null(other);
    assert_int_equal(collector.easy_count, 1);
    assert_int_equal(collector.list_count, 1);
}

static void spans_open_with_their_own_name(void **state)
{
    static struct options options;
    struct spans spans = {.every = 0};
    struct trace_source source = {.state = 1};
    (void)state;
    options_init(&options);
    assert_ok(err, spans_open(&spans, &source, &options, &err));
    assert_null(spans.writer);
    assert_int_equal(spans.every, 100);
    options.otlp_endpoint = "http://c";
    assert_ok(err, spans_open(&spans, &source, &options, &err));
    assert_string_equal(collector.url, "http://c/v1/traces");
    line_writer_add(spans.writer, "{}\n", 3);
    spans_close(&spans);
    assert_non_null(strstr(collector.body, "{\"stringValue\":\"pted\"}"));
    assert_null(spans.writer);
    collector.is_not_there = true;
    assert_int_equal(spans_open(&spans, &source, &options, &err), ST_UNAVAILABLE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_become_one_body),
        TEST(the_path_is_added_once),
        TEST(a_busy_collector_is_asked_again),
        TEST(after_three_tries_the_lines_are_lost),
        TEST(a_refusal_is_final),
        TEST(a_collector_that_is_away_is_told_once),
        TEST(an_answer_without_end_is_cut),
        TEST(a_daemon_that_stops_does_not_wait),
        TEST(without_libcurl_there_is_no_sink),
        TEST(without_a_handle_there_is_no_memory),
        TEST(spans_open_with_their_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
