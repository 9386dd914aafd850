/* SPDX-License-Identifier: MIT */
/* Shared by the kinds of answers. */
#ifndef PTED_SERVER_ANSWER_ANSWER_PRIV_H
#define PTED_SERVER_ANSWER_ANSWER_PRIV_H

#include "server/answer/answer.h"

/* Elements of a row of dim 0. */
static inline size_t answer_row_numel(const struct answer_tensor *tensor)
{
    size_t rows = (size_t)tensor->shape.dims[0];
    return rows ? (size_t)shape_numel(&tensor->shape) / rows : 0;
}

/* Where the picture of a row comes from; NULL: it is the picture that was sent, or the answer is
 * about the model's picture. A single picture serves all rows. */
const struct image_place *answer_place(const struct answer_source *source, size_t row);

/* Whole numbers of |row| as int64; free() takes |*out|. */
MUST_CHECK enum status answer_read_ints(const struct answer_tensor *tensor, size_t row,
                                        int64_t **out, struct error *err);

/* "label":"cat", if the class has one, and "index":3 */
void answer_print_class(const struct answer_source *source, int64_t class, struct buf *out);

/* The parts of a map that are printed: the PNG and the rest as JSON, the PNG alone, the rest alone.
 */
enum answer_map_part { ANSWER_MAP_ALL, ANSWER_MAP_FILE, ANSWER_MAP_CLASSES };

/* As answer_work_bytes(). */
size_t answer_map_work_bytes(const struct answer_source *source);

MUST_CHECK enum status answer_print_map(const struct answer_source *source, size_t row,
                                        enum answer_map_part part, struct buf *out,
                                        struct error *err);

/* |is_bare|: without quotes. */
MUST_CHECK enum status answer_print_text(const struct answer_source *source, size_t row,
                                         bool is_bare, struct buf *out, struct error *err);

#endif
