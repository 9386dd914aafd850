/* SPDX-License-Identifier: MIT */
/*
 * Golden cases: FAMILY.cases, a line for each call, input and output, and FAMILY.bin with the bytes
 * of all tensors in that order. contrib/export/ops.py writes both and says what a line looks like.
 */
#ifndef PTED_TESTS_OPS_CASES_H
#define PTED_TESTS_OPS_CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/shape.h"

#define CASE_VALUES_MAX 64

struct case_tensor {
    enum dtype dtype;
    struct shape shape;
    struct span bytes; /* borrowed from the file, or of |number| */
    int64_t number;    /* a result that is a number: i64 of rank 0 */
};

struct op_case {
    char method[64];
    double rtol, atol;
    uint32_t input_count, output_count;
    struct case_tensor inputs[CASE_VALUES_MAX], outputs[CASE_VALUES_MAX];
};

struct cases {
    FILE *text;
    uint8_t *bytes; /* owned */
    size_t byte_count, at;
    char line[256]; /* the next case's first line, or empty at the end */
};

/* Opens FAMILY's files; false, with a message, when they are not there. */
bool cases_open(struct cases *cases, const char *family);
/* The next case, or false behind the last. A file that is not as described stops the test. */
bool cases_next(struct cases *cases, struct op_case *out_case);
void cases_close(struct cases *cases);

/* Is |got| what the tensor says, within the tolerances? If not, says where not in |text|. */
bool case_compare(const struct op_case *c, const struct case_tensor *want, const uint8_t *got,
                  char text[160]);

#endif
