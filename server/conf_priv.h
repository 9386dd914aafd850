/* SPDX-License-Identifier: MIT */
/* What the reader of the document shares with that of the other sources. */
#ifndef PTED_SERVER_CONF_PRIV_H
#define PTED_SERVER_CONF_PRIV_H

#include "server/conf.h"

/* Adds what config->document says, whose path is options.config_file. */
void conf_read_document(struct conf *config, struct conf_report *report);

/* Counts a problem whose line has been printed. */
void conf_count_problem(struct conf_report *report, int exit_status);

#endif
