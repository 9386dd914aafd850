/* SPDX-License-Identifier: MIT */
/*
 * The log: one line an event on stderr. Under the journal each line starts with its syslog
 * priority; elsewhere with the time and the level. Control characters never reach the terminal or
 * the journal: a client cannot forge a line.
 *
 * Any thread after log_init(); a line is one write.
 */
#ifndef PTED_SERVER_LOG_H
#define PTED_SERVER_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

/* Finds out whether stderr is the journal. Lines above |level| are dropped from now on. */
void log_init(enum log_level level);

/* "error", "warning", "notice", "info" or "debug" to its level. */
bool log_level_find(const char *name, enum log_level *out_level);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
