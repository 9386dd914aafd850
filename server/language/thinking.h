/* SPDX-License-Identifier: MIT */
/*
 * Thoughts: text that a model writes before its answer, between markers of its family
 * (server/language/thinking.def). A chat template tells the family, or a card does; the end of a
 * prompt tells whether the answer begins within a thought.
 *
 * Where the vocabulary has a marker as one token, only that token counts, and the same characters
 * in other tokens are text. Such tokens come as a byte that no text has and the token's characters,
 * see thinking_rules_find(). Other markers are found in the text, and open a thought only at the
 * beginning of an answer.
 *
 * White space around a thought, and between it and the answer, belongs to neither. Text may come in
 * any pieces: what is told does not depend on them.
 *
 * Rules are constant, for any thread. A struct thinking belongs to one thread at a time.
 */
#ifndef PTED_SERVER_LANGUAGE_THINKING_H
#define PTED_SERVER_LANGUAGE_THINKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct words;

/* A row of thinking.def. */
struct thinking_family;

#define THINKING_MARKER_MAX 64 /* bytes of a marker */
#define THINKING_TOKENS_MAX 8  /* markers that are tokens */

/* Before the characters of a marker that is a token. */
#define THINKING_TOKEN_BYTE 0xff

struct thinking_marker {
    uint8_t bytes[THINKING_MARKER_MAX];
    size_t len;
};

struct thinking_token {
    uint32_t id;
    bool is_special; /* it stands for no text where it is no marker */
    struct thinking_marker marker;
};

/* What a model does. */
struct thinking_rules {
    bool thinks; /* without it all else is unset */
    bool has_channels;
    struct thinking_marker open, close;
    struct thinking_marker start, channel, message; /* of headers of channels */
    struct thinking_token tokens[THINKING_TOKENS_MAX];
    uint32_t token_count;
};

/* What a card says: the name of a row or "none"; or the markers themselves, which are shorter than
 * THINKING_MARKER_MAX. NULL: nothing. */
struct thinking_said {
    const char *name, *open, *close;
};

/* Finds the row of a chat template; NULL: its model does not think. */
const struct thinking_family *thinking_family_find(struct span source);

/* Makes the rules of a model with |words|, whose template is of |family|, which may be NULL.
 * |said|, which may be NULL, overrides it. ST_INVALID: it names no row. */
MUST_CHECK enum status thinking_rules_init(struct thinking_rules *rules, const struct words *words,
                                           const struct thinking_family *family,
                                           const struct thinking_said *said, struct error *err);

/* Gives the token |id| as text for thinking_push(), if it is a marker; else NULL. */
const struct thinking_token *thinking_rules_find(const struct thinking_rules *rules, uint32_t id);

/* Where an answer begins. */
enum thinking_start {
    THINKING_MAY_COME, /* the model may open a thought */
    THINKING_IS_OPEN,  /* the prompt has opened one */
    THINKING_IS_OVER,  /* the prompt has ended one, so none comes */
};

/* Says where an answer to |prompt|, which ends with the beginning of the answer, begins. */
enum thinking_start thinking_start_of(const struct thinking_rules *rules, struct span prompt);

/* ---- an answer ------------------------------------------------------------------------------- */

enum thinking_place { THINKING_BEFORE, THINKING_INSIDE, THINKING_BEHIND };

struct thinking {
    const struct thinking_rules *rules; /* borrowed; NULL: all is the answer's text */
    enum thinking_place place;
    bool may_open;         /* a thought may begin, where it is not open */
    bool keeps_calls;      /* headers that name a tool stay in it, see TOOLS_RECIPIENT */
    bool skips_blanks;     /* of the answer, behind a thought */
    bool has_header;       /* of a channel that is no thought */
    uint32_t marker_count; /* that have come */
    struct buf held;       /* what may be the beginning of a marker */
    struct buf blanks;     /* they are told if text follows */
    struct buf text;       /* of all thoughts so far */
};

void thinking_init(struct thinking *thinking, const struct thinking_rules *rules, size_t bytes_max);
void thinking_fini(struct thinking *thinking);

/* Begins another answer. */
void thinking_restart(struct thinking *thinking, enum thinking_start start);

/* Takes text that has come: appends what belongs to the thought to |thinking->text|, and what
 * belongs to the answer to |out|. Whoever asks looks whether the buffers have failed. */
void thinking_push(struct thinking *thinking, struct span text, struct buf *out);

/* Ends the thought that is open, if one is: a call of a tool begins. */
void thinking_close(struct thinking *thinking, struct buf *out);

/* Tells that no more text comes. */
void thinking_end(struct thinking *thinking, struct buf *out);

/* Says whether what comes next is not yet text of the answer, or certainly none. */
bool thinking_is_apart(const struct thinking *thinking);

/* Finds the token that may open a thought here. */
bool thinking_find_open(const struct thinking *thinking, uint32_t *out_id);

/* Returns the memory that it takes now. */
size_t thinking_bytes(const struct thinking *thinking);

/* Says whether a buffer has failed. */
bool thinking_failed(const struct thinking *thinking);

#endif
