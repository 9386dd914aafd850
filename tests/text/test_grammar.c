/* SPDX-License-Identifier: MIT */
/*
 * Grammars against what Python's json, jsonschema and re say.
 *
 *     test_grammar [CASES [SAMPLES]]
 *
 * Each line of CASES, if it is not given of grammars.jsonl and schemas.jsonl in tests/text, is an
 * object: "schema",
 * "regex", "gbnf" or neither (any object), and "accepts" and "rejects", texts, or "refused", a
 * part of the error. Each text is also taken byte by byte through the mask of a small vocabulary.
 * With SAMPLES, that many texts of each grammar are printed, for Python to check: a line {"case":
 * N, "text": "..."}.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/grammar/grammar.h"

#define PATH_BYTES 4096
#define SAMPLE_BYTES_MAX 4000

static const char *const extras[] = {"{\"",          "\": ", "\", \"", "true", "null",
                                     "abc",          "\"}",  "00",     "\xc3", "\xc3\xa9",
                                     "\xe6\x9d\xb1", "}]",   "\\\"",   "",     "a\xff"};

/* Tokens of three of these, so that a mask meets nodes with many others below them. */
static const char *const parts[] = {"a",  "Z",  "0",  " ",        "\"",          "\\",
                                    "\n", "}",  ",",  "\xc3\xa9", "\xe6\x9d",    "-",
                                    ".",  "ab", "\t", "\xed\xa0", "\xf0\x9f\x99"};
static const char *const begins[] = {"a", " ", "\"", "1", "\xc3\xa9", "\xc3", "x\n"};

#define EXTRA_COUNT (sizeof(extras) / sizeof(extras[0]))
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))
#define MADE_COUNT (sizeof(begins) / sizeof(begins[0]) * PART_COUNT * PART_COUNT)
#define TOKEN_COUNT (256 + EXTRA_COUNT + MADE_COUNT)
#define WORDS ((TOKEN_COUNT + 63) / 64)

static struct span tokens[TOKEN_COUNT];
static uint8_t bytes[256];
static char made[MADE_COUNT][12];
static struct grammar_vocabulary *vocabulary;
static int failures, passed;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)((random_state >> 32) % limit);
}

static bool has_bit(const uint64_t *bits, size_t token)
{
    return bits[token / 64] >> (token % 64) & 1;
}

/* The mask says of each token what asking for the token alone says. */
static void check_mask(struct grammar_walk *walk, struct grammar_state state, uint64_t *bits)
{
    struct error err = {0};
    enum status status;
    int tries = 0;
    do { /* each try goes on where the last one has ended */
        status = grammar_mask_within(walk, state, vocabulary, bits, 1000, &err);
    } while (status == ST_WOULD_BE_HEAVY && ++tries < 10000);
    must(status == ST_OK);
    for (size_t i = 0; i < TOKEN_COUNT; i++) {
        struct grammar_state next = state;
        must(has_bit(bits, i) ==
             (tokens[i].len > 0 && grammar_state_advance(walk, &next, tokens[i])));
    }
}

static bool accepts(struct grammar_walk *walk, struct span text)
{
    struct grammar_state state = grammar_walk_begin(walk);
    uint64_t bits[WORDS];
    for (size_t i = 0; i < text.len; i++) {
        if (i < 200) {
            check_mask(walk, state, bits);
        }
        bool moves = grammar_state_advance(walk, &state, span_of(text.ptr + i, 1));
        must(i >= 200 || moves == has_bit(bits, text.ptr[i]));
        if (!moves) {
            return false;
        }
    }
    return grammar_state_may_end(walk, state);
}

static void check_texts(int number, struct grammar_walk *walk, const struct value *texts,
                        bool expected)
{
    for (size_t i = 0; texts && i < texts->list->count; i++) {
        struct span text = texts->list->items[i].string;
        if (accepts(walk, text) == expected) {
            passed++;
        } else {
            failures++;
            printf("case %d %s: %.*s\n", number, expected ? "rejects" : "accepts", SPAN_FMT(text));
        }
    }
}

/* A walk at random; the longer the text, the likelier it ends where it may. */
static void print_sample(int number, const struct grammar *grammar)
{
    struct grammar_walk *walk;
    struct buf text, line;
    uint64_t bits[WORDS];
    struct error err = {0};
    must(grammar_walk_new(grammar, &walk, &err) == ST_OK);
    struct grammar_state state = grammar_walk_begin(walk);
    buf_init(&text, 2 * SAMPLE_BYTES_MAX);
    buf_init(&line, 16 * SAMPLE_BYTES_MAX);
    while (text.len < SAMPLE_BYTES_MAX) { /* a longer one is not finished */
        size_t token = random_below(TOKEN_COUNT);
        bool is_over = grammar_state_may_end(walk, state) && random_below(8) == 0;
        if (is_over || grammar_state_must_end(walk, state)) {
            json_print_string(&line, buf_span(&text));
            printf("{\"case\": %d, \"text\": %.*s}\n", number, (int)line.len,
                   (const char *)line.ptr);
            break;
        }
        if (grammar_mask(walk, state, vocabulary, bits, &err) != ST_OK) {
            must(err.code == ST_TOO_LARGE); /* nested at random, it has too many states */
            break;
        }
        for (size_t i = 0; i < TOKEN_COUNT && !has_bit(bits, token); i++) {
            token = (token + 1) % TOKEN_COUNT;
        }
        must(has_bit(bits, token) && grammar_state_advance(walk, &state, tokens[token]));
        buf_add(&text, tokens[token].ptr, tokens[token].len);
    }
    buf_fini(&text);
    buf_fini(&line);
    grammar_walk_free(walk);
}

static enum status parse(const struct value *test, struct grammar **out, struct error *err)
{
    const struct value *schema = value_map_get(test, span_str("schema"));
    const struct value *regex = value_map_get(test, span_str("regex"));
    if (schema) {
        return grammar_parse_schema(schema, out, err);
    }
    const struct value *gbnf = value_map_get(test, span_str("gbnf"));
    if (gbnf) {
        return grammar_parse_gbnf(gbnf->string, out, err);
    }
    return regex ? grammar_parse_regex(regex->string, out, err) : grammar_parse_object(out, err);
}

static void check_case(int number, const struct value *test, int samples)
{
    const struct value *refused = value_map_get(test, span_str("refused"));
    struct grammar *grammar;
    struct grammar_walk *walk;
    struct error err = {0};
    if (parse(test, &grammar, &err) != ST_OK) {
        bool is_right =
            refused && memmem(err.text, strlen(err.text), refused->string.ptr, refused->string.len);
        passed += is_right;
        failures += !is_right;
        if (!is_right) {
            printf("case %d is refused: %s\n", number, err.text);
        }
        return;
    }
    if (refused) {
        failures++;
        printf("case %d is not refused\n", number);
    }
    must(grammar_walk_new(grammar, &walk, &err) == ST_OK);
    check_texts(number, walk, value_map_get(test, span_str("accepts")), true);
    check_texts(number, walk, value_map_get(test, span_str("rejects")), false);
    for (int i = 0; i < samples; i++) {
        print_sample(number, grammar);
    }
    grammar_walk_free(walk);
    grammar_free(grammar);
}

/* Texts of a bounded length: near its end a mask has the shorter tokens only. */
static void check_lengths(void)
{
    static const char *const forms[][2] = {
        {".{0,", "}"}, {"[a-z\xc3\xa9 ]{0,", "}"}, {"\"[^\"]{0,", "}\""}, {"x*.{", "}"}};
    static const char *const texts[] = {"a a a a a a a a ", "\xc3\xa9Z\xc3\xa9 \xc3\xa9-",
                                        "\"a\xc3\xa9 0aaaaaaaaaaaa\""};
    for (unsigned i = 0; i < 13 * sizeof(forms) / sizeof(forms[0]); i++) {
        char regex[64];
        struct grammar *grammar;
        struct grammar_walk *walk;
        struct error err = {0};
        snprintf(regex, sizeof(regex), "%s%u%s", forms[i / 13][0], i % 13, forms[i / 13][1]);
        must(grammar_parse_regex(span_str(regex), &grammar, &err) == ST_OK);
        must(grammar_walk_new(grammar, &walk, &err) == ST_OK);
        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
            accepts(walk, span_str(texts[t]));
            passed++;
        }
        grammar_walk_free(walk);
        grammar_free(grammar);
    }
}

/* Rules without content cost as much as others: a part of a mask is small, whatever a grammar
 * hides behind a character. */
static void check_parts(void)
{
    struct buf text;
    struct grammar *grammar;
    struct grammar_walk *walk;
    struct error err = {0};
    uint64_t bits[WORDS], tries = 0;
    buf_init(&text, 1 << 16);
    buf_add_str(&text, "e ::= \"\"\nroot ::= ([a-z]");
    for (int i = 0; i < 1000; i++) {
        buf_add_str(&text, " e");
    }
    buf_add_str(&text, ")*");
    must(!buf_failed(&text) && grammar_parse_gbnf(buf_span(&text), &grammar, &err) == ST_OK);
    must(grammar_walk_new(grammar, &walk, &err) == ST_OK);
    struct grammar_state state = grammar_walk_begin(walk);
    size_t before = grammar_walk_bytes(walk);
    while (grammar_mask_within(walk, state, vocabulary, bits, 1000, &err) != ST_OK) {
        must(err.code == ST_WOULD_BE_HEAVY && tries < 1000);
        tries++;
    }
    check_mask(walk, state, bits);
    must(grammar_walk_bytes(walk) > before + sizeof(uint32_t) * 256);
    passed += tries > 0;
    failures += tries == 0;
    grammar_walk_free(walk);
    grammar_free(grammar);
    buf_fini(&text);
}

static void check_enum(int count, bool is_allowed, struct arena *arena)
{
    struct buf text;
    struct value schema;
    struct grammar *grammar;
    struct error err = {0};
    buf_init(&text, 1 << 16);
    for (int n = 0; n < count; n++) {
        buf_printf(&text, "%s%d", n ? "," : "{\"enum\":[", n);
    }
    buf_add_str(&text, "]}");
    must(!buf_failed(&text));
    must(value_parse(buf_span(&text), &VALUE_LIMITS_DEFAULT, arena, &schema, &err) == ST_OK);
    bool is_taken = grammar_parse_schema(&schema, &grammar, &err) == ST_OK;
    bool is_right = is_taken ? is_allowed : !is_allowed && strstr(err.text, "value of an 'enum'");
    passed += is_right;
    failures += !is_right;
    if (!is_right) {
        printf("enum of %d values: %s\n", count, is_taken ? "taken" : err.text);
    }
    if (is_taken) {
        grammar_free(grammar);
    }
    buf_fini(&text);
    arena_reset(arena);
}

/* Adds |count| texts, each other than those of another |first|. */
static void add_texts(struct buf *text, int first, int count)
{
    for (int n = first; n < first + count; n++) {
        buf_printf(text, "%s\"%07d\"", n > first ? "," : "[", n);
    }
    buf_add_str(text, "]");
}

static void add_members(struct buf *text, int first, int count)
{
    for (int n = first; n < first + count; n++) {
        buf_printf(text, "%s\"%07d\":{}", n > first ? "," : "{", n);
    }
    buf_add_str(text, "}");
}

/* 300 references to the definition |name|. */
static void add_references(struct buf *text, char name)
{
    for (int n = 0; n < 300; n++) {
        buf_printf(text, "%s{\"$ref\":\"#/$defs/%c\"}", n ? "," : "[", name);
    }
    buf_add_str(text, "]");
}

/* Schemas, and a list of tools, that are short for what comparing their words takes. "L": texts,
 * "M": members, each of them others than before; "Rx": references to x. */
static const char *const heavy[] = {
    "{'required':L}",
    "{'allOf':[{'required':['x']},{'required':L}]}",
    "{'allOf':[{'enum':L},{'enum':L}]}",
    "{'allOf':[{'properties':M},{'properties':M}]}",
    "{'oneOf':[{'enum':L},{'enum':L}]}",
    "{'allOf':[{'properties':M},{'additionalProperties':M}]}",
    "{'$defs':{'b':{'required':L}},"
    "'oneOf':[{'allOf':[{'required':['x']},{'$ref':'#/$defs/b'}]},{'type':'null'}]}",
    "{'oneOf':[{'type':'object','properties':M,'required':L},"
    "{'type':'object','properties':M,'required':L}]}",
    "[{'function':{'name':'f','parameters':{'$defs':{'a':{'anyOf':Rb},'b':{'anyOf':Rc},"
    "'c':{'anyOf':Rd},'d':{'type':'object'}},'anyOf':Ra}}}]",
};

static void check_heavy(const char *form, struct arena *arena)
{
    struct buf text;
    struct value schema;
    struct grammar *grammar;
    struct error err = {0};
    int first = 0;
    buf_init(&text, 1 << 20);
    for (const char *at = form; *at; at++) {
        if (*at == 'L' || *at == 'M') {
            (*at == 'L' ? add_texts : add_members)(&text, first, 8000);
            first += 8000;
        } else if (*at == 'R') {
            add_references(&text, *++at);
        } else {
            buf_printf(&text, "%c", *at == '\'' ? '"' : *at);
        }
    }
    must(!buf_failed(&text));
    must(value_parse(buf_span(&text), &VALUE_LIMITS_DEFAULT, arena, &schema, &err) == ST_OK);
    enum status status = schema.kind == VALUE_LIST
                             ? grammar_parse_call(&schema, span_str(""), NULL, &grammar, &err)
                             : grammar_parse_schema(&schema, &grammar, &err);
    bool is_right = status == ST_TOO_LARGE && strstr(err.text, "a schema takes too much work");
    passed += is_right;
    failures += !is_right;
    if (!is_right) {
        printf("%s: %s\n", form, status == ST_OK ? "taken" : err.text);
    }
    if (status == ST_OK) {
        grammar_free(grammar);
    }
    buf_fini(&text);
    arena_reset(arena);
}

static void make_vocabulary(void)
{
    struct error err;
    for (size_t i = 0; i < TOKEN_COUNT; i++) {
        if (i < 256) {
            bytes[i] = (uint8_t)i;
            tokens[i] = span_of(&bytes[i], 1);
        } else if (i < 256 + EXTRA_COUNT) {
            tokens[i] = span_str(extras[i - 256]);
        } else {
            size_t number = i - 256 - EXTRA_COUNT;
            snprintf(made[number], sizeof(made[number]), "%s%s%s",
                     begins[number / PART_COUNT / PART_COUNT],
                     parts[number / PART_COUNT % PART_COUNT], parts[number % PART_COUNT]);
            tokens[i] = span_str(made[number]);
        }
    }
    must(grammar_vocabulary_new(tokens, TOKEN_COUNT, &vocabulary, &err) == ST_OK);
}

/* |path|: relative to the sources unless |is_given|. */
static int check_file(const char *path, bool is_given, int samples, struct arena *arena)
{
    const char *top = getenv("top_srcdir");
    char whole[PATH_BYTES], *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    snprintf(whole, sizeof(whole), "%s/tests/text/%s", top ? top : ".", path);
    FILE *file = fopen(is_given ? path : whole, "r");
    if (!file) {
        perror(path);
        return 1;
    }
    for (int number = 0; (len = getline(&line, &capacity, file)) > 0; number++) {
        struct value test;
        struct error err = {0};
        must(value_parse(span_of(line, (size_t)len), &VALUE_LIMITS_DEFAULT, arena, &test, &err) ==
             ST_OK);
        check_case(number, &test, samples);
        arena_reset(arena);
    }
    free(line);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    struct arena arena;
    int missing;
    make_vocabulary();
    arena_init(&arena, 64u << 20);
    if (argc > 1) {
        missing = check_file(argv[1], true, argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, &arena);
    } else {
        check_lengths();
        check_parts();
        check_enum(3900, true, &arena);
        check_enum(5000, false, &arena); /* its text says what there are too many of */
        for (size_t i = 0; i < sizeof(heavy) / sizeof(heavy[0]); i++) {
            check_heavy(heavy[i], &arena);
        }
        missing = check_file("grammars.jsonl", false, 0, &arena) +
                  check_file("schemas.jsonl", false, 0, &arena);
    }
    arena_fini(&arena);
    grammar_vocabulary_free(vocabulary);
    if (argc <= 2) {
        printf("%d texts and refusals as expected, %d not\n", passed, failures);
    }
    return missing || failures || passed == 0;
}
