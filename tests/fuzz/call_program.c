/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/fuzz/call_program.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/carries.h"
#include "runtime/program/composition.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "runtime/program/summary.h"
#include "tests/fuzz/program_mutate.h"

/* A damaged jump may make an endless loop; these steps are enough for any intended loop. */
#define STEPS_MAX 20000
#define POOL_BYTES ((size_t)16 << 20)
#define LISTING_BYTES_MAX (16u << 20)
#define STATE_BYTES_MAX ((size_t)16 << 20)
#define EACH (-1)

/* Dynamic dims get their bound, limited to each of these, and each dim is also tried alone. */
static const int64_t caps[] = {INT64_MAX, 3, 1, 0, EACH};

struct wait {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    enum status status;
};

static volatile uint8_t sink; /* keeps the compiler from removing the reads */

enum content { SMALL, INDICES, ANY_BITS, EDGES, CONTENT_COUNT };

/* Small numbers of both signs, converted to the element type; indices are not negative. */
static void store_small(uint8_t *to, enum dtype dtype, int64_t number)
{
    double f64 = (double)number / 2;
    float f32 = (float)f64;
    uint64_t halves = number == 0 ? 0 : 0x3c00 | (number < 0 ? 0x8000 : 0);
    const void *from = &number;
    from = dtype == DT_F32 ? (const void *)&f32 : from;
    from = dtype == DT_F64 ? (const void *)&f64 : from;
    from = dtype == DT_F16 || dtype == DT_BF16 ? (const void *)&halves : from;
    memcpy(to, from, dtype_bytes(dtype) < 8 ? dtype_bytes(dtype) : 8);
}

/* Infinities, NaN, the ends of integers. */
static void store_edge(uint8_t *to, enum dtype dtype, uint32_t choice)
{
    static const uint64_t patterns[] = {0x7f8000007f800000, 0xff800000ff800000, 0x7ff0000000000000,
                                        0x7ff8000000000000, UINT64_MAX,         0x8000000000000000,
                                        INT64_MAX,          0x7c007c007c007c00, 0x0101010101010101,
                                        0x80000000,         INT32_MAX,          0};
    memcpy(to, &patterns[choice % (sizeof(patterns) / sizeof(patterns[0]))],
           dtype_bytes(dtype) < 8 ? dtype_bytes(dtype) : 8);
}

static void fill(struct caller *caller, uint8_t *bytes, enum dtype dtype, size_t len)
{
    enum content content = (enum content)fuzz_below(&caller->seed, CONTENT_COUNT);
    size_t size = dtype_bytes(dtype);
    for (size_t i = 0; i * size < len; i++) {
        uint64_t bits = fuzz_random(&caller->seed);
        if (content == SMALL || content == INDICES) {
            store_small(bytes + i * size, dtype, (int64_t)(bits >> 32) % 7 - (content ? 0 : 3));
        } else if (content == EDGES && bits % 3) {
            store_edge(bytes + i * size, dtype, (uint32_t)(bits >> 32));
        } else {
            memcpy(bytes + i * size, &bits, size < 8 ? size : 8);
        }
        bytes[i * size] = dtype == DT_BOOL ? bytes[i * size] & 1 : bytes[i * size];
    }
}

static int64_t choose_dim(struct caller *caller, int64_t bound, int64_t cap)
{
    if (cap == EACH) {
        cap = fuzz_below(&caller->seed, bound < 64 ? (uint64_t)bound + 1 : 64);
    }
    return bound > cap ? cap : bound;
}

static enum status give_input(struct caller *caller, struct rt_invocation *invocation,
                              uint32_t index, int64_t cap, struct error *err)
{
    const struct rt_io *io = rt_method_input(rt_invocation_method(invocation), index);
    struct shape shape = io->shape;
    size_t bytes;
    void *ptr;
    for (uint8_t d = 0; d < shape.rank; d++) {
        if (rt_io_is_dynamic(io, d)) {
            shape.dims[d] = choose_dim(caller, shape.dims[d], cap);
        }
    }
    TRY(rt_invocation_input(invocation, index, io->dtype, &shape, &ptr, err));
    TRY(shape_bytes(&shape, io->dtype, &bytes, err));
    fill(caller, ptr, io->dtype, bytes);
    return ST_OK;
}

static enum status prepare(struct caller *caller, struct rt_invocation *invocation, int64_t cap,
                           struct error *err)
{
    struct rt_method *method = rt_invocation_method(invocation);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_method_input(method, i)->kind == RT_IO_TENSOR) {
            TRY(give_input(caller, invocation, i, cap, err));
        }
    }
    return rt_invocation_prepare(invocation, RT_PREPARE_ALL, err);
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    struct wait *wait = arg;
    (void)invocation;
    pthread_mutex_lock(&wait->mutex);
    wait->is_done = true;
    wait->status = status;
    pthread_cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->mutex);
}

/* The condition has a clock that steps of the system's time do not change. */
static void wait_init(struct wait *wait)
{
    pthread_condattr_t attr;
    must(pthread_condattr_init(&attr) == 0);
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    must(pthread_cond_init(&wait->changed, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

/* |ms| from now, on the clock of wait_init(). */
static struct timespec time_in(int64_t ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_nsec + ms % 1000 * 1000000;
    return (struct timespec){now.tv_sec + ms / 1000 + ns / 1000000000, ns % 1000000000};
}

/* The call that this thread computes, which the timer may cancel. */
static struct rt_invocation *volatile running;
static volatile sig_atomic_t was_cut;

static void on_alarm(int number)
{
    (void)number;
    if (running) {
        was_cut = 1;
        rt_invocation_cancel(running);
    }
}

static void set_alarm(struct rt_invocation *invocation, int ms)
{
    const struct itimerval in = {.it_value = {.tv_usec = ms * 1000}};
    running = invocation;
    setitimer(ITIMER_REAL, &in, NULL);
}

/* Waits for the end of a call; cancels it if it takes too long. */
static void wait_for(struct wait *wait, struct rt_invocation *invocation,
                     struct call_counts *counts)
{
    struct timespec until = time_in(CALL_MS), end = time_in(CALL_MS + CALL_END_MS);
    int waited = 0, ended = 0;
    pthread_mutex_lock(&wait->mutex);
    while (!wait->is_done && waited == 0) {
        waited = pthread_cond_timedwait(&wait->changed, &wait->mutex, &until);
    }
    if (!wait->is_done) {
        rt_invocation_cancel(invocation);
        was_cut = 1;
    }
    while (!wait->is_done && ended == 0) {
        ended = pthread_cond_timedwait(&wait->changed, &wait->mutex, &end);
    }
    counts->late += !wait->is_done;
    while (!wait->is_done) {
        pthread_cond_wait(&wait->changed, &wait->mutex);
    }
    pthread_mutex_unlock(&wait->mutex);
}

/* ST_CANCELLED: the call took too long. Usually this thread computes the call, which avoids handing
 * it to a worker. A call of several steps goes to a worker in any case. */
static enum status run(struct caller *caller, struct rt_invocation *invocation,
                       struct call_counts *counts)
{
    struct wait wait = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    wait_init(&wait);
    bool by_workers = fuzz_below(&caller->seed, 8) == 0;
    was_cut = 0;
    set_alarm(invocation, by_workers ? 0 : CALL_MS);
    rt_invocation_submit(invocation, by_workers ? HAL_CALLER_BUSY : HAL_CALLER_QUICK, on_done,
                         &wait);
    set_alarm(NULL, 0);
    wait_for(&wait, invocation, counts);
    pthread_cond_destroy(&wait.changed);
    counts->cancelled += was_cut != 0;
    return wait.status;
}

static bool is_nan(const uint8_t *bytes, enum dtype dtype)
{
    uint64_t bits = 0;
    memcpy(&bits, bytes, dtype_bytes(dtype) < 8 ? dtype_bytes(dtype) : 8);
    return dtype == DT_F32    ? (bits & INT32_MAX) > 0x7f800000
           : dtype == DT_F64  ? (bits & INT64_MAX) > 0x7ff0000000000000
           : dtype == DT_F16  ? (bits & INT16_MAX) > 0x7c00
           : dtype == DT_BF16 ? (bits & INT16_MAX) > 0x7f80
                              : false;
}

/* FNV-1a. */
static void note_bytes(struct caller *caller, struct span bytes, enum dtype dtype)
{
    size_t size = dtype_bytes(dtype);
    for (size_t i = 0; i < bytes.len; i++) {
        size_t begin = i / size * size; /* a text is no tensor: its bytes are no elements */
        bool is_like_all = begin + size <= bytes.len && is_nan(bytes.ptr + begin, dtype);
        caller->digest = (caller->digest ^ (is_like_all ? 0xff : bytes.ptr[i])) * 0x100000001b3;
    }
}

/* Reads every byte of every result, as many as shape and type require, so that AddressSanitizer
 * checks them. */
static void read_results(struct caller *caller, struct rt_invocation *invocation)
{
    struct rt_method *method = rt_invocation_method(invocation);
    struct error err;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_result *result = rt_invocation_result(invocation, i);
        const struct rt_io *io = rt_method_result(method, i);
        size_t bytes;
        note_bytes(caller, result->bytes, io->dtype);
        must(io->kind != RT_IO_TENSOR ||
             (shape_bytes(&result->shape, io->dtype, &bytes, &err) == ST_OK &&
              bytes == result->bytes.len));
    }
}

/* ST_INVALID: a kernel found invalid data, for example an index. The others: the needs of a step
 * may be known only when the call reaches it. */
static bool is_refusal(enum status status)
{
    return status == ST_INVALID || status == ST_EXHAUSTED || status == ST_TOO_LARGE ||
           status == ST_UNSUPPORTED;
}

static void note_result(struct caller *caller, struct rt_method *method)
{
    if (caller->on_result) {
        caller->on_result(caller->arg, method);
    }
}

static bool varies(struct rt_method *method)
{
    uint32_t dims = 0;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        dims |= rt_method_input(method, i)->dynamic_dims;
    }
    return dims != 0;
}

/* The calls continue |state|, unless it is NULL. */
static void call_method(struct caller *caller, struct rt_method *method, struct rt_state *state,
                        struct call_counts *counts, struct error *err)
{
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        struct rt_invocation *invocation;
        if (rt_invocation_new(method, caller->pool, &invocation, err) != ST_OK) {
            return;
        }
        if (state) {
            rt_invocation_set_state(invocation, state);
        }
        if (prepare(caller, invocation, caps[i], err) == ST_OK) {
            uint32_t cancelled = counts->cancelled;
            enum status status = run(caller, invocation, counts);
            must(status == ST_OK || is_refusal(status) ||
                 (status == ST_CANCELLED && cancelled < counts->cancelled));
            counts->runs++;
            counts->results += status == ST_OK;
            if (status == ST_OK) {
                read_results(caller, invocation);
                note_result(caller, method);
            }
        }
        rt_invocation_free(invocation);
        if (!varies(method) && (!state || i > 0)) {
            return;
        }
    }
}

/* ---- pipelines ------------------------------------------------------------------------------- */

#define STEPS 2

/* A result of the first step that fits |io|, or else an input of the pipeline. */
static struct rt_source find_source(struct rt_method *first, const struct rt_io *io,
                                    uint32_t *input_count)
{
    struct error err;
    if (io->kind != RT_IO_TENSOR) {
        return (struct rt_source){.kind = RT_SOURCE_NONE};
    }
    for (uint32_t r = 0; first && r < rt_method_result_count(first); r++) {
        if (rt_cascade_verify_edge(rt_method_result(first, r), io, &err) == ST_OK) {
            return (struct rt_source){.kind = RT_SOURCE_STEP, .index = r};
        }
    }
    return (struct rt_source){.kind = RT_SOURCE_INPUT, .index = (*input_count)++};
}

/* A pipeline of the method and the same method again, which takes as many results of the first one
 * as fit. */
static void call_twice(struct caller *caller, struct rt_method *method, struct call_counts *counts)
{
    struct rt_source sources[STEPS][RT_PIPELINE_INPUTS_MAX];
    struct rt_pipeline_step steps[STEPS];
    uint32_t count = rt_method_input_count(method), inputs = 0;
    struct rt_program *program;
    struct error err;
    for (uint32_t s = 0; s < STEPS && count <= RT_PIPELINE_INPUTS_MAX; s++) {
        for (uint32_t i = 0; i < count; i++) {
            sources[s][i] = find_source(s ? method : NULL, rt_method_input(method, i), &inputs);
        }
        steps[s] = (struct rt_pipeline_step){"step", method, sources[s], count};
    }
    const struct rt_pipeline_desc desc = {.name = "twice", .steps = steps, .step_count = STEPS};
    if (count <= RT_PIPELINE_INPUTS_MAX && rt_pipeline_new(&desc, &program, &err) == ST_OK) {
        call_method(caller, rt_program_method(program, 0), NULL, counts, &err);
        rt_program_unref(program);
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Prints the listings: they are bounded even for a hostile program. */
static void print(struct rt_program *program, struct rt_method *method)
{
    struct error err;
    struct buf text;
    buf_init(&text, LISTING_BYTES_MAX);
    rt_program_print(program, &text);
    buf_reset(&text);
    if (rt_method_print_graph(method, &text, &err) == ST_OK) {
        buf_reset(&text);
        sink ^= rt_method_print_plan(method, &text, &err) == ST_OK;
    }
    buf_fini(&text);
}

static void look_at_weight(void *arg, const struct rt_weight_info *weight)
{
    (void)arg;
    sink ^= (uint8_t)(weight->count ^ weight->shape.rank);
}

static void look_at_callee(void *arg, const struct rt_callee *callee)
{
    (void)arg;
    sink ^= (uint8_t)(callee->calls ^ callee->bytes);
}

/* Examines each method like `pte inspect` and a daemon do, including the example inputs. */
static void examine(struct rt_program *program, struct rt_method *method)
{
    struct error err;
    struct rt_weight_sum sum;
    struct rt_resident resident;
    char name[RT_DIM_NAME_MAX];
    must(rt_program_sum_weights(program, method, &sum, &err) == ST_OK);
    must(rt_method_resident(method, &resident, &err) == ST_OK);
    must(rt_method_each_callee(method, look_at_callee, NULL, &err) == ST_OK);
    rt_method_each_weight(method, look_at_weight, NULL);
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_io *io = rt_method_result(method, i);
        for (uint8_t d = 0; io->kind == RT_IO_TENSOR && d < io->shape.rank; d++) {
            sink ^= rt_method_dim_name(method, false, i, d, name) != NULL;
        }
    }
    struct shape *shapes = calloc((size_t)rt_method_input_count(method) + 1, sizeof(*shapes));
    must(shapes);
    if (!rt_method_failure(method)) {
        sink ^= rt_example_shapes(method, NULL, shapes, &err) == ST_OK;
    }
    free(shapes);
}

enum status caller_init(struct caller *caller, uint32_t workers, struct error *err)
{
    const struct hal_device_options options = {.workers = workers};
    signal(SIGALRM, on_alarm);
    *caller = (struct caller){.seed = 1, .prints = true, .pipes = true};
    TRY(hal_device_open("cpu", &options, &caller->device, err));
    return hal_pool_new(caller->device, POOL_BYTES, &caller->pool, err);
}

void caller_fini(struct caller *caller)
{
    hal_pool_free(caller->pool);
    hal_device_unref(caller->device);
}

/* Of tests/models/exported/growing: inputs 2 to 5 and results 1 to 4. */
enum { CACHES = 4, CACHED_INPUTS = 6, CACHED_RESULTS = 5 };

/* Loads and calls a program whose default method hands |carries| on; NULL: none. */
static enum status call_with(struct caller *caller, const char *path,
                             const struct rt_carries *carries, struct call_counts *counts,
                             bool *out_has_caches, struct error *err)
{
    const struct rt_composition composition = {"token_embedding", "text_decoder", "forward"};
    const struct rt_load_options options = {
        .device = caller->device,
        .composition = &composition,
        .carries = carries,
        .precision = caller->precision,
        .statements_max = STEPS_MAX,
        .poison_workspaces = true,
    };
    struct rt_program *program;
    struct rt_state *state = NULL;
    *out_has_caches = false;
    TRY(rt_load_program(path, &options, &program, err));
    size_t state_bytes = rt_program_state_bytes(program);
    if (state_bytes > 0 && state_bytes <= STATE_BYTES_MAX &&
        rt_state_new(program, &state, err) != ST_OK) {
        state = NULL;
    }
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        if (caller->prints) {
            print(program, method);
            examine(program, method);
        }
        counts->methods++;
        *out_has_caches |= rt_method_input_count(method) == CACHED_INPUTS &&
                           rt_method_result_count(method) == CACHED_RESULTS;
        if (rt_method_failure(method)) {
            *err = *rt_method_failure(method);
        } else {
            call_method(caller, method, NULL, counts, err);
            if (state) {
                call_method(caller, method, state, counts, err);
            }
            if (caller->pipes) {
                call_twice(caller, method, counts);
            }
        }
    }
    rt_state_unref(state);
    rt_program_unref(program);
    return ST_OK;
}

enum status call_program(struct caller *caller, const char *path, struct call_counts *out_counts,
                         struct error *err)
{
    static const struct rt_carry items[CACHES] = {{2, 1}, {3, 2}, {4, 3}, {5, 4}};
    static const struct rt_carries carries = {
        .items = items, .count = CACHES, .result_count = CACHED_RESULTS};
    struct call_counts counts = {0};
    bool has_caches;
    TRY(call_with(caller, path, NULL, &counts, &has_caches, err));
    if (has_caches) {
        struct error refused;
        (void)call_with(caller, path, &carries, &counts, &has_caches, &refused);
    }
    *out_counts = counts;
    return ST_OK;
}
