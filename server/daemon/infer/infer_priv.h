/* SPDX-License-Identifier: MIT */
/* Shared by infer.c, infer_due.c and infer_encode.c. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_PRIV_H
#define PTED_SERVER_DAEMON_INFER_INFER_PRIV_H

#include <stddef.h>

#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_one.h"

/* Memory of this size is not counted: every request has it. */
#define INFER_KEEP_BYTES (64 << 10)

/* The function |slot|, such as run.enter, of the kind of request, or else of the call of one model:
 * the only place where a row's defaults are filled in. */
#define INFER_OP(infer, slot) ((infer)->ops->slot ? (infer)->ops->slot : infer_one_ops.slot)

/* Returns the bytes of memory for requests that its calls hold, and what its kind holds beside
 * them. */
size_t infer_calls_bytes(const struct infer *infer);

#endif
