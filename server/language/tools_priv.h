/* SPDX-License-Identifier: MIT */
/* What tools.c and the readers of forms share. */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_PRIV_H
#define PTED_SERVER_LANGUAGE_TOOLS_PRIV_H

#include <string.h>

#include "server/language/tools.h"
#include "server/text/template/template.h"

#define TOOLS_BLANKS " \n\r\t"

static inline bool tools_is_blank(uint8_t c)
{
    return memchr(TOOLS_BLANKS, c, sizeof(TOOLS_BLANKS) - 1) != NULL;
}

/* What stands between the marks of a call, see tools.def. */
enum tools_form {
    TOOLS_JSON,
    TOOLS_NAMED,
    TOOLS_TAGS,
    TOOLS_KEYS,
    TOOLS_INVOKE,
    TOOLS_PYTHON,
    TOOLS_BRACES,
};

struct tools_family {
    const char *name, *sign, *begin, *open, *separator, *close;
    enum tools_form form;
    const char *quote;
};

/* Calls while they are read. */
struct tools_reading {
    const struct tools_family *family;
    const struct value *tools; /* of the request */
    struct arena *arena;       /* for names, and arguments that are made */
    struct tools_calls *out;
};

/* Gives the member |name| of |map|; NULL: there is none, or |map| is NULL or no map. */
const struct value *tools_member(const struct value *map, const char *name);

/* Gives the first of the list |tools| that has this name; NULL: none has. */
const struct value *tools_named(const struct value *tools, struct span name);

/* Says whether |json|, which json_skip() has taken, has NaN or Infinity in it, which are no JSON.
 */
bool tools_has_words(struct span json);

/* Reads one call of JSON, or an array of them, and nothing else. False: it is none. */
bool tools_read_json(struct tools_reading *reading, struct span text);

/* Reads what stands in |block|, between marks, in the form of the family. False: it is no call of
 * one of the tools. */
bool tools_read_block(struct tools_reading *reading, struct span block);

/* Adds a call of |name| with |arguments|, an object of JSON. False: there is no such tool, or no
 * room. */
bool tools_add(struct tools_reading *reading, struct span name, struct span arguments);

/* Gives the first place of |mark| in |text|; NULL: it is not there, or empty. */
const uint8_t *tools_mark(struct span text, const char *mark);

#endif
