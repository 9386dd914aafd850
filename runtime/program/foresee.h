/* SPDX-License-Identifier: MIT */
/*
 * What a call's registers will hold at its end, as far as the shapes of its inputs say: the steps
 * of a method are walked over sizes, and nothing runs. What is read from a tensor is not known, nor
 * what follows from that; with jumps a register is known when all that writes it agrees. ST_INVALID
 * when a block that runs in every call, one before the first jump, refuses sizes that are known.
 * Any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_FORESEE_H
#define PTED_RUNTIME_PROGRAM_FORESEE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shape.h"
#include "base/status.h"

struct rt_method;

struct rt_foreseen {
    struct shape shape;  /* of a tensor; a dim that is not known is at most that */
    uint32_t known_dims; /* bit d: dim d of |shape| is known */
    int64_t number;      /* of an int */
    bool is_written;     /* false: nothing that could run writes it */
    bool is_known;       /* of an int */
};

/* |inputs| by raw index, NULL where the method takes no tensor; |out| by register of its code. */
MUST_CHECK enum status rt_foresee(const struct rt_method *method, const struct shape *const *inputs,
                                  struct rt_foreseen *out, struct error *err);

#endif
