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

struct conf;
struct conf_sources;
struct server;

/* |sources| live as long as the server; without them SIGHUP only looks for changed files. */
void reload_init(struct server *server, const struct conf_sources *sources);

/* Reads the settings, and begins the change. */
void reload_begin(struct server *server);

/* The change for |config| is made: its settings of models are in use from now on. Takes it over. */
void reload_adopt(struct server *server, struct conf *config);

/* The change for |config| was not made. */
void reload_refuse(struct server *server, struct conf *config);

/* The server ends. */
void reload_fini(struct server *server);

#endif
