/* SPDX-License-Identifier: MIT */
/* Thoughts apart from answers: families, markers that are tokens or text, pieces of any size. */
#include "config.h"

#include "server/language/thinking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/language/words.h"
#include "tests/unit/unit.h"

#define BYTES_MAX (1 << 16)

static struct words *bytes, *words; /* without and with tokens for markers */
static struct error err;

static int open_words(void **state)
{
    char path[4096];
    (void)state;
    snprintf(path, sizeof(path), "%s/tests/models/chat/tokenizer.json", getenv("top_srcdir"));
    assert_ok(err, words_new_bytes(&bytes, &err));
    assert_ok(err, words_load(path, &words, &err));
    return 0;
}

static int close_words(void **state)
{
    (void)state;
    words_free(bytes);
    words_free(words);
    return 0;
}

/* ---- an answer in pieces --------------------------------------------------------------------- */

static struct thinking thinking;
static struct buf out;

static void begin(const struct thinking_rules *rules, enum thinking_start start)
{
    thinking_init(&thinking, rules, BYTES_MAX);
    thinking_restart(&thinking, start);
    buf_init(&out, BYTES_MAX);
}

static void end(void)
{
    thinking_fini(&thinking);
    buf_fini(&out);
}

static void push(const char *text, size_t len)
{
    thinking_push(&thinking, span_of(text, len), &out);
}

static void check(const char *thought, const char *answer)
{
    struct span got = buf_span(&thinking.text);
    if (!span_is(got, thought) || !span_is(buf_span(&out), answer)) {
        fail_msg("thought '%.*s' and answer '%.*s', expected '%s' and '%s'", SPAN_FMT(got),
                 SPAN_FMT(buf_span(&out)), thought, answer);
    }
}

/* |text| cut at any two places, and in single bytes, gives the same. */
static void expect(const struct thinking_rules *rules, enum thinking_start start, const char *text,
                   const char *thought, const char *answer)
{
    size_t len = strlen(text);
    for (size_t a = 0; a <= len; a++) {
        for (size_t b = a; b <= len; b++) {
            begin(rules, start);
            push(text, a);
            push(text + a, b - a);
            push(text + b, len - b);
            thinking_end(&thinking, &out);
            check(thought, answer);
            end();
        }
    }
    begin(rules, start);
    for (size_t i = 0; i < len; i++) {
        size_t told = out.len, thought_told = thinking.text.len;
        push(text + i, 1);
        /* What was told stays told, and is the beginning of what comes. */
        assert_true(out.len >= told && thinking.text.len >= thought_told);
        assert_int_equal(strncmp(answer, (const char *)out.ptr ? (const char *)out.ptr : "", told),
                         0);
    }
    thinking_end(&thinking, &out);
    check(thought, answer);
    end();
}

static struct thinking_rules rules_of(const char *name)
{
    struct thinking_rules rules;
    assert_ok(
        err, thinking_rules_init(&rules, bytes, NULL, &(struct thinking_said){.name = name}, &err));
    assert_true(rules.thinks);
    return rules;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void thoughts_stand_apart_however_they_are_cut(void **state)
{
    (void)state;
    const struct thinking_rules think = rules_of("think");
    const char *const whole = "<think>\nI <b>see</b>.\n</think>\n\nYes.\n";
    expect(&think, THINKING_MAY_COME, whole, "I <b>see</b>.", "Yes.\n");
    expect(&think, THINKING_IS_OPEN, "\nWell \n\n so </think> Yes", "Well \n\n so", "Yes");
    expect(&think, THINKING_IS_OPEN, "cut </thin", "cut </thin", "");
    expect(&think, THINKING_IS_OPEN, "it ends ", "it ends", "");
    expect(&think, THINKING_MAY_COME, " <think></think>\n\n", "", "");
    expect(&think, THINKING_MAY_COME, " plain <think> text </think>", "",
           " plain <think> text </think>");
    expect(&think, THINKING_MAY_COME, " <thinks", "", " <thinks");
    expect(&think, THINKING_MAY_COME, "\n ", "", "\n ");
    expect(&think, THINKING_IS_OVER, "\n\nYes <think>", "", "Yes <think>");
}

static void families_have_their_markers(void **state)
{
    (void)state;
    const struct {
        const char *name, *text, *thought, *answer;
    } rows[] = {
        {"mistral", "[THINK]a[/THINK]b", "a", "b"},
        {"seed", "<seed:think>a</seed:think>b", "a", "b"},
        {"gemma", "<|channel>thought\na\n<channel|>b", "a", "b"},
        {"command", "<|START_THINKING|>a<|END_THINKING|>b", "a", "b"},
        {"apertus", "<|inner_prefix|>a<|inner_suffix|>b", "a", "b"},
        {"kimi",
         "\xe2\x97\x81think\xe2\x96\xb7"
         "a\xe2\x97\x81/think\xe2\x96\xb7"
         "b",
         "a", "b"},
        {"exaone", "<thought>\na\n</thought>\n\nb", "a", "b"},
        {"granite", "Here is my thought process: a\nHere is my response: b", "a", "b"},
        {"harmony",
         "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
         "<|message|>b",
         "a", "b"},
        {"harmony",
         "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis"
         "<|message|>c<|end|><|start|>assistant<|channel|>final<|message|>b <|x",
         "a\n\nc", "b <|x"},
        {"harmony", "<|channel|>final <|constrain|>json<|message|>{}", "", "{}"},
        {"harmony", "plain", "", "plain"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct thinking_rules rules = rules_of(rows[i].name);
        expect(&rules, THINKING_MAY_COME, rows[i].text, rows[i].thought, rows[i].answer);
    }
}

/* Headers that name a tool stay in the answer, in one form, if there are tools. */
static void headers_of_calls_are_kept(void **state)
{
    (void)state;
    static const char *const texts[] = {
        " to=functions.f<|channel|>commentary json<|message|>{}",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}",
        ("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=functions.f<|channel|>"
         "commentary json<|message|>{}"),
    };
    const struct thinking_rules rules = rules_of("harmony");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        begin(&rules, THINKING_MAY_COME);
        thinking.keeps_calls = true;
        for (size_t at = 0; texts[i][at]; at++) {
            push(texts[i] + at, 1);
        }
        thinking_end(&thinking, &out);
        check(i == 2 ? "Hm" : "", "<|channel|>commentary to=functions.f<|message|>{}");
        end();
    }
    expect(&rules, THINKING_MAY_COME, texts[1], "", "{}");
    expect(&rules, THINKING_MAY_COME, " to be", "", " to be");
}

/* A header of a channel is bounded; behind the bound it is text. */
static void a_header_without_an_end_is_text(void **state)
{
    (void)state;
    const struct thinking_rules rules = rules_of("harmony");
    char text[1024] = "<|channel|>";
    memset(text + strlen(text), 'x', 900);
    begin(&rules, THINKING_MAY_COME);
    push(text, strlen(text));
    assert_int_equal(thinking.held.len, 0);
    check("", text);
    end();
}

/* A model that writes no header has begun its answer, and forms and calls count for it. */
static void an_answer_may_have_no_header(void **state)
{
    (void)state;
    const struct {
        const char *text;
        bool is_apart;
    } rows[] = {{"The", false}, {" t", true}, {" tx", false}, {"\n", true}, {"<|channel|>", true},
                {"<|channel|>analysis<|message|>a", true}, {"<|channel|>final<|message|>", false}};
    const struct thinking_rules rules = rules_of("harmony");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(&rules, THINKING_MAY_COME);
        push(rows[i].text, strlen(rows[i].text));
        if (thinking_is_apart(&thinking) != rows[i].is_apart) {
            fail_msg("'%s' is %s apart", rows[i].text, rows[i].is_apart ? "not" : "");
        }
        end();
    }
}

static void templates_tell_the_family(void **state)
{
    (void)state;
    const struct {
        const char *source, *name;
    } rows[] = {
        {"{{ content.split('</think>')[-1] }}", "think"},
        {"{{ '<|start|>assistant<|channel|>analysis<|message|>' }}", "harmony"},
        {"{{ '<|channel>thought\\n<channel|>' }}", "gemma"},
        {"{{ '[THINK]' }}", "mistral"},
        {"{{ '<|im_start|>' }}", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct thinking_rules rules, wanted = {.thinks = false};
        const struct thinking_family *family = thinking_family_find(span_str(rows[i].source));
        assert_ok(err, thinking_rules_init(&rules, bytes, family, NULL, &err));
        if (rows[i].name) {
            wanted = rules_of(rows[i].name);
        }
        assert_memory_equal(&rules, &wanted, sizeof(rules));
    }
}

static void cards_override_the_template(void **state)
{
    (void)state;
    struct thinking_rules rules;
    const struct thinking_family *family = thinking_family_find(span_str("</think>"));
    assert_ok(err, thinking_rules_init(&rules, bytes, family,
                                       &(struct thinking_said){.name = "none"}, &err));
    assert_false(rules.thinks);
    assert_ok(err, thinking_rules_init(&rules, bytes, family,
                                       &(struct thinking_said){.open = "(", .close = ")"}, &err));
    expect(&rules, THINKING_MAY_COME, "(a)b", "a", "b");
    assert_fails(
        err,
        thinking_rules_init(&rules, bytes, family, &(struct thinking_said){.name = "thonk"}, &err),
        ST_INVALID, "expected harmony, gemma,");
}

static void prompts_tell_where_an_answer_begins(void **state)
{
    (void)state;
    const struct thinking_rules think = rules_of("think"), gemma = rules_of("gemma");
    const struct {
        const struct thinking_rules *rules;
        const char *prompt;
        enum thinking_start start;
    } rows[] = {
        {&think, "<|im_start|>assistant\n", THINKING_MAY_COME},
        {&think, "<|im_start|>assistant\n<think>\n", THINKING_IS_OPEN},
        {&think, "<|im_start|>assistant\n<think>\n\n</think>\n\n", THINKING_IS_OVER},
        {&think,
         "<\xef\xbd\x9c"
         "Assistant\xef\xbd\x9c></think>",
         THINKING_IS_OVER},
        {&think, "", THINKING_MAY_COME},
        {&think, "think>", THINKING_MAY_COME},
        {&gemma, "<|turn>model\n<|channel>thought\n<channel|>", THINKING_IS_OVER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(thinking_start_of(rows[i].rules, span_str(rows[i].prompt)), rows[i].start);
    }
}

/* The vocabulary has the markers as tokens: the same characters in other tokens are text. */
static void tokens_are_no_text(void **state)
{
    (void)state;
    struct thinking_rules rules;
    const struct thinking_said said = {.open = "<|im_start|>", .close = "<|im_end|>"};
    assert_ok(err, thinking_rules_init(&rules, words, NULL, &said, &err));
    assert_int_equal(rules.token_count, 2);
    const struct thinking_token *open = thinking_rules_find(&rules, 0);
    const struct thinking_token *close = thinking_rules_find(&rules, 1);
    assert_non_null(open);
    assert_non_null(close);
    assert_null(thinking_rules_find(&rules, 2));
    assert_true(open->is_special);
    begin(&rules, THINKING_MAY_COME);
    uint32_t id;
    assert_true(thinking_find_open(&thinking, &id));
    assert_int_equal(id, 0);
    push("<|im_start|> is text", 20);
    assert_false(thinking_is_apart(&thinking));
    push((const char *)open->marker.bytes, open->marker.len);
    assert_true(thinking_is_apart(&thinking));
    assert_false(thinking_find_open(&thinking, &id));
    push("so is <|im_end|>", 16);
    push((const char *)open->marker.bytes, open->marker.len); /* a stray one is none */
    push((const char *)close->marker.bytes, close->marker.len);
    push((const char *)close->marker.bytes, close->marker.len);
    push(" end", 4);
    thinking_end(&thinking, &out);
    check("so is <|im_end|>", "<|im_start|> is textend");
    end();
}

/* What a hostile model writes is split in the same way, and nothing is lost. */
static void any_text_may_come(void **state)
{
    (void)state;
    static const char *const parts[] = {"<think>", "</think>", "<",      "th",
                                        "ink>",    " ",        "\n",     "a",
                                        "</",      "\xc3\xa9", "<think", "/think>"};
    const struct thinking_rules think = rules_of("think");
    srand(7);
    for (int round = 0; round < 2000; round++) {
        char text[256] = "", thought[256], answer[256];
        for (int i = 0; i < 12; i++) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, "%s",
                     parts[(size_t)rand() % (sizeof(parts) / sizeof(parts[0]))]);
        }
        enum thinking_start start = (enum thinking_start)(rand() % 3);
        begin(&think, start);
        push(text, strlen(text));
        thinking_end(&thinking, &out);
        snprintf(thought, sizeof(thought), "%.*s", SPAN_FMT(buf_span(&thinking.text)));
        snprintf(answer, sizeof(answer), "%.*s", SPAN_FMT(buf_span(&out)));
        end();
        begin(&think, start);
        for (size_t at = 0; text[at];) {
            size_t len = 1 + (size_t)rand() % 5, left = strlen(text + at);
            push(text + at, len < left ? len : left);
            at += len < left ? len : left;
        }
        thinking_end(&thinking, &out);
        check(thought, answer);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thoughts_stand_apart_however_they_are_cut),
        cmocka_unit_test(families_have_their_markers),
        cmocka_unit_test(headers_of_calls_are_kept),
        cmocka_unit_test(a_header_without_an_end_is_text),
        cmocka_unit_test(an_answer_may_have_no_header),
        cmocka_unit_test(templates_tell_the_family),
        cmocka_unit_test(cards_override_the_template),
        cmocka_unit_test(prompts_tell_where_an_answer_begins),
        cmocka_unit_test(tokens_are_no_text),
        cmocka_unit_test(any_text_may_come),
    };
    return cmocka_run_group_tests(tests, open_words, close_words);
}
