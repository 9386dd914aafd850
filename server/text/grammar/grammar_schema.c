/* SPDX-License-Identifier: MIT */
/* JSON Schemas. Members come in the order of "properties". */
#include "config.h"

#include <math.h>
#include <string.h>

#include "server/text/grammar/grammar_json_priv.h"
#include "server/text/grammar/grammar_priv.h"
#include "server/text/grammar/schema_priv.h"

#define PATH_BYTES 200
#define REFERENCES_MAX 512
#define ONE_OF_MAX 64
#define TEXT_BYTES_MAX (1u << 20)

/* A part of the schema that something refers to, and its rule. */
struct reference {
    const struct value *schema;
    uint32_t rule;
};

struct schema {
    struct grammar_builder *builder;
    const struct value *root;
    struct reference references[REFERENCES_MAX];
    size_t reference_count;
    struct grammar_json json;
    char path[PATH_BYTES];
    int depth;
};

static const struct part *parse(struct schema *schema, const struct value *value);

static const struct part *word(struct schema *schema, const char *text)
{
    return grammar_text(schema->builder, span_str(text));
}

static const struct part *space(struct schema *schema)
{
    return grammar_rule(schema->builder, schema->json.space);
}

static const struct part *then(struct schema *schema, const struct part *a, const struct part *b)
{
    return grammar_then(schema->builder, a, b);
}

static const struct part *either(struct schema *schema, const struct part *a, const struct part *b)
{
    return grammar_or(schema->builder, a, b);
}

/* ---- keywords -------------------------------------------------------------------------------- */

static const struct part *refuse(struct schema *schema, enum status code, const char *what)
{
    return grammar_refuse(schema->builder, code, "%s", what);
}

/* Appends ".name" to the path; returns its old length. */
static size_t enter(struct schema *schema, struct span name)
{
    size_t len = strlen(schema->path);
    size_t room = PATH_BYTES - len - 1;
    size_t more = name.len < 40 ? name.len : 40;
    if (room > more + 1) {
        schema->path[len] = '.';
        memcpy(schema->path + len + 1, name.ptr, more);
        schema->path[len + 1 + more] = 0;
    }
    return len;
}

static void leave(struct schema *schema, size_t len)
{
    schema->path[len] = 0;
}

/* Every keyword is one of |known|, separated by blanks, or says nothing of values. */
static bool check_keywords(struct schema *schema, const struct value *value, const char *known)
{
    static const char notes[] = " title description default examples $schema $id $comment "
                                "deprecated readOnly writeOnly $defs definitions ";
    for (size_t i = 0; i < value->map->count; i++) {
        struct span key = value->map->members[i].key.string;
        char name[48];
        if (key.len < sizeof(name) - 2 && !memchr(key.ptr, ' ', key.len) &&
            !memchr(key.ptr, 0, key.len)) {
            name[0] = ' ';
            memcpy(name + 1, key.ptr, key.len);
            name[key.len + 1] = ' ';
            name[key.len + 2] = 0;
            if (strstr(known, name) || strstr(notes, name)) {
                continue;
            }
        }
        grammar_refuse(schema->builder, ST_UNSUPPORTED, "the keyword '%.*s' is not supported here",
                       SPAN_SHORT(key));
        return false;
    }
    return true;
}

static bool read_count(struct schema *schema, const struct value *value, const char *name,
                       uint32_t otherwise, uint32_t *out)
{
    const struct value *count = schema_get(value, name);
    *out = otherwise;
    if (!count) {
        return true;
    }
    if (count->kind != VALUE_INT || count->integer < 0 || count->integer > GRAMMAR_REPEAT_MAX) {
        grammar_refuse(schema->builder, ST_INVALID, "'%s' is an integer of 0 to %d", name,
                       GRAMMAR_REPEAT_MAX);
        return false;
    }
    *out = (uint32_t)count->integer;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static const struct part *parse_format(struct schema *schema, const struct value *format)
{
#define DAYS "(0[1-9]|[12][0-9]"
#define DATE                                                                                       \
    "[1-9][0-9]{3}-((0[13578]|1[02])-" DAYS "|3[01])|(0[469]|11)-" DAYS "|30)|"                    \
    "02-(0[1-9]|1[0-9]|2[0-8]))"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define MAIL "[A-Za-z0-9_+-]{1,30}"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define COUNT "(0|[1-9][0-9]{0,4})"
#define MINUTE COUNT "M(" COUNT "S)?"
#define CLOCK "T(" COUNT "H(" MINUTE ")?|" MINUTE "|" COUNT "S)"
#define DAY "(" COUNT "D(" CLOCK ")?|" CLOCK ")"
#define MONTH COUNT "M(" COUNT "D)?(" CLOCK ")?"
#define YEAR COUNT "Y(" COUNT "M(" COUNT "D)?)?(" CLOCK ")?"
    static const struct {
        const char *name, *regex;
    } formats[] = {{"date", "^" DATE "$"},
                   {"time", "^" TIME "$"},
                   {"date-time", "^" DATE "T" TIME "$"},
                   {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
                   {"email", "^" MAIL "(\\." MAIL ")*@(" LABEL "\\.)+[A-Za-z]{2,12}$"},
                   {"hostname", "^" LABEL "(\\." LABEL "){0,8}$"},
                   {"ipv6", "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$"},
                   {"ipv4", "^(" BYTE "\\.){3}" BYTE "$"},
                   {"duration", "^P(" DAY "|" MONTH "|" YEAR "|" COUNT "W)$"}};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (format->kind == VALUE_STRING && span_is(format->string, formats[i].name)) {
            return grammar_json_quoted(
                &schema->json, grammar_regex(schema->builder, span_str(formats[i].regex), true));
        }
    }
    return refuse(schema, ST_UNSUPPORTED, "this 'format' is not supported");
}

static const struct part *parse_string(struct schema *schema, const struct value *value)
{
    const struct value *pattern = schema_get(value, "pattern"),
                       *format = schema_get(value, "format");
    bool has_length = schema_get(value, "minLength") || schema_get(value, "maxLength");
    uint32_t min, max;
    if (!read_count(schema, value, "minLength", 0, &min) ||
        !read_count(schema, value, "maxLength", UINT32_MAX, &max)) {
        return NULL;
    }
    if ((pattern != NULL) + (format != NULL) + has_length > 1) {
        return refuse(schema, ST_UNSUPPORTED,
                      "'pattern', 'format' and lengths are not supported together");
    }
    if (format) {
        return parse_format(schema, format);
    }
    if (pattern && pattern->kind != VALUE_STRING) {
        return refuse(schema, ST_INVALID, "'pattern' is a string");
    }
    if (pattern) {
        return grammar_json_quoted(&schema->json,
                                   grammar_regex(schema->builder, pattern->string, true));
    }
    if (!has_length) {
        return grammar_rule(schema->builder, schema->json.string);
    }
    const struct part *character = grammar_rule(schema->builder, schema->json.character);
    return grammar_json_quoted(&schema->json, grammar_repeat(schema->builder, character, min, max));
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A bound that is a whole number, whether it is written as 3 or as 3.0. */
static bool read_whole(struct schema *schema, const struct value *bound, const char *name,
                       int64_t *out)
{
    bool is_integer = bound->kind == VALUE_INT;
    bool is_whole = bound->kind == VALUE_DOUBLE && bound->number == floor(bound->number) &&
                    fabs(bound->number) <= (double)GRAMMAR_BOUND_MAX;
    *out = is_integer ? bound->integer : is_whole ? (int64_t)bound->number : 0;
    if ((is_integer || is_whole) && *out >= -GRAMMAR_BOUND_MAX && *out <= GRAMMAR_BOUND_MAX) {
        return true;
    }
    grammar_refuse(schema->builder, ST_UNSUPPORTED,
                   "'%s' is supported as a whole number of up to 2^53", name);
    return false;
}

/* If a bound has an exclusive form, too, the narrower of both counts. */
static bool read_bounds(struct schema *schema, const struct value *value,
                        struct grammar_bounds *out)
{
    static const char *const names[2][2] = {{"minimum", "exclusiveMinimum"},
                                            {"maximum", "exclusiveMaximum"}};
    for (int is_max = 0; is_max < 2; is_max++) {
        bool *has = is_max ? &out->has_max : &out->has_min;
        bool *is_open = is_max ? &out->is_max_open : &out->is_min_open;
        int64_t *at = is_max ? &out->max : &out->min;
        for (int opens = 0; opens < 2; opens++) {
            const struct value *bound = schema_get(value, names[is_max][opens]);
            int64_t number;
            if (!bound) {
                continue;
            }
            if (!read_whole(schema, bound, names[is_max][opens], &number)) {
                return false;
            }
            if (!*has || (is_max ? number < *at : number > *at) || (opens && number == *at)) {
                *has = true;
                *is_open = opens;
                *at = number;
            }
        }
    }
    return true;
}

static const struct part *parse_number(struct schema *schema, const struct value *value,
                                       bool is_integer)
{
    struct grammar_bounds bounds = {.multiple = 0};
    const struct value *multiple = schema_get(value, "multipleOf");
    int64_t divisor = 0;
    if (!read_bounds(schema, value, &bounds) ||
        (multiple && !read_whole(schema, multiple, "multipleOf", &divisor))) {
        return NULL;
    }
    bool has_bounds = bounds.has_min || bounds.has_max;
    if (multiple && (!is_integer || has_bounds || divisor < 1 || divisor > GRAMMAR_MULTIPLE_MAX)) {
        return refuse(schema, ST_UNSUPPORTED,
                      "'multipleOf' is supported for integers without bounds, from 1 to 128");
    }
    bounds.multiple = (uint32_t)divisor;
    if (!has_bounds && !multiple) {
        return grammar_rule(schema->builder,
                            is_integer ? schema->json.integer : schema->json.number);
    }
    return is_integer ? grammar_integers(schema->builder, &bounds)
                      : grammar_numbers(schema->builder, &bounds);
}

/* ---- lists and maps -------------------------------------------------------------------------- */

/* A part of the schema as a rule of its own; |name| is where it stands. */
static const struct part *parse_at(struct schema *schema, const char *name,
                                   const struct value *value)
{
    size_t len = enter(schema, span_str(name));
    uint32_t rule = grammar_rule_new(schema->builder);
    grammar_rule_set(schema->builder, rule, parse(schema, value));
    leave(schema, len);
    return grammar_rule(schema->builder, rule);
}

/* The items of "prefixItems", at least |min| and at most |max| of them, and none behind them. */
static const struct part *parse_tuple(struct schema *schema, const struct value *value,
                                      const struct value *prefix, uint32_t min, uint32_t max)
{
    const struct value *items = schema_get(value, "items");
    size_t count = prefix->kind == VALUE_LIST ? prefix->list->count : 0;
    if (count == 0) {
        return refuse(schema, ST_INVALID, "'prefixItems': expected a list that is not empty");
    }
    if (min > count || (items && items->kind != VALUE_BOOL)) {
        return refuse(schema, ST_UNSUPPORTED,
                      "items behind those of 'prefixItems' are not supported here");
    }
    const struct part *out = word(schema, "]");
    for (size_t i = max < count ? max : count; i-- > 0;) {
        const struct part *item = parse_at(schema, "prefixItems", &prefix->list->items[i]);
        out = then(schema, then(schema, item, space(schema)), out);
        out = i > 0 ? then(schema, grammar_json_mark(&schema->json, ","), out) : out;
        out = i < min ? out : either(schema, out, word(schema, "]"));
    }
    return then(schema, grammar_json_mark(&schema->json, "["), out);
}

static const struct part *parse_list(struct schema *schema, const struct value *value)
{
    const struct value *items = schema_get(value, "items");
    const struct value *prefix = schema_get(value, "prefixItems");
    const struct part *item = grammar_rule(schema->builder, schema->json.any);
    uint32_t min, max;
    if (!read_count(schema, value, "minItems", 0, &min) ||
        !read_count(schema, value, "maxItems", UINT32_MAX, &max)) {
        return NULL;
    }
    if (min > max) {
        return refuse(schema, ST_INVALID, "'minItems' is more than 'maxItems'");
    }
    if (prefix) {
        return parse_tuple(schema, value, prefix, min, max);
    }
    item = items ? parse_at(schema, "items", items) : item;
    return grammar_json_listed(&schema->json, "[", "]", item, min, max);
}

/* A value as JSON, byte for byte as Python prints it. */
static const struct part *literal(struct schema *schema, const struct value *value)
{
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    enum status status = value_print_json(value, &VALUE_JSON_DEFAULT, &text, schema->builder->err);
    const struct part *out = NULL;
    if (status == ST_OK) {
        out = grammar_text(schema->builder, buf_span(&text));
    } else if (schema->builder->status == ST_OK) {
        schema->builder->status = status;
    }
    buf_fini(&text);
    return out;
}

static bool check_map(struct schema *schema, const struct value *value)
{
    const struct value *properties = schema_get(value, "properties");
    const struct value *required = schema_get(value, "required");
    const struct value *additional = schema_get(value, "additionalProperties");
    if ((properties && properties->kind != VALUE_MAP) ||
        (required && required->kind != VALUE_LIST)) {
        refuse(schema, ST_INVALID, "'properties' is a map and 'required' is a list");
        return false;
    }
    if (properties && properties->map->count > 0 && additional && additional->kind != VALUE_BOOL) {
        refuse(schema, ST_UNSUPPORTED,
               "'additionalProperties' beside 'properties' is supported only as true or false");
        return false;
    }
    for (size_t i = 0; required && i < required->list->count; i++) {
        const struct value *name = &required->list->items[i];
        if (name->kind != VALUE_STRING || !properties || !value_map_get(properties, name->string)) {
            refuse(schema, ST_UNSUPPORTED, "'required' names what 'properties' does not have");
            return false;
        }
    }
    return true;
}

/* Members |from| and later, and the closing brace. Each place has two rules: with a member in
 * front, which needs a comma, and without. */
static const struct part *parse_members(struct schema *schema, const struct value_map *properties,
                                        const struct value *required)
{
    struct grammar_builder *builder = schema->builder;
    const struct part *first = word(schema, "}"), *later = word(schema, "}");
    for (size_t i = properties->count; i-- > 0 && first && later;) {
        const struct value_member *property = &properties->members[i];
        uint32_t value = grammar_rule_new(builder), rules[2];
        size_t len = enter(schema, property->key.string);
        grammar_rule_set(builder, value, parse(schema, &property->value));
        leave(schema, len);
        const struct part *one = grammar_json_member(&schema->json, literal(schema, &property->key),
                                                     grammar_rule(builder, value));
        one = then(schema, one, space(schema));
        rules[0] = grammar_rule_new(builder);
        rules[1] = grammar_rule_new(builder);
        const struct part *rest = grammar_rule(builder, rules[1]);
        grammar_rule_set(builder, rules[0], first);
        grammar_rule_set(builder, rules[1], later);
        const struct part *with = then(schema, one, rest);
        const struct part *comma = then(schema, grammar_json_mark(&schema->json, ","), with);
        if (schema_requires(required, &property->key)) {
            first = with;
            later = comma;
        } else {
            first = either(schema, with, grammar_rule(builder, rules[0]));
            later = either(schema, comma, rest);
        }
    }
    return then(schema, grammar_json_mark(&schema->json, "{"), first);
}

static const struct part *parse_map(struct schema *schema, const struct value *value)
{
    const struct value *properties = schema_get(value, "properties");
    const struct value *additional = schema_get(value, "additionalProperties");
    const struct part *item = grammar_rule(schema->builder, schema->json.any);
    if (!check_map(schema, value)) {
        return NULL;
    }
    if (properties && (properties->map->count > 0 || !additional)) {
        return parse_members(schema, properties->map, schema_get(value, "required"));
    }
    if (additional && additional->kind == VALUE_BOOL && !additional->boolean) {
        return then(schema, grammar_json_mark(&schema->json, "{"), word(schema, "}"));
    }
    if (additional && additional->kind == VALUE_MAP) {
        item = parse_at(schema, "additionalProperties", additional);
    }
    return grammar_json_listed(
        &schema->json, "{", "}",
        grammar_json_member(&schema->json, grammar_rule(schema->builder, schema->json.string),
                            item),
        0, UINT32_MAX);
}

/* ---- references ------------------------------------------------------------------------------ */

/* NULL: refused. */
static const struct value *find(struct schema *schema, const struct value *reference)
{
    if (!schema_is_reference(reference)) {
        refuse(schema, ST_UNSUPPORTED, "'$ref' leads to places of this schema without escapes");
        return NULL;
    }
    const struct value *at = schema_follow(schema->root, reference);
    if (!at) {
        refuse(schema, ST_INVALID, "'$ref' leads nowhere");
    }
    return at;
}

static const struct part *parse_reference(struct schema *schema, const struct value *value)
{
    const struct value *target = find(schema, value);
    if (!target) {
        return NULL;
    }
    for (size_t i = 0; i < schema->reference_count; i++) {
        if (schema->references[i].schema == target) {
            return grammar_rule(schema->builder, schema->references[i].rule);
        }
    }
    if (schema->reference_count == REFERENCES_MAX) {
        return refuse(schema, ST_TOO_LARGE, "too many references");
    }
    uint32_t rule = grammar_rule_new(schema->builder);
    schema->references[schema->reference_count++] = (struct reference){target, rule};
    const struct part *part = parse(schema, target);
    grammar_rule_set(schema->builder, rule, part);
    return part ? grammar_rule(schema->builder, rule) : NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct part *parse_any_of(struct schema *schema, const struct value *list)
{
    const struct part *out = grammar_never(schema->builder);
    if (list->kind != VALUE_LIST || list->list->count == 0) {
        return refuse(schema, ST_INVALID, "expected a list of schemas that is not empty");
    }
    for (size_t i = 0; i < list->list->count && out; i++) {
        out = either(schema, out, parse(schema, &list->list->items[i]));
    }
    return out;
}

static const struct part *parse_one_of(struct schema *schema, const struct value *list)
{
    const struct value *items[ONE_OF_MAX];
    size_t count = list->kind == VALUE_LIST ? list->list->count : 0;
    if (count > ONE_OF_MAX) {
        return refuse(schema, ST_TOO_LARGE, "'oneOf' is supported with up to 64 schemas");
    }
    for (size_t i = 0; i < count; i++) {
        const struct value *item = &list->list->items[i], *reference;
        for (int k = 0; item && item->kind == VALUE_MAP && k < 8; k++) {
            reference = schema_get(item, "$ref");
            item = reference ? find(schema, reference) : item;
        }
        items[i] = item;
        for (size_t k = 0; k < i && items[i]; k++) {
            const struct value *a = items[k], *b = items[i];
            if (!schema_are_disjoint(a, b)) {
                return refuse(schema, ST_UNSUPPORTED,
                              "a value could fit two schemas of 'oneOf': 'anyOf' lets it");
            }
        }
        if (!items[i]) {
            return NULL;
        }
    }
    return parse_any_of(schema, list);
}

static const struct part *parse_enum(struct schema *schema, const struct value *list)
{
    const struct part *out = grammar_never(schema->builder);
    if (list->kind != VALUE_LIST || list->list->count == 0) {
        return refuse(schema, ST_INVALID, "'enum' is a list that is not empty");
    }
    for (size_t i = 0; i < list->list->count && out; i++) {
        out = either(schema, out, literal(schema, &list->list->items[i]));
    }
    return out;
}

static const struct part *parse_type(struct schema *schema, const struct value *value,
                                     const struct value *type)
{
    static const char lists[] = " type items prefixItems minItems maxItems ";
    static const char maps[] = " type properties required additionalProperties ";
    static const char strings[] = " type pattern format minLength maxLength ";
    static const char numbers[] =
        " type minimum maximum exclusiveMinimum exclusiveMaximum multipleOf ";
    struct span name = type->kind == VALUE_STRING ? type->string : span_str("");
    if (span_is(name, "object")) {
        return check_keywords(schema, value, maps) ? parse_map(schema, value) : NULL;
    }
    if (span_is(name, "array")) {
        return check_keywords(schema, value, lists) ? parse_list(schema, value) : NULL;
    }
    if (span_is(name, "string")) {
        return check_keywords(schema, value, strings) ? parse_string(schema, value) : NULL;
    }
    if (span_is(name, "integer") || span_is(name, "number")) {
        return check_keywords(schema, value, numbers)
                   ? parse_number(schema, value, span_is(name, "integer"))
                   : NULL;
    }
    if (!check_keywords(schema, value, " type ")) {
        return NULL;
    }
    if (span_is(name, "boolean")) {
        return either(schema, word(schema, "true"), word(schema, "false"));
    }
    if (span_is(name, "null")) {
        return word(schema, "null");
    }
    return refuse(schema, ST_INVALID, "there is no such 'type'");
}

/* A list of types stands alone, or for null beside one other. */
static const struct part *parse_types(struct schema *schema, const struct value *value,
                                      const struct value *types)
{
    const struct part *out = grammar_never(schema->builder);
    const struct value *other = NULL;
    size_t others = 0;
    for (size_t i = 0; i < types->list->count; i++) {
        const struct value *type = &types->list->items[i];
        if (type->kind == VALUE_STRING && span_is(type->string, "null")) {
            out = either(schema, out, word(schema, "null"));
        } else {
            other = type;
            others++;
        }
    }
    if (others > 1 && !check_keywords(schema, value, " type ")) {
        return NULL;
    }
    for (size_t i = 0; i < types->list->count && others > 1 && out; i++) {
        const struct value *type = &types->list->items[i];
        if (type->kind != VALUE_STRING || !span_is(type->string, "null")) {
            out = either(schema, out, parse_type(schema, value, type));
        }
    }
    return others == 1 ? either(schema, out, parse_type(schema, value, other)) : out;
}

static const struct part *parse_keywords(struct schema *schema, const struct value *value)
{
    const struct value *reference = schema_get(value, "$ref"), *any_of = schema_get(value, "anyOf");
    const struct value *constant = schema_get(value, "const"), *list = schema_get(value, "enum");
    const struct value *type = schema_get(value, "type");
    if (reference) {
        return check_keywords(schema, value, " $ref ") ? parse_reference(schema, reference) : NULL;
    }
    if (any_of) {
        return check_keywords(schema, value, " anyOf discriminator ") ? parse_any_of(schema, any_of)
                                                                      : NULL;
    }
    if (schema_get(value, "oneOf")) {
        return check_keywords(schema, value, " oneOf discriminator ")
                   ? parse_one_of(schema, schema_get(value, "oneOf"))
                   : NULL;
    }
    if (constant) {
        return check_keywords(schema, value, " const type ") ? literal(schema, constant) : NULL;
    }
    if (list) {
        return check_keywords(schema, value, " enum type ") ? parse_enum(schema, list) : NULL;
    }
    if (type && type->kind == VALUE_LIST) {
        return parse_types(schema, value, type);
    }
    if (type) {
        return parse_type(schema, value, type);
    }
    if (schema_get(value, "properties")) {
        const struct value object = value_string(span_str("object"));
        return parse_type(schema, value, &object);
    }
    return check_keywords(schema, value, " ") ? grammar_rule(schema->builder, schema->json.any)
                                              : NULL;
}

static const struct part *parse(struct schema *schema, const struct value *value)
{
    if (value->kind == VALUE_BOOL && value->boolean) {
        return grammar_rule(schema->builder, schema->json.any);
    }
    if (value->kind != VALUE_MAP) {
        return refuse(schema, ST_INVALID, "a schema is a map or true");
    }
    if (schema->depth == GRAMMAR_NESTING_MAX) {
        return refuse(schema, ST_TOO_LARGE, "nested too deep");
    }
    schema->depth++;
    const struct part *part = parse_keywords(schema, value);
    schema->depth--;
    return part;
}

/* ---- calls of tools -------------------------------------------------------------------------- */

static const struct part *arguments(struct schema *schema, const struct value *name,
                                    const struct value *parameters)
{
    if (!parameters || parameters->kind == VALUE_NONE) {
        return grammar_json_object(&schema->json);
    }
    size_t len = enter(schema, name->string);
    schema->builder->path = schema->path;
    schema->root = parameters;
    const struct part *part = parse(schema, parameters);
    if (part && schema_says_nothing(parameters)) {
        part = grammar_json_object(&schema->json);
    } else if (part && !schema_is_of_maps(parameters)) {
        part = refuse(schema, ST_INVALID, "the arguments of a function are of type 'object'");
    }
    schema->builder->path = NULL;
    leave(schema, len);
    return part;
}

static const struct part *call(struct schema *schema, const struct value *name,
                               const struct value *parameters)
{
    const struct part *part = arguments(schema, name, parameters);
    const struct part *first =
        grammar_json_member(&schema->json, word(schema, "\"name\""), literal(schema, name));
    const struct part *second =
        grammar_json_member(&schema->json, word(schema, "\"arguments\""), part);
    const struct part *end = then(schema, space(schema), word(schema, "}"));
    first = then(schema, grammar_json_mark(&schema->json, "{"), then(schema, first, space(schema)));
    return part ? then(schema, first,
                       then(schema, grammar_json_mark(&schema->json, ","),
                            then(schema, second, end)))
                : NULL;
}

/* A call of one of the tools, or of the one with that name. */
static const struct part *parse_calls(struct schema *schema, const struct value *tools,
                                      struct span wanted)
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
            const struct part *one = call(schema, name, schema_get(function, "parameters"));
            out = out && one ? either(schema, out, one) : one;
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

/* ---- ways in --------------------------------------------------------------------------------- */

/* The source of the rule of the whole text: a schema, tools, or neither. */
struct source {
    const struct value *schema, *tools;
    struct span name; /* of a tool */
};

static enum status finish(const struct source *source, struct grammar **out, struct error *err)
{
    struct grammar_builder builder;
    struct schema schema = {.builder = &builder, .root = source->schema};
    grammar_builder_init(&builder, err);
    builder.path = source->schema ? schema.path : NULL;
    uint32_t rule = grammar_rule_new(&builder);
    grammar_json_init(&schema.json, &builder);
    if (builder.status == ST_OK) {
        grammar_rule_set(&builder, rule,
                         source->schema  ? parse(&schema, source->schema)
                         : source->tools ? parse_calls(&schema, source->tools, source->name)
                                         : grammar_json_object(&schema.json));
    }
    return grammar_builder_finish(&builder, out);
}

enum status grammar_parse_schema(const struct value *schema, struct grammar **out,
                                 struct error *err)
{
    return finish(&(struct source){.schema = schema}, out, err);
}

enum status grammar_parse_call(const struct value *tools, struct span name, struct grammar **out,
                               struct error *err)
{
    if (tools->kind != VALUE_LIST) {
        return error_set(err, ST_INVALID, "expected a list");
    }
    return finish(&(struct source){.tools = tools, .name = name}, out, err);
}

enum status grammar_parse_object(struct grammar **out, struct error *err)
{
    return finish(&(struct source){0}, out, err);
}
