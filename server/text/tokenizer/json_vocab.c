/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/json_vocab.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "protocol/json.h"
#include "protocol/number.h"

#define DEPTH_MAX 64

/* ---- finding --------------------------------------------------------------------------------- */

struct cursor {
    const uint8_t *at, *end;
};

static void skip_blanks(struct cursor *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t')) {
        in->at++;
    }
}

static bool skip_char(struct cursor *in, char c)
{
    skip_blanks(in);
    if (in->at == in->end || *in->at != (uint8_t)c) {
        return false;
    }
    in->at++;
    return true;
}

/* Behind the string that opens at |at|; false: it has no end. */
static bool skip_string(struct cursor *in)
{
    const uint8_t *at = in->at + 1;
    while (at < in->end && *at != '"') {
        at += *at == '\\' ? 2 : 1;
    }
    in->at = at < in->end ? at + 1 : in->end;
    return at < in->end;
}

/* Only brackets and strings are recognised. */
static bool skip_value(struct cursor *in)
{
    size_t depth = 0;
    skip_blanks(in);
    while (in->at < in->end) {
        uint8_t c = *in->at;
        if (c == '"') {
            if (!skip_string(in)) {
                return false;
            }
            if (depth == 0) {
                return true;
            }
            continue;
        }
        if ((c == ',' || c == '}' || c == ']') && depth == 0) {
            return true; /* behind a number or a word */
        }
        depth += c == '{' || c == '[';
        if (c == '}' || c == ']') {
            depth--;
            if (depth == 0) {
                in->at++;
                return true;
            }
        }
        in->at++;
    }
    return false;
}

/* The value of the member |name| of the object at |in|; empty: there is none. */
static struct span find_member(struct cursor in, const char *name)
{
    if (!skip_char(&in, '{')) {
        return span_of(NULL, 0);
    }
    while (skip_blanks(&in), in.at < in.end && *in.at == '"') {
        const uint8_t *key = in.at + 1;
        if (!skip_string(&in)) {
            break;
        }
        bool is_it = span_is(span_of(key, (size_t)(in.at - key - 1)), name);
        if (!skip_char(&in, ':')) {
            break;
        }
        skip_blanks(&in);
        const uint8_t *value = in.at;
        if (!skip_value(&in)) {
            break;
        }
        if (is_it) {
            return span_of(value, (size_t)(in.at - value));
        }
        if (!skip_char(&in, ',')) {
            break;
        }
    }
    return span_of(NULL, 0);
}

static bool is_structure(struct span value)
{
    return value.len > 0 && (value.ptr[0] == '{' || value.ptr[0] == '[');
}

void json_vocab_find(struct span file, struct json_vocab *out)
{
    *out = (struct json_vocab){.file = file};
    struct span model = find_member((struct cursor){file.ptr, file.ptr + file.len}, "model");
    struct cursor in = {model.ptr, model.ptr + model.len};
    if (model.len > 0) {
        struct span vocab = find_member(in, "vocab"), merges = find_member(in, "merges");
        out->vocab = is_structure(vocab) ? vocab : out->vocab;
        out->merges = is_structure(merges) ? merges : out->merges;
    }
}

static void blank(uint8_t *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == '\n' ? '\n' : ' ';
    }
    text[0] = '0';
}

enum status json_vocab_blank(const struct json_vocab *vocab, struct buf *out, struct error *err)
{
    buf_add(out, vocab->file.ptr, vocab->file.len);
    if (buf_failed(out)) {
        return error_set(err, out->lacks_memory ? ST_EXHAUSTED : ST_TOO_LARGE,
                         "the file has more than %zu bytes, or no memory is left for it",
                         out->max_bytes);
    }
    if (vocab->vocab.len) {
        blank(out->ptr + (vocab->vocab.ptr - vocab->file.ptr), vocab->vocab.len);
    }
    if (vocab->merges.len) {
        blank(out->ptr + (vocab->merges.ptr - vocab->file.ptr), vocab->merges.len);
    }
    return ST_OK;
}

bool json_vocab_is_list(const struct json_vocab *vocab)
{
    return vocab->vocab.len > 0 && vocab->vocab.ptr[0] == '[';
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads one of the members. */
struct reader {
    struct cursor in;
    const struct json_vocab *vocab;
    const char *path;
    struct buf text; /* of a string with escapes */
    struct buf more; /* of the second one */
    struct error *err;
};

/* Puts the path in front of the text in |err|, and the place behind it. */
static enum status place(struct reader *reader, enum status code, const uint8_t *at)
{
    char what[ERROR_TEXT_MAX];
    size_t line = 1, column = 1;
    snprintf(what, sizeof(what), "%s", reader->err ? reader->err->text : "");
    for (const uint8_t *p = reader->vocab->file.ptr; p < at; p++) {
        column = *p == '\n' ? 1 : column + ((*p & 0xc0) != 0x80);
        line += *p == '\n';
    }
    return error_set(reader->err, code, "%s: %.200s (line %zu, column %zu)", reader->path, what,
                     line, column);
}

static enum status fail(struct reader *reader, enum status code, const uint8_t *at, const char *fmt,
                        ...) __attribute__((format(printf, 4, 5)));
static enum status fail(struct reader *reader, enum status code, const uint8_t *at, const char *fmt,
                        ...)
{
    va_list args;
    va_start(args, fmt);
    (void)error_setv(reader->err, code, fmt, args);
    va_end(args);
    return place(reader, code, at);
}

static enum status need_char(struct reader *reader, char c, const char *what)
{
    if (!skip_char(&reader->in, c)) {
        return fail(reader, ST_CORRUPT, reader->in.at, "expected %s", what);
    }
    return ST_OK;
}

/* Is there another item? Goes behind the comma, or behind the closing bracket. */
static enum status next_item(struct reader *reader, char close, bool *is_begun, bool *out_is_end)
{
    *out_is_end = skip_char(&reader->in, close);
    if (!*out_is_end && *is_begun) {
        TRY(need_char(reader, ',', "',' or the end"));
    }
    *is_begun = true;
    return ST_OK;
}

static enum status read_string(struct reader *reader, struct buf *buf, struct span *out)
{
    struct json_string string;
    skip_blanks(&reader->in);
    const uint8_t *start = reader->in.at;
    if (start == reader->in.end || *start != '"') {
        return fail(reader, ST_CORRUPT, start, "expected a string");
    }
    const char *wrong = json_string_scan(&reader->in.at, reader->in.end, &string);
    if (wrong) {
        return fail(reader, ST_CORRUPT, reader->in.at, "%s", wrong);
    }
    *out = string.raw;
    if (string.bytes != string.raw.len) {
        buf_reset(buf);
        uint8_t *to = buf_reserve(buf, string.bytes + 1);
        if (!to) {
            return fail(reader, buf->lacks_memory ? ST_EXHAUSTED : ST_TOO_LARGE, start,
                        "no memory for a token of %zu bytes", string.bytes);
        }
        json_string_decode(&string, to);
        *out = span_of(to, string.bytes);
    }
    return ST_OK;
}

static enum status read_id(struct reader *reader, uint32_t *out)
{
    skip_blanks(&reader->in);
    const uint8_t *start = reader->in.at;
    uint64_t value = 0;
    while (reader->in.at < reader->in.end && *reader->in.at >= '0' && *reader->in.at <= '9' &&
           value <= UINT32_MAX) {
        value = value * 10 + (uint64_t)(*reader->in.at++ - '0');
    }
    if (reader->in.at == start || value >= VOCAB_TOKENS_MAX) {
        return fail(reader, ST_CORRUPT, start, "expected an id below %u", VOCAB_TOKENS_MAX);
    }
    *out = (uint32_t)value;
    return ST_OK;
}

static void open_reader(struct reader *reader, const struct json_vocab *vocab, struct span member,
                        const char *path, struct error *err)
{
    *reader = (struct reader){
        .in = {member.ptr, member.ptr + member.len}, .vocab = vocab, .path = path, .err = err};
    buf_init(&reader->text, VOCAB_BYTES_MAX);
    buf_init(&reader->more, VOCAB_BYTES_MAX);
}

static void close_reader(struct reader *reader)
{
    buf_fini(&reader->text);
    buf_fini(&reader->more);
}

static enum status add_token(struct reader *reader, struct vocab *out, uint32_t id,
                             struct span text, const uint8_t *at)
{
    enum status status = vocab_add(out, id, text, reader->err);
    return status == ST_OK ? ST_OK : place(reader, status, at);
}

/* A file with few tokens and a large id would take memory for all ids between. */
static bool is_far(uint32_t id, size_t member_bytes)
{
    return id > member_bytes + 65536;
}

static enum status read_ids(struct reader *reader, struct vocab *out)
{
    bool is_begun = false, is_end;
    size_t member_bytes = (size_t)(reader->in.end - reader->in.at);
    TRY(need_char(reader, '{', "an object of tokens and ids"));
    while (true) {
        struct span text;
        uint32_t id = 0;
        TRY(next_item(reader, '}', &is_begun, &is_end));
        if (is_end) {
            return ST_OK;
        }
        skip_blanks(&reader->in);
        const uint8_t *at = reader->in.at;
        TRY(read_string(reader, &reader->text, &text));
        TRY(need_char(reader, ':', "':'"));
        TRY(read_id(reader, &id));
        if (is_far(id, member_bytes)) {
            return fail(reader, ST_CORRUPT, at, "token '%.*s' has id %u, but there are few tokens",
                        SPAN_SHORT(text), id);
        }
        TRY(add_token(reader, out, id, text, at));
    }
}

enum status json_vocab_read_ids(const struct json_vocab *vocab, struct vocab *out,
                                struct error *err)
{
    struct reader reader;
    open_reader(&reader, vocab, vocab->vocab, "model.vocab", err);
    /* An entry has at least 6 bytes besides its token; most have 15 to 30. */
    enum status status = vocab_reserve(
        out,
        vocab->vocab.len / 20 > VOCAB_TOKENS_MAX ? VOCAB_TOKENS_MAX
                                                 : (uint32_t)(vocab->vocab.len / 20),
        vocab->vocab.len / 2 > VOCAB_BYTES_MAX ? VOCAB_BYTES_MAX : vocab->vocab.len / 2, err);
    status = status == ST_OK ? read_ids(&reader, out) : status;
    close_reader(&reader);
    return status;
}

/* 10 to the |exponent|, the nearest double; 0 to 308 or more. */
static double power_of_ten(int exponent)
{
    char text[8];
    double power = 0;
    int len = snprintf(text, sizeof(text), "1e%d", exponent > 308 ? 308 : exponent);
    const uint8_t *digits = (const uint8_t *)text;
    (void)number_read_f64(digits, digits + len, &power);
    return power;
}

/* As the Python library's reader of numbers does it: the digits as an integer, then one division or
 * multiplication by a power of ten. That is not always the nearest double, but scores that differ
 * in their last bit decide other ties. */
static double round_as_serde(const uint8_t *at, const uint8_t *end)
{
    uint64_t digits = 0;
    int exponent = 0, written = 0;
    bool is_negative = *at == '-', is_fraction = false, is_full = false;
    for (at += is_negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            is_fraction = true;
            continue;
        }
        uint64_t digit = (uint64_t)(*at - '0');
        is_full |= digits > (UINT64_MAX - digit) / 10;
        if (!is_full) {
            digits = digits * 10 + digit;
        }
        exponent += is_full ? !is_fraction : -(int)is_fraction;
    }
    bool is_down = at + 1 < end && at[1] == '-';
    for (at += at < end; at < end; at++) {
        written = *at >= '0' && *at <= '9' && written < 1000 ? written * 10 + (*at - '0') : written;
    }
    exponent += is_down ? -written : written;
    double value = (double)digits;
    for (; exponent < -308; exponent += 308) {
        value /= 1e308;
    }
    double power = power_of_ten(exponent < 0 ? -exponent : exponent);
    value = exponent < 0 ? value / power : value * power;
    return is_negative ? -value : value;
}

static enum status read_score(struct reader *reader, double *out)
{
    skip_blanks(&reader->in);
    const uint8_t *start = reader->in.at;
    const uint8_t *end = number_read_f64(start, reader->in.end, out);
    if (!end || !isfinite(*out)) {
        return fail(reader, ST_CORRUPT, start, "expected the score of a token");
    }
    *out = round_as_serde(start, end);
    reader->in.at = end;
    return ST_OK;
}

static enum status read_scores(struct reader *reader, struct vocab *out, struct token_model *model)
{
    bool is_begun = false, is_end;
    size_t capacity = 0;
    TRY(need_char(reader, '[', "a list of tokens and scores"));
    for (uint32_t id = 0;; id++) {
        struct span text;
        TRY(next_item(reader, ']', &is_begun, &is_end));
        if (is_end) {
            return ST_OK;
        }
        if (!ARRAY_ROOM(model->scores, capacity, (size_t)id + 1)) {
            return fail(reader, ST_EXHAUSTED, reader->in.at, "no memory for the scores");
        }
        TRY(need_char(reader, '[', "a token and its score"));
        const uint8_t *at = reader->in.at;
        TRY(read_string(reader, &reader->text, &text));
        TRY(need_char(reader, ',', "','"));
        TRY(read_score(reader, &model->scores[id]));
        TRY(need_char(reader, ']', "']'"));
        /* Trainers write special tokens a second time, and the Python library finds that one. */
        enum status status = vocab_add_again(out, id, text, reader->err);
        if (status != ST_OK) {
            return place(reader, status, at);
        }
    }
}

enum status json_vocab_read_scores(const struct json_vocab *vocab, struct vocab *out,
                                   struct token_model *model, struct error *err)
{
    struct reader reader;
    open_reader(&reader, vocab, vocab->vocab, "model.vocab", err);
    enum status status = read_scores(&reader, out, model);
    close_reader(&reader);
    return status;
}

static enum status find_token(struct reader *reader, const struct vocab *tokens, struct span text,
                              const uint8_t *at, uint32_t *out)
{
    *out = vocab_find(tokens, text);
    return *out == VOCAB_NONE
               ? fail(reader, ST_CORRUPT, at,
                      "the merge has '%.*s', which is not in the vocabulary", SPAN_SHORT(text))
               : ST_OK;
}

/* The line of a merges.txt that says its version. The library passes over it anywhere in a list. */
static bool is_version(struct span line)
{
    static const char start[] = "#version";
    return line.len >= sizeof(start) - 1 && memcmp(line.ptr, start, sizeof(start) - 1) == 0;
}

/* Both sides are empty if the line is no merge. */
static enum status read_sides(struct reader *reader, struct span sides[2])
{
    skip_blanks(&reader->in);
    const uint8_t *at = reader->in.at;
    if (at < reader->in.end && *at == '[') {
        reader->in.at++;
        TRY(read_string(reader, &reader->text, &sides[0]));
        TRY(need_char(reader, ',', "','"));
        TRY(read_string(reader, &reader->more, &sides[1]));
        return need_char(reader, ']', "']'");
    }
    struct span both;
    TRY(read_string(reader, &reader->text, &both));
    if (is_version(both)) {
        sides[0] = sides[1] = span_of(NULL, 0);
        return ST_OK;
    }
    const uint8_t *blank = both.len ? memchr(both.ptr, ' ', both.len) : NULL;
    size_t left = blank ? (size_t)(blank - both.ptr) : 0;
    if (!blank || memchr(blank + 1, ' ', both.len - left - 1)) {
        return fail(reader, ST_CORRUPT, at, "expected two tokens with a blank between, got '%.*s'",
                    SPAN_SHORT(both));
    }
    sides[0] = span_of(both.ptr, left);
    sides[1] = span_of(blank + 1, both.len - left - 1);
    return ST_OK;
}

static enum status read_merge(struct reader *reader, const struct vocab *tokens,
                              struct token_model *model, struct buf *joined, uint32_t rank)
{
    struct span sides[2];
    uint32_t left, right, id;
    skip_blanks(&reader->in);
    const uint8_t *at = reader->in.at;
    TRY(read_sides(reader, sides));
    if (sides[0].len + sides[1].len == 0) {
        return ST_OK;
    }
    TRY(find_token(reader, tokens, sides[0], at, &left));
    TRY(find_token(reader, tokens, sides[1], at, &right));
    if (sides[1].len < model->prefix.len) {
        return fail(reader, ST_CORRUPT, at, "'%.*s' is shorter than the prefix of parts of words",
                    SPAN_SHORT(sides[1]));
    }
    buf_reset(joined);
    buf_add(joined, sides[0].ptr, sides[0].len);
    buf_add(joined, sides[1].ptr + model->prefix.len, sides[1].len - model->prefix.len);
    if (buf_failed(joined)) {
        return fail(reader, ST_EXHAUSTED, at, "no memory for a merge");
    }
    TRY(find_token(reader, tokens, buf_span(joined), at, &id));
    enum status status = bpe_add_merge(model, tokens->seed, left, right, rank, id, reader->err);
    return status == ST_OK ? ST_OK : place(reader, status, at);
}

static enum status read_merges(struct reader *reader, const struct vocab *tokens,
                               struct token_model *model, struct buf *joined)
{
    bool is_begun = false, is_end;
    TRY(need_char(reader, '[', "a list of merges"));
    for (uint32_t rank = 0;; rank++) {
        TRY(next_item(reader, ']', &is_begun, &is_end));
        if (is_end) {
            return ST_OK;
        }
        TRY(read_merge(reader, tokens, model, joined, rank));
    }
}

enum status json_vocab_read_merges(const struct json_vocab *vocab, const struct vocab *tokens,
                                   struct token_model *model, struct error *err)
{
    struct reader reader;
    struct buf joined;
    open_reader(&reader, vocab, vocab->merges, "model.merges", err);
    buf_init(&joined, VOCAB_BYTES_MAX);
    enum status status = bpe_reserve(model, vocab->merges.len / 16, err);
    status = status == ST_OK ? read_merges(&reader, tokens, model, &joined) : status;
    buf_fini(&joined);
    close_reader(&reader);
    return status;
}
