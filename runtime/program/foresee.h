/* SPDX-License-Identifier: MIT */
/*
 * The content of a call's registers at its end, as far as the shapes of its inputs decide it. The
 * statements of a method are walked over sizes, and nothing runs. A number that is read from a
 * tensor is unknown, and so is everything that follows from it. With jumps a register is known if
 * all statements that write it agree. ST_INVALID if a block that runs in every call, one before the
 * first jump, refuses known sizes. Any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_FORESEE_H
#define PTED_RUNTIME_PROGRAM_FORESEE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shape.h"
#include "base/status.h"

struct rt_method;

struct rt_foreseen {
    struct shape shape;  /* of a tensor; an unknown dim is at most this */
    uint32_t known_dims; /* bit d: dim d of |shape| is known */
    int64_t number;      /* of an int */
    bool is_written;     /* false: no statement that could run writes it */
    bool is_known;       /* of an int */
};

/* |inputs| by raw index, NULL where the method takes no tensor; |out| by register of its code. */
MUST_CHECK enum status rt_foresee(const struct rt_method *method, const struct shape *const *inputs,
                                  struct rt_foreseen *out, struct error *err);

#endif
