/* SPDX-License-Identifier: MIT */
/*
 * The tables of a program, by their schema, read with the runtime's own bounded reader; and the
 * tables of delegates' payloads without a schema: an offset to something that looks like a table is
 * a link.
 */
#include "config.h"

#include "tests/fuzz/program_sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/pte/container.h"
#include "runtime/pte/schema.h"

#define PAYLOAD_DEPTH_MAX 8
#define PAYLOAD_HEADER_BYTES 30
#define AT_PAYLOAD_MAGIC 4
#define AT_PAYLOAD_TABLES 10
#define AT_PAYLOAD_TABLES_BYTES 14
/* Offsets in the extended header. */
#define AT_HEADER 8
#define AT_PROGRAM_BYTES 16
#define AT_SEGMENT_BASE 24

enum table_kind { TABLE_VALUE, TABLE_TENSOR, TABLE_INSTRUCTION, TABLE_OTHER };

struct walk {
    struct program_file *file;
    struct flatbuf fb;
    uint32_t base; /* offset of |fb| in the file */
    struct flatbuf_vector segments, inline_data;
    uint64_t segment_base;
    uint8_t *visited; /* a flag for each byte of a payload's tables */
};

static struct error ignored;

/* ---- sites ----------------------------------------------------------------------------------- */

static void add(struct walk *w, enum site_role role, size_t at, size_t length, uint8_t kind)
{
    struct program_file *file = w->file;
    if (file->site_count == file->site_capacity) {
        file->site_capacity = file->site_capacity ? file->site_capacity * 2 : 1024;
        file->sites = realloc(file->sites, file->site_capacity * sizeof(*file->sites));
        must(file->sites);
    }
    file->sites[file->site_count++] =
        (struct site){(uint32_t)(w->base + at), (uint32_t)length, (uint8_t)role, kind};
}

static uint32_t offset_of(const struct walk *w, const uint8_t *ptr)
{
    return (uint32_t)(ptr - w->fb.bytes.ptr);
}

/* The position of the field; 0: it is absent. */
static uint32_t field_at(const struct walk *w, const struct flatbuf_table *t,
                         struct flatbuf_field field, uint16_t width)
{
    const uint8_t *p = NULL;
    return flatbuf_scalar(&w->fb, t, field, width, &p, &ignored) == ST_OK && p ? offset_of(w, p)
                                                                               : 0;
}

static void scalar(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                   uint16_t width, enum site_role role)
{
    uint32_t at = field_at(w, t, field, width);
    if (at) {
        add(w, role, at, width, 0);
    }
}

/* Notes a field that may be made absent. */
static void absent(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field)
{
    uint32_t at = t->vtable + 4 + 2u * field.id;
    if (4 + 2u * field.id + 2 <= t->vtable_bytes && load_le16(w->fb.bytes.ptr + at) != 0) {
        add(w, SITE_ABSENT, at, 2, 0);
    }
}

static bool vector(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                   uint32_t width, struct flatbuf_vector *out)
{
    *out = (struct flatbuf_vector){0};
    return flatbuf_vector(&w->fb, t, field, width, out, &ignored) == ST_OK && out->pos != 0;
}

static void scalars(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                    uint32_t width, enum site_role role)
{
    struct flatbuf_vector v;
    if (!vector(w, t, field, width, &v)) {
        return;
    }
    add(w, SITE_COUNT, v.pos - 4, 4, 0);
    for (uint32_t i = 0; i < v.count; i++) {
        add(w, role, v.pos + (size_t)i * width, width, 0);
    }
}

static void text(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                 enum site_role role)
{
    uint32_t at = field_at(w, t, field, 4);
    if (at) {
        add(w, role, at, 4, 0);
    }
}

static bool table(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                  struct flatbuf_table *out)
{
    bool is_found = false;
    return flatbuf_table(&w->fb, t, field, out, &is_found, &ignored) == ST_OK && is_found;
}

typedef void visit_f(struct walk *w, const struct flatbuf_table *t);

static void tables(struct walk *w, const struct flatbuf_table *t, struct flatbuf_field field,
                   uint8_t kind, visit_f *visit)
{
    struct flatbuf_vector v;
    struct flatbuf_table item;
    if (!vector(w, t, field, 4, &v)) {
        return;
    }
    add(w, SITE_COUNT, v.pos - 4, 4, 0);
    for (uint32_t i = 0; i < v.count; i++) {
        add(w, SITE_TABLE, v.pos + (size_t)i * 4, 4, kind);
        if (flatbuf_table_at(&w->fb, v, i, &item, &ignored) == ST_OK) {
            visit(w, &item);
        }
    }
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* The size of field |at| of the table: up to the next field, or to the table's end. */
static uint32_t field_bytes(const struct walk *w, const struct flatbuf_table *t, uint32_t at)
{
    uint32_t end = t->table_bytes;
    for (uint32_t entry = 4; entry + 2 <= t->vtable_bytes; entry += 2) {
        uint32_t other = load_le16(w->fb.bytes.ptr + t->vtable + entry);
        end = other > at && other < end ? other : end;
    }
    uint32_t bytes = end - at;
    return bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

static void walk_any(struct walk *w, const struct flatbuf_table *t, uint32_t depth);

static void walk_vector(struct walk *w, struct flatbuf_vector v, uint32_t depth)
{
    struct flatbuf_table item;
    add(w, SITE_COUNT, v.pos - 4, 4, 0);
    for (uint32_t i = 0; i < v.count && i < 4096; i++) {
        bool is_table = flatbuf_table_at(&w->fb, v, i, &item, &ignored) == ST_OK;
        add(w, is_table ? SITE_LINK : SITE_PAYLOAD, v.pos + (size_t)i * 4, 4, (uint8_t)depth);
        if (is_table) {
            walk_any(w, &item, depth + 1);
        }
    }
}

static void walk_field(struct walk *w, const struct flatbuf_table *t, uint16_t id, uint32_t at,
                       uint32_t depth)
{
    struct flatbuf_field field = {id, "field"};
    struct flatbuf_table next;
    struct flatbuf_vector v;
    uint32_t bytes = field_bytes(w, t, at);
    add(w, SITE_ABSENT, t->vtable + 4 + 2u * id, 2, 0);
    if (bytes >= 4 && table(w, t, field, &next)) {
        add(w, SITE_LINK, t->pos + at, 4, (uint8_t)depth);
        walk_any(w, &next, depth + 1);
    } else if (bytes >= 4 && vector(w, t, field, 4, &v)) {
        walk_vector(w, v, depth + 1);
    } else {
        add(w, SITE_PAYLOAD, t->pos + at, bytes, 0);
    }
}

static void walk_any(struct walk *w, const struct flatbuf_table *t, uint32_t depth)
{
    if (depth > PAYLOAD_DEPTH_MAX || w->visited[t->pos]) {
        return;
    }
    w->visited[t->pos] = 1;
    for (uint16_t id = 0; 6 + 2u * id <= t->vtable_bytes; id++) {
        uint32_t at = load_le16(w->fb.bytes.ptr + t->vtable + 4 + 2u * id);
        if (at != 0 && at < t->table_bytes) {
            walk_field(w, t, id, at, depth);
        }
    }
}

/* Walks a payload of |len| bytes at byte |at| of the file: its tables, and the data after them. */
static void walk_payload(struct walk *w, size_t at, size_t len)
{
    const uint8_t *bytes = w->file->bytes + at;
    size_t tables_at = 0, tables_len = len;
    struct flatbuf_table root;
    if (len < PAYLOAD_HEADER_BYTES) {
        return;
    }
    if (memcmp(bytes + AT_PAYLOAD_MAGIC, "XH00", 4) == 0 ||
        memcmp(bytes + AT_PAYLOAD_MAGIC, "VH00", 4) == 0) {
        tables_at = load_le32(bytes + AT_PAYLOAD_TABLES);
        tables_len = load_le32(bytes + AT_PAYLOAD_TABLES_BYTES);
    }
    if (!in_range(tables_at, tables_len, len)) {
        return;
    }
    struct walk inner = {.file = w->file, .base = (uint32_t)(at + tables_at)};
    inner.visited = calloc(1, tables_len + 1);
    must(inner.visited);
    if (flatbuf_init(&inner.fb, span_of(bytes + tables_at, tables_len), &ignored) == ST_OK &&
        flatbuf_root(&inner.fb, &root, &ignored) == ST_OK) {
        inner.fb.tables_left = inner.fb.elements_left = UINT64_MAX;
        walk_any(&inner, &root, 0);
    }
    free(inner.visited);
    if (tables_at + tables_len < len) {
        inner.base = 0;
        add(&inner, SITE_BYTES, at + tables_at + tables_len, len - tables_at - tables_len, 0);
    }
}

static void walk_segment(struct walk *w, uint32_t index)
{
    struct flatbuf_table t;
    uint64_t offset = 0, size = 0;
    if (index < w->segments.count &&
        flatbuf_table_at(&w->fb, w->segments, index, &t, &ignored) == ST_OK &&
        flatbuf_u64(&w->fb, &t, segment_offset, &offset, &ignored) == ST_OK &&
        flatbuf_u64(&w->fb, &t, segment_size, &size, &ignored) == ST_OK &&
        in_range(w->segment_base, offset, w->file->len) &&
        in_range(w->segment_base + offset, size, w->file->len)) {
        walk_payload(w, (size_t)(w->segment_base + offset), (size_t)size);
    }
}

static void walk_inline(struct walk *w, uint32_t index)
{
    struct flatbuf_table t;
    struct span bytes = {0};
    if (index < w->inline_data.count &&
        flatbuf_table_at(&w->fb, w->inline_data, index, &t, &ignored) == ST_OK &&
        flatbuf_bytes(&w->fb, &t, inline_data_data, &bytes, &ignored) == ST_OK && bytes.len > 0) {
        walk_payload(w, offset_of(w, bytes.ptr), bytes.len);
    }
}

static void visit_delegate(struct walk *w, const struct flatbuf_table *t)
{
    struct flatbuf_table where;
    uint8_t location = 0;
    uint32_t index = 0;
    text(w, t, delegate_id, SITE_TEXT);
    if (!table(w, t, delegate_processed, &where)) {
        return;
    }
    scalar(w, &where, processed_location, 1, SITE_FLAG);
    scalar(w, &where, processed_index, 4, SITE_DATA);
    if (flatbuf_u8(&w->fb, &where, processed_location, &location, &ignored) == ST_OK &&
        flatbuf_u32(&w->fb, &where, processed_index, &index, &ignored) == ST_OK) {
        (location ? walk_segment : walk_inline)(w, index);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static void visit_extra(struct walk *w, const struct flatbuf_table *t)
{
    scalar(w, t, extra_mutable_data_segments_idx, 8, SITE_INT);
    scalar(w, t, extra_location, 1, SITE_FLAG);
    text(w, t, extra_fully_qualified_name, SITE_TEXT);
    absent(w, t, extra_fully_qualified_name);
}

static void visit_tensor(struct walk *w, const struct flatbuf_table *t)
{
    struct flatbuf_table inner;
    scalar(w, t, tensor_scalar_type, 1, SITE_DTYPE);
    scalars(w, t, tensor_sizes, 4, SITE_SIZE);
    scalars(w, t, tensor_dim_order, 1, SITE_ORDER);
    scalar(w, t, tensor_data_buffer_idx, 4, SITE_DATA);
    scalar(w, t, tensor_shape_dynamism, 1, SITE_DYNAMISM);
    absent(w, t, tensor_allocation_info);
    absent(w, t, tensor_extra_tensor_info);
    absent(w, t, tensor_shape_dynamism);
    absent(w, t, tensor_data_buffer_idx);
    if (table(w, t, tensor_allocation_info, &inner)) {
        scalar(w, &inner, allocation_memory_id, 4, SITE_MEMORY);
        scalar(w, &inner, allocation_memory_offset_low, 4, SITE_OFFSET);
        scalar(w, &inner, allocation_memory_offset_high, 4, SITE_OFFSET);
    }
    if (table(w, t, tensor_extra_tensor_info, &inner)) {
        visit_extra(w, &inner);
    }
}

/* The tags of the union of values. */
enum value_tag { V_INT = 2, V_BOOL, V_DOUBLE, V_TENSOR, V_STRING, V_INTS, V_DOUBLES, V_BOOLS };

static void visit_val(struct walk *w, uint8_t tag, const struct flatbuf_table *t)
{
    switch (tag) {
    case V_INT:
        scalar(w, t, scalar_val, 8, SITE_INT);
        break;
    case V_BOOL:
        scalar(w, t, scalar_val, 1, SITE_BOOL);
        break;
    case V_DOUBLE:
        scalar(w, t, scalar_val, 8, SITE_DOUBLE);
        break;
    case V_TENSOR:
        visit_tensor(w, t);
        break;
    case V_STRING:
        text(w, t, scalar_val, SITE_TEXT);
        break;
    case V_INTS:
        scalars(w, t, list_items, 8, SITE_ITEM);
        break;
    case V_DOUBLES:
        scalars(w, t, list_items, 8, SITE_DOUBLE);
        break;
    case V_BOOLS:
        scalars(w, t, list_items, 1, SITE_BOOL);
        break;
    default:
        scalars(w, t, list_items, 4, SITE_ITEM);
        break;
    }
}

static void visit_value(struct walk *w, const struct flatbuf_table *t)
{
    struct flatbuf_table val;
    uint8_t tag = 0;
    if (flatbuf_union(&w->fb, t, value_val, &tag, &val, &ignored) != ST_OK || tag <= 1) {
        return;
    }
    scalar(w, t, value_val, 1, SITE_TAG);
    struct flatbuf_field place = {(uint16_t)(value_val.id + 1), "val"};
    uint32_t at = field_at(w, t, place, 4);
    if (at) {
        add(w, SITE_TABLE, at, 4, tag == V_TENSOR ? TABLE_TENSOR : TABLE_OTHER);
    }
    visit_val(w, tag, &val);
}

static void visit_instruction(struct walk *w, const struct flatbuf_table *t)
{
    struct flatbuf_table args;
    uint8_t tag = 0;
    if (flatbuf_union(&w->fb, t, instruction_instr_args, &tag, &args, &ignored) != ST_OK) {
        return;
    }
    scalar(w, t, instruction_instr_args, 1, SITE_TAG);
    switch (tag) {
    case 1:
        scalar(w, &args, kernel_op_index, 4, SITE_OPERATOR);
        scalars(w, &args, kernel_args, 4, SITE_VALUE);
        break;
    case 2:
        scalar(w, &args, call_delegate_index, 4, SITE_DELEGATE);
        scalars(w, &args, call_args, 4, SITE_VALUE);
        break;
    case 3:
        scalar(w, &args, move_move_from, 4, SITE_VALUE);
        scalar(w, &args, move_move_to, 4, SITE_VALUE);
        break;
    case 4:
        scalar(w, &args, jump_cond_value_index, 4, SITE_VALUE);
        scalar(w, &args, jump_destination_instruction, 4, SITE_TARGET);
        break;
    default:
        scalar(w, &args, free_value_index, 4, SITE_VALUE);
        break;
    }
}

static void visit_chain(struct walk *w, const struct flatbuf_table *t)
{
    tables(w, t, chain_instructions, TABLE_INSTRUCTION, visit_instruction);
}

static void visit_operator(struct walk *w, const struct flatbuf_table *t)
{
    text(w, t, operator_name, SITE_NAME);
    text(w, t, operator_overload, SITE_TEXT);
}

static void visit_plan(struct walk *w, const struct flatbuf_table *t)
{
    tables(w, t, plan_values, TABLE_VALUE, visit_value);
    scalars(w, t, plan_inputs, 4, SITE_VALUE);
    scalars(w, t, plan_outputs, 4, SITE_VALUE);
    tables(w, t, plan_chains, TABLE_OTHER, visit_chain);
    tables(w, t, plan_operators, TABLE_OTHER, visit_operator);
    tables(w, t, plan_delegates, TABLE_OTHER, visit_delegate);
    scalars(w, t, plan_non_const_buffer_sizes, 8, SITE_MEMORY_BYTES);
}

static void visit_segment(struct walk *w, const struct flatbuf_table *t)
{
    uint64_t offset = 0, size = 0;
    scalar(w, t, segment_offset, 8, SITE_PLACE);
    scalar(w, t, segment_size, 8, SITE_PLACE);
    if (flatbuf_u64(&w->fb, t, segment_offset, &offset, &ignored) == ST_OK &&
        flatbuf_u64(&w->fb, t, segment_size, &size, &ignored) == ST_OK && size > 0 &&
        in_range(w->segment_base + offset, size, w->file->len)) {
        add(w, SITE_BYTES, w->segment_base + offset, size, 0);
    }
}

static void visit_subsegment(struct walk *w, const struct flatbuf_table *t)
{
    scalar(w, t, subsegment_segment_index, 4, SITE_DATA);
    scalars(w, t, subsegment_offsets, 8, SITE_PLACE);
}

static void visit_named(struct walk *w, const struct flatbuf_table *t)
{
    text(w, t, named_key, SITE_TEXT);
    scalar(w, t, named_segment_index, 4, SITE_DATA);
}

static void visit_nothing(struct walk *w, const struct flatbuf_table *t)
{
    (void)w;
    (void)t;
}

static bool walk_program(struct walk *w)
{
    struct flatbuf_table root, t;
    struct flatbuf_vector plans;
    if (flatbuf_root(&w->fb, &root, &ignored) != ST_OK ||
        !vector(w, &root, program_execution_plan, 4, &plans) || plans.count == 0) {
        return false;
    }
    if (!vector(w, &root, program_segments, 4, &w->segments)) {
        w->segments.count = 0;
    }
    if (!vector(w, &root, program_backend_delegate_data, 4, &w->inline_data)) {
        w->inline_data.count = 0;
    }
    tables(w, &root, program_segments, TABLE_OTHER, visit_segment);
    tables(w, &root, program_constant_buffer, TABLE_OTHER, visit_nothing);
    tables(w, &root, program_mutable_data_segments, TABLE_OTHER, visit_subsegment);
    tables(w, &root, program_named_data, TABLE_OTHER, visit_named);
    if (table(w, &root, program_constant_segment, &t)) {
        visit_subsegment(w, &t);
    }
    w->file->plans = plans.pos - 4;
    w->file->method_count = plans.count;
    w->file->first_site = calloc(plans.count + 2u, sizeof(uint32_t));
    must(w->file->first_site);
    for (uint32_t i = 0; i < plans.count; i++) {
        w->file->first_site[i + 1] = w->file->site_count;
        if (flatbuf_table_at(&w->fb, plans, i, &t, &ignored) == ST_OK) {
            visit_plan(w, &t);
        }
    }
    w->file->first_site[plans.count + 1] = w->file->site_count;
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

static uint8_t *read_all(const char *path, size_t *out_len)
{
    FILE *stream = fopen(path, "rb");
    long len;
    if (!stream) {
        perror(path);
        return NULL;
    }
    uint8_t *bytes = NULL;
    if (fseek(stream, 0, SEEK_END) == 0 && (len = ftell(stream)) > 0) {
        rewind(stream);
        bytes = malloc((size_t)len);
        must(bytes);
        *out_len = fread(bytes, 1, (size_t)len, stream);
    }
    fclose(stream);
    return bytes;
}

/* Segments, if there are any, move back by the room for strings. */
static void make_room(struct program_file *file, const uint8_t *bytes, size_t len, size_t tables)
{
    file->bytes = calloc(1, len + PROGRAM_ROOM_BYTES);
    must(file->bytes && PROGRAM_ROOM_BYTES > 8);
    memcpy(file->bytes, bytes, tables);
    memcpy(file->bytes + tables + PROGRAM_ROOM_BYTES, bytes + tables, len - tables);
    file->len = len + PROGRAM_ROOM_BYTES;
    file->room = (uint32_t)(tables + 7) & ~7u;
    file->room_end = (uint32_t)(tables + PROGRAM_ROOM_BYTES);
    if (memcmp(bytes + AT_HEADER, "eh00", 4) == 0) {
        uint64_t base = load_le64(bytes + AT_SEGMENT_BASE);
        uint64_t words[2] = {tables + PROGRAM_ROOM_BYTES, base ? base + PROGRAM_ROOM_BYTES : 0};
        memcpy(file->bytes + AT_PROGRAM_BYTES, words, sizeof(words));
    }
}

bool program_file_read(struct program_file *file, const char *path)
{
    struct pte_container container;
    struct walk walk = {.file = file};
    size_t len = 0;
    uint8_t *bytes = read_all(path, &len);
    *file = (struct program_file){.name = strdup(path)};
    bool is_good = bytes && pte_container_parse(span_of(bytes, len), &container, &ignored) == ST_OK;
    if (is_good) {
        make_room(file, bytes, len, container.flatbuffer.len);
        is_good =
            pte_container_parse(span_of(file->bytes, file->len), &container, &ignored) == ST_OK &&
            flatbuf_init(&walk.fb, container.flatbuffer, &ignored) == ST_OK;
    }
    walk.fb.tables_left = walk.fb.elements_left = UINT64_MAX; /* tables are visited several times */
    walk.segment_base = container.segment_base;
    is_good = is_good && walk_program(&walk);
    if (!is_good) {
        fprintf(stderr, "%s: no program: %s\n", path, ignored.text);
    }
    free(bytes);
    return is_good;
}

void program_file_fini(struct program_file *file)
{
    free(file->name);
    free(file->bytes);
    free(file->sites);
    free(file->first_site);
}
