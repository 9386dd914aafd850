/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/scalar.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

struct operands {
    const struct rt_scalar *args;
    struct rt_scalar *out;
    struct error *err;
};

typedef enum status scalar_f(const struct operands *o);

struct rt_scalar rt_scalar_of_double(double value)
{
    struct rt_scalar scalar = {.kind = RT_FLOAT};
    memcpy(&scalar.number, &value, sizeof(value));
    return scalar;
}

double rt_scalar_to_double(struct rt_scalar scalar)
{
    double value;
    if (scalar.kind != RT_FLOAT) {
        return (double)scalar.number;
    }
    memcpy(&value, &scalar.number, sizeof(value));
    return value;
}

static double number(const struct operands *o, uint32_t i)
{
    return rt_scalar_to_double(o->args[i]);
}

static int64_t integer(const struct operands *o, uint32_t i)
{
    return o->args[i].number;
}

static bool has_float(const struct operands *o)
{
    return o->args[0].kind == RT_FLOAT || o->args[1].kind == RT_FLOAT;
}

static enum status give_int(const struct operands *o, int64_t value)
{
    *o->out = (struct rt_scalar){RT_INT, value};
    return ST_OK;
}

static enum status give_bool(const struct operands *o, bool value)
{
    *o->out = (struct rt_scalar){RT_BOOL, value};
    return ST_OK;
}

static enum status give_float(const struct operands *o, double value)
{
    *o->out = rt_scalar_of_double(value);
    return ST_OK;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static enum status give_checked(const struct operands *o, bool fits, int64_t value)
{
    return fits ? give_int(o, value)
                : error_set(o->err, ST_INVALID, "the result does not fit 64 bits");
}

static enum status add(const struct operands *o)
{
    int64_t sum = 0;
    if (has_float(o)) {
        return give_float(o, number(o, 0) + number(o, 1));
    }
    bool fits = add_i64(integer(o, 0), integer(o, 1), &sum);
    return give_checked(o, fits, sum);
}

static enum status subtract(const struct operands *o)
{
    int64_t rest = 0;
    if (has_float(o)) {
        return give_float(o, number(o, 0) - number(o, 1));
    }
    bool fits = sub_i64(integer(o, 0), integer(o, 1), &rest);
    return give_checked(o, fits, rest);
}

static enum status multiply(const struct operands *o)
{
    int64_t product = 0;
    if (has_float(o)) {
        return give_float(o, number(o, 0) * number(o, 1));
    }
    bool fits = mul_i64(integer(o, 0), integer(o, 1), &product);
    return give_checked(o, fits, product);
}

static enum status negate(const struct operands *o)
{
    int64_t value = 0;
    if (o->args[0].kind == RT_FLOAT) {
        return give_float(o, -number(o, 0));
    }
    bool fits = sub_i64(0, integer(o, 0), &value);
    return give_checked(o, fits, value);
}

/* Neither by zero nor INT64_MIN by -1, which has no quotient. */
static enum status check_divisor(const struct operands *o)
{
    if (integer(o, 1) == 0) {
        return error_set(o->err, ST_INVALID, "an integer is divided by zero");
    }
    if (integer(o, 1) == -1 && integer(o, 0) == INT64_MIN) {
        return error_set(o->err, ST_INVALID, "the result does not fit 64 bits");
    }
    return ST_OK;
}

static enum status floor_divide(const struct operands *o)
{
    if (has_float(o)) {
        return give_float(o, floor(number(o, 0) / number(o, 1)));
    }
    TRY(check_divisor(o));
    int64_t a = integer(o, 0), b = integer(o, 1);
    return give_int(o, a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

static enum status divide_ints(const struct operands *o)
{
    TRY(check_divisor(o));
    return give_int(o, integer(o, 0) / integer(o, 1));
}

static enum status remainder_of_ints(const struct operands *o)
{
    TRY(check_divisor(o));
    return give_int(o, integer(o, 0) % integer(o, 1));
}

static enum status true_divide(const struct operands *o)
{
    if (number(o, 1) == 0 && o->args[1].kind != RT_FLOAT) {
        return error_set(o->err, ST_INVALID, "a number is divided by zero");
    }
    return give_float(o, number(o, 0) / number(o, 1));
}

/* ---- comparison ------------------------------------------------------------------------------ */

/* -1, 0 or 1; 2 where a NaN is compared. Exact between ints. */
static int compare(const struct operands *o)
{
    if (!has_float(o)) {
        return (integer(o, 0) > integer(o, 1)) - (integer(o, 0) < integer(o, 1));
    }
    double a = number(o, 0), b = number(o, 1);
    return isnan(a) || isnan(b) ? 2 : (a > b) - (a < b);
}

static enum status equal(const struct operands *o)
{
    return give_bool(o, compare(o) == 0);
}

static enum status greater(const struct operands *o)
{
    return give_bool(o, compare(o) == 1);
}

static enum status less(const struct operands *o)
{
    return give_bool(o, compare(o) == -1);
}

static enum status greater_or_equal(const struct operands *o)
{
    return give_bool(o, compare(o) == 0 || compare(o) == 1);
}

static enum status less_or_equal(const struct operands *o)
{
    return give_bool(o, compare(o) <= 0);
}

static enum status maximum(const struct operands *o)
{
    *o->out = o->args[compare(o) >= 0 ? 0 : 1];
    return ST_OK;
}

static enum status minimum(const struct operands *o)
{
    *o->out = o->args[compare(o) <= 0 ? 0 : 1];
    return ST_OK;
}

static enum status invert(const struct operands *o)
{
    return give_bool(o, integer(o, 0) == 0);
}

static enum status choose(const struct operands *o)
{
    *o->out = o->args[integer(o, 0) ? 1 : 2];
    return ST_OK;
}

/* ---- conversion ------------------------------------------------------------------------------ */

static enum status to_float(const struct operands *o)
{
    return give_float(o, number(o, 0));
}

static enum status int_of(const struct operands *o, double value)
{
    if (!(value >= -0x1p63 && value < 0x1p63)) {
        return error_set(o->err, ST_INVALID, "%g is no 64-bit integer", value);
    }
    return give_int(o, (int64_t)value);
}

static enum status to_int(const struct operands *o)
{
    return o->args[0].kind == RT_FLOAT ? int_of(o, trunc(number(o, 0)))
                                       : give_int(o, integer(o, 0));
}

static enum status round_up(const struct operands *o)
{
    return o->args[0].kind == RT_FLOAT ? int_of(o, ceil(number(o, 0))) : to_int(o);
}

static enum status round_to_even(const struct operands *o)
{
    return o->args[0].kind == RT_FLOAT ? int_of(o, nearbyint(number(o, 0))) : to_int(o);
}

static enum status truncate_it(const struct operands *o)
{
    return to_int(o);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t arg_count;
    scalar_f *fn;
} rows[] = {
#define SCALAR_OP(id, name, args, fn) [RT_SCALAR_##id] = {name, args, fn},
#include "runtime/code/scalar.def"
#undef SCALAR_OP
};

enum rt_scalar_op rt_scalar_find(struct span kernel)
{
    uint32_t op = 0;
    while (op < RT_SCALAR_COUNT && !span_is(kernel, rows[op].name)) {
        op++;
    }
    return (enum rt_scalar_op)op;
}

const char *rt_scalar_name(enum rt_scalar_op op)
{
    return rows[op].name;
}

uint32_t rt_scalar_arg_count(enum rt_scalar_op op)
{
    return rows[op].arg_count;
}

static bool is_number(enum rt_kind kind)
{
    return kind == RT_INT || kind == RT_FLOAT;
}

enum status rt_scalar_kind(enum rt_scalar_op op, const enum rt_kind *args, enum rt_kind *out_kind,
                           struct error *err)
{
    must(op < RT_SCALAR_COUNT);
    bool fits = is_number(args[0]);
    enum rt_kind kind = RT_INT;
    if (rows[op].arg_count == 2) {
        bool same = args[0] == RT_BOOL && args[1] == RT_BOOL;
        kind = args[0] == RT_FLOAT || args[1] == RT_FLOAT ? RT_FLOAT : RT_INT;
        fits = fits && is_number(args[1]);
        fits |= op >= RT_SCALAR_EQ && op <= RT_SCALAR_LE && same;
    }
    switch (op) {
    case RT_SCALAR_EQ:
    case RT_SCALAR_GT:
    case RT_SCALAR_LT:
    case RT_SCALAR_GE:
    case RT_SCALAR_LE:
        kind = RT_BOOL;
        break;
    case RT_SCALAR_NOT:
        fits = args[0] == RT_BOOL;
        kind = RT_BOOL;
        break;
    case RT_SCALAR_ITE:
        fits = args[0] == RT_BOOL && args[1] == args[2];
        kind = args[1];
        break;
    case RT_SCALAR_FLOORDIV_INT:
    case RT_SCALAR_MOD_INT:
    case RT_SCALAR_MOD:
    case RT_SCALAR_MAX:
    case RT_SCALAR_MIN:
        fits = fits && kind == RT_INT;
        break;
    case RT_SCALAR_TRUEDIV:
    case RT_SCALAR_FLOAT:
        kind = RT_FLOAT;
        break;
    case RT_SCALAR_NEG:
        kind = args[0];
        break;
    default:
        break;
    }
    if (!fits) {
        return error_set(err, ST_INVALID, "%s does not take such arguments", rows[op].name);
    }
    *out_kind = kind;
    return ST_OK;
}

enum status rt_scalar_apply(enum rt_scalar_op op, const struct rt_scalar *args,
                            struct rt_scalar *out, struct error *err)
{
    must(op < RT_SCALAR_COUNT);
    const struct operands o = {args, out, err};
    enum status status = rows[op].fn(&o);
    return status == ST_OK ? ST_OK : error_prefix(err, "%s: ", rows[op].name);
}
