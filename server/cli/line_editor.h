/* SPDX-License-Identifier: MIT */
/*
 * Lines that a user types at a terminal, with keys to edit them and a history, by libedit. The
 * library is loaded when an editor is made, so nothing else needs it.
 *
 * Text that is pasted into a terminal that brackets it (ESC [200~ ... ESC [201~) becomes a part of
 * the line, even its line ends: the user sends it with Enter. Controls in it do nothing.
 *
 * A file has the history: the last lines of all chats. One thread at a time; one editor at a time.
 */
#ifndef PTED_SERVER_CLI_LINE_EDITOR_H
#define PTED_SERVER_CLI_LINE_EDITOR_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/status.h"

struct line_editor;

enum line_end { LINE_WHOLE, LINE_INTERRUPTED, LINE_OVER, LINE_FAILED };

/* |prompt| is borrowed. Input and output are standard input and standard error, which are
 * terminals. ST_UNAVAILABLE: the library is missing, or the terminal is too simple; ST_EXHAUSTED.
 */
MUST_CHECK enum status line_editor_new(const char *prompt, struct line_editor **out,
                                       struct error *err);
void line_editor_free(struct line_editor *editor); /* NULL is fine */

/*
 * Waits until standard input has bytes and reads some, at most |bytes|; 0: its end. -1 with errno:
 * EINTR if a signal has come. Signals that are not in |mask| come through while it waits, and not
 * otherwise. A SIGINT makes a terminal forget what was typed, perhaps what the wait has ended for.
 * That, too, is EINTR.
 */
ssize_t line_read_bytes(void *to, size_t bytes, const sigset_t *mask);

/* Reads a line without its end to |out|, whose bytes are overwritten. Signals that are not in
 * |mask| come through only while the editor waits for input; SIGINT then ends the line. LINE_OVER:
 * Ctrl-D in an empty line, or the terminal is gone. */
enum line_end line_editor_read(struct line_editor *editor, const sigset_t *mask, struct buf *out);

#endif
