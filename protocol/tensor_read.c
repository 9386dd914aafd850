/* SPDX-License-Identifier: MIT */
/*
 * Reads the elements of JSON arrays. The fast part is a run: a loop over the elements of one
 * innermost array, compiled once for each element type. It only returns how far it came;
 * tensor_text.c finds out afterwards why it stopped.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "protocol/json_priv.h"
#include "protocol/number.h"
#include "protocol/tensor_priv.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are little-endian on the wire");

/* Reads the element at |at| into |dst|. Returns the place behind it, or NULL. */
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

/* A 16 bit float is rounded from the nearest double, as the libraries of clients do. */
static inline const uint8_t *read_narrow(const uint8_t *at, const uint8_t *end, void *dst,
                                         uint16_t narrow(double), uint16_t infinity)
{
    double value;
    const uint8_t *behind = number_read_f64(at, end, &value);
    if (!behind) {
        return NULL;
    }
    uint16_t bits = narrow(value);
    if ((bits & 0x7fff) == infinity) {
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

/* Moves across the comma before element |i|. NULL: there is no comma. */
static inline const uint8_t *step(const uint8_t *at, const uint8_t *end, size_t i)
{
    if (i > 0 && end - at >= 2 && at[0] == ',' && at[1] > ' ') {
        return at + 1;
    }
    at = tensor_skip_space(at, end);
    if (i == 0) {
        return at;
    }
    return at < end && *at == ',' ? tensor_skip_space(at + 1, end) : NULL;
}

/* ---- NaN and the infinities ------------------------------------------------------------------ */

const uint8_t *tensor_read_quoted(const uint8_t *at, const uint8_t *end, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    struct json_string string;
    if (at == end || *at != '"' || json_string_scan(&at, end, &string)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (json_string_is(&string, words[i].text)) {
            *out = words[i].value;
            return at;
        }
    }
    return NULL;
}

bool tensor_text_is_word(struct span text)
{
    double value;
    const uint8_t *end = text.ptr + text.len;
    return tensor_read_quoted(text.ptr, end, &value) == end;
}

typedef void store_word_f(void *dst, double value);

static void store_f32(void *dst, double value)
{
    memcpy(dst, &(float){(float)value}, sizeof(float));
}

static void store_f64(void *dst, double value)
{
    memcpy(dst, &value, sizeof(value));
}

static void store_f16(void *dst, double value)
{
    memcpy(dst, &(uint16_t){number_to_f16(value)}, sizeof(uint16_t));
}

static void store_bf16(void *dst, double value)
{
    memcpy(dst, &(uint16_t){number_to_bf16(value)}, sizeof(uint16_t));
}

/* The values of a float that are not numbers; they are rare and kept out of the fast path. */
__attribute__((noinline, cold)) static const uint8_t *read_word(struct tensor_nan *nan,
                                                                const uint8_t *at,
                                                                const uint8_t *end,
                                                                store_word_f *store, void *dst)
{
    double value = NAN;
    const uint8_t *behind = number_read_word(at, end, &value);
    if (behind) {
        nan->has_tokens = true;
    } else if (nan->takes_null && end - at >= 4 && memcmp(at, "null", 4) == 0) {
        behind = at + 4;
    } else {
        behind = tensor_read_quoted(at, end, &value);
    }
    if (behind) {
        store(dst, value);
    }
    return behind;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The loop, compiled for each element type. |store| is NULL for types without NaN. */
__attribute__((always_inline)) static inline size_t read_run(struct tensor_walk *walk, size_t count,
                                                             read_element_f *read_element,
                                                             size_t bytes, store_word_f *store)
{
    const uint8_t *at = walk->at, *end = walk->end;
    uint8_t *dst = walk->dst;
    size_t i = 0;
    walk->is_at_element = true;
    for (; i < count; i++) {
        const uint8_t *element = step(at, end, i);
        if (!element) {
            walk->is_at_element = false;
            break;
        }
        at = element;
        const uint8_t *behind = read_element(at, end, dst);
        if (!behind && store) {
            behind = read_word(walk->nan, at, end, store, dst);
        }
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

#define RUN(name, bytes, store)                                                                    \
    static size_t run_##name(struct tensor_walk *walk, size_t count)                               \
    {                                                                                              \
        return read_run(walk, count, read_##name, bytes, store);                                   \
    }
RUN(f32, 4, store_f32)
RUN(f64, 8, store_f64)
RUN(f16, 2, store_f16)
RUN(bf16, 2, store_bf16)
RUN(i8, 1, NULL)
RUN(i16, 2, NULL)
RUN(i32, 4, NULL)
RUN(i64, 8, NULL)
RUN(u8, 1, NULL)
RUN(u16, 2, NULL)
RUN(u32, 4, NULL)
RUN(u64, 8, NULL)
RUN(bool, 1, NULL)
#undef RUN

const struct tensor_element tensor_elements[DTYPE_COUNT] = {
    [DT_F32] = {run_f32, "FP32", "a number", "up to 3.4028235e38", true},
    [DT_F64] = {run_f64, "FP64", "a number", "up to 1.7976931348623157e308", true},
    [DT_F16] = {run_f16, "FP16", "a number", "up to 65504", true},
    [DT_BF16] = {run_bf16, "BF16", "a number", "up to 3.3895314e38", true},
    [DT_I8] = {run_i8, "INT8", "an integer", "-128 to 127", false},
    [DT_I16] = {run_i16, "INT16", "an integer", "-32768 to 32767", false},
    [DT_I32] = {run_i32, "INT32", "an integer", "-2147483648 to 2147483647", false},
    [DT_I64] = {run_i64, "INT64", "an integer", "-9223372036854775808 to 9223372036854775807",
                false},
    [DT_U8] = {run_u8, "UINT8", "an integer", "0 to 255", false},
    [DT_U16] = {run_u16, "UINT16", "an integer", "0 to 65535", false},
    [DT_U32] = {run_u32, "UINT32", "an integer", "0 to 4294967295", false},
    [DT_U64] = {run_u64, "UINT64", "an integer", "0 to 18446744073709551615", false},
    [DT_BOOL] = {run_bool, "BOOL", "a boolean", "0 to 1", false},
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

const struct tensor_element tensor_string_element = {run_string, "BYTES", "a string", "", false};
