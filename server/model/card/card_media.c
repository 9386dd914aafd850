/* SPDX-License-Identifier: MIT */
/* The kinds of media, and what the members of cards about them have in common. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "runtime/program/program.h"
#include "server/model/card/card_priv.h"

static const struct card_medium *const kinds[] = {
    &card_medium_image,
    &card_medium_sound,
    &card_medium_text,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct card_medium *card_medium_at(size_t index)
{
    return index < KINDS ? kinds[index] : NULL;
}

const struct card_medium *card_find_medium(const char *word)
{
    size_t i = 0;
    while (i < KINDS && strcmp(word, kinds[i]->word) != 0) {
        i++;
    }
    return card_medium_at(i);
}

/* Is |type| the media type |pattern|, where "*" at its end stands for anything? Nearly all differ
 * in their first two letters: no call of a function then. */
static bool is_type(struct span type, const char *pattern)
{
    if ((type.ptr[0] | 0x20) != pattern[0] || (type.ptr[1] | 0x20) != pattern[1]) {
        return false;
    }
    size_t len = strlen(pattern);
    bool is_open = pattern[len - 1] == '*';
    len -= is_open;
    return (is_open ? type.len >= len : type.len == len) &&
           strncasecmp((const char *)type.ptr, pattern, len) == 0;
}

const struct card_medium *card_find_medium_type(struct span type)
{
    if (span_is(type, "application/json")) {
        return NULL; /* the usual one, which is none of them */
    }
    for (size_t i = 0; type.len > 1 && i < KINDS; i++) {
        for (size_t t = 0; t < CARD_MEDIUM_TYPES_MAX && kinds[i]->types[t]; t++) {
            if (is_type(type, kinds[i]->types[t])) {
                return kinds[i];
            }
        }
    }
    return NULL;
}

const struct card_medium *card_find_medium_files(enum media_kind formats)
{
    size_t i = 0;
    while (i < KINDS && (kinds[i]->is_text || kinds[i]->formats != formats)) {
        i++;
    }
    return card_medium_at(i);
}

const char *card_list_media(const char *last, bool are_nouns, char out[CARD_MEDIA_TEXT_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < KINDS; i++) {
        const char *before = i == 0 ? "" : i + 1 < KINDS ? ", " : last;
        len += (size_t)snprintf(out + len, CARD_MEDIA_TEXT_MAX - len, "%s%s%s", before,
                                are_nouns ? "a " : "", are_nouns ? kinds[i]->noun : kinds[i]->word);
        must(len < CARD_MEDIA_TEXT_MAX);
    }
    return out;
}

const char *card_path_beside(struct card *card, const char *document_path, const char *path)
{
    const char *slash = strrchr(document_path, '/');
    size_t folder = *path == '/' || !slash ? 0 : (size_t)(slash + 1 - document_path);
    size_t len = strlen(path);
    char *both = arena_alloc(&card->arena, folder + len + 1);
    if (both) {
        memcpy(both, document_path, folder);
        memcpy(both + folder, path, len + 1);
    }
    return both;
}

/* ---- the card -------------------------------------------------------------------------------- */

enum status card_read_word(const struct card_source *s, const struct cJSON *value,
                           const char *const *names, unsigned count, const char *expected,
                           unsigned *out, struct error *err)
{
    const char *text;
    TRY(document_text(s->in, value, &text, err));
    for (unsigned i = 0; i < count; i++) {
        if (names[i] && strcmp(text, names[i]) == 0) {
            *out = i;
            return ST_OK;
        }
    }
    return document_fail(s->in, value, err, ST_INVALID, "expected %s", expected);
}

enum status card_read_media(struct card *card, const struct document *in, const char *path,
                            const struct cJSON *value, const struct card_medium *kind,
                            struct card_media *out, struct error *err)
{
    const struct card_source s = {.card = card, .in = in, .path = path};
    char list[CARD_MEDIA_TEXT_MAX];
    TRY(document_need(in, value, JSON_OBJECT, err));
    if (out->kind) {
        return document_fail(in, value, err, ST_INVALID, "expected one of %s, got %s, too",
                             card_list_media(" and ", false, list), out->kind->word);
    }
    *out =
        (struct card_media){.kind = kind, .place = {.document = in, .value = value, .path = path}};
    return kind->read(&s, value, out, err);
}

/* ---- the program ----------------------------------------------------------------------------- */

enum status card_refuse_input(const struct card_io *io, const struct rt_io *is,
                              const char *expected, struct error *err)
{
    char shape[SHAPE_TEXT_MAX];
    if (is->kind != RT_IO_TENSOR) {
        return card_fail(&io->media.place, err, ST_INVALID, "expected %s, '%s' is no tensor",
                         expected, is->name);
    }
    return card_fail(&io->media.place, err, ST_INVALID, "expected %s, '%s' is %s%.80s", expected,
                     is->name, dtype_name(is->dtype), shape_print(&is->shape, shape));
}

enum status card_adapt_media(struct rt_method *method, const struct card_io *io, uint32_t index,
                             struct error *err)
{
    const struct card_medium *kind = io->media.kind;
    return kind && kind->adapt ? kind->adapt(method, io, index, err) : ST_OK;
}

enum status card_apply_media(const struct rt_method *method, struct card_io *io, struct error *err)
{
    if (!io->media.kind || rt_method_failure(method)) {
        return ST_OK;
    }
    must(io->index < rt_method_input_count(method));
    return io->media.kind->apply(method, io, err);
}

bool card_find_doubt(const struct card_io *io, struct error *out)
{
    const struct card_medium *kind = io->media.kind;
    return kind && kind->find_doubt && kind->find_doubt(io, out);
}
