/* SPDX-License-Identifier: MIT */
/*
 * Requests to language models, from the body to the last event, with a tiny model. Its answers are
 * those of eager PyTorch (tests/models/chat/answers.json, contrib/export/chat.py).
 */
#include "config.h"

#include "tests/unit/infer_support.h"

#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/speculation.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/generation/generation.h"
#include "server/language/generator.h"
#include "tests/unit/unit.h"

#define BODY_BYTES_MAX (1 << 16)
#define GUESSED_MAX 4
#define NS_PER_S 1000000000u

static struct world world;
static cJSON *answers; /* of PyTorch */

static int open_world(void **state)
{
    static const char *const models[] = {"chat=chat/model.pte", "add=add.pte", NULL};
    static const char *const options[] = {"--prefill-tokens-max=7", NULL};
    (void)state;
    world_open(&world, models, options);
    answers = world_read_json("chat/answers.json");
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

static const char *text_of(const cJSON *row, const char *member)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, member));
    assert_non_null(text);
    return text;
}

/* The member |name| of |row| as JSON, then |more| and "}"; to be freed. */
static char *body_of(const cJSON *row, const char *name, const char *as, const char *more)
{
    char *value = cJSON_PrintUnformatted(cJSON_GetObjectItem(row, name));
    char *body = malloc(BODY_BYTES_MAX);
    assert_non_null(value);
    assert_non_null(body);
    snprintf(body, BODY_BYTES_MAX, "{\"model\":\"chat\",\"temperature\":0,\"%s\":%s%s}", as, value,
             more);
    free(value);
    return body;
}

static enum outcome ask(const struct codec *codec, const char *body)
{
    return world_ask(&world, "", "", &generation_ops, codec, body);
}

/* The text of choice |index| of an answer that is there; to be freed. */
static char *choice_text(int index)
{
    struct span answer = world_answer(&world);
    cJSON *json = cJSON_ParseWithLength((const char *)answer.ptr, answer.len);
    assert_non_null(json);
    const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "choices"), index);
    const cJSON *message = cJSON_GetObjectItem(choice, "message");
    char *text = strdup(message ? text_of(message, "content") : text_of(choice, "text"));
    cJSON_Delete(json);
    return text;
}

/* All texts of a stream of events; to be freed. */
static char *event_text(void)
{
    char *all = strndup((const char *)world.events.ptr, world.events.len), *rest = all;
    struct buf text;
    buf_init(&text, BODY_BYTES_MAX);
    for (char *event = strsep(&rest, "\n"); event; event = strsep(&rest, "\n")) {
        cJSON *json = strncmp(event, "data: ", 6) == 0 ? cJSON_Parse(event + 6) : NULL;
        const cJSON *choice = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "choices"), 0);
        const cJSON *delta = cJSON_GetObjectItem(choice, "delta");
        const cJSON *piece = delta    ? cJSON_GetObjectItem(delta, "content")
                             : choice ? cJSON_GetObjectItem(choice, "text")
                                      : cJSON_GetObjectItem(json, "text_output");
        if (cJSON_IsString(piece)) {
            buf_add_str(&text, cJSON_GetStringValue(piece));
        }
        cJSON_Delete(json);
    }
    free(all);
    char *copy = strndup((const char *)text.ptr, text.len);
    buf_fini(&text);
    return copy;
}

/* Nothing is generated, and no sequence is left. */
static void expect_idle(void)
{
    struct model *model = world_model(&world, "chat");
    struct share_stats seats;
    share_stats(&model->generator->seats, &seats);
    assert_int_equal(seats.used, 0);
    assert_int_equal(atomic_load(&model->generator->decoding), 0);
    struct rt_sequences_load load = rt_sequences_load(world.serving->sequences);
    assert_int_equal(load.count, 0);
    model_unref(model);
}

static void expect_text(const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) != 0) {
        fail_msg("%s: '%s', expected '%s'", what, got, wanted);
    }
}

/* ---- answers of PyTorch ---------------------------------------------------------------------- */

static void expect_answer(const cJSON *row, const struct codec *codec, char *body)
{
    if (ask(codec, body) != OUTCOME_DONE) {
        fail_msg("%s: %s", body, world.err.text);
    }
    char *text = choice_text(0);
    expect_text(body, text, text_of(row, "answer"));
    struct generation_counts counts = generation_counts(&world.infer);
    int prompt = cJSON_GetArraySize(cJSON_GetObjectItem(row, "ids"));
    int answer = cJSON_GetArraySize(cJSON_GetObjectItem(row, "answer_ids"));
    assert_int_equal(counts.prompt_tokens, prompt);
    assert_int_equal(counts.answer_tokens, answer + 1); /* the one that ends it */
    assert_true(counts.first_ns > 0);
    free(text);
    free(body);
    world_end(&world, 200);
    expect_idle();
}

static void answers_are_those_of_pytorch(void **state)
{
    const cJSON *row;
    (void)state;
    cJSON_ArrayForEach(row, answers)
    {
        expect_answer(row, &generation_chat, body_of(row, "messages", "messages", ""));
        expect_answer(row, &generation_completion,
                      body_of(row, "prompt", "prompt", ",\"max_tokens\":60"));
        expect_answer(row, &generation_completion,
                      body_of(row, "ids", "prompt", ",\"max_tokens\":60"));
    }
}

static void expect_stream(const cJSON *row, const char *name, const struct codec *codec, char *body)
{
    if (world_ask(&world, name, "", &generation_ops, codec, body) != OUTCOME_DONE) {
        fail_msg("%s: %s", body, world.err.text);
    }
    char *text = event_text();
    expect_text(body, text, text_of(row, "answer"));
    assert_true(world.event_count > 1);
    free(text);
    free(body);
    world_end(&world, 200);
    expect_idle();
}

static void a_stream_has_the_same_text(void **state)
{
    const cJSON *row;
    (void)state;
    cJSON_ArrayForEach(row, answers)
    {
        expect_stream(row, "", &generation_chat,
                      body_of(row, "messages", "messages", ",\"stream\":true"));
        expect_stream(row, "chat", &generation_generate_stream,
                      body_of(row, "prompt", "text_input", ",\"max_tokens\":60"));
    }
}

static void other_forms_have_the_same_text(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 1);
    char *body = body_of(row, "prompt", "text_input", ",\"parameters\":{\"max_tokens\":60}");
    (void)state;
    assert_int_equal(world_ask(&world, "chat", "", &generation_ops, &generation_generate, body),
                     OUTCOME_DONE);
    assert_true(world_says(&world, "\"text_output\":\"The capital of Japan is Tokyo.\""));
    world_end(&world, 200);
    free(body);
    body = body_of(row, "messages", "input", "");
    assert_int_equal(ask(&generation_response, body), OUTCOME_DONE);
    assert_true(world_says(&world, "\"text\":\"The capital of Japan is Tokyo.\""));
    assert_true(world_says(&world, "\"status\":\"completed\""));
    world_end(&world, 200);
    free(body);
}

/* The only language model answers a request that names none. */
static void a_request_without_a_model_finds_the_only_one(void **state)
{
    (void)state;
    assert_int_equal(ask(&generation_completion, "{\"prompt\":\"x\",\"max_tokens\":1}"),
                     OUTCOME_DONE);
    assert_string_equal(world.name, "chat");
    assert_true(world_says(&world, "\"model\":\"chat\""));
    world_end(&world, 200);
}

/* ---- what requests may ask for --------------------------------------------------------------- */

static void ends_are_held_back_and_kept(void **state)
{
    static const struct {
        const char *members, *text, *reason;
    } rows[] = {
        {",\"stop\":\"4\"", "2, 3, ", "stop"},
        {",\"stop\":[\", 4\",\"7\"]", "2, 3", "stop"},
        {",\"stop\":[\"zz\"]", "2, 3, 4, 5, 6, 7.", "stop"},
        {",\"max_tokens\":1", "2", "length"},
        {",\"max_completion_tokens\":0", "", "length"},
        {",\"stop_token_ids\":[19]", "", "stop"},
    };
    const cJSON *row = cJSON_GetArrayItem(answers, 2);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *body = body_of(row, "messages", "messages", rows[i].members), reason[64];
        assert_int_equal(ask(&generation_chat, body), OUTCOME_DONE);
        char *text = choice_text(0);
        expect_text(rows[i].members, text, rows[i].text);
        snprintf(reason, sizeof(reason), "\"finish_reason\":\"%s\"", rows[i].reason);
        assert_true(world_says(&world, reason));
        world_end(&world, 200);
        free(text);
        free(body);
    }
    expect_idle();
}

static void a_seed_gives_the_same_choices_again(void **state)
{
    const char *body =
        "{\"model\":\"chat\",\"prompt\":\"Hello\",\"temperature\":5,\"seed\":1,\"n\":3,"
        "\"max_tokens\":20}";
    char *first[3];
    (void)state;
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    for (int i = 0; i < 3; i++) {
        first[i] = choice_text(i);
    }
    assert_string_not_equal(first[0], first[1]);
    assert_string_not_equal(first[1], first[2]);
    world_end(&world, 200);
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    for (int i = 0; i < 3; i++) {
        char *again = choice_text(i);
        expect_text("again", again, first[i]);
        free(again);
        free(first[i]);
    }
    world_end(&world, 200);
    expect_idle();
}

static void prompts_follow_each_other(void **state)
{
    const cJSON *a = cJSON_GetArrayItem(answers, 0), *b = cJSON_GetArrayItem(answers, 1);
    cJSON *prompts = cJSON_CreateArray(), *row = cJSON_CreateObject();
    (void)state;
    cJSON_AddItemToArray(prompts, cJSON_CreateString(text_of(a, "prompt")));
    cJSON_AddItemToArray(prompts, cJSON_CreateString(text_of(b, "prompt")));
    cJSON_AddItemToObject(row, "prompts", prompts);
    char *body = body_of(row, "prompts", "prompt", ",\"max_tokens\":40,\"n\":2");
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    for (int i = 0; i < 4; i++) {
        char *text = choice_text(i);
        expect_text("choice", text, text_of(i < 2 ? a : b, "answer"));
        free(text);
    }
    world_end(&world, 200);
    free(body);
    cJSON_Delete(row);
}

static void an_echo_has_the_prompt(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 2);
    char *body = body_of(row, "prompt", "prompt", ",\"echo\":true,\"max_tokens\":3");
    (void)state;
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    char *text = choice_text(0);
    assert_non_null(strstr(text, "Count from 2"));
    assert_non_null(strstr(text, "2, 3"));
    world_end(&world, 200);
    free(text);
    free(body);
}

static void logarithms_are_those_of_the_tokens(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 2);
    char *body = body_of(row, "prompt", "prompt", ",\"logprobs\":2,\"max_tokens\":3");
    (void)state;
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    assert_true(world_says(&world, "\"top_logprobs\":["));
    assert_true(world_says(&world, "\"tokens\":[\"2\",\",\""));
    assert_true(world_says(&world, "\"text_offset\":[0,1,2]"));
    world_end(&world, 200);
    free(body);
    body = body_of(row, "messages", "messages",
                   ",\"logprobs\":true,\"top_logprobs\":2,\"max_tokens\":3,\"stream\":true");
    assert_int_equal(ask(&generation_chat, body), OUTCOME_DONE);
    assert_true(world_says(&world, "\"logprobs\":{\"content\":[{\"token\":\"2\""));
    world_end(&world, 200);
    free(body);
}

static unsigned long_steps;

/* Does SAMPLE of the present run take longer than 1000 bytes do? */
static void count_long(struct world *w)
{
    uint64_t was = w->options.params.inline_bytes_max;
    w->options.params.inline_bytes_max = 1000;
    long_steps += infer_is_long(&w->infer, INFER_SAMPLE);
    w->options.params.inline_bytes_max = was;
}

/* The last token prints the logarithms of all; in a stream each has printed its own. */
static void many_logarithms_are_long(void **state)
{
    static const struct {
        const char *more;
        unsigned least, most;
    } rows[] = {
        {",\"max_tokens\":20,\"ignore_eos\":true", 0, 0},
        {",\"max_tokens\":20,\"ignore_eos\":true,\"logprobs\":0", 3, 6},
        {",\"max_tokens\":20,\"ignore_eos\":true,\"logprobs\":4", 15, 17},
        {",\"max_tokens\":20,\"ignore_eos\":true,\"logprobs\":4,\"stream\":true", 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *body = body_of(cJSON_GetArrayItem(answers, 2), "prompt", "prompt", rows[i].more);
        long_steps = 0;
        world.meanwhile = count_long;
        assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
        assert_between(long_steps, rows[i].least, rows[i].most);
        world_end(&world, 200);
        free(body);
    }
}

/* A grammar decides what the answer is, whatever the model likes. It is the first test: a number of
 * tokens that no call has had needs a plan, so the step moves. */
static void a_grammar_bounds_the_answer(void **state)
{
    (void)state;
    assert_int_equal(ask(&generation_completion,
                         "{\"model\":\"chat\",\"prompt\":\"x\",\"temperature\":2,\"seed\":3,"
                         "\"max_tokens\":40,\"guided_regex\":\"[ab]{3}-[0-9]{2}\"}"),
                     OUTCOME_DONE);
    char *text = choice_text(0);
    assert_int_equal(strlen(text), 6);
    assert_int_equal(strspn(text, "ab"), 3);
    assert_int_equal(text[3], '-');
    assert_true(world_says(&world, "\"finish_reason\":\"stop\""));
    world_end(&world, 200);
    free(text);
    expect_idle();
}

/* Returns how often a request with the regular expression |form| moved to a heavy task. */
static unsigned count_moves(struct span form)
{
    char *body = NULL;
    assert_true(asprintf(&body,
                         "{\"model\":\"chat\",\"prompt\":\"hi\",\"temperature\":0,"
                         "\"max_tokens\":4,\"guided_regex\":\"%.*s\"}",
                         SPAN_FMT(form)) > 0);
    assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
    unsigned count = world.move_count;
    world_end(&world, 200);
    free(body);
    return count;
}

/* Behind each letter up to 200 others and a Q: each word of the vocabulary leads to a state of its
 * own with hundreds of ways to go on. Behind a text that is said, the same takes no work. */
static void heavy_masks_are_made_by_heavy_tasks(void **state)
{
    struct buf light, heavy;
    (void)state;
    buf_init(&light, 4096);
    buf_init(&heavy, 4096);
    buf_add_str(&light, "0123456789(");
    for (char letter = 'a'; letter <= 'z'; letter++) {
        buf_printf(&heavy, "%s.*%c.{0,200}Q", letter == 'a' ? "" : "|", letter);
    }
    buf_add(&light, heavy.ptr, heavy.len);
    buf_add_str(&light, ")");
    count_moves(span_str("a|b")); /* the first one makes the vocabulary */
    assert_int_equal(count_moves(span_of(light.ptr, light.len)), 0);
    assert_true(count_moves(span_of(heavy.ptr, heavy.len)) > 0);
    buf_fini(&light);
    buf_fini(&heavy);
    expect_idle();
}

/* A prompt that was there before is not computed again. */
static void a_kept_state_is_found_again(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 1);
    char *body = body_of(row, "messages", "messages", "");
    struct model *model = world_model(&world, "chat");
    (void)state;
    assert_int_equal(ask(&generation_chat, body), OUTCOME_DONE);
    world_end(&world, 200);
    uint64_t before = counter_get(&model->stats->prefix_hits);
    assert_int_equal(ask(&generation_chat, body), OUTCOME_DONE);
    char *text = choice_text(0);
    expect_text("again", text, text_of(row, "answer"));
    world_end(&world, 200);
    assert_int_equal(counter_get(&model->stats->prefix_hits), before + 1);
    model_unref(model);
    free(text);
    free(body);
}

/* A call of |tokens| tokens gives the same bits, and takes as long as one of one token: the test
 * says so, in place of a measurement. */
static void guess(struct model *model, uint32_t tokens)
{
    struct generator *generator = model->generator;
    for (uint32_t i = 0; i < DRAFTS_MAX + 2; i++) {
        generator->speculation_ns[i] = 1000;
    }
    atomic_store(&generator->speculation_tokens, tokens);
}

/* Times of calls by tokens, as a trial has found them, and the parts of prompts beside others. */
static void parts_are_about_as_long_as_steps(void **state)
{
    static const struct {
        uint64_t one_ns, eight_ns;
        uint32_t others, most, part;
    } cases[] = {
        {1000, 3000, 1, 32, 8},    /* each token counts: as few as may be */
        {1000, 3000, 12, 32, 12},  /* as many as have a step */
        {1000, 3000, 90, 32, 32},  /* the operator's bound */
        {1000, 3000, 1, 4, 4},     /* also below the least */
        {1000, 1350, 1, 32, 11},   /* 10 more take half as long as the first */
        {1000, 1007, 1, 512, 501}, /* nearly free */
        {1000, 1000, 1, 512, 512}, /* free */
        {1000, 900, 1, 512, 512},  /* nobody knows */
        {0, 0, 1, 32, 32},         /* not measured */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct generator generator = {.magic = GENERATOR_MAGIC};
        generator.speculation_ns[1] = cases[i].one_ns;
        generator.speculation_ns[8] = cases[i].eight_ns;
        atomic_init(&generator.speculation_tokens, 1); /* the trial has not ended */
        assert_int_equal(generator_part(&generator, cases[i].others, cases[i].most), cases[i].most);
        atomic_store(&generator.speculation_tokens, 8);
        assert_int_equal(generator_part(&generator, cases[i].others, cases[i].most), cases[i].part);
    }
}

static void prove(struct model *model)
{
    const struct rt_pace patient = {.budget_ns = 600ull * NS_PER_S};
    struct hal_pool *pool;
    int64_t rows = 1, steps = 1;
    assert_ok(world.err, hal_pool_member_new(&pool, &world.err));
    hal_pool_join(pool, world.serving->transfers);
    assert_ok(world.err, rt_batch_prove(model->method, pool, &patient, 2, &rows, &world.err));
    assert_ok(world.err,
              rt_speculation_prove(model->method, pool, &patient, GUESSED_MAX, &steps, &world.err));
    assert_int_equal(steps, GUESSED_MAX);
    hal_pool_leave(pool);
    hal_pool_free(pool);
}

/* The prompt repeats itself, so there is something to guess. */
static void guesses_change_no_answer(void **state)
{
    static const char *const members[] = {
        "\"temperature\":0",
        "\"temperature\":0.6,\"seed\":9,\"n\":2",
        "\"temperature\":0,\"logprobs\":3",
        "\"temperature\":0,\"stop\":[\"sat on\"]",
        "\"temperature\":1,\"seed\":4,\"guided_regex\":\"( the| cat| sat| on| mat|\\\\.){4,40}\"",
    };
    struct model *model = world_model(&world, "chat");
    struct model_stats *stats = model->stats;
    uint64_t checked = counter_get(&stats->draft_tokens);
    uint64_t right = counter_get(&stats->accepted_tokens);
    char body[1024];
    (void)state;
    prove(model);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        snprintf(
            body, sizeof(body),
            "{\"model\":\"chat\",\"prompt\":\"the cat sat on the mat. the cat sat on the mat. "
            "the cat sat on\",\"max_tokens\":48,\"ignore_eos\":true,\"cache_prompt\":false,%s}",
            members[i]);
        guess(model, 1);
        assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
        char *plain = choice_text(0);
        unsigned steps = world.run_count;
        world_end(&world, 200);
        guess(model, GUESSED_MAX);
        assert_int_equal(ask(&generation_completion, body), OUTCOME_DONE);
        char *guessed = choice_text(0);
        expect_text(members[i], guessed, plain);
        assert_true(world.run_count <= steps);
        world_end(&world, 200);
        free(plain);
        free(guessed);
        expect_idle();
    }
    guess(model, 1);
    assert_true(counter_get(&stats->draft_tokens) > checked);
    assert_true(counter_get(&stats->accepted_tokens) > right);
    model_unref(model);
}

static void statistics_count_tokens_and_steps(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 0);
    char *body = body_of(row, "messages", "messages", ",\"cache_prompt\":false");
    struct model *model = world_model(&world, "chat");
    const struct model_stats *stats = model->stats;
    uint64_t ok = stats->ok.count, steps = stats->execution_count;
    uint64_t tokens = counter_get(&stats->answer_tokens);
    int answer = cJSON_GetArraySize(cJSON_GetObjectItem(row, "answer_ids")) + 1;
    (void)state;
    assert_int_equal(ask(&generation_chat, body), OUTCOME_DONE);
    unsigned runs = world.run_count;
    world_end(&world, 200);
    assert_int_equal(stats->ok.count, ok + 1);
    assert_int_equal(counter_get(&stats->answer_tokens), tokens + (unsigned)answer);
    assert_int_equal(stats->execution_count, steps + runs);
    model_unref(model);
    free(body);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistakes_have_their_texts(void **state)
{
    static const struct {
        const struct codec *codec;
        const char *body, *text;
        enum status status;
    } rows[] = {
        {&generation_completion, "{\"model\":\"nope\",\"prompt\":\"x\"}", "no model 'nope'",
         ST_NOT_FOUND},
        {&generation_completion, "{\"model\":\"add\",\"prompt\":\"x\"}", "no language model",
         ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\"}", "prompt is missing", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"\"}", "no tokens", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":[448]}", "below 448, got 448",
         ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":[-1]}", "prompt[0]", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"x\",\"logit_bias\":{\"448\":1}}",
         "logit_bias: expected ids below 448", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"x\",\"stop_token_ids\":[500]}",
         "stop_token_ids", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"x\",\"n\":0}", "n: expected",
         ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"x\",\"guided_regex\":\"(?=a)\"}",
         "guided_regex: ", ST_INVALID},
        {&generation_completion, "{\"model\":\"chat\",\"prompt\":\"\\ud800\"}", "surrogate",
         ST_INVALID},
        {&generation_chat, "{\"model\":\"chat\"}", "messages is missing", ST_INVALID},
        {&generation_chat, "{\"model\":\"chat\",\"messages\":[{\"role\":\"assistant\"}]}",
         "chat template: line 1", ST_INVALID},
        {&generation_chat,
         "{\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
         "\"tool_choice\":\"required\"}",
         "tool_choice: expected tools", ST_INVALID},
        {&generation_response, "{\"model\":\"chat\"}", "input", ST_INVALID},
        {&generation_generate, "{\"model\":\"chat\"}", "text_input is missing or empty",
         ST_INVALID},
        {&generation_generate, "{\"text_input\":5}", "text_input: ", ST_INVALID},
    };
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (ask(rows[i].codec, rows[i].body) != OUTCOME_FAILED ||
            world.err.code != rows[i].status || !strstr(world.err.text, rows[i].text)) {
            print_error("%s: %d '%s', expected %d '%s'\n", rows[i].body, world.err.code,
                        world.err.text, rows[i].status, rows[i].text);
            wrong++;
        }
        world_end(&world, 400);
        expect_idle();
    }
    assert_int_equal(wrong, 0);
}

static void a_prompt_that_is_too_long_is_refused(void **state)
{
    char body[4096];
    int len = snprintf(body, sizeof(body), "{\"model\":\"chat\",\"prompt\":[5");
    (void)state;
    for (int i = 1; i < 256; i++) {
        len += snprintf(body + len, sizeof(body) - (size_t)len, ",5");
    }
    snprintf(body + len, sizeof(body) - (size_t)len, "]}");
    assert_int_equal(ask(&generation_completion, body), OUTCOME_FAILED);
    assert_non_null(
        strstr(world.err.text, "the prompt has 256 tokens, the context of model 'chat' has 256"));
    world_end(&world, 400);
    expect_idle();
}

/* ---- failures -------------------------------------------------------------------------------- */

/* In the middle of an answer: the sequence and the seat are free again. */
static void a_client_that_goes_leaves_nothing(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 1);
    char *body = body_of(row, "messages", "messages", ",\"stream\":true,\"cache_prompt\":false");
    struct share_stats seats;
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &generation_ops, &generation_chat), 200);
    world_receive(&world, span_str(body));
    world.stop_after = 6;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    assert_false(infer_is_over(&world.infer));
    share_stats(&world.infer.call.model->generator->seats, &seats);
    assert_int_equal(seats.used, 1);
    world.infer.is_left = true;
    world_end(&world, 499);
    expect_idle();
    free(body);
}

static void without_memory_a_token_waits(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 1);
    char *body = body_of(row, "messages", "messages", ",\"cache_prompt\":false");
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &generation_ops, &generation_chat), 200);
    world_receive(&world, span_str(body));
    world_hold_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_WAIT_MEMORY);
    assert_int_equal(world.err.code, ST_EXHAUSTED);
    world_give_memory(&world);
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    char *text = choice_text(0);
    expect_text("after a wait", text, text_of(row, "answer"));
    world_end(&world, 200);
    expect_idle();
    free(text);
    free(body);
}

/* Others have all seats of the model. */
static void without_a_seat_a_request_is_refused(void **state)
{
    struct model *model = world_model(&world, "chat");
    struct share *seats = &model->generator->seats;
    uint64_t taken = 0;
    (void)state;
    while (share_take(seats, SHARE_NOBODY, 1) == SHARE_TAKEN) {
        taken++;
    }
    assert_int_equal(ask(&generation_completion, "{\"model\":\"chat\",\"prompt\":\"x\"}"),
                     OUTCOME_FAILED);
    assert_int_equal(world.err.code, ST_EXHAUSTED);
    assert_non_null(strstr(world.err.text, "generations"));
    world_end(&world, 429);
    assert_int_equal(counter_get(&world.seats.refused), 1);
    share_give(seats, SHARE_NOBODY, taken);
    model_unref(model);
    expect_idle();
}

/* What others take while a stream is not read is lost; its client is told. */
static void a_stream_that_is_not_read_loses_its_seat(void **state)
{
    const cJSON *row = cJSON_GetArrayItem(answers, 1);
    char *body = body_of(row, "messages", "messages", ",\"stream\":true,\"cache_prompt\":false");
    (void)state;
    assert_int_equal(world_begin(&world, "", "", &generation_ops, &generation_chat), 200);
    world_receive(&world, span_str(body));
    world.stop_after = 6;
    assert_int_equal(world_go(&world), OUTCOME_DONE);
    seats_begin_unread(&world.infer);
    assert_ok(world.err, seats_end_unread(&world.infer, &world.err));
    seats_begin_unread(&world.infer);
    world.infer.seat.unread_ns -= 2 * NS_PER_S;
    struct infer other = {.magic = INFER_MAGIC, .env = &world.env, .client = &world.client};
    other.serving = world.serving;
    other.call.model = world.infer.call.model;
    list_init(&other.seat.link);
    struct share *seats = &world.infer.call.model->generator->seats;
    uint64_t taken = 0;
    while (share_take(seats, SHARE_NOBODY, 1) == SHARE_TAKEN) {
        taken++;
    }
    assert_ok(world.err, seats_take(&other, seats, "generations", &world.err));
    assert_fails(world.err, seats_end_unread(&world.infer, &world.err), ST_EXHAUSTED,
                 "had not read this stream for 2 s");
    infer_print_error_event(&world.infer, &world.err, 429, &world.events);
    assert_true(world_says(&world, "\"error\""));
    seats_leave(&other);
    share_give(seats, SHARE_NOBODY, taken);
    world_end(&world, 429);
    expect_idle();
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grammar_bounds_the_answer),
        cmocka_unit_test(heavy_masks_are_made_by_heavy_tasks),
        cmocka_unit_test(answers_are_those_of_pytorch),
        cmocka_unit_test(a_stream_has_the_same_text),
        cmocka_unit_test(other_forms_have_the_same_text),
        cmocka_unit_test(a_request_without_a_model_finds_the_only_one),
        cmocka_unit_test(ends_are_held_back_and_kept),
        cmocka_unit_test(a_seed_gives_the_same_choices_again),
        cmocka_unit_test(prompts_follow_each_other),
        cmocka_unit_test(an_echo_has_the_prompt),
        cmocka_unit_test(logarithms_are_those_of_the_tokens),
        cmocka_unit_test(many_logarithms_are_long),
        cmocka_unit_test(a_kept_state_is_found_again),
        cmocka_unit_test(guesses_change_no_answer),
        cmocka_unit_test(parts_are_about_as_long_as_steps),
        cmocka_unit_test(statistics_count_tokens_and_steps),
        cmocka_unit_test(mistakes_have_their_texts),
        cmocka_unit_test(a_prompt_that_is_too_long_is_refused),
        cmocka_unit_test(a_client_that_goes_leaves_nothing),
        cmocka_unit_test(without_memory_a_token_waits),
        cmocka_unit_test(without_a_seat_a_request_is_refused),
        cmocka_unit_test(a_stream_that_is_not_read_loses_its_seat),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
