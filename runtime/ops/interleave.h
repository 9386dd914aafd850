/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of interleave.c. */
#ifndef PTED_RUNTIME_OPS_INTERLEAVE_H
#define PTED_RUNTIME_OPS_INTERLEAVE_H

#include <stdint.h>

#include "base/dtype.h"

struct rt_interleave {
    enum dtype dtype;
    uint32_t has_extent; /* |length| is an upper bound */
    int64_t count, length;
};

#endif
