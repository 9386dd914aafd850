/* SPDX-License-Identifier: MIT */
/* The rows of a profile as JSON, the same for `pte profile --json` and for calls with ?profile=1.
 */
#ifndef PTED_SERVER_PROFILE_LAYERS_H
#define PTED_SERVER_PROFILE_LAYERS_H

#include <stdint.h>

#include "base/buf.h"
#include "runtime/call/profile.h"

/* Appends "lost_spans" and "layers", members of an object that is open. Times and amounts are the
 * mean of |calls| calls. pte(1) describes the members. */
void layers_print_json(const struct rt_profile *profile, const struct rt_profile_row *rows,
                       uint32_t row_count, uint64_t calls, struct buf *out);

#endif
