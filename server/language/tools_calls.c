/* SPDX-License-Identifier: MIT */
/* Calls that are written as literals: f(a=1), or call:f{a:1}. */
#include "config.h"

#include "server/language/tools_literal.h"
#include "server/language/tools_priv.h"

#define DEPTH_MAX 64

static tools_step_f read_call, read_piece, read_next;

static bool is_python(const struct tools_reader *reader)
{
    return reader->family->form == TOOLS_PYTHON;
}

static uint8_t close_of(const struct tools_reader *reader)
{
    return is_python(reader) ? ')' : '}';
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* The piece up to here is one argument. */
static enum tools_step add_piece(struct tools_reader *reader)
{
    struct span piece = tools_between(reader, reader->pieces.begin, reader->at);
    struct tools_literal in = {.at = piece.ptr,
                               .end = piece.ptr + piece.len,
                               .quote = span_str(reader->family->quote),
                               .out = &reader->made};
    tools_piece_begin(reader);
    bool is_made = tools_literal_member(&in, is_python(reader) ? "=" : ":") &&
                   span_trim(span_of(in.at, (size_t)(in.end - in.at)), TOOLS_BLANKS).len == 0;
    return tools_piece_end(reader, is_made);
}

/* |c|, which ends a piece, stands here. */
static enum tools_step end_piece(struct tools_reader *reader, uint8_t c)
{
    struct span piece = tools_between(reader, reader->pieces.begin, reader->at);
    bool is_empty = span_trim(piece, TOOLS_BLANKS).len == 0;
    enum tools_step step = !is_empty  ? add_piece(reader)
                           : c == ',' ? TOOLS_REFUSES
                                      : TOOLS_GOES_ON; /* behind the last comma, or f() */
    tools_move(reader, reader->at + 1);
    reader->pieces.begin = reader->at;
    return step != TOOLS_GOES_ON ? step
           : c == ','            ? TOOLS_GOES_ON
                                 : tools_pieces_end(reader, read_next);
}

/* Within a text. WAITS: its next character is not whole. */
static enum tools_step take_quoted(struct tools_reader *reader, uint8_t c)
{
    struct tools_pieces *pieces = &reader->pieces;
    size_t len = 1;
    if (pieces->quote == TOOLS_QUOTE) {
        enum tools_found found = tools_next(reader, reader->family->quote);
        len = found == TOOLS_FOUND ? strlen(reader->family->quote) : 1;
        pieces->quote = found == TOOLS_FOUND ? 0 : pieces->quote;
        if (found == TOOLS_PARTLY) {
            return tools_wait(reader);
        }
    } else if (c == '\\') {
        len = 2;
        if (reader->at + len > reader->text.len) {
            return tools_wait(reader);
        }
    } else if (c == pieces->quote) {
        pieces->quote = 0;
    }
    tools_move(reader, reader->at + len);
    return TOOLS_GOES_ON;
}

/* Outside of texts. */
static enum tools_step take_bare(struct tools_reader *reader, uint8_t c)
{
    struct tools_pieces *pieces = &reader->pieces;
    enum tools_found found = tools_next(reader, reader->family->quote);
    if (found == TOOLS_PARTLY) {
        return tools_wait(reader);
    }
    if (pieces->depth == 0 && (c == ',' || c == close_of(reader))) {
        return end_piece(reader, c);
    }
    if (found == TOOLS_FOUND) {
        pieces->quote = TOOLS_QUOTE;
    } else if (c == '"' || c == '\'') {
        pieces->quote = c;
    } else if (c == '[' || c == '{' || c == '(') {
        pieces->depth++;
    } else if (c == ']' || c == '}' || c == ')') {
        pieces->depth -= pieces->depth > 0;
    }
    tools_move(reader, reader->at + (found == TOOLS_FOUND ? strlen(reader->family->quote) : 1));
    return pieces->depth <= DEPTH_MAX ? TOOLS_GOES_ON : TOOLS_REFUSES;
}

static enum tools_step read_piece(struct tools_reader *reader)
{
    enum tools_step step = TOOLS_GOES_ON;
    while (step == TOOLS_GOES_ON && reader->next == read_piece) {
        if (reader->at == reader->text.len) {
            return tools_wait(reader);
        }
        uint8_t c = reader->text.ptr[reader->at];
        step = reader->pieces.quote ? take_quoted(reader, c) : take_bare(reader, c);
    }
    return step;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum tools_step read_bracket(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    tools_move(reader, reader->at + 1);
    reader->pieces.begin = reader->at;
    return c == (is_python(reader) ? '(' : '{') ? tools_go(reader, read_piece) : TOOLS_REFUSES;
}

static enum tools_step read_name(struct tools_reader *reader)
{
    size_t begin = reader->pieces.begin, at = reader->at;
    while (at < reader->text.len && tools_literal_is_of_name(reader->text.ptr[at])) {
        at++;
    }
    tools_move(reader, at);
    if (at == reader->text.len) {
        return tools_wait(reader);
    }
    enum tools_step step = tools_pieces_begin(reader, tools_between(reader, begin, at));
    return step == TOOLS_GOES_ON ? tools_go(reader, read_bracket) : step;
}

static enum tools_step read_call(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    enum tools_found found = is_python(reader) ? TOOLS_FOUND : tools_take(reader, "call:");
    reader->pieces.begin = reader->at;
    return found == TOOLS_FOUND    ? tools_go(reader, read_name)
           : found == TOOLS_PARTLY ? tools_wait(reader)
                                   : TOOLS_REFUSES;
}

/* Behind a comma between calls. */
static enum tools_step read_after_comma(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    bool is_end = c == ']' && reader->is_listed;
    return tools_go(reader, is_end ? tools_behind_call : read_call);
}

/* Behind a call. Without a list around them nothing need stand between calls. */
static enum tools_step read_next(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return reader->is_over ? TOOLS_ENDS : TOOLS_WAITS;
    }
    if (c == ',') {
        tools_move(reader, reader->at + 1);
        return tools_go(reader, read_after_comma);
    }
    bool is_call = !reader->is_listed && tools_literal_is_of_name(c);
    bool is_end = !reader->is_listed || c == ']';
    return is_call  ? tools_go(reader, read_call)
           : is_end ? tools_go(reader, tools_behind_call)
                    : TOOLS_REFUSES;
}

enum tools_step tools_read_literal_list(struct tools_reader *reader)
{
    return tools_go(reader, read_call);
}

enum tools_step tools_read_literals(struct tools_reader *reader)
{
    reader->is_listed = false;
    return tools_go(reader, read_call);
}
