/* SPDX-License-Identifier: MIT */
/* The rows of a profile as JSON, the same for `pte profile --json` and for calls with ?profile=1.
 */
#ifndef PTED_SERVER_PROFILE_LAYERS_H
#define PTED_SERVER_PROFILE_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* An operator, as the runtime's profile has it for the daemon and the library's for pte. Sums of
 * all calls. */
struct layers_row {
    const char *operation, *layer, *source, *kernel;
    const char *numbers;  /* that are multiplied: "float32" */
    uint32_t block, node; /* |node|: UINT32_MAX for none */
    uint64_t dispatches, busy_ns, host_ns;
    double macs, bytes;
};

/* Gives row |index| of |profile|. */
typedef struct layers_row layers_at_f(const void *profile, uint32_t index);

/* Appends "lost_spans" and "layers", members of an object that is open. Times and amounts are the
 * mean of |calls| calls. pte(1) describes the members. */
void layers_print_json(size_t lost_spans, layers_at_f *at, const void *profile, uint32_t row_count,
                       uint64_t calls, struct buf *out);

#endif
