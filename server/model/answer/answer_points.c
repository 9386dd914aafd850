/* SPDX-License-Identifier: MIT */
/* Points that belong to boxes, and boxes that are turned: where they are in the picture. */
#include "config.h"

#include <math.h>

#include "server/model/answer/answer_priv.h"

struct answer_placer answer_placer_of(const struct answer_source *source, size_t row)
{
    const struct answer_form *answer = source->answer;
    uint32_t height = source->pixels[0], width = source->pixels[1];
    bool is_known = height > 0 && width > 0, is_scaled = is_known && answer->is_relative;
    struct answer_placer placer = {
        .place = answer_place(source, row),
        .is_stored = answer->picture == ANSWER_STORED,
        .scale_x = is_scaled ? width : 1,
        .scale_y = is_scaled ? height : 1,
        .height = height,
        .width = width,
        .is_normalized = is_known && answer->is_normalized,
    };
    if (placer.place) {
        image_place_size(placer.place, placer.is_stored, &placer.height, &placer.width);
    }
    return placer;
}

void answer_put_point(const struct answer_placer *placer, bool clips, double *x, double *y)
{
    *x *= placer->scale_x;
    *y *= placer->scale_y;
    if (placer->place) {
        image_place_undo_point(placer->place, placer->is_stored, clips, x, y);
    }
    if (placer->is_normalized) {
        *x /= placer->width;
        *y /= placer->height;
    }
}

void answer_print_points(const struct answer_form *answer, const struct answer_placer *placer,
                         const struct answer_rest *rest, uint32_t candidate, struct buf *out)
{
    for (uint32_t i = 0; i < answer->points; i++) {
        size_t at = (size_t)i * answer->point_numbers;
        double x = (double)answer_rest_number(rest, candidate, at);
        double y = (double)answer_rest_number(rest, candidate, at + 1);
        answer_put_point(placer, true, &x, &y);
        buf_add_str(out, i ? ",[" : ",\"points\":[[");
        answer_print_float((float)x, out);
        buf_add_char(out, ',');
        answer_print_float((float)y, out);
        if (answer->point_numbers > 2) {
            buf_add_char(out, ',');
            answer_print_float(answer_rest_number(rest, candidate, at + 2), out);
        }
        buf_add_char(out, ']');
    }
    buf_add_str(out, answer->points ? "]" : "");
}

void answer_turn(const struct answer_placer *placer, const struct answer_rest *rest,
                 const struct box *raw, float corners[4][2], struct box *around)
{
    static const int signs[4][2] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}};
    double angle = (double)answer_rest_number(rest, raw->candidate, 0);
    double cosine = cos(angle), sine = sin(angle);
    double half_width = ((double)raw->right - (double)raw->left) / 2;
    double half_height = ((double)raw->bottom - (double)raw->top) / 2;
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double along = signs[i][0] * half_width, across = signs[i][1] * half_height;
        double x = ((double)raw->left + (double)raw->right) / 2 + along * cosine - across * sine;
        double y = ((double)raw->top + (double)raw->bottom) / 2 + along * sine + across * cosine;
        double clipped_x = x, clipped_y = y;
        answer_put_point(placer, false, &x, &y);
        answer_put_point(placer, true, &clipped_x, &clipped_y);
        corners[i][0] = (float)x;
        corners[i][1] = (float)y;
        left = fmin(left, clipped_x);
        right = fmax(right, clipped_x);
        top = fmin(top, clipped_y);
        bottom = fmax(bottom, clipped_y);
    }
    *around = (struct box){(float)left, (float)top, (float)right,  (float)bottom,
                           raw->score,  raw->class, raw->candidate};
}
