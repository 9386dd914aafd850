/* SPDX-License-Identifier: MIT */
/* The automaton of a grammar, and how the parsers build it. */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_PRIV_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_PRIV_H

#include "server/text/grammar/grammar.h"

#define GRAMMAR_NESTING_MAX 64 /* of a source */
#define GRAMMAR_REPEAT_MAX 65536
#define GRAMMAR_RULES_MAX 2048

/* ---- the automaton --------------------------------------------------------------------------- */

enum move_kind {
    MOVE_RETURN, /* the end of a rule */
    MOVE_BYTE,   /* lo..hi, then next */
    MOVE_SPLIT,  /* next or other */
    MOVE_CALL,   /* rule |other|, then next */
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
};

struct part {
    enum part_kind kind;
    uint8_t lo, hi;
    uint32_t min, max;
    const struct part *a, *b;
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
};

void grammar_builder_init(struct grammar_builder *builder, struct error *err);

/* Makes the grammar, if nothing failed, and frees the builder. */
enum status grammar_builder_finish(struct grammar_builder *builder, struct grammar **out);

void *grammar_refuse(struct grammar_builder *builder, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
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

/* Does the same as they stand in a string of JSON: some are escaped. */
const struct part *grammar_json_codes(struct grammar_builder *builder, uint32_t lo, uint32_t hi);

/* Makes a new rule without content; UINT32_MAX: failed. */
uint32_t grammar_rule_new(struct grammar_builder *builder);
void grammar_rule_set(struct grammar_builder *builder, uint32_t rule, const struct part *part);
const struct part *grammar_rule(struct grammar_builder *builder, uint32_t rule);

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

#define GRAMMAR_BOUND_MAX ((int64_t)1 << 53)
#define GRAMMAR_MULTIPLE_MAX 128

/* Bounds of a number, up to GRAMMAR_BOUND_MAX away from 0; an open one is no value itself. */
struct grammar_bounds {
    bool has_min, has_max, is_min_open, is_max_open;
    int64_t min, max;
    uint32_t multiple; /* of integers without bounds; 0: any */
};

/* Numbers of JSON that keep to the bounds, without exponents. */
const struct part *grammar_integers(struct grammar_builder *builder,
                                    const struct grammar_bounds *bounds);
const struct part *grammar_numbers(struct grammar_builder *builder,
                                   const struct grammar_bounds *bounds);

/* Reads "{2,5}" and "*" behind |part|, as often as they stand at |*at|. */
const struct part *grammar_quantify(struct grammar_builder *builder, struct span source, size_t *at,
                                    const struct part *part);

#endif
