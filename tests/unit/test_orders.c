/* SPDX-License-Identifier: MIT */
/*
 * Orders of memory at the borders of methods: which tensors prefer channels-last, and that calls
 * with any of them in that order give the same numbers, alone and in batches, without a reorder.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "hal/buffer.h"
#include "runtime/call/batch.h"
#include "runtime/call/inside.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/program/oracle.h"
#include "runtime/program/orders.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ROWS 2 /* of a call whose batch varies */
#define VULKAN_POOL_BYTES ((size_t)64 << 20)

struct row {
    const char *model;
    uint32_t inputs, results; /* bits of those that prefer channels-last */
    uint32_t reorders;        /* in the plain form, and when all of them are in that order */
    uint32_t reorders_left;
};

static const struct row rows[] = {
    {"conv_ops", 0, 0x9f, 15, 10},
    /* a result that is read inside too */ {"layers/head", 0x1, 0, 2, 1}, /* the other reorder is
                                                                             inside */
    {"layers/int8", 0x1, 0, 2, 1},
    {"xnn_images", 0x1, 0x37, 8, 2},
    {"xnn_int8", 0x1, 0x1, 2, 0},
    {"xnn_row_images", 0x1, 0x1, 2, 0},
    {"digits", 0, 0, 0, 0}, /* one channel: both orders have the same bytes */
    {"linear", 0, 0, 0, 0},
    {"branches", 0, 0, 0, 0},
};

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct error err;
};

static void open_program(struct world *w, const char *model)
{
    const struct rt_load_options options = {.device = w->device, .poison_workspaces = true};
    w->program = load_model(model, &options);
    w->method = rt_program_default_method(w->program);
}

static void open_world(struct world *w, const char *model)
{
    *w = (struct world){0};
    open_two_workers(&w->device, &w->pool);
    open_program(w, model);
}

/* False: there is no Vulkan device here. */
static bool open_vulkan(struct world *w, const char *model)
{
    const struct hal_device_options options = {.workers = 2};
    *w = (struct world){0};
    if (hal_device_open("vulkan", &options, &w->device, &w->err) != ST_OK) {
        return false;
    }
    assert_ok(w->err, hal_pool_new(w->device, VULKAN_POOL_BYTES, &w->pool, &w->err));
    open_program(w, model);
    return true;
}

static void close_world(struct world *w)
{
    rt_program_unref(w->program);
    close_two_workers(w->device, w->pool);
}

static uint32_t count_reorders(const struct rt_block *block)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->graph.node_count; i++) {
        count += rt_op_is(block->graph.nodes[i].op, RT_KNOWN_reorder);
    }
    return count;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void put_number(void *at, enum dtype dtype, int64_t number)
{
    float real = (float)(number % 97 - 40) / 16;
    if (dtype == DT_F32) {
        memcpy(at, &real, sizeof(real));
    } else {
        *(uint8_t *)at = (uint8_t)(number % 251);
    }
}

/* Gives every input; those whose bits are in |bits| as their method prefers. */
static void give_inputs(struct world *w, struct rt_invocation *inv, uint32_t bits)
{
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        const struct rt_io *io = rt_method_input(w->method, i);
        const uint8_t *order = io->order_bit & bits ? io->order : NULL;
        struct rt_buffer_desc given = {.dtype = io->dtype, .shape = io->shape};
        int64_t row_major[SHAPE_RANK_MAX];
        size_t bytes = 0, size = dtype_bytes(io->dtype);
        void *base;
        given.shape.dims[0] = rt_io_is_dynamic(io, 0) ? ROWS : io->shape.dims[0];
        given.has_strides = order != NULL;
        shape_order_strides(&given.shape, order, given.strides);
        shape_strides(&given.shape, row_major);
        assert_ok(w->err, shape_bytes(&given.shape, io->dtype, &bytes, &w->err));
        assert_ok(w->err, rt_invocation_stage_input(inv, i, &given, bytes, &base, &w->err));
        for (int64_t n = 0; n < shape_numel(&given.shape); n++) {
            int64_t at = 0, rest = n;
            for (uint8_t d = 0; d < given.shape.rank; d++) {
                at += rest / row_major[d] * given.strides[d];
                rest %= row_major[d];
            }
            put_number((uint8_t *)base + (size_t)at * size, io->dtype, 31 * n + i);
        }
    }
}

static struct rt_invocation *begin(struct world *w, uint32_t bits)
{
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    give_inputs(w, inv, bits);
    for (uint32_t i = 0; i < rt_method_result_count(w->method); i++) {
        if (rt_method_result(w->method, i)->order_bit & bits) {
            rt_invocation_prefer_order(inv, i);
        }
    }
    return inv;
}

/* Each element of |got|, in its order, is that of |expected|, which is row-major. */
static void assert_same_numbers(const struct rt_result *expected, const struct rt_result *got,
                                enum dtype dtype)
{
    int64_t strides[SHAPE_RANK_MAX], row_major[SHAPE_RANK_MAX];
    size_t size = dtype_bytes(dtype);
    assert_true(shape_equal(&expected->shape, &got->shape));
    assert_null(expected->order);
    shape_strides(&got->shape, row_major);
    shape_order_strides(&got->shape, got->order, strides);
    for (int64_t n = 0; n < shape_numel(&got->shape); n++) {
        int64_t at = 0, rest = n;
        for (uint8_t d = 0; d < got->shape.rank; d++) {
            at += rest / row_major[d] * strides[d];
            rest %= row_major[d];
        }
        assert_memory_equal((const uint8_t *)got->bytes.ptr + (size_t)at * size,
                            (const uint8_t *)expected->bytes.ptr + (size_t)n * size, size);
    }
}

static void check_results(struct world *w, const struct rt_invocation *plain,
                          const struct rt_invocation *inv, uint32_t bits)
{
    for (uint32_t i = 0; i < rt_method_result_count(w->method); i++) {
        const struct rt_io *io = rt_method_result(w->method, i);
        const struct rt_result *result = rt_invocation_result(inv, i);
        assert_ptr_equal(result->order, io->order_bit & bits ? io->order : NULL);
        assert_same_numbers(rt_invocation_result(plain, i), result, io->dtype);
    }
}

static void run(struct world *w, struct rt_invocation *inv)
{
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
}

static void run_and_free(struct world *w, struct rt_invocation *inv)
{
    run(w, inv);
    rt_invocation_free(inv);
}

/* ---- one model ------------------------------------------------------------------------------- */

static uint32_t check_preferences(struct world *w, const struct row *row)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        const struct rt_io *io = rt_method_input(w->method, i);
        assert_ptr_equal(io->order,
                         row->inputs >> i & 1 ? shape_channels_last(io->shape.rank) : NULL);
        bits |= io->order_bit;
    }
    for (uint32_t i = 0; i < rt_method_result_count(w->method); i++) {
        const struct rt_io *io = rt_method_result(w->method, i);
        assert_ptr_equal(io->order,
                         row->results >> i & 1 ? shape_channels_last(io->shape.rank) : NULL);
        bits |= io->order_bit;
    }
    return bits;
}

/* A form that is not there yet counts as a plan that is not there yet. */
static void check_first_call(struct world *w, uint32_t bits)
{
    struct rt_invocation *inv = begin(w, bits);
    assert_int_equal(rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w->err), ST_WOULD_PLAN);
    run(w, inv);
    rt_invocation_free(inv);
    inv = begin(w, bits);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w->err));
    rt_invocation_free(inv);
}

/* All mixes of orders give the same numbers, and no input is converted. Returns the reorders that
 * are left when all tensors are in their preferred order. */
static uint32_t check_mixes(struct world *w, uint32_t all, const struct rt_invocation *plain)
{
    struct rt_input_stats before = rt_method_input_stats(w->method);
    uint32_t left = 0;
    for (uint32_t bits = 0; bits <= all; bits++) {
        struct rt_invocation *inv = begin(w, bits);
        run(w, inv);
        check_results(w, plain, inv, bits);
        left = count_reorders(inv->form);
        rt_invocation_free(inv);
    }
    assert_int_equal(rt_method_input_stats(w->method).converted, before.converted);
    return left;
}

static void check_model(struct world *w, const struct row *row)
{
    uint32_t all = check_preferences(w, row);
    print_message("%s\n", row->model);
    if (all == 0) {
        return;
    }
    check_first_call(w, all);
    struct rt_invocation *plain = begin(w, 0);
    run(w, plain);
    assert_ptr_equal(plain->form, plain->entry);
    assert_int_equal(count_reorders(plain->form), row->reorders);
    assert_int_equal(check_mixes(w, all, plain), row->reorders_left);
    rt_invocation_free(plain);
}

static void test_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;
        open_world(&w, rows[i].model);
        check_model(&w, &rows[i]);
        close_world(&w);
    }
}

static uint32_t all_bits(const struct world *w)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        bits |= rt_method_input(w->method, i)->order_bit;
    }
    for (uint32_t i = 0; i < rt_method_result_count(w->method); i++) {
        bits |= rt_method_result(w->method, i)->order_bit;
    }
    return bits;
}

/* Shaders read and write by strides, and copies between host and device keep the order. */
static void test_vulkan(void **state)
{
    static const char *const models[] = {"layers/head", "conv_ops", "xnn_row_images", "unet"};
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct world w;
        if (!open_vulkan(&w, models[i])) {
            skip();
        }
        struct rt_invocation *plain = begin(&w, 0);
        run(&w, plain);
        print_message("%s\n", models[i]);
        assert_true(all_bits(&w) > 0);
        assert_true(check_mixes(&w, all_bits(&w), plain) < count_reorders(plain->form));
        rt_invocation_free(plain);
        close_world(&w);
    }
}

/* ---- conversions ----------------------------------------------------------------------------- */

/* What has to be copied anyway is copied into the preferred order. */
static void test_conversion(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "layers/head");
    struct rt_invocation *plain = begin(&w, 0), *inv;
    const struct rt_io *io = rt_method_input(w.method, 0);
    struct rt_buffer_desc given = {.dtype = io->dtype, .shape = io->shape, .has_strides = true};
    void *base;
    run(&w, plain);
    shape_strides(&io->shape, given.strides);
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        given.strides[d] *= 2;
    }
    size_t count = (size_t)shape_numel(&io->shape);
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &inv, &w.err));
    assert_ok(w.err,
              rt_invocation_stage_input(inv, 0, &given, 2 * count * sizeof(float), &base, &w.err));
    for (size_t n = 0; n < count; n++) {
        put_number((float *)base + 2 * n, DT_F32, 31 * (int64_t)n);
    }
    run(&w, inv);
    assert_int_equal(inv->orders, io->order_bit);
    check_results(&w, plain, inv, 0);
    assert_int_equal(rt_method_input_stats(w.method).converted, 1);
    rt_invocation_free(inv);
    rt_invocation_free(plain);
    close_world(&w);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Calls of the same orders run as one; calls of others do not fit. */
static void test_batch(void **state)
{
    struct world w;
    struct done done[2] = {DONE_INIT, DONE_INIT};
    void *args[] = {&done[0], &done[1]};
    int64_t rows_max;
    (void)state;
    open_world(&w, "xnn_row_images");
    assert_ok(w.err, rt_batch_open(w.method, &rows_max, &w.err));
    uint32_t all =
        rt_method_input(w.method, 0)->order_bit | rt_method_result(w.method, 0)->order_bit;
    struct rt_invocation *plain = begin(&w, 0), *parts[] = {begin(&w, all), begin(&w, all)};
    run(&w, plain);
    for (int i = 0; i < 2; i++) {
        assert_ok(w.err, rt_invocation_plan(parts[i], RT_PREPARE_ALL, &w.err));
        assert_int_equal(rt_batch_rows(parts[i]), ROWS);
    }
    assert_true(rt_batch_fits(parts[0], parts[1]));
    assert_false(rt_batch_fits(parts[0], plain));
    assert_ok(w.err, rt_batch_submit(parts, args, 2, on_done, &w.err));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(await_done(&done[i]), ST_OK);
        assert_true(parts[i]->was_joined);
        check_results(&w, plain, parts[i], all);
        rt_invocation_free(parts[i]);
    }
    rt_invocation_free(plain);
    close_world(&w);
}

/* ---- plans of forms -------------------------------------------------------------------------- */

static uint64_t count_plans(const struct world *w)
{
    return rt_method_plan_stats(w->method).count;
}

/* Plans of forms are counted, and those that were used least recently go first. */
static void test_plans(void **state)
{
    struct world w;
    struct rt_block *forms[3];
    (void)state;
    open_world(&w, "xnn_images");
    uint64_t plain = count_plans(&w), bytes = rt_method_plan_stats(w.method).bytes;
    for (uint32_t i = 0; i < 3; i++) {
        struct rt_invocation *inv = begin(&w, i + 1);
        run(&w, inv);
        forms[i] = inv->form;
        rt_invocation_free(inv);
        assert_int_equal(count_plans(&w), plain + i + 1);
        assert_true(forms[i]->plan_bytes > 0);
    }
    bytes = rt_method_plan_stats(w.method).bytes - bytes;
    struct rt_invocation *again = begin(&w, 1); /* is used most recently now */
    run(&w, again);
    rt_orders_trim(w.method, forms[2], bytes - 1);
    assert_int_equal(forms[1]->plan_count, 0);
    assert_int_equal(count_plans(&w), plain + 2);
    rt_orders_trim(w.method, forms[2], 0);
    assert_int_equal(forms[0]->plan_count, 0);
    assert_int_equal(forms[2]->plan_count, 1);
    assert_int_equal(count_plans(&w), plain + 1);
    rt_invocation_free(again); /* has its plan still */
    run_and_free(&w, begin(&w, 2));
    assert_int_equal(forms[1]->plan_count, 1);
    close_world(&w);
}

/* ---- pipelines ------------------------------------------------------------------------------- */

#define IMAGES_RESULT 4 /* of xnn_images: what xnn_int8 takes */

/* xnn_images, then xnn_int8 with a result of it. With |is_shown| that is a result, too. */
static struct rt_program *make_two(struct rt_program *images, struct rt_program *int8,
                                   bool is_shown)
{
    static const struct rt_source first[] = {IN(0)}, second[] = {FROM(0, IMAGES_RESULT)};
    static const struct rt_source outputs[] = {FROM(1, 0), FROM(1, 1), FROM(0, IMAGES_RESULT)};
    const struct rt_pipeline_step steps[] = {
        {"images", rt_program_default_method(images), first, 1},
        {"int8", rt_program_default_method(int8), second, 1}};
    const struct rt_pipeline_desc desc = {.name = "two",
                                          .steps = steps,
                                          .step_count = 2,
                                          .outputs = outputs,
                                          .output_count = is_shown ? 3 : 2};
    return make_pipeline(&desc);
}

/* Runs the pipeline with those of its tensors turned whose bits are in |bits|, and compares the
 * results with those of |plain|, if there are any. */
static struct rt_invocation *run_pipeline(struct world *w, uint32_t bits,
                                          const struct rt_invocation *plain)
{
    struct rt_invocation *inv = begin(w, bits);
    run(w, inv);
    if (plain) {
        check_results(w, plain, inv, bits);
    }
    return inv;
}

static uint32_t count_in_step(struct rt_invocation *inv, uint32_t step)
{
    return count_reorders(rt_cascade_step(rt_invocation_cascade(inv), step)->form);
}

/* Between two steps that prefer the same order nothing is reordered or converted, and a pipeline
 * prefers what its steps prefer. A tensor that is a result as well stays as results are. */
static void check_pipeline(struct world *w, struct rt_program *images, struct rt_program *int8,
                           bool is_shown)
{
    struct rt_method *second = rt_program_default_method(int8);
    w->program = make_two(images, int8, is_shown);
    w->method = rt_program_default_method(w->program);
    uint64_t converted = rt_method_input_stats(second).converted;
    uint32_t all = rt_method_input(w->method, 0)->order_bit |
                   rt_method_result(w->method, 0)->order_bit |
                   (is_shown ? rt_method_result(w->method, 2)->order_bit : 0);
    assert_int_equal(all, is_shown ? 7 : 3);
    struct rt_invocation *plain = run_pipeline(w, 0, NULL);
    assert_int_equal(count_in_step(plain, 1), is_shown ? 2 : 1); /* its result's */
    for (uint32_t bits = 0; bits <= all; bits++) {
        struct rt_invocation *inv = run_pipeline(w, bits, plain);
        if (bits == all) {
            assert_int_equal(count_in_step(inv, 1), 0);
        }
        rt_invocation_free(inv);
    }
    assert_int_equal(rt_method_input_stats(second).converted, converted);
    rt_invocation_free(plain);
    rt_program_unref(w->program);
}

static void test_pipeline(void **state)
{
    struct world w = {0};
    (void)state;
    open_two_workers(&w.device, &w.pool);
    const struct rt_load_options options = {.device = w.device, .poison_workspaces = true};
    struct rt_program *images = load_model("xnn_images", &options);
    struct rt_program *int8 = load_model("xnn_int8", &options);
    check_pipeline(&w, images, int8, false);
    check_pipeline(&w, images, int8, true);
    rt_program_unref(images);
    rt_program_unref(int8);
    close_two_workers(w.device, w.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),     cmocka_unit_test(test_vulkan),
        cmocka_unit_test(test_conversion), cmocka_unit_test(test_batch),
        cmocka_unit_test(test_plans),      cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
