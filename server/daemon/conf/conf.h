/* SPDX-License-Identifier: MIT */
/*
 * The configuration of pted: from the table of settings, from one document (pted.json), from the
 * environment and from the command line, the weakest first. server/process/options.h says how they
 * are merged.
 *
 * Reading has no effect but on its result. It looks at no file but the document: not at models, and
 * not at devices or names of hosts. So a configuration can be checked, or read again beside the one
 * in use. It reports every problem; only a document that is no JSON has just one.
 *
 * The document is an object in the sense of server/process/document.h. Its members are the settings
 * of the table (server/process/params.def), and:
 *
 *     "models": {"NAME": "PATH", "OTHER": {"path": "PATH", "data": ["PATH"], "max_batch": 8}}
 *     "pipelines": the object of server/model/pipelines.h
 *     "$schema": for editors; ignored
 *
 * Relative paths in it are relative to its folder. One thread at a time may read a configuration.
 */
#ifndef PTED_SERVER_DAEMON_CONF_CONF_H
#define PTED_SERVER_DAEMON_CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/process/document.h"
#include "server/process/options.h"

#define CONF_MAGIC 0x636f6e66u

struct conf {
    uint32_t magic;
    struct options options; /* borrows from the members below and from the sources */
    struct document document;
    struct arena arena;
};

/* Borrowed, until the configuration is freed. */
struct conf_sources {
    int argc;
    char *const *argv;
    char *const *environment; /* as environ(7) */
};

/* Reading a document ends at this many problems. */
#define CONF_PROBLEMS_MAX 100

/* The problems: a line for each, "FILE:LINE:COLUMN: PATH: expected ..., got ...". */
struct conf_report {
    struct buf lines;
    uint32_t problem_count;
    int exit_status; /* of the first problem, from sysexits.h; EX_OK: there is none */
};

void conf_report_init(struct conf_report *report);
void conf_report_fini(struct conf_report *report);

/*
 * Reads all sources. NULL: |report| says why. If the command line asks for help or for the version,
 * only the action is set.
 *
 * The document is that of --config, else that of PTED_CONFIG, else pted.json in the first folder of
 * CONFIGURATION_DIRECTORY (systemd's) if it is there. options.config_file names it.
 */
struct conf *conf_read(const struct conf_sources *sources, struct conf_report *report);

/* Is there a model, or a place where models may come from while the daemon serves? That is a folder
 * of models, or a document, which SIGHUP reads again, even one that is not there yet. Requests load
 * models of these places alone, and pipelines need models. |config| was read from |sources|. */
bool conf_has_models(const struct conf *config, const struct conf_sources *sources);

/* Returns the defaults and the document |text|; |path| is its name in messages and the place of its
 * folder. Both are borrowed as above. NULL: |report| says why. */
struct conf *conf_parse(const char *path, struct span text, struct conf_report *report);

void conf_free(struct conf *config); /* NULL is fine */

#endif
