/* SPDX-License-Identifier: MIT */
/* Inputs whose rows come one by one, each with the rows of other inputs beside it, as in
 * protocol/predict.h. A row stays where it is in the text until it is decoded. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/call_priv.h"
#include "protocol/tensor_text.h"

static const struct call_io *io_at(const struct call_parser *p, uint32_t node)
{
    return &p->method->inputs[p->method->structure->inputs.nodes[node].raw_index];
}

static struct call_leaf *leaf_at(struct call_parser *p, uint32_t node)
{
    return &p->leaves[p->method->structure->inputs.nodes[node].raw_index];
}

static enum status refuse(struct call_parser *p, uint32_t node, const char *got)
{
    char text[CALL_IO_TEXT_MAX];
    return json_fail(&p->in, p->err, ST_INVALID, "expected a row of %s, got %s",
                     call_print_io(io_at(p, node), text), got);
}

/* The text of one row, and its shape. */
static enum status read_text(struct call_parser *p, uint32_t node, struct span *out,
                             struct shape *out_shape)
{
    char next[JSON_NEXT_TEXT_MAX];
    enum json_type type = json_peek(&p->in);
    if (type == JSON_ARRAY) {
        const struct call_leaf *leaf = leaf_at(p, node);
        TRY(json_array_text(&p->in, out, p->err));
        if (tensor_text_measure(*out, out_shape, p->err) == ST_OK) {
            return ST_OK;
        }
        error_prefix(p->err, "[%" PRIu32 "]", leaf->item_count);
        return call_prefix(p->method, leaf, (uint32_t)(leaf - p->leaves), "", p->err);
    }
    const char *got = json_next_text(&p->in, next);
    *out_shape = (struct shape){.rank = 0};
    TRY(json_skip(&p->in, p->err));
    *out = span_of(p->in.value, (size_t)(p->in.at - p->in.value));
    bool is_word = type == JSON_STRING && tensor_text_is_word(*out);
    return type == JSON_NUMBER || type == JSON_BOOL || type == JSON_NULL || is_word
               ? ST_OK
               : refuse(p, node, got);
}

/* The shape of the first row is that of all. */
static enum status take_shape(struct call_parser *p, uint32_t node, const struct shape *row)
{
    struct call_leaf *leaf = leaf_at(p, node);
    struct shape whole = {.rank = (uint8_t)(row->rank + 1)};
    if (whole.rank != io_at(p, node)->shape.rank) {
        char text[SHAPE_TEXT_MAX];
        return refuse(p, node, shape_print(row, text));
    }
    memcpy(whole.dims + 1, row->dims, row->rank * sizeof(row->dims[0]));
    if (leaf->item_count > 0 && !shape_equal(&whole, &leaf->shape)) {
        char text[SHAPE_TEXT_MAX];
        return json_fail(&p->in, p->err, ST_INVALID, "expected the shape of the first row, got %s",
                         shape_print(row, text));
    }
    leaf->shape = whole;
    return ST_OK;
}

static enum status read_numbers(struct call_parser *p, uint32_t node)
{
    struct call_leaf *leaf = leaf_at(p, node);
    struct call_item item = {.encoding = CALL_TEXT};
    struct shape row;
    if (io_at(p, node)->kind != CALL_TENSOR || io_at(p, node)->shape.rank == 0) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "this input has no rows, expected \"inputs\" in place of \"instances\"");
    }
    if (leaf->item_count > 0 && leaf->encoding != CALL_ROWS) {
        return refuse(p, node, "numbers in place of a file or a text");
    }
    TRY(read_text(p, node, &item.data, &row));
    TRY(take_shape(p, node, &row));
    TRY(call_add_item(p->arena, leaf, &item, p->err));
    leaf->encoding = CALL_ROWS;
    return ST_OK;
}

enum status call_read_row(struct call_parser *p, uint32_t node, uint32_t row)
{
    struct call_leaf *leaf = leaf_at(p, node);
    enum json_type type = json_peek(&p->in);
    enum call_medium medium = io_at(p, node)->medium;
    bool is_item = (type == JSON_STRING && medium != CALL_NO_MEDIUM) ||
                   (type == JSON_OBJECT && medium == CALL_FILE);
    if (leaf->item_count != row) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         leaf->item_count > row ? "this input is given twice"
                                                : "an earlier row lacks this input");
    }
    if (!is_item) {
        return read_numbers(p, node);
    }
    if (leaf->encoding == CALL_ROWS) {
        return refuse(p, node, "a file or a text in place of numbers");
    }
    leaf->is_list = true;
    return call_read_item(p, node);
}

enum status call_finish_rows(struct call_parser *p, uint32_t node, uint32_t rows)
{
    struct call_leaf *leaf = leaf_at(p, node);
    if (leaf->item_count != rows) {
        return call_fail(p, node, ": expected %" PRIu32 " rows, got %" PRIu32, rows,
                         leaf->item_count);
    }
    if (leaf->encoding != CALL_ROWS) {
        return ST_OK;
    }
    leaf->shape.dims[0] = rows;
    return call_verify_shape(p, node, leaf);
}

enum status call_decode_rows(const struct call_leaf *leaf, enum dtype dtype, struct tensor_nan *nan,
                             void *dst, struct error *err)
{
    struct shape row = {.rank = (uint8_t)(leaf->shape.rank - 1)};
    size_t bytes = leaf->bytes / leaf->item_count;
    uint8_t *to = dst;
    memcpy(row.dims, leaf->shape.dims + 1, row.rank * sizeof(row.dims[0]));
    for (uint32_t i = 0; i < leaf->item_count; i++, to += bytes) {
        struct span text = leaf->items[i].data;
        enum status status = row.rank == 0
                                 ? tensor_text_parse_element(text, dtype, nan, to, err)
                                 : tensor_text_parse(text, dtype, &row, nan, to, bytes, err);
        if (status != ST_OK) {
            return error_prefix(err, "[%" PRIu32 "]", i);
        }
    }
    return ST_OK;
}
