/* SPDX-License-Identifier: MIT */
/*
 * A round of constant folding (runtime/code/fold.h): nodes whose arguments are all constant. A
 * result comes from a buffer that a loaded method has already (runtime/code/shared.h), or from a
 * file of packed weights (runtime/pte/packed.h), or is computed. Nodes are planned and run like a
 * method without inputs, so that folding has no second way to evaluate an operator and uses all
 * workers.
 */
#ifndef PTED_RUNTIME_CODE_ROUND_H
#define PTED_RUNTIME_CODE_ROUND_H

#include "base/status.h"
#include "hal/command.h"
#include "runtime/plan/plan.h"

struct hal_device;
struct rt_graph;

/* Values that one round makes at most: each may be a result, which needs a slot; arrays of them are
 * on the stack. */
#define RT_ROUND_OUTPUTS_MAX 1023

/* Makes constants of the outputs of |sub|, nodes of |graph| with the same values. All sizes are
 * constants. The host can access the memory of |device|. */
MUST_CHECK enum status rt_round_compute(struct rt_graph *graph, struct rt_graph *sub,
                                        struct hal_device *device, struct error *err);

/* Shares the constants of |graph| whose buffers no round has made, too. No pass follows. */
MUST_CHECK enum status rt_round_share_rest(struct rt_graph *graph, struct error *err);

#endif
