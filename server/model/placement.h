/* SPDX-License-Identifier: MIT */
/* Where a model runs, for its metadata: which operators the device leaves to the host, and why. */
#ifndef PTED_SERVER_MODEL_PLACEMENT_H
#define PTED_SERVER_MODEL_PLACEMENT_H

struct arena;
struct hal_device;
struct rt_method;

/*
 * JSON in |arena|, at the upper bounds of the method's sizes:
 *
 *     {"device": "NAME:0", "kind": "discrete GPU", "capabilities": ["gpu", "doubles"],
 *      "dispatches": 22, "transfers": 0,
 *      "on_host": [{"op": "topk", "dispatches": 1, "reason": "no form for this device"}]}
 *
 * NULL where there is nothing to tell: on a CPU, for a method that cannot be called, for a
 * pipeline, whose steps have their own, and without memory. Makes plans: not on the loop.
 */
const char *placement_print(struct arena *arena, const struct hal_device *device,
                            struct rt_method *method);

#endif
