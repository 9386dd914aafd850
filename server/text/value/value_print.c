/* SPDX-License-Identifier: MIT */
/* Values as Python's json.dumps() prints them. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "protocol/number.h"
#include "server/text/value/value.h"

#define PRINT_DEPTH_MAX 200 /* templates may nest lists as deep as they like */

/* Python writes an exponent when the point would stand outside of these places. */
#define POINT_MIN (-4)
#define POINT_MAX 16

struct printer {
    const struct value_json_style *style;
    struct buf *out;
    struct error *err;
    int depth;
};

static enum status print_value(struct printer *printer, const struct value *value);

/* ---- numbers --------------------------------------------------------------------------------- */

/* Takes the shortest text of a number apart: its digits, and where the point stands in them. */
static size_t take_digits(const uint8_t *text, size_t len, char *digits, int *point)
{
    size_t count = 0;
    bool has_point = false;
    int exponent = 0, before = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            digits[count++] = (char)text[i];
            before += !has_point;
        } else if (text[i] == '.') {
            has_point = true;
        } else if (text[i] == 'e' || text[i] == 'E') {
            bool is_negative = i + 1 < len && text[i + 1] == '-';
            for (i++; i < len; i++) {
                if (text[i] >= '0' && text[i] <= '9') {
                    exponent = exponent * 10 + (text[i] - '0');
                }
            }
            exponent = is_negative ? -exponent : exponent;
        }
    }
    size_t zeros = 0;
    while (zeros + 1 < count && digits[zeros] == '0') {
        zeros++;
    }
    memmove(digits, digits + zeros, count - zeros);
    count -= zeros;
    *point = before + exponent - (int)zeros;
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    return count;
}

static void print_exponent(const char *digits, size_t count, int exponent, struct buf *out)
{
    buf_add_char(out, digits[0]);
    if (count > 1) {
        buf_add_char(out, '.');
        buf_add(out, digits + 1, count - 1);
    }
    buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

static void print_plain(const char *digits, size_t count, int point, struct buf *out)
{
    if (point <= 0) {
        buf_add_str(out, "0.");
        buf_add_fill(out, '0', (size_t)-point);
        buf_add(out, digits, count);
    } else if ((size_t)point >= count) {
        buf_add(out, digits, count);
        buf_add_fill(out, '0', (size_t)point - count);
        buf_add_str(out, ".0");
    } else {
        buf_add(out, digits, (size_t)point);
        buf_add_char(out, '.');
        buf_add(out, digits + point, count - (size_t)point);
    }
}

void value_print_double(double number, struct buf *out)
{
    uint8_t text[NUMBER_TEXT_MAX];
    char digits[NUMBER_TEXT_MAX];
    int point = 0;
    if (isnan(number)) {
        buf_add_str(out, "nan");
        return;
    }
    if (signbit(number)) {
        buf_add_char(out, '-');
        number = -number;
    }
    if (isinf(number)) {
        buf_add_str(out, "inf");
        return;
    }
    if (number == 0) {
        buf_add_str(out, "0.0");
        return;
    }
    size_t len = number_print_f64(text, number, NUMBER_NAN_TOKEN);
    size_t count = take_digits(text, len, digits, &point);
    if (point > POINT_MAX || point - 1 < POINT_MIN) {
        print_exponent(digits, count, point - 1, out);
    } else {
        print_plain(digits, count, point, out);
    }
}

static void print_json_double(double number, struct buf *out)
{
    if (isnan(number)) {
        buf_add_str(out, "NaN");
    } else if (isinf(number)) {
        buf_add_str(out, number < 0 ? "-Infinity" : "Infinity");
    } else {
        value_print_double(number, out);
    }
}

/* ---- strings --------------------------------------------------------------------------------- */

static void print_escape(uint8_t byte, struct buf *out)
{
    static const char plain[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    const char *at = byte ? strchr(plain, byte) : NULL;
    if (at) {
        buf_add_char(out, '\\');
        buf_add_char(out, letters[at - plain]);
    } else {
        buf_printf(out, "\\u%04x", byte);
    }
}

static void print_code(uint32_t code, struct buf *out)
{
    if (code >= 0x10000) {
        buf_printf(out, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
        code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    buf_printf(out, "\\u%04x", code);
}

static void print_string(const struct printer *printer, struct span text)
{
    const uint8_t *end = text.ptr + text.len, *plain = text.ptr;
    buf_add_char(printer->out, '"');
    for (const uint8_t *at = text.ptr; at < end;) {
        size_t len = *at > 0x7f ? utf8_sequence(at, end) : 1;
        bool is_escaped =
            *at < 0x20 || *at == '"' || *at == '\\' || (printer->style->is_ascii && *at > 0x7e);
        len = len ? len : 1; /* never: strings are UTF-8 */
        if (is_escaped) {
            buf_add(printer->out, plain, (size_t)(at - plain));
            if (*at < 0x7f) {
                print_escape(*at, printer->out);
            } else {
                print_code(*at == 0x7f ? 0x7f : utf8_code(at, len), printer->out);
            }
            plain = at + len;
        }
        at += len;
    }
    buf_add(printer->out, plain, (size_t)(end - plain));
    buf_add_char(printer->out, '"');
}

/* ---- lists and maps -------------------------------------------------------------------------- */

static void print_indent(const struct printer *printer)
{
    const struct value_json_style *style = printer->style;
    if (style->indent_text.len == 0 && style->indent < 0) {
        return;
    }
    buf_add_char(printer->out, '\n');
    for (int i = 0; i < printer->depth; i++) {
        if (style->indent_text.len > 0) {
            buf_add(printer->out, style->indent_text.ptr, style->indent_text.len);
        } else {
            buf_add_fill(printer->out, ' ', (size_t)style->indent);
        }
    }
}

static enum status print_list(struct printer *printer, const struct value_list *list)
{
    if (list->count == 0) {
        buf_add_str(printer->out, "[]");
        return ST_OK;
    }
    buf_add_char(printer->out, '[');
    printer->depth++;
    for (size_t i = 0; i < list->count && !buf_failed(printer->out); i++) {
        if (i > 0) {
            buf_add(printer->out, printer->style->item_text.ptr, printer->style->item_text.len);
        }
        print_indent(printer);
        TRY(print_value(printer, &list->items[i]));
    }
    printer->depth--;
    print_indent(printer);
    buf_add_char(printer->out, ']');
    return ST_OK;
}

static enum status print_key(struct printer *printer, const struct value *key)
{
    if (key->kind == VALUE_STRING) {
        print_string(printer, key->string);
        return ST_OK;
    }
    if (key->kind > VALUE_STRING) {
        return error_set(printer->err, ST_INVALID, "%s is no key of JSON",
                         value_kind_text(key->kind));
    }
    buf_add_char(printer->out, '"');
    TRY(print_value(printer, key));
    buf_add_char(printer->out, '"');
    return ST_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct value_member *one = *(const struct value_member *const *)a;
    const struct value_member *two = *(const struct value_member *const *)b;
    return span_compare(one->key.string, two->key.string);
}

static enum status print_members(struct printer *printer, const struct value_member *const *members,
                                 size_t count)
{
    buf_add_char(printer->out, '{');
    printer->depth++;
    for (size_t i = 0; i < count && !buf_failed(printer->out); i++) {
        if (i > 0) {
            buf_add(printer->out, printer->style->item_text.ptr, printer->style->item_text.len);
        }
        print_indent(printer);
        TRY(print_key(printer, &members[i]->key));
        buf_add(printer->out, printer->style->member_text.ptr, printer->style->member_text.len);
        TRY(print_value(printer, &members[i]->value));
    }
    printer->depth--;
    print_indent(printer);
    buf_add_char(printer->out, '}');
    return ST_OK;
}

/* Python compares keys of any kinds; keys of JSON are strings. */
static enum status sort_members(struct printer *printer, const struct value_member **members,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i]->key.kind != VALUE_STRING) {
            return error_set(printer->err, ST_INVALID, "only keys that are strings are sorted");
        }
    }
    qsort(members, count, sizeof(*members), by_key);
    return ST_OK;
}

static enum status print_map(struct printer *printer, const struct value_map *map)
{
    if (map->count == 0) {
        buf_add_str(printer->out, "{}");
        return ST_OK;
    }
    const struct value_member **members = malloc(map->count * sizeof(*members));
    if (!members) {
        return error_set(printer->err, ST_EXHAUSTED, "no memory to print a map");
    }
    for (size_t i = 0; i < map->count; i++) {
        members[i] = &map->members[i];
    }
    enum status status = ST_OK;
    if (printer->style->is_sorted) {
        status = sort_members(printer, members, map->count);
    }
    if (status == ST_OK) {
        status = print_members(printer, members, map->count);
    }
    free(members);
    return status;
}

static enum status print_scalar(struct printer *printer, const struct value *value)
{
    uint8_t text[NUMBER_TEXT_MAX];
    switch (value->kind) {
    case VALUE_NONE:
        buf_add_str(printer->out, "null");
        return ST_OK;
    case VALUE_BOOL:
        buf_add_str(printer->out, value->boolean ? "true" : "false");
        return ST_OK;
    case VALUE_INT:
        buf_add(printer->out, text, number_print_i64(text, value->integer));
        return ST_OK;
    case VALUE_LONG:
        buf_add(printer->out, value->string.ptr, value->string.len);
        return ST_OK;
    case VALUE_DOUBLE:
        print_json_double(value->number, printer->out);
        return ST_OK;
    case VALUE_STRING:
        print_string(printer, value->string);
        return ST_OK;
    default:
        return error_set(printer->err, ST_INVALID, "%s has no form in JSON",
                         value_kind_text(value->kind));
    }
}

static enum status print_value(struct printer *printer, const struct value *value)
{
    if (value->kind != VALUE_LIST && value->kind != VALUE_MAP) {
        return print_scalar(printer, value);
    }
    if (printer->depth == PRINT_DEPTH_MAX) {
        return error_set(printer->err, ST_TOO_LARGE, "JSON nested deeper than %d levels",
                         PRINT_DEPTH_MAX);
    }
    if (value->flags & ~(uint32_t)VALUE_IS_TUPLE) {
        return error_set(printer->err, ST_INVALID, "an iterator has no form in JSON");
    }
    return value->kind == VALUE_LIST ? print_list(printer, value->list)
                                     : print_map(printer, value->map);
}

enum status value_print_json(const struct value *value, const struct value_json_style *style,
                             struct buf *out, struct error *err)
{
    struct printer printer = {.style = style, .out = out, .err = err};
    TRY(print_value(&printer, value));
    if (buf_failed(out)) {
        return error_set(err, out->lacks_memory ? ST_EXHAUSTED : ST_TOO_LARGE,
                         "JSON of more than %zu bytes, or no memory for it", out->max_bytes);
    }
    return ST_OK;
}
