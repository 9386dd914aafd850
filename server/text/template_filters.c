/* SPDX-License-Identifier: MIT */
/* The filters, as jinja2.filters has them; tojson as transformers replaces it. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/number.h"
#include "server/text/pytext.h"
#include "server/text/template_priv.h"

#define FILTER(name)                                                                               \
    static enum status filter_##name(struct render *render, const struct node *node,               \
                                     struct value self, const struct value *args,                  \
                                     struct value *out)

#define INDENT_MAX 64
#define ROUND_MAX 300

static bool is_given(const struct value *value)
{
    return !template_is(value, OBJECT_MISSING);
}

static bool is_true(const struct value *value, bool otherwise)
{
    return is_given(value) ? template_truth(value) : otherwise;
}

static enum status refuse(struct render *render, const struct node *node, const char *filter,
                          const struct value *value)
{
    if (template_is(value, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, value);
    }
    return template_fail(render, node, ST_INVALID, "'%s' does not take %s", filter,
                         template_type_text(value));
}

/* The method |name| of strings, on str() of |self|. */
static enum status by_method(struct render *render, const struct node *node, const char *name,
                             const struct value *self, const struct value *args, struct value *out)
{
    struct value text;
    TRY(template_text(render, node, self, &text));
    return template_method_find(&text, span_str(name))->call(render, node, text, args, out);
}

/* ---- text ------------------------------------------------------------------------------------ */

FILTER(trim)
{
    return by_method(render, node, "strip", &self, args, out);
}

FILTER(upper)
{
    return by_method(render, node, "upper", &self, args, out);
}

FILTER(lower)
{
    return by_method(render, node, "lower", &self, args, out);
}

FILTER(capitalize)
{
    return by_method(render, node, "capitalize", &self, args, out);
}

FILTER(replace)
{
    struct value texts[3] = {args[0], args[1], args[2]};
    TRY(template_text(render, node, &args[0], &texts[0]));
    TRY(template_text(render, node, &args[1], &texts[1]));
    if (texts[2].kind == VALUE_NONE) {
        texts[2] = value_int(-1);
    }
    return by_method(render, node, "replace", &self, texts, out);
}

/* Not str.title(): words begin behind blanks, hyphens and brackets only. */
FILTER(title)
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

FILTER(string)
{
    (void)args;
    return template_text(render, node, &self, out);
}

FILTER(safe)
{
    (void)args;
    TRY(template_text(render, node, &self, out));
    out->flags = VALUE_IS_SAFE;
    return ST_OK;
}

FILTER(escape)
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

/* What stands in front of each line: |width| blanks or a text. */
static enum status read_indent(struct render *render, const struct node *node,
                               const struct value *width, struct span *out)
{
    static const char blanks[INDENT_MAX + 1] =
        "                                                                ";
    int64_t number = 4;
    if (is_given(width) && width->kind == VALUE_STRING) {
        *out = width->string;
        return ST_OK;
    }
    if (is_given(width) && !template_as_int(width, &number)) {
        return refuse(render, node, "indent", width);
    }
    if (number > INDENT_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "an indent of more than %d blanks",
                             INDENT_MAX);
    }
    *out = span_of(blanks, number > 0 ? (size_t)number : 0);
    return ST_OK;
}

FILTER(indent)
{
    struct value lines;
    struct span blanks = {0};
    const struct value none = {.kind = VALUE_OBJECT, .flags = OBJECT_MISSING};
    bool is_first = is_true(&args[1], false), is_blank = is_true(&args[2], false);
    if (self.kind != VALUE_STRING) {
        return refuse(render, node, "indent", &self);
    }
    TRY(read_indent(render, node, &args[0], &blanks));
    size_t begin = template_text_begin(render);
    buf_add(render->out, self.string.ptr, self.string.len);
    buf_add_char(render->out, '\n');
    TRY(template_text_end(render, node, begin, &lines));
    TRY(by_method(render, node, "splitlines", &lines, &none, &lines));
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
    if (!is_given(pair) || pair->kind == VALUE_NONE) {
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
    style->is_ascii = is_true(&args[0], false);
    style->is_sorted = is_true(&args[3], false);
    if (is_given(&args[1]) && args[1].kind != VALUE_NONE) {
        style->item_text = span_str(",");
        if (args[1].kind == VALUE_STRING) {
            style->indent_text = args[1].string;
            style->indent = 0;
        } else if (!template_as_int(&args[1], &indent)) {
            return refuse(render, node, "tojson", &args[1]);
        } else if (indent > INDENT_MAX) {
            return template_fail(render, node, ST_TOO_LARGE, "an indent of more than %d blanks",
                                 INDENT_MAX);
        } else {
            style->indent = indent > 0 ? (int32_t)indent : 0;
        }
    }
    return read_separators(render, node, &args[2], style);
}

FILTER(tojson)
{
    struct value_json_style style;
    TRY(read_json_style(render, node, args, &style));
    size_t begin = template_text_begin(render);
    enum status status = value_print_json(&self, &style, render->out, render->err);
    if (status != ST_OK) {
        return error_prefix(render->err, "line %u, column %u: ", node->place.line,
                            node->place.column);
    }
    return template_text_end(render, node, begin, out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads what int() or float() of a text takes: blanks around, a sign, leading zeros. */
static bool read_number(struct span text, bool is_float, struct value *out)
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

FILTER(int)
{
    int64_t integer;
    *out = is_given(&args[0]) ? args[0] : value_int(0);
    if (is_given(&args[1]) && (!template_as_int(&args[1], &integer) || integer != 10)) {
        return template_fail(render, node, ST_UNSUPPORTED, "'int' reads only base 10");
    }
    if (template_is(&self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, &self);
    }
    if (template_as_int(&self, &integer)) {
        *out = value_int(integer);
    } else if (self.kind == VALUE_DOUBLE) {
        to_int(self.number, out);
    } else if (self.kind == VALUE_STRING) {
        struct value number;
        if (read_number(self.string, false, &number)) {
            *out = number;
        } else if (read_number(self.string, true, &number)) {
            to_int(number.number, out);
        }
    }
    return ST_OK;
}

FILTER(float)
{
    double number;
    struct value read;
    *out = is_given(&args[0]) ? args[0] : value_double(0);
    if (template_is(&self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, &self);
    }
    if (template_as_double(&self, &number)) {
        *out = value_double(number);
    } else if (self.kind == VALUE_STRING && read_number(self.string, true, &read)) {
        *out = read;
    }
    return ST_OK;
}

FILTER(abs)
{
    const struct value zero = value_int(0);
    (void)args;
    if (self.kind == VALUE_DOUBLE) {
        *out = value_double(fabs(self.number));
        return ST_OK;
    }
    if (!template_as_int(&self, &out->integer)) {
        return refuse(render, node, "abs", &self);
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

FILTER(round)
{
    int64_t places = 0, integer;
    double number;
    bool is_ceil =
        is_given(&args[1]) && args[1].kind == VALUE_STRING && span_is(args[1].string, "ceil");
    bool is_floor =
        is_given(&args[1]) && args[1].kind == VALUE_STRING && span_is(args[1].string, "floor");
    if (is_given(&args[0]) && !template_as_int(&args[0], &places)) {
        return refuse(render, node, "round", &args[0]);
    }
    if (places < 0 || places > ROUND_MAX) {
        return template_fail(render, node, ST_UNSUPPORTED, "'round' to %lld places",
                             (long long)places);
    }
    if (is_given(&args[1]) && !is_ceil && !is_floor &&
        (args[1].kind != VALUE_STRING || !span_is(args[1].string, "common"))) {
        return template_fail(render, node, ST_INVALID,
                             "the method of 'round' is common, ceil or floor");
    }
    if (!template_as_double(&self, &number)) {
        return refuse(render, node, "round", &self);
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

FILTER(default)
{
    bool is_replaced = template_is(&self, OBJECT_UNDEFINED) ||
                       (is_true(&args[1], false) && !template_truth(&self));
    (void)render;
    (void)node;
    *out = !is_replaced ? self : is_given(&args[0]) ? args[0] : value_string(span_str(""));
    return ST_OK;
}

FILTER(length)
{
    (void)args;
    *out = value_int(0);
    return template_length(render, node, &self, &out->integer);
}

FILTER(first)
{
    struct value_list *list;
    (void)args;
    TRY(template_iterate(render, node, &self, &list));
    *out = list->count ? list->items[0]
                       : template_undefined(render, span_str("first of an empty list"));
    return ST_OK;
}

FILTER(last)
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

/* ---- lists ----------------------------------------------------------------------------------- */

static enum status copy_list(struct render *render, const struct node *node,
                             const struct value *self, struct value *out)
{
    struct value_list *list;
    TRY(template_iterate(render, node, self, &list));
    TRY(template_charge(render, node, list->count * 16));
    *out = (struct value){.kind = VALUE_LIST};
    struct value *items = arena_array(render->arena, list->count + 1, sizeof(*items));
    if (!items || !value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    if (list->count) {
        memcpy(items, list->items, list->count * sizeof(*items));
    }
    *out->list = (struct value_list){list->count, list->count + 1, items};
    return ST_OK;
}

FILTER(list)
{
    (void)args;
    return copy_list(render, node, &self, out);
}

FILTER(reverse)
{
    (void)args;
    if (self.kind == VALUE_STRING) {
        const struct value bounds[3] = {{0}, {0}, value_int(-1)};
        return template_slice(render, node, &self, bounds, out);
    }
    TRY(copy_list(render, node, &self, out));
    for (size_t i = 0, count = out->list->count; i < count / 2; i++) {
        struct value one = out->list->items[i];
        out->list->items[i] = out->list->items[count - 1 - i];
        out->list->items[count - 1 - i] = one;
    }
    out->flags = VALUE_IS_ITERATOR;
    return ST_OK;
}

static void replace_undefined(const struct value *otherwise, struct value *out)
{
    if (is_given(otherwise) && otherwise->kind != VALUE_NONE &&
        template_is(out, OBJECT_UNDEFINED)) {
        *out = *otherwise;
    }
}

/* The value at a path such as "function.name" or 0; |otherwise|, if it is given, for each part that
 * is undefined. */
static enum status get_path_or(struct render *render, const struct node *node,
                               const struct value *self, const struct value *path,
                               const struct value *otherwise, struct value *out)
{
    *out = *self;
    if (path->kind != VALUE_STRING) {
        TRY(template_item(render, node, self, path, out));
        replace_undefined(otherwise, out);
        return ST_OK;
    }
    for (struct span rest = path->string;;) {
        size_t dot = pytext_find(rest, span_str("."));
        struct value key = value_string(span_of(rest.ptr, dot == SIZE_MAX ? rest.len : dot));
        struct value number, inner = *out;
        bool is_number = key.string.len > 0;
        for (size_t i = 0; i < key.string.len; i++) {
            is_number &= key.string.ptr[i] >= '0' && key.string.ptr[i] <= '9';
        }
        if (is_number && read_number(key.string, false, &number)) {
            key = number;
        }
        TRY(template_item(render, node, &inner, &key, out));
        replace_undefined(otherwise, out);
        if (dot == SIZE_MAX) {
            return ST_OK;
        }
        rest = span_of(rest.ptr + dot + 1, rest.len - dot - 1);
    }
}

static enum status get_path(struct render *render, const struct node *node,
                            const struct value *self, const struct value *path, struct value *out)
{
    const struct value none = {.kind = VALUE_NONE};
    return get_path_or(render, node, self, path, &none, out);
}

FILTER(join)
{
    struct value_list *list;
    TRY(template_iterate(render, node, &self, &list));
    size_t begin = template_text_begin(render);
    for (size_t i = 0; i < list->count; i++) {
        struct value item = list->items[i];
        if (is_given(&args[1]) && args[1].kind != VALUE_NONE) {
            TRY(get_path(render, node, &list->items[i], &args[1], &item));
        }
        if (i > 0 && is_given(&args[0])) {
            TRY(template_print(render, node, &args[0], false));
        }
        TRY(template_print(render, node, &item, false));
    }
    return template_text_end(render, node, begin, out);
}

FILTER(items)
{
    const struct value none = {.kind = VALUE_MAP, .map = &(struct value_map){0}};
    (void)args;
    if (self.kind != VALUE_MAP && !template_is(&self, OBJECT_UNDEFINED)) {
        return refuse(render, node, "items", &self);
    }
    const struct value *map = self.kind == VALUE_MAP ? &self : &none;
    TRY(template_method_find(map, span_str("items"))->call(render, node, *map, args, out));
    out->flags = VALUE_IS_ITERATOR;
    return ST_OK;
}

/* ---- filters of items ------------------------------------------------------------------------ */

/* The filter or test that |items| name first, with the rest as its arguments. */
static enum status call_by_name(struct render *render, const struct node *node,
                                const struct value_list *items, size_t from, bool is_test,
                                const struct value *self, struct value *out)
{
    const struct value *name = &items->items[from];
    const struct builtin *builtin = NULL;
    size_t count = items->count - from - 1;
    if (name->kind == VALUE_STRING) {
        builtin = is_test ? template_test_find(name->string) : template_filter_find(name->string);
    }
    if (!builtin) {
        return template_fail(render, node, ST_UNSUPPORTED, "there is no such %s here",
                             is_test ? "test" : "filter");
    }
    struct arguments arguments = {
        .items = arena_array(render->arena, count + 1, sizeof(*arguments.items)), .count = count};
    if (!arguments.items) {
        return template_no_memory(render);
    }
    for (size_t i = 0; i < count; i++) {
        arguments.items[i] = (struct argument){.value = items->items[from + 1 + i]};
    }
    if (render->stack_depth >= TEMPLATE_STACK_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "filters call each other too deep");
    }
    render->stack_depth++;
    enum status status = template_call_builtin(render, node, builtin, *self, &arguments, out);
    render->stack_depth--;
    return status;
}

static enum status select_items(struct render *render, const struct node *node,
                                const struct value *self, const struct value *args, bool by_path,
                                bool wanted, struct value *out)
{
    struct value_list *list;
    const struct value_list *given = args[0].list;
    size_t from = by_path ? 1 : 0;
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_ITERATOR;
    if (!template_truth(self)) {
        return ST_OK;
    }
    if (by_path && given->count == 0) {
        return template_fail(render, node, ST_INVALID, "the name of an attribute is missing");
    }
    TRY(template_iterate(render, node, self, &list));
    for (size_t i = 0; i < list->count; i++) {
        struct value item = list->items[i], test;
        TRY(template_charge(render, node, 1));
        if (by_path) {
            TRY(get_path(render, node, &list->items[i], &given->items[0], &item));
        }
        test = item;
        if (given->count > from) {
            TRY(call_by_name(render, node, given, from, true, &item, &test));
        }
        if (template_truth(&test) == wanted &&
            !value_list_add(render->arena, out, list->items[i])) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

FILTER(select)
{
    return select_items(render, node, &self, args, false, true, out);
}

FILTER(reject)
{
    return select_items(render, node, &self, args, false, false, out);
}

FILTER(selectattr)
{
    return select_items(render, node, &self, args, true, true, out);
}

FILTER(rejectattr)
{
    return select_items(render, node, &self, args, true, false, out);
}

static enum status map_item(struct render *render, const struct node *node,
                            const struct value *item, const struct value *args, struct value *out)
{
    if (args[0].list->count > 0) {
        return call_by_name(render, node, args[0].list, 0, false, item, out);
    }
    return get_path_or(render, node, item, &args[1], &args[2], out);
}

FILTER(map)
{
    struct value_list *list;
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_ITERATOR;
    if (!template_truth(&self)) {
        return ST_OK;
    }
    if (args[0].list->count == 0 && !is_given(&args[1])) {
        return template_fail(render, node, ST_INVALID, "'map' takes a filter or an attribute");
    }
    TRY(template_iterate(render, node, &self, &list));
    for (size_t i = 0; i < list->count; i++) {
        struct value item;
        TRY(template_charge(render, node, 1));
        TRY(map_item(render, node, &list->items[i], args, &item));
        if (!value_list_add(render->arena, out, item)) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct sort {
    struct render *render;
    const struct node *node;
    bool is_reversed;
};

/* An item with what it is ordered by. */
struct sort_item {
    struct value key, value;
};

static enum status make_key(struct render *render, const struct node *node,
                            const struct value *item, const struct value *path, bool keeps_case,
                            struct value *out)
{
    *out = *item;
    if (is_given(path) && path->kind != VALUE_NONE) {
        TRY(get_path(render, node, item, path, out));
    }
    if (keeps_case || out->kind != VALUE_STRING) {
        return ST_OK;
    }
    struct value text = *out;
    return by_method(render, node, "lower", &text, NULL, out);
}

/* A merge, which keeps the order of equal items. */
static enum status merge(const struct sort *sort, struct sort_item *items, size_t half,
                         size_t count, struct sort_item *spare)
{
    size_t left = 0, right = half;
    for (size_t i = 0; i < count; i++) {
        bool takes_right = left == half;
        if (!takes_right && right < count) {
            int order;
            TRY(template_order(sort->render, sort->node, &items[left].key, &items[right].key,
                               &order));
            takes_right = sort->is_reversed ? order < 0 : order > 0;
        }
        spare[i] = items[takes_right ? right++ : left++];
    }
    memcpy(items, spare, count * sizeof(*items));
    return ST_OK;
}

static enum status merge_sort(const struct sort *sort, struct sort_item *items, size_t count,
                              struct sort_item *spare)
{
    if (count < 2) {
        return ST_OK;
    }
    TRY(merge_sort(sort, items, count / 2, spare));
    TRY(merge_sort(sort, items + count / 2, count - count / 2, spare));
    return merge(sort, items, count / 2, count, spare);
}

/* Sorts |list|, a list of its own, by |path| of its items. */
static enum status sort_list(struct render *render, const struct node *node, struct value *list,
                             const struct value *path, bool keeps_case, bool is_reversed)
{
    const struct sort sort = {render, node, is_reversed};
    size_t count = list->list->count;
    struct sort_item *items = arena_array(render->arena, 2 * count + 1, sizeof(*items));
    if (!items) {
        return template_no_memory(render);
    }
    for (size_t i = 0; i < count; i++) {
        items[i].value = list->list->items[i];
        TRY(make_key(render, node, &items[i].value, path, keeps_case, &items[i].key));
    }
    TRY(merge_sort(&sort, items, count, items + count));
    for (size_t i = 0; i < count; i++) {
        list->list->items[i] = items[i].value;
    }
    return ST_OK;
}

FILTER(sort)
{
    TRY(copy_list(render, node, &self, out));
    return sort_list(render, node, out, &args[2], is_true(&args[1], false),
                     is_true(&args[0], false));
}

FILTER(dictsort)
{
    struct value place = value_int(0);
    if (self.kind != VALUE_MAP) {
        return refuse(render, node, "dictsort", &self);
    }
    if (is_given(&args[1])) {
        bool is_value = args[1].kind == VALUE_STRING && span_is(args[1].string, "value");
        if (!is_value && !(args[1].kind == VALUE_STRING && span_is(args[1].string, "key"))) {
            return template_fail(render, node, ST_INVALID, "'dictsort' is by key or value");
        }
        place.integer = is_value;
    }
    TRY(filter_items(render, node, self, args, out));
    out->flags = 0;
    return sort_list(render, node, out, &place, is_true(&args[0], false), is_true(&args[2], false));
}

static enum status extreme(struct render *render, const struct node *node, const struct value *self,
                           const struct value *args, int sign, struct value *out)
{
    struct value_list *list;
    struct value best, key;
    TRY(template_iterate(render, node, self, &list));
    if (list->count == 0) {
        *out = template_undefined(render, span_str("of an empty list"));
        return ST_OK;
    }
    for (size_t i = 0; i < list->count; i++) {
        int order = -1;
        TRY(make_key(render, node, &list->items[i], &args[1], is_true(&args[0], false), &key));
        if (i > 0) {
            TRY(template_order(render, node, &key, &best, &order));
            order *= sign;
        }
        if (order < 0) {
            best = key;
            *out = list->items[i];
        }
    }
    return ST_OK;
}

FILTER(min)
{
    return extreme(render, node, &self, args, 1, out);
}

FILTER(max)
{
    return extreme(render, node, &self, args, -1, out);
}

FILTER(sum)
{
    struct value_list *list;
    *out = is_given(&args[1]) ? args[1] : value_int(0);
    TRY(template_iterate(render, node, &self, &list));
    for (size_t i = 0; i < list->count; i++) {
        struct value item = list->items[i], sum = *out;
        if (is_given(&args[0]) && args[0].kind != VALUE_NONE) {
            TRY(get_path(render, node, &list->items[i], &args[0], &item));
        }
        TRY(template_binary(render, node, '+', &sum, &item, out));
    }
    return ST_OK;
}

FILTER(unique)
{
    struct value_list *list;
    struct value keys, key;
    TRY(template_iterate(render, node, &self, &list));
    if (!value_list_new(render->arena, out) || !value_list_new(render->arena, &keys)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_ITERATOR;
    for (size_t i = 0; i < list->count; i++) {
        bool is_known;
        TRY(make_key(render, node, &list->items[i], &args[1], is_true(&args[0], false), &key));
        TRY(template_contains(render, node, &keys, &key, &is_known));
        if (!is_known && (!value_list_add(render->arena, &keys, key) ||
                          !value_list_add(render->arena, out, list->items[i]))) {
            return template_no_memory(render);
        }
    }
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
