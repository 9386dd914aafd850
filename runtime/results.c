/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/results.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/method.h"
#include "runtime/oracle.h"
#include "runtime/plan/alloc.h"

static enum status check_inputs(const struct rt_method *method, const struct shape *const *inputs,
                                struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct rt_buffer_desc given, wanted;
        size_t bytes;
        if (io->kind != RT_IO_TENSOR) {
            continue;
        }
        if (!inputs[i]) {
            return error_set(err, ST_INVALID, "input '%s' is missing", io->name);
        }
        given = (struct rt_buffer_desc){.dtype = io->dtype, .shape = *inputs[i]};
        if (rt_oracle(io, method->device, &given, &wanted, &bytes, err) == RT_ORACLE_UNSUPPORTED) {
            return error_prefix(err, "input '%s': ", io->name);
        }
    }
    return ST_OK;
}

static enum status evaluate(struct rt_method *method, const struct shape *const *inputs,
                            int64_t *values, struct rt_result_info *out_infos, struct error *err)
{
    const struct rt_graph *graph = &method->graph;
    TRY(rt_method_symbols(method, inputs, values, err));
    TRY(rt_dims_eval(&graph->dims, values, err));
    TRY(rt_alloc_measure(&method->flow, values, NULL, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct rt_value *v = &graph->values[graph->outputs[i]];
        struct rt_result_info *info = &out_infos[i];
        *info = (struct rt_result_info){.is_tensor = v->kind == RT_TENSOR};
        if (info->is_tensor) {
            info->shape = rt_concrete_shape(v, values);
            TRY(shape_bytes(&info->shape, v->dtype, &info->bytes, err));
        }
    }
    return ST_OK;
}

enum status rt_method_result_shapes(struct rt_method *method, const struct shape *const *inputs,
                                    struct rt_result_info *out_infos, struct error *err)
{
    must(method->failure.code == ST_OK);
    TRY(check_inputs(method, inputs, err));
    int64_t *values = calloc(method->graph.dims.expr_count, sizeof(*values));
    if (!values) {
        return error_set(err, ST_EXHAUSTED, "no memory for the sizes of a method");
    }
    enum status status = evaluate(method, inputs, values, out_infos, err);
    free(values);
    return status;
}

/* ---- the allocator --------------------------------------------------------------------------- */

static uint32_t count_bits(uint32_t bits)
{
    return (uint32_t)__builtin_popcount(bits);
}

uint32_t rt_method_dynamic_dim_count(const struct rt_method *method)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        count += count_bits(rt_method_input(method, i)->dynamic_dims);
    }
    return count;
}

uint32_t rt_method_dynamic_result_count(const struct rt_method *method)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        count += rt_method_result(method, i)->dynamic_dims != 0;
    }
    return count;
}

/* The inputs' shapes with the dynamic dims filled in; |pointers| to them. */
static void fill_shapes(const struct rt_method *method, const int64_t *dims, struct shape *shapes,
                        const struct shape **pointers)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        shapes[i] = io->shape;
        pointers[i] = io->kind == RT_IO_TENSOR ? &shapes[i] : NULL;
        for (uint8_t d = 0; d < io->shape.rank; d++) {
            if (io->dynamic_dims >> d & 1) {
                shapes[i].dims[d] = *dims++;
            }
        }
    }
}

static enum status reserve_all(const struct rt_method *method, const struct rt_result_info *infos,
                               struct hal_pool *pool, struct hal_buffer **out_buffers,
                               struct error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        if (rt_method_result(method, i)->dynamic_dims == 0) {
            continue;
        }
        if (hal_pool_reserve(pool, infos[i].bytes, &out_buffers[count], err) != ST_OK) {
            while (count > 0) {
                hal_buffer_unref(out_buffers[--count]);
            }
            return err->code;
        }
        count++;
    }
    return ST_OK;
}

enum status rt_method_allocate_results(struct rt_method *method, const int64_t *dims,
                                       uint32_t dim_count, struct hal_pool *pool,
                                       struct hal_buffer **out_buffers, struct error *err)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    if (dim_count != rt_method_dynamic_dim_count(method)) {
        return error_set(err, ST_INVALID, "%u dynamic dims, expected %u", dim_count,
                         rt_method_dynamic_dim_count(method));
    }
    struct shape *shapes = calloc((size_t)inputs + 1, sizeof(*shapes));
    const struct shape **pointers = calloc((size_t)inputs + 1, sizeof(struct shape *));
    struct rt_result_info *infos = calloc((size_t)results + 1, sizeof(*infos));
    enum status status = ST_EXHAUSTED;
    if (shapes && pointers && infos) {
        fill_shapes(method, dims, shapes, pointers);
        status = rt_method_result_shapes(method, pointers, infos, err);
    } else {
        error_set(err, status, "no memory for the shapes of a method");
    }
    if (status == ST_OK) {
        status = reserve_all(method, infos, pool, out_buffers, err);
    }
    free(infos);
    free(pointers);
    free(shapes);
    return status;
}
