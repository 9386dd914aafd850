/* SPDX-License-Identifier: MIT */
/* The dispatches of each row: dispatches.c hears of it, test_ops.c keeps it. */
#ifndef PTED_TESTS_OPS_DISPATCHES_H
#define PTED_TESTS_OPS_DISPATCHES_H

#include "runtime/ops/op.h"

void note_dispatch(const struct rt_op *op, const struct hal_kernel *kernel);

#endif
