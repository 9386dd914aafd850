/* SPDX-License-Identifier: MIT */
/* Shared by the kinds of answers. */
#ifndef PTED_SERVER_MODEL_ANSWER_ANSWER_PRIV_H
#define PTED_SERVER_MODEL_ANSWER_ANSWER_PRIV_H

#include "server/model/answer/answer.h"

/* Returns the elements of a row of dim 0. */
static inline size_t answer_row_numel(const struct answer_tensor *tensor)
{
    size_t rows = (size_t)tensor->shape.dims[0];
    return rows ? (size_t)shape_numel(&tensor->shape) / rows : 0;
}

/* Returns where the picture of a row comes from; NULL: it is the picture that was sent, or the
 * answer is about the model's picture. A single picture serves all rows. */
const struct image_place *answer_place(const struct answer_source *source, size_t row);

/* Reads the floats of |row|, where they are or as a copy that free() takes. */
MUST_CHECK enum status answer_read_floats(const struct answer_tensor *tensor, size_t row,
                                          const float **out, float **out_copy, struct error *err);

/* Whole numbers of |row| as int64; free() takes |*out|. */
MUST_CHECK enum status answer_read_ints(const struct answer_tensor *tensor, size_t row,
                                        int64_t **out, struct error *err);

/* What follows the scores of a candidate. */
struct answer_rest {
    const float *at; /* the first number */
    size_t of_candidate, of_feature;
};

static inline float answer_rest_number(const struct answer_rest *rest, uint32_t candidate, size_t i)
{
    return rest->at[candidate * rest->of_candidate + i * rest->of_feature];
}

/* Where a row's points in the model's picture are in the picture that the answer is about. */
struct answer_placer {
    const struct image_place *place; /* NULL: the model's picture is meant */
    bool is_stored;
    double scale_x, scale_y; /* what the model's numbers are multiplied by */
    uint32_t height, width;  /* of the picture; 0: unknown */
    bool is_normalized;
};

struct answer_placer answer_placer_of(const struct answer_source *source, size_t row);

/* |clips|: to the borders of the picture. */
void answer_put_point(const struct answer_placer *placer, bool clips, double *x, double *y);

/* Prints a number as JSON. */
void answer_print_float(float number, struct buf *out);

/* ,"points":[[1,2,0.5]] */
void answer_print_points(const struct answer_form *answer, const struct answer_placer *placer,
                         const struct answer_rest *rest, uint32_t candidate, struct buf *out);

/* Finds the corners of the turned box in the picture, and the box around them. */
void answer_turn(const struct answer_placer *placer, const struct answer_rest *rest,
                 const struct box *raw, float corners[4][2], struct box *around);

/* Returns the bytes of memory for the masks of a row. */
size_t answer_mask_work_bytes(const struct answer_source *source);

/* The masks of a row's boxes. */
struct answer_masks;

/* |boxes| are still in the model's picture. */
MUST_CHECK enum status answer_masks_new(const struct answer_source *source, size_t row,
                                        const struct answer_placer *placer, const struct box *boxes,
                                        uint32_t count, struct answer_masks **out,
                                        struct error *err);
void answer_masks_free(struct answer_masks *masks); /* NULL is fine */

/* Finds the mask of |box|, which answer_masks_print() writes. False: it has no pixel. */
bool answer_masks_find(struct answer_masks *masks, const struct answer_rest *rest,
                       const struct box *box);

/* ,"mask":{"png":"...","left":1,"top":2,"width":3,"height":4} */
MUST_CHECK enum status answer_masks_print(const struct answer_masks *masks, struct buf *out,
                                          struct error *err);

/* Prints "label":"cat", if the class has one, and "index":3 */
void answer_print_class(const struct answer_source *source, int64_t class, struct buf *out);

/* The parts of a map that are printed: the PNG and the rest as JSON, the PNG alone, the rest alone.
 */
enum answer_map_part { ANSWER_MAP_ALL, ANSWER_MAP_FILE, ANSWER_MAP_CLASSES };

/* Does as answer_work_bytes(). */
size_t answer_map_work_bytes(const struct answer_source *source);

MUST_CHECK enum status answer_print_map(const struct answer_source *source, size_t row,
                                        enum answer_map_part part, struct buf *out,
                                        struct error *err);

/* |is_bare|: without quotes. */
MUST_CHECK enum status answer_print_text(const struct answer_source *source, size_t row,
                                         bool is_bare, struct buf *out, struct error *err);

#endif
