/* SPDX-License-Identifier: MIT */
/* Files and texts in place of a tensor's elements, and inputs whose texts stand apart. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/call_priv.h"
#include "protocol/json_priv.h"

enum status call_add_item(struct arena *arena, struct call_leaf *leaf, const struct call_item *item,
                          struct error *err)
{
    must(leaf->encoding == CALL_ABSENT || leaf->encoding == CALL_MEDIA ||
         leaf->encoding == CALL_ROWS);
    struct call_item *grown = oip_grow(arena, leaf->items, leaf->item_count, sizeof(*grown));
    if (!grown || leaf->item_count == UINT32_MAX) {
        return arena_fail(arena, "the request", err);
    }
    leaf->encoding = CALL_MEDIA;
    leaf->items = grown;
    leaf->items[leaf->item_count++] = *item;
    return ST_OK;
}

enum status call_take_file(struct call_parser *p, uint32_t node, const struct call_typed_text *text,
                           struct call_leaf *leaf)
{
    struct call_item item = {.encoding = CALL_BASE64};
    if (!text->has_size) {
        TRY(call_keep_string(p, &text->base64, &item.data));
        return call_add_item(p->arena, leaf, &item, p->err);
    }
    if (text->size > p->binary.len) {
        return call_fail(p, node, ": expected %" PRIu64 " bytes behind the JSON, got %zu",
                         text->size, p->binary.len);
    }
    item.encoding = CALL_BINARY;
    item.data = span_of(p->binary.ptr, (size_t)text->size);
    p->binary = span_of(p->binary.ptr + item.data.len, p->binary.len - item.data.len);
    return call_add_item(p->arena, leaf, &item, p->err);
}

static enum status read_string(struct call_parser *p, const struct call_io *io,
                               struct call_leaf *leaf)
{
    struct json_string string;
    struct call_item item = {.encoding = io->medium == CALL_WORDS ? CALL_TEXT : CALL_BASE64};
    TRY(json_read_string(&p->in, &string, p->err));
    TRY(call_keep_string(p, &string, &item.data));
    return call_add_item(p->arena, leaf, &item, p->err);
}

/* {"base64": "..."} in a list. */
static enum status read_object(struct call_parser *p, uint32_t node, struct call_leaf *leaf)
{
    struct call_typed_text text = {.has_size = false};
    unsigned depth = p->in.indexed_depth;
    p->in.indexed_depth = p->in.depth;
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            break;
        }
        if (json_string_is(&key, "base64") || json_string_is(&key, "b64")) {
            TRY(json_read_string(&p->in, &text.base64, p->err));
        } else if (json_string_is(&key, "binary_data_size")) {
            text.has_size = true;
            TRY(json_read_u64(&p->in, &text.size, p->err));
        } else {
            return json_fail(&p->in, p->err, ST_INVALID,
                             "unknown member, expected base64 or binary_data_size");
        }
    }
    p->in.indexed_depth = (uint16_t)depth;
    if (text.has_size == (text.base64.raw.ptr != NULL)) {
        return call_fail(p, node, "[%u]: expected base64 or binary_data_size, got %s",
                         leaf->item_count, text.has_size ? "both" : "neither");
    }
    return call_take_file(p, node, &text, leaf);
}

static enum status read_element(struct call_parser *p, uint32_t node, const struct call_io *io,
                                struct call_leaf *leaf)
{
    char next[JSON_NEXT_TEXT_MAX];
    enum json_type type = json_peek(&p->in);
    if (type == JSON_STRING) {
        return read_string(p, io, leaf);
    }
    if (type == JSON_OBJECT && io->medium == CALL_FILE) {
        return read_object(p, node, leaf);
    }
    return call_fail(p, node, "[%u]: expected %s, got %s", leaf->item_count,
                     io->medium == CALL_FILE ? "a file in base64" : "a text",
                     json_next_text(&p->in, next));
}

enum status call_read_item(struct call_parser *p, uint32_t node)
{
    int64_t index = p->method->structure->inputs.nodes[node].raw_index;
    return read_element(p, node, &p->method->inputs[index], &p->leaves[index]);
}

static enum status read_list(struct call_parser *p, uint32_t node, const struct call_io *io,
                             struct call_leaf *leaf)
{
    TRY(json_array(&p->in, p->err));
    leaf->is_list = true;
    while (true) {
        TRY(json_element(&p->in, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        TRY(read_element(p, node, io, leaf));
    }
}

/* The first byte of the first element of the array that comes next; 0: the text ends. */
uint8_t call_first_of_array(const struct json *in)
{
    const uint8_t *at = json_pass_space(in->at + 1, in->end);
    return at < in->end ? *at : 0;
}

enum status call_read_media(struct call_parser *p, uint32_t node, bool *out_is_read)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    const struct call_io *io = &p->method->inputs[n->raw_index];
    struct call_leaf *leaf = &p->leaves[n->raw_index];
    enum json_type type = json_peek(&p->in);
    uint8_t first = type == JSON_ARRAY ? call_first_of_array(&p->in) : 0;
    *out_is_read = true;
    if (type == JSON_STRING) {
        return read_string(p, io, leaf);
    }
    if (first == '"' || (first == '{' && io->medium == CALL_FILE)) {
        return read_list(p, node, io, leaf);
    }
    *out_is_read = false;
    return ST_OK;
}

/* ---- texts that stand apart ------------------------------------------------------------------ */

/* A parser of |json| alone, for leaves that there are already. */
static void begin(struct call_parser *p, struct span json, const struct call_method *method,
                  const struct call_limits *limits, struct arena *arena, struct call_leaf *leaves,
                  struct error *err)
{
    const struct oip_body body = {.json = json};
    static const struct call_method nothing = {.structure = NULL};
    call_parser_init(p, &body, method ? method : &nothing, limits, arena, err);
    p->leaves = leaves;
    p->reader.is_call = true;
}

enum status call_parse_input(struct span json, const struct call_method *method, uint32_t index,
                             const struct call_limits *limits, struct arena *arena,
                             struct call_leaf *leaves, struct error *err)
{
    struct call_parser p; /* no initialiser: it would clear the reader's tables too */
    must(index < method->input_count);
    begin(&p, json, method, limits, arena, leaves, err);
    p.in.indexed_depth = JSON_LEVELS_MAX;
    TRY(call_read_leaf(&p, call_find_leaf(method, index)));
    return json_end(&p.in, err);
}

enum status call_parse_parameters(struct span json, const struct call_limits *limits,
                                  struct arena *arena, struct oip_parameters *out,
                                  struct error *err)
{
    struct call_parser p;
    begin(&p, json, NULL, limits, arena, NULL, err);
    TRY(oip_read_parameters(&p.reader, out));
    return json_end(&p.in, err);
}

enum status call_verify_leaves(const struct call_method *method, const struct call_limits *limits,
                               struct call_leaf *leaves, struct error *err)
{
    struct call_parser p;
    p.method = method;
    p.limits = limits;
    p.leaves = leaves;
    p.err = err;
    return call_check_missing(&p);
}
