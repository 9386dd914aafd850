/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pipeline/cascade_sizes.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/program/method.h"

/* The shapes of the inputs of |step|; false: they depend on data. */
static bool gather_shapes(const struct rt_cascade_sizes *sizes, uint32_t step,
                          const struct shape **shapes)
{
    const struct rt_cascade_layout *layout = sizes->layout;
    bool is_known;
    for (uint32_t i = 0; i < rt_method_input_count(sizes->methods[step]); i++) {
        shapes[i] = NULL;
    }
    is_known = sizes->given(sizes->arg, step, shapes);
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        if (edge->to != step) {
            continue;
        }
        const struct rt_result_info *info = &sizes->infos[sizes->first[edge->from] + edge->output];
        if (!sizes->methods[edge->from] || (info->is_tensor && !info->is_known)) {
            is_known = false;
        } else if (info->is_tensor) {
            shapes[edge->input] = &info->shape;
        }
    }
    return is_known;
}

static void leave_open(const struct rt_method *method, struct rt_result_info *infos)
{
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        infos[i] = rt_result_bounds(rt_method_result(method, i));
    }
}

static enum status measure_all(struct rt_cascade_sizes *sizes, const struct shape **shapes,
                               struct error *err)
{
    for (uint32_t i = 0; i < sizes->layout->step_count; i++) {
        struct rt_result_info *infos = &sizes->infos[sizes->first[i]];
        struct rt_method *method = sizes->methods[i];
        size_t bytes = 0;
        sizes->failed_step = i;
        if (!method) {
            continue;
        }
        if (!gather_shapes(sizes, i, shapes)) {
            leave_open(method, infos);
            continue;
        }
        TRY(rt_method_measure(method, shapes, infos, sizes->with_bytes ? &bytes : NULL, err));
        if (!add_size(sizes->bytes, bytes, &sizes->bytes)) {
            sizes->bytes = SIZE_MAX;
        }
    }
    return ST_OK;
}

enum status rt_cascade_measure(struct rt_cascade_sizes *sizes, struct error *err)
{
    must(sizes->layout->step_count > 0 && sizes->methods);
    uint32_t results = 0, inputs_max = 0;
    for (uint32_t i = 0; i < sizes->layout->step_count; i++) {
        const struct rt_method *method = sizes->methods[i];
        uint32_t inputs = method ? rt_method_input_count(method) : 0;
        sizes->first[i] = results;
        results += method ? rt_method_result_count(method) : 0;
        inputs_max = inputs > inputs_max ? inputs : inputs_max;
    }
    const struct shape **shapes = calloc((size_t)inputs_max + 1, sizeof(struct shape *));
    sizes->bytes = 0;
    sizes->failed_step = 0;
    sizes->infos = calloc((size_t)results + 1, sizeof(*sizes->infos));
    enum status status = shapes && sizes->infos ? measure_all(sizes, shapes, err)
                                                : error_no_memory(err, "the sizes of a cascade");
    free(shapes);
    return status;
}

void rt_cascade_sizes_fini(struct rt_cascade_sizes *sizes)
{
    free(sizes->infos);
    sizes->infos = NULL;
}
