/* SPDX-License-Identifier: MIT */
/*
 * What requests to a language model get where they say nothing: the member "generation" of a card,
 * and what of it follows from transformers' generation_config.json (GenerationConfig in
 * transformers/generation/configuration_utils.py).
 */
#include "config.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"
#include "server/model/card/derive_priv.h"

#define ENDS "stop_token_ids"
#define THINKING "thinking"
#define TOOLS "tools"
#define INFILL "infill"
#define CONFIG_ENDS "eos_token_id"

/* A number: its name in cards, and in generation_config.json. */
static const struct row {
    const char *name, *config_name;
    size_t offset; /* in struct card_generation */
    double least, most;
    bool is_whole;
} rows[] = {
#define ROW(name, config_name, ...)                                                                \
    {                                                                                              \
#name, #config_name, offsetof(struct card_generation, name), __VA_ARGS__                   \
    }
    ROW(temperature, temperature, 0, 100, false),
    ROW(top_p, top_p, 0, 1, false),
    ROW(top_k, top_k, 0, CARD_IDS_MAX, true),
    ROW(min_p, min_p, 0, 1, false),
    ROW(repetition_penalty, repetition_penalty, 0.01, 100, false),
    ROW(max_tokens, max_new_tokens, 1, CARD_IDS_MAX, true),
#undef ROW
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static bool read_number(const struct row *row, const struct document *in, const struct cJSON *value,
                        double *out)
{
    struct error ignored;
    return document_type(value) == JSON_NUMBER && document_f64(in, value, out, &ignored) == ST_OK &&
           *out >= row->least && *out <= row->most && (!row->is_whole || floor(*out) == *out);
}

/* "expected a number from 0 to 1" */
static const char *whole_word(const struct row *row)
{
    return row->is_whole ? "an integer" : "a number";
}

/* ---- a card ---------------------------------------------------------------------------------- */

static enum status read_ends(struct card *card, const struct document *in,
                             const struct cJSON *value, struct card_generation *out,
                             struct error *err)
{
    uint32_t *ids = arena_array(&card->arena, CARD_ENDS_MAX, sizeof(*ids));
    if (!ids) {
        return arena_fail(&card->arena, "the card", err);
    }
    out->ends = ids;
    out->end_count = 0;
    TRY(document_need(in, value, JSON_ARRAY, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        uint64_t id;
        if (out->end_count == CARD_ENDS_MAX) {
            return document_fail(in, at, err, ST_TOO_LARGE, "expected at most %d ids",
                                 CARD_ENDS_MAX);
        }
        TRY(document_u64(in, at, CARD_IDS_MAX, &id, err));
        ids[out->end_count++] = (uint32_t)id;
    }
    return ST_OK;
}

/* |*out| lives as long as the card. */
static enum status read_marker(struct card *card, const struct document *in,
                               const struct cJSON *value, const char **out, struct error *err)
{
    const char *text;
    TRY(document_text_filled(in, value, &text, err));
    size_t len = strlen(text);
    if (len >= CARD_MARKER_MAX) {
        return document_fail(in, value, err, ST_INVALID, "expected fewer than %d bytes, got %zu",
                             CARD_MARKER_MAX, len);
    }
    *out = arena_strdup(&card->arena, text, len);
    return *out ? ST_OK : arena_fail(&card->arena, "the card", err);
}

/* "think", or {"open": "<a>", "close": "</a>"}. */
static enum status read_thinking(struct card *card, const struct document *in,
                                 const struct cJSON *value, struct card_generation *out,
                                 struct error *err)
{
    if (document_type(value) != JSON_OBJECT) {
        return read_marker(card, in, value, &out->thinking, err);
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        if (document_is(at, "open")) {
            TRY(read_marker(card, in, at, &out->thinking_open, err));
        } else if (document_is(at, "close")) {
            TRY(read_marker(card, in, at, &out->thinking_close, err));
        } else {
            return document_refuse_member(in, at, "open or close", err);
        }
    }
    return out->thinking_open && out->thinking_close
               ? ST_OK
               : document_fail(in, value, err, ST_INVALID, "expected both open and close");
}

/* "qwen", or {"prefix": "<a>", "suffix": "<b>", "middle": "<c>"}. */
static enum status read_infill(struct card *card, const struct document *in,
                               const struct cJSON *value, struct card_generation *out,
                               struct error *err)
{
    if (document_type(value) != JSON_OBJECT) {
        return read_marker(card, in, value, &out->infill, err);
    }
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        if (document_is(at, "prefix")) {
            TRY(read_marker(card, in, at, &out->infill_prefix, err));
        } else if (document_is(at, "suffix")) {
            TRY(read_marker(card, in, at, &out->infill_suffix, err));
        } else if (document_is(at, "middle")) {
            TRY(read_marker(card, in, at, &out->infill_middle, err));
        } else {
            return document_refuse_member(in, at, "prefix, suffix or middle", err);
        }
    }
    return out->infill_prefix && out->infill_suffix
               ? ST_OK
               : document_fail(in, value, err, ST_INVALID, "expected both prefix and suffix");
}

static enum status read_member(struct card *card, const struct document *in,
                               const struct cJSON *value, struct card_generation *out,
                               struct error *err)
{
    if (document_is(value, ENDS)) {
        return read_ends(card, in, value, out, err);
    }
    if (document_is(value, TOOLS)) {
        return read_marker(card, in, value, &out->tools, err);
    }
    if (document_is(value, THINKING)) {
        return read_thinking(card, in, value, out, err);
    }
    if (document_is(value, INFILL)) {
        return read_infill(card, in, value, out, err);
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        if (!document_is(value, row->name)) {
            continue;
        }
        return read_number(row, in, value, (double *)(void *)((char *)out + row->offset))
                   ? ST_OK
                   : document_fail(in, value, err, ST_INVALID, "expected %s from %.10g to %.10g",
                                   whole_word(row), row->least, row->most);
    }
    return document_refuse_member(
        in, value,
        "temperature, top_p, top_k, min_p, repetition_penalty, max_tokens, " THINKING ", " TOOLS
        ", " INFILL " or " ENDS,
        err);
}

static void clear(struct card_generation *out)
{
    *out = (struct card_generation){.ends = NULL};
    for (size_t i = 0; i < ROW_COUNT; i++) {
        *(double *)(void *)((char *)out + rows[i].offset) = NAN;
    }
}

/* What |out| does not say, |more| does. */
static void fill_gaps(struct card_generation *out, const struct card_generation *more)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        double *number = (double *)(void *)((char *)out + rows[i].offset);
        *number = isnan(*number)
                      ? *(const double *)(const void *)((const char *)more + rows[i].offset)
                      : *number;
    }
    if (!out->ends) {
        out->ends = more->ends;
        out->end_count = more->end_count;
    }
}

enum status card_read_generation(struct card *card, const struct document *in,
                                 const struct cJSON *value, struct card_generation *out,
                                 struct error *err)
{
    struct card_generation read;
    clear(&read);
    read.is_said = true;
    TRY(document_need(in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_member(card, in, at, &read, err));
    }
    if (out->is_said) {
        fill_gaps(out, &read);
    } else {
        *out = read;
    }
    return ST_OK;
}

/* ---- generation_config.json ------------------------------------------------------------------ */

/* Does |method| take ids of tokens, and give floats for each? */
static bool takes_tokens(const struct rt_method *method)
{
    uint32_t results = rt_method_result_count(method);
    const struct rt_io *ids = rt_method_input_count(method) ? rt_method_input(method, 0) : NULL;
    const struct rt_io *logits = results == 1 ? rt_method_result(method, 0) : NULL;
    return ids && logits && ids->kind == RT_IO_TENSOR && ids->dtype == DT_I64 &&
           ids->shape.rank == 2 && logits->kind == RT_IO_TENSOR && logits->shape.rank >= 2 &&
           (logits->dtype == DT_F32 || logits->dtype == DT_F16 || logits->dtype == DT_BF16);
}

struct printing {
    struct derive *derive;
    const struct document *in;
    struct buf json, from; /* the members so far, and where they come from */
};

static void begin_member(struct printing *p, const char *name, const char *config_name)
{
    buf_printf(&p->json, "%s\"%s\": ", p->json.len ? ", " : "{", name);
    buf_printf(&p->from, "%s%s", p->from.len ? ", " : "", config_name);
}

static void add_number(struct printing *p, const struct row *row, const struct cJSON *value)
{
    double number;
    if (!read_number(row, p->in, value, &number)) {
        derive_note(p->derive, "%s: %s: expected %s from %.10g to %.10g",
                    beside_name(BESIDE_GENERATION), row->config_name, whole_word(row), row->least,
                    row->most);
        return;
    }
    begin_member(p, row->name, row->config_name);
    buf_printf(&p->json, "%.10g", number);
}

static void add_ends(struct printing *p, const struct cJSON *value)
{
    uint32_t ids[CARD_ENDS_MAX], count;
    if (!document_token_ids(p->in, value, ids, CARD_ENDS_MAX, &count)) {
        derive_note(p->derive, "%s: " CONFIG_ENDS ": expected up to %d ids of tokens",
                    beside_name(BESIDE_GENERATION), CARD_ENDS_MAX);
        return;
    }
    begin_member(p, ENDS, CONFIG_ENDS);
    buf_add_char(&p->json, '[');
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(&p->json, "%s%u", i ? ", " : "", ids[i]);
    }
    buf_add_char(&p->json, ']');
}

static void add_member(struct printing *p, const struct cJSON *member)
{
    if (document_type(member) == JSON_NULL) {
        return; /* as if it were not there */
    }
    if (document_is(member, CONFIG_ENDS)) {
        add_ends(p, member);
        return;
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (document_is(member, rows[i].config_name)) {
            add_number(p, &rows[i], member);
        }
    }
}

void derive_from_generation(struct derive *derive, const struct document *config,
                            const struct rt_method *method)
{
    struct printing p = {.derive = derive, .in = config};
    if (!config->root || document_type(config->root) != JSON_OBJECT || !takes_tokens(method)) {
        return;
    }
    buf_init(&p.json, CARD_BYTES_MAX);
    buf_init(&p.from, DERIVE_FROM_MAX);
    for (const struct cJSON *at = document_first(config->root); at; at = document_next(at)) {
        add_member(&p, at);
    }
    if (p.json.len > 0) {
        buf_add_char(&p.json, '}');
        struct buf *out =
            derive_say(derive, DERIVE_GENERATION, "%s: %.*s", beside_name(BESIDE_GENERATION),
                       (int)p.from.len, p.from.ptr ? (const char *)p.from.ptr : "");
        buf_add(out, p.json.ptr, p.json.len);
        out->failed |= p.json.failed;
    }
    buf_fini(&p.json);
    buf_fini(&p.from);
}
