/* SPDX-License-Identifier: MIT */
/* pted: command line, exit status, and nothing else. */
#include "config.h"

#include "server/daemon/main.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/daemon/conf/conf.h"
#include "server/daemon/conf/conf_print.h"
#include "server/daemon/server.h"
#include "server/daemon/serving/reload.h"
#include "server/process/exit_status.h"
#include "server/process/log.h"
#include "server/process/options.h"
#include "server/process/version.h"

#define HELP_BYTES_MAX 16384
#define USAGE "usage: pted [OPTION]... [FILE.pte]...; see pted --help\n"

static int finish_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EX_OK : EX_IOERR;
}

static int print_help(void)
{
    struct buf text;
    buf_init(&text, HELP_BYTES_MAX);
    conf_print_help(&text);
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

/* Without models, and without a place where they may come from, nobody would ever be served. */
static int refuse_to_serve(void)
{
    struct error err;
    error_set(&err, ST_INVALID,
              "there is nothing to serve: expected FILE.pte, --model NAME=FILE, --models DIR "
              "or --config FILE");
    (void)fail(&err);
    fputs(USAGE, stderr);
    return EX_USAGE;
}

static int serve(const struct options *options, const struct conf_sources *sources)
{
    static struct server server;
    struct error err;
    signal(SIGPIPE, SIG_IGN); /* of sockets, and of stderr: its lines are lost if nobody reads it */
    if (log_open(options->log_file, options->log_level, &err) != ST_OK) {
        return fail(&err);
    }
    if (options->config_file) {
        log_line(LOG_INFO, "settings of %s", options->config_file);
    }
    enum status status = server_init(&server, options, &err);
    if (status == ST_OK) {
        reload_use_sources(&server.reload, sources);
        status = server_run(&server, &err);
    }
    if (status != ST_OK) {
        log_line(LOG_ERROR, "%s", err.text);
    }
    server_fini(&server);
    return status != ST_OK && log_path() ? fail(&err) : exit_status_of(status);
}

static int act(const struct conf *config, const struct conf_sources *sources)
{
    const struct options *options = &config->options;
    struct error err;
    switch (options->action) {
    case OPTIONS_HELP:
        return print_help();
    case OPTIONS_VERSION:
        version_print("pted");
        return finish_output();
    case OPTIONS_CHECK:
        if (access_verify(options, &err) != ST_OK || tls_verify(options, &err) != ST_OK) {
            return fail(&err);
        }
        printf("%s: no problems\n",
               options->config_file ? options->config_file : "command line and environment");
        return finish_output();
    case OPTIONS_SERVE:
        return conf_has_models(config, sources) ? serve(options, sources) : refuse_to_serve();
    }
    return EX_SOFTWARE;
}

int daemon_main(int argc, char *argv[])
{
    const struct conf_sources sources = {.argc = argc, .argv = argv, .environment = environ};
    struct conf_report report;
    conf_report_init(&report);
    struct conf *config = conf_read(&sources, &report);
    fprintf(stderr, "%.*s%s", (int)report.lines.len, (const char *)report.lines.ptr,
            report.exit_status == EX_USAGE ? USAGE : "");
    int status = config ? act(config, &sources) : report.exit_status;
    conf_free(config);
    conf_report_fini(&report);
    return status;
}
