/* SPDX-License-Identifier: MIT */
/*
 * Scalars that the host computes: primitive operators of a program outside the algebra of sizes
 * (runtime/graph/dim.h). Overflow, division by zero and a float outside int64 are errors. Pure
 * functions; any thread.
 */
#ifndef PTED_RUNTIME_CODE_SCALAR_H
#define PTED_RUNTIME_CODE_SCALAR_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/graph/graph.h"

/* 64 bits: an int, the bits of a double, or 0 and 1. */
struct rt_scalar {
    enum rt_kind kind; /* INT, FLOAT, BOOL */
    int64_t number;
};

enum rt_scalar_op {
#define SCALAR_OP(id, name, args, fn) RT_SCALAR_##id,
#include "runtime/code/scalar.def"
#undef SCALAR_OP
    RT_SCALAR_COUNT
};

/* Returns the operator of a kernel call with that name, or RT_SCALAR_COUNT. */
enum rt_scalar_op rt_scalar_find(struct span kernel);
const char *rt_scalar_name(enum rt_scalar_op op);
uint32_t rt_scalar_arg_count(enum rt_scalar_op op); /* 1 to 3 */

/* Gives the kind of the result; ST_INVALID if the operator does not take such arguments. */
MUST_CHECK enum status rt_scalar_kind(enum rt_scalar_op op, const enum rt_kind *args,
                                      enum rt_kind *out_kind, struct error *err);

/* rt_scalar_kind() has accepted the kinds of the arguments. */
MUST_CHECK enum status rt_scalar_apply(enum rt_scalar_op op, const struct rt_scalar *args,
                                       struct rt_scalar *out, struct error *err);

struct rt_scalar rt_scalar_of_double(double value);
double rt_scalar_to_double(struct rt_scalar scalar);

#endif
