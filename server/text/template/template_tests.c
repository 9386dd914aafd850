/* SPDX-License-Identifier: MIT */
/* The tests behind "is", as jinja2.tests has them. */
#include "config.h"

#include <math.h>

#include "server/text/template/pytext.h"
#include "server/text/template/template_priv.h"

#define TEST(name)                                                                                 \
    static enum status test_##name(struct render *render, const struct node *node,                 \
                                   struct value self, const struct value *args, struct value *out)

/* A test that looks at the value alone. */
#define SIMPLE(name, expr)                                                                         \
    TEST(name)                                                                                     \
    {                                                                                              \
        (void)render;                                                                              \
        (void)node;                                                                                \
        (void)args;                                                                                \
        *out = value_bool(expr);                                                                   \
        return ST_OK;                                                                              \
    }

SIMPLE(defined, !template_is(&self, OBJECT_UNDEFINED))
SIMPLE(undefined, template_is(&self, OBJECT_UNDEFINED))
SIMPLE(none, self.kind == VALUE_NONE)
SIMPLE(string, self.kind == VALUE_STRING)
SIMPLE(mapping, self.kind == VALUE_MAP)
SIMPLE(boolean, self.kind == VALUE_BOOL)
SIMPLE(yes, self.kind == VALUE_BOOL && self.boolean)
SIMPLE(no, self.kind == VALUE_BOOL && !self.boolean)
SIMPLE(integer, self.kind == VALUE_INT || self.kind == VALUE_LONG)
SIMPLE(float, self.kind == VALUE_DOUBLE)
SIMPLE(number, self.kind == VALUE_INT || self.kind == VALUE_LONG || self.kind == VALUE_DOUBLE ||
                   self.kind == VALUE_BOOL)
SIMPLE(iterable, self.kind == VALUE_STRING || self.kind == VALUE_LIST || self.kind == VALUE_MAP ||
                     template_is(&self, OBJECT_UNDEFINED) || template_is(&self, OBJECT_LOOP))
SIMPLE(sequence,
       self.kind == VALUE_STRING || self.kind == VALUE_MAP ||
           (self.kind == VALUE_LIST && !(self.flags & (VALUE_IS_ITERATOR | VALUE_IS_VIEW))) ||
           template_is(&self, OBJECT_UNDEFINED))
SIMPLE(callable, self.kind == VALUE_OBJECT && self.flags >= OBJECT_UNDEFINED &&
                     self.flags <= OBJECT_METHOD && self.flags != OBJECT_NAMESPACE)
SIMPLE(escaped, self.kind == VALUE_STRING && (self.flags & VALUE_IS_SAFE))

static enum status remainder_is(struct render *render, const struct node *node,
                                const struct value *self, const struct value *by, int64_t want,
                                struct value *out)
{
    const struct value expected = value_int(want);
    struct value rest;
    TRY(template_binary(render, node, '%', self, by, &rest));
    *out = value_bool(template_same(NULL, &rest, &expected, 0));
    return ST_OK;
}

TEST(odd)
{
    const struct value two = value_int(2);
    (void)args;
    return remainder_is(render, node, &self, &two, 1, out);
}

TEST(even)
{
    const struct value two = value_int(2);
    (void)args;
    return remainder_is(render, node, &self, &two, 0, out);
}

TEST(divisibleby)
{
    return remainder_is(render, node, &self, &args[0], 0, out);
}

TEST(eq)
{
    *out = value_bool(template_same(render, &self, &args[0], 0));
    return template_charge(render, node, 1);
}

TEST(ne)
{
    *out = value_bool(!template_same(render, &self, &args[0], 0));
    return template_charge(render, node, 1);
}

static enum status order_is(struct render *render, const struct node *node,
                            const struct value *self, const struct value *other, const int *range,
                            struct value *out)
{
    int order = 0;
    TRY(template_order(render, node, self, other, &order));
    order = (order > 0) - (order < 0);
    *out = value_bool(order >= range[0] && order <= range[1]);
    return ST_OK;
}

TEST(lt)
{
    return order_is(render, node, &self, &args[0], (const int[]){-1, -1}, out);
}

TEST(le)
{
    return order_is(render, node, &self, &args[0], (const int[]){-1, 0}, out);
}

TEST(gt)
{
    return order_is(render, node, &self, &args[0], (const int[]){1, 1}, out);
}

TEST(ge)
{
    return order_is(render, node, &self, &args[0], (const int[]){0, 1}, out);
}

TEST(in)
{
    bool is_in;
    TRY(template_contains(render, node, &args[0], &self, &is_in));
    *out = value_bool(is_in);
    return ST_OK;
}

/* The same object; equal strings and numbers are taken for one. */
TEST(sameas)
{
    bool is_list = self.kind == VALUE_LIST || self.kind == VALUE_MAP;
    bool is_same =
        self.kind == args[0].kind &&
        (is_list ? self.object == args[0].object : template_same(render, &self, &args[0], 0));
    *out = value_bool(is_same);
    return template_charge(render, node, 1);
}

TEST(lower)
{
    struct value text;
    (void)args;
    TRY(template_text(render, node, &self, &text));
    *out = value_bool(pytext_is_lower(text.string));
    return template_charge(render, node, text.string.len * 16);
}

TEST(upper)
{
    struct value text;
    (void)args;
    TRY(template_text(render, node, &self, &text));
    *out = value_bool(pytext_is_upper(text.string));
    return template_charge(render, node, text.string.len * 16);
}

const struct builtin *template_test_find(struct span name)
{
    static const struct builtin tests[] = {
        {"defined", test_defined, 0, {0}},
        {"undefined", test_undefined, 0, {0}},
        {"none", test_none, 0, {0}},
        {"string", test_string, 0, {0}},
        {"mapping", test_mapping, 0, {0}},
        {"iterable", test_iterable, 0, {0}},
        {"sequence", test_sequence, 0, {0}},
        {"boolean", test_boolean, 0, {0}},
        {"true", test_yes, 0, {0}},
        {"false", test_no, 0, {0}},
        {"integer", test_integer, 0, {0}},
        {"float", test_float, 0, {0}},
        {"number", test_number, 0, {0}},
        {"callable", test_callable, 0, {0}},
        {"escaped", test_escaped, 0, {0}},
        {"odd", test_odd, 0, {0}},
        {"even", test_even, 0, {0}},
        {"divisibleby", test_divisibleby, 1, {"num"}},
        {"eq", test_eq, 1, {"OTHER"}},
        {"equalto", test_eq, 1, {"OTHER"}},
        {"==", test_eq, 1, {"OTHER"}},
        {"ne", test_ne, 1, {"OTHER"}},
        {"!=", test_ne, 1, {"OTHER"}},
        {"lt", test_lt, 1, {"OTHER"}},
        {"lessthan", test_lt, 1, {"OTHER"}},
        {"<", test_lt, 1, {"OTHER"}},
        {"le", test_le, 1, {"OTHER"}},
        {"<=", test_le, 1, {"OTHER"}},
        {"gt", test_gt, 1, {"OTHER"}},
        {"greaterthan", test_gt, 1, {"OTHER"}},
        {">", test_gt, 1, {"OTHER"}},
        {"ge", test_ge, 1, {"OTHER"}},
        {">=", test_ge, 1, {"OTHER"}},
        {"in", test_in, 1, {"seq"}},
        {"sameas", test_sameas, 1, {"other"}},
        {"lower", test_lower, 0, {0}},
        {"upper", test_upper, 0, {0}},
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (span_is(name, tests[i].name)) {
            return &tests[i];
        }
    }
    return NULL;
}
