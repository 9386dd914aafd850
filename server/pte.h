/* SPDX-License-Identifier: MIT */
/*
 * What the commands of pte share: the row that each of them is in pte_main.c, and how each ends.
 * One thread.
 */
#ifndef PTED_SERVER_PTE_H
#define PTED_SERVER_PTE_H

#include "base/buf.h"
#include "base/status.h"

struct rt_method;
struct rt_program;

struct pte_command {
    const char *name;
    const char *usage;   /* behind "pte ": "run [OPTION]... FILE.pte" */
    const char *summary; /* a line of `pte --help` */
    const char *help;    /* what `pte NAME --help` says besides: options, an example */
    /* |argv| begins behind the name; the exit status of the process. */
    int (*run)(int argc, char *const argv[]);
};

extern const struct pte_command pte_inspect_command;
extern const struct pte_command pte_run_command;
extern const struct pte_command pte_devices_command;
extern const struct pte_command pte_ops_command;
extern const struct pte_command pte_sig_command;

/* Prints why |command| failed, if it did; its exit status. NULL: it is --help or --version. */
int pte_finish(const struct pte_command *command, enum status status, const struct error *err);

/* The method |name| or, with NULL, the one that stands for the program. ST_NOT_FOUND lists those
 * that there are. */
MUST_CHECK enum status pte_find_method(struct rt_program *program, const char *name,
                                       struct rt_method **out_method, struct error *err);

/* |out| to standard output. ST_UNWRITTEN also when |out| has failed. */
MUST_CHECK enum status pte_write(const struct buf *out, struct error *err);

#endif
