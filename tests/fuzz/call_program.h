/* SPDX-License-Identifier: MIT */
/*
 * A program from a file to its results, as hostile as it may be: loaded, and every method that can
 * be called is called with inputs of several dims and random content. Memory and time are bounded:
 * what does not fit the pool is refused, what runs longer than CALL_MS is cancelled.
 */
#ifndef PTED_TESTS_CALL_PROGRAM_H
#define PTED_TESTS_CALL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* How long a call may take, and how soon after that it has to end. */
#define CALL_MS 300
#define CALL_END_MS 20000

struct hal_device;
struct hal_pool;
struct rt_method;

struct caller {
    struct hal_device *device; /* owned */
    struct hal_pool *pool;     /* owned */
    uint64_t seed;             /* what inputs follow from */
    bool prints;               /* listings, too */
    bool pipes;                /* each method as two steps of a pipeline, too */
    void (*on_result)(void *arg, struct rt_method *method); /* of each good call, or NULL */
    void *arg;
};

/* |late|: calls that did not end in time after they were cancelled. */
struct call_counts {
    uint32_t methods, runs, results, cancelled, late;
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
