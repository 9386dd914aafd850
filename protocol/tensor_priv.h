/* SPDX-License-Identifier: MIT */
/* Shared by the walk over the brackets of a tensor's text and the reading of its elements. */
#ifndef PTED_PROTOCOL_TENSOR_PRIV_H
#define PTED_PROTOCOL_TENSOR_PRIV_H

#include "protocol/tensor_text.h"

struct tensor_walk {
    const uint8_t *start, *at, *end;
    const struct shape *shape;
    const struct tensor_element *element;
    uint8_t *dst;        /* where the next element goes */
    struct arena *arena; /* of decoded strings */
    struct tensor_nan *nan;
    bool is_at_element; /* the last run stopped at an element, not at a missing comma */
    unsigned level;     /* of the array that the walk is in */
    int64_t index[SHAPE_RANK_MAX];
};

/* Reads up to |count| elements and the commas between them, and returns how many it read. */
typedef size_t tensor_read_run_f(struct tensor_walk *walk, size_t count);

/* A type of elements, and its words for errors. */
struct tensor_element {
    tensor_read_run_f *read_run;
    const char *name, *wanted, *range;
    bool is_float;
};

extern const struct tensor_element tensor_elements[DTYPE_COUNT];
extern const struct tensor_element tensor_string_element;

/* Reads "NaN", "Infinity" or "-Infinity" in quotes, whatever is escaped: returns the place behind
 * it, or NULL. */
const uint8_t *tensor_read_quoted(const uint8_t *at, const uint8_t *end, double *out);

static inline const uint8_t *tensor_skip_space(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

#endif
