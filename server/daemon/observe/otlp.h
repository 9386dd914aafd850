/* SPDX-License-Identifier: MIT */
/*
 * Spans for an OpenTelemetry collector, by OTLP/HTTP with bodies of JSON
 * (https://opentelemetry.io/docs/specs/otlp/): a sink for lines (server/process/line_sink.h). A
 * line holds one or several spans, as objects of JSON with commas between them. Lines of one write
 * become one request. A collector that is away or busy is tried three times; then the lines are
 * lost.
 */
#ifndef PTED_SERVER_DAEMON_OBSERVE_OTLP_H
#define PTED_SERVER_DAEMON_OBSERVE_OTLP_H

#include "base/status.h"
#include "server/process/line_sink.h"

/*
 * |endpoint|: the collector's URL; spans go to its path /v1/traces. |service|: the name that they
 * carry. Both are copied. ST_UNAVAILABLE without libcurl; ST_EXHAUSTED.
 */
MUST_CHECK enum status otlp_sink(const char *endpoint, const char *service,
                                 struct line_sink **out_sink, struct error *err);

#endif
