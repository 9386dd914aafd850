/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/flatbuf.h"

#include <inttypes.h>

#define OFFSET_BYTES 4
#define VTABLE_HEAD_BYTES 4 /* its own length, and the table's */

/* Writers sometimes share strings, so this many elements may be read for every byte. */
#define ELEMENTS_PER_BYTE 4

enum status flatbuf_init(struct flatbuf *fb, struct span bytes, struct error *err)
{
    if (bytes.len > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "flatbuffer of %zu bytes: at most %d are possible",
                         bytes.len, INT32_MAX);
    }
    /* A visit takes a reference of 4 bytes, and real writers do not share tables that have
     * references. */
    *fb = (struct flatbuf){
        .bytes = bytes,
        .tables_left = bytes.len / OFFSET_BYTES,
        .elements_left = (uint64_t)bytes.len * ELEMENTS_PER_BYTE,
    };
    return ST_OK;
}

static enum status spend(uint64_t *left, uint64_t amount, const char *what, struct error *err)
{
    if (amount > *left) {
        return error_set(err, ST_CORRUPT,
                         "the flatbuffer refers to more %s than its size can hold: something is "
                         "shared over and over",
                         what);
    }
    *left -= amount;
    return ST_OK;
}

/* Follows the offset at |at|, which is inside the buffer, to an aligned position with 4 bytes. */
static enum status follow(const struct flatbuf *fb, uint32_t at, const char *name,
                          uint32_t *out_pos, struct error *err)
{
    uint32_t offset = load_le32(fb->bytes.ptr + at);
    uint64_t pos = (uint64_t)at + offset;
    if (offset == 0) {
        return error_set(err, ST_CORRUPT, "%s: the offset at byte %" PRIu32 " is zero", name, at);
    }
    if (!in_range(pos, OFFSET_BYTES, fb->bytes.len)) {
        return error_set(err, ST_CORRUPT,
                         "%s: the offset at byte %" PRIu32 " leads to byte %" PRIu64
                         ", beyond the flatbuffer's %zu bytes",
                         name, at, pos, fb->bytes.len);
    }
    if (pos % OFFSET_BYTES != 0) {
        return error_set(err, ST_CORRUPT,
                         "%s: the offset at byte %" PRIu32 " leads to byte %" PRIu64
                         ", which is not a multiple of 4",
                         name, at, pos);
    }
    *out_pos = (uint32_t)pos;
    return ST_OK;
}

static enum status open_vtable(const struct flatbuf *fb, const char *name,
                               struct flatbuf_table *table, struct error *err)
{
    size_t size = fb->bytes.len;
    int64_t vtable = (int64_t)table->pos - (int32_t)load_le32(fb->bytes.ptr + table->pos);
    if (vtable < 0 || vtable % 2 != 0 || !in_range((uint64_t)vtable, VTABLE_HEAD_BYTES, size)) {
        return error_set(err, ST_CORRUPT,
                         "%s: the table at byte %" PRIu32 " has its vtable at byte %" PRId64
                         ", expected an even one below %zu",
                         name, table->pos, vtable, size);
    }
    table->vtable = (uint32_t)vtable;
    table->vtable_bytes = load_le16(fb->bytes.ptr + vtable);
    table->table_bytes = load_le16(fb->bytes.ptr + vtable + 2);
    if (table->vtable_bytes < VTABLE_HEAD_BYTES || table->vtable_bytes % 2 != 0 ||
        !in_range(table->vtable, table->vtable_bytes, size)) {
        return error_set(err, ST_CORRUPT,
                         "%s: the vtable at byte %" PRIu32 " has an impossible length of %u", name,
                         table->vtable, table->vtable_bytes);
    }
    if (table->table_bytes < OFFSET_BYTES || !in_range(table->pos, table->table_bytes, size)) {
        return error_set(err, ST_CORRUPT,
                         "%s: the table at byte %" PRIu32 " has an impossible length of %u", name,
                         table->pos, table->table_bytes);
    }
    return ST_OK;
}

static enum status open_table(struct flatbuf *fb, uint32_t at, const char *name,
                              struct flatbuf_table *out_table, struct error *err)
{
    struct flatbuf_table table = {0};
    TRY(spend(&fb->tables_left, 1, "tables", err));
    TRY(follow(fb, at, name, &table.pos, err));
    TRY(open_vtable(fb, name, &table, err));
    *out_table = table;
    return ST_OK;
}

enum status flatbuf_root(struct flatbuf *fb, struct flatbuf_table *out_table, struct error *err)
{
    if (fb->bytes.len < OFFSET_BYTES) {
        return error_set(err, ST_CORRUPT, "root: %zu bytes are too few for a flatbuffer",
                         fb->bytes.len);
    }
    return open_table(fb, 0, "root", out_table, err);
}

/* The position of a field of |width| bytes; 0 if it is absent. */
static enum status find_field(const struct flatbuf *fb, const struct flatbuf_table *table,
                              struct flatbuf_field field, uint16_t width, uint32_t *out_pos,
                              struct error *err)
{
    uint32_t entry = VTABLE_HEAD_BYTES + 2u * field.id;
    *out_pos = 0;
    if (!in_range(entry, 2, table->vtable_bytes)) {
        return ST_OK;
    }
    uint16_t offset = load_le16(fb->bytes.ptr + table->vtable + entry);
    if (offset == 0) {
        return ST_OK;
    }
    if (offset < OFFSET_BYTES || !in_range(offset, width, table->table_bytes)) {
        return error_set(err, ST_CORRUPT,
                         "%s: the field is %u bytes at %u of its table, which has %u", field.name,
                         width, offset, table->table_bytes);
    }
    *out_pos = table->pos + offset;
    return ST_OK;
}

enum status flatbuf_scalar(const struct flatbuf *fb, const struct flatbuf_table *table,
                           struct flatbuf_field field, uint16_t width, const uint8_t **out,
                           struct error *err)
{
    uint32_t pos;
    TRY(find_field(fb, table, field, width, &pos, err));
    *out = pos ? fb->bytes.ptr + pos : NULL;
    return ST_OK;
}

enum status flatbuf_table(struct flatbuf *fb, const struct flatbuf_table *table,
                          struct flatbuf_field field, struct flatbuf_table *out_table,
                          bool *out_found, struct error *err)
{
    uint32_t pos;
    *out_found = false;
    TRY(find_field(fb, table, field, OFFSET_BYTES, &pos, err));
    if (pos) {
        TRY(open_table(fb, pos, field.name, out_table, err));
        *out_found = true;
    }
    return ST_OK;
}

/* Also the base of strings, whose terminator is not counted. */
static enum status find_vector(const struct flatbuf *fb, const struct flatbuf_table *table,
                               struct flatbuf_field field, uint32_t element_bytes,
                               struct flatbuf_vector *out_vector, struct error *err)
{
    uint32_t at, pos;
    *out_vector = (struct flatbuf_vector){.name = field.name};
    TRY(find_field(fb, table, field, OFFSET_BYTES, &at, err));
    if (!at) {
        return ST_OK;
    }
    TRY(follow(fb, at, field.name, &pos, err));
    uint32_t count = load_le32(fb->bytes.ptr + pos);
    if (!in_range(pos + OFFSET_BYTES, (uint64_t)count * element_bytes, fb->bytes.len)) {
        return error_set(err, ST_CORRUPT,
                         "%s: %" PRIu32 " elements of %" PRIu32 " bytes at byte %" PRIu32
                         " do not fit into the flatbuffer's %zu bytes",
                         field.name, count, element_bytes, pos + OFFSET_BYTES, fb->bytes.len);
    }
    out_vector->pos = pos + OFFSET_BYTES;
    out_vector->count = count;
    return ST_OK;
}

enum status flatbuf_vector(struct flatbuf *fb, const struct flatbuf_table *table,
                           struct flatbuf_field field, uint32_t element_bytes,
                           struct flatbuf_vector *out_vector, struct error *err)
{
    TRY(find_vector(fb, table, field, element_bytes, out_vector, err));
    return spend(&fb->elements_left, out_vector->count, "elements", err);
}

enum status flatbuf_bytes(const struct flatbuf *fb, const struct flatbuf_table *table,
                          struct flatbuf_field field, struct span *out_bytes, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(find_vector(fb, table, field, 1, &vector, err));
    *out_bytes = span_of(vector.pos ? fb->bytes.ptr + vector.pos : NULL, vector.count);
    return ST_OK;
}

enum status flatbuf_string(struct flatbuf *fb, const struct flatbuf_table *table,
                           struct flatbuf_field field, struct span *out_text, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(flatbuf_vector(fb, table, field, 1, &vector, err));
    uint32_t end = vector.pos + vector.count;
    if (vector.pos && (end >= fb->bytes.len || fb->bytes.ptr[end] != '\0')) {
        return error_set(err, ST_CORRUPT,
                         "%s: the string of %" PRIu32 " bytes at byte %" PRIu32
                         " is not terminated",
                         field.name, vector.count, vector.pos);
    }
    *out_text = span_of(vector.pos ? fb->bytes.ptr + vector.pos : NULL, vector.count);
    return ST_OK;
}

enum status flatbuf_union(struct flatbuf *fb, const struct flatbuf_table *table,
                          struct flatbuf_field field, uint8_t *out_tag,
                          struct flatbuf_table *out_table, struct error *err)
{
    struct flatbuf_field value = {(uint16_t)(field.id + 1), field.name};
    uint8_t tag = 0;
    bool found;
    TRY(flatbuf_u8(fb, table, field, &tag, err));
    TRY(flatbuf_table(fb, table, value, out_table, &found, err));
    if (found != (tag != 0)) {
        return error_set(err, ST_CORRUPT, "%s: the tag is %u %s", field.name, tag,
                         found ? "but there is a table" : "but there is no table");
    }
    *out_tag = tag;
    return ST_OK;
}

enum status flatbuf_table_at(struct flatbuf *fb, struct flatbuf_vector vector, uint32_t i,
                             struct flatbuf_table *out_table, struct error *err)
{
    must(i < vector.count);
    return open_table(fb, vector.pos + i * OFFSET_BYTES, vector.name, out_table, err);
}
