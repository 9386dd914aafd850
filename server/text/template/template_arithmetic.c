/* SPDX-License-Identifier: MIT */
/* The binary operators of templates, as Python computes them; integers are of 64 bits. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "server/text/template/template_priv.h"

static enum status overflow(struct render *render, const struct node *node)
{
    return template_fail(render, node, ST_TOO_LARGE, "a number is beyond 64 bits");
}

static enum status refuse(struct render *render, const struct node *node, uint16_t op,
                          const struct value *a, const struct value *b)
{
    const struct value *undefined = template_is(a, OBJECT_UNDEFINED)   ? a
                                    : template_is(b, OBJECT_UNDEFINED) ? b
                                                                       : NULL;
    char text[3] = {(char)(op > 0xff ? op >> 8 : op), (char)(op > 0xff ? op & 0xff : 0), 0};
    if (undefined) {
        return template_undefined_fail(render, node, undefined);
    }
    if (op == '%' && a->kind == VALUE_STRING) {
        return template_fail(render, node, ST_UNSUPPORTED, "'%%' on a string is not supported");
    }
    return template_fail(render, node, ST_INVALID, "'%s' of %s and %s", text, template_type_text(a),
                         template_type_text(b));
}

static bool power(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) && !mul_i64(result, base, &result)) {
            return false;
        }
        exponent >>= 1;
        if (exponent > 0 && !mul_i64(base, base, &base)) {
            return false;
        }
    }
    *out = result;
    return true;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static enum status of_ints(struct render *render, const struct node *node, uint16_t op, int64_t a,
                           int64_t b, struct value *out)
{
    *out = value_int(0);
    bool is_division = op == '/' || op == '%' || op == OP2('/', '/');
    if (is_division && b == 0) {
        return template_fail(render, node, ST_INVALID, "a division by zero");
    }
    if (is_division && a == INT64_MIN && b == -1) {
        return overflow(render, node);
    }
    switch (op) {
    case '+':
        return add_i64(a, b, &out->integer) ? ST_OK : overflow(render, node);
    case '-':
        return sub_i64(a, b, &out->integer) ? ST_OK : overflow(render, node);
    case '*':
        return mul_i64(a, b, &out->integer) ? ST_OK : overflow(render, node);
    case '/':
        *out = value_double((double)a / (double)b);
        return ST_OK;
    case '%':
        out->integer = a - floor_divide(a, b) * b;
        return ST_OK;
    case OP2('/', '/'):
        out->integer = floor_divide(a, b);
        return ST_OK;
    default:
        return power(a, b, &out->integer) ? ST_OK : overflow(render, node);
    }
}

/* Python's float % and //: the remainder has the sign of the divisor. */
static double float_modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest != 0) {
        return (b < 0) != (rest < 0) ? rest + b : rest;
    }
    return copysign(0.0, b);
}

static double float_floor_divide(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    quotient -= rest != 0 && (b < 0) != (rest < 0);
    if (quotient == 0) {
        return copysign(0.0, a / b);
    }
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static enum status of_doubles(struct render *render, const struct node *node, uint16_t op, double a,
                              double b, struct value *out)
{
    bool is_division = op == '/' || op == '%' || op == OP2('/', '/');
    *out = value_double(0);
    if ((is_division && b == 0) || (op == OP2('*', '*') && a == 0 && b < 0)) {
        return template_fail(render, node, ST_INVALID, "a division by zero");
    }
    switch (op) {
    case '+':
        out->number = a + b;
        return ST_OK;
    case '-':
        out->number = a - b;
        return ST_OK;
    case '*':
        out->number = a * b;
        return ST_OK;
    case '/':
        out->number = a / b;
        return ST_OK;
    case '%':
        out->number = float_modulo(a, b);
        return ST_OK;
    case OP2('/', '/'):
        out->number = float_floor_divide(a, b);
        return ST_OK;
    default:
        out->number = pow(a, b);
        if (!isfinite(out->number) && isfinite(a) && isfinite(b)) {
            return template_fail(render, node, ST_INVALID, "a power has no finite value");
        }
        return ST_OK;
    }
}

static enum status join(struct render *render, const struct node *node, const struct value *a,
                        const struct value *b, struct value *out)
{
    if (a->kind == VALUE_STRING) {
        size_t begin = template_text_begin(render);
        buf_add(render->out, a->string.ptr, a->string.len);
        buf_add(render->out, b->string.ptr, b->string.len);
        return template_text_end(render, node, begin, out);
    }
    const struct value_list *const both[] = {a->list, b->list};
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = a->flags;
    for (int part = 0; part < 2; part++) {
        TRY(template_charge(render, node, both[part]->count * 16));
        for (size_t i = 0; i < both[part]->count; i++) {
            if (!value_list_add(render->arena, out, both[part]->items[i])) {
                return template_no_memory(render);
            }
        }
    }
    return ST_OK;
}

/* "ab" * 3, [0] * 3 */
static enum status repeat(struct render *render, const struct node *node, const struct value *self,
                          int64_t times, struct value *out)
{
    size_t size = self->kind == VALUE_STRING ? self->string.len : self->list->count * 16, total;
    size_t count = times > 0 ? (size_t)times : 0;
    if (!mul_size(size, count, &total) || total > render->limits->output_max) {
        return template_fail(render, node, ST_TOO_LARGE, "a repetition has more than %zu bytes",
                             render->limits->output_max);
    }
    TRY(template_charge(render, node, total));
    count = size ? count : 0;
    if (self->kind == VALUE_STRING) {
        size_t begin = template_text_begin(render);
        for (size_t i = 0; i < count; i++) {
            buf_add(render->out, self->string.ptr, self->string.len);
        }
        return template_text_end(render, node, begin, out);
    }
    if (!value_list_new(render->arena, out)) {
        return template_no_memory(render);
    }
    out->flags = self->flags;
    for (size_t i = 0; i < count * self->list->count; i++) {
        if (!value_list_add(render->arena, out, self->list->items[i % self->list->count])) {
            return template_no_memory(render);
        }
    }
    return ST_OK;
}

static bool is_sequence(const struct value *value)
{
    return value->kind == VALUE_STRING ||
           (value->kind == VALUE_LIST && !(value->flags & ~(uint32_t)VALUE_IS_TUPLE));
}

enum status template_binary(struct render *render, const struct node *node, uint16_t op,
                            const struct value *a, const struct value *b, struct value *out)
{
    int64_t one, two;
    double x, y;
    bool are_ints = template_as_int(a, &one) && template_as_int(b, &two);
    if ((a->kind == VALUE_LONG && (b->kind == VALUE_LONG || template_as_double(b, &y))) ||
        (b->kind == VALUE_LONG && template_as_double(a, &x))) {
        return overflow(render, node);
    }
    if (are_ints && !(op == OP2('*', '*') && two < 0)) {
        return of_ints(render, node, op, one, two, out);
    }
    if (template_as_double(a, &x) && template_as_double(b, &y)) {
        return of_doubles(render, node, op, x, y, out);
    }
    if (op == '+' && is_sequence(a) && a->kind == b->kind &&
        (a->kind == VALUE_STRING || a->flags == b->flags)) {
        return join(render, node, a, b, out);
    }
    if (op == '*' && is_sequence(a) && template_as_int(b, &two)) {
        return repeat(render, node, a, two, out);
    }
    if (op == '*' && is_sequence(b) && template_as_int(a, &one)) {
        return repeat(render, node, b, one, out);
    }
    return refuse(render, node, op, a, b);
}
