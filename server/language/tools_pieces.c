/* SPDX-License-Identifier: MIT */
/* Arguments that a model does not write as JSON: they are made, one member after the other. */
#include "config.h"

#include "base/array.h"
#include "protocol/json.h"
#include "server/language/tools_priv.h"

/* The keys of a call are compared with each other. */
#define ARGUMENTS_MAX 512

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
    reader->pieces.piece_begin = reader->made.len;
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

/* Reads the key of the last piece, as its reader will. False: no memory. */
static bool read_key(struct tools_reader *reader, struct span *out)
{
    const struct buf *made = &reader->made;
    const uint8_t *at = made->ptr + reader->pieces.piece_begin + 1; /* behind "{" or "," */
    struct json_string key;
    struct error ignored;
    return !json_string_scan(&at, made->ptr + made->len, &key) &&
           json_string_copy(&key, &reader->arena, "a key", out, &ignored) == ST_OK;
}

static bool has_key(const struct tools_reader *reader, struct span key)
{
    for (uint32_t i = 0; i < reader->pieces.count; i++) {
        if (span_equal(reader->keys[i], key)) {
            return true;
        }
    }
    return false;
}

/* Keeps the last piece if its key is new: what has been told of the first cannot change. False: no
 * room. */
static bool keep_piece(struct tools_reader *reader)
{
    struct tools_pieces *pieces = &reader->pieces;
    struct span key;
    if (!read_key(reader, &key)) {
        return false;
    }
    if (has_key(reader, key)) {
        reader->made.len = pieces->piece_begin;
        return true;
    }
    if (pieces->count == ARGUMENTS_MAX ||
        !ARENA_ROOM(&reader->arena, reader->keys, reader->key_capacity, pieces->count + 1)) {
        return false;
    }
    reader->keys[pieces->count++] = key;
    return true;
}

enum tools_step tools_piece_end(struct tools_reader *reader, bool is_made)
{
    if (!is_made || buf_failed(&reader->made) || !keep_piece(reader)) {
        reader->made.len = reader->pieces.piece_begin;
        return TOOLS_REFUSES;
    }
    return tell(reader, false);
}

enum tools_step tools_pieces_end(struct tools_reader *reader, tools_step_f *next)
{
    buf_add_str(&reader->made, reader->pieces.count == 0 ? "{}" : "}");
    enum tools_step step = buf_failed(&reader->made) ? TOOLS_REFUSES : tell(reader, true);
    return step == TOOLS_GOES_ON ? tools_go(reader, next) : step;
}
