/* SPDX-License-Identifier: MIT */
/*
 * The raw function ABI, fv = 1: the types of a function's inputs and results in their raw order.
 *
 *     I15!B11!d10d128d64R6!S3!t6    (float32[10,128,64]) -> (sint32)
 *
 * The signature has no code for bool and writes it as sint8. A struct made from a file keeps the
 * difference in |dtype|; a struct parsed from a text cannot. Dims have 64 bits. Only the length of
 * the text limits the rank.
 *
 * Refused with ST_INVALID and a position: anything but I and then R, a type code other than 0..11
 * in exactly that spelling, a code behind a dim, a dim below -1, content in O or U, and what sig.h
 * refuses. Any thread.
 */
#ifndef PTED_PROTOCOL_RAWSIG_H
#define PTED_PROTOCOL_RAWSIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/status.h"

#define RAWSIG_VERSION "1"
#define RAWSIG_DIM_DYNAMIC (-1)

enum rawsig_kind { RAWSIG_BUFFER, RAWSIG_SCALAR, RAWSIG_REF, RAWSIG_UNRECOGNIZED };

struct rawsig_type {
    enum rawsig_kind kind;
    enum dtype dtype;    /* of a buffer or scalar */
    uint32_t rank;       /* of a buffer */
    const int64_t *dims; /* outermost first; borrowed from whoever made the type */
};

struct rawsig {
    struct rawsig_type *inputs, *results;
    uint32_t input_count, result_count;
};

/* Parses a signature. Everything in |out| lives in |arena|; ST_TOO_LARGE when that is full. */
MUST_CHECK enum status rawsig_parse(struct span text, struct arena *arena, struct rawsig *out,
                                    struct error *err);

/* Prints the canonical signature. */
void rawsig_mangle(const struct rawsig *sig, struct buf *out);

/* Prints for people "(float32[?,128], sint64) -> (float32[?,10])". */
void rawsig_print(const struct rawsig *sig, struct buf *out);

#endif
