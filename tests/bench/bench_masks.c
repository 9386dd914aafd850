/* SPDX-License-Identifier: MIT */
/*
 * How long a mask of the tokens that may come next takes, the first time that a text is in such a
 * state, with a vocabulary of 128,256 tokens made up of syllables, scripts, digits and signs.
 * bench_masks [ROUNDS].
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "server/text/grammar/grammar.h"

#define TOKENS 128256
#define WORDS ((TOKENS + 63) / 64)
#define TOKEN_BYTES 24

static char texts[TOKENS][TOKEN_BYTES + 4];
static struct span tokens[TOKENS];
static uint64_t bits[WORDS];
static uint32_t seed = 1;

static uint32_t below(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * limit >> 32);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A word as vocabularies have them: mostly Latin, often behind a blank. */
static size_t put_word(char *to)
{
    static const char *const syllables[] = {"an",  "the", "er", "ing", "con", "ti",
                                            "ra",  "lo",  "se", "mi",  "ent", "ab",
                                            "pro", "un",  "ly", "ex",  "om",  "ka"};
    static const char *const letters[] = {"ж", "о",  "н",  "и",  "α",  "ε",  "ن",  "م",  "é",
                                          "ü", "的", "一", "東", "き", "は", "한", "국", "🙂"};
    static const char *const signs[] = {"\"", "\":", "\\n", "{", "}", ",", "();", "=", "->", "</"};
    uint32_t kind = below(100), parts = 1 + below(4);
    size_t len = kind % 2 ? 0 : 1;
    to[0] = ' ';
    for (uint32_t i = 0; i < parts && len < TOKEN_BYTES - 4; i++) {
        const char *part = kind < 66   ? syllables[below(18)]
                           : kind < 94 ? letters[below(18)]
                                       : signs[below(10)];
        memcpy(to + len, part, strlen(part));
        len += strlen(part);
    }
    if (kind < 8) {
        to[kind % 2 ? 0 : 1] = (char)(to[kind % 2 ? 0 : 1] - 32);
    } else if (kind == 95) {
        len += (size_t)snprintf(to + len, 4, "%u", below(1000));
    }
    return len;
}

static void make_tokens(void)
{
    for (uint32_t i = 0; i < TOKENS; i++) {
        size_t len = 1;
        texts[i][0] = (char)i;
        if (i >= 256) {
            len = put_word(texts[i]);
            while (i >= 4096 && len < TOKEN_BYTES && below(3) > 0) {
                texts[i][len++] = (char)('a' + below(26)); /* a vocabulary has no text twice */
            }
        }
        tokens[i] = span_of(texts[i], len);
    }
}

static void measure(const char *name, const struct grammar *grammar,
                    const struct grammar_vocabulary *vocabulary, const char *text, long rounds)
{
    double least = 1e9;
    size_t allowed = 0;
    for (long round = 0; round < rounds; round++) {
        struct grammar_walk *walk;
        struct error err;
        must(grammar_walk_new(grammar, &walk, &err) == ST_OK);
        struct grammar_state state = grammar_walk_begin(walk);
        must(grammar_state_advance(walk, &state, span_str(text)));
        double start = now_ms();
        must(grammar_mask(walk, state, vocabulary, bits, &err) == ST_OK);
        double spent = now_ms() - start;
        least = spent < least ? spent : least;
        grammar_walk_free(walk);
    }
    for (size_t i = 0; i < WORDS; i++) {
        allowed += (size_t)__builtin_popcountll(bits[i]);
    }
    printf("%-28s %8.3f ms  %6zu tokens\n", name, least, allowed);
}

static struct grammar *schema_grammar(const char *text)
{
    struct arena arena;
    struct value schema;
    struct grammar *grammar;
    struct error err;
    arena_init(&arena, 1u << 20);
    must(value_parse(span_str(text), &VALUE_LIMITS_DEFAULT, &arena, &schema, &err) == ST_OK);
    must(grammar_parse_schema(&schema, &grammar, &err) == ST_OK);
    arena_fini(&arena);
    return grammar;
}

static struct grammar *regex_grammar(const char *text)
{
    struct grammar *grammar;
    struct error err;
    must(grammar_parse_regex(span_str(text), &grammar, &err) == ST_OK);
    return grammar;
}

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20;
    struct grammar_vocabulary *vocabulary;
    struct error err;
    make_tokens();
    double start = now_ms();
    must(grammar_vocabulary_new(tokens, TOKENS, &vocabulary, &err) == ST_OK);
    printf("%-28s %8.3f ms\n", "the vocabulary", now_ms() - start);
    const struct {
        const char *name, *text;
        struct grammar *grammar;
    } rows[] = {
        {"object: begin", "", schema_grammar("{\"type\":\"object\"}")},
        {"object: a name", "{\"na", schema_grammar("{\"type\":\"object\"}")},
        {"object: a string", "{\"name\": \"x", schema_grammar("{\"type\":\"object\"}")},
        {"object: a value", "{\"name\": ", schema_grammar("{\"type\":\"object\"}")},
        {"member: a string", "{\"a\": \"x",
         schema_grammar("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}")},
        {"string of 100", "\"x", schema_grammar("{\"type\":\"string\",\"maxLength\":100}")},
        {"string of 1000", "\"x", schema_grammar("{\"type\":\"string\",\"maxLength\":1000}")},
        {"string of 8", "\"x", schema_grammar("{\"type\":\"string\",\"maxLength\":8}")},
        {"string like [a-z ]+", "\"x",
         schema_grammar("{\"type\":\"string\",\"pattern\":\"^[a-z ]+$\"}")},
        {"number", "1", schema_grammar("{\"type\":\"number\"}")},
        {"enum", "\"", schema_grammar("{\"enum\":[\"the\",\"other\",\"anti\"]}")},
        {".*", "x", regex_grammar(".*")},
        {"[^,]*,[^,]*", "x", regex_grammar("[^,]*,[^,]*")},
        {".{0,500}", "x", regex_grammar(".{0,500}")},
        {"[a-z ]{0,500}", "x", regex_grammar("[a-z ]{0,500}")},
        {"\\w+( \\w+)*", "x", regex_grammar("\\w+( \\w+)*")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        measure(rows[i].name, rows[i].grammar, vocabulary, rows[i].text, rounds);
        grammar_free(rows[i].grammar);
    }
    grammar_vocabulary_free(vocabulary);
    return 0;
}
