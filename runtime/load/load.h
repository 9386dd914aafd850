/* SPDX-License-Identifier: MIT */
/*
 * Loading: from a `.pte` file to a program (runtime/program/program.h) whose methods are compiled
 * for one device. A damaged file does not load. A method that needs something this build lacks (an
 * operator, a delegate, an element type) is kept with the reason, and the other methods work.
 */
#ifndef PTED_RUNTIME_LOAD_LOAD_H
#define PTED_RUNTIME_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/program/program.h"

struct hal_device;

/*
 * Steps that a call may take, so that no loop is endless: what ExecuTorch allows. The cheapest take
 * some 20 ns, so this is a fraction of a second of one core; blocks are bounded by time limits.
 */
#define RT_STEPS_MAX 10000000

struct rt_load_options {
    struct hal_device *device; /* borrowed; the program takes its own reference */
    /* Data files (.ptd) to look into; none: those beside the program, see runtime/pte/files.h. */
    const char *const *data_paths;
    uint32_t data_count;
    uint64_t steps_max; /* of a call whose method branches; 0: RT_STEPS_MAX */
    bool poison_arenas; /* fill arenas with 0xff before each run: finds reads of stale memory */
    bool is_unfused;    /* without the passes that make one node of several: to compare with */
};

/* The caller owns a reference to the program. Any thread. */
MUST_CHECK enum status rt_load_program(const char *path, const struct rt_load_options *options,
                                       struct rt_program **out_program, struct error *err);
#endif
