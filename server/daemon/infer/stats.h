/* SPDX-License-Identifier: MIT */
/* Counts the requests of models, and prints the counts. Loop thread. */
#ifndef PTED_SERVER_DAEMON_INFER_STATS_H
#define PTED_SERVER_DAEMON_INFER_STATS_H

#include <stdint.h>

#include "server/model/model_stats.h"

struct buf;
struct infer_call;
struct model;
struct infer;
struct rt_sched_job;
struct serving;

/* Samples of a call that has run and whose results are still there. */
int64_t stats_sample_count(const struct infer_call *call);

/* |request| is over, and with it |call| of a model, with HTTP's |status|. */
void stats_add(struct model_stats *stats, const struct infer *infer, const struct infer_call *call,
               int status, uint64_t now_ns);

/* |job|, a step of a generation, has run. The loop. */
void stats_add_step(struct model_stats *stats, const struct rt_sched_job *job);

/* Returns when the last request ended, in ms since 1970; 0: there was none. Any thread. */
uint64_t stats_last_ms(const struct model_stats *stats);

/* Prints "memory": the parts of --ring-bytes that requests hold, by purpose; |evicted| clients lost
 * theirs. */
void stats_print_memory(struct buf *out, const struct serving *serving, uint64_t evicted);

/* Prints a row of "model_stats" in the protocol's statistics extension. */
void stats_print(struct buf *out, const struct model *model);

#endif
