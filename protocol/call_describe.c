/* SPDX-License-Identifier: MIT */
/*
 * Describes the requests of a method: a JSON Schema (draft 2020-12) and one example that works.
 * Both follow the structure of the inputs; its root is split into "args" and "kwargs".
 */
#include "config.h"

#include <inttypes.h>

#include "protocol/call_priv.h"
#include "protocol/json.h"

struct describer {
    const struct call_method *method;
    const struct shape *shapes; /* of the example */
    const char *gap;            /* the value at a position that the structure leaves out */
    struct buf *out;
    uint32_t args, kwargs; /* nodes */
};

static const struct sip_node *node_at(const struct describer *d, uint32_t index)
{
    return &d->method->structure->inputs.nodes[index];
}

static uint32_t index_of(const struct describer *d, const struct sip_node *node)
{
    return (uint32_t)(node - d->method->structure->inputs.nodes);
}

static void print_key(struct describer *d, const struct sip_node *node)
{
    call_print_key(&d->method->structure->inputs, node, d->gap, d->out);
}

static bool is_optional(const struct call_io *io)
{
    return io->kind == CALL_NONE || io->fixed || io->is_filled;
}

/* ---- the example ----------------------------------------------------------------------------- */

/* Integers are 1: a valid index of most tables, harmless as a divisor, and not an empty mask. */
static const char *example_number(enum dtype dtype)
{
    enum dtype_kind kind = dtype_infos[dtype].kind;
    return kind == DTYPE_BOOL ? "false" : kind == DTYPE_INT ? "1" : "0";
}

static void print_numbers(struct buf *out, const struct call_io *io, const struct shape *shape)
{
    const char *number = example_number(io->dtype);
    int64_t index[SHAPE_RANK_MAX] = {0};
    unsigned level = 0;
    while (!buf_failed(out)) {
        bool is_array = level < shape->rank;
        if (is_array && index[level] < shape->dims[level]) {
            buf_add_str(out, index[level] ? "," : "[");
            index[level++]++;
            if (level < shape->rank) {
                index[level] = 0;
            }
            continue;
        }
        if (is_array) {
            buf_add_str(out, shape->dims[level] ? "]" : "[]");
        } else {
            buf_add_str(out, number);
        }
        if (level-- == 0) {
            return;
        }
    }
}

/* A tensor with more elements is written with "fill". */
#define EXAMPLE_NUMBERS_MAX 64

static void print_filled(struct buf *out, const struct call_io *io, const struct shape *shape)
{
    char text[SHAPE_TEXT_MAX];
    buf_printf(out, "{\"dtype\":\"%s\",\"shape\":%s,\"fill\":%s}", dtype_name(io->dtype),
               shape_print(shape, text), example_number(io->dtype));
}

static enum status example_leaf(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    const struct call_io *io = &d->method->inputs[node->raw_index];
    print_key(d, node);
    if (io->fixed) {
        buf_add_str(d->out, io->fixed);
    } else if (io->kind == CALL_TENSOR &&
               shape_numel(&d->shapes[node->raw_index]) > EXAMPLE_NUMBERS_MAX) {
        print_filled(d->out, io, &d->shapes[node->raw_index]);
    } else if (io->kind == CALL_TENSOR || io->kind == CALL_SCALAR) {
        print_numbers(d->out, io, &d->shapes[node->raw_index]);
    } else {
        buf_add_str(d->out, io->kind == CALL_STRING ? "\"\"" : "null");
    }
    return ST_OK;
}

static enum status example_open(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    uint32_t index = index_of(d, node);
    if (index == d->args) {
        buf_add_str(d->out, "\"args\":[");
    } else if (index == d->kwargs) {
        buf_add_str(d->out, index ? "],\"kwargs\":{" : "\"kwargs\":{");
    } else {
        print_key(d, node);
        buf_add_char(d->out, node->kind == SIP_DICT ? '{' : '[');
    }
    return ST_OK;
}

static enum status example_close(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    bool is_closed = index_of(d, node) == d->args && d->kwargs != SIP_NO_NODE;
    if (!is_closed) {
        buf_add_char(d->out, node->kind == SIP_DICT ? '}' : ']');
    }
    return ST_OK;
}

/* ---- the schema ------------------------------------------------------------------------------ */

/* Members of the schema of one element. */
static void print_number_type(struct buf *out, const struct call_io *io)
{
    enum dtype_kind kind = dtype_infos[io->dtype].kind;
    buf_add_str(out, kind == DTYPE_FLOAT  ? "\"anyOf\":[{\"type\":\"number\"},"
                                            "{\"enum\":[\"NaN\",\"Infinity\",\"-Infinity\"]}]"
                     : kind == DTYPE_BOOL ? "\"type\":\"boolean\""
                                          : "\"type\":\"integer\"");
}

/* Files or texts that stand for rows, in front of the other forms of a tensor. */
static void print_media_schema(struct buf *out, enum call_medium medium)
{
    const char *item = medium == CALL_WORDS
                           ? "{\"type\":\"string\"}"
                           : "{\"type\":\"string\",\"contentEncoding\":\"base64\"},"
                             "{\"type\":\"object\",\"properties\":{\"base64\":{\"type\":\"string\","
                             "\"contentEncoding\":\"base64\"}},\"required\":[\"base64\"],"
                             "\"additionalProperties\":false}";
    if (medium != CALL_NO_MEDIUM) {
        buf_printf(out, "%s,{\"type\":\"array\",\"minItems\":1,\"items\":{\"anyOf\":[%s]}},", item,
                   item);
    }
}

static void print_tensor_schema(struct buf *out, const struct call_io *io)
{
    const struct shape *shape = &io->shape;
    char text[CALL_IO_TEXT_MAX];
    buf_add_char(out, '{');
    if (io->name) {
        buf_printf(out, "\"title\":\"%s\",", io->name); /* it needs no escapes */
    }
    buf_printf(out, "\"description\":\"%s\",\"anyOf\":[", call_print_io(io, text));
    print_media_schema(out, io->medium);
    for (uint8_t d = 0; d < shape->rank; d++) {
        buf_add_str(out, "{\"type\":\"array\"");
        if (shape->dims[d] >= 0) {
            buf_printf(out, ",\"minItems\":%" PRId64 ",\"maxItems\":%" PRId64, shape->dims[d],
                       shape->dims[d]);
        } else {
            buf_printf(out, ",\"maxItems\":%" PRId64, io->bounds.dims[d]);
        }
        buf_add_str(out, ",\"items\":");
    }
    buf_add_char(out, '{');
    print_number_type(out, io);
    for (uint8_t d = 0; d <= shape->rank; d++) {
        buf_add_char(out, '}');
    }
    buf_printf(out, ",{\"type\":\"object\",\"properties\":{\"dtype\":{\"enum\":[\"%s\",\"%s\"",
               dtype_name(io->dtype), dtype_infos[io->dtype].oip);
    if (dtype_infos[io->dtype].kind == DTYPE_INT) {
        buf_printf(out, ",\"%s\"", dtype_infos[io->dtype].long_text);
    }
    buf_add_str(out, "]},\"shape\":{\"type\":\"array\"");
    for (uint8_t d = 0; d < shape->rank; d++) {
        buf_add_str(out, d ? "," : ",\"prefixItems\":[");
        if (shape->dims[d] >= 0) {
            buf_printf(out, "{\"const\":%" PRId64 "}", shape->dims[d]);
        } else {
            buf_printf(out, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":%" PRId64 "}",
                       io->bounds.dims[d]);
        }
    }
    buf_printf(out,
               "%s,\"minItems\":%u,\"maxItems\":%u},\"base64\":{\"type\":\"string\"},"
               "\"binary_data_size\":{\"type\":\"integer\"},"
               "\"strides\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
               "\"order\":{\"enum\":[\"row_major\",\"channels_last\"]},"
               "\"offset\":{\"type\":\"integer\",\"minimum\":0},\"fill\":{",
               shape->rank ? "]" : "", shape->rank, shape->rank);
    print_number_type(out, io);
    buf_add_str(out, "}},\"required\":[\"dtype\",\"shape\"],\"oneOf\":[{\"required\":[\"base64\"]},"
                     "{\"required\":[\"binary_data_size\"]},{\"required\":[\"fill\"]}],"
                     "\"additionalProperties\":false}]}");
}

static enum status schema_leaf(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    const struct call_io *io = &d->method->inputs[node->raw_index];
    struct buf *out = d->out;
    print_key(d, node);
    if (io->fixed) {
        buf_printf(out, "{\"enum\":[%s,null]}", io->fixed);
    } else if (io->kind == CALL_TENSOR) {
        print_tensor_schema(out, io);
    } else if (io->kind == CALL_SCALAR) {
        buf_add_char(out, '{');
        print_number_type(out, io);
        buf_add_char(out, '}');
    } else {
        buf_printf(out, "{\"type\":\"%s\"}", io->kind == CALL_STRING ? "string" : "null");
    }
    return ST_OK;
}

/* Keyword arguments are a child of the node "args", and no element of it. */
static bool has_elements(const struct describer *d, const struct sip_node *node)
{
    return node->count > 1 || (node->count == 1 && node->first != d->kwargs);
}

static void open_schema(const struct describer *d, const struct sip_node *node)
{
    bool is_dict = node->kind == SIP_DICT;
    buf_add_str(d->out, is_dict ? "{\"type\":\"object\",\"properties\":{" : "{\"type\":\"array\"");
    /* JSON Schema does not allow an empty list there. */
    buf_add_str(d->out, !is_dict && has_elements(d, node) ? ",\"prefixItems\":[" : "");
}

/* Prints the required members of |node|: all except single values that have a default. */
static bool is_required(const struct describer *d, const struct sip_node *node)
{
    return node->kind != SIP_LEAF || !is_optional(&d->method->inputs[node->raw_index]);
}

/* Does "args" or "kwargs", at |root|, have a required member? */
static bool needs_any(const struct describer *d, uint32_t root)
{
    bool is_needed = false;
    for (uint32_t i = 0; root != SIP_NO_NODE && i < node_at(d, root)->count; i++) {
        uint32_t child = node_at(d, root)->first + i;
        is_needed |= child != d->kwargs && is_required(d, node_at(d, child));
    }
    return is_needed;
}

static void close_dict_schema(struct describer *d, const struct sip_node *node)
{
    bool is_first = true;
    buf_add_str(d->out, "},\"required\":[");
    for (uint32_t i = node->first; i < node->first + node->count; i++) {
        if (is_required(d, node_at(d, i))) {
            buf_add_str(d->out, is_first ? "" : ",");
            json_print_string(d->out, node_at(d, i)->key.name);
            is_first = false;
        }
    }
    buf_add_str(d->out, "],\"additionalProperties\":false}");
}

/* The number of required elements. Only elements after these may be left out. */
static void close_sequence_schema(struct describer *d, const struct sip_node *node)
{
    int64_t max = 0, min = 0;
    for (uint32_t i = node->first; i < node->first + node->count; i++) {
        if (i != d->kwargs) {
            max = node_at(d, i)->key.position + 1;
            min = is_required(d, node_at(d, i)) ? max : min;
        }
    }
    buf_printf(d->out, "%s,\"minItems\":%" PRId64 ",\"maxItems\":%" PRId64 "}",
               has_elements(d, node) ? "]" : "", min, max);
}

static enum status schema_open(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    uint32_t index = index_of(d, node);
    if (index == d->args) {
        buf_add_str(d->out, "\"args\":");
    } else if (index == d->kwargs && index != 0) {
        close_sequence_schema(d, node_at(d, d->args));
        buf_add_str(d->out, ",\"kwargs\":");
    } else if (index == d->kwargs) {
        buf_add_str(d->out, "\"kwargs\":");
    } else {
        print_key(d, node);
    }
    open_schema(d, node);
    return ST_OK;
}

static enum status schema_close(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    bool is_closed = index_of(d, node) == d->args && d->kwargs != SIP_NO_NODE;
    if (node->kind == SIP_DICT) {
        close_dict_schema(d, node);
    } else if (!is_closed) {
        close_sequence_schema(d, node);
    }
    return ST_OK;
}

static void visit(struct describer *d, const struct sip_visitor *visitor)
{
    struct error err;
    if (sip_visit(&d->method->structure->inputs, visitor, d, &err) != ST_OK) {
        d->out->failed = true; /* no callback fails, so the walk ran out of memory */
    }
}

void call_print_example(const struct call_method *method, const struct shape *shapes,
                        struct buf *out)
{
    static const struct sip_visitor visitor = {example_leaf, example_open, example_close};
    struct describer d = {
        method, shapes, "null", out, sip_args(method->structure), sip_kwargs(method->structure)};
    buf_add_char(out, '{');
    visit(&d, &visitor);
    buf_add_char(out, '}');
}

void call_print_schema(const struct call_method *method, struct buf *out)
{
    static const struct sip_visitor visitor = {schema_leaf, schema_open, schema_close};
    struct describer d = {method,
                          NULL,
                          "{\"type\":\"null\"}",
                          out,
                          sip_args(method->structure),
                          sip_kwargs(method->structure)};
    buf_add_str(out, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                     "\"type\":\"object\",\"properties\":{");
    visit(&d, &visitor);
    bool is_empty = d.args == SIP_NO_NODE && d.kwargs == SIP_NO_NODE;
    buf_add_str(out, is_empty ? "" : ",");
    buf_add_str(out, "\"parameters\":{\"type\":\"object\"}},\"required\":[");
    bool has_args = needs_any(&d, d.args);
    buf_add_str(out, has_args ? "\"args\"" : "");
    if (needs_any(&d, d.kwargs)) {
        buf_add_str(out, has_args ? ",\"kwargs\"" : "\"kwargs\"");
    }
    buf_add_str(out, "],\"additionalProperties\":false}");
}
