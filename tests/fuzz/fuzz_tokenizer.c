/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a tokenizer's file. A file that is accepted encodes and decodes texts without a
 * failure that is not one of the texts' own, and a stream gives the text of the whole.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "server/text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUTPUT_BYTES_MAX ((size_t)1 << 20)

static void check_decode(const struct tokenizer *tokenizer, const struct token_list *list)
{
    struct error err = {0};
    struct buf whole, parts;
    struct tokenizer_stream stream;
    buf_init(&whole, OUTPUT_BYTES_MAX);
    buf_init(&parts, OUTPUT_BYTES_MAX);
    tokenizer_stream_init(&stream, tokenizer, false);
    enum status status = tokenizer_decode(tokenizer, list->ids, list->count, false, &whole, &err);
    for (size_t i = 0; status == ST_OK && i < list->count; i++) {
        must(tokenizer_stream_push(&stream, list->ids[i], &parts, &err) == ST_OK);
    }
    must(status != ST_OK || tokenizer_stream_end(&stream, &parts, &err) == ST_OK);
    must(status != ST_OK || span_equal(buf_span(&whole), buf_span(&parts)));
    must(status == ST_OK || (err.code == status && err.text[0]));
    tokenizer_stream_fini(&stream);
    buf_fini(&whole);
    buf_fini(&parts);
}

static void check_text(const struct tokenizer *tokenizer, struct span text)
{
    struct error err = {0};
    struct token_list list;
    token_list_init(&list);
    enum status status = tokenizer_encode(tokenizer, text, 3, 4096, &list, &err);
    if (status == ST_OK) {
        for (size_t i = 0; i < list.count; i++) {
            must(list.ids[i] < tokenizer_size(tokenizer));
        }
        check_decode(tokenizer, &list);
    } else {
        must(list.count == 0 && err.code == status && err.text[0] && status != ST_INTERNAL);
    }
    token_list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {
        "", "a", "Hello  world\n 123 \xc3\xa9\xff", "<s> the</s>",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct tokenizer *tokenizer;
    struct error err = {0};
    enum status status =
        tokenizer_parse(span_of(data, size), TOKENIZER_PATTERN_CL100K, &tokenizer, &err);
    if (status != ST_OK) {
        must(status == err.code && err.text[0] != '\0' && status != ST_INTERNAL);
        return 0;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_text(tokenizer, span_str(texts[i]));
    }
    check_text(tokenizer, span_of(data, size < 512 ? size : 512));
    struct token_list all;
    token_list_init(&all);
    for (uint32_t id = 0; id < tokenizer_size(tokenizer) && id < 300; id++) {
        struct buf bytes;
        buf_init(&bytes, OUTPUT_BYTES_MAX);
        must(tokenizer_bytes(tokenizer, id, &bytes, &err) == ST_OK);
        must(token_list_add(&all, id, &err) == ST_OK);
        buf_fini(&bytes);
    }
    check_decode(tokenizer, &all);
    token_list_fini(&all);
    tokenizer_free(tokenizer);
    return 0;
}
