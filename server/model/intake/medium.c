/* SPDX-License-Identifier: MIT */
/* From a card to a medium, and from items to rows, whatever the kind: the rows of the kinds
 * (medium_priv.h) do the rest. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"
#include "server/model/intake/medium_priv.h"

#define SHAPES_BYTES_MAX (1 << 20)

static const struct medium_ops *const kinds[] = {
    &medium_image_ops,
    &medium_sound_ops,
    &medium_text_ops,
};

const struct medium_ops *medium_find_ops(const struct card_medium *kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i]->word, kind->word) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

static struct medium *take_ref(struct medium *medium)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    refs_take(&medium->refs);
    return medium;
}

void medium_unref(struct medium *medium)
{
    if (!medium) {
        return;
    }
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    if (refs_drop(&medium->refs)) {
        if (medium->base) {
            medium_unref(medium->base);
        } else if (medium->ops->fini) {
            medium->ops->fini(medium);
        }
        medium->magic = 0;
        free(medium);
    }
}

enum status medium_new(struct rt_method *method, const struct card_io *said, const char *path,
                       const char *tokenizer, struct medium **out, struct error *err)
{
    *out = NULL;
    if (!said || !said->media.kind) {
        return ST_OK;
    }
    struct medium *medium = calloc(1, sizeof(*medium));
    if (!medium) {
        return error_no_memory(err, "media");
    }
    medium->magic = MEDIUM_MAGIC;
    refs_init(&medium->refs);
    medium->kind = said->media.kind;
    medium->ops = medium_find_ops(medium->kind);
    must(medium->ops);
    medium->input = said->index;
    medium->io = rt_method_input(method, said->index);
    medium->parts[MEDIUM_IDS] = said->index;
    medium->parts[MEDIUM_MASK] = medium->parts[MEDIUM_TYPES] = MEDIUM_ABSENT;
    const struct medium_origin origin = {method, &said->media, path, tokenizer};
    enum status status = medium->ops->take(medium, &origin, err);
    if (status != ST_OK) {
        medium_unref(medium);
        return error_prefix(err, "input '%s': ", rt_method_input(method, said->index)->name);
    }
    *out = medium;
    return ST_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

/* The shapes of a call whose input |medium| has the half of its greatest length. */
static enum status halve(struct rt_method *method, const struct medium *medium, struct arena *arena,
                         const struct shape ***out, struct error *err)
{
    uint32_t count = rt_method_input_count(method);
    struct shape *shapes = arena_array(arena, (size_t)count + 1, sizeof(*shapes));
    const struct shape **given = arena_array(arena, (size_t)count + 1, sizeof(*given));
    if (!shapes || !given) {
        return arena_fail(arena, "media", err);
    }
    TRY(rt_example_shapes(method, NULL, shapes, err));
    for (uint32_t i = 0; i < count; i++) {
        bool is_tensor = rt_method_input(method, i)->kind == RT_IO_TENSOR;
        bool is_beside = i == medium->parts[MEDIUM_MASK] || i == medium->parts[MEDIUM_TYPES];
        given[i] = is_tensor ? &shapes[i] : NULL;
        if (i == medium->input || is_beside) {
            uint8_t last = shapes[i].rank - 1;
            shapes[i].dims[last] = (medium->io->shape.dims[last] + 1) / 2;
        }
    }
    *out = given;
    return ST_OK;
}

/* Tries a shorter length. */
bool medium_has_length(const struct medium *medium, struct rt_method *method)
{
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    const struct shape **given = NULL;
    struct error err;
    struct arena arena;
    if (!rt_io_is_dynamic(io, last) || io->shape.dims[last] < 2) {
        return true;
    }
    arena_init(&arena, SHAPES_BYTES_MAX);
    struct rt_result_info *infos =
        arena_array(&arena, (size_t)rt_method_result_count(method) + 1, sizeof(*infos));
    bool varies = infos && halve(method, medium, &arena, &given, &err) == ST_OK &&
                  rt_method_result_shapes(method, given, infos, &err) == ST_OK;
    arena_fini(&arena);
    return !varies;
}

uint64_t medium_last_dim(const struct medium *medium, bool *out_is_fixed)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    const struct shape *shape = &medium->io->shape;
    *out_is_fixed = shape->rank && !rt_io_is_dynamic(medium->io, shape->rank - 1);
    return shape->rank ? (uint64_t)shape->dims[shape->rank - 1] : 1;
}

/* ---- pipelines, descriptions ----------------------------------------------------------------- */

void medium_find_dtypes(struct medium *medium, const struct rt_method *method)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    for (int part = 0; part < MEDIUM_PARTS; part++) {
        if (medium->parts[part] != MEDIUM_ABSENT) {
            medium->dtypes[part] = rt_method_input(method, medium->parts[part])->dtype;
        }
    }
}

enum status medium_relay(struct medium *medium, const struct rt_method *method, uint32_t input,
                         const uint32_t parts[MEDIUM_PARTS], struct medium **out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    struct medium *relay = malloc(sizeof(*relay));
    *out = relay;
    if (!relay) {
        return error_no_memory(err, "media");
    }
    *relay = *medium;
    refs_init(&relay->refs);
    relay->base = take_ref(medium);
    relay->input = input;
    relay->io = rt_method_input(method, input);
    relay->ops->bound(relay);
    memcpy(relay->parts, parts, sizeof(relay->parts));
    medium_find_dtypes(relay, method);
    return ST_OK;
}

bool medium_is_alike(const struct medium *a, const struct medium *b,
                     char out_what[CARD_MEDIA_TEXT_MAX])
{
    OBJ_CHECK(a, MEDIUM_MAGIC);
    OBJ_CHECK(b, MEDIUM_MAGIC);
    if (a->kind != b->kind) {
        (void)card_list_media(" or ", false, out_what);
        return false;
    }
    const char *what = a->ops->compare(a, b);
    snprintf(out_what, CARD_MEDIA_TEXT_MAX, "%s", what ? what : "");
    return !what;
}

void medium_print(const struct medium *medium, struct buf *out)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    medium->ops->print(medium, out);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

bool medium_is_fixed(const struct medium *medium)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    return medium->ops->is_fixed(medium);
}

enum medium_way medium_way(const struct medium *medium)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    return medium->kind->is_text                                   ? MEDIUM_TEXTS
           : medium->ops->measure || medium->ops->is_fixed(medium) ? MEDIUM_ROWS
                                                                   : MEDIUM_LONGEST;
}

/* Of an input without a dim for rows: one row. */
static bool has_rows(const struct medium *medium)
{
    return medium->io->shape.rank > medium->item_rank;
}

enum status medium_shape(const struct medium *medium, int64_t rows, uint64_t length,
                         struct shape *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    const struct rt_io *io = medium->io;
    int64_t most = has_rows(medium) ? io->shape.dims[0] : 1;
    bool varies = has_rows(medium) && (io->dynamic_dims & 1);
    if (rows > most || rows < 1 || (!varies && rows != most)) {
        return error_set(err, ST_INVALID, "expected %s%lld %s%s, got %lld",
                         varies ? "at most " : "", (long long)most,
                         medium->kind->is_text ? "text" : "file", most == 1 ? "" : "s",
                         (long long)rows);
    }
    *out = io->shape;
    if (has_rows(medium)) {
        out->dims[0] = rows;
    }
    medium->ops->shape(medium, length, out);
    return ST_OK;
}

enum status medium_shape_sides(const struct medium *medium, int64_t rows, const uint32_t sides[2],
                               struct shape *out, struct error *err)
{
    must(medium->ops->measure);
    TRY(medium_shape(medium, rows, 0, out, err));
    out->dims[1] = sides[0];
    out->dims[2] = sides[1];
    return ST_OK;
}

enum status medium_compare(const struct medium *medium, uint32_t index, const uint32_t sides[2],
                           const uint32_t first[2], struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    return index == 0 || (sides[0] == first[0] && sides[1] == first[1])
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected a %s that becomes %u x %u (height x width), as the first "
                           "one of the call, got one that becomes %u x %u",
                           medium->kind->noun, first[0], first[1], sides[0], sides[1]);
}

/* ---- files ----------------------------------------------------------------------------------- */

enum status medium_take(struct medium_reader *reader, size_t bytes, struct error *err)
{
    if (reader->account && !reader->account->take(reader->account->user, bytes)) {
        reader->wanted = bytes;
        return error_set(err, ST_EXHAUSTED, "no memory now to read a file, which takes %zu bytes",
                         bytes);
    }
    return ST_OK;
}

void medium_give(const struct medium_reader *reader, size_t bytes)
{
    if (reader->account) {
        reader->account->give(reader->account->user, bytes);
    }
}

/* The time of decoding is in proportion to the decoded bytes or to the file, whichever is larger.
 */
enum status medium_weigh(struct medium_reader *reader, struct span file, uint64_t decoded,
                         struct error *err)
{
    reader->work += decoded > file.len ? decoded : file.len;
    return reader->work_max == 0 || reader->work <= reader->work_max
               ? ST_OK
               : error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
}

enum status medium_measure(const struct medium *medium, struct span file,
                           struct medium_reader *reader, uint32_t out_sides[2], struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    must(medium->ops->measure);
    return medium->ops->measure(medium, file, reader, out_sides, err);
}

enum status medium_read(const struct medium *medium, struct span file, struct medium_reader *reader,
                        void *dst, size_t bytes, struct error *err)
{
    must(medium_way(medium) == MEDIUM_ROWS);
    return medium->ops->read(medium, file, reader, dst, bytes, err);
}

enum status medium_hold(const struct medium *medium, struct span file, struct medium_reader *reader,
                        struct medium_held *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    *out = (struct medium_held){.values = NULL};
    enum status status = medium->ops->hold(medium, file, reader, out, err);
    if (status != ST_OK) {
        medium_drop(out, reader);
    }
    return status;
}

void medium_drop(struct medium_held *held, const struct medium_reader *reader)
{
    free(held->values);
    if (held->bytes > 0) {
        medium_give(reader, held->bytes);
    }
    *held = (struct medium_held){.values = NULL};
}

enum status medium_put_held(const struct medium *medium, const struct medium_held *held,
                            uint32_t count, struct rt_invocation *invocation,
                            struct shape *out_shape, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    uint64_t longest = 0;
    void *memory;
    size_t bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length = medium->ops->length(medium, &held[i]);
        longest = length > longest ? length : longest;
    }
    TRY(medium_shape(medium, count, longest, out_shape, err));
    TRY(rt_invocation_input(invocation, medium->input, DT_F32, out_shape, &memory, err));
    TRY(shape_bytes(out_shape, DT_F32, &bytes, err));
    for (uint32_t i = 0; i < count; i++) {
        float *row = (float *)memory + bytes / sizeof(float) / count * i;
        TRY(medium->ops->write(medium, &held[i], longest, row, err));
    }
    return ST_OK;
}
