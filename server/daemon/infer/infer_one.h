/* SPDX-License-Identifier: MIT */
/* Requests for one call of one model. Their row is the default of all others; two of its functions
 * are also for those that add to them. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_ONE_H
#define PTED_SERVER_DAEMON_INFER_INFER_ONE_H

#include <stdint.h>

struct infer_ops;
struct infer;
struct rt_sched_queue;

extern const struct infer_ops infer_one_ops; /* complete, but for what only other kinds have */

struct rt_sched_queue *infer_one_enter(struct infer *infer);
void infer_one_count(const struct infer *infer, int http_status, uint64_t now_ns);

#endif
