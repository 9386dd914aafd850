/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/results.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/plan/alloc.h"
#include "runtime/plan/plan.h"
#include "runtime/program/foresee.h"
#include "runtime/program/method.h"
#include "runtime/program/oracle.h"
#include "runtime/program/state_cells.h"

/* The name of input |index| in messages. */
static const char *label_of(const struct rt_method *method, bool says_paths, uint32_t index)
{
    const struct rt_io *io = rt_method_input(method, index);
    return says_paths ? io->path : io->label;
}

static enum status check_inputs(const struct rt_method *method, const struct shape *const *inputs,
                                bool says_paths, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        if (io->kind == RT_IO_TENSOR && !inputs[i]) {
            return rt_io_missing(io, label_of(method, says_paths, i),
                                 err); /* before what is wrong with others */
        }
    }
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct rt_buffer_desc given, wanted;
        size_t bytes;
        if (io->kind != RT_IO_TENSOR) {
            continue;
        }
        given = (struct rt_buffer_desc){.dtype = io->dtype, .shape = *inputs[i]};
        if (rt_oracle(io, method->device, &given, &wanted, &bytes, err) == RT_ORACLE_UNSUPPORTED) {
            return error_prefix(err, "%s: ", label_of(method, says_paths, i));
        }
    }
    return ST_OK;
}

static uint32_t all_dims(const struct shape *shape)
{
    return (1u << shape->rank) - 1;
}

/* If bounds come to more bytes than can be counted, it takes the largest number. */
static void count_result(const struct rt_io *io, struct rt_result_info *info)
{
    if (shape_bytes(&info->shape, io->dtype, &info->bytes, NULL) != ST_OK) {
        info->bytes = SIZE_MAX;
    }
}

struct rt_result_info rt_result_bounds(const struct rt_io *io)
{
    struct rt_result_info info = {
        .shape = io->shape,
        .is_tensor = io->kind == RT_IO_TENSOR,
        .known_dims = all_dims(&io->shape) & ~io->dynamic_dims,
    };
    if (info.is_tensor) {
        count_result(io, &info);
    }
    return info;
}

/* The result as the file declares it, with the known dims of |shape| and tighter bounds of the
 * other dims. */
static enum status finish(const struct rt_method *method, uint32_t index, const struct shape *shape,
                          uint32_t known_dims, struct rt_result_info *info, struct error *err)
{
    const struct rt_io *io = rt_method_result(method, index);
    *info = rt_result_bounds(io);
    for (uint8_t d = 0; info->is_tensor && shape->rank == io->shape.rank && d < shape->rank; d++) {
        if ((known_dims >> d & 1) || shape->dims[d] < info->shape.dims[d]) {
            info->shape.dims[d] = shape->dims[d];
        }
        info->known_dims |= known_dims & 1u << d;
    }
    info->is_known = info->is_tensor && info->known_dims == all_dims(&io->shape);
    if (info->is_known) {
        return shape_bytes(&info->shape, io->dtype, &info->bytes, err);
    }
    if (info->is_tensor) {
        count_result(io, info);
    }
    return ST_OK;
}

enum status rt_method_take_extent(const struct rt_method *method, uint32_t index,
                                  const struct shape *extent, struct rt_result_info *info,
                                  struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_io *io = rt_method_result(method, index);
    char got[SHAPE_TEXT_MAX];
    if (io->kind != RT_IO_TENSOR || extent->rank != info->shape.rank) {
        return rt_io_refuse(io, shape_print(extent, got), err);
    }
    for (uint8_t d = 0; d < extent->rank; d++) {
        int64_t dim = extent->dims[d], most = info->shape.dims[d];
        if ((info->known_dims >> d & 1) && dim != most) {
            return error_set(err, ST_INVALID, "dim %u is %" PRId64 ", expected %" PRId64, d, dim,
                             most);
        }
        if (dim < 0 || dim > most) {
            return error_set(err, ST_INVALID, "dim %u is %" PRId64 ", expected 0 to %" PRId64, d,
                             dim, most);
        }
    }
    info->shape = *extent;
    info->known_dims = all_dims(extent);
    info->is_known = true;
    return shape_bytes(extent, io->dtype, &info->bytes, err);
}

/* The results of a method that is one block are expressions of its inputs' dims. */
static enum status describe_outputs(const struct rt_method *method, const int64_t *values,
                                    struct rt_result_info *out_infos, struct error *err)
{
    const struct rt_graph *graph = &method->code.blocks[0]->graph;
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        const struct rt_value *v = &graph->values[graph->outputs[i]];
        bool is_known = v->kind == RT_TENSOR;
        struct shape shape = is_known ? rt_concrete_shape(v, values) : (struct shape){.rank = 0};
        TRY(finish(method, i, &shape, is_known ? all_dims(&shape) : 0, &out_infos[i], err));
    }
    return ST_OK;
}

/* With several blocks the registers hold the results in the end, as far as that is known. */
static enum status describe_registers(const struct rt_method *method,
                                      const struct shape *const *inputs,
                                      struct rt_result_info *out_infos, struct error *err)
{
    const struct rt_code *code = &method->code;
    struct rt_foreseen *foreseen = calloc((size_t)code->register_count + 1, sizeof(*foreseen));
    if (!foreseen) {
        return error_no_memory(err, "the sizes of a method");
    }
    enum status status = rt_foresee(method, inputs, foreseen, err);
    for (uint32_t i = 0; status == ST_OK && i < rt_method_result_count(method); i++) {
        const struct rt_foreseen *from = &foreseen[code->results[i].reg];
        static const struct shape nothing = {.rank = 0};
        status = finish(method, i, from->is_written ? &from->shape : &nothing,
                        from->is_written ? from->known_dims : 0, &out_infos[i], err);
    }
    free(foreseen);
    return status;
}

/* The workspace of a method of one block: that of |plan|, or of the plan that it would get. */
static enum status workspace_bytes(const struct rt_block *block, const struct rt_plan *plan,
                                   const int64_t *values, size_t *out_bytes, struct error *err)
{
    struct arena scratch;
    struct rt_alloc alloc;
    if (plan) {
        *out_bytes = plan->workspace_bytes;
        return ST_OK;
    }
    arena_init(&scratch, RT_PLAN_SCRATCH_MAX);
    enum status status = rt_alloc_make(&alloc, &block->flow, values, &scratch, err);
    *out_bytes = alloc.workspace_bytes;
    arena_fini(&scratch);
    return status;
}

static size_t add_bytes(size_t a, size_t b)
{
    size_t sum;
    return add_size(a, b, &sum) ? sum : SIZE_MAX;
}

static size_t state_bytes(const struct rt_method *method)
{
    const struct rt_state_cells *cells = rt_program_state_cells(method->program);
    size_t bytes = 0;
    for (uint32_t i = 0; i < method->state_count; i++) {
        const struct rt_method_state *use = &method->states[i];
        bytes = add_bytes(bytes,
                          use->is_written ? hal_buffer_size(cells->items[use->cell].initial) : 0);
    }
    return bytes;
}

/* Several blocks run one after the other, with sizes that they find out: only results count. */
static enum status count_bytes(const struct rt_method *method, const struct rt_plan *plan,
                               const int64_t *values, const struct rt_result_info *infos,
                               size_t *out_bytes, struct error *err)
{
    *out_bytes = 0;
    if (method->code.stmt_count == 0) {
        TRY(workspace_bytes(method->code.blocks[0], plan, values, out_bytes, err));
    }
    *out_bytes = add_bytes(*out_bytes, state_bytes(method));
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        *out_bytes = add_bytes(*out_bytes, infos[i].is_known ? infos[i].bytes : 0);
    }
    return ST_OK;
}

/* The plan for |given|, if there is one, in whose making all sizes have been found small enough;
 * otherwise that is found out now. */
static enum status find_plan(struct rt_block *block, const struct rt_block_input *given,
                             const int64_t *values, struct rt_plan **out_plan, struct error *err)
{
    TRY(rt_block_find_plan(block, given, NULL, out_plan, err));
    return *out_plan ? ST_OK : rt_alloc_measure(&block->flow, values, NULL, err);
}

static enum status evaluate(struct rt_method *method, const struct shape *const *inputs,
                            bool says_paths, int64_t *values, struct rt_result_info *out_infos,
                            size_t *out_bytes, struct error *err)
{
    struct rt_block *entry = method->code.blocks[0];
    struct rt_plan *plan = NULL;
    struct rt_block_input *given = calloc((size_t)entry->graph.input_count + 1, sizeof(*given));
    if (!given) {
        return error_no_memory(err, "the sizes of a method");
    }
    enum status status = ST_OK;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        given[i] = (struct rt_block_input){
            .shape = inputs[i],
            .label = label_of(method, says_paths, i),
        };
    }
    status = rt_block_eval(entry, given, values, err);
    if (status == ST_OK) {
        status = find_plan(entry, given, values, &plan, err);
    }
    if (status == ST_OK) {
        status = method->code.stmt_count == 0 ? describe_outputs(method, values, out_infos, err)
                                              : describe_registers(method, inputs, out_infos, err);
    }
    if (status == ST_OK && out_bytes) {
        status = count_bytes(method, plan, values, out_infos, out_bytes, err);
    }
    rt_plan_unref(plan);
    free(given);
    return status;
}

enum status rt_results_measure(struct rt_method *method, const struct shape *const *inputs,
                               bool says_paths, struct rt_result_info *out_infos, size_t *out_bytes,
                               struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    int64_t *values = calloc(method->code.blocks[0]->graph.dims.expr_count, sizeof(*values));
    if (!values) {
        return error_no_memory(err, "the sizes of a method");
    }
    enum status status = evaluate(method, inputs, says_paths, values, out_infos, out_bytes, err);
    free(values);
    return status;
}

static enum status measure(struct rt_method *method, const struct shape *const *inputs,
                           bool says_paths, struct rt_result_info *out_infos, size_t *out_bytes,
                           struct error *err)
{
    must(method->failure.code == ST_OK);
    TRY(check_inputs(method, inputs, says_paths, err));
    return method->callable->measure(method, inputs, says_paths, out_infos, out_bytes, err);
}

enum status rt_method_measure(struct rt_method *method, const struct shape *const *inputs,
                              struct rt_result_info *out_infos, size_t *out_bytes,
                              struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return measure(method, inputs, false, out_infos, out_bytes, err);
}

enum status rt_method_result_shapes(struct rt_method *method, const struct shape *const *inputs,
                                    struct rt_result_info *out_infos, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return measure(method, inputs, false, out_infos, NULL, err);
}

enum status rt_method_call_shapes(struct rt_method *method, const struct shape *const *inputs,
                                  struct rt_result_info *out_infos, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return measure(method, inputs, true, out_infos, NULL, err);
}
