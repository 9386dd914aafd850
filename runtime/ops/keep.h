/* SPDX-License-Identifier: MIT */
/*
 * What an update of some rows leaves as it was: an operator whose output 0 is argument 0 but for
 * rows [first, first + count) of one dim copies the others by rt_emit_keep(). Where both are one
 * memory nothing is copied; where the output's memory has an older content of the same mutable
 * buffer, only the rows that differ, which the kernel is told in each run (rt_emit_update()).
 */
#ifndef PTED_RUNTIME_OPS_KEEP_H
#define PTED_RUNTIME_OPS_KEEP_H

#include <stdint.h>

/* What the kernel is told: both sides are [outer, rows, row_bytes]. */
struct rt_keep {
    int64_t outer, rows, row_bytes;
    int64_t first, count; /* first: unless binding 3 has it */
};

/* Places in its bindings. */
enum rt_keep_binding { RT_KEEP_OUT, RT_KEEP_BASE, RT_KEEP_WORDS, RT_KEEP_FIRST };

/* What kernels and whoever runs them tell each other of an update, an i64 each. */
enum rt_update_word {
    RT_UPDATE_STALE,       /* rows of the output from here .. */
    RT_UPDATE_STALE_END,   /* .. up to here may differ from those of argument 0: others do not */
    RT_UPDATE_WRITTEN,     /* the kernel puts here from where .. */
    RT_UPDATE_WRITTEN_END, /* .. up to where it has written rows that differ */
    RT_UPDATE_WORDS
};

#ifndef HAL_SHADER
#include "runtime/ops/op.h"

/* Are they one memory? */
bool rt_is_in_place(const struct rt_tensor *a, const struct rt_tensor *b);

/*
 * The words of the node's update of |rows| rows of |row_bytes|, as many times as it takes; without
 * bytes there are none, and all of the output has to be written. runtime/plan/exec.c has it.
 */
MUST_CHECK enum status rt_emit_update(struct rt_emit *emit, int64_t rows, int64_t row_bytes,
                                      struct hal_binding *out_words, struct error *err);

/* Argument 0 and output 0 of the node are row-major. */
MUST_CHECK enum status rt_emit_keep(struct rt_emit *emit, uint8_t dim, struct rt_place first,
                                    int64_t count, struct error *err);
#endif

#endif
