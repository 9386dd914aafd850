/* SPDX-License-Identifier: MIT */
/*
 * The number of a model's rows that may run as one is found by running it (runtime/call/batch.h),
 * which takes longer than loading the model. So models are served at once, each request alone, and
 * a thread of libuv's pool tries one model after the other in memory of its own. Everything here
 * belongs to the loop.
 */
#ifndef PTED_SERVER_SERVING_PROVING_H
#define PTED_SERVER_SERVING_PROVING_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct model;
struct server;
struct serving;

#define PROVING_MAGIC 0x70726f76u

struct proving {
    uint32_t magic;
    uv_work_t work;
    struct serving *serving; /* held while models are left to try; otherwise NULL */
    struct model *model;     /* shared: ref held; the model that is being tried, or NULL */
    size_t ring_bytes;       /* memory for the trial */
    int64_t rows_max;        /* the result, and the reason if it is 1 */
    int64_t rows;            /* of these, the number to begin with */
    struct error why_not;
    uint32_t speculation_tokens; /* of a language model: see struct generator */
    struct error why_one;
};

/* The loop has begun, or has a new serving. */
void proving_begin(struct server *server);

/* The daemon stops: ends the present trial soon. The loop. */
void proving_stop(struct server *server);

#endif
