/* SPDX-License-Identifier: MIT */
/* What the kernel of interleave.c is told. */
#ifndef PTED_RUNTIME_OPS_INTERLEAVE_H
#define PTED_RUNTIME_OPS_INTERLEAVE_H

#include <stdint.h>

#include "base/dtype.h"

struct rt_interleave {
    enum dtype dtype;
    uint32_t has_extent; /* |length| is the most there may be */
    int64_t count, length;
};

#endif
