/* SPDX-License-Identifier: MIT */
/* The pass runtime/passes/caches.h for a method: its position becomes a number that the host reads,
 * so its code is no longer one block. */
#ifndef PTED_RUNTIME_CODE_CACHES_H
#define PTED_RUNTIME_CODE_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct rt_code;

/* The mutable buffers of a method. */
struct rt_code_states {
    uint32_t count;
    uint32_t *regs;   /* by buffer: its register, if the code has statements */
    bool *is_written; /* by buffer */
    bool are_own;     /* no other method has them: what this one never reads, it need not write */
};

/* Behind rt_code_unify(). Code of several statements, and code whose buffers are no such caches,
 * stays as it is. |input_count|: of the method; all must be tensors or nothing. */
MUST_CHECK enum status rt_code_find_caches(struct rt_code *code, uint32_t input_count,
                                           struct rt_code_states *states, struct error *err);

#endif
