/* SPDX-License-Identifier: MIT */
/*
 * The console, a page for people: files of this folder, which are part of the program. The page
 * loads nothing from elsewhere, and speaks to the daemon by its public routes.
 */
#ifndef PTED_SERVER_DAEMON_CONSOLE_CONSOLE_H
#define PTED_SERVER_DAEMON_CONSOLE_CONSOLE_H

#include "base/bytes.h"

struct console_file {
    const char *name;
    const char *type; /* media type */
    struct span bytes;
};

/* |name|: of a file, or "" for the page. False: there is no such file. Any thread. */
bool console_find(const char *name, struct console_file *out);

#endif
