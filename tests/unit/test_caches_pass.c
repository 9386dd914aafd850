/* SPDX-License-Identifier: MIT */
/* Which graphs have caches that grow and that only attention reads (runtime/passes/caches.h): one
 * that has, and the same graph with one thing changed. */
#include "config.h"

#include "runtime/passes/caches.h"

#include <math.h>
#include <string.h>

#include "runtime/ops/apply.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "tests/unit/pass_support.h"
#include "tests/unit/unit.h"

enum { HEADS = 2, GROUP = 2, DEPTH = 8, ROWS = 64, TOKENS_MAX = 32 };

enum change {
    NOTHING,
    SLICED,    /* whole slices between the nodes */
    NO_GROUP,  /* as many heads as the caches have */
    PLACES_32, /* the number of rows is int32 first */
    WIDE,      /* a window of all rows of the buffer */
    LAST_FOUND = WIDE,
    STRICT,     /* a token does not see itself */
    SHIFTED,    /* it sees one less */
    OTHER_ROWS, /* the places begin at the number of new rows */
    BACKWARDS,  /* it sees what comes behind it */
    NARROW,     /* a window of one row less than the buffer has */
    HIDDEN,     /* and a condition that hides everything */
    TWICE,      /* both conditions are windows */
    ONE_COLUMN, /* the mask of the first token is that of all */
    NO_MASK,
    ADDED_MASK,  /* a further mask */
    SUMMED,      /* softmax over the queries */
    FRONT,       /* the new rows come first */
    READ,        /* the cache is a result in another form, too */
    READ_BEFORE, /* and the rows before the call */
    EXCHANGED,   /* keys go on as values */
    KEYS_TWICE,
    NO_READER,
    NO_HEADS,   /* caches of no head */
    TOO_DEEP,   /* for the operator */
    TILED,      /* the heads of a group are not neighbours */
    TURNED,     /* the second product is by position */
    SMALL_SUMS, /* places that wrap */
    LAST_CHANGE = SMALL_SUMS,
};

struct built {
    uint32_t q, fresh[2], before[2], after[2];
    struct rt_dim n, rows;
};

/* Of the caches. */
static int64_t heads_of(enum change change)
{
    return change == NO_HEADS ? 0 : HEADS;
}

static int64_t depth_of(enum change change)
{
    return change == TOO_DEEP ? RT_ATTENTION_DEPTH_MAX + 1 : DEPTH;
}

static uint32_t tensor(struct fixture *f, enum change change, int64_t heads, struct rt_dim rows)
{
    const struct rt_dim dims[] = {rt_dim_of(1), rt_dim_of(heads), rows,
                                  rt_dim_of(depth_of(change))};
    return rt_graph_tensor(&f->graph, DT_F32, 4, dims);
}

static uint32_t apply_to(struct fixture *f, const char *op, enum dtype dtype, const uint32_t *args,
                         uint32_t count)
{
    uint32_t out;
    assert_ok(f->err, rt_op_apply(&f->graph, rt_op_find(op), args, count, dtype, &out, &f->err));
    return out;
}

static uint32_t size(struct fixture *f, struct rt_dim dim)
{
    return rt_graph_int(&f->graph, dim);
}

static uint32_t view(struct fixture *f, uint32_t x, const struct rt_dim *dims, uint32_t rank)
{
    const uint32_t args[] = {x, rt_graph_ints(&f->graph, dims, rank)};
    return apply_to(f, "view", f->graph.values[x].dtype, args, 2);
}

static uint32_t range_to(struct fixture *f, struct rt_dim end)
{
    const uint32_t args[] = {number(f, 0), size(f, end), number(f, 1)};
    return apply_to(f, "arange_start", DT_I64, args, 3);
}

static uint32_t plus(struct fixture *f, enum dtype dtype, uint32_t a, uint32_t b)
{
    const uint32_t args[] = {a, b, number(f, 1)};
    return apply_to(f, "add", dtype, args, 3);
}

static uint32_t filled(struct fixture *f, double value)
{
    const uint32_t args[] = {rt_graph_float(&f->graph, value)};
    return apply(f, "scalar_tensor", args, 1);
}

static uint32_t whole(struct fixture *f, enum change change, uint32_t x, int64_t dim)
{
    const uint32_t args[] = {x, number(f, dim), number(f, 0), number(f, INT64_MAX), number(f, 1)};
    enum dtype dtype = f->graph.values[x].dtype;
    return change == SLICED ? apply_to(f, "slice", dtype, args, 5) : x;
}

static uint32_t row_count(struct fixture *f, const struct built *b, enum change change)
{
    const uint32_t args[] = {size(f, change == OTHER_ROWS ? b->n : b->rows)};
    enum dtype dtype = change == PLACES_32 ? DT_I32 : DT_I64;
    uint32_t count = apply_to(f, "scalar_tensor", dtype, args, 1);
    return change == PLACES_32 ? convert(f, count, DT_I64) : count;
}

static uint32_t and_of(struct fixture *f, uint32_t a, uint32_t b)
{
    const uint32_t args[] = {a, b};
    return apply_to(f, "bitwise_and", DT_BOOL, args, 2);
}

/* true & (columns > places - window) & sees */
static uint32_t windowed(struct fixture *f, enum change change, uint32_t columns, uint32_t places,
                         uint32_t sees)
{
    static const int64_t wide = ROWS, narrow = ROWS - 1;
    const struct shape scalar = {.rank = 0};
    struct rt_graph *g = &f->graph;
    if (change != WIDE && change != NARROW && change != HIDDEN && change != TWICE) {
        return sees;
    }
    struct span window = span_of(change == NARROW ? &narrow : &wide, sizeof(wide));
    const uint32_t full[] = {graph_ints(f, (const int64_t[]){-1}),
                             rt_graph_bool(g, change != HIDDEN)};
    const uint32_t sub[] = {places, rt_graph_constant(g, DT_I64, &scalar, window), number(f, 1)};
    const uint32_t gt[] = {columns, apply_to(f, "sub", DT_I64, sub, 3)};
    uint32_t seen = apply_to(f, "gt", DT_BOOL, gt, 2);
    uint32_t all = and_of(f, apply_to(f, "full", DT_BOOL, full, 2), seen);
    return and_of(f, all, change == TWICE ? seen : sees);
}

static uint32_t mask(struct fixture *f, const struct built *b, enum change change)
{
    static const int64_t first[] = {0, 1};
    struct rt_graph *g = &f->graph;
    const struct shape scalar = {.rank = 0};
    struct rt_dim all = change == ONE_COLUMN ? rt_dim_of(1) : rt_dim_add(&g->dims, b->n, b->rows);
    struct span shift = span_of(&first[change == SHIFTED], sizeof(first[0]));
    const struct rt_dim columns[] = {rt_dim_of(1), rt_dim_of(1), rt_dim_of(1), all};
    const struct rt_dim rows[] = {rt_dim_of(1), rt_dim_of(1), b->n, rt_dim_of(1)};
    uint32_t numbers = range_to(f, all);
    numbers = plus(f, DT_I64, numbers, rt_graph_constant(g, DT_I64, &scalar, shift));
    enum dtype dtype = change == SMALL_SUMS ? DT_I8 : DT_I64;
    uint32_t places = plus(f, dtype, range_to(f, b->n), row_count(f, b, change));
    places = whole(f, change, places, 0);
    uint32_t args[] = {view(f, numbers, columns, 4), view(f, places, rows, 4)};
    const char *op = change == STRICT ? "lt" : change == BACKWARDS ? "ge" : "le";
    uint32_t sees = apply_to(f, op, DT_BOOL, args, 2);
    sees = windowed(f, change, args[0], args[1], sees);
    const uint32_t chosen[] = {sees, filled(f, 0), filled(f, -INFINITY)};
    return apply(f, "where", chosen, 3);
}

/* A cache as the products read it: each head for its group. */
static uint32_t spread(struct fixture *f, const struct built *b, enum change change, uint32_t x)
{
    struct rt_graph *g = &f->graph;
    struct rt_dim all = rt_dim_add(&g->dims, b->n, b->rows);
    if (change == NO_GROUP) {
        return x;
    }
    uint32_t args[] = {x, number(f, 2)};
    struct rt_dim single = rt_dim_of(1), heads = rt_dim_of(heads_of(change));
    struct rt_dim depth = rt_dim_of(depth_of(change)), rows = all;
    if (change == TILED) {
        rows = rt_dim_mul(&g->dims, heads, all);
        heads = single;
        const struct rt_dim flat[] = {single, single, single, rows, depth};
        x = view(f, x, flat, 5);
    } else {
        x = whole(f, change, apply(f, "unsqueeze", args, 2), 3);
    }
    const struct rt_dim dims[] = {single, heads, rt_dim_of(GROUP), rows, depth};
    const struct rt_dim joined[] = {single, rt_dim_of(heads_of(change) * GROUP), all, depth};
    uint32_t expand[] = {x, rt_graph_ints(g, dims, 5), rt_graph_bool(g, false)};
    return view(f, apply(f, "expand", expand, 3), joined, 4);
}

static uint32_t product(struct fixture *f, uint32_t a, uint32_t b, struct rt_dim rows,
                        struct rt_dim columns, uint32_t heads, struct rt_dim depth)
{
    const struct rt_dim left[] = {rt_dim_of(heads), rows, depth};
    const struct rt_dim right[] = {rt_dim_of(heads), depth, columns};
    const struct rt_dim out[] = {rt_dim_of(1), rt_dim_of(heads), rows, columns};
    uint32_t args[] = {view(f, a, left, 3), view(f, b, right, 3)};
    return view(f, apply(f, "bmm", args, 2), out, 4);
}

static uint32_t scaled(struct fixture *f, uint32_t x)
{
    uint32_t args[] = {x, rt_graph_float(&f->graph, 0.5)};
    return apply(f, "mul_scalar", args, 2);
}

static uint32_t attend(struct fixture *f, const struct built *b, enum change change)
{
    struct rt_graph *g = &f->graph;
    struct rt_dim all = rt_dim_add(&g->dims, b->n, b->rows);
    struct rt_dim depth = rt_dim_of(depth_of(change));
    uint32_t heads = (uint32_t)heads_of(change) * (change == NO_GROUP ? 1 : GROUP);
    uint32_t keys = spread(f, b, change, b->after[0]);
    uint32_t values = spread(f, b, change, b->after[change == KEYS_TWICE ? 0 : 1]);
    uint32_t turn[] = {keys, INTS(0, 1, 3, 2)};
    keys = scaled(f, apply(f, "permute", turn, 2));
    uint32_t scores = product(f, scaled(f, b->q), keys, b->n, all, heads, depth);
    if (change != NO_MASK) {
        scores = plus(f, DT_F32, scores, mask(f, b, change));
    }
    if (change == ADDED_MASK) {
        scores = plus(f, DT_F32, scores, filled(f, 1));
    }
    uint32_t soft[] = {scores, number(f, change == SUMMED ? 2 : -1), rt_graph_bool(g, false)};
    uint32_t weights = apply(f, "softmax", soft, 3);
    if (change == TURNED) {
        const struct rt_dim left[] = {all, b->n, rt_dim_of(heads)};
        const struct rt_dim right[] = {all, rt_dim_of(heads), depth};
        uint32_t args[] = {view(f, weights, left, 3), view(f, values, right, 3)};
        return relu(f, apply(f, "bmm", args, 2));
    }
    return product(f, weights, values, b->n, depth, heads, all);
}

static void append(struct fixture *f, struct built *b, enum change change, int i)
{
    uint32_t list[] = {b->before[i], b->fresh[i]};
    if (change == FRONT) {
        list[0] = b->fresh[i];
        list[1] = b->before[i];
    }
    uint32_t args[] = {rt_graph_tensors(&f->graph, list, 2), number(f, i == 0 ? 2 : -2)};
    b->after[i] = apply(f, "cat", args, 2);
}

/* Layer of a decoder: its caches are values |before|, and their buffers inputs 4 and 5. */
static void build(struct fixture *f, enum change change, struct built *b)
{
    struct rt_graph *g = &f->graph;
    b->n = rt_dim_symbol(&g->dims, TOKENS_MAX);
    b->rows = rt_dim_symbol(&g->dims, ROWS);
    b->q = tensor(f, change, heads_of(change) * (change == NO_GROUP ? 1 : GROUP), b->n);
    const struct rt_dim one_row = rt_dim_of(1);
    f->inputs[g->input_count++] = b->q;
    for (int i = 0; i < 2; i++) {
        b->fresh[i] = tensor(f, change, heads_of(change), b->n);
        f->inputs[g->input_count++] = b->fresh[i];
    }
    f->inputs[g->input_count++] = rt_graph_tensor(g, DT_I64, 1, &one_row);
    for (int i = 0; i < 2; i++) {
        b->before[i] = tensor(f, change, heads_of(change), b->rows);
        f->inputs[g->input_count++] = tensor(f, change, heads_of(change), rt_dim_of(ROWS));
        append(f, b, change, i);
    }
    give(f, change == NO_READER ? relu(f, b->q) : attend(f, b, change));
    if (change == READ || change == READ_BEFORE) {
        give(f, relu(f, change == READ ? b->after[0] : b->before[0]));
    }
    give(f, b->after[0]);
    give(f, b->after[1]);
}

static bool is_found(struct fixture *f, enum change change)
{
    struct built b = {0};
    struct rt_caches_found found;
    build(f, change, &b);
    assert_ok(f->err, rt_pass_resolve(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_elide(&f->graph, &f->err));
    assert_ok(f->err, rt_pass_merge(&f->graph, &f->err));
    uint32_t first = f->graph.output_count - 2;
    uint32_t after[] = {f->outputs[first + (change == EXCHANGED)],
                        f->outputs[first + (change != EXCHANGED)]};
    const struct rt_caches_growing growing = {
        .before = b.before, .after = after, .rows = b.rows, .input = f->inputs[3]};
    uint32_t nodes = f->graph.node_count;
    assert_ok(f->err, rt_pass_caches(&f->graph, 4, &growing, &found, &f->err));
    if (found.input == RT_CACHES_NONE) {
        assert_int_equal(f->graph.node_count, nodes);
        assert_int_equal(count_ops(f, "cat"), 2);
        return false;
    }
    assert_int_equal(found.input, f->inputs[3]);
    assert_true(rt_dim_same(f->graph.values[found.start].i, b.rows));
    return true;
}

/* Nothing is left that reads or makes the rows of all. */
static void attention_reads_the_buffers(void **state)
{
    for (enum change change = NOTHING; change <= LAST_FOUND; change++) {
        start_again(state);
        struct fixture *f = *state;
        assert_true(is_found(f, change));
        assert_int_equal(count_ops(f, "attention"), 1);
        assert_int_equal(count_ops(f, "write_rows"), 2);
        static const char *const gone[] = {"cat", "bmm", "softmax", "where", "expand", "le"};
        for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
            assert_int_equal(count_ops(f, gone[i]), 0);
        }
    }
}

static void other_graphs_stay(void **state)
{
    for (enum change change = LAST_FOUND + 1; change <= LAST_CHANGE; change++) {
        start_again(state);
        if (is_found(*state, change)) {
            fail_msg("change %d", (int)change);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(attention_reads_the_buffers),
        TEST(other_graphs_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
