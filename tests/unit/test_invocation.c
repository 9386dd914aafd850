/* SPDX-License-Identifier: MIT */
/* Calls through the public interface, on the programs of tests/models. */
#include "config.h"

#include "runtime/call/invocation.h"
#include "runtime/load/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/cpu/isa.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/program/method.h"
#include "runtime/program/oracle.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/hal/levels.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define POOL_BYTES ((size_t)16 << 20)
#define RESULT_BYTES_MAX (1u << 20)
#define THREADS 4
#define CALLS 50

/* ---- counted allocations --------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static atomic_uint allocation_count;

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&allocation_count, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocation_count, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    atomic_fetch_add(&allocation_count, 1);
    return __real_realloc(ptr, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&allocation_count, 1);
    return __real_aligned_alloc(alignment, size);
}

/* ---- a program and what calls need ----------------------------------------------------------- */

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct rt_method *method;
    struct error err;
};

static void open_world(struct world *w, const char *model, const struct hal_device_options *device,
                       bool poison)
{
    *w = (struct world){0};
    assert_ok(w->err, hal_device_open("cpu", device, &w->device, &w->err));
    assert_ok(w->err, hal_pool_new(w->device, POOL_BYTES, &w->pool, &w->err));
    struct rt_load_options options = {.device = w->device, .poison_workspaces = poison};
    w->program = load_model(model, &options);
    w->method = rt_program_default_method(w->program);
    assert_non_null(w->method);
    assert_null(rt_method_failure(w->method));
}

static void open_default(struct world *w, const char *model)
{
    static const struct hal_device_options two_workers = {.workers = 2};
    open_world(w, model, &two_workers, false);
}

static void close_world(struct world *w)
{
    struct hal_pool_stats stats;
    rt_program_unref(w->program);
    hal_pool_stats(w->pool, &stats);
    assert_int_equal(stats.reserved_count, 0);
    hal_pool_free(w->pool);
    hal_device_unref(w->device);
}

/* The declared shape, with every dynamic dim set to |size| or to its smaller bound. */
static struct shape shape_at(const struct rt_io *io, int64_t size)
{
    struct shape shape = io->shape;
    for (uint8_t d = 0; d < shape.rank; d++) {
        bool is_dynamic = rt_io_is_dynamic(io, d);
        shape.dims[d] = is_dynamic && shape.dims[d] > size ? size : shape.dims[d];
    }
    return shape;
}

/* Fills every input with a pattern. The models here have only float inputs. */
static enum status give_inputs(struct rt_invocation *invocation, int64_t size, struct error *err)
{
    struct rt_method *method = rt_invocation_method(invocation);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct shape shape = shape_at(io, size);
        void *ptr;
        must(io->kind == RT_IO_TENSOR && io->dtype == DT_F32);
        TRY(rt_invocation_input(invocation, i, io->dtype, &shape, &ptr, err));
        for (int64_t n = 0; n < shape_numel(&shape); n++) {
            ((float *)ptr)[n] = (float)((n * 37 + i) % 101) / 50 - 1;
        }
    }
    return ST_OK;
}

/* Makes one whole call. Copies the first result to |out| and returns its length. Any thread. */
static size_t call(struct rt_method *method, struct hal_pool *pool, int64_t size, uint8_t *out)
{
    struct rt_invocation *invocation;
    struct error err;
    must(rt_invocation_new(method, pool, &invocation, &err) == ST_OK);
    must(give_inputs(invocation, size, &err) == ST_OK);
    must(rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err) == ST_OK);
    must(submit_and_wait(invocation, false) == ST_OK);
    struct span bytes = rt_invocation_result(invocation, 0)->bytes;
    must(bytes.len <= RESULT_BYTES_MAX);
    memcpy(out, bytes.ptr, bytes.len);
    rt_invocation_free(invocation);
    return bytes.len;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Divides four integers by |divisors|. |err| has the error, if any. */
static enum status divide(struct world *w, struct rt_method *method, const int64_t divisors[4],
                          struct error *err)
{
    struct rt_invocation *invocation;
    const int64_t numbers[4] = {7, 8, 9, 10};
    void *ptr;
    TRY(rt_invocation_new(method, w->pool, &invocation, err));
    for (uint32_t i = 0; i < 2; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        must(rt_invocation_input(invocation, i, DT_I64, &io->shape, &ptr, err) == ST_OK);
        memcpy(ptr, i ? divisors : numbers, sizeof(numbers));
    }
    must(rt_invocation_prepare(invocation, RT_PREPARE_ALL, err) == ST_OK);
    enum status status = submit_and_wait(invocation, false);
    if (status != ST_OK) {
        *err = *rt_invocation_error(invocation);
    } else {
        const int64_t *quotients = (const void *)rt_invocation_result(invocation, 0)->bytes.ptr;
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(quotients[i], numbers[i] / divisors[i]);
        }
    }
    rt_invocation_free(invocation);
    return status;
}

/* Each call uses the memory of the call before it. */
static void a_fault_ends_one_call_only(void **state)
{
    struct world w;
    (void)state;
    open_default(&w, "faults");
    struct rt_method *method = rt_program_find_method(w.program, span_of("divide", 6));
    assert_non_null(method);
    for (int i = 0; i < 10; i++) {
        assert_fails(w.err, divide(&w, method, (const int64_t[]){1, 0, 3, 0}, &w.err), ST_INVALID,
                     "an integer is divided by zero");
        assert_ok(w.err, divide(&w, method, (const int64_t[]){1, 2, 3, 4}, &w.err));
    }
    close_world(&w);
}

/* A lookup in a table of five rows. The error names the element and the input, in any kind of
 * memory. */
static void a_fault_names_its_input(void **state)
{
    static const struct {
        uint32_t input;
        int64_t at, value;
        const char *element, *text;
    } cases[] = {
        {1, 2, 5, "[2]", "embedding: an index is out of range: got 5, expected 0 to 4"},
        {1, 0, -1, "[0]", "embedding: an index is out of range: got -1, expected 0 to 4"},
        {2, 1, 1 << 30, "[0][1]",
         "gather: an index is out of range: got 1073741824, expected 0 to"},
    };
    struct world w;
    (void)state;
    open_default(&w, "faults");
    struct rt_method *method = rt_program_find_method(w.program, span_of("forward", 7));
    assert_non_null(method);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct rt_invocation *inv;
        char element[RT_CULPRIT_TEXT_MAX];
        assert_ok(w.err, rt_invocation_new(method, w.pool, &inv, &w.err));
        for (uint32_t i = 0; i < 3; i++) {
            const struct rt_io *io = rt_method_input(method, i);
            void *ptr;
            assert_ok(w.err, rt_invocation_input(inv, i, io->dtype, &io->shape, &ptr, &w.err));
            memset(ptr, 0, (size_t)shape_numel(&io->shape) * dtype_bytes(io->dtype));
            if (i == cases[c].input) {
                memcpy((int64_t *)ptr + cases[c].at, &cases[c].value, sizeof(int64_t));
            }
        }
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        assert_int_equal(submit_and_wait(inv, false), ST_INVALID);
        const struct rt_culprit *culprit = rt_invocation_culprit(inv);
        assert_true(culprit->is_known);
        assert_int_equal(culprit->input, cases[c].input);
        assert_string_equal(rt_culprit_print(culprit, element), cases[c].element);
        assert_non_null(strstr(rt_invocation_error(inv)->text, cases[c].text));
        rt_invocation_free(inv);
    }
    close_world(&w);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void wrong_inputs_are_refused(void **state)
{
    struct world w;
    struct rt_invocation *invocation;
    void *ptr;
    (void)state;
    open_default(&w, "add");
    struct shape shape = rt_method_input(w.method, 0)->shape, wrong = shape;
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &invocation, &w.err));
    assert_fails(w.err, rt_invocation_input(invocation, 0, DT_I64, &shape, &ptr, &w.err),
                 ST_INVALID, "expected float32[");
    assert_string_equal(w.err.text, "expected float32[2,3], got int64[2,3]");
    wrong.rank++;
    wrong.dims[shape.rank] = 1;
    assert_fails(w.err, rt_invocation_input(invocation, 0, DT_F32, &wrong, &ptr, &w.err),
                 ST_INVALID, "expected float32[");
    wrong = shape;
    wrong.dims[0] = shape.dims[0] + 1;
    assert_int_equal(rt_invocation_input(invocation, 0, DT_F32, &wrong, &ptr, &w.err), ST_INVALID);
    wrong.dims[0] = -1;
    assert_int_equal(rt_invocation_input(invocation, 0, DT_F32, &wrong, &ptr, &w.err), ST_INVALID);
    assert_fails(w.err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w.err), ST_INVALID,
                 "input 'input_0' is missing");
    assert_ok(w.err, rt_invocation_input(invocation, 0, DT_F32, &shape, &ptr, &w.err));
    assert_fails(w.err, rt_invocation_input(invocation, 0, DT_F32, &shape, &ptr, &w.err),
                 ST_INVALID, "given twice");
    assert_fails(w.err, rt_invocation_int(invocation, 0, 3, &w.err), ST_INVALID,
                 "expected float32[");
    rt_invocation_free(invocation);
    close_world(&w);
}

/* Gives every scalar of |method| its fixed value, or another one. Returns the number of scalars. */
static uint32_t give_scalars(struct world *w, struct rt_method *method, bool is_same)
{
    struct rt_invocation *invocation;
    uint32_t count = 0;
    assert_ok(w->err, rt_invocation_new(method, w->pool, &invocation, &w->err));
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        enum status status = ST_OK;
        switch (io->kind) {
        case RT_IO_INT:
            status = rt_invocation_int(invocation, i, io->value.i + !is_same, &w->err);
            break;
        case RT_IO_FLOAT:
            status = rt_invocation_float(invocation, i, io->value.f + !is_same, &w->err);
            break;
        case RT_IO_BOOL:
            status = rt_invocation_bool(invocation, i, io->value.b == is_same, &w->err);
            break;
        default:
            continue;
        }
        count++;
        if (is_same) {
            assert_ok(w->err, status);
        } else {
            assert_fails(w->err, status, ST_INVALID, ", which the exporter fixed");
        }
    }
    rt_invocation_free(invocation);
    return count;
}

static void scalars_have_one_value(void **state)
{
    struct world w;
    uint32_t count = 0;
    (void)state;
    open_default(&w, "scalars");
    for (uint32_t i = 0; i < rt_program_method_count(w.program); i++) {
        struct rt_method *method = rt_program_method(w.program, i);
        count += give_scalars(&w, method, true);
        give_scalars(&w, method, false);
    }
    assert_true(count > 0);
    close_world(&w);
}

/* A pool without enough memory refuses the call, loses nothing, and serves later calls. */
static void an_exhausted_pool_recovers(void **state)
{
    struct world w;
    struct rt_invocation *invocation;
    struct hal_buffer *rest;
    struct hal_pool_stats stats;
    (void)state;
    open_default(&w, "mlp");
    hal_pool_stats(w.pool, &stats);
    size_t align = hal_device_props(w.device)->buffer_align;
    assert_ok(w.err, hal_pool_reserve(w.pool, stats.size_bytes - align, &rest, &w.err));
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &invocation, &w.err));
    assert_ok(w.err, give_inputs(invocation, 1, &w.err)); /* 48 bytes: what is left */
    size_t before = rt_invocation_bytes(invocation);
    assert_int_equal(rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w.err), ST_EXHAUSTED);
    assert_int_equal(rt_invocation_bytes(invocation), before);
    hal_buffer_unref(rest);
    assert_ok(w.err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w.err));
    assert_true(rt_invocation_bytes(invocation) > before);
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    rt_invocation_free(invocation);
    close_world(&w);
}

/* ---- the same bytes on any thread ------------------------------------------------------------ */

static uint8_t first[RESULT_BYTES_MAX], second[RESULT_BYTES_MAX];

static size_t run_once(const char *model, const struct hal_device_options *device, bool poison,
                       uint8_t *out)
{
    struct world w;
    open_world(&w, model, device, poison);
    call(w.method, w.pool, 3, out);
    size_t len = call(w.method, w.pool, 3, out);
    close_world(&w);
    return len;
}

static void workers_and_stale_memory_change_nothing(void **state)
{
    static const char *const models[] = {"mlp", "residual", "unet", "mobile"};
    static const struct hal_device_options one = {.workers = 1}, four = {.workers = 4};
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        size_t len = run_once(models[i], &one, false, first);
        assert_true(len > 0);
        assert_int_equal(run_once(models[i], &four, false, second), len);
        assert_memory_equal(first, second, len);
        assert_int_equal(run_once(models[i], &four, true, second), len);
        assert_memory_equal(first, second, len);
    }
}

/* All levels of this machine give nearly the same numbers. */
static void every_level_runs(void **state)
{
    static const struct hal_device_options generic = {.workers = 2, .cpu_level = "generic"};
    (void)state;
    size_t len = run_once("residual", &generic, false, first);
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        enum hal_cpu_isa isa = (enum hal_cpu_isa)i;
        struct hal_device_options options = {.workers = 2, .cpu_level = hal_cpu_isa_name(isa)};
        if (!has_level(isa)) {
            continue;
        }
        assert_int_equal(run_once("residual", &options, false, second), len);
        for (size_t j = 0; j < len / sizeof(float); j++) {
            float a, b;
            memcpy(&a, first + j * sizeof(a), sizeof(a));
            memcpy(&b, second + j * sizeof(b), sizeof(b));
            assert_float_equal(a, b, 1e-4);
        }
    }
}

/* ---- small tensors --------------------------------------------------------------------------- */

/* The memory of the result of a call; |keeps|: with a reference. */
static struct hal_buffer *call_small(struct world *w, bool keeps)
{
    struct rt_invocation *inv;
    struct rt_buffer_desc result;
    assert_ok(w->err, rt_invocation_new_small(w->method, w->pool, &inv, &w->err));
    assert_ok(w->err, give_inputs(inv, 3, &w->err));
    assert_int_equal(rt_invocation_bytes(inv), 0);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    assert_true(rt_invocation_find_result(inv, 0, &result));
    const uint8_t *base = hal_buffer_map(result.buffer);
    assert_ptr_equal(base + result.offset, rt_invocation_result(inv, 0)->bytes.ptr);
    struct hal_buffer *buffer = keeps ? hal_buffer_ref(result.buffer) : result.buffer;
    rt_invocation_free(inv);
    return buffer;
}

/* They lie in memory that calls keep, unless somebody else has kept it. */
static void small_tensors_need_no_pool(void **state)
{
    struct world w;
    (void)state;
    open_default(&w, "mlp");
    call(w.method, w.pool, 3, first);
    struct hal_buffer *kept = call_small(&w, true), *other = call_small(&w, false);
    assert_ptr_not_equal(kept, other);
    assert_ptr_equal(call_small(&w, false), other);
    size_t len = call(w.method, w.pool, 3, second); /* which uses the pool */
    assert_memory_equal(first, second, len);
    assert_non_null(memmem(hal_buffer_map(kept), hal_buffer_size(kept), first, len));
    hal_buffer_unref(kept);
    close_world(&w);
}

static uint64_t found_plans(struct world *w)
{
    return rt_method_plan_stats(w->method).found;
}

/* Gives the inputs of a small call of |size| and returns the memory of the first one. */
static void *begin_small(struct world *w, int64_t size, struct rt_invocation **out)
{
    assert_ok(w->err, rt_invocation_new_small(w->method, w->pool, out, &w->err));
    assert_ok(w->err, give_inputs(*out, size, &w->err));
    return (uint8_t *)hal_buffer_map((*out)->inputs[0].binding.buffer) +
           (*out)->inputs[0].binding.offset;
}

/* Runs it, compares its result with that of a call in the pool, and returns where it was. */
static const void *end_small(struct world *w, int64_t size, struct rt_invocation *inv)
{
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    const struct span got = rt_invocation_result(inv, 0)->bytes;
    assert_int_equal(call(w->method, w->pool, size, first), got.len);
    assert_memory_equal(got.ptr, first, got.len);
    rt_invocation_free(inv);
    return got.ptr;
}

/* A call of the same sizes has its tensors where the last one had them, and its plan at once. */
static void small_tensors_are_found_again(void **state)
{
    struct world w;
    struct rt_invocation *inv;
    (void)state;
    open_default(&w, "mlp");
    void *input = begin_small(&w, 3, &inv);
    const void *result = end_small(&w, 3, inv);
    for (int i = 0; i < 3; i++) {
        uint64_t found = found_plans(&w);
        assert_ptr_equal(begin_small(&w, 3, &inv), input);
        assert_non_null(inv->kept_plan);
        assert_ptr_equal(end_small(&w, 3, inv), result);
        assert_int_equal(found_plans(&w), found + 2); /* end_small() makes two calls */
    }
    begin_small(&w, 5, &inv);
    assert_null(inv->kept_plan);
    end_small(&w, 5, inv);
    begin_small(&w, 3, &inv);
    end_small(&w, 3, inv);
    close_world(&w);
}

/* Whatever a call has that the last one had not, makes it forget all of that. */
static void odd_calls_find_nothing_again(void **state)
{
    struct world w;
    struct rt_invocation *inv;
    struct hal_buffer *memory;
    void *ptr;
    (void)state;
    open_default(&w, "mlp");
    struct shape shape = shape_at(rt_method_input(w.method, 0), 3);
    for (int odd = 0; odd < 5; odd++) {
        begin_small(&w, 3, &inv);
        end_small(&w, 3, inv);
        assert_ok(w.err, rt_invocation_new_small(w.method, w.pool, &inv, &w.err));
        assert_non_null(inv->kept_plan);
        assert_null(rt_invocation_input_shape(inv, 0)); /* nothing is given yet */
        switch (odd) {
        case 0: /* no input at all */
            assert_int_equal(rt_invocation_plan(inv, RT_PREPARE_ALL, &w.err), ST_INVALID);
            rt_invocation_free(inv);
            continue;
        case 1: /* another type */
            assert_int_equal(rt_invocation_input(inv, 0, DT_I32, &shape, &ptr, &w.err), ST_INVALID);
            assert_ok(w.err, give_inputs(inv, 3, &w.err));
            break;
        case 2: /* twice */
            assert_ok(w.err, give_inputs(inv, 3, &w.err));
            assert_int_equal(rt_invocation_input(inv, 0, DT_F32, &shape, &ptr, &w.err), ST_INVALID);
            break;
        case 3: /* memory of the caller's for the result */
            assert_ok(w.err, hal_buffer_new(w.device, 4096, &memory, &w.err));
            assert_ok(w.err, rt_invocation_bind_result(inv, 0, memory, 0, &w.err));
            assert_ok(w.err, give_inputs(inv, 3, &w.err));
            hal_buffer_unref(memory);
            break;
        default: /* the client leaves, before it runs */
            assert_ok(w.err, give_inputs(inv, 3, &w.err));
            assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
            rt_invocation_free(inv);
            continue;
        }
        assert_null(inv->kept_plan);
        end_small(&w, 3, inv);
    }
    close_world(&w);
}

/* ---- plans and memory ------------------------------------------------------------------------ */

static bool is_dynamic(const struct rt_method *method)
{
    return rt_method_input_count(method) > 0 && rt_method_input(method, 0)->dynamic_dims;
}

/* After one call of each size, no call allocates memory, in any order of sizes. */
static void warm_calls_do_not_allocate(void **state)
{
    struct world w;
    (void)state;
    open_default(&w, "mlp");
    assert_true(is_dynamic(w.method));
    size_t len = call(w.method, w.pool, 2, first);
    for (int i = 0; i < 20; i++) {
        call(w.method, w.pool, 1 + i % 2, second);
    }
    unsigned before = atomic_load(&allocation_count);
    for (int i = 0; i < 1000; i++) {
        call(w.method, w.pool, 1 + i % 2, second);
    }
    assert_int_equal(atomic_load(&allocation_count) - before, 0);
    assert_int_equal(call(w.method, w.pool, 2, second), len);
    assert_memory_equal(first, second, len);
    close_world(&w);
}

/* The same for calls of several blocks with steps between them. */
static void warm_loops_do_not_allocate(void **state)
{
    static const char *const models[] = {"loops", "found"};
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        struct world w;
        open_default(&w, models[m]);
        for (int i = 0; i < 20; i++) {
            call(w.method, w.pool, 1, first);
        }
        unsigned before = atomic_load(&allocation_count);
        for (int i = 0; i < 100; i++) {
            call(w.method, w.pool, 1, second);
        }
        assert_int_equal(atomic_load(&allocation_count) - before, 0);
        close_world(&w);
    }
}

/* A row of "scroll" at position |at| of a sequence. */
static void scroll(struct world *w, struct rt_state *state, int64_t at)
{
    const struct shape one = {.rank = 1, .dims = {1}};
    struct rt_invocation *invocation;
    void *x, *position;
    must(rt_invocation_new(w->method, w->pool, &invocation, &w->err) == ST_OK);
    rt_invocation_set_state(invocation, state);
    must(rt_invocation_input(invocation, 0, DT_F32, &one, &x, &w->err) == ST_OK);
    must(rt_invocation_input(invocation, 1, DT_I64, &one, &position, &w->err) == ST_OK);
    memset(x, 0, sizeof(float));
    memcpy(position, &at, sizeof(at));
    must(rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w->err) == ST_OK);
    must(submit_and_wait(invocation, false) == ST_OK);
    rt_invocation_free(invocation);
}

/* The same for steps of a sequence, each at another position. */
static void warm_steps_do_not_allocate(void **ctx)
{
    struct rt_state *state;
    struct world w;
    (void)ctx;
    open_default(&w, "scroll");
    assert_ok(w.err, rt_state_new(w.program, &state, &w.err));
    for (int i = 0; i < 3; i++) { /* all at one position */
        scroll(&w, state, 0);
    }
    unsigned before = atomic_load(&allocation_count);
    for (int i = 0; i < 100; i++) {
        scroll(&w, state, i % 8);
    }
    assert_int_equal(atomic_load(&allocation_count) - before, 0);
    rt_state_unref(state);
    close_world(&w);
}

/* ---- several at once ------------------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    struct world *world;
    int64_t size;
    size_t len;
    uint8_t expected[65536], got[65536];
};

static void *call_often(void *arg)
{
    struct caller *c = arg;
    for (int i = 0; i < CALLS; i++) {
        must(call(c->world->method, c->world->pool, c->size, c->got) == c->len);
        must(memcmp(c->expected, c->got, c->len) == 0);
    }
    return NULL;
}

static void concurrent_calls_are_independent(void **state)
{
    static struct caller callers[THREADS];
    struct world w;
    (void)state;
    open_default(&w, "mlp");
    for (int i = 0; i < THREADS; i++) {
        callers[i].world = &w;
        callers[i].size = i + 1;
        callers[i].len = call(w.method, w.pool, i + 1, first);
        assert_true(callers[i].len <= sizeof(callers[i].expected));
        memcpy(callers[i].expected, first, callers[i].len);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    close_world(&w);
}

/* A cancelled call ends as cancelled or as done. The next call with the recycled invocation
 * succeeds. */
static void a_cancelled_call_leaves_nothing(void **state)
{
    struct world w;
    (void)state;
    open_default(&w, "unet");
    size_t len = call(w.method, w.pool, 1, first);
    for (int i = 0; i < 20; i++) {
        struct rt_invocation *invocation;
        assert_ok(w.err, rt_invocation_new(w.method, w.pool, &invocation, &w.err));
        assert_ok(w.err, give_inputs(invocation, 1, &w.err));
        assert_ok(w.err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w.err));
        enum status status = submit_and_wait(invocation, true);
        assert_true(status == ST_OK || status == ST_CANCELLED);
        rt_invocation_free(invocation);
        assert_int_equal(call(w.method, w.pool, 1, second), len);
        assert_memory_equal(first, second, len);
    }
    close_world(&w);
}

static void calls_keep_their_program(void **state)
{
    struct world w;
    struct rt_invocation *invocation;
    (void)state;
    open_default(&w, "mlp");
    assert_ok(w.err, rt_invocation_new(w.method, w.pool, &invocation, &w.err));
    assert_ok(w.err, give_inputs(invocation, 2, &w.err));
    rt_program_unref(w.program);
    w.program = NULL;
    assert_ok(w.err, rt_invocation_prepare(invocation, RT_PREPARE_ALL, &w.err));
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    assert_true(rt_invocation_result(invocation, 0)->bytes.len > 0);
    rt_invocation_free(invocation);
    close_world(&w);
}

/* A call with new dims, so that it needs a new plan. |size| must not have been used before. */
static struct rt_invocation *begin(struct world *w, int64_t size)
{
    struct rt_invocation *inv;
    assert_ok(w->err, rt_invocation_new(w->method, w->pool, &inv, &w->err));
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        const struct rt_io *io = rt_method_input(w->method, i);
        struct shape shape = shape_at(io, size);
        size_t bytes;
        void *ptr;
        if (io->kind == RT_IO_TENSOR) {
            assert_ok(w->err, rt_invocation_input(inv, i, io->dtype, &shape, &ptr, &w->err));
            assert_ok(w->err, shape_bytes(&shape, io->dtype, &bytes, &w->err));
            memset(ptr, 0, bytes);
        }
    }
    return inv;
}

/* For one block and for code of several steps: asking for a plan makes none and takes no memory. */
static void asking_for_a_plan_makes_none(void **state)
{
    static const char *const models[] = {"mlp", "found"};
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct world w;
        open_default(&w, models[i]);
        uint64_t plans = rt_method_plan_stats(w.method).count;
        struct rt_invocation *inv = begin(&w, 3);
        size_t bytes = rt_invocation_bytes(inv);
        assert_int_equal(rt_invocation_plan(inv, RT_PREPARE_CACHED, &w.err), ST_WOULD_PLAN);
        assert_int_equal(rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w.err), ST_WOULD_PLAN);
        assert_int_equal(rt_method_plan_stats(w.method).count, plans);
        assert_int_equal(rt_invocation_bytes(inv), bytes);
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w.err));
        assert_true(rt_method_plan_stats(w.method).count > plans);
        rt_invocation_free(inv);
        inv = begin(&w, 3);
        assert_ok(w.err, rt_invocation_prepare(inv, RT_PREPARE_CACHED, &w.err));
        rt_invocation_free(inv);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_inputs_are_refused),
        cmocka_unit_test(scalars_have_one_value),
        cmocka_unit_test(small_tensors_need_no_pool),
        cmocka_unit_test(small_tensors_are_found_again),
        cmocka_unit_test(odd_calls_find_nothing_again),
        cmocka_unit_test(asking_for_a_plan_makes_none),
        cmocka_unit_test(an_exhausted_pool_recovers),
        cmocka_unit_test(workers_and_stale_memory_change_nothing),
        cmocka_unit_test(every_level_runs),
        cmocka_unit_test(warm_calls_do_not_allocate),
        cmocka_unit_test(warm_loops_do_not_allocate),
        cmocka_unit_test(warm_steps_do_not_allocate),
        cmocka_unit_test(concurrent_calls_are_independent),
        cmocka_unit_test(a_cancelled_call_leaves_nothing),
        cmocka_unit_test(a_fault_ends_one_call_only),
        cmocka_unit_test(a_fault_names_its_input),
        cmocka_unit_test(calls_keep_their_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
