/* SPDX-License-Identifier: MIT */
/* Calls of methods whose code has statements, as a kind of callable; walk.c walks them. */
#include "config.h"

#include "runtime/vm/vm.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"

/* ---- preparing ------------------------------------------------------------------------------- */

static bool open_vm(struct rt_invocation *inv)
{
    struct vm *vm = vm_new(inv->method);
    inv->own = vm;
    inv->heap_bytes += vm ? vm->heap_bytes : 0;
    return vm != NULL;
}

static void close_vm(struct rt_invocation *inv)
{
    struct vm *vm = vm_of(inv);
    vm->magic = 0;
    free(vm);
}

/* Does the entry take the inputs? All other sizes, and the memory, come with the walk. */
static enum status plan(struct rt_invocation *inv, enum rt_prepare_mode mode, struct error *err)
{
    const struct rt_code *code = &inv->method->code;
    struct rt_plan *found;
    uint32_t inputs = rt_method_input_count(inv->method);
    if (code->stmts[0].kind != RT_STMT_BLOCK || code->stmts[0].target != 0 ||
        code->blocks[0]->graph.input_count != inputs) {
        return ST_OK;
    }
    TRY(rt_invocation_find_plan(inv, code->blocks[0], mode, &found, err));
    rt_plan_unref(found);
    return ST_OK;
}

/* Results get their memory when they are computed. */
static enum status place(struct rt_invocation *inv, struct error *err)
{
    (void)err;
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        inv->results[i] = (struct rt_result){.shape = rt_method_result(inv->method, i)->shape};
    }
    return ST_OK;
}

/* Results of known size get their memory before the walk. */
static enum status feed(struct rt_invocation *inv, struct error *err)
{
    struct rt_method *method = inv->method;
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct rt_result_info *infos = calloc((size_t)results + 1, sizeof(*infos));
    const struct shape **shapes = calloc((size_t)inputs + 1, sizeof(struct shape *));
    enum status status = infos && shapes ? ST_OK : error_set(err, ST_EXHAUSTED, "no memory");
    for (uint32_t i = 0; status == ST_OK && i < inputs; i++) {
        shapes[i] = rt_method_input(method, i)->kind == RT_IO_TENSOR ? &inv->inputs[i].shape : NULL;
    }
    if (status == ST_OK) {
        status = rt_method_result_shapes(method, shapes, infos, err);
    }
    for (uint32_t i = 0; status == ST_OK && i < results; i++) {
        if (infos[i].is_tensor && infos[i].is_known && !inv->bound[i].buffer) {
            status = hal_pool_reserve(inv->run_pool, infos[i].bytes, &inv->bound[i].buffer, err);
            inv->bytes += status == ST_OK ? infos[i].bytes : 0;
        }
        if (infos[i].is_tensor && infos[i].is_known) {
            inv->results[i].shape = infos[i].shape;
        }
    }
    free(shapes);
    free(infos);
    return status;
}

/* A scalar is known when it has been computed. */
static bool find_result(const struct rt_invocation *inv, uint32_t index,
                        struct rt_buffer_desc *out_desc)
{
    bool is_tensor = rt_method_result(inv->method, index)->kind == RT_IO_TENSOR;
    return is_tensor ? rt_single_callable.find_result(inv, index, out_desc)
                     : inv->phase == RT_PHASE_DONE;
}

/* ---- running --------------------------------------------------------------------------------- */

static void walk_next(struct rt_invocation *inv, enum hal_caller caller);

static void on_wait(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_RUNNING);
    if (status == ST_OK) {
        walk_next(inv, HAL_CALLER_BUSY);
    } else {
        rt_invocation_end(inv, status);
    }
}

/* A thread walks the statements; it begins when nothing is left to wait for. */
static void walk_next(struct rt_invocation *inv, enum hal_caller caller)
{
    if (inv->waits_over == inv->wait_count) {
        vm_run(inv, caller);
        return;
    }
    const struct hal_timepoint *next = &inv->waits[inv->waits_over++];
    rt_invocation_await(inv, next->semaphore, next->value, on_wait);
}

static enum status start_code(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                              enum hal_caller caller)
{
    (void)semaphore;
    walk_next(inv, caller);
    return ST_OK;
}

const struct rt_callable vm_callable = {
    .platform = RT_PLATFORM_FILE,
    .has_own_work = true,
    .why_alone = REASON_CONTROL_FLOW,
    .fini = rt_invocation_free_kept,
    .measure = rt_results_measure,
    .open = open_vm,
    .close = close_vm,
    .plan = plan,
    .place = place,
    .start = start_code,
    .find_result = find_result,
    .feed = feed,
};
