/* SPDX-License-Identifier: MIT */
/* The pass runtime/passes/caches.h for a method: its position, or the number of rows that its
 * caches have, becomes a number that the host reads, so its code is no longer one block. */
#ifndef PTED_RUNTIME_CODE_CACHES_H
#define PTED_RUNTIME_CODE_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct rt_code;
struct shape;

/* The mutable buffers of a method. */
struct rt_code_states {
    uint32_t count;
    uint32_t *regs;   /* by buffer: its register, if the code has statements */
    bool *is_written; /* by buffer */
    bool are_own;     /* no other method has them: what this one never reads, it need not write */
};

/* Call behind rt_code_unify(). Code of several statements, and code whose buffers are no such
 * caches, stays as it is. |input_count|: of the method; all must be tensors or nothing. */
MUST_CHECK enum status rt_code_find_caches(struct rt_code *code, uint32_t input_count,
                                           struct rt_code_states *states, struct error *err);

/* A cache that is an input of the method and, with the rows of the call behind it, a result. */
struct rt_code_cache {
    uint32_t input, result;
    const struct shape *shape; /* of the buffer that takes its place; NULL: no cache, but something
                                  that is the result as it is the input, and that nobody reads */
};

/*
 * Does the same for the only block of an imported method without mutable buffers. |*out_is_found|:
 * the |caches| are no inputs and results any more. Behind its other inputs the method has a further
 * one, int64 [1], the rows of all caches before the call. |states|, of as many buffers as caches
 * with a shape, is filled. False: the code is of no use any more.
 */
MUST_CHECK enum status rt_code_find_growing(struct rt_code *code,
                                            const struct rt_code_cache *caches, uint32_t count,
                                            struct rt_code_states *states, bool *out_is_found,
                                            struct error *err);

#endif
