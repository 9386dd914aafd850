/* SPDX-License-Identifier: MIT */
/*
 * Constrained output: which bytes may come next, so that the whole text has the form that a client
 * asked for.
 *
 * A JSON Schema, any JSON object, a regular expression, a choice of texts or a grammar in GBNF
 * becomes one automaton
 * over bytes with rules that call each other. A grammar is immutable, and any number of threads may
 * use it at one time. A walk remembers which states of the automaton were met, with their moves, as
 * long as it lives; it belongs to one thread at a time. States are plain numbers: a copy is a
 * clone.
 *
 *     TRY(grammar_parse_schema(&schema, &grammar, err));
 *     TRY(grammar_walk_new(grammar, &walk, err));
 *     struct grammar_state state = grammar_walk_begin(walk);
 *     TRY(grammar_mask(walk, state, vocabulary, bits, err));
 *     grammar_state_advance(walk, &state, bytes)
 */
#ifndef PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_H
#define PTED_SERVER_TEXT_GRAMMAR_GRAMMAR_H

#include "server/text/value/value.h"

#define GRAMMAR_SOURCE_MAX (256u << 10) /* bytes of an expression */
#define GRAMMAR_NODES_MAX (1u << 18)    /* of one automaton */
#define GRAMMAR_DEPTH_MAX 128           /* rules that are open at one time; deeper texts end */
#define GRAMMAR_TOKEN_MAX 1024          /* longer tokens are never allowed */

struct grammar;
struct grammar_walk;
struct grammar_vocabulary;

struct grammar_state {
    uint32_t at;
};

/* ---- grammars -------------------------------------------------------------------------------- */

/* Parses the subset of JSON Schema in grammars.md of docs/; members come in the order of
 * "properties". A keyword that is not understood is refused with its path. ST_INVALID: no schema;
 * ST_UNSUPPORTED: not understood; ST_TOO_LARGE: a bound; ST_EXHAUSTED: no memory. So for the
 * others. */
MUST_CHECK enum status grammar_parse_schema(const struct value *schema, struct grammar **out,
                                            struct error *err);

#define GRAMMAR_STOPS 2

/* How a call is written that is no plain JSON. Texts may have bytes that no text of JSON has. */
struct grammar_call_form {
    struct span call;    /* with "$" for the name, and "@" for the arguments, an object of JSON */
    bool is_listed;      /* the arguments are no such object, but written one by one: */
    bool has_bare_texts; /* strings without quotes, which have none of |stops| in them */
    bool is_by_schema;   /* a reader takes what is bare for a text if the schema lets it be one */
    bool keeps_lines;    /* bare texts keep newlines at their ends */
    bool is_python;      /* True, False and None */
    struct span before_key, before_text, behind_text; /* the key stands between the first two */
    struct span before_value, behind_value;           /* likewise, of what is no bare text */
    struct span between;
    struct span stops[GRAMMAR_STOPS]; /* some may be empty */
};

/*
 * One call of a tool, as models write it: in the |form|, or, with NULL, as {"name": "f",
 * "arguments": {...}}. |tools|: of a request, as OpenAI's chats have them; |name|: the tool to
 * call, empty: any. The arguments keep to the schema "parameters" of the tool, whose references
 * lead to places in itself. ST_UNSUPPORTED also for what the form cannot write.
 */
MUST_CHECK enum status grammar_parse_call(const struct value *tools, struct span name,
                                          const struct grammar_call_form *form,
                                          struct grammar **out, struct error *err);

/* Any JSON object. */
MUST_CHECK enum status grammar_parse_object(struct grammar **out, struct error *err);

/* Makes the rule that the whole text matches |regex|. */
MUST_CHECK enum status grammar_parse_regex(struct span regex, struct grammar **out,
                                           struct error *err);

/* Makes the rule that the whole text is one of |texts|, a list of strings. */
MUST_CHECK enum status grammar_parse_choice(const struct value *texts, struct grammar **out,
                                            struct error *err);

/* Parses a grammar in the form of llama.cpp (GBNF): its rule "root" describes the whole text. */
MUST_CHECK enum status grammar_parse_gbnf(struct span source, struct grammar **out,
                                          struct error *err);

/* Accepts NULL. */
void grammar_free(struct grammar *grammar);

/* ---- walks ----------------------------------------------------------------------------------- */

/* |grammar| must outlive the walk. */
MUST_CHECK enum status grammar_walk_new(const struct grammar *grammar, struct grammar_walk **out,
                                        struct error *err);
void grammar_walk_free(struct grammar_walk *walk); /* accepts NULL */
struct grammar_state grammar_walk_begin(const struct grammar_walk *walk);

/* Moves |state| behind |bytes|, which may be a part of a character. False, and |state| stays, if
 * they may not come next, or if the walk has no room or memory for more states: grammar_mask() and
 * grammar_walk_check() then say so. */
bool grammar_state_advance(struct grammar_walk *walk, struct grammar_state *state,
                           struct span bytes);

/* May the text end here? And must it? */
bool grammar_state_may_end(const struct grammar_walk *walk, struct grammar_state state);
bool grammar_state_must_end(struct grammar_walk *walk, struct grammar_state state);

/* Returns the memory of a grammar, and of a walk now, about. */
size_t grammar_bytes_held(const struct grammar *grammar);
size_t grammar_walk_bytes(const struct grammar_walk *walk);

/* Returns ST_OK, or why the walk could not go on: ST_TOO_LARGE or ST_EXHAUSTED. */
MUST_CHECK enum status grammar_walk_check(const struct grammar_walk *walk, struct error *err);

/* ---- vocabularies ---------------------------------------------------------------------------- */

/* |tokens| has the bytes of each token; empty for a token that stands for no text, which is never
 * allowed. They are copied. Immutable, any thread. */
MUST_CHECK enum status grammar_vocabulary_new(const struct span *tokens, size_t count,
                                              struct grammar_vocabulary **out, struct error *err);
void grammar_vocabulary_free(struct grammar_vocabulary *vocabulary); /* accepts NULL */

/* Sets bit |token| of |bits|, which has room for (count + 63) / 64 words, for each token that may
 * come next, and clears the others. The token that ends a text is the caller's affair. The walk
 * keeps the masks of a few states, so |vocabulary| must outlive the walk. */
MUST_CHECK enum status grammar_mask(struct grammar_walk *walk, struct grammar_state state,
                                    const struct grammar_vocabulary *vocabulary, uint64_t *bits,
                                    struct error *err);

/* Does the same, if it takes no more than |work_max|, in ways to go on that are looked at: some 10
 * ns each. Else ST_WOULD_BE_HEAVY, and a part of the work is done: the next try for this state goes
 * on from there. */
MUST_CHECK enum status grammar_mask_within(struct grammar_walk *walk, struct grammar_state state,
                                           const struct grammar_vocabulary *vocabulary,
                                           uint64_t *bits, uint64_t work_max, struct error *err);

#endif
