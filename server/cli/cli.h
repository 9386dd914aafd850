/* SPDX-License-Identifier: MIT */
/* Shared by the commands of pte: each command's row in main.c, and how a command ends. One
 * thread. */
#ifndef PTED_SERVER_CLI_CLI_H
#define PTED_SERVER_CLI_CLI_H

#include <limits.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "lib/pted.h"

struct card;
struct cli_option_group;
struct rt_load_options;
struct rt_method;
struct rt_program;

struct cli_command {
    const char *name;
    const char *usage;   /* usage after "pte ": "run [OPTION]... FILE.pte" */
    const char *summary; /* its line in `pte --help` */
    const char *about;   /* `pte NAME --help` has this, its options, then |after| */
    const char *after;   /* notes and examples */
    const struct cli_option_group *groups; /* NULL: no options */
    /* Takes an argument that is no option into the struct of cli_option_parse(). */
    enum status (*take)(void *own, const char *text, struct error *err);
    /* |argv| begins after the name. Returns the exit status of the process. */
    int (*run)(int argc, char *const argv[]);
};

extern const struct cli_command cli_inspect_command;
extern const struct cli_command cli_run_command;
extern const struct cli_command cli_compare_command;
extern const struct cli_command cli_profile_command;
extern const struct cli_command cli_devices_command;
extern const struct cli_command cli_ops_command;
extern const struct cli_command cli_sig_command;
extern const struct cli_command cli_token_command;
extern const struct cli_command cli_fetch_command;
extern const struct cli_command cli_card_command;
extern const struct cli_command cli_ls_command;
extern const struct cli_command cli_load_command;
extern const struct cli_command cli_unload_command;
extern const struct cli_command cli_ping_command;
extern const struct cli_command cli_top_command;
extern const struct cli_command cli_bench_command;
extern const struct cli_command cli_tokenize_command;
extern const struct cli_command cli_chat_command;

/*
 * Prints why |command| failed, if it did, and returns its exit status. NULL: --help or --version.
 */
int cli_finish(const struct cli_command *command, enum status status, const struct error *err);

/* All of them, as `pte --help` lists them; NULL ends the list. */
extern const struct cli_command *const cli_commands[];

/* Takes the only argument of a command, which |*place| has not yet got. |what|: "FILE". */
MUST_CHECK enum status cli_take_only(const char **place, const char *what, const char *text,
                                     struct error *err);

/* Takes an outcome of the library over as one of ours: |from| is read unless |status| is PTED_OK.
 */
MUST_CHECK enum status cli_take_status(enum pted_status status, const struct pted_error *from,
                                       struct error *err);

/* Finds the method |name| or, with NULL, the program's default. ST_NOT_FOUND lists the methods. */
MUST_CHECK enum status cli_find_method(struct rt_program *program, const char *name,
                                       struct rt_method **out_method, struct error *err);

/* If |*path| is a folder, it becomes the path of the program in it, at |place|. */
MUST_CHECK enum status cli_enter_folder(const char **path, char place[PATH_MAX], struct error *err);

/* Loads the program at |path| with the steps and names of a card: of |said| or, with NULL, of the
 * one beside the program, if there is one. Sets |load->adapt|. The caller owns |*out_program| and
 * |*out_card|, which is NULL without a card and outlives what is loaded with |load|. */
MUST_CHECK enum status cli_load(const char *path, struct rt_load_options *load, const char *said,
                                struct rt_program **out_program, struct card **out_card,
                                struct error *err);

/* Loads a program of the library with a card in the same way. */
MUST_CHECK enum status cli_load_program(struct pted_device *device, const char *path,
                                        const struct pted_load_options *options, const char *said,
                                        struct pted_program **out_program, struct card **out_card,
                                        struct error *err);

/* Writes |head| and |bytes| to a file, which |option| named. ST_UNWRITTEN says why not; no half of
 * the file stays then. */
MUST_CHECK enum status cli_write_file(const char *option, const char *path, struct span head,
                                      struct span bytes, struct error *err);

/* Writes what standard output keeps back. ST_UNWRITTEN also if an earlier write has failed. */
MUST_CHECK enum status cli_flush(struct error *err);

/* Writes |out| to standard output. ST_UNWRITTEN also if |out| has failed. */
MUST_CHECK enum status cli_write(const struct buf *out, struct error *err);

#endif
