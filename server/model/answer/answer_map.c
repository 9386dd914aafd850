/* SPDX-License-Identifier: MIT */
/* Classes of pixels as a PNG file with a palette. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/base64.h"
#include "server/media/png_write.h"
#include "server/model/answer/answer_priv.h"

#define PNG_BYTES_MAX ((size_t)256 << 20)
#define CLASSES_MAX PNG_COLOR_COUNT_MAX
/* Of a map in the size of the picture sent, and of all maps of an answer: 2^24 take 0.2 s. */
#define SENT_PIXELS_MAX ((size_t)1 << 24)
#define ALL_PIXELS_MAX ((size_t)1 << 26)
#define PNG_FACTOR 2 /* most bytes of a file for each byte of its pixels, as its buffer doubles */
#define OUTSIDE 0    /* the class of pixels that the model has not seen */

/* The colour of a class: red, green, blue, as the palette of PASCAL VOC has them. Bit 0 of the
 * class is the highest bit of red, bit 1 of green, bit 2 of blue, bit 3 the next one of red, and so
 * on. */
static void color_of(uint32_t class, uint8_t out[3])
{
    for (int c = 0; c < 3; c++) {
        out[c] = 0;
        for (int bit = 0; bit < 8; bit++) {
            uint32_t at = (uint32_t)(bit * 3 + c);
            out[c] |= (uint8_t)((class >> at & 1) << (7 - bit));
        }
    }
}

static enum status take_pixels(const int64_t *classes, size_t count, uint8_t *pixels,
                               struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (classes[i] < 0 || classes[i] >= CLASSES_MAX) {
            return error_set(err, ST_INVALID, "map: expected classes 0 to %d, got %" PRId64,
                             CLASSES_MAX - 1, classes[i]);
        }
        pixels[i] = (uint8_t)classes[i];
    }
    return ST_OK;
}

/* |file|: the PNG, or empty. */
static void print_members(const struct answer_source *source, const struct png_picture *picture,
                          const uint64_t counts[CLASSES_MAX], struct span file, struct buf *out)
{
    bool is_first = true;
    buf_add_char(out, '{');
    if (file.len) {
        buf_add_str(out, "\"png\":\"");
        base64_print(out, file);
        buf_add_str(out, "\",");
    }
    buf_printf(out, "\"width\":%" PRIu32 ",\"height\":%" PRIu32 ",\"classes\":[", picture->width,
               picture->height);
    for (uint32_t i = 0; i < CLASSES_MAX; i++) {
        if (counts[i]) {
            buf_add_str(out, is_first ? "{" : ",{");
            answer_print_class(source, i, out);
            buf_printf(out, ",\"pixels\":%" PRIu64 "}", counts[i]);
            is_first = false;
        }
    }
    buf_add_str(out, "]}");
}

static enum status print_picture(const struct answer_source *source,
                                 const struct png_picture *picture,
                                 const uint64_t counts[CLASSES_MAX], enum answer_map_part part,
                                 struct buf *out, struct error *err)
{
    struct buf file;
    if (part == ANSWER_MAP_FILE) {
        return png_write(picture, out, err);
    }
    buf_init(&file, PNG_BYTES_MAX);
    enum status status = part == ANSWER_MAP_ALL ? png_write(picture, &file, err) : ST_OK;
    if (status == ST_OK) {
        print_members(source, picture, counts, buf_span(&file), out);
    }
    buf_fini(&file);
    return status;
}

static enum status print_pixels(const struct answer_source *source, const uint8_t *pixels,
                                uint32_t height, uint32_t width, enum answer_map_part part,
                                struct buf *out, struct error *err)
{
    uint64_t counts[CLASSES_MAX] = {0};
    uint8_t colors[CLASSES_MAX][4];
    for (size_t i = 0; i < (size_t)height * width; i++) {
        counts[pixels[i]]++;
    }
    for (uint32_t i = 0; i < CLASSES_MAX; i++) {
        color_of(i, colors[i]);
        colors[i][3] = UINT8_MAX;
    }
    const struct png_picture picture = {
        .height = height,
        .width = width,
        .kind = PNG_PALETTE,
        .pixels = pixels,
        .colors = colors[0],
        .color_count = CLASSES_MAX,
    };
    return print_picture(source, &picture, counts, part, out, err);
}

/* In the picture that was sent. */
static enum status print_placed(const struct answer_source *source, const struct image_place *place,
                                const struct image_map *map, enum answer_map_part part,
                                struct buf *out, struct error *err)
{
    bool is_stored = source->answer->picture == ANSWER_STORED;
    uint32_t sent_height, sent_width;
    image_place_size(place, is_stored, &sent_height, &sent_width);
    size_t count = (size_t)sent_height * sent_width;
    size_t most = ALL_PIXELS_MAX / answer_rows(source);
    most = most < SENT_PIXELS_MAX ? most : SENT_PIXELS_MAX;
    if (count > most) {
        return error_set(err, ST_TOO_LARGE,
                         "map: expected a picture of at most %zu pixels, got %" PRIu32
                         " x %" PRIu32,
                         most, sent_height, sent_width);
    }
    uint8_t *placed = malloc(count);
    enum status status = placed ? ST_OK : error_no_memory(err, "%zu pixels", count);
    if (status == ST_OK) {
        status = image_place_spread(place, is_stored, map, OUTSIDE, placed, err);
    }
    if (status == ST_OK) {
        status = print_pixels(source, placed, sent_height, sent_width, part, out, err);
    }
    free(placed);
    return status;
}

static enum status print_row(const struct answer_source *source, size_t row, uint8_t *pixels,
                             enum answer_map_part part, struct buf *out, struct error *err)
{
    const struct image_place *place = answer_place(source, row);
    const struct shape *shape = &source->tensor.shape;
    const struct image_map map = {
        .pixels = pixels,
        .height = (uint32_t)shape->dims[shape->rank - 2],
        .width = (uint32_t)shape->dims[shape->rank - 1],
        .full = {source->pixels[0], source->pixels[1]},
    };
    int64_t *classes;
    TRY(answer_read_ints(&source->tensor, row, &classes, err));
    enum status status = take_pixels(classes, (size_t)map.height * map.width, pixels, err);
    free(classes);
    TRY(status);
    return place && source->pixels[0] && source->pixels[1]
               ? print_placed(source, place, &map, part, out, err)
               : print_pixels(source, pixels, map.height, map.width, part, out, err);
}

/* The pixels of the model's map, or of the map in the picture that was sent, whichever has more. */
size_t answer_map_work_bytes(const struct answer_source *source)
{
    size_t count = answer_row_numel(&source->tensor), most = 0;
    for (size_t row = 0; row < answer_rows(source); row++) {
        const struct image_place *place = answer_place(source, row);
        size_t placed = place ? (size_t)place->height * place->width : 0;
        most = placed > most ? placed : most;
    }
    most = most < SENT_PIXELS_MAX ? most : SENT_PIXELS_MAX;
    size_t file = PNG_FACTOR * (count > most ? count : most);
    return (sizeof(int64_t) + 1) * count + most + file;
}

enum status answer_print_map(const struct answer_source *source, size_t row,
                             enum answer_map_part part, struct buf *out, struct error *err)
{
    const struct shape *shape = &source->tensor.shape;
    size_t count = answer_row_numel(&source->tensor);
    if (count == 0 || shape->dims[shape->rank - 1] > INT32_MAX ||
        shape->dims[shape->rank - 2] > INT32_MAX) {
        return error_set(err, ST_INVALID, "map: a picture of that size cannot be written");
    }
    uint8_t *pixels = malloc(count);
    enum status status = pixels ? print_row(source, row, pixels, part, out, err)
                                : error_no_memory(err, "%zu pixels", count);
    free(pixels);
    return status;
}
