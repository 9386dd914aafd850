/* SPDX-License-Identifier: MIT */
/*
 * An answer of a language model that comes as events, and what a bench counts of many of them. The
 * figures are those of vLLM's bench: time to first token (TTFT), time per output token behind the
 * first one (TPOT), the times between events with text (ITL). One thread.
 */
#ifndef PTED_SERVER_CLI_BENCH_STREAM_H
#define PTED_SERVER_CLI_BENCH_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "server/cli/bench_histogram.h"

/* Of one answer. */
struct bench_stream {
    struct buf event;                      /* owned: the line that has not ended */
    uint64_t first_ns, last_ns;            /* when events with text came; 0: none has */
    uint64_t prompt_tokens, answer_tokens; /* as the server says, if it |has_usage| */
    uint64_t bytes;
    bool has_usage;
    struct bench_histogram *gaps; /* borrowed */
    struct error err;             /* ST_OK: all events could be read */
};

/* Zeroed at first. */
struct bench_language {
    struct bench_histogram ttft, tpot, itl;
    uint64_t prompt_tokens, answer_tokens;
    uint64_t uncounted;          /* answers without usage: sums of tokens lack theirs */
    uint64_t later_tokens;       /* behind the first one of each answer */
    uint64_t first_ns, later_ns; /* sums: up to the first tokens, and behind them */
};

void bench_stream_init(struct bench_stream *stream);
void bench_stream_fini(struct bench_stream *stream);

/* Call before a request: |gaps| gets the times between events. */
void bench_stream_begin(struct bench_stream *stream, struct bench_histogram *gaps);

/* Takes bytes that came at |now_ns|. False: they are too many, or no events; see |err|. */
bool bench_stream_take(struct bench_stream *stream, const void *bytes, size_t len, uint64_t now_ns);

/* Call when the answer to a request, which counts from |since_ns|, has ended at |now_ns|.
 * ST_CORRUPT, ST_UNAVAILABLE: it was none, or ended with an error. */
MUST_CHECK enum status bench_stream_end(struct bench_stream *stream, uint64_t since_ns,
                                        uint64_t now_ns, struct bench_language *out,
                                        struct error *err);

#endif
