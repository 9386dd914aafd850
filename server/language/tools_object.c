/* SPDX-License-Identifier: MIT */
/* Calls that are written as JSON: {"name": "f", "arguments": {"a": 1}}, or a list of them. */
#include "config.h"

#include "protocol/json.h"
#include "server/language/tools_priv.h"

static tools_step_f read_key, read_colon, read_comma, read_between;

/* Reads the value of |reader->json| up to its end. */
static enum tools_step read_value(struct tools_reader *reader)
{
    struct tools_json *json = &reader->json;
    tools_move(reader, reader->at + tools_json_read(json, tools_left(reader)));
    if (reader->is_over) {
        tools_json_end(json);
    }
    return json->state == TOOLS_JSON_DONE  ? TOOLS_GOES_ON
           : json->state == TOOLS_JSON_BAD ? TOOLS_REFUSES
                                           : tools_wait(reader);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static enum tools_step read_raw(struct tools_reader *reader)
{
    size_t begin = reader->places[reader->calls.count - 1].begin;
    enum tools_step step = read_value(reader);
    tools_set_arguments(reader, reader->at - begin, step == TOOLS_GOES_ON);
    return step == TOOLS_GOES_ON ? tools_go(reader, tools_behind_call) : step;
}

enum tools_step tools_begin_raw(struct tools_reader *reader)
{
    reader->json = (struct tools_json){0};
    return tools_go(reader, read_raw);
}

/* The name and the beginning of the arguments have come. */
static enum tools_step begin_call(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    enum tools_step step = tools_begin_call(reader, object->name, object->place);
    object->has_begun = step == TOOLS_GOES_ON;
    return step;
}

static enum tools_step read_arguments(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    enum tools_step step = read_value(reader);
    object->place.len = reader->at - object->place.begin;
    if (object->has_begun) {
        tools_set_arguments(reader, object->place.len, step == TOOLS_GOES_ON);
    }
    return step == TOOLS_GOES_ON ? tools_go(reader, read_comma) : step;
}

static enum tools_step begin_arguments(struct tools_reader *reader, uint8_t c)
{
    struct tools_object *object = &reader->object;
    if (c != '{') {
        return TOOLS_REFUSES;
    }
    object->has_arguments = true;
    object->place = (struct tools_place){.begin = reader->at};
    enum tools_step step = object->name.len > 0 ? begin_call(reader) : TOOLS_GOES_ON;
    return step == TOOLS_GOES_ON ? tools_go(reader, read_arguments) : step;
}

/* ---- members --------------------------------------------------------------------------------- */

/* The string that has just been read. */
static struct json_string string_of(const struct tools_reader *reader)
{
    struct json_string string = {0};
    const uint8_t *at = reader->text.ptr + reader->object.begin;
    (void)json_string_scan(&at, reader->text.ptr + reader->at, &string); /* else it is empty */
    return string;
}

static enum tools_step take_name(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    struct json_string string = string_of(reader);
    struct error ignored;
    if (json_string_copy(&string, &reader->arena, "a name", &object->name, &ignored) != ST_OK ||
        !tools_reader_tool(reader, object->name)) {
        object->name = span_str("");
        return TOOLS_REFUSES;
    }
    if (!object->has_arguments) {
        return TOOLS_GOES_ON;
    }
    enum tools_step step = begin_call(reader);
    if (step == TOOLS_GOES_ON) {
        tools_set_arguments(reader, object->place.len, true);
    }
    return step;
}

static enum tools_step read_member(struct tools_reader *reader)
{
    const struct tools_object *object = &reader->object;
    enum tools_step step = read_value(reader);
    bool is_name = object->key == TOOLS_NAME && object->name.len == 0 &&
                   reader->text.ptr[object->begin] == '"';
    if (step == TOOLS_GOES_ON && is_name) {
        step = take_name(reader);
    }
    return step == TOOLS_GOES_ON ? tools_go(reader, read_comma) : step;
}

static enum tools_step begin_value(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    reader->json = (struct tools_json){0};
    object->begin = reader->at;
    return object->key == TOOLS_ARGUMENTS && !object->has_arguments ? begin_arguments(reader, c)
                                                                    : tools_go(reader, read_member);
}

static enum tools_step read_colon(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    tools_move(reader, reader->at + 1);
    return c == ':' ? tools_go(reader, begin_value) : TOOLS_REFUSES;
}

static enum tools_step read_key_text(struct tools_reader *reader)
{
    enum tools_step step = read_value(reader);
    if (step != TOOLS_GOES_ON) {
        return step;
    }
    struct json_string key = string_of(reader);
    reader->object.key =
        json_string_is(&key, "name") || json_string_is(&key, "tool_name")         ? TOOLS_NAME
        : json_string_is(&key, "arguments") || json_string_is(&key, "parameters") ? TOOLS_ARGUMENTS
                                                                                  : TOOLS_OTHER;
    return tools_go(reader, read_colon);
}

/* ---- objects --------------------------------------------------------------------------------- */

static enum tools_step end_object(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    tools_move(reader, reader->at + 1);
    enum tools_step step = object->name.len == 0 ? TOOLS_REFUSES
                           : object->has_begun   ? TOOLS_GOES_ON
                                                 : tools_add_empty_call(reader, object->name);
    object->is_open = false;
    return step != TOOLS_GOES_ON
               ? step
               : tools_go(reader, reader->is_listed ? read_between : tools_behind_call);
}

static enum tools_step read_comma(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    if (c == '}') {
        return end_object(reader);
    }
    tools_move(reader, reader->at + 1);
    return c == ',' ? tools_go(reader, read_key) : TOOLS_REFUSES;
}

static enum tools_step read_key(struct tools_reader *reader)
{
    struct tools_object *object = &reader->object;
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    object->begin = reader->at;
    reader->json = (struct tools_json){0};
    return c == '"' ? tools_go(reader, read_key_text) : TOOLS_REFUSES;
}

static enum tools_step read_object(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    reader->object = (struct tools_object){.is_open = true};
    tools_move(reader, reader->at + 1);
    return c == '{' ? tools_go(reader, read_key) : TOOLS_REFUSES;
}

enum tools_step tools_read_object(struct tools_reader *reader)
{
    reader->is_listed = false;
    return tools_go(reader, read_object);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static enum tools_step read_between(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    tools_move(reader, reader->at + 1);
    return c == ','   ? tools_go(reader, read_object)
           : c == ']' ? tools_go(reader, tools_behind_call)
                      : TOOLS_REFUSES;
}

static enum tools_step read_first(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    return c == '{'                               ? tools_go(reader, read_object)
           : reader->family->form == TOOLS_PYTHON ? tools_go(reader, tools_read_literal_list)
                                                  : TOOLS_REFUSES;
}

enum tools_step tools_read_list(struct tools_reader *reader)
{
    tools_move(reader, reader->at + 1);
    reader->is_listed = true;
    return tools_go(reader, read_first);
}
