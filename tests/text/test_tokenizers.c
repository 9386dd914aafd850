/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers of many shapes against what the Python libraries say of them: contrib/export/text.py
 * has trained them and stored the answers. NAME.cases has records of a text, its tokens (16 bits
 * each) and the text that they decode to, each behind its length (32 bits); all little-endian.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/process/file.h"
#include "server/text/tokenizer/tokenizer.h"

#define CASES_BYTES_MAX ((size_t)1 << 20)
#define FAILURES_SHOWN 5

static const struct {
    const char *name, *ending;
    unsigned flags;
    enum tokenizer_pattern pattern;
} rows[] = {
#define BOTH (TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL)
    {"gpt2", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"llama3", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"qwen25", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"llama2", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"gemma", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"bert", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"clip", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"classic_bpe", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"wordlevel", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"unigram", "json", BOTH, TOKENIZER_PATTERN_AUTO},
    {"spm_gemma", "model", 0, TOKENIZER_PATTERN_AUTO},
    {"spm_unigram", "model", 0, TOKENIZER_PATTERN_AUTO},
    {"tik_cl100k", "tiktoken", TOKENIZER_PARSE_SPECIAL, TOKENIZER_PATTERN_CL100K},
};

static unsigned failures;

static void fail(const char *name, size_t record, const char *what)
{
    if (++failures <= FAILURES_SHOWN) {
        fprintf(stderr, "%s: record %zu: %s\n", name, record, what);
    }
}

struct cases {
    struct buf bytes;
    size_t at;
};

static struct span next_part(struct cases *cases, size_t size)
{
    must(in_range(cases->at, 4, cases->bytes.len));
    size_t len = (size_t)load_le32(cases->bytes.ptr + cases->at) * size;
    must(in_range(cases->at + 4, len, cases->bytes.len));
    struct span part = span_of(cases->bytes.ptr + cases->at + 4, len);
    cases->at += 4 + len;
    return part;
}

static void check_tokens(const char *name, size_t record, struct span want,
                         const struct token_list *list)
{
    bool is_same = want.len == list->count * 2;
    for (size_t i = 0; is_same && i < list->count; i++) {
        is_same = load_le16(want.ptr + i * 2) == list->ids[i];
    }
    if (!is_same) {
        fail(name, record, "other tokens than the Python library's");
    }
}

/* One token after the other, and all at once. */
static void check_text(const char *name, size_t record, const struct tokenizer *tokenizer,
                       struct span want, const struct token_list *list)
{
    struct error err;
    struct buf whole, parts;
    struct tokenizer_stream stream;
    buf_init(&whole, CASES_BYTES_MAX);
    buf_init(&parts, CASES_BYTES_MAX);
    must(tokenizer_decode(tokenizer, list->ids, list->count, false, &whole, &err) == ST_OK);
    tokenizer_stream_init(&stream, tokenizer, false);
    for (size_t i = 0; i < list->count; i++) {
        must(tokenizer_stream_push(&stream, list->ids[i], &parts, &err) == ST_OK);
    }
    must(tokenizer_stream_end(&stream, &parts, &err) == ST_OK);
    tokenizer_stream_fini(&stream);
    if (!span_equal(buf_span(&whole), want)) {
        fail(name, record, "another text than the Python library's");
    }
    if (!span_equal(buf_span(&whole), buf_span(&parts))) {
        fail(name, record, "a stream gives another text");
    }
    buf_fini(&whole);
    buf_fini(&parts);
}

static size_t check_cases(const char *name, const struct tokenizer *tokenizer, unsigned flags,
                          struct cases *cases)
{
    size_t record = 0;
    for (; cases->at < cases->bytes.len; record++) {
        struct error err;
        struct token_list list;
        struct span text = next_part(cases, 1), tokens = next_part(cases, 2);
        struct span decoded = next_part(cases, 1);
        token_list_init(&list);
        if (tokenizer_encode(tokenizer, text, flags, SIZE_MAX, &list, &err) != ST_OK) {
            fail(name, record, err.text);
        } else {
            check_tokens(name, record, tokens, &list);
            check_text(name, record, tokenizer, decoded, &list);
        }
        token_list_fini(&list);
    }
    return record;
}

static size_t check_row(size_t row)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    struct error err;
    struct tokenizer *tokenizer;
    struct cases cases = {.at = 0};
    snprintf(path, sizeof(path), "%s/tests/text/%s.%s", top ? top : ".", rows[row].name,
             rows[row].ending);
    if (tokenizer_load_pattern(path, rows[row].pattern, &tokenizer, &err) != ST_OK) {
        fail(rows[row].name, 0, err.text);
        return 0;
    }
    snprintf(path, sizeof(path), "%s/tests/text/%s.cases", top ? top : ".", rows[row].name);
    buf_init(&cases.bytes, CASES_BYTES_MAX);
    size_t count = 0;
    if (file_read(path, &cases.bytes, &err) != ST_OK) {
        fail(rows[row].name, 0, err.text);
    } else {
        count = check_cases(rows[row].name, tokenizer, rows[row].flags, &cases);
    }
    buf_fini(&cases.bytes);
    tokenizer_free(tokenizer);
    return count;
}

int main(void)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        count += check_row(i);
    }
    printf("%zu tokenizers, %zu texts, %u failures\n", sizeof(rows) / sizeof(rows[0]), count,
           failures);
    return failures > 0 || count < 1000;
}
