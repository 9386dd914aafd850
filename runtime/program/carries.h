/* SPDX-License-Identifier: MIT */
/* Which tensors a call hands on to the next one, for programs that have them as inputs and results.
 * They become mutable buffers when the program is loaded: runtime/load/carry.h. */
#ifndef PTED_RUNTIME_PROGRAM_CARRIES_H
#define PTED_RUNTIME_PROGRAM_CARRIES_H

#include <stdint.h>

/* Result |result| of a call is input |input| of the next one. */
struct rt_carry {
    uint32_t input, result;
};

struct rt_carries {
    const struct rt_carry *items;
    uint32_t count;
    uint32_t result_count; /* that |result| counts; further ones of the file come before them */
    int64_t rows; /* of caches of rank 4 whose dim 2 varies but does not grow; 0: the upper bound */
};

#endif
