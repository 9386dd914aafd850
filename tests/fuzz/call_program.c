/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/fuzz/call_program.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/invocation.h"
#include "runtime/program.h"
#include "runtime/state.h"

/* A damaged jump makes an endless loop: enough steps for any loop that was meant. */
#define STEPS_MAX 100000
#define POOL_BYTES ((size_t)64 << 20)
#define LISTING_BYTES_MAX (16u << 20)
#define STATE_BYTES_MAX ((size_t)64 << 20)

/* Dynamic dims are tried at their bound, and capped at these. */
static const int64_t caps[] = {INT64_MAX, 3, 1, 0};

struct wait {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    enum status status;
};

static volatile uint8_t sink; /* keeps the reads */

enum status caller_init(struct caller *caller, struct error *err)
{
    static const struct hal_device_options options = {.workers = 2};
    TRY(hal_device_open("cpu", &options, &caller->device, err));
    return hal_pool_new(caller->device, POOL_BYTES, &caller->pool, err);
}

void caller_fini(struct caller *caller)
{
    hal_pool_free(caller->pool);
    hal_device_unref(caller->device);
}

/* Small numbers of both signs, whatever the element type makes of them. */
static void fill(uint8_t *bytes, enum dtype dtype, size_t len)
{
    size_t size = dtype_bytes(dtype);
    for (size_t i = 0; i * size < len; i++) {
        int64_t number = (int64_t)(i % 7) - 3;
        double f64 = (double)number / 2;
        float f32 = (float)f64;
        const void *from = dtype == DT_F32 ? (const void *)&f32 : &number;
        from = dtype == DT_F64 ? &f64 : from;
        memcpy(bytes + i * size, from, size);
    }
}

static enum status give_input(struct rt_invocation *invocation, uint32_t index, int64_t cap,
                              struct error *err)
{
    const struct rt_io *io = rt_method_input(rt_invocation_method(invocation), index);
    struct shape shape = io->shape;
    size_t bytes;
    void *ptr;
    for (uint8_t d = 0; d < shape.rank; d++) {
        bool is_dynamic = io->dynamic_dims >> d & 1;
        shape.dims[d] = is_dynamic && shape.dims[d] > cap ? cap : shape.dims[d];
    }
    TRY(rt_invocation_input(invocation, index, io->dtype, &shape, &ptr, err));
    TRY(shape_bytes(&shape, io->dtype, &bytes, err));
    fill(ptr, io->dtype, bytes);
    return ST_OK;
}

static enum status prepare(struct rt_invocation *invocation, int64_t cap, struct error *err)
{
    struct rt_method *method = rt_invocation_method(invocation);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_method_input(method, i)->kind == RT_IO_TENSOR) {
            TRY(give_input(invocation, i, cap, err));
        }
    }
    return rt_invocation_prepare(invocation, err);
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

static enum status run(struct rt_invocation *invocation)
{
    struct wait wait = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct timespec until;
    int waited = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CALL_TIMEOUT_S;
    rt_invocation_submit(invocation, HAL_CALLER_BUSY, on_done, &wait);
    pthread_mutex_lock(&wait.mutex);
    while (!wait.is_done) {
        if (waited == 0) {
            waited = pthread_cond_timedwait(&wait.changed, &wait.mutex, &until);
        } else {
            rt_invocation_cancel(invocation);
            pthread_cond_wait(&wait.changed, &wait.mutex);
        }
    }
    pthread_mutex_unlock(&wait.mutex);
    return waited == 0 ? wait.status : ST_TIMEOUT;
}

/* Every byte of every result, for AddressSanitizer: as many as shape and type say. */
static void read_results(struct rt_invocation *invocation)
{
    struct rt_method *method = rt_invocation_method(invocation);
    struct error err;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_result *result = rt_invocation_result(invocation, i);
        const struct rt_io *io = rt_method_result(method, i);
        size_t bytes;
        for (size_t j = 0; j < result->bytes.len; j++) {
            sink ^= result->bytes.ptr[j];
        }
        must(io->kind != RT_IO_TENSOR ||
             (shape_bytes(&result->shape, io->dtype, &bytes, &err) == ST_OK &&
              bytes == result->bytes.len));
    }
}

/*
 * Invalid: a kernel found the data wrong, an index for one. The others: what a step needs is known
 * only when the call comes to it.
 */
static bool is_refusal(enum status status)
{
    return status == ST_INVALID || status == ST_EXHAUSTED || status == ST_TOO_LARGE ||
           status == ST_UNSUPPORTED;
}

/* The calls go on in |state|, unless that is NULL. */
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
        if (prepare(invocation, caps[i], err) == ST_OK) {
            enum status status = run(invocation);
            must(status == ST_OK || status == ST_TIMEOUT || is_refusal(status));
            counts->timeouts += status == ST_TIMEOUT;
            counts->runs++;
            if (status == ST_OK) {
                read_results(invocation);
            }
        }
        rt_invocation_free(invocation);
    }
}

/* The listings of a hostile program are bounded like everything else of it. */
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

enum status call_program(struct caller *caller, const char *path, struct call_counts *out_counts,
                         struct error *err)
{
    const struct rt_program_options options = {
        .device = caller->device,
        .steps_max = STEPS_MAX,
        .poison_arenas = true,
    };
    struct rt_program *program;
    struct rt_state *state = NULL;
    struct call_counts counts = {0};
    TRY(rt_program_load(path, &options, &program, err));
    size_t state_bytes = rt_program_state_bytes(program);
    if (state_bytes > 0 && state_bytes <= STATE_BYTES_MAX &&
        rt_state_new(program, &state, err) != ST_OK) {
        state = NULL;
    }
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        print(program, method);
        counts.methods++;
        if (rt_method_failure(method)) {
            *err = *rt_method_failure(method);
        } else {
            call_method(caller, method, NULL, &counts, err);
            if (state) {
                call_method(caller, method, state, &counts, err);
            }
        }
    }
    rt_state_unref(state);
    rt_program_unref(program);
    *out_counts = counts;
    return ST_OK;
}
