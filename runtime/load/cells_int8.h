/* SPDX-License-Identifier: MIT */
/*
 * Mutable buffers in 8 bits. A buffer of floats that all methods write row by row and that only
 * attention reads, a cache of keys or of values, has bytes and a scale for each row of each head
 * (runtime/passes/caches_int8.h). Other mutable buffers stay as they are. A load that asks for it
 * fails if no buffer is such a cache, or if a method uses a cache in another way, too.
 */
#ifndef PTED_RUNTIME_LOAD_CELLS_INT8_H
#define PTED_RUNTIME_LOAD_CELLS_INT8_H

#include "base/status.h"
#include "runtime/passes/caches_int8.h"

struct rt_method;
struct rt_program;

/* Call before the blocks are compiled: by block, the method's buffers in their order. */
MUST_CHECK enum status rt_cells_int8_list(struct rt_method *method,
                                          struct rt_caches_int8 **out_caches, struct error *err);

/* Afterwards: what the blocks do with the buffers is noted at the program's cells. */
MUST_CHECK enum status rt_cells_int8_note(const struct rt_method *method,
                                          const struct rt_caches_int8 *caches, struct error *err);

/* Gives the cells, when all methods are compiled, their new sizes and initial contents. */
MUST_CHECK enum status rt_cells_int8_settle(struct rt_program *program, struct error *err);

#endif
