/* SPDX-License-Identifier: MIT */
/*
 * metadata.yaml of Ultralytics (8.4), and what its own predictor does with such a model: pictures
 * in a letterbox, or for classifiers resized by the shorter side and cropped; boxes from the raw
 * head [1, 4 + classes + more, candidates], centre and size in pixels of the model's picture.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "runtime/program/adapt.h"
#include "runtime/program/program.h"
#include "server/model/card/card.h"
#include "server/model/card/derive_priv.h"

#define FILE "metadata.yaml"
#define GRAY 114
#define MEMBER_MAX 128
/* The predictor's: 300 boxes at most, those that overlap by more than 0.7 removed. */
#define RULES "\"score\": 0.25, \"iou\": 0.7, \"count\": 300"

struct yolo {
    struct derive *derive;
    const struct document *in;
    const struct rt_method *method;
    const char *task;
    struct derive_names names;
};

/* ---- the picture ----------------------------------------------------------------------------- */

/* "imgsz": [height, width], or a number. */
static bool find_sides(const struct yolo *y, uint32_t out[2])
{
    if (derive_find_u32(y->in, y->in->root, "imgsz", IMAGE_SIDE_MAX, &out[0])) {
        out[1] = out[0];
        return true;
    }
    return derive_read_pair(y->in, document_find(y->in->root, "imgsz"), out);
}

/* As classify_transforms() and LetterBox of Ultralytics. A square is the shorter side, then a crop.
 */
static void print_image(struct buf *out, bool is_crop, const uint32_t sides[2])
{
    if (is_crop && sides[0] == sides[1]) {
        buf_printf(out, "{\"resize\": %" PRIu32 ", \"crop\": %" PRIu32 "}", sides[0], sides[0]);
    } else if (is_crop) {
        buf_printf(out, "{\"resize\": [%" PRIu32 ", %" PRIu32 "]}", sides[0], sides[1]);
    } else {
        buf_printf(out,
                   "{\"resize\": [%" PRIu32 ", %" PRIu32 "], \"fit\": \"letterbox\", \"fill\": %d, "
                   "\"interpolation\": \"linear\"}",
                   sides[0], sides[1], GRAY);
    }
}

static void find_image(struct yolo *y)
{
    struct rt_pixels pixels;
    uint32_t sides[2];
    if (!derive_find_picture(y->method, &y->derive->input, &pixels)) {
        derive_note(y->derive, FILE ": the program takes no pictures of 1 or 3 channels");
    } else if (!find_sides(y, sides)) {
        derive_note(y->derive, FILE ": imgsz: expected [height, width]");
    } else if (derive_check_sides(y->derive, &pixels, sides[0], sides[1], FILE ": imgsz")) {
        print_image(derive_say(y->derive, DERIVE_IMAGE, FILE ": task, imgsz"),
                    strcmp(y->task, "classify") == 0, sides);
    }
}

/* ---- the head -------------------------------------------------------------------------------- */

/* The numbers of each candidate of output 0, if it is a raw head; 0: it is none. */
static int64_t head_numbers(const struct rt_method *method)
{
    const struct rt_io *io =
        rt_method_result_count(method) > 0 ? rt_method_result(method, 0) : NULL;
    bool fits = io && io->kind == RT_IO_TENSOR && io->shape.rank == 3 && dtype_is_float(io->dtype);
    return fits ? io->shape.dims[1] : 0;
}

/* What follows the scores: |more| numbers, and the member of a card about them. */
static void find_boxes(struct yolo *y, int64_t more, const char *member)
{
    int64_t wanted = 4 + (int64_t)y->names.count + more;
    bool is_end_to_end = false;
    if (derive_find_bool(y->in, y->in->root, "end2end", &is_end_to_end) && is_end_to_end) {
        derive_note(y->derive, FILE ": end2end: its boxes are left as they are");
    } else if (head_numbers(y->method) != wanted) {
        derive_note(y->derive,
                    FILE ": task %s with %" PRIu32 " names: expected [1, %" PRIi64
                         ", candidates] as first output",
                    y->task, y->names.count, wanted);
    } else {
        buf_printf(derive_say(y->derive, DERIVE_ANSWER, FILE ": task"),
                   "{\"boxes\": {\"form\": \"cxcywh\", \"order\": \"candidates_last\", "
                   "\"class_count\": %" PRIu32 ", %s" RULES "}}",
                   y->names.count, member);
        derive_print_names(&y->names, derive_say(y->derive, DERIVE_LABELS, FILE ": names"));
    }
}

/* "kpt_shape": [points, 2 or 3]. */
static void find_points(struct yolo *y)
{
    uint32_t shape[2];
    char member[MEMBER_MAX];
    if (!derive_read_pair(y->in, document_find(y->in->root, "kpt_shape"), shape) ||
        shape[0] > CARD_POINTS_MAX || shape[1] < 2 || shape[1] > 3) {
        derive_note(y->derive, FILE ": kpt_shape: expected [points, 2 or 3]");
        return;
    }
    snprintf(member, sizeof(member), "\"points\": [%" PRIu32 ", %" PRIu32 "], ", shape[0],
             shape[1]);
    find_boxes(y, (int64_t)shape[0] * shape[1], member);
}

/* The second output has maps, one for each coefficient of a box. Masks need the picture. */
static void find_masks(struct yolo *y)
{
    const struct rt_io *io =
        rt_method_result_count(y->method) > 1 ? rt_method_result(y->method, 1) : NULL;
    char member[MEMBER_MAX];
    if (!io || io->kind != RT_IO_TENSOR || io->shape.rank != 4 || !dtype_is_float(io->dtype)) {
        derive_note(y->derive, FILE ": expected [1, coefficients, height, width] as second output");
        return;
    }
    bool has_picture = derive_has_picture(y->derive);
    snprintf(member, sizeof(member), "\"masks\": \"%s\", ", io->alias);
    find_boxes(y, io->shape.dims[1], has_picture ? member : "");
}

static void find_classes(struct yolo *y)
{
    const struct rt_io *io =
        rt_method_result_count(y->method) > 0 ? rt_method_result(y->method, 0) : NULL;
    if (io && io->kind == RT_IO_TENSOR && io->shape.rank == 2 &&
        io->shape.dims[1] == y->names.count) {
        derive_print_names(&y->names, derive_say(y->derive, DERIVE_LABELS, FILE ": names"));
    } else {
        derive_note(y->derive,
                    FILE ": expected [n, %" PRIu32 "] as first output, one for each name",
                    y->names.count);
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

static void find_description(const struct yolo *y)
{
    const char *text;
    if (derive_find_text(y->in, y->in->root, "description", &text)) {
        struct span words = span_str(text);
        while (words.len > 0 && words.ptr[words.len - 1] == ' ') {
            words.len--;
        }
        json_print_string(derive_say(y->derive, DERIVE_DESCRIPTION, FILE ": description"), words);
    }
}

void derive_from_yolo(struct derive *derive, const struct document *metadata,
                      const struct rt_method *method)
{
    struct yolo y = {.derive = derive, .in = metadata, .method = method};
    if (!derive_find_text(metadata, metadata->root, "task", &y.task) ||
        !derive_read_names(metadata, document_find(metadata->root, "names"), &y.names)) {
        return; /* somebody else's file */
    }
    find_description(&y);
    if (strcmp(y.task, "classify") == 0) {
        find_image(&y);
        find_classes(&y);
    } else if (strcmp(y.task, "detect") == 0) {
        find_image(&y);
        find_boxes(&y, 0, "");
    } else if (strcmp(y.task, "pose") == 0) {
        find_image(&y);
        find_points(&y);
    } else if (strcmp(y.task, "segment") == 0) {
        find_image(&y);
        find_masks(&y);
    } else if (strcmp(y.task, "obb") == 0) {
        find_image(&y);
        find_boxes(&y, 1, "\"angle\": true, ");
    } else {
        derive_note(derive, FILE ": task '%.40s' is not known", y.task);
    }
    derive_free_names(&y.names);
}
