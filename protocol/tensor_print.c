/* SPDX-License-Identifier: MIT */
/* Typed memory -> JSON arrays: flat, row-major, every float as its shortest text. */
#include "config.h"

#include "protocol/tensor_text.h"

#include <string.h>

#include "protocol/json.h"
#include "protocol/number.h"

/* Room is reserved for this many elements at a time. So a buffer may be reported as full when up to
 * ELEMENTS x (NUMBER_TEXT_MAX + 1) bytes are left. */
#define ELEMENTS 64

/* Writes the element at |src|, of any alignment, and returns the bytes it took. */
typedef size_t print_element_f(uint8_t *text, const uint8_t *src, enum number_nan nan);

static size_t print_f32(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    float value;
    memcpy(&value, src, sizeof(value));
    return number_print_f32(text, value, nan);
}

static size_t print_f64(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    double value;
    memcpy(&value, src, sizeof(value));
    return number_print_f64(text, value, nan);
}

static size_t print_f16(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    return number_print_f32(text, number_from_f16(load_le16(src)), nan);
}

static size_t print_bf16(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    return number_print_f32(text, number_from_bf16(load_le16(src)), nan);
}

static size_t print_i8(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_i64(text, (int8_t)*src);
}

static size_t print_i16(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_i64(text, (int16_t)load_le16(src));
}

static size_t print_i32(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_i64(text, (int32_t)load_le32(src));
}

static size_t print_i64(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_i64(text, (int64_t)load_le64(src));
}

static size_t print_u8(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_u64(text, *src);
}

static size_t print_u16(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_u64(text, load_le16(src));
}

static size_t print_u32(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_u64(text, load_le32(src));
}

static size_t print_u64(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    return number_print_u64(text, load_le64(src));
}

static size_t print_bool(uint8_t *text, const uint8_t *src, enum number_nan nan)
{
    (void)nan;
    const char *word = *src ? "true" : "false";
    size_t len = strlen(word);
    memcpy(text, word, len);
    return len;
}

static print_element_f *const printers[DTYPE_COUNT] = {
    [DT_F32] = print_f32,   [DT_F64] = print_f64, [DT_F16] = print_f16, [DT_BF16] = print_bf16,
    [DT_I8] = print_i8,     [DT_I16] = print_i16, [DT_I32] = print_i32, [DT_I64] = print_i64,
    [DT_U8] = print_u8,     [DT_U16] = print_u16, [DT_U32] = print_u32, [DT_U64] = print_u64,
    [DT_BOOL] = print_bool,
};

void tensor_text_print(struct buf *out, enum dtype dtype, const void *src, size_t count,
                       enum number_nan nan)
{
    print_element_f *print = printers[dtype];
    const size_t bytes = dtype_bytes(dtype);
    const uint8_t *p = src;
    buf_add_char(out, '[');
    for (size_t done = 0; done < count;) {
        size_t chunk = count - done < ELEMENTS ? count - done : ELEMENTS;
        uint8_t *room = buf_reserve(out, chunk * (NUMBER_TEXT_MAX + 1));
        if (!room) {
            return;
        }
        uint8_t *text = room;
        for (size_t i = 0; i < chunk; i++, p += bytes) {
            text += print(text, p, nan);
            *text++ = ',';
        }
        done += chunk;
        buf_commit(out, (size_t)(text - room) - (done == count)); /* no comma behind the last */
    }
    buf_add_char(out, ']');
}

static void print_element(struct buf *out, enum dtype dtype, const uint8_t *src,
                          enum number_nan nan)
{
    uint8_t *text = buf_reserve(out, NUMBER_TEXT_MAX);
    if (text) {
        buf_commit(out, printers[dtype](text, src, nan));
    }
}

static void print_brackets(struct buf *out, unsigned count)
{
    while (count-- > 0) {
        buf_add_char(out, '[');
    }
}

/* Counts through all dims but the innermost, like an odometer. Dims after an empty dim are not
 * printed. */
void tensor_text_print_nested(struct buf *out, enum dtype dtype, const struct shape *shape,
                              const void *src, enum number_nan nan)
{
    int64_t index[SHAPE_RANK_MAX] = {0};
    const uint8_t *row = src;
    unsigned last = 0;
    if (shape->rank == 0) {
        print_element(out, dtype, src, nan);
        return;
    }
    while (last < shape->rank - 1u && shape->dims[last] != 0) {
        last++;
    }
    print_brackets(out, last);
    while (!buf_failed(out)) {
        unsigned level = last;
        size_t count = (size_t)shape->dims[last];
        tensor_text_print(out, dtype, row, count, nan);
        row += count * dtype_bytes(dtype);
        while (level > 0 && ++index[level - 1] == shape->dims[level - 1]) {
            index[--level] = 0;
            buf_add_char(out, ']');
        }
        if (level == 0) {
            return;
        }
        buf_add_char(out, ',');
        print_brackets(out, last - level);
    }
}

void tensor_text_print_strings(struct buf *out, const struct span *strings, size_t count)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        json_print_string(out, strings[i]);
    }
    buf_add_char(out, ']');
}
