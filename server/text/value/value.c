/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include "base/array.h"
#include "base/table.h"
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
    static const char *const texts[] = {"none",       "a boolean", "an integer",
                                        "an integer", "a float",   "a string",
                                        "a list",     "a map",     "an object"};
    TABLE_ENDS_WITH(texts, VALUE_OBJECT);
    return texts[kind];
}
