/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of llm.c. */
#ifndef PTED_RUNTIME_OPS_LLM_H
#define PTED_RUNTIME_OPS_LLM_H

#include <stdint.h>

#include "base/dtype.h"

/* Each tile copies the same part of a row, in units of RT_SLICE_UNIT bytes. */
#define RT_SLICE_UNIT 16

/* Where the places are stored. */
struct rt_write_rows {
    int64_t rows, count, row_bytes; /* rows of a cache, rows written to it, bytes of each */
};

/* Numbers of a row that fit into a workgroup's memory: every device has 16 KiB. */
#define RT_HADAMARD_SHARED_MAX 4096

struct rt_hadamard {
    int64_t rows, length, tile; /* |length| is a power of two */
    float scale;
    enum dtype dtype;
};

#endif
