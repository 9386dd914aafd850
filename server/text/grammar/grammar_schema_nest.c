/* SPDX-License-Identifier: MIT */
/* Lists and maps of JSON Schemas. Members come in the order of "properties". */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_schema_priv.h"

#define UNIQUE_MAX 8 /* values of items that do not repeat: 255 sets of them */

/* ---- lists ----------------------------------------------------------------------------------- */

/* |item| and later ones, each with a comma before it, up to the end. */
static const struct part *more_items(struct schema *schema, const struct part *item, uint32_t min,
                                     uint32_t max)
{
    const struct part *one = schema_then(schema, grammar_json_mark(&schema->json, ","),
                                         schema_then(schema, item, schema_space(schema)));
    return schema_then(schema, grammar_repeat(schema->builder, one, min, max),
                       schema_word(schema, "]"));
}

/* What follows the items of "prefixItems", |count| of them. */
static const struct part *parse_rest(struct schema *schema, const struct value *items, size_t count,
                                     uint32_t min, uint32_t max)
{
    uint32_t least = min > count ? min - (uint32_t)count : 0;
    bool are_more = items && items->kind != VALUE_BOOL && max > count;
    if (!are_more && least > 0) {
        return schema_refuse(schema, ST_UNSUPPORTED,
                             "'minItems' is more than the items of 'prefixItems'");
    }
    return are_more ? more_items(schema, schema_parse_at(schema, "items", items), least,
                                 max == UINT32_MAX ? max : max - (uint32_t)count)
                    : schema_word(schema, "]");
}

/* The items of |prefix|, at least |min| and at most |max| of all, and behind them |items|. */
static const struct part *parse_tuple(struct schema *schema, const struct value *items,
                                      const struct value *prefix, uint32_t min, uint32_t max)
{
    size_t count = prefix->kind == VALUE_LIST ? prefix->list->count : 0;
    if (count == 0) {
        return schema_refuse(schema, ST_INVALID,
                             "'prefixItems': expected a list that is not empty");
    }
    const struct part *out = parse_rest(schema, items, count, min, max);
    for (size_t i = max < count ? max : count; i-- > 0 && out;) {
        const struct part *item = schema_parse_at(schema, "prefixItems", &prefix->list->items[i]);
        out = schema_then(schema, schema_then(schema, item, schema_space(schema)), out);
        out = i > 0 ? schema_then(schema, grammar_json_mark(&schema->json, ","), out) : out;
        out = i < min ? out : schema_either(schema, out, schema_word(schema, "]"));
    }
    return schema_then(schema, grammar_json_mark(&schema->json, "["), out);
}

/* Are they the same, as Python compares 1 and 1.0? True for a float and a long integer. */
static bool may_be_same(struct schema *schema, const struct value *a, const struct value *b)
{
    if (a->kind == VALUE_DOUBLE && b->kind == VALUE_INT) {
        return a->number == (double)b->integer;
    }
    if (a->kind == VALUE_INT && b->kind == VALUE_DOUBLE) {
        return (double)a->integer == b->number;
    }
    bool are_mixed = (a->kind == VALUE_DOUBLE && b->kind == VALUE_LONG) ||
                     (a->kind == VALUE_LONG && b->kind == VALUE_DOUBLE);
    return are_mixed || schema_are_equal(&schema->work, a, b);
}

/* May an item before number |index| of |list| be the same? */
static bool is_repeated(struct schema *schema, const struct value *list, size_t index)
{
    const struct value *items = list->list->items;
    for (size_t i = 0; i < index; i++) {
        if (may_be_same(schema, &items[i], &items[index])) {
            return true;
        }
    }
    return false;
}

/* The few values that items have, as parts; 0: they are not few, or not known. */
static size_t list_values(struct schema *schema, const struct value *items,
                          const struct part *out[UNIQUE_MAX])
{
    const struct value *at =
        items && items->kind == VALUE_MAP ? schema_flatten(schema, items) : NULL;
    if (!at || !schema_says_just(at, " enum type ")) {
        return 0;
    }
    const struct value *list = schema_get(at, "enum"), *type = schema_get(at, "type");
    if (!list && type && type->kind == VALUE_STRING && span_is(type->string, "boolean")) {
        out[0] = schema_const(schema, GRAMMAR_TRUE);
        out[1] = schema_const(schema, GRAMMAR_FALSE);
        return 2;
    }
    size_t count = list && list->kind == VALUE_LIST ? list->list->count : 0;
    size_t fitting = 0;
    for (size_t i = 0; i < count && count <= UNIQUE_MAX; i++) {
        const struct value *item = &list->list->items[i];
        if (item->kind == VALUE_LIST || item->kind == VALUE_MAP) {
            return 0;
        }
        if (schema_fits_type(item, type) && !is_repeated(schema, list, i)) {
            out[fitting++] = schema_literal(schema, item);
        }
    }
    return fitting;
}

/* A rule for each set of values that were said. */
static const struct part *parse_unique(struct schema *schema, const struct part *const *values,
                                       size_t count, uint32_t min, uint32_t max)
{
    uint32_t rules[1 << UNIQUE_MAX], sets = 1u << count;
    const struct part *first = min == 0 ? schema_word(schema, "]") : grammar_never(schema->builder);
    if (min > count) {
        return schema_refuse_all(schema, "'minItems' is more than the values of 'uniqueItems'");
    }
    for (uint32_t set = 1; set < sets; set++) {
        rules[set] = grammar_rule_new(schema->builder);
    }
    for (uint32_t set = 0; set < sets && schema->builder->status == ST_OK; set++) {
        uint32_t said = (uint32_t)__builtin_popcount(set);
        const struct part *out =
            said >= min && set > 0 ? schema_word(schema, "]") : grammar_never(schema->builder);
        for (uint32_t i = 0; i < count && said < max; i++) {
            if (set >> i & 1) {
                continue;
            }
            const struct part *one = schema_then(schema, values[i], schema_space(schema));
            one = schema_then(schema, one, grammar_rule(schema->builder, rules[set | 1u << i]));
            if (set == 0) {
                first = schema_either(schema, first, one);
            } else {
                one = schema_then(schema, grammar_json_mark(&schema->json, ","), one);
                out = schema_either(schema, out, one);
            }
        }
        if (set > 0) {
            grammar_rule_set(schema->builder, rules[set], out);
        }
    }
    return schema_then(schema, grammar_json_mark(&schema->json, "["), first);
}

const struct part *schema_parse_list(struct schema *schema, const struct value *value)
{
    const struct value *items = schema_get(value, "items");
    const struct value *prefix = schema_get(value, "prefixItems");
    const struct value *unique = schema_get(value, "uniqueItems");
    const struct part *item = grammar_rule(schema->builder, schema->json.any);
    const struct part *values[UNIQUE_MAX];
    uint32_t min, max;
    if (!schema_read_count(schema, value, "minItems", 0, &min) ||
        !schema_read_count(schema, value, "maxItems", UINT32_MAX, &max)) {
        return NULL;
    }
    if (min > max) {
        return schema_refuse_all(schema, "'minItems' is more than 'maxItems'");
    }
    if (!prefix && items && items->kind == VALUE_LIST) { /* drafts before 2020 */
        prefix = items;
        items = schema_get(value, "additionalItems");
    }
    if (prefix) {
        return parse_tuple(schema, items, prefix, min, max);
    }
    bool is_unique = unique && unique->kind == VALUE_BOOL && unique->boolean;
    size_t count = is_unique ? list_values(schema, items, values) : 0;
    if (count > 0) {
        return parse_unique(schema, values, count, min, max);
    }
    if (schema_is_never(&schema->work, items)) {
        max = 0;
        items = NULL;
    }
    item = items ? schema_parse_at(schema, "items", items) : item;
    return grammar_json_listed(&schema->json, "[", "]", item, min, max);
}

/* ---- members --------------------------------------------------------------------------------- */

/* A member whose name |properties| does not have, and the space behind it, as a rule; NULL in
 * |*out|: there is none. */
struct others {
    const struct part *key, *value;
    bool are_any; /* of any name and value, with none that the schema names */
};

static const struct part *other_member(struct schema *schema, const struct others *others)
{
    uint32_t rule = grammar_rule_new(schema->builder);
    const struct part *one = grammar_json_member(&schema->json, others->key, others->value);
    grammar_rule_set(schema->builder, rule, schema_then(schema, one, schema_space(schema)));
    return grammar_rule(schema->builder, rule);
}

/* What may follow the members of "properties": |*first| if none of them was written, |*later| else.
 */
static void end_members(struct schema *schema, const struct others *others,
                        const struct part **first, const struct part **later)
{
    const struct part *end = schema_word(schema, "}");
    *first = *later = end;
    if (others->key) {
        const struct part *one = other_member(schema, others);
        const struct part *more = schema_then(schema, grammar_json_mark(&schema->json, ","), one);
        more = grammar_repeat(schema->builder, more, 0, UINT32_MAX);
        *later = schema_then(schema, more, end);
        *first = schema_either(schema, schema_then(schema, one, *later), end);
    }
}

/* The members of |properties|, and the closing brace. Each place has two rules: with a member in
 * front, which needs a comma, and without. */
static const struct part *parse_members(struct schema *schema, const struct value_map *properties,
                                        const struct value *required, const struct others *others)
{
    struct grammar_builder *builder = schema->builder;
    const struct part *first, *later;
    end_members(schema, others, &first, &later);
    for (size_t i = properties->count; i-- > 0 && first && builder->status == ST_OK;) {
        const struct value_member *property = &properties->members[i];
        bool is_required = schema_requires(&schema->work, required, &property->key);
        if (schema_is_never(&schema->work, &property->value) && !is_required) {
            continue;
        }
        uint32_t value = grammar_rule_new(builder), rules[2];
        size_t len = schema_enter(schema, property->key.string);
        grammar_rule_set(builder, value, schema_parse(schema, &property->value));
        schema_leave(schema, len);
        const struct part *one = grammar_json_member(
            &schema->json, schema_literal(schema, &property->key), grammar_rule(builder, value));
        one = schema_then(schema, one, schema_space(schema));
        rules[0] = grammar_rule_new(builder);
        rules[1] = grammar_rule_new(builder);
        const struct part *rest = grammar_rule(builder, rules[1]);
        grammar_rule_set(builder, rules[0], first);
        grammar_rule_set(builder, rules[1], later);
        const struct part *with = schema_then(schema, one, rest);
        const struct part *comma = schema_then(schema, grammar_json_mark(&schema->json, ","), with);
        first = is_required ? with : schema_either(schema, with, grammar_rule(builder, rules[0]));
        later = is_required ? comma : schema_either(schema, comma, rest);
    }
    return schema_then(schema, grammar_json_mark(&schema->json, "{"), first);
}

/* ---- which members there are ----------------------------------------------------------------- */

static bool no_memory(struct schema *schema)
{
    schema_refuse(schema, ST_TOO_LARGE, "a grammar takes too much memory");
    return false;
}

/* Adds the names of |list| to |properties|, with the schema |item|. */
static bool add_names(struct schema *schema, const struct value *list, const struct value *item,
                      struct value *properties)
{
    for (size_t i = 0; i < list->list->count; i++) {
        const struct value *name = &list->list->items[i];
        if (name->kind != VALUE_STRING) {
            schema_refuse(schema, ST_INVALID, "names of members are strings");
            return false;
        }
        if (!schema_spend_texts(&schema->work, properties->map->count, name->string)) {
            return false;
        }
        if (!value_map_get(properties, name->string) &&
            !value_map_add(&schema->builder->arena, properties, *name, *item)) {
            return no_memory(schema);
        }
    }
    return true;
}

static bool copy_properties(struct schema *schema, const struct value *from, struct value *out)
{
    if (!value_map_new(&schema->builder->arena, out)) {
        return no_memory(schema);
    }
    for (size_t i = 0; from && i < from->map->count; i++) {
        if (!value_map_add(&schema->builder->arena, out, from->map->members[i].key,
                           from->map->members[i].value)) {
            return no_memory(schema);
        }
    }
    return true;
}

/* The schema of members that "properties" does not have, or NULL. */
static const struct value *additional_of(const struct value *value)
{
    const struct value *item = schema_get(value, "additionalProperties");
    return item ? item : schema_get(value, "unevaluatedProperties");
}

/* The members that have a name in the schema: those of "properties", those that "propertyNames"
 * lists, and those that are required, which the schema of others describes. */
static bool collect(struct schema *schema, const struct value *value, const struct value *names,
                    struct value *out)
{
    static const struct value any = {.kind = VALUE_BOOL, .boolean = true};
    const struct value *properties = schema_get(value, "properties");
    const struct value *required = schema_get(value, "required");
    const struct value *item = additional_of(value);
    const struct value *list = names ? schema_get(names, "enum") : NULL;
    if ((properties && properties->kind != VALUE_MAP) ||
        (required && required->kind != VALUE_LIST)) {
        schema_refuse(schema, ST_INVALID, "'properties' is a map and 'required' is a list");
        return false;
    }
    item = item ? item : &any;
    if (!copy_properties(schema, properties, out) ||
        (list && list->kind == VALUE_LIST && !properties && !add_names(schema, list, item, out))) {
        return false;
    }
    size_t known = out->map->count;
    if (required && !add_names(schema, required, item, out)) {
        return false;
    }
    if (out->map->count > known && (list || schema_is_never(&schema->work, item))) {
        schema_refuse(schema, ST_UNSUPPORTED, "'required' names what 'properties' does not have");
        return false;
    }
    bool has_rule = (names && (!list || properties)) || schema_get(value, "patternProperties");
    if (has_rule && out->map->count > 0) {
        schema_refuse(schema, ST_UNSUPPORTED,
                      "'propertyNames' and 'patternProperties' are not supported beside "
                      "'properties' and 'required'");
        return false;
    }
    return true;
}

/* Texts that are none of the names of |properties|. */
static const struct part *other_names(struct schema *schema, const struct value *properties,
                                      const struct part *key)
{
    const struct part *names = grammar_never(schema->builder), *parts[2];
    for (size_t i = 0; i < properties->map->count && names; i++) {
        const struct part *name = grammar_empty(schema->builder);
        struct span text = properties->map->members[i].key.string;
        for (size_t at = 0; at < text.len && name;) {
            uint32_t code = grammar_code(text, &at);
            name = grammar_then(schema->builder, name,
                                grammar_json_codes(schema->builder, code, code));
        }
        names = schema_either(schema, names, name);
    }
    parts[0] = grammar_then(schema->builder, grammar_look(schema->builder, names, true), key);
    return parts[0] ? grammar_meet(schema->builder, parts, 1) : NULL;
}

/* "patternProperties" is one pattern, without "properties". */
static const struct part *parse_patterns(struct schema *schema, const struct value *value,
                                         const struct value *patterns, struct others *out)
{
    bool is_one = patterns->kind == VALUE_MAP && patterns->map->count == 1;
    if (!is_one || schema_get(value, "properties") || schema_get(value, "propertyNames")) {
        return schema_refuse(schema, ST_UNSUPPORTED,
                             "'patternProperties' is supported with one pattern, without "
                             "'properties' and 'propertyNames'");
    }
    out->value = schema_parse_at(schema, "patternProperties", &patterns->map->members[0].value);
    return grammar_regex(schema->builder, patterns->map->members[0].key.string, true);
}

/* Members without a name in the schema; those of "properties" are all there are, unless
 * "additionalProperties" has a schema for others. */
static bool read_others(struct schema *schema, const struct value *value, const struct value *names,
                        const struct value *properties, struct others *out)
{
    const struct value *patterns = schema_get(value, "patternProperties");
    const struct value *item = additional_of(value);
    bool says_more = item && item->kind == VALUE_MAP && item->map->count > 0;
    bool is_closed = schema_is_never(&schema->work, item) || (names && schema_get(names, "enum"));
    if (!patterns && (is_closed || (properties->map->count > 0 && !says_more))) {
        return true;
    }
    const struct part *key = NULL;
    out->value = grammar_rule(schema->builder, schema->json.any);
    if (patterns) {
        key = parse_patterns(schema, value, patterns, out);
    } else if (item && item->kind == VALUE_MAP) {
        out->value = schema_parse_at(schema, "additionalProperties", item);
    }
    if (names || properties->map->count > 0) {
        size_t len = schema_enter(schema, span_str("propertyNames"));
        key = schema_parse_text(schema, names);
        schema_leave(schema, len);
    }
    if (properties->map->count > 0) {
        key = other_names(schema, properties, key);
    }
    bool is_plain = !patterns && !names && properties->map->count == 0;
    out->key = is_plain ? grammar_rule(schema->builder, schema->json.string)
                        : grammar_json_quoted(&schema->json, key);
    out->are_any = is_plain && (!item || item->kind != VALUE_MAP);
    return out->key != NULL;
}

/* "propertyNames" without its references; NULL in |*out|: any text. False: refused. */
static bool read_names(struct schema *schema, const struct value *value, const struct value **out)
{
    const struct value *names = schema_get(value, "propertyNames");
    *out = NULL;
    if (!names || (names->kind == VALUE_BOOL && names->boolean)) {
        return true;
    }
    names = names->kind == VALUE_MAP ? schema_flatten(schema, names) : names;
    if (!names || names->kind != VALUE_MAP) {
        schema_refuse(schema, ST_UNSUPPORTED, "'propertyNames' is a schema of strings");
        return false;
    }
    static const char known[] = " type enum pattern format minLength maxLength ";
    if (!schema_check_keywords(schema, names, known)) {
        return false;
    }
    if (schema_get(names, "enum") && !schema_says_just(names, " enum type ")) {
        schema_refuse(schema, ST_UNSUPPORTED,
                      "'enum' is not supported beside other keywords of 'propertyNames'");
        return false;
    }
    bool says_any = schema_get(names, "enum") || schema_get(names, "pattern") ||
                    schema_get(names, "format") || schema_get(names, "minLength") ||
                    schema_get(names, "maxLength");
    *out = says_any ? names : NULL;
    return true;
}

/* Counts the members that |required|, or NULL, names; a name may stand there twice. */
static size_t count_required(struct schema *schema, const struct value *required,
                             const struct value *properties)
{
    size_t count = 0;
    for (size_t i = 0; i < properties->map->count; i++) {
        count += schema_requires(&schema->work, required, &properties->map->members[i].key);
    }
    return count;
}

const struct part *schema_parse_map(struct schema *schema, const struct value *value)
{
    struct others others = {NULL, NULL, false};
    const struct value *names;
    struct value properties;
    uint32_t min, max;
    if (!schema_read_count(schema, value, "minProperties", 0, &min) ||
        !schema_read_count(schema, value, "maxProperties", UINT32_MAX, &max) ||
        !read_names(schema, value, &names) || !collect(schema, value, names, &properties) ||
        !read_others(schema, value, names, &properties, &others)) {
        return NULL;
    }
    if (min > max) {
        return schema_refuse_all(schema, "'minProperties' is more than 'maxProperties'");
    }
    if (others.are_any && min == 0 && max == UINT32_MAX) {
        return grammar_json_object(&schema->json);
    }
    if (properties.map->count == 0 && others.key) {
        return grammar_json_listed(&schema->json, "{", "}",
                                   grammar_json_member(&schema->json, others.key, others.value),
                                   min, max);
    }
    const struct value *required = schema_get(value, "required");
    if ((min > 0 && min > count_required(schema, required, &properties)) ||
        (max < properties.map->count || (max != UINT32_MAX && others.key))) {
        return schema_refuse(schema, ST_UNSUPPORTED,
                             "'minProperties' and 'maxProperties' are supported where members "
                             "have no names in the schema");
    }
    return parse_members(schema, properties.map, required, &others);
}
