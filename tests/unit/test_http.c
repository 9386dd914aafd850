/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/request/request.h"
#include "server/http/head.h"
#include "server/http/http1.h"

static void fields_are_found_in_any_case(void **state)
{
    (void)state;
    assert_int_equal(http_field_find("Host", 4), HTTP_HOST);
    assert_int_equal(http_field_find("HOST", 4), HTTP_HOST);
    assert_int_equal(http_field_find("content-length", 14), HTTP_CONTENT_LENGTH);
    assert_int_equal(http_field_find("Inference-Header-Content-Length", 31),
                     HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    assert_int_equal(http_field_find("Hos", 3), HTTP_FIELD_COUNT);
    assert_int_equal(http_field_find("Hosts", 5), HTTP_FIELD_COUNT);
    assert_int_equal(http_field_find("X", 1), HTTP_FIELD_COUNT);
}

static void every_outcome_has_a_status_and_a_reason(void **state)
{
    (void)state;
    for (int code = 0; code < STATUS_COUNT; code++) {
        int status = http_status_of((enum status)code);
        assert_between(status, 200, 599);
        assert_true(strlen(http_reason(status)) > 0);
        assert_true((status == 200) == (code == ST_OK));
    }
}

static void head_text(void **state)
{
    (void)state;
    char text[HTTP1_HEAD_BYTES_MAX + 1];
    struct http_answer answer = {.status = 405,
                                 .content_type = "application/json",
                                 .content_length = 18446744073709551615ull,
                                 .json_bytes = 18446744073709551615ull,
                                 .content_encoding = "deflate",
                                 .allow = "GET, HEAD",
                                 .accept_encoding = "gzip, deflate",
                                 .retry_after_s = 17,
                                 .request_id = span_str("an-id"),
                                 .traceparent = span_str("a-trace")};
    size_t len = http1_print_head(&answer, HTTP1_CLOSE | HTTP1_KEEP_ALIVE, text);
    text[len] = '\0';
    assert_memory_equal(text, "HTTP/1.1 405 Method Not Allowed\r\n", 33);
    assert_non_null(strstr(text, "\r\nContent-Length: 18446744073709551615\r\n"));
    assert_non_null(strstr(text, "\r\nInference-Header-Content-Length: 18446744073709551615\r\n"));
    assert_non_null(strstr(text, " GMT\r\n"));
    assert_non_null(strstr(text, "\r\nAllow: GET, HEAD\r\n"));
    assert_non_null(strstr(text, "\r\nAccept-Encoding: gzip, deflate\r\n"));
    assert_non_null(strstr(text, "\r\nRetry-After: 17\r\nX-Request-Id: an-id\r\n"
                                 "traceparent: a-trace\r\n"));
    assert_string_equal(text + len - 23, "\r\nConnection: close\r\n\r\n");
}

/* A head in pieces of |cut| bytes gives the same request as in one piece. */
static void fragments(void **state)
{
    (void)state;
    struct params params = {.header_bytes_max = 1000, .header_count_max = 3, .url_bytes_max = 100};
    const char *name = "content-ENCODING", *value = " gzip ";
    for (size_t cut = 1; cut <= 16; cut++) {
        struct head head;
        struct error err;
        head_init(&head, &params);
        for (size_t i = 0; i < 16; i += cut) {
            size_t len = 16 - i < cut ? 16 - i : cut;
            head_add_name(&head, span_of(name + i, len));
        }
        for (size_t i = 0; i < 6; i += cut) {
            size_t len = 6 - i < cut ? 6 - i : cut;
            assert_int_equal(head_add_value(&head, span_of(value + i, len), &err), 0);
        }
        head_end_field(&head);
        assert_int_equal(head.counts[HTTP_CONTENT_ENCODING], 1);
        assert_true(span_is(head_value(&head, HTTP_CONTENT_ENCODING), "gzip"));
        assert_int_equal(head.field_count, 1);
        head_fini(&head);
    }
}

static void target_limit(void **state)
{
    (void)state;
    struct params params = {.header_bytes_max = 50, .url_bytes_max = 10};
    struct head head;
    struct error err;
    head_init(&head, &params);
    assert_int_equal(head_add_target(&head, &params, span_str("/123456789"), &err), 0);
    assert_int_equal(head_add_target(&head, &params, span_str("0"), &err), 414);
    assert_non_null(strstr(err.text, "10 bytes"));
    head_reset(&head);
    assert_int_equal(head_add_target(&head, &params, span_str("/1234567890"), &err), 414);
    head_fini(&head);
}

/* From READ every step is reached, each ends in DONE, and nothing follows DONE. */
static void steps(void **state)
{
    (void)state;
    bool is_reached[STEP_COUNT] = {[STEP_READ] = true};
    for (int from = 0; from < STEP_COUNT; from++) {
        for (int to = 0; to < STEP_COUNT; to++) {
            bool may = request_step_may_follow((enum request_step)from, (enum request_step)to);
            /* No step comes twice, but for those that are tried again. */
            bool is_loop = from == STEP_SAMPLE || from == STEP_SEND; /* from token to token */
            bool is_again = from == STEP_WAIT_MEMORY || from == STEP_LOAD || to == STEP_WAIT_MEMORY;
            assert_true(!may || to > from || is_again || is_loop);
            is_reached[to] = is_reached[to] || (is_reached[from] && may);
        }
        assert_int_equal(request_step_may_follow((enum request_step)from, STEP_DONE),
                         from != STEP_DONE);
        bool is_answered = from != STEP_WRITE && from != STEP_DONE;
        assert_int_equal(request_step_may_follow((enum request_step)from, STEP_WRITE), is_answered);
        assert_non_null(request_step_name((enum request_step)from));
    }
    for (int step = 0; step < STEP_COUNT; step++) {
        assert_true(is_reached[step]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found_in_any_case),
        cmocka_unit_test(every_outcome_has_a_status_and_a_reason),
        cmocka_unit_test(head_text),
        cmocka_unit_test(fragments),
        cmocka_unit_test(target_limit),
        cmocka_unit_test(steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
