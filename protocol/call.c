/* SPDX-License-Identifier: MIT */
/*
 * Walks a request's structure. The text leads and the method's tree follows: each array or object
 * that is open in the text corresponds to one node of the tree. So the walk needs no stack beside
 * the JSON reader's.
 */
#include "config.h"

#include "protocol/call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/call_priv.h"

#define PATH_BYTES_MAX 160
#define MEMBERS_BYTES_MAX 1024

/* ---- paths ----------------------------------------------------------------------------------- */

/* The place of |node| as the client wrote it. |leaf|: the node's; or NULL. */
static void print_place(const struct call_method *method, const struct call_leaf *leaf,
                        uint32_t node, struct buf *out)
{
    if (leaf && leaf->is_named) {
        int64_t index = method->structure->inputs.nodes[node].raw_index;
        buf_printf(out, "kwargs[\"%s\"]", method->inputs[index].name);
    } else {
        sip_print_argument(method->structure, node, out);
    }
}

enum status call_fail(const struct call_parser *p, uint32_t node, const char *fmt, ...)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    struct buf path;
    va_list args;
    va_start(args, fmt);
    error_setv(p->err, ST_INVALID, fmt, args);
    va_end(args);
    buf_init(&path, PATH_BYTES_MAX);
    print_place(p->method, n->kind == SIP_LEAF ? &p->leaves[n->raw_index] : NULL, node, &path);
    error_prefix(p->err, "%.*s", SPAN_FMT(buf_span(&path)));
    buf_fini(&path);
    return ST_INVALID;
}

uint32_t call_find_leaf(const struct call_method *method, uint32_t index)
{
    const struct sip_tree *tree = &method->structure->inputs;
    for (uint32_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].kind == SIP_LEAF && tree->nodes[i].raw_index == (int64_t)index) {
            return i;
        }
    }
    unreachable(); /* sip_bind() has seen every input */
}

enum status call_prefix(const struct call_method *method, const struct call_leaf *leaf,
                        uint32_t index, const char *separator, struct error *err)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    print_place(method, leaf, call_find_leaf(method, index), &path);
    error_prefix(err, "%.*s%s", SPAN_FMT(buf_span(&path)), separator);
    buf_fini(&path);
    return err->code;
}

/* ---- the structure --------------------------------------------------------------------------- */

/* How many values |node| has in the text. The dict of keyword arguments is not counted: it has its
 * own member, "kwargs", and is not an element of "args". */
static int64_t value_count(const struct call_parser *p, uint32_t node)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    if (tree->nodes[node].kind == SIP_DICT) {
        return tree->nodes[node].count;
    }
    bool has_kwargs = p->method->structure->has_kwargs && node == sip_args(p->method->structure);
    return sip_length(tree, node) - has_kwargs;
}

/* Enters the array or object that |node| stands for. */
static enum status open_node(struct call_parser *p, uint32_t node)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    bool is_dict = n->kind == SIP_DICT;
    char next[JSON_NEXT_TEXT_MAX];
    if (json_peek(&p->in) != (is_dict ? JSON_OBJECT : JSON_ARRAY)) {
        return call_fail(p, node, ": expected %s of %" PRId64 ", got %s",
                         is_dict ? "an object" : "an array", value_count(p, node),
                         json_next_text(&p->in, next));
    }
    return is_dict ? json_object(&p->in, p->err) : json_array(&p->in, p->err);
}

/* Reads the current element. Positions that the structure leaves out must be null. */
static enum status find_element(struct call_parser *p, uint32_t node, uint32_t *out_child)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    int64_t position = p->in.levels[p->in.depth - 1].item_index;
    int64_t length = value_count(p, node);
    if (position >= length) {
        return call_fail(p, node, "[%" PRId64 "]: unexpected, the method takes %" PRId64 " here",
                         position, length);
    }
    *out_child = sip_find_position(tree, node, position);
    if (*out_child != SIP_NO_NODE) {
        return ST_OK;
    }
    return json_peek(&p->in) == JSON_NULL
               ? json_read_null(&p->in, p->err)
               : call_fail(p, node, "[%" PRId64 "]: expected null, the method takes nothing here",
                           position);
}

/* May "kwargs" have raw input |index| by a name that is not its keyword? */
static bool is_named_elsewhere(const struct call_parser *p, uint32_t index)
{
    const struct sip *structure = p->method->structure;
    uint32_t leaf = call_find_leaf(p->method, index), kwargs = sip_kwargs(structure);
    return p->method->inputs[index].name &&
           (kwargs == SIP_NO_NODE || structure->inputs.nodes[leaf].parent != kwargs);
}

/* Prints the members that "kwargs" may have beside the keyword arguments. */
static void print_named(const struct call_parser *p, struct buf *out)
{
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        if (is_named_elsewhere(p, i)) {
            buf_add_str(out, out->len ? ", " : "");
            json_print_string(out, span_str(p->method->inputs[i].name));
        }
    }
}

static enum status refuse_member(const struct call_parser *p, uint32_t node, struct span name)
{
    struct buf keys;
    buf_init(&keys, MEMBERS_BYTES_MAX);
    sip_print_keys(&p->method->structure->inputs, node, &keys);
    if (node == sip_kwargs(p->method->structure)) {
        print_named(p, &keys);
    }
    call_fail(p, node, "[\"%.*s\"]: unknown member, expected %.*s",
              name.len > 64 ? 64 : (int)name.len, (const char *)name.ptr,
              SPAN_FMT(buf_span(&keys)));
    buf_fini(&keys);
    return ST_INVALID;
}

/* The leaf of the argument |name|. */
static uint32_t find_named(const struct call_parser *p, struct span name)
{
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        const char *given = p->method->inputs[i].name;
        if (given && span_is(name, given)) {
            return call_find_leaf(p->method, i);
        }
    }
    return SIP_NO_NODE;
}

static enum status find_member(struct call_parser *p, uint32_t node, const struct json_string *key,
                               uint32_t *out_child)
{
    struct span name;
    TRY(json_string_take(key, p->arena, "the request", &name, p->err));
    *out_child = sip_find_name(&p->method->structure->inputs, node, name);
    if (*out_child == SIP_NO_NODE && node == sip_kwargs(p->method->structure)) {
        *out_child = find_named(p, name);
    }
    return *out_child != SIP_NO_NODE ? ST_OK : refuse_member(p, node, name);
}

/* Moves to the next value inside |node|, or out of it (then in.is_closed). Returns the value's
 * node; SIP_NO_NODE if the position is left out by the structure. */
static enum status next_child(struct call_parser *p, uint32_t node, uint32_t *out_child)
{
    struct json_string key;
    *out_child = SIP_NO_NODE;
    if (p->method->structure->inputs.nodes[node].kind == SIP_SEQUENCE) {
        TRY(json_element(&p->in, p->err));
        return p->in.is_closed ? ST_OK : find_element(p, node, out_child);
    }
    TRY(json_member(&p->in, &key, p->err));
    return p->in.is_closed ? ST_OK : find_member(p, node, &key, out_child);
}

static bool has_names(const struct call_parser *p)
{
    bool has_any = false;
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        has_any |= p->method->inputs[i].name != NULL;
    }
    return has_any;
}

static enum status refuse_named(const struct call_parser *p, struct span name)
{
    struct buf names;
    buf_init(&names, MEMBERS_BYTES_MAX);
    print_named(p, &names);
    error_set(p->err, ST_INVALID, "kwargs[\"%.*s\"]: unknown member, expected %.*s",
              SPAN_SHORT(name), SPAN_FMT(buf_span(&names)));
    buf_fini(&names);
    return ST_INVALID;
}

enum status call_check_once(struct call_parser *p, uint32_t leaf)
{
    int64_t index = p->method->structure->inputs.nodes[leaf].raw_index;
    if (p->leaves[index].encoding == CALL_ABSENT) {
        return ST_OK;
    }
    p->leaves[index].is_named = false;
    return call_fail(p, leaf, ": given twice, at its place and as \"%s\"",
                     p->method->inputs[index].name);
}

static enum status read_once(struct call_parser *p, uint32_t leaf, bool is_named)
{
    TRY(call_check_once(p, leaf));
    p->leaves[p->method->structure->inputs.nodes[leaf].raw_index].is_named = is_named;
    return call_read_leaf(p, leaf);
}

/* "kwargs" of a method without keyword arguments: names of other ones. */
static enum status read_named(struct call_parser *p)
{
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        uint32_t leaf;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        leaf = find_named(p, key.raw); /* no name needs an escape */
        if (leaf == SIP_NO_NODE) {
            return refuse_named(p, key.raw);
        }
        TRY(read_once(p, leaf, true));
    }
}

static enum status read_tree(struct call_parser *p, uint32_t root)
{
    const struct sip_tree *tree = &p->method->structure->inputs;
    unsigned outside = p->in.depth;
    uint32_t node = root;
    if (call_is_promise(p, root)) {
        return call_read_promise(p, root);
    }
    TRY(open_node(p, root));
    while (true) {
        uint32_t child;
        TRY(next_child(p, node, &child));
        if (p->in.is_closed) {
            if (p->in.depth == outside) {
                return ST_OK;
            }
            node = tree->nodes[node].parent;
        } else if (child != SIP_NO_NODE && tree->nodes[child].kind == SIP_LEAF) {
            bool is_named = node == sip_kwargs(p->method->structure);
            TRY(read_once(p, child, is_named && tree->nodes[child].parent != node));
        } else if (child != SIP_NO_NODE && call_is_promise(p, child)) {
            TRY(call_read_promise(p, child));
        } else if (child != SIP_NO_NODE) {
            TRY(open_node(p, child));
            node = child;
        }
    }
}

static enum status refuse_all(struct call_parser *p, const struct json_string *key)
{
    uint32_t kwargs = sip_kwargs(p->method->structure);
    struct buf keys;
    buf_init(&keys, MEMBERS_BYTES_MAX);
    if (kwargs != SIP_NO_NODE) {
        buf_add_str(&keys, ", expected kwargs: ");
        sip_print_keys(&p->method->structure->inputs, kwargs, &keys);
    }
    error_set(p->err, ST_INVALID, "%.*s: the method takes none%.*s", SPAN_FMT(key->raw),
              SPAN_FMT(buf_span(&keys)));
    buf_fini(&keys);
    return ST_INVALID;
}

/* Reads "args" or "kwargs" of a method that takes none: the value must be null or empty. */
static enum status read_nothing(struct call_parser *p, const struct json_string *key)
{
    bool is_array = json_peek(&p->in) == JSON_ARRAY;
    struct json_string member;
    TRY(is_array ? json_array(&p->in, p->err) : json_object(&p->in, p->err));
    TRY(is_array ? json_element(&p->in, p->err) : json_member(&p->in, &member, p->err));
    return p->in.is_closed ? ST_OK : refuse_all(p, key);
}

/* Members that belong to the list around this request; the list reads them itself. */
static bool is_of_list(const struct call_parser *p, const struct json_string *key)
{
    return p->limits->oip.is_listed &&
           (json_string_is(key, "id") || json_string_is(key, "answer") ||
            json_string_is(key, "model_name") || json_string_is(key, "model_version"));
}

static enum status read_member(struct call_parser *p, const struct json_string *key)
{
    bool is_args = json_string_is(key, "args");
    if (json_string_is(key, "parameters")) {
        return oip_read_parameters(&p->reader, &p->parameters);
    }
    if (json_string_is(key, "outputs") && p->limits->shapes_only) {
        return oip_read_outputs(&p->reader, &p->outputs);
    }
    if (is_of_list(p, key)) {
        return json_skip(&p->in, p->err);
    }
    if (!is_args && !json_string_is(key, "kwargs")) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "unknown member, expected args, kwargs or parameters");
    }
    if (json_peek(&p->in) == JSON_NULL) {
        return json_read_null(&p->in, p->err);
    }
    bool is_named = !is_args && has_names(p) && sip_kwargs(p->method->structure) == SIP_NO_NODE;
    if (is_named) {
        p->in.indexed_depth = JSON_LEVELS_MAX;
        TRY(read_named(p));
        p->in.indexed_depth = 0;
        return ST_OK;
    }
    uint32_t node = is_args ? sip_args(p->method->structure) : sip_kwargs(p->method->structure);
    if (node == SIP_NO_NODE) {
        return read_nothing(p, key);
    }
    p->in.indexed_depth = JSON_LEVELS_MAX;
    TRY(read_tree(p, node));
    p->in.indexed_depth = 0;
    return ST_OK;
}

static bool has_dynamic_dim(const struct call_io *io)
{
    bool is_dynamic = false;
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        is_dynamic |= io->shape.dims[d] < 0;
    }
    return is_dynamic;
}

/* Does the client give arguments by their names? Then messages do, too. */
static bool gives_names(const struct call_parser *p)
{
    bool has_any = false;
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        has_any |= p->leaves[i].is_named;
    }
    return has_any;
}

enum status call_check_missing(const struct call_parser *p)
{
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        const struct call_io *io = &p->method->inputs[i];
        bool may_lack = io->kind == CALL_NONE || io->fixed || io->is_filled ||
                        (p->limits->shapes_only && !has_dynamic_dim(io));
        if (p->leaves[i].encoding == CALL_ABSENT && !may_lack) {
            char text[CALL_IO_TEXT_MAX];
            p->leaves[i].is_named = io->name && gives_names(p);
            return call_fail(p, call_find_leaf(p->method, i), ": missing, expected %s",
                             call_print_io(io, text));
        }
    }
    return ST_OK;
}

bool call_is_body(struct span json)
{
    struct json in;
    struct json_string key;
    struct error err;
    json_init(&in, json);
    if (json_object(&in, &err) != ST_OK) {
        return false;
    }
    while (json_member(&in, &key, &err) == ST_OK) {
        if (in.is_closed || json_string_is(&key, "args") || json_string_is(&key, "kwargs")) {
            return true;
        }
        if (json_string_is(&key, "inputs") || json_skip(&in, &err) != ST_OK) {
            return false;
        }
    }
    return false;
}

void call_parser_init(struct call_parser *p, const struct oip_body *body,
                      const struct call_method *method, const struct call_limits *limits,
                      struct arena *arena, struct error *err)
{
    p->method = method;
    p->limits = limits;
    p->arena = arena;
    p->binary = body->binary;
    p->err = err;
    p->parameters = (struct oip_parameters){.priority = 0};
    p->leaves = arena_array(arena, method->input_count, sizeof(*p->leaves));
    p->outputs = (struct oip_outputs){.count = 0};
    p->reader = (struct oip_reader){&p->in, &limits->oip, arena, err, limits->shapes_only, false};
    json_init(&p->in, body->json);
    p->in.start -= body->json_offset;
    if (limits->oip.json_depth_max < JSON_DEPTH_MAX) {
        p->in.depth_max = (uint16_t)limits->oip.json_depth_max;
    }
}

enum status call_parse(const struct oip_body *body, const struct call_method *method,
                       const struct call_limits *limits, struct arena *arena,
                       struct call_request *out, struct span *out_rest, struct error *err)
{
    struct call_parser p; /* no initialiser: it would clear the reader's tables too */
    call_parser_init(&p, body, method, limits, arena, err);
    if (!p.leaves) {
        return arena_fail(arena, "the request", err);
    }
    p.reader.is_call = true;
    TRY(json_object(&p.in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p.in, &key, err));
        if (p.in.is_closed) {
            break;
        }
        TRY(read_member(&p, &key));
    }
    TRY(json_end(&p.in, err));
    TRY(call_check_missing(&p));
    if (out_rest) {
        *out_rest = p.binary;
    } else {
        TRY(oip_verify_rest(p.binary, err));
    }
    *out =
        (struct call_request){.parameters = p.parameters, .leaves = p.leaves, .outputs = p.outputs};
    return ST_OK;
}
