/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/png_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/table.h"

#define LEVEL 6
#define SIDE_MAX 0x7fffffffu
/* Bytes of the answer that are reserved at a time, and bytes of an IDAT chunk. */
#define ROOM 8192

/* Filters of a row: none, the difference to the left, the difference to the row above. */
#define FILTERS 3

static const struct {
    uint8_t channels, bits, color_type;
} kinds[] = {
    [PNG_GRAY] = {1, 8, 0}, [PNG_GRAY_16] = {1, 16, 0}, [PNG_PALETTE] = {1, 8, 3},
    [PNG_RGB] = {3, 8, 2},  [PNG_RGBA] = {4, 8, 6},
};
TABLE_ENDS_WITH(kinds, PNG_RGBA);

struct writer {
    const struct png_picture *picture;
    struct buf *out;
    z_stream zlib;
    size_t pixel_bytes, row_bytes;
    uint8_t *above, *row;     /* in file order; |above| is zeros before the first row */
    uint8_t *filtered, *best; /* each with the number of its filter first */
    uint8_t *memory;          /* owned: all of these */
};

/* ---- chunks ---------------------------------------------------------------------------------- */

static void store_be32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void add_be32(struct buf *out, uint32_t value)
{
    uint8_t bytes[4];
    store_be32(bytes, value);
    buf_add(out, bytes, sizeof(bytes));
}

static void add_chunk(struct buf *out, const char type[4], const uint8_t *data, uint32_t len)
{
    uLong crc = crc32(crc32(0, (const Bytef *)type, 4), data, len);
    add_be32(out, len);
    buf_add(out, type, 4);
    buf_add(out, data, len);
    add_be32(out, (uint32_t)crc);
}

static void add_head(const struct png_picture *picture, struct buf *out)
{
    uint8_t head[13] = {0};
    store_be32(head, picture->width);
    store_be32(head + 4, picture->height);
    head[8] = kinds[picture->kind].bits;
    head[9] = kinds[picture->kind].color_type;
    buf_add(out, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(out, "IHDR", head, sizeof(head));
}

static void add_colors(const struct png_picture *picture, struct buf *out)
{
    uint8_t colors[3 * PNG_COLOR_COUNT_MAX] = {0}, alphas[PNG_COLOR_COUNT_MAX] = {0};
    uint32_t alpha_count = 0;
    for (uint32_t i = 0; i < picture->color_count; i++) {
        memcpy(colors + 3 * (size_t)i, picture->colors + 4 * (size_t)i, 3);
        alphas[i] = picture->colors[4 * (size_t)i + 3];
        alpha_count = alphas[i] != 255 ? i + 1 : alpha_count;
    }
    add_chunk(out, "PLTE", colors, 3 * picture->color_count);
    if (alpha_count > 0) {
        add_chunk(out, "tRNS", alphas, alpha_count);
    }
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* The row in the order of the file, which is big-endian. */
static void take_row(struct writer *writer, uint32_t y)
{
    const struct png_picture *picture = writer->picture;
    const uint8_t *from = (const uint8_t *)picture->pixels + writer->row_bytes * (size_t)y;
    if (picture->kind != PNG_GRAY_16) {
        memcpy(writer->row, from, writer->row_bytes);
        return;
    }
    for (size_t i = 0; i < writer->row_bytes; i += 2) {
        uint16_t value;
        memcpy(&value, from + i, sizeof(value));
        writer->row[i] = (uint8_t)(value >> 8);
        writer->row[i + 1] = (uint8_t)value;
    }
}

/* Writes the row to |filtered|; returns how far its bytes are from 0, in all. */
static uint64_t filter_row(struct writer *writer, uint8_t filter)
{
    uint64_t sum = 0;
    writer->filtered[0] = filter;
    for (size_t i = 0; i < writer->row_bytes; i++) {
        uint8_t left = i >= writer->pixel_bytes ? writer->row[i - writer->pixel_bytes] : 0;
        uint8_t near = filter == 0 ? 0 : filter == 1 ? left : writer->above[i];
        uint8_t byte = (uint8_t)(writer->row[i] - near);
        writer->filtered[1 + i] = byte;
        sum += byte < 128 ? byte : 256u - byte;
    }
    return sum;
}

static void swap(uint8_t **a, uint8_t **b)
{
    uint8_t *kept = *a;
    *a = *b;
    *b = kept;
}

/* The filter whose bytes are nearest to 0 compresses best as a rule. Numbers of colours are no
 * quantities: their differences say nothing. */
static void choose_filter(struct writer *writer)
{
    uint64_t least = UINT64_MAX;
    int count = writer->picture->kind == PNG_PALETTE ? 1 : FILTERS;
    for (int filter = 0; filter < count; filter++) {
        uint64_t sum = filter_row(writer, (uint8_t)filter);
        if (sum < least) {
            least = sum;
            swap(&writer->filtered, &writer->best);
        }
    }
}

/* Compresses |len| bytes into chunks of at most ROOM bytes. */
static void add_bytes(struct writer *writer, uint8_t *bytes, size_t len, int flush)
{
    uint8_t room[ROOM];
    z_stream *zlib = &writer->zlib;
    int code = Z_OK;
    zlib->next_in = bytes;
    zlib->avail_in = (uInt)len;
    do {
        zlib->next_out = room;
        zlib->avail_out = ROOM;
        code = deflate(zlib, flush);
        if (zlib->avail_out < ROOM) {
            add_chunk(writer->out, "IDAT", room, (uint32_t)(ROOM - zlib->avail_out));
        }
    } while (zlib->avail_out == 0 && code != Z_STREAM_END && !buf_failed(writer->out));
}

static void add_pixels(struct writer *writer)
{
    for (uint32_t y = 0; y < writer->picture->height && !buf_failed(writer->out); y++) {
        take_row(writer, y);
        choose_filter(writer);
        add_bytes(writer, writer->best, 1 + writer->row_bytes, Z_NO_FLUSH);
        swap(&writer->row, &writer->above);
    }
    add_bytes(writer, writer->best, 0, Z_FINISH);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum status check_palette(const struct png_picture *picture, struct error *err)
{
    const uint8_t *pixels = picture->pixels;
    size_t count = (size_t)picture->height * picture->width;
    if (picture->color_count < 1 || picture->color_count > PNG_COLOR_COUNT_MAX) {
        return error_set(err, ST_INVALID, "PNG: expected 1 to %d colours, got %" PRIu32,
                         PNG_COLOR_COUNT_MAX, picture->color_count);
    }
    for (size_t i = 0; i < count; i++) {
        if (pixels[i] >= picture->color_count) {
            return error_set(err, ST_INVALID,
                             "PNG: pixel %zu has the colour %u, expected 0 to %" PRIu32, i,
                             pixels[i], picture->color_count - 1);
        }
    }
    return ST_OK;
}

static enum status check(const struct png_picture *picture, struct error *err)
{
    if (picture->height < 1 || picture->height > SIDE_MAX || picture->width < 1 ||
        picture->width > SIDE_MAX / 4) {
        return error_set(err, ST_INVALID,
                         "PNG: expected a height and a width of at least 1, got %" PRIu32
                         " x %" PRIu32,
                         picture->height, picture->width);
    }
    return picture->kind == PNG_PALETTE ? check_palette(picture, err) : ST_OK;
}

static enum status open_writer(struct writer *writer, struct error *err)
{
    size_t row = writer->row_bytes;
    writer->memory = calloc(4, row + 1);
    if (!writer->memory || deflateInit(&writer->zlib, LEVEL) != Z_OK) {
        free(writer->memory);
        return error_no_memory(err, "a PNG");
    }
    writer->above = writer->memory;
    writer->row = writer->above + row;
    writer->filtered = writer->row + row;
    writer->best = writer->filtered + row + 1;
    return ST_OK;
}

enum status png_write(const struct png_picture *picture, struct buf *out, struct error *err)
{
    struct writer writer = {.picture = picture, .out = out};
    TRY(check(picture, err));
    writer.pixel_bytes = kinds[picture->kind].channels * (kinds[picture->kind].bits / 8u);
    writer.row_bytes = writer.pixel_bytes * picture->width;
    TRY(open_writer(&writer, err));
    add_head(picture, out);
    if (picture->kind == PNG_PALETTE) {
        add_colors(picture, out);
    }
    add_pixels(&writer);
    add_chunk(out, "IEND", (const uint8_t *)"", 0); /* crc32() of NULL is something else */
    deflateEnd(&writer.zlib);
    free(writer.memory);
    if (buf_failed(out)) {
        return out->lacks_memory
                   ? error_no_memory(err, "a PNG")
                   : error_set(err, ST_TOO_LARGE, "PNG: longer than %zu bytes", out->max_bytes);
    }
    return ST_OK;
}
