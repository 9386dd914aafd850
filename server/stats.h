/* SPDX-License-Identifier: MIT */
/*
 * What a model's requests have cost since the start, by phase: counts and times that only grow, so
 * that a client takes the difference of two looks. Loop thread.
 */
#ifndef PTED_SERVER_STATS_H
#define PTED_SERVER_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct infer_call;
struct model;
struct request;
struct server;

#define STATS_BATCH_MAX 128 /* larger batches count as this one */

struct stats_phase {
    uint64_t count, ns;
};

/* Executions by how many samples they had, of one request or of several that ran as one. */
struct stats_batch {
    uint64_t count;                   /* executions */
    uint64_t decode, compute, encode; /* ns */
};

struct model_stats {
    uint64_t last_ns; /* when the last request ended, on the monotone clock; 0: none yet */
    struct stats_phase ok, failed; /* from the last byte of the request to its last of the answer */
    struct stats_phase cancelled;  /* of |failed| those whose client has gone */
    struct stats_phase decode;     /* body to tensors, and the plan */
    struct stats_phase queue;      /* ready to started */
    struct stats_phase batch_wait; /* of that: the device had room, but others might have joined */
    struct stats_phase compute;    /* started to finished */
    struct stats_phase encode;     /* finished to an answer that can be written */
    struct stats_phase write;      /* until the kernel has all of it */
    uint64_t inference_count;      /* samples, where a request may have several, else requests */
    uint64_t execution_count;      /* of the model; a batch is one */
    struct stats_batch batches[STATS_BATCH_MAX]; /* of 1, 2, ... samples */
};

/* Samples of a call that has run and whose results are still there. */
int64_t stats_sample_count(const struct infer_call *call);

/* |request| is over, and with it |call| of a model, well or not. */
void stats_add(struct model_stats *stats, const struct request *request,
               const struct infer_call *call, bool is_ok, uint64_t now_ns);

/* "memory": what requests hold of --ring-bytes, and for what. */
void stats_print_memory(struct buf *out, const struct server *server);

/* A row of "model_stats" in the protocol's statistics extension. */
void stats_print(struct buf *out, const struct model *model);

#endif
