/* SPDX-License-Identifier: MIT */
/*
 * A program from a file to its results, as hostile as it may be: loaded, and every method that can
 * be called is called with inputs of the largest dims and of small ones. Memory and time are
 * bounded: what does not fit the pool is refused, what runs longer than CALL_TIMEOUT_S is
 * cancelled.
 */
#ifndef PTED_TESTS_CALL_PROGRAM_H
#define PTED_TESTS_CALL_PROGRAM_H

#include <stdint.h>

#include "base/status.h"

#define CALL_TIMEOUT_S 20

struct hal_device;
struct hal_pool;

struct caller {
    struct hal_device *device; /* owned */
    struct hal_pool *pool;     /* owned */
};

struct call_counts {
    uint32_t methods, runs, timeouts;
};

MUST_CHECK enum status caller_init(struct caller *caller, struct error *err);
void caller_fini(struct caller *caller);

/*
 * The status of loading; when that is ST_OK and nothing ran, |err| says why the last method or call
 * was refused.
 */
MUST_CHECK enum status call_program(struct caller *caller, const char *path,
                                    struct call_counts *out_counts, struct error *err);

#endif
