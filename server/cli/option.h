/* SPDX-License-Identifier: MIT */
/*
 * The options of pte's commands as rows of tables: one parser reads all of them, and the help of a
 * command, the hints at misspelt options and the items of pte(1) come from the same rows. Tables
 * are constant; any thread.
 *
 * A group is the options of one struct. A command has groups, each with its place in the command's
 * own struct: options for a server are one group, and all commands that ask servers have it.
 */
#ifndef PTED_SERVER_CLI_OPTION_H
#define PTED_SERVER_CLI_OPTION_H

#include <stddef.h>

#include "base/buf.h"
#include "base/status.h"
#include "server/process/options.h"

struct cli_command;

/* Takes a value as the command line has it, NULL of a switch, into the group's struct. The text of
 * an error has no name. */
typedef enum status cli_option_set_f(void *group, const char *value, struct error *err);

/* What an option means only for a file or only for a URL. */
enum cli_option_only { CLI_ANYWHERE, CLI_ONLY_FILE, CLI_ONLY_URL };

struct cli_option {
    const char *name;  /* "top-k"; NULL ends a table */
    const char *value; /* the word for the value: "N"; NULL of a switch */
    /* What lies at |at| in the group's struct: SWITCH a bool, TEXT and FILE a const char *, TEXTS
     * and FILES an array of |max| of them, whose count is an uint32_t at |count_at|; PRECISION an
     * enum precision, WORD an unsigned, the number of the word; a number an uint64_t. */
    enum option_type type;
    size_t at, count_at;
    uint64_t min, max;     /* of a number; of a list, how often it can be given */
    const char *words;     /* of a WORD, with blanks between them */
    cli_option_set_f *set; /* or NULL: as |type| says */
    enum cli_option_only only;
    const char *preset; /* the default for people, or NULL */
    const char *doc;    /* what it does, without a dot at its end */
    const char *more;   /* lines of mdoc for pte(1) behind that, or NULL */
};

struct cli_option_group {
    const char *name; /* of the group in contrib/man/pte.1; NULL ends a list of groups */
    const struct cli_option *options;
    size_t at;        /* of its struct in the command's */
    const char *head; /* a line of --help before it, or NULL */
};

/* Reads a command line into |own|, the command's struct, which has its defaults. Arguments that are
 * no options go to |command->take|. ST_INVALID says which argument is wrong and why. */
MUST_CHECK enum status cli_option_parse(const struct cli_command *command, int argc,
                                        char *const argv[], void *own, struct error *err);

/* Returns the last option of the command line, which has been parsed, that is only for |only|;
 * NULL: there is none. */
const struct cli_option *cli_option_said(const struct cli_command *command, int argc,
                                         char *const argv[], enum cli_option_only only);

/* Prints the lines of --help for all options of |command|. */
void cli_option_print_help(const struct cli_command *command, struct buf *out);

/* Prints the items of a group for pte(1). */
void cli_option_print_manual(const struct cli_option *options, struct buf *out);

#endif
