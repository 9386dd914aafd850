/* SPDX-License-Identifier: MIT */
/*
 * PNG: its head here, its pixels by libpng, which sees no chunks but IHDR, PLTE, IDAT and IEND: no
 * profile, text or colour beside them is inflated. Rows come one by one; an interlaced picture is
 * kept as a whole. Only the first picture of an animation (APNG) counts. Source: W3C, Portable
 * Network Graphics (PNG) Specification, third edition.
 */
#include "config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/exif.h"
#include "server/media/image_priv.h"
#include "server/media/libpng.h"

#define SIGNATURE_BYTES 8
#define CHUNK_BYTES 12 /* of a chunk, beside its data: length, type, CRC */
#define LIBRARY_BYTES ((size_t)256 << 10)

enum color_type { GRAY = 0, RGB = 2, NUMBER = 3, GRAY_ALPHA = 4, RGB_ALPHA = 6 };

/* ---- the head -------------------------------------------------------------------------------- */

static bool is_type(const uint8_t *chunk, const char *type)
{
    return memcmp(chunk + 4, type, 4) == 0;
}

/* Chunk eXIf may be anywhere. Bytes that cannot be a chunk end the search: libpng will report them.
 */
static unsigned find_orientation(struct span file)
{
    size_t at = SIGNATURE_BYTES;
    while (in_range(at, CHUNK_BYTES, file.len)) {
        const uint8_t *chunk = file.ptr + at;
        uint32_t len = load_be32(chunk);
        if (!in_range(at + CHUNK_BYTES, len, file.len) || is_type(chunk, "IEND")) {
            return 1;
        }
        if (is_type(chunk, "eXIf")) {
            return exif_find_orientation(span_of(chunk + 8, len));
        }
        at += CHUNK_BYTES + (size_t)len;
    }
    return 1;
}

static enum status open(struct span file, struct image_head *head, struct error *err)
{
    const uint8_t *chunk = file.ptr + SIGNATURE_BYTES;
    /* If a file is shorter than the signature, finding the format has checked its first four bytes.
     */
    size_t rest = file.len < SIGNATURE_BYTES ? file.len - 4 : SIGNATURE_BYTES - 4;
    if (memcmp(file.ptr + 4, "\r\n\x1a\n", rest) != 0) {
        return error_set(err, ST_INVALID,
                         "its line ends were changed on the way; curl's --data-binary keeps them");
    }
    if (file.len < SIGNATURE_BYTES + CHUNK_BYTES + 13 || load_be32(chunk) != 13 ||
        !is_type(chunk, "IHDR")) {
        return error_set(err, ST_INVALID, "it does not begin with the chunk IHDR");
    }
    head->width = load_be32(chunk + 8);
    head->height = load_be32(chunk + 12);
    head->bits = chunk[16];
    head->color_type = chunk[17];
    head->is_whole = chunk[20] == 1;
    head->orientation = find_orientation(file);
    return ST_OK;
}

static uint32_t channels_of(const struct image_head *head)
{
    switch (head->color_type) {
    case GRAY_ALPHA:
        return 2;
    case RGB:
        return 3;
    case RGB_ALPHA:
        return 4;
    default:
        return 1;
    }
}

/* With samples of less than 8 bits in a byte each. */
static size_t row_bytes(const struct image_head *head)
{
    return (size_t)head->width * channels_of(head) * (head->bits == 16 ? 2 : 1);
}

/* Two or three rows are kept by libpng. */
static size_t work_bytes(const struct image_head *head)
{
    return row_bytes(head) * (head->is_whole ? head->height + 4u : 5u) + LIBRARY_BYTES;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

struct reader {
    const struct libpng *lib;
    const struct image_head *head;
    struct resize *resize;
    struct span file;
    size_t at; /* of |file| */
    struct pixel_format format;
    png_structp png;
    png_infop info;
    uint8_t *rows; /* owned: one, or all if the file is interlaced; each of row_bytes() */
    struct error *err;
    jmp_buf failed;
};

/* libpng calls it instead of returning. It comes back in run(), below which no function that it
 * leaves owns anything. */
static _Noreturn void on_error(png_structp png, png_const_charp text)
{
    const struct libpng *lib;
    must(libpng_load(&lib, NULL) == ST_OK);
    struct reader *reader = lib->get_error_ptr(png);
    error_set(reader->err, ST_INVALID, "%s", text);
    longjmp(reader->failed, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void on_read(png_structp png, png_bytep out, size_t len)
{
    const struct libpng *lib;
    must(libpng_load(&lib, NULL) == ST_OK);
    struct reader *reader = lib->get_io_ptr(png);
    if (!in_range(reader->at, len, reader->file.len)) {
        on_error(png, "it ends too early");
    }
    memcpy(out, reader->file.ptr + reader->at, len);
    reader->at += len;
}

static enum pixel_kind kind_of(const struct image_head *head)
{
    bool is_16 = head->bits == 16;
    switch (head->color_type) {
    case RGB:
        return is_16 ? PIXEL_RGB_16 : PIXEL_RGB;
    case GRAY_ALPHA:
        return is_16 ? PIXEL_GRAY_X_16 : PIXEL_GRAY_X;
    case RGB_ALPHA:
        return is_16 ? PIXEL_RGBX_16 : PIXEL_RGBX;
    default:
        return is_16                                          ? PIXEL_GRAY_16
               : head->color_type == NUMBER || head->bits < 8 ? PIXEL_NUMBER
                                                              : PIXEL_GRAY;
    }
}

/* Colours that the palette lacks are black. Grey of less than 8 bits has a palette, too. */
static void read_palette(struct reader *reader)
{
    const struct image_head *head = reader->head;
    uint8_t(*palette)[4] = reader->format.palette;
    png_colorp colors = NULL;
    int count = 0;
    if (head->color_type == NUMBER) {
        reader->lib->get_PLTE(reader->png, reader->info, &colors, &count);
        for (int i = 0; i < count && i < PALETTE_COUNT; i++) {
            palette[i][0] = colors[i].red;
            palette[i][1] = colors[i].green;
            palette[i][2] = colors[i].blue;
        }
    } else if (head->bits < 8) {
        uint32_t most = (1u << head->bits) - 1;
        for (uint32_t i = 0; i <= most; i++) {
            memset(palette[i], (int)(255 * i / most), 4);
        }
    }
}

static void hand_row(struct reader *reader, uint32_t y, const uint8_t *row)
{
    struct resize_part part = resize_part(reader->resize);
    if (y >= part.y && y < part.y_end) {
        size_t x = (size_t)part.x * pixel_bytes(reader->format.kind);
        resize_put(reader->resize, &reader->format, row + x);
    }
}

/* Rows below the part are read, too, so that a file that lacks its end is refused. */
static void read_rows(struct reader *reader)
{
    for (uint32_t y = 0; y < reader->head->height; y++) {
        reader->lib->read_row(reader->png, reader->rows, NULL);
        hand_row(reader, y, reader->rows);
    }
}

static void read_interlaced(struct reader *reader, int passes)
{
    size_t bytes = row_bytes(reader->head);
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < reader->head->height; y++) {
            reader->lib->read_row(reader->png, reader->rows + y * bytes, NULL);
        }
    }
    for (uint32_t y = 0; y < reader->head->height; y++) {
        hand_row(reader, y, reader->rows + y * bytes);
    }
}

static void read_file(struct reader *reader)
{
    const struct libpng *lib = reader->lib;
    png_structp png = reader->png;
    lib->set_read_fn(png, reader, on_read);
    lib->set_user_limits(png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    lib->set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    lib->read_info(png, reader->info);
    read_palette(reader);
    lib->set_packing(png);
    int passes = lib->set_interlace_handling(png);
    lib->read_update_info(png, reader->info);
    if (lib->get_rowbytes(png, reader->info) != row_bytes(reader->head)) {
        on_error(png, "its header is not the one that was checked before");
    }
    if (passes > 1) {
        read_interlaced(reader, passes);
    } else {
        read_rows(reader);
    }
}

/* A frame of its own: nothing that it has changes between setjmp() and longjmp(). */
static enum status run(struct reader *reader)
{
    if (setjmp(reader->failed)) {
        return ST_INVALID;
    }
    read_file(reader);
    return ST_OK;
}

static enum status open_reader(struct reader *reader, struct error *err)
{
    size_t count = reader->head->is_whole ? reader->head->height : 1;
    TRY(libpng_load(&reader->lib, err));
    reader->rows = calloc(1, row_bytes(reader->head) * count + HAL_RESIZE_PAD);
    reader->png =
        reader->lib->create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
    if (reader->png) {
        reader->info = reader->lib->create_info_struct(reader->png);
    }
    return reader->rows && reader->info ? ST_OK : error_no_memory(err, "a picture");
}

static enum status read(const struct image *image, struct resize *resize, struct error *err)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (!reader) {
        return error_no_memory(err, "a picture");
    }
    reader->head = &image->head;
    reader->file = image->file;
    reader->resize = resize;
    reader->format.kind = kind_of(&image->head);
    reader->err = err;
    enum status status = open_reader(reader, err);
    if (status == ST_OK) {
        status = run(reader);
    }
    if (reader->png) {
        reader->lib->destroy_read_struct(&reader->png, &reader->info, NULL);
    }
    free(reader->rows);
    free(reader);
    return status;
}

const struct image_decoder image_png = {open, work_bytes, read};
