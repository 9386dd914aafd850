/* SPDX-License-Identifier: MIT */
/*
 * SIGHUP: the settings are read again, from all their sources, and the models follow them in one
 * change (server/daemon/serving/changes.h). If the settings have a problem, or the change cannot be
 * made, the old ones stay in use. Settings that are not about models take effect at the next start;
 * the log names those that differ.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_RELOAD_H
#define PTED_SERVER_DAEMON_SERVING_RELOAD_H

#include <stdint.h>

#include "base/status.h"

struct changes;
struct conf;
struct conf_sources;
struct notify;
struct options;
struct watch;

#define RELOAD_MAGIC 0x726c6f64u

/* Returns the files beside the settings: who has read them uses them from now on. On failure the
 * old ones stay in use. */
typedef enum status reload_files_f(void *owner, const struct options *options, struct error *err);

struct reload {
    uint32_t magic;
    const struct options *options;       /* borrowed: of the start */
    const struct options *model_options; /* name the models; |options|, or of |config| */
    const struct conf_sources *sources;  /* borrowed: of the settings; or NULL */
    struct conf *config;                 /* owned: read by the last SIGHUP; NULL: there was none */
    struct changes *changes;             /* borrowed, like the next two */
    struct watch *watch;
    struct notify *notify;
    reload_files_f *read_files;
    void *owner; /* given to |read_files| */
};

/* Without sources: SIGHUP only looks for changed files. The caller sets the borrowed members and
 * |read_files|. */
void reload_init(struct reload *reload, const struct options *options);

/* |sources| live as long as the daemon. */
void reload_use_sources(struct reload *reload, const struct conf_sources *sources);

/* Reads the settings, and begins the change. */
void reload_begin(struct reload *reload);

/* Call when the change for |config| is made: its settings of models are in use from now on. Takes
 * it over. */
void reload_adopt(struct reload *reload, struct conf *config);

/* Call when the change for |config| was not made. */
void reload_refuse(struct reload *reload, struct conf *config);

/* Call when the daemon ends. */
void reload_fini(struct reload *reload);

#endif
