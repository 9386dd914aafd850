/* SPDX-License-Identifier: MIT */
/*
 * Operators whose meaning other layers know: passes that rewrite them, importers that make them.
 * The rows are looked up by name once; a node is then compared with a row. Any thread.
 */
#ifndef PTED_RUNTIME_OPS_KNOWN_H
#define PTED_RUNTIME_OPS_KNOWN_H

#include <stdbool.h>

#include "runtime/graph/op.h"

enum rt_known {
    RT_KNOWN_NONE, /* in tables: no operator */
#define KNOWN(name) RT_KNOWN_##name,
#include "runtime/ops/known.def"
#undef KNOWN
    RT_KNOWN_COUNT
};

/* Returns the row of the operator, which is not RT_KNOWN_NONE; never NULL. RT_OP(add) is the row of
 * "add". */
const struct rt_op *rt_op_known(enum rt_known id);
#define RT_OP(name) rt_op_known(RT_KNOWN_##name)

/* Is |op| that operator? */
bool rt_op_is(const struct rt_op *op, enum rt_known id);

#endif
