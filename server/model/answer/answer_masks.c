/* SPDX-License-Identifier: MIT */
/*
 * Masks of things, as Ultralytics' segmentation models give them: a few maps over the picture that
 * all boxes share, and coefficients for each box. Their sum is above 0 where the thing is. Between
 * the map's numbers it is interpolated, in the pixels of the picture that the answer is about.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "protocol/base64.h"
#include "server/media/png_write.h"
#include "server/model/answer/answer_priv.h"

#define PNG_BYTES_MAX ((size_t)64 << 20)
#define PNG_FACTOR 2
/* Of all masks of a row together; of more, each has a part of its pixels. 2^23 take up to 1.5 s. */
#define PIXELS_MAX ((size_t)1 << 23)

struct answer_masks {
    const struct answer_placer *placer;
    const float *maps; /* [count, height, width] of the row */
    float *copy;       /* owned, if they were of another type; or NULL */
    float *sum;        /* owned: [height, width], of one box */
    uint8_t *pixels;   /* owned: PIXELS_MAX at most */
    size_t count, height, width, room;
    double model_height, model_width;  /* of the model's picture */
    uint32_t step;                     /* pixels of the picture for each one of a mask */
    uint32_t left, top, right, bottom; /* of the mask that was found, in the picture */
};

/* The pixels that |box| touches. */
static void bound(const struct answer_placer *placer, const struct box *box, uint32_t out[4])
{
    const double sides[4] = {(double)box->left, (double)box->top, (double)box->right,
                             (double)box->bottom};
    for (int i = 0; i < 4; i++) {
        double most = i % 2 ? placer->height : placer->width;
        double scale = placer->is_normalized ? most : 1;
        out[i] = (uint32_t)fmin(most, fmax(0, ceil(sides[i] * scale)));
    }
}

static uint32_t parts(uint32_t from, uint32_t to, uint32_t step)
{
    return to > from ? (to - from + step - 1) / step : 0;
}

/* The boxes are those of the model's picture; what they have in the picture is at most that scaled.
 */
static size_t count_pixels(const struct answer_masks *m, const struct box *boxes, uint32_t count,
                           size_t *out_most)
{
    size_t all = 0;
    *out_most = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct box box = boxes[i];
        double x0 = (double)box.left, y0 = (double)box.top, x1 = (double)box.right,
               y1 = (double)box.bottom;
        uint32_t sides[4];
        answer_put_point(m->placer, true, &x0, &y0);
        answer_put_point(m->placer, true, &x1, &y1);
        box = (struct box){(float)fmin(x0, x1),
                           (float)fmin(y0, y1),
                           (float)fmax(x0, x1),
                           (float)fmax(y0, y1),
                           0,
                           0,
                           0};
        bound(m->placer, &box, sides);
        size_t pixels =
            (size_t)parts(sides[0], sides[2], m->step) * parts(sides[1], sides[3], m->step);
        all += pixels;
        *out_most = pixels > *out_most ? pixels : *out_most;
    }
    return all;
}

static enum status exhausted(struct answer_masks *m, struct error *err)
{
    answer_masks_free(m);
    return error_no_memory(err, "masks");
}

enum status answer_masks_new(const struct answer_source *source, size_t row,
                             const struct answer_placer *placer, const struct box *boxes,
                             uint32_t count, struct answer_masks **out, struct error *err)
{
    const struct shape *shape = &source->masks.shape;
    struct answer_masks *m = calloc(1, sizeof(*m));
    if (!m) {
        return exhausted(NULL, err);
    }
    *m = (struct answer_masks){.placer = placer,
                               .count = (size_t)shape->dims[1],
                               .height = (size_t)shape->dims[2],
                               .width = (size_t)shape->dims[3],
                               .model_height = source->pixels[0],
                               .model_width = source->pixels[1],
                               .step = 1};
    if (answer_read_floats(&source->masks, row, &m->maps, &m->copy, err) != ST_OK) {
        answer_masks_free(m);
        return err->code;
    }
    while (count_pixels(m, boxes, count, &m->room) > PIXELS_MAX) {
        m->step++;
    }
    m->sum = calloc(m->height * m->width + 1, sizeof(*m->sum));
    m->pixels = calloc(m->room + 1, 1);
    if (!m->sum || !m->pixels) {
        return exhausted(m, err);
    }
    *out = m;
    return ST_OK;
}

void answer_masks_free(struct answer_masks *m)
{
    if (m) {
        free(m->copy);
        free(m->sum);
        free(m->pixels);
        free(m);
    }
}

static void add_maps(struct answer_masks *m, const struct answer_rest *rest, uint32_t candidate)
{
    size_t pixels = m->height * m->width;
    for (size_t i = 0; i < pixels; i++) {
        m->sum[i] = 0;
    }
    for (size_t k = 0; k < m->count; k++) {
        float factor = answer_rest_number(rest, candidate, k);
        const float *map = m->maps + k * pixels;
        for (size_t i = 0; i < pixels; i++) {
            m->sum[i] += factor * map[i];
        }
    }
}

/* The two numbers around |at| along a side of |count| numbers, and the part of the second. */
static double around(double at, size_t count, size_t out[2])
{
    at = fmin(fmax(at - 0.5, 0), (double)(count - 1));
    out[0] = (size_t)at;
    out[1] = out[0] + 1 < count ? out[0] + 1 : out[0];
    return at - (double)out[0];
}

/* Is the thing at a point of the picture? */
static bool is_set(const struct answer_masks *m, double x, double y)
{
    size_t columns[2], rows[2];
    if (m->placer->place) {
        image_place_find_point(m->placer->place, m->placer->is_stored, &x, &y);
    }
    double part_x = around(x * (double)m->width / m->model_width, m->width, columns);
    double part_y = around(y * (double)m->height / m->model_height, m->height, rows);
    const float *upper = m->sum + rows[0] * m->width, *lower = m->sum + rows[1] * m->width;
    double above = (double)upper[columns[0]] * (1 - part_x) + (double)upper[columns[1]] * part_x;
    double below = (double)lower[columns[0]] * (1 - part_x) + (double)lower[columns[1]] * part_x;
    return above * (1 - part_y) + below * part_y > 0;
}

bool answer_masks_find(struct answer_masks *m, const struct answer_rest *rest,
                       const struct box *box)
{
    uint32_t sides[4];
    bool has_any = false;
    bound(m->placer, box, sides);
    m->left = sides[0];
    m->top = sides[1];
    m->right = sides[2];
    m->bottom = sides[3];
    uint32_t rows = parts(m->top, m->bottom, m->step), columns = parts(m->left, m->right, m->step);
    if (m->count == 0 || m->height == 0 || m->width == 0 || rows == 0 || columns == 0 ||
        m->model_height <= 0 || m->model_width <= 0) {
        return false;
    }
    must((size_t)rows * columns <= m->room);
    add_maps(m, rest, box->candidate);
    double step = m->step;
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t column = 0; column < columns; column++) {
            bool is_in = is_set(m, m->left + (column + 0.5) * step, m->top + (row + 0.5) * step);
            m->pixels[(size_t)row * columns + column] = is_in ? UINT8_MAX : 0;
            has_any |= is_in;
        }
    }
    return has_any;
}

enum status answer_masks_print(const struct answer_masks *m, struct buf *out, struct error *err)
{
    const struct png_picture picture = {
        .height = parts(m->top, m->bottom, m->step),
        .width = parts(m->left, m->right, m->step),
        .kind = PNG_GRAY,
        .pixels = m->pixels,
    };
    struct buf file;
    buf_init(&file, PNG_BYTES_MAX);
    enum status status = png_write(&picture, &file, err);
    if (status == ST_OK) {
        buf_add_str(out, ",\"mask\":{\"png\":\"");
        base64_print(out, buf_span(&file));
        buf_printf(out,
                   "\",\"left\":%" PRIu32 ",\"top\":%" PRIu32 ",\"width\":%" PRIu32
                   ",\"height\":%" PRIu32 "}",
                   m->left, m->top, m->right - m->left, m->bottom - m->top);
    }
    buf_fini(&file);
    return status;
}

size_t answer_mask_work_bytes(const struct answer_source *source)
{
    size_t maps = answer_row_numel(&source->masks);
    size_t most = (size_t)source->pixels[0] * source->pixels[1];
    if (source->answer->masks == ANSWER_NO_INDEX) {
        return 0;
    }
    for (size_t row = 0; row < answer_rows(source); row++) {
        const struct image_place *place = answer_place(source, row);
        size_t placed = place ? (size_t)place->height * place->width : 0;
        most = placed > most ? placed : most;
    }
    most = most < PIXELS_MAX ? most : PIXELS_MAX;
    return 2 * sizeof(float) * maps + (1 + PNG_FACTOR) * most;
}
