/* SPDX-License-Identifier: MIT */
/*
 * One value of JSON (RFC 8259) that comes in pieces, as a model writes it: where it ends, and the
 * first byte that makes it none. Keys may repeat. Refused are NaN and its like, halves of pairs of
 * surrogates, and nesting deeper than TOOLS_JSON_DEPTH_MAX. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_JSON_H
#define PTED_SERVER_LANGUAGE_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define TOOLS_JSON_DEPTH_MAX 64

enum tools_json_state {
    TOOLS_JSON_VALUE, /* a value comes */
    TOOLS_JSON_ITEM,  /* a value, or the end of the list */
    TOOLS_JSON_KEY,   /* a key */
    TOOLS_JSON_FIRST, /* a key, or the end of the object */
    TOOLS_JSON_COLON,
    TOOLS_JSON_BEHIND, /* a comma, or the end of a list or an object */
    TOOLS_JSON_STRING,
    TOOLS_JSON_ESCAPE, /* behind a backslash */
    TOOLS_JSON_HEX,    /* digits of \uXXXX */
    TOOLS_JSON_HALF,   /* the backslash of a pair's second half */
    TOOLS_JSON_LATTER, /* its u */
    TOOLS_JSON_WORD,
    TOOLS_JSON_MINUS,
    TOOLS_JSON_ZERO,
    TOOLS_JSON_WHOLE,
    TOOLS_JSON_POINT,
    TOOLS_JSON_FRACTION,
    TOOLS_JSON_E,
    TOOLS_JSON_SIGN,
    TOOLS_JSON_EXPONENT,
    TOOLS_JSON_DONE, /* the value is whole */
    TOOLS_JSON_BAD,  /* it cannot become one */
};

/* All zero at first. */
struct tools_json {
    enum tools_json_state state;
    uint32_t depth;
    uint64_t objects; /* a bit for each level: it is an object */
    bool is_key;      /* the string */
    const char *word; /* its rest */
    uint32_t digits, code;
    bool is_latter; /* the code has to be the second half of a pair */
};

/* Reads on, and returns the bytes of |text| that belong to the value: all of it, unless the value
 * is DONE or BAD. */
size_t tools_json_read(struct tools_json *json, struct span text);

/* Tells that no more comes, which ends a number. */
void tools_json_end(struct tools_json *json);

#endif
