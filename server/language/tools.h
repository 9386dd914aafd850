/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools in the text of an answer, as models write them when they are told of tools: each
 * family has its form, a row of server/language/tools.def. A chat template tells the family, or a
 * card does. An answer that is JSON with "name" and "arguments" or "parameters", or a list of such,
 * is a call in each family.
 *
 * A call counts only if the request has a tool of that name, and a block that is malformed makes
 * all of the answer text. Any thread.
 */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_H
#define PTED_SERVER_LANGUAGE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
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
};

/* Finds the row of a chat template; without one, that of Hermes. */
const struct tools_family *tools_family_find(struct span source);

/* Finds the row of this name; NULL: there is none. */
const struct tools_family *tools_family_named(const char *name);

/* Lists the names of all rows, with blanks between them. */
const char *tools_family_names(void);

void tools_rules_init(struct tools_rules *rules, const struct tools_family *family,
                      const struct words *words);

/* Says whether the token |id| is such a mark. */
bool tools_rules_have(const struct tools_rules *rules, uint32_t id);

struct tools_call {
    struct span name;      /* a string of JSON with its quotes */
    struct span arguments; /* an object of JSON */
};

struct tools_calls {
    struct tools_call calls[TOOLS_CALLS_MAX];
    uint32_t count;
    bool is_cut;       /* the answer has ended within its only call, so |arguments| are no JSON */
    size_t text_bytes; /* of the text before the first call: the rest of the answer */
};

/* Makes |*out| of those of |tools|, JSON as in tools_find(), that have one of the |count| names. */
MUST_CHECK enum status tools_keep(struct span tools, const struct span *names, uint32_t count,
                                  struct arena *arena, struct span *out, struct error *err);

/* Finds the calls in |text|. |tools| is the JSON of the request, an array, as value_parse() takes
 * it. The spans of |out| borrow from |text| and |arena|. Without any call |out->count| is 0, and
 * all of the text is the answer. */
void tools_find(const struct tools_family *family, struct span tools, struct span text,
                struct arena *arena, struct tools_calls *out);

/*
 * Does the same, for an answer that has to be a call and is none for tools_find(). Mostly it has
 * ended too early: its one call, as far as it goes. |chosen|: the function to call; empty: any. A
 * call of which not even the name is there is none, and no text either. The call may also be whole
 * and have arguments that tools_find() refuses, such as keys that repeat.
 */
void tools_find_cut(struct span tools, struct span chosen, struct span text, struct arena *arena,
                    struct tools_calls *out);

/* Returns the bytes at the beginning of |text|, which may grow, that are certainly not part of a
 * call. |known|: how many there were before it grew, and |*blanks|: the blanks it began with, which
 * are not looked at again; 0 at first. */
size_t tools_plain_bytes(const struct tools_family *family, struct span text, size_t known,
                         size_t *blanks);

#endif
