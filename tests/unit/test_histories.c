/* SPDX-License-Identifier: MIT */
/* What chats hand to a template: messages, tools and values as Python's json reads them. */
#include "config.h"

#include "tests/unit/ask_support.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "server/language/ask.h"
#include "server/language/chat.h"
#include "server/text/template/template.h"

static enum status render(const char *source, const char *body, struct buf *out)
{
    struct ask ask;
    struct chat chat = {.knows_developer = strstr(source, "developer") != NULL};
    arena_reset(&arena);
    assert_ok(err, template_parse(span_str(source), &chat.template, &err));
    out->len = 0;
    enum status status = ask_parse(ASK_CHAT, span_str(body), 16, &arena, &ask, &err);
    status = status == ST_OK ? chat_render(&chat, &ask, &arena, out, &err) : status;
    template_free(chat.template);
    return status;
}

static const char dump[] = "{{ messages | tojson }}{{ tools | tojson if tools }}"
                           "{{ v | tojson if v is defined }}";

/* |expected| is what json.dumps(json.loads(...), ensure_ascii=False) prints. */
static const struct {
    const char *members, *expected;
} histories[] = {
    {"\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"n\":123456789012345678901234567890}]",
     "[{\"role\": \"user\", \"content\": \"x\", \"n\": 123456789012345678901234567890}]"},
    {"\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"n\":[1e400,-1e400,-0.0,5e-324,-9e18]}]",
     "[{\"role\": \"user\", \"content\": \"x\", \"n\": [Infinity, -Infinity, -0.0, 5e-324, "
     "-9e+18]}]"},
    {"\"messages\":[{\"role\":\"assistant\",\"content\":\"a\",\"role\":\"user\",\"content\":\"b\"}"
     "]",
     "[{\"role\": \"user\", \"content\": \"b\"}]"},
    {"\"messages\":[{\"role\":\"user\",\"content\":\"cut \\ud83d\"}]",
     "[{\"role\": \"user\", \"content\": \"cut \xef\xbf\xbd\"}]"},
    {"\"messages\":[{\"role\":\"user\",\"content\":\"\\ude00\\ud83d\\ude00\\ud83d\\n\"}]",
     "[{\"role\": \"user\", \"content\": \"\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd\\n\"}]"},
    {"\"messages\":[{\"role\":\"user\",\"content\":null}],\"tools\":[{\"type\":\"function\","
     "\"function\":{\"name\":\"f\",\"x\":18446744073709551616,\"x\":-18446744073709551616}}]",
     "[{\"role\": \"user\", \"content\": null}][{\"type\": \"function\", \"function\": {\"name\": "
     "\"f\", \"x\": -18446744073709551616}}]"},
    {"\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"chat_template_kwargs\":"
     "{\"v\":{\"b\":1,\"a\":NaN,\"b\":2}}",
     "[{\"role\": \"user\", \"content\": \"x\"}]{\"b\": 2, \"a\": NaN}"},
    {"\"messages\":[{\"role\":\"developer\",\"content\":\"x\"}]",
     "[{\"role\": \"system\", \"content\": \"x\"}]"},
    {"\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"},"
     "{\"type\":\"text\",\"text\":\"!\"}]}]",
     "[{\"role\": \"assistant\", \"content\": \"no!\"}]"},
};

static void messages_are_as_python_reads_them(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(histories) / sizeof(histories[0]); i++) {
        char body[2048];
        snprintf(body, sizeof(body), "{%s}", histories[i].members);
        assert_ok(err, render(dump, body, &out));
        buf_add(&out, "", 1);
        assert_string_equal((char *)out.ptr, histories[i].expected);
    }
    buf_fini(&out);
}

/* Arguments of earlier calls, beside a content of null. */
static const struct {
    const char *arguments, *expected;
} calls[] = {
    {"\"\"", "{}"},
    {"null", "{}"},
    {"\" \\n\"", "{}"},
    {"\"null\"", "{}"},
    {"\"{}\"", "{}"},
    {"{\"a\":1}", "{\"a\": 1}"},
    {"\"{\\\"a\\\":1e999,\\\"a\\\":36893488147419103232}\"", "{\"a\": 36893488147419103232}"},
    {"\"[1\"", "\"[1\""},
};

static void arguments_of_calls_are_objects(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        char body[1024];
        snprintf(body, sizeof(body),
                 "{\"messages\":[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"
                 "\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":%s}}]}]}",
                 calls[i].arguments);
        assert_ok(
            err, render("{{ messages[0].tool_calls[0].function.arguments | tojson }}", body, &out));
        buf_add(&out, "", 1);
        assert_string_equal((char *)out.ptr, calls[i].expected);
    }
    buf_fini(&out);
}

static void a_template_may_know_developers(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    assert_ok(err, render("{{ messages[0].role == 'developer' }}",
                          "{\"messages\":[{\"role\":\"developer\",\"content\":\"x\"}]}", &out));
    assert_true(span_is(buf_span(&out), "True"));
    buf_fini(&out);
}

/* |levels| lists around nothing, as a member of a message. */
static enum status nest(int levels, struct buf *out)
{
    char body[4096];
    size_t len = (size_t)snprintf(body, sizeof(body),
                                  "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"v\":");
    memset(body + len, '[', (size_t)levels);
    memset(body + len + levels, ']', (size_t)levels);
    snprintf(body + len + 2 * levels, sizeof(body) - len - 2 * (size_t)levels, "}]}");
    return render("{{ messages[0].v | tojson | length }} {{ messages[0].v | string | length }}",
                  body, out);
}

static void nesting_is_bounded(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    assert_ok(err, nest(150, &out));
    assert_true(span_is(buf_span(&out), "300 300"));
    check_refused("nested", nest(159, &out), ST_TOO_LARGE, "nested deeper than 160");
    check_refused("nested", nest(1900, &out), ST_TOO_LARGE, "nested deeper than 160");
    buf_fini(&out);
}

/* Names that repeat, many of them, take time of their number alone. */
static void many_names_repeat_quickly(void **state)
{
    struct buf body, out;
    (void)state;
    buf_init(&body, 16 << 20);
    buf_init(&out, 1 << 20);
    buf_add_str(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"v\":{");
    for (int i = 0; i < 200000; i++) {
        buf_printf(&body, "%s\"k%d\":%d", i ? "," : "", i % 100000, i);
    }
    buf_add_str(&body, "}}]}");
    buf_add(&body, "", 1);
    assert_false(buf_failed(&body));
    assert_ok(err, render("{{ messages[0].v | length }} {{ messages[0].v.k0 }} "
                          "{{ (messages[0].v | list)[99999] }}",
                          (char *)body.ptr, &out));
    assert_true(span_is(buf_span(&out), "100000 100000 k99999"));
    buf_fini(&body);
    buf_fini(&out);
}

/* What Python refuses. */
static const struct {
    const char *messages, *why;
} wrong[] = {
    {"[{\"role\":\"user\",\"content\":\"\\x\"}]", "there is no such escape"},
    {"[{\"role\":\"user\",\"content\":\"\\u12g4\"}]", "four digits"},
    {"[{\"role\":\"user\",\"content\":\"\n\"}]", "a control character"},
    {"[{\"role\":\"user\",\"content\":\"\xff\"}]", "no UTF-8"},
    {"[{\"role\":\"user\" \"content\":\"x\"}]", "expected ',' or '}'"},
    {"[{\"role\":\"user\",\"content\":\"x\",}]", "expected a name"},
    {"[{\"role\":\"user\",\"content\":01}]", "expected ',' or '}'"},
    {"[{\"role\":\"user\",\"content\":.5}]", "expected a value"},
    {"[{\"role\":\"user\",\"content\":tru}]", "expected a value"},
    {"[{\"role\":\"user\",\"content\":\"x\"]}", "expected ',' or '}'"},
    {"[{\"role\":\"user\",\"content\":\"x", "the text ends"},
    {"[{\"role\":\"user\",\"content\":\"\\", "the text ends"},
    {"[[[[", "the text ends"},
};

static void what_is_no_json_is_refused(void **state)
{
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char body[512];
        snprintf(body, sizeof(body), "{\"messages\":%s}", wrong[i].messages);
        enum status status = render(dump, body, &out);
        check_refused(wrong[i].messages, status, ST_INVALID, wrong[i].why);
    }
    buf_fini(&out);
}

/* Arenas of requests are larger than that of set_up(). */
static int set_up_large(void **state)
{
    (void)state;
    arena_init(&arena, 128 << 20);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up_large, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_are_as_python_reads_them), TEST(arguments_of_calls_are_objects),
        TEST(a_template_may_know_developers),    TEST(nesting_is_bounded),
        TEST(many_names_repeat_quickly),         TEST(what_is_no_json_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
