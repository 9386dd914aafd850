/* SPDX-License-Identifier: MIT */
/*
 * A terminal whose screen a program takes over: an alternate screen without a cursor, keys without
 * Enter. screen_leave() brings back the former content; signals that end or stop the process call
 * it, too. One in a process; one thread.
 */
#ifndef PTED_SERVER_CLI_SCREEN_H
#define PTED_SERVER_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Is standard output a terminal that knows control sequences? */
bool screen_is_there(void);

void screen_enter(void);
void screen_leave(void);

/* Has a signal, q or Ctrl-C asked for the end? Reads the keys that have come. Ctrl-Z stops the
 * process here and goes on here. */
bool screen_is_over(void);

/* Has the window another size, or is the process back from a stop? Then it has to be drawn again.
 */
bool screen_has_changed(void);

/* Finds the window's size; 80 x 24 if it is not known. */
void screen_size(uint32_t *out_columns, uint32_t *out_rows);

/* Replaces the content by |text|, lines of at most the window's width; as many as fit. */
void screen_draw(const struct buf *text);

#endif
