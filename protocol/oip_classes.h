/* SPDX-License-Identifier: MIT */
/*
 * The classification extension of the Open Inference Protocol: in place of a tensor of scores, the
 * texts "SCORE:INDEX" or "SCORE:INDEX:LABEL" of its highest ones, as Triton writes them. Loop
 * thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_OIP_CLASSES_H
#define PTED_PROTOCOL_OIP_CLASSES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"

#define OIP_CLASSES_MAX 1000000 /* scores of a row */

/* Scores to classify: one row with rank 0 or 1, else a row for each index of dim 0. Borrowed. */
struct oip_classes {
    enum dtype dtype;
    const struct shape *shape;
    struct span scores;
    const struct span *labels; /* of the classes */
    uint32_t label_count;
    uint32_t wanted; /* at least 1; a row gets as many texts as it has scores, or fewer */
};

/* One of the highest scores of a row. */
struct oip_class {
    double score;
    uint32_t index; /* in the row */
};

/* Finds the classes themselves, by the rules of oip_classify(). */
MUST_CHECK enum status oip_find_classes(const struct oip_classes *classes, struct arena *arena,
                                        const struct oip_class **out_classes,
                                        struct shape *out_shape, struct error *err);

/* May scores be of this type? */
bool oip_is_score(enum dtype dtype);

/* Returns the element at |at|, of such a type; integers beyond 2^53 lose digits. */
double oip_score_at(enum dtype dtype, const uint8_t *at);

/*
 * Finds the texts |*out_texts| of all rows, in |arena|, highest first; of equal scores the first
 * one goes first, and NaN goes last. |*out_shape| is [K] or [rows, K]. ST_INVALID: not real
 * numbers, or too many; ST_EXHAUSTED and ST_TOO_LARGE: the arena.
 */
MUST_CHECK enum status oip_classify(const struct oip_classes *classes, struct arena *arena,
                                    const struct span **out_texts, struct shape *out_shape,
                                    struct error *err);

#endif
