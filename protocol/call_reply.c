/* SPDX-License-Identifier: MIT */
/*
 * Prints the answer of a call along the structure of its results. Binary tensors are not copied:
 * the answer is the JSON followed by the memory of the results.
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/call_priv.h"
#include "protocol/json.h"
#include "protocol/tensor_text.h"

struct printer {
    const struct call_method *method;
    const struct call_result *results;
    bool is_binary;
    enum number_nan nan;
    struct buf *out;
    struct oip_encoded *encoded;
};

void call_print_key(const struct sip_tree *tree, const struct sip_node *node, const char *gap,
                    struct buf *out)
{
    if (node->parent == SIP_NO_NODE) {
        return;
    }
    const struct sip_node *parent = &tree->nodes[node->parent];
    bool is_first = node == &tree->nodes[parent->first];
    if (parent->kind == SIP_DICT) {
        buf_add_str(out, is_first ? "" : ",");
        json_print_string(out, node->key.name);
        buf_add_char(out, ':');
        return;
    }
    int64_t at = is_first ? 0 : node[-1].key.position + 1;
    for (; at < node->key.position && !buf_failed(out); at++) {
        buf_add_str(out, at ? "," : "");
        buf_add_str(out, gap);
    }
    buf_add_str(out, at ? "," : "");
}

static void print_key(struct printer *printer, const struct sip_node *node)
{
    call_print_key(&printer->method->structure->results, node, "null", printer->out);
}

static void print_binary(struct printer *printer, const struct call_io *io,
                         const struct call_result *result)
{
    char shape[SHAPE_TEXT_MAX];
    buf_printf(printer->out, "{\"dtype\":\"%s\",\"shape\":%s,%s\"binary_data_size\":%zu}",
               dtype_name(io->dtype), shape_print(&result->shape, shape),
               result->is_channels_last ? "\"order\":\"channels_last\"," : "", result->bytes.len);
    oip_encode_blob(printer->encoded, result->bytes);
}

/* Arrays are nested as the elements lie: channels-last, the innermost are channels. */
static void print_nested(struct printer *printer, const struct call_io *io,
                         const struct call_result *result)
{
    const uint8_t *order =
        result->is_channels_last ? shape_channels_last(result->shape.rank) : NULL;
    struct shape shape = result->shape;
    for (uint8_t i = 0; order && i < shape.rank; i++) {
        shape.dims[i] = result->shape.dims[order[i]];
    }
    tensor_text_print_nested(printer->out, io->dtype, &shape, result->bytes.ptr, printer->nan);
}

/* The score is printed as the tensor's element is. */
static void print_class(struct printer *printer, const struct call_io *io,
                        const struct call_result *result, const struct oip_class *class, size_t row)
{
    size_t bytes = dtype_bytes(io->dtype);
    size_t rows = result->shape.rank > 1 ? (size_t)result->shape.dims[0] : 1;
    size_t row_bytes = result->bytes.len / rows; /* there is a class, so there are rows */
    buf_add_char(printer->out, '{');
    if (class->index < result->label_count) {
        buf_add_str(printer->out, "\"label\":");
        json_print_string(printer->out, result->labels[class->index]);
        buf_add_char(printer->out, ',');
    }
    buf_printf(printer->out, "\"index\":%" PRIu32 ",\"score\":", class->index);
    tensor_text_print_nested(printer->out, io->dtype, &(struct shape){.rank = 0},
                             result->bytes.ptr + row * row_bytes + class->index * bytes,
                             printer->nan);
    buf_add_char(printer->out, '}');
}

static void print_classes(struct printer *printer, const struct call_io *io,
                          const struct call_result *result)
{
    const struct shape *shape = &result->classes_shape;
    bool has_rows = shape->rank > 1;
    size_t rows = has_rows ? (size_t)shape->dims[0] : 1, count = (size_t)shape->dims[has_rows];
    buf_add_str(printer->out, has_rows ? "[" : "");
    for (size_t row = 0; row < rows && !buf_failed(printer->out); row++) {
        buf_add_str(printer->out, row ? ",[" : "[");
        for (size_t i = 0; i < count; i++) {
            buf_add_str(printer->out, i ? "," : "");
            print_class(printer, io, result, &result->classes[row * count + i], row);
        }
        buf_add_char(printer->out, ']');
    }
    buf_add_str(printer->out, has_rows ? "]" : "");
}

static enum status print_leaf(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct printer *printer = user;
    const struct call_io *io = &printer->method->results[node->raw_index];
    const struct call_result *result = &printer->results[node->raw_index];
    print_key(printer, node);
    switch (io->kind) {
    case CALL_NONE:
        buf_add_str(printer->out, "null");
        break;
    case CALL_STRING:
        json_print_string(printer->out, result->bytes);
        break;
    case CALL_SCALAR:
        tensor_text_print_nested(printer->out, io->dtype, &(struct shape){.rank = 0},
                                 result->bytes.ptr, printer->nan);
        break;
    case CALL_TENSOR:
        if (result->json.ptr) {
            buf_add(printer->out, result->json.ptr, result->json.len);
        } else if (result->classes) {
            print_classes(printer, io, result);
        } else if (printer->is_binary) {
            print_binary(printer, io, result);
        } else {
            print_nested(printer, io, result);
        }
        break;
    }
    return ST_OK;
}

static enum status print_open(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct printer *printer = user;
    print_key(printer, node);
    buf_add_char(printer->out, node->kind == SIP_DICT ? '{' : '[');
    return ST_OK;
}

static enum status print_close(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct printer *printer = user;
    buf_add_char(printer->out, node->kind == SIP_DICT ? '}' : ']');
    return ST_OK;
}

static enum status print_results(struct printer *printer, struct error *err)
{
    static const struct sip_visitor visitor = {print_leaf, print_open, print_close};
    const struct sip_tree *tree = &printer->method->structure->results;
    if (tree->nodes[0].kind == SIP_NOTHING) {
        buf_add_str(printer->out, "null");
        return ST_OK;
    }
    return sip_visit(tree, &visitor, printer, err);
}

void call_print_value(const struct call_method *method, const struct call_result *results,
                      struct buf *out)
{
    struct printer printer = {method, results, false, NUMBER_NAN_STRING, out, NULL};
    struct error err;
    if (print_results(&printer, &err) != ST_OK) {
        out->failed = true; /* no callback fails, so the walk ran out of memory */
    }
}

enum status call_print(const struct call_method *method, const struct call_result *results,
                       bool is_binary, enum number_nan nan, struct buf *out,
                       struct oip_encoded *encoded, struct error *err)
{
    struct printer printer = {method, results, is_binary, nan, out, encoded};
    buf_add_str(out, "\"result\":");
    return print_results(&printer, err);
}
