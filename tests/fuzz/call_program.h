/* SPDX-License-Identifier: MIT */
/*
 * Takes a program, however hostile, from its file to its results: loads it, and calls every method
 * with inputs of several dims and random content. Memory and time are bounded: a call that does not
 * fit the pool is refused, one that runs longer than CALL_MS is cancelled.
 */
#ifndef PTED_TESTS_CALL_PROGRAM_H
#define PTED_TESTS_CALL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/precision.h"
#include "base/status.h"

/* The time for a call, and the time in which it has to end after that. */
#define CALL_MS 300
#define CALL_END_MS 20000

struct hal_device;
struct hal_pool;
struct rt_method;

struct caller {
    struct hal_device *device; /* owned */
    struct hal_pool *pool;     /* owned */
    enum precision precision;  /* of the programs */
    uint64_t seed;             /* for the inputs */
    uint64_t digest;           /* of all results since the caller reset it; any NaN is alike */
    bool prints;               /* also prints listings */
    bool pipes;                /* also calls each method as two steps of a pipeline */
    void (*on_result)(void *arg, struct rt_method *method); /* called for each good call, or NULL */
    void *arg;
};

/* |late|: calls that did not end in time after being cancelled. */
struct call_counts {
    uint32_t methods, runs, results, cancelled, late;
};

/* |workers|: threads of its device. */
MUST_CHECK enum status caller_init(struct caller *caller, uint32_t workers, struct error *err);
void caller_fini(struct caller *caller);

/* Returns the status of loading. If that is ST_OK and nothing ran, |err| says why the last method
 * or call was refused. */
MUST_CHECK enum status call_program(struct caller *caller, const char *path,
                                    struct call_counts *out_counts, struct error *err);

#endif
