/* SPDX-License-Identifier: MIT */
/*
 * How precisely the floats of a model are computed. Each mode permits what the modes before it
 * permit, and more. A processor or device without the instructions of a mode uses the next more
 * precise one.
 */
#ifndef PTED_BASE_PRECISION_H
#define PTED_BASE_PRECISION_H

#include <stdbool.h>

#include "base/bytes.h"

enum precision {
    PRECISION_EXACT, /* float32, each sum of products as the model's operators define it */
    PRECISION_FAST,  /* float32, also by algorithms with larger rounding errors: Winograd */
    PRECISION_BF16,  /* products of numbers rounded to bfloat16, summed in float32;
                        numbers that are added to such products may be rounded, too */
};
#define PRECISION_COUNT (PRECISION_BF16 + 1)

/* Returns "exact", "fast", "bf16" */
const char *precision_word(enum precision precision);

/* Finds a precision by its word. False: |word| is none of them. */
bool precision_find(struct span word, enum precision *out_precision);

#endif
