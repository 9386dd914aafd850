/* SPDX-License-Identifier: MIT */
/* Questions about the values of a JSON Schema, without their grammar: may a value fit two schemas,
 * is any value a map? */
#include "config.h"

#include <math.h>
#include <string.h>

#include "server/text/grammar/grammar_priv.h"
#include "server/text/grammar/schema_priv.h"

#define WORK_MAX (1u << 23) /* comparisons of a few nanoseconds */
#define WORK_OF_KEYWORD 32  /* to find out of which kinds values are */
#define LOOKS_DEPTH_MAX 600 /* schemas that were parsed have fewer levels and references */

#define NAME_BYTES 1024 /* of a step of a reference */

bool schema_spend(struct schema_work *work, size_t comparisons)
{
    size_t left = WORK_MAX - work->spent;
    work->spent += comparisons < left ? comparisons : left;
    if (comparisons >= left) {
        grammar_refuse(work->builder, ST_TOO_LARGE, "a schema takes too much work");
    }
    return comparisons < left;
}

bool schema_spend_texts(struct schema_work *work, size_t count, struct span text)
{
    return schema_spend(work, count * (text.len / 32 + 1));
}

const struct value *schema_get(const struct value *schema, const char *name)
{
    return value_map_get(schema, span_str(name));
}

bool schema_requires(struct schema_work *work, const struct value *required,
                     const struct value *key)
{
    if (!required || !schema_spend_texts(work, required->list->count, key->string)) {
        return false;
    }
    for (size_t i = 0; i < required->list->count; i++) {
        const struct value *name = &required->list->items[i];
        if (name->kind == VALUE_STRING && span_equal(name->string, key->string)) {
            return true;
        }
    }
    return false;
}

/* ---- keywords -------------------------------------------------------------------------------- */

const char schema_keywords[] =
    " type enum const properties required additionalProperties propertyNames patternProperties "
    "minProperties maxProperties unevaluatedProperties items prefixItems additionalItems minItems "
    "maxItems uniqueItems minLength maxLength pattern format minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf nullable $ref anyOf oneOf allOf not discriminator ";

bool schema_is_one_of(struct span name, const char *list)
{
    char word[48];
    if (name.len > sizeof(word) - 3 || memchr(name.ptr, ' ', name.len) ||
        memchr(name.ptr, 0, name.len)) {
        return false;
    }
    word[0] = ' ';
    memcpy(word + 1, name.ptr, name.len);
    word[name.len + 1] = ' ';
    word[name.len + 2] = 0;
    return strstr(list, word) != NULL;
}

bool schema_is_note(struct span keyword)
{
    static const char notes[] =
        " title description default example examples $schema $id $comment $anchor $vocabulary id "
        "deprecated readOnly writeOnly $defs definitions contentEncoding contentMediaType "
        "contentSchema externalDocs xml ";
    return (keyword.len > 2 && memcmp(keyword.ptr, "x-", 2) == 0) ||
           schema_is_one_of(keyword, notes);
}

bool schema_says_just(const struct value *schema, const char *keywords)
{
    for (size_t i = 0; i < schema->map->count; i++) {
        struct span key = schema->map->members[i].key.string;
        if (!schema_is_note(key) && !schema_is_one_of(key, keywords)) {
            return false;
        }
    }
    return true;
}

const struct value *schema_sole(const struct value *schema)
{
    const struct value *all = schema_get(schema, "allOf");
    bool is_sole = all && all->kind == VALUE_LIST && all->list->count == 1;
    return is_sole && schema_says_just(schema, " allOf ") ? &all->list->items[0] : NULL;
}

bool schema_is_never(struct schema_work *work, const struct value *schema)
{
    if (schema && schema->kind == VALUE_MAP && !schema_spend(work, schema->map->count)) {
        return false;
    }
    const struct value *no = schema && schema->kind == VALUE_MAP ? schema_get(schema, "not") : NULL;
    bool is_all = no && ((no->kind == VALUE_BOOL && no->boolean) ||
                         (no->kind == VALUE_MAP && no->map->count == 0));
    return is_all || (schema && schema->kind == VALUE_BOOL && !schema->boolean);
}

bool schema_is_null(const struct value *schema)
{
    const struct value *list = schema_get(schema, "enum");
    return list && list->kind == VALUE_LIST && list->list->count == 1 &&
           list->list->items[0].kind == VALUE_NONE;
}

const char *schema_implied_type(const struct value *schema)
{
    static const char *const of[][2] = {
        {"object", " properties required additionalProperties propertyNames patternProperties "
                   "minProperties maxProperties "},
        {"array", " items prefixItems minItems maxItems uniqueItems "},
        {"string", " minLength maxLength pattern format "},
        {"number", " minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "}};
    for (size_t t = 0; t < 4; t++) {
        for (size_t i = 0; i < schema->map->count; i++) {
            if (schema_is_one_of(schema->map->members[i].key.string, of[t][1])) {
                return of[t][0];
            }
        }
    }
    return "";
}

bool schema_are_equal(struct schema_work *work, const struct value *a, const struct value *b)
{
    bool is_text = a->kind == VALUE_STRING || a->kind == VALUE_LONG;
    if (a->kind != b->kind || !schema_spend_texts(work, 1, is_text ? a->string : span_str(""))) {
        return false;
    }
    switch (a->kind) {
    case VALUE_BOOL:
        return a->boolean == b->boolean;
    case VALUE_INT:
        return a->integer == b->integer;
    case VALUE_DOUBLE:
        return a->number == b->number;
    case VALUE_LONG:
    case VALUE_STRING:
        return span_equal(a->string, b->string);
    case VALUE_LIST: {
        bool is_same = a->list->count == b->list->count && a->flags == b->flags;
        for (size_t i = 0; is_same && i < a->list->count; i++) {
            is_same = schema_are_equal(work, &a->list->items[i], &b->list->items[i]);
        }
        return is_same;
    }
    case VALUE_MAP: {
        bool is_same = a->map->count == b->map->count;
        for (size_t i = 0; is_same && i < a->map->count; i++) {
            const struct value_member *one = &a->map->members[i], *two = &b->map->members[i];
            is_same = schema_spend_texts(work, 1, one->key.string) &&
                      span_equal(one->key.string, two->key.string) &&
                      schema_are_equal(work, &one->value, &two->value);
        }
        return is_same;
    }
    default:
        return true;
    }
}

/* ---- kinds of values ------------------------------------------------------------------------- */

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
    case VALUE_LONG:
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

static bool is_nullable(const struct value *schema)
{
    const struct value *nullable = schema_get(schema, "nullable");
    return nullable && nullable->kind == VALUE_BOOL && nullable->boolean;
}

/* Of what stands beside "nullable". */
static unsigned named_kinds_of(const struct value *value, bool is_implied)
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
    struct value implied = value_string(span_str(is_implied ? schema_implied_type(value) : ""));
    return type ? kind_of_type(type) : implied.string.len > 0 ? kind_of_type(&implied) : OF_ALL;
}

bool schema_fits_type(const struct value *value, const struct value *type)
{
    bool is_list = type && type->kind == VALUE_LIST;
    for (size_t i = 0; type && i < (is_list ? type->list->count : 1); i++) {
        const struct value *one = is_list ? &type->list->items[i] : type;
        bool is_whole = value->kind != VALUE_DOUBLE || one->kind != VALUE_STRING ||
                        !span_is(one->string, "integer") || value->number == floor(value->number);
        if (kind_of_type(one) & kind_of(value) && is_whole) {
            return true;
        }
    }
    return !type;
}

/* The kinds of the values that keep to the schema; |is_implied|: of those alone that its grammar
 * lets through. OF_ALL: they may be of any kind, or took too much work. */
static unsigned kinds_of(struct schema_work *work, const struct value *value, bool is_implied)
{
    const struct value *list = schema_get(value, "enum"), *type = schema_get(value, "type");
    size_t values = list && list->kind == VALUE_LIST ? list->list->count : 0;
    size_t types = type && type->kind == VALUE_LIST ? type->list->count : 0;
    if (!schema_spend(work, (value->map->count + types) * WORK_OF_KEYWORD + values)) {
        return OF_ALL;
    }
    return named_kinds_of(value, is_implied) | (is_nullable(value) ? OF_NULL : 0u);
}

bool schema_lets_null(struct schema_work *work, const struct value *schema)
{
    return !schema_get(schema, "anyOf") && !schema_get(schema, "oneOf") &&
           !schema_get(schema, "not") && kinds_of(work, schema, false) & OF_NULL;
}

/* The strings that a schema lets through, if it names them: |*out_count| of them at |*out|. */
static bool strings_of(struct schema_work *work, const struct value *value,
                       const struct value **out, size_t *out_count)
{
    if (value->kind != VALUE_MAP || !schema_spend(work, 2 * value->map->count)) {
        return false;
    }
    const struct value *constant = schema_get(value, "const"), *list = schema_get(value, "enum");
    if (constant) {
        *out = constant;
        *out_count = 1;
    } else if (list && list->kind == VALUE_LIST) {
        *out = list->list->items;
        *out_count = list->list->count;
    } else {
        return false;
    }
    bool is_good = schema_spend(work, *out_count);
    for (size_t i = 0; i < *out_count && is_good; i++) {
        if ((*out)[i].kind != VALUE_STRING) {
            return false;
        }
    }
    return is_good;
}

static bool have_other_strings(struct schema_work *work, const struct value *a,
                               const struct value *b)
{
    const struct value *mine, *other;
    size_t count, other_count;
    if (a->kind != VALUE_MAP || b->kind != VALUE_MAP || (is_nullable(a) && is_nullable(b))) {
        return false;
    }
    if (!strings_of(work, a, &mine, &count) || !strings_of(work, b, &other, &other_count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!schema_spend_texts(work, other_count, mine[i].string)) {
            return false;
        }
        for (size_t k = 0; k < other_count; k++) {
            if (span_equal(mine[i].string, other[k].string)) {
                return false;
            }
        }
    }
    return true;
}

static bool is_required(struct schema_work *work, const struct value *schema,
                        const struct value *key, struct span tag)
{
    const struct value *required = schema_get(schema, "required");
    return (tag.len > 0 && span_equal(key->string, tag)) ||
           schema_requires(work, required && required->kind == VALUE_LIST ? required : NULL, key);
}

/* Both maps need a member whose texts differ: {"kind": {"const": "circle"}}; or one needs a member
 * that the other does not let through. */
static bool have_other_members(struct schema_work *work, const struct value *a,
                               const struct value *b, struct span tag)
{
    const struct value *mine = schema_get(a, "properties"), *other = schema_get(b, "properties");
    if (kinds_of(work, a, true) != OF_MAP || kinds_of(work, b, true) != OF_MAP || !mine || !other ||
        mine->kind != VALUE_MAP || other->kind != VALUE_MAP) {
        return false;
    }
    bool is_closed = schema_is_never(work, schema_get(b, "additionalProperties")) &&
                     !schema_get(b, "patternProperties");
    for (size_t i = 0; i < mine->map->count; i++) {
        const struct value *key = &mine->map->members[i].key;
        if (!schema_spend_texts(work, other->map->count, key->string)) {
            return false;
        }
        const struct value *value = value_map_get(other, key->string);
        if (is_required(work, a, key, tag) &&
            (value ? is_required(work, b, key, tag) &&
                         have_other_strings(work, &mine->map->members[i].value, value)
                   : is_closed)) {
            return true;
        }
    }
    return false;
}

bool schema_are_disjoint(struct schema_work *work, const struct value *a, const struct value *b,
                         struct span tag)
{
    return a->kind == VALUE_MAP && b->kind == VALUE_MAP &&
           (((kinds_of(work, a, true) & kinds_of(work, b, false)) == 0 &&
             (kinds_of(work, a, false) & kinds_of(work, b, true)) == 0) ||
            have_other_strings(work, a, b) || have_other_members(work, a, b, tag) ||
            have_other_members(work, b, a, tag));
}

/* ---- references ------------------------------------------------------------------------------ */

bool schema_is_reference(const struct value *reference)
{
    struct span text = reference->kind == VALUE_STRING ? reference->string : span_str("");
    return text.len > 0 && text.ptr[0] == '#' && (text.len == 1 || text.ptr[1] == '/');
}

/* A step of a reference without its escapes. False: it has another one, or is too long. */
static bool unescape(struct span step, char out[NAME_BYTES], size_t *out_len)
{
    static const char *const escapes[] = {"~0", "~1", "%25", "%20", "%24", "%7B", "%7D"};
    static const char plain[] = "~/% ${}";
    *out_len = 0;
    for (size_t i = 0; i < step.len;) {
        size_t e = 0, len = 1;
        char byte = (char)step.ptr[i];
        if (byte == '~' || byte == '%') {
            for (; e < sizeof(plain) - 1; e++) {
                len = strlen(escapes[e]);
                if (len <= step.len - i && memcmp(step.ptr + i, escapes[e], len) == 0) {
                    break;
                }
            }
            byte = plain[e];
        }
        if (e == sizeof(plain) - 1 || *out_len == NAME_BYTES) {
            return false;
        }
        out[(*out_len)++] = byte;
        i += len;
    }
    return true;
}

/* A step into a list: "0", "12". */
static const struct value *item_at(const struct value *list, struct span step)
{
    size_t index = 0;
    for (size_t i = 0; i < step.len; i++) {
        if (step.ptr[i] < '0' || step.ptr[i] > '9' || index > 100000) {
            return NULL;
        }
        index = index * 10 + (size_t)(step.ptr[i] - '0');
    }
    return step.len > 0 && index < list->list->count ? &list->list->items[index] : NULL;
}

const struct value *schema_follow(struct schema_work *work, const struct value *root,
                                  const struct value *reference)
{
    const struct value *at = root;
    char name[NAME_BYTES];
    size_t name_len;
    if (!schema_is_reference(reference)) {
        return NULL;
    }
    struct span rest = span_of(reference->string.ptr + 1, reference->string.len - 1);
    while (at && rest.len > 0) {
        rest = span_of(rest.ptr + 1, rest.len - 1);
        const uint8_t *end = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        struct span step = span_of(rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len);
        size_t count = at->kind == VALUE_MAP ? at->map->count : 1;
        if (!schema_spend_texts(work, count, step) || !unescape(step, name, &name_len)) {
            return NULL;
        }
        rest = span_of(rest.ptr + step.len, rest.len - step.len);
        at =
            at->kind == VALUE_LIST ? item_at(at, step) : value_map_get(at, span_of(name, name_len));
    }
    return at;
}

/* ---- maps ------------------------------------------------------------------------------------ */

bool schema_says_nothing(const struct value *schema)
{
    for (size_t i = 0; schema->kind == VALUE_MAP && i < schema->map->count; i++) {
        if (!schema_is_note(schema->map->members[i].key.string)) {
            return false;
        }
    }
    return true;
}

static bool is_of_maps(struct schema_work *work, const struct value *root,
                       const struct value *schema, uint32_t depth)
{
    if (schema->kind != VALUE_MAP || depth == LOOKS_DEPTH_MAX ||
        !schema_spend(work, (schema->map->count + 1) * WORK_OF_KEYWORD) || is_nullable(schema)) {
        return false;
    }
    const struct value *reference = schema_get(schema, "$ref");
    const struct value *any = schema_get(schema, "anyOf");
    if (reference) {
        const struct value *target = schema_follow(work, root, reference);
        return target && is_of_maps(work, root, target, depth + 1);
    }
    const struct value *all = schema_get(schema, "allOf");
    for (size_t i = 0; all && all->kind == VALUE_LIST && i < all->list->count; i++) {
        if (is_of_maps(work, root, &all->list->items[i], depth + 1)) {
            return true;
        }
    }
    any = any ? any : schema_get(schema, "oneOf");
    if (kinds_of(work, schema, true) == OF_MAP) {
        return true;
    }
    if (!any || any->kind != VALUE_LIST) {
        return false;
    }
    bool are_all = any->list->count > 0;
    for (size_t i = 0; i < any->list->count && are_all; i++) {
        are_all = is_of_maps(work, root, &any->list->items[i], depth + 1);
    }
    return are_all;
}

bool schema_is_of_maps(struct schema_work *work, const struct value *root)
{
    return is_of_maps(work, root, root, 0);
}
