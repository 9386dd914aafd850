/* SPDX-License-Identifier: MIT */
/*
 * Spans of requests for an OpenTelemetry collector (--otlp-endpoint). A request has spans if its
 * caller records the trace that traceparent names, and if a trace begins with it (--trace-sample).
 * It has one of its own and, if its model ran, one for each of its phases: prepare, queue, compute
 * and encode. Loop thread, but spans_counts().
 */
#ifndef PTED_SERVER_DAEMON_OBSERVE_SPANS_H
#define PTED_SERVER_DAEMON_OBSERVE_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "server/daemon/request/trace.h"
#include "server/process/line_writer.h"
#include "server/process/options.h"

struct request;

/* Zeroed at first. */
struct spans {
    struct trace_source *traces; /* borrowed: ids */
    struct line_writer *writer;  /* owned; NULL: there is no collector */
    uint64_t call_count;         /* calls without traceparent, for the samples */
    uint64_t every;              /* a trace begins with each so many of them; 0: with none */
    int64_t left;                /* traces that may still begin here; -1: any number */
    bool is_off;                 /* no request has spans */
};

/* The settings that a request may change: see struct spans. */
struct oip_trace_change;
MUST_CHECK enum status spans_change(struct spans *spans, const struct params *params,
                                    const struct oip_trace_change *change, struct error *err);
void spans_print_settings(const struct spans *spans, struct buf *out);

MUST_CHECK enum status spans_open(struct spans *spans, struct trace_source *traces,
                                  const struct options *options, struct error *err);
void spans_close(struct spans *spans);

/* Does a trace begin with this call, which has no traceparent? Then |*out_trace| is that trace. */
bool spans_begin_trace(struct spans *spans, struct trace *out_trace);

/* |request| is over, or its client has gone; the exchange is still known. */
void spans_request(struct spans *spans, struct request *request);

/* Requests; zeros without a collector. Any thread. */
struct line_writer_counts spans_counts(const struct spans *spans);

#endif
