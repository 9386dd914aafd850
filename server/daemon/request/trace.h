/* SPDX-License-Identifier: MIT */
/*
 * The trace that a request belongs to, as W3C Trace Context has it: the field traceparent with a
 * version, the id of the trace, the id of the caller's span, and flags. The request is a span of
 * that trace: it gets an id of its own, under which the answer and the log name it. A malformed
 * field is replaced by a new trace, as the recommendation wants; a call without one begins a trace
 * now and then, if spans are collected (server/daemon/observe/spans.h).
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_TRACE_H
#define PTED_SERVER_DAEMON_REQUEST_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define TRACE_ID_CHARS 32
#define TRACE_SPAN_CHARS 16
#define TRACE_PARENT_CHARS 55

/* Random numbers for ids; not for secrets. One thread. */
struct trace_source {
    uint64_t state;
};

void trace_source_init(struct trace_source *source);

#define TRACE_FLAG_SAMPLED 1

/* Text without ends. */
struct trace {
    char id[TRACE_ID_CHARS];
    char parent[TRACE_SPAN_CHARS]; /* the caller's span, if |has_parent| */
    char span[TRACE_SPAN_CHARS];   /* ours */
    bool has_parent;               /* false: the field was malformed, and the trace is new */
    uint8_t flags;                 /* TRACE_FLAG_SAMPLED: the caller records it */
};

/* |field|: the value of traceparent; "" is malformed. */
void trace_begin(struct trace_source *source, struct span field, struct trace *out_trace);

/* Makes the id of another span of that trace. */
void trace_make_span(struct trace_source *source, char out[TRACE_SPAN_CHARS]);

/* Prints the value of traceparent for the answer; not terminated. */
void trace_print(const struct trace *trace, char out[TRACE_PARENT_CHARS]);

#endif
