/* SPDX-License-Identifier: MIT */
/* Outputs of a call as answers for people: boxes, maps of classes, texts (server/model/answer/). */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_ANSWER_H
#define PTED_SERVER_DAEMON_INFER_INFER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

struct infer_call;
struct infer_output;

/* If the card says so, an output of |call| becomes an answer, and the outputs that the answer is
 * made from become its parts. */
void infer_answer_choose(struct infer_call *call);

/* Notes that the client has asked for |output| as an answer. */
MUST_CHECK enum status infer_answer_ask(struct infer_output *output, bool is_json,
                                        struct error *err);

/* Appends the answer of |output| to |out| as JSON. */
MUST_CHECK enum status infer_answer_print(const struct infer_call *call,
                                          const struct infer_output *output, struct buf *out,
                                          struct error *err);

/* Makes it the texts of |output|, one for each row. */
MUST_CHECK enum status infer_answer_take(struct arena *arena, const struct infer_call *call,
                                         struct infer_output *output, struct error *err);

/* Returns the cost of printing, in bytes of text. */
size_t infer_answer_cost(const struct infer_call *call, const struct infer_output *output);

/* Returns the bytes of memory that printing the answers of |call| takes at a time, beside their
 * text. */
size_t infer_answer_work_bytes(const struct infer_call *call);

#endif
