/* SPDX-License-Identifier: MIT */
/* Outputs of a call that the client wants channels-last: which they are, whether the method makes
 * them so, and turning those that it makes row-major. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_ORDER_H
#define PTED_SERVER_DAEMON_INFER_INFER_ORDER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

struct infer;
struct infer_call;
struct infer_output;

/* Notes that the client says the order of |output| itself. ST_INVALID: it has no such order. */
MUST_CHECK enum status infer_order_ask(struct infer_output *output, bool is_channels_last,
                                       struct error *err);

/* Gives outputs that do not say the order of the request, and has the method make those
 * channels-last that nothing reads row-major. Call once all outputs, classes and answers are
 * chosen. ST_INVALID: an output has classes and an order, or no output has the request's. */
MUST_CHECK enum status infer_order_choose(struct infer_call *call, struct error *err);

/* Returns the bytes of a tensor in the order that its client wants; see infer_order_turn(). */
struct span infer_order_bytes(const struct infer_call *call, const struct infer_output *output);

/* Turns |output| if its method gave it row-major and the client wants it otherwise. ST_TOO_LARGE,
 * ST_EXHAUSTED. */
MUST_CHECK enum status infer_order_turn(struct infer *infer, const struct infer_call *call,
                                        struct infer_output *output, struct error *err);

#endif
