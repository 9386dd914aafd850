/* SPDX-License-Identifier: MIT */
/* Requests for vectors and rankings, and their answers, in the four forms. No model. */
#include "config.h"

#include "tests/unit/ask_support.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/language/embed_ask.h"
#include "server/language/embed_reply.h"

static struct embed_ask ask;

static enum status parse(enum embed_form form, const char *body)
{
    arena_reset(&arena);
    return embed_ask_parse(form, span_str(body), 16, &arena, &ask, &err);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void texts_come_alone_or_in_a_list(void **state)
{
    (void)state;
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":\"a \\u00e9\",\"model\":\"m\",\"user\":{}}"));
    assert_int_equal(ask.text_count, 1);
    assert_true(span_is(ask.texts[0].text, "a \xc3\xa9"));
    assert_string_equal(ask.model, "m");
    assert_ok(err, parse(EMBED_TEI, "{\"inputs\":[\"a\",\"b\"],\"model\":\"m\"}"));
    assert_int_equal(ask.text_count, 2);
    assert_true(span_is(ask.texts[1].text, "b"));
    assert_string_equal(ask.model, "m"); /* as the target may do, too */
    assert_ok(err, parse(RANK_TEI, "{\"query\":\"q\",\"texts\":[\"a\"]}"));
    assert_true(ask.query_count == 1 && span_is(ask.queries[0], "q"));
    assert_false(ask.wants_texts);
    assert_ok(err, parse(RANK_JINA, "{\"query\":\"q\",\"documents\":[{\"x\":1,\"text\":\"a\"},"
                                    "\"b\"]}"));
    assert_int_equal(ask.text_count, 2);
    assert_true(span_is(ask.texts[0].text, "a"));
    assert_true(ask.wants_texts);
}

static void texts_may_be_ids(void **state)
{
    (void)state;
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":[1,2,3]}"));
    assert_int_equal(ask.text_count, 1);
    assert_int_equal(ask.texts[0].id_count, 3);
    assert_int_equal(ask.texts[0].ids[2], 3);
    assert_ok(err, parse(EMBED_TEI, "{\"inputs\":[[1],\"a\",[2,4294967294]]}"));
    assert_int_equal(ask.text_count, 3);
    assert_null(ask.texts[1].ids);
    assert_int_equal(ask.texts[2].ids[1], 4294967294u);
}

static void members_change_the_answer(void **state)
{
    (void)state;
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":\"a\",\"encoding_format\":\"base64\","
                                       "\"dimensions\":7,\"truncate\":true,\"keep_alive\":0}"));
    assert_true(ask.is_base64 && ask.cuts && ask.has_keep);
    assert_int_equal(ask.dimensions, 7);
    assert_int_equal(ask.keep_ns, 0);
    assert_ok(err, parse(EMBED_TEI, "{\"inputs\":\"a\",\"normalize\":false,"
                                    "\"truncation_direction\":\"Right\"}"));
    assert_true(ask.says_normalize && !ask.normalizes);
    assert_ok(err, parse(RANK_TEI, "{\"query\":\"q\",\"texts\":[\"a\"],\"raw_scores\":true,"
                                   "\"return_text\":true}"));
    assert_true(ask.wants_raw_scores && ask.wants_texts);
    assert_ok(err, parse(RANK_JINA, "{\"query\":\"q\",\"documents\":[\"a\"],\"top_n\":3,"
                                    "\"return_documents\":false}"));
    assert_int_equal(ask.top_count, 3);
    assert_false(ask.wants_texts);
    assert_ok(err, parse(RANK_COHERE, "{\"query\":\"q\",\"documents\":[\"a\"],\"top_n\":3}"));
    assert_true(ask.top_count == 3 && ask.cuts && !ask.wants_texts);
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":\"a\",\"dimensions\":null,\"model\":null,"
                                       "\"encoding_format\":null,\"truncate\":null}"));
    assert_true(ask.dimensions == 0 && !ask.model && !ask.is_base64 && !ask.cuts);
}

static void a_body_of_the_root_has_one_of_two_forms(void **state)
{
    (void)state;
    assert_ok(err, parse(RANK_ROOT, "{\"top_n\":3,\"raw_scores\":true,\"query\":\"q\","
                                    "\"texts\":[\"a\"],\"return_documents\":null}"));
    assert_int_equal(ask.form, RANK_TEI);
    assert_true(ask.wants_raw_scores && ask.top_count == 0 && !ask.wants_texts);
    assert_ok(err, parse(RANK_ROOT, "{\"top_n\":3,\"raw_scores\":true,\"query\":\"q\","
                                    "\"documents\":[{\"text\":\"a\"}],\"model\":\"m\"}"));
    assert_int_equal(ask.form, RANK_JINA);
    assert_true(!ask.wants_raw_scores && ask.top_count == 3 && ask.wants_texts);
    assert_string_equal(ask.model, "m");
}

static void bad_requests_say_what_is_wrong(void **state)
{
    static const struct {
        enum embed_form form;
        const char *body, *why;
        enum status status;
    } rows[] = {
        {EMBED_OPENAI, "{}", "input is missing", ST_INVALID},
        {EMBED_TEI, "{\"input\":\"a\"}", "did you mean 'inputs'?", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":null}", "input is missing", ST_INVALID},
        {RANK_TEI, "{\"query\":\"q\"}", "texts is missing", ST_INVALID},
        {RANK_TEI, "{\"texts\":[\"a\"]}", "query is missing", ST_INVALID},
        {RANK_JINA, "{\"documents\":[\"a\"]}", "query is missing", ST_INVALID},
        {RANK_COHERE, "{\"query\":\"q\"}", "documents is missing", ST_INVALID},
        {RANK_ROOT, "{\"query\":\"q\"}", "texts or documents is missing", ST_INVALID},
        {RANK_ROOT, "{\"query\":\"q\",\"texts\":[\"a\"],\"documents\":[\"a\"]}",
         "expected either texts or documents", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":[]}", "input: expected at least one", ST_INVALID},
        {RANK_TEI, "{\"query\":\"q\",\"texts\":[]}", "expected at least one text", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":[\"a\",[]]}", "input[1]: expected at least one id", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":[\"a\",5]}", "input[1]: expected a string", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":[-1]}", "input[0]: expected a whole number", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":[4294967295]}",
         "input[0]: expected ids below 4294967295, got 4294967295", ST_INVALID},
        {RANK_TEI, "{\"query\":\"q\",\"texts\":[[1]]}", "texts[0]: expected a string", ST_INVALID},
        {RANK_TEI, "{\"query\":\"q\",\"texts\":\"a\"}", "texts: expected an array", ST_INVALID},
        {RANK_JINA, "{\"query\":\"q\",\"documents\":[{\"x\":1}]}", "documents[0]: text is missing",
         ST_INVALID},
        {EMBED_OPENAI, "{\"input\":\"a\",\"dimensions\":0}", "expected a number from 1",
         ST_INVALID},
        {EMBED_OPENAI, "{\"input\":\"a\",\"encoding_format\":\"f16\"}",
         "expected \"float\" or \"base64\"", ST_INVALID},
        {EMBED_TEI, "{\"inputs\":\"a\",\"truncation_direction\":\"Left\"}", "expected \"Right\"",
         ST_INVALID},
        {SCORE_VLLM, "{\"text_1\":\"a\"}", "text_2 is missing", ST_INVALID},
        {SCORE_VLLM, "{\"text_2\":\"a\"}", "text_1 is missing", ST_INVALID},
        {SCORE_VLLM, "{\"text_1\":[\"a\",\"b\"],\"text_2\":[\"c\"]}", "as many as text_2 has (1)",
         ST_INVALID},
        {POOL_VLLM, "{\"input\":\"a\",\"task\":\"x\"}", "expected \"embed\"", ST_INVALID},
        {CLASSIFY_VLLM, "{}", "input is missing", ST_INVALID},
        {EMBED_LLAMA, "{}", "content is missing", ST_INVALID},
        {EMBED_COHERE_ONE, "{}", "texts is missing", ST_INVALID},
        {EMBED_OPENAI, "{\"input\":\"a\"} x", "byte 14", ST_INVALID},
        {EMBED_OPENAI, "[\"a\"]", "expected an object", ST_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        err.text[0] = '\0';
        check_refused(rows[i].body, parse(rows[i].form, rows[i].body), rows[i].status, rows[i].why);
    }
}

static void queries_are_one_or_as_many_as_texts(void **state)
{
    (void)state;
    assert_ok(err, parse(SCORE_VLLM, "{\"text_1\":\"q\",\"text_2\":[\"a\",\"b\"]}"));
    assert_true(ask.query_count == 1 && ask.text_count == 2 && !ask.cuts);
    assert_ok(err, parse(SCORE_VLLM, "{\"queries\":[\"p\",\"q\"],\"items\":[\"a\",\"b\"],"
                                     "\"truncate_prompt_tokens\":7,\"use_activation\":false}"));
    assert_true(ask.query_count == 2 && span_is(ask.queries[1], "q"));
    assert_true(ask.cuts && ask.cut_tokens == 7 && ask.wants_raw_scores);
    assert_ok(err, parse(SCORE_VLLM, "{\"text_1\":[\"q\"],\"text_2\":\"a\","
                                     "\"truncate_prompt_tokens\":-1}"));
    assert_true(ask.cuts && ask.cut_tokens == 0 && ask.text_count == 1);
}

static void texts_are_bounded(void **state)
{
    static char body[16 * EMBED_TEXTS_MAX];
    size_t len = (size_t)snprintf(body, sizeof(body), "{\"input\":[\"a\"");
    (void)state;
    for (int i = 1; i <= EMBED_TEXTS_MAX; i++) {
        len += (size_t)snprintf(body + len, sizeof(body) - len, ",\"a\"");
    }
    snprintf(body + len, sizeof(body) - len, "]}");
    assert_fails(err, parse(EMBED_OPENAI, body), ST_INVALID,
                 "input[2048]: expected at most 2048 texts");
}

static void texts_and_pairs_are_classified(void **state)
{
    static const struct {
        const char *inputs;
        uint32_t count;
        bool is_one, is_pair;
    } rows[] = {{"\"a\"", 1, true, false},
                {"[\"a\"]", 1, true, false},
                {"[\"a\",\"b\"]", 1, true, true},
                {"[[\"a\"]]", 1, false, false},
                {"[[\"a\"],[\"c\"],[\"a\",\"b\"]]", 3, false, true}};
    char body[128];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(body, sizeof(body), "{\"inputs\":%s,\"raw_scores\":true}", rows[i].inputs);
        assert_ok(err, parse(PREDICT_TEI, body));
        const struct embed_text *last = &ask.texts[rows[i].count - 1];
        assert_int_equal(ask.text_count, rows[i].count);
        assert_true(ask.is_one == rows[i].is_one && last->is_pair == rows[i].is_pair);
        assert_true(span_is(last->text, "a") && ask.wants_raw_scores);
        assert_true(!last->is_pair || span_is(last->second, "b"));
    }
    static const char *const bad[] = {
        "[]",           "[[]]", "[\"a\",\"b\",\"c\"]", "[[\"a\"],5]", "[\"a\"",
        "[[\"a\"],[]]", "{}",   "[[[\"a\"]]]",         "[5]",         "[\"a\",null]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(body, sizeof(body), "{\"inputs\":%s}", bad[i]);
        assert_int_equal(parse(PREDICT_TEI, body), ST_INVALID);
    }
}

static void a_prompt_is_one_text(void **state)
{
    (void)state;
    assert_ok(err, parse(EMBED_OLLAMA_ONE, "{\"prompt\":\"a\",\"model\":\"m:latest\"}"));
    assert_true(ask.text_count == 1 && ask.cuts);
    assert_string_equal(ask.model, "m");
    assert_ok(err, parse(EMBED_OLLAMA, "{\"input\":[\"a\",\"b\"],\"truncate\":false}"));
    assert_true(ask.text_count == 2 && !ask.cuts);
    assert_int_equal(parse(EMBED_OLLAMA, "{\"input\":[1]}"), ST_INVALID);
    assert_int_equal(parse(EMBED_OLLAMA_ONE, "{\"prompt\":[\"a\"]}"), ST_INVALID);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const float vectors[] = {1, -0.5f, 0.25f, 3};

static void check(const struct embed_reply *reply, const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    assert_ok(err, embed_reply_print(reply, &arena, &out, &err));
    buf_add_char(&out, '\0');
    assert_string_equal((const char *)out.ptr, expected);
    buf_fini(&out);
}

static void vectors_in_the_form_of_openai(void **state)
{
    const struct embed_reply reply = {
        .ask = &ask, .model = "a\"b", .vectors = vectors, .width = 2, .token_count = 5};
    (void)state;
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":[\"a\",\"b\"]}"));
    check(&reply, "{\"object\":\"list\",\"data\":["
                  "{\"object\":\"embedding\",\"index\":0,\"embedding\":[1.0,-0.5]},"
                  "{\"object\":\"embedding\",\"index\":1,\"embedding\":[0.25,3.0]}],"
                  "\"model\":\"a\\\"b\",\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}");
    assert_ok(err, parse(EMBED_OPENAI, "{\"input\":\"a\",\"encoding_format\":\"base64\"}"));
    check(&reply, "{\"object\":\"list\",\"data\":["
                  "{\"object\":\"embedding\",\"index\":0,\"embedding\":\"AACAPwAAAL8=\"}],"
                  "\"model\":\"a\\\"b\",\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}");
    assert_between(embed_reply_bytes(&reply), 2, 100);
}

static void vectors_in_the_form_of_tei(void **state)
{
    const float one[] = {NAN, INFINITY};
    const struct embed_reply reply = {.ask = &ask, .vectors = one, .width = 2};
    (void)state;
    assert_ok(err, parse(EMBED_TEI, "{\"inputs\":\"a\"}"));
    check(&reply, "[[null,null]]");
}

/* The greatest first, equal ones in their order, NaN last. */
static void a_ranking_is_sorted(void **state)
{
    const float scores[] = {0.5f, NAN, 2, 0.5f, -1};
    const struct embed_reply reply = {
        .ask = &ask, .model = "m", .vectors = scores, .width = 1, .token_count = 9};
    (void)state;
    assert_ok(err, parse(RANK_TEI, "{\"query\":\"q\",\"texts\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}"));
    check(&reply, "[{\"index\":2,\"score\":2.0},{\"index\":0,\"score\":0.5},"
                  "{\"index\":3,\"score\":0.5},{\"index\":4,\"score\":-1.0},"
                  "{\"index\":1,\"score\":null}]");
    assert_ok(err, parse(RANK_JINA, "{\"query\":\"q\",\"documents\":[\"a\",\"b\",\"c\\\"\",\"d\","
                                    "\"e\"],\"top_n\":2}"));
    check(&reply, "{\"results\":["
                  "{\"index\":2,\"relevance_score\":2.0,\"document\":{\"text\":\"c\\\"\"}},"
                  "{\"index\":0,\"relevance_score\":0.5,\"document\":{\"text\":\"a\"}}],"
                  "\"model\":\"m\",\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}");
    assert_ok(err, parse(RANK_TEI, "{\"query\":\"q\",\"texts\":[\"a\"],\"return_text\":true}"));
    check(&reply, "[{\"index\":0,\"score\":0.5,\"text\":\"a\"}]");
}

/* |before|, then a text of control characters, then |after|: how much is printed of it is known
 * before that is done. */
static void expect_bytes(enum embed_form form, const struct embed_reply *reply, const char *before,
                         const char *after)
{
    char body[8192];
    struct buf out;
    int len = snprintf(body, sizeof(body), "%s\"", before);
    for (int i = 0; i < 1000; i++) {
        len += snprintf(body + len, sizeof(body) - (size_t)len, "\\u0001");
    }
    snprintf(body + len, sizeof(body) - (size_t)len, "\"%s", after);
    assert_ok(err, parse(form, body));
    buf_init(&out, 1 << 16);
    assert_ok(err, embed_reply_print(reply, &arena, &out, &err));
    assert_true(out.len > 6000);
    assert_true(embed_reply_bytes(reply) + 200 > out.len);
    assert_true(embed_reply_bytes(reply) < out.len + 200);
    buf_fini(&out);
}

static void texts_and_names_in_an_answer_are_counted(void **state)
{
    char name[1000];
    const float scores[] = {0.5f, 0.25f};
    const struct span labels[] = {span_of(memset(name, 1, sizeof(name)), sizeof(name))};
    struct embed_reply reply = {.ask = &ask, .model = "m", .vectors = scores, .width = 1};
    (void)state;
    expect_bytes(EMBED_COHERE, &reply, "{\"model\":\"m\",\"texts\":[",
                 "],\"embedding_types\":[\"float\"]}");
    expect_bytes(RANK_TEI, &reply, "{\"query\":\"q\",\"texts\":[", "],\"return_text\":true}");
    expect_bytes(RANK_COHERE, &reply, "{\"query\":\"q\",\"documents\":[",
                 "],\"return_documents\":true}");
    assert_ok(err, parse(RANK_COHERE, "{\"query\":\"q\",\"documents\":[\"a\"]}"));
    assert_between(embed_reply_bytes(&reply), 1, 100);
    reply.width = 2;
    reply.labels = labels;
    reply.label_count = 1;
    expect_bytes(PREDICT_TEI, &reply, "{\"inputs\":", "}");
}

static void an_answer_has_a_maximum(void **state)
{
    const struct embed_reply reply = {.ask = &ask, .vectors = vectors, .width = 2};
    struct buf out;
    (void)state;
    assert_ok(err, parse(EMBED_TEI, "{\"inputs\":[\"a\",\"b\"]}"));
    buf_init(&out, 10);
    assert_fails(err, embed_reply_print(&reply, &arena, &out, &err), ST_TOO_LARGE,
                 "the answer is too long");
    buf_reset(&out);
    out.failed = out.lacks_memory = true;
    assert_fails(err, embed_reply_print(&reply, &arena, &out, &err), ST_EXHAUSTED,
                 "no memory for the answer");
    buf_fini(&out);
}

static void errors_have_the_types_of_tei(void **state)
{
    static const struct {
        int status;
        const char *expected;
    } rows[] = {
        {400, "{\"error\":\"a \\\"b\\\"\",\"error_type\":\"validation\"}"},
        {429, "{\"error\":\"a \\\"b\\\"\",\"error_type\":\"overloaded\"}"},
        {503, "{\"error\":\"a \\\"b\\\"\",\"error_type\":\"overloaded\"}"},
        {500, "{\"error\":\"a \\\"b\\\"\",\"error_type\":\"backend\"}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out;
        buf_init(&out, 100);
        embed_reply_print_error(&out, "a \"b\"", rows[i].status);
        assert_true(span_is(buf_span(&out), rows[i].expected));
        buf_fini(&out);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_come_alone_or_in_a_list),
        TEST(texts_may_be_ids),
        TEST(members_change_the_answer),
        TEST(a_body_of_the_root_has_one_of_two_forms),
        TEST(bad_requests_say_what_is_wrong),
        TEST(queries_are_one_or_as_many_as_texts),
        TEST(texts_are_bounded),
        TEST(texts_and_pairs_are_classified),
        TEST(a_prompt_is_one_text),
        TEST(vectors_in_the_form_of_openai),
        TEST(vectors_in_the_form_of_tei),
        TEST(a_ranking_is_sorted),
        TEST(texts_and_names_in_an_answer_are_counted),
        TEST(an_answer_has_a_maximum),
        TEST(errors_have_the_types_of_tei),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
