/* SPDX-License-Identifier: MIT */
/*
 * Which value of a program is which value of a reference, and how much they differ.
 *
 * Equal names are a pair: of results, and of values that a dump of the same program has. All other
 * values of a reference are named by the module that made them, and a program has no such names. So
 * a value's pair is the value of the program with the same dims that is nearest to it, if that is
 * near at all (PAIRS_NEAR): numbers that agree in thousands of places are the same value. Such a
 * search finds values wherever the exporter has put them, also in a payload whose pictures have
 * their channels last.
 *
 * An exporter folds some values into others, such as those between a convolution and its batch
 * norm. Then a program has no such value, or one that is only similar. That is no difference if
 * something that is computed from it is equal.
 */
#ifndef PTED_SERVER_CLI_PAIRS_H
#define PTED_SERVER_CLI_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/shape.h"

#define PAIRS_NONE UINT32_MAX

/* Half of the distance that a tensor of zeros has, see struct pairs_difference. */
#define PAIRS_NEAR 0.5

/* Borrows everything. */
struct pairs_tensor {
    const char *name;
    enum dtype dtype;
    struct shape shape;
    const void *bytes; /* row-major; NULL: there is none */
};

struct pairs_difference {
    double max_abs;   /* of the elements that are finite in both */
    double relative;  /* that, of the largest element that is wanted */
    double distance;  /* the norm of the difference, of the norm of what is wanted */
    uint64_t strange; /* elements that are NaN or infinite in one alone */
    size_t at;        /* row-major, of what is wanted: the largest difference */
    double got, want; /* there */
};

enum pairs_kind {
    PAIRS_EQUAL,
    PAIRS_DIFFERS,
    PAIRS_SHAPE,  /* a name that both have, with other dims or another type */
    PAIRS_FOLDED, /* the program has no such value, and what is computed from it is equal */
    PAIRS_ABSENT, /* the program has no such value, and nothing that is computed from it is equal */
};

struct pairs_row {
    enum pairs_kind kind;
    uint32_t got; /* the value of the program, or PAIRS_NONE */
    struct pairs_difference difference;
};

/* Value |from| of the reference is an argument of what makes value |to|. */
struct pairs_edge {
    uint32_t from, to;
};

struct pairs {
    const struct pairs_tensor *got, *want; /* both in the order of the program */
    uint32_t got_count, want_count;
    uint32_t result_count;          /* of |got|, the first so many are the method's results */
    const struct pairs_edge *edges; /* numbers are of |want|; none: each value feeds the next */
    uint32_t edge_count;
    double tolerance; /* |relative| of equal floats is at most that; 0: pairs_tolerance() */
    uint32_t bits;    /* of floats that are computed with fewer bits than their type has, or 0 */
};

/* Finds a row for each wanted value. False: no memory. */
bool pairs_find(const struct pairs *pairs, struct pairs_row *rows);

/* Returns the first row that is neither equal nor folded, or PAIRS_NONE. */
uint32_t pairs_first(const struct pairs *pairs, const struct pairs_row *rows);

/*
 * Finds the value of the program that is the first which is not equal at |row|, a value without a
 * pair, and the wanted value at |row| or behind it that is nearest to it. False: there is none with
 * the same dims.
 */
bool pairs_guess(const struct pairs *pairs, const struct pairs_row *rows, uint32_t row,
                 uint32_t *out_want, struct pairs_row *out_guess);

/*
 * Returns the largest |relative| of equal values: 2 to the power of minus half the bits of the type
 * with fewer of them, so 2^-12 of float32. Numbers that are added in another order differ in their
 * last bits, and each layer adds to that; a wrong layer differs in its first ones. 0 of integers.
 */
double pairs_tolerance(enum dtype got, enum dtype want, uint32_t bits);

#endif
