/* SPDX-License-Identifier: MIT */
/*
 * A bounded reader of FlatBuffers. There is no separate verification: every access checks the bytes
 * that it is about to read, and a caller copies what it needs as it goes. Loads work at any
 * alignment.
 *
 * Sharing lets a few bytes describe an endless structure. The reader therefore has two budgets in
 * proportion to its bytes: visited tables, and elements of vectors and strings. The caller's schema
 * bounds the depth; nothing here recurses.
 *
 * Errors name the field and the byte at fault, but not the table's place: callers put that in
 * front.
 */
#ifndef PTED_RUNTIME_PTE_FLATBUF_H
#define PTED_RUNTIME_PTE_FLATBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/status.h"

struct flatbuf {
    struct span bytes; /* borrowed; offsets count from its start */
    uint64_t tables_left;
    uint64_t elements_left;
};

struct flatbuf_table {
    uint32_t pos;
    uint32_t vtable;
    uint16_t vtable_bytes;
    uint16_t table_bytes;
};

struct flatbuf_vector {
    uint32_t pos; /* of the first element; 0: the field is absent */
    uint32_t count;
    const char *name; /* name of the field, for errors about its elements */
};

struct flatbuf_field {
    uint16_t id; /* a union has two: the tag's, then the table's */
    const char *name;
};

/* Fails with ST_TOO_LARGE if 32-bit offsets cannot span |bytes|. */
MUST_CHECK enum status flatbuf_init(struct flatbuf *fb, struct span bytes, struct error *err);

MUST_CHECK enum status flatbuf_root(struct flatbuf *fb, struct flatbuf_table *out_table,
                                    struct error *err);

/* Reads the fields of a table. An absent field is not an error: a scalar leaves *out unchanged
 * (store the default before), a table is not found, a vector or string has pos or ptr zero. */
MUST_CHECK enum status flatbuf_scalar(const struct flatbuf *fb, const struct flatbuf_table *table,
                                      struct flatbuf_field field, uint16_t width,
                                      const uint8_t **out, struct error *err);
MUST_CHECK enum status flatbuf_table(struct flatbuf *fb, const struct flatbuf_table *table,
                                     struct flatbuf_field field, struct flatbuf_table *out_table,
                                     bool *out_found, struct error *err);
MUST_CHECK enum status flatbuf_vector(struct flatbuf *fb, const struct flatbuf_table *table,
                                      struct flatbuf_field field, uint32_t element_bytes,
                                      struct flatbuf_vector *out_vector, struct error *err);
MUST_CHECK enum status flatbuf_string(struct flatbuf *fb, const struct flatbuf_table *table,
                                      struct flatbuf_field field, struct span *out_text,
                                      struct error *err);
/* Reads a vector of bytes that is borrowed and not walked: it costs no budget. */
MUST_CHECK enum status flatbuf_bytes(const struct flatbuf *fb, const struct flatbuf_table *table,
                                     struct flatbuf_field field, struct span *out_bytes,
                                     struct error *err);
/* Tag 0 has no table; every other tag has one. */
MUST_CHECK enum status flatbuf_union(struct flatbuf *fb, const struct flatbuf_table *table,
                                     struct flatbuf_field field, uint8_t *out_tag,
                                     struct flatbuf_table *out_table, struct error *err);

/* Reads element |i| of a vector of tables. */
MUST_CHECK enum status flatbuf_table_at(struct flatbuf *fb, struct flatbuf_vector vector,
                                        uint32_t i, struct flatbuf_table *out_table,
                                        struct error *err);

static inline double load_le_double(const uint8_t *p)
{
    uint64_t bits = load_le64(p);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float load_le_float(const uint8_t *p)
{
    uint32_t bits = load_le32(p);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint8_t load_u8(const uint8_t *p)
{
    return *p;
}

/* flatbuf_NAME() reads a scalar field, flatbuf_NAME_at() an element of a vector of that width. */
#define FLATBUF_SCALAR(name, type, load)                                                           \
    MUST_CHECK static inline enum status flatbuf_##name(                                           \
        const struct flatbuf *fb, const struct flatbuf_table *table, struct flatbuf_field field,   \
        type *out, struct error *err)                                                              \
    {                                                                                              \
        const uint8_t *p = NULL;                                                                   \
        TRY(flatbuf_scalar(fb, table, field, sizeof(type), &p, err));                              \
        if (p) {                                                                                   \
            *out = (type)load(p);                                                                  \
        }                                                                                          \
        return ST_OK;                                                                              \
    }                                                                                              \
    static inline type flatbuf_##name##_at(const struct flatbuf *fb, struct flatbuf_vector vector, \
                                           uint32_t i)                                             \
    {                                                                                              \
        must(i < vector.count);                                                                    \
        return (type)load(fb->bytes.ptr + vector.pos + (size_t)i * sizeof(type));                  \
    }

FLATBUF_SCALAR(u8, uint8_t, load_u8)
FLATBUF_SCALAR(i8, int8_t, load_u8)
FLATBUF_SCALAR(i16, int16_t, load_le16)
FLATBUF_SCALAR(i32, int32_t, load_le32)
FLATBUF_SCALAR(u32, uint32_t, load_le32)
FLATBUF_SCALAR(i64, int64_t, load_le64)
FLATBUF_SCALAR(u64, uint64_t, load_le64)
FLATBUF_SCALAR(f32, float, load_le_float)
FLATBUF_SCALAR(f64, double, load_le_double)
#undef FLATBUF_SCALAR

#endif
