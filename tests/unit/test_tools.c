/* SPDX-License-Identifier: MIT */
/* Calls of tools as the families of models write them: whole answers, answers that grow, answers
 * that are damaged. */
#include "config.h"

#include "server/language/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "server/language/tools_json.h"
#include "server/language/words.h"
#include "server/text/grammar/grammar.h"
#include "tests/unit/unit.h"

#define ARENA_BYTES_MAX (64 << 20)

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},"
    "\"tags\":{\"type\":\"array\"},\"unit\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"
    ",\"opts\":{\"type\":\"object\"}}}}},{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";

/* The special tokens of DeepSeek. */
#define BAR(name) "<\uff5c" name "\uff5c>"
#define TOOLS_DSML "\uff5cDSML\uff5c"

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
    {"command",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", "
     "\"parameters\": {\"city\": \"Paris\"}},\n    {\"tool_call_id\": \"1\", \"tool_name\": "
     "\"now\", \"parameters\": {}}\n]<|END_ACTION|>",
     "", "get_weather {\"city\": \"Paris\"};now {};"},
    {"dsml",
     "So.\n\n<" TOOLS_DSML "function_calls>\n<" TOOLS_DSML
     "invoke name=\"get_weather\">\n<" TOOLS_DSML
     "parameter name=\"city\" string=\"true\">3</" TOOLS_DSML "parameter>\n<" TOOLS_DSML
     "parameter name=\"days\" string=\"false\">[3]</" TOOLS_DSML "parameter>\n</" TOOLS_DSML
     "invoke>\n<" TOOLS_DSML "invoke name=\"now\">\n</" TOOLS_DSML "invoke>\n</" TOOLS_DSML
     "function_calls>",
     "So.\n\n", "get_weather {\"city\":\"3\",\"days\":[3]};now {};"},
    /* A call that has begun counts, as far as it goes. */
    {"mistral", "[TOOL_CALLS]now[ARGS]{\"a\"", "", "now {\"a\";"},
    {"hermes", "{\"name\": \"now\"", "", "now ;"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1", "", "now {\"a\": 1;"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\" 1}}", "", "now {\"a\" ;"},
    {"hermes", "Well <tool_call>{\"name\": \"now\"}</tool_call><tool_call>no call</tool_call>",
     "Well ", "now {};"},
    {"hermes", "{\"name\": \"now\", \"arguments\": {}} That is all.", "", "now {};"},
    {"coder", "<tool_call><function=now><parameter=a>1</parameter><parameter=b>2", "",
     "now {\"a\":1;"},
    {"coder", "<tool_call><function=now><parameter=a>1</parameter>so</function>", "",
     "now {\"a\":1;"},
    {"glm", "<tool_call>now<arg_key>a</arg_key><arg_value>1", "", "now ;"},
    {"glm", "<tool_call>now<arg_key>a", "", "now ;"},
    {"coder", "<tool_call>\n<function=now>\n<parameter=a", "", "now ;"},
    {"coder", "<tool_call><function=now></function><function=get_weather><parameter=a", "",
     "now {};get_weather ;"},
    {"lfm", "<|tool_call_start|>[now(a='x", "", "now ;"},
    {"gemma", "<|tool_call>call:get_weather{city:<|\"|>Paris}<tool_call|>", "", "get_weather ;"},
    {"mistral", "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]no", "", "now {};"},
    {"gemma", "<|tool_call>call:get_weather{days:3,city:<|\"|>Paris}<tool_call|>", "",
     "get_weather {\"days\":3;"},
    {"pythonic", "[now(), 3]", "", "now {};"},
    {"pythonic", "[now(a=1, b=open('x'))]", "", "now {\"a\":1;"},
    /* None of these is a call. */
    {"coder", "<tool_call>\n<function=other>\n</function>\n</tool_call>", NULL, ""},
    {"coder", "<tool_call>\n<function=now>\nnonsense\n</function>\n</tool_call>", NULL, ""},
    {"coder", "<tool_call>\n<function=now", NULL, ""},
    {"glm", "<tool_call>now<arg_key>a</arg_key>b</tool_call>", NULL, ""},
    {"deepseek", BAR("tool\u2581calls\u2581begin") "now", NULL, ""},
    {"mistral", "[TOOL_CALLS]", NULL, ""},
    {"gemma", "<|tool_call>get_weather{}<tool_call|>", NULL, ""},
    {"lfm", "<|tool_call_start|>[get_weather(\"Paris\")]<|tool_call_end|>", NULL, ""},
    {"pythonic", "so [now()]", NULL, ""},
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
    /* NaN and the infinities are no JSON; in a text they are. */
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": NaN}}", "", "now {\"d\": ;"},
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": [-Infinity]}}", "", "now {\"d\": [-;"},
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"NaN\": \"\\\"Infinity\"}}", "",
     "now {\"NaN\": \"\\\"Infinity\"};"},
    {"mistral", "[TOOL_CALLS]now[ARGS]{\"d\": {\"e\": Infinity}}", "", "now {\"d\": {\"e\": ;"},
    {"lfm", "<|tool_call_start|>[now(d=NaN)]<|tool_call_end|>", NULL, ""},
    {"gemma", "<|tool_call>call:now{d:-Infinity}<tool_call|>", NULL, ""},
    {"coder", "<tool_call><function=get_weather><parameter=days>NaN</parameter></function>", "",
     "get_weather {\"days\":\"NaN\"};"}, /* as all else that is no JSON */
    {"coder", "<tool_call><function=get_weather><parameter=tags>[NaN]</parameter></function>", "",
     "get_weather {\"tags\":\"[NaN]\"};"},
    /* Two halves are one character, and one alone is none. */
    {"lfm",
     "<|tool_call_start|>[now(a='\\ud83d\\uDE00', b='\\ud83d', c='\\ud83dx\\ude00', d='\\ude00"
     "\\ud83d\\u00e9\\ud83d\\ud83d\\ude00')]<|tool_call_end|>",
     "",
     "now {\"a\":\"\\ud83d\\uDE00\",\"b\":\"\\\\ud83d\",\"c\":\"\\\\ud83dx\\\\ude00\",\"d\":"
     "\"\\\\ude00\\\\ud83d\\u00e9\\\\ud83d\\ud83d\\ude00\"};"},
    /* A name twice in JSON is a matter of the client's; elsewhere the first counts. */
    {"hermes", "{\"name\": \"now\", \"arguments\": {\"d\": 1, \"d\": 2}}", "",
     "now {\"d\": 1, \"d\": 2};"},
    {"pythonic", "[now(d=1, d=2)]", "", "now {\"d\":1};"},
    {"pythonic", "[now(d=1, e=2, \"\\u0064\"=3, e=4, f=5)]", "", "now {\"d\":1,\"e\":2,\"f\":5};"},
    {"pythonic", "[now(d=1, d=open('x'))]", "", "now {\"d\":1;"},
    {"pythonic", "[now(d=1), now(d=2)]", "", "now {\"d\":1};now {\"d\":2};"},
    {"gemma", "<|tool_call>call:now{d:1,d:2}<tool_call|>", "", "now {\"d\":1};"},
    {"coder",
     "<tool_call><function=now><parameter=d>1</parameter><parameter=d>2</parameter></function>", "",
     "now {\"d\":1};"},
    {"coder",
     "<tool_call><function=now><parameter=d>1</parameter></function><function=now><parameter=d>2"
     "</parameter></function></tool_call>",
     "", "now {\"d\":1};now {\"d\":2};"},
    {"coder",
     "<tool_call><function=now><parameter=a>1<parameter=b>2</function><function=now><parameter=c>3"
     "</tool_call><tool_call><function=now><parameter=d>4</parameter></function></tool_call>",
     "", "now {\"a\":1,\"b\":2};now {\"c\":3};now {\"d\":4};"},
    {"glm",
     "<tool_call>now<arg_key>d</arg_key><arg_value>1</arg_value><arg_key>d</arg_key><arg_value>2"
     "</arg_value></tool_call>",
     "", "now {\"d\":1};"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Of find(); they borrow from |reader|. */
static struct tools_reader *reader;
static struct tools_calls calls;
static bool needs_call;

static void open_reader(const struct tools_family *family, const char *known, const char *chosen)
{
    struct error err;
    const struct tools_wanted wanted = {.tools = span_str(known),
                                        .chosen = span_str(chosen),
                                        .needs_call = needs_call,
                                        .call_max = TOOLS_CALLS_MAX};
    tools_reader_free(reader);
    assert_int_equal(tools_reader_new(family, &wanted, &reader, &err), ST_OK);
}

static void find(const struct tools_family *family, const char *text)
{
    open_reader(family, tools, "");
    calls = *tools_reader_read(reader, span_str(text), true);
}

static int close_reader(void **state)
{
    (void)state;
    tools_reader_free(reader);
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

/* |now|, of an answer that has grown, goes on from |before|. */
static void expect_goes_on(const char *text, const struct tools_calls *before,
                           const size_t *argument_bytes, const struct tools_calls *now)
{
    if (now->text_bytes < before->text_bytes || now->count < before->count) {
        fail_msg("'%s' goes back", text);
    }
    for (uint32_t i = 0; i < before->count; i++) {
        assert_true(now->calls[i].arguments.len >= argument_bytes[i]);
    }
}

/* What is told while an answer grows is the beginning of what all of it has, and the text in front
 * of a call is told before that. */
static void expect_the_same_in_pieces(const struct tools_family *family, const char *text,
                                      size_t step)
{
    size_t len = strlen(text), told[TOOLS_CALLS_MAX] = {0};
    struct tools_calls before = {0};
    struct tools_reader *whole = reader;
    reader = NULL;
    open_reader(family, tools, "");
    for (size_t at = 0; at < len; at += step) {
        const struct tools_calls *now = tools_reader_read(reader, span_of(text, at), false);
        expect_goes_on(text, &before, told, now);
        assert_true(now->text_bytes <= at);
        for (uint32_t i = 0; i < now->count; i++) {
            struct span arguments = now->calls[i].arguments;
            told[i] = arguments.len;
            assert_true(i < calls.count && arguments.len <= calls.calls[i].arguments.len);
            assert_memory_equal(arguments.ptr, calls.calls[i].arguments.ptr, arguments.len);
        }
        before = *now;
    }
    const struct tools_calls *end = tools_reader_read(reader, span_of(text, len), true);
    expect_goes_on(text, &before, told, end);
    assert_int_equal(end->count, calls.count);
    assert_int_equal(end->is_cut, calls.is_cut);
    assert_int_equal(end->text_bytes, calls.text_bytes);
    for (uint32_t i = 0; i < calls.count; i++) {
        assert_true(span_equal(end->calls[i].name, calls.calls[i].name));
        assert_true(span_equal(end->calls[i].arguments, calls.calls[i].arguments));
    }
    tools_reader_free(whole);
}

static void answers_in_pieces_have_the_same_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct tools_family *family = tools_family_named(rows[i].family);
        for (size_t step = 1; step < 8; step++) {
            find(family, rows[i].text);
            expect_the_same_in_pieces(family, rows[i].text, step);
        }
    }
}

/* Arguments come while they are written. */
static void arguments_are_told_as_they_come(void **state)
{
    (void)state;
    static const struct {
        const char *family, *text, *told;
    } answers[] = {
        {"hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa",
         "{\"city\": \"Pa"},
        {"mistral", "[TOOL_CALLS]get_weather[ARGS]{\"ci", "{\"ci"},
        {"hermes", "{\"name\": \"now\", \"arguments\": {", "{"},
        {"hermes", "{\"arguments\": {\"a\": 1}, \"name\": \"now\"", "{\"a\": 1}"},
        {"coder", "<tool_call><function=get_weather><parameter=city>Pa", ""},
        {"coder", "<tool_call><function=get_weather><parameter=city>Pa</parameter>",
         "{\"city\":\"Pa\""},
        {"glm", "<tool_call>now<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key>",
         "{\"a\":1"},
        {"lfm", "<|tool_call_start|>[now(a=1, b='x', c=", "{\"a\":1,\"b\":\"x\""},
        {"gemma", "<|tool_call>call:now{a:1,b:<|\"|>x,", "{\"a\":1"},
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        open_reader(tools_family_named(answers[i].family), tools, "");
        calls = *tools_reader_read(reader, span_str(answers[i].text), false);
        if (calls.count != 1 || !span_is(calls.calls[0].arguments, answers[i].told)) {
            fail_msg("'%s' does not tell '%s'", answers[i].text, answers[i].told);
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
        {"<tool_call>", "hermes"},
        {"", "json"},
    };
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        assert_ptr_equal(tools_family_find(span_str(signs[i].source)),
                         tools_family_named(signs[i].name));
    }
    assert_null(tools_family_named("no such"));
}

static void expect_json(struct span text)
{
    struct tools_json json = {0};
    size_t len = tools_json_read(&json, text);
    if (len != text.len || json.state != TOOLS_JSON_DONE || text.ptr[0] != '{') {
        fail_msg("'%.*s' is no object", SPAN_FMT(text));
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
            if (!calls.is_cut || i + 1 < calls.count) {
                expect_json(calls.calls[i].arguments);
            }
        }
        assert_true(calls.text_bytes <= len);
        assert_true(calls.count > 0 || calls.text_bytes == len);
        expect_the_same_in_pieces(tools_family_named(rows[row].family), text,
                                  (size_t)round % 7 + 1);
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
    struct arena arena;
    struct buf known;
    struct span kept, name = span_str("now");
    struct error err;
    arena_init(&arena, ARENA_BYTES_MAX);
    buf_init(&known, 1 << 20);
    buf_printf(&known,
               "[{\"type\":\"function\",\"function\":{\"name\":\"odd\",\"parameters\":{%s}}},",
               schema);
    buf_add_str(&known, "{\"name\":\"now\"}]");
    buf_add_char(&known, 0);
    assert_false(buf_failed(&known));
    open_reader(tools_family_named("hermes"), (const char *)known.ptr, "");
    const struct span text = span_str("[{\"name\":\"odd\"},{\"name\":\"now\"}]");
    assert_int_equal(tools_reader_read(reader, text, true)->count, 2);
    const struct span all = span_of(known.ptr, known.len - 1);
    assert_int_equal(tools_keep(all, &name, 1, &arena, &kept, &err), ST_OK);
    assert_true(span_is(kept, "[{\"name\":\"now\"}]"));
    name = span_str("odd");
    assert_int_equal(tools_keep(all, &name, 1, &arena, &kept, &err), ST_OK);
    assert_true(kept.len > 2 && !span_is(kept, "[{\"name\":\"now\"}]"));
    buf_fini(&known);
    arena_fini(&arena);
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

/* ---- calls that have to be ------------------------------------------------------------------- */

static const char wanted[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"city\":{\"type\":\"string\",\"enum\":[\"Oslo\",\"S\u00e3o Paulo, "
    "\\\"SP\\\"\"]},"
    "\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":19},"
    "\"note\":{\"type\":\"string\",\"maxLength\":5},"
    "\"unit\":{\"anyOf\":[{\"type\":\"string\",\"enum\":[\"C\",\"F\"]},{\"type\":\"null\"}]},"
    "\"flags\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":2}},"
    "\"required\":[\"city\",\"days\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]";

/* Writes a text that the grammar lets through. False: it has become too long. */
static bool write_text(const struct grammar *grammar, struct buf *out)
{
    struct grammar_walk *walk;
    struct error err;
    assert_int_equal(grammar_walk_new(grammar, &walk, &err), ST_OK);
    struct grammar_state state = grammar_walk_begin(walk);
    bool is_done = false;
    buf_reset(out);
    while (!is_done && out->len < 2000) {
        uint8_t may[256];
        size_t count = 0;
        for (int c = 0; c < 256; c++) {
            struct grammar_state next = state;
            uint8_t byte = (uint8_t)c;
            if (grammar_state_advance(walk, &next, span_of(&byte, 1))) {
                may[count++] = byte;
            }
        }
        is_done = grammar_state_may_end(walk, state) && (count == 0 || rand() % 4 == 0);
        if (!is_done) {
            assert_true(count > 0);
            uint8_t byte = may[(size_t)rand() % count];
            assert_true(grammar_state_advance(walk, &state, span_of(&byte, 1)));
            buf_add_char(out, (char)byte);
        }
    }
    grammar_walk_free(walk);
    return is_done;
}

static bool is_one_of(const struct value *value, const char *a, const char *b)
{
    return value && value->kind == VALUE_STRING &&
           (span_is(value->string, a) || span_is(value->string, b));
}

static size_t characters_of(struct span text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += (text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

/* The arguments of "f" keep to its schema. */
static bool keep_to_schema(struct span arguments, struct arena *arena)
{
    struct value all;
    struct error err;
    assert_int_equal(value_parse(arguments, &VALUE_LIMITS_DEFAULT, arena, &all, &err), ST_OK);
    const struct value *days = value_map_get(&all, span_str("days"));
    const struct value *note = value_map_get(&all, span_str("note"));
    const struct value *unit = value_map_get(&all, span_str("unit"));
    const struct value *flags = value_map_get(&all, span_str("flags"));
    return is_one_of(value_map_get(&all, span_str("city")), "Oslo", "S\u00e3o Paulo, \"SP\"") &&
           days && days->kind == VALUE_INT && days->integer >= 1 && days->integer <= 19 &&
           (!note || (note->kind == VALUE_STRING && characters_of(note->string) <= 5)) &&
           (!unit || unit->kind == VALUE_NONE || is_one_of(unit, "C", "F")) &&
           (!flags || (flags->kind == VALUE_LIST && flags->list->count <= 2));
}

static void sample_calls(const struct tools_family *family, const struct grammar *grammar,
                         struct arena *arena)
{
    struct buf text;
    int counts[2] = {0, 0};
    buf_init(&text, 1 << 16);
    for (int round = 0; round < 300; round++) {
        if (!write_text(grammar, &text)) {
            continue;
        }
        buf_add_char(&text, 0);
        open_reader(family, wanted, "");
        calls = *tools_reader_read(reader, span_of(text.ptr, text.len - 1), true);
        bool is_f = calls.count > 0 && span_is(calls.calls[0].name, "\"f\"");
        if (calls.count != 1 || calls.is_cut || calls.text_bytes > 0 ||
            (is_f && !keep_to_schema(calls.calls[0].arguments, arena))) {
            fail_msg("'%s' is no call that keeps to its schema", (const char *)text.ptr);
        }
        counts[is_f]++;
    }
    assert_true(counts[0] > 20 && counts[1] > 20);
    buf_fini(&text);
}

/* Whatever the grammar of a family's form lets through is read as a call that keeps to its schema.
 */
static void forms_of_calls_are_read_back(void **state)
{
    (void)state;
    static const char *const names[] = {"seed",     "minimax", "dsml",    "glm",   "coder",
                                        "deepseek", "kimi",    "mistral", "gemma", "functiongemma",
                                        "command",  "phi",     "granite", "lfm",   "llama4",
                                        "pythonic", "hermes"};
    struct arena arena;
    struct value known;
    struct words *words;
    struct error err;
    arena_init(&arena, ARENA_BYTES_MAX);
    assert_int_equal(words_new_bytes(&words, &err), ST_OK);
    assert_int_equal(value_parse(span_str(wanted), &VALUE_LIMITS_DEFAULT, &arena, &known, &err),
                     ST_OK);
    srand(3);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct tools_rules rules = {.family = tools_family_named(names[i]), .has_form = true};
        struct grammar_call_form form;
        struct grammar *grammar;
        struct buf text;
        assert_int_equal(tools_call_form(&rules, words, &text, &form, &err), ST_OK);
        if (grammar_parse_call(&known, span_str(""), &form, &grammar, &err) != ST_OK) {
            fail_msg("%s: %s", names[i], err.text);
        }
        sample_calls(rules.family, grammar, &arena);
        grammar_free(grammar);
        buf_fini(&text);
    }
    words_free(words);
    arena_fini(&arena);
}

/* ---- long answers -------------------------------------------------------------------------- */

enum { MARKS = 100000 };

/* Answers that repeat a text whose closing mark never comes, or at the end alone. */
static void marks_that_never_come_are_sought_once(void **state)
{
    (void)state;
    static const struct {
        const char *family, *begin, *repeated, *end;
    } answers[] = {
        {"hermes", "", "<tool_call>[]", ""},
        {"hermes", "", "<tool_call>{\"name\":\"now\"}", ""},
        {"deepseek", BAR("tool\u2581calls\u2581begin"), BAR("tool\u2581call\u2581begin") "[]", ""},
        {"coder", "<tool_call><function=now>", "<parameter=a>x", ""},
        {"coder", "<tool_call><function=now>", "<parameter=a>x", "</function></tool_call>"},
        {"coder", "<tool_call><function=now>", "<parameter=a>x", "</tool_call>"},
        {"glm", "<tool_call>now", "<arg_key>a</arg_key><arg_value>x", ""},
        {"glm", "<tool_call>now", "<arg_key>a</arg_key><arg_value>x", "</tool_call>"},
        {"minimax", "<minimax:tool_call><invoke name=\"now\">", "<parameter name=\"a\">x", ""},
        {"minimax", "<minimax:tool_call><invoke name=\"now\">", "<parameter name=\"a\">x",
         "</minimax:tool_call>"},
    };
    const clock_t begin = clock();
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct buf text;
        buf_init(&text, 4 << 20);
        buf_add_str(&text, answers[i].begin);
        for (int k = 0; k < MARKS; k++) {
            buf_add_str(&text, answers[i].repeated);
        }
        buf_add_str(&text, answers[i].end);
        buf_add_char(&text, 0);
        assert_false(buf_failed(&text));
        find(tools_family_named(answers[i].family), (const char *)text.ptr);
        assert_true(calls.count <= TOOLS_CALLS_MAX);
        buf_fini(&text);
    }
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 20); /* otherwise minutes */
}

/* Adds "k7=1," to |out|, as often as |count|. */
static void add_arguments(struct buf *out, int count)
{
    for (int i = 0; i < count; i++) {
        buf_printf(out, "k%d=1,", i);
    }
}

/* The keys of a call are bounded, and compared in a time that is. */
static void calls_have_so_many_arguments(void **state)
{
    (void)state;
    enum { MAX = 512 };
    struct buf text;
    buf_init(&text, 4 << 20);
    buf_add_str(&text, "[now(");
    add_arguments(&text, MAX);
    for (int i = 0; i < MARKS; i++) {
        buf_printf(&text, "k%d=2,", MAX - 1);
    }
    size_t len = text.len;
    buf_add_str(&text, ")]");
    buf_add_char(&text, 0);
    find(tools_family_named("pythonic"), (const char *)text.ptr);
    assert_true(calls.count == 1 && !calls.is_cut);
    expect_json(calls.calls[0].arguments);
    text.len = len;
    buf_add_str(&text, "more=3)]");
    buf_add_char(&text, 0);
    assert_false(buf_failed(&text));
    find(tools_family_named("pythonic"), (const char *)text.ptr);
    assert_true(calls.count == 1 && calls.is_cut);
    const struct span end = span_str("\"k511\":1"), all = calls.calls[0].arguments;
    assert_true(all.len > end.len);
    assert_memory_equal(all.ptr + all.len - end.len, end.ptr, end.len);
    buf_fini(&text);
}

/* An answer is read once, however often it grows: a second look at all of it for each byte would
 * take minutes. */
static void growing_answers_are_read_once(void **state)
{
    (void)state;
    static const struct {
        const char *family, *begin;
        char filler;
    } answers[] = {
        {"hermes", "", ' '},
        {"hermes", "", '{'},
        {"hermes", "{\"", 'a'},
        {"hermes", "{\"name\": \"now\", \"arguments\": {\"a\": \"", 'a'},
        {"mistral", "[TOOL_CALLS]", 'a'},
        {"deepseek", BAR("tool\u2581calls\u2581begin"), ' '},
        {"coder", "<tool_call><function=", 'a'},
        {"coder", "<tool_call><function=now><parameter=", 'a'},
        {"coder", "<tool_call><function=now><parameter=a>", '<'},
        {"glm", "<tool_call>", 'a'},
        {"pythonic", "[", 'a'},
        {"pythonic", "[now(a=", '['},
        {"pythonic", "[now(a='", 'a'},
        {"gemma", "<|tool_call>call:now{a:<|\"|>", '<'},
    };
    size_t bytes = 1 << 20;
    char *text = malloc(bytes);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        memset(text, answers[i].filler, bytes);
        memcpy(text, answers[i].begin, strlen(answers[i].begin));
        open_reader(tools_family_named(answers[i].family), tools, "");
        for (size_t len = 0; len <= bytes; len++) {
            (void)tools_reader_read(reader, span_of(text, len), len == bytes);
        }
    }
    free(text);
}

#define THREE                                                                                      \
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}},"                    \
    "{\"type\":\"function\",\"function\":{\"description\":\"x\",\"name\":\"g\"}},"                 \
    "{\"name\":\"n\\\\\\u006e\"}]"

static void find_calls(const char *known, const char *text)
{
    open_reader(tools_family_named("hermes"), known, "");
    calls = *tools_reader_read(reader, span_str(text), true);
}

static void expect_calls(const char *text, uint32_t count, size_t text_bytes)
{
    find_calls(THREE, text);
    assert_int_equal(calls.count, count);
    assert_int_equal(calls.text_bytes, count ? text_bytes : strlen(text));
}

/* |name| and |arguments| of the call that |text| ends in, or of the whole call; without a name
 * there is none, and all is text. */
static void expect_cut(const char *chosen, const char *text, const char *name,
                       const char *arguments)
{
    open_reader(tools_family_named("hermes"), THREE, chosen);
    calls = *tools_reader_read(reader, span_str(text), true);
    assert_int_equal(calls.text_bytes, name ? 0 : strlen(text));
    assert_int_equal(calls.count, name != NULL);
    if (name) {
        struct tools_json json = {0};
        (void)tools_json_read(&json, span_str(arguments));
        assert_int_equal(calls.is_cut, json.state != TOOLS_JSON_DONE);
        assert_true(span_is(calls.calls[0].name, name));
        assert_true(span_is(calls.calls[0].arguments, arguments));
    }
}

static void cut_tool_calls(void **state)
{
    (void)state;
    const char *const whole = "{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}";
    const char *const begin = strchr(whole + 1, '{');
    char text[64], arguments[64];
    for (size_t len = 0; len <= strlen(whole); len++) {
        size_t from = (size_t)(begin - whole) < len ? (size_t)(begin - whole) : len;
        snprintf(text, sizeof(text), "%.*s", (int)len, whole);
        snprintf(arguments, sizeof(arguments), "%s", text + from);
        expect_cut("", text, len >= strlen("{\"name\": \"f\"") ? "\"f\"" : NULL, arguments);
        expect_cut("f", text, "\"f\"", arguments);
    }
    expect_cut("g", "", "\"g\"", "");
    expect_cut("g", "nonsense", "\"g\"", "");
    expect_cut("h", " {", NULL, "");
    expect_cut("n\\n", "{", "\"n\\\\n\"", ""); /* the request's name is decoded */
    expect_cut("nn\\", "{", NULL, "");
    expect_cut("", "{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": \"\\\"}\"}}", "\"f\"",
               "{\"a\": 1, \"a\": \"\\\"}\"}"); /* whole, but a key repeats */
}

/* A call that has to be is one, wherever its answer ends, if its name is known: it has come, or the
 * request has no other tool. */
static void a_call_that_has_to_be_is_one(void **state)
{
    (void)state;
    static const struct {
        const char *family, *text;
        bool is_named;
    } answers[] = {
        {"lfm", "<|tool_call_start|>[f(a=\"x", true},
        {"gemma", "<|tool_call>call:f{a:<|\"|>x", true},
        {"coder", "<tool_call>\n<function=f>\n<para", true},
        {"minimax", "<minimax:tool_call>\n<invoke name=\"f\">\n<", true},
        {"coder", "<tool_call>\n<function=f", false},
        {"lfm", "<|tool_call_sta", false},
        {"mistral", "[TOOL_CALLS]f", false},
        {"hermes", "", false},
    };
    needs_call = true;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        for (int k = 0; k < 2; k++) {
            const char *known = k == 0 ? "[{\"name\":\"f\"}]" : THREE;
            open_reader(tools_family_named(answers[i].family), known, "");
            calls = *tools_reader_read(reader, span_str(answers[i].text), true);
            bool is_call = k == 0 || answers[i].is_named;
            if (calls.count != is_call ||
                calls.text_bytes != (is_call ? 0 : strlen(answers[i].text))) {
                fail_msg("'%s': %u calls of %s", answers[i].text, calls.count, known);
            }
            assert_true(!is_call || (calls.is_cut && span_is(calls.calls[0].name, "\"f\"")));
        }
    }
    needs_call = false;
}

/* Bytes that may be told of an answer that goes on. */
static size_t plain_bytes(const char *text)
{
    open_reader(tools_family_named("hermes"), THREE, "");
    return tools_reader_read(reader, span_str(text), false)->text_bytes;
}

static void tool_calls(void **state)
{
    (void)state;
    const char *const two =
        "Well <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}"
        "</tool_call> <tool_call>{\"name\":\"g\"}</tool_call>";
    find_calls(THREE, two);
    assert_int_equal(calls.count, 2);
    assert_int_equal(calls.text_bytes, 5);
    assert_true(span_is(calls.calls[0].name, "\"f\""));
    assert_true(span_is(calls.calls[0].arguments, "{\"a\": [1, \"}\"]}"));
    assert_true(span_is(calls.calls[1].arguments, "{}"));
    expect_calls("{\"name\":\"f\",\"parameters\":{\"x\":1}}", 1, 0);
    expect_calls(" [{\"name\":\"f\",\"arguments\":{}}, {\"name\":\"g\",\"arguments\":{}}]\n", 2, 0);
    expect_calls("<tool_call>{\"name\":\"f\"}", 1, 0); /* the end token stands for the mark */
    expect_calls("\n<tool_call>{\"name\":\"f\"}</tool_call>", 1, 0);
    /* None of these is a call. */
    expect_calls("", 0, 0);
    expect_calls("hello", 0, 0);
    expect_calls("{\"name\":\"h\",\"arguments\":{}}", 0, 0);
    expect_calls("{\"name\":\"f\",\"argument\":{}, \"name\"} and more", 0, 0);
    expect_calls("{\"name\":\"f\",\"arguments\":3}", 0, 0);
    expect_calls("{\"name\":5}", 0, 0);
    expect_calls("[", 0, 0);
    find_calls("", two);
    assert_int_equal(calls.count, 0);
    assert_int_equal(plain_bytes("abc <tool"), 4);
    assert_int_equal(plain_bytes("abc <too bad"), 12);
    assert_int_equal(plain_bytes("a<b"), 3);
    assert_int_equal(plain_bytes("  "), 0);
    assert_int_equal(plain_bytes(" {\"na"), 0);
    assert_int_equal(plain_bytes("<tool_call>abc"), 14); /* no call begins so */
    assert_int_equal(plain_bytes("abc <tool_call>"), 4);
    assert_int_equal(plain_bytes("{\"name\": \"other\", \"a\":"), 22);
    assert_int_equal(plain_bytes("a{b"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_write_their_calls),
        cmocka_unit_test(answers_in_pieces_have_the_same_calls),
        cmocka_unit_test(arguments_are_told_as_they_come),
        cmocka_unit_test(templates_tell_the_family),
        cmocka_unit_test(damage_makes_text_or_calls),
        cmocka_unit_test(hostile_answers_are_text),
        cmocka_unit_test(odd_schemas_hide_no_tool),
        cmocka_unit_test(forms_of_calls_are_read_back),
        cmocka_unit_test(marks_that_never_come_are_sought_once),
        cmocka_unit_test(growing_answers_are_read_once),
        cmocka_unit_test(tool_calls),
        cmocka_unit_test(cut_tool_calls),
        cmocka_unit_test(calls_have_so_many_arguments),
        cmocka_unit_test(a_call_that_has_to_be_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, close_reader);
}
