/* SPDX-License-Identifier: MIT */
/* Questions about JSON Schemas, for grammar_schema.c. Any thread. */
#ifndef PTED_SERVER_TEXT_GRAMMAR_SCHEMA_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_SCHEMA_PRIV_H

#include <stdbool.h>

#include "server/text/value/value.h"

/* Returns the keyword |name| of a schema, or NULL. */
const struct value *schema_get(const struct value *schema, const char *name);

/* Does "required", a list or NULL, name the member |key|? */
bool schema_requires(const struct value *required, const struct value *key);

/* Is it certain that no value fits both? By their types, by the strings that they name, or by a
 * member that both require, as in {"kind": {"const": "circle"}}. */
bool schema_are_disjoint(const struct value *a, const struct value *b);

/* Is |reference| the text of a "$ref" that schema_follow() knows: "#", "#/$defs/name",
 * "#/properties/a/items"? */
bool schema_is_reference(const struct value *reference);

/* Returns the place of |root| that it leads to, or NULL. */
const struct value *schema_follow(const struct value *root, const struct value *reference);

/* Does a schema without faults let any value through, as {} and true do? */
bool schema_says_nothing(const struct value *schema);

/* Is it certain that the schema |root| lets maps through alone? */
bool schema_is_of_maps(const struct value *root);

#endif
