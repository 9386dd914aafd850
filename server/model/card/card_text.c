/* SPDX-License-Identifier: MIT */
/* Texts in cards: the member "text" of an input, and the inputs beside the ids. */
#include "config.h"

#include <string.h>

#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

static enum status keep_text(const struct card_source *s, const struct cJSON *value, bool is_path,
                             const char **out, struct error *err)
{
    const char *text;
    TRY(document_text_filled(s->in, value, &text, err));
    *out = is_path ? card_path_beside(s->card, s->path, text)
                   : arena_strdup(&s->card->arena, text, strlen(text));
    return *out ? ST_OK : arena_fail(&s->card->arena, "the card", err);
}

static enum status read_text_member(const struct card_source *s, const struct cJSON *member,
                                    struct card_text *text, struct error *err)
{
    if (document_is(member, "tokenizer")) {
        return keep_text(s, member, true, &text->tokenizer, err);
    }
    if (document_is(member, "max_tokens")) {
        uint64_t count;
        TRY(document_u64_from(s->in, member, 1, CARD_TOKENS_MAX, &count, err));
        text->max_tokens = (uint32_t)count;
        return ST_OK;
    }
    if (document_is(member, "pad")) {
        return document_bool(s->in, member, &text->is_padded, err);
    }
    if (document_is(member, "mask")) {
        return keep_text(s, member, false, &text->mask, err);
    }
    if (document_is(member, "types")) {
        return keep_text(s, member, false, &text->types, err);
    }
    return document_refuse_member(s->in, member, "tokenizer, max_tokens, pad, mask or types", err);
}

static enum status read_words(const struct card_source *s, const struct cJSON *value,
                              struct card_media *out, struct error *err)
{
    struct card_text *text = &out->text;
    *text = (struct card_text){.is_padded = false};
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_text_member(s, at, text, err));
    }
    return ST_OK;
}

static bool takes_ids(const struct rt_io *is, bool is_mask)
{
    bool is_integer = is->dtype == DT_I64 || is->dtype == DT_I32;
    bool is_flag = is_mask && (is->dtype == DT_BOOL || is->dtype == DT_F32 || is->dtype == DT_U8);
    return is->kind == RT_IO_TENSOR && (is_integer || is_flag) && is->shape.rank >= 1 &&
           is->shape.rank <= 2;
}

/* The input |name|, which is made with the ids; itself, if there is no name. */
static enum status find_beside(const struct rt_method *method, const struct card_io *io,
                               const char *name, bool is_mask, uint32_t *out, struct error *err)
{
    const struct rt_io *ids = rt_method_input(method, io->index);
    struct card_io other = {.present = name, .place = io->media.place};
    *out = io->index;
    if (!name) {
        return ST_OK;
    }
    TRY(card_find_index(method, RT_INPUT, &other, err));
    const struct rt_io *is = rt_method_input(method, other.index);
    if (other.index == io->index || !takes_ids(is, is_mask) ||
        !shape_equal(&is->shape, &ids->shape) || is->dynamic_dims != ids->dynamic_dims) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "expected another input of the shape of '%s', got '%s'", ids->name,
                         is->name);
    }
    *out = other.index;
    return ST_OK;
}

static enum status apply_text(const struct rt_method *method, struct card_io *io, struct error *err)
{
    const struct rt_io *is = rt_method_input(method, io->index);
    struct card_text *text = &io->media.text;
    if (!takes_ids(is, false)) {
        return card_refuse_input(io, is, "int64[n, tokens]", err);
    }
    int64_t most = is->shape.dims[is->shape.rank - 1];
    if (text->max_tokens > most) {
        return card_fail(&io->media.place, err, ST_INVALID,
                         "max_tokens: the program takes at most %lld", (long long)most);
    }
    TRY(find_beside(method, io, text->mask, true, &text->mask_index, err));
    TRY(find_beside(method, io, text->types, false, &text->types_index, err));
    return text->mask && text->mask_index == text->types_index
               ? card_fail(&io->media.place, err, ST_INVALID, "mask and types name the same input")
               : ST_OK;
}

const struct card_medium card_medium_text = {
    .word = "text",
    .noun = "text",
    .types = {"text/plain"},
    .formats = MEDIA_OTHER,
    .is_text = true,
    .read = read_words,
    .apply = apply_text,
};
