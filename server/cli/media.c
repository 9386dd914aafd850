/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/media.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cards.h"
#include "protocol/json.h"
#include "server/cli/call.h"
#include "server/cli/cli.h"
#include "server/cli/result.h"
#include "server/process/file.h"

#define FILE_BYTES_MAX ((size_t)4 << 30)
#define ANSWER_BYTES_MAX ((size_t)1 << 30)
#define ARENA_BYTES_MAX ((size_t)64 << 20)

/* The user's own files; the limits of formats remain. */
static const struct medium_limits limits = {
    .image = {.pixels_max = (uint64_t)IMAGE_SIDE_MAX * IMAGE_SIDE_MAX},
    .sound = {.seconds_max = 86400, .channels_max = 1024, .rate_max = 768000},
};

/* ---- what the card says ---------------------------------------------------------------------- */

/* The method as cards know it. */
static struct rt_method *method_of(const struct cli_call *call)
{
    return lib_method_runtime(call->method);
}

static const struct card_io *find_io(const struct cli_call *call, enum rt_side side, uint32_t index)
{
    const struct card_method *said =
        call->card ? card_find_method(call->card, method_of(call)) : NULL;
    return said ? card_find_io(said, side, index) : NULL;
}

enum status cli_media_open(struct cli_call *call, struct error *err)
{
    struct cli_media *media = &call->media;
    uint32_t count = call->input_count;
    arena_init(&media->arena, ARENA_BYTES_MAX);
    media->picture = call->card ? card_find_picture(call->card, method_of(call)) : NULL;
    media->kinds = calloc((size_t)count + 1, sizeof(const struct card_medium *));
    media->items = calloc((size_t)count + 1, sizeof(struct medium *));
    if (!media->kinds || !media->items) {
        return error_no_memory(err, "a file");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct card_io *io = find_io(call, RT_INPUT, i);
        media->kinds[i] = io ? io->media.kind : NULL;
    }
    return ST_OK;
}

void cli_media_close(struct cli_call *call)
{
    struct cli_media *media = &call->media;
    for (uint32_t i = 0; media->items && i < call->input_count; i++) {
        medium_unref(media->items[i]);
    }
    free(media->items);
    free(media->kinds);
    arena_fini(&media->arena);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Reads a file and hands it to |take| with |row|. */
typedef enum status take_f(const struct medium *medium, struct span file,
                           struct medium_reader *reader, void *row, size_t bytes,
                           struct error *err);

static enum status read_file(const struct medium *medium, const char *path,
                             struct medium_reader *reader, take_f *take, void *row, size_t bytes,
                             struct error *err)
{
    struct buf file;
    buf_init(&file, FILE_BYTES_MAX);
    enum status status = file_read(path, &file, err);
    if (status == ST_OK) {
        status = take(medium, buf_span(&file), reader, row, bytes, err);
    }
    buf_fini(&file);
    if (status == ST_INVALID) { /* the command line is well */
        err->code = status = ST_CORRUPT;
    }
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", path);
}

/* Room for the places of the pictures; NULL: answers are not about them. */
static enum status make_places(struct cli_media *media, uint32_t index, uint32_t count,
                               struct image_place **out, struct error *err)
{
    *out = NULL;
    if (!media->picture || index != media->picture->index) {
        return ST_OK;
    }
    arena_reset(&media->arena);
    *out = media->places = arena_array(&media->arena, count, sizeof(*media->places));
    media->place_count = *out ? count : 0;
    return *out ? ST_OK : arena_fail(&media->arena, "the pictures", err);
}

static enum status measure(const struct medium *medium, struct span file,
                           struct medium_reader *reader, void *sides, size_t bytes,
                           struct error *err)
{
    (void)bytes;
    return medium_measure(medium, file, reader, sides, err);
}

/* Where the size of pictures varies, the first one has it, and the others must have it, too. */
static enum status shape_rows(const struct medium *medium, const char *const *paths, uint32_t count,
                              struct shape *out_shape, struct error *err)
{
    uint32_t first[2], sides[2];
    bool is_known = medium_is_fixed(medium);
    for (uint32_t i = 0; !is_known && i < count; i++) {
        struct medium_reader reader = {.limits = &limits};
        TRY(read_file(medium, paths[i], &reader, measure, sides, sizeof(sides), err));
        if (medium_compare(medium, i, sides, first, err) != ST_OK) {
            err->code = ST_CORRUPT;
            return error_prefix(err, "%s: ", paths[i]);
        }
        memcpy(first, sides, sizeof(first));
    }
    return is_known || count == 0 ? medium_shape(medium, count, 0, out_shape, err)
                                  : medium_shape_sides(medium, count, first, out_shape, err);
}

static enum status set_rows(struct cli_call *call, const struct medium *medium,
                            const char *const *paths, uint32_t count, struct shape *out_shape,
                            struct error *err)
{
    struct image_place *places;
    void *memory;
    size_t bytes;
    TRY(shape_rows(medium, paths, count, out_shape, err));
    enum dtype dtype = call->input_ios[medium->input].dtype;
    TRY(cli_call_allocate(call, medium->input, dtype, out_shape, &memory, err));
    TRY(shape_bytes(out_shape, dtype, &bytes, err));
    TRY(make_places(&call->media, medium->input, count, &places, err));
    for (uint32_t i = 0; i < count; i++) {
        struct medium_reader reader = {.limits = &limits, .place = places ? &places[i] : NULL};
        TRY(read_file(medium, paths[i], &reader, medium_read, (uint8_t *)memory + bytes / count * i,
                      bytes / count, err));
    }
    return ST_OK;
}

static enum status hold(const struct medium *medium, struct span file, struct medium_reader *reader,
                        void *held, size_t bytes, struct error *err)
{
    (void)bytes;
    return medium_hold(medium, file, reader, held, err);
}

static enum status set_longest(struct cli_call *call, const struct medium *medium,
                               const char *const *paths, uint32_t count, struct shape *out_shape,
                               struct error *err)
{
    struct medium_reader reader = {.limits = &limits};
    struct medium_held *held = calloc(count, sizeof(*held));
    enum status status = held ? ST_OK : error_no_memory(err, "a file");
    for (uint32_t i = 0; status == ST_OK && i < count; i++) {
        status = read_file(medium, paths[i], &reader, hold, &held[i], sizeof(*held), err);
    }
    if (status == ST_OK) {
        status = medium_put_held(medium, held, count, lib_call_runtime(call->call), out_shape, err);
    }
    for (uint32_t i = 0; held && i < count; i++) {
        medium_drop(&held[i], &reader);
    }
    free(held);
    return status;
}

static enum status encode(struct cli_call *call, const struct medium *medium,
                          const char *const *texts, uint32_t count, struct arena *arena,
                          struct shape *out_shape, struct error *err)
{
    bool are_given[MEDIUM_PARTS] = {false};
    struct texts_ids *ids = arena_array(arena, count, sizeof(*ids));
    if (!ids) {
        return arena_fail(arena, "the texts", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(json_is_utf8(span_str(texts[i]))
                ? medium_encode(medium, span_str(texts[i]), arena, &ids[i], err)
                : error_set(err, ST_INVALID, "expected a text in UTF-8"));
    }
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        uint32_t index = medium->parts[part];
        are_given[part] = index != MEDIUM_ABSENT && call->inputs.items[index].text;
    }
    return medium_put_texts(medium, ids, count, are_given, lib_call_runtime(call->call), out_shape,
                            err);
}

/* The inputs that are filled with the text have its shape. */
static enum status set_texts(struct cli_call *call, const struct medium *medium,
                             const char *const *texts, uint32_t count, struct shape *out_shape,
                             struct error *err)
{
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    enum status status = encode(call, medium, texts, count, &arena, out_shape, err);
    arena_fini(&arena);
    for (int part = MEDIUM_MASK; status == ST_OK && part < MEDIUM_PARTS; part++) {
        struct cli_inputs_item *item =
            medium->parts[part] == MEDIUM_ABSENT ? NULL : &call->inputs.items[medium->parts[part]];
        if (item && !item->text) {
            item->is_filled = item->has_shape = true;
            item->shape = *out_shape;
        }
    }
    return status;
}

typedef enum status set_f(struct cli_call *call, const struct medium *medium,
                          const char *const *items, uint32_t count, struct shape *out_shape,
                          struct error *err);

enum status cli_media_set(struct cli_call *call, uint32_t index, const char *const *items,
                          uint32_t count, struct shape *out_shape, struct error *err)
{
    static set_f *const ways[] = {
        [MEDIUM_ROWS] = set_rows, [MEDIUM_LONGEST] = set_longest, [MEDIUM_TEXTS] = set_texts};
    struct medium **medium = &call->media.items[index];
    if (!*medium) {
        TRY(medium_new(method_of(call), find_io(call, RT_INPUT, index), call->options->path, NULL,
                       medium, err));
    }
    return ways[medium_way(*medium)](call, *medium, items, count, out_shape, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

const struct answer_form *cli_media_answer(const struct cli_call *call, uint32_t index)
{
    return call->card ? card_find_answer(call->card, method_of(call), index) : NULL;
}

const struct card_labels *cli_media_labels(const struct cli_call *call, uint32_t index)
{
    return call->card ? card_find_labels(call->card, method_of(call), index) : NULL;
}

/* Adds result |index|, which is a tensor, to what answers see of it. */
static enum status read_tensor(struct cli_call *call, uint32_t index, struct answer_tensor *out,
                               struct error *err)
{
    struct cli_result result;
    *out = card_answer_tensor(method_of(call), index);
    if (index != ANSWER_NO_INDEX) {
        TRY(cli_call_result(call, index, &result, err));
        out->shape = result.shape;
        out->bytes = result.bytes;
    }
    return ST_OK;
}

static enum status read_source(struct cli_call *call, uint32_t index, struct answer_source *out,
                               struct error *err)
{
    const struct cli_media *media = &call->media;
    const struct answer_form *answer = cli_media_answer(call, index);
    const struct card_labels *labels = cli_media_labels(call, index);
    const struct shape *pixels =
        media->picture ? &call->inputs.items[media->picture->index].shape : NULL;
    *out = (struct answer_source){
        .answer = answer,
        .labels = labels ? labels->items : NULL,
        .label_count = labels ? labels->count : 0,
        .pixels = {pixels ? (uint32_t)pixels->dims[1] : 0, pixels ? (uint32_t)pixels->dims[2] : 0},
        .places = media->places,
        .place_count = media->place_count,
    };
    TRY(read_tensor(call, index, &out->tensor, err));
    TRY(read_tensor(call, answer->scores, &out->scores, err));
    TRY(read_tensor(call, answer->classes, &out->classes, err));
    return read_tensor(call, answer->masks, &out->masks, err);
}

enum status cli_media_print(struct cli_call *call, uint32_t index, struct error *err)
{
    const char *name = call->result_ios[index].name;
    struct answer_source source;
    struct buf out;
    enum status status = read_source(call, index, &source, err);
    buf_init(&out, ANSWER_BYTES_MAX);
    for (size_t row = 0; status == ST_OK && row < answer_rows(&source); row++) {
        buf_printf(&out, "%s[%zu]: ", name, row);
        status = answer_describe(&source, row, &out, err);
        buf_add_char(&out, '\n');
    }
    status = status == ST_OK ? cli_write(&out, err) : error_prefix(err, "%s: ", name);
    buf_fini(&out);
    return status;
}

static enum status write_row(const struct answer_source *source, size_t row, const char *name,
                             const char *folder, struct error *err)
{
    struct buf out;
    buf_init(&out, ANSWER_BYTES_MAX);
    enum status status = answer_write(source, row, &out, err);
    if (status == ST_OK) {
        status = buf_failed(&out)
                     ? error_set(err, ST_TOO_LARGE, "the answer has more than %zu bytes",
                                 ANSWER_BYTES_MAX)
                     : cli_result_write_row(folder, name, row, source->answer->kind, buf_span(&out),
                                            err);
    }
    buf_fini(&out);
    return status;
}

enum status cli_media_write(struct cli_call *call, uint32_t index, const char *folder,
                            struct error *err)
{
    const char *name = call->result_ios[index].name;
    struct answer_source source;
    TRY(read_source(call, index, &source, err));
    for (size_t row = 0; row < answer_rows(&source); row++) {
        if (write_row(&source, row, name, folder, err) != ST_OK) {
            return error_prefix(err, "%s: ", name);
        }
    }
    return ST_OK;
}
