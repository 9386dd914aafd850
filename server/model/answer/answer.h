/* SPDX-License-Identifier: MIT */
/*
 * How a result is written for people, as the card of a model says ("answer" of an output): the
 * highest classes, boxes around things, a picture of classes, a text. A row of dim 0 is one answer,
 * as JSON, or as bytes for the Open Inference Protocol:
 *
 *     classes  [{"label": "cat", "index": 3, "score": 0.93}, ...]      see protocol/oip_classes.h
 *     boxes    [{"label": "cat", "index": 3, "score": 0.93, "box": [12, 8, 80, 96]}, ...]; also
 *              "points": [[x, y, score], ...], "corners": [[x, y], ... 4 of them], or
 *              "mask": {"png": "iVBOR...", "left": 12, "top": 8, "width": 68, "height": 88}
 *     map      {"png": "iVBOR...", "width": 64, "height": 48,
 *               "classes": [{"label": "road", "index": 1, "pixels": 512}, ...]}
 *     text     "hello"
 *
 * A box is left, top, right, bottom, in pixels of the picture that the client sent, unless the card
 * says another one. The PNG has the palette of PASCAL VOC, in which class 0 is black. The text is
 * the best label of each step, without repetitions and blanks (CTC, greedy).
 *
 * The form of a card is constant; everything else is a function of its arguments. Any thread, but
 * not the loop.
 */
#ifndef PTED_SERVER_MODEL_ANSWER_ANSWER_H
#define PTED_SERVER_MODEL_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"
#include "server/media/place.h"
#include "server/model/answer/boxes.h"

enum answer_kind { ANSWER_TENSOR, ANSWER_CLASSES, ANSWER_BOXES, ANSWER_MAP, ANSWER_TEXT };

#define ANSWER_CLASSES_DEFAULT 5
#define ANSWER_CLASSES_MAX 1000
#define ANSWER_NO_INDEX UINT32_MAX

/* Where the candidates of a tensor [n, a, b] are. */
enum answer_order { ANSWER_BY_SHAPE, ANSWER_CANDIDATES_FIRST, ANSWER_CANDIDATES_LAST };

/* The picture that coordinates of an answer are in: as the file has it, as people see it after its
 * EXIF orientation, or as the model gets it. If a tensor was sent, they are all one. */
enum answer_picture { ANSWER_STORED, ANSWER_SHOWN, ANSWER_OF_MODEL };
#define ANSWER_PICTURES 3

struct answer_form {
    enum answer_kind kind;
    uint32_t class_count; /* CLASSES: so many of each row */
    /* ---- BOXES ---- */
    struct boxes_rules rules;
    enum answer_order order; /* BY_SHAPE: the longer dim counts candidates */
    bool has_objectness;     /* behind the four numbers of each box */
    uint32_t box_classes;    /* so many of a box's scores; further numbers, such as coefficients of
                                masks, are none; 0: all of them */
    bool is_relative;        /* as the model gives boxes: sides of its picture are 1 */
    enum answer_picture picture;
    bool is_normalized;       /* in the answer: sides of |picture| are 1 */
    uint32_t scores, classes; /* raw indices of the results that have them, or ANSWER_NO_INDEX:
                                 they follow the four numbers of each box */
    /* What else follows the scores, one of these at most; |box_classes| is said then. */
    uint32_t points, point_numbers; /* points of 2 or 3 numbers: x, y, how sure; 0: none */
    bool has_angle;                 /* the box is turned by so many radians */
    uint32_t masks; /* coefficients of a mask, one for each map of the result with this raw index:
                       [n, coefficients, height, width] over the model's picture; or
                       ANSWER_NO_INDEX */
    /* ---- TEXT ---- */
    uint32_t blank;
};

struct answer_tensor {
    enum dtype dtype;
    struct shape shape;
    struct span bytes; /* row-major; borrowed */
};

/* A result, and everything that is needed to read it; borrowed. */
struct answer_source {
    const struct answer_form *answer;
    struct answer_tensor tensor, scores, classes, masks; /* the last three as |answer| says */
    const struct span *labels;
    uint32_t label_count;
    uint32_t pixels[2];               /* height and width of the model's picture; 0: unknown */
    const struct image_place *places; /* of pictures that came as files, in the order of rows */
    uint32_t place_count;             /* 0: none did */
};

/* Are boxes, which |answer| may say, also made from the result with the raw |index|? */
static inline bool answer_has_part(const struct answer_form *answer, uint32_t index)
{
    return answer && answer->kind == ANSWER_BOXES &&
           (answer->scores == index || answer->classes == index || answer->masks == index);
}

/* ---- what a card says ------------------------------------------------------------------------ */

/* Can the answer be made from results like these, whose dims may be bounds? ST_INVALID. */
MUST_CHECK enum status answer_verify(const struct answer_source *source, struct error *err);

/* Returns how many numbers for scores each box has; 0: the model has chosen the classes, or the
 * answer is not of boxes. */
uint64_t answer_score_count(const struct answer_source *source);

/* Do they follow the four numbers of the box in one tensor? */
bool answer_has_joined_scores(const struct answer_form *answer);

/* ---- answers --------------------------------------------------------------------------------- */

size_t answer_rows(const struct answer_source *source);

/*
 * Appends the answer of row |row| as JSON. ST_INVALID: the numbers cannot be written so, such as a
 * class that a map has no place for; ST_EXHAUSTED. When |out| has no room, it fails.
 */
MUST_CHECK enum status answer_print(const struct answer_source *source, size_t row, struct buf *out,
                                    struct error *err);

/* Does the same in bytes: JSON of boxes, a PNG file, a text without quotes. */
MUST_CHECK enum status answer_write(const struct answer_source *source, size_t row, struct buf *out,
                                    struct error *err);

/* Prints JSON that people read in a terminal: a map without its PNG. */
MUST_CHECK enum status answer_describe(const struct answer_source *source, size_t row,
                                       struct buf *out, struct error *err);

/* Returns the bytes of memory that printing a row takes beside |out|, at most; of rows that are
 * refused for their size, as much as others may take. */
size_t answer_work_bytes(const struct answer_source *source);

/* Returns the bytes of text that take about as long to print. */
size_t answer_cost(const struct answer_source *source);

#endif
