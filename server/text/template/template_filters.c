/* SPDX-License-Identifier: MIT */
/* The table of filters, and the filters of texts, numbers and JSON, as jinja2.filters has them;
 * tojson as transformers replaces it. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/number.h"
#include "server/text/template/pytext.h"
#include "server/text/template/template_filters_priv.h"

#define INDENT_MAX 64
#define ROUND_MAX 300

bool filter_is_given(const struct value *value)
{
    return !template_is(value, OBJECT_MISSING);
}

bool filter_is_true(const struct value *value, bool otherwise)
{
    return filter_is_given(value) ? template_truth(value) : otherwise;
}

enum status filter_refuse(struct render *render, const struct node *node, const char *filter,
                          const struct value *value)
{
    if (template_is(value, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, value);
    }
    return template_fail(render, node, ST_INVALID, "'%s' does not take %s", filter,
                         template_type_text(value));
}

/* The method |name| of strings, on str() of |self|. */
enum status filter_by_method(struct render *render, const struct node *node, const char *name,
                             const struct value *self, const struct value *args, struct value *out)
{
    struct value text;
    TRY(template_text(render, node, self, &text));
    return template_method_find(&text, span_str(name))->call(render, node, text, args, out);
}

/* ---- text ------------------------------------------------------------------------------------ */

static TEMPLATE_FILTER(trim)
{
    return filter_by_method(render, node, "strip", &self, args, out);
}

static TEMPLATE_FILTER(upper)
{
    return filter_by_method(render, node, "upper", &self, args, out);
}

static TEMPLATE_FILTER(lower)
{
    return filter_by_method(render, node, "lower", &self, args, out);
}

static TEMPLATE_FILTER(capitalize)
{
    return filter_by_method(render, node, "capitalize", &self, args, out);
}

static TEMPLATE_FILTER(replace)
{
    struct value texts[3] = {args[0], args[1], args[2]};
    TRY(template_text(render, node, &args[0], &texts[0]));
    TRY(template_text(render, node, &args[1], &texts[1]));
    if (texts[2].kind == VALUE_NONE) {
        texts[2] = value_int(-1);
    }
    return filter_by_method(render, node, "replace", &self, texts, out);
}

/* Not str.title(): words begin behind blanks, hyphens and brackets only. */
static TEMPLATE_FILTER(title)
{
    struct value text;
    (void)args;
    TRY(template_text(render, node, &self, &text));
    TRY(template_charge(render, node, text.string.len * 16));
    size_t begin = template_text_begin(render);
    bool is_inside = false;
    for (const uint8_t *at = text.string.ptr, *end = at + text.string.len; at < end;) {
        size_t len = pytext_char(at, end);
        if (is_inside) {
            pytext_print_lower(span_of(at, len), render->out);
        } else {
            pytext_print_upper(span_of(at, len), render->out);
        }
        is_inside = pytext_space(at, end) == 0 && !(*at && strchr("-({[<", *at));
        at += len;
    }
    return template_text_end(render, node, begin, out);
}

static TEMPLATE_FILTER(string)
{
    (void)args;
    return template_text(render, node, &self, out);
}

static TEMPLATE_FILTER(safe)
{
    (void)args;
    TRY(template_text(render, node, &self, out));
    out->flags = VALUE_IS_SAFE;
    return ST_OK;
}

static TEMPLATE_FILTER(escape)
{
    static const char plain[] = "&<>'\"";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    (void)args;
    if (self.kind == VALUE_STRING && (self.flags & VALUE_IS_SAFE)) {
        *out = self;
        return ST_OK;
    }
    TRY(template_text(render, node, &self, out));
    TRY(template_charge(render, node, out->string.len * 4));
    size_t begin = template_text_begin(render);
    for (size_t i = 0; i < out->string.len; i++) {
        uint8_t byte = out->string.ptr[i];
        const char *at = byte ? strchr(plain, byte) : NULL;
        if (at) {
            buf_add_str(render->out, escapes[at - plain]);
        } else {
            buf_add_char(render->out, (char)byte);
        }
    }
    TRY(template_text_end(render, node, begin, out));
    out->flags = VALUE_IS_SAFE;
    return ST_OK;
}

/* Reads the text in front of each line: |width| blanks, or a text. */
static enum status read_indent(struct render *render, const struct node *node,
                               const struct value *width, struct span *out)
{
    static const char blanks[INDENT_MAX + 1] =
        "                                                                ";
    int64_t number = 4;
    if (filter_is_given(width) && width->kind == VALUE_STRING) {
        *out = width->string;
        return ST_OK;
    }
    if (filter_is_given(width) && !template_as_int(width, &number)) {
        return filter_refuse(render, node, "indent", width);
    }
    if (number > INDENT_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "an indent of more than %d blanks",
                             INDENT_MAX);
    }
    *out = span_of(blanks, number > 0 ? (size_t)number : 0);
    return ST_OK;
}

static TEMPLATE_FILTER(indent)
{
    struct value lines;
    struct span blanks = {0};
    const struct value none = {.kind = VALUE_OBJECT, .flags = OBJECT_MISSING};
    bool is_first = filter_is_true(&args[1], false), is_blank = filter_is_true(&args[2], false);
    if (self.kind != VALUE_STRING) {
        return filter_refuse(render, node, "indent", &self);
    }
    TRY(read_indent(render, node, &args[0], &blanks));
    size_t begin = template_text_begin(render);
    buf_add(render->out, self.string.ptr, self.string.len);
    buf_add_char(render->out, '\n');
    TRY(template_text_end(render, node, begin, &lines));
    TRY(filter_by_method(render, node, "splitlines", &lines, &none, &lines));
    for (size_t i = 0; i < lines.list->count && !buf_failed(render->out); i++) {
        struct span line = lines.list->items[i].string;
        buf_add_str(render->out, i ? "\n" : "");
        if (i ? line.len || is_blank : is_first) {
            buf_add(render->out, blanks.ptr, blanks.len);
        }
        buf_add(render->out, line.ptr, line.len);
    }
    return template_text_end(render, node, begin, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static enum status read_separators(struct render *render, const struct node *node,
                                   const struct value *pair, struct value_json_style *style)
{
    if (!filter_is_given(pair) || pair->kind == VALUE_NONE) {
        return ST_OK;
    }
    if (pair->kind != VALUE_LIST || pair->list->count != 2 ||
        pair->list->items[0].kind != VALUE_STRING || pair->list->items[1].kind != VALUE_STRING) {
        return template_fail(render, node, ST_INVALID, "separators are two strings");
    }
    style->item_text = pair->list->items[0].string;
    style->member_text = pair->list->items[1].string;
    return ST_OK;
}

static enum status read_json_style(struct render *render, const struct node *node,
                                   const struct value *args, struct value_json_style *style)
{
    int64_t indent = 0;
    *style = VALUE_JSON_DEFAULT;
    style->is_ascii = filter_is_true(&args[0], false);
    style->is_sorted = filter_is_true(&args[3], false);
    if (filter_is_given(&args[1]) && args[1].kind != VALUE_NONE) {
        style->item_text = span_str(",");
        if (args[1].kind == VALUE_STRING) {
            style->indent_text = args[1].string;
            style->indent = 0;
        } else if (!template_as_int(&args[1], &indent)) {
            return filter_refuse(render, node, "tojson", &args[1]);
        } else if (indent > INDENT_MAX) {
            return template_fail(render, node, ST_TOO_LARGE, "an indent of more than %d blanks",
                                 INDENT_MAX);
        } else {
            style->indent = indent > 0 ? (int32_t)indent : 0;
        }
    }
    return read_separators(render, node, &args[2], style);
}

static TEMPLATE_FILTER(tojson)
{
    struct value_json_style style;
    TRY(read_json_style(render, node, args, &style));
    size_t begin = template_text_begin(render);
    enum status status = value_print_json(&self, &style, render->out, render->err);
    if (status != ST_OK) {
        return error_prefix(render->err, "line %u, column %u: ", node->position.line,
                            node->position.column);
    }
    return template_text_end(render, node, begin, out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads what int() or float() of a text takes: blanks around, a sign, leading zeros. */
bool filter_read_number(struct span text, bool is_float, struct value *out)
{
    uint8_t copy[NUMBER_TEXT_MAX * 2];
    size_t len = 0, at = 0;
    text = pytext_strip(text, NULL, true, true);
    if (text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+')) {
        len = text.ptr[0] == '-';
        copy[0] = '-';
        at = 1;
    }
    while (at + 1 < text.len && text.ptr[at] == '0' && text.ptr[at + 1] >= '0' &&
           text.ptr[at + 1] <= '9') {
        at++;
    }
    if (text.len - at > sizeof(copy) - len - 1 || text.len == at || text.ptr[at] == '-') {
        return false;
    }
    memcpy(copy + len, text.ptr + at, text.len - at);
    len += text.len - at;
    const uint8_t *from = copy;
    *out = is_float ? value_double(0) : value_int(0);
    enum number_result result = is_float ? number_parse_f64(&from, copy + len, &out->number)
                                         : number_parse_i64(&from, copy + len, &out->integer);
    return result == NUMBER_OK && from == copy + len;
}

static bool to_int(double number, struct value *out)
{
    if (!(number > -9.2e18 && number < 9.2e18)) {
        return false;
    }
    *out = value_int((int64_t)number);
    return true;
}

static TEMPLATE_FILTER(int)
{
    int64_t integer;
    *out = filter_is_given(&args[0]) ? args[0] : value_int(0);
    if (filter_is_given(&args[1]) && (!template_as_int(&args[1], &integer) || integer != 10)) {
        return template_fail(render, node, ST_UNSUPPORTED, "'int' reads only base 10");
    }
    if (template_is(&self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, &self);
    }
    if (template_as_int(&self, &integer)) {
        *out = value_int(integer);
    } else if (self.kind == VALUE_LONG) {
        *out = self;
    } else if (self.kind == VALUE_DOUBLE) {
        to_int(self.number, out);
    } else if (self.kind == VALUE_STRING) {
        struct value number;
        if (filter_read_number(self.string, false, &number)) {
            *out = number;
        } else if (filter_read_number(self.string, true, &number)) {
            to_int(number.number, out);
        }
    }
    return ST_OK;
}

static TEMPLATE_FILTER(float)
{
    double number;
    struct value read;
    *out = filter_is_given(&args[0]) ? args[0] : value_double(0);
    if (template_is(&self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, &self);
    }
    if (template_as_double(&self, &number)) {
        *out = value_double(number);
    } else if (self.kind == VALUE_LONG) {
        *out = value_double(strtod((const char *)self.string.ptr, NULL));
    } else if (self.kind == VALUE_STRING && filter_read_number(self.string, true, &read)) {
        *out = read;
    }
    return ST_OK;
}

static TEMPLATE_FILTER(abs)
{
    const struct value zero = value_int(0);
    (void)args;
    if (self.kind == VALUE_DOUBLE) {
        *out = value_double(fabs(self.number));
        return ST_OK;
    }
    if (!template_as_int(&self, &out->integer)) {
        return filter_refuse(render, node, "abs", &self);
    }
    return template_binary(render, node, out->integer < 0 ? '-' : '+', &zero, &self, out);
}

/* round(): to the nearest, to the even one of two; exactly, by the decimal digits. */
static double round_common(double number, int64_t places)
{
    char text[ROUND_MAX + 320];
    if (places > 22 || !isfinite(number)) {
        return number;
    }
    snprintf(text, sizeof(text), "%.*f", (int)places, number);
    return strtod(text, NULL);
}

static TEMPLATE_FILTER(round)
{
    int64_t places = 0, integer;
    double number;
    bool is_ceil = filter_is_given(&args[1]) && args[1].kind == VALUE_STRING &&
                   span_is(args[1].string, "ceil");
    bool is_floor = filter_is_given(&args[1]) && args[1].kind == VALUE_STRING &&
                    span_is(args[1].string, "floor");
    if (filter_is_given(&args[0]) && !template_as_int(&args[0], &places)) {
        return filter_refuse(render, node, "round", &args[0]);
    }
    if (places < 0 || places > ROUND_MAX) {
        return template_fail(render, node, ST_UNSUPPORTED, "'round' to %lld places",
                             (long long)places);
    }
    if (filter_is_given(&args[1]) && !is_ceil && !is_floor &&
        (args[1].kind != VALUE_STRING || !span_is(args[1].string, "common"))) {
        return template_fail(render, node, ST_INVALID,
                             "the method of 'round' is common, ceil or floor");
    }
    if (!template_as_double(&self, &number)) {
        return filter_refuse(render, node, "round", &self);
    }
    if (is_ceil || is_floor) {
        double scale = pow(10, (double)places);
        number = is_ceil ? ceil(number * scale) / scale : floor(number * scale) / scale;
        *out = value_double(number);
    } else if (template_as_int(&self, &integer)) {
        *out = value_int(integer);
    } else {
        *out = value_double(round_common(number, places));
    }
    return ST_OK;
}

/* ---- defaults, ends, lengths ----------------------------------------------------------------- */

static TEMPLATE_FILTER(default)
{
    bool is_replaced = template_is(&self, OBJECT_UNDEFINED) ||
                       (filter_is_true(&args[1], false) && !template_truth(&self));
    (void)render;
    (void)node;
    *out = !is_replaced ? self : filter_is_given(&args[0]) ? args[0] : value_string(span_str(""));
    return ST_OK;
}

static TEMPLATE_FILTER(length)
{
    (void)args;
    *out = value_int(0);
    return template_length(render, node, &self, &out->integer);
}

static TEMPLATE_FILTER(first)
{
    struct value_list *list;
    (void)args;
    TRY(template_iterate(render, node, &self, &list));
    *out = list->count ? list->items[0]
                       : template_undefined(render, span_str("first of an empty list"));
    return ST_OK;
}

static TEMPLATE_FILTER(last)
{
    struct value_list *list;
    (void)args;
    if (self.kind == VALUE_LIST && (self.flags & VALUE_IS_ITERATOR)) {
        return template_fail(render, node, ST_INVALID, "'last' does not take an iterator");
    }
    TRY(template_iterate(render, node, &self, &list));
    *out = list->count ? list->items[list->count - 1]
                       : template_undefined(render, span_str("last of an empty list"));
    return ST_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct builtin *template_filter_find(struct span name)
{
    static const struct builtin filters[] = {
        {"abs", filter_abs, 0, {0}},
        {"capitalize", filter_capitalize, 0, {0}},
        {"count", filter_length, 0, {0}},
        {"d", filter_default, 0, {"default_value", "boolean"}},
        {"default", filter_default, 0, {"default_value", "boolean"}},
        {"dictsort", filter_dictsort, 0, {"case_sensitive", "by", "reverse"}},
        {"e", filter_escape, 0, {0}},
        {"escape", filter_escape, 0, {0}},
        {"first", filter_first, 0, {0}},
        {"float", filter_float, 0, {"default"}},
        {"indent", filter_indent, 0, {"width", "first", "blank"}},
        {"int", filter_int, 0, {"default", "base"}},
        {"items", filter_items, 0, {0}},
        {"join", filter_join, 0, {"d", "attribute"}},
        {"last", filter_last, 0, {0}},
        {"length", filter_length, 0, {0}},
        {"list", filter_list, 0, {0}},
        {"lower", filter_lower, 0, {0}},
        {"map", filter_map, 0, {"*", "attribute", "default"}},
        {"max", filter_max, 0, {"case_sensitive", "attribute"}},
        {"min", filter_min, 0, {"case_sensitive", "attribute"}},
        {"reject", filter_reject, 0, {"*"}},
        {"rejectattr", filter_rejectattr, 0, {"*"}},
        {"replace", filter_replace, 2, {"old", "new", "count"}},
        {"reverse", filter_reverse, 0, {0}},
        {"round", filter_round, 0, {"precision", "method"}},
        {"safe", filter_safe, 0, {0}},
        {"select", filter_select, 0, {"*"}},
        {"selectattr", filter_selectattr, 0, {"*"}},
        {"sort", filter_sort, 0, {"reverse", "case_sensitive", "attribute"}},
        {"string", filter_string, 0, {0}},
        {"sum", filter_sum, 0, {"attribute", "start"}},
        {"title", filter_title, 0, {0}},
        {"tojson", filter_tojson, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
        {"trim", filter_trim, 0, {"chars"}},
        {"unique", filter_unique, 0, {"case_sensitive", "attribute"}},
        {"upper", filter_upper, 0, {0}},
    };
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        if (span_is(name, filters[i].name)) {
            return &filters[i];
        }
    }
    return NULL;
}
