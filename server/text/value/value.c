/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/table.h"
#include "protocol/number.h"
#include "server/text/value/value.h"

/* ---- making ---------------------------------------------------------------------------------- */

struct value value_bool(bool boolean)
{
    return (struct value){.kind = VALUE_BOOL, .boolean = boolean};
}

struct value value_int(int64_t integer)
{
    return (struct value){.kind = VALUE_INT, .integer = integer};
}

struct value value_double(double number)
{
    return (struct value){.kind = VALUE_DOUBLE, .number = number};
}

struct value value_string(struct span bytes)
{
    return (struct value){.kind = VALUE_STRING, .string = bytes};
}

bool value_list_new(struct arena *arena, struct value *out)
{
    *out = (struct value){.kind = VALUE_LIST};
    out->list = arena_alloc(arena, sizeof(*out->list));
    return out->list != NULL;
}

bool value_map_new(struct arena *arena, struct value *out)
{
    *out = (struct value){.kind = VALUE_MAP};
    out->map = arena_alloc(arena, sizeof(*out->map));
    return out->map != NULL;
}

bool value_list_add(struct arena *arena, struct value *list, struct value item)
{
    struct value_list *to = list->list;
    if (!ARENA_ROOM(arena, to->items, to->capacity, to->count + 1)) {
        return false;
    }
    to->items[to->count++] = item;
    return true;
}

bool value_map_add(struct arena *arena, struct value *map, struct value key, struct value value)
{
    struct value_map *to = map->map;
    if (!ARENA_ROOM(arena, to->members, to->capacity, to->count + 1)) {
        return false;
    }
    to->members[to->count++] = (struct value_member){key, value};
    return true;
}

static struct value *find(const struct value *map, struct span key)
{
    for (size_t i = 0; i < map->map->count; i++) {
        struct value_member *member = &map->map->members[i];
        if (member->key.kind == VALUE_STRING && span_equal(member->key.string, key)) {
            return &member->value;
        }
    }
    return NULL;
}

bool value_map_set(struct arena *arena, struct value *map, const char *key, struct value value)
{
    struct value *old = find(map, span_str(key));
    if (old) {
        *old = value;
        return true;
    }
    return value_map_add(arena, map, value_string(span_str(key)), value);
}

const struct value *value_map_get(const struct value *map, struct span key)
{
    return map->kind == VALUE_MAP ? find(map, key) : NULL;
}

const char *value_kind_text(enum value_kind kind)
{
    static const char *const texts[] = {"none",     "a boolean", "an integer", "a float",
                                        "a string", "a list",    "a map",      "an object"};
    TABLE_ENDS_WITH(texts, VALUE_OBJECT);
    return texts[kind];
}

/* ---- from JSON ------------------------------------------------------------------------------- */

struct reader {
    struct json *in;
    const struct value_limits *limits;
    struct arena *arena;
    uint32_t values_left;
    uint16_t depth;
    struct error *err;
};

static enum status read_value(struct reader *reader, struct value *out);

static enum status no_memory(const struct reader *reader)
{
    return arena_fail(reader->arena, "the values of the text", reader->err);
}

static enum status decode(struct reader *reader, const struct json_string *string,
                          struct value *out)
{
    struct span text;
    TRY(json_string_copy(string, reader->arena, "the values of the text", &text, reader->err));
    *out = value_string(text);
    return ST_OK;
}

static enum status read_string(struct reader *reader, struct value *out)
{
    struct json_string string;
    TRY(json_read_string(reader->in, &string, reader->err));
    return decode(reader, &string, out);
}

static enum status read_list(struct reader *reader, struct value *out)
{
    if (!value_list_new(reader->arena, out)) {
        return no_memory(reader);
    }
    TRY(json_array(reader->in, reader->err));
    while (true) {
        struct value item;
        TRY(json_element(reader->in, reader->err));
        if (reader->in->is_closed) {
            return ST_OK;
        }
        TRY(read_value(reader, &item));
        if (!value_list_add(reader->arena, out, item)) {
            return no_memory(reader);
        }
    }
}

static enum status read_map(struct reader *reader, struct value *out)
{
    if (!value_map_new(reader->arena, out)) {
        return no_memory(reader);
    }
    TRY(json_object(reader->in, reader->err));
    while (true) {
        struct json_string name;
        struct value key, value;
        TRY(json_member(reader->in, &name, reader->err));
        if (reader->in->is_closed) {
            return ST_OK;
        }
        TRY(decode(reader, &name, &key));
        TRY(read_value(reader, &value));
        if (!value_map_add(reader->arena, out, key, value)) {
            return no_memory(reader);
        }
    }
}

/* Is the number that stands next a token without fraction and exponent? json_peek() was called. */
static bool is_whole(const struct json *in)
{
    for (const uint8_t *at = in->at; at < in->end; at++) {
        if (*at == '.' || *at == 'e' || *at == 'E' || *at == 'N' || *at == 'I') {
            return false;
        }
        if (*at != '-' && (*at < '0' || *at > '9')) {
            return true;
        }
    }
    return true;
}

static enum status read_number(struct reader *reader, struct value *out)
{
    if (is_whole(reader->in)) {
        *out = value_int(0);
        return json_read_i64(reader->in, &out->integer, reader->err);
    }
    *out = value_double(0);
    return json_read_f64(reader->in, &out->number, reader->err);
}

static enum status read_scalar(struct reader *reader, struct value *out)
{
    switch (json_peek(reader->in)) {
    case JSON_STRING:
        return read_string(reader, out);
    case JSON_NUMBER:
        return read_number(reader, out);
    case JSON_BOOL:
        *out = value_bool(false);
        return json_read_bool(reader->in, &out->boolean, reader->err);
    case JSON_NULL:
        *out = (struct value){.kind = VALUE_NONE};
        return json_read_null(reader->in, reader->err);
    default:
        return json_skip(reader->in, reader->err); /* says what is wrong */
    }
}

static enum status read_value(struct reader *reader, struct value *out)
{
    enum json_type type = json_peek(reader->in);
    if (reader->values_left == 0) {
        return json_fail(reader->in, reader->err, ST_TOO_LARGE, "more than %u values",
                         reader->limits->values_max);
    }
    reader->values_left--;
    *out = (struct value){.kind = VALUE_NONE};
    if (type != JSON_ARRAY && type != JSON_OBJECT) {
        return read_scalar(reader, out);
    }
    if (reader->depth == reader->limits->depth_max) {
        return json_fail(reader->in, reader->err, ST_TOO_LARGE, "nested deeper than %u levels",
                         (unsigned)reader->limits->depth_max);
    }
    reader->depth++;
    TRY(type == JSON_ARRAY ? read_list(reader, out) : read_map(reader, out));
    reader->depth--;
    return ST_OK;
}

enum status value_parse(struct span text, const struct value_limits *limits, struct arena *arena,
                        struct value *out, struct error *err)
{
    struct json in;
    struct reader reader = {
        .in = &in, .limits = limits, .arena = arena, .values_left = limits->values_max, .err = err};
    if (text.len > limits->bytes_max) {
        return error_set(err, ST_TOO_LARGE, "JSON of %zu bytes, at most %zu are read", text.len,
                         limits->bytes_max);
    }
    json_init(&in, text);
    TRY(read_value(&reader, out));
    return json_end(&in, err);
}
