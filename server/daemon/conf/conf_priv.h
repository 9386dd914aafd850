/* SPDX-License-Identifier: MIT */
/* Shared by the reader of the document and the reader of the other sources. */
#ifndef PTED_SERVER_DAEMON_CONF_CONF_PRIV_H
#define PTED_SERVER_DAEMON_CONF_CONF_PRIV_H

#include "server/daemon/conf/conf.h"

/* Adds the settings of config->document; options.config_file is its path. */
void conf_read_document(struct conf *config, struct conf_report *report);

/* Reports an error of server/process/document.h about the file at |path|. */
void conf_refuse(const char *path, const struct error *err, struct conf_report *report);

#endif
