/* SPDX-License-Identifier: MIT */
/* What a JSON Schema says of values, without their grammar: are two schemas disjoint? */
#include "config.h"

#include "server/text/schema_priv.h"

const struct value *schema_get(const struct value *schema, const char *name)
{
    return value_map_get(schema, span_str(name));
}

bool schema_requires(const struct value *required, const struct value *key)
{
    for (size_t i = 0; required && i < required->list->count; i++) {
        const struct value *name = &required->list->items[i];
        if (name->kind == VALUE_STRING && span_equal(name->string, key->string)) {
            return true;
        }
    }
    return false;
}

/* The kinds of values that a schema lets through, as bits. */
enum { OF_NULL = 1, OF_BOOL = 2, OF_NUMBER = 4, OF_STRING = 8, OF_LIST = 16, OF_MAP = 32 };
#define OF_ALL 63u

static unsigned kind_of(const struct value *value)
{
    switch (value->kind) {
    case VALUE_NONE:
        return OF_NULL;
    case VALUE_BOOL:
        return OF_BOOL;
    case VALUE_INT:
    case VALUE_DOUBLE:
        return OF_NUMBER;
    case VALUE_STRING:
        return OF_STRING;
    case VALUE_LIST:
        return OF_LIST;
    case VALUE_MAP:
        return OF_MAP;
    default:
        return OF_ALL;
    }
}

static unsigned kind_of_type(const struct value *type)
{
    static const char *const names[] = {"null",  "boolean", "number", "string",
                                        "array", "object",  "integer"};
    for (unsigned i = 0; i < 7; i++) {
        if (type->kind == VALUE_STRING && span_is(type->string, names[i])) {
            return i == 6 ? OF_NUMBER : 1u << i;
        }
    }
    return OF_ALL;
}

static unsigned kinds_of(const struct value *value)
{
    const struct value *type = schema_get(value, "type"), *constant = schema_get(value, "const");
    const struct value *list = schema_get(value, "enum");
    unsigned kinds = 0;
    if (constant) {
        return kind_of(constant);
    }
    if (list && list->kind == VALUE_LIST) {
        for (size_t i = 0; i < list->list->count; i++) {
            kinds |= kind_of(&list->list->items[i]);
        }
        return kinds;
    }
    if (type && type->kind == VALUE_LIST) {
        for (size_t i = 0; i < type->list->count; i++) {
            kinds |= kind_of_type(&type->list->items[i]);
        }
        return kinds;
    }
    return type ? kind_of_type(type) : schema_get(value, "properties") ? OF_MAP : OF_ALL;
}

/* The strings that a schema lets through, if it names them: |*out_count| of them at |*out|. */
static bool strings_of(const struct value *value, const struct value **out, size_t *out_count)
{
    const struct value *constant = value->kind == VALUE_MAP ? schema_get(value, "const") : NULL;
    const struct value *list = value->kind == VALUE_MAP ? schema_get(value, "enum") : NULL;
    if (constant) {
        *out = constant;
        *out_count = 1;
    } else if (list && list->kind == VALUE_LIST) {
        *out = list->list->items;
        *out_count = list->list->count;
    } else {
        return false;
    }
    for (size_t i = 0; i < *out_count; i++) {
        if ((*out)[i].kind != VALUE_STRING) {
            return false;
        }
    }
    return true;
}

static bool have_other_strings(const struct value *a, const struct value *b)
{
    const struct value *mine, *other;
    size_t count, other_count;
    if (!strings_of(a, &mine, &count) || !strings_of(b, &other, &other_count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < other_count; k++) {
            if (span_equal(mine[i].string, other[k].string)) {
                return false;
            }
        }
    }
    return true;
}

/* Both maps need a member whose texts differ: {"kind": {"const": "circle"}}. */
static bool have_other_members(const struct value *a, const struct value *b)
{
    const struct value *mine = schema_get(a, "properties"), *other = schema_get(b, "properties");
    const struct value *mine_needed = schema_get(a, "required"),
                       *other_needed = schema_get(b, "required");
    if (!mine || !other || mine->kind != VALUE_MAP || other->kind != VALUE_MAP || !mine_needed ||
        !other_needed || mine_needed->kind != VALUE_LIST || other_needed->kind != VALUE_LIST) {
        return false;
    }
    for (size_t i = 0; i < mine->map->count; i++) {
        const struct value *key = &mine->map->members[i].key;
        const struct value *value = value_map_get(other, key->string);
        if (value && schema_requires(mine_needed, key) && schema_requires(other_needed, key) &&
            have_other_strings(&mine->map->members[i].value, value)) {
            return true;
        }
    }
    return false;
}

bool schema_are_disjoint(const struct value *a, const struct value *b)
{
    return a->kind == VALUE_MAP && b->kind == VALUE_MAP &&
           ((kinds_of(a) & kinds_of(b)) == 0 || have_other_strings(a, b) ||
            have_other_members(a, b));
}
