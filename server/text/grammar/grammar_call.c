/* SPDX-License-Identifier: MIT */
/* Calls of tools, as the families of models write them. */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_schema_priv.h"

/* ---- arguments of JSON ----------------------------------------------------------------------- */

static const struct part *json_arguments(struct schema *schema, const struct value *parameters)
{
    if (!parameters || parameters->kind == VALUE_NONE) {
        return grammar_json_object(&schema->json);
    }
    const struct part *part = schema_parse(schema, parameters);
    if (part && schema_says_nothing(parameters)) {
        return grammar_json_object(&schema->json);
    }
    return part && !schema_is_of_maps(&schema->work, parameters)
               ? schema_refuse(schema, ST_INVALID,
                               "the arguments of a function are of type 'object'")
               : part;
}

/* {"name": "f", "arguments": {}} */
static const struct part *json_call(struct schema *schema, const struct value *name,
                                    const struct part *arguments)
{
    const struct part *first = grammar_json_member(&schema->json, schema_word(schema, "\"name\""),
                                                   schema_literal(schema, name));
    const struct part *second =
        grammar_json_member(&schema->json, schema_word(schema, "\"arguments\""), arguments);
    const struct part *end = schema_then(schema, schema_space(schema), schema_word(schema, "}"));
    first = schema_then(schema, grammar_json_mark(&schema->json, "{"),
                        schema_then(schema, first, schema_space(schema)));
    return schema_then(schema, first,
                       schema_then(schema, grammar_json_mark(&schema->json, ","),
                                   schema_then(schema, second, end)));
}

/* ---- texts without quotes -------------------------------------------------------------------- */

static const struct part *text_of(struct schema *schema, struct span text)
{
    return grammar_text(schema->builder, text);
}

static bool has_stop(const struct grammar_call_form *form, struct span text)
{
    for (size_t i = 0; i < GRAMMAR_STOPS; i++) {
        const struct span *stop = &form->stops[i];
        if (stop->len > 0 && text.len > 0 && memmem(text.ptr, text.len, stop->ptr, stop->len)) {
            return true;
        }
    }
    return false;
}

static const struct part *refuse(struct schema *schema)
{
    return schema_refuse(schema, ST_UNSUPPORTED, "this form of calls has no such argument");
}

/* One of the texts of "enum", or that of "const". */
static const struct part *listed_text(struct schema *schema, const struct grammar_call_form *form,
                                      const struct value *value)
{
    const struct value *list = schema_get(value, "enum"), *one = schema_get(value, "const");
    const struct part *out = grammar_never(schema->builder);
    if (list && (one || list->kind != VALUE_LIST)) {
        return refuse(schema);
    }
    size_t count = list ? list->list->count : 1;
    for (size_t i = 0; i < count && out; i++) {
        const struct value *item = list ? &list->list->items[i] : one;
        bool fits = item->kind == VALUE_STRING && !has_stop(form, item->string) &&
                    (form->keeps_lines || !memchr(item->string.ptr, '\n', item->string.len));
        out = fits ? schema_either(schema, out, text_of(schema, item->string)) : refuse(schema);
    }
    return out && out->kind == PART_NEVER ? refuse(schema) : out;
}

/* Any text of so many characters that has none of the stops in it. */
static const struct part *free_text(struct schema *schema, const struct grammar_call_form *form,
                                    uint32_t min, uint32_t max)
{
    struct grammar_builder *builder = schema->builder;
    const struct part *codes = grammar_codes(builder, 1, 0x10ffff), *one = codes, *parts[2];
    for (size_t i = 0; i < GRAMMAR_STOPS; i++) {
        if (form->stops[i].len > 0) {
            const struct part *stop =
                schema_then(schema, text_of(schema, form->stops[i]), grammar_rest(builder));
            one = schema_then(schema, grammar_look(builder, stop, true), one);
        }
    }
    parts[0] = grammar_repeat(builder, one, 0, UINT32_MAX);
    bool is_bounded = min > 0 || max != UINT32_MAX;
    parts[1] = is_bounded ? grammar_counted(builder, codes, min, max) : NULL;
    return builder->status == ST_OK ? grammar_meet(builder, parts, is_bounded ? 2 : 1) : NULL;
}

static const struct part *bare_text(struct schema *schema, const struct grammar_call_form *form,
                                    const struct value *value)
{
    uint32_t min, max;
    if (!schema_says_just(value, " type enum const minLength maxLength ")) {
        return refuse(schema);
    }
    if (schema_get(value, "enum") || schema_get(value, "const")) {
        return listed_text(schema, form, value);
    }
    if (!schema_read_count(schema, value, "minLength", 0, &min) ||
        !schema_read_count(schema, value, "maxLength", UINT32_MAX, &max)) {
        return NULL;
    }
    return min > 0 && !form->keeps_lines ? refuse(schema) : free_text(schema, form, min, max);
}

/* ---- arguments of other forms ---------------------------------------------------------------- */

static bool is_type(const struct value *type, const char *name)
{
    return type && type->kind == VALUE_STRING && span_is(type->string, name);
}

static bool says_type(const struct value *value, const char *name)
{
    return value->kind == VALUE_MAP && is_type(schema_get(value, "type"), name);
}

/* The texts of |value|, if it is [text, null]: itself, or the one of "anyOf". */
static const struct value *text_or_null(const struct value *value)
{
    const struct value *types = schema_get(value, "type"), *any = schema_get(value, "anyOf");
    if (types && types->kind == VALUE_LIST && types->list->count == 2 && !any) {
        const struct value *items = types->list->items;
        bool is_first = is_type(&items[0], "string") && is_type(&items[1], "null");
        bool is_second = is_type(&items[1], "string") && is_type(&items[0], "null");
        return is_first || is_second ? value : NULL;
    }
    if (!any || any->kind != VALUE_LIST || any->list->count != 2 ||
        !schema_says_just(value, " anyOf ")) {
        return NULL;
    }
    const struct value *items = any->list->items;
    return says_type(&items[0], "string") && says_type(&items[1], "null")   ? &items[0]
           : says_type(&items[1], "string") && says_type(&items[0], "null") ? &items[1]
                                                                            : NULL;
}

/* Does a reader of the form take what is bare for a text, because |value| may be one? */
static bool may_be_text(const struct value *value)
{
    static const char *const unions[] = {"anyOf", "oneOf", "type"};
    if (says_type(value, "string")) {
        return true;
    }
    for (size_t i = 0; i < sizeof(unions) / sizeof(unions[0]); i++) {
        const struct value *list = schema_get(value, unions[i]);
        for (size_t k = 0; list && list->kind == VALUE_LIST && k < list->list->count; k++) {
            const struct value *item = &list->list->items[k];
            if (is_type(item, "string") || says_type(item, "string")) {
                return true;
            }
        }
    }
    return false;
}

/* Behind the key: the value with what stands around it. */
static const struct part *argument_value(struct schema *schema,
                                         const struct grammar_call_form *form,
                                         const struct value *value)
{
    bool is_map = value->kind == VALUE_MAP;
    const struct value *nullable = is_map ? text_or_null(value) : NULL;
    const struct value *text = nullable                               ? nullable
                               : is_map && says_type(value, "string") ? value
                                                                      : NULL;
    bool is_known = text && schema_says_just(text, " type enum const minLength maxLength ");
    bool is_bare =
        form->has_bare_texts && (is_known || (form->is_by_schema && is_map && may_be_text(value)));
    if (!is_bare) {
        const struct part *json = schema_parse(schema, value);
        return schema_then(schema, text_of(schema, form->before_value),
                           schema_then(schema, json, text_of(schema, form->behind_value)));
    }
    const struct part *bare = text ? bare_text(schema, form, text) : refuse(schema);
    const struct part *out =
        schema_then(schema, text_of(schema, form->before_text),
                    schema_then(schema, bare, text_of(schema, form->behind_text)));
    if (!nullable) {
        return out;
    }
    const struct part *null = schema_then(schema, text_of(schema, form->before_value),
                                          schema_then(schema, schema_const(schema, GRAMMAR_NULL),
                                                      text_of(schema, form->behind_value)));
    return schema_either(schema, out, null);
}

static const struct part *argument(struct schema *schema, const struct grammar_call_form *form,
                                   const struct value_member *property)
{
    uint32_t rule = grammar_rule_new(schema->builder);
    size_t len = schema_enter(schema, property->key.string);
    const struct part *value = argument_value(schema, form, &property->value);
    schema_leave(schema, len);
    const struct part *key = schema_then(schema, text_of(schema, form->before_key),
                                         text_of(schema, property->key.string));
    grammar_rule_set(schema->builder, rule, schema_then(schema, key, value));
    return value ? grammar_rule(schema->builder, rule) : NULL;
}

/* The arguments in their order; those that are not required may be missing. */
static const struct part *list_arguments(struct schema *schema,
                                         const struct grammar_call_form *form,
                                         const struct value_map *properties,
                                         const struct value *required)
{
    struct grammar_builder *builder = schema->builder;
    const struct part *first = grammar_empty(builder), *later = first;
    for (size_t i = properties->count; i-- > 0 && first && builder->status == ST_OK;) {
        const struct value_member *property = &properties->members[i];
        const struct part *one = argument(schema, form, property);
        bool is_required = schema_requires(&schema->work, required, &property->key);
        uint32_t rules[2] = {grammar_rule_new(builder), grammar_rule_new(builder)};
        const struct part *rest = grammar_rule(builder, rules[1]);
        grammar_rule_set(builder, rules[0], first);
        grammar_rule_set(builder, rules[1], later);
        const struct part *with = schema_then(schema, one, rest);
        const struct part *comma = schema_then(schema, text_of(schema, form->between), with);
        first = is_required ? with : schema_either(schema, with, grammar_rule(builder, rules[0]));
        later = is_required ? comma : schema_either(schema, comma, rest);
    }
    return first;
}

/* Names that no form has to quote. */
static bool is_plain_name(struct span name)
{
    bool is_plain = name.len > 0;
    for (size_t i = 0; i < name.len && is_plain; i++) {
        uint8_t c = name.ptr[i];
        is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '_' || c == '-';
    }
    return is_plain;
}

static bool are_plain(struct schema *schema, const struct value *properties,
                      const struct value *required)
{
    bool are = properties->kind == VALUE_MAP && (!required || required->kind == VALUE_LIST);
    for (size_t i = 0; are && i < properties->map->count; i++) {
        are = is_plain_name(properties->map->members[i].key.string);
    }
    for (size_t i = 0; are && required && i < required->list->count; i++) {
        const struct value *name = &required->list->items[i];
        are = name->kind == VALUE_STRING &&
              schema_spend_texts(&schema->work, properties->map->count, name->string) &&
              value_map_get(properties, name->string);
    }
    return are;
}

static const struct part *form_arguments(struct schema *schema,
                                         const struct grammar_call_form *form,
                                         const struct value *parameters)
{
    if (!form->is_listed) {
        return json_arguments(schema, parameters);
    }
    if (!parameters || parameters->kind == VALUE_NONE || schema_says_nothing(parameters)) {
        return grammar_empty(schema->builder);
    }
    const struct value *flat =
        parameters->kind == VALUE_MAP ? schema_flatten(schema, parameters) : NULL;
    if (!flat || !schema_says_just(flat, " type properties required additionalProperties ") ||
        !says_type(flat, "object")) {
        return refuse(schema);
    }
    const struct value *properties = schema_get(flat, "properties");
    const struct value *required = schema_get(flat, "required");
    const struct value *more = schema_get(flat, "additionalProperties");
    bool is_closed = !more || more->kind == VALUE_BOOL;
    return !is_closed || !properties || !are_plain(schema, properties, required)
               ? refuse(schema)
               : list_arguments(schema, form, properties->map, required);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The text of the form, with the name for "$" and the arguments for "@". */
static const struct part *form_call(struct schema *schema, const struct grammar_call_form *form,
                                    struct span name, const struct part *arguments)
{
    const struct part *out = grammar_empty(schema->builder);
    if (!is_plain_name(name)) {
        return refuse(schema);
    }
    for (size_t at = 0; at < form->call.len;) {
        size_t end = at;
        while (end < form->call.len && form->call.ptr[end] != '$' && form->call.ptr[end] != '@') {
            end++;
        }
        out = schema_then(schema, out, text_of(schema, span_of(form->call.ptr + at, end - at)));
        if (end < form->call.len) {
            bool is_name = form->call.ptr[end++] == '$';
            out = schema_then(schema, out, is_name ? text_of(schema, name) : arguments);
        }
        at = end;
    }
    return out;
}

static const struct part *call(struct schema *schema, const struct grammar_call_form *form,
                               const struct value *name, const struct value *parameters)
{
    size_t len = schema_enter(schema, name->string);
    schema->builder->path = schema->path;
    schema->root = parameters;
    const struct part *arguments =
        form ? form_arguments(schema, form, parameters) : json_arguments(schema, parameters);
    schema->builder->path = NULL;
    schema_leave(schema, len);
    return !arguments ? NULL
           : form     ? form_call(schema, form, name->string, arguments)
                      : json_call(schema, name, arguments);
}

const struct part *schema_parse_calls(struct schema *schema, const struct value *tools,
                                      struct span wanted, const struct grammar_call_form *form)
{
    const struct part *out = NULL;
    for (size_t i = 0; i < tools->list->count; i++) {
        const struct value *function = schema_get(&tools->list->items[i], "function");
        const struct value *name = function ? schema_get(function, "name") : NULL;
        if (!name || name->kind != VALUE_STRING) {
            return grammar_refuse(schema->builder, ST_INVALID,
                                  "[%zu]: expected a function with a name", i);
        }
        if (wanted.len == 0 || span_equal(name->string, wanted)) {
            const struct part *one = call(schema, form, name, schema_get(function, "parameters"));
            out = out && one ? schema_either(schema, out, one) : one;
            if (!one) {
                return NULL;
            }
        }
    }
    return out          ? out
           : wanted.len ? grammar_refuse(schema->builder, ST_INVALID,
                                         "expected one with the name '%.*s'", SPAN_SHORT(wanted))
                        : grammar_refuse(schema->builder, ST_INVALID, "expected at least one");
}
