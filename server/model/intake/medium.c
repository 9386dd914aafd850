/* SPDX-License-Identifier: MIT */
/* From a card to a medium: how rows are made is settled here, once. */
#include "config.h"

#include "server/model/intake/medium.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"
#include "server/language/sidecar.h"
#include "server/language/words.h"
#include "server/media/log_mel.h"

#define SHAPES_BYTES_MAX (1 << 20)
#define FRAMES_PER_S (LOG_MEL_RATE / LOG_MEL_HOP)

struct medium *medium_ref(struct medium *medium)
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
        } else {
            log_mel_free(medium->log_mel);
            words_free(medium->words);
        }
        medium->magic = 0;
        free(medium);
    }
}

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
        if (i == medium->input || (medium->kind == MEDIUM_TEXT && is_beside)) {
            uint8_t last = shapes[i].rank - 1;
            shapes[i].dims[last] = (medium->io->shape.dims[last] + 1) / 2;
        }
    }
    *out = given;
    return ST_OK;
}

/* Does the last dim really vary? A file that has any dims which vary does not say which. */
static bool has_length(struct rt_method *method, const struct medium *medium)
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

/* ---- pictures -------------------------------------------------------------------------------- */

/* The pixels have red first; where the program takes blue first, it has a step that turns them. */
static enum status take_image(struct medium *medium, const struct card_image *said,
                              struct error *err)
{
    medium->image = (struct image_form){
        .resize_height = said->resize[0],
        .resize_width = said->resize[1],
        .fit = said->fit,
        .filter = said->filter,
        .crop_height = said->crop[0],
        .crop_width = said->crop[1],
        .crop_rounds_down = said->crop_rounds_down,
        .fill = {said->fill[0], said->fill[1], said->fill[2]},
        .colors = said->colors == CARD_GRAY ? IMAGE_GRAY : IMAGE_RGB,
        .height = said->has_any_height ? 0 : said->height,
        .width = said->has_any_width ? 0 : said->width,
        .draft = said->is_draft,
    };
    medium->sides_max[0] = said->height;
    medium->sides_max[1] = said->width;
    must(image_form_channels(&medium->image) == said->channels);
    return image_load(err);
}

/* ---- sound ----------------------------------------------------------------------------------- */

static enum status take_sound(struct medium *medium, struct rt_method *method,
                              const struct card_sound *said, struct error *err)
{
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    medium->rate = said->rate;
    medium->length_max = (uint64_t)io->shape.dims[last];
    bool is_fixed = has_length(method, medium);
    if (said->seconds > 0) {
        double length = said->seconds * (said->is_log_mel ? FRAMES_PER_S : said->rate);
        medium->length = length < 1 ? 1 : (uint64_t)llround(length);
    } else if (is_fixed) {
        medium->length = medium->length_max;
    }
    if (is_fixed && medium->length != medium->length_max) {
        return error_set(err, ST_INVALID,
                         "sound.seconds: the program takes %llu samples or frames, no fewer",
                         (unsigned long long)medium->length_max);
    }
    if (said->is_log_mel) {
        int64_t bands = io->shape.dims[last - 1];
        if (bands < 1 || bands > LOG_MEL_BANDS_MAX || medium->length_max < 2) {
            return error_set(err, ST_INVALID,
                             "sound: expected 1 to %d bands and at least 2 frames, the program "
                             "takes %lld and %llu",
                             LOG_MEL_BANDS_MAX, (long long)bands,
                             (unsigned long long)medium->length_max);
        }
        TRY(log_mel_new((uint32_t)bands, &medium->log_mel, err));
    }
    return sound_load(err);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static enum status load_words(struct medium *medium, const char *path, const char *tokenizer,
                              struct error *err)
{
    struct sidecars sidecars;
    TRY(sidecar_init(&sidecars, path, tokenizer, err));
    return sidecar_has_tokenizer(&sidecars)
               ? sidecar_load_words(&sidecars, &medium->words, err)
               : error_set(err, ST_INVALID, "text: there is no tokenizer beside the program");
}

static enum status take_text(struct medium *medium, struct rt_method *method,
                             const struct card_text *said, const char *path, const char *tokenizer,
                             struct error *err)
{
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    uint32_t most = (uint32_t)io->shape.dims[last];
    medium->parts[MEDIUM_IDS] = medium->input;
    medium->parts[MEDIUM_MASK] = said->mask ? said->mask_index : MEDIUM_ABSENT;
    medium->parts[MEDIUM_TYPES] = said->types ? said->types_index : MEDIUM_ABSENT;
    for (int part = 0; part < MEDIUM_PARTS; part++) {
        if (medium->parts[part] != MEDIUM_ABSENT) {
            medium->dtypes[part] = rt_method_input(method, medium->parts[part])->dtype;
        }
    }
    medium->tokens_max = said->max_tokens ? said->max_tokens : most;
    medium->tokens = has_length(method, medium) ? most : said->is_padded ? medium->tokens_max : 0;
    TRY(load_words(medium, path, said->tokenizer ? said->tokenizer : tokenizer, err));
    medium->pad = words_pad(medium->words);
    return ST_OK;
}

enum status medium_new(struct rt_method *method, const struct card_io *said, const char *path,
                       const char *tokenizer, struct medium **out, struct error *err)
{
    *out = NULL;
    if (!said || said->media.kind == MEDIUM_NONE) {
        return ST_OK;
    }
    struct medium *medium = calloc(1, sizeof(*medium));
    if (!medium) {
        return error_set(err, ST_EXHAUSTED, "media: out of memory");
    }
    medium->magic = MEDIUM_MAGIC;
    refs_init(&medium->refs);
    medium->kind = said->media.kind;
    medium->input = said->index;
    medium->io = rt_method_input(method, said->index);
    enum status status = medium->kind == MEDIUM_IMAGE ? take_image(medium, &said->media.image, err)
                         : medium->kind == MEDIUM_SOUND
                             ? take_sound(medium, method, &said->media.sound, err)
                             : take_text(medium, method, &said->media.text, path, tokenizer, err);
    if (status != ST_OK) {
        medium_unref(medium);
        return error_prefix(err, "input '%s': ", rt_method_input(method, said->index)->name);
    }
    *out = medium;
    return ST_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

bool medium_is_fixed(const struct medium *medium)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    return medium->kind == MEDIUM_IMAGE ? medium->image.height && medium->image.width
                                        : (medium->kind == MEDIUM_SOUND && medium->length > 0);
}

/* Of an input without a dim for rows: one row. */
static bool has_rows(const struct medium *medium)
{
    return medium->io->shape.rank > (medium->log_mel ? 2 : 1);
}

enum status medium_shape(const struct medium *medium, int64_t rows, uint64_t length,
                         struct shape *out, struct error *err)
{
    OBJ_CHECK(medium, MEDIUM_MAGIC);
    const struct rt_io *io = medium->io;
    uint8_t last = io->shape.rank - 1;
    int64_t most = has_rows(medium) ? io->shape.dims[0] : 1;
    bool varies = has_rows(medium) && (io->dynamic_dims & 1);
    if (rows > most || rows < 1 || (!varies && rows != most)) {
        return error_set(err, ST_INVALID, "expected %s%lld %s%s, got %lld",
                         varies ? "at most " : "", (long long)most,
                         medium->kind == MEDIUM_TEXT ? "text" : "file", most == 1 ? "" : "s",
                         (long long)rows);
    }
    *out = io->shape;
    if (has_rows(medium)) {
        out->dims[0] = rows;
    }
    if (medium->kind == MEDIUM_IMAGE) {
        out->dims[1] = medium->sides_max[0];
        out->dims[2] = medium->sides_max[1];
    } else {
        uint64_t fixed = medium->kind == MEDIUM_TEXT ? medium->tokens : medium->length;
        out->dims[last] = (int64_t)(fixed ? fixed : length);
    }
    return ST_OK;
}

enum status medium_picture_shape(const struct medium *medium, int64_t rows, const uint32_t sides[2],
                                 struct shape *out, struct error *err)
{
    must(medium->kind == MEDIUM_IMAGE);
    TRY(medium_shape(medium, rows, 0, out, err));
    out->dims[1] = sides[0];
    out->dims[2] = sides[1];
    return ST_OK;
}
