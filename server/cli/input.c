/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/tensor_text.h"
#include "server/cli/npy.h"
#include "server/process/file.h"

#define FILE_BYTES_MAX ((size_t)4 << 30)

/* ---- files ----------------------------------------------------------------------------------- */

/* |text| as the user gave it, and the input that it becomes. */
struct setting {
    const struct cli_input_to *input;
    const struct cli_io *io;
    const struct shape *shape; /* the required shape, or NULL */
    struct shape *out_shape;
};

static enum status check_shape(const struct setting *to, const struct shape *shape,
                               struct error *err)
{
    char wanted[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    if (to->shape && !shape_equal(to->shape, shape)) {
        return error_set(err, ST_INVALID, "--shape says %s, the file has %s",
                         shape_print(to->shape, wanted), shape_print(shape, got));
    }
    return ST_OK;
}

static enum status set_bytes(const struct setting *to, const struct npy *array, struct error *err)
{
    size_t expected;
    void *memory;
    TRY(shape_bytes(&array->shape, array->dtype, &expected, err));
    if (array->data.len != expected) {
        char text[SHAPE_TEXT_MAX];
        return error_set(err, ST_INVALID, "expected %zu bytes for %s of %s, got %zu", expected,
                         shape_print(&array->shape, text), dtype_name(array->dtype),
                         array->data.len);
    }
    TRY(check_shape(to, &array->shape, err));
    TRY(to->input->ops->tensor(to->input->own, to->input->index, array->dtype, &array->shape,
                               &memory, err));
    npy_copy(array, memory);
    *to->out_shape = array->shape;
    return ST_OK;
}

enum status cli_input_parse_dims(const char *text, struct shape *out, struct error *err)
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

/* A scalar, too, may come from a file with one element. */
static enum status set_from_array(const struct setting *to, const struct npy *array,
                                  struct error *err)
{
    const struct cli_io *io = to->io;
    if (io->kind == PTED_KIND_TENSOR) {
        return set_bytes(to, array, err);
    }
    int64_t i = 0;
    double f;
    if (io->kind == PTED_KIND_STRING || io->kind == PTED_KIND_NONE) {
        return error_set(err, ST_INVALID, "no array, expected %s",
                         io->kind == PTED_KIND_STRING ? "a string" : "nothing");
    }
    if (array->dtype != io->dtype || array->data.len != dtype_bytes(io->dtype)) {
        return error_set(err, ST_INVALID, "expected one %s, got %zu bytes of %s",
                         dtype_name(io->dtype), array->data.len, dtype_name(array->dtype));
    }
    npy_copy(array, &i);
    switch (io->kind) {
    case PTED_KIND_INT:
        return to->input->ops->integer(to->input->own, to->input->index, i, err);
    case PTED_KIND_FLOAT:
        memcpy(&f, &i, sizeof(f));
        return to->input->ops->number(to->input->own, to->input->index, f, err);
    default:
        return to->input->ops->flag(to->input->own, to->input->index, i != 0, err);
    }
}

static enum status set_from_typed(const struct setting *to, const struct npy *array,
                                  struct error *err)
{
    if (to->io->kind == PTED_KIND_TENSOR && array->dtype != to->io->dtype) {
        return error_set(err, ST_INVALID, "expected %s, got %s: convert it by .astype('%s')",
                         dtype_name(to->io->dtype), dtype_name(array->dtype),
                         dtype_name(to->io->dtype));
    }
    return set_from_array(to, array, err);
}

static enum status parse_npy(const struct setting *to, struct span file, struct error *err)
{
    struct npy array;
    TRY(npy_parse(file, &array, err));
    return set_from_typed(to, &array, err);
}

static enum status set_from_npy(const struct setting *to, const char *path, struct error *err)
{
    struct buf file;
    buf_init(&file, FILE_BYTES_MAX);
    enum status status = file_read(path, &file, err);
    if (status == ST_OK) {
        status = parse_npy(to, buf_span(&file), err);
    }
    buf_fini(&file);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", path);
}

static enum status set_from_raw(const struct setting *to, const char *path, const char *dims,
                                struct error *err)
{
    struct npy array = {.dtype = to->io->dtype, .shape = to->shape ? *to->shape : to->io->shape};
    if (dims) {
        TRY(cli_input_parse_dims(dims, &array.shape, err));
    }
    struct buf file;
    buf_init(&file, FILE_BYTES_MAX);
    enum status status = file_read(path, &file, err);
    if (status == ST_OK) {
        array.data = buf_span(&file);
        status = set_from_array(to, &array, err);
    }
    buf_fini(&file);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", path);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The shape of the nested lists, or the declared one if no dim varies, so that flat lists work. */
static enum status choose_shape(const struct setting *to, struct span text, struct shape *out,
                                struct error *err)
{
    *out = to->shape ? *to->shape : to->io->shape;
    if (to->shape || to->io->dynamic_dims == 0) {
        return ST_OK;
    }
    return tensor_text_measure(text, out, err) == ST_OK ? ST_OK : error_prefix(err, "data");
}

static enum status set_tensor_json(const struct setting *to, struct span text, struct error *err)
{
    enum dtype dtype = to->io->dtype;
    struct tensor_nan nan = {.takes_null = false};
    struct shape shape;
    size_t bytes;
    void *memory;
    TRY(choose_shape(to, text, &shape, err));
    TRY(shape_bytes(&shape, dtype, &bytes, err));
    TRY(to->input->ops->tensor(to->input->own, to->input->index, dtype, &shape, &memory, err));
    bool is_bare = shape_numel(&shape) == 1 && text.len > 0 && text.ptr[0] != '[';
    enum status status = is_bare ? tensor_text_parse_element(text, dtype, &nan, memory, err)
                                 : tensor_text_parse(text, dtype, &shape, &nan, memory, bytes, err);
    *to->out_shape = shape;
    return status == ST_OK ? ST_OK : error_prefix(err, "data");
}

static enum status set_string_json(const struct setting *to, struct json *in, struct error *err)
{
    struct json_string string;
    TRY(json_read_string(in, &string, err));
    TRY(json_end(in, err));
    struct buf text;
    buf_init(&text, string.bytes + 1);
    uint8_t *room = buf_reserve(&text, string.bytes);
    enum status status = ST_OK;
    if (!room) {
        status = error_no_memory(err, "an input");
    } else {
        json_string_decode(&string, room);
        status = to->input->ops->string(to->input->own, to->input->index,
                                        span_of(room, string.bytes), err);
    }
    buf_fini(&text);
    return status;
}

/* The shape of a flat array. */
static enum status measure_strings(struct span text, struct shape *out, struct error *err)
{
    struct json in;
    struct json_string ignored;
    *out = (struct shape){.rank = 1};
    json_init(&in, text);
    TRY(json_array(&in, err));
    while (true) {
        TRY(json_element(&in, err));
        if (in.is_closed) {
            return json_end(&in, err);
        }
        TRY(json_read_string(&in, &ignored, err));
        out->dims[0]++;
    }
}

static enum status parse_strings(const struct setting *to, struct span text, struct arena *arena,
                                 struct error *err)
{
    struct shape shape = to->shape ? *to->shape : (struct shape){0};
    size_t count;
    struct span *strings;
    TRY(to->shape ? ST_OK : measure_strings(text, &shape, err));
    TRY(shape_bytes(&shape, DT_U8, &count, err));
    TRY(tensor_text_parse_strings(text, &shape, arena, &strings, err));
    *to->out_shape = shape;
    return to->input->ops->strings(to->input->own, to->input->index, &shape, strings, err);
}

/* An array of strings: flat, or nested as the shape says. */
static enum status set_strings_json(const struct setting *to, struct span text, struct error *err)
{
    struct arena arena;
    arena_init(&arena, FILE_BYTES_MAX);
    enum status status = parse_strings(to, text, &arena, err);
    arena_fini(&arena);
    return status == ST_OK ? ST_OK : error_prefix(err, "data");
}

static enum status set_json(const struct setting *to, struct span text, struct error *err)
{
    struct json in;
    int64_t i;
    double f;
    bool b;
    json_init(&in, text);
    switch (to->io->kind) {
    case PTED_KIND_TENSOR:
        return set_tensor_json(to, text, err);
    case PTED_KIND_INT:
        TRY(json_read_i64(&in, &i, err));
        TRY(json_end(&in, err));
        return to->input->ops->integer(to->input->own, to->input->index, i, err);
    case PTED_KIND_FLOAT:
        TRY(json_read_f64(&in, &f, err));
        TRY(json_end(&in, err));
        return to->input->ops->number(to->input->own, to->input->index, f, err);
    case PTED_KIND_BOOL:
        TRY(json_read_bool(&in, &b, err));
        TRY(json_end(&in, err));
        return to->input->ops->flag(to->input->own, to->input->index, b, err);
    case PTED_KIND_STRING:
        return to->input->ops->strings && text.len > 0 && text.ptr[0] == '['
                   ? set_strings_json(to, text, err)
                   : set_string_json(to, &in, err);
    case PTED_KIND_NONE:
        return error_set(err, ST_INVALID, "is None and takes no value");
    }
    unreachable();
}

/* ---- which form ------------------------------------------------------------------------------ */

/* The colon of FILE.bin:2x3, or NULL. */
static const char *find_dims(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon && colon - text > 4 && memcmp(colon - 4, ".bin", 4) == 0 ? colon : NULL;
}

bool cli_input_is_tensor(const char *text)
{
    const char *second = text + 1 + (*text == '[' ? strspn(text + 1, " \t\r\n") : 0);
    return ends_with(text, ".npy") || ends_with(text, ".npz") || ends_with(text, ".bin") ||
           find_dims(text) || (*text == '[' && *second && strchr("[]-0123456789", *second));
}

/* FILE.bin:2x3 */
static enum status set_from_raw_with_dims(const struct setting *to, const char *text,
                                          const char *colon, struct error *err)
{
    char *path = strndup(text, (size_t)(colon - text));
    if (!path) {
        return error_no_memory(err, "an input");
    }
    enum status status = set_from_raw(to, path, colon + 1, err);
    free(path);
    return status;
}

enum status cli_input_set(const struct cli_input_to *input, const char *text,
                          const struct shape *shape, struct shape *out_shape, struct error *err)
{
    const struct setting to = {input, input->io, shape, out_shape};
    const char *colon = find_dims(text);
    if (ends_with(text, ".npy")) {
        return set_from_npy(&to, text, err);
    }
    if (ends_with(text, ".npz")) {
        return error_set(err, ST_INVALID, "%s: " NPY_IS_NPZ, text);
    }
    if (ends_with(text, ".bin")) {
        return set_from_raw(&to, text, NULL, err);
    }
    if (colon) {
        return set_from_raw_with_dims(&to, text, colon, err);
    }
    if (access(text, F_OK) == 0) {
        return error_set(err, ST_INVALID, "%s: expected a file that ends in .npy or .bin", text);
    }
    return set_json(&to, span_str(text), err);
}

enum status cli_input_set_array(const struct cli_input_to *to, const struct npy *array,
                                struct shape *out_shape, struct error *err)
{
    const struct setting setting = {.input = to, .io = to->io, .out_shape = out_shape};
    return set_from_typed(&setting, array, err);
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
        break; /* no input has another kind */
    }
    unreachable();
}

void cli_input_store(void *memory, enum dtype dtype, size_t i, double value)
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

static enum status fill_tensor(const struct cli_input_to *to, const struct shape *shape,
                               struct error *err)
{
    const struct cli_io *io = to->io;
    size_t bytes;
    void *memory;
    TRY(shape_bytes(shape, io->dtype, &bytes, err));
    TRY(to->ops->tensor(to->own, to->index, io->dtype, shape, &memory, err));
    size_t count = (size_t)shape_numel(shape);
    for (size_t i = 0; i < count; i++) {
        cli_input_store(memory, io->dtype, i, pattern(io->dtype, i));
    }
    return ST_OK;
}

enum status cli_input_fill(const struct cli_input_to *to, const struct shape *shape,
                           struct error *err)
{
    const struct cli_io *io = to->io;
    if (io->is_fixed) {
        return ST_OK;
    }
    switch (io->kind) {
    case PTED_KIND_TENSOR:
        return fill_tensor(to, shape, err);
    case PTED_KIND_INT:
        return to->ops->integer(to->own, to->index, 1, err);
    case PTED_KIND_FLOAT:
        return to->ops->number(to->own, to->index, 0.5, err);
    case PTED_KIND_BOOL:
        return to->ops->flag(to->own, to->index, true, err);
    case PTED_KIND_STRING:
        return to->ops->string(to->own, to->index, span_str("text"), err);
    case PTED_KIND_NONE:
        return ST_OK;
    }
    unreachable();
}
