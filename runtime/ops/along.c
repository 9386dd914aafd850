/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/along.h"

struct rt_along rt_along_of(struct rt_emit *emit)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), in->rank);
    struct rt_along along = {1, 1, 1, 1, in->dtype, rt_emit_out(emit, 0)->dtype, false, false};

    for (uint8_t d = 0; d < in->rank; d++) {
        int64_t *part = d < dim ? &along.outer : d == dim ? &along.length : &along.inner;
        *part *= in->dims[d];
    }
    return along;
}

enum status rt_along_shape(struct rt_shape_call *call, uint32_t out_dtypes)
{
    int64_t dim;
    uint8_t d;

    if ((out_dtypes >> rt_shape_out_dtype(call, 0) & 1) == 0) {
        return rt_shape_refuse(call, "the result cannot be %s",
                               dtype_text(rt_shape_out_dtype(call, 0)));
    }
    TRY(rt_shape_need_const(call, 1, &dim));
    TRY(rt_shape_need_dim(call, dim, rt_shape_arg(call, 0)->rank, &d));
    return rt_shape_set_out_like(call, 0, 0);
}

enum status rt_along_dispatch(struct rt_emit *emit, const struct hal_kernel *kernel,
                              struct rt_along *along, int64_t count, struct error *err)
{
    struct hal_binding bindings[2] = {rt_emit_out(emit, 0)->binding, rt_emit_arg(emit, 0)->binding};

    if (along->length == 0) {
        return ST_OK;
    }
    const struct rt_machine *machine = rt_emit_machine(emit, kernel);
    int64_t shared = along->inner > 1 ? 1 : rt_cut_row(machine, along->length);
    along->tile = rt_cut_things(machine, RT_WORK_EXP, count, along->length, shared);
    return rt_emit_tiles(
        emit, count, along->tile,
        &(struct hal_dispatch){
            .kernel = kernel,
            .constants = along,
            .constants_bytes = sizeof(*along),
            .bindings = bindings,
            .binding_count = 2,
            .scratch_bytes =
                along->in == DT_F32 || along->length > RT_ALONG_ROW_MAX
                    ? sizeof(float) * RT_ALONG_SCRATCH_FLOATS
                    : sizeof(float) * ((size_t)along->length + RT_ALONG_SCRATCH_FLOATS),
            .cost = (uint64_t)(along->outer * along->inner * along->length) * 2,
        },
        err);
}
