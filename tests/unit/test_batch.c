/* SPDX-License-Identifier: MIT */
/*
 * Batch rules on small graphs: the printed result or the reason of a refusal. Then models exported
 * for one row: each call of a batch gets the same bytes as alone.
 */
#include "config.h"

#include "runtime/call/batch.h"
#include "runtime/load/load.h"

#include <string.h>

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/kernel.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/op.h"
#include "runtime/passes/batch.h"
#include "runtime/program/program.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

struct fixture {
    struct rt_graph graph;
    struct error err;
    uint32_t input, output;
};

static float table[64];

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    rt_graph_init(&f.graph, "m");
    f.graph.inputs = &f.input;
    f.graph.outputs = &f.output;
    f.graph.input_count = f.graph.output_count = 1;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    rt_graph_fini(&f->graph);
    return 0;
}

static uint32_t list(struct fixture *f, uint32_t count, const int64_t *items)
{
    struct rt_dim dims[4];
    for (uint32_t i = 0; i < count; i++) {
        dims[i] = rt_dim_of(items[i]);
    }
    return rt_graph_ints(&f->graph, dims, count);
}

#define LIST(...)                                                                                  \
    list(f, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})
#define INT(i) rt_graph_int(&f->graph, rt_dim_of(i))
#define BOOL(b) rt_graph_bool(&f->graph, b)
#define NONE rt_graph_none(&f->graph)
#define INPUT(...) input(f, sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})
#define APPLY(op, ...)                                                                             \
    apply(f, op, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (const uint32_t[]){__VA_ARGS__})

static uint32_t input(struct fixture *f, uint8_t rank, const int64_t *sizes)
{
    struct rt_dim dims[4];
    for (uint8_t i = 0; i < rank; i++) {
        dims[i] = rt_dim_of(sizes[i]);
    }
    return f->input = rt_graph_tensor(&f->graph, DT_F32, rank, dims);
}

static uint32_t apply(struct fixture *f, const char *op, uint32_t count, const uint32_t *args)
{
    assert_ok(f->err,
              rt_op_apply(&f->graph, rt_op_find(op), args, count, DT_F32, &f->output, &f->err));
    return f->output;
}

static const char *const input_labels[] = {"input 'x'"}, *const output_labels[] = {"result 'y'"};
static const struct rt_graph_labels labels = {input_labels, output_labels};

/* The nodes of the graph for up to 8 rows, or the reason why there is none. */
static void expect(struct fixture *f, const char *text)
{
    struct rt_graph batched;
    struct buf out;
    rt_graph_init(&batched, "m");
    buf_init(&out, 4096);
    enum status status = rt_graph_batch(&batched, &f->graph, 8, &labels, &f->err);
    if (status == ST_OK) {
        rt_graph_print(&batched, NULL, &out);
    } else {
        assert_int_equal(status, ST_UNSUPPORTED);
        buf_add_str(&out, f->err.text);
    }
    struct span printed = buf_span(&out);
    if (!span_equal(printed, span_str(text))) {
        fail_msg("expected:\n%s\ngot:\n%.*s", text, SPAN_FMT(printed));
    }
    buf_fini(&out);
    rt_graph_fini(&batched);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void rows_through_views_and_reductions(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4, 6);
    uint32_t flat = APPLY("view", x, LIST(4, 6));
    uint32_t sum = APPLY("sum", flat, LIST(1), BOOL(true), NONE);
    uint32_t y = APPLY("view", sum, LIST(1, 4, 1));
    y = APPLY("permute", APPLY("add", x, y, INT(1)), LIST(0, 2, 1));
    APPLY("softmax", y, INT(-1), BOOL(false));
    expect(f, "method m(%1:f32[s1,4,6])\n"
              "  %3:f32[(4*s1),6] = view(%1, [(4*s1),6])\n"
              "  %7:f32[(4*s1),1] = sum(%3, [1], true, none)\n"
              "  %9:f32[s1,4,1] = view(%7, [s1,4,1])\n"
              "  %11:f32[s1,4,6] = add(%1, %9, 1)\n"
              "  %13:f32[s1,6,4] = permute(%11, [0,2,1])\n"
              "  %16:f32[s1,6,4] = softmax(%13, -1, false)\n"
              "  return %16\n");
}

/* XNNPACK lists pads for all dims. */
static void pads_of_zero_along_dim_0(void **state)
{
    struct fixture *f = *state;
    APPLY("constant_pad", INPUT(1, 4), LIST(1, 0, 0, 0), rt_graph_float(&f->graph, 0));
    expect(f, "method m(%1:f32[s1,4])\n"
              "  %4:f32[s1,5] = constant_pad(%1, [1,0,0,0], 0)\n"
              "  return %4\n");
    APPLY("constant_pad", f->input, LIST(1, 0, 0, 1), rt_graph_float(&f->graph, 0));
    expect(f, "constant_pad: it pads dim 0");
}

static void refused_along_dim_0(void **state)
{
    struct fixture *f = *state;
    uint32_t x = INPUT(1, 4);
    APPLY("softmax", x, INT(-2), BOOL(false));
    expect(f, "softmax: it works along dim 0");
    APPLY("sum", x, LIST(1, 0), BOOL(true), NONE);
    expect(f, "softmax: it works along dim 0");
}

static void refused_order(void **state)
{
    struct fixture *f = *state;
    APPLY("permute", INPUT(1, 4), LIST(1, 0));
    expect(f, "dim 0 of result 'y' is not the number of rows");
}

static void refused_result(void **state)
{
    struct fixture *f = *state;
    APPLY("view", INPUT(1, 4), LIST(4));
    expect(f, "dim 0 of result 'y' is not the number of rows");
}

static void refused_input(void **state)
{
    struct fixture *f = *state;
    APPLY("relu", INPUT(2, 4));
    expect(f, "dim 0 of input 'x' is not 1");
}

static void refused_operator(void **state)
{
    struct fixture *f = *state;
    APPLY("as_strided", INPUT(1, 4), LIST(1, 4), LIST(4, 1), NONE);
    expect(f, "the operator as_strided has no rule for batches");
}

/* A row begins where the one before it ends, whatever the strides are in it. */
static void strides_of_a_row(void **state)
{
    struct fixture *f = *state;
    uint32_t turned = APPLY("moved", INPUT(1, 6, 4), LIST(4, 2), LIST(1, 8), INT(4));
    APPLY("view", turned, LIST(1, 8));
    expect(f, "method m(%1:f32[s1,6,4])\n"
              "  %10:f32[s1,4,2] = moved(%1, [s1,4,2], [24,1,8], 4)\n"
              "  %5:f32[(4*s1),2] = view(%10, [(4*s1),2])\n"
              "  %7:f32[s1,8] = view(%5, [s1,8])\n"
              "  return %7\n");
}

static uint32_t constant(struct fixture *f, uint8_t rank, const int64_t *sizes)
{
    struct shape shape = {.rank = rank};
    memcpy(shape.dims, sizes, rank * sizeof(*sizes));
    size_t bytes = (size_t)shape_numel(&shape) * 4;
    assert_true(bytes <= sizeof(table));
    return rt_graph_constant(&f->graph, DT_F32, &shape, span_of(table, bytes));
}

#define CONSTANT(...)                                                                              \
    constant(f, sizeof((int64_t[]){__VA_ARGS__}) / 8, (const int64_t[]){__VA_ARGS__})

/* Constants of shape [4] beside [1, 4] flattened to [4]: each row meets all of them. */
static void constant_for_each_row(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("view", INPUT(1, 4), LIST(4));
    APPLY("view", APPLY("add", x, CONSTANT(4), INT(1)), LIST(1, 4));
    expect(f, "method m(%1:f32[s1,4])\n"
              "  %3:f32[(4*s1)] = view(%1, [(4*s1)])\n"
              "  %11:f32[(4*s1)] = repeat(%4:f32[4], [s1])\n"
              "  %6:f32[(4*s1)] = add(%3, %11, 1)\n"
              "  %8:f32[s1,4] = view(%6, [s1,4])\n"
              "  return %8\n");
}

static void class_token(void **state)
{
    struct fixture *f = *state;
    uint32_t items[] = {CONSTANT(1, 1, 4), INPUT(1, 2, 4)};
    uint32_t y = APPLY("cat", rt_graph_tensors(&f->graph, items, 2), INT(1));
    APPLY("select", APPLY("add", y, CONSTANT(1, 3, 4), INT(1)), INT(1), INT(0));
    expect(f, "method m(%2:f32[s1,2,4])\n"
              "  %14:f32[s1,1,4] = expand(%1:f32[1,1,4], [s1,1,4], false)\n"
              "  %5:f32[s1,3,4] = cat([%14,%2], 1)\n"
              "  %8:f32[s1,3,4] = add(%5, %6:f32[1,3,4], 1)\n"
              "  %11:f32[s1,4] = select(%8, 1, 0)\n"
              "  return %11\n");
}

/* Queries, keys and values from one product: dim 0 becomes their number, and is cut. */
static void rows_behind_other_dims(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("permute", INPUT(1, 3, 4), LIST(1, 0, 2));
    uint32_t a = APPLY("select", x, INT(0), INT(2)),
             b = APPLY("slice", x, INT(0), INT(0), INT(1), INT(1));
    APPLY("add", a, APPLY("view", b, LIST(1, 4)), INT(1));
    expect(f, "method m(%1:f32[s1,3,4])\n"
              "  %3:f32[(3*s1),1,4] = view(%1, [(3*s1),1,4])\n"
              "  %18:f32[s1,3,1,4] = view(%3, [s1,-1,1,4])\n"
              "  %20:f32[s1,1,4] = select(%18, 1, 2)\n"
              "  %6:f32[s1,4] = view(%20, [s1,4])\n"
              "  %23:f32[s1,3,1,4] = view(%3, [s1,-1,1,4])\n"
              "  %25:f32[s1,1,1,4] = slice(%23, 1, 0, 1, 1)\n"
              "  %11:f32[s1,1,4] = view(%25, [s1,1,4])\n"
              "  %13:f32[s1,4] = view(%11, [s1,4])\n"
              "  %15:f32[s1,4] = add(%6, %13, 1)\n"
              "  return %15\n");
}

static void rows_moved(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("transpose", APPLY("view", INPUT(1, 6, 4), LIST(6, 4)), INT(0), INT(1));
    APPLY("view", x, LIST(1, 4, 6));
    expect(f, "method m(%1:f32[s1,6,4])\n"
              "  %3:f32[(6*s1),4] = view(%1, [(6*s1),4])\n"
              "  %11:f32[s1,6,4] = view(%3, [s1,6,4])\n"
              "  %13:f32[s1,4,6] = permute(%11, [0,2,1])\n"
              "  %6:f32[(4*s1),6] = view(%13, [(4*s1),6])\n"
              "  %8:f32[s1,4,6] = view(%6, [s1,4,6])\n"
              "  return %8\n");
}

static void one_row_without_its_dim(void **state)
{
    struct fixture *f = *state;
    uint32_t x = APPLY("select", INPUT(1, 3, 4), INT(0), INT(0));
    APPLY("unsqueeze", APPLY("relu", x), INT(0));
    expect(f, "method m(%1:f32[s1,3,4])\n"
              "  %4:f32[(3*s1),4] = view(%1, [(3*s1),4])\n"
              "  %5:f32[(3*s1),4] = relu(%4)\n"
              "  %7:f32[s1,3,4] = view(%5, [s1,3,4])\n"
              "  return %7\n");
}

static void refused_repetitions(void **state)
{
    struct fixture *f = *state;
    APPLY("repeat", INPUT(1, 4), LIST(2, 1));
    expect(f, "repeat: it repeats dim 0");
}

static void refused_roll(void **state)
{
    struct fixture *f = *state;
    APPLY("roll", INPUT(1, 4), LIST(1), LIST(0));
    expect(f, "roll: it works along dim 0");
}

/* ---- models ---------------------------------------------------------------------------------- */

#define CALLS 5
#define POOL_BYTES ((size_t)64 << 20)
#define BYTES_MAX 65536
#define SECOND_NS 1000000000u

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    int64_t rows;
    struct error err;
};

static void open_world(struct world *w, const char *model, uint32_t workers)
{
    const struct hal_device_options device = {.workers = workers};
    int64_t form;
    *w = (struct world){0};
    assert_ok(w->err, hal_device_open("cpu", &device, &w->device, &w->err));
    assert_ok(w->err, hal_pool_new(w->device, POOL_BYTES, &w->pool, &w->err));
    const struct rt_load_options options = {.device = w->device};
    w->program = load_model(model, &options);
    w->method = rt_program_default_method(w->program);
    w->rows = 1;
    if (rt_batch_open(w->method, &form, &w->err) == ST_OK) {
        const struct rt_pace pace = {.budget_ns = 600ull * SECOND_NS};
        enum status status = rt_batch_prove(w->method, w->pool, &pace, form < CALLS ? form : CALLS,
                                            &w->rows, &w->err);
        assert_int_not_equal(status, ST_TIMEOUT);
    }
}

static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
}

/* Prepares the call as a batch needs it. */
static struct rt_invocation *planned_call(struct world *w, uint32_t number)
{
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        const struct rt_io *io = rt_method_input(w->method, i);
        struct shape shape = io->shape;
        void *at;
        shape.dims[0] = 1;
        assert_ok(w->err, rt_invocation_input(inv, i, io->dtype, &shape, &at, &w->err));
        for (int64_t k = 0; k < shape_numel(&shape); k++) {
            uint32_t value = (uint32_t)(k * 37 + number * 101) % 251;
            if (io->dtype == DT_F32) {
                ((float *)at)[k] = (float)value / 125 - 1;
            } else {
                assert_int_equal(io->dtype, DT_F16);
                ((uint16_t *)at)[k] = (uint16_t)(0x3800 + value);
            }
        }
    }
    assert_ok(w->err, rt_invocation_plan(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

static struct rt_invocation *call(struct world *w, uint32_t number)
{
    struct rt_invocation *inv = planned_call(w, number);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    return inv;
}

/* The bytes of all results in order. */
static size_t take(struct rt_invocation *inv, uint8_t *bytes)
{
    size_t length = 0;
    for (uint32_t i = 0; i < rt_method_result_count(rt_invocation_method(inv)); i++) {
        struct span result = rt_invocation_result(inv, i)->bytes;
        assert_true(result.len <= BYTES_MAX - length);
        memcpy(bytes + length, result.ptr, result.len);
        length += result.len;
    }
    rt_invocation_free(inv);
    return length;
}

static void run_together(struct world *w, struct rt_invocation *calls[CALLS])
{
    struct done done[CALLS];
    void *args[CALLS];
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(rt_batch_rows(calls[i]), 1);
        assert_true(rt_batch_fits(calls[0], calls[i]));
        done[i] = (struct done)DONE_INIT;
        args[i] = &done[i];
    }
    assert_ok(w->err, rt_batch_submit(calls, args, CALLS, on_done, &w->err));
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(await_done(&done[i]), ST_OK);
    }
}

/* Alone and in a batch, with one worker and with several: the bytes are the same. */
static void check_model(const char *model)
{
    static uint8_t wanted[CALLS][BYTES_MAX], got[BYTES_MAX];
    static const uint32_t workers[] = {1, 2, 4};
    struct world w;
    for (size_t n = 0; n < sizeof(workers) / sizeof(workers[0]); n++) {
        struct rt_invocation *calls[CALLS];
        size_t length = 0;
        open_world(&w, model, workers[n]);
        if (w.rows != CALLS) {
            fail_msg("%s: %lld rows: %s", model, (long long)w.rows, w.err.text);
        }
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = call(&w, i);
            assert_int_equal(submit_and_wait(calls[i], false), ST_OK);
            length = take(calls[i], n == 0 ? wanted[i] : got);
            assert_memory_equal(n == 0 ? wanted[i] : got, wanted[i], length);
        }
        assert_memory_not_equal(wanted[0], wanted[1], length);
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = i % 2 ? call(&w, i) : planned_call(&w, i);
        }
        run_together(&w, calls);
        for (uint32_t i = 0; i < CALLS; i++) {
            assert_int_equal(take(calls[i], got), length);
            assert_memory_equal(got, wanted[i], length);
        }
        close_world(&w);
    }
}

static void models_for_one_row(void **state)
{
    (void)state;
    check_model("mobile");
    check_model("queries");
    check_model("unet");
    check_model("xnn_half");
}

static void models_for_any_number_of_rows(void **state)
{
    (void)state;
    check_model("deep");
    check_model("digits");
    check_model("mlp");
}

static void models_that_run_alone(void **state)
{
    static const struct {
        const char *model, *reason;
    } all[] = {
        {"branches", "it has control flow"},
        {"running", "it has state, and no weights that rows would share"},
        {"scalars", "result 'output_1' is no tensor"},
        {"linear", "dim 0 of input 'input_1' is not the number of rows"},
        {"keywords", "dim 0 of input 'features.scales.0' is not the number of rows"},
        {"odd_keys", "dim 0 of input 'plain' is not 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct world w;
        open_world(&w, all[i].model, 1);
        assert_int_equal(w.rows, 1);
        assert_string_equal(w.err.text, all[i].reason);
        close_world(&w);
    }
}

/* ---- trials ---------------------------------------------------------------------------------- */

#define ROWS_TRIED 20

/* A device that other calls want: so many runs of a try may begin. */
struct busy {
    uint32_t left;
};

static bool may_run(void *arg)
{
    struct busy *busy = arg;
    bool may = busy->left > 0;
    busy->left -= may;
    return may;
}

/* A trial on a busy device takes many tries, and finds the rows that it finds on an idle one. */
static void a_trial_goes_on(void **state)
{
    (void)state;
    struct world w;
    struct busy busy;
    const struct rt_pace pace = {.budget_ns = 600ull * SECOND_NS, .may_run = may_run, .arg = &busy};
    int64_t rows = 1, worth = -1;
    uint32_t tries = 0;
    enum status status = ST_TIMEOUT;
    open_world(&w, "digits", 1);
    while (status == ST_TIMEOUT) {
        int64_t before = rows;
        busy.left = tries++ < 3 ? tries - 1 : (uint32_t)before + 3;
        status = rt_batch_prove(w.method, w.pool, &pace, ROWS_TRIED, &rows, &w.err);
        assert_int_equal(rows, tries <= 3 ? 1 : before + 1); /* two runs of the first three tries */
        assert_true(status == ST_OK || strcmp(w.err.text, "the time for the trial was over") == 0);
    }
    assert_ok(w.err, status);
    assert_int_equal(rows, ROWS_TRIED);
    busy.left = 5;
    assert_int_equal(rt_batch_measure(w.method, w.pool, &pace, rows, &worth, &w.err), ST_TIMEOUT);
    assert_int_equal(worth, -1);
    busy.left = UINT32_MAX;
    assert_ok(w.err, rt_batch_measure(w.method, w.pool, &pace, rows, &worth, &w.err));
    assert_between(worth, 1, ROWS_TRIED);
    close_world(&w);
}

/* The time of a try ends it after one number of rows; the work of a trial bounds the rows, to the
 * same number each time. */
static void time_and_work(void **state)
{
    (void)state;
    struct world w;
    const struct rt_pace hasty = {.budget_ns = 0};
    open_world(&w, "digits", 1);
    int64_t rows = 1, costly = 1, again = 1;
    for (int64_t i = 2; i < 5; i++) {
        assert_int_equal(rt_batch_prove(w.method, w.pool, &hasty, 5, &rows, &w.err), ST_TIMEOUT);
        assert_int_equal(rows, i);
    }
    assert_ok(w.err, rt_batch_prove(w.method, w.pool, &hasty, 5, &rows, &w.err));
    assert_int_equal(rows, 5);
    struct rt_pace few = {.budget_ns = 600ull * SECOND_NS, .work_ns = 1};
    assert_int_equal(rt_batch_prove(w.method, w.pool, &few, 32, &costly, &w.err), ST_UNSUPPORTED);
    assert_int_equal(costly, 2);
    assert_non_null(strstr(w.err.text, "to try more rows takes more than"));
    few.work_ns = 1000000;
    enum status status = rt_batch_prove(w.method, w.pool, &few, 64, &again, &w.err);
    costly = 1;
    assert_int_equal(rt_batch_prove(w.method, w.pool, &few, 64, &costly, &w.err), status);
    assert_int_equal(costly, again);
    close_world(&w);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Holds the only worker in a kernel, so that later submissions do not begin. */
static struct done begun, opened;

static void hold(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    on_done(NULL, ST_OK, &begun);
    await_done(&opened);
}

static void shut_gate(struct world *w)
{
    static const struct hal_kernel kernel = {.name = "hold", .cpu = hold};
    const struct hal_dispatch dispatch = {.kernel = &kernel, .grid = {1, 1, 1}};
    struct hal_submission submission = {.slot_count = 0};
    begun = opened = (struct done)DONE_INIT;
    assert_ok(w->err, hal_command_new(w->device, 0, &submission.command, &w->err));
    assert_ok(w->err, hal_command_dispatch(submission.command, &dispatch, &w->err));
    assert_ok(w->err, hal_command_end(submission.command, &w->err));
    assert_ok(w->err, hal_queue_submit(w->device, &submission, &w->err));
    hal_command_unref(submission.command);
    assert_int_equal(await_done(&begun), ST_OK);
}

static void open_gate(void)
{
    on_done(NULL, ST_OK, &opened);
}

struct batch_of {
    struct rt_invocation *calls[CALLS];
    struct done done[CALLS];
    void *args[CALLS];
};

static void make_batch(struct batch_of *batch, struct world *w)
{
    for (uint32_t i = 0; i < CALLS; i++) {
        batch->calls[i] = planned_call(w, i);
        batch->done[i] = (struct done)DONE_INIT;
        batch->args[i] = &batch->done[i];
    }
}

static void expect_alone(struct world *w, struct rt_invocation *got, uint32_t number)
{
    static uint8_t wanted[BYTES_MAX], bytes[BYTES_MAX];
    size_t length = take(got, bytes);
    struct rt_invocation *alone = call(w, number);
    assert_int_equal(submit_and_wait(alone, false), ST_OK);
    assert_int_equal(take(alone, wanted), length);
    assert_memory_equal(bytes, wanted, length);
}

/* Calls that leave belong to their callers again at once; the other calls get their usual
 * results. */
static void some_leave(void **state)
{
    (void)state;
    struct world w;
    struct batch_of b;
    open_world(&w, "digits", 1);
    shut_gate(&w);
    make_batch(&b, &w);
    assert_false(rt_batch_leave(b.calls[2])); /* before it is submitted */
    assert_ok(w.err, rt_batch_submit(b.calls, b.args, CALLS, on_done, &w.err));
    assert_int_equal(await_done(&b.done[2]), ST_CANCELLED);
    rt_invocation_free(b.calls[2]);
    assert_true(rt_batch_leave(b.calls[0]));
    rt_invocation_free(b.calls[0]);
    assert_true(rt_batch_leave(b.calls[4]));
    rt_invocation_free(b.calls[4]);
    assert_false(b.done[1].is_done || b.done[3].is_done);
    open_gate();
    assert_int_equal(await_done(&b.done[1]), ST_OK);
    assert_int_equal(await_done(&b.done[3]), ST_OK);
    assert_false(b.done[0].is_done || b.done[4].is_done);
    expect_alone(&w, b.calls[1], 1);
    expect_alone(&w, b.calls[3], 3);
    close_world(&w);
}

/* When the last call leaves, the batch is cancelled, also if all calls leave before it runs. */
static void all_leave(void **state)
{
    (void)state;
    struct world w;
    struct batch_of b;
    open_world(&w, "digits", 1);
    for (int early = 0; early < 2; early++) {
        shut_gate(&w);
        make_batch(&b, &w);
        for (uint32_t i = 0; i < CALLS && early; i++) {
            assert_false(rt_batch_leave(b.calls[i]));
        }
        assert_ok(w.err, rt_batch_submit(b.calls, b.args, CALLS, on_done, &w.err));
        for (uint32_t i = 0; i < CALLS && !early; i++) {
            assert_int_equal(rt_batch_leave(b.calls[i]), i + 1 < CALLS);
        }
        assert_false(b.done[CALLS - 1].is_done);
        open_gate();
        for (uint32_t i = 0; i < CALLS; i++) {
            if (early || i + 1 == CALLS) {
                assert_int_equal(await_done(&b.done[i]), ST_CANCELLED);
            }
            rt_invocation_free(b.calls[i]);
        }
    }
    close_world(&w);
}

/* A batch is used again while the calls of its last use are notified one by one. A call that is not
 * notified yet must not leave the batch, which belongs to other calls now. */
static struct {
    struct batch_of first, second;
    enum status submitted;
    bool has_left;
} reuse;

static void on_second_done(struct rt_invocation *inv, enum status status, void *arg)
{
    if (status == ST_CANCELLED) { /* the batch is together */
        reuse.has_left = rt_batch_leave(reuse.first.calls[CALLS - 1]);
    }
    on_done(inv, status, arg);
}

static void on_first_done(struct rt_invocation *inv, enum status status, void *arg)
{
    struct error err;
    if (arg == &reuse.first.done[0]) {
        reuse.submitted =
            rt_batch_submit(reuse.second.calls, reuse.second.args, CALLS - 1, on_second_done, &err);
    }
    on_done(inv, status, arg);
}

static void batch_used_again(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, "digits", 1);
    make_batch(&reuse.first, &w);
    make_batch(&reuse.second, &w);
    assert_false(rt_batch_leave(reuse.second.calls[1])); /* leaves as soon as inputs are copied */
    assert_ok(w.err,
              rt_batch_submit(reuse.first.calls, reuse.first.args, CALLS, on_first_done, &w.err));
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(await_done(&reuse.first.done[i]), ST_OK);
        rt_invocation_free(reuse.first.calls[i]);
    }
    assert_int_equal(reuse.submitted, ST_OK);
    for (uint32_t i = 0; i < CALLS; i++) {
        if (i + 1 < CALLS) {
            assert_int_equal(await_done(&reuse.second.done[i]), i == 1 ? ST_CANCELLED : ST_OK);
        }
        rt_invocation_free(reuse.second.calls[i]);
    }
    assert_false(reuse.has_left);
    close_world(&w);
}

static size_t used_bytes(struct hal_pool *pool)
{
    struct hal_pool_stats stats;
    hal_pool_stats(pool, &stats);
    return stats.used_bytes;
}

/* Takes memory until at most |left| bytes are free in one piece. Returns the number of pieces
 * taken. */
static uint32_t take_memory(struct world *w, size_t left, struct hal_buffer *pieces[64])
{
    uint32_t count = 0;
    for (size_t bytes = POOL_BYTES; bytes > left;) {
        assert_true(count < 64);
        if (hal_pool_reserve(w->pool, bytes, &pieces[count], &w->err) == ST_OK) {
            count++;
        } else {
            bytes /= 2;
        }
    }
    return count;
}

static void give_memory(struct hal_buffer *pieces[64], uint32_t count)
{
    while (count > 0) {
        hal_buffer_unref(pieces[--count]);
    }
}

/* Without memory for the results or for the joined call, nothing is submitted and the calls are
 * unchanged. */
static void without_memory(void **state)
{
    static const size_t left[] = {32, 1024};
    (void)state;
    struct world w;
    struct batch_of b;
    struct hal_buffer *pieces[64];
    open_world(&w, "digits", 1);
    make_batch(&b, &w);
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        uint32_t count = take_memory(&w, left[i], pieces);
        size_t used = used_bytes(w.pool);
        assert_int_equal(rt_batch_submit(b.calls, b.args, CALLS, on_done, &w.err), ST_EXHAUSTED);
        assert_int_equal(used_bytes(w.pool), used);
        assert_false(rt_batch_leave(b.calls[3]));
        give_memory(pieces, count);
    }
    shut_gate(&w);
    assert_ok(w.err, rt_batch_submit(b.calls, b.args, CALLS, on_done, &w.err));
    open_gate();
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(await_done(&b.done[i]), i == 3 ? ST_CANCELLED : ST_OK);
    }
    rt_invocation_free(b.calls[3]);
    for (uint32_t i = 0; i < CALLS; i++) {
        if (i != 3) {
            expect_alone(&w, b.calls[i], i);
        }
    }
    close_world(&w);
}

/* A call with timepoints to wait for or to signal does not join a batch. */
static void calls_with_timepoints(void **state)
{
    (void)state;
    struct world w;
    struct hal_timepoint timepoint;
    open_world(&w, "digits", 1);
    struct rt_invocation *first = call(&w, 0), *second = call(&w, 1);
    assert_ok(w.err, rt_invocation_timepoint(first, &timepoint, &w.err));
    rt_invocation_after(second, &timepoint);
    assert_int_equal(rt_batch_rows(first), 0);
    assert_int_equal(rt_batch_rows(second), 0);
    rt_invocation_free(first);
    rt_invocation_free(second);
    close_world(&w);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(rows_through_views_and_reductions),
        RULE(pads_of_zero_along_dim_0),
        RULE(refused_along_dim_0),
        RULE(refused_order),
        RULE(refused_result),
        RULE(refused_input),
        RULE(strides_of_a_row),
        RULE(refused_operator),
        RULE(constant_for_each_row),
        RULE(class_token),
        RULE(rows_behind_other_dims),
        RULE(rows_moved),
        RULE(one_row_without_its_dim),
        RULE(refused_repetitions),
        RULE(refused_roll),
        cmocka_unit_test(models_for_one_row),
        cmocka_unit_test(models_for_any_number_of_rows),
        cmocka_unit_test(models_that_run_alone),
        cmocka_unit_test(a_trial_goes_on),
        cmocka_unit_test(time_and_work),
        cmocka_unit_test(some_leave),
        cmocka_unit_test(all_leave),
        cmocka_unit_test(batch_used_again),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(calls_with_timepoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
