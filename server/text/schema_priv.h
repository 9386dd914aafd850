/* SPDX-License-Identifier: MIT */
/* Members of JSON Schemas, for grammar_schema.c. Any thread. */
#ifndef PTED_SERVER_TEXT_SCHEMA_PRIV_H
#define PTED_SERVER_TEXT_SCHEMA_PRIV_H

#include <stdbool.h>

#include "server/text/value.h"

/* The keyword |name| of a schema, or NULL. */
const struct value *schema_get(const struct value *schema, const char *name);

/* Does "required", a list or NULL, name the member |key|? */
bool schema_requires(const struct value *required, const struct value *key);

/* Is it certain that no value fits both? By their types, by the strings that they name, or by a
 * member that both require, as in {"kind": {"const": "circle"}}. */
bool schema_are_disjoint(const struct value *a, const struct value *b);

#endif
