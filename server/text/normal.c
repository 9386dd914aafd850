/* SPDX-License-Identifier: MIT */
/* Normalizers: each step turns a text into another one. */
#include "config.h"

#include "base/check.h"
#include "server/text/tokenizer_priv.h"

static enum status put_form(struct encoder *encoder, const struct normal_step *step,
                            struct span text, struct buf *out)
{
    return unicode_normalize(text, step->form, &encoder->codes, out, encoder->err);
}

static void put_lower(struct span text, struct buf *out)
{
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        unicode_add_lower(out, unicode_next(text.ptr + at, &len));
    }
}

static void put_without_marks(struct span text, bool only_nonspacing, struct buf *out)
{
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code = unicode_next(text.ptr + at, &len);
        if (only_nonspacing ? !unicode_is_nonspacing_mark(code) : !unicode_is_mark(code)) {
            buf_add(out, text.ptr + at, len);
        }
    }
}

static void put_stripped(struct span text, const struct normal_step *step, struct buf *out)
{
    size_t start = 0, end = text.len, len;
    while (step->strips_left && start < end) {
        if (!unicode_is_space(unicode_next(text.ptr + start, &len))) {
            break;
        }
        start += len;
    }
    while (step->strips_right && start < end) {
        len = unicode_last_len(span_of(text.ptr, end));
        size_t ignored;
        if (!unicode_is_space(unicode_next(text.ptr + end - len, &ignored))) {
            break;
        }
        end -= len;
    }
    buf_add(out, text.ptr + start, end - start);
}

static size_t find_literal(struct span text, size_t from, struct span literal)
{
    const void *found = literal.len && in_range(from, literal.len, text.len)
                            ? memmem(text.ptr + from, text.len - from, literal.ptr, literal.len)
                            : NULL;
    return found ? (size_t)((const uint8_t *)found - text.ptr) : SIZE_MAX;
}

static enum status put_replaced(struct encoder *encoder, const struct normal_step *step,
                                struct span text, struct buf *out)
{
    size_t at = 0, from = 0, start, end = 0, len;
    while (from <= text.len) {
        if (step->pattern) {
            TRY(pattern_find(step->pattern, &encoder->scratch, text, from, &start, &end,
                             encoder->err));
        } else {
            start = find_literal(text, from, step->literal);
            end = start == SIZE_MAX ? 0 : start + step->literal.len;
        }
        if (start == SIZE_MAX) {
            break;
        }
        buf_add(out, text.ptr + at, start - at);
        buf_add(out, step->content.ptr, step->content.len);
        at = from = end;
        if (start == end) { /* an empty match: go on behind the next character */
            if (end == text.len) {
                break;
            }
            (void)unicode_next(text.ptr + end, &len);
            buf_add(out, text.ptr + end, len);
            at = from = end + len;
        }
    }
    buf_add(out, text.ptr + at, text.len - at);
    return ST_OK;
}

/* The length of the grapheme at |at|. */
static size_t grapheme_len(struct span text, size_t at)
{
    int32_t state = 0;
    size_t len, next_len, end;
    uint32_t left = unicode_next(text.ptr + at, &len);
    for (end = at + len; end < text.len; end += next_len) {
        uint32_t right = unicode_next(text.ptr + end, &next_len);
        bool is_plain = left < 0x80 && right < 0x80;
        if (is_plain ? !(left == '\r' && right == '\n')
                     : unicode_is_boundary(left, right, &state)) {
            break;
        }
        left = right;
    }
    return end - at;
}

/* As the Python library does it: a short grapheme that begins with an entry of the map is replaced
 * as a whole by the shortest such entry, and so is each character of the others. */
static void put_mapped(struct span text, const struct charsmap *map, struct buf *out)
{
    struct span replacement;
    for (size_t at = 0, len; at < text.len; at += len) {
        len = grapheme_len(text, at);
        if (len < 6 && charsmap_shortest(map, span_of(text.ptr + at, len), &replacement)) {
            buf_add(out, replacement.ptr, replacement.len);
            continue;
        }
        for (size_t i = 0, char_len; i < len; i += char_len) {
            (void)unicode_next(text.ptr + at + i, &char_len);
            struct span part = span_of(text.ptr + at + i, char_len);
            if (charsmap_shortest(map, part, &replacement)) {
                part = replacement;
            }
            buf_add(out, part.ptr, part.len);
        }
    }
}

static void put_nmt(struct span text, struct buf *out)
{
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code = unicode_next(text.ptr + at, &len);
        if ((code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) ||
            code == 0x7f || code == 0x8f || code == 0x9f) {
            continue;
        }
        bool is_blank = code == 9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
                        (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 ||
                        code == 0x2581 || code == 0xfeff || code == 0xfffd;
        unicode_add(out, is_blank ? ' ' : code);
    }
}

static void put_clean(struct span text, struct buf *out)
{
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code = unicode_next(text.ptr + at, &len);
        bool is_break = code == '\t' || code == '\n' || code == '\r';
        if (code == 0 || code == 0xfffd || (!is_break && unicode_is_other(code))) {
            continue;
        }
        if (is_break || unicode_is_space(code)) {
            buf_add_char(out, ' ');
        } else {
            buf_add(out, text.ptr + at, len);
        }
    }
}

static bool is_chinese(uint32_t code)
{
    return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
           (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
           (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
           (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

static void put_chinese(struct span text, struct buf *out)
{
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        bool is_apart = is_chinese(unicode_next(text.ptr + at, &len));
        if (is_apart) {
            buf_add_char(out, ' ');
        }
        buf_add(out, text.ptr + at, len);
        if (is_apart) {
            buf_add_char(out, ' ');
        }
    }
}

static enum status put_bert_accents(struct encoder *encoder, struct span text, struct buf *out)
{
    buf_reset(&encoder->word);
    TRY(unicode_normalize(text, UNICODE_NFD, &encoder->codes, &encoder->word, encoder->err));
    put_without_marks(buf_span(&encoder->word), true, out);
    return encoder_check(encoder, &encoder->word);
}

static enum status run_step(struct encoder *encoder, const struct normal_step *step,
                            struct span text, struct buf *out)
{
    switch (step->kind) {
    case NORMAL_FORM:
        return put_form(encoder, step, text, out);
    case NORMAL_LOWERCASE:
        put_lower(text, out);
        return ST_OK;
    case NORMAL_STRIP_ACCENTS:
        put_without_marks(text, false, out);
        return ST_OK;
    case NORMAL_STRIP:
        put_stripped(text, step, out);
        return ST_OK;
    case NORMAL_REPLACE:
        return put_replaced(encoder, step, text, out);
    case NORMAL_PREPEND:
        buf_add(out, step->content.ptr, text.len ? step->content.len : 0);
        buf_add(out, text.ptr, text.len);
        return ST_OK;
    case NORMAL_CHARSMAP:
        put_mapped(text, step->charsmap, out);
        return ST_OK;
    case NORMAL_NMT:
        put_nmt(text, out);
        return ST_OK;
    case NORMAL_BYTES:
        byte_level_add(out, text);
        return ST_OK;
    case NORMAL_BERT_CLEAN:
        put_clean(text, out);
        return ST_OK;
    case NORMAL_BERT_CHINESE:
        put_chinese(text, out);
        return ST_OK;
    case NORMAL_BERT_ACCENTS:
        return put_bert_accents(encoder, text, out);
    }
    unreachable();
}

enum status normal_run(struct encoder *encoder, struct span text, struct span *out)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        struct buf *to = &encoder->normal[i % 2];
        buf_reset(to);
        TRY(run_step(encoder, &tokenizer->normal[i], text, to));
        TRY(encoder_check(encoder, to));
        text = buf_span(to);
    }
    *out = text;
    return ST_OK;
}
