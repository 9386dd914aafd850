/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/query.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "protocol/number.h"
#include "server/http/percent.h"
#include "server/process/nearest.h"

#define WORD_BYTES_MAX 64
#define LIST_BYTES_MAX 256

typedef enum status read_f(const char *word, const char *value, uint32_t *out, struct error *err);

static enum status read_flag(const char *word, const char *value, uint32_t *out, struct error *err)
{
    bool is_set = strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
    *out = is_set;
    return is_set || strcmp(value, "0") == 0 || strcmp(value, "false") == 0
               ? ST_OK
               : error_set(err, ST_INVALID, "%s: expected 0 or 1, got '%s'", word, value);
}

static enum status read_order(const char *word, const char *value, uint32_t *out, struct error *err)
{
    bool is_channels_last = strcmp(value, "channels_last") == 0;
    *out = is_channels_last;
    return is_channels_last || strcmp(value, "row_major") == 0
               ? ST_OK
               : error_set(err, ST_INVALID, "%s: expected row_major or channels_last, got '%s'",
                           word, value);
}

static enum status read_number(const char *word, const char *value, uint32_t *out,
                               struct error *err)
{
    const uint8_t *at = (const uint8_t *)value, *end = at + strlen(value);
    uint64_t number;
    if (number_parse_u64(&at, end, &number) != NUMBER_OK || at != end || number > UINT32_MAX) {
        return error_set(err, ST_INVALID, "%s: expected a number up to %u, got '%s'", word,
                         UINT32_MAX, value);
    }
    *out = (uint32_t)number;
    return ST_OK;
}

static const struct {
    const char *word;
    read_f *read;
    size_t offset;
} rows[QUERY_COUNT] = {
#define QUERY(id, word, read, member) {word, read, offsetof(struct query, member)},
#include "server/daemon/infer/query.def"
#undef QUERY
};

/* ---- refusals -------------------------------------------------------------------------------- */

/* "binary, profile or top_k" */
static void list_words(const char *const *words, uint32_t count, struct buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_add_str(out, i == 0 ? "" : i + 1 == count ? " or " : ", ");
        buf_add_str(out, words[i]);
    }
    buf_add_char(out, '\0');
}

/* The words of |known|. Returns their number. */
static uint32_t take_words(uint32_t known, const char *words[QUERY_COUNT])
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < QUERY_COUNT; id++) {
        if (known & 1u << id) {
            words[count++] = rows[id].word;
        }
    }
    return count;
}

/* The word among |known| that was probably meant; NULL: none. */
static const char *find_near(const char *word, uint32_t known)
{
    const char *words[QUERY_COUNT];
    char plain[WORD_BYTES_MAX + 1];
    size_t len = strlen(word);
    for (size_t i = 0; i <= len; i++) {
        plain[i] = (char)(word[i] == '-' ? '_' : tolower((uint8_t)word[i]));
    }
    return nearest_word(plain, words, take_words(known, words));
}

/* |word| is none of |known|, and near to one of ours. */
static enum status refuse(const char *word, uint32_t known, struct error *err)
{
    const char *words[QUERY_COUNT];
    uint32_t count = take_words(known, words);
    struct buf list;
    if (count == 0) {
        return error_set(err, ST_INVALID, "query: this path takes no parameters, got '%s'", word);
    }
    const char *near = find_near(word, known);
    buf_init(&list, LIST_BYTES_MAX);
    list_words(words, count, &list);
    error_set(err, ST_INVALID, "query: expected %s, got '%s'%s%s%s",
              buf_failed(&list) ? "another parameter" : (const char *)list.ptr, word,
              near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    buf_fini(&list);
    return err->code;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static enum status take(const char *word, const char *value, uint32_t known, struct query *out,
                        struct error *err)
{
    for (uint32_t id = 0; id < QUERY_COUNT; id++) {
        uint32_t bit = 1u << id;
        if (!(known & bit) || strcmp(rows[id].word, word) != 0) {
            continue;
        }
        if (out->given & bit) {
            return error_set(err, ST_INVALID, "query: '%s' is given twice", word);
        }
        out->given |= bit;
        return rows[id].read(word, value, (uint32_t *)((char *)out + rows[id].offset), err);
    }
    return refuse(word, known, err);
}

static enum status refuse_value(const char *word, size_t max, struct error *err)
{
    return error_set(err, ST_INVALID, "query: %s: expected at most %zu characters, with valid %%XX",
                     word, max);
}

/* "name=value", or "name" with an empty one. Proxies and clients add parameters of their own, so
 * only one that was probably meant for us is looked at: otherwise nobody would see the mistake. */
static enum status parse_one(struct span text, uint32_t known, struct query *out, struct error *err)
{
    char word[WORD_BYTES_MAX + 1], value[WORD_BYTES_MAX + 1];
    const uint8_t *equals = text.len ? memchr(text.ptr, '=', text.len) : NULL;
    size_t len = equals ? (size_t)(equals - text.ptr) : text.len;
    struct span rest = equals ? span_of(equals + 1, text.len - len - 1) : span_str("");
    if (text.len == 0) {
        return ST_OK;
    }
    if (!percent_decode(span_of(text.ptr, len), word, WORD_BYTES_MAX) ||
        !find_near(word, UINT32_MAX)) {
        return ST_OK;
    }
    if (!percent_decode(rest, value, WORD_BYTES_MAX)) {
        return refuse_value(word, WORD_BYTES_MAX, err);
    }
    return take(word, value, known, out, err);
}

/* Takes the next parameter of a target that ends at |end|: |*rest| is at the "?" or "&" before it,
 * or NULL behind the last one. False: there is no more. */
static bool take_parameter(const uint8_t **rest, const uint8_t *end, struct span *out)
{
    if (!*rest) {
        return false;
    }
    const uint8_t *first = *rest + 1;
    *rest = memchr(first, '&', (size_t)(end - first));
    *out = span_of(first, (size_t)((*rest ? *rest : end) - first));
    return true;
}

/* Where the parameters of |target| begin; NULL: it has none. */
static const uint8_t *find_parameters(struct span target)
{
    return target.len ? memchr(target.ptr, '?', target.len) : NULL;
}

enum status query_find(struct span target, const char *word, char *out, size_t max,
                       struct error *err)
{
    const uint8_t *rest = find_parameters(target);
    struct span text;
    size_t len = strlen(word);
    out[0] = '\0';
    while (take_parameter(&rest, target.ptr + target.len, &text)) {
        if (text.len > len && text.ptr[len] == '=' && memcmp(text.ptr, word, len) == 0) {
            return percent_decode(span_of(text.ptr + len + 1, text.len - len - 1), out, max)
                       ? ST_OK
                       : refuse_value(word, max, err);
        }
    }
    return ST_OK;
}

enum status query_parse(struct span target, uint32_t known, struct query *out, struct error *err)
{
    const uint8_t *rest = find_parameters(target);
    struct span text;
    *out = (struct query){.given = 0};
    while (take_parameter(&rest, target.ptr + target.len, &text)) {
        TRY(parse_one(text, known, out, err));
    }
    return ST_OK;
}
