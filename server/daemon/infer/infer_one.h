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
struct request;
struct rt_sched_queue;

extern const struct infer_ops infer_ops_one;

void infer_one_undo(struct request *request);
enum status infer_one_prepare(struct request *request, enum rt_prepare_mode mode,
                              struct error *err);
size_t infer_one_demand(const struct request *request);
size_t infer_one_held_bytes(const struct request *request);
struct rt_sched_queue *infer_one_enter(struct request *request);
bool infer_one_start(struct request *request, enum hal_caller caller);
bool infer_one_cancel(struct request *request);
enum status infer_one_finish(struct request *request, enum status status, struct error *err);
void infer_one_count(const struct request *request, uint64_t now_ns);

#endif
