/* SPDX-License-Identifier: MIT */
/*
 * How many rows of each model may run as one is found out by running it (runtime/batch.h), which
 * takes longer than loading it. So models are served at once, each request alone, and a thread of
 * libuv's pool tries one after the other meanwhile, in memory of its own. All here is the loop's.
 */
#ifndef PTED_SERVER_PROVING_H
#define PTED_SERVER_PROVING_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct model;
struct server;
struct serving;

struct proving {
    uv_work_t work;
    struct serving *serving; /* held while there is something to try; else NULL */
    struct model *model;     /* of it: that is tried now */
    size_t ring_bytes;       /* of the memory that it is tried in */
    int64_t rows_max;        /* what came out, and why it is 1 */
    struct error why_not;
};

/* The loop has begun, or has another serving. */
void proving_begin(struct server *server);

#endif
