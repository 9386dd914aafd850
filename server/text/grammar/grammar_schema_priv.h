/* SPDX-License-Identifier: MIT */
/*
 * A JSON Schema that becomes parts of a grammar. Functions that return a part return NULL when
 * something failed, and the builder says what.
 */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_SCHEMA_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_SCHEMA_PRIV_H

#include "server/text/grammar/grammar_json_priv.h"
#include "server/text/grammar/grammar_priv.h"
#include "server/text/grammar/schema_priv.h"

#define SCHEMA_PATH_BYTES 200
#define SCHEMA_REFERENCES_MAX 512

/* A part of the schema that something refers to, and its rule. */
struct schema_reference {
    const struct value *schema;
    uint32_t rule;
};

struct schema {
    struct grammar_builder *builder;
    const struct value *root;
    struct schema_reference references[SCHEMA_REFERENCES_MAX];
    size_t reference_count;
    struct grammar_json json;
    char path[SCHEMA_PATH_BYTES];
    int depth;
    struct schema_work work;
    bool is_impossible; /* it was refused because no value fits */
};

/* Makes a part of any schema: a map, or true. */
const struct part *schema_parse(struct schema *schema, const struct value *value);

/* Makes a rule of a schema within the schema; |name| is where it stands. */
const struct part *schema_parse_at(struct schema *schema, const char *name,
                                   const struct value *value);

/* Make a part of a schema of that type; |value| is a map. */
const struct part *schema_parse_string(struct schema *schema, const struct value *value);
const struct part *schema_parse_number(struct schema *schema, const struct value *value,
                                       bool is_integer);
const struct part *schema_parse_list(struct schema *schema, const struct value *value);
const struct part *schema_parse_map(struct schema *schema, const struct value *value);

/* Makes a part of what a string that keeps to |value| holds, any if that is NULL; each character is
 * spelled in one way. */
const struct part *schema_parse_text(struct schema *schema, const struct value *value);

/* Makes a part of a value as JSON, byte for byte as Python prints it. */
const struct part *schema_literal(struct schema *schema, const struct value *value);

/* Makes a map that says the same without "$ref" and "allOf"; NULL: refused. */
const struct value *schema_flatten(struct schema *schema, const struct value *value);

/*
 * Makes a schema that says what both say, in the builder's arena: members of "properties" that both
 * have become {"allOf": [...]}, and those of one as well where the other has a schema of
 * "additionalProperties". NULL: refused. With "additionalProperties": false in one of them, the
 * properties of both are let through, as those who write such schemas mean it.
 */
const struct value *schema_merge(struct schema *schema, const struct value *a,
                                 const struct value *b);

/* Makes a part of a call of one of |tools|, or of the one with the name |wanted|; |form| may be
 * NULL, see grammar_parse_call(). */
const struct part *schema_parse_calls(struct schema *schema, const struct value *tools,
                                      struct span wanted, const struct grammar_call_form *form);

/* Appends ".name" to the path of errors; returns its old length, for schema_leave(). */
size_t schema_enter(struct schema *schema, struct span name);
void schema_leave(struct schema *schema, size_t len);

/* Refuses a keyword that is none of |known|, as for schema_is_one_of(), and that says something of
 * values; false: there is one. */
bool schema_check_keywords(struct schema *schema, const struct value *value, const char *known);

/* Reads a number; |name|: for the error. */
bool schema_read_decimal(struct schema *schema, const struct value *number, const char *name,
                         struct grammar_decimal *out);

/* Reads the integer |name|, from 0 to GRAMMAR_REPEAT_MAX; |otherwise| if it is not there. */
bool schema_read_count(struct schema *schema, const struct value *value, const char *name,
                       uint32_t otherwise, uint32_t *out);

/* ---- short words for the parts of a schema --------------------------------------------------- */

static inline const struct part *schema_word(struct schema *schema, const char *text)
{
    return grammar_text(schema->builder, span_str(text));
}

static inline const struct part *schema_const(struct schema *schema, enum grammar_word word)
{
    return schema_word(schema, schema->json.words[word]);
}

static inline const struct part *schema_space(struct schema *schema)
{
    return grammar_rule(schema->builder, schema->json.space);
}

static inline const struct part *schema_then(struct schema *schema, const struct part *a,
                                             const struct part *b)
{
    return grammar_then(schema->builder, a, b);
}

static inline const struct part *schema_either(struct schema *schema, const struct part *a,
                                               const struct part *b)
{
    return grammar_or(schema->builder, a, b);
}

/* Refuses a schema that no value fits: of several alternatives it may be left out. */
const struct part *schema_refuse_all(struct schema *schema, const char *what);

static inline const struct part *schema_refuse(struct schema *schema, enum status code,
                                               const char *what)
{
    return grammar_refuse(schema->builder, code, "%s", what);
}

#endif
