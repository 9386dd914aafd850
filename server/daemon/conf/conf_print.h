/* SPDX-License-Identifier: MIT */
/* Texts about the settings of pted, made from the table of settings. */
#ifndef PTED_SERVER_DAEMON_CONF_CONF_PRINT_H
#define PTED_SERVER_DAEMON_CONF_CONF_PRINT_H

#include "base/buf.h"

/* Prints the text of --help. */
void conf_print_help(struct buf *out);

/* Prints the items of pted(8). */
void conf_print_manual(struct buf *out);

/* Prints the JSON Schema of documents. */
void conf_print_schema(struct buf *out);

/* Prints a document with all defaults. */
void conf_print_document(struct buf *out);

#endif
