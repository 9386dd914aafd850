/* SPDX-License-Identifier: MIT */
/* Requests for one call of one model; and the rows of infer_ops_one that other requests share,
 * whose steps are calls of one model. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_ONE_H
#define PTED_SERVER_DAEMON_INFER_INFER_ONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/queue.h"
#include "runtime/call/invocation.h"

struct infer_ops;
struct infer;
struct rt_sched_queue;

extern const struct infer_ops infer_ops_one;

void infer_one_undo(struct infer *infer);
enum status infer_one_prepare(struct infer *infer, enum rt_prepare_mode mode, struct error *err);
size_t infer_one_demand(const struct infer *infer);
size_t infer_one_held_bytes(const struct infer *infer);
struct rt_sched_queue *infer_one_enter(struct infer *infer);
bool infer_one_start(struct infer *infer, enum hal_caller caller, struct error *err);
bool infer_one_cancel(struct infer *infer);
enum status infer_one_finish(struct infer *infer, enum status status, struct error *err);
void infer_one_count(const struct infer *infer, int http_status, uint64_t now_ns);

#endif
