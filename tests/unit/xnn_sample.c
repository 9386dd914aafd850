/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/xnn_sample.h"

#include <math.h>

/* The file's numbers (runtime_schema.fbs). */
enum { F32 = 1, QINT8 = 3, QCINT8 = 6, QCINT32 = 7, QDINT8 = 9, QBINT4 = 10 };
enum { TENSOR_VALUE = 1, QUANTIZED_VALUE = 2 };
enum { NO_PARAMS, PER_CHANNEL, PER_TENSOR, PER_ROW, PER_GROUP };
#define NONE UINT32_MAX
#define HEADER_BYTES 30
#define FLAT_AT 32

struct value {
    uint16_t type;
    uint8_t params; /* the union's tag */
    uint8_t dim_count;
    int64_t dims[4];
    enum xnn_sample_constant content, scales;
};

static const struct value values[XV_COUNT] = {
    [XV_IN] = {F32, NO_PARAMS, 4, {1, 4, 4, 2}, XC_NONE, XC_NONE},
    [XV_QUANTIZED] = {QINT8, PER_TENSOR, 4, {1, 4, 4, 2}, XC_NONE, XC_NONE},
    [XV_FILTER] = {QCINT8, PER_CHANNEL, 4, {4, 3, 3, 2}, XC_FILTER, XC_FILTER_SCALES},
    [XV_BIAS] = {QCINT32, PER_CHANNEL, 1, {4}, XC_BIAS, XC_BIAS_SCALES},
    [XV_CONVOLVED] = {QINT8, PER_TENSOR, 4, {1, 4, 4, 4}, XC_NONE, XC_NONE},
    [XV_POOLED] = {QINT8, PER_TENSOR, 4, {1, 2, 2, 4}, XC_NONE, XC_NONE},
    [XV_TRANSPOSED] = {QINT8, PER_TENSOR, 4, {1, 4, 2, 2}, XC_NONE, XC_NONE},
    [XV_FLAT] = {QINT8, PER_TENSOR, 2, {1, 16}, XC_NONE, XC_NONE},
    [XV_FLOATS] = {F32, NO_PARAMS, 2, {1, 16}, XC_NONE, XC_NONE},
    [XV_ROWS] = {QDINT8, PER_ROW, 2, {1, 16}, XC_NONE, XC_NONE},
    [XV_NIBBLES] = {QBINT4, PER_GROUP, 2, {6, 16}, XC_NIBBLES, XC_GROUP_SCALES},
    [XV_LINEAR] = {F32, NO_PARAMS, 2, {1, 6}, XC_NONE, XC_NONE},
    [XV_SLICED] = {F32, NO_PARAMS, 2, {1, 4}, XC_NONE, XC_NONE},
    [XV_PADDED] = {F32, NO_PARAMS, 2, {1, 7}, XC_NONE, XC_NONE},
    [XV_JOINED] = {F32, NO_PARAMS, 2, {1, 11}, XC_NONE, XC_NONE},
    [XV_OUT] = {F32, NO_PARAMS, 2, {1, 11}, XC_NONE, XC_NONE},
};

/* The fields of a node's table, one letter for each, as in runtime/import/xnnpack.h. */
struct node {
    uint8_t tag;
    const char *widths;  /* widths */
    uint32_t fields[20]; /* of the fields that are not lists */
    int64_t lists[2][4];
    uint8_t list_ids[2], list_counts[2];
};

#define WINDOW_SLOTS "4444444444"
#define WINDOW(pad, kernel, stride) pad, pad, pad, pad, kernel, kernel, stride, stride, 1, 1

static const struct node nodes[XN_COUNT] = {
    [XN_QUANTIZE] = {18, "444", {XS_ID(XV_IN), XS_ID(XV_QUANTIZED)}, {{0}}, {0}, {0}},
    [XN_CONV] = {7,
                 WINDOW_SLOTS "4444444444",
                 {WINDOW(1, 3, 1), 2, 4, 1, 0, 0, XS_ID(XV_QUANTIZED), XS_ID(XV_FILTER),
                  XS_ID(XV_BIAS), XS_ID(XV_CONVOLVED)},
                 {{0}},
                 {0},
                 {0}},
    [XN_POOL] = {14,
                 WINDOW_SLOTS "444",
                 {WINDOW(0, 2, 2), XS_ID(XV_CONVOLVED), XS_ID(XV_POOLED)},
                 {{0}},
                 {0},
                 {0}},
    [XN_TRANSPOSE] =
        {5, "44444", {4, 0, XS_ID(XV_POOLED), XS_ID(XV_TRANSPOSED)}, {{0, 3, 1, 2}}, {1}, {4}},
    [XN_RESHAPE] = {20, "44444", {2, 0, XS_ID(XV_TRANSPOSED), XS_ID(XV_FLAT)}, {{1, 16}}, {1}, {2}},
    [XN_DEQUANTIZE] = {18, "444", {XS_ID(XV_FLAT), XS_ID(XV_FLOATS)}, {{0}}, {0}, {0}},
    [XN_ENCODE_ROWS] = {18, "444", {XS_ID(XV_FLOATS), XS_ID(XV_ROWS)}, {{0}}, {0}, {0}},
    [XN_LINEAR] =
        {2, "44444", {XS_ID(XV_ROWS), XS_ID(XV_NIBBLES), NONE, XS_ID(XV_LINEAR)}, {{0}}, {0}, {0}},
    [XN_SLICE] = {35,
                  "444444",
                  {2, 0, 0, XS_ID(XV_LINEAR), XS_ID(XV_SLICED)},
                  {{0, 1}, {1, 4}},
                  {1, 2},
                  {2, 2}},
    [XN_PAD] = {10,
                "444444",
                {0, 0, 0, XS_ID(XV_LINEAR), XS_ID(XV_PADDED)},
                {{0, 0}, {0, 1}},
                {0, 1},
                {2, 2}},
    [XN_JOIN] = {32,
                 "4444444",
                 {1, XS_ID(XV_SLICED), XS_ID(XV_PADDED), NONE, NONE, XS_ID(XV_JOINED)},
                 {{0}},
                 {0},
                 {0}},
    [XN_ADD] = {1, "4444", {XS_ID(XV_JOINED), XS_ID(XV_JOINED), XS_ID(XV_OUT)}, {{0}}, {0}, {0}},
};

/* Bytes of the constants. */
static const size_t constant_bytes[XC_COUNT] = {
    [XC_FILTER] = 72,      [XC_FILTER_SCALES] = 16, [XC_BIAS] = 16,
    [XC_BIAS_SCALES] = 16, [XC_NIBBLES] = 48,       [XC_GROUP_SCALES] = 24,
};

static void set(struct writer *w, size_t table, size_t id, uint64_t value, size_t width)
{
    writer_put(w, writer_field(w, table, id), value, width);
}

static void set_float(struct writer *w, size_t at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    writer_put(w, at, bits, sizeof(bits));
}

static size_t child(struct writer *w, size_t table, size_t id, const char *widths)
{
    return writer_child(w, writer_field(w, table, id), widths);
}

static size_t vector(struct writer *w, size_t table, size_t id, size_t count, size_t width)
{
    return writer_vector(w, writer_field(w, table, id), count, width);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void add_params(struct xnn_sample *s, enum xnn_sample_value v, size_t quantized)
{
    static const char *const widths[] = {"", "4444", "44", "4", "444444"};
    struct writer *w = &s->payload;
    set(w, quantized, 1, values[v].params, 1);
    s->params[v] = child(w, quantized, 2, widths[values[v].params]);
    switch (values[v].params) {
    case PER_CHANNEL:
        vector(w, s->params[v], 0, 0, 4);
        set(w, s->params[v], 2, values[v].scales, 4);
        set(w, s->params[v], 3, (uint64_t)values[v].dims[0], 4);
        break;
    case PER_TENSOR:
        set_float(w, writer_field(w, s->params[v], 0), 0.5f);
        set(w, s->params[v], 1, 3, 4);
        break;
    case PER_ROW:
        set(w, s->params[v], 0, 1, 4);
        break;
    case PER_GROUP:
        vector(w, s->params[v], 0, 0, 4);
        vector(w, s->params[v], 3, 0, 2);
        set(w, s->params[v], 2, 8, 4);
        set(w, s->params[v], 4, values[v].scales, 4);
        set(w, s->params[v], 5, 12, 4);
        break;
    default:
        unreachable();
    }
}

/* XNNTensorValue: datatype, num_dims, dims, constant, external_id, flags, id_out, dq_datatype. */
static void add_value(struct xnn_sample *s, enum xnn_sample_value v)
{
    struct writer *w = &s->payload;
    const struct value *value = &values[v];
    bool is_external = v == XV_IN || v == XV_OUT;
    s->outers[v] = writer_child(w, s->values_at + 4 * (size_t)v, "14");
    set(w, s->outers[v], 0, value->params ? QUANTIZED_VALUE : TENSOR_VALUE, 1);
    if (value->params) {
        s->quantized[v] = child(w, s->outers[v], 1, "414");
        s->tensors[v] = child(w, s->quantized[v], 0, "24444442");
        add_params(s, v, s->quantized[v]);
    } else {
        s->tensors[v] = child(w, s->outers[v], 1, "24444442");
    }
    set(w, s->tensors[v], 0, value->type, 2);
    set(w, s->tensors[v], 1, value->dim_count, 4);
    s->dims[v] =
        writer_numbers(w, writer_field(w, s->tensors[v], 2), value->dims, value->dim_count, 4);
    set(w, s->tensors[v], 3, value->content, 4);
    set(w, s->tensors[v], 4, is_external ? v == XV_OUT : NONE, 4);
    set(w, s->tensors[v], 5, v == XV_IN ? 1 : is_external ? 2 : 0, 4);
    set(w, s->tensors[v], 6, XS_ID(v), 4);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void add_node(struct xnn_sample *s, enum xnn_sample_node n)
{
    struct writer *w = &s->payload;
    const struct node *node = &nodes[n];
    s->node_outers[n] = writer_child(w, s->nodes_at + 4 * (size_t)n, "1404");
    set(w, s->node_outers[n], 0, node->tag, 1);
    s->nodes[n] = child(w, s->node_outers[n], 1, node->widths);
    for (size_t id = 0; node->widths[id]; id++) {
        set(w, s->nodes[n], id, node->fields[id], 4);
    }
    for (size_t i = 0; i < 2 && node->list_counts[i] > 0; i++) {
        s->lists[n][i] = writer_numbers(w, writer_field(w, s->nodes[n], node->list_ids[i]),
                                        node->lists[i], node->list_counts[i], 4);
    }
    s->bounds[n] = child(w, s->node_outers[n], 3, "44");
    set_float(w, writer_field(w, s->bounds[n], 0), n == XN_CONV ? 0 : -INFINITY);
    set_float(w, writer_field(w, s->bounds[n], 1), n == XN_CONV ? 6 : INFINITY);
}

/* ---- the payload ----------------------------------------------------------------------------- */

/* ConstantDataOffset: offset, size, named_key. */
static void add_constants(struct xnn_sample *s)
{
    struct writer *w = &s->payload;
    size_t table = vector(w, s->graph, 8, XC_COUNT, 4), at = 0;
    for (size_t c = 0; c < XC_COUNT; c++) {
        s->constants[c] = writer_child(w, table + 4 * c, "884");
        writer_string(w, writer_field(w, s->constants[c], 2), "");
        set(w, s->constants[c], 0, at, 8);
        set(w, s->constants[c], 1, constant_bytes[c], 8);
        s->behind_at[c] = at;
        at += constant_bytes[c];
    }
}

static void add_behind(struct xnn_sample *s)
{
    struct writer *w = &s->payload;
    s->behind = w->len;
    for (size_t c = 0; c < XC_COUNT; c++) {
        size_t at = w->len;
        bool is_scales = c == XC_FILTER_SCALES || c == XC_BIAS_SCALES;
        for (size_t i = 0; i < constant_bytes[c]; i++) {
            writer_add_int(w, i % 5, 1);
        }
        for (size_t i = 0; is_scales && i < constant_bytes[c]; i += 4) {
            set_float(w, at + i, 0.25f);
        }
        for (size_t i = 0; c == XC_GROUP_SCALES && i < constant_bytes[c]; i += 2) {
            writer_put(w, at + i, 0x3e80, 2); /* 0.25 */
        }
        s->behind_at[c] += s->behind;
    }
}

void xnn_sample_make(struct xnn_sample *s)
{
    struct writer *w = &s->payload;
    memset(s, 0, sizeof(*s));
    s->flat = FLAT_AT;
    writer_add(w, "\0\0\0\0XH00", 8);
    while (w->len < FLAT_AT + 4) {
        writer_add_int(w, 0, 1);
    }
    writer_add(w, "XN01", 4);
    s->graph = writer_table(w, "444444444");
    writer_put(w, FLAT_AT, s->graph - FLAT_AT, 4);
    writer_string(w, writer_field(w, s->graph, 0), "0");
    s->nodes_at = vector(w, s->graph, 1, XN_COUNT, 4);
    for (int n = 0; n < XN_COUNT; n++) {
        add_node(s, (enum xnn_sample_node)n);
    }
    s->values_at = vector(w, s->graph, 2, XV_COUNT, 4);
    for (int v = 0; v < XV_COUNT; v++) {
        add_value(s, (enum xnn_sample_value)v);
    }
    set(w, s->graph, 3, 3, 4);
    for (size_t id = 4; id < 8; id++) {
        vector(w, s->graph, id, 0, 4);
    }
    add_constants(s);
    writer_pad(w, 16);
    size_t end = w->len;
    add_behind(s);
    writer_put(w, 8, HEADER_BYTES, 2);
    writer_put(w, 10, FLAT_AT, 4);
    writer_put(w, 14, end - FLAT_AT, 4);
    writer_put(w, 18, end, 4);
    writer_put(w, 22, w->len - end, 8);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Writes an entry of a plan's values: a float tensor. Returns its table. */
static size_t add_tensor(struct writer *w, size_t at, const int64_t *sizes, uint8_t rank,
                         const char *widths)
{
    static const int64_t order[] = {0, 1, 2, 3};
    size_t entry = writer_child(w, at, "14");
    set(w, entry, 0, 5, 1);
    size_t table = child(w, entry, 1, widths);
    set(w, table, 0, 6, 1);
    writer_numbers(w, writer_field(w, table, 2), sizes, rank, 4);
    writer_numbers(w, writer_field(w, table, 3), order, rank, 1);
    return table;
}

/* Writes a float tensor with its own memory at |offset|. */
static void add_planned(struct writer *w, size_t at, const int64_t *sizes, uint8_t rank,
                        uint32_t offset)
{
    size_t allocation = child(w, add_tensor(w, at, sizes, rank, "144414411"), 6, "444");
    set(w, allocation, 0, 1, 4);
    set(w, allocation, 1, offset, 4);
}

static void add_call(struct writer *w, size_t plan)
{
    size_t chain = writer_child(w, vector(w, plan, 5, 1, 4), "004");
    size_t instr = writer_child(w, vector(w, chain, 2, 1, 4), "14");
    set(w, instr, 0, 2, 1);
    size_t call = child(w, instr, 1, "44");
    writer_numbers(w, writer_field(w, call, 1), (const int64_t[]){0, 1, 2}, 3, 4);
}

/* There are no segments: the payload is in the program's tables. */
void xnn_sample_program(const struct xnn_sample *s, struct writer *w)
{
    memset(w, 0, sizeof(*w));
    writer_add(w, "\0\0\0\0ET12", 8);
    size_t program = writer_child(w, 0, "4444");
    size_t plan = writer_child(w, vector(w, program, 1, 1, 4), "404444444");
    writer_string(w, writer_field(w, plan, 0), "forward");
    size_t entries = vector(w, plan, 2, 3, 4);
    add_planned(w, entries, values[XV_IN].dims, 4, 0);
    add_planned(w, entries + 4, values[XV_OUT].dims, 2, 128);
    size_t left = add_tensor(w, entries + 8, (const int64_t[]){6}, 1, "144414011");
    set(w, left, 5, 1, 4); /* constant 1 */
    writer_numbers(w, writer_field(w, plan, 3), (const int64_t[]){0}, 1, 4);
    writer_numbers(w, writer_field(w, plan, 4), (const int64_t[]){1}, 1, 4);
    add_call(w, plan);
    vector(w, plan, 6, 0, 4);
    size_t delegate = writer_child(w, vector(w, plan, 7, 1, 4), "444");
    writer_string(w, writer_field(w, delegate, 0), "XnnpackBackend");
    child(w, delegate, 1, "14"); /* inline, the first */
    vector(w, delegate, 2, 0, 4);
    writer_numbers(w, writer_field(w, plan, 8), (const int64_t[]){0, 256}, 2, 8);
    size_t constants = vector(w, program, 2, 2, 4);
    vector(w, writer_child(w, constants, "4"), 0, 0, 1);
    vector(w, writer_child(w, constants + 4, "4"), 0, 24, 1);
    size_t data = writer_child(w, vector(w, program, 3, 1, 4), "4");
    size_t bytes = vector(w, data, 0, s->payload.len, 1);
    memcpy(w->bytes + bytes, s->payload.bytes, s->payload.len);
}
