/* SPDX-License-Identifier: MIT */
/* Calls of tools as the families of models write them: whole answers, answers that grow, answers
 * that are damaged. */
#include "config.h"

#include "server/language/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "protocol/json.h"
#include "tests/unit/unit.h"

#define ARENA_BYTES_MAX (64 << 20)

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},"
    "\"tags\":{\"type\":\"array\"},\"unit\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"
    ",\"opts\":{\"type\":\"object\"}}}}},{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";

/* The special tokens of DeepSeek. */
#define BAR(name) "<\uff5c" name "\uff5c>"

static const struct {
    const char *family, *text, *before, *calls; /* "name arguments;" */
} rows[] = {
    {"hermes",
     "Well.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
     "</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
     "Well.\n", "get_weather {\"city\": \"Paris\"};now {};"},
    {"coder",
     "I look.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis, \"here\"\n\nnow\n"
     "</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=tags>\n[\"a\", \"b\"]\n"
     "</parameter>\n</function>\n</tool_call>",
     "I look.\n\n",
     "get_weather {\"city\":\"Paris, \\\"here\\\"\\n\\nnow\",\"days\":3,\"tags\":[\"a\", \"b\"]};"},
    {"coder",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\n42\n</parameter>\n<parameter=unit>\n"
     "null\n</parameter>\n<parameter=opts>\n{\"a\": true}\n</parameter>\n</function>\n"
     "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
     "", "get_weather {\"city\":\"42\",\"unit\":null,\"opts\":{\"a\": true}};now {};"},
    {"coder", "<tool_call>\n<function=get_weather>\n<parameter=days>\nTrue\n</parameter>", "",
     "get_weather {\"days\":true};"}, /* a stop token may stand for the marks */
    {"seed",
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n"
     "</seed:tool_call>",
     "", "get_weather {\"city\":\"Paris\"};"},
    {"minimax",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Paris"
     "</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n<invoke name=\"now\">\n"
     "</invoke>\n</minimax:tool_call>",
     "", "get_weather {\"city\":\"Paris\",\"days\":3};now {};"},
    {"glm",
     "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
     "", "get_weather {\"city\":\"Paris\",\"days\":3};"},
    {"glm",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>"
     "<tool_call>now</tool_call>",
     "", "get_weather {\"city\":\"Paris\"};now {};"},
    {"deepseek",
     "So." BAR("tool\u2581calls\u2581begin") BAR("tool\u2581call\u2581begin") "get_weather" BAR(
         "tool\u2581sep") "{\"city\": \"Paris\"}" BAR("tool\u2581call\u2581end")
         BAR("tool\u2581call\u2581begin") "now" BAR("tool\u2581sep") "{}" BAR(
             "tool\u2581call\u2581end") BAR("tool\u2581calls\u2581end"),
     "So.", "get_weather {\"city\": \"Paris\"};now {};"},
    {"deepseek",
     BAR("tool\u2581calls\u2581begin") BAR("tool\u2581call\u2581begin") "function" BAR(
         "tool\u2581sep") "get_weather\n```json\n{\"city\": \"Paris\"}\n```" BAR("tool\u2581call"
                                                                                 "\u2581end"),
     "", "get_weather {\"city\": \"Paris\"};"},
    {"kimi",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
     "<|tool_call_argument_begin|>{\"city\": \"Paris\"}<|tool_call_end|><|tool_call_begin|>"
     "functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
     "", "get_weather {\"city\": \"Paris\"};now {};"},
    {"mistral", "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}]",
     "", "get_weather {\"city\": \"Paris\"};"},
    {"mistral", "Ok[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Paris\"}[TOOL_CALLS]now[ARGS]{}", "Ok",
     "get_weather {\"city\": \"Paris\"};now {};"},
    {"mistral", "[TOOL_CALLS]get_weather{\"city\": \"Paris\"}", "",
     "get_weather {\"city\": \"Paris\"};"},
    {"mistral", "[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{\"city\": \"Paris\"}", "",
     "get_weather {\"city\": \"Paris\"};"},
    {"gemma",
     "<|tool_call>call:get_weather{city:<|\"|>Paris, \"it\"<|\"|>,days:3,tags:[<|\"|>a<|\"|>],"
     "opts:{<|\"|>k<|\"|>:true,b:null}}<tool_call|><|tool_call>call:now{}<tool_call|>",
     "",
     "get_weather {\"city\":\"Paris, \\\"it\\\"\",\"days\":3,\"tags\":[\"a\"],\"opts\":{\"k\":true,"
     "\"b\":null}};now {};"},
    {"functiongemma",
     "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>", "",
     "get_weather {\"city\":\"Paris\"};"},
    {"phi",
     "<|tool_call|>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}<|/tool_call|>",
     "", "get_weather {\"city\": \"Paris\"};"},
    {"granite",
     "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, {\"name\": "
     "\"now\", \"arguments\": {}}]",
     "", "get_weather {\"city\": \"Paris\"};now {};"},
    {"lfm",
     "<|tool_call_start|>[get_weather(city=\"Paris\", days=-3, tags=['a', \"b\\n\"], opts={'k': "
     "None, \"l\": [1.5]}), now()]<|tool_call_end|>It runs.",
     "",
     "get_weather {\"city\":\"Paris\",\"days\":-3,\"tags\":[\"a\",\"b\\n\"],\"opts\":{\"k\":null,"
     "\"l\":[1.5]}};now {};"},
    {"llama4", "<|python_start|>[get_weather(city='it\\'s'), now()]<|python_end|>", "",
     "get_weather {\"city\":\"it's\"};now {};"},
    {"pythonic", "[get_weather(city=\"Paris\"), now()]", "",
     "get_weather {\"city\":\"Paris\"};now {};"},
    {"harmony",
     "I look.<|channel|>commentary to=functions.get_weather<|message|>{\"city\": \"Paris\"}",
     "I look.", "get_weather {\"city\": \"Paris\"};"},
    /* In each family JSON may be the whole answer. */
    {"coder", "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}", "",
     "get_weather {\"city\": \"Paris\"};"},
    /* None of these is a call. */
    {"coder", "<tool_call>\n<function=other>\n</function>\n</tool_call>", NULL, ""},
    {"coder", "<tool_call>\n<function=now>\nnonsense\n</function>\n</tool_call>", NULL, ""},
    {"coder", "<tool_call>\n<function=now", NULL, ""},
    {"glm", "<tool_call>now<arg_key>a</arg_key>b</tool_call>", NULL, ""},
    {"deepseek", BAR("tool\u2581calls\u2581begin") "now", NULL, ""},
    {"mistral", "[TOOL_CALLS]now[ARGS]{\"a\"", NULL, ""},
    {"mistral", "[TOOL_CALLS]", NULL, ""},
    {"gemma", "<|tool_call>call:get_weather{city:<|\"|>Paris}<tool_call|>", NULL, ""},
    {"gemma", "<|tool_call>get_weather{}<tool_call|>", NULL, ""},
    {"lfm", "<|tool_call_start|>[get_weather(\"Paris\")]<|tool_call_end|>", NULL, ""},
    {"pythonic", "so [now()]", NULL, ""},
    {"pythonic", "[now(), 3]", NULL, ""},
    {"pythonic", "[now(a=open('x'))]", NULL, ""},
    {"pythonic", "[now(a=1.)]", NULL, ""},
    {"kimi", "<|tool_calls_section_begin|>nothing", NULL, ""},
    /* A list without calls is an answer. */
    {"hermes", "[]", NULL, ""},
    {"hermes", " [ ]\n", NULL, ""},
    {"pythonic", "[]", NULL, ""},
    {"lfm", "<|tool_call_start|>[]<|tool_call_end|>", NULL, ""},
    {"hermes", "<tool_call>[]</tool_call>", NULL, ""},
    {"mistral", "[TOOL_CALLS] []", NULL, ""},
    {"hermes",
     "<tool_call>{\"name\": \"now\"}</tool_call><tool_call>[]</tool_call><tool_call>{\"name\": "
     "\"now\"}</tool_call>",
     NULL, ""},
    /* NaN and the infinities are no JSON; in a text they are. */
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": NaN}}", NULL, ""},
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": [-Infinity]}}", NULL, ""},
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"NaN\": \"\\\"Infinity\"}}", "",
     "now {\"NaN\": \"\\\"Infinity\"};"},
    {"mistral", "[TOOL_CALLS]now[ARGS]{\"d\": {\"e\": Infinity}}", NULL, ""},
    {"lfm", "<|tool_call_start|>[now(d=NaN)]<|tool_call_end|>", NULL, ""},
    {"gemma", "<|tool_call>call:now{d:-Infinity}<tool_call|>", NULL, ""},
    {"coder", "<tool_call><function=get_weather><parameter=days>NaN</parameter></function>", "",
     "get_weather {\"days\":\"NaN\"};"}, /* as all else that is no JSON */
    {"coder", "<tool_call><function=get_weather><parameter=tags>[NaN]</parameter></function>", "",
     "get_weather {\"tags\":\"[NaN]\"};"},
    /* A name twice. */
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": 1, \"d\": 2}}", NULL, ""},
    {"pythonic", "[now(d=1, d=2)]", NULL, ""},
    {"pythonic", "[now(d={'k': 1, \"\\u006b\": 2})]", NULL, ""},
    {"pythonic", "[now(d=1), now(d=2)]", "", "now {\"d\":1};now {\"d\":2};"},
    {"gemma", "<|tool_call>call:now{d:1,d:2}<tool_call|>", NULL, ""},
    {"coder",
     "<tool_call><function=now><parameter=d>1</parameter><parameter=d>2</parameter></function>",
     NULL, ""},
    {"glm",
     "<tool_call>now<arg_key>d</arg_key><arg_value>1</arg_value><arg_key>d</arg_key><arg_value>2"
     "</arg_value></tool_call>",
     NULL, ""},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct arena arena;
static struct tools_calls calls;

static void find(const struct tools_family *family, const char *text)
{
    arena_fini(&arena);
    arena_init(&arena, ARENA_BYTES_MAX);
    tools_find(family, span_str(tools), span_str(text), &arena, &calls);
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, ARENA_BYTES_MAX);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void print_calls(char *out, size_t bytes)
{
    *out = 0;
    for (uint32_t i = 0; i < calls.count; i++) {
        struct span name = calls.calls[i].name;
        size_t len = strlen(out);
        snprintf(out + len, bytes - len, "%.*s %.*s;", (int)name.len - 2, name.ptr + 1,
                 SPAN_FMT(calls.calls[i].arguments));
    }
}

static void families_write_their_calls(void **state)
{
    (void)state;
    char got[1024];
    for (size_t i = 0; i < ROWS; i++) {
        const struct tools_family *family = tools_family_named(rows[i].family);
        assert_non_null(family);
        find(family, rows[i].text);
        print_calls(got, sizeof(got));
        if (strcmp(got, rows[i].calls) != 0) {
            fail_msg("%s: '%s' has the calls '%s', expected '%s'", rows[i].family, rows[i].text,
                     got, rows[i].calls);
        }
        const char *before = rows[i].before ? rows[i].before : rows[i].text;
        assert_int_equal(calls.text_bytes, strlen(before));
    }
}

/* Whatever is told while an answer grows is no part of a call. */
static void answers_that_grow_tell_no_call(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct tools_family *family = tools_family_named(rows[i].family);
        size_t len = strlen(rows[i].text), told = 0, blanks = 0;
        find(family, rows[i].text);
        for (size_t at = 0; at <= len; at++) {
            size_t plain = tools_plain_bytes(family, span_of(rows[i].text, at), told, &blanks);
            assert_true(plain >= told && plain <= at);
            told = plain;
        }
        if (calls.count > 0 && told > calls.text_bytes) {
            fail_msg("%s: '%s' tells %zu bytes", rows[i].family, rows[i].text, told);
        }
    }
}

static void templates_tell_the_family(void **state)
{
    (void)state;
    const struct {
        const char *source, *name;
    } signs[] = {
        {"<tool_call>\\n<function=example>", "coder"},
        {"<tool_call>{\"name\": ...}</tool_call>", "hermes"},
        {"<tool_call>{name}\n<arg_key>{key}</arg_key>", "glm"},
        {"[TOOL_CALLS]", "mistral"},
        {"<|tool_call|>{\"name\"}<|/tool_call|>", "phi"},
        {"<|tool_call|>", "granite"},
        {"<|tool_call>call:", "gemma"},
        {"", "hermes"},
    };
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        assert_ptr_equal(tools_family_find(span_str(signs[i].source)),
                         tools_family_named(signs[i].name));
    }
    assert_null(tools_family_named("no such"));
}

static void expect_json(struct span text)
{
    struct json in;
    struct error err;
    json_init(&in, text);
    assert_int_equal(json_peek(&in), JSON_OBJECT);
    json_init(&in, text);
    if (json_skip(&in, &err) != ST_OK || json_end(&in, &err) != ST_OK) {
        fail_msg("'%.*s' is no JSON: %s", SPAN_FMT(text), err.text);
    }
}

/* Bytes are dropped, doubled and exchanged: the arguments of what is still a call are an object,
 * and its name is that of a tool. */
static void damage_makes_text_or_calls(void **state)
{
    (void)state;
    srand(11);
    for (int round = 0; round < 40000; round++) {
        size_t row = (size_t)rand() % ROWS, len = strlen(rows[row].text);
        char text[1024];
        snprintf(text, sizeof(text), "%s", rows[row].text);
        for (int i = rand() % 4; i >= 0 && len > 1; i--) {
            size_t at = (size_t)rand() % len;
            if (rand() % 2) {
                memmove(text + at, text + at + 1, len - at);
            } else {
                text[at] = text[(size_t)rand() % len];
            }
            len = strlen(text);
        }
        find(tools_family_named(rows[row].family), text);
        for (uint32_t i = 0; i < calls.count; i++) {
            struct span name = calls.calls[i].name;
            assert_true(span_is(name, "\"get_weather\"") || span_is(name, "\"now\""));
            if (strncmp(rows[row].family, "hermes", 6) != 0) {
                expect_json(calls.calls[i].arguments);
            }
        }
        assert_true(calls.text_bytes <= len);
        assert_true(calls.count > 0 || calls.text_bytes == len);
    }
}

/* Nesting and lengths are bounded, and take no longer than their bytes. */
static void hostile_answers_are_text(void **state)
{
    (void)state;
    size_t bytes = 1 << 20;
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, '[', bytes);
    text[bytes] = 0;
    find(tools_family_named("pythonic"), text);
    assert_int_equal(calls.count, 0);
    memcpy(text, "[now(a=", 7);
    find(tools_family_named("pythonic"), text);
    assert_int_equal(calls.count, 0);
    for (size_t at = 0; at + 11 <= bytes; at += 11) {
        memcpy(text + at, "<tool_call>", 11);
    }
    find(tools_family_named("coder"), text);
    assert_int_equal(calls.count, 0);
    free(text);
}

/* ---- tools as Python reads them -------------------------------------------------------------- */

/* A tool whose schema has |schema| in it, and then the tool "now". */
static void find_behind(const char *schema)
{
    struct buf known;
    struct span kept, name = span_str("now");
    struct error err;
    buf_init(&known, 1 << 20);
    buf_printf(&known,
               "[{\"type\":\"function\",\"function\":{\"name\":\"odd\",\"parameters\":{%s}}},",
               schema);
    buf_add_str(&known, "{\"name\":\"now\"}]");
    assert_false(buf_failed(&known));
    const struct tools_family *family = tools_family_named("hermes");
    const struct span text = span_str("[{\"name\":\"odd\"},{\"name\":\"now\"}]");
    tools_find(family, buf_span(&known), text, &arena, &calls);
    assert_int_equal(calls.count, 2);
    assert_int_equal(tools_keep(buf_span(&known), &name, 1, &arena, &kept, &err), ST_OK);
    assert_true(span_is(kept, "[{\"name\":\"now\"}]"));
    name = span_str("odd");
    assert_int_equal(tools_keep(buf_span(&known), &name, 1, &arena, &kept, &err), ST_OK);
    assert_true(kept.len > 2 && !span_is(kept, "[{\"name\":\"now\"}]"));
    buf_fini(&known);
}

static void odd_schemas_hide_no_tool(void **state)
{
    (void)state;
    struct buf schema;
    find_behind("\"a\":1,\"a\":2");
    find_behind("\"a\":\"\\ud800\"");
    find_behind("\"a\":1e400");
    buf_init(&schema, 1 << 16);
    for (int i = 0; i < 400; i++) {
        buf_printf(&schema, "%s\"p%d\":{}", i ? "," : "", i);
    }
    buf_add_char(&schema, 0);
    find_behind(schema.ptr ? (const char *)schema.ptr : "");
    buf_reset(&schema);
    for (int i = 0; i < 100; i++) {
        buf_add_str(&schema, "\"a\":{");
    }
    buf_add_fill(&schema, '}', 100);
    buf_add_char(&schema, 0);
    find_behind((const char *)schema.ptr);
    buf_fini(&schema);
}

/* ---- long answers -------------------------------------------------------------------------- */

enum { MARKS = 100000 };

/* Answers that repeat a text whose closing mark never comes. */
static void marks_that_never_come_are_sought_once(void **state)
{
    (void)state;
    static const struct {
        const char *family, *begin, *repeated;
    } answers[] = {
        {"hermes", "", "<tool_call>[]"},
        {"hermes", "", "<tool_call>{\"name\":\"now\"}"},
        {"deepseek", BAR("tool\u2581calls\u2581begin"), BAR("tool\u2581call\u2581begin") "[]"},
        {"coder", "<tool_call><function=now>", "<parameter=a>x"},
        {"glm", "<tool_call>now", "<arg_key>a</arg_key><arg_value>x"},
        {"minimax", "<minimax:tool_call><invoke name=\"now\">", "<parameter name=\"a\">x"},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct buf text;
        buf_init(&text, 4 << 20);
        buf_add_str(&text, answers[i].begin);
        for (int k = 0; k < MARKS; k++) {
            buf_add_str(&text, answers[i].repeated);
        }
        buf_add_char(&text, 0);
        assert_false(buf_failed(&text));
        find(tools_family_named(answers[i].family), (const char *)text.ptr);
        assert_int_equal(calls.count, 0);
        buf_fini(&text);
    }
}

/* An answer of blanks is looked at once, however often it grows. */
static void leading_blanks_are_counted_once(void **state)
{
    (void)state;
    size_t bytes = 1 << 18, blanks = 0;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, ' ', bytes);
    memcpy(text + bytes / 2, "<tool_call>", 11);
    for (size_t len = 0; len <= bytes; len++) {
        assert_int_equal(
            tools_plain_bytes(tools_family_named("hermes"), span_of(text, len), 0, &blanks), 0);
    }
    assert_int_equal(blanks, bytes / 2);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_write_their_calls),
        cmocka_unit_test(answers_that_grow_tell_no_call),
        cmocka_unit_test(templates_tell_the_family),
        cmocka_unit_test(damage_makes_text_or_calls),
        cmocka_unit_test(hostile_answers_are_text),
        cmocka_unit_test(odd_schemas_hide_no_tool),
        cmocka_unit_test(marks_that_never_come_are_sought_once),
        cmocka_unit_test(leading_blanks_are_counted_once),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
