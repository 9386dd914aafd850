/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools in the text of an answer, as models write them when they are told of tools: each
 * family has its form, a row of server/language/tools.def. A chat template tells the family, or a
 * card does. An answer that is JSON with "name" and "arguments" or "parameters", or a list of such,
 * is a call in each family.
 *
 * A call counts only if the request has a tool of that name. It begins when its arguments do, and
 * then it counts: if the rest of it is malformed or missing, it has the arguments so far. What is
 * malformed before the first call makes all of the answer text; what comes behind a call is no
 * text. Answers may come in any pieces: what is read does not depend on them. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_H
#define PTED_SERVER_LANGUAGE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

struct words;

#define TOOLS_CALLS_MAX 64
#define TOOLS_MARKS_MAX 6 /* that a family has */

/* Arguments that are not written as JSON become JSON of up to so many bytes. */
#define TOOLS_MADE_BYTES_MAX (16 << 20)

/* A header of harmony's that names a tool, as it stands in an answer's text; the name follows. */
#define TOOLS_RECIPIENT "<|channel|>commentary to=functions."

/* A row of tools.def. */
struct tools_family;

/* How a model writes calls. Constant. */
struct tools_rules {
    const struct tools_family *family;
    uint32_t ids[TOOLS_MARKS_MAX]; /* special tokens that are marks, so their text counts */
    uint32_t count;
    uint32_t begin; /* the token at which calls begin; UINT32_MAX: none is that mark */
    bool has_form;  /* calls that have to be are in the family's form, not JSON alone */
};

/* Finds the row of a chat template; without one, that of JSON. */
const struct tools_family *tools_family_find(struct span source);

/* Finds the row of this name; NULL: there is none. */
const struct tools_family *tools_family_named(const char *name);

/* Lists the names of all rows, with blanks between them. */
const char *tools_family_names(void);

void tools_rules_init(struct tools_rules *rules, const struct tools_family *family,
                      const struct words *words);

/* Says whether the token |id| is such a mark. */
bool tools_rules_have(const struct tools_rules *rules, uint32_t id);

/* Before the characters of a mark that is a special token, where a grammar has it. */
#define TOOLS_TOKEN_BYTE 0xff

struct grammar_call_form;

/* Sets |out| to the form of the rules, which have one; its texts are in |text|, which the caller
 * frees, also after an error. ST_EXHAUSTED. */
MUST_CHECK enum status tools_call_form(const struct tools_rules *rules, const struct words *words,
                                       struct buf *text, struct grammar_call_form *out,
                                       struct error *err);

struct tools_call {
    struct span name;      /* a string of JSON with its quotes */
    struct span arguments; /* an object of JSON, or its beginning */
};

struct tools_calls {
    struct tools_call calls[TOOLS_CALLS_MAX];
    uint32_t count;
    bool is_cut;       /* the last of them is not whole, or not yet */
    size_t text_bytes; /* of the answer that certainly belong to no call: those before the first */
};

/* Makes |*out| of those of |tools|, JSON as in struct tools_wanted, that have one of the |count|
 * names. */
MUST_CHECK enum status tools_keep(struct span tools, const struct span *names, uint32_t count,
                                  struct arena *arena, struct span *out, struct error *err);

/* Reads the calls in an answer that grows. One thread at a time. */
struct tools_reader;

/* What calls an answer may have. */
struct tools_wanted {
    struct span tools;  /* the JSON of the request, an array, as value_parse() takes it */
    struct span chosen; /* the tool that has to be called, even if the answer does not get so far;
                           empty: none */
    bool needs_call;    /* one of the tools has to be called: if it is the only one, it is chosen */
    uint32_t call_max;  /* up to TOOLS_CALLS_MAX; those behind them do not count */
};

/* |wanted->tools| and |wanted->chosen| are borrowed. ST_EXHAUSTED. */
MUST_CHECK enum status tools_reader_new(const struct tools_family *family,
                                        const struct tools_wanted *wanted,
                                        struct tools_reader **out, struct error *err);
void tools_reader_free(struct tools_reader *reader); /* accepts NULL */

/* Call when another answer begins. */
void tools_reader_restart(struct tools_reader *reader);

/*
 * Reads on: |text| is all of the answer so far. |is_over|: no more comes. Returns the calls that
 * have begun, valid until the next call and as long as |text|: arguments grow by more of their
 * bytes, never by others.
 */
const struct tools_calls *tools_reader_read(struct tools_reader *reader, struct span text,
                                            bool is_over);

/* Returns the memory that it takes now. */
size_t tools_reader_bytes(const struct tools_reader *reader);

#endif
