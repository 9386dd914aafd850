/* SPDX-License-Identifier: MIT */
/* Every dispatch that a plan records is noted: the linker puts this before the function itself. */
#include "config.h"

#include "tests/ops/dispatches.h"

#include "runtime/emit/emit.h"

enum status __real_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err);
enum status __wrap_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err);

enum status __wrap_rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                    struct error *err)
{
    note_dispatch(rt_emit_op(emit), dispatch->kernel);
    return __real_rt_emit_dispatch(emit, dispatch, err);
}
