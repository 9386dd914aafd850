/* SPDX-License-Identifier: MIT */
/* One input of a call: from a file, from JSON text, or a fixed pattern. One thread. */
#ifndef PTED_SERVER_CLI_INPUT_H
#define PTED_SERVER_CLI_INPUT_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "server/cli/io.h"

/* Takes the values of inputs, for an invocation or for a request to a server. Each function gets
 * the index of the input. */
struct npy;

struct cli_input_ops {
    /* Gives memory for the elements; NULL for 0 bytes. */
    enum status (*tensor)(void *own, uint32_t index, enum dtype dtype, const struct shape *shape,
                          void **out_ptr, struct error *err);
    enum status (*integer)(void *own, uint32_t index, int64_t value, struct error *err);
    enum status (*number)(void *own, uint32_t index, double value, struct error *err);
    enum status (*flag)(void *own, uint32_t index, bool value, struct error *err);
    enum status (*string)(void *own, uint32_t index, struct span value, struct error *err);
    /* As many as |shape| says; borrowed. NULL: inputs are single strings. */
    enum status (*strings)(void *own, uint32_t index, const struct shape *shape,
                           const struct span *strings, struct error *err);
    /* Rows of an input that the card says to be made from a medium: paths of files, or texts.
     * |out_shape|: of the tensor. */
    enum status (*media)(void *own, uint32_t index, const char *const *items, uint32_t count,
                         struct shape *out_shape, struct error *err);
};

struct cli_input_to {
    const struct cli_input_ops *ops;
    void *own; /* passed to the functions */
    const struct cli_io *io;
    uint32_t index;
};

/* "2x3x4"; an empty text is rank 0. */
MUST_CHECK enum status cli_input_parse_dims(const char *text, struct shape *out_shape,
                                            struct error *err);

/* Does |text| say the numbers of a tensor, whatever the input is? FILE.npy, FILE.bin:2x3, or JSON's
 * lists of numbers. */
bool cli_input_is_tensor(const char *text);

/*
 * |text| is FILE.npy, FILE.bin (with the declared shape), FILE.bin:2x3 or JSON, and becomes the
 * input |to|. |shape| is the shape that a tensor must have, or NULL; |out_shape| gets its shape.
 */
MUST_CHECK enum status cli_input_set(const struct cli_input_to *to, const char *text,
                                     const struct shape *shape, struct shape *out_shape,
                                     struct error *err);

/* Does the same for an array of numpy. */
MUST_CHECK enum status cli_input_set_array(const struct cli_input_to *to, const struct npy *array,
                                           struct shape *out_shape, struct error *err);

/*
 * Fills in values that depend on the position alone; fixed scalars keep their value. |shape|: of a
 * tensor.
 */
MUST_CHECK enum status cli_input_fill(const struct cli_input_to *to, const struct shape *shape,
                                      struct error *err);

/* Stores |value| as element |i| of the |dtype|, which a request may have. */
void cli_input_store(void *memory, enum dtype dtype, size_t i, double value);

#endif
