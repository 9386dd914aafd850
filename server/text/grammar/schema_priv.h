/* SPDX-License-Identifier: MIT */
/* Questions about JSON Schemas, for grammar_schema.c. Any thread. */
#ifndef PTED_SERVER_TEXT_GRAMMAR_SCHEMA_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_SCHEMA_PRIV_H

#include <stdbool.h>

#include "server/text/value/value.h"

struct grammar_builder;

/* The comparisons of keywords, names and values that the schemas of a grammar have taken. */
struct schema_work {
    struct grammar_builder *builder;
    size_t spent;
};

/* Counts |comparisons|. False: they are too many, and the builder refuses the schema. */
bool schema_spend(struct schema_work *work, size_t comparisons);

/* Counts the comparisons of |text| with |count| others, in the same way. */
bool schema_spend_texts(struct schema_work *work, size_t count, struct span text);

/* Returns the keyword |name| of a schema, or NULL. */
const struct value *schema_get(const struct value *schema, const char *name);

/* Does "required", a list or NULL, name the member |key|? */
bool schema_requires(struct schema_work *work, const struct value *required,
                     const struct value *key);

/* Is |name| one of |list|, words with a blank before and behind each? */
bool schema_is_one_of(struct span name, const char *list);

/* All keywords that say something of values here, such a list. */
extern const char schema_keywords[];

/* Does the keyword say nothing of values: "title", "x-order"? */
bool schema_is_note(struct span keyword);

/* Are |keywords|, as for schema_is_one_of(), the only ones that say something of values? */
bool schema_says_just(const struct value *schema, const char *keywords);

/* Returns the schema of {"allOf": [schema]} where nothing stands beside it; NULL: it is none such.
 */
const struct value *schema_sole(const struct value *schema);

/* Does a schema, or NULL, let no value through, as false and {"not": {}} do? */
bool schema_is_never(struct schema_work *work, const struct value *schema);

/* Is null the only value of "enum"? */
bool schema_is_null(const struct value *schema);

/* Names the type that values have of which keywords speak, "minLength" of strings; "": any. */
const char *schema_implied_type(const struct value *schema);

/* Is a value of |type|, the value of the keyword or NULL? */
bool schema_fits_type(const struct value *value, const struct value *type);

/* Are they the same JSON? 1 and 1.0 are not. */
bool schema_are_equal(struct schema_work *work, const struct value *a, const struct value *b);

/* May null keep to a schema without references? */
bool schema_lets_null(struct schema_work *work, const struct value *schema);

/* Is it certain that no value that the grammar of one lets through fits the other? By their types,
 * by the strings that they name, or by a member that both require, as in {"kind": {"const":
 * "circle"}}, or that one requires and the other does not let through. |tag|: a member that both
 * require; empty: none. */
bool schema_are_disjoint(struct schema_work *work, const struct value *a, const struct value *b,
                         struct span tag);

/* Is |reference| the text of a "$ref" that schema_follow() knows: "#", "#/$defs/name",
 * "#/properties/a/items"? Escapes are ~0, ~1 and %25. */
bool schema_is_reference(const struct value *reference);

/* Returns the place of |root| that it leads to, or NULL. */
const struct value *schema_follow(struct schema_work *work, const struct value *root,
                                  const struct value *reference);

/* Does a schema without faults let any value through, as {} and true do? */
bool schema_says_nothing(const struct value *schema);

/* Is it certain that the schema |root| lets maps through alone? */
bool schema_is_of_maps(struct schema_work *work, const struct value *root);

#endif
