/* SPDX-License-Identifier: MIT */
/* The values of a plan. Items of lists may name later values, so a first pass finds every value's
 * kind and table, and a second pass reads the tables. */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/pte/limits.h"
#include "runtime/pte/schema.h"

typedef enum status decode_value_f(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                   struct pte_value *value, struct error *err);

static enum status decode_null(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct pte_value *value, struct error *err)
{
    (void)decoder, (void)table, (void)value, (void)err;
    return ST_OK;
}

static enum status decode_int(struct pte_decoder *decoder, const struct flatbuf_table *table,
                              struct pte_value *value, struct error *err)
{
    return flatbuf_i64(&decoder->fb, table, scalar_val, &value->int_value, err);
}

static enum status decode_bool(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct pte_value *value, struct error *err)
{
    uint8_t byte = 0;
    TRY(flatbuf_u8(&decoder->fb, table, scalar_val, &byte, err));
    value->bool_value = byte != 0;
    return ST_OK;
}

static enum status decode_double(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                 struct pte_value *value, struct error *err)
{
    return flatbuf_f64(&decoder->fb, table, scalar_val, &value->double_value, err);
}

/* Any bytes: a program's own strings are not text that pted prints. */
static enum status decode_string(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                 struct pte_value *value, struct error *err)
{
    struct span text;
    TRY(flatbuf_string(&decoder->fb, table, scalar_val, &text, err));
    if (!text.ptr) {
        return error_set(err, ST_CORRUPT, "string_val: missing");
    }
    uint8_t *copy = pte_decode_array(decoder, text.len, 1, err);
    if (!copy) {
        return err->code;
    }
    memcpy(copy, text.ptr, text.len);
    value->string = span_of(copy, text.len);
    return ST_OK;
}

static enum status decode_tensor(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                 struct pte_value *value, struct error *err)
{
    return pte_decode_tensor(decoder, table, &value->tensor, err);
}

static enum status check_item_kind(const struct pte_decoder *decoder, uint32_t i, uint32_t index,
                                   enum pte_kind want, struct error *err)
{
    enum pte_kind kind = decoder->plan->values[index].kind;
    if (kind != want) {
        return error_set(err, ST_CORRUPT,
                         "item %" PRIu32 " is value %" PRIu32 ", of kind %s, expected %s", i, index,
                         pte_kind_name(kind), pte_kind_name(want));
    }
    return ST_OK;
}

static enum status decode_int_list(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                   struct pte_value *value, struct error *err)
{
    struct flatbuf_vector items;
    TRY(pte_decode_required(decoder, table, list_items, 8, UINT32_MAX, &items, err));
    uint32_t *indices = pte_decode_array(decoder, items.count, sizeof(*indices), err);
    if (!indices) {
        return err->code;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        int64_t item = flatbuf_i64_at(&decoder->fb, items, i);
        TRY(pte_decode_index(decoder, item, "item", i, &indices[i], err));
        TRY(check_item_kind(decoder, i, indices[i], PTE_INT, err));
    }
    value->list = (struct pte_list){.count = items.count, .values = indices};
    return ST_OK;
}

static enum status decode_double_list(struct pte_decoder *decoder,
                                      const struct flatbuf_table *table, struct pte_value *value,
                                      struct error *err)
{
    struct flatbuf_vector items;
    TRY(pte_decode_required(decoder, table, list_items, 8, UINT32_MAX, &items, err));
    double *doubles = pte_decode_array(decoder, items.count, sizeof(*doubles), err);
    if (!doubles) {
        return err->code;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        doubles[i] = flatbuf_f64_at(&decoder->fb, items, i);
    }
    value->list = (struct pte_list){.count = items.count, .doubles = doubles};
    return ST_OK;
}

static enum status decode_bool_list(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct pte_value *value, struct error *err)
{
    struct flatbuf_vector items;
    TRY(pte_decode_required(decoder, table, list_items, 1, UINT32_MAX, &items, err));
    bool *bools = pte_decode_array(decoder, items.count, sizeof(*bools), err);
    if (!bools) {
        return err->code;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        bools[i] = flatbuf_u8_at(&decoder->fb, items, i) != 0;
    }
    value->list = (struct pte_list){.count = items.count, .bools = bools};
    return ST_OK;
}

static enum status decode_tensor_list(struct pte_decoder *decoder,
                                      const struct flatbuf_table *table, struct pte_value *value,
                                      struct error *err)
{
    struct flatbuf_vector items;
    TRY(pte_decode_required(decoder, table, list_items, 4, UINT32_MAX, &items, err));
    TRY(pte_decode_indices(decoder, items, "item", &value->list.values, err));
    for (uint32_t i = 0; i < items.count; i++) {
        TRY(check_item_kind(decoder, i, value->list.values[i], PTE_TENSOR, err));
    }
    value->list.count = items.count;
    return ST_OK;
}

/* An absent item is -1, or names a value that is null. */
static enum status decode_optional_tensor_list(struct pte_decoder *decoder,
                                               const struct flatbuf_table *table,
                                               struct pte_value *value, struct error *err)
{
    struct flatbuf_vector items;
    TRY(pte_decode_required(decoder, table, list_items, 4, UINT32_MAX, &items, err));
    uint32_t *indices = pte_decode_array(decoder, items.count, sizeof(*indices), err);
    if (!indices) {
        return err->code;
    }
    for (uint32_t i = 0; i < items.count; i++) {
        int32_t item = flatbuf_i32_at(&decoder->fb, items, i);
        indices[i] = PTE_NO_VALUE;
        if (item == -1) {
            continue;
        }
        uint32_t index;
        TRY(pte_decode_index(decoder, item, "item", i, &index, err));
        if (decoder->plan->values[index].kind != PTE_NULL) {
            TRY(check_item_kind(decoder, i, index, PTE_TENSOR, err));
            indices[i] = index;
        }
    }
    value->list = (struct pte_list){.count = items.count, .values = indices};
    return ST_OK;
}

/* By the union's tag in the file; 0 means no value. */
static const enum pte_kind kind_of_tag[] = {
    [1] = PTE_NULL,
    [2] = PTE_INT,
    [3] = PTE_BOOL,
    [4] = PTE_DOUBLE,
    [5] = PTE_TENSOR,
    [6] = PTE_STRING,
    [7] = PTE_INT_LIST,
    [8] = PTE_DOUBLE_LIST,
    [9] = PTE_BOOL_LIST,
    [10] = PTE_TENSOR_LIST,
    [11] = PTE_OPTIONAL_TENSOR_LIST,
};
#define TAG_MAX 11

static const struct {
    const char *name;
    decode_value_f *decode;
} kinds[PTE_KIND_COUNT] = {
    [PTE_NULL] = {"null", decode_null},
    [PTE_INT] = {"int", decode_int},
    [PTE_BOOL] = {"bool", decode_bool},
    [PTE_DOUBLE] = {"double", decode_double},
    [PTE_STRING] = {"string", decode_string},
    [PTE_TENSOR] = {"tensor", decode_tensor},
    [PTE_INT_LIST] = {"int list", decode_int_list},
    [PTE_DOUBLE_LIST] = {"double list", decode_double_list},
    [PTE_BOOL_LIST] = {"bool list", decode_bool_list},
    [PTE_TENSOR_LIST] = {"tensor list", decode_tensor_list},
    [PTE_OPTIONAL_TENSOR_LIST] = {"optional tensor list", decode_optional_tensor_list},
};

const char *pte_kind_name(enum pte_kind kind)
{
    return kinds[kind].name;
}

static enum status find_kind(struct pte_decoder *decoder, struct flatbuf_vector vector, uint32_t i,
                             enum pte_kind *out_kind, struct flatbuf_table *out_table,
                             struct error *err)
{
    struct flatbuf_table entry;
    uint8_t tag;
    TRY(flatbuf_table_at(&decoder->fb, vector, i, &entry, err));
    TRY(flatbuf_union(&decoder->fb, &entry, value_val, &tag, out_table, err));
    if (tag == 0 || tag > TAG_MAX) {
        return error_set(err, ST_CORRUPT, "val: tag %u, expected 1 to %d", tag, TAG_MAX);
    }
    *out_kind = kind_of_tag[tag];
    return ST_OK;
}

static enum status decode_all(struct pte_decoder *decoder, struct flatbuf_vector vector,
                              struct pte_value *values, struct flatbuf_table *tables,
                              struct error *err)
{
    for (uint32_t i = 0; i < vector.count; i++) {
        if (find_kind(decoder, vector, i, &values[i].kind, &tables[i], err) != ST_OK) {
            return error_prefix(err, "value %" PRIu32 ": ", i);
        }
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (kinds[values[i].kind].decode(decoder, &tables[i], &values[i], err) != ST_OK) {
            return error_prefix(err, "value %" PRIu32 ": ", i);
        }
    }
    return ST_OK;
}

enum status pte_decode_values(struct pte_decoder *decoder, const struct flatbuf_table *table,
                              struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_required(decoder, table, plan_values, 4, PTE_VALUES_MAX, &vector, err));
    struct pte_value *values = pte_decode_array(decoder, vector.count, sizeof(*values), err);
    if (!values) {
        return err->code;
    }
    decoder->plan->values = values;
    decoder->plan->value_count = vector.count;
    struct flatbuf_table *tables = calloc(vector.count + 1u, sizeof(*tables));
    if (!tables) {
        return error_no_memory(err, "%" PRIu32 " values", vector.count);
    }
    enum status status = decode_all(decoder, vector, values, tables, err);
    free(tables);
    return status;
}
