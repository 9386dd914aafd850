/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/text/tokenizer/tokenizer.h"

#define WORDS_MAGIC 0x776f7264u

/* words_bytes_max() counts at least so many bytes for a token, however short the vocabulary's
 * tokens are. */
#define TOKEN_BYTES_MIN 256

struct words {
    uint32_t magic;
    struct tokenizer *tokenizer; /* owned; NULL: they are bytes */
};

struct words_stream {
    const struct words *words; /* borrowed */
    struct tokenizer_stream tokens;
    uint8_t held[4]; /* of bytes: the beginning of a character */
    uint32_t held_count;
};

/* ---- life ------------------------------------------------------------------------------------ */

enum status words_new_bytes(struct words **out, struct error *err)
{
    struct words *words = calloc(1, sizeof(*words));
    if (!words) {
        return error_no_memory(err, "words");
    }
    words->magic = WORDS_MAGIC;
    *out = words;
    return ST_OK;
}

enum status words_load(const char *path, struct words **out, struct error *err)
{
    struct tokenizer *tokenizer;
    TRY(tokenizer_load(path, &tokenizer, err));
    if (words_new_bytes(out, err) != ST_OK) {
        tokenizer_free(tokenizer);
        return err->code;
    }
    (*out)->tokenizer = tokenizer;
    return ST_OK;
}

void words_free(struct words *words)
{
    if (words) {
        OBJ_CHECK(words, WORDS_MAGIC);
        if (words->tokenizer) {
            tokenizer_free(words->tokenizer);
        }
        words->magic = 0;
        free(words);
    }
}

bool words_are_same(const struct words *a, const struct words *b)
{
    OBJ_CHECK(a, WORDS_MAGIC);
    OBJ_CHECK(b, WORDS_MAGIC);
    return a->tokenizer && b->tokenizer ? tokenizer_is_same(a->tokenizer, b->tokenizer)
                                        : a->tokenizer == b->tokenizer;
}

uint32_t words_count(const struct words *words)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    return words->tokenizer ? tokenizer_size(words->tokenizer) : WORDS_BYTES;
}

size_t words_bytes_max(const struct words *words, uint32_t count)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    uint32_t longest = words->tokenizer ? tokenizer_longest(words->tokenizer) : 1;
    longest = longest > TOKEN_BYTES_MIN ? longest : TOKEN_BYTES_MIN;
    return (size_t)count * longest;
}

enum status words_verify_bytes(const struct words *words, struct span text, uint32_t max,
                               struct error *err)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    size_t most = words_bytes_max(words, max);
    return text.len <= most
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "it has %zu bytes, expected at most %u tokens, which are at most %zu "
                           "bytes",
                           text.len, max, most);
}

/* ---- whole texts ----------------------------------------------------------------------------- */

static enum status encode_tokens(const struct words *words, struct span text, bool is_raw,
                                 struct words_room *room, struct error *err)
{
    struct token_list list;
    unsigned flags = TOKENIZER_PARSE_SPECIAL | (is_raw ? 0 : TOKENIZER_ADD_SPECIAL);
    token_list_init(&list);
    enum status status =
        tokenizer_encode(words->tokenizer, text, flags, WORDS_COUNT_MAX, &list, err);
    if (status == ST_OK) {
        size_t stored = list.count < room->max ? list.count : room->max;
        room->count = (uint32_t)list.count;
        if (stored > 0) {
            memcpy(room->ids, list.ids, stored * sizeof(room->ids[0]));
        }
    }
    if (status == ST_TOO_LARGE) {
        room->count = WORDS_COUNT_MAX + 1;
        status = ST_OK;
    }
    token_list_fini(&list);
    return status;
}

enum status words_encode(const struct words *words, struct span text, bool is_raw,
                         struct words_room *room, struct error *err)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    if (words->tokenizer) {
        return encode_tokens(words, text, is_raw, room, err);
    }
    room->count = text.len < UINT32_MAX ? (uint32_t)text.len : UINT32_MAX;
    for (uint32_t i = 0; i < room->count && i < room->max; i++) {
        room->ids[i] = text.ptr[i];
    }
    return ST_OK;
}

static enum status encode_pair(const struct tokenizer *tokenizer, const struct span *texts,
                               uint32_t count, unsigned flags, struct token_list *out,
                               size_t *out_second, struct error *err)
{
    if (count == 2) {
        return tokenizer_encode_pair(tokenizer, texts, flags, WORDS_COUNT_MAX, out, out_second,
                                     err);
    }
    TRY(tokenizer_encode(tokenizer, texts[0], flags, WORDS_COUNT_MAX, out, err));
    *out_second = out->count;
    return ST_OK;
}

enum status words_encode_texts(const struct words *words, const struct span *texts, uint32_t count,
                               bool is_plain, struct token_list *out, size_t *out_second,
                               struct error *err)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    must(count == 1 || count == 2);
    unsigned flags = TOKENIZER_PARSE_SPECIAL | (is_plain ? 0 : TOKENIZER_ADD_SPECIAL);
    if (words->tokenizer) {
        return encode_pair(words->tokenizer, texts, count, flags, out, out_second, err);
    }
    for (uint32_t t = 0; t < count; t++) {
        *out_second = out->count;
        for (size_t i = 0; i < texts[t].len; i++) {
            TRY(token_list_add(out, texts[t].ptr[i], err));
        }
    }
    *out_second = count == 2 ? *out_second : out->count;
    return ST_OK;
}

uint32_t words_pad(const struct words *words)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    uint32_t id = 0;
    return words->tokenizer && tokenizer_find_role(words->tokenizer, TOKENIZER_PAD, &id) ? id : 0;
}

enum status words_bytes(const struct words *words, uint32_t id, struct buf *out, struct error *err)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    if (words->tokenizer && tokenizer_is_special(words->tokenizer, id)) {
        struct span text = tokenizer_text(words->tokenizer, id);
        buf_add(out, text.ptr, text.len);
        return ST_OK;
    }
    if (words->tokenizer) {
        return tokenizer_bytes(words->tokenizer, id, out, err);
    }
    if (id < WORDS_BYTES) {
        buf_add_char(out, (char)id);
    }
    return ST_OK;
}

bool words_is_special(const struct words *words, uint32_t id)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    return words->tokenizer && tokenizer_is_special(words->tokenizer, id);
}

bool words_find(const struct words *words, struct span text, uint32_t *out_id)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    if (words->tokenizer) {
        return tokenizer_find(words->tokenizer, text, out_id);
    }
    *out_id = text.len == 1 ? text.ptr[0] : 0;
    return text.len == 1;
}

enum status words_decode(const struct words *words, const uint32_t *ids, uint32_t count,
                         struct buf *out, struct error *err)
{
    OBJ_CHECK(words, WORDS_MAGIC);
    struct words_stream *stream;
    TRY(words_stream_new(words, &stream, err));
    enum status status = ST_OK;
    for (uint32_t i = 0; status == ST_OK && i < count; i++) {
        status = words_stream_push(stream, ids[i], out, err);
    }
    status = status == ST_OK ? words_stream_end(stream, out, err) : status;
    words_stream_free(stream);
    return status;
}

/* ---- ids that come one by one ---------------------------------------------------------------- */

enum status words_stream_new(const struct words *words, struct words_stream **out,
                             struct error *err)
{
    struct words_stream *stream = calloc(1, sizeof(*stream));
    *out = stream;
    if (!stream) {
        return error_no_memory(err, "words");
    }
    stream->words = words;
    if (words->tokenizer) {
        tokenizer_stream_init(&stream->tokens, words->tokenizer, true);
    }
    return ST_OK;
}

void words_stream_free(struct words_stream *stream)
{
    if (stream && stream->words->tokenizer) {
        tokenizer_stream_fini(&stream->tokens);
    }
    free(stream);
}

static void add_replacement(struct buf *out)
{
    buf_add_str(out, "\xef\xbf\xbd");
}

/* The bytes that a character with this first byte has; 0: none begins with it. */
static uint32_t length_of(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }
    return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* May |next| follow the |count| held bytes of a character (RFC 3629, section 4)? */
static bool may_follow(const uint8_t *held, uint32_t count, uint8_t next)
{
    uint8_t least = 0x80, most = 0xbf;
    if (count == 1) {
        least = held[0] == 0xe0 ? 0xa0 : held[0] == 0xf0 ? 0x90 : least;
        most = held[0] == 0xed ? 0x9f : held[0] == 0xf4 ? 0x8f : most;
    }
    return next >= least && next <= most;
}

static void push_byte(struct words_stream *stream, uint8_t byte, struct buf *out)
{
    if (stream->held_count && !may_follow(stream->held, stream->held_count, byte)) {
        add_replacement(out);
        stream->held_count = 0;
    }
    if (!stream->held_count && !length_of(byte)) {
        add_replacement(out);
        return;
    }
    stream->held[stream->held_count++] = byte;
    if (stream->held_count == length_of(stream->held[0])) {
        buf_add(out, stream->held, stream->held_count);
        stream->held_count = 0;
    }
}

enum status words_stream_push(struct words_stream *stream, uint32_t id, struct buf *out,
                              struct error *err)
{
    if (stream->words->tokenizer) {
        return tokenizer_stream_push(&stream->tokens, id, out, err);
    }
    if (id < WORDS_BYTES) {
        push_byte(stream, (uint8_t)id, out);
    }
    return ST_OK;
}

enum status words_stream_end(struct words_stream *stream, struct buf *out, struct error *err)
{
    if (stream->words->tokenizer) {
        return tokenizer_stream_end(&stream->tokens, out, err);
    }
    if (stream->held_count) {
        add_replacement(out);
        stream->held_count = 0;
    }
    return ST_OK;
}
