/* SPDX-License-Identifier: MIT */
/*
 * Requests to encoders of texts, with a tiny model. Its vectors and scores are those of eager
 * PyTorch (tests/models/encoder/answers.json, contrib/export/encoder.py).
 */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "server/daemon/generation/embedding.h"
#include "tests/unit/unit.h"

#define WIDTH 32
#define CLOSE 2e-4
#define BODY_BYTES_MAX (1 << 16)

static struct world world;
static cJSON *answers;               /* of PyTorch */
static const cJSON *singles, *pairs; /* texts with their vectors, and texts with their scores */

static int open_world(void **state)
{
    static const char *const models[] = {"enc=encoder/model.pte", "add=add.pte", NULL};
    static const char *const options[] = {"--inline-bytes-max=256", NULL};
    (void)state;
    world_open(&world, models, options);
    answers = world_read_json("encoder/answers.json");
    singles = cJSON_GetObjectItem(answers, "single");
    pairs = cJSON_GetObjectItem(answers, "pairs");
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    cJSON_Delete(answers);
    world_close(&world);
    return 0;
}

/* ---- requests and answers -------------------------------------------------------------------- */

static void ask(const char *name, const struct codec *codec, const char *body)
{
    if (world_ask(&world, name, "", &embedding_ops, codec, body) != OUTCOME_DONE) {
        fail_msg("%s: %s", body, world.err.text);
    }
}

/* The answer as JSON; to be deleted. */
static cJSON *answer(void)
{
    struct span text = world_answer(&world);
    cJSON *json = cJSON_ParseWithLength((const char *)text.ptr, text.len);
    assert_non_null(json);
    return json;
}

/* Member |name| of each row as a list, then |more|, in an object; to be freed. */
static char *body_of(const cJSON *rows, const char *name, const char *as, const char *more)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetObjectItem(row, name), true));
    }
    char *text = cJSON_PrintUnformatted(list), *body = malloc(BODY_BYTES_MAX);
    assert_non_null(body);
    snprintf(body, BODY_BYTES_MAX, "{\"%s\":%s%s}", as, text, more);
    cJSON_Delete(list);
    free(text);
    return body;
}

static double length_of(const cJSON *vector, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double value = cJSON_GetArrayItem(vector, i)->valuedouble;
        sum += value * value;
    }
    return sqrt(sum);
}

/* The first |count| numbers of |wanted|, divided by their length if |is_normal|. */
static void expect_vector(const cJSON *got, const cJSON *wanted, int count, bool is_normal)
{
    double length = is_normal ? length_of(wanted, count) : 1;
    assert_int_equal(cJSON_GetArraySize(got), count);
    for (int i = 0; i < count; i++) {
        double value = cJSON_GetArrayItem(got, i)->valuedouble;
        double right = cJSON_GetArrayItem(wanted, i)->valuedouble / length;
        if (!(fabs(value - right) < CLOSE)) {
            fail_msg("number %d is %g, expected %g", i, value, right);
        }
    }
}

/* ---- vectors --------------------------------------------------------------------------------- */

static void expect_vectors(const char *model, const char *member, int count, const char *more)
{
    char *body = body_of(singles, "text", "input", more);
    ask("", &embedding_openai, body);
    cJSON *json = answer();
    const cJSON *data = cJSON_GetObjectItem(json, "data"), *row;
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "model")), model);
    assert_int_equal(cJSON_GetArraySize(data), cJSON_GetArraySize(singles));
    int index = 0;
    cJSON_ArrayForEach(row, data)
    {
        const cJSON *wanted = cJSON_GetObjectItem(cJSON_GetArrayItem(singles, index), member);
        assert_int_equal(cJSON_GetObjectItem(row, "index")->valueint, index++);
        expect_vector(cJSON_GetObjectItem(row, "embedding"), wanted, count,
                      strcmp(member, "mean") == 0);
    }
    cJSON_Delete(json);
    world_end(&world, 200);
    free(body);
}

static void vectors_are_those_of_pytorch(void **state)
{
    (void)state;
    expect_vectors("enc", "mean", WIDTH, ",\"model\":\"enc\",\"truncate\":true");
    expect_vectors("enc", "mean", 7, ",\"model\":\"enc\",\"truncate\":true,\"dimensions\":7");
    expect_vectors("enc.rows", "cls", WIDTH, ",\"model\":\"enc.rows\",\"truncate\":true");
}

/* Ids of the client are taken as they are, and counted. */
static void ids_give_the_vector_of_their_text(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(singles, 0), *ids = cJSON_GetObjectItem(row, "ids");
    char *text = cJSON_PrintUnformatted(ids), body[1024];
    (void)state;
    snprintf(body, sizeof(body), "{\"model\":\"enc\",\"input\":%s}", text);
    ask("", &embedding_openai, body);
    cJSON *json = answer();
    const cJSON *data = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "data"), 0);
    expect_vector(cJSON_GetObjectItem(data, "embedding"), cJSON_GetObjectItem(row, "mean"), WIDTH,
                  true);
    const cJSON *usage = cJSON_GetObjectItem(json, "usage");
    assert_int_equal(cJSON_GetObjectItem(usage, "prompt_tokens")->valueint,
                     cJSON_GetArraySize(ids));
    cJSON_Delete(json);
    world_end(&world, 200);
    free(text);
}

static void a_vector_of_another_form_is_the_same(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(singles, 0);
    (void)state;
    ask("enc", &embedding_tei, "{\"inputs\":\"The cat sat on the mat.\",\"normalize\":false}");
    cJSON *json = answer();
    expect_vector(cJSON_GetArrayItem(json, 0), cJSON_GetObjectItem(row, "mean"), WIDTH, false);
    cJSON_Delete(json);
    world_end(&world, 200);
    ask("enc", &embedding_openai, "{\"input\":\"x\",\"encoding_format\":\"base64\"}");
    json = answer();
    const cJSON *data = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "data"), 0);
    const char *base64 = cJSON_GetStringValue(cJSON_GetObjectItem(data, "embedding"));
    assert_int_equal(strlen(base64), (WIDTH * 4 + 2) / 3 * 4);
    cJSON_Delete(json);
    world_end(&world, 200);
}

/* ---- rankings -------------------------------------------------------------------------------- */

/* The best one first; each score is the one of its text. */
static void expect_scores(const cJSON *rows, const char *member, bool is_raw, int count)
{
    double before = INFINITY;
    const cJSON *row;
    assert_int_equal(cJSON_GetArraySize(rows), count);
    cJSON_ArrayForEach(row, rows)
    {
        int index = cJSON_GetObjectItem(row, "index")->valueint;
        double score = cJSON_GetObjectItem(row, member)->valuedouble;
        double logit = cJSON_GetObjectItem(cJSON_GetArrayItem(pairs, index), "logit")->valuedouble;
        double wanted = is_raw ? logit : 1 / (1 + exp(-logit));
        if (!(fabs(score - wanted) < CLOSE)) {
            fail_msg("text %d: %g, expected %g", index, score, wanted);
        }
        assert_true(score <= before);
        before = score;
    }
}

static void scores_are_those_of_pytorch(void **state)
{
    const char *query = cJSON_GetStringValue(cJSON_GetObjectItem(answers, "query"));
    int count = cJSON_GetArraySize(pairs);
    char more[1024];
    (void)state;
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        snprintf(more, sizeof(more), ",\"query\":\"%s\",\"truncate\":true,\"raw_scores\":%s", query,
                 is_raw ? "true" : "false");
        char *body = body_of(pairs, "text", "texts", more);
        ask(is_raw ? "" : "enc.score", &embedding_rank, body);
        cJSON *json = answer();
        expect_scores(json, "score", is_raw, count);
        cJSON_Delete(json);
        world_end(&world, 200);
        free(body);
    }
    snprintf(more, sizeof(more),
             ",\"query\":\"%s\",\"truncate\":true,\"top_n\":2,\"model\":\"enc.score\"", query);
    char *body = body_of(pairs, "text", "documents", more);
    ask("", &embedding_rank_jina, body);
    cJSON *json = answer();
    expect_scores(cJSON_GetObjectItem(json, "results"), "relevance_score", false, 2);
    cJSON_Delete(json);
    world_end(&world, 200);
    free(body);
}

/* A model that reads single texts ranks them by the angle to the query: the query itself is best.
 */
static void vectors_rank_texts_by_their_cosine(void **state)
{
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(singles, 1), "text"));
    char more[1024];
    (void)state;
    snprintf(more, sizeof(more), ",\"query\":\"%s\",\"truncate\":true,\"model\":\"enc\"", text);
    char *body = body_of(singles, "text", "documents", more);
    ask("", &embedding_rank_jina, body);
    cJSON *json = answer();
    const cJSON *best = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "results"), 0);
    assert_int_equal(cJSON_GetObjectItem(best, "index")->valueint, 1);
    assert_true(fabs(cJSON_GetObjectItem(best, "relevance_score")->valuedouble - 1) < CLOSE);
    cJSON_Delete(json);
    world_end(&world, 200);
    free(body);
}

static unsigned long_runs;

/* Does SAMPLE of the present run take longer than 2000 bytes do? */
static void count_long(struct world *w)
{
    uint64_t was = w->options.params.inline_bytes_max;
    w->options.params.inline_bytes_max = 2000;
    long_runs += infer_is_long(&w->infer, INFER_SAMPLE);
    w->options.params.inline_bytes_max = was;
}

/* The last step reads the vectors of all runs. */
static void a_comparison_of_many_vectors_is_long(void **state)
{
    (void)state;
    for (int count = 1; count <= 24; count += 23) {
        char body[1024];
        int len = snprintf(body, sizeof(body),
                           "{\"inputs\":{\"source_sentence\":\"a\","
                           "\"sentences\":[\"b\"");
        for (int i = 1; i < count; i++) {
            len += snprintf(body + len, sizeof(body) - (size_t)len, ",\"b\"");
        }
        snprintf(body + len, sizeof(body) - (size_t)len, "]},\"model\":\"enc\"}");
        long_runs = 0;
        world.meanwhile = count_long;
        ask("", &embedding_similar, body);
        assert_int_equal(long_runs, count > 1);
        world_end(&world, 200);
    }
}

/* ---- mistakes and failures ------------------------------------------------------------------- */

static void mistakes_have_their_texts(void **state)
{
    static const struct {
        const struct codec *codec;
        const char *body, *text;
        enum status status;
    } rows[] = {
        {&embedding_openai, "{\"model\":\"enc\"}", "input is missing", ST_INVALID},
        {&embedding_openai, "{\"model\":\"enc\",\"input\":[]}", "at least one text", ST_INVALID},
        {&embedding_openai, "{\"model\":\"enc\",\"input\":[[1,5000]]}", "got 5000", ST_INVALID},
        {&embedding_openai, "{\"model\":\"enc\",\"input\":\"a\",\"dimensions\":33}",
         "the model has 32, got 33", ST_INVALID},
        {&embedding_openai, "{\"model\":\"add\",\"input\":\"a\"}", "is no encoder", ST_INVALID},
        {&embedding_openai, "{\"model\":\"enc.score\",\"input\":\"a\"}", "use /rerank", ST_INVALID},
        {&embedding_openai, "{\"model\":\"nobody\",\"input\":\"a\"}", "nobody", ST_NOT_FOUND},
        {&embedding_openai, "{\"input\":\"a\"}", "model is missing: several could answer",
         ST_INVALID},
        {&embedding_tei, "{\"inputs\":\"a\"}", "model is missing: several could answer",
         ST_INVALID},
        {&embedding_rank, "{\"texts\":[\"a\"]}", "query is missing", ST_INVALID},
        {&embedding_rank, "{\"query\":\"a\",\"texts\":[[1]]}", "texts[0]", ST_INVALID},
    };
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (world_ask(&world, "", "", &embedding_ops, rows[i].codec, rows[i].body) !=
                OUTCOME_FAILED ||
            world.err.code != rows[i].status || !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %d '%s', expected %d '%s'\n", rows[i].body, world.err.code,
                        world.err.text, rows[i].status, rows[i].text);
            wrong++;
        }
        world_end(&world, 400);
    }
    assert_int_equal(wrong, 0);
}

static void texts_and_ids_that_are_too_long_are_cut_or_refused(void **state)
{
    char body[2048];
    int len = snprintf(body, sizeof(body), "{\"model\":\"enc\",\"input\":[\"a\",[1");
    (void)state;
    for (int i = 1; i < 49; i++) {
        len += snprintf(body + len, sizeof(body) - (size_t)len, ",1");
    }
    snprintf(body + len, sizeof(body) - (size_t)len, "]]}");
    assert_int_equal(world_ask(&world, "", "", &embedding_ops, &embedding_openai, body),
                     OUTCOME_FAILED);
    assert_non_null(
        strstr(world.err.text, "input[1]: it has 49 tokens, the model takes at most 48"));
    world_end(&world, 400);
    snprintf(body + len, sizeof(body) - (size_t)len, "]],\"truncate\":true}");
    ask("", &embedding_openai, body);
    world_end(&world, 200);
}

/* The vectors are memory for requests: PARSE waits for it, and begins anew. */
static void without_memory_a_request_waits(void **state)
{
    char *body = body_of(singles, "text", "input", ",\"model\":\"enc\",\"truncate\":true");
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &embedding_ops, &embedding_openai), 200);
    world_receive(&world, span_str(body));
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_int_equal(world.run_count, (unsigned)cJSON_GetArraySize(singles));
    assert_true(infer_held_bytes(&world.infer) > 0);
    world_end(&world, 200);
    free(body);
}

static void a_client_that_goes_ends_the_runs(void **state)
{
    char *body = body_of(singles, "text", "input", ",\"model\":\"enc\",\"truncate\":true");
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &embedding_ops, &embedding_openai), 200);
    world_receive(&world, span_str(body));
    world.stop_after = 2;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_false(infer_is_over(&world.infer));
    world_end(&world, 499);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_of_pytorch),
        cmocka_unit_test(ids_give_the_vector_of_their_text),
        cmocka_unit_test(a_vector_of_another_form_is_the_same),
        cmocka_unit_test(scores_are_those_of_pytorch),
        cmocka_unit_test(vectors_rank_texts_by_their_cosine),
        cmocka_unit_test(a_comparison_of_many_vectors_is_long),
        cmocka_unit_test(mistakes_have_their_texts),
        cmocka_unit_test(texts_and_ids_that_are_too_long_are_cut_or_refused),
        cmocka_unit_test(without_memory_a_request_waits),
        cmocka_unit_test(a_client_that_goes_ends_the_runs),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
