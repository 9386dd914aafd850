/* SPDX-License-Identifier: MIT */
/*
 * The logging and trace extensions of the Open Inference Protocol: settings that requests show and
 * change (Triton's docs/protocol/extension_logging.md and extension_trace.md). Members that are
 * named there but cannot be changed here are refused, and so are members that nobody knows.
 *
 * Any thread: no state is shared.
 */
#ifndef PTED_PROTOCOL_OIP_SETTINGS_H
#define PTED_PROTOCOL_OIP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

/* Kinds of lines, the gravest first. Our log has one level, so each kind comes with those before
 * it. */
enum oip_log_kind { OIP_LOG_ERRORS, OIP_LOG_WARNINGS, OIP_LOG_INFOS, OIP_LOG_VERBOSE };

struct oip_log_settings {
    enum oip_log_kind kind; /* the least grave level that is logged */
    const char *file;       /* "": stderr */
};

void oip_print_log(struct buf *out, const struct oip_log_settings *settings);

/* Parses the body of POST /v2/logging, for the settings |now|; |*out_kind| is the wanted setting.
 * ST_INVALID; ST_UNSUPPORTED: another file or format. */
MUST_CHECK enum status oip_parse_log(struct span body, const struct oip_log_settings *now,
                                     enum oip_log_kind *out_kind, struct error *err);

struct oip_trace_settings {
    bool is_on;    /* level TIMESTAMPS, or else OFF */
    uint64_t rate; /* a trace for each so many calls */
    int64_t count; /* of traces that are still to come; -1: any number */
};

void oip_print_trace(struct buf *out, const struct oip_trace_settings *settings);

enum oip_trace_level { OIP_TRACE_SAME, OIP_TRACE_OFF, OIP_TRACE_ON, OIP_TRACE_DEFAULT };

/* At most one of both: null asks for the default. */
struct oip_trace_number {
    bool is_set, is_default;
    int64_t value;
};

struct oip_trace_change {
    enum oip_trace_level level;
    struct oip_trace_number rate;  /* 0 or more */
    struct oip_trace_number count; /* -1 or more */
};

/* Parses the body of POST /v2/trace/setting: empty, or an object. ST_INVALID, ST_UNSUPPORTED. */
MUST_CHECK enum status oip_parse_trace(struct span body, struct oip_trace_change *out,
                                       struct error *err);

#endif
