/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/decode.h"

#include "base/check.h"
#include "base/utf8.h"
#include "protocol/json.h"

#define HELD_BYTES_MAX ((size_t)64 << 20)
#define REPLACEMENT "\xef\xbf\xbd"

void decoding_init(struct decoding *decoding, const struct tokenizer *tokenizer, bool skips_special)
{
    *decoding = (struct decoding){.tokenizer = tokenizer, .skips_special = skips_special};
    buf_init(&decoding->token, HELD_BYTES_MAX);
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        buf_init(&decoding->states[i].held, HELD_BYTES_MAX);
        buf_init(&decoding->states[i].scratch, HELD_BYTES_MAX);
    }
}

void decoding_fini(struct decoding *decoding)
{
    buf_fini(&decoding->token);
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        buf_fini(&decoding->states[i].held);
        buf_fini(&decoding->states[i].scratch);
    }
    pattern_scratch_free(decoding->scratch);
    decoding->scratch = NULL;
}

static enum status put(struct decoding *decoding, size_t step, struct span token, uint32_t id,
                       struct error *err);

static enum status check(const struct buf *buf, struct error *err)
{
    if (!buf_failed(buf)) {
        return ST_OK;
    }
    return buf->lacks_memory
               ? error_no_memory(err, "the text of the tokens")
               : error_set(err, ST_TOO_LARGE, "the text of the tokens has more than %zu bytes",
                           buf->max_bytes);
}

static const struct decode_step *step_of(const struct decoding *decoding, size_t step)
{
    return &decoding->tokenizer->decode[step];
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Gives on what of |held| is whole; the rest waits, unless this is the end. */
static enum status give_utf8(struct decoding *decoding, size_t step, bool is_end, struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    struct span held = buf_span(&state->held);
    TRY(check(&state->held, err));
    size_t tail = is_end ? 0 : unicode_tail(held);
    if (!is_end && step_of(decoding, step)->holds) {
        return ST_OK;
    }
    buf_reset(&state->scratch);
    if (held.len > tail) {
        unicode_repair(span_of(held.ptr, held.len - tail), &state->scratch);
    }
    uint8_t rest[4];
    if (tail) {
        memcpy(rest, held.ptr + held.len - tail, tail);
    }
    buf_reset(&state->held);
    buf_add(&state->held, rest, tail);
    TRY(check(&state->scratch, err));
    return state->scratch.len ? put(decoding, step + 1, buf_span(&state->scratch), 0, err) : ST_OK;
}

static enum status put_byte_level(struct decoding *decoding, size_t step, struct span token,
                                  struct error *err)
{
    struct buf *held = &decoding->states[step].held;
    size_t start = held->len, len;
    for (size_t at = 0; at < token.len; at += len) {
        int byte = byte_level_byte(unicode_next(token.ptr + at, &len));
        if (byte < 0) { /* not of the alphabet: the token stays as it is */
            held->len = start;
            buf_add(held, token.ptr, token.len);
            break;
        }
        buf_add_char(held, (char)byte);
    }
    return give_utf8(decoding, step, false, err);
}

static int hex_value(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The byte of a token like <0x0A>, or -1. */
static int byte_of(struct span token)
{
    if (token.len != 6 || memcmp(token.ptr, "<0x", 3) != 0 || token.ptr[5] != '>') {
        return -1;
    }
    int high = hex_value(token.ptr[3]), low = hex_value(token.ptr[4]);
    if (token.ptr[3] == '+' && low >= 0) {
        return low; /* the Python library reads a sign */
    }
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* A run of bytes is UTF-8 as a whole, or each of them becomes U+FFFD. */
static enum status give_bytes(struct decoding *decoding, size_t step, struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    struct span held = buf_span(&state->held);
    TRY(check(&state->held, err));
    if (held.len == 0) {
        return ST_OK;
    }
    buf_reset(&state->scratch);
    bool is_text = json_is_utf8(held);
    if (is_text) {
        buf_add(&state->scratch, held.ptr, held.len);
    }
    size_t wrong_count = is_text ? 0 : held.len;
    buf_reset(&state->held);
    TRY(check(&state->scratch, err));
    if (is_text) {
        return put(decoding, step + 1, buf_span(&state->scratch), 0, err);
    }
    for (size_t i = 0; i < wrong_count; i++) {
        TRY(put(decoding, step + 1, span_str(REPLACEMENT), 0, err));
    }
    return ST_OK;
}

static enum status put_byte_fallback(struct decoding *decoding, size_t step, struct span token,
                                     struct error *err)
{
    int byte = byte_of(token);
    if (byte >= 0) {
        buf_add_char(&decoding->states[step].held, (char)byte);
        return check(&decoding->states[step].held, err);
    }
    TRY(give_bytes(decoding, step, err));
    return put(decoding, step + 1, token, 0, err);
}

static void add_replaced(struct buf *out, struct span text, struct span from, struct span to)
{
    size_t at = 0;
    while (at < text.len) {
        const uint8_t *found =
            from.len ? memmem(text.ptr + at, text.len - at, from.ptr, from.len) : NULL;
        size_t end = found ? (size_t)(found - text.ptr) : text.len;
        buf_add(out, text.ptr + at, end - at);
        if (!found) {
            break;
        }
        buf_add(out, to.ptr, to.len);
        at = end + from.len;
    }
}

static enum status put_scratch(struct decoding *decoding, size_t step, struct error *err)
{
    struct buf *scratch = &decoding->states[step].scratch;
    TRY(check(scratch, err));
    return put(decoding, step + 1, buf_span(scratch), 0, err);
}

static enum status put_metaspace(struct decoding *decoding, size_t step, struct span token,
                                 struct error *err)
{
    const struct decode_step *own = step_of(decoding, step);
    struct decode_state *state = &decoding->states[step];
    bool drops = state->token_count == 1 && own->scheme != PREPEND_NEVER;
    buf_reset(&state->scratch);
    add_replaced(&state->scratch, token, own->literal, span_str(drops ? "" : " "));
    return put_scratch(decoding, step, err);
}

/* Blanks before punctuation and in English contractions. */
static void clean_up(struct buf *text, struct buf *spare)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        buf_reset(spare);
        add_replaced(spare, buf_span(text), span_str(pairs[i][0]), span_str(pairs[i][1]));
        struct buf swapped = *text;
        *text = *spare;
        *spare = swapped;
    }
}

static enum status put_wordpiece(struct decoding *decoding, size_t step, struct span token,
                                 struct error *err)
{
    const struct decode_step *own = step_of(decoding, step);
    struct decode_state *state = &decoding->states[step];
    buf_reset(&state->scratch);
    if (state->token_count > 1) {
        if (own->literal.len <= token.len &&
            memcmp(token.ptr, own->literal.ptr, own->literal.len) == 0) {
            token = span_of(token.ptr + own->literal.len, token.len - own->literal.len);
        } else {
            buf_add_char(&state->scratch, ' ');
        }
    }
    buf_add(&state->scratch, token.ptr, token.len);
    if (own->cleans_up) {
        clean_up(&state->scratch, &state->held);
        bool has_failed = buf_failed(&state->held);
        TRY(has_failed ? check(&state->held, err) : ST_OK);
        buf_reset(&state->held);
    }
    return put_scratch(decoding, step, err);
}

static enum status put_replace(struct decoding *decoding, size_t step, struct span token,
                               struct error *err)
{
    const struct decode_step *own = step_of(decoding, step);
    struct buf *out = &decoding->states[step].scratch;
    struct pattern_search search;
    size_t at = 0, start, end;
    buf_reset(out);
    pattern_search_begin(&search, own->pattern, own->literal, token);
    while (true) {
        TRY(pattern_search_next(&search, &decoding->scratch, &start, &end, err));
        if (start == SIZE_MAX) {
            break;
        }
        buf_add(out, token.ptr + at, start - at);
        buf_add(out, own->content.ptr, own->content.len);
        at = end;
    }
    buf_add(out, token.ptr + at, token.len - at);
    return put_scratch(decoding, step, err);
}

/* Is the input of the step one token in parts? */
static bool is_behind_fuse(const struct decoding *decoding, size_t step)
{
    for (size_t i = 0; i < step; i++) {
        enum decode_kind kind = step_of(decoding, i)->kind;
        if (kind == DECODE_FUSE || kind == DECODE_BYTE_LEVEL) {
            return true;
        }
    }
    return false;
}

static enum status put_strip(struct decoding *decoding, size_t step, struct span token,
                             struct error *err)
{
    const struct decode_step *own = step_of(decoding, step);
    struct decode_state *state = &decoding->states[step];
    if (!is_behind_fuse(decoding, step) || own->holds) {
        state->cut = 0;
        state->is_cut_done = false;
    }
    while (!state->is_cut_done && state->cut < own->start && token.len >= own->literal.len &&
           token.len > 0) {
        if (memcmp(token.ptr, own->literal.ptr, own->literal.len) != 0) {
            break;
        }
        token = span_of(token.ptr + own->literal.len, token.len - own->literal.len);
        state->cut++;
    }
    state->is_cut_done |= token.len > 0;
    for (size_t i = 0; i < own->stop && token.len >= own->literal.len && token.len > 0; i++) {
        size_t kept = token.len - own->literal.len;
        if (memcmp(token.ptr + kept, own->literal.ptr, own->literal.len) != 0) {
            break;
        }
        token.len = kept;
    }
    return put(decoding, step + 1, token, 0, err);
}

static enum status put_fuse(struct decoding *decoding, size_t step, struct span token,
                            struct error *err)
{
    if (!step_of(decoding, step)->holds) {
        return put(decoding, step + 1, token, 0, err);
    }
    buf_add(&decoding->states[step].held, token.ptr, token.len);
    return check(&decoding->states[step].held, err);
}

/* The end of a word is a blank, but at the end of the text nothing. */
static enum status give_bpe(struct decoding *decoding, size_t step, bool is_end, struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    TRY(check(&state->held, err));
    if (!state->has_held) {
        return ST_OK;
    }
    buf_reset(&state->scratch);
    add_replaced(&state->scratch, buf_span(&state->held), step_of(decoding, step)->literal,
                 span_str(is_end ? "" : " "));
    buf_reset(&state->held);
    state->has_held = false;
    return put_scratch(decoding, step, err);
}

static enum status put_bpe(struct decoding *decoding, size_t step, struct span token,
                           struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    TRY(give_bpe(decoding, step, false, err));
    buf_add(&state->held, token.ptr, token.len);
    state->has_held = true;
    return check(&state->held, err);
}

/* Tokens that repeat count once; padding is nothing. */
static enum status put_ctc(struct decoding *decoding, size_t step, struct span token,
                           struct error *err)
{
    const struct decode_step *own = step_of(decoding, step);
    struct decode_state *state = &decoding->states[step];
    if (state->has_held && span_equal(buf_span(&state->held), token)) {
        return ST_OK;
    }
    buf_reset(&state->held);
    buf_add(&state->held, token.ptr, token.len);
    state->has_held = true;
    TRY(check(&state->held, err));
    buf_reset(&state->scratch);
    add_replaced(&state->scratch, token, own->literal, span_str(""));
    if (own->cleans_up) {
        struct buf spare;
        buf_init(&spare, HELD_BYTES_MAX);
        clean_up(&state->scratch, &spare);
        buf_reset(&spare);
        add_replaced(&spare, buf_span(&state->scratch), own->content, span_str(" "));
        struct buf swapped = state->scratch;
        state->scratch = spare;
        buf_fini(&swapped);
    }
    TRY(check(&state->scratch, err));
    return state->scratch.len ? put_scratch(decoding, step, err) : ST_OK;
}

static enum status put_join(struct decoding *decoding, size_t step, struct span token,
                            struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    buf_reset(&state->scratch);
    if (state->token_count > 1) {
        buf_add_char(&state->scratch, ' ');
    }
    buf_add(&state->scratch, token.ptr, token.len);
    return put_scratch(decoding, step, err);
}

static enum status put_raw_bytes(struct decoding *decoding, size_t step, struct span token,
                                 struct error *err)
{
    buf_add(&decoding->states[step].held, token.ptr, token.len);
    return give_utf8(decoding, step, false, err);
}

/* Gives the bytes of a run; a byte that is part of no character becomes U+FFFD. */
static enum status give_piece_bytes(struct decoding *decoding, size_t step, bool is_end,
                                    struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    struct span held = buf_span(&state->held);
    TRY(check(&state->held, err));
    size_t tail = is_end ? 0 : unicode_tail(held), end = held.len - tail;
    buf_reset(&state->scratch);
    for (size_t at = 0; at < end;) {
        size_t len = held.ptr[at] < 0x80 ? 1 : utf8_sequence(held.ptr + at, held.ptr + end);
        if (len) {
            buf_add(&state->scratch, held.ptr + at, len);
        } else {
            buf_add_str(&state->scratch, REPLACEMENT);
        }
        at += len ? len : 1;
    }
    uint8_t rest[4];
    if (tail) {
        memcpy(rest, held.ptr + end, tail);
    }
    buf_reset(&state->held);
    buf_add(&state->held, rest, tail);
    state->has_text |= state->scratch.len > 0;
    return state->scratch.len ? put_scratch(decoding, step, err) : ST_OK;
}

static enum status put_piece(struct decoding *decoding, size_t step, struct span token, uint32_t id,
                             struct error *err)
{
    const struct tokenizer *tokenizer = decoding->tokenizer;
    const struct sentencepiece *spec = &tokenizer->sentencepiece;
    struct decode_state *state = &decoding->states[step];
    enum piece_type type = tokenizer->model.piece_types[id];
    if (type == PIECE_BYTE && byte_of(token) >= 0) {
        buf_add_char(&state->held, (char)byte_of(token));
        return give_piece_bytes(decoding, step, false, err);
    }
    TRY(give_piece_bytes(decoding, step, true, err));
    bool is_start = !state->saw_blank && !state->has_text;
    state->saw_blank = false;
    buf_reset(&state->scratch);
    if (type == PIECE_CONTROL) {
        return ST_OK;
    }
    if (type == PIECE_UNKNOWN) {
        buf_add(&state->scratch, spec->unk_surface.ptr, spec->unk_surface.len);
    } else {
        if (is_start && (spec->adds_dummy_prefix || spec->removes_extra_spaces) &&
            token.len >= META_LEN && memcmp(token.ptr, META, META_LEN) == 0) {
            token = span_of(token.ptr + META_LEN, token.len - META_LEN);
            state->saw_blank = !spec->removes_extra_spaces;
        }
        add_replaced(&state->scratch, token, span_str(META), span_str(" "));
    }
    state->has_text |= state->scratch.len > 0;
    return put_scratch(decoding, step, err);
}

/* ---- the chain ------------------------------------------------------------------------------- */

static enum status put(struct decoding *decoding, size_t step, struct span token, uint32_t id,
                       struct error *err)
{
    if (step == decoding->tokenizer->decode_count) {
        buf_add(decoding->out, token.ptr, token.len);
        return check(decoding->out, err);
    }
    decoding->states[step].token_count++;
    switch (step_of(decoding, step)->kind) {
    case DECODE_JOIN:
        return put_join(decoding, step, token, err);
    case DECODE_BYTE_LEVEL:
        return put_byte_level(decoding, step, token, err);
    case DECODE_RAW_BYTES:
        return put_raw_bytes(decoding, step, token, err);
    case DECODE_BYTE_FALLBACK:
        return put_byte_fallback(decoding, step, token, err);
    case DECODE_METASPACE:
        return put_metaspace(decoding, step, token, err);
    case DECODE_WORDPIECE:
        return put_wordpiece(decoding, step, token, err);
    case DECODE_REPLACE:
        return put_replace(decoding, step, token, err);
    case DECODE_STRIP:
        return put_strip(decoding, step, token, err);
    case DECODE_FUSE:
        return put_fuse(decoding, step, token, err);
    case DECODE_BPE:
        return put_bpe(decoding, step, token, err);
    case DECODE_CTC:
        return put_ctc(decoding, step, token, err);
    case DECODE_SENTENCEPIECE:
        return put_piece(decoding, step, token, id, err);
    }
    unreachable();
}

static enum status end_step(struct decoding *decoding, size_t step, struct error *err)
{
    struct decode_state *state = &decoding->states[step];
    switch (step_of(decoding, step)->kind) {
    case DECODE_BYTE_LEVEL:
    case DECODE_RAW_BYTES:
        return give_utf8(decoding, step, true, err);
    case DECODE_BYTE_FALLBACK:
        return give_bytes(decoding, step, err);
    case DECODE_BPE:
        return give_bpe(decoding, step, true, err);
    case DECODE_SENTENCEPIECE:
        return give_piece_bytes(decoding, step, true, err);
    case DECODE_FUSE:
        return step_of(decoding, step)->holds
                   ? put(decoding, step + 1, buf_span(&state->held), 0, err)
                   : ST_OK;
    default:
        return ST_OK;
    }
}

enum status decoding_push(struct decoding *decoding, uint32_t id, struct buf *out,
                          struct error *err)
{
    const struct tokenizer *tokenizer = decoding->tokenizer;
    if (id >= tokenizer->size ||
        (!vocab_has(&tokenizer->vocab, id) && !vocab_has(&tokenizer->extra, id)) ||
        (decoding->skips_special && (tokenizer->flags[id] & TOKEN_LEFT_OUT))) {
        return ST_OK;
    }
    decoding->out = out;
    return put(decoding, 0, tokenizer_text(tokenizer, id), id, err);
}

static void reset(struct decode_state *state)
{
    struct buf held = state->held, scratch = state->scratch;
    buf_reset(&held);
    buf_reset(&scratch);
    *state = (struct decode_state){.held = held, .scratch = scratch};
}

enum status decoding_end(struct decoding *decoding, struct buf *out, struct error *err)
{
    enum status status = ST_OK;
    decoding->out = out;
    for (size_t i = 0; status == ST_OK && i < decoding->tokenizer->decode_count; i++) {
        status = end_step(decoding, i, err);
    }
    for (size_t i = 0; i < TOKENIZER_STEPS_MAX; i++) {
        reset(&decoding->states[i]);
    }
    return status;
}

/* ---- one token ------------------------------------------------------------------------------- */

static void byte_level_bytes(struct span token, struct buf *out)
{
    size_t start = out->len, len;
    for (size_t at = 0; at < token.len; at += len) {
        int byte = byte_level_byte(unicode_next(token.ptr + at, &len));
        if (byte < 0) {
            out->len = start;
            buf_add(out, token.ptr, token.len);
            return;
        }
        buf_add_char(out, (char)byte);
    }
}

/* Turns |from| into |to|; false: the step changes nothing in the middle of a text. */
static bool change_token(const struct decode_step *step, struct span from, struct buf *to)
{
    switch (step->kind) {
    case DECODE_BYTE_LEVEL:
        byte_level_bytes(from, to);
        return true;
    case DECODE_BYTE_FALLBACK:
        if (byte_of(from) >= 0) {
            buf_add_char(to, (char)byte_of(from));
        }
        return byte_of(from) >= 0;
    case DECODE_SENTENCEPIECE:
        if (byte_of(from) >= 0) {
            buf_add_char(to, (char)byte_of(from));
        } else {
            add_replaced(to, from, span_str(META), span_str(" "));
        }
        return true;
    case DECODE_METASPACE:
    case DECODE_BPE:
        add_replaced(to, from, step->literal, span_str(" "));
        return true;
    case DECODE_REPLACE:
        if (!step->pattern) {
            add_replaced(to, from, step->literal, step->content);
        }
        return !step->pattern;
    case DECODE_WORDPIECE:
        if (from.len >= step->literal.len &&
            memcmp(from.ptr, step->literal.ptr, step->literal.len) == 0) {
            buf_add(to, from.ptr + step->literal.len, from.len - step->literal.len);
            return true;
        }
        buf_add_char(to, ' ');
        buf_add(to, from.ptr, from.len);
        return true;
    case DECODE_JOIN:
        buf_add_char(to, ' ');
        buf_add(to, from.ptr, from.len);
        return true;
    default:
        return false;
    }
}

enum status decoding_token_bytes(const struct tokenizer *tokenizer, struct span text,
                                 struct buf *out, struct error *err)
{
    struct buf forms[2];
    unsigned turn = 0;
    buf_init(&forms[0], HELD_BYTES_MAX);
    buf_init(&forms[1], HELD_BYTES_MAX);
    for (size_t i = 0; i < tokenizer->decode_count; i++) {
        buf_reset(&forms[turn]);
        if (change_token(&tokenizer->decode[i], text, &forms[turn])) {
            text = buf_span(&forms[turn]);
            turn = !turn;
        }
    }
    buf_add(out, text.ptr, text.len);
    enum status status = check(&forms[0], err);
    status = status == ST_OK ? check(&forms[1], err) : status;
    status = status == ST_OK ? check(out, err) : status;
    buf_fini(&forms[0]);
    buf_fini(&forms[1]);
    return status;
}
