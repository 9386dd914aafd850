/* SPDX-License-Identifier: MIT */
/* Members of requests that say what form the answer must have. */
#include "config.h"

#include "server/language/ask_priv.h"
#include "server/language/ask_reasoning.h"
#include "server/language/ask_values.h"

/* The text of the value that comes next. What is in it goes to a template alone, which reads it as
 * value_parse() does. */
enum status ask_take_json(struct ask_reader *r, enum json_type type, struct span *out)
{
    enum json_type got = json_peek(r->in);
    if (got != type) {
        TRY(json_skip(r->in, r->err));
        return json_fail(r->in, r->err, ST_INVALID, "expected %s, got %s", json_type_text(type),
                         json_type_text(got));
    }
    return json_skip_loosely(r->in, out, r->err);
}

static enum status set_shape(struct ask_reader *r, enum ask_shape shape, struct span grammar,
                             const char *path)
{
    if (r->ask->shape != ASK_ANY_TEXT) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected only one of response_format, structured_outputs, grammar "
                         "and the members guided_...");
    }
    r->ask->shape = shape;
    r->ask->grammar = grammar;
    r->ask->grammar_path = path;
    return ST_OK;
}

/* {"name": "...", "schema": {...}, "strict": true}; |*out| stays if there is no schema. */
static enum status read_named_schema(struct ask_reader *r, struct span *out)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "schema")) {
            TRY(ask_take_json(r, JSON_OBJECT, out));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

static enum status set_format(struct ask_reader *r, const struct json_string *type,
                              struct span schema)
{
    if (json_string_is(type, "text")) {
        return ST_OK;
    }
    bool is_cohere = r->ask->form == ASK_COHERE; /* its objects may have a schema */
    if (json_string_is(type, "json_object") && !(is_cohere && schema.len > 0)) {
        return set_shape(r, ASK_OBJECT, span_str(""), "response_format: ");
    }
    if (!json_string_is(type, is_cohere ? "json_object" : "json_schema")) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected the type \"text\"%s \"json_object\"%s, got \"%.*s\"",
                         is_cohere ? " or" : ",", is_cohere ? "" : " or \"json_schema\"",
                         SPAN_SHORT(type->raw));
    }
    const char *path = r->ask->form == ASK_RESPONSE  ? "text.format."
                       : r->ask->form == ASK_MESSAGE ? "output_config.format."
                                                     : "response_format.json_schema.";
    bool is_inner = r->ask->form != ASK_RESPONSE && r->ask->form != ASK_MESSAGE;
    return schema.len ? set_shape(r, ASK_SCHEMA, schema, path)
                      : json_fail(r->in, r->err, ST_INVALID, "%sschema is missing",
                                  is_inner ? "json_schema." : "");
}

/* Is |key| that of the schema itself, which other forms have inside of json_schema? */
static bool is_schema(const struct ask_reader *r, const struct json_string *key)
{
    enum ask_form form = r->ask->form;
    bool is_named = form == ASK_COHERE && json_string_is(key, "json_schema");
    return json_peek(r->in) != JSON_NULL &&
           (is_named ||
            ((form & (ASK_RESPONSE | ASK_MESSAGE | ASK_COHERE)) && json_string_is(key, "schema")));
}

enum status ask_shape_format(struct ask_reader *r)
{
    struct json_string key, type = {0};
    struct span schema = {0};
    TRY(json_object(r->in, r->err));
    while (true) {
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return set_format(r, &type, schema);
        }
        if (json_string_is(&key, "type")) {
            TRY(json_read_string(r->in, &type, r->err));
        } else if (is_schema(r, &key)) {
            TRY(ask_take_json(r, JSON_OBJECT, &schema));
        } else if (r->ask->form != ASK_COHERE && json_string_is(&key, "json_schema") &&
                   json_peek(r->in) != JSON_NULL) {
            TRY(read_named_schema(r, &schema));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

/* {"format": {...}} */
enum status ask_shape_text_format(struct ask_reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (!json_string_is(&key, "format") || json_peek(r->in) == JSON_NULL) {
            TRY(json_skip(r->in, r->err));
            continue;
        }
        const uint8_t *begin = r->in->at;
        TRY(ask_shape_format(r));
        r->ask->format = span_of(begin, (size_t)(r->in->at - begin));
    }
}

/* {"effort": "...", "format": {...}} */
enum status ask_shape_output_config(struct ask_reader *r)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        bool is_null = json_peek(r->in) == JSON_NULL;
        if (!is_null && json_string_is(&key, "format")) {
            TRY(ask_shape_format(r));
        } else if (!is_null && json_string_is(&key, "effort")) {
            TRY(ask_effort(r->in, r->arena, r->ask, r->err));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
}

/* A schema, or its text in a string. */
static enum status read_schema(struct ask_reader *r, const char *path)
{
    struct span schema;
    if (json_peek(r->in) == JSON_STRING) {
        TRY(ask_read_text(r->in, r->arena, &schema, r->err));
    } else {
        TRY(ask_take_json(r, JSON_OBJECT, &schema));
    }
    return set_shape(r, ASK_SCHEMA, schema, path);
}

/* "json", or a schema; "" is nothing. */
enum status ask_shape_ollama_format(struct ask_reader *r)
{
    struct json_string word;
    struct span schema;
    if (json_peek(r->in) != JSON_STRING) {
        TRY(ask_take_json(r, JSON_OBJECT, &schema));
        return set_shape(r, ASK_SCHEMA, schema, "format: ");
    }
    TRY(json_read_string(r->in, &word, r->err));
    if (json_string_is(&word, "json")) {
        return set_shape(r, ASK_OBJECT, span_str(""), "format: ");
    }
    return word.bytes == 0
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected \"json\" or a JSON Schema");
}

static enum status read_choice(struct ask_reader *r, const char *path)
{
    struct span texts;
    TRY(ask_take_json(r, JSON_ARRAY, &texts));
    return set_shape(r, ASK_CHOICE, texts, path);
}

static enum status read_regex(struct ask_reader *r, const char *path)
{
    struct span regex;
    TRY(ask_read_text(r->in, r->arena, &regex, r->err));
    return set_shape(r, ASK_REGEX, regex, path);
}

static enum status read_gbnf(struct ask_reader *r, const char *path)
{
    struct span grammar;
    TRY(ask_read_text(r->in, r->arena, &grammar, r->err));
    bool is_none = grammar.len == 0 && r->ask->form & (ASK_LLAMA | ASK_INFILL);
    return is_none ? ST_OK : set_shape(r, ASK_GBNF, grammar, path);
}

static enum status read_any_object(struct ask_reader *r, const char *path)
{
    bool is_wanted;
    TRY(json_read_bool(r->in, &is_wanted, r->err));
    return is_wanted ? set_shape(r, ASK_OBJECT, span_str(""), path) : ST_OK;
}

enum status ask_shape_json_schema(struct ask_reader *r)
{
    return read_schema(r, "json_schema: ");
}

enum status ask_shape_guided_json(struct ask_reader *r)
{
    return read_schema(r, "guided_json: ");
}

enum status ask_shape_guided_choice(struct ask_reader *r)
{
    return read_choice(r, "guided_choice: ");
}

enum status ask_shape_guided_regex(struct ask_reader *r)
{
    return read_regex(r, "guided_regex: ");
}

enum status ask_shape_guided_grammar(struct ask_reader *r)
{
    return read_gbnf(r, "guided_grammar: ");
}

enum status ask_shape_grammar(struct ask_reader *r)
{
    return read_gbnf(r, "grammar: ");
}

static enum status refuse_tag(struct ask_reader *r, const char *path)
{
    (void)path;
    return json_fail(r->in, r->err, ST_INVALID, "expected json, regex, choice or grammar");
}

/* The same in one object, as later versions of vLLM have it. */
enum status ask_shape_structured_outputs(struct ask_reader *r)
{
    static const struct {
        const char *name;
        enum status (*read)(struct ask_reader *r, const char *path);
        const char *path;
    } members[] = {{"json", read_schema, "structured_outputs.json: "},
                   {"choice", read_choice, "structured_outputs.choice: "},
                   {"regex", read_regex, "structured_outputs.regex: "},
                   {"grammar", read_gbnf, "structured_outputs.grammar: "},
                   {"json_object", read_any_object, "structured_outputs.json_object: "},
                   {"structural_tag", refuse_tag, NULL}};
    const size_t count = sizeof(members) / sizeof(members[0]);
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        size_t i = 0;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        while (i < count && !json_string_is(&key, members[i].name)) {
            i++;
        }
        bool is_read = i < count && json_peek(r->in) != JSON_NULL;
        TRY(is_read ? members[i].read(r, members[i].path) : json_skip(r->in, r->err));
    }
}
