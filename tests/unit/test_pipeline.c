/* SPDX-License-Identifier: MIT */
/* Methods that feed each other as one pipeline: the order of events from a record, the memory, and
 * refusals. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/program/method.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"
#include "runtime/program/signature.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ELEMENTS 6 /* elements of the tensors of model "add" */
#define THREADS 4
#define CALLS 60

/* ---- a world of models ----------------------------------------------------------------------- */

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *add, *mlp, *faults, *found, *sizes;
    struct error err;
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    const struct rt_load_options options = {.device = w->device};
    w->add = load_model("add", &options);
    w->mlp = load_model("mlp", &options);
    w->faults = load_model("faults", &options);
    w->found = load_model("found", &options);
    w->sizes = load_model("sizes", &options);
}

static void close_world(struct world *w)
{
    rt_program_unref(w->add);
    rt_program_unref(w->mlp);
    rt_program_unref(w->faults);
    rt_program_unref(w->found);
    rt_program_unref(w->sizes);
    close_two_workers(w->device, w->pool);
}

static struct rt_method *method_of(struct rt_program *program)
{
    return rt_program_default_method(program);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

/* ((a + b) + b) + b */
static struct rt_program *make_three(struct world *w)
{
    static const struct rt_source first[] = {IN(0), IN(1)}, second[] = {FROM(0, 0), IN(1)},
                                  third[] = {FROM(1, 0), IN(1)};
    struct rt_method *add = method_of(w->add);
    const struct rt_pipeline_step steps[] = {
        {"a", add, first, 2}, {"b", add, second, 2}, {"c", add, third, 2}};
    const struct rt_pipeline_desc desc = {.name = "three", .steps = steps, .step_count = 3};
    return make_pipeline(&desc);
}

/* (a + b) in two branches that meet: ((a + b) + a) + ((a + b) + b), and the first branch. */
static struct rt_program *make_diamond(struct world *w)
{
    static const struct rt_source top[] = {IN(0), IN(1)}, left[] = {FROM(0, 0), IN(0)},
                                  right[] = {FROM(0, 0), IN(1)},
                                  bottom[] = {FROM(1, 0), FROM(2, 0)};
    static const struct rt_source outputs[] = {FROM(3, 0), FROM(1, 0)};
    struct rt_method *add = method_of(w->add);
    const struct rt_pipeline_step steps[] = {{"top", add, top, 2},
                                             {"left", add, left, 2},
                                             {"right", add, right, 2},
                                             {"bottom", add, bottom, 2}};
    const struct rt_pipeline_desc desc = {
        .name = "diamond", .steps = steps, .step_count = 4, .outputs = outputs, .output_count = 2};
    return make_pipeline(&desc);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const float as[ELEMENTS] = {1, 2, 3, 4, 5, 6}, bs[ELEMENTS] = {10, 20, 30, 40, 50, 60};

static enum status give(struct rt_invocation *inv, uint32_t index, const void *data,
                        struct error *err)
{
    const struct rt_io *io = rt_method_input(rt_invocation_method(inv), index);
    void *ptr;
    size_t bytes;
    must(shape_bytes(&io->shape, io->dtype, &bytes, NULL) == ST_OK);
    TRY(rt_invocation_input(inv, index, io->dtype, &io->shape, &ptr, err));
    memcpy(ptr, data, bytes);
    return ST_OK;
}

/* A prepared call with inputs a and b. */
static struct rt_invocation *begin(struct world *w, struct rt_program *program)
{
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(method_of(program), w->pool, &inv, &w->err));
    assert_ok(w->err, give(inv, 0, as, &w->err));
    assert_ok(w->err, give(inv, 1, bs, &w->err));
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

/* Checks that every element is |a| times a plus |b| times b. */
static void assert_result(struct rt_invocation *inv, uint32_t index, float a, float b)
{
    const struct rt_result *result = rt_invocation_result(inv, index);
    float values[ELEMENTS];
    assert_int_equal(result->bytes.len, sizeof(values));
    memcpy(values, result->bytes.ptr, sizeof(values));
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(values[i] == a * as[i] + b * bs[i]);
    }
}

/* ---- what was recorded ----------------------------------------------------------------------- */

struct record {
    pthread_mutex_t mutex;
    uint32_t count;
    struct {
        enum rt_cascade_event event;
        uint32_t step;
    } events[64];
};

static void on_event(enum rt_cascade_event event, uint32_t step, void *arg)
{
    struct record *record = arg;
    pthread_mutex_lock(&record->mutex);
    must(record->count < 64);
    record->events[record->count].event = event;
    record->events[record->count++].step = step;
    pthread_mutex_unlock(&record->mutex);
}

/* The position of an event in the record; -1: it is not there. */
static int position(const struct record *record, enum rt_cascade_event event, uint32_t step)
{
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->events[i].event == event && record->events[i].step == step) {
            return (int)i;
        }
    }
    return -1;
}

static void a_pipeline_is_a_method(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_three(&w);
    struct rt_method *method = method_of(program);
    const struct rt_signature *signature = rt_method_signature(method);
    assert_string_equal(rt_method_platform(method), "pipeline");
    assert_false(rt_method_has_own_work(method));
    assert_string_equal(rt_method_platform(method_of(w.add)), "executorch_pte");
    assert_true(rt_method_has_own_work(method_of(w.add)));
    assert_string_equal(rt_method_name(method), "three");
    assert_int_equal(rt_method_input_count(method), 2);
    assert_int_equal(rt_method_result_count(method), 1);
    assert_string_equal(signature->f, "I15!B5!d2d3B5!d2d3R8!B5!d2d3");
    assert_null(signature->fbr);
    assert_false(signature->is_positional);
    struct rt_input_stats before = rt_method_input_stats(method_of(w.add));
    struct rt_invocation *inv = begin(&w, program);
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_result(inv, 0, 1, 3);
    rt_invocation_free(inv);
    struct rt_input_stats after = rt_method_input_stats(method_of(w.add));
    assert_int_equal(after.in_place - before.in_place, 6); /* every input of every step */
    assert_int_equal(after.converted, before.converted);
    rt_program_unref(program);
    close_world(&w);
}

static atomic_uint done_count;

static void count_done(struct rt_invocation *inv, enum status status, void *arg)
{
    atomic_fetch_add(&done_count, 1);
    on_done(inv, status, arg);
}

/* The first step cannot start. The others are submitted before it may start. */
static void all_steps_are_submitted_before_the_first_completes(void **state)
{
    struct world w;
    struct record record = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct done done = DONE_INIT;
    struct hal_semaphore *gate;
    (void)state;
    open_world(&w);
    assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
    struct rt_program *program = make_diamond(&w);
    struct rt_invocation *inv = begin(&w, program);
    rt_invocation_after(inv, &(struct hal_timepoint){gate, 1});
    rt_cascade_trace(rt_invocation_cascade(inv), on_event, &record);
    atomic_store(&done_count, 0);
    rt_invocation_submit(inv, HAL_CALLER_QUICK, count_done, &done);
    assert_int_equal(record.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(record.events[i].event, RT_CASCADE_SUBMITTED);
        assert_int_equal(record.events[i].step, i);
    }
    assert_int_equal(atomic_load(&done_count), 0);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&done), ST_OK);
    assert_int_equal(atomic_load(&done_count), 1); /* the waiter is woken once */
    assert_int_equal(record.count, 8);
    assert_result(inv, 0, 3, 3);
    assert_result(inv, 1, 2, 1);
    rt_invocation_free(inv);
    rt_program_unref(program);
    hal_semaphore_unref(gate);
    close_world(&w);
}

/* If a gate fails, everything that waits for it fails. */
static void a_failing_gate_fails_the_pipeline(void **state)
{
    struct world w;
    struct done done = DONE_INIT;
    struct hal_semaphore *gate;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_three(&w);
    for (int i = 0; i < 3; i++) {
        assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
        struct rt_invocation *inv = begin(&w, program);
        rt_invocation_after(inv, &(struct hal_timepoint){gate, 1});
        done.is_done = false;
        rt_invocation_submit(inv, HAL_CALLER_QUICK, on_done, &done);
        hal_semaphore_fail(gate, ST_UNAVAILABLE);
        assert_int_equal(await_done(&done), ST_UNAVAILABLE);
        assert_non_null(strstr(rt_invocation_error(inv)->text, "step 0 (a): "));
        rt_invocation_free(inv);
        hal_semaphore_unref(gate);
        assert_int_equal(reserved_count(w.pool), 0);
        inv = begin(&w, program); /* the next one is not affected */
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        rt_invocation_free(inv);
    }
    rt_program_unref(program);
    close_world(&w);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* a / b, and the quotient / b. */
static struct rt_program *make_divisions(struct world *w)
{
    static const struct rt_source first[] = {IN(0), IN(1)}, second[] = {FROM(0, 0), IN(2)};
    struct rt_method *divide = rt_program_find_method(w->faults, span_str("divide"));
    const struct rt_pipeline_step steps[] = {{"first", divide, first, 2},
                                             {"second", divide, second, 2}};
    const struct rt_pipeline_desc desc = {.name = "divisions", .steps = steps, .step_count = 2};
    assert_non_null(divide);
    return make_pipeline(&desc);
}

static enum status divide(struct world *w, struct rt_program *program, const int64_t b[4],
                          const int64_t c[4], struct error *err)
{
    static const int64_t a[4] = {70, 80, 90, 100};
    struct rt_invocation *inv;
    TRY(rt_invocation_new(method_of(program), w->pool, &inv, err));
    must(give(inv, 0, a, err) == ST_OK && give(inv, 1, b, err) == ST_OK &&
         give(inv, 2, c, err) == ST_OK);
    must(rt_invocation_prepare(inv, RT_PREPARE_ALL, err) == ST_OK);
    enum status status = submit_and_wait(inv, false);
    if (status != ST_OK) {
        *err = *rt_invocation_error(inv);
    } else {
        const int64_t *out = (const void *)rt_invocation_result(inv, 0)->bytes.ptr;
        for (int i = 0; i < 4; i++) {
            assert_int_equal(out[i], a[i] / b[i] / c[i]);
        }
    }
    rt_invocation_free(inv);
    return status;
}

static void a_failing_step_ends_the_whole(void **state)
{
    static const int64_t good[4] = {1, 2, 3, 4}, bad[4] = {1, 0, 3, 4};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_divisions(&w);
    for (int i = 0; i < 10; i++) {
        assert_fails(w.err, divide(&w, program, bad, good, &w.err), ST_INVALID, "step 0 (first): ");
        assert_non_null(strstr(w.err.text, "an integer is divided by zero"));
        assert_fails(w.err, divide(&w, program, good, bad, &w.err), ST_INVALID,
                     "step 1 (second): ");
        assert_non_null(strstr(w.err.text, "an integer is divided by zero"));
        assert_int_equal(reserved_count(w.pool), 0);
        assert_ok(w.err, divide(&w, program, good, good, &w.err));
    }
    rt_program_unref(program);
    close_world(&w);
}

/* Whichever memory is missing, nothing stays taken, and the same call works once there is room. */
static void memory_is_for_the_whole_cascade_or_for_none(void **state)
{
    struct world w;
    struct rt_invocation *inv;
    struct hal_buffer *rest;
    struct hal_pool_stats stats;
    uint32_t refusals = 0;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_three(&w);
    size_t align = hal_device_props(w.device)->buffer_align;
    for (size_t room = 2; room < 8; room++) {
        hal_pool_stats(w.pool, &stats);
        assert_ok(w.err, hal_pool_reserve(w.pool, stats.size_bytes - room * align, &rest, &w.err));
        assert_ok(w.err, rt_invocation_new(method_of(program), w.pool, &inv, &w.err));
        assert_ok(w.err, give(inv, 0, as, &w.err));
        assert_ok(w.err, give(inv, 1, bs, &w.err));
        size_t before = rt_invocation_bytes(inv);
        enum status status = rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err);
        if (status != ST_OK) {
            refusals++;
            assert_int_equal(status, ST_EXHAUSTED);
            assert_int_equal(rt_invocation_bytes(inv), before);
            hal_pool_stats(w.pool, &stats);
            assert_int_equal(stats.reserved_count, 3); /* the inputs, and memory that is taken */
        }
        hal_buffer_unref(rest);
        assert_ok(w.err,
                  status == ST_OK ? ST_OK : rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        assert_true(rt_invocation_bytes(inv) > before);
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        assert_result(inv, 0, 1, 3);
        rt_invocation_free(inv);
        assert_int_equal(reserved_count(w.pool), 0);
    }
    assert_true(refusals >= 2);
    rt_program_unref(program);
    close_world(&w);
}

struct caller {
    struct world *w;
    struct rt_program *program;
    unsigned seed;
};

static void *call_and_cancel(void *arg)
{
    struct caller *caller = arg;
    struct error err;
    for (int i = 0; i < CALLS; i++) {
        struct rt_invocation *inv;
        must(rt_invocation_new(method_of(caller->program), caller->w->pool, &inv, &err) == ST_OK);
        must(give(inv, 0, as, &err) == ST_OK && give(inv, 1, bs, &err) == ST_OK);
        unsigned choice = (caller->seed = caller->seed * 1103515245 + 12345) >> 16 & 3;
        if (choice > 0 && rt_invocation_prepare(inv, RT_PREPARE_ALL, &err) == ST_OK && choice > 1) {
            enum status status = submit_and_wait(inv, choice == 2);
            must(status == ST_OK || (choice == 2 && status == ST_CANCELLED));
        }
        rt_invocation_free(inv);
    }
    return NULL;
}

static void cancelled_calls_leave_nothing(void **state)
{
    struct world w;
    pthread_t threads[THREADS];
    struct caller callers[THREADS];
    (void)state;
    open_world(&w);
    struct rt_program *programs[] = {make_three(&w), make_diamond(&w)};
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){&w, programs[i % 2], i};
        assert_int_equal(pthread_create(&threads[i], NULL, call_and_cancel, &callers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(reserved_count(w.pool), 0);
    rt_program_unref(programs[0]);
    rt_program_unref(programs[1]);
    close_world(&w);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Two pipelines in a third one, and a batch that varies. */
static void pipelines_nest_and_dims_vary(void **state)
{
    static const struct rt_source mlp_in[] = {IN(0)};
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_pipeline_step one = {"mlp", method_of(w.mlp), mlp_in, 1};
    const struct rt_pipeline_desc inner_desc = {.name = "inner", .steps = &one, .step_count = 1};
    struct rt_program *inner = make_pipeline(&inner_desc);
    const struct rt_pipeline_step two = {"inner", method_of(inner), mlp_in, 1};
    const struct rt_pipeline_desc outer_desc = {.name = "outer", .steps = &two, .step_count = 1};
    struct rt_program *outer = make_pipeline(&outer_desc);
    assert_string_equal(rt_method_signature(method_of(outer))->readable,
                        rt_method_signature(method_of(w.mlp))->readable);
    assert_string_equal(rt_method_signature(method_of(outer))->fbr, "outer$results");
    for (int64_t rows = 1; rows <= 32; rows += 5) {
        struct shape shape = {.rank = 2, .dims = {rows, 12}};
        const struct shape *shapes[] = {&shape};
        struct rt_result_info info;
        struct rt_invocation *inv;
        void *ptr;
        assert_ok(w.err, rt_method_result_shapes(method_of(outer), shapes, &info, &w.err));
        assert_true(info.is_known && info.shape.dims[0] == rows && info.shape.dims[1] == 5);
        assert_ok(w.err, rt_invocation_new(method_of(outer), w.pool, &inv, &w.err));
        assert_ok(w.err, rt_invocation_input(inv, 0, DT_F32, &shape, &ptr, &w.err));
        memset(ptr, 0, (size_t)rows * 12 * sizeof(float));
        assert_int_equal(rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w.err), ST_WOULD_PLAN);
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        assert_int_equal(rt_invocation_result(inv, 0)->bytes.len, (size_t)rows * 5 * sizeof(float));
        rt_invocation_free(inv);
        assert_ok(w.err, rt_invocation_new(method_of(outer), w.pool, &inv, &w.err));
        assert_ok(w.err, rt_invocation_input(inv, 0, DT_F32, &shape, &ptr, &w.err));
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w.err));
        rt_invocation_free(inv);
    }
    rt_program_unref(inner);
    rt_program_unref(outer);
    close_world(&w);
}

/* A step at any depth that runs as one with others does so in the memory for that: its pipeline may
 * be gone, with its own pool, before the others are over. */
static void steps_join_others_outside_their_pipeline(void **state)
{
    static const struct rt_source source[] = {IN(0)};
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_pipeline_step one = {"mlp", method_of(w.mlp), source, 1};
    const struct rt_pipeline_desc inner_desc = {.name = "inner", .steps = &one, .step_count = 1};
    struct rt_program *inner = make_pipeline(&inner_desc);
    const struct rt_pipeline_step two = {"inner", method_of(inner), source, 1};
    const struct rt_pipeline_desc outer_desc = {.name = "outer", .steps = &two, .step_count = 1};
    struct rt_program *outer = make_pipeline(&outer_desc);
    struct hal_pool *own, *running;
    assert_ok(w.err, hal_pool_share(w.pool, &own, &w.err));
    assert_ok(w.err, hal_pool_share(w.pool, &running, &w.err));
    struct rt_invocation *calls[2], *steps[2];
    struct done done[2] = {DONE_INIT, DONE_INIT};
    void *args[2] = {&done[0], &done[1]};
    for (int i = 0; i < 2; i++) {
        struct shape shape = {.rank = 2, .dims = {1, 12}};
        void *ptr;
        assert_ok(w.err, rt_invocation_new(method_of(outer), own, &calls[i], &w.err));
        rt_invocation_run_in(calls[i], running);
        assert_ok(w.err, rt_invocation_input(calls[i], 0, DT_F32, &shape, &ptr, &w.err));
        memset(ptr, 0, 12 * sizeof(float));
        assert_ok(w.err, rt_invocation_prepare(calls[i], RT_PREPARE_ALL, &w.err));
        steps[i] = rt_cascade_step(rt_invocation_cascade(calls[i]), 0);
        steps[i] = rt_cascade_step(rt_invocation_cascade(steps[i]), 0);
    }
    struct hal_pool_stats before, after;
    hal_pool_stats(own, &before);
    assert_ok(w.err, rt_batch_submit(steps, args, 2, on_done, &w.err));
    assert_int_equal(await_done(&done[0]), ST_OK);
    assert_int_equal(await_done(&done[1]), ST_OK);
    hal_pool_stats(own, &after);
    assert_int_equal(after.held_peak_bytes, before.held_peak_bytes);
    hal_pool_stats(running, &after);
    assert_true(after.held_peak_bytes > 0);
    for (int i = 0; i < 2; i++) {
        rt_invocation_free(calls[i]);
    }
    hal_pool_free(own);
    hal_pool_free(running);
    rt_program_unref(inner);
    rt_program_unref(outer);
    close_world(&w);
}

/* The first step has a plan and the second has none. The first step gives back its memory. */
static void asking_a_pipeline_changes_nothing(void **state)
{
    static const struct rt_source first[] = {IN(0)}, second[] = {IN(1)};
    static const struct rt_source outputs[] = {FROM(0, 0), FROM(1, 0)};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_method *mlp = method_of(w.mlp);
    const struct rt_pipeline_step steps[] = {{"one", mlp, first, 1}, {"two", mlp, second, 1}};
    const struct rt_pipeline_desc desc = {
        .name = "twice", .steps = steps, .step_count = 2, .outputs = outputs, .output_count = 2};
    struct rt_program *program = make_pipeline(&desc);
    for (int64_t rows = 2; rows <= 3; rows++) {
        struct rt_invocation *inv;
        assert_ok(w.err, rt_invocation_new(method_of(program), w.pool, &inv, &w.err));
        for (uint32_t i = 0; i < 2; i++) {
            struct shape shape = {.rank = 2, .dims = {i == 0 ? 2 : rows, 12}};
            void *ptr;
            assert_ok(w.err, rt_invocation_input(inv, i, DT_F32, &shape, &ptr, &w.err));
            memset(ptr, 0, (size_t)shape.dims[0] * 12 * sizeof(float));
        }
        uint64_t plans = rt_method_plan_stats(mlp).count;
        size_t bytes = rt_invocation_bytes(inv), reserved = reserved_count(w.pool);
        assert_int_equal(rt_invocation_plan(inv, RT_PREPARE_CACHED, &w.err), ST_WOULD_PLAN);
        assert_int_equal(rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w.err), ST_WOULD_PLAN);
        assert_int_equal(rt_method_plan_stats(mlp).count, plans);
        assert_int_equal(rt_invocation_bytes(inv), bytes);
        assert_int_equal(reserved_count(w.pool), reserved);
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        assert_int_equal(rt_method_plan_stats(mlp).count, plans + 1);
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        rt_invocation_free(inv);
    }
    assert_int_equal(reserved_count(w.pool), 0);
    rt_program_unref(program);
    close_world(&w);
}

/*
 * Model "found" chooses the elements of its first input that are above 0 and sums the rows of the
 * second one: one result of a size that depends on data, one of a known size.
 */
static struct rt_program *make_late(struct world *w)
{
    static const struct rt_source find[] = {IN(0), IN(1)}, late[] = {FROM(0, 1), IN(2)},
                                  early[] = {IN(2), FROM(0, 3)};
    static const struct rt_source outputs[] = {FROM(1, 1), FROM(2, 1), FROM(0, 2)};
    struct rt_method *sizes = method_of(w->sizes);
    const struct rt_pipeline_step steps[] = {{"find", method_of(w->found), find, 2},
                                             {"late", sizes, late, 2},
                                             {"early", sizes, early, 2}};
    const struct rt_pipeline_desc desc = {
        .name = "late", .steps = steps, .step_count = 3, .outputs = outputs, .output_count = 3};
    return make_pipeline(&desc);
}

/* |count| elements are above 0: each is 3. */
static struct rt_invocation *begin_late(struct world *w, struct rt_program *program, int count)
{
    static const float rows[6] = {1, 2, 3, 4, 5, 6};
    const struct shape shape = {.rank = 1, .dims = {4}};
    float values[20];
    struct rt_invocation *inv;
    void *ptr;
    for (int i = 0; i < 20; i++) {
        values[i] = i < count ? 3 : -3;
    }
    assert_ok(w->err, rt_invocation_new(method_of(program), w->pool, &inv, &w->err));
    assert_ok(w->err, give(inv, 0, values, &w->err));
    assert_ok(w->err, give(inv, 1, rows, &w->err));
    assert_ok(w->err, rt_invocation_input(inv, 2, DT_F32, &shape, &ptr, &w->err));
    memcpy(ptr, as, 4 * sizeof(float));
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

/* Step 1 waits for step 0 to know its sizes. Step 2 takes a result of known size and does not
 * wait. */
static void only_what_depends_on_data_waits(void **state)
{
    struct world w;
    struct record record = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct done done = DONE_INIT;
    struct hal_semaphore *gate;
    (void)state;
    open_world(&w);
    assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
    struct rt_program *program = make_late(&w);
    struct rt_invocation *inv = begin_late(&w, program, 5);
    rt_invocation_after(inv, &(struct hal_timepoint){gate, 1});
    rt_cascade_trace(rt_invocation_cascade(inv), on_event, &record);
    rt_invocation_submit(inv, HAL_CALLER_QUICK, on_done, &done);
    assert_int_equal(record.count, 2);
    assert_int_equal(position(&record, RT_CASCADE_SUBMITTED, 0), 0);
    assert_int_equal(position(&record, RT_CASCADE_SUBMITTED, 2), 1);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&done), ST_OK);
    assert_int_equal(record.count, 6);
    assert_true(position(&record, RT_CASCADE_SUBMITTED, 1) >
                position(&record, RT_CASCADE_COMPLETED, 0));
    const struct rt_result *late = rt_invocation_result(inv, 0),
                           *early = rt_invocation_result(inv, 1),
                           *count = rt_invocation_result(inv, 2);
    assert_int_equal(late->shape.dims[0], 5);
    assert_true(*(const float *)(const void *)late->bytes.ptr == (3 * 2 + 1) * (5.0f / 4));
    assert_int_equal(early->shape.dims[0], 4);
    assert_true(*(const float *)(const void *)early->bytes.ptr == as[0] * (4.0f / 2));
    assert_int_equal(*(const int64_t *)(const void *)count->bytes.ptr, 5);
    rt_invocation_free(inv);
    rt_program_unref(program);
    hal_semaphore_unref(gate);
    close_world(&w);
}

/* A late step refuses its inputs, or it never starts. */
static void a_late_step_may_fail(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_late(&w);
    for (int i = 0; i < 5; i++) {
        struct rt_invocation *inv = begin_late(&w, program, 12); /* the largest is 9 */
        assert_int_equal(submit_and_wait(inv, false), ST_INVALID);
        assert_string_equal(rt_invocation_error(inv)->text,
                            "step 1 (late): input 'input_0': dim 0 is 12, expected at most 9");
        rt_invocation_free(inv);
        inv = begin_late(&w, program, 5);
        enum status status = submit_and_wait(inv, true);
        assert_true(status == ST_OK || status == ST_CANCELLED);
        rt_invocation_free(inv);
        assert_int_equal(reserved_count(w.pool), 0);
    }
    rt_program_unref(program);
    close_world(&w);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void assert_refused(struct world *w, const struct rt_pipeline_step *steps, uint32_t count,
                           const struct rt_source *output, const char *text)
{
    const struct rt_pipeline_desc desc = {.name = "bad",
                                          .steps = steps,
                                          .step_count = count,
                                          .outputs = output,
                                          .output_count = output ? 1 : 0};
    struct rt_program *program;
    assert_fails(w->err, rt_pipeline_new(&desc, &program, &w->err), ST_INVALID, text);
    assert_string_equal(w->err.text, text);
}

static void impossible_graphs_are_refused(void **state)
{
    static const struct rt_source good[] = {IN(0), IN(1)}, later[] = {FROM(1, 0), IN(0)},
                                  self[] = {FROM(0, 0), IN(0)}, nowhere[] = {FROM(9, 0), IN(0)},
                                  output[] = {FROM(0, 1), IN(0)}, gap[] = {IN(0), IN(3)},
                                  nothing[] = {{0}, IN(0)}, dims[] = {FROM(0, 0), IN(0)},
                                  far[] = {IN(256), IN(0)}, one[] = {IN(0)}, past = FROM(0, 3),
                                  rank[] = {FROM(0, 0)};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_method *add = method_of(w.add), *mlp = method_of(w.mlp);
    struct rt_method *div = rt_program_find_method(w.faults, span_str("divide"));
    const struct rt_pipeline_step ok = {"a", add, good, 2};
#define REFUSED(last, text)                                                                        \
    assert_refused(&w, (const struct rt_pipeline_step[]){ok, {"b", add, last, 2}}, 2, NULL, text)
    REFUSED(later, "step 1 (b): input 'input_0': takes a result of step 1, which is itself");
    REFUSED(nowhere, "step 1 (b): input 'input_0': step 9: there are 2");
    REFUSED(output, "step 1 (b): input 'input_0': output 1: there are 1");
    REFUSED(gap, "inputs have a gap: 2 is unused, 3 is used");
    REFUSED(nothing, "step 1 (b): input 'input_0': expected float32[2,3], got nothing");
    REFUSED(far, "step 1 (b): input 'input_0': input 256: there are 256");
    assert_refused(&w, &(struct rt_pipeline_step){"a", add, self, 2}, 1, NULL,
                   "step 0 (a): input 'input_0': takes a result of step 0, which is itself");
    assert_refused(&w, &(struct rt_pipeline_step){"a", add, one, 1}, 1, NULL,
                   "step 0 (a): expected 2 inputs, got 1");
    assert_refused(&w, (const struct rt_pipeline_step[]){{"a", add, later, 2}, ok}, 2, NULL,
                   "step 0 (a): input 'input_0': takes a result of step 1, which comes later");
    assert_refused(&w, &ok, 1, &past, "outputs: output 3: there are 1");
    assert_refused(&w, &ok, 0, NULL, "expected 1 to 64 steps, got 0");
    assert_refused(&w, (const struct rt_pipeline_step[]){ok, {"b", div, dims, 2}}, 2, NULL,
                   "step 1 (b): input 'input_0': expected int64[4], got float32[2,3]");
    assert_refused(&w, (const struct rt_pipeline_step[]){ok, {"b", mlp, rank, 1}}, 2, NULL,
                   "step 1 (b): input 'input_0': expected float32[?,12], got float32[2,3]");
    assert_refused(&w, (const struct rt_pipeline_step[]){ok, {"b", div, good, 2}}, 2, NULL,
                   "step 1 (b): input 'input_0': expected int64[4], got float32[2,3]");
    close_world(&w);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void assert_names(const struct rt_method *method, const char *const *inputs,
                         const char *const *results)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        assert_string_equal(rt_method_input(method, i)->name, inputs[i]);
    }
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        assert_string_equal(rt_method_result(method, i)->name, results[i]);
    }
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__})

/* Model "keywords": (x, {ids, positions}, *, mask, {image, scales}) -> {logits, boxes, kept}. */
static void names_follow_the_steps(void **state)
{
    static const struct rt_source first[] = {IN(0), IN(1), IN(2), IN(3), IN(4), IN(5), IN(6)},
                                  second[] = {FROM(0, 0), FROM(0, 3), IN(1), IN(3),
                                              IN(4),      IN(5),      IN(5)},
                                  chosen[] = {FROM(1, 0), FROM(0, 0), FROM(0, 2), FROM(0, 1)};
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_load_options options = {.device = w.device};
    struct rt_program *keywords = load_model("keywords", &options);
    const struct rt_pipeline_step steps[] = {{"a", method_of(keywords), first, 7},
                                             {"b", method_of(keywords), second, 7}};
    struct rt_pipeline_desc desc = {.name = "both", .steps = steps, .step_count = 2};
    struct rt_program *program = make_pipeline(&desc);
    struct rt_method *method = method_of(program);
    /* Input 1 is called ids and positions; 5 is scales.0 and scales.1. */
    const char *const inputs[] = {"input_0",        "input_1", "positions",        "mask",
                                  "features.image", "input_5", "features.scales.1"};
    assert_names(method, inputs, NAMES("logits", "boxes.0", "boxes.1", "kept"));
    assert_string_equal(rt_method_signature(method)->readable_sip,
                        "[r0, r1, r2, r3, r4, r5, r6] -> "
                        "{\"boxes\": [r1, r2], \"kept\": r3, \"logits\": r0}");
    assert_string_equal(rt_method_input(method, 3)->path, "args[3]");
    rt_program_unref(program);
    desc.outputs = chosen;
    desc.output_count = 4;
    program = make_pipeline(&desc);
    assert_names(method_of(program), inputs, NAMES("output_0", "output_1", "boxes.1", "boxes.0"));
    assert_string_equal(rt_method_signature(method_of(program))->readable_sip,
                        "[r0, r1, r2, r3, r4, r5, r6] -> [r0, r1, r2, r3]");
    rt_program_unref(program);
    rt_program_unref(keywords);
    close_world(&w);
}

static void names_may_be_given(void **state)
{
    static const struct rt_source sources[] = {IN(1), IN(0)}, outputs[] = {FROM(0, 0), FROM(0, 0)};
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_pipeline_step step = {"a", method_of(w.add), sources, 2};
    struct rt_pipeline_desc desc = {
        .name = "named",
        .steps = &step,
        .step_count = 1,
        .input_names = NAMES("left", "right.1"),
        .input_name_count = 2,
        .outputs = outputs,
        .output_names = NAMES("sum", "again"),
        .output_count = 2,
    };
    struct rt_program *program = make_pipeline(&desc);
    struct rt_method *method = method_of(program);
    assert_names(method, desc.input_names, desc.output_names);
    assert_string_equal(rt_method_signature(method)->readable_sip,
                        "{\"left\": r0, \"right.1\": r1} -> {\"again\": r1, \"sum\": r0}");
    assert_string_equal(rt_method_input(method, 1)->path, "kwargs[\"right.1\"]");
    rt_program_unref(program);
    desc.output_names = NAMES(NULL, "sum"); /* a result without a name has a position */
    program = make_pipeline(&desc);
    assert_names(method_of(program), desc.input_names, NAMES("output_0", "sum"));
    assert_string_equal(rt_method_signature(method_of(program))->readable_sip,
                        "{\"left\": r0, \"right.1\": r1} -> [r0, r1]");
    rt_program_unref(program);
    close_world(&w);
}

static void given_names_are_checked(void **state)
{
    static const struct rt_source sources[] = {IN(0), IN(1)}, output = FROM(0, 0);
    static const struct rt_source outputs[] = {FROM(0, 0), FROM(0, 0)};
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_pipeline_step step = {"a", method_of(w.add), sources, 2};
    const struct {
        const char *const *inputs, *const *outputs;
        uint32_t input_count, output_count;
        const char *text;
    } cases[] = {
        {NAMES("a", "a b"), NULL, 2, 0, "input 'a b': expected a name of 1 to 128"},
        {NAMES("a", "input_0"), NULL, 2, 0, "and not one like input_0"},
        {NAMES("a", ""), NULL, 2, 0, "input '': expected"},
        {NAMES("a", "a"), NULL, 2, 0, "input 1: repeats the name 'a' of input 0"},
        {NAMES("a", "b", "c"), NULL, 3, 0, "no step takes input 'c'"},
        {NULL, NAMES("output_1"), 0, 1, "output 'output_1': expected a name"},
        {NULL, NAMES("x", "x"), 0, 2, "output 1: repeats the name 'x' of output 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct rt_pipeline_desc desc = {
            .name = "bad",
            .steps = &step,
            .step_count = 1,
            .input_names = cases[i].inputs,
            .input_name_count = cases[i].input_count,
            .outputs = cases[i].output_count == 1 ? &output : outputs,
            .output_names = cases[i].outputs,
            .output_count = cases[i].output_count,
        };
        struct rt_program *program;
        assert_fails(w.err, rt_pipeline_new(&desc, &program, &w.err), ST_INVALID, cases[i].text);
    }
    close_world(&w);
}

/* ---- counts, and how much there may be ------------------------------------------------------- */

static void steps_are_counted(void **state)
{
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_program *program = make_three(&w);
    struct rt_method *method = method_of(program);
    uint64_t sum_ns = 0;
    assert_int_equal(rt_pipeline_step_count(method), 3);
    assert_int_equal(rt_pipeline_step_count(method_of(w.add)), 0);
    for (int call = 0; call < 5; call++) {
        struct rt_invocation *inv = begin(&w, program);
        assert_int_equal(submit_and_wait(inv, false), ST_OK);
        rt_invocation_free(inv);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct rt_step_counts counts = rt_pipeline_step_counts(method, i);
        assert_int_equal(counts.count, 5);
        assert_int_equal(counts.failed_count, 0);
        assert_string_equal(counts.name, NAMES("a", "b", "c")[i]);
        assert_string_equal(counts.model, counts.name);
        sum_ns += counts.ns;
    }
    assert_true(sum_ns > 0);
    rt_program_unref(program);
    close_world(&w);
}

/* A chain of |count| calls of |method|, whose one input and result have the same type. */
static enum status make_chain(struct world *w, struct rt_method *method, uint32_t count,
                              struct rt_program **out)
{
    static struct rt_source sources[RT_PIPELINE_STEPS_MAX];
    struct rt_pipeline_step steps[RT_PIPELINE_STEPS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        sources[i] = i ? (struct rt_source)FROM(i - 1, 0) : (struct rt_source)IN(0);
        steps[i] = (struct rt_pipeline_step){"s", method, &sources[i], 1};
    }
    const struct rt_pipeline_desc desc = {.name = "chain", .steps = steps, .step_count = count};
    return rt_pipeline_new(&desc, out, &w->err);
}

/* Pipelines of the maximal width and depth, and one more of each. */
static void nests_are_bounded(void **state)
{
    struct rt_program *programs[RT_PIPELINE_DEPTH_MAX + 1], *none;
    struct world w;
    (void)state;
    open_world(&w);
    const struct rt_load_options options = {.device = w.device};
    struct rt_program *deep = load_model("deep", &options);
    assert_ok(w.err, make_chain(&w, method_of(deep), 63, &programs[0]));
    assert_int_equal(rt_method_call_count(method_of(deep)), 1);
    assert_int_equal(rt_method_call_count(method_of(programs[0])), 64);
    assert_ok(w.err, make_chain(&w, method_of(programs[0]), 4, &programs[1]));
    assert_int_equal(rt_method_call_count(method_of(programs[1])), 257);
    assert_fails(w.err, make_chain(&w, method_of(programs[0]), 5, &none), ST_INVALID,
                 "expected at most 256 steps, those of the pipelines in it counted, got 320");
    rt_program_unref(programs[1]);
    rt_program_unref(programs[0]);
    for (uint32_t i = 0; i < RT_PIPELINE_DEPTH_MAX; i++) {
        struct rt_method *inner = method_of(i ? programs[i - 1] : deep);
        assert_ok(w.err, make_chain(&w, inner, 1, &programs[i]));
    }
    assert_fails(w.err, make_chain(&w, method_of(programs[RT_PIPELINE_DEPTH_MAX - 1]), 1, &none),
                 ST_INVALID, "inside each other at most 16 deep, got 17");
    for (uint32_t i = 0; i < RT_PIPELINE_DEPTH_MAX; i++) {
        rt_program_unref(programs[i]);
    }
    rt_program_unref(deep);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_a_method),
        cmocka_unit_test(all_steps_are_submitted_before_the_first_completes),
        cmocka_unit_test(a_failing_gate_fails_the_pipeline),
        cmocka_unit_test(a_failing_step_ends_the_whole),
        cmocka_unit_test(memory_is_for_the_whole_cascade_or_for_none),
        cmocka_unit_test(cancelled_calls_leave_nothing),
        cmocka_unit_test(pipelines_nest_and_dims_vary),
        cmocka_unit_test(steps_join_others_outside_their_pipeline),
        cmocka_unit_test(asking_a_pipeline_changes_nothing),
        cmocka_unit_test(only_what_depends_on_data_waits),
        cmocka_unit_test(a_late_step_may_fail),
        cmocka_unit_test(impossible_graphs_are_refused),
        cmocka_unit_test(names_follow_the_steps),
        cmocka_unit_test(names_may_be_given),
        cmocka_unit_test(given_names_are_checked),
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(nests_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
