/* SPDX-License-Identifier: MIT */
/* The automaton of a grammar, and how the parsers build it. */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_PRIV_H

#include "server/text/grammar/grammar.h"

#define GRAMMAR_NESTING_MAX 64 /* of a source */
#define GRAMMAR_REPEAT_MAX 65536
#define GRAMMAR_RULES_MAX 2048
#define GRAMMAR_LOOKS_MAX 1024

/* ---- the automaton --------------------------------------------------------------------------- */

enum move_kind {
    MOVE_RETURN, /* the end of a rule */
    MOVE_BYTE,   /* lo..hi, then next */
    MOVE_SPLIT,  /* next or other */
    MOVE_CALL,   /* rule |other|, then next */
    MOVE_LOOK,   /* next, if look |other| holds; grammar_meet() alone follows this and the next */
    MOVE_BEGIN,  /* next, at the begin of the text */
};

struct move {
    uint8_t kind, lo, hi;
    uint32_t next, other;
};

struct grammar {
    struct move *moves; /* owned; moves[0] is the MOVE_RETURN */
    uint32_t move_count;
    uint32_t *rules; /* owned; where each begins; rule 0 is the text */
    uint32_t rule_count;
};

/* ---- building -------------------------------------------------------------------------------- */

enum part_kind {
    PART_EMPTY,
    PART_BYTE,   /* lo..hi */
    PART_THEN,   /* a, then b */
    PART_OR,     /* a or b */
    PART_REPEAT, /* a, min..max times; max UINT32_MAX: without end */
    PART_RULE,   /* min: which */
    PART_NEVER,  /* nothing matches */
    PART_GRAPH,
    PART_LOOK,  /* nothing, where look number min of the builder holds of the rest of the text */
    PART_BEGIN, /* nothing, at the begin of the text */
};

/* Bytes lo..hi lead to state |to|. */
struct graph_edge {
    uint8_t lo, hi;
    uint32_t to;
};

struct graph_state {
    struct graph_edge *edges; /* of bytes that no other edge has; ascending */
    uint32_t edge_count;
    bool may_end;
    bool is_any; /* whatever follows */
};

/* Begins at state 0. From each state an end can be reached, unless there is none. */
struct graph {
    struct graph_state *states;
    uint32_t count;
};

/* What the rest of a text has to match, or must not match. */
struct grammar_look {
    const struct graph *graph;
    bool is_negative;
};

struct part {
    enum part_kind kind;
    uint8_t lo, hi;
    uint32_t min, max;
    const struct part *a, *b;
    const struct graph *graph;
};

/* Functions that make parts return NULL when something failed before or now; then |status| says
 * what. They take NULL for a part and return NULL. */
struct grammar_builder {
    struct arena arena;
    struct error *err;
    enum status status;
    const char *path; /* of the schema that is read now, for errors; NULL: none */
    const struct part **rules;
    uint32_t rule_count;
    size_t rule_capacity;
    struct grammar_look looks[GRAMMAR_LOOKS_MAX];
    uint32_t look_count;
    uint32_t work; /* of grammar_meet() so far */
};

void grammar_builder_init(struct grammar_builder *builder, struct error *err);

/* Makes the grammar, if nothing failed, and frees the builder. */
enum status grammar_builder_finish(struct grammar_builder *builder, struct grammar **out);

void *grammar_refuse(struct grammar_builder *builder, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const struct part *grammar_part(struct grammar_builder *builder, struct part part);
const struct part *grammar_empty(struct grammar_builder *builder);
const struct part *grammar_never(struct grammar_builder *builder);
const struct part *grammar_bytes(struct grammar_builder *builder, uint8_t lo, uint8_t hi);
const struct part *grammar_text(struct grammar_builder *builder, struct span text);
const struct part *grammar_then(struct grammar_builder *builder, const struct part *a,
                                const struct part *b);
const struct part *grammar_or(struct grammar_builder *builder, const struct part *a,
                              const struct part *b);
const struct part *grammar_repeat(struct grammar_builder *builder, const struct part *a,
                                  uint32_t min, uint32_t max);

/* Code points lo..hi in UTF-8, without surrogates. */
const struct part *grammar_codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi);

/* Does the same for code points as they stand in a string of JSON: some are escaped. */
const struct part *grammar_json_codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi);

/* Makes a new rule without content; UINT32_MAX: failed. */
uint32_t grammar_rule_new(struct grammar_builder *builder);
void grammar_rule_set(struct grammar_builder *builder, uint32_t rule, const struct part *part);
const struct part *grammar_rule(struct grammar_builder *builder, uint32_t rule);

/* ---- texts that keep to several parts -------------------------------------------------------- */

/* Makes a part of any bytes up to the end of the text. */
const struct part *grammar_rest(struct grammar_builder *builder);

/* Makes a part of no byte, where the rest of the text matches |part|, or does not. It goes to
 * grammar_meet() alone. No part of either has a rule. */
const struct part *grammar_look(struct grammar_builder *builder, const struct part *part,
                                bool is_negative);

/* Makes a part of the texts that match all of the |count| parts, one to eight. PART_NEVER: there is
 * none. */
const struct part *grammar_meet(struct grammar_builder *builder, const struct part *const *parts,
                                size_t count);

/* Repeats |character|, which is none of its own beginnings, |min| to |max| times, UINT32_MAX:
 * without end; for grammar_meet(), where grammar_repeat() would take longer. */
const struct part *grammar_counted(struct grammar_builder *builder, const struct part *character,
                                   uint32_t min, uint32_t max);

/* Makes the moves of a part without rules, for grammar_meet(): moves[0] is the end. The caller
 * frees out->moves, of a failure too. */
bool grammar_compile(struct grammar_builder *builder, const struct part *part, struct grammar *out,
                     uint32_t *out_start);

/* ---- expressions ----------------------------------------------------------------------------- */

/* Reads a regular expression. |in_json|: of the text that a string of JSON holds, and then it need
 * not match the whole, unless ^ and $ say so. */
const struct part *grammar_regex(struct grammar_builder *builder, struct span regex, bool in_json);

/* Returns the character at |*at|, which is not the end, of a source in UTF-8; moves behind it. */
uint32_t grammar_code(struct span source, size_t *at);

/* Finds the character of the escape whose letter stands at |*at|; moves behind it. False:
 * refused. */
bool grammar_escape(struct grammar_builder *builder, struct span source, size_t *at, uint32_t *out);

/* Reads a class such as [^a-z] at |*at|, and an escape that stands for characters; both move
 * |*at|. */
const struct part *grammar_class(struct grammar_builder *builder, struct span source, size_t *at,
                                 bool in_json);

/* ---- numbers --------------------------------------------------------------------------------- */

#define GRAMMAR_DIGITS_MAX 400 /* of a bound, before the point and behind it */
#define GRAMMAR_MULTIPLE_MAX 1024
#define GRAMMAR_PLACES_MAX 12 /* of a multiple */

/* A number as it is written: |whole| digits 0 to 9, the first of which is not 0, then |places|, the
 * last of which is not 0. */
struct grammar_decimal {
    bool is_negative; /* never of 0 */
    uint32_t whole, places;
    char digits[GRAMMAR_DIGITS_MAX + 1];
};

/* Reads a number of JSON. False: it is none, or it has too many digits. */
bool grammar_decimal_read(const char *text, struct grammar_decimal *out);

/* Returns -1, 0 or 1, or another number of that sign. */
int grammar_decimal_compare(const struct grammar_decimal *a, const struct grammar_decimal *b);

/* Bounds of a number; an open one is no value itself. */
struct grammar_bounds {
    bool is_integer;
    bool has_min, has_max, is_min_open, is_max_open, has_multiple;
    struct grammar_decimal min, max, multiple;
};

/* Makes a part of the numbers of JSON that keep to the bounds, without exponents. PART_NEVER: there
 * is none. */
const struct part *grammar_numbers(struct grammar_builder *builder,
                                   const struct grammar_bounds *bounds);

/* Reads "{2,5}" and "*" behind |part|, as often as they stand at |*at|. */
const struct part *grammar_quantify(struct grammar_builder *builder, struct span source, size_t *at,
                                    const struct part *part);

#endif
