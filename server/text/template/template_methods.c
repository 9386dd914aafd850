/* SPDX-License-Identifier: MIT */
/* The methods of strings, lists, maps and loops that templates may call. */
#include "config.h"

#include <string.h>

#include "server/text/template/pytext.h"
#include "server/text/template/template_priv.h"

#define METHOD(name)                                                                               \
    static enum status method_##name(struct render *render, const struct node *node,               \
                                     struct value self, const struct value *args,                  \
                                     struct value *out)

static bool is_given(const struct value *value)
{
    return !template_is(value, OBJECT_MISSING);
}

static enum status need_string(struct render *render, const struct node *node,
                               const struct value *value)
{
    if (template_is(value, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, value);
    }
    return value->kind == VALUE_STRING
               ? ST_OK
               : template_fail(render, node, ST_INVALID, "expected a string, got %s",
                               template_type_text(value));
}

static enum status need_int(struct render *render, const struct node *node,
                            const struct value *value, int64_t *out)
{
    if (is_given(value) && !template_as_int(value, out)) {
        return template_fail(render, node, ST_INVALID, "expected an integer, got %s",
                             template_type_text(value));
    }
    return ST_OK;
}

/* ---- strings: ends --------------------------------------------------------------------------- */

static enum status strip(struct render *render, const struct node *node, const struct value *self,
                         const struct value *chars, bool at_begin, bool at_end, struct value *out)
{
    bool has_chars = is_given(chars) && chars->kind != VALUE_NONE;
    if (has_chars) {
        TRY(need_string(render, node, chars));
    }
    *out = value_string(
        pytext_strip(self->string, has_chars ? &chars->string : NULL, at_begin, at_end));
    return template_charge(render, node,
                           self->string.len * (has_chars ? 4 + chars->string.len : 1));
}

METHOD(strip)
{
    return strip(render, node, &self, &args[0], true, true, out);
}

METHOD(lstrip)
{
    return strip(render, node, &self, &args[0], true, false, out);
}

METHOD(rstrip)
{
    return strip(render, node, &self, &args[0], false, true, out);
}

static bool begins(struct span text, struct span part, bool at_end)
{
    return text.len >= part.len &&
           span_equal(span_of(text.ptr + (at_end ? text.len - part.len : 0), part.len), part);
}

static enum status begins_any(struct render *render, const struct node *node,
                              const struct value *self, const struct value *part, bool at_end,
                              struct value *out)
{
    *out = value_bool(false);
    if (part->kind != VALUE_LIST || !(part->flags & VALUE_IS_TUPLE)) {
        TRY(need_string(render, node, part));
        *out = value_bool(begins(self->string, part->string, at_end));
        return ST_OK;
    }
    for (size_t i = 0; i < part->list->count && !out->boolean; i++) {
        TRY(need_string(render, node, &part->list->items[i]));
        out->boolean = begins(self->string, part->list->items[i].string, at_end);
    }
    return ST_OK;
}

METHOD(startswith)
{
    return begins_any(render, node, &self, &args[0], false, out);
}

METHOD(endswith)
{
    return begins_any(render, node, &self, &args[0], true, out);
}

METHOD(removeprefix)
{
    TRY(need_string(render, node, &args[0]));
    size_t cut = begins(self.string, args[0].string, false) ? args[0].string.len : 0;
    *out = value_string(span_of(self.string.ptr + cut, self.string.len - cut));
    return ST_OK;
}

METHOD(removesuffix)
{
    TRY(need_string(render, node, &args[0]));
    size_t cut = begins(self.string, args[0].string, true) ? args[0].string.len : 0;
    *out = value_string(span_of(self.string.ptr, self.string.len - cut));
    return ST_OK;
}

/* ---- strings: parts -------------------------------------------------------------------------- */

static enum status add_part(struct render *render, struct value *list, const uint8_t *from,
                            const uint8_t *to)
{
    return value_list_add(render->arena, list, value_string(span_of(from, (size_t)(to - from))))
               ? ST_OK
               : template_no_memory(render);
}

static enum status split_words(struct render *render, struct span text, int64_t most,
                               struct value *list)
{
    const uint8_t *at = text.ptr, *end = text.ptr + text.len;
    while (true) {
        size_t len;
        while (at < end && (len = pytext_space(at, end)) > 0) {
            at += len;
        }
        if (at == end) {
            return ST_OK;
        }
        const uint8_t *word = at;
        if (most >= 0 && (int64_t)list->list->count == most) {
            return add_part(render, list, word, end); /* with the blanks at its end */
        }
        while (at < end && pytext_space(at, end) == 0) {
            at += pytext_char(at, end);
        }
        TRY(add_part(render, list, word, at));
    }
}

static enum status split_by(struct render *render, struct span text, struct span by, int64_t most,
                            struct value *list)
{
    const uint8_t *at = text.ptr, *end = text.ptr + text.len;
    while (most < 0 || (int64_t)list->list->count < most) {
        size_t found = pytext_find(span_of(at, (size_t)(end - at)), by);
        if (found == SIZE_MAX) {
            break;
        }
        TRY(add_part(render, list, at, at + found));
        at += found + by.len;
    }
    return add_part(render, list, at, end);
}

static void reverse(struct value_list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        struct value one = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = one;
    }
}

static enum status split_by_last(struct render *render, struct span text, struct span by,
                                 int64_t most, struct value *list)
{
    size_t len = text.len;
    while (most < 0 || (int64_t)list->list->count < most) {
        size_t found = pytext_find_last(span_of(text.ptr, len), by);
        if (found == SIZE_MAX) {
            break;
        }
        TRY(add_part(render, list, text.ptr + found + by.len, text.ptr + len));
        len = found;
    }
    TRY(add_part(render, list, text.ptr, text.ptr + len));
    reverse(list->list);
    return ST_OK;
}

/* The character before |at|. */
static const uint8_t *step_back(const uint8_t *at, const uint8_t *begin)
{
    for (at--; at > begin && (*at & 0xc0) == 0x80; at--) {
    }
    return at;
}

/* Goes back from |at| over white space, or over what is none. */
static const uint8_t *skip_back(const uint8_t *at, const uint8_t *begin, bool is_space)
{
    while (at > begin) {
        const uint8_t *before = step_back(at, begin);
        if ((pytext_space(before, at) > 0) != is_space) {
            break;
        }
        at = before;
    }
    return at;
}

/* From the end, and what is left without the blanks at its end. */
static enum status split_words_last(struct render *render, struct span text, int64_t most,
                                    struct value *list)
{
    const uint8_t *end = skip_back(text.ptr + text.len, text.ptr, true);
    for (; end > text.ptr && most != 0; most -= most > 0) {
        const uint8_t *word = skip_back(end, text.ptr, false);
        TRY(add_part(render, list, word, end));
        end = skip_back(word, text.ptr, true);
    }
    if (end > text.ptr) {
        TRY(add_part(render, list, text.ptr, end));
    }
    reverse(list->list);
    return ST_OK;
}

static enum status split(struct render *render, const struct node *node, const struct value *self,
                         const struct value *args, bool from_end, struct value *out)
{
    int64_t most = -1;
    bool has_separator = is_given(&args[0]) && args[0].kind != VALUE_NONE;
    TRY(need_int(render, node, &args[1], &most));
    TRY(template_charge(render, node, self->string.len * 8));
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    if (!has_separator) {
        return from_end ? split_words_last(render, self->string, most, out)
                        : split_words(render, self->string, most, out);
    }
    TRY(need_string(render, node, &args[0]));
    if (args[0].string.len == 0) {
        return template_fail(render, node, ST_INVALID, "split() by an empty string");
    }
    TRY(template_charge(render, node, from_end ? self->string.len * args[0].string.len : 0));
    return from_end ? split_by_last(render, self->string, args[0].string, most, out)
                    : split_by(render, self->string, args[0].string, most, out);
}

METHOD(split)
{
    return split(render, node, &self, args, false, out);
}

METHOD(rsplit)
{
    return split(render, node, &self, args, true, out);
}

METHOD(splitlines)
{
    const uint8_t *at = self.string.ptr, *end = at + self.string.len, *line = at;
    bool keeps = is_given(&args[0]) && template_truth(&args[0]);
    TRY(template_charge(render, node, self.string.len * 8));
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    while (at < end) {
        size_t len = pytext_line_end(at, end);
        if (len) {
            TRY(add_part(render, out, line, at + (keeps ? len : 0)));
            line = at + len;
        }
        at += len ? len : pytext_char(at, end);
    }
    return line < end ? add_part(render, out, line, end) : ST_OK;
}

static enum status partition(struct render *render, const struct node *node,
                             const struct value *self, const struct value *by, bool from_end,
                             struct value *out)
{
    TRY(need_string(render, node, by));
    if (by->string.len == 0) {
        return template_fail(render, node, ST_INVALID, "partition() by an empty string");
    }
    struct span text = self->string;
    TRY(template_charge(render, node, text.len * (from_end ? 4 + by->string.len : 4)));
    size_t found = from_end ? pytext_find_last(text, by->string) : pytext_find(text, by->string);
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_TUPLE;
    const uint8_t *end = text.ptr + text.len;
    const uint8_t *cut = found == SIZE_MAX ? (from_end ? text.ptr : end) : text.ptr + found;
    const uint8_t *rest = found == SIZE_MAX ? cut : cut + by->string.len;
    TRY(add_part(render, out, text.ptr, cut));
    TRY(add_part(render, out, cut, rest));
    return add_part(render, out, rest, end);
}

METHOD(partition)
{
    return partition(render, node, &self, &args[0], false, out);
}

METHOD(rpartition)
{
    return partition(render, node, &self, &args[0], true, out);
}

METHOD(join)
{
    struct value_list *list;
    TRY(template_iterate(render, node, &args[0], &list));
    size_t begin = template_text_begin(render);
    for (size_t i = 0; i < list->count; i++) {
        TRY(need_string(render, node, &list->items[i]));
        if (i > 0) {
            TRY(template_print(render, node, &self, false));
        }
        TRY(template_print(render, node, &list->items[i], false));
    }
    return template_text_end(render, node, begin, out);
}

/* ---- strings: search ------------------------------------------------------------------------- */

static enum status find(struct render *render, const struct node *node, const struct value *self,
                        const struct value *part, bool from_end, struct value *out)
{
    TRY(need_string(render, node, part));
    TRY(template_charge(render, node, self->string.len * (from_end ? 4 + part->string.len : 4)));
    size_t at = from_end ? pytext_find_last(self->string, part->string)
                         : pytext_find(self->string, part->string);
    *out = value_int(-1);
    if (at != SIZE_MAX) {
        out->integer = (int64_t)pytext_length(span_of(self->string.ptr, at));
    }
    return ST_OK;
}

METHOD(find)
{
    return find(render, node, &self, &args[0], false, out);
}

METHOD(rfind)
{
    return find(render, node, &self, &args[0], true, out);
}

METHOD(index)
{
    TRY(find(render, node, &self, &args[0], false, out));
    return out->integer >= 0 ? ST_OK
                             : template_fail(render, node, ST_INVALID, "the text has no such part");
}

METHOD(count)
{
    TRY(need_string(render, node, &args[0]));
    TRY(template_charge(render, node, self.string.len * 4));
    if (args[0].string.len == 0) {
        *out = value_int((int64_t)pytext_length(self.string) + 1);
        return ST_OK;
    }
    *out = value_int(0);
    struct span rest = self.string;
    for (size_t at; (at = pytext_find(rest, args[0].string)) != SIZE_MAX; out->integer++) {
        at += args[0].string.len;
        rest = span_of(rest.ptr + at, rest.len - at);
    }
    return ST_OK;
}

/* ---- strings: changes ------------------------------------------------------------------------ */

static enum status change(struct render *render, const struct node *node, const struct value *self,
                          void (*print)(struct span text, struct buf *out), struct value *out)
{
    size_t begin = template_text_begin(render);
    TRY(template_charge(render, node, self->string.len * 16));
    print(self->string, render->out);
    return template_text_end(render, node, begin, out);
}

METHOD(upper)
{
    (void)args;
    return change(render, node, &self, pytext_print_upper, out);
}

METHOD(lower)
{
    (void)args;
    return change(render, node, &self, pytext_print_lower, out);
}

METHOD(title)
{
    (void)args;
    return change(render, node, &self, pytext_print_title, out);
}

METHOD(capitalize)
{
    (void)args;
    return change(render, node, &self, pytext_print_capital, out);
}

/* The old part is empty: the new one goes between all characters. */
static void print_between(struct render *render, struct span text, struct span new, int64_t most)
{
    const uint8_t *at = text.ptr, *end = at + text.len;
    for (int64_t count = 0;; count++) {
        if (most < 0 || count < most) {
            buf_add(render->out, new.ptr, new.len);
        }
        if (at == end || buf_failed(render->out)) {
            return;
        }
        size_t len = pytext_char(at, end);
        buf_add(render->out, at, len);
        at += len;
    }
}

METHOD(replace)
{
    int64_t most = -1;
    struct span rest = self.string, old, new;
    TRY(need_string(render, node, &args[0]));
    TRY(need_string(render, node, &args[1]));
    TRY(need_int(render, node, &args[2], &most));
    TRY(template_charge(render, node, rest.len * 4));
    old = args[0].string;
    new = args[1].string;
    size_t begin = template_text_begin(render);
    if (old.len == 0) {
        print_between(render, rest, new, most);
        return template_text_end(render, node, begin, out);
    }
    for (int64_t count = 0; (most < 0 || count < most) && !buf_failed(render->out); count++) {
        size_t at = pytext_find(rest, old);
        if (at == SIZE_MAX) {
            break;
        }
        buf_add(render->out, rest.ptr, at);
        buf_add(render->out, new.ptr, new.len);
        rest = span_of(rest.ptr + at + old.len, rest.len - at - old.len);
    }
    buf_add(render->out, rest.ptr, rest.len);
    return template_text_end(render, node, begin, out);
}

static enum status all_bytes(const struct value *self, const char *set, struct value *out)
{
    bool is_all = self->string.len > 0;
    for (size_t i = 0; i < self->string.len; i++) {
        is_all &= self->string.ptr[i] && strchr(set, self->string.ptr[i]) != NULL;
    }
    *out = value_bool(is_all);
    return ST_OK;
}

/* Only text in ASCII: digits of other scripts would need Python's tables. */
static enum status is_class(struct render *render, const struct node *node,
                            const struct value *self, const char *set, struct value *out)
{
    for (size_t i = 0; i < self->string.len; i++) {
        if (self->string.ptr[i] > 0x7f) {
            return template_fail(render, node, ST_UNSUPPORTED,
                                 "the class of characters that are not ASCII is not known");
        }
    }
    TRY(template_charge(render, node, self->string.len * 4));
    return all_bytes(self, set, out);
}

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

METHOD(isdigit)
{
    (void)args;
    return is_class(render, node, &self, DIGITS, out);
}

METHOD(isalpha)
{
    (void)args;
    return is_class(render, node, &self, LETTERS, out);
}

METHOD(isalnum)
{
    (void)args;
    return is_class(render, node, &self, DIGITS LETTERS, out);
}

METHOD(isspace)
{
    struct span rest = pytext_strip(self.string, NULL, true, false);
    (void)args;
    *out = value_bool(self.string.len > 0 && rest.len == 0);
    return template_charge(render, node, self.string.len);
}

METHOD(islower)
{
    (void)args;
    *out = value_bool(pytext_is_lower(self.string));
    return template_charge(render, node, self.string.len * 16);
}

METHOD(isupper)
{
    (void)args;
    *out = value_bool(pytext_is_upper(self.string));
    return template_charge(render, node, self.string.len * 16);
}

/* ---- maps ------------------------------------------------------------------------------------ */

METHOD(get)
{
    TRY(template_charge(render, node, self.map->count * 8));
    const struct value *member = template_map_find(self.map, &args[0]);
    *out = member ? *member : is_given(&args[1]) ? args[1] : (struct value){.kind = VALUE_NONE};
    return ST_OK;
}

/* A tuple of the key and the value. */
static bool make_item(struct render *render, const struct value_member *member, struct value *out)
{
    bool is_made = value_list_new(render->arena, out) &&
                   value_list_add(render->arena, out, member->key) &&
                   value_list_add(render->arena, out, member->value);
    out->flags = VALUE_IS_TUPLE;
    return is_made;
}

static enum status view(struct render *render, const struct node *node, const struct value *self,
                        char part, struct value *out)
{
    TRY(template_charge(render, node, self->map->count * 32));
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = VALUE_IS_VIEW;
    for (size_t i = 0; i < self->map->count; i++) {
        const struct value_member *member = &self->map->members[i];
        struct value item = part == 'k' ? member->key : member->value;
        if ((part == 'i' && !make_item(render, member, &item)) ||
            !value_list_add(render->arena, out, item)) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

METHOD(items)
{
    (void)args;
    return view(render, node, &self, 'i', out);
}

METHOD(keys)
{
    (void)args;
    return view(render, node, &self, 'k', out);
}

METHOD(values)
{
    (void)args;
    return view(render, node, &self, 'v', out);
}

/* ---- lists and loops ------------------------------------------------------------------------- */

METHOD(list_count)
{
    *out = value_int(0);
    for (size_t i = 0; i < self.list->count; i++) {
        out->integer += template_same(render, &self.list->items[i], &args[0], 0);
    }
    return template_charge(render, node, 1);
}

METHOD(list_index)
{
    for (size_t i = 0; i < self.list->count; i++) {
        if (template_same(render, &self.list->items[i], &args[0], 0)) {
            *out = value_int((int64_t)i);
            return ST_OK;
        }
    }
    TRY(template_charge(render, node, 1));
    return template_fail(render, node, ST_INVALID, "the list has no such item");
}

METHOD(cycle)
{
    const struct loop *loop = self.object;
    const struct value_list *items = args[0].list;
    if (items->count == 0) {
        return template_fail(render, node, ST_INVALID, "loop.cycle() of no items");
    }
    *out = items->items[loop->at % items->count];
    return ST_OK;
}

METHOD(changed)
{
    struct loop *loop = self.object;
    bool is_same = loop->has_changed && template_same(render, &loop->changed, &args[0], 0);
    loop->has_changed = true;
    loop->changed = args[0];
    *out = value_bool(!is_same);
    return template_charge(render, node, 1);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct builtin of_strings[] = {
    {"strip", method_strip, 0, {"CHARS"}},
    {"lstrip", method_lstrip, 0, {"CHARS"}},
    {"rstrip", method_rstrip, 0, {"CHARS"}},
    {"startswith", method_startswith, 1, {"PREFIX"}},
    {"endswith", method_endswith, 1, {"SUFFIX"}},
    {"removeprefix", method_removeprefix, 1, {"PREFIX"}},
    {"removesuffix", method_removesuffix, 1, {"SUFFIX"}},
    {"split", method_split, 0, {"sep", "maxsplit"}},
    {"rsplit", method_rsplit, 0, {"sep", "maxsplit"}},
    {"splitlines", method_splitlines, 0, {"keepends"}},
    {"partition", method_partition, 1, {"SEP"}},
    {"rpartition", method_rpartition, 1, {"SEP"}},
    {"join", method_join, 1, {"ITERABLE"}},
    {"find", method_find, 1, {"SUB"}},
    {"rfind", method_rfind, 1, {"SUB"}},
    {"index", method_index, 1, {"SUB"}},
    {"count", method_count, 1, {"SUB"}},
    {"upper", method_upper, 0, {0}},
    {"lower", method_lower, 0, {0}},
    {"title", method_title, 0, {0}},
    {"capitalize", method_capitalize, 0, {0}},
    {"replace", method_replace, 2, {"OLD", "NEW", "COUNT"}},
    {"isdigit", method_isdigit, 0, {0}},
    {"isalpha", method_isalpha, 0, {0}},
    {"isalnum", method_isalnum, 0, {0}},
    {"isspace", method_isspace, 0, {0}},
    {"islower", method_islower, 0, {0}},
    {"isupper", method_isupper, 0, {0}},
    {0},
};

static const struct builtin of_maps[] = {
    {"get", method_get, 1, {"KEY", "DEFAULT"}},
    {"items", method_items, 0, {0}},
    {"keys", method_keys, 0, {0}},
    {"values", method_values, 0, {0}},
    {0},
};

static const struct builtin of_lists[] = {
    {"count", method_list_count, 1, {"VALUE"}},
    {"index", method_list_index, 1, {"VALUE"}},
    {0},
};

static const struct builtin of_loops[] = {
    {"cycle", method_cycle, 0, {"*"}},
    {"changed", method_changed, 0, {"*"}},
    {0},
};

static const struct builtin *find_in(const struct builtin *table, struct span name)
{
    for (; table->name; table++) {
        if (span_is(name, table->name)) {
            return table;
        }
    }
    return NULL;
}

const struct builtin *template_method_find(const struct value *self, struct span name)
{
    switch (self->kind) {
    case VALUE_STRING:
        return find_in(of_strings, name);
    case VALUE_MAP:
        return find_in(of_maps, name);
    case VALUE_LIST:
        return self->flags & (VALUE_IS_ITERATOR | VALUE_IS_VIEW) ? NULL : find_in(of_lists, name);
    default:
        return template_is(self, OBJECT_LOOP) ? find_in(of_loops, name) : NULL;
    }
}

bool template_method_is_known(struct span name)
{
    return find_in(of_strings, name) || find_in(of_maps, name) || find_in(of_lists, name) ||
           find_in(of_loops, name);
}

bool template_method_is_refused(const struct value *self, struct span name)
{
    static const char *const strings[] = {"casefold",     "center",     "encode",  "expandtabs",
                                          "format",       "format_map", "isascii", "isdecimal",
                                          "isidentifier", "isnumeric",  "istitle", "isprintable",
                                          "ljust",        "maketrans",  "rindex",  "rjust",
                                          "swapcase",     "translate",  "zfill",   NULL};
    static const char *const maps[] = {"clear",   "copy",       "fromkeys", "pop",
                                       "popitem", "setdefault", "update",   NULL};
    static const char *const lists[] = {"append", "clear",  "copy",    "extend", "insert",
                                        "pop",    "remove", "reverse", "sort",   NULL};
    const char *const *names = self->kind == VALUE_STRING ? strings
                               : self->kind == VALUE_MAP  ? maps
                               : self->kind == VALUE_LIST ? lists
                                                          : NULL;
    for (; names && *names; names++) {
        if (span_is(name, *names)) {
            return true;
        }
    }
    return false;
}
