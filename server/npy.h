/* SPDX-License-Identifier: MIT */
/*
 * NumPy's .npy files, versions 1.0 to 3.0: one array in C order and little-endian. Nothing of the
 * header is evaluated: what is not a plain element type, order and shape is refused. Any thread.
 */
#ifndef PTED_SERVER_NPY_H
#define PTED_SERVER_NPY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"

struct npy {
    enum dtype dtype;
    struct shape shape;
    struct span data; /* borrowed from the file's bytes; exactly shape x dtype */
};

MUST_CHECK enum status npy_parse(struct span file, struct npy *out, struct error *err);

/* Appends the header; the elements follow at an offset that is a multiple of 64. */
void npy_print_head(struct buf *out, enum dtype dtype, const struct shape *shape);

/* The same for an array of one byte string of |len| bytes. */
void npy_print_string_head(struct buf *out, size_t len);

#endif
