/* SPDX-License-Identifier: MIT */
/* Calls that are a name, a mark, and arguments of JSON. */
#include "config.h"

#include "server/language/tools_priv.h"

/* "functions.f:0" and "f[CALL_ID]123" are f. */
static struct span plain_name(struct span name)
{
    static const char prefix[] = "functions.", id[] = "[CALL_ID]";
    name = span_trim(name, TOOLS_BLANKS);
    if (span_begins(name, prefix)) {
        name = span_of(name.ptr + sizeof(prefix) - 1, name.len - (sizeof(prefix) - 1));
    }
    const uint8_t *mark = memmem(name.ptr, name.len, id, sizeof(id) - 1);
    size_t len = 0, end = mark ? (size_t)(mark - name.ptr) : name.len;
    while (len < end && !strchr(TOOLS_BLANKS "<:", name.ptr[len])) {
        len++;
    }
    return span_of(name.ptr, len);
}

static enum tools_step begin_arguments(struct tools_reader *reader)
{
    reader->pieces.has_begun = true;
    enum tools_step step =
        tools_begin_call(reader, reader->pieces.name, (struct tools_place){.begin = reader->at});
    return step == TOOLS_GOES_ON ? tools_begin_raw(reader) : step;
}

static enum tools_step end_without_arguments(struct tools_reader *reader)
{
    reader->pieces.has_begun = true;
    enum tools_step step = tools_add_empty_call(reader, reader->pieces.name);
    return step == TOOLS_GOES_ON ? tools_go(reader, tools_behind_call) : step;
}

/* DeepSeek V3 puts arguments in a block of code. */
static enum tools_step read_arguments(struct tools_reader *reader)
{
    const struct tools_family *family = reader->family;
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return reader->is_over ? end_without_arguments(reader) : TOOLS_WAITS;
    }
    if (c == '{') {
        return begin_arguments(reader);
    }
    enum tools_found fence = tools_take(reader, "```json");
    if (fence == TOOLS_FOUND) {
        return TOOLS_GOES_ON;
    }
    enum tools_found close = tools_next(reader, family->close);
    enum tools_found open = tools_next(reader, family->open);
    return close == TOOLS_FOUND || open == TOOLS_FOUND ? end_without_arguments(reader)
           : fence == TOOLS_PARTLY || close == TOOLS_PARTLY || open == TOOLS_PARTLY
               ? tools_wait(reader)
               : TOOLS_REFUSES;
}

static enum tools_step keep_name(struct tools_reader *reader, struct span name)
{
    reader->pieces = (struct tools_pieces){.name = tools_keep_text(reader, name)};
    return tools_reader_tool(reader, reader->pieces.name) ? tools_go(reader, read_arguments)
                                                          : TOOLS_REFUSES;
}

/* DeepSeek V3 has the kind of tool before the separator, and the name on the first line behind
 * it. */
static enum tools_step read_line(struct tools_reader *reader)
{
    static const char *const newline[] = {"\n"};
    size_t which, at;
    if (tools_seek(reader, newline, 1, &which, &at) != TOOLS_FOUND) {
        return tools_wait(reader);
    }
    struct span name = span_trim(tools_between(reader, reader->at, at), TOOLS_BLANKS);
    tools_move(reader, at);
    return keep_name(reader, name);
}

static enum tools_step read_kind(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    return c == '{' ? keep_name(reader, span_str("function")) : tools_go(reader, read_line);
}

enum tools_step tools_read_named(struct tools_reader *reader)
{
    const struct tools_family *family = reader->family;
    const char *const marks[] = {family->separator, "{", family->close, family->open};
    size_t which, at;
    if (tools_seek(reader, marks, 4, &which, &at) != TOOLS_FOUND) {
        return tools_wait(reader);
    }
    struct span name = plain_name(tools_between(reader, reader->at, at));
    tools_move(reader, which == 0 ? at + strlen(family->separator) : at);
    return which >= 2                                ? TOOLS_REFUSES
           : which == 0 && span_is(name, "function") ? tools_go(reader, read_kind)
                                                     : keep_name(reader, name);
}
