/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/resize.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "server/media/exif.h"

/*
 * Axes by what they do to the file: |along| goes over the pixels of a row of the file, and |down|
 * over its rows.
 *
 *     along first   each received row is resized along, and the results wait in the ring; several
 *                   of them become one
 *     down first    rows wait in the ring as they come; several become one, which is resized along
 *
 * The result is a row of the resized picture, or a column of it if the picture is turned.
 */
struct resize {
    struct hal_resize_axis along, down;
    const struct hal_resize *rows;
    struct resize_part part;
    bool is_turned, is_gray, is_bgr;
    bool is_down_first;
    bool goes_up;         /* the outputs of |down| are complete in the opposite order */
    uint32_t pixel_bytes; /* of pixels in the ring: 4, or 1 for grey */
    uint32_t ring_count;  /* rows that wait, at most */
    size_t ring_stride;   /* bytes */
    uint8_t *ring, *plain, *sums, *ready;
    const uint8_t **taps; /* [ring_count] rows that become one */
    uint32_t at;          /* the next row of the file */
    uint32_t done;        /* outputs of |down| that are complete */
    uint8_t *out;
    size_t out_stride;
    uint8_t *memory; /* owned: all arrays */
};

/* ---- orientation ----------------------------------------------------------------------------- */

static struct axis_task along_task(const struct resize_task *task)
{
    struct axis_task along = exif_is_turned(task->orientation) ? task->y : task->x;
    along.is_reversed = exif_has_columns_reversed(task->orientation);
    return along;
}

static struct axis_task down_task(const struct resize_task *task)
{
    struct axis_task down = exif_is_turned(task->orientation) ? task->x : task->y;
    down.is_reversed = exif_has_rows_reversed(task->orientation);
    return down;
}

/*
 * Pillow resizes along the rows of the turned picture first, unless the other order saves enough:
 * pictures that lose more than twice as many rows as columns lose their rows first. (Found by
 * comparison with Pillow 13; earlier ones do so only with very tall pictures.) Between both it
 * rounds to bytes.
 */
static bool is_down_first(const struct resize_task *task)
{
    int64_t columns = (int64_t)task->x.in_count - (int64_t)task->x.out_count;
    int64_t rows = (int64_t)task->y.in_count - (int64_t)task->y.out_count;
    bool is_y_first = rows > 0 && rows > 2 * columns;
    return exif_is_turned(task->orientation) != is_y_first;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Rows that |down| needs at a time: at most as many as its filter has taps. */
static uint32_t ring_count_max(const struct axis_task *down)
{
    return axis_stride(down) ? axis_stride(down) : 1;
}

static size_t row_bytes(uint32_t count, uint32_t bytes)
{
    return align_up((size_t)count * bytes, 64) + HAL_RESIZE_PAD;
}

/* The sizes of the arrays, in their order in |memory|. */
struct sizes {
    size_t along, down, taps, ring, plain, sums, ready;
};

static struct sizes sizes_of(const struct resize_task *task)
{
    struct axis_task along = along_task(task), down = down_task(task);
    uint32_t bytes = task->colors == IMAGE_GRAY ? 1 : 4;
    uint32_t ring_count = ring_count_max(&down);
    size_t file_row = row_bytes(along.in_count, bytes), out_row = row_bytes(along.count, bytes);
    size_t ring_row = is_down_first(task) ? file_row : out_row;
    return (struct sizes){
        .along = axis_bytes(&along),
        .down = axis_bytes(&down),
        .taps = align_up(ring_count * sizeof(uint8_t *), 64),
        .ring = ring_count * ring_row,
        .plain = file_row,
        .sums = ring_row,
        .ready = out_row,
    };
}

static size_t sum_of(const struct sizes *sizes)
{
    return sizes->along + sizes->down + sizes->taps + sizes->ring + sizes->plain + sizes->sums +
           sizes->ready;
}

size_t resize_bytes(const struct resize_task *task)
{
    struct sizes sizes = sizes_of(task);
    return sizeof(struct resize) + 64 + sum_of(&sizes);
}

static void init_axes(struct resize *resize, const struct resize_task *task, uint8_t *along_memory,
                      uint8_t *down_memory)
{
    struct axis_task along = along_task(task), down = down_task(task);
    struct resize_part *part = &resize->part;
    axis_init(&resize->along, &along, along_memory);
    axis_init(&resize->down, &down, down_memory);
    axis_find_range(&resize->along, &part->x, &part->x_end);
    axis_find_range(&resize->down, &part->y, &part->y_end);
    for (uint32_t i = 0; i < resize->along.count; i++) {
        resize->along.from[i] -= part->x;
    }
    if (task->rows->is_packed) {
        axis_pack(&resize->along, part->x_end - part->x + HAL_RESIZE_PAD / 4);
        axis_pack(&resize->down, UINT32_MAX);
    }
    resize->goes_up = down.is_reversed;
    resize->at = part->y;
    resize->ring_count = resize->down.tap_count_max;
    must(resize->ring_count <= ring_count_max(&down));
}

enum status resize_new(const struct resize_task *task, uint8_t *out, size_t out_stride,
                       struct resize **result, struct error *err)
{
    struct sizes sizes = sizes_of(task);
    struct resize *resize = calloc(1, sizeof(*resize));
    uint8_t *memory = calloc(1, sum_of(&sizes) + 64);
    *result = NULL;
    if (!resize || !memory) {
        free(resize);
        free(memory);
        return error_no_memory(err, "a picture");
    }
    uint8_t *at = memory + (-(uintptr_t)memory & 63);
    *resize = (struct resize){.rows = task->rows, .memory = memory, .out = out};
    resize->out_stride = out_stride;
    resize->is_turned = exif_is_turned(task->orientation);
    resize->is_down_first = is_down_first(task);
    resize->is_gray = task->colors == IMAGE_GRAY;
    resize->is_bgr = task->colors == IMAGE_BGR;
    resize->pixel_bytes = resize->is_gray ? 1 : 4;
    init_axes(resize, task, at, at + sizes.along);
    resize->taps = (void *)(at += sizes.along + sizes.down);
    resize->ring = at += sizes.taps;
    resize->plain = at += sizes.ring;
    resize->sums = at += sizes.plain;
    resize->ready = at + sizes.sums;
    resize->ring_stride = sizes.sums;
    *result = resize;
    return ST_OK;
}

void resize_free(struct resize *resize)
{
    if (resize) {
        free(resize->memory);
        free(resize);
    }
}

struct resize_part resize_part(const struct resize *resize)
{
    return resize->part;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The number of output |done| of |down|. */
static uint32_t next_output(const struct resize *resize)
{
    return resize->goes_up ? resize->down.count - 1 - resize->done : resize->done;
}

static uint8_t *ring_row(const struct resize *resize, uint32_t y)
{
    return resize->ring + y % resize->ring_count * resize->ring_stride;
}

/* Output |i| of |down|, as a row of |len| bytes. */
static const uint8_t *sum_rows(struct resize *resize, uint32_t i, size_t len)
{
    const struct hal_resize_axis *down = &resize->down;
    for (uint32_t k = 0; k < down->taps[i]; k++) {
        resize->taps[k] = ring_row(resize, down->from[i] + k);
    }
    if (down->is_copy) {
        return resize->taps[0];
    }
    resize->rows->down(down, i, resize->taps, len, resize->sums);
    return resize->sums;
}

static void store_row(struct resize *resize, uint32_t y, const uint8_t *row)
{
    uint8_t *out = resize->out + resize->out_stride * y;
    if (resize->is_gray) {
        memcpy(out, row, resize->along.count);
    } else {
        resize->rows->pack(row, resize->along.count, resize->is_bgr, out);
    }
}

static void store_column(struct resize *resize, uint32_t x, const uint8_t *row)
{
    int first = resize->is_bgr ? 2 : 0;
    for (uint32_t y = 0; y < resize->along.count; y++) {
        if (resize->is_gray) {
            resize->out[resize->out_stride * y + x] = row[y];
        } else {
            uint8_t *to = resize->out + resize->out_stride * y + 3 * (size_t)x;
            to[0] = row[4 * (size_t)y + (size_t)first];
            to[1] = row[4 * (size_t)y + 1];
            to[2] = row[4 * (size_t)y + (size_t)(2 - first)];
        }
    }
}

static void copy_along(const struct hal_resize_axis *along, uint32_t pixel_bytes,
                       const uint8_t *row, uint8_t *out)
{
    for (size_t i = 0; i < along->count; i++) {
        size_t from = along->from[i];
        if (pixel_bytes == 4) {
            memcpy(out + 4 * i, row + 4 * from, 4);
        } else {
            out[i] = row[from];
        }
    }
}

static void resize_gray(const struct hal_resize_axis *along, const uint8_t *row, uint8_t *out)
{
    for (uint32_t i = 0; i < along->count; i++) {
        const uint8_t *in = row + along->from[i];
        int32_t sum = 1 << (HAL_RESIZE_BITS - 1);
        for (uint32_t k = 0; k < along->taps[i]; k++) {
            sum += in[k] * hal_resize_weight(along, (size_t)i * along->stride + k);
        }
        sum >>= HAL_RESIZE_BITS;
        out[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}

static void resize_along(const struct resize *resize, const uint8_t *row, uint8_t *out)
{
    if (resize->along.is_copy) {
        copy_along(&resize->along, resize->pixel_bytes, row, out);
    } else if (resize->is_gray) {
        resize_gray(&resize->along, row, out);
    } else {
        resize->rows->across(&resize->along, row, out);
    }
}

static void finish_output(struct resize *resize, uint32_t i)
{
    const struct hal_resize_axis *along = &resize->along;
    uint32_t columns = resize->part.x_end - resize->part.x;
    uint32_t count = resize->is_down_first ? columns : along->count;
    const uint8_t *row = sum_rows(resize, i, (size_t)count * resize->pixel_bytes);
    if (resize->is_down_first) {
        resize_along(resize, row, resize->ready);
        row = resize->ready;
    }
    if (resize->is_turned) {
        store_column(resize, i, row);
    } else {
        store_row(resize, i, row);
    }
}

static void keep_row(struct resize *resize, const struct pixel_format *format, const uint8_t *row)
{
    uint32_t columns = resize->part.x_end - resize->part.x;
    uint8_t *slot = ring_row(resize, resize->at);
    bool is_final = pixels_are_final(format->kind, resize->is_gray);
    if (resize->is_down_first && is_final) {
        memcpy(slot, row, (size_t)columns * resize->pixel_bytes);
    } else if (resize->is_down_first) {
        pixels_convert(format, row, columns, resize->is_gray, slot);
    } else {
        if (!is_final) {
            pixels_convert(format, row, columns, resize->is_gray, resize->plain);
            row = resize->plain;
        }
        resize_along(resize, row, slot);
    }
}

void resize_put(struct resize *resize, const struct pixel_format *format, const uint8_t *row)
{
    const struct hal_resize_axis *down = &resize->down;
    uint32_t y = resize->at, i = next_output(resize);
    if (resize->done == down->count) {
        return;
    }
    if (y >= down->from[i]) { /* else no output needs it */
        keep_row(resize, format, row);
    }
    resize->at++;
    while (resize->done < down->count) {
        i = next_output(resize);
        if (down->from[i] + down->taps[i] > resize->at) {
            break;
        }
        finish_output(resize, i);
        resize->done++;
    }
}
