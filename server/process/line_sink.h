/* SPDX-License-Identifier: MIT */
/*
 * Where the lines of a line writer go: a file or a pipe, the journal with fields, or a place that
 * another file offers (server/daemon/observe/otlp.h). A sink may be slow.
 */
#ifndef PTED_SERVER_PROCESS_LINE_SINK_H
#define PTED_SERVER_PROCESS_LINE_SINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct line_sink;

struct line_sink_ops {
    const char *what;   /* "the access log", for errors */
    uint64_t gather_ns; /* lines that come within this time are written together */
    /* Writes whole lines and waits as long as it must, but gives up soon once |is_stopping|.
     * Returns the number of lines that were lost. The writer's thread. */
    uint64_t (*write)(struct line_sink *sink, const uint8_t *lines, size_t len);
    enum status (*reopen)(struct line_sink *sink, struct error *err); /* NULL: nothing to do */
    void (*free)(struct line_sink *sink);
};

struct line_sink {
    const struct line_sink_ops *ops;
    size_t write_bytes;      /* of a write, unless one line alone is longer */
    atomic_bool is_stopping; /* the writer's to set */
};

/* Returns the lines among |len| bytes. */
uint64_t line_sink_count(const uint8_t *lines, size_t len);

/* Appends to the file |path|, which is borrowed and created if need be, or writes to stderr if it
 * is NULL. */
MUST_CHECK enum status line_sink_file(const char *path, struct line_sink **out_sink,
                                      struct error *err);

/*
 * Entries of the journal, sent to the socket |path| by its native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/). A line is an entry; LINE_SINK_FIELD_END stands
 * between its fields "NAME=VALUE".
 */
#define LINE_SINK_JOURNAL_PATH "/run/systemd/journal/socket"
#define LINE_SINK_FIELD_END '\x1e'
MUST_CHECK enum status line_sink_journal(const char *path, struct line_sink **out_sink,
                                         struct error *err);

#endif
