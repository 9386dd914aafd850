/* SPDX-License-Identifier: MIT */
/* Registers that hold the same content: code made by hand, in which a number is read twice. */
#include "config.h"

#include "runtime/code/unify.h"

#include <stdlib.h>

#include "hal/device.h"
#include "runtime/code/code.h"
#include "runtime/ops/op.h"
#include "tests/unit/unit.h"

/* x, two of its elements, the numbers that they are, a result, and its copy. */
enum { X, FIRST, SECOND, ONE, TWO, SUM, OTHER, REGISTERS };
enum { STMTS_MAX = 8 };

struct world {
    struct hal_device *device;
    struct rt_code code;
    struct rt_block *blocks[2];
    struct rt_stmt stmts[STMTS_MAX];
    struct rt_register registers[REGISTERS];
    struct rt_code_result result;
    bool is_state[REGISTERS];
    struct error err;
};

static struct rt_block *add_block(struct world *w)
{
    struct rt_block *block = calloc(1, sizeof(*block));
    assert_non_null(block);
    rt_block_init(block, "m", w->device, NULL);
    block->graph.inputs = arena_array(&block->graph.arena, 8, sizeof(uint32_t));
    block->graph.outputs = arena_array(&block->graph.arena, 8, sizeof(uint32_t));
    block->ins = arena_array(&block->graph.arena, 8, sizeof(uint32_t));
    block->outs = arena_array(&block->graph.arena, 8, sizeof(*block->outs));
    assert_true(block->graph.inputs && block->graph.outputs && block->ins && block->outs);
    w->blocks[w->code.block_count++] = block;
    return block;
}

static void take(struct rt_block *block, uint32_t reg, uint32_t value)
{
    block->ins[block->graph.input_count] = reg;
    block->graph.inputs[block->graph.input_count++] = value;
}

static void make(struct rt_block *block, uint32_t reg, uint32_t value)
{
    uint32_t output = block->graph.output_count++;
    block->graph.outputs[output] = value;
    block->outs[block->out_count++] =
        (struct rt_block_out){.reg = reg, .index = output, .extent = RT_NO_EXTENT};
}

static uint32_t apply(struct world *w, struct rt_graph *graph, const char *name,
                      const uint32_t *args, uint32_t count, uint8_t rank)
{
    uint32_t out = rt_graph_tensor(graph, DT_I64, rank, NULL);
    uint32_t node = rt_graph_node(graph, rt_op_find(name), args, count, &out, 1);
    assert_ok(w->err, rt_graph_infer(graph, node, &w->err));
    return out;
}

/* Block 0: element |index| of x for each of two registers. */
static void add_entry(struct world *w, int64_t index)
{
    struct rt_block *block = add_block(w);
    struct rt_graph *graph = &block->graph;
    const struct rt_dim dims[] = {rt_dim_of(2)};
    uint32_t x = rt_graph_tensor(graph, DT_I64, 1, dims);
    take(block, X, x);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t args[] = {x, rt_graph_int(graph, rt_dim_of(0)),
                           rt_graph_int(graph, rt_dim_of(i ? index : 0))};
        make(block, i ? SECOND : FIRST, apply(w, graph, "select", args, 3, 0));
    }
}

/* Block 1: ranges as long as the two numbers say, added to each other. */
static void add_ranges(struct world *w)
{
    struct rt_block *block = add_block(w);
    struct rt_graph *graph = &block->graph;
    uint32_t ranges[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t length = rt_graph_int(graph, rt_dim_symbol(&graph->dims, 8));
        take(block, i ? TWO : ONE, length);
        ranges[i] = apply(w, graph, "arange", &length, 1, 1);
    }
    make(block, SUM, ranges[0]);
    make(block, OTHER, ranges[1]);
}

static void open_world(struct world *w, int64_t index)
{
    const struct hal_device_options options = {.workers = 1, .cpu_level = "generic"};
    *w = (struct world){.result = {.reg = SUM}};
    assert_ok(w->err, hal_device_open("cpu", &options, &w->device, &w->err));
    arena_init(&w->code.arena, 1 << 20);
    w->code.blocks = w->blocks;
    w->code.stmts = w->stmts;
    w->code.registers = w->registers;
    w->code.register_count = REGISTERS;
    w->code.results = &w->result;
    w->code.result_count = 1;
    w->is_state[OTHER] = true;
    add_entry(w, index);
    add_ranges(w);
}

static void close_world(struct world *w)
{
    rt_code_fini(&w->code);
    hal_device_unref(w->device);
}

static void add_stmt(struct world *w, struct rt_stmt stmt)
{
    assert_true(w->code.stmt_count < STMTS_MAX);
    w->stmts[w->code.stmt_count++] = stmt;
}

static void run_block(struct world *w, uint32_t block)
{
    add_stmt(w, (struct rt_stmt){.kind = RT_STMT_BLOCK, .target = block});
}

static void read_number(struct world *w, uint32_t to, uint32_t from)
{
    add_stmt(w, (struct rt_stmt){.kind = RT_STMT_READ, .target = to, .a = from});
}

static void unify(struct world *w)
{
    assert_ok(w->err, rt_code_unify(&w->code, w->is_state, &w->err));
}

static void a_number_that_is_read_twice_is_one(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, -2);
    run_block(&w, 0);
    read_number(&w, ONE, FIRST);
    read_number(&w, TWO, SECOND);
    run_block(&w, 1);
    unify(&w);
    assert_int_equal(w.code.stmt_count, 3);
    assert_int_equal(w.blocks[0]->out_count, 1);
    assert_int_equal(w.blocks[0]->graph.output_count, 1);
    const struct rt_graph *graph = &w.blocks[1]->graph;
    assert_int_equal(graph->input_count, 1);
    assert_int_equal(w.blocks[1]->ins[0], ONE);
    assert_int_equal(graph->node_count, 1);
    assert_int_equal(w.blocks[1]->out_count, 2); /* a result and a state */
    assert_int_equal(graph->outputs[0], graph->outputs[1]);
    close_world(&w);
}

static void other_elements_are_other_numbers(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, 1);
    run_block(&w, 0);
    read_number(&w, ONE, FIRST);
    read_number(&w, TWO, SECOND);
    run_block(&w, 1);
    unify(&w);
    assert_int_equal(w.code.stmt_count, 4);
    assert_int_equal(w.blocks[1]->graph.input_count, 2);
    assert_int_equal(w.blocks[1]->graph.node_count, 2);
    close_world(&w);
}

/* Its row is written between the two reads. */
static void a_register_that_changes_has_other_numbers(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, 0);
    run_block(&w, 0);
    read_number(&w, ONE, FIRST);
    add_stmt(&w,
             (struct rt_stmt){.kind = RT_STMT_COPY_INDEX, .target = FIRST, .b = SECOND, .c = ONE});
    read_number(&w, TWO, FIRST);
    run_block(&w, 1);
    unify(&w);
    assert_int_equal(w.code.stmt_count, 5);
    assert_int_equal(w.blocks[1]->graph.input_count, 2);
    close_world(&w);
}

/* A jump arrives between the reads: what came before may not have run. */
static void nothing_is_known_where_jumps_arrive(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, 0);
    run_block(&w, 0);
    read_number(&w, ONE, FIRST);
    add_stmt(&w, (struct rt_stmt){.kind = RT_STMT_JUMP_FALSE, .target = 4, .a = ONE});
    read_number(&w, ONE, X);
    read_number(&w, TWO, SECOND);
    run_block(&w, 1);
    unify(&w);
    assert_int_equal(w.code.stmt_count, 6);
    assert_int_equal(w.blocks[1]->graph.input_count, 2);
    close_world(&w);
}

/* Statements move together, and jumps go where they went. */
static void jumps_follow_what_moves(void **unused)
{
    struct world w;
    (void)unused;
    open_world(&w, 0);
    run_block(&w, 0);
    read_number(&w, ONE, FIRST);
    read_number(&w, TWO, SECOND);
    run_block(&w, 1);
    add_stmt(&w, (struct rt_stmt){.kind = RT_STMT_JUMP_FALSE, .target = 6, .a = ONE});
    read_number(&w, SUM, X);
    unify(&w);
    assert_int_equal(w.code.stmt_count, 5);
    assert_int_equal(w.stmts[3].kind, RT_STMT_JUMP_FALSE);
    assert_int_equal(w.stmts[3].target, 5);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_that_is_read_twice_is_one),
        cmocka_unit_test(other_elements_are_other_numbers),
        cmocka_unit_test(a_register_that_changes_has_other_numbers),
        cmocka_unit_test(nothing_is_known_where_jumps_arrive),
        cmocka_unit_test(jumps_follow_what_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
