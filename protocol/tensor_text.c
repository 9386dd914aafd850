/* SPDX-License-Identifier: MIT */
/*
 * JSON arrays -> typed memory. A walk over the brackets finds the innermost arrays; each is a run
 * of elements of known count, read by a loop made for its element type. A flat array is a walk with
 * a single run.
 */
#include "config.h"

#include "protocol/tensor_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json_priv.h"
#include "protocol/number.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are little-endian on the wire");

struct walk {
    const uint8_t *at, *end;
    const struct shape *shape;
    const struct element *element;
    uint8_t *dst;        /* where the next element goes */
    struct arena *arena; /* of decoded strings */
    bool is_at_element;  /* the last run stopped at an element, not at a missing comma */
    unsigned level;      /* of the array that the walk is in */
    int64_t index[SHAPE_RANK_MAX];
};

/* Reads the element at |at| into |dst|; the place behind it, or NULL. */
typedef const uint8_t *read_element_f(const uint8_t *at, const uint8_t *end, void *dst);

/* Reads up to |count| elements and the commas between them, and returns how many it read. */
typedef size_t read_run_f(struct walk *walk, size_t count);

/* A type of elements, and its words for errors. */
struct element {
    read_run_f *read_run;
    const char *name, *wanted;
    bool is_float;
};

static inline const uint8_t *skip_space(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

static inline const uint8_t *read_f32(const uint8_t *at, const uint8_t *end, void *dst)
{
    float value;
    const uint8_t *behind = number_read_f32(at, end, &value);
    if (behind) {
        memcpy(dst, &value, sizeof(value));
    }
    return behind;
}

static inline const uint8_t *read_f64(const uint8_t *at, const uint8_t *end, void *dst)
{
    double value;
    const uint8_t *behind = number_read_f64(at, end, &value);
    if (behind) {
        memcpy(dst, &value, sizeof(value));
    }
    return behind;
}

/* A 16 bit float is rounded from the nearest double, as the libraries of our clients do it. */
static inline const uint8_t *read_narrow(const uint8_t *at, const uint8_t *end, void *dst,
                                         uint16_t narrow(double), uint16_t infinity)
{
    double value;
    const uint8_t *behind = number_read_f64(at, end, &value);
    if (!behind) {
        return NULL;
    }
    uint16_t bits = narrow(value);
    if ((bits & 0x7fff) == infinity && !isinf(value)) {
        return NULL;
    }
    memcpy(dst, &bits, sizeof(bits));
    return behind;
}

static inline const uint8_t *read_f16(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_narrow(at, end, dst, number_to_f16, 0x7c00);
}

static inline const uint8_t *read_bf16(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_narrow(at, end, dst, number_to_bf16, 0x7f80);
}

/* The low bytes of a wider integer come first. */
static inline const uint8_t *read_signed(const uint8_t *at, const uint8_t *end, void *dst,
                                         int64_t max, size_t bytes)
{
    int64_t value;
    const uint8_t *behind = number_read_i64(at, end, &value);
    if (!behind || value > max || value < -max - 1) {
        return NULL;
    }
    memcpy(dst, &value, bytes);
    return behind;
}

static inline const uint8_t *read_unsigned(const uint8_t *at, const uint8_t *end, void *dst,
                                           uint64_t max, size_t bytes)
{
    uint64_t value;
    const uint8_t *behind = number_read_u64(at, end, &value);
    if (!behind || value > max) {
        return NULL;
    }
    memcpy(dst, &value, bytes);
    return behind;
}

static inline const uint8_t *read_i8(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_signed(at, end, dst, INT8_MAX, 1);
}

static inline const uint8_t *read_i16(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_signed(at, end, dst, INT16_MAX, 2);
}

static inline const uint8_t *read_i32(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_signed(at, end, dst, INT32_MAX, 4);
}

static inline const uint8_t *read_i64(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_signed(at, end, dst, INT64_MAX, 8);
}

static inline const uint8_t *read_u8(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_unsigned(at, end, dst, UINT8_MAX, 1);
}

static inline const uint8_t *read_u16(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_unsigned(at, end, dst, UINT16_MAX, 2);
}

static inline const uint8_t *read_u32(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_unsigned(at, end, dst, UINT32_MAX, 4);
}

static inline const uint8_t *read_u64(const uint8_t *at, const uint8_t *end, void *dst)
{
    return read_unsigned(at, end, dst, UINT64_MAX, 8);
}

static inline const uint8_t *read_bool(const uint8_t *at, const uint8_t *end, void *dst)
{
    bool is_true = end - at >= 4 && memcmp(at, "true", 4) == 0;
    if (is_true || (end - at >= 5 && memcmp(at, "false", 5) == 0)) {
        memcpy(dst, &is_true, 1);
        return at + (is_true ? 4 : 5);
    }
    return read_unsigned(at, end, dst, 1, 1);
}

/* Over the comma in front of element |i| to the element; NULL when the comma is missing. */
static inline const uint8_t *step(const uint8_t *at, const uint8_t *end, size_t i)
{
    at = skip_space(at, end);
    if (i == 0) {
        return at;
    }
    return at < end && *at == ',' ? skip_space(at + 1, end) : NULL;
}

/* The one loop, compiled for each element type. */
__attribute__((always_inline)) static inline size_t
read_run(struct walk *walk, size_t count, read_element_f *read_element, size_t bytes)
{
    const uint8_t *at = walk->at, *end = walk->end;
    uint8_t *dst = walk->dst;
    size_t i = 0;
    for (; i < count; i++) {
        const uint8_t *element = step(at, end, i);
        walk->is_at_element = element != NULL;
        if (!element) {
            break;
        }
        at = element;
        const uint8_t *behind = read_element(at, end, dst);
        if (!behind) {
            break;
        }
        at = behind;
        dst += bytes;
    }
    walk->at = at;
    walk->dst = dst;
    return i;
}

#define RUN(name, bytes)                                                                           \
    static size_t run_##name(struct walk *walk, size_t count)                                      \
    {                                                                                              \
        return read_run(walk, count, read_##name, bytes);                                          \
    }
RUN(f32, 4)
RUN(f64, 8)
RUN(f16, 2)
RUN(bf16, 2)
RUN(i8, 1)
RUN(i16, 2)
RUN(i32, 4)
RUN(i64, 8)
RUN(u8, 1)
RUN(u16, 2)
RUN(u32, 4)
RUN(u64, 8)
RUN(bool, 1)
#undef RUN

static const struct element elements[DTYPE_COUNT] = {
    [DT_F32] = {run_f32, "FP32", "a number", true},
    [DT_F64] = {run_f64, "FP64", "a number", true},
    [DT_F16] = {run_f16, "FP16", "a number", true},
    [DT_BF16] = {run_bf16, "BF16", "a number", true},
    [DT_I8] = {run_i8, "INT8", "an integer", false},
    [DT_I16] = {run_i16, "INT16", "an integer", false},
    [DT_I32] = {run_i32, "INT32", "an integer", false},
    [DT_I64] = {run_i64, "INT64", "an integer", false},
    [DT_U8] = {run_u8, "UINT8", "an integer", false},
    [DT_U16] = {run_u16, "UINT16", "an integer", false},
    [DT_U32] = {run_u32, "UINT32", "an integer", false},
    [DT_U64] = {run_u64, "UINT64", "an integer", false},
    [DT_BOOL] = {run_bool, "BOOL", "a boolean", false},
};

/* A string that has to be decoded goes to the arena, the others stay where they are. */
static size_t run_string(struct walk *walk, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json_string string;
        const uint8_t *at = step(walk->at, walk->end, i);
        walk->is_at_element = at != NULL;
        if (!at) {
            return i;
        }
        walk->at = at;
        if (at == walk->end || *at != '"' || json_string_scan(&at, walk->end, &string)) {
            return i;
        }
        struct span out = string.raw;
        if (string.raw.len != string.bytes) {
            uint8_t *copy = arena_alloc(walk->arena, string.bytes);
            if (!copy) {
                return i;
            }
            json_string_decode(&string, copy);
            out = span_of(copy, string.bytes);
        }
        walk->at = at;
        memcpy(walk->dst, &out, sizeof(out));
        walk->dst += sizeof(out);
    }
    return count;
}

static const struct element string_element = {run_string, "BYTES", "a string", false};

static bool is_next(struct walk *walk, char c)
{
    walk->at = skip_space(walk->at, walk->end);
    return walk->at < walk->end && *walk->at == c;
}

#define PATH_TEXT_MAX 160

/* "[3][1]: " for the first |count| indices, or nothing. */
static const char *print_path(const struct walk *walk, unsigned count, char text[PATH_TEXT_MAX])
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count && len < PATH_TEXT_MAX; i++) {
        len += (size_t)snprintf(text + len, PATH_TEXT_MAX - len, "[%" PRId64 "]", walk->index[i]);
    }
    if (len < PATH_TEXT_MAX) {
        snprintf(text + len, PATH_TEXT_MAX - len, ": ");
    }
    return text;
}

static enum status fail_next(const struct walk *walk, unsigned depth, const char *wanted,
                             struct error *err)
{
    char path[PATH_TEXT_MAX], next[JSON_NEXT_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(walk->at, (size_t)(walk->end - walk->at)));
    return error_set(err, ST_INVALID, "%sexpected %s, got %s", print_path(walk, depth, path),
                     wanted, json_next_text(&in, next));
}

static enum status fail_short(const struct walk *walk, size_t done, size_t count, struct error *err)
{
    char path[PATH_TEXT_MAX], shape[SHAPE_TEXT_MAX];
    return error_set(err, ST_INVALID, "%sexpected %zu elements (shape %.80s), got %zu",
                     print_path(walk, walk->level, path), count, shape_print(walk->shape, shape),
                     done);
}

/* Something else than the closing bracket behind the last of |count| elements. */
static enum status fail_long(struct walk *walk, size_t count, struct error *err)
{
    char path[PATH_TEXT_MAX], shape[SHAPE_TEXT_MAX];
    if (count > 0 && !is_next(walk, ',')) {
        return fail_next(walk, walk->level, "']'", err);
    }
    return error_set(err, ST_INVALID, "%sexpected %zu elements (shape %.80s), got more",
                     print_path(walk, walk->level, path), count, shape_print(walk->shape, shape));
}

/* The string at walk->at was not read: it is malformed, or there was no memory to decode it. */
static enum status fail_string(const struct walk *walk, const char *path, struct error *err)
{
    struct json_string string;
    const uint8_t *at = walk->at;
    const char *wrong = json_string_scan(&at, walk->end, &string);
    return wrong ? error_set(err, ST_INVALID, "%s%s", path, wrong)
                 : error_set(err, ST_TOO_LARGE, "%smore text than a request may have", path);
}

/* The number at walk->at was not read. */
static enum status fail_number(const struct walk *walk, const char *path, struct error *err)
{
    struct span token = json_number_text(walk->at, walk->end);
    const uint8_t *at = walk->at;
    int64_t integer;
    double number;
    enum number_result result = walk->element->is_float
                                    ? number_parse_f64(&at, walk->end, &number)
                                    : number_parse_i64(&at, walk->end, &integer);
    switch (result) {
    case NUMBER_NOT_INTEGER:
        return error_set(err, ST_INVALID, "%sexpected an integer, got %.*s", path, SPAN_FMT(token));
    case NUMBER_SYNTAX:
        return error_set(err, ST_INVALID, "%smalformed number %.*s", path, SPAN_FMT(token));
    default:
        return error_set(err, ST_INVALID, "%s%.*s is out of the range of %s", path, SPAN_FMT(token),
                         walk->element->name);
    }
}

/* Why the element at walk->at, whose index is set, was not read. */
static enum status fail_element(const struct walk *walk, struct error *err)
{
    char path[PATH_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(walk->at, (size_t)(walk->end - walk->at)));
    print_path(walk, walk->level + 1, path);
    enum json_type type = json_peek(&in);
    if (!walk->is_at_element) {
        return fail_next(walk, walk->level + 1, "',' or ']'", err);
    }
    if (type == JSON_STRING && walk->element == &string_element) {
        return fail_string(walk, path, err);
    }
    if (type == JSON_NUMBER && walk->element != &string_element) {
        return fail_number(walk, path, err);
    }
    if (type == JSON_BOOL && walk->element == &elements[DT_BOOL]) {
        return error_set(err, ST_INVALID, "%sexpected true or false, got another word", path);
    }
    return fail_next(walk, walk->level + 1, walk->element->wanted, err);
}

/* An innermost array of |count| elements, from behind its bracket to behind its closing one. */
static enum status walk_run(struct walk *walk, size_t count, struct error *err)
{
    size_t done = walk->element->read_run(walk, count);
    walk->index[walk->level] = (int64_t)done;
    if (done < count) {
        bool is_short = is_next(walk, ']') && (done == 0 || !walk->is_at_element);
        return is_short ? fail_short(walk, done, count, err) : fail_element(walk, err);
    }
    if (!is_next(walk, ']')) {
        return fail_long(walk, count, err);
    }
    walk->at++;
    return ST_OK;
}

/* To the next array inside the one at walk->level, or out of that one when it is complete. */
static enum status walk_brackets(struct walk *walk, bool *is_inside, struct error *err)
{
    int64_t done = walk->index[walk->level], count = walk->shape->dims[walk->level];
    *is_inside = false;
    if (is_next(walk, ']')) {
        walk->at++;
        return done == count ? ST_OK : fail_short(walk, (size_t)done, (size_t)count, err);
    }
    if (done == count) {
        return fail_long(walk, (size_t)count, err);
    }
    if (done > 0) {
        if (!is_next(walk, ',')) {
            return fail_next(walk, walk->level, "',' or ']'", err);
        }
        walk->at++;
    }
    if (!is_next(walk, '[')) {
        return fail_next(walk, walk->level + 1, "an array", err);
    }
    walk->at++;
    *is_inside = true;
    return ST_OK;
}

static enum status walk_nested(struct walk *walk, struct error *err)
{
    const unsigned innermost = walk->shape->rank - 1u;
    walk->index[0] = 0;
    while (true) {
        bool is_inside = false;
        if (walk->level == innermost) {
            TRY(walk_run(walk, (size_t)walk->shape->dims[innermost], err));
        } else {
            TRY(walk_brackets(walk, &is_inside, err));
        }
        if (is_inside) {
            walk->index[++walk->level] = 0;
        } else if (walk->level > 0) {
            walk->index[--walk->level]++;
        } else {
            return ST_OK;
        }
    }
}

static enum status walk_array(struct walk *walk, size_t count, struct error *err)
{
    if (!is_next(walk, '[')) {
        return fail_next(walk, 0, "an array", err);
    }
    walk->at++;
    if (walk->shape->rank > 1 && is_next(walk, '[')) {
        TRY(walk_nested(walk, err));
    } else {
        TRY(walk_run(walk, count, err));
    }
    walk->at = skip_space(walk->at, walk->end);
    return walk->at == walk->end ? ST_OK : fail_next(walk, 0, "the end of the array", err);
}

size_t tensor_text_bytes_min(int64_t count)
{
    /* One character an element, commas between them, two brackets. */
    return count <= 0 ? 2 : (uint64_t)count > SIZE_MAX / 2 - 1 ? SIZE_MAX : (size_t)count * 2 + 1;
}

enum status tensor_text_parse(struct span text, enum dtype dtype, const struct shape *shape,
                              void *dst, size_t bytes, struct error *err)
{
    must(bytes == (size_t)shape_numel(shape) * dtype_bytes(dtype));
    struct walk walk = {
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = shape,
        .element = &elements[dtype],
        .dst = dst,
    };
    return walk_array(&walk, bytes / dtype_bytes(dtype), err);
}

enum status tensor_text_parse_strings(struct span text, const struct shape *shape,
                                      struct arena *arena, struct span **out_strings,
                                      struct error *err)
{
    int64_t count = shape_numel(shape);
    if (text.len < tensor_text_bytes_min(count)) {
        return error_set(err, ST_INVALID, ": %zu bytes of text cannot hold %" PRId64 " strings",
                         text.len, count);
    }
    struct span *strings = arena_array(arena, (size_t)count, sizeof(*strings));
    if (!strings) {
        return error_set(err, ST_TOO_LARGE,
                         ": %" PRId64 " strings are more than a request may have", count);
    }
    struct walk walk = {
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = shape,
        .element = &string_element,
        .dst = (uint8_t *)strings,
        .arena = arena,
    };
    TRY(walk_array(&walk, (size_t)count, err));
    *out_strings = strings;
    return ST_OK;
}
