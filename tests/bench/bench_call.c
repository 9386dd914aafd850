/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/bench/bench_call.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/pool.h"
#include "runtime/call/profile.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"

#define RING_BYTES ((size_t)1 << 30)

enum status bench_model_open(const char *path, struct hal_device *device,
                             struct bench_model *out_model, struct error *err)
{
    const struct rt_load_options options = {.device = device};
    const char *slash = strrchr(path, '/');
    *out_model = (struct bench_model){.name = slash ? slash + 1 : path};
    TRY(rt_load_program(path, &options, &out_model->program, err));
    out_model->method = rt_program_default_method(out_model->program);
    const struct error *failure = out_model->method ? rt_method_failure(out_model->method) : NULL;
    enum status status = !out_model->method ? error_set(err, ST_NOT_FOUND, "no default method")
                         : failure          ? error_set(err, ST_UNSUPPORTED, "%s", failure->text)
                                   : hal_pool_new(device, RING_BYTES, &out_model->pool, err);
    if (status != ST_OK) {
        rt_program_unref(out_model->program);
    }
    return status;
}

void bench_model_close(struct bench_model *model)
{
    hal_pool_free(model->pool);
    rt_program_unref(model->program);
}

static enum status give_tensor(struct rt_invocation *invocation, uint32_t index,
                               const struct rt_io *io, const struct bench_call *call,
                               struct error *err)
{
    struct shape shape = io->shape;
    size_t bytes;
    void *ptr;
    for (uint8_t d = 0; d < shape.rank; d++) {
        bool varies = rt_io_is_dynamic(io, d);
        shape.dims[d] = varies && call->dim < shape.dims[d] ? call->dim : shape.dims[d];
    }
    TRY(shape_bytes(&shape, io->dtype, &bytes, err));
    TRY(rt_invocation_input(invocation, index, io->dtype, &shape, &ptr, err));
    memset(ptr, 0, bytes);
    if (io->dtype == DT_I64 && bytes == sizeof(call->number) && !io->dynamic_dims) {
        memcpy(ptr, &call->number, sizeof(call->number));
    }
    return ST_OK;
}

/* Scalars that the exporter fixed may be missing. */
static enum status give_inputs(struct rt_invocation *invocation, const struct rt_method *method,
                               const struct bench_call *call, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind == RT_IO_TENSOR) {
            TRY(give_tensor(invocation, i, io, call, err));
        } else if (io->kind == RT_IO_INT && !io->is_fixed) {
            TRY(rt_invocation_int(invocation, i, call->number, err));
        }
    }
    return ST_OK;
}

enum status bench_call_new(const struct bench_model *model, const struct bench_call *call,
                           struct rt_invocation **out_invocation, struct error *err)
{
    struct rt_invocation *invocation;
    TRY(rt_invocation_new(model->method, model->pool, &invocation, err));
    if (call->state) {
        rt_invocation_set_state(invocation, call->state);
    }
    enum status status = give_inputs(invocation, model->method, call, err);
    if (status != ST_OK) {
        rt_invocation_free(invocation);
        return status;
    }
    *out_invocation = invocation;
    return ST_OK;
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    if (status != ST_OK) {
        fprintf(stderr, "a call failed: %s\n", rt_invocation_error(invocation)->text);
        exit(EXIT_FAILURE);
    }
    must(sem_post(arg) == 0);
}

enum status bench_call_run(const struct bench_model *model, const struct bench_call *call,
                           struct error *err)
{
    struct rt_invocation *invocation;
    TRY(bench_call_new(model, call, &invocation, err));
    enum status status = rt_invocation_prepare(invocation, RT_PREPARE_ALL, err);
    if (status == ST_OK) {
        sem_t done;
        if (call->profile) {
            rt_invocation_profile(invocation, call->profile);
        }
        must(sem_init(&done, 0, 0) == 0);
        rt_invocation_submit(invocation, call->caller, on_done, &done);
        while (sem_wait(&done) != 0) {
        }
        sem_destroy(&done);
    }
    rt_invocation_free(invocation);
    return status;
}
