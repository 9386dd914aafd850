/* SPDX-License-Identifier: MIT */
/* The constants of a method as stored in its file, before any pass changes their form: how many
 * numbers of which types. Found once, when the method has been imported; immutable. */
#ifndef PTED_RUNTIME_CODE_WEIGHTS_H
#define PTED_RUNTIME_CODE_WEIGHTS_H

#include "base/shape.h"
#include "base/status.h"
#include "runtime/graph/graph.h"

struct rt_code;

/* How the inputs of layers are rounded to integers. */
enum rt_activations {
    RT_ACTIVATIONS_PLAIN,   /* not at all */
    RT_ACTIVATIONS_STATIC,  /* by scales that the file has */
    RT_ACTIVATIONS_DYNAMIC, /* by scales that are found for each row as it comes */
};

/* A tensor that the file stores. */
struct rt_weight {
    const char *name;  /* or NULL: the file has none for it */
    struct span bytes; /* borrowed: identify the constant */
    enum dtype dtype;  /* of a byte that holds several numbers: U8 */
    uint8_t per_byte;  /* 1, or the numbers in a byte */
    const struct rt_dim *dims;
    uint8_t rank;
};

struct rt_weights {
    struct rt_weight *items; /* each once, in the order of the file's uses */
    uint32_t count;
    enum rt_activations activations;
};

/* Finds the weights of the blocks of |code|, which are imported and not compiled yet. Storage:
 * code->arena. */
MUST_CHECK enum status rt_weights_find(const struct rt_code *code, struct arena *arena,
                                       struct rt_weights *out, struct error *err);

/* Numbers in it. */
uint64_t rt_weight_count(const struct rt_weight *weight);

#endif
