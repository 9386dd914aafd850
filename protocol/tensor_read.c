/* SPDX-License-Identifier: MIT */
/*
 * The elements of JSON arrays. What is fast here is a run: a loop over the elements of an innermost
 * array that is compiled once for each element type and only says how far it came. Why it stopped
 * is found out afterwards, by tensor_text.c.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "protocol/json_priv.h"
#include "protocol/number.h"
#include "protocol/tensor_priv.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are little-endian on the wire");

/* Reads the element at |at| into |dst|; the place behind it, or NULL. */
typedef const uint8_t *read_element_f(const uint8_t *at, const uint8_t *end, void *dst);

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
    at = tensor_skip_space(at, end);
    if (i == 0) {
        return at;
    }
    return at < end && *at == ',' ? tensor_skip_space(at + 1, end) : NULL;
}

/* The one loop, compiled for each element type. */
__attribute__((always_inline)) static inline size_t
read_run(struct tensor_walk *walk, size_t count, read_element_f *read_element, size_t bytes)
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
    static size_t run_##name(struct tensor_walk *walk, size_t count)                               \
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

const struct tensor_element tensor_elements[DTYPE_COUNT] = {
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
static size_t run_string(struct tensor_walk *walk, size_t count)
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

const struct tensor_element tensor_string_element = {run_string, "BYTES", "a string", false};
