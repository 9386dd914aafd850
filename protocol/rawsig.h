/* SPDX-License-Identifier: MIT */
/*
 * The raw function ABI: the types of a function's inputs and results in their raw order.
 *
 *     I15!B11!d10d128d64R6!S3!t6    (float32[10,128,64]) -> (sint32)
 *
 * Version 2 (fv = 2) has one thing more: behind the dims of a buffer may stand the order of memory
 * that the function prefers for it. Buffers in any other order are taken too.
 *
 *     buffer-type ::= 'B' length-prefixed(scalar-element-type? dim* order?)
 *     order       ::= 'c0'                       # row-major: the last dim is innermost
 *                   | 'c1'                       # channels last: dim 1 is innermost, of 3 dims or
 * more | 'C' length-prefixed(axis*) # any other permutation, outermost first axis        ::= 'a'
 * integer                # the number of a dim
 *
 *     I19!B15!d1d3d224d224c1R6!B3!d1000          (float32[1,3,224,224] channels-last) -> ...
 *
 * Each order has one spelling: 'C' is refused for what c0 and c1 say, and any order for fewer than
 * two dims, which lie in memory in one way. Version 1 refuses all of them.
 *
 * The signature has no code for bool and writes it as sint8. A struct made from a file keeps the
 * difference in |dtype|; a struct parsed from a text cannot. Dims have 64 bits. Only the length of
 * the text limits the rank.
 *
 * Refused with ST_INVALID and a position: anything but I and then R, a type code other than 0..11
 * in exactly that spelling, a code behind a dim, a dim below -1, a permutation that has not each
 * dim once, anything behind an order, content in O or U, and what sig.h refuses. Any thread.
 */
#ifndef PTED_PROTOCOL_RAWSIG_H
#define PTED_PROTOCOL_RAWSIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/status.h"

/* Version 1 is what clients get that do not ask. */
#define RAWSIG_VERSION "1"
#define RAWSIG_VERSION_ORDERS "2"
enum rawsig_version { RAWSIG_1 = 1, RAWSIG_2 = 2 };

#define RAWSIG_DIM_DYNAMIC (-1)

enum rawsig_order { RAWSIG_ANY_ORDER, RAWSIG_ROW_MAJOR, RAWSIG_CHANNELS_LAST, RAWSIG_PERMUTED };

enum rawsig_kind { RAWSIG_BUFFER, RAWSIG_SCALAR, RAWSIG_REF, RAWSIG_UNRECOGNIZED };

struct rawsig_type {
    enum rawsig_kind kind;
    enum dtype dtype;        /* of a buffer or scalar */
    uint32_t rank;           /* of a buffer */
    const int64_t *dims;     /* outermost first; borrowed from whoever made the type */
    enum rawsig_order order; /* that is preferred; RAWSIG_ANY_ORDER: none is, or nothing says so */
    const uint32_t *axes;    /* of RAWSIG_PERMUTED: the dims, outermost first; likewise borrowed */
};

struct rawsig {
    struct rawsig_type *inputs, *results;
    uint32_t input_count, result_count;
};

/* Parses a signature of |version|. Everything in |out| lives in |arena|; ST_TOO_LARGE when that is
 * full. */
MUST_CHECK enum status rawsig_parse(struct span text, enum rawsig_version version,
                                    struct arena *arena, struct rawsig *out, struct error *err);

/* Prints the canonical signature of |version|; version 1 leaves out the orders. */
void rawsig_mangle(const struct rawsig *sig, enum rawsig_version version, struct buf *out);

/* Prints for people "(float32[?,128], sint64) -> (float32[?,10])"; in version 2 with the orders:
 * "float32[1,3,8,8] channels-last", "float32[2,3] row-major", "float32[2,3] in the order 1 0". */
void rawsig_print(const struct rawsig *sig, enum rawsig_version version, struct buf *out);

#endif
