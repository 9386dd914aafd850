/* SPDX-License-Identifier: MIT */
/*
 * A tokenizer when memory runs out: the first allocation fails, then the second, and so on until
 * the file is loaded, a text encoded and decoded. Each time the error says so, and nothing leaks.
 * The linker sends the allocating functions here.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/process/file.h"
#include "server/text/tokenizer/tokenizer.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 20000
#define FILE_BYTES_MAX 8192

static enum status use(const struct tokenizer *tokenizer, struct error *err)
{
    struct token_list list;
    struct buf out;
    token_list_init(&list);
    buf_init(&out, 4096);
    enum status status =
        tokenizer_encode(tokenizer,
                         span_str("<s> lo\xc3\xa9 the world aaaaaaaa\xff, once more, "
                                  "and 12 times again for a longer text"),
                         3, 1000, &list, err);
    if (status == ST_OK) {
        status = tokenizer_decode(tokenizer, list.ids, list.count, false, &out, err);
    }
    token_list_fini(&list);
    buf_fini(&out);
    return status;
}

static enum status run_with(long allocations, struct span file, struct error *err)
{
    struct tokenizer *tokenizer;
    allocations_left = allocations;
    enum status status = tokenizer_parse(file, TOKENIZER_PATTERN_CL100K, &tokenizer, err);
    if (status == ST_OK) {
        status = use(tokenizer, err);
        tokenizer_free(tokenizer);
    }
    allocations_left = -1;
    return status;
}

static int try_file(const char *name)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    struct error err = {0};
    struct buf file;
    enum status status;
    long count = 0;
    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/tokenizer/%s", top ? top : ".", name);
    buf_init(&file, FILE_BYTES_MAX);
    must(file_read(path, &file, &err) == ST_OK);
    /* The libraries are loaded first: allocations of the system's loader must not fail. */
    must(run_with(-1, buf_span(&file), &err) == ST_OK);
    for (; (status = run_with(count, buf_span(&file), &err)) != ST_OK; count++) {
        if (status != ST_EXHAUSTED || !strstr(err.text, "memory") || count == ALLOCATIONS_MAX) {
            fprintf(stderr, "%s: allocation %ld fails: status %d, \"%s\"\n", name, count,
                    (int)status, err.text);
            return 1;
        }
    }
    printf("%s: %ld allocations, each failed\n", name, count);
    buf_fini(&file);
    return count <= 10;
}

int main(void)
{
    static const char *const names[] = {"bpe",         "byte_level", "ranks",     "spm_bpe",
                                        "spm_unigram", "unigram",    "wordlevel", "wordpiece"};
    int failures = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        failures += try_file(names[i]);
    }
    return failures > 0;
}
