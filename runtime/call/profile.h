/* SPDX-License-Identifier: MIT */
/*
 * Where the time of calls goes, by the operators of the compiled graph and the layers of the
 * exported model that they come from.
 *
 *     rt_profile_new            for calls of one method, on a device with props.has_profile
 *     rt_invocation_profile     for each call that counts, before submit
 *     rt_profile_read           after the last call has ended
 *     rt_profile_free
 *
 * One call at a time: a profile is not for calls that run side by side. It keeps the program of its
 * method alive.
 */
#ifndef PTED_RUNTIME_CALL_PROFILE_H
#define PTED_RUNTIME_CALL_PROFILE_H

#include <stdbool.h>

#include "base/status.h"
#include "hal/command.h"
#include "hal/profile.h"

struct rt_block;
struct rt_invocation;
struct rt_method;
struct rt_plan;
struct rt_profile;

/* An operator of one block, with everything that ran for it. */
struct rt_profile_row {
    const char *op;     /* "conv"; "copy" for copies that the planner adds */
    const char *layer;  /* "stem.0": the name of its first weight without the last part, or "" */
    const char *source; /* "model.py:12: x = self.stem(x)", or "" */
    const char *kernel; /* of its first command */
    uint32_t block;     /* number of the block in the method's code */
    uint32_t node;      /* of the block's graph, see runtime/program/outline.h; or UINT32_MAX */
    uint64_t commands;  /* that ran */
    uint64_t busy_ns;   /* of all threads together, and of a device other than the CPU */
    uint64_t host_ns;   /* the part that is threads' */
    double macs;        /* multiply-adds; 0: it moves data */
    enum hal_macs macs_kind;
    double bytes; /* read and written, each tensor once for a command */
};

/* |span_max|: see hal_profile_new(). */
MUST_CHECK enum status rt_profile_new(struct rt_method *method, size_t span_max,
                                      struct rt_profile **out_profile, struct error *err);
void rt_profile_free(struct rt_profile *profile); /* NULL is fine */

/* Makes the call a part of |profile|, which outlives it. Before submit. */
void rt_invocation_profile(struct rt_invocation *invocation, struct rt_profile *profile);

/*
 * Reads the rows, in the order in which their first commands were recorded. Valid until the profile
 * is freed; a second call counts the later calls, too. ST_EXHAUSTED: no memory.
 */
MUST_CHECK enum status rt_profile_read(struct rt_profile *profile,
                                       const struct rt_profile_row **out_rows, uint32_t *out_count,
                                       struct error *err);

/* Call after rt_profile_read(): all spans, and the row of one of them. */
const struct hal_span *rt_profile_spans(const struct rt_profile *profile, size_t *out_count);
uint32_t rt_profile_row_of(const struct rt_profile *profile, const struct hal_span *span);

/* Spans that found no room: the times of the rows are too small then. */
size_t rt_profile_lost(const struct rt_profile *profile);

#endif
