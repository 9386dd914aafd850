/* SPDX-License-Identifier: MIT */
/*
 * The log: one line an event, on stderr or at the end of a file. Under the journal each line starts
 * with its syslog priority; elsewhere with the time and the level. Text from a client cannot forge
 * a line or drive a terminal: log_escape() shows controls instead of writing them.
 *
 * Any thread after log_open(), except log_reopen(); a line is one write.
 */
#ifndef PTED_SERVER_PROCESS_LOG_H
#define PTED_SERVER_PROCESS_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

/*
 * Drops lines above |level| from now on. The others go to the end of the file |path|, which is
 * borrowed and created if need be, or to stderr if it is NULL. Before this call they go to stderr.
 */
MUST_CHECK enum status log_open(const char *path, enum log_level level, struct error *err);

/* Opens |path| again after it was renamed. If that fails the old file stays in use. */
MUST_CHECK enum status log_reopen(struct error *err);

/* For another file of lines: opens |path| to append to it, without waiting for a reader of a pipe;
 * opens it again as |fd|. */
MUST_CHECK enum status log_open_file(const char *path, int *out_fd, struct error *err);
MUST_CHECK enum status log_reopen_file(const char *path, int fd, struct error *err);

/* Is stderr the stream that systemd made for the journal? */
bool log_stderr_is_journal(void);

/* Returns the file that lines go to; NULL: stderr. */
const char *log_path(void);

/* "error", "warning", "notice", "info" or "debug" to its level. */
bool log_level_find(const char *name, enum log_level *out_level);

/* Lines above |level| are dropped from now on; which level that is; its name. */
void log_set_level(enum log_level level);
enum log_level log_level(void);
const char *log_level_name(enum log_level level);

/* Would a line of |level| be written? */
bool log_has_level(enum log_level level);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Does the same with a text that is there. */
void log_text(enum log_level level, struct span text);

/*
 * Writes |text| to |out| in a form that a line can show: controls and bytes that are not UTF-8 as
 * \xNN, characters that change lines or the direction of text as \u{202e}, everything else
 * unchanged. Stops before the first piece that does not fit into |size|. Returns the length; does
 * not terminate.
 */
size_t log_escape(char *out, size_t size, struct span text);

#endif
