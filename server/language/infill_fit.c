/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/infill_fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/utf8.h"
#include "server/language/ask.h"
#include "server/language/words.h"
#include "server/text/tokenizer/tokenizer.h"

/* Stands for names that clients do not send: of the repository, and of the file with the gap. */
#define REPOSITORY "project\n"
#define PRESENT_FILE "current\n"

#define TOKENS_AROUND 3 /* prefix, suffix, middle */

struct fit {
    const struct infill_rules *rules;
    const struct words *words;
    struct words_room *room;
    size_t bytes_max;     /* of a text of which more cannot count */
    uint32_t *rest;       /* owned: |room->max| ids of the text behind the gap */
    uint32_t rest_count;  /* of them, those that count */
    uint32_t *extras;     /* owned: |room->max| ids; other texts stand at its end */
    uint32_t extra_count; /* ids of them */
    struct token_list before, begun;
    struct error *err;
};

/* Takes the last bytes of |text|, from the beginning of a character on. */
static struct span end_of(struct span text, size_t bytes_max)
{
    size_t from = text.len > bytes_max ? text.len - bytes_max : 0;
    while (from > 0 && from < text.len && (text.ptr[from] & 0xc0) == 0x80) {
        from++;
    }
    return from > 0 ? span_of(text.ptr + from, text.len - from) : text;
}

static enum status encode(struct fit *fit, struct span text, struct token_list *out)
{
    size_t ignored;
    return text.len > 0 ? words_encode_texts(fit->words, &text, 1, true, out, &ignored, fit->err)
                        : ST_OK;
}

static enum status encode_rest(struct fit *fit, struct span text)
{
    struct words_room room = {.ids = fit->rest, .max = fit->room->max};
    text.len = text.len > fit->bytes_max ? utf8_floor(text.ptr, fit->bytes_max) : text.len;
    TRY(infill_encode_rest(fit->words, text, &room, fit->err));
    fit->rest_count = room.count < room.max ? room.count : room.max;
    return ST_OK;
}

/* ---- other texts ----------------------------------------------------------------------------- */

/* Puts a token, if there is one, and the ids of |text| before those of the texts so far; false:
 * they have no room. */
static enum status put_extra(struct fit *fit, bool has_token, uint32_t token, struct span text,
                             uint32_t left, bool *out_fits)
{
    struct token_list list;
    token_list_init(&list);
    enum status status = encode(fit, text, &list);
    size_t count = list.count + has_token;
    *out_fits = status == ST_OK && count <= left;
    if (*out_fits) {
        fit->extra_count += (uint32_t)count;
        uint32_t *at = fit->extras + fit->room->max - fit->extra_count;
        if (has_token) {
            at[0] = token;
        }
        if (list.count > 0) {
            memcpy(at + has_token, list.ids, list.count * sizeof(*at));
        }
    }
    token_list_fini(&list);
    return status;
}

/* A name in a line of its own, and the text. */
static enum status put_file(struct fit *fit, const struct ask_extra *extra, uint32_t left,
                            bool *out_fits)
{
    struct buf text;
    size_t bytes_max = words_bytes_max(fit->words, left);
    *out_fits = false;
    if (extra->text.len > bytes_max || extra->name.len > bytes_max) {
        return ST_OK;
    }
    buf_init(&text, 2 * bytes_max + 2);
    buf_add(&text, extra->name.ptr, extra->name.len);
    buf_add_str(&text, extra->name.len ? "\n" : "");
    buf_add(&text, extra->text.ptr, extra->text.len);
    buf_add_str(&text, fit->rules->has_file ? "" : "\n");
    enum status status = buf_check(&text, "a text", fit->err);
    if (status == ST_OK) {
        status =
            put_extra(fit, fit->rules->has_file, fit->rules->file, buf_span(&text), left, out_fits);
    }
    buf_fini(&text);
    return status;
}

/* The last texts first, those that have room: editors send the nearest last. |left|: ids. */
static enum status put_extras(struct fit *fit, const struct infill_gap *gap, uint32_t left)
{
    const struct infill_rules *rules = fit->rules;
    bool fits = true;
    if (gap->extra_count == 0) {
        return ST_OK;
    }
    if (rules->has_file) {
        TRY(put_extra(fit, true, rules->file, span_str(PRESENT_FILE), left, &fits));
    }
    uint32_t own = fit->extra_count;
    for (uint32_t i = fits ? gap->extra_count : 0; i-- > 0;) {
        TRY(put_file(fit, &gap->extras[i], left - fit->extra_count, &fits));
    }
    if (fit->extra_count == own) {
        fit->extra_count = 0; /* a file alone needs no name */
    } else if (rules->has_repository) {
        TRY(put_extra(fit, true, rules->repository, span_str(REPOSITORY), left - fit->extra_count,
                      &fits));
    }
    return ST_OK;
}

/* ---- the prompt ------------------------------------------------------------------------------ */

static void add_ids(struct words_room *room, const uint32_t *ids, size_t count)
{
    must(count <= room->max - room->count);
    if (count > 0) {
        memcpy(room->ids + room->count, ids, count * sizeof(*ids));
    }
    room->count += (uint32_t)count;
}

/* The end of the text before the gap. */
static void add_before(struct fit *fit, uint32_t count)
{
    add_ids(fit->room, &fit->rules->prefix, 1);
    add_ids(fit->room, fit->before.ids + (fit->before.count - count), count);
}

static void add_rest(struct fit *fit)
{
    add_ids(fit->room, &fit->rules->suffix, 1);
    add_ids(fit->room, fit->rest, fit->rest_count);
}

static void write(struct fit *fit, uint32_t before_count)
{
    add_ids(fit->room, fit->extras + (fit->room->max - fit->extra_count), fit->extra_count);
    if (fit->rules->has_middle) {
        add_before(fit, before_count);
        add_rest(fit);
        add_ids(fit->room, &fit->rules->middle, 1);
    } else {
        add_rest(fit);
        add_before(fit, before_count);
    }
    add_ids(fit->room, fit->begun.ids, fit->begun.count);
}

static uint32_t least(size_t a, size_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Ids that the texts may have, beside what |room| has and what goes with them; 0: none. */
static uint32_t share_of_texts(const struct fit *fit, uint32_t answer_max)
{
    uint32_t context = fit->room->max;
    uint32_t kept = answer_max == UINT32_MAX ? context / 4 : least(answer_max, context / 2);
    size_t taken =
        (size_t)(kept > 0 ? kept : 1) + fit->room->count + TOKENS_AROUND + fit->begun.count;
    return taken < context ? (uint32_t)(context - taken) : 0;
}

static enum status fit_all(struct fit *fit, const struct infill_gap *gap)
{
    struct words_room *room = fit->room;
    TRY(words_verify_bytes(fit->words, gap->begun, room->max, fit->err));
    TRY(encode(fit, gap->begun, &fit->begun));
    TRY(encode(fit, end_of(gap->before, fit->bytes_max), &fit->before));
    TRY(encode_rest(fit, gap->after));
    TRY(words_encode(fit->words, span_str(""), false, room, fit->err)); /* around any text */
    uint32_t left = room->count < room->max ? share_of_texts(fit, gap->answer_max) : 0;
    if (left == 0) {
        return error_set(fit->err, ST_INVALID,
                         "prompt: it has %zu tokens, with which the context of %u has no room for "
                         "the texts and the answer",
                         fit->begun.count, room->max);
    }
    uint32_t others = fit->before.count < left ? left - (uint32_t)fit->before.count : 0;
    uint32_t quarter = left / 4;
    fit->rest_count = least(fit->rest_count, others > quarter ? others : quarter);
    uint32_t before_count = least(fit->before.count, left - fit->rest_count);
    TRY(put_extras(fit, gap, left - fit->rest_count - before_count));
    write(fit, before_count);
    return ST_OK;
}

enum status infill_fit(const struct infill_rules *rules, const struct words *words,
                       const struct infill_gap *gap, struct words_room *room, struct error *err)
{
    struct fit fit = {.rules = rules, .words = words, .room = room, .err = err};
    must(rules->is_known);
    room->count = 0;
    fit.bytes_max = words_bytes_max(words, room->max);
    fit.rest = calloc(room->max, sizeof(*fit.rest));
    fit.extras = calloc(room->max, sizeof(*fit.extras));
    token_list_init(&fit.before);
    token_list_init(&fit.begun);
    enum status status =
        fit.rest && fit.extras ? fit_all(&fit, gap) : error_no_memory(err, "a prompt");
    token_list_fini(&fit.begun);
    token_list_fini(&fit.before);
    free(fit.extras);
    free(fit.rest);
    return status;
}
