/* SPDX-License-Identifier: MIT */
/*
 * The runtime when memory runs out: loading a file, a call (its plan included), a call with a
 * state, a pipeline and a batch. The first allocation fails, then the second, and so on until the
 * work succeeds; once alone, and once with all that follow it. Each time the error says that memory
 * ran out, the pool is empty afterwards, and the same work succeeds when there is memory again.
 * LeakSanitizer finds what leaks. The linker sends the allocating functions here.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/batch.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/carries.h"
#include "runtime/program/composition.h"
#include "runtime/program/example.h"
#include "runtime/program/state.h"
#include "runtime/program/state_cells.h"
#include "tests/unit/call_support.h"

#define ALLOCATIONS_MAX 100000
#define INPUTS_MAX 8
#define PARTS 3 /* calls of a batch */

/* ---- allocations ----------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);

/* Workers allocate too. */
static atomic_bool is_armed, is_lasting; /* lasting: all fail from the chosen one on */
static atomic_long taken, failing;       /* since armed; the number of the one that fails */

static bool may_allocate(void)
{
    if (!atomic_load(&is_armed)) {
        return true;
    }
    long number = atomic_fetch_add(&taken, 1), chosen = atomic_load(&failing);
    return atomic_load(&is_lasting) ? number < chosen : number != chosen;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return may_allocate() ? __real_realloc(ptr, size) : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return may_allocate() ? __real_aligned_alloc(align, size) : NULL;
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
    return may_allocate() ? __real_posix_memalign(out, align, size) : ENOMEM;
}

static void arm(long number)
{
    atomic_store(&taken, 0);
    atomic_store(&failing, number);
    atomic_store(&is_armed, true);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct world {
    struct hal_device *device;
    struct hal_pool *pool;
    struct rt_program *program;
    struct shape shapes[INPUTS_MAX];
    bool has_state;
    const struct rt_carries *carries; /* NULL: none */
};

static enum status give_inputs(const struct world *w, struct rt_invocation *call, struct error *err)
{
    struct rt_method *method = rt_invocation_method(call);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind != RT_IO_TENSOR) {
            continue;
        }
        void *ptr;
        size_t bytes;
        TRY(shape_bytes(&w->shapes[i], io->dtype, &bytes, err));
        TRY(rt_invocation_input(call, i, io->dtype, &w->shapes[i], &ptr, err));
        if (bytes) {
            memset(ptr, 0, bytes);
        }
    }
    return ST_OK;
}

static enum status run_call(struct rt_invocation *call, struct error *err)
{
    TRY(rt_invocation_prepare(call, RT_PREPARE_ALL, err));
    enum status status = submit_and_wait(call, false);
    if (status != ST_OK) {
        *err = *rt_invocation_error(call);
    }
    return status;
}

static enum status call_method(const struct world *w, struct rt_method *method,
                               struct rt_state *state, struct error *err)
{
    struct rt_invocation *call;
    TRY(rt_invocation_new(method, w->pool, &call, err));
    if (state) {
        rt_invocation_set_state(call, state);
    }
    enum status status = give_inputs(w, call, err);
    if (status == ST_OK) {
        status = run_call(call, err);
    }
    rt_invocation_free(call);
    return status;
}

static enum status do_call(const struct world *w, struct error *err)
{
    struct rt_state *state = NULL;
    if (w->has_state) {
        TRY(rt_state_new(w->program, &state, err));
    }
    enum status status = call_method(w, rt_program_default_method(w->program), state, err);
    rt_state_unref(state);
    return status;
}

/* The bytes of all buffers of |state|, at most |max|. */
static size_t copy_content(const struct rt_state *state, uint8_t *copy, size_t max)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < state->cells->count; i++) {
        size_t size = hal_buffer_size(state->current[i]);
        must(size <= max - bytes);
        memcpy(copy + bytes, hal_buffer_map(state->current[i]), size);
        bytes += size;
    }
    return bytes;
}

/* The second call overwrites rows that the first one has written: if it fails, they are there. */
static enum status do_overwriting(const struct world *w, struct error *err)
{
    static uint8_t before[4096], after[4096];
    struct rt_method *method = rt_program_default_method(w->program);
    struct rt_state *state;
    TRY(rt_state_new(w->program, &state, err));
    enum status status = call_method(w, method, state, err);
    if (status == ST_OK) {
        size_t bytes = copy_content(state, before, sizeof(before));
        status = call_method(w, method, state, err);
        must(copy_content(state, after, sizeof(after)) == bytes);
        must(status == ST_OK || memcmp(before, after, bytes) == 0);
    }
    rt_state_unref(state);
    return status;
}

/* A state gets the rows of "notebook" that another one has, whether as pages or as a copy. */
static enum status do_sharing(const struct world *w, struct error *err)
{
    enum { ROWS = 160, BYTES = ROWS * 32 * 4 };
    struct rt_method *method = rt_program_default_method(w->program);
    struct rt_state *from, *state = NULL;
    TRY(rt_state_new(w->program, &from, err));
    enum status status = call_method(w, method, from, err);
    if (status == ST_OK) {
        from->touched[0].end = ROWS; /* as if a call had written them */
        memset(hal_buffer_map(from->current[0]), 1, BYTES);
        status = rt_state_new(w->program, &state, err);
    }
    if (status == ST_OK) {
        rt_state_share(state, from, RT_STATE_ALL_ROWS);
        const void *a = hal_buffer_map(from->current[0]), *b = hal_buffer_map(state->current[0]);
        must(memcmp(a, b, BYTES) == 0);
        status = call_method(w, method, state, err);
    }
    rt_state_unref(from);
    rt_state_unref(state);
    return status;
}

/* Twice the method "add" of two tensors: (a + b) + b. */
static enum status do_pipeline(const struct world *w, struct error *err)
{
    static const struct rt_source first[] = {IN(0), IN(1)}, second[] = {FROM(0, 0), IN(1)};
    struct rt_method *add = rt_program_default_method(w->program);
    const struct rt_pipeline_step steps[] = {{"a", add, first, 2}, {"b", add, second, 2}};
    const struct rt_pipeline_desc desc = {.name = "two", .steps = steps, .step_count = 2};
    struct rt_program *pipeline;
    TRY(rt_pipeline_new(&desc, &pipeline, err));
    enum status status = call_method(w, rt_program_default_method(pipeline), NULL, err);
    rt_program_unref(pipeline);
    return status;
}

static enum status plan_part(const struct world *w, struct rt_invocation **out_call,
                             struct error *err)
{
    TRY(rt_invocation_new(rt_program_default_method(w->program), w->pool, out_call, err));
    TRY(give_inputs(w, *out_call, err));
    return rt_invocation_plan(*out_call, RT_PREPARE_ALL, err);
}

static enum status submit_parts(struct rt_invocation *const *calls, struct error *err)
{
    struct done done[PARTS] = {DONE_INIT, DONE_INIT, DONE_INIT};
    void *args[PARTS] = {&done[0], &done[1], &done[2]};
    TRY(rt_batch_submit(calls, args, PARTS, on_done, err));
    enum status first = ST_OK;
    for (int i = 0; i < PARTS; i++) {
        enum status status = await_done(&done[i]);
        if (status != ST_OK && first == ST_OK) {
            first = status;
            *err = *rt_invocation_error(calls[i]);
        }
    }
    return first;
}

static enum status do_batch(const struct world *w, struct error *err)
{
    struct rt_invocation *calls[PARTS] = {NULL};
    int64_t rows;
    TRY(rt_batch_open(rt_program_default_method(w->program), &rows, err));
    enum status status = ST_OK;
    for (int i = 0; i < PARTS && status == ST_OK; i++) {
        status = plan_part(w, &calls[i], err);
    }
    if (status == ST_OK) {
        status = submit_parts(calls, err);
    }
    for (int i = 0; i < PARTS; i++) {
        rt_invocation_free(calls[i]);
    }
    return status;
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

/* Every method compiles: lack of memory is the program's error and never kept as a method's. */
static enum status load(struct world *w, const char *path, struct error *err)
{
    const struct rt_composition composition = {"token_embedding", "text_decoder", "forward"};
    const struct rt_load_options options = {
        .device = w->device, .composition = &composition, .carries = w->carries};
    TRY(rt_load_program(path, &options, &w->program, err));
    for (uint32_t i = 0; i < rt_program_method_count(w->program); i++) {
        const struct error *failure = rt_method_failure(rt_program_method(w->program, i));
        if (failure) {
            fprintf(stderr, "%s, allocation %ld fails: a method is kept with \"%s\"\n", path,
                    atomic_load(&failing), failure->text);
            abort();
        }
    }
    return ST_OK;
}

static void check_refusal(const char *what, long number, enum status status,
                          const struct error *err)
{
    if (status != ST_EXHAUSTED || !strstr(err->text, "memory")) {
        fprintf(stderr, "%s, allocation %ld fails%s: status %d, \"%s\"\n", what, number,
                atomic_load(&is_lasting) ? " and all later ones" : "", (int)status, err->text);
        abort();
    }
    must(number < ALLOCATIONS_MAX);
}

/* True once no allocation has failed. */
static bool was_enough(void)
{
    atomic_store(&is_armed, false);
    return atomic_load(&taken) <= atomic_load(&failing);
}

static long sweep_load(struct world *w, const char *path)
{
    for (long number = 0;; number++) {
        struct error err = {0};
        arm(number);
        enum status status = load(w, path, &err);
        bool is_enough = was_enough();
        if (is_enough) {
            must(status == ST_OK);
            rt_program_unref(w->program);
            return number;
        }
        check_refusal(path, number, status, &err); /* nothing may be left out silently */
    }
}

typedef enum status work_f(const struct world *w, struct error *err);

/* Work may do without what it cannot get: a success is fine. */
static long sweep(struct world *w, const char *path, work_f *work)
{
    for (long number = 0;; number++) {
        struct error err = {0};
        must(load(w, path, &err) == ST_OK);
        must(rt_example_shapes(rt_program_default_method(w->program), NULL, w->shapes, &err) ==
             ST_OK);
        arm(number);
        enum status status = work(w, &err);
        bool is_enough = was_enough();
        if (status != ST_OK) {
            check_refusal(path, number, status, &err);
            must(reserved_count(w->pool) == 0);
            must(work(w, &err) == ST_OK);
        }
        rt_program_unref(w->program);
        if (is_enough) {
            must(status == ST_OK);
            return number;
        }
    }
}

/* Of exported/growing/decode: as its folder says, and such ones that the plan has to be rewritten
 * after all. */
static const struct rt_carry grown[] = {{2, 1}, {3, 2}, {4, 3}, {5, 4}};
static const struct rt_carry turned[] = {{2, 2}, {3, 1}, {4, 3}, {5, 4}};
static const struct rt_carries growing = {.items = grown, .count = 4, .result_count = 5};
static const struct rt_carries crossed = {.items = turned, .count = 4, .result_count = 5};

static const struct {
    const char *name, *model;
    work_f *work; /* NULL: loading */
    bool has_state;
    const struct rt_carries *carries;
} cases[] = {
    {"load", "add", NULL, false, NULL},
    {"load of convolutions", "digits", NULL, false, NULL},
    {"load of several methods", "methods", NULL, false, NULL},
    {"load of a quantised model", "mobile", NULL, false, NULL},
    {"load of branches", "branches", NULL, false, NULL},
    {"load of names", "keywords", NULL, false, NULL},
    {"load for XNNPACK", "xnn_attention", NULL, false, NULL},
    {"load for Vulkan", "vk_images", NULL, false, NULL},
    {"load of two methods as one", "prefill/parts", NULL, false, NULL},
    {"load of caches that grow", "exported/growing/decode", NULL, false, &growing},
    {"load of caches that cross", "exported/growing/decode", NULL, false, &crossed},
    {"call", "mlp", do_call, false, NULL},
    {"call of convolutions", "digits", do_call, false, NULL},
    {"call that branches", "branches", do_call, false, NULL},
    {"call with a state", "running", do_call, true, NULL},
    {"call that overwrites rows", "scroll", do_overwriting, true, NULL},
    {"sharing of a state", "notebook", do_sharing, true, NULL},
    {"pipeline", "add", do_pipeline, false, NULL},
    {"batch", "digits", do_batch, false, NULL},
};

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir");
    struct world w = {0};
    open_two_workers(&w.device, &w.pool);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char path[1024];
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", cases[i].model);
        w.has_state = cases[i].has_state;
        w.carries = cases[i].carries;
        for (int lasting = 0; lasting < 2; lasting++) {
            atomic_store(&is_lasting, lasting == 1);
            long count = cases[i].work ? sweep(&w, path, cases[i].work) : sweep_load(&w, path);
            printf("%s: %ld allocations, each failed%s\n", cases[i].name, count,
                   lasting ? " with all later ones" : " alone");
            must(count > 0);
        }
    }
    close_two_workers(w.device, w.pool);
    return 0;
}
