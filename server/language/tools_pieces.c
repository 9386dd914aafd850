/* SPDX-License-Identifier: MIT */
/* Arguments that a model does not write as JSON: they are made, one member after the other. */
#include "config.h"

#include "server/language/tools_priv.h"

/* The schemas of the arguments of |tool|; NULL: none. */
static const struct value *schemas_of(const struct value *tool)
{
    const struct value *inner = tools_member(tool, "function");
    return tools_member(tools_member(inner ? inner : tool, "parameters"), "properties");
}

enum tools_step tools_pieces_begin(struct tools_reader *reader, struct span name)
{
    const struct value *tool = tools_reader_tool(reader, name);
    if (!tool) {
        return TOOLS_REFUSES;
    }
    reader->pieces = (struct tools_pieces){.name = tools_keep_text(reader, name),
                                           .made_begin = reader->made.len,
                                           .schemas = schemas_of(tool)};
    return reader->pieces.name.len > 0 ? TOOLS_GOES_ON : TOOLS_REFUSES;
}

enum tools_step tools_pieces_call(struct tools_reader *reader)
{
    struct tools_pieces *pieces = &reader->pieces;
    struct tools_place place = {.begin = pieces->made_begin, .is_made = true};
    if (pieces->has_begun) {
        return TOOLS_GOES_ON;
    }
    enum tools_step step = tools_begin_call(reader, pieces->name, place);
    pieces->has_begun = step == TOOLS_GOES_ON;
    return step;
}

void tools_piece_begin(struct tools_reader *reader)
{
    buf_add_char(&reader->made, reader->pieces.count == 0 ? '{' : ',');
}

/* Tells what has been made of the arguments. */
static enum tools_step tell(struct tools_reader *reader, bool are_whole)
{
    size_t len = reader->made.len - reader->pieces.made_begin;
    enum tools_step step = tools_pieces_call(reader);
    if (step == TOOLS_GOES_ON) {
        tools_set_arguments(reader, len, are_whole);
    }
    return step;
}

enum tools_step tools_piece_end(struct tools_reader *reader, bool is_made)
{
    if (!is_made || buf_failed(&reader->made)) {
        return TOOLS_REFUSES;
    }
    reader->pieces.count++;
    return tell(reader, false);
}

enum tools_step tools_pieces_end(struct tools_reader *reader, tools_step_f *next)
{
    buf_add_str(&reader->made, reader->pieces.count == 0 ? "{}" : "}");
    enum tools_step step = buf_failed(&reader->made) ? TOOLS_REFUSES : tell(reader, true);
    return step == TOOLS_GOES_ON ? tools_go(reader, next) : step;
}
