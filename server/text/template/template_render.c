/* SPDX-License-Identifier: MIT */
/* Statements of templates, and the bounds of a rendering. */
#include "config.h"

#include "server/text/template/template_priv.h"

static enum status run_node(struct render *render, const struct node *node);

/* ---- errors and limits ----------------------------------------------------------------------- */

enum status template_fail(struct render *render, const struct node *node, enum status code,
                          const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_setv(render->err, code, fmt, args);
    va_end(args);
    return error_prefix(render->err, "line %u, column %u: ", node->position.line,
                        node->position.column);
}

enum status template_fail_quoting(struct render *render, const struct node *node, enum status code,
                                  const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_setv(render->err, code, fmt, args);
    va_end(args);
    error_hide(render->err);
    return error_prefix(render->err, "line %u, column %u: ", node->position.line,
                        node->position.column);
}

enum status template_no_memory(struct render *render)
{
    return arena_fail(render->arena, "what a template makes", render->err);
}

enum status template_charge(struct render *render, const struct node *node, size_t amount)
{
    uint64_t steps = 1 + amount / 64;
    if (render->steps_left < steps) {
        render->steps_left = 0;
        return template_fail(render, node, ST_TOO_LARGE, "the template takes more than %llu steps",
                             (unsigned long long)render->limits->steps_max);
    }
    render->steps_left -= steps;
    return ST_OK;
}

/* ---- assignments ----------------------------------------------------------------------------- */

static enum status assign(struct render *render, const struct node *target, struct value value);

static enum status assign_all(struct render *render, const struct node *target,
                              const struct value *value)
{
    struct value_list *list;
    size_t count = 0;
    TRY(template_iterate(render, target, value, &list));
    for (const struct node *item = target->items; item; item = item->next) {
        count++;
    }
    if (count != list->count) {
        return template_fail(render, target, ST_INVALID, "%zu values for %zu names", list->count,
                             count);
    }
    count = 0;
    for (const struct node *item = target->items; item; item = item->next) {
        TRY(assign(render, item, list->items[count++]));
    }
    return ST_OK;
}

static enum status assign_attribute(struct render *render, const struct node *target,
                                    struct value value)
{
    struct value self;
    TRY(template_eval(render, target->a, &self));
    if (!template_is(&self, OBJECT_NAMESPACE)) {
        return template_fail(render, target, ST_INVALID,
                             "only attributes of a namespace are set, not of %s",
                             template_type_text(&self));
    }
    if (target->text.ptr[0] == '_') {
        return template_fail(render, target, ST_INVALID,
                             "the attribute '%.*s' of a namespace begins with '_'",
                             SPAN_SHORT(target->text));
    }
    const struct value key = value_string(target->text);
    struct value map = {.kind = VALUE_MAP, .map = self.object};
    TRY(template_charge(render, target, map.map->count * 8));
    struct value *old = (struct value *)(uintptr_t)template_map_find(map.map, &key);
    if (old) {
        *old = value;
        return ST_OK;
    }
    return value_map_add(render->arena, &map, key, value) ? ST_OK : template_no_memory(render);
}

static enum status assign(struct render *render, const struct node *target, struct value value)
{
    if (target->kind == NODE_TUPLE) {
        return assign_all(render, target, &value);
    }
    if (target->kind == NODE_ATTRIBUTE) {
        return assign_attribute(render, target, value);
    }
    return template_scope_set(render, render->scope, target->text, value);
}

static enum status run_set(struct render *render, const struct node *node)
{
    struct value value;
    TRY(template_eval(render, node->b, &value));
    return assign(render, node->a, value);
}

/* ---- blocks with names of their own ---------------------------------------------------------- */

static enum status run_scope(struct render *render, const struct node *items)
{
    struct scope *outer = render->scope;
    render->scope = template_scope_new(render, outer);
    if (!render->scope) {
        render->scope = outer;
        return template_no_memory(render);
    }
    enum status status = template_run(render, items);
    render->scope = outer;
    return status;
}

/* The text of the block's items, through its filters. */
static enum status capture(struct render *render, const struct node *node, struct value *out)
{
    struct value outer = render->captured;
    size_t begin = template_text_begin(render);
    TRY(run_scope(render, node->items));
    TRY(template_text_end(render, node, begin, &render->captured));
    TRY(template_eval(render, node->b, out));
    render->captured = outer;
    return ST_OK;
}

static enum status run_set_block(struct render *render, const struct node *node)
{
    struct value value;
    TRY(capture(render, node, &value));
    return assign(render, node->a, value);
}

static enum status run_filter_block(struct render *render, const struct node *node)
{
    struct value value;
    TRY(capture(render, node, &value));
    return template_print(render, node, &value, false);
}

/* The values see the names outside, not each other. */
static enum status run_with(struct render *render, const struct node *node)
{
    struct scope *outer = render->scope, *inner = template_scope_new(render, outer);
    if (!inner) {
        return template_no_memory(render);
    }
    for (const struct node *setting = node->others; setting; setting = setting->next) {
        struct value value;
        TRY(template_eval(render, setting->b, &value));
        render->scope = inner;
        TRY(assign(render, setting->a, value));
        render->scope = outer;
    }
    render->scope = inner;
    enum status status = template_run(render, node->items);
    render->scope = outer;
    return status;
}

static enum status make_macro(struct render *render, const struct node *node, struct value *out)
{
    struct macro *macro = arena_alloc(render->arena, sizeof(*macro));
    if (!macro) {
        return template_no_memory(render);
    }
    *macro = (struct macro){node, render->scope};
    *out = (struct value){.kind = VALUE_OBJECT, .flags = OBJECT_MACRO, .object = macro};
    return ST_OK;
}

static enum status run_macro_definition(struct render *render, const struct node *node)
{
    struct value value;
    TRY(make_macro(render, node, &value));
    return template_scope_set(render, render->scope, node->text, value);
}

static enum status run_call_block(struct render *render, const struct node *node)
{
    struct value caller, value;
    TRY(make_macro(render, node->a, &caller));
    TRY(template_call_with(render, node->b, caller, &value));
    return template_print(render, node, &value, false);
}

/* ---- conditions and loops -------------------------------------------------------------------- */

static enum status run_if(struct render *render, const struct node *node)
{
    for (const struct node *branch = node->items; branch; branch = branch->next) {
        struct value test = value_bool(true);
        if (branch->a) {
            TRY(template_eval(render, branch->a, &test));
        }
        if (template_truth(&test)) {
            return template_run(render, branch->items);
        }
    }
    return ST_OK;
}

/* Sets the loop's names in a scope of their own. */
static enum status enter_item(struct render *render, const struct node *node, struct scope *outer,
                              struct value item)
{
    struct scope *scope = template_scope_new(render, outer);
    if (!scope) {
        return template_no_memory(render);
    }
    render->scope = scope;
    return assign(render, node->a, item);
}

static enum status filter_items(struct render *render, const struct node *node, struct scope *outer,
                                struct value_list **list)
{
    struct value kept, test;
    if (!value_list_new(render->arena, &kept)) {
        return template_no_memory(render);
    }
    for (size_t i = 0; i < (*list)->count; i++) {
        TRY(enter_item(render, node, outer, (*list)->items[i]));
        TRY(template_eval(render, node->c, &test));
        if (template_truth(&test) && !value_list_add(render->arena, &kept, (*list)->items[i])) {
            return template_no_memory(render);
        }
    }
    *list = kept.list;
    render->scope = outer;
    return ST_OK;
}

static enum status run_items(struct render *render, const struct node *node, struct scope *outer,
                             struct loop *loop)
{
    const struct value value = {.kind = VALUE_OBJECT, .flags = OBJECT_LOOP, .object = loop};
    for (; loop->at < loop->list->count; loop->at++) {
        TRY(template_charge(render, node, 1));
        TRY(enter_item(render, node, outer, loop->list->items[loop->at]));
        TRY(template_scope_set(render, render->scope, span_str("loop"), value));
        TRY(template_run(render, node->items));
        if (render->flow == FLOW_BREAK) {
            render->flow = FLOW_ON;
            break;
        }
        render->flow = FLOW_ON;
    }
    return ST_OK;
}

static enum status run_for(struct render *render, const struct node *node)
{
    struct scope *outer = render->scope;
    struct value walked;
    struct value_list *list;
    TRY(template_eval(render, node->b, &walked));
    TRY(template_iterate(render, node, &walked, &list));
    if (node->c) {
        TRY(filter_items(render, node, outer, &list));
    }
    struct loop *loop = arena_alloc(render->arena, sizeof(*loop));
    if (!loop) {
        return template_no_memory(render);
    }
    *loop = (struct loop){.list = list};
    TRY(run_items(render, node, outer, loop));
    render->scope = outer;
    return list->count == 0 && node->others ? run_scope(render, node->others) : ST_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum status run_output(struct render *render, const struct node *node)
{
    struct value value;
    TRY(template_eval(render, node->a, &value));
    return template_print(render, node, &value, false);
}

static enum status run_text(struct render *render, const struct node *node)
{
    const struct value value = value_string(node->text);
    return template_print(render, node, &value, false);
}

static enum status run_node(struct render *render, const struct node *node)
{
    switch (node->kind) {
    case NODE_TEXT:
        return run_text(render, node);
    case NODE_OUTPUT:
        return run_output(render, node);
    case NODE_IF:
        return run_if(render, node);
    case NODE_FOR:
        return run_for(render, node);
    case NODE_SET:
        return run_set(render, node);
    case NODE_SET_BLOCK:
        return run_set_block(render, node);
    case NODE_FILTER_BLOCK:
        return run_filter_block(render, node);
    case NODE_WITH:
        return run_with(render, node);
    case NODE_SCOPE:
        return run_scope(render, node->items);
    case NODE_MACRO:
        return run_macro_definition(render, node);
    case NODE_CALL_BLOCK:
        return run_call_block(render, node);
    case NODE_BREAK:
        render->flow = FLOW_BREAK;
        return ST_OK;
    default: /* NODE_CONTINUE */
        render->flow = FLOW_CONTINUE;
        return ST_OK;
    }
}

enum status template_run(struct render *render, const struct node *items)
{
    if (items && render->stack_depth >= TEMPLATE_STACK_MAX) {
        return template_fail(render, items, ST_TOO_LARGE, "statements are nested too deep");
    }
    render->stack_depth++;
    enum status status = ST_OK;
    for (const struct node *node = items; node && status == ST_OK && render->flow == FLOW_ON;
         node = node->next) {
        status = template_charge(render, node, 1);
        status = status == ST_OK ? run_node(render, node) : status;
    }
    render->stack_depth--;
    return status;
}

enum status template_render(const struct template *template, const struct value *context,
                            const struct template_limits *limits, struct arena *arena,
                            struct buf *out, struct error *err)
{
    struct render render = {.context = context,
                            .limits = limits,
                            .arena = arena,
                            .out = out,
                            .out_start = out->len,
                            .err = err,
                            .steps_left = limits->steps_max};
    if (context->kind != VALUE_MAP) {
        return error_set(err, ST_INVALID, "the context of a template is a map, got %s",
                         value_kind_text(context->kind));
    }
    render.scope = template_scope_new(&render, NULL);
    if (!render.scope) {
        return template_no_memory(&render);
    }
    return template_run(&render, template->body);
}
