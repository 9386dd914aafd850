/* SPDX-License-Identifier: MIT */
/* JSON Schemas: where their parts come together. */
#include "config.h"

#include <string.h>

#include "server/text/grammar/grammar_schema_priv.h"

#define TEXT_BYTES_MAX (1u << 20)
#define ONE_OF_MAX 64
#define WORK_OF_KEYWORD 128 /* to read one */
#define RESOLVE_MAX 16      /* references that lead to references */

/* ---- paths and counts ------------------------------------------------------------------------ */

size_t schema_enter(struct schema *schema, struct span name)
{
    size_t len = strlen(schema->path);
    size_t room = SCHEMA_PATH_BYTES - len - 1;
    size_t more = name.len < 40 ? name.len : 40;
    if (room > more + 1) {
        schema->path[len] = '.';
        memcpy(schema->path + len + 1, name.ptr, more);
        schema->path[len + 1 + more] = 0;
    }
    return len;
}

void schema_leave(struct schema *schema, size_t len)
{
    schema->path[len] = 0;
}

bool schema_read_count(struct schema *schema, const struct value *value, const char *name,
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

const struct part *schema_refuse_all(struct schema *schema, const char *what)
{
    schema->is_impossible |= schema->builder->status == ST_OK;
    return schema_refuse(schema, ST_INVALID, what);
}

const struct part *schema_literal(struct schema *schema, const struct value *value)
{
    struct buf text;
    if (value->kind == VALUE_NONE || value->kind == VALUE_BOOL) {
        return schema_const(schema, value->kind == VALUE_NONE ? GRAMMAR_NULL
                                    : value->boolean          ? GRAMMAR_TRUE
                                                              : GRAMMAR_FALSE);
    }
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

const struct part *schema_parse_at(struct schema *schema, const char *name,
                                   const struct value *value)
{
    size_t len = schema_enter(schema, span_str(name));
    uint32_t rule = grammar_rule_new(schema->builder);
    grammar_rule_set(schema->builder, rule, schema_parse(schema, value));
    schema_leave(schema, len);
    return grammar_rule(schema->builder, rule);
}

bool schema_check_keywords(struct schema *schema, const struct value *value, const char *known)
{
    for (size_t i = 0; i < value->map->count; i++) {
        struct span key = value->map->members[i].key.string;
        if (!schema_is_note(key) && !schema_is_one_of(key, known)) {
            grammar_refuse(schema->builder, ST_UNSUPPORTED,
                           "the keyword '%.*s' is not supported here", SPAN_SHORT(key));
            return false;
        }
    }
    return true;
}

/* ---- references ------------------------------------------------------------------------------ */

/* NULL: refused. */
static const struct value *find(struct schema *schema, const struct value *reference)
{
    if (!schema_is_reference(reference)) {
        schema_refuse(schema, ST_UNSUPPORTED, "'$ref' leads to places of this schema");
        return NULL;
    }
    const struct value *at = schema_follow(&schema->work, schema->root, reference);
    if (!at) {
        schema_refuse(schema, ST_INVALID, "'$ref' leads nowhere");
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
    if (schema->reference_count == SCHEMA_REFERENCES_MAX) {
        return schema_refuse(schema, ST_TOO_LARGE, "too many references");
    }
    uint32_t rule = grammar_rule_new(schema->builder);
    schema->references[schema->reference_count++] = (struct schema_reference){target, rule};
    const struct part *part = schema_parse(schema, target);
    grammar_rule_set(schema->builder, rule, part);
    return part ? grammar_rule(schema->builder, rule) : NULL;
}

/* ---- schemas that hold at one time ----------------------------------------------------------- */

/* |value| without the keywords of |left_out|, and without notes, in the builder's arena. NULL: no
 * memory. */
static const struct value *without(struct schema *schema, const struct value *value,
                                   const char *left_out)
{
    struct arena *arena = &schema->builder->arena;
    struct value *out = arena_alloc(arena, sizeof(*out));
    bool is_good = out && value_map_new(arena, out);
    for (size_t i = 0; i < value->map->count && is_good; i++) {
        const struct value_member *member = &value->map->members[i];
        if (!schema_is_note(member->key.string) &&
            !schema_is_one_of(member->key.string, left_out)) {
            is_good = value_map_add(arena, out, member->key, member->value);
        }
    }
    if (!is_good) {
        schema_refuse(schema, ST_TOO_LARGE, "a grammar takes too much memory");
    }
    return is_good ? out : NULL;
}

/* |out| with what |more| says, which may be any schema. NULL: refused. */
static const struct value *merge_one(struct schema *schema, const struct value *out,
                                     const struct value *more)
{
    if (more->kind == VALUE_BOOL && more->boolean) {
        return out;
    }
    if (more->kind != VALUE_MAP) {
        schema_refuse(schema, ST_INVALID, "a schema is a map or true");
        return NULL;
    }
    more = schema_flatten(schema, more);
    return more ? schema_merge(schema, out, more) : NULL;
}

const struct value *schema_flatten(struct schema *schema, const struct value *value)
{
    const struct value *reference = schema_get(value, "$ref"), *all = schema_get(value, "allOf");
    if (!reference && !all) {
        return value;
    }
    if (all && (all->kind != VALUE_LIST || all->list->count == 0)) {
        schema_refuse(schema, ST_INVALID, "'allOf': expected a list that is not empty");
        return NULL;
    }
    if (schema->depth == GRAMMAR_NESTING_MAX) {
        schema_refuse(schema, ST_TOO_LARGE, "nested too deep");
        return NULL;
    }
    if (!schema_spend(&schema->work, (value->map->count + 1) * WORK_OF_KEYWORD)) {
        return NULL;
    }
    schema->depth++;
    const struct value *out = without(schema, value, " $ref allOf nullable ");
    const struct value *target = reference ? find(schema, reference) : NULL;
    if (reference) {
        out = out && target ? merge_one(schema, out, target) : NULL;
    }
    for (size_t i = 0; all && i < all->list->count && out; i++) {
        out = merge_one(schema, out, &all->list->items[i]);
    }
    schema->depth--;
    return out;
}

/* ---- choices --------------------------------------------------------------------------------- */

/* What there was before an alternative. */
struct before {
    size_t reference_count, path_len;
    uint32_t rule_count;
    int depth;
};

static struct before note_before(const struct schema *schema)
{
    return (struct before){schema->reference_count, strlen(schema->path),
                           schema->builder->rule_count, schema->depth};
}

/* Goes back if the alternative was refused because no value fits it. False: it was not. */
static bool leave_out(struct schema *schema, const struct before *before)
{
    struct grammar_builder *builder = schema->builder;
    if (builder->status == ST_OK || !schema->is_impossible) {
        return false;
    }
    builder->status = ST_OK;
    schema->is_impossible = false;
    schema->reference_count = before->reference_count;
    schema->depth = before->depth;
    schema_leave(schema, before->path_len);
    for (uint32_t i = before->rule_count; i < builder->rule_count; i++) {
        if (!builder->rules[i]) {
            grammar_rule_set(builder, i, grammar_never(builder)); /* nothing leads to it */
        }
    }
    return true;
}

/* |out| or |item|, unless no value fits that. NULL: refused. */
static const struct part *add_choice(struct schema *schema, const struct part *out,
                                     const struct value *item, const struct value *beside)
{
    struct before before = note_before(schema);
    if (beside->map->count > 0) {
        item = merge_one(schema, beside, item);
    }
    const struct part *one = item ? schema_parse(schema, item) : NULL;
    if (schema->builder->status == ST_OK) {
        return schema_either(schema, out, one);
    }
    return leave_out(schema, &before) ? out : NULL;
}

/* The alternatives of |list|, each with what |beside| says, which is a map without members where
 * nothing stands beside them. */
static const struct part *parse_choice(struct schema *schema, const char *keyword,
                                       const struct value *list, const struct value *beside)
{
    const struct part *out = grammar_never(schema->builder);
    size_t len = schema_enter(schema, span_str(keyword));
    for (size_t i = 0; i < list->list->count && out; i++) {
        const struct value *item = &list->list->items[i];
        if (!schema_is_never(&schema->work, item)) {
            out = add_choice(schema, out, item, beside);
        }
    }
    if (out && out->kind == PART_NEVER) {
        out = schema_refuse_all(schema, "no value fits one of the schemas");
    }
    schema_leave(schema, len);
    return out;
}

/* No value fits two of the |count| alternatives. */
static bool check_one_of(struct schema *schema, const struct value *const *items, size_t count,
                         struct span tag)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!schema_are_disjoint(&schema->work, items[k], items[i], tag)) {
                schema_refuse(schema, ST_UNSUPPORTED,
                              "a value could fit two schemas of 'oneOf': 'anyOf' lets it");
                return false;
            }
        }
    }
    return true;
}

/* Each alternative needs the member that "discriminator" names. */
static const struct value *need_tag(struct schema *schema, const struct value *item,
                                    struct span tag)
{
    struct arena *arena = &schema->builder->arena;
    struct value *more = arena_alloc(arena, sizeof(*more)), required;
    const struct value *properties = schema_get(item, "properties");
    if (tag.len == 0 || !properties || properties->kind != VALUE_MAP ||
        !schema_spend_texts(&schema->work, properties->map->count, tag) ||
        !value_map_get(properties, tag)) {
        return item;
    }
    if (!more || !value_map_new(arena, more) || !value_list_new(arena, &required) ||
        !value_list_add(arena, &required, value_string(tag)) ||
        !value_map_set(arena, more, "required", required)) {
        schema_refuse(schema, ST_TOO_LARGE, "a grammar takes too much memory");
        return NULL;
    }
    return schema_merge(schema, item, more);
}

static const struct part *parse_one_of(struct schema *schema, const struct value *list,
                                       const struct value *beside, const struct value *tag)
{
    static struct value_map none;
    static const struct value nothing = {.kind = VALUE_MAP, .map = &none};
    const struct value *items[ONE_OF_MAX];
    const struct part *out = grammar_never(schema->builder);
    size_t count = 0;
    tag = tag ? schema_get(tag, "propertyName") : NULL;
    struct span name = tag && tag->kind == VALUE_STRING ? tag->string : span_str("");
    if (list->list->count > ONE_OF_MAX) {
        return schema_refuse(schema, ST_TOO_LARGE, "'oneOf' is supported with up to 64 schemas");
    }
    for (size_t i = 0; i < list->list->count; i++) {
        const struct value *item = &list->list->items[i];
        if (schema_is_never(&schema->work, item)) {
            continue;
        }
        bool is_map = item->kind == VALUE_MAP;
        struct before before = note_before(schema);
        item = is_map || beside->map->count > 0 ? merge_one(schema, beside, item) : item;
        item = item && is_map ? need_tag(schema, item, name) : item;
        if (schema->builder->status == ST_OK) {
            items[count++] = item;
        } else if (!leave_out(schema, &before)) {
            return NULL;
        }
    }
    if (!check_one_of(schema, items, count, name)) {
        return NULL;
    }
    size_t len = schema_enter(schema, span_str("oneOf"));
    for (size_t i = 0; i < count && out; i++) {
        const struct value *whole = &list->list->items[i];
        bool may_share = count == list->list->count && beside->map->count == 0 && name.len == 0;
        out = add_choice(schema, out, may_share ? whole : items[i], &nothing);
    }
    if (out && out->kind == PART_NEVER) {
        out = schema_refuse_all(schema, "no value fits one of the schemas");
    }
    schema_leave(schema, len);
    return out;
}

static const struct part *parse_choices(struct schema *schema, const struct value *value)
{
    const struct value *any = schema_get(value, "anyOf"), *one = schema_get(value, "oneOf");
    const struct value *list = any ? any : one;
    const struct value *beside = without(schema, value, any ? " anyOf " : " oneOf ");
    if (list->kind != VALUE_LIST || list->list->count == 0) {
        return schema_refuse(schema, ST_INVALID, "expected a list of schemas that is not empty");
    }
    if (!beside) {
        return NULL;
    }
    return any ? parse_choice(schema, "anyOf", any, beside)
               : parse_one_of(schema, one, beside, schema_get(value, "discriminator"));
}

/* ---- values and types ------------------------------------------------------------------------ */

/* The values of "enum", or the one of "const", that "type" lets through. */
static const struct part *parse_values(struct schema *schema, const struct value *value)
{
    const struct part *out = grammar_never(schema->builder);
    const struct value *constant = schema_get(value, "const"), *list = schema_get(value, "enum");
    if (!schema_check_keywords(schema, value, " type enum const ")) {
        return NULL;
    }
    if (list && (list->kind != VALUE_LIST || list->list->count == 0)) {
        return schema_refuse(schema, ST_INVALID, "'enum' is a list that is not empty");
    }
    size_t count = list ? list->list->count : 1;
    for (size_t i = 0; i < count && out; i++) {
        const struct value *one = list ? &list->list->items[i] : constant;
        bool fits = schema_fits_type(one, schema_get(value, "type")) &&
                    (!constant || schema_are_equal(&schema->work, one, constant));
        out = fits ? schema_either(schema, out, schema_literal(schema, one)) : out;
    }
    return out && out->kind == PART_NEVER
               ? schema_refuse_all(schema, "no value of 'enum' or 'const' is of the 'type'")
               : out;
}

static const struct part *parse_type(struct schema *schema, const struct value *value,
                                     const struct value *type)
{
    struct span name = type->kind == VALUE_STRING ? type->string : span_str("");
    if (span_is(name, "object")) {
        return schema_parse_map(schema, value);
    }
    if (span_is(name, "array")) {
        return schema_parse_list(schema, value);
    }
    if (span_is(name, "string")) {
        return schema_parse_string(schema, value);
    }
    if (span_is(name, "integer") || span_is(name, "number")) {
        return schema_parse_number(schema, value, span_is(name, "integer"));
    }
    if (span_is(name, "boolean")) {
        return schema_either(schema, schema_const(schema, GRAMMAR_TRUE),
                             schema_const(schema, GRAMMAR_FALSE));
    }
    if (span_is(name, "null")) {
        return schema_const(schema, GRAMMAR_NULL);
    }
    return schema_refuse(schema, ST_INVALID, "there is no such 'type'");
}

static const struct part *parse_types(struct schema *schema, const struct value *value,
                                      const struct value *types)
{
    const struct part *out = grammar_never(schema->builder);
    if (types->kind != VALUE_LIST) {
        return parse_type(schema, value, types);
    }
    if (types->list->count == 0) {
        return schema_refuse(schema, ST_INVALID, "'type' is a list that is not empty");
    }
    for (size_t i = 0; i < types->list->count && out; i++) {
        if (!schema_spend(&schema->work, value->map->count * WORK_OF_KEYWORD)) {
            return NULL;
        }
        out = schema_either(schema, out, parse_type(schema, value, &types->list->items[i]));
    }
    return out;
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct part *parse_keywords(struct schema *schema, const struct value *value)
{
    const struct value *type = schema_get(value, "type"), *nullable = schema_get(value, "nullable");
    if (nullable && nullable->kind == VALUE_BOOL && nullable->boolean) {
        const struct value *rest = without(schema, value, " nullable ");
        return rest && schema_is_null(rest) ? schema_const(schema, GRAMMAR_NULL)
               : rest ? schema_either(schema, schema_const(schema, GRAMMAR_NULL),
                                      schema_parse(schema, rest))
                      : NULL;
    }
    if (schema_get(value, "$ref") && schema_says_just(value, " $ref ")) {
        return parse_reference(schema, schema_get(value, "$ref"));
    }
    if (schema_get(value, "$ref") || schema_get(value, "allOf")) {
        const struct value *flat = schema_sole(value);
        flat = flat ? flat : schema_flatten(schema, value);
        return flat ? schema_parse(schema, flat) : NULL;
    }
    if (schema_get(value, "not")) {
        return schema_refuse(schema, ST_UNSUPPORTED,
                             "'not' is supported as {} alone, of a property that is not required");
    }
    if (schema_get(value, "anyOf") || schema_get(value, "oneOf")) {
        return parse_choices(schema, value);
    }
    if (schema_get(value, "const") || schema_get(value, "enum")) {
        return parse_values(schema, value);
    }
    struct value implied = value_string(span_str(schema_implied_type(value)));
    if (type || implied.string.len > 0) {
        return parse_types(schema, value, type ? type : &implied);
    }
    return grammar_rule(schema->builder, schema->json.any);
}

const struct part *schema_parse(struct schema *schema, const struct value *value)
{
    if (value->kind == VALUE_BOOL && value->boolean) {
        return grammar_rule(schema->builder, schema->json.any);
    }
    if (value->kind != VALUE_MAP) {
        return schema_refuse(schema, ST_INVALID, "a schema is a map or true");
    }
    if (schema->depth == GRAMMAR_NESTING_MAX) {
        return schema_refuse(schema, ST_TOO_LARGE, "nested too deep");
    }
    if (!schema_spend(&schema->work, (value->map->count + 1) * WORK_OF_KEYWORD)) {
        return NULL;
    }
    schema->depth++;
    const struct part *part = schema_check_keywords(schema, value, schema_keywords)
                                  ? parse_keywords(schema, value)
                                  : NULL;
    schema->depth--;
    return part;
}

/* ---- ways in --------------------------------------------------------------------------------- */

/* The source of the rule of the whole text: a schema, tools, or neither. */
struct source {
    const struct value *schema, *tools;
    struct span name; /* of a tool */
    const struct grammar_call_form *form;
};

static enum status finish(const struct source *source, struct grammar **out, struct error *err)
{
    struct grammar_builder builder;
    struct schema schema = {.builder = &builder, .root = source->schema, .work.builder = &builder};
    grammar_builder_init(&builder, err);
    builder.path = source->schema ? schema.path : NULL;
    uint32_t rule = grammar_rule_new(&builder);
    grammar_json_init(&schema.json, &builder, source->form && source->form->is_python);
    if (builder.status == ST_OK) {
        grammar_rule_set(
            &builder, rule,
            source->schema  ? schema_parse(&schema, source->schema)
            : source->tools ? schema_parse_calls(&schema, source->tools, source->name, source->form)
                            : grammar_json_object(&schema.json));
    }
    return grammar_builder_finish(&builder, out);
}

enum status grammar_parse_schema(const struct value *schema, struct grammar **out,
                                 struct error *err)
{
    return finish(&(struct source){.schema = schema}, out, err);
}

enum status grammar_parse_call(const struct value *tools, struct span name,
                               const struct grammar_call_form *form, struct grammar **out,
                               struct error *err)
{
    if (tools->kind != VALUE_LIST) {
        return error_set(err, ST_INVALID, "expected a list");
    }
    return finish(&(struct source){.tools = tools, .name = name, .form = form}, out, err);
}

enum status grammar_parse_object(struct grammar **out, struct error *err)
{
    return finish(&(struct source){0}, out, err);
}
