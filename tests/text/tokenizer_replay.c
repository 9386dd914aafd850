/* SPDX-License-Identifier: MIT */
/*
 * For contrib/export/text.py: a tokenizer on many texts.
 *
 *     tokenizer_replay FILE PATTERN FLAGS
 *
 * Standard input has the texts, each behind its length (32 bits, little-endian). For each text
 * standard output gets the number of tokens and the tokens (32 bits each), the text that they
 * decode to and the same without special tokens, each behind its length. Decoding one by one must
 * give the same. A number of 0xffffffff says that the text was refused; then its reason follows as
 * a text. With FLAGS + 256 nothing but the seconds for loading, encoding and decoding all texts is
 * printed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "server/text/tokenizer/tokenizer.h"

#define FLAG_TIME 256u
#define ROUNDS 3

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void put_u32(uint32_t value)
{
    must(fwrite(&value, 4, 1, stdout) == 1);
}

static void put_bytes(struct span bytes)
{
    put_u32((uint32_t)bytes.len);
    must(fwrite(bytes.ptr, 1, bytes.len, stdout) == bytes.len);
}

static void decode(const struct tokenizer *tokenizer, const struct token_list *list, bool skips)
{
    struct error err;
    struct buf whole, parts;
    struct tokenizer_stream stream;
    buf_init(&whole, (size_t)1 << 30);
    buf_init(&parts, (size_t)1 << 30);
    must(tokenizer_decode(tokenizer, list->ids, list->count, skips, &whole, &err) == ST_OK);
    tokenizer_stream_init(&stream, tokenizer, skips);
    for (size_t i = 0; i < list->count; i++) {
        must(tokenizer_stream_push(&stream, list->ids[i], &parts, &err) == ST_OK);
    }
    must(tokenizer_stream_end(&stream, &parts, &err) == ST_OK);
    tokenizer_stream_fini(&stream);
    must(span_equal(buf_span(&whole), buf_span(&parts)));
    put_bytes(buf_span(&whole));
    buf_fini(&whole);
    buf_fini(&parts);
}

static void answer(const struct tokenizer *tokenizer, struct span text, unsigned flags)
{
    struct error err;
    struct token_list list;
    token_list_init(&list);
    if (tokenizer_encode(tokenizer, text, flags, SIZE_MAX, &list, &err) != ST_OK) {
        put_u32(UINT32_MAX);
        put_bytes(span_str(err.text));
        token_list_fini(&list);
        return;
    }
    put_u32((uint32_t)list.count);
    must(fwrite(list.ids, 4, list.count, stdout) == list.count);
    decode(tokenizer, &list, false);
    decode(tokenizer, &list, true);
    token_list_fini(&list);
}

/* All texts, their places, one behind the other. */
struct texts {
    struct buf bytes;
    size_t at;
};

static bool next_text(struct texts *texts, struct span *out)
{
    if (texts->at == texts->bytes.len) {
        return false;
    }
    size_t len = load_le32(texts->bytes.ptr + texts->at);
    *out = span_of(texts->bytes.ptr + texts->at + 4, len);
    texts->at += 4 + len;
    return true;
}

static void measure(const struct tokenizer *tokenizer, struct texts *texts, unsigned flags,
                    double load_s)
{
    double encode_s = 1e9, decode_s = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double encoded = 0, decoded = 0;
        struct span text;
        for (texts->at = 0; next_text(texts, &text);) {
            struct token_list list;
            struct error err;
            struct buf out;
            token_list_init(&list);
            buf_init(&out, (size_t)1 << 30);
            double start = now();
            must(tokenizer_encode(tokenizer, text, flags, SIZE_MAX, &list, &err) == ST_OK);
            double middle = now();
            must(tokenizer_decode(tokenizer, list.ids, list.count, false, &out, &err) == ST_OK);
            decoded += now() - middle;
            encoded += middle - start;
            token_list_fini(&list);
            buf_fini(&out);
        }
        encode_s = encoded < encode_s ? encoded : encode_s;
        decode_s = decoded < decode_s ? decoded : decode_s;
    }
    printf("%.6f %.6f %.6f\n", load_s, encode_s, decode_s);
}

int main(int argc, char **argv)
{
    enum tokenizer_pattern pattern;
    struct tokenizer *tokenizer;
    struct error err;
    struct texts texts = {.at = 0};
    struct span text;
    uint8_t bytes[65536];
    size_t len;
    if (argc != 4 || !tokenizer_pattern_find(argv[2], &pattern)) {
        fprintf(stderr, "usage: tokenizer_replay FILE PATTERN FLAGS\n");
        return 64;
    }
    unsigned flags = (unsigned)strtoul(argv[3], NULL, 10);
    double start = now();
    if (tokenizer_load_pattern(argv[1], pattern, &tokenizer, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 65;
    }
    double load_s = now() - start;
    buf_init(&texts.bytes, (size_t)1 << 30);
    while ((len = fread(bytes, 1, sizeof(bytes), stdin)) > 0) {
        buf_add(&texts.bytes, bytes, len);
    }
    must(!buf_failed(&texts.bytes));
    if (flags & FLAG_TIME) {
        measure(tokenizer, &texts, flags & 3, load_s);
    } else {
        while (next_text(&texts, &text)) {
            answer(tokenizer, text, flags);
        }
    }
    buf_fini(&texts.bytes);
    tokenizer_free(tokenizer);
    return 0;
}
