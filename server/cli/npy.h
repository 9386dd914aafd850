/* SPDX-License-Identifier: MIT */
/*
 * NumPy's .npy files, versions 1.0 to 3.0: one array of a plain element type, in C or Fortran
 * order, of either byte order. The header is not evaluated: only a plain element type, order and
 * shape are accepted. Any thread.
 */
#ifndef PTED_SERVER_CLI_NPY_H
#define PTED_SERVER_CLI_NPY_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "base/status.h"

/* Advice for an archive of arrays, which numpy.savez() writes. */
#define NPY_IS_NPZ                                                                                 \
    "an .npz archive holds several arrays: write the one that is meant as .npy, by numpy.save()"

struct npy {
    enum dtype dtype;
    struct shape shape;
    bool is_fortran;    /* Fortran order: the first dim is the innermost one */
    bool is_big_endian; /* the bytes of an element have to be reversed */
    struct span
        data; /* borrowed from the file's bytes; exactly as many as shape and dtype require */
};

/* Does |file| begin as such a file does? */
bool npy_is_one(struct span file);

MUST_CHECK enum status npy_parse(struct span file, struct npy *out, struct error *err);

/* Writes the elements to |dst|, row-major and little-endian; |dst| has room for data.len bytes. */
void npy_copy(const struct npy *array, void *dst);

/* Appends the header; the elements follow at an offset that is a multiple of 64. */
void npy_print_head(struct buf *out, enum dtype dtype, const struct shape *shape);

/* Does the same for byte strings of |len| bytes each. */
void npy_print_strings_head(struct buf *out, size_t len, const struct shape *shape);

#endif
