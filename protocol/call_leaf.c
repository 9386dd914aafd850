/* SPDX-License-Identifier: MIT */
/* Leaves of a call: finds each leaf's text or bytes and its shape, and decodes it to a tensor. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/base64.h"
#include "protocol/call_priv.h"
#include "protocol/tensor_text.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* "int64", "sint64" and "INT64" are the same. */
static bool find_dtype(struct span name, enum dtype *out_dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (dtype_is_public((enum dtype)i) &&
            (span_is(name, dtype_infos[i].long_text) || span_is(name, dtype_name((enum dtype)i)))) {
            *out_dtype = (enum dtype)i;
            return true;
        }
    }
    return dtype_from_oip(name, out_dtype);
}

const char *call_print_io(const struct call_io *io, char text[CALL_IO_TEXT_MAX])
{
    const char *name = io->kind == CALL_NONE     ? "null"
                       : io->kind == CALL_STRING ? "string"
                                                 : dtype_name(io->dtype);
    size_t len = (size_t)snprintf(text, CALL_IO_TEXT_MAX, "%s", name);
    if (io->kind != CALL_TENSOR) {
        return text;
    }
    for (uint8_t d = 0; d < io->shape.rank && len < CALL_IO_TEXT_MAX; d++) {
        char dim[24] = "?";
        if (io->shape.dims[d] >= 0) {
            snprintf(dim, sizeof(dim), "%" PRId64, io->shape.dims[d]);
        }
        len += (size_t)snprintf(text + len, CALL_IO_TEXT_MAX - len, "%c%s", d ? ',' : '[', dim);
    }
    if (len < CALL_IO_TEXT_MAX) {
        snprintf(text + len, CALL_IO_TEXT_MAX - len, io->shape.rank ? "]" : "[]");
    }
    return text;
}

/* "expected float32[?,128], got |got|" */
static enum status refuse(const struct call_parser *p, uint32_t node, const char *got)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    const struct call_io *io = &p->method->inputs[n->raw_index];
    char text[CALL_IO_TEXT_MAX];
    return call_fail(p, node, ": expected %s%s, got %s", call_print_io(io, text),
                     io->medium == CALL_FILE    ? " or a file in base64"
                     : io->medium == CALL_WORDS ? " or a text"
                                                : "",
                     got);
}

/* ---- shapes and sizes ------------------------------------------------------------------------ */

static bool shape_fits(const struct shape *shape, const struct shape *wanted)
{
    if (shape->rank != wanted->rank) {
        return false;
    }
    for (uint8_t d = 0; d < shape->rank; d++) {
        if (wanted->dims[d] >= 0 && wanted->dims[d] != shape->dims[d]) {
            return false;
        }
    }
    return true;
}

/* Nesting cannot show the dims after an empty one; they come from the method, where it knows them.
 */
static void complete_empty(struct shape *shape, const struct shape *wanted)
{
    if (shape->rank == 0 || shape->dims[shape->rank - 1] != 0) {
        return;
    }
    while (shape->rank < wanted->rank) {
        int64_t dim = wanted->dims[shape->rank];
        shape->dims[shape->rank++] = dim < 0 ? 0 : dim;
    }
}

/* The same statuses as for tensors of the Open Inference Protocol. */
static enum status verify_size(const struct call_parser *p, uint32_t node, const struct call_io *io,
                               struct call_leaf *leaf)
{
    char shape[SHAPE_TEXT_MAX];
    bool is_few = shape_bytes(&leaf->shape, io->dtype, &leaf->bytes, NULL) == ST_OK &&
                  (uint64_t)shape_numel(&leaf->shape) <= p->limits->element_count_max;
    if (is_few && leaf->bytes <= p->limits->oip.tensor_bytes_max) {
        return ST_OK;
    }
    shape_print(&leaf->shape, shape);
    if (!is_few) {
        error_set(p->err, ST_INVALID, ": shape %.80s: expected at most %" PRIu64 " elements", shape,
                  p->limits->element_count_max);
    } else {
        error_set(p->err, ST_TOO_LARGE, ": shape %.80s takes %zu bytes, expected at most %zu",
                  shape, leaf->bytes, p->limits->oip.tensor_bytes_max);
    }
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    return call_prefix(p->method, leaf, (uint32_t)n->raw_index, "", p->err);
}

/* |named|: the leaf gives its type itself. */
static enum status verify_shape(const struct call_parser *p, uint32_t node,
                                const struct call_io *io, struct call_leaf *leaf, const char *named)
{
    if (!shape_fits(&leaf->shape, &io->shape)) {
        char dims[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
        shape_print(&leaf->shape, dims);
        snprintf(got, sizeof(got), "%s%.120s", named ? named : "shape ", dims);
        return refuse(p, node, got);
    }
    TRY(verify_size(p, node, io, leaf));
    leaf->stored = leaf->bytes;
    return ST_OK;
}

enum status call_verify_shape(const struct call_parser *p, uint32_t node, struct call_leaf *leaf)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    return verify_shape(p, node, &p->method->inputs[n->raw_index], leaf, NULL);
}

/* ---- typed objects --------------------------------------------------------------------------- */

struct typed {
    bool has_dtype, has_shape, has_size, is_promise;
    enum dtype dtype;
    uint64_t size;
    struct json_string base64; /* without text: absent */
    struct span fill;          /* likewise */
    struct oip_layout layout;
};

static enum status read_typed_member(struct call_parser *p, const struct json_string *key,
                                     bool is_file, struct typed *typed, struct call_leaf *leaf)
{
    struct json_string text;
    if (json_string_is(key, "dtype")) {
        typed->has_dtype = true;
        TRY(json_read_string(&p->in, &text, p->err));
        return find_dtype(text.raw, &typed->dtype)
                   ? ST_OK
                   : json_fail(&p->in, p->err, ST_INVALID,
                               "unknown dtype \"%.*s\", expected one like float32, int64 or bool",
                               text.raw.len > 32 ? 32 : (int)text.raw.len,
                               (const char *)text.raw.ptr);
    }
    if (json_string_is(key, "shape")) {
        typed->has_shape = true;
        return oip_read_shape(&p->in, &leaf->shape, p->err);
    }
    if (json_string_is(key, "base64") || (is_file && json_string_is(key, "b64"))) {
        return json_read_string(&p->in, &typed->base64, p->err);
    }
    if (json_string_is(key, "binary_data_size")) {
        typed->has_size = true;
        return json_read_u64(&p->in, &typed->size, p->err);
    }
    if (json_string_is(key, "fill")) {
        TRY(json_skip(&p->in, p->err));
        typed->fill = span_of(p->in.value, (size_t)(p->in.at - p->in.value));
        return ST_OK;
    }
    if (json_string_is(key, "$from")) {
        typed->is_promise = true;
        return oip_read_promise(&p->reader, &leaf->promise);
    }
    bool is_read;
    TRY(oip_read_layout(&p->in, key, &typed->layout, &is_read, p->err));
    return is_read
               ? ST_OK
               : json_fail(&p->in, p->err, ST_INVALID,
                           "unknown member, expected dtype, shape, strides, order, offset, base64, "
                           "binary_data_size or fill");
}

static enum status check_layout(struct call_parser *p, uint32_t node, enum dtype dtype,
                                struct call_leaf *leaf)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    return oip_settle_layout(&leaf->layout, &leaf->shape, dtype, leaf->stored, p->err) == ST_OK
               ? ST_OK
               : call_prefix(p->method, leaf, (uint32_t)n->raw_index, "", p->err);
}

/* Takes the tensor's bytes. Type and shape give their number, unless there is a layout. */
static enum status take_binary(struct call_parser *p, uint32_t node, const struct typed *typed,
                               struct call_leaf *leaf)
{
    if (!leaf->layout.is_given && typed->size != leaf->bytes) {
        return call_fail(p, node, ": binary_data_size is %" PRIu64 ", expected %zu", typed->size,
                         leaf->bytes);
    }
    if (typed->size > p->binary.len) {
        return call_fail(p, node, ": expected %" PRIu64 " bytes behind the JSON, got %zu",
                         typed->size, p->binary.len);
    }
    leaf->encoding = CALL_BINARY;
    leaf->stored = (size_t)typed->size;
    leaf->data = span_of(p->binary.ptr, leaf->stored);
    p->binary = span_of(p->binary.ptr + leaf->stored, p->binary.len - leaf->stored);
    if (leaf->layout.is_given) {
        TRY(check_layout(p, node, typed->dtype, leaf));
        oip_drop_layout(&leaf->layout, &leaf->shape, typed->dtype, &leaf->data);
        leaf->stored = leaf->data.len;
    }
    return ST_OK;
}

enum status call_keep_string(struct call_parser *p, const struct json_string *string,
                             struct span *out)
{
    return json_string_take(string, p->arena, "the request", out, p->err);
}

static enum status take_base64(struct call_parser *p, uint32_t node, const struct typed *typed,
                               struct call_leaf *leaf)
{
    leaf->encoding = CALL_BASE64;
    TRY(call_keep_string(p, &typed->base64, &leaf->data));
    leaf->stored = leaf->layout.is_given ? base64_bytes(leaf->data) : leaf->bytes;
    if (leaf->data.len != base64_text_bytes(leaf->stored)) {
        return call_fail(p, node, ".base64: expected %zu characters for %zu bytes, got %zu",
                         base64_text_bytes(leaf->stored), leaf->stored, leaf->data.len);
    }
    return leaf->layout.is_given ? check_layout(p, node, typed->dtype, leaf) : ST_OK;
}

/* A result of another request has its own type and shape. If the leaf gives them too, they are
 * compared. */
static enum status finish_promise(struct call_parser *p, uint32_t node, const struct typed *typed,
                                  struct call_leaf *leaf)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    const struct call_io *io = &p->method->inputs[n->raw_index];
    if (typed->has_size || typed->base64.raw.ptr || typed->fill.ptr || typed->layout.is_given) {
        return call_fail(p, node, ": has both \"$from\" and data of its own, expected one");
    }
    if (typed->has_dtype && (io->kind == CALL_STRING || typed->dtype != io->dtype)) {
        return refuse(p, node, dtype_name(typed->dtype));
    }
    leaf->encoding = CALL_PROMISE;
    leaf->promise.has_type = typed->has_dtype;
    leaf->promise.has_shape = typed->has_shape;
    return typed->has_shape && io->kind != CALL_STRING
               ? verify_shape(p, node, io, leaf, dtype_name(io->dtype))
               : ST_OK;
}

/* Without a type and a shape it is a file. */
static bool is_file(const struct call_io *io, const struct typed *typed)
{
    return io->medium == CALL_FILE && !typed->has_dtype && !typed->has_shape && !typed->fill.ptr &&
           !typed->layout.is_given && typed->has_size + (typed->base64.raw.ptr != NULL) == 1;
}

static enum status finish_typed(struct call_parser *p, uint32_t node, const struct typed *typed,
                                struct call_leaf *leaf)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    const struct call_io *io = &p->method->inputs[n->raw_index];
    if (typed->is_promise) {
        return finish_promise(p, node, typed, leaf);
    }
    if (io->kind == CALL_STRING) {
        return refuse(p, node, "an object");
    }
    if (is_file(io, typed)) {
        const struct call_typed_text text = {typed->base64, typed->has_size, typed->size};
        return call_take_file(p, node, &text, leaf);
    }
    if (!typed->has_dtype || !typed->has_shape) {
        return call_fail(p, node, ": member \"%s\" is missing",
                         typed->has_dtype ? "shape" : "dtype");
    }
    unsigned encodings =
        typed->has_size + (typed->base64.raw.ptr != NULL) + (typed->fill.ptr != NULL);
    if (encodings != 1 && !(encodings == 0 && p->limits->shapes_only)) {
        return call_fail(p, node, ": expected one of base64, binary_data_size and fill, got %s",
                         encodings ? "several" : "none");
    }
    if (typed->dtype != io->dtype) {
        return refuse(p, node, dtype_name(typed->dtype));
    }
    TRY(verify_shape(p, node, io, leaf, dtype_name(io->dtype)));
    if (typed->layout.is_given && (io->kind != CALL_TENSOR || typed->fill.ptr)) {
        return call_fail(
            p, node, ": strides, order and offset are for tensors with base64 or binary_data_size");
    }
    leaf->layout = typed->layout;
    if (typed->fill.ptr || encodings == 0) {
        leaf->encoding = encodings ? CALL_FILL : CALL_SHAPE;
        leaf->data = typed->fill;
        return ST_OK;
    }
    if (typed->has_size) {
        return take_binary(p, node, typed, leaf);
    }
    return take_base64(p, node, typed, leaf);
}

static enum status read_typed(struct call_parser *p, uint32_t node, struct call_leaf *leaf)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    bool may_be_file = p->method->inputs[n->raw_index].medium == CALL_FILE;
    struct typed typed = {.has_dtype = false};
    p->in.indexed_depth = p->in.depth; /* its members are not part of the method's structure */
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            p->in.indexed_depth = JSON_LEVELS_MAX;
            return finish_typed(p, node, &typed, leaf);
        }
        TRY(read_typed_member(p, &key, may_be_file, &typed, leaf));
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Finds the text and the shape of the array that comes next. */
static enum status measure_nested(struct call_parser *p, uint32_t node, struct call_leaf *leaf)
{
    const uint8_t *behind = tensor_text_pass(p->in.at, p->in.end, &leaf->shape);
    if (behind) {
        leaf->data = span_of(p->in.at, (size_t)(behind - p->in.at));
        p->in.at = behind;
        return ST_OK;
    }
    TRY(json_array_text(&p->in, &leaf->data, p->err));
    if (tensor_text_measure(leaf->data, &leaf->shape, p->err) != ST_OK) {
        const struct sip_node *n = &p->method->structure->inputs.nodes[node];
        return call_prefix(p->method, leaf, (uint32_t)n->raw_index, "", p->err);
    }
    return ST_OK;
}

static enum status read_nested(struct call_parser *p, uint32_t node, const struct call_io *io,
                               struct call_leaf *leaf)
{
    leaf->encoding = CALL_TEXT;
    TRY(measure_nested(p, node, leaf));
    complete_empty(&leaf->shape, &io->shape);
    return verify_shape(p, node, io, leaf, NULL);
}

static enum status read_element(struct call_parser *p, uint32_t node, const struct call_io *io,
                                struct call_leaf *leaf)
{
    char next[JSON_NEXT_TEXT_MAX];
    bool is_string = json_peek(&p->in) == JSON_STRING;
    if (io->shape.rank != 0) {
        return refuse(p, node, json_next_text(&p->in, next));
    }
    TRY(json_skip(&p->in, p->err));
    leaf->encoding = CALL_TEXT;
    leaf->data = span_of(p->in.value, (size_t)(p->in.at - p->in.value));
    return is_string && !tensor_text_is_word(leaf->data) ? refuse(p, node, "a string")
                                                         : verify_shape(p, node, io, leaf, NULL);
}

static enum status read_string(struct call_parser *p, struct call_leaf *leaf)
{
    struct json_string string;
    TRY(json_read_string(&p->in, &string, p->err));
    leaf->encoding = CALL_TEXT;
    return call_keep_string(p, &string, &leaf->data);
}

/* May a value of |type| be the one element of |io|? NaN may be a string, or null. */
static bool is_element(const struct call_io *io, enum json_type type)
{
    if (io->kind != CALL_TENSOR && io->kind != CALL_SCALAR) {
        return false;
    }
    bool is_float = dtype_is_float(io->dtype);
    return type == JSON_NUMBER || type == JSON_BOOL ||
           (is_float && (type == JSON_STRING || type == JSON_NULL));
}

enum status call_read_leaf(struct call_parser *p, uint32_t node)
{
    const struct sip_node *n = &p->method->structure->inputs.nodes[node];
    const struct call_io *io = &p->method->inputs[n->raw_index];
    struct call_leaf *leaf = &p->leaves[n->raw_index];
    enum json_type type = json_peek(&p->in);
    char next[JSON_NEXT_TEXT_MAX];
    if (type == JSON_NULL && (io->kind == CALL_NONE || io->fixed)) {
        return json_read_null(&p->in, p->err);
    }
    if (io->medium != CALL_NO_MEDIUM) {
        bool is_read;
        TRY(call_read_media(p, node, &is_read));
        if (is_read) {
            return ST_OK;
        }
    }
    if (type == JSON_STRING && io->kind == CALL_STRING) {
        return read_string(p, leaf);
    }
    if (type == JSON_OBJECT && io->kind != CALL_NONE) {
        return read_typed(p, node, leaf);
    }
    if (type == JSON_ARRAY && io->kind == CALL_TENSOR) {
        return read_nested(p, node, io, leaf);
    }
    if (is_element(io, type)) {
        return read_element(p, node, io, leaf);
    }
    return refuse(p, node, json_next_text(&p->in, next));
}

/* ---- elements -------------------------------------------------------------------------------- */

static void make_bools(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = bytes[i] != 0;
    }
}

/* Decodes one element, then doubles the filled part until |dst| is full. */
static enum status decode_fill(const struct call_leaf *leaf, enum dtype dtype,
                               struct tensor_nan *nan, void *dst, struct error *err)
{
    uint8_t element[sizeof(uint64_t)], *to = dst;
    size_t done = dtype_bytes(dtype);
    if (tensor_text_parse_element(leaf->data, dtype, nan, element, err) != ST_OK) {
        return error_prefix(err, ".fill");
    }
    if (leaf->bytes == 0) {
        return ST_OK;
    }
    memcpy(to, element, done);
    while (done < leaf->bytes) {
        size_t more = done < leaf->bytes - done ? done : leaf->bytes - done;
        memcpy(to + done, to, more);
        done += more;
    }
    return ST_OK;
}

enum status call_decode_leaf(const struct call_leaf *leaf, enum dtype dtype, struct tensor_nan *nan,
                             void *dst, struct error *err)
{
    switch (leaf->encoding) {
    case CALL_TEXT:
        return leaf->shape.rank == 0
                   ? tensor_text_parse_element(leaf->data, dtype, nan, dst, err)
                   : tensor_text_parse(leaf->data, dtype, &leaf->shape, nan, dst, leaf->bytes, err);
    case CALL_BASE64:
        TRY(base64_decode(leaf->data, dst, leaf->stored, err));
        break;
    case CALL_BINARY:
        if (leaf->stored) {
            memcpy(dst, leaf->data.ptr, leaf->stored);
        }
        break;
    case CALL_FILL:
        return decode_fill(leaf, dtype, nan, dst, err);
    case CALL_ROWS:
        return call_decode_rows(leaf, dtype, nan, dst, err);
    case CALL_SHAPE:
    case CALL_PROMISE:
    case CALL_MEDIA:
    case CALL_ABSENT:
        unreachable();
    }
    if (dtype == DT_BOOL) {
        make_bools(dst, leaf->stored);
    }
    return ST_OK;
}
