/* SPDX-License-Identifier: MIT */
/* A command line, read one argument after the other: "--name value", "--name=value", or a file.
 * After "--" there are only files. All strings borrow from argv. */
#ifndef PTED_SERVER_PROCESS_ARGS_H
#define PTED_SERVER_PROCESS_ARGS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

struct args {
    int count;
    char *const *items;
    int at; /* the next one */
    bool are_files;
};

struct arg {
    const char *text;
    struct span option; /* "--name"; empty if the argument is a file */
    const char *value;  /* the text after '=', or NULL */
};

/* Takes the next argument. False: none is left. */
bool args_next(struct args *args, struct arg *out_arg);

/* Returns the value of an option, which may be the next argument. */
MUST_CHECK enum status args_value(struct args *args, const struct arg *arg, const char **out_value,
                                  struct error *err);

#endif
