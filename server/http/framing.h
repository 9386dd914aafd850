/* SPDX-License-Identifier: MIT */
/*
 * Where a message of HTTP/1.x begins and ends, and which of its bytes are head, data or neither.
 * The bytes of a connection go through framing_next(), cut anywhere, and come back as parts: the
 * head for the parser of fields, the data of the body, events. Only this module decides on lengths;
 * the reader of fields cannot move an end.
 *
 * The table is framing.def. It is strict: lines end with CR LF, folding is refused, and the bytes
 * of a head and those beside the data of a chunked body are limited (--header-bytes-max,
 * --header-count-max). The module has no memory of its own and no callbacks.
 */
#ifndef PTED_SERVER_HTTP_FRAMING_H
#define PTED_SERVER_HTTP_FRAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "server/process/options.h"

enum framing_state {
#define STATE(name, ...) FRAMING_##name,
#include "server/http/framing.def"
    FRAMING_STATE_COUNT
};

/* Classes of bytes; framing_class() gives the class of each byte. */
enum framing_class {
    CLASS_CONTROL, /* and DEL */
    CLASS_CR,
    CLASS_LF,
    CLASS_SP,
    CLASS_TAB,
    CLASS_DIGIT,
    CLASS_HEX, /* the letters A to F and a to f */
    CLASS_H,
    CLASS_T,
    CLASS_P,
    CLASS_DOT,
    CLASS_TOKEN, /* all other characters of a token */
    CLASS_SLASH,
    CLASS_COLON,
    CLASS_SEMICOLON,
    CLASS_EQUALS,
    CLASS_QUOTE,
    CLASS_BACKSLASH,
    CLASS_DELIMITER, /* all other visible characters */
    CLASS_HIGH,      /* above 127 */
    FRAMING_CLASS_COUNT
};

/* A byte may cause an action beside a change of state; framing.c has a function for each action. */
enum framing_action {
    ACTION_REFUSE,
    ACTION_NONE,
    ACTION_BEGIN, /* this byte begins a message */
    ACTION_MAJOR,
    ACTION_MINOR,
    ACTION_NO_VERSION,
    ACTION_OTHER_VERSION,
    ACTION_FIELD, /* this byte begins a field line of the head or of the trailers */
    ACTION_TAB,
    ACTION_HEAD_END,
    ACTION_SIZE,
    ACTION_SIZE_END,
    ACTION_CHUNK, /* ends a chunk */
    ACTION_END,
    FRAMING_ACTION_COUNT
};

struct framing_cell {
    uint8_t next;   /* enum framing_state */
    uint8_t action; /* enum framing_action */
};

/* Why a message is refused. */
enum framing_refusal {
    REFUSAL_BYTE,  /* |got| is not expected in state |from| */
    REFUSAL_BYTES, /* too many bytes or fields */
    REFUSAL_FIELDS,
    REFUSAL_SIZE, /* the size of a chunk has more than 64 bits */
    REFUSAL_NO_VERSION,
    REFUSAL_VERSION,
    REFUSAL_OTHER_VERSION, /* the version is not of the form d.d */
};

struct framing {
    const struct params *params; /* borrowed; the limits */
    uint64_t left;               /* bytes of data to come: of the body, or of the chunk */
    uint32_t bytes;       /* bytes so far: of the head, or beside the data of a chunked body */
    uint32_t number;      /* bytes of the current line: a field, a chunk's size or a trailer */
    uint8_t state;        /* enum framing_state */
    uint8_t major, minor; /* digits of the version */
    uint8_t from;         /* enum framing_state: where |got| was refused */
    uint8_t got;
    enum framing_refusal refusal;
};

enum framing_kind {
    FRAMING_PART_NONE,     /* all bytes are used; the message goes on */
    FRAMING_PART_HEAD,     /* the next |bytes| of a head */
    FRAMING_PART_HEAD_END, /* the last |bytes| of a head; framing_begin_body() has to follow */
    FRAMING_PART_CHUNK,    /* |left| bytes of data are announced */
    FRAMING_PART_DATA,     /* the next |bytes| of the body, in place */
    FRAMING_PART_END,      /* the message is complete; framing_begin() has to follow */
    FRAMING_PART_REFUSED,  /* framing_explain() gives the reason; no part follows */
    FRAMING_PART_COUNT
};

struct framing_part {
    enum framing_kind kind;
    struct span bytes; /* borrowed from the given bytes, or static */
};

/* Call when a new connection, or the next message on a connection. */
void framing_begin(struct framing *framing, const struct params *params);

/*
 * Takes the next part from the front of |*rest|. A head comes with its line ends and as it was
 * sent, except that a TAB in a value becomes a space: the parser of fields does not accept TABs
 * everywhere.
 */
struct framing_part framing_next(struct framing *framing, struct span *rest);

/* Does a message begin with the next byte? Then the caller may pass a whole head that it knows, in
 * place of FRAMING_PART_HEAD_END. */
static inline bool framing_is_at_start(const struct framing *framing)
{
    return framing->state == FRAMING_START;
}
void framing_pass_head(struct framing *framing);

/* Call after FRAMING_PART_HEAD_END or framing_pass_head(): the body has |length| bytes, or chunks.
 */
void framing_begin_body(struct framing *framing, bool is_chunked, uint64_t length);

/* Returns the number of bytes to come that certainly are data; 0 within chunks. */
static inline uint64_t framing_missing(const struct framing *framing)
{
    return framing->state == FRAMING_LENGTH ? framing->left : 0;
}

/* Returns the text for a refused message; returns the HTTP status: 400, 431 or 505. */
int framing_explain(const struct framing *framing, struct error *err);

/* Returns the table, for tests. */
struct framing_cell framing_cell(enum framing_state state, enum framing_class class);
enum framing_class framing_class(uint8_t byte);
bool framing_skips(enum framing_state state, uint8_t byte);
const char *framing_state_name(enum framing_state state);

#endif
