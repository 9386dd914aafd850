/* SPDX-License-Identifier: MIT */
/*
 * Loading: from a `.pte` file to a program (runtime/program/program.h) whose methods are compiled
 * for one device. A damaged file does not load. A method that needs something this build lacks (an
 * operator, a delegate, an element type), or that is too large, is kept with the reason, and the
 * other methods work. Lack of memory is no property of a method: then nothing is loaded.
 */
#ifndef PTED_RUNTIME_LOAD_LOAD_H
#define PTED_RUNTIME_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/precision.h"
#include "base/status.h"
#include "runtime/program/adapt.h"
#include "runtime/program/keep.h"
#include "runtime/program/program.h"
#include "runtime/pte/file_use.h"

struct hal_device;
struct rt_carries;
struct rt_composition;

/*
 * Statements that a call may execute, so that no loop is endless: the limit of ExecuTorch. The
 * cheapest statement takes about 20 ns, so this is a fraction of a second of one core; time limits
 * bound blocks.
 */
#define RT_STATEMENTS_MAX 10000000

struct rt_load_options {
    struct hal_device *device; /* borrowed; the program takes its own reference */
    /* Data files (.ptd) to look into; none: those beside the program, see runtime/pte/files.h. */
    const char *const *data_paths;
    uint32_t data_count;
    enum pte_file_use file_use; /* how their bytes come into memory */
    struct span bytes;          /* the program, if there is no path: see runtime/pte/files.h */
    enum precision precision;   /* wished for; rt_program_precision() says what it became */
    const char *packed_folder;  /* where packed weights are kept for the next load, on a device that
                                   is the host (runtime/pte/packed.h); NULL: nowhere */
    uint64_t statements_max;    /* of a call whose method branches; 0: RT_STATEMENTS_MAX */
    rt_adapt_f *adapt;          /* see runtime/program/adapt.h; NULL: programs as they are */
    void *adapt_arg;
    /* of the default method, see runtime/load/carry.h; NULL: none */
    const struct rt_carries *carries;
    /* one method more, see runtime/load/compose.h, if both of its parts can be used; it has no
     * carries. NULL: the file's own methods */
    const struct rt_composition *composition;
    const struct rt_keep *keep; /* values that become results, see runtime/program/keep.h; NULL:
                                   none */
    bool has_int8_caches;   /* caches of keys and values are kept in 8 bits, or nothing is loaded:
                               see runtime/load/cells_int8.h */
    bool poison_workspaces; /* fill workspaces with 0xff before each run: finds reads of stale
                               memory */
    bool is_unfused;        /* without the passes that join several nodes to one: for comparison */
};

/* Loads a program. The caller owns a reference to the program, which is at |path| or, with NULL, in
 * memory. ST_EXHAUSTED: there is no memory now. Any thread. */
MUST_CHECK enum status rt_load_program(const char *path, const struct rt_load_options *options,
                                       struct rt_program **out_program, struct error *err);
#endif
