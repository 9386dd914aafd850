/* SPDX-License-Identifier: MIT */
/* Texts: ids of their tokens as rows, and the inputs beside them: mask and types. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "runtime/program/program.h"
#include "server/language/sidecar.h"
#include "server/language/words.h"
#include "server/model/intake/medium_priv.h"

static enum status load_words(struct medium *medium, const struct medium_origin *origin,
                              struct error *err)
{
    const char *own = origin->said->text.tokenizer;
    struct sidecars sidecars;
    TRY(sidecar_init(&sidecars, origin->path, own ? own : origin->tokenizer, err));
    return sidecar_has_tokenizer(&sidecars)
               ? sidecar_load_words(&sidecars, &medium->text.words, err)
               : error_set(err, ST_INVALID, "text: there is no tokenizer beside the program");
}

static enum status take_text(struct medium *medium, const struct medium_origin *origin,
                             struct error *err)
{
    const struct card_text *said = &origin->said->text;
    struct medium_text *text = &medium->text;
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    uint32_t most = (uint32_t)io->shape.dims[last];
    medium->item_rank = 1;
    medium->parts[MEDIUM_MASK] = said->mask ? said->mask_index : MEDIUM_ABSENT;
    medium->parts[MEDIUM_TYPES] = said->types ? said->types_index : MEDIUM_ABSENT;
    medium_find_dtypes(medium, origin->method);
    text->tokens_max = said->max_tokens ? said->max_tokens : most;
    text->tokens = medium_has_length(medium, origin->method) ? most
                   : said->is_padded                         ? text->tokens_max
                                                             : 0;
    TRY(load_words(medium, origin, err));
    text->pad = words_pad(text->words);
    return ST_OK;
}

static void fini_text(struct medium *medium)
{
    words_free(medium->text.words);
}

static void bound_text(struct medium *relay)
{
    struct medium_text *text = &relay->text;
    bool is_fixed;
    uint64_t most = medium_last_dim(relay, &is_fixed);
    text->tokens = (uint32_t)(is_fixed ? most : medium_least(text->tokens, most));
    text->tokens_max = (uint32_t)medium_least(text->tokens_max, most);
}

/* Both may fill inputs beside the ids, but no other ones than each other. */
static const char *compare_texts(const struct medium *a, const struct medium *b)
{
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        bool are_both = a->parts[part] != MEDIUM_ABSENT && b->parts[part] != MEDIUM_ABSENT;
        if (are_both && a->parts[part] != b->parts[part]) {
            return part == MEDIUM_MASK ? "mask" : "types";
        }
    }
    return a->text.tokens_max != b->text.tokens_max        ? "max_tokens"
           : a->text.tokens != b->text.tokens              ? "pad"
           : !words_are_same(a->text.words, b->text.words) ? "tokenizer"
                                                           : NULL;
}

static void print_text(const struct medium *medium, struct buf *out)
{
    buf_printf(out, "{\"max_tokens\":%" PRIu32 "}", medium->text.tokens_max);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool is_text_fixed(const struct medium *medium)
{
    (void)medium;
    return false;
}

static void shape_text(const struct medium *medium, uint64_t length, struct shape *out)
{
    uint64_t fixed = medium->text.tokens;
    out->dims[out->rank - 1] = (int64_t)(fixed ? fixed : length);
}

const struct medium_ops medium_text_ops = {
    .word = "text",
    .take = take_text,
    .fini = fini_text,
    .bound = bound_text,
    .compare = compare_texts,
    .print = print_text,
    .is_fixed = is_text_fixed,
    .shape = shape_text,
};

enum status medium_encode(const struct medium *medium, struct span text, struct arena *arena,
                          struct texts_ids *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    must(medium->kind->is_text);
    const struct texts texts = {
        .items = {text}, .count = 1, .max = medium->text.tokens_max, .cuts = true};
    return texts_encode(medium->text.words, &texts, arena, out, err);
}

static void put(void *dst, enum dtype dtype, uint64_t index, uint32_t value)
{
    if (dtype == DT_I64) {
        ((int64_t *)dst)[index] = value;
    } else if (dtype == DT_I32) {
        ((int32_t *)dst)[index] = (int32_t)value;
    } else if (dtype == DT_F32) {
        ((float *)dst)[index] = (float)value;
    } else {
        must(dtype == DT_BOOL || dtype == DT_U8);
        ((uint8_t *)dst)[index] = (uint8_t)value;
    }
}

/* Writes a row of |part|: |length| elements of the input's type. */
static void write_ids(const struct medium *medium, enum medium_part part,
                      const struct texts_ids *ids, uint64_t length, void *dst)
{
    must(medium->parts[part] != MEDIUM_ABSENT && ids->count <= length);
    for (uint64_t i = 0; i < length; i++) {
        bool is_text = i < ids->count;
        uint32_t value = part == MEDIUM_IDS    ? is_text ? ids->ids[i] : medium->text.pad
                         : part == MEDIUM_MASK ? is_text
                                               : is_text && i >= ids->second;
        put(dst, medium->dtypes[part], i, value);
    }
}

static enum status put_part(const struct medium *medium, enum medium_part part,
                            const struct texts_ids *ids, uint32_t count,
                            struct rt_invocation *invocation, const struct shape *shape,
                            struct error *err)
{
    uint64_t length = (uint64_t)shape->dims[shape->rank - 1];
    size_t row = (size_t)length * dtype_bytes(medium->dtypes[part]);
    void *memory;
    TRY(rt_invocation_input(invocation, medium->parts[part], medium->dtypes[part], shape, &memory,
                            err));
    for (uint32_t i = 0; i < count; i++) {
        write_ids(medium, part, &ids[i], length, (uint8_t *)memory + row * i);
    }
    return ST_OK;
}

enum status medium_put_texts(const struct medium *medium, const struct texts_ids *ids,
                             uint32_t count, const bool are_given[MEDIUM_PARTS],
                             struct rt_invocation *invocation, struct shape *out_shape,
                             struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        longest = ids[i].count > longest ? ids[i].count : longest;
    }
    TRY(medium_shape(medium, count, longest, out_shape, err));
    for (int part = 0; part < MEDIUM_PARTS; part++) {
        if (medium->parts[part] != MEDIUM_ABSENT && !are_given[part]) {
            TRY(put_part(medium, (enum medium_part)part, ids, count, invocation, out_shape, err));
        }
    }
    return ST_OK;
}
