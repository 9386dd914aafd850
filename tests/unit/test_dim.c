/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/graph/dim.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shape.h"
#include "tests/unit/unit.h"

#define SYMBOLS 4
#define DEPTH_EXPRS 24
#define PROGRAMS 400
#define POINTS 8

struct fixture {
    struct arena arena;
    struct rt_dims dims;
    struct rt_dim s[SYMBOLS]; /* of expressions 1 to 4 */
    struct error err;
};

static int set_up(void **state)
{
    static struct fixture f;
    arena_init(&f.arena, 64u << 20);
    rt_dims_init(&f.dims, &f.arena);
    for (int i = 0; i < SYMBOLS; i++) {
        f.s[i] = rt_dim_symbol(&f.dims, 100);
    }
    f.err = (struct error){0};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    return 0;
}

static void assert_prints(struct fixture *f, struct rt_dim d, const char *expected)
{
    struct buf text;
    char line[1024];
    buf_init(&text, 1000);
    rt_dim_print(&f->dims, d, &text);
    snprintf(line, sizeof(line), "%.*s", SPAN_FMT(buf_span(&text)));
    assert_string_equal(line, expected);
    buf_fini(&text);
}

static void assert_same(struct rt_dim a, struct rt_dim b)
{
    if (!rt_dim_same(a, b)) {
        fail_msg("expressions %u (%" PRId64 ") and %u (%" PRId64 ") differ", a.expr, a.value,
                 b.expr, b.value);
    }
}

/* ---- canonical forms ------------------------------------------------------------------------- */

static void equal_sums_are_one_expression(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim a = f->s[0], b = f->s[1], c = f->s[2];
    assert_same(rt_dim_add(d, a, b), rt_dim_add(d, b, a));
    assert_same(rt_dim_add(d, rt_dim_add(d, a, b), c), rt_dim_add(d, a, rt_dim_add(d, c, b)));
    assert_same(rt_dim_add(d, a, a), rt_dim_mul(d, a, rt_dim_of(2)));
    assert_same(rt_dim_sub(d, rt_dim_add(d, a, b), b), a);
    assert_same(rt_dim_sub(d, a, a), rt_dim_of(0));
    assert_same(rt_dim_add(d, rt_dim_add(d, a, rt_dim_of(3)), rt_dim_of(-3)), a);
}

static void equal_products_are_one_expression(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim a = f->s[0], b = f->s[1], c = f->s[2];
    assert_same(rt_dim_mul(d, a, b), rt_dim_mul(d, b, a));
    assert_same(rt_dim_mul(d, rt_dim_mul(d, a, b), c), rt_dim_mul(d, a, rt_dim_mul(d, c, b)));
    assert_same(rt_dim_mul(d, rt_dim_mul(d, a, rt_dim_of(2)), rt_dim_of(3)),
                rt_dim_mul(d, rt_dim_of(6), a));
    assert_same(rt_dim_mul(d, a, rt_dim_of(0)), rt_dim_of(0));
    assert_same(rt_dim_mul(d, a, rt_dim_of(1)), a);
    assert_same(rt_dim_floordiv(d, rt_dim_mul(d, a, b), b), a);
    assert_same(rt_dim_floordiv(d, rt_dim_mul(d, a, rt_dim_of(12)), rt_dim_of(4)),
                rt_dim_mul(d, a, rt_dim_of(3)));
    assert_same(rt_dim_floordiv(d, rt_dim_mul(d, a, rt_dim_of(3)), rt_dim_mul(d, a, rt_dim_of(2))),
                rt_dim_of(1));
}

static void bounds_decide_comparisons(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim a = f->s[0];
    assert_same(rt_dim_max(d, a, rt_dim_of(0)), a);
    assert_same(rt_dim_max(d, a, rt_dim_of(100)), rt_dim_of(100));
    assert_same(rt_dim_min(d, a, rt_dim_of(100)), a);
    assert_same(rt_dim_min(d, a, rt_dim_of(-1)), rt_dim_of(-1));
    assert_same(rt_dim_max(d, a, f->s[1]), rt_dim_max(d, f->s[1], a));
    assert_same(rt_dim_min(d, a, f->s[1]), rt_dim_min(d, f->s[1], a));
    assert_same(rt_dim_max(d, a, a), a);
}

static void expressions_are_printed(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim a = f->s[0], b = f->s[1];
    assert_prints(f, rt_dim_of(-7), "-7");
    assert_prints(f, a, "s1");
    assert_prints(f, rt_dim_add(d, rt_dim_mul(d, a, rt_dim_of(2)), rt_dim_of(1)), "((2*s1)+1)");
    assert_prints(f, rt_dim_floordiv(d, rt_dim_sub(d, a, rt_dim_of(3)), rt_dim_of(2)),
                  "((s1+-3)/2)");
    assert_prints(f, rt_dim_mod(d, a, b), "(s1%s2)");
    assert_prints(f, rt_dim_max(d, a, b), "(s1 max s2)");
    assert_prints(f, rt_dim_min(d, a, b), "(s1 min s2)");
}

/* ---- doubles --------------------------------------------------------------------------------- */

static struct rt_dim length_of(struct rt_dims *d, struct rt_dim start, struct rt_dim end,
                               double step)
{
    return rt_dim_steps(d, rt_dim_difference(d, end, start), rt_dim_of_double(step));
}

static int64_t value_at(struct fixture *f, struct rt_dim d, int64_t first)
{
    int64_t values[64] = {0, first};
    assert_true(f->dims.expr_count <= 64);
    assert_int_equal(rt_dims_eval(&f->dims, values, &f->err), ST_OK);
    return rt_dim_at(d, values);
}

/* Each is ceil((end - start) / step) of doubles, for every value of the symbol. */
static void lengths_of_ranges_are_those_of_doubles(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim n = rt_dim_double(d, f->s[0]);
    struct rt_dim up = length_of(d, rt_dim_of_double(0.5), n, 0.1);
    struct rt_dim down = length_of(d, n, rt_dim_of_double(-2.5), -0.75);
    struct rt_dim divided = rt_dim_steps(d, rt_dim_of_double(1), n);
    struct rt_dim whole = rt_dim_trunc(d, rt_dim_difference(d, n, rt_dim_of_double(3.5)));
    for (int64_t i = 1; i <= 100; i++) {
        double x = (double)i;
        assert_int_equal(value_at(f, up, i), (int64_t)ceil((x - 0.5) / 0.1));
        assert_int_equal(value_at(f, down, i), (int64_t)ceil((-2.5 - x) / -0.75));
        assert_int_equal(value_at(f, divided, i), 1);
        assert_int_equal(value_at(f, whole, i), (int64_t)trunc(x - 3.5));
    }
    int64_t values[64] = {0, 0};
    assert_int_equal(rt_dims_eval(d, values, &f->err), ST_INVALID); /* 1 / 0 */
}

static void lengths_of_ranges_have_bounds(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim n = rt_dim_double(d, f->s[0]);
    struct rt_dim up = length_of(d, rt_dim_of_double(0.5), n, 0.25);
    struct rt_dim down = length_of(d, n, rt_dim_of_double(0), -0.5);
    struct rt_dim unknown = length_of(d, rt_dim_of_double(0), rt_dim_any(d), 1);
    assert_int_equal(up.value, 398);
    assert_int_equal(rt_dim_lo(d, up), -2);
    assert_int_equal(down.value, 200);
    assert_int_equal(rt_dim_lo(d, down), 0);
    assert_int_equal(unknown.value, INT64_MAX);
    assert_same(up, length_of(d, rt_dim_of_double(0.5), n, 0.25));
    assert_same(length_of(d, rt_dim_of_double(0.5), rt_dim_of_double(4), 0.5), rt_dim_of(7));
    assert_prints(f, up, "((double(s1)-0.5) ceildiv 0.25)");
}

/* ---- against int64 arithmetic ---------------------------------------------------------------- */

static uint64_t random_state = 42;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

/* One expression and the call that made it. */
struct made {
    enum { ADD, SUB, MUL, FLOORDIV, CEILDIV, MOD, MAX, MIN, LEAF, OPS = LEAF } op;
    uint32_t a, b; /* indices of earlier expressions */
    struct rt_dim dim;
    int64_t value; /* at the tested point */
    bool exists;
};

static int64_t floor_of(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b > a ? q - 1 : q;
}

static void calculate(struct made *m, const struct made *all)
{
    int64_t a = all[m->a].value, b = all[m->b].value;
    bool divides = m->op == FLOORDIV || m->op == CEILDIV || m->op == MOD;
    m->exists = all[m->a].exists && all[m->b].exists && !(divides && b <= 0);
    if (!m->exists) {
        m->value = 0;
        return;
    }
    switch (m->op) {
    case ADD:
        m->exists = !__builtin_add_overflow(a, b, &m->value);
        break;
    case SUB:
        m->exists = !__builtin_sub_overflow(a, b, &m->value);
        break;
    case MUL:
        m->exists = !__builtin_mul_overflow(a, b, &m->value);
        break;
    case FLOORDIV:
        m->value = floor_of(a, b);
        break;
    case CEILDIV:
        m->value = -floor_of(-a, b);
        break;
    case MOD:
        m->value = a - b * floor_of(a, b);
        break;
    case MAX:
        m->value = a > b ? a : b;
        break;
    case MIN:
        m->value = a < b ? a : b;
        break;
    case LEAF:
        break;
    }
}

static struct rt_dim make(struct rt_dims *d, const struct made *m, const struct made *all)
{
    static struct rt_dim (*const ops[])(struct rt_dims *, struct rt_dim, struct rt_dim) = {
        rt_dim_add,     rt_dim_sub, rt_dim_mul, rt_dim_floordiv,
        rt_dim_ceildiv, rt_dim_mod, rt_dim_max, rt_dim_min,
    };
    return ops[m->op](d, all[m->a].dim, all[m->b].dim);
}

/* Makes symbols and a few constants, then random expressions over the earlier ones. */
static void make_program(struct fixture *f, struct made *all)
{
    static const int64_t constants[] = {0, 1, 2, 3, 7, 16};
    for (uint32_t i = 0; i < DEPTH_EXPRS; i++) {
        struct made *m = &all[i];
        *m = (struct made){.op = LEAF, .exists = true};
        if (i < SYMBOLS) {
            m->dim = f->s[i];
            continue;
        }
        if (i < SYMBOLS + 6) {
            m->dim = rt_dim_of(constants[i - SYMBOLS]);
            m->value = constants[i - SYMBOLS];
            continue;
        }
        do {
            m->op = random_below(OPS);
            m->a = random_below(i);
            m->b = random_below(i);
            /* A divisor that may be 0 or negative makes the whole program invalid. */
        } while ((m->op == FLOORDIV || m->op == CEILDIV || m->op == MOD) &&
                 rt_dim_lo(&f->dims, all[m->b].dim) <= 0);
        m->dim = make(&f->dims, m, all);
    }
}

static void check_point(struct fixture *f, struct made *all, int64_t *values)
{
    bool all_exist = true;
    for (uint32_t i = 0; i < DEPTH_EXPRS; i++) {
        if (i < SYMBOLS) {
            all[i].value = values[all[i].dim.expr] = random_below(101);
        } else if (all[i].op != LEAF) {
            calculate(&all[i], all);
        }
        all_exist = all_exist && all[i].exists && llabs(all[i].value) < (int64_t)1 << 40;
    }
    if (!all_exist) {
        return; /* products of products: an equal expression in another form may overflow sooner */
    }
    assert_ok(f->err, rt_dims_eval(&f->dims, values, &f->err));
    for (uint32_t i = 0; i < DEPTH_EXPRS; i++) {
        struct rt_dim d = all[i].dim;
        int64_t value = rt_dim_at(d, values);
        assert_int_equal(value, all[i].value);
        assert_true(value <= d.value && value >= rt_dim_lo(&f->dims, d));
        assert_same(d, rt_dim_resolve(&f->dims, d));
    }
}

static void random_programs_are_arithmetic(void **state)
{
    (void)state;
    uint32_t points = 0;
    for (int program = 0; program < PROGRAMS; program++) {
        struct made all[DEPTH_EXPRS];
        struct fixture *f;
        void *fixture;
        set_up(&fixture);
        f = fixture;
        make_program(f, all);
        int64_t *values = arena_array(&f->arena, f->dims.expr_count, sizeof(*values));
        for (int point = 0; point < POINTS && !f->dims.failed; point++, points++) {
            check_point(f, all, values);
        }
        tear_down(&fixture);
    }
    assert_true(points > PROGRAMS * POINTS / 2);
}

/* ---- solving --------------------------------------------------------------------------------- */

static void a_symbol_becomes_a_constant(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim twice = rt_dim_mul(d, f->s[0], rt_dim_of(2));
    assert_ok(f->err, rt_dim_require_equal(d, f->s[0], rt_dim_of(8), "width", &f->err));
    assert_same(rt_dim_resolve(d, f->s[0]), rt_dim_of(8));
    assert_same(rt_dim_resolve(d, twice), rt_dim_of(16));
    assert_ok(f->err, rt_dim_require_equal(d, twice, rt_dim_of(16), "width", &f->err));
    assert_fails(f->err, rt_dim_require_equal(d, f->s[0], rt_dim_of(9), "width", &f->err),
                 ST_INVALID, "width: got 8, expected 9");
    assert_int_equal(d->requirement_count, 0);
}

static void linear_equations_are_solved(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim e = rt_dim_add(d, rt_dim_mul(d, f->s[0], rt_dim_of(3)), rt_dim_of(1));
    assert_fails(f->err, rt_dim_require_equal(d, e, rt_dim_of(12), "odd", &f->err), ST_INVALID,
                 "odd: got ((3*s1)+1), expected 12");
    assert_ok(f->err, rt_dim_require_equal(d, rt_dim_of(13), e, "odd", &f->err));
    assert_same(rt_dim_resolve(d, f->s[0]), rt_dim_of(4));
    e = rt_dim_sub(d, rt_dim_of(10), f->s[1]);
    assert_ok(f->err, rt_dim_require_equal(d, e, rt_dim_of(7), "rest", &f->err));
    assert_same(rt_dim_resolve(d, f->s[1]), rt_dim_of(3));
}

static void solutions_out_of_bounds_are_refused(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    assert_fails(f->err, rt_dim_require_equal(d, f->s[0], rt_dim_of(101), "n", &f->err), ST_INVALID,
                 "n: got s1, expected 101");
    assert_fails(f->err, rt_dim_require_equal(d, rt_dim_of(-1), f->s[0], "n", &f->err), ST_INVALID,
                 "n: got -1, expected s1");
    assert_same(rt_dim_resolve(d, f->s[0]), f->s[0]);
}

static void symbols_become_one(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim small = rt_dim_symbol(d, 10), sum = rt_dim_add(d, f->s[0], small);
    int64_t values[64] = {0};
    assert_ok(f->err, rt_dim_require_equal(d, small, f->s[0], "batch", &f->err));
    assert_same(rt_dim_resolve(d, small), f->s[0]);
    assert_int_equal(rt_dim_resolve(d, small).value, 10);
    assert_same(rt_dim_resolve(d, sum), rt_dim_mul(d, f->s[0], rt_dim_of(2)));
    assert_ok(f->err, rt_dim_require_equal(d, f->s[0], rt_dim_of(4), "batch", &f->err));
    assert_same(rt_dim_resolve(d, small), rt_dim_of(4));
    assert_same(rt_dim_resolve(d, sum), rt_dim_of(8));
    assert_ok(f->err, rt_dims_eval(d, values, &f->err));
    assert_int_equal(rt_dim_at(sum, values), 8);
}

/* Expressions made before a symbol was solved can be evaluated, and they use the solution. */
static void expressions_older_than_a_solution_evaluate(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim quotient = rt_dim_floordiv(d, f->s[1], f->s[0]);
    int64_t values[16] = {0};
    assert_ok(f->err, rt_dim_require_equal(d, f->s[0], rt_dim_of(5), "n", &f->err));
    values[f->s[1].expr] = 20;
    assert_ok(f->err, rt_dims_eval(d, values, &f->err));
    assert_int_equal(rt_dim_at(quotient, values), 4);
}

static void what_cannot_be_solved_is_kept(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim product = rt_dim_mul(d, f->s[0], f->s[1]);
    int64_t values[16] = {0};
    assert_ok(f->err, rt_dim_require_equal(d, product, rt_dim_of(12), "elements", &f->err));
    assert_int_equal(d->requirement_count, 1);
    values[1] = 3;
    values[2] = 4;
    assert_ok(f->err, rt_dims_eval(d, values, &f->err));
    values[2] = 5;
    assert_fails(f->err, rt_dims_eval(d, values, &f->err), ST_INVALID,
                 "elements: got 15, expected 12");
}

/* ---- the ends of int64 ----------------------------------------------------------------------- */

static void overflow_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim big = rt_dim_symbol(d, INT64_MAX);
    rt_dim_mul(d, big, big);
    int64_t values[16] = {0};
    values[big.expr] = 1000;
    assert_ok(f->err, rt_dims_eval(d, values, &f->err));
    values[big.expr] = (int64_t)1 << 40;
    assert_fails(f->err, rt_dims_eval(d, values, &f->err), ST_INVALID,
                 "is too large, or divided by 0");
}

static void division_by_zero_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    rt_dim_floordiv(d, f->s[0], f->s[1]);
    int64_t values[16] = {0};
    values[1] = 4;
    values[2] = 2;
    assert_ok(f->err, rt_dims_eval(d, values, &f->err));
    values[2] = 0;
    assert_fails(f->err, rt_dims_eval(d, values, &f->err), ST_INVALID,
                 "is too large, or divided by 0");
    rt_dim_mod(d, f->s[0], rt_dim_of(0));
    assert_true(d->failed);
}

static void the_smallest_integer_is_harmless(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim lowest = rt_dim_of(INT64_MIN), e;
    assert_same(rt_dim_mod(d, lowest, rt_dim_of(3)), rt_dim_of(1));
    assert_same(rt_dim_floordiv(d, lowest, rt_dim_of(1)), lowest);
    e = rt_dim_add(d, f->s[0], lowest);
    assert_int_not_equal(rt_dim_require_equal(d, e, rt_dim_of(0), "n", &f->err), ST_OK);
    e = rt_dim_sub(d, rt_dim_of(0), f->s[0]);
    assert_int_not_equal(rt_dim_require_equal(d, e, lowest, "n", &f->err), ST_OK);
    rt_dim_add(d, e, lowest);
    rt_dim_mul(d, f->s[0], lowest);
    assert_false(d->failed);
    rt_dim_mul(d, e, lowest);
    assert_true(d->failed);
}

/* ---- hostile growth -------------------------------------------------------------------------- */

static void the_number_of_expressions_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim e = f->s[0];
    int i = 0;
    while (!d->failed && i++ < 1000000) {
        e = rt_dim_mod(d, rt_dim_add(d, e, rt_dim_of(i)), rt_dim_of(1000 + i));
    }
    assert_true(d->failed);
    assert_fails(f->err, rt_dims_check(d, &f->err), ST_TOO_LARGE, "too many or too involved");
    assert_between(d->expr_count, 1000, 10000);
    rt_dim_resolve(d, e); /* still harmless */
}

static void sums_and_products_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim sum = rt_dim_of(0);
    for (int i = 0; i < 15; i++) {
        sum = rt_dim_add(d, sum, rt_dim_symbol(d, 9));
    }
    assert_false(d->failed);
    sum = rt_dim_add(d, sum, rt_dim_add(d, f->s[0], f->s[1]));
    assert_true(d->failed);
}

/* Solves symbol after symbol, while every expression depends on all of them. */
static void solving_many_symbols_ends(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim symbols[500], e = f->s[0];
    for (int i = 0; i < 500; i++) {
        symbols[i] = rt_dim_symbol(d, 50);
        e = rt_dim_max(d, rt_dim_add(d, e, symbols[i]), f->s[1]);
    }
    assert_false(d->failed);
    for (int i = 0; i < 500 && !d->failed; i++) {
        assert_ok(f->err, rt_dim_require_equal(d, symbols[i], rt_dim_of(2), "n", &f->err));
        rt_dim_resolve(d, e);
    }
    assert_true(d->expr_count <= 4096);
}

/* Each step doubles the expression: printed in full it would have 2^100 pieces. */
static void printing_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct rt_dims *d = &f->dims;
    struct rt_dim e = f->s[0];
    struct buf text;
    for (int i = 0; i < 100; i++) {
        e = rt_dim_mod(d, rt_dim_add(d, e, rt_dim_of(1000)), rt_dim_add(d, e, rt_dim_of(2000)));
    }
    buf_init(&text, 1u << 20);
    rt_dim_print(d, e, &text);
    assert_false(buf_failed(&text));
    assert_between(text.len, 10, 2000);
    buf_fini(&text);
}

/* A dim with a negative number counts from the end. A scalar has one, with two numbers. */
static void dims_count_from_both_ends(void **state)
{
    (void)state;
    for (uint8_t rank = 1; rank <= SHAPE_RANK_MAX; rank++) {
        for (int d = 0; d < rank; d++) {
            assert_int_equal(rt_dim_from_first(d, rank), d);
            assert_int_equal(rt_dim_from_first(d - rank, rank), d);
        }
    }
    assert_int_equal(rt_dim_from_first(0, 0), 0);
    assert_int_equal(rt_dim_from_first(-1, 0), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(equal_sums_are_one_expression),
        TEST(equal_products_are_one_expression),
        TEST(bounds_decide_comparisons),
        TEST(expressions_are_printed),
        TEST(lengths_of_ranges_are_those_of_doubles),
        TEST(lengths_of_ranges_have_bounds),
        cmocka_unit_test(random_programs_are_arithmetic),
        cmocka_unit_test(dims_count_from_both_ends),
        TEST(a_symbol_becomes_a_constant),
        TEST(linear_equations_are_solved),
        TEST(solutions_out_of_bounds_are_refused),
        TEST(symbols_become_one),
        TEST(expressions_older_than_a_solution_evaluate),
        TEST(what_cannot_be_solved_is_kept),
        TEST(overflow_is_an_error),
        TEST(division_by_zero_is_an_error),
        TEST(the_smallest_integer_is_harmless),
        TEST(the_number_of_expressions_is_bounded),
        TEST(sums_and_products_are_bounded),
        TEST(solving_many_symbols_ends),
        TEST(printing_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
