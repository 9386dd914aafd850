/* SPDX-License-Identifier: MIT */
/*
 * Lines for a sink that may be slow. One thread adds them to a ring in memory and never waits; a
 * thread of the writer's own writes them, many at a time. When the ring is full, lines are lost and
 * counted. Lines stay whole: each write ends at the end of a line, and it is no longer than its
 * sink wants, unless one line alone is.
 *
 * One thread calls all functions, except line_writer_counts(), which any thread may call.
 */
#ifndef PTED_SERVER_PROCESS_LINE_WRITER_H
#define PTED_SERVER_PROCESS_LINE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "server/process/line.h"
#include "server/process/line_sink.h"

struct line_writer;

/* |sink| is the writer's from now on, also if this fails. |bytes|, at least LINE_BYTES_MAX, may
 * wait. ST_SYSTEM, ST_EXHAUSTED. */
MUST_CHECK enum status line_writer_new(struct line_sink *sink, size_t bytes,
                                       struct line_writer **out_writer, struct error *err);

/* Writes the waiting lines for a second or two at most; the rest is lost. NULL is fine. */
void line_writer_free(struct line_writer *writer);

/* |len| bytes; the last one, and no other, is a line's end. */
void line_writer_add(struct line_writer *writer, const void *line, size_t len);

/* Opens the file of the sink again after it was renamed. If that fails the old one stays in use. */
MUST_CHECK enum status line_writer_reopen(struct line_writer *writer, struct error *err);

struct line_writer_counts {
    uint64_t added,
        lost; /* lines; lost for want of room, or because the sink could not write them */
};

struct line_writer_counts line_writer_counts(const struct line_writer *writer);

#endif
