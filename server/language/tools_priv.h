/* SPDX-License-Identifier: MIT */
/* What the readers of forms share. */
#ifndef PTED_SERVER_LANGUAGE_TOOLS_PRIV_H
#define PTED_SERVER_LANGUAGE_TOOLS_PRIV_H

#include <string.h>

#include "base/buf.h"
#include "server/language/tools.h"
#include "server/language/tools_json.h"
#include "server/text/grammar/grammar.h"
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
    TOOLS_MARKED,
    TOOLS_PYTHON,
    TOOLS_BRACES,
};

struct tools_family {
    const char *name, *sign, *begin, *open, *separator, *close;
    enum tools_form form;
    const char *quote;
    const char *call; /* with "$" and "@", see struct grammar_call_form; empty: plain JSON */
};

/* ---- tools of a request: tools.c ------------------------------------------------------------- */

/* Of those of a request, once they are read. */
#define TOOLS_BYTES_MAX ((size_t)64 << 20)

/* Reads them as the chat template does, so it and the calls know the same. */
MUST_CHECK enum status tools_parse(struct span tools, struct arena *arena, struct value *out,
                                   struct error *err);

/* Gives the member |name| of |map|; NULL: there is none, or |map| is NULL or no map. */
const struct value *tools_member(const struct value *map, const char *name);

/* Gives the first of the list |tools| that has this name; NULL: none has. */
const struct value *tools_named(const struct value *tools, struct span name);

/* Gives the name of the tool if |tools| has one alone; else it is empty. */
struct span tools_only_name(const struct value *tools);

/* ---- reading: tools_reader.c ----------------------------------------------------------------- */

/* What a step has come to. */
enum tools_step {
    TOOLS_GOES_ON, /* the next step reads on */
    TOOLS_WAITS,   /* for more of the answer */
    TOOLS_REFUSES, /* this is no call of one of the tools */
    TOOLS_IS_CUT,  /* the answer has ended within it */
    TOOLS_ENDS,    /* nothing more counts */
};

struct tools_reader;
typedef enum tools_step tools_step_f(struct tools_reader *reader);

/* Is a mark there? */
enum tools_found { TOOLS_ABSENT, TOOLS_PARTLY, TOOLS_FOUND };

/* Where the arguments of a call lie. */
struct tools_place {
    size_t begin, len;
    bool is_made; /* in |made|, not in the answer */
};

enum tools_key { TOOLS_OTHER, TOOLS_NAME, TOOLS_ARGUMENTS };

/* The call of JSON that is being read. */
struct tools_object {
    bool is_open;
    bool has_arguments;
    bool has_begun; /* the call */
    size_t begin;   /* of the key or the value that is being read */
    enum tools_key key;
    struct span name;         /* in the arena; empty: it has not come */
    struct tools_place place; /* of the arguments */
};

/* What a value of a call in tags is. */
enum tools_kind { TOOLS_BY_SCHEMA, TOOLS_IS_TEXT, TOOLS_IS_JSON };

/* The call of another form that is being read: its arguments are made, piece by piece. */
struct tools_pieces {
    bool has_begun;              /* the call */
    uint32_t count;              /* of arguments */
    size_t made_begin;           /* of the arguments in |made| */
    size_t piece_begin;          /* likewise, of the last of them */
    struct span name;            /* in the arena */
    const struct value *schemas; /* of the arguments; NULL: none */
    struct span key;             /* in the arena */
    enum tools_kind kind;        /* of the value */
    /* Of a piece of literals. */
    size_t begin;
    uint32_t depth; /* of brackets */
    uint8_t quote;  /* that is open: a character, or TOOLS_QUOTE; 0: none */
};

#define TOOLS_DSML "\uff5cDSML\uff5c" /* a token of DeepSeek V3.2, in its tags */

#define TOOLS_QUOTE 1 /* the family's mark */

struct tools_reader {
    uint32_t magic;
    const struct tools_family *family;
    struct tools_wanted wanted;
    struct arena arena; /* of the present answer: the tools, names */
    struct value known; /* the tools, once |has_known| */
    bool has_known;
    struct span text;
    bool is_over;
    tools_step_f *next; /* NULL: all of the answer has been judged */
    size_t at;          /* bytes that have been read */
    size_t sought;      /* bytes in which tools_seek() has found nothing */
    size_t first;       /* of the answer: the first that is no blank */
    bool is_text;       /* all of the answer is */
    bool is_whole;      /* all of it has to be calls */
    struct buf made;    /* arguments that are not written as JSON */
    struct tools_place places[TOOLS_CALLS_MAX];
    struct tools_calls calls;
    bool is_listed; /* the call is in a list */
    struct tools_json json;
    struct tools_object object;
    struct tools_pieces pieces;
    struct span *keys; /* of the call of pieces: as many as it has arguments; in the arena */
    size_t key_capacity;
    size_t closed; /* of tags: where a call ends, if a value in it has no end; 0: not known */
};

/* Gives the text that is not read. */
struct span tools_left(const struct tools_reader *reader);

/* Gives the text from |begin| to |end|. */
struct span tools_between(const struct tools_reader *reader, size_t begin, size_t end);

void tools_move(struct tools_reader *reader, size_t at);

/* Passes over blanks. False: nothing but blanks has come. */
bool tools_peek(struct tools_reader *reader, uint8_t *out);

/* Says whether |mark| comes next. PARTLY: more of the answer would tell. */
enum tools_found tools_next(const struct tools_reader *reader, const char *mark);

/* Does the same, and passes over it. */
enum tools_found tools_take(struct tools_reader *reader, const char *mark);

/* Finds the first place of one of the |count| marks, some of which may be empty, without passing
 * over it. PARTLY: none has come yet. */
enum tools_found tools_seek(struct tools_reader *reader, const char *const *marks, size_t count,
                            size_t *out_which, size_t *out_at);

/* Says what a step has come to that needs more of the answer. */
enum tools_step tools_wait(const struct tools_reader *reader);

/* Reads on by |next|. */
enum tools_step tools_go(struct tools_reader *reader, tools_step_f *next);

/* Copies |text| into the arena; empty: no memory. */
struct span tools_keep_text(struct tools_reader *reader, struct span text);

/* Gives the tool |name|; NULL: there is none. */
const struct value *tools_reader_tool(struct tools_reader *reader, struct span name);

/* Begins a call of |name|, whose arguments are at |place|. REFUSES: there is no such tool, or no
 * memory. */
enum tools_step tools_begin_call(struct tools_reader *reader, struct span name,
                                 struct tools_place place);

/* Sets the bytes of the arguments of the last call, and whether that is all of them. */
void tools_set_arguments(struct tools_reader *reader, size_t len, bool are_whole);

/* Adds a call of |name| without arguments, as tools_begin_call() does. */
enum tools_step tools_add_empty_call(struct tools_reader *reader, struct span name);

/* Looks for the next call behind one. */
tools_step_f tools_behind_call;

/* ---- JSON: tools_object.c -------------------------------------------------------------------- */

/* Read a call that begins here, or a list of them. */
tools_step_f tools_read_object, tools_read_list;

/* Reads arguments that begin here, of a call that has begun. */
enum tools_step tools_begin_raw(struct tools_reader *reader);

/* ---- pieces: tools_pieces.c ------------------------------------------------------------------ */

/* Reads the arguments of |name| from here on. REFUSES: there is no such tool. */
enum tools_step tools_pieces_begin(struct tools_reader *reader, struct span name);

/* Tells that the call counts, if it has not begun. */
enum tools_step tools_pieces_call(struct tools_reader *reader);

/* Begins an argument; then its member is added to |made|, and tools_piece_end() tells it. One
 * whose key the call has already is dropped. REFUSES: no room; what was added is dropped. */
void tools_piece_begin(struct tools_reader *reader);
enum tools_step tools_piece_end(struct tools_reader *reader, bool is_made);

/* Ends the arguments, and reads on by |next|. */
enum tools_step tools_pieces_end(struct tools_reader *reader, tools_step_f *next);

/* ---- forms: tools_named.c, tools_tags.c, tools_calls.c --------------------------------------- */

/* Read what stands behind the mark that opens a call. */
tools_step_f tools_read_named, tools_read_tags, tools_read_literals;

/* Reads "f(a=1)]", behind a bracket. */
tools_step_f tools_read_literal_list;

#endif
