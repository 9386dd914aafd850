/* SPDX-License-Identifier: MIT */
/* Constant folding, one of the passes of runtime/passes/passes.def. It is not among them because it
 * plans and runs the nodes that it folds. */
#ifndef PTED_RUNTIME_CODE_FOLD_H
#define PTED_RUNTIME_CODE_FOLD_H

#include "base/status.h"

struct hal_device;
struct rt_graph;

/* Evaluates the nodes of |graph| that have only constant arguments on |device|, whose memory the
 * host can access, and replaces their outputs by constants. Nodes whose outputs would take much
 * more memory than the constants do stay. */
MUST_CHECK enum status rt_fold_constants(struct rt_graph *graph, struct hal_device *device,
                                         struct error *err);

#endif
