/* SPDX-License-Identifier: MIT */
/*
 * The unchanged part of an update of some rows. An operator whose output 0 equals argument 0 except
 * for rows [first, first + count) of one dim copies the other rows with rt_keep_emit(). If both are
 * one memory nothing is copied. If the output's memory holds an older content of the same mutable
 * buffer, only the rows that differ are copied; each run tells the kernel which ones
 * (rt_emit_update()).
 */
#ifndef PTED_RUNTIME_KERNELS_KEEP_H
#define PTED_RUNTIME_KERNELS_KEEP_H

#include <stdint.h>

#include "runtime/emit/update.h"

/* Constants for the kernel: both sides are [outer, rows, row_bytes]. */
struct rt_keep {
    int64_t outer, rows, row_bytes;
    int64_t first, count; /* first row, unless binding 3 holds it */
};

/* Positions in its bindings. */
enum rt_keep_binding { RT_KEEP_OUT, RT_KEEP_BASE, RT_KEEP_WORDS, RT_KEEP_FIRST };

#ifndef HAL_SHADER
#include "runtime/emit/emit.h"

/* Do both share one memory? */
bool rt_keep_is_in_place(const struct rt_tensor *a, const struct rt_tensor *b);

/* Argument 0 and output 0 of the node are row-major. */
MUST_CHECK enum status rt_keep_emit(struct rt_emit *emit, uint8_t dim, struct rt_place first,
                                    int64_t count, struct error *err);
#endif

#endif
