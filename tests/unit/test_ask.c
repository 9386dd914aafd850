/* SPDX-License-Identifier: MIT */
/* Requests to language models: every member in the forms that have it, and what is refused. */
#include "config.h"

#include "tests/unit/ask_support.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/language/ask.h"

static struct ask ask;

static enum status parse(enum ask_form form, const char *body)
{
    arena_reset(&arena);
    return ask_parse(form, span_str(body), 16, &arena, &ask, &err);
}

/* A request of |form| with |members| beside what it needs. */
static enum status parse_with(enum ask_form form, const char *members)
{
    char body[1024];
    const char *before = form & (ASK_COMPLETION | ASK_LLAMA | ASK_OLLAMA_GENERATE)
                             ? "{\"prompt\":\"p\""
                         : form & (ASK_CHAT | ASK_MESSAGE | ASK_COHERE | ASK_OLLAMA_CHAT)
                             ? "{\"messages\":[{\"role\":\"user\",\"content\":\"c\"}]"
                         : form == ASK_INFILL   ? "{\"input_prefix\":\"p\""
                         : form == ASK_GENERATE ? "{\"text_input\":\"t\",\"parameters\":{\"x\":1"
                                                : "{\"input\":\"i\"";
    int len = snprintf(body, sizeof(body), "%s%s%s%s", before, *members ? "," : "", members,
                       form == ASK_GENERATE ? "}}" : "}");
    assert_true(len > 0 && len < (int)sizeof(body));
    return parse(form, body);
}

static void refuses(enum ask_form form, const char *members, const char *why)
{
    check_refused(members, parse_with(form, members), ST_INVALID, why);
}

/* ---- rows of ask.def ------------------------------------------------------------------------- */

#define C ASK_COMPLETION
#define M ASK_CHAT
#define G ASK_GENERATE
#define R ASK_RESPONSE
#define A ASK_MESSAGE
#define H ASK_COHERE
#define L ASK_LLAMA
#define I ASK_INFILL
#define O ASK_OLLAMA_CHAT
#define P ASK_OLLAMA_GENERATE
#define E (C | M | G | R | A | H | L | I)

static const enum ask_form all_forms[] = {C, M, G, R, A, H, L, I, O, P};
#define FORMS (sizeof(all_forms) / sizeof(all_forms[0]))

static const struct {
    const char *name;
    unsigned forms;
    double min, max;
} numbers[] = {
#define ASK_NUMBER(name, member, forms, min, max) {#name, forms, min, max},
#define ASK_COUNT(name, member, forms, min, max) {#name, forms, min, max},
#define ASK_SWITCH(name, member, forms)
#define ASK_OTHER(name, function, forms)
#define ASK_REFUSED(name, forms, why)
#define ASK_ABSENT(name, forms, min, max)
#include "server/language/ask.def"
};

/* A switch is a bool; a refused member may only be null. */
static const struct {
    const char *name, *why;
    unsigned forms;
} words[] = {
#define ASK_NUMBER(name, member, forms, min, max)
#define ASK_COUNT(name, member, forms, min, max)
#define ASK_SWITCH(name, member, forms) {#name, "expected a boolean, got a string", forms},
#define ASK_OTHER(name, function, forms)
#define ASK_REFUSED(name, forms, why) {#name, "it is not done here: " why, forms},
#define ASK_ABSENT(name, forms, min, max)                                                          \
    {#name, "it is not done here, and would change the answer", forms},
#include "server/language/ask.def"
};

/* Members with readers of their own. */
static const struct {
    const char *name;
    unsigned forms;
} others[] = {
#define ASK_NUMBER(name, member, forms, min, max)
#define ASK_COUNT(name, member, forms, min, max)
#define ASK_SWITCH(name, member, forms)
#define ASK_OTHER(name, function, forms) {#name, forms},
#define ASK_REFUSED(name, forms, why)
#define ASK_ABSENT(name, forms, min, max)
#include "server/language/ask.def"
};

static bool has_reader(const char *name, enum ask_form form)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].forms & form && strcmp(others[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* top_logprobs and best_of depend on others, too. */
static void check_number(enum ask_form form, const char *name, double value, bool is_good)
{
    char members[160];
    snprintf(members, sizeof(members), "\"%s\":%.17g%s%s", name, value,
             strcmp(name, "top_logprobs") == 0 ? ",\"logprobs\":true" : "",
             strcmp(name, "best_of") == 0 ? ",\"n\":64" : "");
    if (!is_good) {
        refuses(form, members, "expected a");
    } else if (parse_with(form, members) != ST_OK &&
               (strcmp(name, "best_of") != 0 || !strstr(err.text, "best_of: expected n"))) {
        fail_msg("%s: %s", members, err.text);
    }
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        for (size_t f = 0; f < FORMS; f++) {
            if (numbers[i].forms & all_forms[f]) {
                check_number(all_forms[f], numbers[i].name, numbers[i].min, true);
                check_number(all_forms[f], numbers[i].name, numbers[i].max, true);
                check_number(all_forms[f], numbers[i].name, numbers[i].max + 1, false);
                check_number(all_forms[f], numbers[i].name, numbers[i].min - 1, false);
            }
        }
    }
}

static void members_of_other_forms_are_passed_over(void **state)
{
    char members[160];
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        for (size_t f = 0; f < FORMS; f++) {
            if (!(numbers[i].forms & all_forms[f]) && !has_reader(numbers[i].name, all_forms[f])) {
                snprintf(members, sizeof(members), "\"%s\":\"no number\"", numbers[i].name);
                assert_ok(err, parse_with(all_forms[f], members));
            }
        }
    }
}

static void words_are_refused_or_null(void **state)
{
    char members[160];
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (size_t f = 0; f < FORMS; f++) {
            if (words[i].forms & all_forms[f]) {
                snprintf(members, sizeof(members), "\"%s\":\"x\"", words[i].name);
                refuses(all_forms[f], members, words[i].why);
                snprintf(members, sizeof(members), "\"%s\":null", words[i].name);
                assert_ok(err, parse_with(all_forms[f], members));
            }
        }
    }
}

static const struct {
    const char *name;
    unsigned forms;
    double min, max;
} absents[] = {
#define ASK_NUMBER(name, member, forms, min, max)
#define ASK_COUNT(name, member, forms, min, max)
#define ASK_SWITCH(name, member, forms)
#define ASK_OTHER(name, function, forms)
#define ASK_REFUSED(name, forms, why)
#define ASK_ABSENT(name, forms, min, max) {#name, forms, min, max},
#include "server/language/ask.def"
};

static void check_absent(enum ask_form form, const char *name, double value, bool is_good)
{
    char members[160];
    snprintf(members, sizeof(members), "\"%s\":%g", name, value);
    if (is_good) {
        assert_ok(err, parse_with(form, members));
    } else {
        refuses(form, members, name);
    }
}

static void absent_ways_of_sampling_are_refused_if_they_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(absents) / sizeof(absents[0]); i++) {
        for (size_t f = 0; f < FORMS; f++) {
            if (absents[i].forms & all_forms[f]) {
                check_absent(all_forms[f], absents[i].name, absents[i].min, true);
                check_absent(all_forms[f], absents[i].name, absents[i].max, true);
                check_absent(all_forms[f], absents[i].name, absents[i].max + 0.5, false);
                check_absent(all_forms[f], absents[i].name, absents[i].min - 0.5, false);
            }
        }
    }
    assert_ok(err, parse_with(M, "\"use_beam_search\":false,\"lora\":[],\"bad_words\":[]"));
    refuses(M, "\"use_beam_search\":true", "use_beam_search: it is not done here");
    refuses(M, "\"lora\":[{\"id\":0,\"scale\":0.5}]", "lora: it is not done here");
    refuses(M, "\"bad_words\":[\"a\"]", "bad_words: it is not done here");
}

/* ---- Ollama's requests ----------------------------------------------------------------------- */

static void check_span(const char *body, struct span got, const char *expected)
{
    if (!span_is(got, expected)) {
        fail_msg("%s: %.*s, expected %s", body, (int)got.len, (const char *)got.ptr, expected);
    }
}

static void check_ollama(const char *messages, const char *expected)
{
    char body[1024];
    snprintf(body, sizeof(body), "{\"messages\":%s}", messages);
    assert_ok(err, parse(ASK_OLLAMA_CHAT, body));
    check_span(body, ask.messages, expected);
}

static void messages_of_ollama_are_as_templates_know_them(void **state)
{
    (void)state;
    check_ollama("[ {\"content\":\"a\\n\",\"role\":\"user\"}]",
                 "[{\"role\":\"user\",\"content\":\"a\\n\"}]");
    check_ollama("[{\"role\":\"assistant\",\"thinking\":\"t\",\"tool_calls\":[{\"function\":"
                 "{\"name\":\"f\",\"arguments\":{\"a\":1}}}],\"more\":[{}]},{\"role\":\"tool\","
                 "\"tool_name\":\"f\",\"tool_call_id\":\"1\",\"content\":\"c\"}]",
                 "[{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"t\","
                 "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},"
                 "{\"role\":\"tool\",\"content\":\"c\",\"name\":\"f\",\"tool_call_id\":\"1\"}]");
    check_ollama("[{\"role\":\"user\",\"content\":null,\"thinking\":\"\",\"tool_calls\":null,"
                 "\"tool_name\":\"\",\"images\":[]}]",
                 "[{\"role\":\"user\",\"content\":\"\"}]");
    assert_true(ask.is_stream && ask_is_chat(&ask));
}

static void a_prompt_of_ollama_is_a_message_and_a_text(void **state)
{
    (void)state;
    assert_ok(err,
              parse(ASK_OLLAMA_GENERATE, "{\"prompt\": \"a\\u00e9\",\"system\":\"\",\"raw\":true,"
                                         "\"model\":\"m:latest\",\"stream\":false}"));
    check_span("prompt", ask.messages, "[{\"role\":\"user\",\"content\":\"a\\u00e9\"}]");
    check_span("prompt", ask.prompts[0].text, "a\xc3\xa9");
    assert_true(!ask_is_chat(&ask) && ask.instructions.len == 0 && !ask.is_stream);
    assert_string_equal(ask.model, "m");
    assert_ok(err, parse(ASK_OLLAMA_CHAT, "{\"model\":\":latest\",\"messages\":null,"
                                          "\"keep_alive\":0,\"format\":\"json\",\"tools\":[{}]}"));
    assert_string_equal(ask.model, ":latest");
    assert_true(ask.is_load && ask.max_tokens == 0 && ask.shape == ASK_ANY_TEXT);
    assert_true(ask.prompt_count == 1 && ask.tools.len == 0 && ask.keep_ns == 0);
    assert_ok(err, parse(ASK_OLLAMA_GENERATE, "{\"prompt\":\"\",\"suffix\":\"b\"}"));
    assert_true(ask.is_load && ask.suffix.len == 0); /* which a model may not know */
}

static void options_of_ollama_stand_apart_or_beside(void **state)
{
    (void)state;
    assert_ok(err, parse_with(P, "\"options\":{\"num_predict\":-2,\"top_k\":3,\"seed\":-1,"
                                 "\"num_ctx\":8,\"options\":{\"top_k\":\"x\"}},\"min_p\":0.5"));
    assert_true(ask.max_tokens == UINT32_MAX && ask.sampler.top_k == 3 && !ask.has_seed);
    assert_true(ask.sampler.min_p == 0.5);
    assert_ok(err, parse_with(O, "\"options\":null,\"seed\":-2,\"num_predict\":7"));
    assert_true(ask.has_seed && ask.max_tokens == 7);
    refuses(O, "\"options\":{\"stop\":\"a\"},\"stop\":\"a\"", "given twice, in options");
    refuses(P, "\"options\":[]", "options: expected");
    assert_ok(err, parse_with(O, "\"think\":\"high\",\"format\":{\"type\":\"object\"}"));
    assert_true(ask.thinking == ASK_THINKING_ON && ask.shape == ASK_SCHEMA);
    check_span("think", ask.effort, "high");
    assert_ok(err, parse_with(P, "\"think\":false,\"format\":\"\""));
    assert_true(ask.thinking == ASK_THINKING_OFF && ask.shape == ASK_ANY_TEXT);
}

/* ---- Anthropic's messages -------------------------------------------------------------------- */

static void check_messages(const char *body, const char *expected)
{
    assert_ok(err, parse(ASK_MESSAGE, body));
    if (!span_is(ask.messages, expected)) {
        fail_msg("%s: %.*s", body, (int)ask.messages.len, (const char *)ask.messages.ptr);
    }
}

static void blocks_become_messages(void **state)
{
    (void)state;
    check_messages("{\"messages\":[{\"role\":\"user\",\"content\":\"a\\n\"}]}",
                   "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\\n\"}]}]");
    check_messages(
        "{\"messages\":[{\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\","
        "\"input\":{\"a\": 1}},{\"thinking\":\"t\",\"type\":\"thinking\"}],"
        "\"role\":\"assistant\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
        "\"text\":\"x\"},{\"type\":\"tool_result\",\"content\":\"r\",\"tool_use_id\":\"1\"},"
        "{\"type\":\"tool_result\",\"tool_use_id\":\"2\"}]}],\"system\":\"s\"}",
        "[{\"role\":\"assistant\",\"content\":[],\"reasoning_content\":\"t\",\"tool_calls\":[{"
        "\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
        "{\"a\": 1}}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":[{\"type\":\"text\",\"text\":"
        "\"r\"}]},{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":[]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}]");
    assert_true(span_is(ask.instructions, "[{\"type\":\"text\",\"text\":\"s\"}]"));
    assert_false(ask.continues);
    assert_ok(err, parse(ASK_MESSAGE, "{\"messages\":[{\"role\":\"assistant\","
                                      "\"content\":\"a\"}]}"));
    assert_true(ask.continues);
    check_messages(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"},"
        "{\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{}},"
        "{\"thinking\":\"t\",\"type\":\"thinking\"}],\"role\":\"assistant\","
        "\"content\":\"c\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"1\"}],"
        "\"content\":\"d\"}]}",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"c\"}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"d\"}]}]");
}

static void tools_of_messages_become_functions(void **state)
{
    (void)state;
    assert_ok(err, parse_with(A, "\"tools\":[{\"name\":\"f\",\"type\":\"custom\","
                                 "\"input_schema\":{},\"cache_control\":{}}],"
                                 "\"tool_choice\":{\"type\":\"tool\",\"name\":\"f\"}"));
    assert_true(span_is(ask.tools, "[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                                   "\"parameters\":{}}}]"));
    assert_true(ask.needs_call && span_is(ask.chosen_tool, "f"));
    assert_ok(err, parse_with(A, "\"tools\":[],\"tool_choice\":{\"type\":\"none\"}"));
    assert_true(ask.drops_tools && ask.tools.len == 0);
    refuses(A, "\"tool_choice\":{\"type\":\"auto\",\"name\":\"f\"}", "\"tool\" with a name");
}

/* ---- what answers repeat --------------------------------------------------------------------- */

static void what_answers_repeat_is_json(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\"metadata\":{garbage]",
        "\"metadata\":{garbage}",
        "\"metadata\":{\"a\":NaN}",
        "\"metadata\":{\"a\":[-Infinity]}",
        "\"metadata\":{\"a\":\"\xff\x01\"}",
        "\"text\":{\"format\":{\"type\":\"text\",\"schema\":{xx]}}",
        "\"text\":{\"format\":{\"type\":\"text\",\"schema\":{xx}}}",
        "\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"a\":NaN}}}",
        "\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"a\":NaN}}]",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *end = strchr(bad[i] + 1, '"');
        char name[16];
        snprintf(name, sizeof(name), "%.*s", (int)(end - bad[i] - 1), bad[i] + 1);
        refuses(R, bad[i], name);
    }
    assert_ok(err, parse_with(R, "\"metadata\":{\"NaN\":\"\\\"NaN\",\"a\":1}"));
    assert_true(span_is(ask.metadata, "{\"NaN\":\"\\\"NaN\",\"a\":1}"));
}

static void other_names_mean_the_same(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, "\"n_predict\":7,\"repeat_penalty\":1.5"));
    assert_int_equal(ask.max_tokens, 7);
    assert_true(ask.sampler.repetition == 1.5);
    refuses(M, "\"continue_final_message\":true", "continue_final_message: it is not done here");
    refuses(M, "\"add_generation_prompt\":false", "add_generation_prompt: it is not done here");
    assert_ok(err, parse_with(M, "\"continue_final_message\":false,"
                                 "\"add_generation_prompt\":true,\"chat_template\":\"\""));
}

/* ---- what is asked --------------------------------------------------------------------------- */

static void prompts_are_texts_or_ids(void **state)
{
    (void)state;
    assert_ok(err, parse(C, "{\"prompt\":[\"a\",\"b\\n\"],\"model\":\"m\",\"user\":\"me\"}"));
    assert_int_equal(ask.prompt_count, 2);
    assert_true(span_is(ask.prompts[1].text, "b\n"));
    assert_string_equal(ask.model, "m");
    assert_ok(err, parse(C, "{\"prompt\":[1,2,3]}"));
    assert_int_equal(ask.prompt_count, 1);
    assert_int_equal(ask.prompts[0].id_count, 3);
    assert_ok(err, parse(C, "{\"prompt\":[[1,2],[3]]}"));
    assert_int_equal(ask.prompt_count, 2);
    assert_int_equal(ask.prompts[1].ids[0], 3);
    assert_ok(err, parse(G, "{\"id\":\"me\",\"text_input\":\"t\"}"));
    assert_true(span_is(ask.id, "me"));
    assert_true(span_is(ask.prompts[0].text, "t"));
}

static void what_is_needed_is_missed(void **state)
{
    (void)state;
    assert_fails(err, parse(C, "{}"), ST_INVALID, "prompt is missing or empty");
    assert_fails(err, parse(C, "{\"prompt\":null}"), ST_INVALID, "prompt is missing or empty");
    assert_fails(err, parse(M, "{\"prompt\":\"p\"}"), ST_INVALID, "messages is missing or empty");
    assert_fails(err, parse(G, "{\"parameters\":{}}"), ST_INVALID, "text_input is missing");
    assert_fails(err, parse(R, "{}"), ST_INVALID, "input is missing or empty");
    assert_fails(err, parse(C, "[]"), ST_INVALID, "expected an object");
    assert_fails(err, parse(C, "{\"prompt\":\"p\"} {}"), ST_INVALID, "byte 15");
    assert_fails(err, parse(C, "{\"prompt\":\"\xff\"}"), ST_INVALID, "UTF-8");
}

static void what_is_not_said_has_defaults(void **state)
{
    const struct ask_defaults none = ask_no_defaults();
    (void)state;
    assert_ok(err, parse_with(M, ""));
    assert_int_equal(ask.max_tokens, UINT32_MAX);
    assert_int_equal(ask.n, 1);
    assert_false(ask.is_stream || ask.has_seed || ask.wants_logprobs || ask.echoes);
    assert_int_equal(ask.shape, ASK_ANY_TEXT);
    ask_take_defaults(&ask, &none);
    assert_true(ask.sampler.temperature == 1 && ask.sampler.top_p == 1);
    const struct ask_defaults model = {.temperature = 0.5,
                                       .top_p = NAN,
                                       .min_p = NAN,
                                       .repetition = 1.25,
                                       .top_k = 7,
                                       .max_tokens = 9};
    assert_ok(err, parse_with(M, "\"top_k\":3"));
    ask_take_defaults(&ask, &model);
    assert_true(ask.sampler.temperature == 0.5 && ask.sampler.repetition == 1.25);
    assert_int_equal(ask.sampler.top_k, 3); /* the request counts */
    assert_int_equal(ask.max_tokens, 9);
}

static void stops_are_a_few_short_texts(void **state)
{
    char members[400], letters[ASK_STOP_BYTES_MAX + 2] = "";
    (void)state;
    assert_ok(err, parse_with(C, "\"stop\":\"a\",\"stop_token_ids\":[1,2]"));
    assert_int_equal(ask.stop_count, 1);
    assert_int_equal(ask.stop_id_count, 2);
    assert_ok(err, parse_with(M, "\"stop\":[\"a\",\"b\"]"));
    assert_int_equal(ask.stop_count, 2);
    refuses(M, "\"stop\":\"\"", "strings of 1 to 256 bytes");
    memset(letters, 'a', sizeof(letters) - 1);
    snprintf(members, sizeof(members), "\"stop\":\"%s\"", letters);
    refuses(M, members, "strings of 1 to 256 bytes");
    refuses(M,
            "\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\","
            "\"13\",\"14\",\"15\",\"16\",\"17\"]",
            "at most 16 strings");
}

static void biases_are_numbers_for_ids(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, "\"logit_bias\":{\"5\":-100,\"7\":2.5}"));
    assert_int_equal(ask.sampler.bias_count, 2);
    refuses(M, "\"logit_bias\":{\"5\":101}", "numbers from -100 to 100");
    refuses(M, "\"logit_bias\":{\"x\":1}", "ids of tokens with numbers");
    refuses(M, "\"logit_bias\":{\"5\":1,\"5\":2}", "repeats");
}

/* ---- members that depend on others ----------------------------------------------------------- */

static void logprobs_differ_by_form(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, "\"logprobs\":true,\"top_logprobs\":3"));
    assert_true(ask.wants_logprobs && ask.top_count == 3);
    assert_ok(err, parse_with(C, "\"logprobs\":2"));
    assert_true(ask.wants_logprobs && ask.top_count == 2);
    refuses(M, "\"max_token\":3", "max_token: unknown member, did you mean 'max_tokens'? (byte");
    refuses(M, "\"maxTokens\":3", "did you mean 'max_tokens'?");
    refuses(C, "\"temprature\":{\"a\":[1]}", "did you mean 'temperature'?");
    refuses(R, "\"strem\":true", "did you mean 'stream'?");
    refuses(M, "\"top_logprobs\":3", "top_logprobs: expected logprobs to be true");
    refuses(C, "\"n\":2,\"best_of\":3", "best_of: expected n (2), got 3");
    assert_ok(err, parse_with(C, "\"n\":3,\"best_of\":3"));
}

static void prompts_are_scored_in_two_forms(void **state)
{
    (void)state;
    assert_ok(err, parse_with(C, "\"logprobs\":1,\"echo\":true,\"stream\":true"));
    assert_true(ask_scores_prompt(&ask));
    assert_ok(err, parse_with(C, "\"logprobs\":1"));
    assert_false(ask_scores_prompt(&ask));
    assert_ok(err, parse_with(C, "\"echo\":true"));
    assert_false(ask_scores_prompt(&ask));
    assert_ok(err, parse_with(M, "\"prompt_logprobs\":20"));
    assert_true(ask_scores_prompt(&ask) && ask.prompt_top_count == 20 && !ask.wants_logprobs);
    refuses(M, "\"prompt_logprobs\":21", "expected a number from 0 to 20");
    refuses(M, "\"prompt_logprobs\":-1", "prompt_logprobs");
    refuses(C, "\"prompt_logprobs\":0,\"stream\":true", "prompt_logprobs: not in a stream");
}

static void one_form_of_an_answer(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, "\"response_format\":{\"type\":\"json_object\"}"));
    assert_int_equal(ask.shape, ASK_OBJECT);
    assert_ok(err, parse_with(M, "\"response_format\":{\"type\":\"json_object\",\"json_schema\":"
                                 "{\"name\":\"n\",\"schema\":{\"type\":\"object\"}}}"));
    assert_int_equal(ask.shape, ASK_OBJECT); /* whose schema does not count */
    assert_ok(err, parse_with(M, "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
                                 "{\"name\":\"n\",\"schema\":{\"type\":\"object\"}}}"));
    assert_int_equal(ask.shape, ASK_SCHEMA);
    assert_true(span_is(ask.grammar, "{\"type\":\"object\"}"));
    assert_ok(err, parse_with(C, "\"guided_regex\":\"a+\""));
    assert_int_equal(ask.shape, ASK_REGEX);
    assert_true(span_is(ask.grammar, "a+"));
    assert_ok(err, parse_with(G, "\"guided_choice\":[\"a\",\"b\"]"));
    assert_int_equal(ask.shape, ASK_CHOICE);
    assert_ok(err, parse_with(M, "\"structured_outputs\":{\"regex\":\"b\"}"));
    assert_int_equal(ask.shape, ASK_REGEX);
    refuses(M, "\"response_format\":{\"type\":\"xml\"}",
            "expected the type \"text\", \"json_object\" or \"json_schema\", got \"xml\"");
    refuses(M, "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}",
            "json_schema.schema is missing");
    refuses(M, "\"guided_regex\":\"a\",\"guided_choice\":[\"b\"]", "expected only one of");
    refuses(M, "\"structured_outputs\":{\"structural_tag\":1}",
            "expected json, regex, choice or grammar");
}

#define TOOLS                                                                                      \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"               \
    "{\"type\":\"object\"}}}]"

static void tools_are_chosen(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, TOOLS));
    assert_true(ask.tools.len > 0 && !ask.needs_call);
    assert_ok(err, parse_with(M, TOOLS ",\"tool_choice\":\"none\""));
    assert_int_equal(ask.tools.len, 0);
    assert_ok(err, parse_with(M, TOOLS ",\"tool_choice\":\"required\""));
    assert_int_equal(ask.shape, ASK_CALL);
    assert_ok(err, parse_with(M, TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":"
                                       "{\"name\":\"f\"}}"));
    assert_true(span_is(ask.chosen_tool, "f"));
    refuses(M, "\"tool_choice\":\"required\"", "expected tools to choose from");
    refuses(M, TOOLS ",\"tool_choice\":\"some\"", "expected \"none\", \"auto\", \"required\"");
    refuses(M, TOOLS ",\"tool_choice\":{\"type\":\"x\"}", "expected the type \"function\"");
    refuses(M, TOOLS ",\"tool_choice\":\"required\",\"response_format\":{\"type\":\"json_object\"}",
            "cannot have another format");
}

static void a_stream_may_count(void **state)
{
    (void)state;
    assert_ok(err, parse_with(M, "\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
    assert_true(ask.is_stream && ask.wants_usage);
}

static void parameters_stand_in_one_place(void **state)
{
    (void)state;
    assert_ok(err, parse(G, "{\"text_input\":\"t\",\"top_k\":2}"));
    assert_int_equal(ask.sampler.top_k, 2);
    assert_fails(err, parse(G, "{\"text_input\":\"t\",\"top_k\":2,\"parameters\":{\"top_k\":2}}"),
                 ST_INVALID, "given twice, in parameters and beside them");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_have_bounds),
        TEST(members_of_other_forms_are_passed_over),
        TEST(words_are_refused_or_null),
        TEST(absent_ways_of_sampling_are_refused_if_they_matter),
        TEST(messages_of_ollama_are_as_templates_know_them),
        TEST(a_prompt_of_ollama_is_a_message_and_a_text),
        TEST(options_of_ollama_stand_apart_or_beside),
        TEST(blocks_become_messages),
        TEST(tools_of_messages_become_functions),
        TEST(what_answers_repeat_is_json),
        TEST(other_names_mean_the_same),
        TEST(prompts_are_texts_or_ids),
        TEST(what_is_needed_is_missed),
        TEST(what_is_not_said_has_defaults),
        TEST(stops_are_a_few_short_texts),
        TEST(biases_are_numbers_for_ids),
        TEST(logprobs_differ_by_form),
        TEST(prompts_are_scored_in_two_forms),
        TEST(one_form_of_an_answer),
        TEST(tools_are_chosen),
        TEST(a_stream_may_count),
        TEST(parameters_stand_in_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
