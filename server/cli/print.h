/* SPDX-License-Identifier: MIT */
/* Results of `pte run` for people: small tensors whole, large ones shortened as NumPy does, with
 * their range and the positions of their largest values. Any thread. */
#ifndef PTED_SERVER_CLI_PRINT_H
#define PTED_SERVER_CLI_PRINT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/shape.h"

#define CLI_PRINT_WHOLE_MAX 100 /* elements */

/* The largest values of each row; a row runs along the last dim. */
struct cli_print_top {
    uint32_t count;
    const struct span *labels; /* of the classes, if a row has as many numbers; or NULL */
    uint32_t label_count;
    bool is_asked; /* for every tensor of floats; otherwise only for rows that look like scores of
                      classes */
};

#define CLI_PRINT_TOP_DEFAULT 5
#define CLI_PRINT_TOP_MAX 1000

/* Appends lines that begin with |name|, for |bytes| of |shape|, row-major. */
void cli_print_tensor(struct buf *out, const char *name, enum dtype dtype,
                      const struct shape *shape, const void *bytes,
                      const struct cli_print_top *top);

/* Returns element |i| as a double; integers beyond 2^53 lose digits. */
double cli_print_element(enum dtype dtype, const void *bytes, size_t i);

/* Prints a line for a number or a bool that is not a tensor. */
void cli_print_scalar(struct buf *out, const char *name, enum dtype dtype, const void *bytes);

#endif
