/* SPDX-License-Identifier: MIT */
/*
 * Rules of tokenizer.json and of its regular expressions, each with what the Python library says.
 *
 *     test_rules [CASES...]
 *
 * Each line of CASES, tests/text/rules.jsonl and patterns.jsonl if none are given, is an object
 * that contrib/export/text_rules.py wrote. "about" names the rule. "file" is a tokenizer.json, and
 * "texts" has [text, tokens, what they decode to, the same without special tokens]; or "pattern" is
 * a regular expression, and "texts" has [text, [begin and end of each match in bytes]]. With
 * "refused" instead, the file or the pattern is refused with an error that has this part.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/tokenizer/pattern.h"
#include "server/text/tokenizer/tokenizer.h"
#include "server/text/tokenizer/unicode.h"
#include "server/text/value/value.h"

#define PATH_BYTES 4096
#define TEXT_BYTES_MAX ((size_t)1 << 20)

struct test {
    int number; /* the line, from 1 */
    const struct value *value;
};

static unsigned passed, failures, refusals;

static void fail(const struct test *test, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void fail(const struct test *test, const char *fmt, ...)
{
    const struct value *about = value_map_get(test->value, span_str("about"));
    va_list args;
    failures++;
    struct span rule = about ? about->string : span_str("no rule");
    printf("line %d (%.*s): ", test->number, SPAN_FMT(rule));
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

static const struct value *member(const struct test *test, const char *name)
{
    return value_map_get(test->value, span_str(name));
}

/* True: the error is the one that the test wants. */
static void check_refusal(const struct test *test, const char *got)
{
    const struct value *want = member(test, "refused");
    if (want && memmem(got, strlen(got), want->string.ptr, want->string.len)) {
        passed++;
        refusals++;
    } else {
        fail(test, "refused: %s", got);
    }
}

static void check_numbers(const struct test *test, struct span text, const struct value *want,
                          const uint32_t *got, size_t count)
{
    bool is_same = want->list->count == count;
    for (size_t i = 0; is_same && i < count; i++) {
        is_same = want->list->items[i].integer == got[i];
    }
    if (is_same) {
        passed++;
        return;
    }
    struct buf line;
    buf_init(&line, TEXT_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&line, " %u", got[i]);
    }
    buf_add_str(&line, ", want");
    for (size_t i = 0; i < want->list->count; i++) {
        buf_printf(&line, " %d", (int)want->list->items[i].integer);
    }
    fail(test, "'%.*s': got%.*s", SPAN_FMT(text), (int)line.len, (const char *)line.ptr);
    buf_fini(&line);
}

static void check_decoded(const struct test *test, const struct tokenizer *tokenizer,
                          const struct token_list *list, bool skips, struct span want)
{
    struct error err;
    struct buf whole, parts;
    struct tokenizer_stream stream;
    buf_init(&whole, TEXT_BYTES_MAX);
    buf_init(&parts, TEXT_BYTES_MAX);
    must(tokenizer_decode(tokenizer, list->ids, list->count, skips, &whole, &err) == ST_OK);
    tokenizer_stream_init(&stream, tokenizer, skips);
    for (size_t i = 0; i < list->count; i++) {
        must(tokenizer_stream_push(&stream, list->ids[i], &parts, &err) == ST_OK);
    }
    must(tokenizer_stream_end(&stream, &parts, &err) == ST_OK);
    tokenizer_stream_fini(&stream);
    if (span_equal(buf_span(&whole), want) && span_equal(buf_span(&parts), want)) {
        passed++;
    } else {
        fail(test, "decoded '%.*s', in a stream '%.*s', want '%.*s'", (int)whole.len,
             (const char *)whole.ptr, (int)parts.len, (const char *)parts.ptr, SPAN_FMT(want));
    }
    buf_fini(&whole);
    buf_fini(&parts);
}

static void check_file(const struct test *test, const struct value *file)
{
    struct error err;
    struct tokenizer *tokenizer;
    const struct value *texts = member(test, "texts");
    if (tokenizer_parse(file->string, TOKENIZER_PATTERN_AUTO, &tokenizer, &err) != ST_OK) {
        check_refusal(test, err.text);
        return;
    }
    if (!texts) {
        fail(test, "not refused");
    }
    for (size_t i = 0; texts && i < texts->list->count; i++) {
        const struct value *row = texts->list->items[i].list->items;
        struct token_list list;
        token_list_init(&list);
        if (tokenizer_encode(tokenizer, row[0].string, TOKENIZER_PARSE_SPECIAL, SIZE_MAX, &list,
                             &err) != ST_OK) {
            fail(test, "'%.*s': %s", SPAN_FMT(row[0].string), err.text);
        } else {
            check_numbers(test, row[0].string, &row[1], list.ids, list.count);
            check_decoded(test, tokenizer, &list, false, row[2].string);
            check_decoded(test, tokenizer, &list, true, row[3].string);
        }
        token_list_fini(&list);
    }
    tokenizer_free(tokenizer);
}

static void check_matches(const struct test *test, const struct pattern *pattern,
                          struct pattern_scratch **scratch, const struct value *row)
{
    struct error err;
    struct pattern_search search;
    struct token_list places;
    size_t start, end;
    token_list_init(&places);
    pattern_search_begin(&search, pattern, span_of(NULL, 0), row[0].string);
    do {
        if (pattern_search_next(&search, scratch, &start, &end, &err) != ST_OK) {
            fail(test, "'%.*s': %s", SPAN_FMT(row[0].string), err.text);
            break;
        }
        if (start != SIZE_MAX) {
            must(token_list_add(&places, (uint32_t)start, &err) == ST_OK &&
                 token_list_add(&places, (uint32_t)end, &err) == ST_OK);
        }
    } while (start != SIZE_MAX);
    check_numbers(test, row[0].string, &row[1], places.ids, places.count);
    token_list_fini(&places);
}

static void check_pattern(const struct test *test, const struct value *source)
{
    struct error err;
    struct pattern *pattern;
    struct pattern_scratch *scratch = NULL;
    const struct value *texts = member(test, "texts");
    if (pattern_new(source->string, PATTERN_LINES, &pattern, &err) != ST_OK) {
        check_refusal(test, err.text);
        return;
    }
    if (!texts) {
        fail(test, "not refused");
    }
    for (size_t i = 0; texts && i < texts->list->count; i++) {
        check_matches(test, pattern, &scratch, texts->list->items[i].list->items);
    }
    pattern_scratch_free(scratch);
    pattern_free(pattern);
}

static void check_lines(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    struct arena arena;
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    arena_init(&arena, 64u << 20);
    for (int number = 1; (len = getline(&line, &capacity, file)) > 0; number++) {
        struct value value;
        struct error err = {0};
        must(value_parse(span_of(line, (size_t)len), &VALUE_LIMITS_DEFAULT, &arena, &value, &err) ==
             ST_OK);
        struct test test = {number, &value};
        const struct value *tokens = member(&test, "file");
        if (tokens) {
            check_file(&test, tokens);
        } else {
            check_pattern(&test, member(&test, "pattern"));
        }
        arena_reset(&arena);
    }
    arena_fini(&arena);
    free(line);
    fclose(file);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"rules", "patterns"};
    const char *top = getenv("top_srcdir");
    struct error err;
    must(unicode_load(&err) == ST_OK);
    for (int i = 1; i < argc; i++) {
        check_lines(argv[i]);
    }
    for (size_t i = 0; argc == 1 && i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s/tests/text/%s.jsonl", top ? top : ".", names[i]);
        check_lines(path);
    }
    printf("%u answers and %u refusals as expected, %u not\n", passed - refusals, refusals,
           failures);
    return failures > 0 || passed == 0;
}
