/* SPDX-License-Identifier: MIT */
/* Normalizers: each step turns a text into another one. */
#include "config.h"

#include "base/check.h"
#include "server/text/tokenizer/tokenizer_priv.h"

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

static struct span stripped(struct span text, const struct normal_step *step)
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
    return span_of(text.ptr + start, end - start);
}

/* What a normal form knows of the whole text. */
struct beginning {
    bool is_here; /* the whole text begins here */
    size_t len;   /* the first_len of what the form has become so far */
};

/* Each match becomes the content, which comes from the last character that it replaces, or from the
 * beginning. */
static enum status put_replaced(struct encoder *encoder, const struct normal_step *step,
                                struct span text, struct beginning *beginning, struct buf *out)
{
    struct pattern_search search;
    size_t at = 0, head = beginning->len, start, end;
    pattern_search_begin(&search, step->pattern, step->literal, text);
    do {
        TRY(pattern_search_next(&search, &encoder->scratch, &start, &end, encoder->err));
        bool is_match = start != SIZE_MAX;
        start = is_match ? start : text.len;
        buf_add(out, text.ptr + at, start - at);
        if (at < head) {
            beginning->len = out->len - first_behind(start, head);
        }
        if (!is_match) {
            return ST_OK;
        }
        buf_add(out, step->content.ptr, step->content.len);
        if (end == 0 ? beginning->is_here : end <= head) {
            beginning->len = out->len;
        }
        at = end;
    } while (true);
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

/* |beginning| is for put_replaced() only; move_first() does it for the others. */
static enum status run_step(struct encoder *encoder, const struct normal_step *step,
                            struct span text, struct beginning *beginning, struct buf *out)
{
    struct span part;
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
        part = stripped(text, step);
        buf_add(out, part.ptr, part.len);
        return ST_OK;
    case NORMAL_REPLACE:
        return put_replaced(encoder, step, text, beginning, out);
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

static size_t first_char_len(struct span text)
{
    size_t len = 0;
    if (text.len) {
        (void)unicode_next(text.ptr, &len);
    }
    return len;
}

/* The end of the character that [0, len) ends in. */
static size_t round_up(struct span text, size_t len)
{
    while (len > 0 && len < text.len && (text.ptr[len] & 0xc0) == 0x80) {
        len++;
    }
    return len;
}

/* The library knows for each character of a normal form where in the client's text it comes from.
 * What Prepend adds comes from the first character. */
static enum status move_first(struct encoder *encoder, const struct normal_step *step,
                              struct span from, struct span to, size_t *first_len)
{
    struct buf *head = &encoder->stage[0]; /* free until the text is split */
    switch (step->kind) {
    case NORMAL_STRIP:
        *first_len = first_behind(*first_len, (size_t)(stripped(from, step).ptr - from.ptr));
        return ST_OK;
    case NORMAL_PREPEND:
        if (first_char_len(from) > *first_len) {
            *first_len = first_char_len(from);
        }
        *first_len += step->content.len;
        return ST_OK;
    default:
        break;
    }
    buf_reset(head);
    struct beginning ignored = {0};
    TRY(run_step(encoder, step, span_of(from.ptr, *first_len), &ignored, head));
    TRY(encoder_check(encoder, head));
    *first_len = head->len;
    if (step->kind == NORMAL_FORM) {
        *first_len = round_up(to, *first_len); /* a mark may have joined the last character */
    } else if (step->kind == NORMAL_CHARSMAP && first_char_len(to) > *first_len) {
        *first_len = first_char_len(to); /* it forgets a character that becomes nothing */
    }
    return ST_OK;
}

enum status normal_run(struct encoder *encoder, struct span text, size_t *first_len,
                       struct span *out)
{
    const struct tokenizer *tokenizer = encoder->tokenizer;
    struct beginning beginning = {*first_len > 0, *first_len};
    for (size_t i = 0; i < tokenizer->normal_count; i++) {
        const struct normal_step *step = &tokenizer->normal[i];
        struct buf *to = &encoder->normal[i % 2];
        buf_reset(to);
        TRY(run_step(encoder, step, text, &beginning, to));
        TRY(encoder_check(encoder, to));
        if (tokenizer->marks_first && beginning.len > 0 && step->kind != NORMAL_REPLACE) {
            TRY(move_first(encoder, step, text, buf_span(to), &beginning.len));
        }
        text = buf_span(to);
        beginning.len = beginning.len < text.len ? beginning.len : text.len;
    }
    *first_len = beginning.len;
    *out = text;
    return ST_OK;
}
