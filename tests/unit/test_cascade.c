/* SPDX-License-Identifier: MIT */
/*
 * Calls that use each other's results; each call has its own end. The tests read the order of
 * events from a record, and nothing depends on time.
 */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/pipeline/cascade.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/pipeline/pipeline.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ELEMENTS 6 /* elements of the tensors of model "add" */
#define THREADS 4
#define ROUNDS 40
#define SUMMED 8 /* inputs of a sum: more than a submission waits for */
#define STEPS_MAX RT_CASCADE_STEPS_MAX

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *add, *faults, *found, *sizes;
    struct error err;
};

static void open_world(struct world *w)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    const struct rt_load_options options = {.device = w->device};
    w->add = load_model("add", &options);
    w->faults = load_model("faults", &options);
    w->found = load_model("found", &options);
    w->sizes = load_model("sizes", &options);
}

static void close_world(struct world *w)
{
    rt_program_unref(w->add);
    rt_program_unref(w->faults);
    rt_program_unref(w->found);
    rt_program_unref(w->sizes);
    close_two_workers(w->device, w->pool);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const float ones[ELEMENTS] = {1, 1, 1, 1, 1, 1};

static struct rt_invocation *set(struct world *w, struct rt_cascade *cascade, uint32_t step,
                                 struct rt_method *method)
{
    struct rt_invocation *inv;
    must(method && rt_invocation_new(method, w->pool, &inv, &w->err) == ST_OK);
    rt_cascade_set_step(cascade, step, inv);
    return inv;
}

/* Input |index| of its largest shape. */
static void give(struct rt_invocation *inv, uint32_t index, const void *data)
{
    const struct rt_io *io = rt_method_input(rt_invocation_method(inv), index);
    struct error err;
    void *ptr;
    size_t bytes;
    must(shape_bytes(&io->shape, io->dtype, &bytes, NULL) == ST_OK);
    must(rt_invocation_input(inv, index, io->dtype, &io->shape, &ptr, &err) == ST_OK);
    memcpy(ptr, data, bytes);
}

/* Adds the results that its edges bring, and 1 for each input without an edge. */
static void set_add(struct world *w, struct rt_cascade *cascade,
                    const struct rt_cascade_layout *layout, uint32_t step)
{
    struct rt_invocation *inv = set(w, cascade, step, rt_program_default_method(w->add));
    bool is_fed[SUMMED] = {false};
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        is_fed[edge->input] |= edge->to == step;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!is_fed[i]) {
            give(inv, i, ones);
        }
    }
}

static struct rt_invocation *set_divide(struct world *w, struct rt_cascade *cascade, uint32_t step,
                                        const int64_t *a, const int64_t *b)
{
    struct rt_invocation *inv =
        set(w, cascade, step, rt_program_find_method(w->faults, span_str("divide")));
    if (a) {
        give(inv, 0, a);
    }
    give(inv, 1, b);
    return inv;
}

static float first_of(struct rt_cascade *cascade, uint32_t step)
{
    const struct rt_result *result = rt_invocation_result(rt_cascade_step(cascade, step), 0);
    float value;
    memcpy(&value, result->bytes.ptr, sizeof(value));
    return value;
}

/* ---- running --------------------------------------------------------------------------------- */

struct run {
    struct done done;
    atomic_uint ends;
    pthread_mutex_t mutex;
    uint32_t count;
    struct {
        enum rt_cascade_event event;
        uint32_t step;
    } events[4 * STEPS_MAX];
};

#define RUN_INIT                                                                                   \
    {                                                                                              \
        .done = DONE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER                                      \
    }

static void on_event(enum rt_cascade_event event, uint32_t step, void *arg)
{
    struct run *run = arg;
    pthread_mutex_lock(&run->mutex);
    must(run->count < 4 * STEPS_MAX);
    run->events[run->count].event = event;
    run->events[run->count++].step = step;
    pthread_mutex_unlock(&run->mutex);
}

static int position(const struct run *run, enum rt_cascade_event event, uint32_t step)
{
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->events[i].event == event && run->events[i].step == step) {
            return (int)i;
        }
    }
    return -1;
}

static void on_cascade_done(struct rt_cascade *cascade, enum status status, void *arg)
{
    struct run *run = arg;
    (void)cascade;
    atomic_fetch_add(&run->ends, 1);
    on_done(NULL, status, &run->done);
}

static enum status prepare(struct world *w, struct rt_cascade *cascade)
{
    uint32_t step;
    return rt_cascade_prepare(cascade, RT_PREPARE_ALL, &step, &w->err);
}

/* ---- plays ----------------------------------------------------------------------------------- */

#define EDGE(a, b, n)                                                                              \
    {                                                                                              \
        .from = a, .to = b, .input = n                                                             \
    }

/* 0 -> 1 -> 3, 0 -> 2 -> 3: all steps are submitted while the first one cannot start. */
static void all_is_submitted_before_the_first_has_run(void **state)
{
    static const struct rt_cascade_edge edges[] = {EDGE(0, 1, 0), EDGE(0, 2, 1), EDGE(1, 3, 0),
                                                   EDGE(2, 3, 1)};
    static const struct rt_cascade_layout layout = {edges, 4, 4};
    struct world w;
    struct run run = RUN_INIT;
    struct hal_semaphore *gate;
    (void)state;
    open_world(&w);
    assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
    assert_ok(w.err, rt_cascade_verify(&layout, &w.err));
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    for (uint32_t i = 0; i < 4; i++) {
        set_add(&w, cascade, &layout, i);
    }
    struct rt_input_stats before = rt_method_input_stats(rt_program_default_method(w.add));
    assert_ok(w.err, prepare(&w, cascade));
    struct rt_input_stats after = rt_method_input_stats(rt_program_default_method(w.add));
    assert_int_equal(after.in_place - before.in_place, 4); /* each edge, by identity */
    assert_int_equal(after.converted, before.converted);
    rt_cascade_trace(cascade, on_event, &run);
    rt_cascade_submit(cascade, &(struct hal_timepoint){gate, 1}, 1, HAL_CALLER_QUICK,
                      on_cascade_done, &run);
    assert_int_equal(run.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(run.events[i].event == RT_CASCADE_SUBMITTED && run.events[i].step == i);
    }
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&run.done), ST_OK);
    assert_int_equal(atomic_load(&run.ends), 1); /* the waiter is woken once */
    assert_true(first_of(cascade, 0) == 2 && first_of(cascade, 3) == 6);
    rt_cascade_free(cascade);
    hal_semaphore_unref(gate);
    close_world(&w);
}

/* 0 fails while it runs, so 1 and 2 fail. 3 cannot be made, so 4 fails. 5 succeeds. */
static void only_dependent_steps_fail(void **state)
{
    static const struct rt_cascade_edge edges[] = {EDGE(0, 1, 0), EDGE(1, 2, 0), EDGE(3, 4, 0)};
    static const struct rt_cascade_layout layout = {edges, 3, 6};
    static const int64_t good[4] = {4, 3, 2, 1}, bad[4] = {1, 0, 1, 1};
    static const uint32_t causes[6] = {0, 0, 0, 3, 3, 5};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    for (int round = 0; round < 5; round++) {
        struct run run = RUN_INIT;
        struct error missing;
        error_set(&missing, ST_NOT_FOUND, "no such model");
        set_divide(&w, cascade, 0, good, bad);
        set_divide(&w, cascade, 1, NULL, good);
        set_divide(&w, cascade, 2, NULL, good);
        rt_cascade_fail_step(cascade, 3, &missing);
        set_divide(&w, cascade, 4, NULL, good);
        set_divide(&w, cascade, 5, good, good);
        assert_ok(w.err, prepare(&w, cascade));
        rt_cascade_submit(cascade, NULL, 0, round % 3, on_cascade_done, &run);
        assert_int_equal(await_done(&run.done), ST_OK);
        for (uint32_t i = 0; i < 6; i++) {
            enum status expected = i < 3 ? ST_INVALID : i < 5 ? ST_NOT_FOUND : ST_OK;
            assert_int_equal(rt_cascade_status(cascade, i), expected);
            assert_int_equal(rt_cascade_cause(cascade, i), causes[i]);
        }
        assert_non_null(strstr(rt_cascade_error(cascade, 0)->text, "divided by zero"));
        assert_string_equal(rt_cascade_error(cascade, 4)->text, "no such model");
        const int64_t *out =
            (const void *)rt_invocation_result(rt_cascade_step(cascade, 5), 0)->bytes.ptr;
        assert_true(out[0] == 1 && out[3] == 1);
        rt_cascade_reset(cascade);
        assert_int_equal(reserved_count(w.pool), 0);
    }
    rt_cascade_free(cascade);
    close_world(&w);
}

/* The sum of |SUMMED| inputs, as a pipeline: more results than a submission can wait for. */
static struct rt_program *make_sum(struct world *w)
{
    struct rt_source sources[SUMMED - 1][2];
    struct rt_pipeline_step steps[SUMMED - 1];
    for (uint32_t i = 0; i < SUMMED - 1; i++) {
        sources[i][0] = i ? (struct rt_source)FROM(i - 1, 0) : (struct rt_source)IN(0);
        sources[i][1] = (struct rt_source)IN(i + 1);
        steps[i] =
            (struct rt_pipeline_step){"add", rt_program_default_method(w->add), sources[i], 2};
    }
    const struct rt_pipeline_desc desc = {.name = "sum", .steps = steps, .step_count = SUMMED - 1};
    return make_pipeline(&desc);
}

/* Steps 0 to 7 feed step 8, which feeds step 9. */
static struct rt_cascade *begin_wide(struct world *w, struct rt_program *sum,
                                     struct rt_cascade_edge *edges,
                                     struct rt_cascade_layout *layout)
{
    for (uint32_t i = 0; i < SUMMED; i++) {
        edges[i] = (struct rt_cascade_edge)EDGE(i, SUMMED, i);
    }
    edges[SUMMED] = (struct rt_cascade_edge)EDGE(SUMMED, SUMMED + 1, 0);
    *layout = (struct rt_cascade_layout){edges, SUMMED + 1, SUMMED + 2};
    assert_ok(w->err, rt_cascade_verify(layout, &w->err));
    struct rt_cascade *cascade = rt_cascade_new(layout, true);
    for (uint32_t i = 0; i < SUMMED; i++) {
        set_add(w, cascade, layout, i);
    }
    set(w, cascade, SUMMED, rt_program_default_method(sum));
    set_add(w, cascade, layout, SUMMED + 1);
    assert_ok(w->err, prepare(w, cascade));
    return cascade;
}

/* Step 8 is submitted when the last of the others ends, with memory that it held from the start. */
static void a_step_may_take_any_number_of_results(void **state)
{
    struct world w;
    struct run run = RUN_INIT;
    struct rt_cascade_edge edges[SUMMED + 1];
    struct rt_cascade_layout layout;
    struct hal_semaphore *gate;
    (void)state;
    open_world(&w);
    assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
    struct rt_program *sum = make_sum(&w);
    struct rt_cascade *cascade = begin_wide(&w, sum, edges, &layout);
    size_t reserved = reserved_count(w.pool);
    rt_cascade_trace(cascade, on_event, &run);
    rt_cascade_submit(cascade, &(struct hal_timepoint){gate, 1}, 1, HAL_CALLER_QUICK,
                      on_cascade_done, &run);
    assert_int_equal(run.count, SUMMED + 1);
    assert_int_equal(position(&run, RT_CASCADE_SUBMITTED, SUMMED), -1);
    assert_int_equal(position(&run, RT_CASCADE_SUBMITTED, SUMMED + 1), SUMMED);
    assert_int_equal(reserved_count(w.pool), reserved);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(await_done(&run.done), ST_OK);
    for (uint32_t i = 0; i < SUMMED; i++) {
        assert_true(position(&run, RT_CASCADE_COMPLETED, i) <
                    position(&run, RT_CASCADE_SUBMITTED, SUMMED));
    }
    assert_true(first_of(cascade, SUMMED) == 2 * SUMMED);
    assert_true(first_of(cascade, SUMMED + 1) == 2 * SUMMED + 1);
    rt_cascade_free(cascade);
    rt_program_unref(sum);
    hal_semaphore_unref(gate);
    close_world(&w);
}

/* A step fails if it waits for a step that is never submitted. */
static void a_step_fails_that_waits_for_one_never_submitted(void **state)
{
    struct world w;
    struct rt_cascade_edge edges[SUMMED + 1];
    struct rt_cascade_layout layout;
    (void)state;
    open_world(&w);
    struct rt_program *sum = make_sum(&w);
    for (int round = 0; round < 5; round++) {
        struct run run = RUN_INIT;
        struct hal_semaphore *gate;
        assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
        struct rt_cascade *cascade = begin_wide(&w, sum, edges, &layout);
        rt_cascade_submit(cascade, &(struct hal_timepoint){gate, 1}, 1, HAL_CALLER_BUSY,
                          on_cascade_done, &run);
        rt_invocation_cancel(rt_cascade_step(cascade, 3));
        hal_semaphore_signal(gate, 1);
        assert_int_equal(await_done(&run.done), ST_OK);
        for (uint32_t i = 0; i < SUMMED + 2; i++) {
            bool is_lost = i == 3 || i >= SUMMED;
            assert_int_equal(rt_cascade_status(cascade, i), is_lost ? ST_CANCELLED : ST_OK);
            assert_int_equal(rt_cascade_cause(cascade, i), is_lost ? 3 : i);
        }
        rt_cascade_free(cascade);
        hal_semaphore_unref(gate);
        assert_int_equal(reserved_count(w.pool), 0);
    }
    rt_program_unref(sum);
    close_world(&w);
}

/* Model "found" has a result whose size depends on data. Only the consumer of that result waits. */
static void only_what_depends_on_data_waits(void **state)
{
    static const struct rt_cascade_edge edges[] = {{.from = 0, .output = 1, .to = 1, .input = 0},
                                                   {.from = 0, .output = 3, .to = 2, .input = 1}};
    static const struct rt_cascade_layout layout = {edges, 2, 4};
    static const float rows[6] = {1, 2, 3, 4, 5, 6};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    for (int count = 5; count <= 12; count += 7) { /* "sizes" accepts at most 9 */
        const struct shape four = {.rank = 1, .dims = {4}};
        struct run run = RUN_INIT;
        struct hal_semaphore *gate;
        float values[20];
        void *ptr;
        assert_ok(w.err, hal_semaphore_new(0, &gate, &w.err));
        for (int i = 0; i < 20; i++) {
            values[i] = i < count ? 3 : -3;
        }
        struct rt_invocation *find = set(&w, cascade, 0, rt_program_default_method(w.found));
        give(find, 0, values);
        give(find, 1, rows);
        for (uint32_t i = 1; i < 3; i++) {
            struct rt_invocation *inv = set(&w, cascade, i, rt_program_default_method(w.sizes));
            assert_ok(w.err, rt_invocation_input(inv, 2 - i, DT_F32, &four, &ptr, &w.err));
            memcpy(ptr, rows, 4 * sizeof(float));
        }
        set_add(&w, cascade, &layout, 3);
        assert_ok(w.err, prepare(&w, cascade));
        rt_cascade_trace(cascade, on_event, &run);
        rt_cascade_submit(cascade, &(struct hal_timepoint){gate, 1}, 1, HAL_CALLER_QUICK,
                          on_cascade_done, &run);
        assert_int_equal(run.count, 3);
        assert_int_equal(position(&run, RT_CASCADE_SUBMITTED, 1), -1);
        hal_semaphore_signal(gate, 1);
        assert_int_equal(await_done(&run.done), ST_OK);
        assert_int_equal(rt_cascade_status(cascade, 1), count <= 9 ? ST_OK : ST_INVALID);
        if (count > 9) {
            assert_string_equal(rt_cascade_error(cascade, 1)->text,
                                "input 'input_0': dim 0 is 12, expected at most 9");
            assert_int_equal(rt_cascade_cause(cascade, 1), 1);
        } else {
            assert_true(position(&run, RT_CASCADE_SUBMITTED, 1) >
                        position(&run, RT_CASCADE_COMPLETED, 0));
        }
        assert_int_equal(rt_cascade_status(cascade, 2), ST_OK);
        assert_int_equal(rt_cascade_status(cascade, 3), ST_OK);
        rt_cascade_reset(cascade);
        hal_semaphore_unref(gate);
    }
    rt_cascade_free(cascade);
    close_world(&w);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A list gets all of its memory or none. Whether the pool can ever be large enough is known
 * before. */
static void memory_is_for_all_or_for_none(void **state)
{
    static const struct rt_cascade_edge edges[] = {EDGE(0, 1, 0), EDGE(1, 2, 0)};
    static const struct rt_cascade_layout layout = {edges, 2, 4};
    struct world w;
    struct hal_pool_stats stats;
    uint32_t refusals = 0;
    (void)state;
    open_world(&w);
    size_t align = hal_device_props(w.device)->buffer_align, tensor = ELEMENTS * sizeof(float);
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    for (size_t room = 6; room < 12; room++) { /* 6 inputs, 4 results */
        struct hal_buffer *rest;
        hal_pool_stats(w.pool, &stats);
        assert_ok(w.err, hal_pool_reserve(w.pool, stats.size_bytes - room * align, &rest, &w.err));
        for (uint32_t i = 0; i < 4; i++) {
            set_add(&w, cascade, &layout, i);
        }
        enum status status = prepare(&w, cascade);
        assert_int_equal(status, room < 10 ? ST_EXHAUSTED : ST_OK);
        assert_int_equal(rt_cascade_demand(cascade), 10 * tensor);
        refusals += status != ST_OK;
        rt_cascade_reset(cascade);
        assert_int_equal(reserved_count(w.pool), 1);
        hal_buffer_unref(rest);
    }
    assert_int_equal(refusals, 4);
    rt_cascade_free(cascade);
    close_world(&w);
}

/* The shape that a request expects of a result is compared with the shape that it will have. */
static void shapes_may_be_expected(void **state)
{
    static const struct shape right = {.rank = 2, .dims = {2, 3}}, wrong = {.rank = 1, .dims = {6}};
    const struct rt_cascade_edge edges[] = {{.to = 1, .place = "inputs[0].$from", .shape = &right},
                                            {.to = 2, .place = "inputs[0].$from", .shape = &wrong}};
    const struct rt_cascade_layout layout = {edges, 2, 3};
    struct world w;
    (void)state;
    open_world(&w);
    struct rt_cascade *cascade = rt_cascade_new(&layout, true);
    for (uint32_t i = 0; i < 3; i++) {
        set_add(&w, cascade, &layout, i);
    }
    assert_ok(w.err, prepare(&w, cascade));
    assert_int_equal(rt_cascade_status(cascade, 1), ST_OK);
    assert_int_equal(rt_cascade_status(cascade, 2), ST_INVALID);
    assert_string_equal(rt_cascade_error(cascade, 2)->text,
                        "inputs[0].$from: expected shape [6], got [2,3]");
    rt_cascade_free(cascade);
    close_world(&w);
}

/* ---- anything -------------------------------------------------------------------------------- */

struct player {
    struct world *w;
    struct rt_program *sum;
    unsigned seed;
};

static unsigned draw(struct player *player, unsigned below)
{
    player->seed = player->seed * 1103515245 + 12345;
    return (player->seed >> 16) % below;
}

struct game {
    struct rt_cascade_edge edges[SUMMED * STEPS_MAX];
    struct rt_cascade_layout layout;
    bool is_sum[STEPS_MAX];
};

/* Any acyclic shape. */
static void make_game(struct player *player, struct game *game)
{
    uint32_t count = 1 + draw(player, 20), edge_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        game->is_sum[i] = i > 0 && draw(player, 4) == 0;
        for (uint32_t k = 0; k < (game->is_sum[i] ? SUMMED : 2); k++) {
            if (i > 0 && (game->is_sum[i] || draw(player, 2))) {
                game->edges[edge_count++] = (struct rt_cascade_edge)EDGE(draw(player, i), i, k);
            }
        }
    }
    game->layout = (struct rt_cascade_layout){game->edges, edge_count, count};
    must(rt_cascade_verify(&game->layout, NULL) == ST_OK);
}

/* Every successful step has the value computed from its producers' values. */
static void check_game(const struct game *game, struct rt_cascade *cascade)
{
    for (uint32_t i = 0; i < game->layout.step_count; i++) {
        float inputs[SUMMED] = {1, 1}, expected = 0;
        bool has_failed_producer = false;
        for (uint32_t k = 0; k < game->layout.edge_count; k++) {
            const struct rt_cascade_edge *edge = &game->edges[k];
            if (edge->to == i && rt_cascade_status(cascade, edge->from) != ST_OK) {
                has_failed_producer = true;
            } else if (edge->to == i) {
                inputs[edge->input] = first_of(cascade, edge->from);
            }
        }
        for (uint32_t k = 0; k < SUMMED; k++) {
            expected += inputs[k];
        }
        must(!has_failed_producer || rt_cascade_status(cascade, i) != ST_OK);
        must((rt_cascade_cause(cascade, i) != i) == has_failed_producer);
        must(rt_cascade_status(cascade, i) != ST_OK || first_of(cascade, i) == expected);
    }
}

static void play(struct player *player, struct game *game)
{
    struct run run = RUN_INIT;
    struct error err;
    uint32_t at;
    make_game(player, game);
    struct rt_cascade *cascade = rt_cascade_new(&game->layout, true);
    must(cascade);
    for (uint32_t i = 0; i < game->layout.step_count; i++) {
        if (draw(player, 40) == 0) {
            error_set(&err, ST_NOT_FOUND, "none");
            rt_cascade_fail_step(cascade, i, &err);
        } else if (game->is_sum[i]) {
            set(player->w, cascade, i, rt_program_default_method(player->sum));
        } else {
            set_add(player->w, cascade, &game->layout, i);
        }
    }
    if (draw(player, 10) > 0 && rt_cascade_prepare(cascade, RT_PREPARE_ALL, &at, &err) == ST_OK) {
        unsigned choice = draw(player, 4);
        rt_cascade_submit(cascade, NULL, 0, choice % 3, on_cascade_done, &run);
        if (choice == 1) {
            rt_cascade_cancel(cascade);
        } else if (choice == 2) {
            uint32_t victim = draw(player, game->layout.step_count);
            if (rt_cascade_step(cascade, victim)) {
                rt_invocation_cancel(rt_cascade_step(cascade, victim));
            }
        }
        must(await_done(&run.done) == ST_OK);
        must(atomic_load(&run.ends) == 1);
        check_game(game, cascade);
    }
    rt_cascade_free(cascade);
}

static void *play_all(void *arg)
{
    struct player *player = arg;
    struct game *game = calloc(1, sizeof(*game));
    must(game);
    for (int i = 0; i < ROUNDS; i++) {
        play(player, game);
    }
    free(game);
    return NULL;
}

static void any_graph_with_any_failures_ends_once(void **state)
{
    struct world w;
    pthread_t threads[THREADS];
    struct player players[THREADS];
    (void)state;
    open_world(&w);
    struct rt_program *sum = make_sum(&w);
    for (unsigned i = 0; i < THREADS; i++) {
        players[i] = (struct player){&w, sum, 7 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, play_all, &players[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    rt_program_unref(sum);
    close_world(&w);
}

/* ---- whose thread ---------------------------------------------------------------------------- */

/* Called at the end of a call on a worker's thread. Stays there until it is released. */
struct hold {
    pthread_t submitter;
    struct done entered, let_go;
    atomic_bool is_held;
};

static void hold_worker(struct rt_invocation *inv, enum status status, void *arg)
{
    struct hold *hold = arg;
    bool is_held = !pthread_equal(pthread_self(), hold->submitter);
    atomic_store(&hold->is_held, is_held);
    on_done(inv, status, &hold->entered);
    if (is_held) {
        await_done(&hold->let_go);
    }
}

/* A call may end before its submitter waits for it. Then the submitter sees the end and tries
 * again. */
static void hold_the_worker(struct rt_method *add, struct hal_pool *pool, struct hold *hold)
{
    static const struct shape shape = {.rank = 2, .dims = {2, 3}};
    const struct input inputs[] = {{DT_F32, shape, ones}, {DT_F32, shape, ones}};
    struct error err;
    while (!atomic_load(&hold->is_held)) {
        struct rt_invocation *call = begin_call(add, pool, NULL, inputs, 2);
        hold->entered = (struct done)DONE_INIT;
        assert_ok(err, rt_invocation_prepare(call, RT_PREPARE_ALL, &err));
        rt_invocation_submit(call, HAL_CALLER_BUSY, hold_worker, hold);
        await_done(&hold->entered);
        rt_invocation_free(call);
    }
}

/* Submits steps of |method| without edges from a caller with little time, while the worker is held.
 * Returns whether all of them have run when submit returns. */
static bool runs_itself(struct world *w, struct hold *hold, struct rt_method *method,
                        uint32_t count)
{
    const struct rt_cascade_layout layout = {NULL, 0, count};
    struct rt_cascade *cascade = rt_cascade_new(&layout, false);
    struct run run = RUN_INIT;
    *hold = (struct hold){pthread_self(), DONE_INIT, DONE_INIT, false};
    hold_the_worker(rt_program_default_method(w->add), w->pool, hold);
    for (uint32_t i = 0; i < count; i++) {
        struct rt_invocation *inv = set(w, cascade, i, method);
        give(inv, 0, ones);
        give(inv, 1, ones);
    }
    assert_ok(w->err, prepare(w, cascade));
    rt_cascade_submit(cascade, NULL, 0, HAL_CALLER_QUICK, on_cascade_done, &run);
    bool is_over = atomic_load(&run.ends) == 1;
    on_done(NULL, ST_OK, &hold->let_go);
    assert_int_equal(await_done(&run.done), ST_OK);
    rt_cascade_free(cascade);
    return is_over;
}

/* A caller with little time runs a few calls itself, and not more if the calls are nested. */
static void only_a_few_calls_take_the_callers_time(void **state)
{
    static const struct hal_device_options one_worker = {.workers = 1};
    static struct hold holds[4]; /* the worker may visit one after its release */
    const struct rt_source sources[] = {IN(0), IN(1)};
    struct world w = {0};
    (void)state;
    assert_ok(w.err, hal_device_open("cpu", &one_worker, &w.device, &w.err));
    assert_ok(w.err, hal_pool_new(w.device, 1 << 20, &w.pool, &w.err));
    const struct rt_load_options options = {.device = w.device};
    w.add = load_model("add", &options);
    struct rt_method *add = rt_program_default_method(w.add);
    const struct rt_pipeline_step step = {"add", add, sources, 2};
    const struct rt_pipeline_step steps[] = {step, step, step};
    const struct rt_pipeline_desc desc = {.name = "three", .steps = steps, .step_count = 3};
    struct rt_program *three = make_pipeline(&desc);
    assert_true(runs_itself(&w, &holds[0], add, 4));
    assert_false(runs_itself(&w, &holds[1], add, 5));
    assert_true(runs_itself(&w, &holds[2], rt_program_default_method(three), 1));
    assert_false(runs_itself(&w, &holds[3], rt_program_default_method(three), 2));
    rt_program_unref(three);
    rt_program_unref(w.add);
    close_two_workers(w.device, w.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_submitted_before_the_first_has_run),
        cmocka_unit_test(only_dependent_steps_fail),
        cmocka_unit_test(a_step_may_take_any_number_of_results),
        cmocka_unit_test(a_step_fails_that_waits_for_one_never_submitted),
        cmocka_unit_test(only_what_depends_on_data_waits),
        cmocka_unit_test(memory_is_for_all_or_for_none),
        cmocka_unit_test(shapes_may_be_expected),
        cmocka_unit_test(any_graph_with_any_failures_ends_once),
        cmocka_unit_test(only_a_few_calls_take_the_callers_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
