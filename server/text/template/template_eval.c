/* SPDX-License-Identifier: MIT */
/* Expressions of templates, evaluated over the tree. */
#include "config.h"

#include <string.h>

#include "base/array.h"
#include "server/text/template/template_priv.h"

/* ---- names ----------------------------------------------------------------------------------- */

static struct variable *find_variable(struct scope *scope, struct span name)
{
    for (size_t i = 0; i < scope->count; i++) {
        if (span_equal(scope->variables[i].name, name)) {
            return &scope->variables[i];
        }
    }
    return NULL;
}

struct scope *template_scope_new(struct render *render, struct scope *parent)
{
    struct scope *scope = arena_alloc(render->arena, sizeof(*scope));
    if (scope) {
        scope->parent = parent;
    }
    return scope;
}

enum status template_scope_set(struct render *render, struct scope *scope, struct span name,
                               struct value value)
{
    struct variable *variable = find_variable(scope, name);
    if (variable) {
        variable->value = value;
        return ST_OK;
    }
    if (!ARENA_ROOM(render->arena, scope->variables, scope->capacity, scope->count + 1)) {
        return template_no_memory(render);
    }
    scope->variables[scope->count++] = (struct variable){name, value};
    return ST_OK;
}

static enum status eval_name(struct render *render, const struct node *node, struct value *out)
{
    size_t passed = 0;
    for (struct scope *scope = render->scope; scope; scope = scope->parent) {
        const struct variable *variable = find_variable(scope, node->text);
        passed += scope->count;
        if (variable) {
            *out = variable->value;
            return template_charge(render, node, passed);
        }
    }
    TRY(template_charge(render, node, (passed + render->context->map->count) * 4));
    const struct value *member = value_map_get(render->context, node->text);
    const struct builtin *function = member ? NULL : template_function_find(node->text);
    if (member) {
        *out = *member;
    } else if (function) {
        *out = (struct value){
            .kind = VALUE_OBJECT, .flags = OBJECT_FUNCTION, .object = (void *)(uintptr_t)function};
    } else {
        *out = template_undefined(render, node->text);
    }
    return ST_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum status add_argument(struct render *render, struct arguments *to, struct span name,
                                struct value value)
{
    if (!ARENA_ROOM(render->arena, to->items, to->capacity, to->count + 1)) {
        return template_no_memory(render);
    }
    to->items[to->count++] = (struct argument){name, value};
    return ST_OK;
}

/* A name comes once. */
static enum status add_named(struct render *render, const struct node *node, struct arguments *to,
                             struct span name, struct value value)
{
    TRY(template_charge(render, node, to->count * 8));
    for (size_t i = 0; i < to->count; i++) {
        if (span_equal(to->items[i].name, name)) {
            return template_fail_quoting(render, node, ST_INVALID,
                                         "two values for the argument '%.*s'", SPAN_SHORT(name));
        }
    }
    return add_argument(render, to, name, value);
}

/* Arguments from a list. */
static enum status add_list(struct render *render, const struct node *node,
                            const struct value *value, struct arguments *to)
{
    struct value_list *list;
    TRY(template_iterate(render, node, value, &list));
    TRY(template_charge(render, node, list->count * 8));
    for (size_t i = 0; i < list->count; i++) {
        TRY(add_argument(render, to, span_of(NULL, 0), list->items[i]));
    }
    return ST_OK;
}

/* Arguments with names, from a map. */
static enum status add_map(struct render *render, const struct node *node,
                           const struct value *value, struct arguments *to)
{
    if (value->kind != VALUE_MAP) {
        return template_fail(render, node, ST_INVALID, "arguments by '**' are a map, not %s",
                             template_type_text(value));
    }
    for (size_t i = 0; i < value->map->count; i++) {
        const struct value_member *member = &value->map->members[i];
        if (member->key.kind != VALUE_STRING || member->key.string.len == 0) {
            return template_fail(render, node, ST_INVALID, "names of arguments are texts");
        }
        TRY(add_named(render, node, to, member->key.string, member->value));
    }
    return ST_OK;
}

static enum status eval_argument(struct render *render, const struct node *item,
                                 struct arguments *to)
{
    struct value value;
    bool is_plain = item->kind != NODE_NAMED && item->kind != NODE_STAR && item->kind != NODE_STARS;
    TRY(template_eval(render, is_plain ? item : item->a, &value));
    if (item->kind == NODE_STAR) {
        return add_list(render, item, &value, to);
    }
    if (item->kind == NODE_STARS) {
        return add_map(render, item, &value, to);
    }
    return is_plain ? add_argument(render, to, span_of(NULL, 0), value)
                    : add_named(render, item, to, item->text, value);
}

/* Those without a name are before the others. */
static enum status eval_arguments(struct render *render, const struct node *node,
                                  struct arguments *out)
{
    *out = (struct arguments){.count = 0};
    for (int are_named = 0; are_named < 2; are_named++) {
        for (const struct node *item = node->items; item; item = item->next) {
            if ((item->kind == NODE_NAMED || item->kind == NODE_STARS) == are_named) {
                TRY(eval_argument(render, item, out));
            }
        }
    }
    return ST_OK;
}

static const struct node *find_parameter(const struct node *macro, const struct argument *argument,
                                         size_t position)
{
    const struct node *parameter = macro->others;
    for (size_t i = 0; parameter; i++, parameter = parameter->next) {
        if (argument->name.len ? span_equal(parameter->text, argument->name) : i == position) {
            break;
        }
    }
    return parameter;
}

/* The special names of a macro, as far as its body has them: "caller" is undefined unless it is
 * given, "varargs" has the arguments that are left, "kwargs" those with names. */
struct specials {
    struct value caller, varargs, kwargs;
};

static enum status make_specials(struct render *render, struct specials *out)
{
    out->caller = template_undefined(render, span_str("caller"));
    if (!value_list_new(render->arena, &out->varargs) ||
        !value_map_new(render->arena, &out->kwargs)) {
        return template_no_memory(render);
    }
    out->varargs.flags = VALUE_IS_TUPLE;
    return ST_OK;
}

/* An argument without a parameter. False in |*out|: the macro takes none such. */
static enum status bind_special(struct render *render, const struct node *node,
                                const struct macro *macro, const struct argument *argument,
                                struct specials *specials, bool *out)
{
    bool is_caller = span_is(argument->name, "caller");
    bool is_good = true;
    *out = true;
    if (is_caller && macro->node->op & MACRO_CALLER) {
        specials->caller = argument->value;
    } else if (argument->name.len == 0 && macro->node->op & MACRO_VARARGS) {
        is_good = value_list_add(render->arena, &specials->varargs, argument->value);
    } else if (argument->name.len > 0 && macro->node->op & MACRO_KWARGS) {
        TRY(template_charge(render, node, specials->kwargs.map->count * 8));
        is_good = value_map_add(render->arena, &specials->kwargs, value_string(argument->name),
                                argument->value);
    } else {
        *out = false;
    }
    return is_good ? ST_OK : template_no_memory(render);
}

static enum status bind_arguments(struct render *render, const struct node *node,
                                  const struct macro *macro, const struct arguments *arguments,
                                  struct specials *specials)
{
    for (size_t i = 0; i < arguments->count; i++) {
        const struct argument *argument = &arguments->items[i];
        const struct node *parameter = find_parameter(macro->node, argument, i);
        bool is_taken = parameter && !find_variable(render->scope, parameter->text);
        if (is_taken) {
            TRY(template_scope_set(render, render->scope, parameter->text, argument->value));
        } else {
            TRY(bind_special(render, node, macro, argument, specials, &is_taken));
        }
        if (!is_taken) {
            return template_fail(render, node, ST_INVALID,
                                 "the macro '%.*s' has no parameter for argument %zu",
                                 SPAN_SHORT(macro->node->text), i + 1);
        }
    }
    return ST_OK;
}

/* Sets the special names that no parameter has. */
static enum status set_specials(struct render *render, const struct macro *macro,
                                const struct specials *specials)
{
    const struct {
        const char *name;
        const struct value *value;
    } names[] = {{"caller", &specials->caller},
                 {"varargs", &specials->varargs},
                 {"kwargs", &specials->kwargs}};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct span name = span_str(names[i].name);
        if (macro->node->op >> i & 1 && !find_variable(render->scope, name)) {
            TRY(template_scope_set(render, render->scope, name, *names[i].value));
        }
    }
    return ST_OK;
}

/* Sets the parameters in render->scope, the macro's own. */
static enum status bind_parameters(struct render *render, const struct node *node,
                                   const struct macro *macro, const struct arguments *arguments)
{
    struct specials specials;
    TRY(make_specials(render, &specials));
    TRY(bind_arguments(render, node, macro, arguments, &specials));
    for (const struct node *item = macro->node->others; item; item = item->next) {
        struct value value;
        if (find_variable(render->scope, item->text)) {
            continue;
        }
        value = template_undefined(render, item->text);
        if (item->a) {
            TRY(template_eval(render, item->a, &value));
        }
        TRY(template_scope_set(render, render->scope, item->text, value));
    }
    return set_specials(render, macro, &specials);
}

static enum status run_macro(struct render *render, const struct node *node,
                             const struct macro *macro, const struct arguments *arguments,
                             struct value *out)
{
    size_t begin = template_text_begin(render);
    render->scope = template_scope_new(render, macro->scope);
    if (!render->scope) {
        return template_no_memory(render);
    }
    TRY(bind_parameters(render, node, macro, arguments));
    TRY(template_run(render, macro->node->items));
    return template_text_end(render, node, begin, out);
}

static enum status call_macro(struct render *render, const struct node *node,
                              const struct macro *macro, const struct arguments *arguments,
                              struct value *out)
{
    struct scope *scope = render->scope;
    struct value captured = render->captured;
    if (render->macro_depth == render->limits->depth_max) {
        return template_fail(render, node, ST_TOO_LARGE, "more than %u macros call each other",
                             render->limits->depth_max);
    }
    render->macro_depth++;
    enum status status = run_macro(render, node, macro, arguments, out);
    render->macro_depth--;
    render->captured = captured;
    render->scope = scope;
    return status;
}

static enum status call_value(struct render *render, const struct node *node, struct value callee,
                              const struct arguments *arguments, struct value *out)
{
    if (template_is(&callee, OBJECT_UNDEFINED)) {
        return template_undefined_fail(render, node, &callee);
    }
    if (template_is(&callee, OBJECT_MACRO)) {
        return call_macro(render, node, callee.object, arguments, out);
    }
    if (template_is(&callee, OBJECT_FUNCTION)) {
        return template_call_builtin(render, node, callee.object, callee, arguments, out);
    }
    if (template_is(&callee, OBJECT_METHOD)) {
        const struct method *method = callee.object;
        return template_call_builtin(render, node, method->builtin, method->self, arguments, out);
    }
    return template_fail(render, node, ST_INVALID, "%s cannot be called",
                         template_type_text(&callee));
}

static enum status eval_call(struct render *render, const struct node *node, struct value *out)
{
    struct value callee;
    struct arguments arguments;
    TRY(template_eval(render, node->a, &callee));
    TRY(eval_arguments(render, node, &arguments));
    return call_value(render, node, callee, &arguments, out);
}

enum status template_call_with(struct render *render, const struct node *node, struct value caller,
                               struct value *out)
{
    struct value callee;
    struct arguments arguments;
    TRY(template_eval(render, node->a, &callee));
    TRY(eval_arguments(render, node, &arguments));
    TRY(add_argument(render, &arguments, span_str("caller"), caller));
    return call_value(render, node, callee, &arguments, out);
}

static enum status eval_builtin(struct render *render, const struct node *node, struct value *out)
{
    struct value self;
    struct arguments arguments;
    TRY(template_eval(render, node->a, &self));
    TRY(eval_arguments(render, node, &arguments));
    return template_call_builtin(render, node, node->builtin, self, &arguments, out);
}

/* ---- literals -------------------------------------------------------------------------------- */

static enum status eval_list(struct render *render, const struct node *node, struct value *out)
{
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = node->kind == NODE_TUPLE ? VALUE_IS_TUPLE : 0;
    for (const struct node *item = node->items; item; item = item->next) {
        struct value value;
        TRY(template_eval(render, item, &value));
        if (!value_list_add(render->arena, out, value)) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

static enum status eval_map(struct render *render, const struct node *node, struct value *out)
{
    if (!value_map_new(render->arena, out)) {
        return template_no_memory(render);
    }
    for (const struct node *pair = node->items; pair; pair = pair->next) {
        struct value key, value;
        TRY(template_eval(render, pair->a, &key));
        TRY(template_eval(render, pair->b, &value));
        if (key.kind > VALUE_STRING) {
            return template_fail(render, pair, ST_INVALID, "%s is no key of a map",
                                 template_type_text(&key));
        }
        TRY(template_charge(render, pair, out->map->count * 8));
        struct value *old = (struct value *)(uintptr_t)template_map_find(out->map, &key);
        if (old) {
            *old = value;
        } else if (!value_map_add(render->arena, out, key, value)) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static enum status compare(struct render *render, const struct node *node, uint16_t op,
                           const struct value *a, const struct value *b, bool *out)
{
    int order = 0;
    switch (op) {
    case OP2('=', '='):
    case OP2('!', '='):
        *out = template_same(render, a, b, 0) == (op == OP2('=', '='));
        return template_charge(render, node, 1);
    case OP_IN:
        return template_contains(render, node, b, a, out);
    case OP_NOT_IN:
        TRY(template_contains(render, node, b, a, out));
        *out = !*out;
        return ST_OK;
    default:
        break;
    }
    TRY(template_order(render, node, a, b, &order));
    *out = op == '<'             ? order < 0
           : op == '>'           ? order > 0
           : op == OP2('<', '=') ? order <= 0
                                 : order >= 0;
    return ST_OK;
}

static enum status eval_comparison(struct render *render, const struct node *node,
                                   struct value *out)
{
    struct value left, right;
    bool is_true = true;
    TRY(template_eval(render, node->a, &left));
    for (const struct node *operand = node->items; operand && is_true; operand = operand->next) {
        TRY(template_eval(render, operand->a, &right));
        TRY(compare(render, operand, operand->op, &left, &right, &is_true));
        left = right;
    }
    *out = value_bool(is_true);
    return ST_OK;
}

static enum status eval_concat(struct render *render, const struct node *node, struct value *out)
{
    size_t begin = template_text_begin(render);
    for (const struct node *item = node->items; item; item = item->next) {
        struct value value;
        TRY(template_eval(render, item, &value));
        TRY(template_print(render, item, &value, false));
    }
    return template_text_end(render, node, begin, out);
}

static enum status eval_logic(struct render *render, const struct node *node, struct value *out)
{
    TRY(template_eval(render, node->a, out));
    return template_truth(out) == (node->kind == NODE_AND) ? template_eval(render, node->b, out)
                                                           : ST_OK;
}

static enum status eval_condition(struct render *render, const struct node *node, struct value *out)
{
    struct value test;
    TRY(template_eval(render, node->a, &test));
    if (template_truth(&test)) {
        return template_eval(render, node->b, out);
    }
    if (node->c) {
        return template_eval(render, node->c, out);
    }
    *out = template_undefined(render, span_of(NULL, 0));
    return ST_OK;
}

static enum status eval_sign(struct render *render, const struct node *node, struct value *out)
{
    struct value value;
    const struct value zero = value_int(0), minus = value_double(-1);
    TRY(template_eval(render, node->a, &value));
    if (node->kind == NODE_NEGATIVE && value.kind == VALUE_DOUBLE) {
        return template_binary(render, node, '*', &minus, &value, out);
    }
    return template_binary(render, node, node->kind == NODE_NEGATIVE ? '-' : '+', &zero, &value,
                           out);
}

static enum status eval_binary(struct render *render, const struct node *node, struct value *out)
{
    struct value left, right;
    TRY(template_eval(render, node->a, &left));
    TRY(template_eval(render, node->b, &right));
    return template_binary(render, node, node->op, &left, &right, out);
}

/* ---- subscripts ------------------------------------------------------------------------------ */

static enum status eval_subscript(struct render *render, const struct node *node, struct value *out)
{
    struct value self, key;
    TRY(template_eval(render, node->a, &self));
    TRY(template_eval(render, node->b, &key));
    return template_item(render, node, &self, &key, out);
}

static enum status eval_slice(struct render *render, const struct node *node, struct value *out)
{
    const struct node *const nodes[3] = {node->b, node->c, node->d};
    struct value self, bounds[3] = {0};
    TRY(template_eval(render, node->a, &self));
    for (int i = 0; i < 3; i++) {
        if (nodes[i]) {
            TRY(template_eval(render, nodes[i], &bounds[i]));
        }
    }
    return template_slice(render, node, &self, bounds, out);
}

static enum status eval_attribute(struct render *render, const struct node *node, struct value *out)
{
    struct value self;
    TRY(template_eval(render, node->a, &self));
    return template_attribute(render, node, &self, node->text, out);
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum status eval_node(struct render *render, const struct node *node, struct value *out)
{
    switch (node->kind) {
    case NODE_CONSTANT:
        *out = node->constant;
        return ST_OK;
    case NODE_NAME:
        return eval_name(render, node, out);
    case NODE_CAPTURED:
        *out = render->captured;
        return ST_OK;
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_list(render, node, out);
    case NODE_MAP:
        return eval_map(render, node, out);
    case NODE_CONDITION:
        return eval_condition(render, node, out);
    case NODE_OR:
    case NODE_AND:
        return eval_logic(render, node, out);
    case NODE_NOT:
        TRY(template_eval(render, node->a, out));
        *out = value_bool(!template_truth(out));
        return ST_OK;
    case NODE_COMPARE:
        return eval_comparison(render, node, out);
    case NODE_BINARY:
        return eval_binary(render, node, out);
    case NODE_CONCAT:
        return eval_concat(render, node, out);
    case NODE_NEGATIVE:
    case NODE_POSITIVE:
        return eval_sign(render, node, out);
    case NODE_ATTRIBUTE:
        return eval_attribute(render, node, out);
    case NODE_SUBSCRIPT:
        return eval_subscript(render, node, out);
    case NODE_SLICE:
        return eval_slice(render, node, out);
    case NODE_CALL:
        return eval_call(render, node, out);
    default: /* NODE_FILTER, NODE_TEST */
        return eval_builtin(render, node, out);
    }
}

enum status template_eval(struct render *render, const struct node *node, struct value *out)
{
    TRY(template_charge(render, node, 1));
    if (render->stack_depth >= TEMPLATE_STACK_MAX) {
        return template_fail(render, node, ST_TOO_LARGE, "an expression is nested too deep");
    }
    render->stack_depth++;
    enum status status = eval_node(render, node, out);
    render->stack_depth--;
    return status;
}
