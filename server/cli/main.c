/* SPDX-License-Identifier: MIT */
/* pte: shows the content of a program and runs it, without a daemon; and talks to daemons. */
#include "config.h"

#include "server/cli/main.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/process/nearest.h"
#include "server/process/version.h"

#define COMMANDS_MAX 64
#define HELP_BYTES_MAX 65536

static const char statuses[] =
    "Exit status: 0 done, 1 a refused signature (sig), a failed request (bench), a value\n"
    "that differs (compare) or a server that is not ready (ping), 64 usage, 65 bad file,\n"
    "66 no such file, method or device, 69 unsupported, 70 internal, 71 system, 74 output\n"
    "not written, 75 no answer in time, 77 no permission or no server.\n";

static void print_usage(FILE *to)
{
    const char *before = "usage:";
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        fprintf(to, "%s pte %s\n", before, (*c)->usage);
        before = "      ";
    }
    fprintf(to, "%s pte --help | --version\n", before);
}

static void print_help(void)
{
    print_usage(stdout);
    putchar('\n');
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        printf("  %-9s %s\n", (*c)->name, (*c)->summary);
    }
    printf("\npte COMMAND --help says more of each.\n\n%s", statuses);
}

static void print_command_help(const struct cli_command *command)
{
    struct buf options;
    buf_init(&options, HELP_BYTES_MAX);
    cli_option_print_help(command, &options);
    printf("usage: pte %s\n\n%s%s%.*s\n%s", command->usage, command->about, options.len ? "\n" : "",
           SPAN_FMT(buf_span(&options)), command->after);
    buf_fini(&options);
}

static const struct cli_command *find_command(const char *name)
{
    for (const struct cli_command *const *c = cli_commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return *c;
        }
    }
    return NULL;
}

/* Looks only at the arguments before "--". */
static bool asks_for_help(int argc, char *const argv[])
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static int print_and_finish(const struct cli_command *command)
{
    if (command) {
        print_command_help(command);
    } else {
        print_help();
    }
    return cli_finish(command, ST_OK, NULL);
}

/* What people say who know other tools, and what does that here. */
static const char *find_habit(const char *name)
{
    static const char *const habits[][2] = {
        {"list", "pte ls URL"},
        {"models", "pte ls URL"},
        {"serve", "pted FILE.pte"},
        {"start", "pted FILE.pte"},
        {"pull", "pte fetch URL"},
        {"download", "pte fetch URL"},
        {"info", "pte inspect FILE.pte"},
        {"show", "pte inspect FILE.pte"},
        {"ps", "pte top URL"},
        {"stop", "pte unload URL/MODEL"},
        {"predict", "pte run FILE.pte"},
        {"infer", "pte run URL/MODEL"},
        {"generate", "pte chat FILE.pte"},
        {"benchmark", "pte bench URL/MODEL"},
        {"help", "pte --help"},
        {"version", "pte --version"},
    };
    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
        if (strcmp(habits[i][0], name) == 0) {
            return habits[i][1];
        }
    }
    return NULL;
}

/* |name| is no command; NULL: there is none. */
static void refuse_command(const char *name)
{
    const char *names[COMMANDS_MAX];
    uint32_t count = 0;
    for (const struct cli_command *const *c = cli_commands; *c && count < COMMANDS_MAX; c++) {
        names[count++] = (*c)->name;
    }
    const char *near = name ? nearest_word(name, names, count) : NULL;
    const char *habit = name ? find_habit(name) : NULL;
    if (habit) {
        fprintf(stderr, "pte: expected a command, got '%s'; that is: %s\n", name, habit);
    } else if (near) {
        fprintf(stderr, "pte: expected a command, got '%s'; did you mean '%s'?\n", name, near);
    } else if (name) {
        fprintf(stderr, "pte: expected a command, got '%s'\n", name);
    } else {
        fputs("pte: expected a command\n", stderr);
    }
    print_usage(stderr);
}

int cli_main(int argc, char *argv[])
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct cli_command *command = find_command(name);
    if (asks_for_help(argc - 1, argv + 1)) {
        return print_and_finish(command);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        version_print("pte");
        return cli_finish(NULL, ST_OK, NULL);
    }
    if (command) {
        return command->run(argc - 2, argv + 2);
    }
    refuse_command(argc > 1 ? name : NULL);
    return EX_USAGE;
}
