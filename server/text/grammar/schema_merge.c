/* SPDX-License-Identifier: MIT */
/* Two JSON Schemas as one that says what both say. */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_schema_priv.h"

#define WORK_OF_MEMBER 64 /* to put one beside others */

/* How the values of a keyword that stands in both become one. */
enum merge_rule {
    MERGE_ALL,    /* a schema: both hold */
    MERGE_UNION,  /* a list of names */
    MERGE_COMMON, /* a list: the values that stand in both */
    MERGE_TYPES,  /* the same, where a text is a list of one, and integers are numbers */
    MERGE_GREATEST,
    MERGE_LEAST,
    MERGE_EITHER, /* true, if one is true */
    MERGE_PATTERNS,
};

static const struct {
    const char *keyword;
    enum merge_rule rule;
} rules[] = {
    {"required", MERGE_UNION},
    {"additionalProperties", MERGE_ALL},
    {"items", MERGE_ALL},
    {"propertyNames", MERGE_ALL},
    {"type", MERGE_TYPES},
    {"enum", MERGE_COMMON},
    {"pattern", MERGE_PATTERNS},
    {"uniqueItems", MERGE_EITHER},
    {"minimum", MERGE_GREATEST},
    {"exclusiveMinimum", MERGE_GREATEST},
    {"minLength", MERGE_GREATEST},
    {"minItems", MERGE_GREATEST},
    {"minProperties", MERGE_GREATEST},
    {"maximum", MERGE_LEAST},
    {"exclusiveMaximum", MERGE_LEAST},
    {"maxLength", MERGE_LEAST},
    {"maxItems", MERGE_LEAST},
    {"maxProperties", MERGE_LEAST},
};

static bool no_memory(struct schema *schema)
{
    schema_refuse(schema, ST_TOO_LARGE, "a grammar takes too much memory");
    return false;
}

static bool add_item(struct schema *schema, struct value *list, const struct value *item)
{
    return value_list_add(&schema->builder->arena, list, *item) || no_memory(schema);
}

/* Counts the comparisons that put the members of two maps together. */
static bool spend_members(struct schema *schema, const struct value *a, const struct value *b)
{
    size_t counts[2] = {a->map->count, b->map->count};
    bool is_good = schema_spend(&schema->work, (counts[0] + counts[1] + 1) * WORK_OF_MEMBER);
    for (size_t i = 0; i < counts[0] + counts[1] && is_good; i++) {
        bool is_first = i < counts[0];
        const struct value_member *member =
            is_first ? &a->map->members[i] : &b->map->members[i - counts[0]];
        is_good = schema_spend_texts(&schema->work, counts[is_first], member->key.string);
    }
    return is_good;
}

static bool has_item(struct schema *schema, const struct value *list, const struct value *item)
{
    for (size_t i = 0; i < list->list->count && schema->builder->status == ST_OK; i++) {
        if (schema_are_equal(&schema->work, &list->list->items[i], item)) {
            return true;
        }
    }
    return false;
}

/* ---- keywords -------------------------------------------------------------------------------- */

/* {"allOf": [a, b]}. */
static bool merge_all(struct schema *schema, const struct value *a, const struct value *b,
                      struct value *out)
{
    struct arena *arena = &schema->builder->arena;
    struct value list;
    if (schema_is_never(&schema->work, a) || (b->kind == VALUE_BOOL && b->boolean)) {
        *out = *a;
        return true;
    }
    if (schema_is_never(&schema->work, b) || (a->kind == VALUE_BOOL && a->boolean)) {
        *out = *b;
        return true;
    }
    if (!value_map_new(arena, out) || !value_list_new(arena, &list)) {
        return no_memory(schema);
    }
    return add_item(schema, &list, a) && add_item(schema, &list, b) &&
           (value_map_set(arena, out, "allOf", list) || no_memory(schema));
}

/* The schema of members without a name in |value|; NULL: it lets all through, or none. */
static const struct value *rest_of(struct schema *schema, const struct value *value)
{
    const struct value *rest = schema_get(value, "additionalProperties");
    return rest && !schema_is_never(&schema->work, rest) && !schema_says_nothing(rest) ? rest
                                                                                       : NULL;
}

/* |member|, which |other| may have as well; else |rest|, or NULL, holds for it. */
static bool merge_member(struct schema *schema, const struct value_member *member,
                         const struct value *other, const struct value *rest, struct value *out)
{
    const struct value *more = other ? other : rest;
    *out = member->value;
    return !more || schema_are_equal(&schema->work, more, out) ||
           merge_all(schema, &member->value, more, out);
}

/* "properties" of two schemas, at least one of which has some. */
static bool merge_properties(struct schema *schema, const struct value *a, const struct value *b,
                             struct value *out)
{
    static struct value_map none;
    static const struct value empty = {.kind = VALUE_MAP, .map = &none};
    const struct value *mine = schema_get(a, "properties"), *other = schema_get(b, "properties");
    const struct value *rests[2] = {rest_of(schema, a), rest_of(schema, b)};
    mine = mine ? mine : &empty;
    other = other ? other : &empty;
    if (mine->kind != VALUE_MAP || other->kind != VALUE_MAP) {
        schema_refuse(schema, ST_INVALID, "'properties' is a map");
        return false;
    }
    if (!spend_members(schema, mine, other)) {
        return false;
    }
    if (!value_map_new(&schema->builder->arena, out)) {
        return no_memory(schema);
    }
    for (size_t i = 0; i < mine->map->count + other->map->count; i++) {
        bool is_first = i < mine->map->count;
        const struct value_member *member =
            is_first ? &mine->map->members[i] : &other->map->members[i - mine->map->count];
        const struct value *twin = value_map_get(is_first ? other : mine, member->key.string);
        struct value both;
        if (!is_first && twin) {
            continue;
        }
        if (!merge_member(schema, member, twin, rests[is_first], &both)) {
            return false;
        }
        if (!value_map_add(&schema->builder->arena, out, member->key, both)) {
            return no_memory(schema);
        }
    }
    return true;
}

/* |is_union|: the items of both; else those that are in both. */
static bool merge_lists(struct schema *schema, const struct value *a, const struct value *b,
                        bool is_union, struct value *out)
{
    if (a->kind != VALUE_LIST || b->kind != VALUE_LIST) {
        schema_refuse(schema, ST_INVALID, "'required' and 'enum' are lists");
        return false;
    }
    if (!value_list_new(&schema->builder->arena, out)) {
        return no_memory(schema);
    }
    for (size_t i = 0; i < a->list->count && schema->builder->status == ST_OK; i++) {
        const struct value *item = &a->list->items[i];
        if ((is_union || has_item(schema, b, item)) && !add_item(schema, out, item)) {
            return false;
        }
    }
    bool goes_on = is_union && schema->builder->status == ST_OK;
    for (size_t i = 0; i < b->list->count && goes_on; i++) {
        if (!has_item(schema, out, &b->list->items[i]) &&
            !add_item(schema, out, &b->list->items[i])) {
            return false;
        }
    }
    if (out->list->count == 0 && !is_union) {
        schema_refuse_all(schema, "no value keeps to both 'enum'");
    }
    return schema->builder->status == ST_OK;
}

static bool is_text(const struct value *value, const char *text)
{
    return value->kind == VALUE_STRING && span_is(value->string, text);
}

static bool add_type(struct schema *schema, const struct value *a, const struct value *b,
                     struct value *out)
{
    bool is_same = schema_are_equal(&schema->work, a, b);
    bool is_integer = (is_text(a, "integer") && is_text(b, "number")) ||
                      (is_text(a, "number") && is_text(b, "integer"));
    struct value integer = value_string(span_str("integer"));
    const struct value *one = is_same ? a : &integer;
    return !(is_same || is_integer) || has_item(schema, out, one) || add_item(schema, out, one);
}

static bool merge_types(struct schema *schema, const struct value *a, const struct value *b,
                        struct value *out)
{
    size_t counts[2] = {a->kind == VALUE_LIST ? a->list->count : 1,
                        b->kind == VALUE_LIST ? b->list->count : 1};
    if (!value_list_new(&schema->builder->arena, out)) {
        return no_memory(schema);
    }
    for (size_t i = 0; i < counts[0] && i < 16; i++) {
        for (size_t k = 0; k < counts[1] && k < 16; k++) {
            if (!add_type(schema, a->kind == VALUE_LIST ? &a->list->items[i] : a,
                          b->kind == VALUE_LIST ? &b->list->items[k] : b, out)) {
                return false;
            }
        }
    }
    if (out->list->count == 0) {
        schema_refuse_all(schema, "no value keeps to both 'type'");
        return false;
    }
    *out = out->list->count == 1 ? out->list->items[0] : *out;
    return true;
}

/* Both patterns hold: a tuple of them, which no JSON has. */
static bool merge_patterns(struct schema *schema, const struct value *a, const struct value *b,
                           struct value *out)
{
    const struct value *both[2] = {a, b};
    if (!value_list_new(&schema->builder->arena, out)) {
        return no_memory(schema);
    }
    out->flags = VALUE_IS_TUPLE;
    for (int i = 0; i < 2; i++) {
        bool is_list = both[i]->kind == VALUE_LIST && both[i]->flags & VALUE_IS_TUPLE;
        for (size_t k = 0; k < (is_list ? both[i]->list->count : 1); k++) {
            if (!add_item(schema, out, is_list ? &both[i]->list->items[k] : both[i])) {
                return false;
            }
        }
    }
    return true;
}

static bool merge_bounds(struct schema *schema, const struct value *a, const struct value *b,
                         bool is_greatest, struct value *out)
{
    struct grammar_decimal one, two;
    if (!schema_read_decimal(schema, a, "a bound", &one) ||
        !schema_read_decimal(schema, b, "a bound", &two)) {
        return false;
    }
    bool is_less = grammar_decimal_compare(&one, &two) < 0;
    *out = is_less == is_greatest ? *b : *a;
    return true;
}

static bool merge_by(struct schema *schema, enum merge_rule rule, const struct value *a,
                     const struct value *b, struct value *out)
{
    switch (rule) {
    case MERGE_ALL:
        return merge_all(schema, a, b, out);
    case MERGE_UNION:
    case MERGE_COMMON:
        return merge_lists(schema, a, b, rule == MERGE_UNION, out);
    case MERGE_TYPES:
        return merge_types(schema, a, b, out);
    case MERGE_GREATEST:
    case MERGE_LEAST:
        return merge_bounds(schema, a, b, rule == MERGE_GREATEST, out);
    case MERGE_PATTERNS:
        return merge_patterns(schema, a, b, out);
    default:
        *out = a->kind == VALUE_BOOL && a->boolean ? *a : *b;
        return true;
    }
}

/* ---- schemas --------------------------------------------------------------------------------- */

static bool merge_keyword(struct schema *schema, struct span keyword, const struct value *a,
                          const struct value *b, struct value *out)
{
    if (schema_are_equal(&schema->work, a, b)) {
        *out = *a;
        return true;
    }
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (span_is(keyword, rules[i].keyword)) {
            return merge_by(schema, rules[i].rule, a, b, out);
        }
    }
    grammar_refuse(schema->builder, ST_UNSUPPORTED,
                   "'%.*s' stands in two schemas that hold at one time, and differs",
                   SPAN_SHORT(keyword));
    return false;
}

/* A keyword of one schema that also speaks of what |beside| of the other names. */
static const struct {
    const char *keyword, *beside;
    bool may_be_own; /* the schema with the keyword may have |beside| as well, the same */
} crossing[] = {
    {"items", "prefixItems", true},
    {"additionalProperties", "patternProperties", true},
    {"unevaluatedProperties", "properties", false},
    {"unevaluatedProperties", "patternProperties", false},
    {"unevaluatedProperties", "additionalProperties", false},
};

/* Does |value|, a schema or NULL, speak of values? Members that are closed are open for those of
 * another schema; items are not. */
static bool says_more(struct schema *schema, const struct value *value, const char *keyword)
{
    return schema_is_never(&schema->work, value) ? strcmp(keyword, "items") == 0
                                                 : value && !schema_says_nothing(value);
}

/* False: refused. */
static bool check_crossing(struct schema *schema, const struct value *a, const struct value *b)
{
    for (size_t i = 0; i < sizeof(crossing) / sizeof(crossing[0]); i++) {
        const char *keyword = crossing[i].keyword, *beside = crossing[i].beside;
        if (says_more(schema, schema_get(a, keyword), keyword) && schema_get(b, beside) &&
            !(crossing[i].may_be_own && schema_get(a, beside))) {
            grammar_refuse(schema->builder, ST_UNSUPPORTED,
                           "'%s' is not supported beside '%s' of another schema", keyword, beside);
            return false;
        }
    }
    return true;
}

/* Does |keyword| of one of them say nothing of what both let through? */
static bool is_void(struct schema *schema, struct span keyword, const struct value *a,
                    const struct value *b)
{
    return schema_is_note(keyword) ||
           (span_is(keyword, "nullable") &&
            !(schema_lets_null(&schema->work, a) && schema_lets_null(&schema->work, b)));
}

/* The value of |keyword| of one, and of |other| if that has it, as |*out|. */
static bool merge_values(struct schema *schema, const struct value_member *member,
                         const struct value *other, struct value *out)
{
    *out = member->value;
    return !other || merge_keyword(schema, member->key.string, &member->value, other, out);
}

const struct value *schema_merge(struct schema *schema, const struct value *a,
                                 const struct value *b)
{
    struct arena *arena = &schema->builder->arena;
    if (!spend_members(schema, a, b) || !check_crossing(schema, a, b) ||
        !check_crossing(schema, b, a)) {
        return NULL;
    }
    struct value *out = arena_alloc(arena, sizeof(*out));
    if (!out || !value_map_new(arena, out)) {
        no_memory(schema);
        return NULL;
    }
    for (size_t i = 0; i < a->map->count + b->map->count; i++) {
        bool is_first = i < a->map->count;
        const struct value_member *member =
            is_first ? &a->map->members[i] : &b->map->members[i - a->map->count];
        const struct value *other = value_map_get(is_first ? b : a, member->key.string);
        struct value both;
        if ((!is_first && other) || is_void(schema, member->key.string, a, b)) {
            continue;
        }
        bool is_good = span_is(member->key.string, "properties")
                           ? merge_properties(schema, a, b, &both)
                           : merge_values(schema, member, other, &both);
        if (!is_good) {
            return NULL;
        }
        if (!value_map_add(arena, out, member->key, both)) {
            no_memory(schema);
            return NULL;
        }
    }
    return out;
}
