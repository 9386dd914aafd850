/* SPDX-License-Identifier: MIT */
/* Questions about the values of a JSON Schema, without their grammar: may a value fit two schemas,
 * is any value a map? */
#include "config.h"

#include "server/text/grammar/schema_priv.h"

#include <string.h>

/* References and alternatives that are looked at to find out what values are, some of them again;
 * and how deep: schemas that were parsed have fewer levels and references. */
#define LOOKS_MAX (1u << 14)
#define LOOKS_DEPTH_MAX 600

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

/* ---- references ------------------------------------------------------------------------------ */

bool schema_is_reference(const struct value *reference)
{
    struct span text = reference->kind == VALUE_STRING ? reference->string : span_str("");
    return text.len > 0 && text.ptr[0] == '#' && !memchr(text.ptr, '~', text.len) &&
           !memchr(text.ptr, '%', text.len);
}

const struct value *schema_follow(const struct value *root, const struct value *reference)
{
    const struct value *at = root;
    if (!schema_is_reference(reference)) {
        return NULL;
    }
    struct span rest = span_of(reference->string.ptr + 1, reference->string.len - 1);
    while (at && rest.len > 0) {
        rest = span_of(rest.ptr + 1, rest.len - 1);
        const uint8_t *end = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        at = value_map_get(at, span_of(rest.ptr, len));
        rest = span_of(rest.ptr + len, rest.len - len);
    }
    return at;
}

/* ---- maps ------------------------------------------------------------------------------------ */

bool schema_says_nothing(const struct value *schema)
{
    static const char *const words[] = {"$ref", "anyOf", "oneOf",     "const",
                                        "enum", "type",  "properties"};
    bool says_any = false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        says_any |= schema_get(schema, words[i]) != NULL;
    }
    return !says_any;
}

static bool is_of_maps(const struct value *root, const struct value *schema, uint32_t depth,
                       uint32_t *looks)
{
    if (schema->kind != VALUE_MAP || depth == LOOKS_DEPTH_MAX || ++*looks > LOOKS_MAX) {
        return false;
    }
    const struct value *reference = schema_get(schema, "$ref");
    const struct value *any = schema_get(schema, "anyOf");
    if (reference) {
        const struct value *target = schema_follow(root, reference);
        return target && is_of_maps(root, target, depth + 1, looks);
    }
    any = any ? any : schema_get(schema, "oneOf");
    if (!any || any->kind != VALUE_LIST) {
        return kinds_of(schema) == OF_MAP;
    }
    bool are_all = any->list->count > 0;
    for (size_t i = 0; i < any->list->count && are_all; i++) {
        are_all = is_of_maps(root, &any->list->items[i], depth + 1, looks);
    }
    return are_all;
}

bool schema_is_of_maps(const struct value *root)
{
    uint32_t looks = 0;
    return is_of_maps(root, root, 0, &looks);
}
