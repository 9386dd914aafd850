/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/pte_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/tensor_text.h"
#include "runtime/invocation.h"
#include "server/file.h"
#include "server/npy.h"

#define FILE_BYTES_MAX ((size_t)4 << 30)

static const struct rt_io *io_of(const struct rt_invocation *invocation, uint32_t index)
{
    return rt_method_input(rt_invocation_method(invocation), index);
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum status set_bytes(struct rt_invocation *invocation, uint32_t index, enum dtype dtype,
                             const struct shape *shape, struct span bytes, struct error *err)
{
    size_t expected;
    TRY(shape_bytes(shape, dtype, &expected, err));
    if (bytes.len != expected) {
        char text[SHAPE_TEXT_MAX];
        return error_set(err, ST_INVALID, "expected %zu bytes for %s of %s, got %zu", expected,
                         shape_print(shape, text), dtype_infos[dtype].long_text, bytes.len);
    }
    void *memory;
    TRY(rt_invocation_input(invocation, index, dtype, shape, &memory, err));
    if (expected) {
        memcpy(memory, bytes.ptr, expected);
    }
    return ST_OK;
}

/* "2x3x4". */
static enum status parse_dims(const char *text, struct shape *out, struct error *err)
{
    struct span rest = span_str(text);
    *out = (struct shape){0};
    const uint8_t *at = rest.ptr, *end = rest.ptr + rest.len;
    while (at < end) {
        uint64_t dim;
        if (out->rank == SHAPE_RANK_MAX || number_parse_u64(&at, end, &dim) != NUMBER_OK ||
            dim > INT64_MAX || (at < end && (*at != 'x' || ++at == end))) {
            return error_set(err, ST_INVALID, "dims: expected something like 2x3x4, got '%s'",
                             text);
        }
        out->dims[out->rank++] = (int64_t)dim;
    }
    return ST_OK;
}

/* Scalars, too, may come from a file with one element. */
static enum status set_from_bytes(struct rt_invocation *invocation, uint32_t index,
                                  const struct npy *array, struct error *err)
{
    const struct rt_io *io = io_of(invocation, index);
    if (io->kind == RT_IO_TENSOR) {
        return set_bytes(invocation, index, array->dtype, &array->shape, array->data, err);
    }
    int64_t i;
    double f;
    if (array->dtype != io->dtype || array->data.len != dtype_bytes(io->dtype)) {
        return error_set(err, ST_INVALID, "expected one %s, got %zu bytes of %s",
                         dtype_infos[io->dtype].long_text, array->data.len,
                         dtype_infos[array->dtype].long_text);
    }
    switch (io->kind) {
    case RT_IO_INT:
        memcpy(&i, array->data.ptr, sizeof(i));
        return rt_invocation_int(invocation, index, i, err);
    case RT_IO_FLOAT:
        memcpy(&f, array->data.ptr, sizeof(f));
        return rt_invocation_float(invocation, index, f, err);
    case RT_IO_BOOL:
        return rt_invocation_bool(invocation, index, array->data.ptr[0] != 0, err);
    default:
        return error_set(err, ST_INVALID, "a string cannot come from an array file");
    }
}

static enum status read_file(const char *path, struct buf *out, struct error *err)
{
    return file_read(path, out, err) == ST_OK ? ST_OK : error_prefix(err, "%s: ", path);
}

static enum status set_from_npy(struct rt_invocation *invocation, uint32_t index, const char *path,
                                struct error *err)
{
    struct buf file;
    struct npy array;
    buf_init(&file, FILE_BYTES_MAX);
    enum status status = read_file(path, &file, err);
    if (status == ST_OK) {
        status = npy_parse(buf_span(&file), &array, err);
    }
    if (status == ST_OK) {
        status = set_from_bytes(invocation, index, &array, err);
    }
    buf_fini(&file);
    return status;
}

static enum status set_from_raw(struct rt_invocation *invocation, uint32_t index, const char *path,
                                const char *dims, struct error *err)
{
    const struct rt_io *io = io_of(invocation, index);
    struct npy array = {.dtype = io->dtype, .shape = io->shape};
    if (dims) {
        TRY(parse_dims(dims, &array.shape, err));
    }
    struct buf file;
    buf_init(&file, FILE_BYTES_MAX);
    enum status status = read_file(path, &file, err);
    if (status == ST_OK) {
        array.data = buf_span(&file);
        status = set_from_bytes(invocation, index, &array, err);
    }
    buf_fini(&file);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The number of elements of the array |text|, and the text of the first one. */
static enum status count_elements(struct span text, int64_t *out_count, struct span *out_first,
                                  struct error *err)
{
    struct json in;
    json_init(&in, text);
    TRY(json_array(&in, err));
    *out_count = 0;
    *out_first = span_of(NULL, 0);
    while (true) {
        TRY(json_element(&in, err));
        if (in.is_closed) {
            return json_end(&in, err);
        }
        json_peek(&in); /* passes the white space */
        const uint8_t *start = in.at;
        TRY(json_skip(&in, err));
        if ((*out_count)++ == 0) {
            *out_first = span_of(start, (size_t)(in.at - start));
        }
    }
}

/* What the nesting says: [[1,2,3],[4,5,6]] is [2,3]. */
static enum status shape_of_json(struct span text, struct shape *out, struct error *err)
{
    *out = (struct shape){0};
    while (text.len && text.ptr[0] == '[') {
        if (out->rank == SHAPE_RANK_MAX) {
            return error_set(err, ST_INVALID, "more than %d dims", SHAPE_RANK_MAX);
        }
        struct span first;
        TRY(count_elements(text, &out->dims[out->rank++], &first, err));
        text = first;
    }
    return ST_OK;
}

/* The declared shape where nothing is dynamic, so that flat arrays work; else the nesting's. */
static enum status choose_shape(const struct rt_io *io, struct span text, struct shape *out,
                                struct error *err)
{
    if (io->dynamic_dims == 0) {
        *out = io->shape;
        return ST_OK;
    }
    return shape_of_json(text, out, err);
}

static enum status set_tensor_json(struct rt_invocation *invocation, uint32_t index,
                                   struct span text, struct error *err)
{
    const struct rt_io *io = io_of(invocation, index);
    struct tensor_nan nan = {.takes_null = false};
    struct shape shape;
    size_t bytes;
    void *memory;
    TRY(choose_shape(io, text, &shape, err));
    TRY(shape_bytes(&shape, io->dtype, &bytes, err));
    TRY(rt_invocation_input(invocation, index, io->dtype, &shape, &memory, err));
    bool is_bare = shape_numel(&shape) == 1 && text.len > 0 && text.ptr[0] != '[';
    enum status status = is_bare
                             ? tensor_text_parse_element(text, io->dtype, &nan, memory, err)
                             : tensor_text_parse(text, io->dtype, &shape, &nan, memory, bytes, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "data");
}

static enum status set_string_json(struct rt_invocation *invocation, uint32_t index,
                                   struct json *in, struct error *err)
{
    struct json_string string;
    TRY(json_read_string(in, &string, err));
    TRY(json_end(in, err));
    struct buf text;
    buf_init(&text, string.bytes + 1);
    uint8_t *room = buf_reserve(&text, string.bytes);
    enum status status = ST_OK;
    if (!room) {
        status = error_set(err, ST_EXHAUSTED, "out of memory");
    } else {
        json_string_decode(&string, room);
        status = rt_invocation_string(invocation, index, span_of(room, string.bytes), err);
    }
    buf_fini(&text);
    return status;
}

static enum status set_json(struct rt_invocation *invocation, uint32_t index, struct span text,
                            struct error *err)
{
    struct json in;
    int64_t i;
    double f;
    bool b;
    json_init(&in, text);
    switch (io_of(invocation, index)->kind) {
    case RT_IO_TENSOR:
        return set_tensor_json(invocation, index, text, err);
    case RT_IO_INT:
        TRY(json_read_i64(&in, &i, err));
        TRY(json_end(&in, err));
        return rt_invocation_int(invocation, index, i, err);
    case RT_IO_FLOAT:
        TRY(json_read_f64(&in, &f, err));
        TRY(json_end(&in, err));
        return rt_invocation_float(invocation, index, f, err);
    case RT_IO_BOOL:
        TRY(json_read_bool(&in, &b, err));
        TRY(json_end(&in, err));
        return rt_invocation_bool(invocation, index, b, err);
    case RT_IO_STRING:
        return set_string_json(invocation, index, &in, err);
    case RT_IO_NONE:
        return error_set(err, ST_INVALID, "is None and takes no value");
    }
    unreachable();
}

/* ---- which form ------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *suffix)
{
    size_t len = strlen(text), tail = strlen(suffix);
    return len > tail && strcmp(text + len - tail, suffix) == 0;
}

enum status pte_input_set(struct rt_invocation *invocation, uint32_t index, const char *text,
                          struct error *err)
{
    if (ends_with(text, ".npy")) {
        return set_from_npy(invocation, index, text, err);
    }
    if (ends_with(text, ".bin")) {
        return set_from_raw(invocation, index, text, NULL, err);
    }
    const char *colon = strrchr(text, ':');
    if (colon && colon - text > 4 && memcmp(colon - 4, ".bin", 4) == 0) {
        char *path = strdup(text);
        if (!path) {
            return error_set(err, ST_EXHAUSTED, "out of memory");
        }
        path[colon - text] = '\0';
        enum status status = set_from_raw(invocation, index, path, colon + 1, err);
        free(path);
        return status;
    }
    return set_json(invocation, index, span_str(text), err);
}

/* ---- the pattern ----------------------------------------------------------------------------- */

/* Small numbers, so that indices into tables are valid and sums do not overflow. */
static double pattern(enum dtype dtype, size_t i)
{
    switch (dtype_infos[dtype].kind) {
    case DTYPE_FLOAT:
        return (double)(i * 37 % 101) / 50 - 1;
    case DTYPE_BOOL:
        return (double)(i & 1);
    case DTYPE_INT:
    case DTYPE_UINT:
        return (double)(i % 4);
    case DTYPE_COMPLEX:
        break; /* no input is */
    }
    unreachable();
}

static void store(void *memory, enum dtype dtype, size_t i, double value)
{
    uint8_t *at = (uint8_t *)memory + i * dtype_bytes(dtype);
    int64_t integer = (int64_t)value; /* little-endian: its first bytes are the narrow integer */
    float single = (float)value;
    uint16_t half;
    switch (dtype) {
    case DT_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case DT_F32:
        memcpy(at, &single, sizeof(single));
        break;
    case DT_F16:
    case DT_BF16:
        half = dtype == DT_F16 ? number_to_f16(value) : number_to_bf16(value);
        memcpy(at, &half, sizeof(half));
        break;
    default:
        memcpy(at, &integer, dtype_bytes(dtype));
    }
}

static enum status fill_tensor(struct rt_invocation *invocation, uint32_t index, struct error *err)
{
    const struct rt_io *io = io_of(invocation, index);
    void *memory;
    TRY(rt_invocation_input(invocation, index, io->dtype, &io->shape, &memory, err));
    size_t count = (size_t)shape_numel(&io->shape);
    for (size_t i = 0; i < count; i++) {
        store(memory, io->dtype, i, pattern(io->dtype, i));
    }
    return ST_OK;
}

enum status pte_input_fill(struct rt_invocation *invocation, uint32_t index, struct error *err)
{
    const struct rt_io *io = io_of(invocation, index);
    if (io->is_fixed) {
        return ST_OK;
    }
    switch (io->kind) {
    case RT_IO_TENSOR:
        return fill_tensor(invocation, index, err);
    case RT_IO_INT:
        return rt_invocation_int(invocation, index, 1, err);
    case RT_IO_FLOAT:
        return rt_invocation_float(invocation, index, 0.5, err);
    case RT_IO_BOOL:
        return rt_invocation_bool(invocation, index, true, err);
    case RT_IO_STRING:
        return rt_invocation_string(invocation, index, span_str("text"), err);
    case RT_IO_NONE:
        return ST_OK;
    }
    unreachable();
}
