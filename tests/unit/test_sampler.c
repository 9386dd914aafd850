/* SPDX-License-Identifier: MIT */
/* Sampling against exact computation, strings that end an answer, and calls of tools in it. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/language/constraint.h"
#include "server/language/sampler.h"
#include "server/language/stops.h"
#include "server/language/words.h"
#include "server/text/grammar/grammar.h"

#define VOCAB 12
#define DRAWS 200000

static const float LOGITS[VOCAB] = {0.5F,  2.0F, -1.0F, 1.5F, 2.0F, -3.0F,
                                    0.25F, 1.0F, -0.5F, 0.0F, 3.0F, -8.0F};

static struct sampler_options plain(void)
{
    return (struct sampler_options){.temperature = 1, .top_p = 1, .repetition = 1, .seed = 7};
}

static uint32_t choose(struct sampler *sampler, const float *logits, uint64_t index)
{
    uint32_t id;
    struct error err;
    assert_int_equal(sampler_choose(sampler, logits, NULL, index, &id, &err), ST_OK);
    assert_true(id < sampler->vocab);
    return id;
}

/* ---- the exact distribution, by sorting ------------------------------------------------------ */

static int by_weight(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] < y[0] ? 1 : -1) : (x[1] > y[1]) - (x[1] < y[1]);
}

static void exact(const struct sampler_options *options, const float *logits, double *out)
{
    double rows[VOCAB][2], all = 0, kept = 0, seen = 0;
    for (int i = 0; i < VOCAB; i++) {
        rows[i][0] = exp((double)logits[i] / options->temperature);
        rows[i][1] = i;
        out[i] = 0;
    }
    qsort(rows, VOCAB, sizeof(rows[0]), by_weight);
    int count = options->top_k && options->top_k < VOCAB ? (int)options->top_k : VOCAB;
    for (int i = 0; i < count; i++) {
        all += rows[i][0];
    }
    for (int i = 0; i < count; i++) {
        bool is_in =
            i == 0 || (seen < options->top_p * all && rows[i][0] >= options->min_p * rows[0][0]);
        if (!is_in) {
            break;
        }
        seen += rows[i][0];
        out[(int)rows[i][1]] = rows[i][0];
        kept += rows[i][0];
    }
    for (int i = 0; i < VOCAB; i++) {
        out[i] /= kept;
    }
}

/* Pearson's chi-squared of DRAWS numbers; a token that cannot be chosen is never chosen. */
static void compare(const struct sampler_options *options)
{
    struct sampler sampler;
    double want[VOCAB], chi = 0;
    int got[VOCAB] = {0};
    sampler_init(&sampler, options, VOCAB);
    exact(options, LOGITS, want);
    for (int i = 0; i < DRAWS; i++) {
        got[choose(&sampler, LOGITS, (uint64_t)i)]++;
    }
    for (int i = 0; i < VOCAB; i++) {
        double mean = want[i] * DRAWS;
        assert_true(want[i] > 0 || got[i] == 0);
        chi += want[i] > 0 ? (got[i] - mean) * (got[i] - mean) / mean : 0;
    }
    sampler_fini(&sampler);
    assert_true(chi < 40); /* 11 degrees of freedom: one in 30,000; the seed is fixed */
}

static void distributions(void **state)
{
    (void)state;
    const struct sampler_options rows[] = {
        {.temperature = 1, .top_p = 1},
        {.temperature = 0.5, .top_p = 1},
        {.temperature = 3, .top_p = 1},
        {.temperature = 1, .top_p = 0.9},
        {.temperature = 2, .top_p = 0.5},
        {.temperature = 1, .top_p = 1, .top_k = 3},
        {.temperature = 1, .top_p = 0.8, .top_k = 5},
        {.temperature = 1, .top_p = 1, .min_p = 0.2},
        {.temperature = 1, .top_p = 0.95, .top_k = 8, .min_p = 0.05},
        {.temperature = 1, .top_p = 1e-9},
        {.temperature = 1, .top_p = 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sampler_options options = rows[i];
        options.repetition = 1;
        options.seed = 1000 + i;
        compare(&options);
    }
}

static void greedy(void **state)
{
    (void)state;
    struct sampler_options options = plain();
    struct sampler sampler;
    float nan_logits[VOCAB], equal[VOCAB] = {0};
    memcpy(nan_logits, LOGITS, sizeof(LOGITS));
    nan_logits[10] = NAN;
    options.temperature = 0;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(choose(&sampler, LOGITS, 0), 10);
    assert_int_equal(choose(&sampler, nan_logits, 0), 1); /* the first of two that are equal */
    assert_int_equal(choose(&sampler, equal, 3), 0);
    sampler_fini(&sampler);
}

/* Blocks of logits, and what is left behind them: the first of the largest ones, wherever it is. */
static void greedy_among_many(void **state)
{
    (void)state;
    static float logits[1000];
    struct sampler_options options = plain();
    options.temperature = 0;
    for (uint32_t vocab = 250; vocab <= 1000; vocab += 250) {
        struct sampler sampler;
        sampler_init(&sampler, &options, vocab);
        for (uint32_t best = 0; best < vocab; best++) {
            for (uint32_t i = 0; i < vocab; i++) {
                logits[i] = i % 7 ? -3 : NAN;
            }
            logits[best] = -2;
            logits[vocab - 1] = best % 2 ? -2 : logits[vocab - 1];
            assert_int_equal(choose(&sampler, logits, 0), best);
        }
        sampler_fini(&sampler);
    }
}

/* No token has a number, or one has infinity. */
static void odd_logits(void **state)
{
    (void)state;
    struct sampler sampler;
    uint32_t id;
    struct error err;
    float logits[VOCAB];
    for (int form = 0; form < 3; form++) {
        struct sampler_options options = plain();
        options.top_k = form == 1 ? 4 : 0;
        options.temperature = form == 2 ? 0 : 1;
        sampler_init(&sampler, &options, VOCAB);
        for (int i = 0; i < VOCAB; i++) {
            logits[i] = i % 2 ? NAN : -INFINITY;
        }
        assert_int_equal(sampler_choose(&sampler, logits, NULL, 0, &id, &err), ST_INVALID);
        logits[5] = -2;
        for (uint64_t i = 0; i < 50; i++) {
            assert_int_equal(choose(&sampler, logits, i), 5);
        }
        logits[7] = INFINITY;
        assert_int_equal(choose(&sampler, logits, 1), 7);
        sampler_fini(&sampler);
    }
}

/* The same seed gives the same tokens, in any order; another seed gives others. */
/* The least temperatures choose as 0 does, and of equal logits any. */
static void least_temperatures(void **state)
{
    static const double temperatures[] = {1e-30, 2e-39, 1e-45, 1e-310, 5e-324};
    (void)state;
    for (size_t i = 0; i < sizeof(temperatures) / sizeof(temperatures[0]); i++) {
        for (int way = 0; way < 4; way++) {
            struct sampler_options options = plain();
            struct sampler sampler;
            options.temperature = temperatures[i];
            options.top_p = way == 1 ? 0.9 : 1;
            options.min_p = way == 2 ? 0.1 : 0;
            options.top_k = way == 3 ? 3 : 0;
            sampler_init(&sampler, &options, VOCAB);
            assert_int_equal(choose(&sampler, LOGITS, 0), 10);
            const float pair[VOCAB] = {-1, 5, -1, 5, -1, -1, -1, -1, -1, -1, -1, -1};
            uint32_t id = choose(&sampler, pair, 1);
            assert_true(id == 1 || id == 3);
            sampler_fini(&sampler);
        }
    }
}

static void seeds(void **state)
{
    (void)state;
    struct sampler_options options = plain();
    struct sampler a, b, c;
    int differences = 0;
    sampler_init(&a, &options, VOCAB);
    options.top_p = 0.999999; /* the same tokens by the other path */
    sampler_init(&b, &options, VOCAB);
    options.seed = 8;
    sampler_init(&c, &options, VOCAB);
    uint32_t first[100];
    for (uint64_t i = 0; i < 100; i++) {
        first[i] = choose(&a, LOGITS, i);
        differences += choose(&c, LOGITS, i) != first[i];
    }
    for (uint64_t i = 100; i-- > 0;) {
        assert_int_equal(choose(&a, LOGITS, i), first[i]);
    }
    uint32_t other = choose(&b, LOGITS, 3);
    assert_int_equal(choose(&b, LOGITS, 3), other);
    assert_true(differences > 20);
    sampler_fini(&a);
    sampler_fini(&b);
    sampler_fini(&c);
}

#define MANY 6000

/* Thousands of tokens of about the same probability: all are sorted then. Equal ones are in the
 * order of their ids, as the walk over all of them has it, and both zeros are equal. */
static void many_candidates(void **state)
{
    (void)state;
    static float logits[MANY];
    struct sampler_options options = plain();
    for (int form = 0; form < 3; form++) {
        struct sampler all, half;
        int small = 0;
        for (int i = 0; i < MANY; i++) {
            logits[i] = form == 0 ? (i % 3 ? 0.0F : -0.0F) : form == 1 ? -1e-7F * i : 1e-7F * i;
        }
        options.top_p = 1;
        sampler_init(&all, &options, MANY);
        options.top_p = 0.5;
        sampler_init(&half, &options, MANY);
        for (uint64_t i = 0; i < 200; i++) {
            int id = (int)choose(&all, logits, i), got = (int)choose(&half, logits, i);
            int place = form == 2 ? MANY - 1 - got : got;
            assert_in_range(place, 0, MANY / 2 + 10);
            if (form < 2) {
                assert_in_range(2 * got - id + 20, 0, 40);
            }
            small += place < MANY / 4;
        }
        assert_in_range(small, 70, 130);
        sampler_fini(&all);
        sampler_fini(&half);
    }
}

static void penalties(void **state)
{
    (void)state;
    struct error err;
    struct sampler_options options = plain();
    struct sampler sampler;
    const struct sampler_bias biases[] = {{5, 100}, {10, -100}};
    options.temperature = 0;
    options.frequency = 0.75;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(choose(&sampler, LOGITS, 0), 10); /* 3.0 */
    assert_int_equal(sampler_note(&sampler, 10, false, &err), ST_OK);
    assert_int_equal(choose(&sampler, LOGITS, 1), 10); /* 2.25 */
    assert_int_equal(sampler_note(&sampler, 10, false, &err), ST_OK);
    assert_int_equal(choose(&sampler, LOGITS, 2), 1); /* 1.5 against 2.0 */
    sampler_fini(&sampler);

    options.frequency = 0;
    options.presence = 1.5;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(sampler_note(&sampler, 10, true, &err), ST_OK); /* the prompt is not counted */
    assert_int_equal(choose(&sampler, LOGITS, 0), 10);
    assert_int_equal(sampler_note(&sampler, 10, false, &err), ST_OK);
    assert_int_equal(choose(&sampler, LOGITS, 0), 1);
    sampler_fini(&sampler);

    options.presence = 0;
    options.repetition = 2;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(sampler_note(&sampler, 10, true, &err), ST_OK); /* here it is */
    assert_int_equal(choose(&sampler, LOGITS, 0), 1);
    sampler_fini(&sampler);

    options.repetition = 1;
    options.biases = biases;
    options.bias_count = 2;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(choose(&sampler, LOGITS, 0), 5);
    sampler_fini(&sampler);
}

static void logarithms(void **state)
{
    (void)state;
    struct error err;
    struct sampler_options options = plain();
    struct sampler sampler;
    struct sampler_mark mark;
    uint32_t id;
    double sum = 0;
    options.temperature = 0.3; /* logarithms are those of the model */
    sampler_init(&sampler, &options, VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        sum += exp((double)LOGITS[i]);
    }
    assert_int_equal(sampler_choose(&sampler, LOGITS, NULL, 5, &id, &err), ST_OK);
    assert_int_equal(sampler_mark_token(&sampler, LOGITS, id, SAMPLER_TOP_MAX, &mark, &err), ST_OK);
    assert_int_equal(mark.top_count, VOCAB);
    assert_int_equal(mark.chosen.id, id);
    assert_true(fabs((double)mark.chosen.logprob - (double)LOGITS[id] + log(sum)) < 1e-5);
    assert_int_equal(mark.top[0].id, 10);
    assert_int_equal(mark.top[1].id, 1);
    assert_int_equal(mark.top[2].id, 4);
    assert_int_equal(mark.top[11].id, 11);
    for (uint32_t i = 0; i < mark.top_count; i++) {
        assert_true(fabs((double)mark.top[i].logprob - (double)LOGITS[mark.top[i].id] + log(sum)) <
                    1e-5);
        uint32_t rank = i == 2 ? 2 : i + 1; /* two are equal */
        assert_int_equal(sampler_rank(LOGITS, VOCAB, mark.top[i].id), rank);
        float same = sampler_logprob(LOGITS, VOCAB, mark.top[i].id);
        assert_true(fabsf(same - mark.top[i].logprob) < 1e-6F);
    }
    sampler_fini(&sampler);
}

/* Tokens that are not in the set are never chosen. */
static void masks(void **state)
{
    (void)state;
    struct error err;
    struct sampler_options options = plain();
    struct sampler sampler;
    uint32_t id;
    const uint64_t allowed = 1u << 2 | 1u << 11, none = 0;
    sampler_init(&sampler, &options, VOCAB);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(sampler_choose(&sampler, LOGITS, &allowed, i, &id, &err), ST_OK);
        assert_true(id == 2 || id == 11);
    }
    assert_int_equal(sampler_choose(&sampler, LOGITS, &none, 0, &id, &err), ST_INVALID);
    sampler_fini(&sampler);
}

/* One text of a grammar, whose tokens a grammar allows and a sampler chooses from. */
static void write_text(const struct grammar *grammar, const struct grammar_vocabulary *vocabulary,
                       const struct span *tokens, uint64_t seed, char *out)
{
    static const struct sampler_bias bias = {4, 100}; /* cannot allow what the mask forbids */
    struct error err;
    struct sampler_options options = plain();
    struct sampler sampler;
    uint32_t id;
    struct grammar_walk *walk;
    uint64_t bits[1];
    options.seed = seed;
    options.biases = &bias;
    options.bias_count = 1;
    sampler_init(&sampler, &options, VOCAB);
    assert_int_equal(grammar_walk_new(grammar, &walk, &err), ST_OK);
    struct grammar_state at = grammar_walk_begin(walk);
    for (uint64_t i = 0; !grammar_state_must_end(walk, at); i++) {
        assert_true(i < 16);
        assert_int_equal(grammar_mask(walk, at, vocabulary, bits, &err), ST_OK);
        assert_int_equal(sampler_choose(&sampler, LOGITS, bits, i, &id, &err), ST_OK);
        assert_true(grammar_state_advance(walk, &at, tokens[id]));
        memcpy(out, tokens[id].ptr, tokens[id].len);
        out += tokens[id].len;
    }
    *out = 0;
    grammar_walk_free(walk);
    sampler_fini(&sampler);
}

static void grammars(void **state)
{
    (void)state;
    static const char *const texts[VOCAB] = {"a", "b", "ab", "-", "x", "a-", "1", "12", "2", "b-1"};
    struct error err;
    struct grammar *grammar;
    struct grammar_vocabulary *vocabulary;
    struct span tokens[VOCAB] = {0};
    char text[64];
    bool has[2] = {false, false};
    for (size_t i = 0; i < VOCAB && texts[i]; i++) {
        tokens[i] = span_str(texts[i]);
    }
    assert_int_equal(grammar_parse_regex(span_str("[ab]{2,3}-[12]{2}"), &grammar, &err), ST_OK);
    assert_int_equal(grammar_vocabulary_new(tokens, VOCAB, &vocabulary, &err), ST_OK);
    for (uint64_t seed = 0; seed < 200; seed++) {
        write_text(grammar, vocabulary, tokens, seed, text);
        size_t letters = strspn(text, "ab");
        assert_true((letters == 2 || letters == 3) && text[letters] == '-');
        assert_true(strspn(text + letters + 1, "12") == 2 && text[letters + 3] == 0);
        has[letters - 2] = true;
    }
    assert_true(has[0] && has[1]);
    grammar_vocabulary_free(vocabulary);
    grammar_free(grammar);
}

/* ---- constraints of requests ----------------------------------------------------------------- */

#define END 3 /* a byte that ends an answer of the model below */

/* A model that knows bytes. */
static struct generator *byte_model(void)
{
    struct error err;
    struct generator *generator = calloc(1, sizeof(*generator));
    assert_non_null(generator);
    generator->magic = GENERATOR_MAGIC;
    generator->vocab = WORDS_BYTES;
    generator->ends[0] = END;
    generator->end_count = 1;
    assert_int_equal(pthread_mutex_init(&generator->lock, NULL), 0);
    assert_int_equal(words_new_bytes(&generator->words, &err), ST_OK);
    return generator;
}

/* The tokens that |constraint| allows are the bytes of |want|. */
static void check_allowed(struct constraint *constraint, const char *want)
{
    struct error err;
    const uint64_t *bits;
    assert_int_equal(constraint_mask(constraint, NULL, &bits, &err), ST_OK);
    for (uint32_t id = 0; bits && id < WORDS_BYTES; id++) {
        assert_int_equal(bits[id / 64] >> id % 64 & 1, id > 0 && strchr(want, (int)id) != NULL);
    }
    assert_true(bits || want[0] == 0);
}

static void advance(struct constraint *constraint, uint32_t id, bool is_complete)
{
    struct error err;
    bool got;
    assert_int_equal(constraint_advance(constraint, id, &got, &err), ST_OK);
    assert_int_equal(got, is_complete);
}

/* An answer of "ab?c?" or of what is left of it; |end|: the bytes that end one. */
static void run_answer(struct constraint *constraint, const char *end)
{
    struct error err;
    char want[8];
    assert_int_equal(constraint_begin(constraint, &err), ST_OK);
    check_allowed(constraint, "a");
    advance(constraint, 'a', false);
    snprintf(want, sizeof(want), "bc%s", end);
    check_allowed(constraint, want);
    advance(constraint, 'b', false);
    snprintf(want, sizeof(want), "c%s", end);
    check_allowed(constraint, want);
    advance(constraint, 'c', true);
    check_allowed(constraint, end);
}

static void run_constraint(struct generator *generator, const char *body, const char *end)
{
    struct error err;
    struct arena arena;
    struct ask ask;
    struct constraint *constraint;
    arena_init(&arena, 1 << 20);
    assert_int_equal(ask_parse(ASK_COMPLETION, span_str(body), 8, &arena, &ask, &err), ST_OK);
    assert_int_equal(constraint_new(&ask, generator, &constraint, &err), ST_OK);
    for (int i = 0; i < 2; i++) {
        run_answer(constraint, end);
    }
    constraint_free(constraint);
    arena_fini(&arena);
}

#define BODY "{\"model\": \"m\", \"prompt\": \"x\", \"guided_regex\": \"ab?c?\""

static void constraints(void **state)
{
    (void)state;
    struct generator *generator = byte_model();
    run_constraint(generator, BODY "}", "\3");
    run_constraint(generator, BODY ", \"stop_token_ids\": [4]}", "\3\4");
    run_constraint(generator, BODY ", \"ignore_eos\": true}", "");
    generator_free(generator);
}

/* ---- strings that end an answer -------------------------------------------------------------- */

/* Adds |text| byte by byte; the text that is ready after each must be a beginning of the end
 * result. */
static void run_stops(const char *const *texts, uint32_t count, const char *text, const char *want,
                      bool is_stopped)
{
    struct span spans[8];
    struct stops stops;
    size_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = span_str(texts[i]);
    }
    stops_init(&stops, spans, count, 4096);
    for (const char *at = text; *at && !stops.is_stopped; at++) {
        buf_add_char(&stops.text, *at);
        stops_look(&stops);
        assert_true(stops.ready_bytes >= last && stops.ready_bytes <= stops.text.len);
        assert_memory_equal(stops.text.ptr, want, stops.ready_bytes);
        assert_true(stops.ready_bytes <= strlen(want));
        last = stops.ready_bytes;
    }
    if (!stops.is_stopped) {
        stops_end(&stops);
    }
    assert_int_equal(stops.is_stopped, is_stopped);
    assert_int_equal(stops.ready_bytes, strlen(want));
    assert_memory_equal(stops.text.ptr, want, strlen(want));
    stops_restart(&stops);
    assert_int_equal(stops.text.len, 0);
    stops_fini(&stops);
}

static void stop_strings(void **state)
{
    (void)state;
    const char *const one[] = {"END"}, *const two[] = {"abcd", "bc"}, *const same[] = {"aab"};
    run_stops(NULL, 0, "hello", "hello", false);
    run_stops(one, 1, "the END of", "the ", true);
    run_stops(one, 1, "the EN", "the EN", false); /* held back, then given out at the end */
    run_stops(one, 1, "EENEND", "EEN", true);
    run_stops(one, 1, "END", "", true);
    run_stops(two, 2, "xabc", "xa", true); /* complete, though a longer one might begin before */
    run_stops(two, 2, "xabd", "xabd", false);
    run_stops(same, 1, "aaaab", "aa", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions),      cmocka_unit_test(greedy),
        cmocka_unit_test(many_candidates),    cmocka_unit_test(greedy_among_many),
        cmocka_unit_test(odd_logits),         cmocka_unit_test(seeds),
        cmocka_unit_test(least_temperatures), cmocka_unit_test(penalties),
        cmocka_unit_test(logarithms),         cmocka_unit_test(masks),
        cmocka_unit_test(grammars),           cmocka_unit_test(constraints),
        cmocka_unit_test(stop_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
