/* SPDX-License-Identifier: MIT */
/* Filters of lists and maps: their items, and their order. */
#include "config.h"

#include <string.h>

#include "server/text/template/pytext.h"
#include "server/text/template/template_filters_priv.h"

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

TEMPLATE_FILTER(list)
{
    (void)args;
    return copy_list(render, node, &self, out);
}

TEMPLATE_FILTER(reverse)
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
    if (filter_is_given(otherwise) && otherwise->kind != VALUE_NONE &&
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
        if (is_number && filter_read_number(key.string, false, &number)) {
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

TEMPLATE_FILTER(join)
{
    struct value_list *list;
    TRY(template_iterate(render, node, &self, &list));
    size_t begin = template_text_begin(render);
    for (size_t i = 0; i < list->count; i++) {
        struct value item = list->items[i];
        if (filter_is_given(&args[1]) && args[1].kind != VALUE_NONE) {
            TRY(get_path(render, node, &list->items[i], &args[1], &item));
        }
        if (i > 0 && filter_is_given(&args[0])) {
            TRY(template_print(render, node, &args[0], false));
        }
        TRY(template_print(render, node, &item, false));
    }
    return template_text_end(render, node, begin, out);
}

TEMPLATE_FILTER(items)
{
    const struct value none = {.kind = VALUE_MAP, .map = &(struct value_map){0}};
    (void)args;
    if (self.kind != VALUE_MAP && !template_is(&self, OBJECT_UNDEFINED)) {
        return filter_refuse(render, node, "items", &self);
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

TEMPLATE_FILTER(select)
{
    return select_items(render, node, &self, args, false, true, out);
}

TEMPLATE_FILTER(reject)
{
    return select_items(render, node, &self, args, false, false, out);
}

TEMPLATE_FILTER(selectattr)
{
    return select_items(render, node, &self, args, true, true, out);
}

TEMPLATE_FILTER(rejectattr)
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

TEMPLATE_FILTER(map)
{
    struct value_list *list;
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_ITERATOR;
    if (!template_truth(&self)) {
        return ST_OK;
    }
    if (args[0].list->count == 0 && !filter_is_given(&args[1])) {
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

/* An item with its key. */
struct sort_item {
    struct value key, value;
};

static enum status make_key(struct render *render, const struct node *node,
                            const struct value *item, const struct value *path, bool keeps_case,
                            struct value *out)
{
    *out = *item;
    if (filter_is_given(path) && path->kind != VALUE_NONE) {
        TRY(get_path(render, node, item, path, out));
    }
    if (keeps_case || out->kind != VALUE_STRING) {
        return ST_OK;
    }
    struct value text = *out;
    return filter_by_method(render, node, "lower", &text, NULL, out);
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

TEMPLATE_FILTER(sort)
{
    TRY(copy_list(render, node, &self, out));
    return sort_list(render, node, out, &args[2], filter_is_true(&args[1], false),
                     filter_is_true(&args[0], false));
}

TEMPLATE_FILTER(dictsort)
{
    struct value place = value_int(0);
    if (self.kind != VALUE_MAP) {
        return filter_refuse(render, node, "dictsort", &self);
    }
    if (filter_is_given(&args[1])) {
        bool is_value = args[1].kind == VALUE_STRING && span_is(args[1].string, "value");
        if (!is_value && !(args[1].kind == VALUE_STRING && span_is(args[1].string, "key"))) {
            return template_fail(render, node, ST_INVALID, "'dictsort' is by key or value");
        }
        place.integer = is_value;
    }
    TRY(filter_items(render, node, self, args, out));
    out->flags = 0;
    return sort_list(render, node, out, &place, filter_is_true(&args[0], false),
                     filter_is_true(&args[2], false));
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
        TRY(make_key(render, node, &list->items[i], &args[1], filter_is_true(&args[0], false),
                     &key));
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

TEMPLATE_FILTER(min)
{
    return extreme(render, node, &self, args, 1, out);
}

TEMPLATE_FILTER(max)
{
    return extreme(render, node, &self, args, -1, out);
}

TEMPLATE_FILTER(sum)
{
    struct value_list *list;
    *out = filter_is_given(&args[1]) ? args[1] : value_int(0);
    TRY(template_iterate(render, node, &self, &list));
    for (size_t i = 0; i < list->count; i++) {
        struct value item = list->items[i], sum = *out;
        if (filter_is_given(&args[0]) && args[0].kind != VALUE_NONE) {
            TRY(get_path(render, node, &list->items[i], &args[0], &item));
        }
        TRY(template_binary(render, node, '+', &sum, &item, out));
    }
    return ST_OK;
}

TEMPLATE_FILTER(unique)
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
        TRY(make_key(render, node, &list->items[i], &args[1], filter_is_true(&args[0], false),
                     &key));
        TRY(template_contains(render, node, &keys, &key, &is_known));
        if (!is_known && (!value_list_add(render->arena, &keys, key) ||
                          !value_list_add(render->arena, out, list->items[i]))) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}
