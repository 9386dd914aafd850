/* SPDX-License-Identifier: MIT */
/* Two methods as one: which results become which inputs, and what the joined plan refers to. */
#include "config.h"

#include "runtime/load/compose.h"

#include <string.h>

#include "base/bytes.h"
#include "runtime/program/composition.h"
#include "runtime/pte/pte.h"
#include "tests/unit/unit.h"

enum { WIDTH = 4, FIRST_MAX = 20, SECOND_MAX = 8, PLANS = 2 };

/* The values of the first plan, and of the second one. */
enum { F_IDS, F_ROWS, F_INTS, F_TENSORS, F_COUNT };
enum { S_POSITION, S_ROWS, S_LOGITS, S_BOOL, S_BUFFER, S_COUNT };

static const struct rt_composition composition = {"embed", "decode", "forward"};

/* Two methods of a file: embed(ids) -> rows, and decode(position, rows) -> logits. */
struct world {
    struct arena arena;
    struct error err;
    struct pte_tensor ids, rows, position, taken, logits, buffer;
    struct pte_value first[F_COUNT], second[S_COUNT];
    struct pte_instr first_instrs[2], second_instrs[2];
    struct pte_plan plans[PLANS];
};

static const uint32_t ints[] = {F_IDS}, optional[] = {F_ROWS, PTE_NO_VALUE};
static const uint32_t first_args[] = {F_IDS, F_ROWS}, second_args[] = {S_ROWS, S_LOGITS};
static const uint32_t condition[] = {S_BOOL};
static const uint32_t first_inputs[] = {F_IDS}, first_outputs[] = {F_ROWS};
static const uint32_t second_inputs[] = {S_POSITION, S_ROWS}, second_outputs[] = {S_LOGITS};
static const char *const first_operators[] = {"aten::embedding.out"};
static const char *const second_operators[] = {"aten::mm.out", "aten::add.out"};
static const struct pte_delegate delegates[] = {{.id = "a"}, {.id = "b"}, {.id = "c"}};
static const uint64_t first_memory[] = {640}, second_memory[] = {1000, 64};

static struct pte_tensor tensor(enum dtype dtype, uint8_t rank, int64_t count, int64_t width)
{
    struct pte_tensor t = {.dtype = dtype, .dynamism = PTE_DYNAMIC_BOUND, .name = ""};
    t.shape = (struct shape){.rank = rank, .dims = {rank == 1 ? count : 1, count, width}};
    t.storage = PTE_PLANNED;
    t.byte_count = (size_t)(count * width) * dtype_bytes(dtype);
    return t;
}

static void fill_first(struct world *w)
{
    w->ids = tensor(DT_I64, 2, FIRST_MAX, 1);
    w->rows = tensor(DT_F32, 3, FIRST_MAX, WIDTH);
    w->rows.offset = 320;
    w->first[F_IDS] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->ids};
    w->first[F_ROWS] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->rows};
    w->first[F_INTS] = (struct pte_value){.kind = PTE_INT_LIST, .list = {1, {ints}}};
    w->first[F_TENSORS] =
        (struct pte_value){.kind = PTE_OPTIONAL_TENSOR_LIST, .list = {2, {optional}}};
    w->first_instrs[0] = (struct pte_instr){.kind = PTE_KERNEL, .arg_count = 2, .args = first_args};
    w->first_instrs[1] =
        (struct pte_instr){.kind = PTE_DELEGATE, .index = 1, .arg_count = 2, .args = first_args};
    w->plans[0] = (struct pte_plan){.name = "embed",
                                    .values = w->first,
                                    .value_count = F_COUNT,
                                    .inputs = first_inputs,
                                    .input_count = 1,
                                    .outputs = first_outputs,
                                    .output_count = 1,
                                    .operators = first_operators,
                                    .operator_count = 1,
                                    .delegates = delegates + 1,
                                    .delegate_count = 2,
                                    .instrs = w->first_instrs,
                                    .instr_count = 2,
                                    .memory_bytes = first_memory,
                                    .memory_count = 1};
}

static void fill_second(struct world *w)
{
    w->position = tensor(DT_I64, 1, 1, 1);
    w->taken = tensor(DT_F32, 3, SECOND_MAX, WIDTH);
    w->logits = tensor(DT_F32, 3, SECOND_MAX, WIDTH);
    w->buffer = tensor(DT_F32, 3, SECOND_MAX, WIDTH);
    w->buffer.offset = 512;
    w->second[S_POSITION] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->position};
    w->second[S_ROWS] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->taken};
    w->second[S_LOGITS] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->logits};
    w->second[S_BOOL] = (struct pte_value){.kind = PTE_BOOL};
    w->second[S_BUFFER] = (struct pte_value){.kind = PTE_TENSOR, .tensor = &w->buffer};
    w->second_instrs[0] =
        (struct pte_instr){.kind = PTE_JUMP_FALSE, .index = 1, .arg_count = 1, .args = condition};
    w->second_instrs[1] =
        (struct pte_instr){.kind = PTE_KERNEL, .index = 1, .arg_count = 2, .args = second_args};
    w->plans[1] = (struct pte_plan){.name = "decode",
                                    .values = w->second,
                                    .value_count = S_COUNT,
                                    .inputs = second_inputs,
                                    .input_count = 2,
                                    .outputs = second_outputs,
                                    .output_count = 1,
                                    .operators = second_operators,
                                    .operator_count = 2,
                                    .delegates = delegates,
                                    .delegate_count = 1,
                                    .instrs = w->second_instrs,
                                    .instr_count = 2,
                                    .memory_bytes = second_memory,
                                    .memory_count = 2};
}

static int set_up(void **state)
{
    static struct world w;
    w = (struct world){0};
    arena_init(&w.arena, 1 << 20);
    fill_first(&w);
    fill_second(&w);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    arena_fini(&w->arena);
    return 0;
}

static const struct pte_plan *compose(struct world *w, const struct rt_composition *said)
{
    const struct pte_plan *plan = NULL;
    assert_ok(w->err, rt_compose(w->plans, PLANS, said, &w->arena, &plan, &w->err));
    return plan;
}

static void test_inputs_and_results(void **state)
{
    const struct pte_plan *plan = compose(*state, &composition);
    assert_non_null(plan);
    assert_string_equal(plan->name, "forward");
    assert_int_equal(plan->value_count, S_COUNT + F_COUNT);
    assert_int_equal(plan->input_count, 2);
    assert_int_equal(plan->inputs[0], S_COUNT + F_IDS);
    assert_int_equal(plan->inputs[1], S_POSITION);
    assert_int_equal(plan->output_count, 1);
    assert_int_equal(plan->outputs[0], S_LOGITS);
}

static void test_values_of_the_first(void **state)
{
    const struct pte_plan *plan = compose(*state, &composition);
    const struct pte_value *list = &plan->values[S_COUNT + F_INTS];
    assert_int_equal(list->list.values[0], S_COUNT + F_IDS);
    list = &plan->values[S_COUNT + F_TENSORS];
    assert_int_equal(list->list.values[0], S_COUNT + F_ROWS);
    assert_int_equal(list->list.values[1], PTE_NO_VALUE);
}

static void test_instructions(void **state)
{
    const struct pte_plan *plan = compose(*state, &composition);
    const struct pte_instr *instrs = plan->instrs;
    assert_int_equal(plan->instr_count, 5);
    assert_string_equal(plan->operators[instrs[0].index], "aten::embedding.out");
    assert_int_equal(instrs[0].args[1], S_COUNT + F_ROWS);
    assert_string_equal(plan->delegates[instrs[1].index].id, "c");
    assert_int_equal(instrs[2].kind, PTE_MOVE);
    assert_int_equal(instrs[2].args[0], S_COUNT + F_ROWS);
    assert_int_equal(instrs[2].args[1], S_ROWS);
    assert_int_equal(instrs[3].index, 4); /* the jump leads to the same instruction */
    assert_string_equal(plan->operators[instrs[4].index], "aten::add.out");
}

/* Buffers stay where the second method has them, so calls of both use the same ones; nothing of the
 * first method lies there. */
static void test_memory(void **state)
{
    struct world *w = *state;
    const struct pte_plan *plan = compose(w, &composition);
    assert_ptr_equal(plan->base, &w->plans[1]);
    assert_ptr_equal(plan->values[S_BUFFER].tensor, &w->buffer);
    for (uint32_t i = 0; i < F_INTS; i++) {
        assert_true(plan->values[S_COUNT + i].tensor->offset >= second_memory[0]);
    }
    assert_int_equal(plan->values[S_COUNT + F_ROWS].tensor->offset -
                         plan->values[S_COUNT + F_IDS].tensor->offset,
                     w->rows.offset);
}

static void test_bound_is_the_lesser(void **state)
{
    struct world *w = *state;
    const struct pte_plan *plan = compose(w, &composition);
    assert_int_equal(plan->values[S_COUNT + F_IDS].tensor->shape.dims[1], SECOND_MAX);
    assert_int_equal(plan->values[S_COUNT + F_IDS].tensor->byte_count, SECOND_MAX * 8);
    assert_int_equal(w->ids.shape.dims[1], FIRST_MAX);
    w->taken = tensor(DT_F32, 3, 1, WIDTH);
    w->taken.dynamism = PTE_STATIC; /* one token a call */
    plan = compose(w, &composition);
    assert_int_equal(plan->values[S_COUNT + F_IDS].tensor->shape.dims[1], 1);
    assert_int_equal(plan->values[S_COUNT + F_IDS].tensor->dynamism, PTE_STATIC);
}

static void test_failure_is_kept(void **state)
{
    struct world *w = *state;
    const struct error failure = {.code = ST_UNSUPPORTED, .text = "no bytes"};
    w->plans[0].failure = &failure;
    assert_ptr_equal(compose(w, &composition)->failure, &failure);
}

static void test_what_does_not_fit(void **state)
{
    struct world *w = *state;
    assert_null(compose(w, &(struct rt_composition){"embed", "other", "forward"}));
    assert_null(compose(w, &(struct rt_composition){"other", "decode", "forward"}));
    assert_null(compose(w, &(struct rt_composition){"embed", "decode", "embed"}));
    w->taken.dtype = DT_F16;
    assert_null(compose(w, &composition));
    w->taken = tensor(DT_F32, 3, SECOND_MAX, WIDTH + 1);
    w->taken.dynamism = w->rows.dynamism = PTE_STATIC;
    assert_null(compose(w, &composition));
    w->taken = tensor(DT_F32, 2, SECOND_MAX, WIDTH);
    assert_null(compose(w, &composition));
    w->plans[0].output_count = 0;
    assert_null(compose(w, &composition));
}

static void test_no_memory(void **state)
{
    struct world *w = *state;
    const struct pte_plan *plan;
    for (size_t bytes = 64; bytes < 1024; bytes += 64) {
        arena_fini(&w->arena);
        arena_init(&w->arena, bytes);
        assert_int_equal(rt_compose(w->plans, PLANS, &composition, &w->arena, &plan, &w->err),
                         ST_TOO_LARGE);
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_inputs_and_results),  TEST(test_values_of_the_first),
        TEST(test_instructions),        TEST(test_memory),
        TEST(test_bound_is_the_lesser), TEST(test_failure_is_kept),
        TEST(test_what_does_not_fit),   TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
