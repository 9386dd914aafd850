/* SPDX-License-Identifier: MIT */
/* Decodes a payload into struct rt_xnnpack_graph: header, ids, nodes. Each number is checked before
 * it is stored; checks that depend on a node's meaning are left to its importer. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/import/payload.h"
#include "runtime/import/xnnpack_read.h"

/* Field ids, from runtime_schema.fbs. */
XNN_FIELD(graph_nodes, 1, "xnodes");
XNN_FIELD(graph_values, 2, "xvalues");
XNN_FIELD(graph_externals, 3, "num_externs");
XNN_FIELD(graph_buffers, 6, "constant_buffer");
XNN_FIELD(graph_constants, 8, "constant_data");
XNN_FIELD(node_union, 0, "xnode_union");
XNN_FIELD(node_handle, 2, "debug_handle");
XNN_FIELD(node_min_max, 3, "output_min_max");
XNN_FIELD(bound_min, 0, "output_min");
XNN_FIELD(bound_max, 1, "output_max");

void *rt_xnnpack_take(struct rt_xnnpack_reader *r, size_t count, size_t size)
{
    void *mem = arena_array(r->arena, count, size);
    if (!mem) {
        arena_fail(r->arena, "the payload", r->err);
    }
    return mem;
}

static enum status open_payload(struct rt_xnnpack_reader *r, struct flatbuf_table *out_root)
{
    struct rt_payload payload;
    TRY(rt_payload_parse(r->call->delegate->payload, "XH00", &payload, r->err));
    if (!rt_payload_is(&payload, "XN01") && !rt_payload_is(&payload, "XN00")) {
        return error_set(r->err, ST_CORRUPT, "the payload is not an XN00 or XN01 flatbuffer");
    }
    r->behind = payload.behind;
    TRY(flatbuf_init(&r->fb, payload.flatbuffer, r->err));
    return flatbuf_root(&r->fb, out_root, r->err);
}

/* ---- ids ------------------------------------------------------------------------------------- */

struct id_entry {
    uint32_t id, index;
};

static int compare_ids(const void *a, const void *b)
{
    const struct id_entry *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static enum status sort_ids(struct rt_xnnpack_reader *r, struct id_entry **out_entries)
{
    uint32_t count = r->graph->value_count;
    struct id_entry *entries = rt_xnnpack_take(r, count, sizeof(*entries));
    if (!entries) {
        return r->err->code;
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct id_entry){r->graph->values[i].id, i};
    }
    qsort(entries, count, sizeof(*entries), compare_ids);
    for (uint32_t i = 1; i < count; i++) {
        if (entries[i].id == entries[i - 1].id) {
            return error_set(r->err, ST_CORRUPT, "two values have the id %" PRIu32, entries[i].id);
        }
    }
    *out_entries = entries;
    return ST_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static enum status read_operand(struct rt_xnnpack_reader *r, const struct id_entry *ids,
                                const struct flatbuf_table *table, struct flatbuf_field field,
                                bool is_optional, uint32_t *out_index)
{
    struct id_entry wanted = {0};
    TRY(flatbuf_u32(&r->fb, table, field, &wanted.id, r->err));
    if (is_optional && wanted.id == XNN_NO_VALUE) {
        *out_index = XNN_NO_VALUE;
        return ST_OK;
    }
    const struct id_entry *found =
        bsearch(&wanted, ids, r->graph->value_count, sizeof(*ids), compare_ids);
    if (!found) {
        return error_set(r->err, ST_CORRUPT, "field %u: no value has the id %" PRIu32, field.id,
                         wanted.id);
    }
    *out_index = found->index;
    return ST_OK;
}

static enum status read_list(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                             struct flatbuf_field field, struct rt_xnnpack_list *out_list)
{
    struct flatbuf_vector vector;
    TRY(flatbuf_vector(&r->fb, table, field, 4, &vector, r->err));
    if (vector.count > XNN_LIST_MAX) {
        return error_set(r->err, ST_UNSUPPORTED,
                         "field %u: %" PRIu32 " entries, expected at most %d", field.id,
                         vector.count, XNN_LIST_MAX);
    }
    out_list->count = vector.count;
    for (uint32_t i = 0; i < vector.count; i++) {
        out_list->items[i] = flatbuf_u32_at(&r->fb, vector, i);
    }
    return ST_OK;
}

/* Reads the fields of the node's own table; the row's letters describe them. */
static enum status read_fields(struct rt_xnnpack_reader *r, const struct id_entry *ids,
                               const struct flatbuf_table *table, struct rt_xnnpack_node *node)
{
    const char *fields = node->row->fields;
    uint32_t params = 0, lists = 0;
    for (uint16_t id = 0; fields[id]; id++) {
        struct flatbuf_field field = {.id = id, .name = node->row->name};
        switch (fields[id]) {
        case 'i':
        case 'b':
            TRY(read_operand(r, ids, table, field, fields[id] == 'b',
                             &node->inputs[node->input_count++]));
            break;
        case 'o':
            TRY(read_operand(r, ids, table, field, false, &node->outputs[node->output_count++]));
            break;
        case 'u':
            TRY(flatbuf_u32(&r->fb, table, field, &node->params[params++], r->err));
            break;
        case 'L':
            TRY(read_list(r, table, field, &node->lists[lists++]));
            break;
        case 'f':
            TRY(flatbuf_f32(&r->fb, table, field, &node->number, r->err));
            break;
        case 'g':
            TRY(flatbuf_u32(&r->fb, table, field, &node->flags, r->err));
            break;
        default:
            break;
        }
    }
    return ST_OK;
}

/* Without a table there are no bounds; in a table, an absent bound is 0. */
static enum status read_bounds(struct rt_xnnpack_reader *r, const struct flatbuf_table *table,
                               struct rt_xnnpack_node *node)
{
    struct flatbuf_table bounds;
    bool found = false;
    TRY(flatbuf_table(&r->fb, table, node_min_max, &bounds, &found, r->err));
    node->min = found ? 0 : -INFINITY;
    node->max = found ? 0 : INFINITY;
    if (found) {
        TRY(flatbuf_f32(&r->fb, &bounds, bound_min, &node->min, r->err));
        TRY(flatbuf_f32(&r->fb, &bounds, bound_max, &node->max, r->err));
    }
    if (!(node->min <= node->max)) {
        return error_set(r->err, ST_CORRUPT, "bounds %g and %g, expected the lower one first",
                         (double)node->min, (double)node->max);
    }
    return ST_OK;
}

static enum status read_node(struct rt_xnnpack_reader *r, const struct id_entry *ids,
                             uint32_t index, struct flatbuf_vector vector)
{
    struct rt_xnnpack_node *node = &r->graph->nodes[index];
    struct flatbuf_table outer, inner;
    uint8_t tag = 0;
    TRY(flatbuf_table_at(&r->fb, vector, index, &outer, r->err));
    TRY(flatbuf_union(&r->fb, &outer, node_union, &tag, &inner, r->err));
    TRY(flatbuf_u32(&r->fb, &outer, node_handle, &node->handle, r->err));
    node->row = rt_xnnpack_row_find(tag);
    if (!node->row) {
        return error_set(r->err, tag ? ST_UNSUPPORTED : ST_CORRUPT,
                         "xnode_union of type %u is not known", tag);
    }
    enum status status = read_fields(r, ids, &inner, node);
    status = status == ST_OK ? read_bounds(r, &outer, node) : status;
    if (status == ST_OK && (node->flags & ~node->row->flags) != 0) {
        status =
            error_set(r->err, ST_UNSUPPORTED, "flags %" PRIx32 ", expected only flags of %" PRIx32,
                      node->flags, node->row->flags);
    }
    return status == ST_OK ? ST_OK : error_prefix(r->err, "%s: ", node->row->name);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static enum status read_nodes(struct rt_xnnpack_reader *r, const struct flatbuf_table *root)
{
    struct flatbuf_vector vector;
    struct id_entry *ids = NULL;
    TRY(sort_ids(r, &ids));
    TRY(flatbuf_vector(&r->fb, root, graph_nodes, 4, &vector, r->err));
    r->graph->node_count = vector.count;
    r->graph->nodes = rt_xnnpack_take(r, vector.count, sizeof(*r->graph->nodes));
    if (!r->graph->nodes) {
        return r->err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (read_node(r, ids, i, vector) != ST_OK) {
            return error_prefix(r->err, "node %" PRIu32 ": ", i);
        }
    }
    return ST_OK;
}

enum status rt_xnnpack_read(struct rt_delegate_call *call, struct arena *arena,
                            struct rt_xnnpack_graph *out_graph)
{
    struct rt_xnnpack_reader r = {
        .call = call,
        .arena = arena,
        .graph = out_graph,
        .scales_left = XNN_SCALES_MAX,
        .err = call->err,
    };
    struct flatbuf_table root;
    struct flatbuf_vector values;
    TRY(open_payload(&r, &root));
    TRY(flatbuf_u32(&r.fb, &root, graph_externals, &r.external_count, r.err));
    if (r.external_count > XNN_EXTERNALS_MAX || r.external_count != call->arg_count) {
        return error_set(r.err, ST_CORRUPT,
                         "the payload has %" PRIu32 " arguments, the call has %" PRIu32,
                         r.external_count, call->arg_count);
    }
    TRY(flatbuf_vector(&r.fb, &root, graph_buffers, 4, &r.buffers, r.err));
    TRY(flatbuf_vector(&r.fb, &root, graph_constants, 4, &r.constants, r.err));
    TRY(flatbuf_vector(&r.fb, &root, graph_values, 4, &values, r.err));
    TRY(rt_xnnpack_read_values(&r, values));
    return read_nodes(&r, &root);
}
