/* SPDX-License-Identifier: MIT */
/* The JSON Schema of a model's card (server/model/card/card.h). Any thread. */
#ifndef PTED_SERVER_MODEL_CARD_CARD_SCHEMA_H
#define PTED_SERVER_MODEL_CARD_CARD_SCHEMA_H

#include "base/buf.h"

/* Prints the schema of NAME.card.json. */
void card_schema_print(struct buf *out);

/* Prints its members and definitions for the schema of pted.json; each member has a comma before
 * it. */
void card_schema_print_members(const char *indent, struct buf *out);
void card_schema_print_defs(struct buf *out);

#endif
