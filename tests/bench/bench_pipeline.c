/* SPDX-License-Identifier: MIT */
/*
 * A pipeline compared with its steps: a call of it, including everything that prepares the call,
 * divided by the sum of the steps' computing times. The first result of a step is the first input
 * of the next; the other inputs are the pipeline's. Pipeline and steps take turns, and the fastest
 * run of each counts. Inputs that the device had to convert are copies between steps: there must be
 * none.
 *
 * usage: bench_pipeline [--shape 1x120x90x3] [--workers N] FILE.pte...; the shape of the first
 * input, by default its largest. Prints lines "name: value".
 */
#include "config.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"

#define STEPS_MAX 16
#define INPUTS_MAX 8 /* of a step */
#define RING_BYTES ((size_t)1 << 30)
#define SECONDS 2.0

struct step {
    const char *path;
    struct rt_program *program;
    struct rt_method *method;
    struct rt_source sources[INPUTS_MAX];
    struct shape shape; /* of input 0 */
    struct span data;   /* of input 0; NULL: any numbers */
    uint8_t *kept;      /* owned: memory of |data| */
    double best_us;
};

static struct hal_device *device;
static struct hal_pool *pool;
static struct step steps[STEPS_MAX];
static uint32_t step_count;

static void must_work(enum status status, const struct error *err)
{
    if (status != ST_OK) {
        fprintf(stderr, "bench_pipeline: %s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    must(status == ST_OK);
    must(sem_post(arg) == 0);
}

/* Input 0 gets |shape| and |data|; the other inputs are zeros of the largest shape. */
static void give(struct rt_invocation *inv, const struct shape *shape, struct span data)
{
    struct rt_method *method = rt_invocation_method(inv);
    struct error err;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind == RT_IO_TENSOR) {
            const struct shape *given = i == 0 ? shape : &io->shape;
            size_t bytes;
            void *ptr;
            must_work(shape_bytes(given, io->dtype, &bytes, &err), &err);
            must_work(rt_invocation_input(inv, i, io->dtype, given, &ptr, &err), &err);
            if (i == 0 && data.ptr) {
                must(data.len == bytes);
                memcpy(ptr, data.ptr, bytes);
            } else {
                memset(ptr, 0, bytes);
            }
        }
    }
}

/* us of a call; |is_whole|: including prepare. |next|, if not NULL, keeps the first result. */
static double call(struct rt_method *method, const struct step *first, bool is_whole,
                   struct step *next)
{
    struct rt_invocation *inv;
    struct error err;
    sem_t done;
    must(sem_init(&done, 0, 0) == 0);
    must_work(rt_invocation_new(method, pool, &inv, &err), &err);
    give(inv, &first->shape, first->data);
    double begin = now_us();
    must_work(rt_invocation_prepare(inv, RT_PREPARE_ALL, &err), &err);
    double prepared = now_us();
    rt_invocation_submit(inv, HAL_CALLER_BUSY, on_done, &done);
    while (sem_wait(&done) != 0) {
    }
    double spent = now_us() - (is_whole ? begin : prepared);
    if (next && !next->data.ptr) {
        const struct rt_result *result = rt_invocation_result(inv, 0);
        next->kept = malloc(result->bytes.len);
        must(next->kept);
        memcpy(next->kept, result->bytes.ptr, result->bytes.len);
        next->data = span_of(next->kept, result->bytes.len);
        next->shape = result->shape;
    }
    rt_invocation_free(inv);
    sem_destroy(&done);
    return spent;
}

static void load(const char *path)
{
    const struct rt_load_options options = {.device = device};
    struct error err;
    must(step_count < STEPS_MAX);
    struct step *step = &steps[step_count++];
    *step = (struct step){.path = path, .best_us = 1e18};
    must_work(rt_load_program(path, &options, &step->program, &err), &err);
    step->method = rt_program_default_method(step->program);
    must(step->method && rt_method_input_count(step->method) <= INPUTS_MAX);
    if (rt_method_failure(step->method)) {
        must_work(ST_UNSUPPORTED, rt_method_failure(step->method));
    }
}

static struct rt_program *chain(void)
{
    struct rt_pipeline_step described[STEPS_MAX];
    uint32_t input = 0;
    for (uint32_t i = 0; i < step_count; i++) {
        uint32_t count = rt_method_input_count(steps[i].method);
        for (uint32_t k = 0; k < count; k++) {
            bool is_tensor = rt_method_input(steps[i].method, k)->kind == RT_IO_TENSOR;
            steps[i].sources[k] = i > 0 && k == 0 ? (struct rt_source){RT_SOURCE_STEP, i - 1, 0}
                                  : is_tensor     ? (struct rt_source){RT_SOURCE_INPUT, 0, input++}
                                                  : (struct rt_source){.kind = RT_SOURCE_NONE};
        }
        described[i] =
            (struct rt_pipeline_step){steps[i].path, steps[i].method, steps[i].sources, count};
    }
    const struct rt_pipeline_desc desc = {
        .name = "chain", .steps = described, .step_count = step_count};
    struct rt_program *program;
    struct error err;
    must_work(rt_pipeline_new(&desc, &program, &err), &err);
    return program;
}

static uint64_t converted(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < step_count; i++) {
        sum += rt_method_input_stats(steps[i].method).converted;
    }
    return sum;
}

static void measure(struct rt_method *whole)
{
    double best_us = 1e18, sum_us = 0, end = now_us() + SECONDS * 1e6;
    uint64_t copies = 0, calls = 0;
    while (now_us() < end || calls < 3) {
        for (uint32_t i = 0; i < step_count; i++) {
            struct step *next = i + 1 < step_count ? &steps[i + 1] : NULL;
            double us = call(steps[i].method, &steps[i], false, next);
            steps[i].best_us = us < steps[i].best_us ? us : steps[i].best_us;
        }
        uint64_t before = converted();
        double us = call(whole, &steps[0], true, NULL);
        copies += converted() - before;
        best_us = us < best_us ? us : best_us;
        calls++;
    }
    for (uint32_t i = 0; i < step_count; i++) {
        sum_us += steps[i].best_us;
    }
    printf("pipeline_us: %.1f of %u steps that take %.1f, ratio %.3f, %+.1f us\n", best_us,
           step_count, sum_us, best_us / sum_us, best_us - sum_us);
    printf("pipeline_copies: %llu of %llu calls\n", (unsigned long long)copies,
           (unsigned long long)calls);
}

static struct shape parse_shape(const char *text)
{
    struct shape shape = {0};
    char *end;
    for (;; text = end + 1) {
        must(shape.rank < SHAPE_RANK_MAX);
        shape.dims[shape.rank++] = strtoll(text, &end, 10);
        if (*end != 'x') {
            return shape;
        }
    }
}

int main(int argc, char *argv[])
{
    struct hal_device_options options = {0};
    struct shape shape = {0};
    struct error err;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--shape") == 0) {
            shape = parse_shape(argv[i + 1]);
        } else if (strcmp(argv[i], "--workers") == 0) {
            options.workers = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        }
    }
    must_work(hal_device_open("cpu", &options, &device, &err), &err);
    must_work(hal_pool_new(device, RING_BYTES, &pool, &err), &err);
    for (; i < argc; i++) {
        load(argv[i]);
    }
    if (step_count == 0) {
        fputs("usage: bench_pipeline [--shape AxB] [--workers N] FILE.pte...\n", stderr);
        return 64;
    }
    steps[0].shape = shape.rank ? shape : rt_method_input(steps[0].method, 0)->shape;
    struct rt_program *whole = chain();
    measure(rt_program_default_method(whole));
    rt_program_unref(whole);
    for (uint32_t k = 0; k < step_count; k++) {
        rt_program_unref(steps[k].program);
        free(steps[k].kept);
    }
    hal_pool_free(pool);
    hal_device_unref(device);
    return 0;
}
