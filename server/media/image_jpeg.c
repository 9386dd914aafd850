/* SPDX-License-Identifier: MIT */
/*
 * JPEG: its head here, its pixels by libjpeg-turbo, with the settings of Pillow. Rows come one by
 * one; rows that the crop drops are decoded no further than needed. A file with several scans, such
 * as a progressive one, has its coefficients in memory. Source: ITU-T T.81; Adobe's marker APP14 is
 * libjpeg's affair.
 */
#include "config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/media/exif.h"
#include "server/media/image_priv.h"
#include "server/media/libjpeg.h"

#include <jerror.h>

#define BLOCK 8 /* pixels of the side of a block of coefficients */
#define LIBRARY_BYTES ((size_t)256 << 10)

/* Scans of a file, at least; a file of usual software has up to 12. Further ones are allowed while
 * the blocks of all scans are few: a scan costs its time even if it says nothing. */
#define SCANS_MIN 24
#define SCANS_MAX 500
#define SCAN_BLOCKS_MAX ((uint64_t)1 << 26)

/* Columns beside the part that are decoded, too: columns at its edge are made with their
 * neighbours. */
#define EDGE 16

/* Libjpeg writes aligned rows past the caches, from where they are read at once: the picture takes
 * half as long again. So the row is not aligned. */
#define ALIGN 32
#define UNALIGN 8

/* ---- the head -------------------------------------------------------------------------------- */

enum marker {
    SOF0 = 0xc0,
    DHT = 0xc4,
    JPG = 0xc8,
    DAC = 0xcc,
    SOF15 = 0xcf,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    APP1 = 0xe1,
    TEM = 0x01,
    RST0 = 0xd0,
    RST7 = 0xd7
};

static bool is_frame(unsigned marker)
{
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

static bool has_no_data(unsigned marker)
{
    return marker == TEM || (marker >= RST0 && marker <= SOI);
}

static enum status take_frame(unsigned marker, struct span data, struct image_head *head,
                              struct error *err)
{
    if (data.len < 6 || head->components) {
        return error_set(err, ST_INVALID, "the header of its frame is damaged");
    }
    uint32_t count = data.ptr[5];
    head->height = load_be16(data.ptr + 1);
    head->width = load_be16(data.ptr + 3);
    head->components = count;
    head->is_whole = marker == SOF0 + 2 || marker == SOF0 + 10; /* progressive */
    if (data.len < 6 + 3 * (size_t)count) {
        return error_set(err, ST_INVALID, "the header of its frame is damaged");
    }
    if (data.ptr[0] != 8 || (count != 1 && count != 3 && count != 4)) {
        return error_set(err, ST_UNSUPPORTED,
                         "expected a JPEG file with 8 bits and 1, 3 or 4 components, got %u bits "
                         "and %" PRIu32 " components",
                         data.ptr[0], count);
    }
    uint32_t most_x = 1, most_y = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = data.ptr[7 + 3 * i] >> 4, y = data.ptr[7 + 3 * i] & 15;
        if (x < 1 || x > 4 || y < 1 || y > 4) {
            return error_set(err, ST_INVALID,
                             "component %" PRIu32 " has an invalid sampling factor", i);
        }
        most_x = x > most_x ? x : most_x;
        most_y = y > most_y ? y : most_y;
        head->sampling += x * y;
    }
    head->sample_x = most_x;
    head->sample_y = most_y;
    return ST_OK;
}

/* The segments up to the first scan. */
static enum status open(struct span file, struct image_head *head, struct error *err)
{
    size_t at = 2;
    bool has_exif = false;
    while (in_range(at, 4, file.len)) {
        unsigned marker = file.ptr[at + 1];
        if (file.ptr[at] != 0xff || marker == 0xff || has_no_data(marker)) {
            at += file.ptr[at] == 0xff && marker != 0xff ? 2 : 1; /* fill bytes, or rubbish */
            continue;
        }
        size_t len = load_be16(file.ptr + at + 2);
        if (marker == EOI || len < 2 || !in_range(at + 2, len, file.len)) {
            break;
        }
        struct span data = span_of(file.ptr + at + 4, len - 2);
        if (marker == SOS) {
            head->is_whole |= data.len > 0 && data.ptr[0] != head->components;
            return head->components ? ST_OK : error_set(err, ST_INVALID, "it has no frame");
        }
        if (is_frame(marker)) {
            TRY(take_frame(marker, data, head, err));
        } else if (marker == APP1 && !has_exif && data.len >= 6 &&
                   memcmp(data.ptr, "Exif\0", 6) == 0) {
            has_exif = true;
            head->orientation = exif_find_orientation(data);
        }
        at += 2 + len;
    }
    return error_set(err, ST_INVALID, "it ends before its picture");
}

/* Units of the interlaced data: each has head->sampling blocks. */
static uint64_t units_of(const struct image_head *head)
{
    uint32_t x = BLOCK * head->sample_x, y = BLOCK * head->sample_y;
    return (uint64_t)((head->width + x - 1) / x) * ((head->height + y - 1) / y);
}

static size_t row_bytes(const struct image_head *head)
{
    return 4 * ((size_t)head->width + 2 * BLOCK * 4) + HAL_RESIZE_PAD + ALIGN + UNALIGN;
}

/* Libjpeg keeps rows of samples of all components: a few units high. */
static size_t work_bytes(const struct image_head *head)
{
    size_t width = (size_t)head->width + 2 * BLOCK * 4;
    size_t bytes = LIBRARY_BYTES + width * head->components * 16 * BLOCK + row_bytes(head);
    if (head->is_whole) {
        bytes += (size_t)units_of(head) * head->sampling * BLOCK * BLOCK * sizeof(int16_t) * 5 / 4;
    }
    return bytes;
}

/* ---- libjpeg's callbacks --------------------------------------------------------------------- */

struct reader {
    const struct libjpeg *lib;
    const struct image_head *head;
    struct resize *resize;
    unsigned scale;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    uint64_t scans_max;
    struct pixel_format format;
    uint8_t *row;
    enum status status;
    struct error *err;
    jmp_buf failed;
};

/* Ends the work on the file. It comes back in run(), below which no function that it leaves owns
 * anything. */
static _Noreturn void fail(struct reader *reader, enum status status, const char *text)
{
    reader->status = error_set(reader->err, status, "%s", text);
    longjmp(reader->failed, 1);
}

static _Noreturn void on_error(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];
    struct reader *reader = jpeg->client_data;
    if (jpeg->err->msg_code == JERR_OUT_OF_MEMORY) {
        fail(reader, ST_EXHAUSTED, "image: out of memory");
    }
    jpeg->err->format_message(jpeg, text);
    fail(reader, ST_INVALID, text);
}

/* Warnings: the decoder makes something of wrong bits and goes on, as Pillow does. */
static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void init_source(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean fill_source(j_decompress_ptr jpeg)
{
    fail(jpeg->client_data, ST_INVALID, "it ends too early");
}

static void skip_source(j_decompress_ptr jpeg, long count)
{
    struct jpeg_source_mgr *source = jpeg->src;
    if (count > 0) {
        size_t len = (unsigned long)count < source->bytes_in_buffer ? (size_t)count
                                                                    : source->bytes_in_buffer;
        source->next_input_byte += len;
        source->bytes_in_buffer -= len;
    }
}

static void on_progress(j_common_ptr jpeg)
{
    struct reader *reader = jpeg->client_data;
    if ((uint64_t)reader->jpeg.input_scan_number > reader->scans_max) {
        fail(reader, ST_INVALID, "it has too many scans");
    }
}

static uint64_t find_scans_max(const struct image_head *head)
{
    uint64_t scans = SCAN_BLOCKS_MAX / (units_of(head) * head->sampling);
    return scans < SCANS_MIN ? SCANS_MIN : scans > SCANS_MAX ? SCANS_MAX : scans;
}

static void set_callbacks(struct reader *reader, struct span file)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    reader->source = (struct jpeg_source_mgr){
        .next_input_byte = file.ptr,
        .bytes_in_buffer = file.len,
        .init_source = init_source,
        .fill_input_buffer = fill_source,
        .skip_input_data = skip_source,
        .resync_to_restart = reader->lib->resync_to_restart,
        .term_source = init_source,
    };
    reader->progress.progress_monitor = on_progress;
    reader->scans_max = find_scans_max(reader->head);
    jpeg->src = &reader->source;
    jpeg->progress = &reader->progress;
    jpeg->mem->max_memory_to_use = (long)work_bytes(reader->head);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

/* As Pillow chooses: grey stays grey, CMYK and YCCK become CMYK, and all else RGB. */
static void set_colors(struct reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    if (jpeg->num_components == 1) {
        reader->format.kind = PIXEL_GRAY;
        jpeg->out_color_space = JCS_GRAYSCALE;
    } else if (jpeg->num_components == 4) {
        reader->format.kind = PIXEL_CMYK_INV;
        jpeg->out_color_space = JCS_CMYK;
    } else {
        reader->format.kind = PIXEL_RGBX;
        jpeg->out_color_space = JCS_EXT_RGBX;
    }
}

/* Restricts decoding to the columns of the part; returns the first column of the rows to come. */
static uint32_t crop_columns(struct reader *reader, const struct resize_part *part)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    JDIMENSION x = part->x < EDGE ? 0 : part->x - EDGE;
    JDIMENSION end =
        jpeg->output_width - part->x_end < EDGE ? jpeg->output_width : part->x_end + EDGE;
    JDIMENSION width = end - x;
    if (width < jpeg->output_width) {
        reader->lib->crop_scanline(jpeg, &x, &width);
    }
    return x;
}

/* Is the end of the file behind what has been read? Nothing else in the data of a scan has these
 * two bytes. A file with several scans has been read as a whole. */
static bool has_end(const struct reader *reader)
{
    static const uint8_t end[] = {0xff, EOI};
    const struct jpeg_source_mgr *rest = &reader->source;
    return reader->head->is_whole || reader->jpeg.unread_marker == EOI ||
           memmem(rest->next_input_byte, rest->bytes_in_buffer, end, sizeof(end)) != NULL;
}

/* Libjpeg does not look at rows that are skipped up to the last one, so the last one is decoded
 * where the file may lack its end. */
static void skip_rest(struct reader *reader, JDIMENSION count)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    JSAMPROW row = reader->row;
    if (has_end(reader)) {
        reader->lib->skip_scanlines(jpeg, count);
        return;
    }
    if (count > 1) {
        reader->lib->skip_scanlines(jpeg, count - 1);
    }
    reader->lib->read_scanlines(jpeg, &row, 1);
}

/* A file that lacks rows is refused, wherever the part ends. */
static void read_rows(struct reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    struct resize_part part = resize_part(reader->resize);
    JSAMPROW row = reader->row;
    JDIMENSION height = jpeg->output_height;
    size_t x = crop_columns(reader, &part);
    const uint8_t *first = row + (part.x - x) * pixel_bytes(reader->format.kind);
    if (part.y > 0) {
        reader->lib->skip_scanlines(jpeg, part.y);
    }
    for (uint32_t y = part.y; y < part.y_end; y++) {
        reader->lib->read_scanlines(jpeg, &row, 1);
        resize_put(reader->resize, &reader->format, first);
    }
    if (part.y_end < height) {
        skip_rest(reader, height - part.y_end);
    }
}

static void read_file(struct reader *reader, struct span file)
{
    const struct libjpeg *lib = reader->lib;
    const struct image_head *head = reader->head;
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    lib->CreateDecompress(jpeg, JPEG_LIB_VERSION, sizeof(*jpeg));
    set_callbacks(reader, file);
    lib->read_header(jpeg, TRUE);
    if (jpeg->image_width != head->width || jpeg->image_height != head->height ||
        (uint32_t)jpeg->num_components != head->components) {
        fail(reader, ST_INVALID, "its header is not the one that was checked before");
    }
    set_colors(reader);
    jpeg->scale_num = 1;
    jpeg->scale_denom = reader->scale;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg->do_fancy_upsampling = TRUE;
    lib->start_decompress(jpeg);
    read_rows(reader);
}

/* A frame of its own: nothing that it has changes between setjmp() and longjmp(). */
static enum status run(struct reader *reader, struct span file)
{
    if (setjmp(reader->failed)) {
        return reader->status;
    }
    read_file(reader, file);
    return ST_OK;
}

static enum status read(const struct image *image, struct resize *resize, struct error *err)
{
    const struct libjpeg *lib;
    TRY(libjpeg_load(&lib, err));
    struct reader *reader = calloc(1, sizeof(*reader));
    uint8_t *memory = calloc(1, row_bytes(&image->head));
    if (!reader || !memory) {
        free(reader);
        free(memory);
        return error_no_memory(err, "a picture");
    }
    reader->lib = lib;
    reader->head = &image->head;
    reader->resize = resize;
    reader->scale = image->scale;
    reader->row = memory + (-(uintptr_t)memory & (ALIGN - 1)) + UNALIGN;
    reader->err = err;
    reader->jpeg.err = lib->std_error(&reader->errors);
    reader->jpeg.client_data = reader;
    reader->errors.error_exit = on_error;
    reader->errors.emit_message = on_message;
    reader->errors.output_message = on_output;
    enum status status = run(reader, image->file);
    lib->destroy_decompress(&reader->jpeg);
    free(memory);
    free(reader);
    return status;
}

const struct image_decoder image_jpeg = {open, work_bytes, read};
