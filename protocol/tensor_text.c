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
    const char *type_text;   /* for errors: "float32" */
    const char *wanted_text; /* "a number" */
    uint8_t *dst;            /* where the next element goes */
    struct arena *arena;     /* of decoded strings */
    bool is_nested;
    unsigned level; /* of the array that the walk is in */
    int64_t index[SHAPE_RANK_MAX];
};

/* What stopped a run at walk->at. */
enum fault {
    FAULT_NONE,
    FAULT_COMMA,   /* something else than a comma or the closing bracket */
    FAULT_SHORT,   /* the closing bracket came early */
    FAULT_TYPE,    /* no element of this type starts here */
    FAULT_INTEGER, /* a fraction or an exponent */
    FAULT_RANGE,
    FAULT_STRING, /* malformed */
    FAULT_MEMORY,
};

/* Reads one element at walk->at into walk->dst and passes it. */
typedef enum fault read_element_f(struct walk *walk);

/* Reads |count| elements; |*done| are read. */
typedef enum fault read_run_f(struct walk *walk, size_t count, size_t *done);

static void skip_space(struct walk *walk)
{
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\n' || *walk->at == '\r' || *walk->at == '\t')) {
        walk->at++;
    }
}

static bool is_next(const struct walk *walk, char c)
{
    return walk->at < walk->end && *walk->at == c;
}

static enum fault fault_of(enum number_result result)
{
    switch (result) {
    case NUMBER_OK:
        return FAULT_NONE;
    case NUMBER_NOT_INTEGER:
        return FAULT_INTEGER;
    case NUMBER_RANGE:
        return FAULT_RANGE;
    case NUMBER_SYNTAX:
        break;
    }
    return FAULT_TYPE;
}

/* ---- elements -------------------------------------------------------------------------------- */

static inline enum fault read_f32(struct walk *walk)
{
    float value;
    enum number_result result = number_parse_f32(&walk->at, walk->end, &value);
    if (result != NUMBER_OK) {
        return fault_of(result);
    }
    memcpy(walk->dst, &value, sizeof(value));
    walk->dst += sizeof(value);
    return FAULT_NONE;
}

static inline enum fault read_f64(struct walk *walk)
{
    double value;
    enum number_result result = number_parse_f64(&walk->at, walk->end, &value);
    if (result != NUMBER_OK) {
        return fault_of(result);
    }
    memcpy(walk->dst, &value, sizeof(value));
    walk->dst += sizeof(value);
    return FAULT_NONE;
}

/* A 16 bit float is rounded from the nearest double, as the libraries of our clients do it. */
static inline enum fault read_narrow(struct walk *walk, uint16_t narrow(double), uint16_t infinity)
{
    const uint8_t *at = walk->at;
    double value;
    enum number_result result = number_parse_f64(&at, walk->end, &value);
    if (result != NUMBER_OK) {
        return fault_of(result);
    }
    uint16_t bits = narrow(value);
    if ((bits & 0x7fff) == infinity && !isinf(value)) {
        return FAULT_RANGE;
    }
    walk->at = at;
    memcpy(walk->dst, &bits, sizeof(bits));
    walk->dst += sizeof(bits);
    return FAULT_NONE;
}

static inline enum fault read_f16(struct walk *walk)
{
    return read_narrow(walk, number_to_f16, 0x7c00);
}

static inline enum fault read_bf16(struct walk *walk)
{
    return read_narrow(walk, number_to_bf16, 0x7f80);
}

/* The low bytes of a wider integer come first. */
static inline enum fault read_signed(struct walk *walk, int64_t min, int64_t max, size_t bytes)
{
    const uint8_t *at = walk->at;
    int64_t value;
    enum number_result result = number_parse_i64(&at, walk->end, &value);
    if (result != NUMBER_OK) {
        return fault_of(result);
    }
    if (value < min || value > max) {
        return FAULT_RANGE;
    }
    walk->at = at;
    memcpy(walk->dst, &value, bytes);
    walk->dst += bytes;
    return FAULT_NONE;
}

static inline enum fault read_unsigned(struct walk *walk, uint64_t max, size_t bytes)
{
    const uint8_t *at = walk->at;
    uint64_t value;
    enum number_result result = number_parse_u64(&at, walk->end, &value);
    if (result != NUMBER_OK) {
        return fault_of(result);
    }
    if (value > max) {
        return FAULT_RANGE;
    }
    walk->at = at;
    memcpy(walk->dst, &value, bytes);
    walk->dst += bytes;
    return FAULT_NONE;
}

static inline enum fault read_i8(struct walk *walk)
{
    return read_signed(walk, INT8_MIN, INT8_MAX, 1);
}

static inline enum fault read_i16(struct walk *walk)
{
    return read_signed(walk, INT16_MIN, INT16_MAX, 2);
}

static inline enum fault read_i32(struct walk *walk)
{
    return read_signed(walk, INT32_MIN, INT32_MAX, 4);
}

static inline enum fault read_i64(struct walk *walk)
{
    return read_signed(walk, INT64_MIN, INT64_MAX, 8);
}

static inline enum fault read_u8(struct walk *walk)
{
    return read_unsigned(walk, UINT8_MAX, 1);
}

static inline enum fault read_u16(struct walk *walk)
{
    return read_unsigned(walk, UINT16_MAX, 2);
}

static inline enum fault read_u32(struct walk *walk)
{
    return read_unsigned(walk, UINT32_MAX, 4);
}

static inline enum fault read_u64(struct walk *walk)
{
    return read_unsigned(walk, UINT64_MAX, 8);
}

static inline enum fault read_bool(struct walk *walk)
{
    size_t left = (size_t)(walk->end - walk->at);
    if (left >= 4 && memcmp(walk->at, "true", 4) == 0) {
        walk->at += 4;
        *walk->dst++ = 1;
        return FAULT_NONE;
    }
    if (left >= 5 && memcmp(walk->at, "false", 5) == 0) {
        walk->at += 5;
        *walk->dst++ = 0;
        return FAULT_NONE;
    }
    return read_unsigned(walk, 1, 1);
}

static inline enum fault read_string(struct walk *walk)
{
    struct json_string string;
    if (!is_next(walk, '"')) {
        return FAULT_TYPE;
    }
    if (json_string_scan(&walk->at, walk->end, &string)) {
        return FAULT_STRING;
    }
    struct span out = string.raw;
    if (string.raw.len != string.bytes) {
        uint8_t *copy = arena_alloc(walk->arena, string.bytes);
        if (!copy) {
            return FAULT_MEMORY;
        }
        json_string_decode(&string, copy);
        out = span_of(copy, string.bytes);
    }
    memcpy(walk->dst, &out, sizeof(out));
    walk->dst += sizeof(out);
    return FAULT_NONE;
}

/* ---- runs: one loop, compiled once for each element type
 * ----------------------------------------- */

__attribute__((always_inline)) static inline enum fault
read_run(struct walk *walk, size_t count, size_t *done, read_element_f *read_element)
{
    for (size_t i = 0; i < count; i++) {
        *done = i;
        skip_space(walk);
        if (i > 0) {
            if (!is_next(walk, ',')) {
                return is_next(walk, ']') ? FAULT_SHORT : FAULT_COMMA;
            }
            walk->at++;
            skip_space(walk);
        } else if (is_next(walk, ']')) {
            return FAULT_SHORT;
        }
        enum fault fault = read_element(walk);
        if (fault != FAULT_NONE) {
            return fault;
        }
    }
    *done = count;
    return FAULT_NONE;
}

#define RUN(name)                                                                                  \
    static enum fault run_##name(struct walk *walk, size_t count, size_t *done)                    \
    {                                                                                              \
        return read_run(walk, count, done, read_##name);                                           \
    }
RUN(f32)
RUN(f64)
RUN(f16)
RUN(bf16)
RUN(i8)
RUN(i16)
RUN(i32)
RUN(i64)
RUN(u8)
RUN(u16)
RUN(u32)
RUN(u64)
RUN(bool)
RUN(string)
#undef RUN

static read_run_f *const runs[DTYPE_COUNT] = {
    [DT_F32] = run_f32,   [DT_F64] = run_f64, [DT_F16] = run_f16, [DT_BF16] = run_bf16,
    [DT_I8] = run_i8,     [DT_I16] = run_i16, [DT_I32] = run_i32, [DT_I64] = run_i64,
    [DT_U8] = run_u8,     [DT_U16] = run_u16, [DT_U32] = run_u32, [DT_U64] = run_u64,
    [DT_BOOL] = run_bool,
};

/* ---- the walk -------------------------------------------------------------------------------- */

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

static enum status fail_next(struct walk *walk, unsigned depth, const char *wanted,
                             struct error *err)
{
    char path[PATH_TEXT_MAX], next[JSON_NEXT_TEXT_MAX];
    struct json in;
    json_init(&in, span_of(walk->at, (size_t)(walk->end - walk->at)));
    return error_set(err, ST_INVALID, "%sexpected %s, got %s", print_path(walk, depth, path),
                     wanted, json_next_text(&in, next));
}

static enum status fail_short(struct walk *walk, size_t done, size_t count, struct error *err)
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

static enum status fail_element(struct walk *walk, enum fault fault, struct error *err)
{
    char path[PATH_TEXT_MAX];
    unsigned depth = walk->level + 1;
    struct span token = json_number_text(walk->at, walk->end);
    print_path(walk, depth, path);
    switch (fault) {
    case FAULT_INTEGER:
        return error_set(err, ST_INVALID, "%sexpected an integer, got %.*s", path, SPAN_FMT(token));
    case FAULT_RANGE:
        return error_set(err, ST_INVALID, "%s%.*s is out of the range of %s", path, SPAN_FMT(token),
                         walk->type_text);
    case FAULT_STRING:
        return error_set(err, ST_INVALID, "%smalformed string", path);
    case FAULT_MEMORY:
        return error_set(err, ST_TOO_LARGE, "%sno memory left for the strings of a request", path);
    case FAULT_COMMA:
        return fail_next(walk, depth, "',' or ']'", err);
    default:
        return token.len
                   ? error_set(err, ST_INVALID, "%smalformed number %.*s", path, SPAN_FMT(token))
                   : fail_next(walk, depth, walk->wanted_text, err);
    }
}

/* An innermost array of |count| elements, from behind its bracket to behind its closing one. */
static enum status walk_run(struct walk *walk, size_t count, read_run_f *run, struct error *err)
{
    size_t done = 0;
    enum fault fault = run(walk, count, &done);
    walk->index[walk->level] = (int64_t)done;
    if (fault == FAULT_SHORT) {
        return fail_short(walk, done, count, err);
    }
    if (fault != FAULT_NONE) {
        return fail_element(walk, fault, err);
    }
    skip_space(walk);
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
    skip_space(walk);
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
        skip_space(walk);
    }
    if (!is_next(walk, '[')) {
        return fail_next(walk, walk->level + 1, "an array", err);
    }
    walk->at++;
    *is_inside = true;
    return ST_OK;
}

static enum status walk_nested(struct walk *walk, read_run_f *run, struct error *err)
{
    const unsigned innermost = walk->shape->rank - 1u;
    walk->index[0] = 0;
    while (true) {
        bool is_inside = false;
        if (walk->level == innermost) {
            TRY(walk_run(walk, (size_t)walk->shape->dims[innermost], run, err));
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

static enum status walk_array(struct walk *walk, size_t count, read_run_f *run, struct error *err)
{
    skip_space(walk);
    if (!is_next(walk, '[')) {
        return fail_next(walk, 0, "an array", err);
    }
    walk->at++;
    skip_space(walk);
    if (walk->shape->rank > 1 && is_next(walk, '[')) {
        TRY(walk_nested(walk, run, err));
    } else {
        TRY(walk_run(walk, count, run, err));
    }
    skip_space(walk);
    return walk->at == walk->end ? ST_OK : fail_next(walk, 0, "the end of the array", err);
}

size_t tensor_text_bytes_min(int64_t count)
{
    /* One character an element, commas between them, two brackets. */
    return count <= 0 ? 2 : (uint64_t)count > SIZE_MAX / 2 - 1 ? SIZE_MAX : (size_t)count * 2 + 1;
}

static const char *const wanted_texts[] = {
    [DTYPE_FLOAT] = "a number",
    [DTYPE_INT] = "an integer",
    [DTYPE_UINT] = "an integer",
    [DTYPE_BOOL] = "a boolean",
};

enum status tensor_text_parse(struct span text, enum dtype dtype, const struct shape *shape,
                              void *dst, size_t bytes, struct error *err)
{
    struct walk walk = {
        .at = text.ptr,
        .end = text.ptr + text.len,
        .shape = shape,
        .type_text = dtype_infos[dtype].long_text,
        .wanted_text = wanted_texts[dtype_infos[dtype].kind],
        .dst = dst,
    };
    return walk_array(&walk, bytes / dtype_bytes(dtype), runs[dtype], err);
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
        .type_text = "string",
        .wanted_text = "a string",
        .dst = (uint8_t *)strings,
        .arena = arena,
    };
    TRY(walk_array(&walk, (size_t)count, run_string, err));
    *out_strings = strings;
    return ST_OK;
}
