/* SPDX-License-Identifier: MIT */
/* A method as protocol/call.h describes it. Any thread. */
#ifndef PTED_SERVER_MODEL_CARD_CALL_METHOD_H
#define PTED_SERVER_MODEL_CARD_CALL_METHOD_H

#include "base/arena.h"
#include "base/shape.h"
#include "base/status.h"
#include "protocol/call.h"
#include "runtime/program/program.h"

/* Returns the shape of an input or result in the protocols: -1 for a dim that varies; of a string
 * [1]. */
struct shape card_shape_of(const struct rt_io *io);

/* Borrows from |method|; the rest is in |arena|. ST_EXHAUSTED. */
MUST_CHECK enum status card_describe_call(struct arena *arena, const struct rt_method *method,
                                          struct call_method *out, struct error *err);

#endif
