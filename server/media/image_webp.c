/* SPDX-License-Identifier: MIT */
/*
 * WebP: the container here, its bitstreams by libwebp, which decodes them as a whole. Only the
 * first frame of an animation counts, on a black canvas. Bitstreams of alpha are not looked at.
 * Source: Google, WebP Container Specification; RFC 6386; WebP Lossless Bitstream Specification.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/media/exif.h"
#include "server/media/image_priv.h"
#include "server/media/libwebp.h"

#define CHUNK_HEAD 8
#define FRAME_HEAD 16 /* of an ANMF chunk, before the chunks of its frame */
#define HAS_ANIMATION 0x02

/* A group of tables of a lossless picture: see count_groups_max(). Its tables have up to 5004
 * entries of four bytes, with the largest cache of colours. */
#define GROUPS_MAX ((size_t)1 << 16)
#define GROUP_BITS_MIN 20
#define GROUP_BYTES ((size_t)21 << 10)

struct chunk {
    char type[5]; /* terminated */
    struct span data;
};

static uint32_t load_le24(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static enum status next_chunk(struct span *rest, struct chunk *chunk, struct error *err)
{
    if (rest->len < CHUNK_HEAD) {
        return error_set(err, ST_INVALID, "it ends before its picture");
    }
    uint32_t len = load_le32(rest->ptr + 4);
    memcpy(chunk->type, rest->ptr, 4);
    chunk->type[4] = '\0';
    if (!in_range(CHUNK_HEAD, len, rest->len)) {
        return error_set(err, ST_INVALID, "it ends inside of a chunk of %" PRIu32 " bytes", len);
    }
    chunk->data = span_of(rest->ptr + CHUNK_HEAD, len);
    size_t whole = CHUNK_HEAD + (size_t)len + (len & 1); /* the padding may lack at the end */
    whole = whole < rest->len ? whole : rest->len;
    *rest = span_of(rest->ptr + whole, rest->len - whole);
    return ST_OK;
}

/* ---- the head -------------------------------------------------------------------------------- */

static bool is_bitstream(const struct chunk *chunk)
{
    return strcmp(chunk->type, "VP8 ") == 0 || strcmp(chunk->type, "VP8L") == 0;
}

static enum status take_bitstream(const struct chunk *chunk, struct image_head *head,
                                  struct error *err)
{
    const uint8_t *p = chunk->data.ptr;
    head->data = chunk->data;
    head->is_lossless = chunk->type[3] == 'L';
    if (head->is_lossless) {
        if (chunk->data.len < 5 || p[0] != 0x2f) {
            return error_set(err, ST_INVALID, "its lossless picture has no head");
        }
        uint32_t bits = load_le32(p + 1);
        head->data_width = (bits & 0x3fff) + 1;
        head->data_height = (bits >> 14 & 0x3fff) + 1;
        return ST_OK;
    }
    if (chunk->data.len < 10 || (p[0] & 1) != 0 || memcmp(p + 3, "\x9d\x01\x2a", 3) != 0) {
        return error_set(err, ST_INVALID, "its picture has no head");
    }
    head->data_width = load_le16(p + 6) & 0x3fff;
    head->data_height = load_le16(p + 8) & 0x3fff;
    return ST_OK;
}

/* The first frame: its place, and its bitstream among its chunks. */
static enum status take_frame(struct span frame, struct image_head *head, struct error *err)
{
    struct chunk chunk;
    if (frame.len < FRAME_HEAD) {
        return error_set(err, ST_INVALID, "its first frame has no head");
    }
    head->x = 2 * load_le24(frame.ptr);
    head->y = 2 * load_le24(frame.ptr + 3);
    uint32_t width = load_le24(frame.ptr + 6) + 1, height = load_le24(frame.ptr + 9) + 1;
    struct span rest = span_of(frame.ptr + FRAME_HEAD, frame.len - FRAME_HEAD);
    do {
        TRY(next_chunk(&rest, &chunk, err));
    } while (!is_bitstream(&chunk));
    TRY(take_bitstream(&chunk, head, err));
    if (head->data_width != width || head->data_height != height ||
        !in_range(head->x, width, head->width) || !in_range(head->y, height, head->height)) {
        return error_set(err, ST_INVALID, "its first frame has another size than it says");
    }
    return ST_OK;
}

/* A file whose first chunk, VP8X, announces others. */
static enum status take_extended(struct span first, struct span rest, struct image_head *head,
                                 struct error *err)
{
    struct chunk chunk;
    bool is_found = false;
    if (first.len < 10) {
        return error_set(err, ST_INVALID, "its head is too short");
    }
    bool is_animation = (first.ptr[0] & HAS_ANIMATION) != 0;
    head->width = load_le24(first.ptr + 4) + 1;
    head->height = load_le24(first.ptr + 7) + 1;
    while (rest.len >= CHUNK_HEAD || !is_found) {
        TRY(next_chunk(&rest, &chunk, err));
        if (strcmp(chunk.type, "EXIF") == 0 && head->orientation == 1) {
            head->orientation = exif_find_orientation(chunk.data);
        } else if (!is_found && is_animation && strcmp(chunk.type, "ANMF") == 0) {
            is_found = true;
            TRY(take_frame(chunk.data, head, err));
        } else if (!is_found && !is_animation && is_bitstream(&chunk)) {
            is_found = true;
            TRY(take_bitstream(&chunk, head, err));
        }
    }
    if (!is_animation && (head->data_width != head->width || head->data_height != head->height)) {
        return error_set(err, ST_INVALID, "its picture has another size than it says");
    }
    return ST_OK;
}

/* Bytes behind the length of the container do not belong to it. */
static enum status open(struct span file, struct image_head *head, struct error *err)
{
    struct chunk chunk;
    uint32_t len = load_le32(file.ptr + 4);
    if (len < 4 || !in_range(CHUNK_HEAD, len, file.len)) {
        return error_set(err, ST_INVALID, "it ends too early: expected %" PRIu64 " bytes, got %zu",
                         (uint64_t)len + CHUNK_HEAD, file.len);
    }
    struct span rest = span_of(file.ptr + CHUNK_HEAD + 4, len - 4);
    TRY(next_chunk(&rest, &chunk, err));
    if (strcmp(chunk.type, "VP8X") == 0) {
        return take_extended(chunk.data, rest, head, err);
    }
    if (!is_bitstream(&chunk)) {
        return error_set(err, ST_INVALID, "its first chunk is no picture");
    }
    TRY(take_bitstream(&chunk, head, err));
    head->width = head->data_width;
    head->height = head->data_height;
    return ST_OK;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/*
 * Groups of tables of codes, at most, that a lossless picture makes libwebp keep: a block of pixels
 * has one of them, the smallest blocks are 4 x 4, their numbers have 16 bits, and a group has five
 * codes, each of which takes at least four bits of the file.
 */
static size_t count_groups_max(const struct image_head *head)
{
    size_t blocks = (size_t)((head->data_width + 3) / 4) * ((head->data_height + 3) / 4);
    size_t written = (size_t)((uint64_t)head->data.len * 8 / GROUP_BITS_MIN) + 1;
    size_t most = blocks < GROUPS_MAX ? blocks : GROUPS_MAX;
    return written < most ? written : most;
}

/* RGBA of the whole picture. A lossy one takes some rows beside, and data for each block of 16
 * columns. A lossless one takes its ARGB, rows, and its tables of codes. */
static size_t work_bytes(const struct image_head *head)
{
    size_t pixels = (size_t)head->data_width * head->data_height;
    size_t bytes = 4 * pixels + ((size_t)1 << 20) + 256 * (size_t)head->width;
    if (head->is_lossless) {
        bytes += 4 * pixels + count_groups_max(head) * GROUP_BYTES;
    }
    return bytes;
}

static enum status check_code(VP8StatusCode code, struct error *err)
{
    switch (code) {
    case VP8_STATUS_OK:
        return ST_OK;
    case VP8_STATUS_OUT_OF_MEMORY:
        return error_no_memory(err, "a picture");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return error_set(err, ST_INVALID, "it ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return error_set(err, ST_INVALID, "it has a feature that libwebp does not know");
    default:
        return error_set(err, ST_INVALID, "its picture cannot be decoded");
    }
}

static enum status decode(const struct image_head *head, uint8_t *pixels, struct error *err)
{
    const struct libwebp *lib;
    WebPDecoderConfig config;
    TRY(libwebp_load(&lib, err));
    if (!lib->InitDecoderConfigInternal(&config, WEBP_DECODER_ABI_VERSION)) {
        return error_set(err, ST_UNSUPPORTED,
                         PTED_SONAME_WEBP " has another interface than its headers");
    }
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels;
    config.output.u.RGBA.stride = (int)(4 * head->data_width);
    config.output.u.RGBA.size = 4 * (size_t)head->data_width * head->data_height;
    return check_code(lib->Decode(head->data.ptr, head->data.len, &config), err);
}

/* Rows of the canvas. |row| has room for one. */
static void hand_rows(const struct image_head *head, const uint8_t *pixels, uint8_t *row,
                      struct resize *resize)
{
    const struct pixel_format format = {.kind = PIXEL_RGBX};
    struct resize_part part = resize_part(resize);
    size_t stride = 4 * (size_t)head->data_width;
    bool is_whole = head->data_width == head->width;
    for (uint32_t y = part.y; y < part.y_end; y++) {
        bool is_inside = y >= head->y && y - head->y < head->data_height;
        const uint8_t *from = is_inside ? pixels + (y - head->y) * stride : NULL;
        if (is_inside && is_whole) {
            resize_put(resize, &format, from + 4 * (size_t)part.x);
            continue;
        }
        memset(row, 0, 4 * (size_t)head->width);
        if (is_inside) {
            memcpy(row + 4 * (size_t)head->x, from, stride);
        }
        resize_put(resize, &format, row + 4 * (size_t)part.x);
    }
}

static enum status read(const struct image *image, struct resize *resize, struct error *err)
{
    const struct image_head *head = &image->head;
    size_t len = 4 * (size_t)head->data_width * head->data_height + HAL_RESIZE_PAD;
    uint8_t *pixels = calloc(1, len);
    uint8_t *row = calloc(1, 4 * (size_t)head->width + HAL_RESIZE_PAD);
    enum status status =
        pixels && row ? decode(head, pixels, err) : error_no_memory(err, "a picture");
    if (status == ST_OK) {
        hand_rows(head, pixels, row, resize);
    }
    free(pixels);
    free(row);
    return status;
}

const struct image_decoder image_webp = {open, work_bytes, read};
