/* SPDX-License-Identifier: MIT */
/*
 * The cost of a model's requests since the start, by phase: counts and times that only grow, so
 * that a client subtracts two looks. server/daemon/infer/stats.c counts and prints.
 */
#ifndef PTED_SERVER_MODEL_MODEL_STATS_H
#define PTED_SERVER_MODEL_MODEL_STATS_H

#include <stdint.h>

#include "base/counter.h"
#include "base/histogram.h"
#include "base/refs.h"
#include "server/model/status_counts.h"

#define MODEL_STATS_BATCH_MAX 128 /* larger batches count as this one */

struct model_stats_phase {
    uint64_t count, ns;
};

/* Executions by how many samples they had, of one request or of several that ran as one. */
struct model_stats_batch {
    uint64_t count;                  /* executions */
    uint64_t input, compute, encode; /* ns */
};

/* The phases of a successful call that have a histogram. */
enum model_phase {
    MODEL_PHASE_PREPARE, /* body to tensors, and the plan, without what follows */
    MODEL_PHASE_DECODE,  /* of calls with files or texts: reading them */
    MODEL_PHASE_QUEUE,
    MODEL_PHASE_COMPUTE,
    MODEL_PHASE_ENCODE,
    MODEL_PHASE_COUNT,
};

struct model_stats {
    struct refs refs;         /* generations of a model share their counts */
    _Atomic uint64_t last_ns; /* when the last request ended, on the monotone clock; 0: none yet.
                               * The loop's; any thread may look */
    struct model_stats_phase ok,
        failed; /* from the last byte of the request to its last of the answer */
    struct model_stats_phase cancelled; /* of |failed| those whose client has gone */
    struct model_stats_phase input;     /* body to tensors, and the plan */
    struct model_stats_phase decode;    /* of that: reading files and texts, if there are any */
    struct model_stats_phase queue;     /* ready to started */
    struct model_stats_phase
        batch_wait; /* of that: the device had room, but others might have joined */
    struct model_stats_phase compute; /* started to finished */
    struct model_stats_phase encode;  /* finished to an answer that can be written */
    struct model_stats_phase write;   /* until the kernel has all of it */
    uint64_t inference_count;         /* samples, where a request may have several, else requests */
    uint64_t execution_count;         /* of the model; a batch is one */
    struct model_stats_batch batches[MODEL_STATS_BATCH_MAX]; /* of 1, 2, ... samples */
    /* For GET /metrics, which any thread reads while the loop counts. */
    struct status_counts statuses; /* of all calls */
    struct histogram durations;    /* ns from the last byte of a call to the last of its answer */
    struct histogram phases[MODEL_PHASE_COUNT]; /* ns */
    struct histogram rows;                      /* of executions */
    /* Of language and speech models; zero with others. */
    struct counter prompt_tokens, answer_tokens;  /* that were computed */
    struct counter prefix_hits, cached_tokens;    /* choices with a kept state, tokens of it */
    struct counter draft_tokens, accepted_tokens; /* guesses that were checked, that were right */
    struct histogram first_tokens; /* ns from the last byte of a request to its first token */
    struct histogram next_tokens;  /* ns from one token to the next */
    struct counter transcriptions, sound_us; /* of speech models: that are over, and their sound */
};

static inline uint64_t model_stats_last_ns(const struct model_stats *stats)
{
    return atomic_load_explicit(&stats->last_ns, memory_order_relaxed);
}

#endif
