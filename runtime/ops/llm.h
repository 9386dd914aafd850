/* SPDX-License-Identifier: MIT */
/* What kernels of llm.c are told. */
#ifndef PTED_RUNTIME_OPS_LLM_H
#define PTED_RUNTIME_OPS_LLM_H

#include <stdint.h>

#include "base/dtype.h"

/* Tiles copy as much of a row each, in units of RT_SLICE_UNIT bytes. */
#define RT_SLICE_UNIT 16

/* Where places say. */
struct rt_write_rows {
    int64_t rows, count, row_bytes; /* of a cache, written to it, of each */
};

/* Numbers of a row that a workgroup has room for: 16 KiB are sure to be there. */
#define RT_HADAMARD_SHARED_MAX 4096

struct rt_hadamard {
    int64_t rows, length, tile; /* |length| is a power of two */
    float scale;
    enum dtype dtype;
};

#endif
