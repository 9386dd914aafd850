/* SPDX-License-Identifier: MIT */
/* pted: command line, exit status, and nothing else. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "server/process/exit_status.h"
#include "server/process/log.h"
#include "server/process/options.h"
#include "server/process/standard.h"
#include "server/process/version.h"
#include "server/server.h"

#define HELP_BYTES_MAX 16384

static int finish_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EX_OK : EX_IOERR;
}

static int print_help(void)
{
    struct buf text;
    buf_init(&text, HELP_BYTES_MAX);
    options_print_help(&text);
    fwrite(text.ptr, 1, text.len, stdout);
    buf_fini(&text);
    return finish_output();
}

/* The person or program that starts the daemon reads stderr. */
static int fail(const struct error *err)
{
    fprintf(stderr, "pted: %s\n", err->text);
    return exit_status_of(err->code);
}

static int serve(const struct options *options)
{
    static struct server server;
    struct error err;
    if (log_open(options->log_file, options->log_level, &err) != ST_OK) {
        return fail(&err);
    }
    enum status status = server_init(&server, options, &err);
    if (status == ST_OK) {
        status = server_run(&server, &err);
    }
    if (status != ST_OK) {
        log_line(LOG_ERROR, "%s", err.text);
    }
    server_fini(&server);
    return status != ST_OK && log_path() ? fail(&err) : exit_status_of(status);
}

int main(int argc, char *argv[])
{
    static struct options options;
    struct error err;
    standard_open();
    if (options_parse(argc, argv, &options, &err) != ST_OK) {
        fprintf(stderr, "pted: %s\nusage: pted [OPTION]... [FILE.pte]...; see pted --help\n",
                err.text);
        return EX_USAGE;
    }
    switch (options.action) {
    case OPTIONS_HELP:
        return print_help();
    case OPTIONS_VERSION:
        version_print("pted");
        return finish_output();
    case OPTIONS_SERVE:
        return serve(&options);
    }
    return EX_SOFTWARE;
}
