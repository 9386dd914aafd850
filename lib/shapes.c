/* SPDX-License-Identifier: MIT */
/* Shapes of inputs and outputs before a call. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/shape.h"
#include "lib/inside.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "runtime/program/results.h"

_Static_assert(PTED_RANK_MAX == SHAPE_RANK_MAX, "the ranks of pted.h are those of the runtime");

struct pted_shape lib_shape_give(const struct shape *shape)
{
    struct pted_shape out = {.rank = shape->rank};
    memcpy(out.dims, shape->dims, shape->rank * sizeof(out.dims[0]));
    return out;
}

/* Shapes of callers in words of the runtime: |shapes| has room for them, |list| is by input. */
static enum status take(const struct pted_method *method, const struct pted_shape *const *given,
                        struct shape *shapes, const struct shape **list, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method->rt); i++) {
        if (!given || !given[i]) {
            continue;
        }
        if (given[i]->rank > SHAPE_RANK_MAX) {
            return error_set(err, ST_INVALID, "%s: %u dims, at most %d are possible",
                             rt_method_input(method->rt, i)->label, given[i]->rank, SHAPE_RANK_MAX);
        }
        shapes[i].rank = (uint8_t)given[i]->rank;
        memcpy(shapes[i].dims, given[i]->dims, given[i]->rank * sizeof(given[i]->dims[0]));
        list[i] = &shapes[i];
    }
    return ST_OK;
}

/* The work of both functions, with lists of inputs that |fn| gets. */
typedef enum status with_shapes_f(const struct pted_method *method, const struct shape *const *list,
                                  void *out, struct error *err);

static enum pted_status with_shapes(const struct pted_method *method,
                                    const struct pted_shape *const *given, with_shapes_f *fn,
                                    void *out, struct pted_error *err)
{
    size_t count = pted_method_input_count(method) + 1;
    enum pted_status usable = pted_method_verify(method, err);
    struct error own;
    if (usable != PTED_OK) {
        return usable;
    }
    struct shape *shapes = calloc(count, sizeof(*shapes));
    const struct shape **list = calloc(count, sizeof(struct shape *));
    enum status status =
        shapes && list ? take(method, given, shapes, list, &own) : error_no_memory(&own, "shapes");
    if (status == ST_OK) {
        status = fn(method, list, out, &own);
    }
    free(shapes);
    free(list);
    return lib_give(status, &own, err);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static struct pted_output_shape describe(const struct rt_result_info *info)
{
    if (!info->is_tensor) {
        return (struct pted_output_shape){0};
    }
    uint32_t all = (1u << info->shape.rank) - 1;
    return (struct pted_output_shape){
        .shape = lib_shape_give(&info->shape),
        .bytes = info->bytes,
        .open_dims = info->is_known ? 0 : all & ~info->known_dims,
    };
}

static enum status find_outputs(const struct pted_method *method, const struct shape *const *list,
                                void *out, struct error *err)
{
    size_t count = pted_method_output_count(method);
    struct pted_output_shape *outputs = out;
    struct rt_result_info *infos = calloc(count + 1, sizeof(*infos));
    if (!infos) {
        return error_no_memory(err, "shapes");
    }
    enum status status = rt_method_result_shapes(method->rt, list, infos, err);
    for (size_t i = 0; status == ST_OK && i < count; i++) {
        outputs[i] = describe(&infos[i]);
    }
    free(infos);
    return status;
}

enum pted_status pted_method_output_shapes(const struct pted_method *method,
                                           const struct pted_shape *const *inputs,
                                           struct pted_output_shape *outputs,
                                           struct pted_error *err)
{
    return with_shapes(method, inputs, find_outputs, outputs, err);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static enum status find_inputs(const struct pted_method *method, const struct shape *const *list,
                               void *out, struct error *err)
{
    size_t count = pted_method_input_count(method);
    struct pted_shape *inputs = out;
    struct shape *found = calloc(count + 1, sizeof(*found));
    if (!found) {
        return error_no_memory(err, "shapes");
    }
    enum status status = rt_example_shapes(method->rt, list, found, err);
    for (size_t i = 0; status == ST_OK && i < count; i++) {
        inputs[i] = lib_shape_give(&found[i]);
    }
    free(found);
    return status;
}

enum pted_status pted_method_example_shapes(const struct pted_method *method,
                                            const struct pted_shape *const *given,
                                            struct pted_shape *shapes, struct pted_error *err)
{
    return with_shapes(method, given, find_inputs, shapes, err);
}
