/* SPDX-License-Identifier: MIT */
/* Values of templates as Python's operators, str() and subscripts see them. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/number.h"
#include "server/text/template/pytext.h"
#include "server/text/template/template_priv.h"

bool template_is(const struct value *value, enum object_kind kind)
{
    return value->kind == VALUE_OBJECT && value->flags == (uint32_t)kind;
}

struct undefined {
    struct span name;
    bool is_of_value;
};

static struct value make_undefined(struct render *render, struct span name, bool is_of_value)
{
    struct value out = {.kind = VALUE_OBJECT, .flags = OBJECT_UNDEFINED};
    struct undefined *undefined = arena_alloc(render->arena, sizeof(*undefined));
    if (undefined) {
        *undefined = (struct undefined){name, is_of_value};
    }
    out.object = undefined;
    return out;
}

struct value template_undefined(struct render *render, struct span name)
{
    return make_undefined(render, name, false);
}

struct value template_undefined_of(struct render *render, struct span name)
{
    return make_undefined(render, name, true);
}

enum status template_undefined_fail(struct render *render, const struct node *node,
                                    const struct value *value)
{
    static const char text[] = "'%.*s' is undefined";
    const struct undefined *undefined = value->object;
    if (!undefined || undefined->name.len == 0) {
        return template_fail(render, node, ST_INVALID, "a value is undefined");
    }
    return undefined->is_of_value
               ? template_fail_quoting(render, node, ST_INVALID, text, SPAN_SHORT(undefined->name))
               : template_fail(render, node, ST_INVALID, text, SPAN_SHORT(undefined->name));
}

const char *template_type_text(const struct value *value)
{
    static const char *const objects[] = {"nothing", "an undefined value", "a namespace",
                                          "a macro", "a function",         "a method",
                                          "a loop"};
    return value->kind == VALUE_OBJECT ? objects[value->flags] : value_kind_text(value->kind);
}

static enum status type_fail(struct render *render, const struct node *node,
                             const struct value *value, const char *what)
{
    if (template_is(value, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, value);
    }
    return template_fail(render, node, ST_INVALID, "%s %s", template_type_text(value), what);
}

bool template_truth(const struct value *value)
{
    switch (value->kind) {
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return value->boolean;
    case VALUE_INT:
        return value->integer != 0;
    case VALUE_DOUBLE:
        return value->number != 0;
    case VALUE_LONG:
    case VALUE_STRING:
        return value->string.len > 0;
    case VALUE_LIST:
        return value->list->count > 0 || (value->flags & VALUE_IS_ITERATOR);
    case VALUE_MAP:
        return value->map->count > 0;
    default:
        return value->flags > OBJECT_UNDEFINED;
    }
}

bool template_as_int(const struct value *value, int64_t *out)
{
    *out = value->kind == VALUE_BOOL  ? value->boolean
           : value->kind == VALUE_INT ? value->integer
                                      : 0;
    return value->kind == VALUE_BOOL || value->kind == VALUE_INT;
}

bool template_as_double(const struct value *value, double *out)
{
    int64_t integer;
    if (value->kind == VALUE_DOUBLE) {
        *out = value->number;
        return true;
    }
    bool is_int = template_as_int(value, &integer);
    *out = (double)integer;
    return is_int;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool is_number(const struct value *value)
{
    return value->kind == VALUE_BOOL || value->kind == VALUE_INT || value->kind == VALUE_LONG ||
           value->kind == VALUE_DOUBLE;
}

/* Digits of integers, the first of which is not 0. */
static int compare_long(struct span a, struct span b)
{
    bool is_below = a.ptr[0] == '-';
    if (is_below != (b.ptr[0] == '-')) {
        return is_below ? -1 : 1;
    }
    int order = a.len != b.len ? (a.len > b.len) - (a.len < b.len) : memcmp(a.ptr, b.ptr, a.len);
    return is_below ? -order : order;
}

static long double as_long_double(const struct value *value)
{
    int64_t integer;
    if (value->kind == VALUE_LONG) {
        return strtold((const char *)value->string.ptr, NULL); /* a NUL is behind it */
    }
    template_as_int(value, &integer);
    return value->kind == VALUE_DOUBLE ? (long double)value->number : (long double)integer;
}

static int compare_numbers(const struct value *a, const struct value *b)
{
    int64_t one, two;
    if (template_as_int(a, &one) && template_as_int(b, &two)) {
        return (one > two) - (one < two);
    }
    if (a->kind == VALUE_LONG && b->kind == VALUE_LONG) {
        return compare_long(a->string, b->string);
    }
    long double x = as_long_double(a), y = as_long_double(b);
    return (x > y) - (x < y);
}

static bool same_numbers(const struct value *a, const struct value *b)
{
    bool is_nan = (a->kind == VALUE_DOUBLE && isnan(a->number)) ||
                  (b->kind == VALUE_DOUBLE && isnan(b->number));
    return !is_nan && compare_numbers(a, b) == 0;
}

const struct value *template_map_find(const struct value_map *map, const struct value *key)
{
    for (size_t i = 0; i < map->count; i++) {
        const struct value *other = &map->members[i].key; /* a scalar */
        if (key->kind == VALUE_STRING
                ? other->kind == VALUE_STRING && span_equal(other->string, key->string)
                : key->kind != VALUE_LIST && template_same(NULL, other, key, 0)) {
            return &map->members[i].value;
        }
    }
    return NULL;
}

static bool same_lists(struct render *render, const struct value *a, const struct value *b,
                       int depth)
{
    if (a->flags != b->flags || (a->flags & (VALUE_IS_ITERATOR | VALUE_IS_VIEW))) {
        return a->list == b->list;
    }
    bool is_same = a->list->count == b->list->count;
    for (size_t i = 0; is_same && i < a->list->count; i++) {
        is_same = template_same(render, &a->list->items[i], &b->list->items[i], depth + 1);
    }
    return is_same;
}

static bool same_maps(struct render *render, const struct value *a, const struct value *b,
                      int depth)
{
    bool is_same = a->map->count == b->map->count;
    for (size_t i = 0; is_same && i < a->map->count; i++) {
        const struct value *other = template_map_find(b->map, &a->map->members[i].key);
        is_same = other && template_same(render, &a->map->members[i].value, other, depth + 1);
    }
    return is_same;
}

/* Takes steps from |render|, if there is one: lists may share what they hold, and then a short
 * template compares for ever. The caller asks template_charge() whether steps are left. */
bool template_same(struct render *render, const struct value *a, const struct value *b, int depth)
{
    if (render) {
        uint64_t cost = 1 + (a->kind == VALUE_STRING ? a->string.len / 64 : 0) +
                        (a->kind == VALUE_MAP ? a->map->count * a->map->count / 64 : 0);
        if (depth > TEMPLATE_VALUE_DEPTH_MAX || render->steps_left < cost) {
            render->steps_left = 0;
            return false;
        }
        render->steps_left -= cost;
    }
    if (is_number(a) && is_number(b)) {
        return same_numbers(a, b);
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case VALUE_NONE:
        return true;
    case VALUE_STRING:
        return span_equal(a->string, b->string);
    case VALUE_LIST:
        return same_lists(render, a, b, depth);
    case VALUE_MAP:
        return same_maps(render, a, b, depth);
    default:
        return a->flags == b->flags && (a->flags == OBJECT_UNDEFINED || a->object == b->object);
    }
}

enum status template_order(struct render *render, const struct node *node, const struct value *a,
                           const struct value *b, int *order)
{
    TRY(template_charge(render, node, a->kind == VALUE_STRING ? a->string.len : 1));
    if (is_number(a) && is_number(b)) {
        *order = compare_numbers(a, b);
        return ST_OK;
    }
    if (a->kind == VALUE_STRING && b->kind == VALUE_STRING) {
        *order = span_compare(a->string, b->string);
        return ST_OK;
    }
    if (a->kind != VALUE_LIST || b->kind != VALUE_LIST || a->flags != b->flags) {
        const struct value *wrong = is_number(a) || a->kind == VALUE_STRING ? b : a;
        return type_fail(render, node, wrong, "cannot be ordered with the other operand");
    }
    for (size_t i = 0; i < a->list->count && i < b->list->count; i++) {
        bool is_same = template_same(render, &a->list->items[i], &b->list->items[i], 0);
        TRY(template_charge(render, node, 1));
        if (!is_same) {
            if (render->stack_depth == TEMPLATE_STACK_MAX) {
                return template_fail(render, node, ST_TOO_LARGE, "lists are nested too deep");
            }
            render->stack_depth++;
            enum status status =
                template_order(render, node, &a->list->items[i], &b->list->items[i], order);
            render->stack_depth--;
            return status;
        }
    }
    *order = (a->list->count > b->list->count) - (a->list->count < b->list->count);
    return ST_OK;
}

static bool is_hashable(const struct value *value)
{
    return value->kind != VALUE_MAP &&
           (value->kind != VALUE_LIST || (value->flags & ~(uint32_t)VALUE_IS_TUPLE));
}

enum status template_contains(struct render *render, const struct node *node,
                              const struct value *container, const struct value *item, bool *out)
{
    struct value_list *list;
    if (container->kind == VALUE_STRING) {
        if (item->kind != VALUE_STRING) {
            return type_fail(render, node, item, "cannot be in a string");
        }
        TRY(template_charge(render, node, container->string.len));
        *out = pytext_find(container->string, item->string) != SIZE_MAX;
        return ST_OK;
    }
    if (container->kind == VALUE_MAP) {
        if (!is_hashable(item)) {
            return type_fail(render, node, item, "is no key of a map");
        }
        TRY(template_charge(render, node, container->map->count * 8));
        *out = template_map_find(container->map, item) != NULL;
        return ST_OK;
    }
    TRY(template_iterate(render, node, container, &list));
    *out = false;
    for (size_t i = 0; i < list->count && !*out; i++) {
        *out = template_same(render, &list->items[i], item, 0);
    }
    return template_charge(render, node, 1);
}

/* ---- printing -------------------------------------------------------------------------------- */

static enum status print_items(struct render *render, const struct node *node,
                               const struct value *value)
{
    bool is_tuple = value->flags & VALUE_IS_TUPLE;
    const struct value_list *list = value->list;
    if (value->flags & ~(uint32_t)VALUE_IS_TUPLE) {
        return template_fail(render, node, ST_UNSUPPORTED,
                             "an iterator, a view or a range is not printed");
    }
    buf_add_char(render->out, is_tuple ? '(' : '[');
    for (size_t i = 0; i < list->count && !buf_failed(render->out); i++) {
        buf_add_str(render->out, i ? ", " : "");
        TRY(template_print(render, node, &list->items[i], true));
    }
    buf_add_str(render->out, is_tuple && list->count == 1 ? "," : "");
    buf_add_char(render->out, is_tuple ? ')' : ']');
    return ST_OK;
}

static enum status print_members(struct render *render, const struct node *node,
                                 const struct value_map *map)
{
    buf_add_char(render->out, '{');
    for (size_t i = 0; i < map->count && !buf_failed(render->out); i++) {
        buf_add_str(render->out, i ? ", " : "");
        TRY(template_print(render, node, &map->members[i].key, true));
        buf_add_str(render->out, ": ");
        TRY(template_print(render, node, &map->members[i].value, true));
    }
    buf_add_char(render->out, '}');
    return ST_OK;
}

static enum status print_scalar(struct render *render, const struct node *node,
                                const struct value *value, bool is_repr)
{
    uint8_t text[NUMBER_TEXT_MAX];
    switch (value->kind) {
    case VALUE_NONE:
        buf_add_str(render->out, "None");
        break;
    case VALUE_BOOL:
        buf_add_str(render->out, value->boolean ? "True" : "False");
        break;
    case VALUE_INT:
        buf_add(render->out, text, number_print_i64(text, value->integer));
        break;
    case VALUE_LONG:
        buf_add(render->out, value->string.ptr, value->string.len);
        break;
    case VALUE_DOUBLE:
        value_print_double(value->number, render->out);
        break;
    case VALUE_STRING:
        if (is_repr) {
            pytext_print_repr(value->string, render->out);
        } else {
            buf_add(render->out, value->string.ptr, value->string.len);
        }
        break;
    default:
        if (!template_is(value, OBJECT_UNDEFINED) && !template_is(value, OBJECT_MISSING)) {
            return template_fail(render, node, ST_UNSUPPORTED, "%s is not printed",
                                 template_type_text(value));
        }
        buf_add_str(render->out, is_repr ? "Undefined" : "");
    }
    return ST_OK;
}

static enum status check_output(struct render *render, const struct node *node)
{
    if (buf_failed(render->out) && render->out->lacks_memory) {
        return error_no_memory(render->err, "the text of a template");
    }
    if (buf_failed(render->out) ||
        render->out->len - render->out_start > render->limits->output_max) {
        return template_fail(render, node, ST_TOO_LARGE, "the text has more than %zu bytes",
                             render->limits->output_max);
    }
    return ST_OK;
}

enum status template_print(struct render *render, const struct node *node,
                           const struct value *value, bool is_repr)
{
    size_t before = render->out->len;
    enum status status = ST_OK;
    if (render->stack_depth >= TEMPLATE_STACK_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "a value is nested too deep");
    }
    render->stack_depth++;
    if (value->kind == VALUE_LIST) {
        status = print_items(render, node, value);
    } else if (value->kind == VALUE_MAP) {
        status = print_members(render, node, value->map);
    } else {
        status = print_scalar(render, node, value, is_repr);
    }
    render->stack_depth--;
    TRY(status);
    TRY(template_charge(render, node, render->out->len - before));
    return check_output(render, node);
}

size_t template_text_begin(struct render *render)
{
    return render->out->len;
}

enum status template_text_end(struct render *render, const struct node *node, size_t begin,
                              struct value *out)
{
    TRY(check_output(render, node));
    size_t len = render->out->len - begin;
    TRY(template_charge(render, node, len));
    char *text = arena_strdup(render->arena, len ? render->out->ptr + begin : NULL, len);
    if (!text) {
        return template_no_memory(render);
    }
    render->out->len = begin;
    *out = value_string(span_of(text, len));
    return ST_OK;
}

enum status template_text(struct render *render, const struct node *node, const struct value *value,
                          struct value *out)
{
    if (value->kind == VALUE_STRING) {
        *out = value_string(value->string);
        return ST_OK;
    }
    size_t begin = template_text_begin(render);
    TRY(template_print(render, node, value, false));
    return template_text_end(render, node, begin, out);
}

/* ---- walking --------------------------------------------------------------------------------- */

static enum status split_characters(struct render *render, const struct node *node,
                                    struct span text, struct value *list)
{
    TRY(template_charge(render, node, text.len * 16));
    for (size_t at = 0; at < text.len;) {
        size_t len = pytext_char(text.ptr + at, text.ptr + text.len);
        if (!value_list_add(render->arena, list, value_string(span_of(text.ptr + at, len)))) {
            return template_no_memory(render);
        }
        at += len;
    }
    return ST_OK;
}

static enum status take_keys(struct render *render, const struct value_map *map, struct value *list)
{
    for (size_t i = 0; i < map->count; i++) {
        if (!value_list_add(render->arena, list, map->members[i].key)) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

enum status template_iterate(struct render *render, const struct node *node,
                             const struct value *value, struct value_list **out)
{
    struct value list;
    if (value->kind == VALUE_LIST && !(value->flags & VALUE_IS_ITERATOR)) {
        *out = value->list;
        return ST_OK;
    }
    if (!value_list_new(render->arena, &list)) {
        return template_no_memory(render);
    }
    *out = list.list;
    if (value->kind == VALUE_LIST) {
        *list.list = *value->list;
        *value->list = (struct value_list){0};
        return ST_OK;
    }
    if (value->kind == VALUE_STRING) {
        return split_characters(render, node, value->string, &list);
    }
    if (value->kind == VALUE_MAP) {
        return take_keys(render, value->map, &list);
    }
    return template_is(value, OBJECT_UNDEFINED)
               ? ST_OK
               : type_fail(render, node, value, "cannot be walked");
}

enum status template_length(struct render *render, const struct node *node,
                            const struct value *value, int64_t *out)
{
    *out = 0;
    if (value->kind == VALUE_STRING) {
        *out = (int64_t)pytext_length(value->string);
        return template_charge(render, node, value->string.len);
    }
    if (value->kind == VALUE_LIST && !(value->flags & VALUE_IS_ITERATOR)) {
        *out = (int64_t)value->list->count;
        return ST_OK;
    }
    if (value->kind == VALUE_MAP) {
        *out = (int64_t)value->map->count;
        return ST_OK;
    }
    return template_is(value, OBJECT_UNDEFINED) ? ST_OK
                                                : type_fail(render, node, value, "has no length");
}

/* ---- attributes and items -------------------------------------------------------------------- */

static struct value loop_item(struct render *render, const struct loop *loop, size_t at,
                              const char *name)
{
    return at < loop->list->count ? loop->list->items[at]
                                  : template_undefined(render, span_str(name));
}

static bool find_loop(struct render *render, const struct loop *loop, struct span name,
                      struct value *out)
{
    int64_t at = (int64_t)loop->at, count = (int64_t)loop->list->count;
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = {{"index", at + 1},
                   {"index0", at},
                   {"revindex", count - at},
                   {"revindex0", count - at - 1},
                   {"length", count},
                   {"depth", 1},
                   {"depth0", 0}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (span_is(name, numbers[i].name)) {
            *out = value_int(numbers[i].number);
            return true;
        }
    }
    if (span_is(name, "first") || span_is(name, "last")) {
        *out = value_bool(span_is(name, "first") ? at == 0 : at + 1 == count);
    } else if (span_is(name, "previtem")) {
        *out = loop_item(render, loop, loop->at - 1, "previtem");
    } else if (span_is(name, "nextitem")) {
        *out = loop_item(render, loop, loop->at + 1, "nextitem");
    } else {
        return false;
    }
    return true;
}

static enum status find_method(struct render *render, const struct node *node,
                               const struct value *self, struct span name, struct value *out,
                               bool *is_found)
{
    const struct builtin *builtin = template_method_find(self, name);
    *is_found = builtin != NULL;
    if (!builtin && template_method_is_refused(self, name)) {
        return template_fail(render, node, ST_UNSUPPORTED,
                             "the method '%.*s' of %s is not supported", SPAN_SHORT(name),
                             template_type_text(self));
    }
    if (!builtin) {
        return ST_OK;
    }
    struct method *method = arena_alloc(render->arena, sizeof(*method));
    if (!method) {
        return template_no_memory(render);
    }
    *method = (struct method){builtin, *self};
    *out = (struct value){.kind = VALUE_OBJECT, .flags = OBJECT_METHOD, .object = method};
    return ST_OK;
}

/* What a macro says of itself; a list without memory if there is none. */
static bool find_macro(struct render *render, const struct macro *macro, struct span name,
                       struct value *out)
{
    static const char *const uses[] = {"caller", "catch_varargs", "catch_kwargs"};
    for (unsigned i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (span_is(name, uses[i])) {
            *out = value_bool(macro->node->op >> i & 1);
            return true;
        }
    }
    if (span_is(name, "name")) {
        *out = macro->node->text.len ? value_string(macro->node->text) : (struct value){0};
        return true;
    }
    if (!span_is(name, "arguments")) {
        return false;
    }
    bool is_good = value_list_new(render->arena, out);
    for (const struct node *item = macro->node->others; item && is_good; item = item->next) {
        is_good = value_list_add(render->arena, out, value_string(item->text));
    }
    out->flags = VALUE_IS_TUPLE;
    out->list = is_good ? out->list : NULL;
    return true;
}

enum status template_attribute(struct render *render, const struct node *node,
                               const struct value *self, struct span name, struct value *out)
{
    bool is_found;
    const struct value key = value_string(name), *member = NULL;
    if (template_is(self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, self);
    }
    TRY(find_method(render, node, self, name, out, &is_found));
    if (is_found) {
        return ST_OK;
    }
    if (self->kind == VALUE_MAP || template_is(self, OBJECT_NAMESPACE)) {
        const struct value_map *map = self->kind == VALUE_MAP ? self->map : self->object;
        TRY(template_charge(render, node, map->count * 8));
        member = template_map_find(map, &key);
    }
    if (template_is(self, OBJECT_LOOP) && find_loop(render, self->object, name, out)) {
        return ST_OK;
    }
    if (template_is(self, OBJECT_MACRO) && find_macro(render, self->object, name, out)) {
        return out->kind != VALUE_LIST || out->list ? ST_OK : template_no_memory(render);
    }
    bool is_of_template = name.ptr == node->text.ptr;
    *out = member           ? *member
           : is_of_template ? template_undefined(render, name)
                            : template_undefined_of(render, name);
    return ST_OK;
}

static enum status item_at(struct render *render, const struct node *node, const struct value *self,
                           int64_t index, struct value *out)
{
    int64_t count;
    if (self->kind == VALUE_LIST && (self->flags & (VALUE_IS_ITERATOR | VALUE_IS_VIEW))) {
        return ST_OK;
    }
    TRY(template_length(render, node, self, &count));
    index += index < 0 ? count : 0;
    if (index < 0 || index >= count) {
        return ST_OK;
    }
    if (self->kind == VALUE_LIST) {
        *out = self->list->items[index];
        return ST_OK;
    }
    size_t at = pytext_offset(self->string, (size_t)index);
    const uint8_t *first = self->string.ptr + at, *end = self->string.ptr + self->string.len;
    *out = value_string(span_of(first, pytext_char(first, end)));
    return ST_OK;
}

enum status template_item(struct render *render, const struct node *node, const struct value *self,
                          const struct value *key, struct value *out)
{
    int64_t index;
    bool is_found;
    if (template_is(self, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, self);
    }
    *out = key->kind == VALUE_STRING ? template_undefined_of(render, key->string)
                                     : template_undefined(render, span_str("item"));
    if (self->kind == VALUE_MAP && is_hashable(key)) {
        TRY(template_charge(render, node, self->map->count * 8));
        const struct value *member = template_map_find(self->map, key);
        if (member) {
            *out = *member;
            return ST_OK;
        }
    }
    if ((self->kind == VALUE_LIST || self->kind == VALUE_STRING) && template_as_int(key, &index)) {
        return item_at(render, node, self, index, out);
    }
    if (key->kind != VALUE_STRING) {
        return ST_OK;
    }
    if (self->kind == VALUE_MAP) {
        return find_method(render, node, self, key->string, out, &is_found);
    }
    return template_attribute(render, node, self, key->string, out);
}

/* The bounds of a slice as Python's slice.indices() makes them. */
static enum status read_bounds(struct render *render, const struct node *node,
                               const struct value bounds[3], int64_t count, int64_t *from,
                               int64_t *to, int64_t *step)
{
    int64_t numbers[3];
    bool is_set[3];
    for (int i = 0; i < 3; i++) {
        is_set[i] = bounds[i].kind != VALUE_NONE;
        if (is_set[i] && !template_as_int(&bounds[i], &numbers[i])) {
            return type_fail(render, node, &bounds[i], "is no bound of a slice");
        }
    }
    *step = is_set[2] ? numbers[2] : 1;
    if (*step == 0) {
        return template_fail(render, node, ST_INVALID, "the step of a slice is 0");
    }
    int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? count - 1 : count;
    int64_t *const ends[2] = {from, to};
    for (int i = 0; i < 2; i++) {
        if (!is_set[i]) {
            *ends[i] = (i == 0) == (*step < 0) ? high : low;
            continue;
        }
        int64_t at = numbers[i] < 0 ? numbers[i] + count : numbers[i];
        *ends[i] = at < low ? low : at > high ? high : at;
    }
    return ST_OK;
}

static enum status slice_text(struct render *render, const struct node *node, struct span text,
                              const int64_t bounds[3], struct value *out)
{
    struct value characters;
    if (bounds[2] == 1) {
        size_t from = pytext_offset(text, (size_t)bounds[0]);
        size_t to = bounds[1] > bounds[0] ? pytext_offset(text, (size_t)bounds[1]) : from;
        *out = value_string(span_of(text.ptr + from, to - from));
        return ST_OK;
    }
    if (!value_list_new(render->arena, &characters)) {
        return template_no_memory(render);
    }
    TRY(split_characters(render, node, text, &characters));
    size_t begin = template_text_begin(render);
    for (int64_t at = bounds[0]; bounds[2] > 0 ? at < bounds[1] : at > bounds[1];) {
        struct span one = characters.list->items[at].string;
        buf_add(render->out, one.ptr, one.len);
        if (!add_i64(at, bounds[2], &at)) {
            break;
        }
    }
    return template_text_end(render, node, begin, out);
}

enum status template_slice(struct render *render, const struct node *node, const struct value *self,
                           const struct value bounds[3], struct value *out)
{
    int64_t count, at[3];
    bool is_list = self->kind == VALUE_LIST && !(self->flags & (VALUE_IS_ITERATOR | VALUE_IS_VIEW));
    if (!is_list && self->kind != VALUE_STRING) {
        return type_fail(render, node, self, "cannot be sliced");
    }
    TRY(template_length(render, node, self, &count));
    TRY(read_bounds(render, node, bounds, count, &at[0], &at[1], &at[2]));
    if (!is_list) {
        return slice_text(render, node, self->string, at, out);
    }
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = self->flags;
    for (int64_t i = at[0]; at[2] > 0 ? i < at[1] : i > at[1];) {
        TRY(template_charge(render, node, 16));
        if (!value_list_add(render->arena, out, self->list->items[i])) {
            return template_no_memory(render);
        }
        if (!add_i64(i, at[2], &i)) {
            break;
        }
    }
    return ST_OK;
}
