/* SPDX-License-Identifier: MIT */
/* What the kernel that writes rows of a cache where places say is told. */
#ifndef PTED_RUNTIME_OPS_LLM_H
#define PTED_RUNTIME_OPS_LLM_H

#include <stdint.h>

/* Tiles copy as much of a row each, in units of RT_SLICE_UNIT bytes. */
#define RT_SLICE_UNIT 16

struct rt_write_rows {
    int64_t rows, count, row_bytes; /* of a cache, written to it, of each */
};

#endif
