/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc_contents.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/grpc_schema.h"
#include "protocol/protobuf.h"

#define LIST(name) GRPC_NUMBER_InferTensorContents_##name

/* Where the elements of a type are; |number| 0: nowhere. Integers have bounds. */
struct list {
    uint32_t number;
    enum protobuf_type type;
    int64_t least;
    uint64_t most;
};

static const struct list strings_list = {LIST(bytes_contents), PROTOBUF_BYTES, 0, 0};

static const struct list lists[DTYPE_COUNT] = {
    [DT_BOOL] = {LIST(bool_contents), PROTOBUF_VARINT, 0, UINT64_MAX},
    [DT_I8] = {LIST(int_contents), PROTOBUF_VARINT, INT8_MIN, INT8_MAX},
    [DT_I16] = {LIST(int_contents), PROTOBUF_VARINT, INT16_MIN, INT16_MAX},
    [DT_I32] = {LIST(int_contents), PROTOBUF_VARINT, INT32_MIN, INT32_MAX},
    [DT_I64] = {LIST(int64_contents), PROTOBUF_VARINT, INT64_MIN, INT64_MAX},
    [DT_U8] = {LIST(uint_contents), PROTOBUF_VARINT, 0, UINT8_MAX},
    [DT_U16] = {LIST(uint_contents), PROTOBUF_VARINT, 0, UINT16_MAX},
    [DT_U32] = {LIST(uint_contents), PROTOBUF_VARINT, 0, UINT32_MAX},
    [DT_U64] = {LIST(uint64_contents), PROTOBUF_VARINT, 0, UINT64_MAX},
    [DT_F32] = {LIST(fp32_contents), PROTOBUF_I32, 0, UINT64_MAX},
    [DT_F64] = {LIST(fp64_contents), PROTOBUF_I64, 0, UINT64_MAX},
};

static const struct list *list_of(const struct oip_request_input *input)
{
    return input->type.is_bytes ? &strings_list : &lists[input->type.dtype];
}

static const char *name_of(const struct list *list)
{
    const struct grpc_message_info info = grpc_message_info(GRPC_InferTensorContents);
    const struct grpc_field_info *field = grpc_find_number(&info, list->number);
    must(field);
    return field->name;
}

bool grpc_contents_are_bytes(const struct oip_request_input *input, struct span *out)
{
    const struct list *list = list_of(input);
    struct protobuf in;
    struct protobuf_field field;
    if (input->type.is_bytes || list->type == PROTOBUF_VARINT) {
        return false;
    }
    protobuf_init(&in, input->data);
    if (!protobuf_next(&in, &field) || field.number != list->number ||
        field.type != PROTOBUF_BYTES || in.at != in.end) {
        return false;
    }
    *out = field.bytes;
    return true;
}

/* The least bytes of an element: a string has a key and a length. */
static size_t bytes_min(const struct list *list)
{
    switch (list->type) {
    case PROTOBUF_I64:
        return 8;
    case PROTOBUF_I32:
        return 4;
    case PROTOBUF_BYTES:
        return 2;
    case PROTOBUF_VARINT:
        break;
    }
    return 1;
}

static enum status refuse_count(const struct oip_request_input *input, const char *than,
                                struct error *err)
{
    char shape[SHAPE_TEXT_MAX];
    return error_set(err, ST_INVALID,
                     "inputs[%zu].contents: %s has %s than %" PRId64 " elements (%s %.80s)",
                     input->index, name_of(list_of(input)), than, shape_numel(&input->shape),
                     oip_type_name(input->type), shape_print(&input->shape, shape));
}

static enum status refuse_damage(const struct oip_request_input *input, struct error *err)
{
    return error_set(err, ST_INVALID, "inputs[%zu].contents: %s is damaged", input->index,
                     name_of(list_of(input)));
}

enum status grpc_check_contents(const struct oip_request_input *input, struct error *err)
{
    const struct list *list = list_of(input);
    if (list->number == 0) {
        return error_set(err, ST_INVALID,
                         "inputs[%zu].contents: there is no list for %s, expected "
                         "raw_input_contents",
                         input->index, oip_type_name(input->type));
    }
    return (uint64_t)shape_numel(&input->shape) <= input->data.len / bytes_min(list)
               ? ST_OK
               : refuse_count(input, "less", err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The fields of int_contents and uint_contents have 32 bits: of longer numbers the others do not
 * count, and -1 may come as 32 bits, too. */
static uint64_t cut(const struct list *list, uint64_t value)
{
    return list->number == LIST(int_contents)    ? (uint64_t)(int64_t)(int32_t)(uint32_t)value
           : list->number == LIST(uint_contents) ? (uint32_t)value
                                                 : value;
}

static bool is_in_range(const struct list *list, enum dtype dtype, uint64_t value)
{
    if (dtype_infos[dtype].kind != DTYPE_INT) {
        return value <= list->most;
    }
    return (int64_t)value >= list->least && (int64_t)value <= (int64_t)list->most;
}

static void store(uint8_t *dst, enum dtype dtype, uint64_t value)
{
    value = dtype == DT_BOOL ? value != 0 : value;
    for (size_t i = 0; i < dtype_bytes(dtype); i++) {
        dst[i] = (uint8_t)(value >> 8 * i);
    }
}

struct target {
    uint8_t *at, *end;
    size_t count; /* elements that have been written */
};

static enum status decode_numbers(const struct oip_request_input *input, struct protobuf *numbers,
                                  struct target *to, struct error *err)
{
    const struct list *list = list_of(input);
    enum dtype dtype = input->type.dtype;
    uint64_t value;
    while (protobuf_next_packed(numbers, list->type, &value)) {
        if (to->at == to->end) {
            return refuse_count(input, "more", err);
        }
        value = cut(list, value);
        if (!is_in_range(list, dtype, value)) {
            return error_set(err, ST_INVALID,
                             "inputs[%zu].contents: %s[%zu] is out of the range of %s",
                             input->index, name_of(list), to->count, oip_type_name(input->type));
        }
        store(to->at, dtype, value);
        to->at += dtype_bytes(dtype);
        to->count++;
    }
    return numbers->is_wrong ? refuse_damage(input, err) : ST_OK;
}

enum status grpc_decode_contents(const struct oip_request_input *input, uint8_t *dst,
                                 struct error *err)
{
    const struct list *list = list_of(input);
    struct target to = {.at = dst, .end = dst + input->bytes};
    struct protobuf in, numbers;
    struct protobuf_field field;
    uint8_t alone[10];
    must(!input->type.is_bytes && list->number > 0);
    for (protobuf_init(&in, input->data); protobuf_next(&in, &field);) {
        if (field.number != list->number) {
            continue;
        }
        if (!protobuf_numbers(&field, list->type, alone, &numbers)) {
            return refuse_damage(input, err);
        }
        TRY(decode_numbers(input, &numbers, &to, err));
    }
    if (in.is_wrong) {
        return refuse_damage(input, err);
    }
    return to.at == to.end ? ST_OK : refuse_count(input, "less", err);
}

/* ---- strings --------------------------------------------------------------------------------- */

enum status grpc_decode_strings(const struct oip_request_input *input, struct arena *arena,
                                struct span **out_strings, struct error *err)
{
    size_t count = (size_t)shape_numel(&input->shape), found = 0;
    struct span *strings = arena_array(arena, count, sizeof(*strings));
    struct protobuf in;
    struct protobuf_field field;
    if (!strings) {
        return arena_fail(arena, "the request", err);
    }
    for (protobuf_init(&in, input->data); protobuf_next(&in, &field);) {
        if (field.number != strings_list.number) {
            continue;
        }
        if (field.type != PROTOBUF_BYTES) {
            return refuse_damage(input, err);
        }
        if (found == count) {
            return refuse_count(input, "more", err);
        }
        strings[found++] = field.bytes;
    }
    *out_strings = strings;
    return in.is_wrong      ? refuse_damage(input, err)
           : found == count ? ST_OK
                            : refuse_count(input, "less", err);
}
