/* SPDX-License-Identifier: MIT */
/*
 * The buffer description oracle: decides what has to happen so that an offered value fits an input
 * or result of a method. It is the only place that decides whether bytes are copied; calls ask it
 * for every tensor. A pure function of its arguments; any thread.
 *
 * Source of the idea: the buffer description oracle of the function signature specification, here
 * as a total function with four answers.
 */
#ifndef PTED_RUNTIME_PROGRAM_ORACLE_H
#define PTED_RUNTIME_PROGRAM_ORACLE_H

#include "base/shape.h"
#include "base/status.h"
#include "runtime/program/program.h"

struct hal_buffer;
struct hal_device;

/* A tensor in memory, or one still to be allocated. */
struct rt_buffer_desc {
    enum dtype dtype;
    struct shape shape;
    int64_t strides[SHAPE_RANK_MAX]; /* in elements, any sign; see has_strides */
    bool has_strides;                /* false: packed and row-major */
    struct hal_buffer *buffer;       /* borrowed; NULL: no memory yet */
    size_t offset;                   /* in bytes, of the element whose indices are all 0 */
};

enum rt_oracle_answer {
    RT_ORACLE_USE,        /* bind it: type, dims, order, alignment and device are right */
    RT_ORACLE_CONVERT,    /* the type and dims are right: copy into memory like |out_wanted| */
    RT_ORACLE_ALLOCATE,   /* nothing there yet: allocate |out_wanted| */
    RT_ORACLE_UNSUPPORTED /* wrong type or dims, or not inside its own buffer: |err| says which */
};

/*
 * |io| is an input or result of a method on |device|. |out_wanted| (not for UNSUPPORTED) is packed
 * and has no buffer; |out_bytes| is its size. Its order of memory: for USE that of |given|, which
 * is row-major or the one that |io| prefers; else the preferred one. It has strides unless it is
 * row-major.
 */
enum rt_oracle_answer rt_oracle(const struct rt_io *io, const struct hal_device *device,
                                const struct rt_buffer_desc *given,
                                struct rt_buffer_desc *out_wanted, size_t *out_bytes,
                                struct error *err);

/* Does as rt_oracle() for a tensor without memory, of |dtype| and |shape|: gives the bytes to
 * allocate. ST_INVALID, ST_TOO_LARGE: UNSUPPORTED. */
MUST_CHECK enum status rt_oracle_measure(const struct rt_io *io, enum dtype dtype,
                                         const struct shape *shape, size_t *out_bytes,
                                         struct error *err);

/* Of |method|: a tensor of |dtype| is used where it lies if it begins at a multiple of so many
 * bytes, is packed, row-major or as its input prefers, and is in memory of the method's device. */
size_t rt_oracle_alignment(const struct rt_method *method, enum dtype dtype);

/* Prints "float32[?,8]", or "an int" for an input that takes no tensor. */
void rt_io_print(const struct rt_io *io, struct buf *out);

/* Fails with ST_INVALID: "input 'x' is missing, expected float32[?,8]", where |label| is "input
 * 'x'". */
enum status rt_io_missing(const struct rt_io *io, const char *label, struct error *err);

/* Fails with ST_INVALID: "expected float32[?,8], got |given|". */
enum status rt_io_refuse(const struct rt_io *io, const char *given, struct error *err);

#endif
