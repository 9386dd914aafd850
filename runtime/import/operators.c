/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/import/operators.h"

#include "base/check.h"
#include "hal/device.h"
#include "runtime/import/kernels.h"
#include "runtime/ops/op.h"

struct listing {
    rt_operator_f *fn;
    void *arg;
};

/* The row that has the kernel: |op|, or the row that finally replaces it. */
static const struct rt_op *row_that_runs(const struct rt_op *op)
{
    while (op->becomes) {
        op = rt_op_find(op->becomes);
        must(op);
    }
    return op;
}

/* Operators without a kernel, such as sizes and views, need nothing of a device. */
static uint32_t drivers_of(const struct rt_op *op)
{
    const struct hal_kernel *kernel = row_that_runs(op)->runs;
    uint32_t drivers = 0;
    for (unsigned i = 0; hal_driver_name(i); i++) {
        drivers |= (uint32_t)(!kernel || hal_driver_has_form(i, kernel)) << i;
    }
    return drivers;
}

static const char *kind_of(const struct rt_op *op)
{
    return op->flags & RT_OP_VIEW       ? "view"
           : op->flags & RT_OP_SCALAR   ? "scalar"
           : op->flags & RT_OP_IN_PLACE ? "in place"
                                        : "";
}

static void list_row(const struct rt_op *op, void *arg)
{
    const struct listing *listing = arg;
    const struct rt_operator it = {
        .name = op->name,
        .args = op->args,
        .kernels = op->kernels,
        .kind = kind_of(op),
        .dtypes = op->dtypes,
        .drivers = drivers_of(op),
    };
    listing->fn(&it, listing->arg);
}

/* Skips calls that a row of the graph's operators has as well. */
static void list_host_call(const char *kernel, void *arg)
{
    const struct listing *listing = arg;
    const struct rt_operator it = {
        .kernels = kernel, .kind = "host", .drivers = UINT32_C(1) << HAL_DRIVER_HOST};
    if (!rt_op_find_kernel(span_str(kernel))) {
        listing->fn(&it, listing->arg);
    }
}

void rt_operators_each(rt_operator_f *fn, void *arg)
{
    struct listing listing = {fn, arg};
    rt_op_each(list_row, &listing);
    rt_import_host_call_each(list_host_call, &listing);
}
