/* SPDX-License-Identifier: MIT */
/*
 * Values as a chat template and a client's JSON know them: a tree with the order of members kept.
 *
 * Lists, maps and the bytes of strings belong to the arena that the tree was made in. A tree is
 * immutable once it is made, and then any thread may read it. Strings are UTF-8 and may hold NUL;
 * lengths and places in templates count code points; the length of a span counts bytes.
 *
 *     struct value messages;
 *     TRY(value_parse(text, &limits, arena, &messages, err));
 *     value_map_set(arena, &context, "messages", messages)
 */
#ifndef PTED_SERVER_TEXT_VALUE_VALUE_H
#define PTED_SERVER_TEXT_VALUE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/json.h"

enum value_kind {
    VALUE_NONE, /* zeroed memory is None */
    VALUE_BOOL,
    VALUE_INT,
    VALUE_LONG, /* an integer beyond int64: |string| has its digits */
    VALUE_DOUBLE,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_MAP,
    VALUE_OBJECT, /* only a template makes it while it renders; never in a tree of JSON */
};

/* Flags of values that only templates make. */
enum value_flags {
    VALUE_IS_SAFE = 1,     /* a string that the filter "safe" made */
    VALUE_IS_TUPLE = 2,    /* a list that prints as a tuple and equals no list */
    VALUE_IS_ITERATOR = 4, /* a list that is empty after it was walked once, and has no length */
    VALUE_IS_VIEW = 8,     /* a list that is the keys, values or items of a map */
    VALUE_IS_RANGE = 16,   /* a list that range() made */
};

struct value {
    enum value_kind kind;
    uint32_t flags; /* enum value_flags; 0 in every tree that others make */
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct span string;
        struct value_list *list;
        struct value_map *map;
        void *object;
    };
};

struct value_list {
    size_t count, capacity;
    struct value *items;
};

struct value_member {
    struct value key; /* a string in every tree of JSON */
    struct value value;
};

struct value_map {
    size_t count, capacity;
    struct value_member *members; /* in the order in which they came */
};

/* Limits of a text. */
struct value_limits {
    size_t bytes_max;    /* of the text */
    uint32_t values_max; /* values of any kind, keys not counted */
    uint16_t depth_max;  /* at most VALUE_DEPTH_MAX */
};

/* Levels of nesting: those who walk a tree go down by themselves. */
#define VALUE_DEPTH_MAX 160

#define VALUE_LIMITS_DEFAULT                                                                       \
    ((struct value_limits){                                                                        \
        .bytes_max = 16u << 20, .values_max = 1u << 20, .depth_max = VALUE_DEPTH_MAX})

/* ---- from JSON ------------------------------------------------------------------------------- */

/* Reads a text that holds one value and nothing behind it, as Python's json.loads() does: names may
 * repeat, numbers have any size, and half of a surrogate pair becomes U+FFFD. ST_INVALID:
 * malformed; ST_TOO_LARGE: beyond a limit or the arena's maximum; ST_EXHAUSTED: no memory. */
MUST_CHECK enum status value_parse(struct span text, const struct value_limits *limits,
                                   struct arena *arena, struct value *out, struct error *err);

/* ---- making ---------------------------------------------------------------------------------- */

struct value value_bool(bool boolean);
struct value value_int(int64_t integer);
struct value value_double(double number);

/* Makes a string of borrowed bytes: they must be UTF-8 and live as long as the tree. */
struct value value_string(struct span bytes);

/* Makes an empty list or map in |arena|; false: no memory. */
MUST_CHECK bool value_list_new(struct arena *arena, struct value *out);
MUST_CHECK bool value_map_new(struct arena *arena, struct value *out);

/* Appends |item|; false: no memory. */
MUST_CHECK bool value_list_add(struct arena *arena, struct value *list, struct value item);

/* Appends a member whose key is not in |map| yet; false: no memory. */
MUST_CHECK bool value_map_add(struct arena *arena, struct value *map, struct value key,
                              struct value value);

/* Sets the member |key|, in place if there is one; borrows the text of |key|. False: no memory. */
MUST_CHECK bool value_map_set(struct arena *arena, struct value *map, const char *key,
                              struct value value);

/* ---- asking ---------------------------------------------------------------------------------- */

/* Returns the member of a map, or NULL: there is none, or |map| is no map. */
const struct value *value_map_get(const struct value *map, struct span key);

/* Returns "a string", "a list" and so on, for "expected ..., got ...". */
const char *value_kind_text(enum value_kind kind);

/* ---- printing -------------------------------------------------------------------------------- */

/* How Python's json.dumps() prints: its arguments of the same names. */
struct value_json_style {
    bool is_ascii;                      /* ensure_ascii: \uXXXX for characters other than ASCII */
    bool is_sorted;                     /* sort_keys */
    int32_t indent;                     /* blanks a level; negative: one line */
    struct span indent_text;            /* instead of blanks, if not empty */
    struct span item_text, member_text; /* separators */
};

/* json.dumps(x, ensure_ascii=False), which is also what `tojson` of chat templates prints. */
#define VALUE_JSON_DEFAULT                                                                         \
    ((struct value_json_style){.indent = -1,                                                       \
                               .item_text = {(const uint8_t *)", ", 2},                            \
                               .member_text = {(const uint8_t *)": ", 2}})

/* Appends |value| byte for byte as Python does: NaN and the infinities are bare words, floats are
 * the shortest text with Python's exponents. Fails with ST_INVALID for a VALUE_OBJECT, and with the
 * error of |out|. */
MUST_CHECK enum status value_print_json(const struct value *value,
                                        const struct value_json_style *style, struct buf *out,
                                        struct error *err);

/* Appends |number| as Python's repr() spells it: 1.0, 1e+16, 1e-05, inf, nan. */
void value_print_double(double number, struct buf *out);

#endif
