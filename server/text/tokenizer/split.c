/* SPDX-License-Identifier: MIT */
/*
 * Pre-tokenizers: each step cuts the parts of the step before. A part goes through all further
 * steps and to the model before the next part is cut, so no list of parts is kept.
 */
#include "config.h"

#include "base/check.h"
#include "server/text/tokenizer/tokenizer_priv.h"

/* One step at work on one text. The step gives its pieces to cut_add() from left to right. */
struct cut {
    struct encoder *encoder;
    size_t step;
    struct span text;
    size_t first_len;  /* of |text| */
    bool has_pending;  /* [start, end) is not given on yet */
    bool was_match;    /* the item before */
    size_t start, end; /* of the pending part */
};

static enum status give(struct cut *cut, size_t start, size_t end)
{
    if (start == end) {
        return ST_OK;
    }
    return split_run(cut->encoder, cut->step + 1, span_of(cut->text.ptr + start, end - start),
                     first_behind(cut->first_len, start));
}

static enum status give_pending(struct cut *cut)
{
    bool has_pending = cut->has_pending;
    cut->has_pending = false;
    return has_pending ? give(cut, cut->start, cut->end) : ST_OK;
}

/* Joins the item to the pending part, or makes it the pending part. */
static enum status hold(struct cut *cut, bool is_joined, size_t start, size_t end)
{
    if (is_joined && cut->has_pending) {
        cut->end = end;
        return ST_OK;
    }
    TRY(give_pending(cut));
    cut->start = start;
    cut->end = end;
    cut->has_pending = true;
    return ST_OK;
}

static enum status cut_add(struct cut *cut, size_t start, size_t end, bool is_match)
{
    const struct split_step *step = &cut->encoder->tokenizer->split[cut->step];
    bool was_match = cut->was_match;
    is_match ^= step->is_inverted;
    cut->was_match = is_match;
    switch (step->behavior) {
    case BEHAVIOR_REMOVED:
        return is_match ? ST_OK : give(cut, start, end);
    case BEHAVIOR_ISOLATED:
        return give(cut, start, end);
    case BEHAVIOR_CONTIGUOUS:
        return hold(cut, is_match == was_match, start, end);
    case BEHAVIOR_MERGED_WITH_PREVIOUS:
        return hold(cut, is_match && !was_match, start, end);
    case BEHAVIOR_MERGED_WITH_NEXT:
        return hold(cut, was_match && !is_match, start, end);
    }
    unreachable();
}

/* By matches of a pattern or a literal. */
static enum status cut_by_pattern(struct cut *cut)
{
    const struct split_step *step = &cut->encoder->tokenizer->split[cut->step];
    struct pattern_search search;
    size_t at = 0, start, end, len = cut->text.len;
    pattern_search_begin(&search, step->pattern, step->literal, cut->text);
    do {
        TRY(pattern_search_next(&search, &cut->encoder->scratch, &start, &end, cut->encoder->err));
        size_t plain_end = start == SIZE_MAX ? len : start;
        if (plain_end > at) {
            TRY(cut_add(cut, at, plain_end, false));
        }
        if (start != SIZE_MAX) {
            TRY(cut_add(cut, start, end, true));
            at = end;
        }
    } while (start != SIZE_MAX);
    return ST_OK;
}

static bool is_delimiter(enum split_kind kind, uint32_t code)
{
    return kind == SPLIT_SPACE         ? unicode_is_space(code)
           : kind == SPLIT_PUNCTUATION ? unicode_is_punctuation(code)
                                       : unicode_is_numeric(code);
}

/* Each delimiter is a match of its own. */
static enum status cut_by_characters(struct cut *cut)
{
    enum split_kind kind = cut->encoder->tokenizer->split[cut->step].kind;
    struct span text = cut->text;
    size_t plain = 0, len;
    for (size_t at = 0; at < text.len; at += len) {
        if (is_delimiter(kind, unicode_next(text.ptr + at, &len))) {
            if (at > plain) {
                TRY(cut_add(cut, plain, at, false));
            }
            TRY(cut_add(cut, at, at + len, true));
            plain = at + len;
        }
    }
    return plain < text.len ? cut_add(cut, plain, text.len, false) : ST_OK;
}

/* \w+|[^\w\s]+ */
static enum status cut_by_words(struct cut *cut)
{
    struct span text = cut->text;
    enum { NOTHING, SPACE, WORD, OTHER } before = NOTHING, class;
    size_t start = 0, len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code = unicode_next(text.ptr + at, &len);
        class = unicode_is_word(code) ? WORD : unicode_is_space(code) ? SPACE : OTHER;
        if (class != before && at > start) {
            if (before != SPACE) {
                TRY(give(cut, start, at));
            }
            start = at;
        }
        before = class;
    }
    return before == SPACE ? ST_OK : give(cut, start, text.len);
}

static enum status cut_by_length(struct cut *cut)
{
    size_t count = cut->encoder->tokenizer->split[cut->step].length, start = 0, chars = 0, len;
    for (size_t at = 0; at < cut->text.len; at += len) {
        (void)unicode_next(cut->text.ptr + at, &len);
        if (chars++ == count) {
            TRY(give(cut, start, at));
            start = at;
            chars = 1;
        }
    }
    return give(cut, start, cut->text.len);
}

static bool starts_with(struct span text, struct span prefix)
{
    return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

/* What comes from the first character of the whole text, and the rest. */
static struct span text_head(const struct cut *cut)
{
    return span_of(cut->text.ptr, cut->first_len < cut->text.len ? cut->first_len : cut->text.len);
}

static struct span text_rest(const struct cut *cut)
{
    size_t head = text_head(cut).len;
    return span_of(cut->text.ptr + head, cut->text.len - head);
}

static void put_marked(struct span mark, struct span text, struct buf *out)
{
    for (size_t at = 0; at < text.len;) {
        const uint8_t *blank = memchr(text.ptr + at, ' ', text.len - at);
        size_t end = blank ? (size_t)(blank - text.ptr) : text.len;
        buf_add(out, text.ptr + at, end - at);
        if (blank) {
            buf_add(out, mark.ptr, mark.len);
        }
        at = end + 1;
    }
}

/* Blanks become the replacement, which begins words. */
static enum status cut_by_metaspace(struct cut *cut)
{
    const struct split_step *step = &cut->encoder->tokenizer->split[cut->step];
    struct buf *out = &cut->encoder->stage[cut->step];
    struct span text = cut->text;
    bool has_mark = text.ptr[0] == ' ' || starts_with(text, step->literal);
    buf_reset(out);
    if (!has_mark &&
        (step->scheme == PREPEND_ALWAYS || (step->scheme == PREPEND_FIRST && cut->first_len > 0))) {
        buf_add(out, step->literal.ptr, step->literal.len);
    }
    put_marked(step->literal, text_head(cut), out);
    size_t first_len = cut->first_len > 0 ? out->len : 0;
    put_marked(step->literal, text_rest(cut), out);
    TRY(encoder_check(cut->encoder, out));
    cut->text = buf_span(out);
    cut->first_len = first_len;
    return step->splits ? cut_by_pattern(cut) : give(cut, 0, cut->text.len);
}

static enum status cut_by_bytes(struct cut *cut)
{
    struct buf *out = &cut->encoder->stage[cut->step];
    buf_reset(out);
    byte_level_add(out, text_head(cut));
    size_t first_len = out->len;
    byte_level_add(out, text_rest(cut));
    TRY(encoder_check(cut->encoder, out));
    cut->text = buf_span(out);
    cut->first_len = first_len;
    return give(cut, 0, cut->text.len);
}

static enum status cut_by_prefix_space(struct cut *cut)
{
    struct buf *out = &cut->encoder->stage[cut->step];
    if (cut->text.ptr[0] == ' ') {
        return give(cut, 0, cut->text.len);
    }
    buf_reset(out);
    buf_add_char(out, ' ');
    buf_add(out, cut->text.ptr, cut->text.len);
    TRY(encoder_check(cut->encoder, out));
    cut->text = buf_span(out);
    cut->first_len += cut->first_len > 0;
    return give(cut, 0, cut->text.len);
}

static enum status cut_text(struct cut *cut)
{
    switch (cut->encoder->tokenizer->split[cut->step].kind) {
    case SPLIT_PATTERN:
    case SPLIT_LITERAL:
        return cut_by_pattern(cut);
    case SPLIT_SPACE:
    case SPLIT_PUNCTUATION:
    case SPLIT_DIGITS:
        return cut_by_characters(cut);
    case SPLIT_WORDS:
        return cut_by_words(cut);
    case SPLIT_METASPACE:
        return cut_by_metaspace(cut);
    case SPLIT_BYTES:
        return cut_by_bytes(cut);
    case SPLIT_PREFIX_SPACE:
        return cut_by_prefix_space(cut);
    case SPLIT_LENGTH:
        return cut_by_length(cut);
    }
    unreachable();
}

enum status split_run(struct encoder *encoder, size_t step, struct span text, size_t first_len)
{
    if (step == encoder->tokenizer->split_count || text.len == 0) {
        return model_encode(encoder, text);
    }
    struct cut cut = {.encoder = encoder, .step = step, .text = text, .first_len = first_len};
    TRY(cut_text(&cut));
    return give_pending(&cut);
}
