/* SPDX-License-Identifier: MIT */
/*
 * Which plan values are still read later, so that only those are kept at the end of a block. This
 * is an upper bound from one pass over the instructions: a value that each stretch without jumps
 * writes before reading is not needed after it; any other value is kept until its last read, or
 * until the end of the loops around that read.
 */
#ifndef PTED_RUNTIME_IMPORT_LIVENESS_H
#define PTED_RUNTIME_IMPORT_LIVENESS_H

#include "base/arena.h"
#include "base/status.h"
#include "runtime/pte/pte.h"

struct rt_liveness {
    uint32_t *first;    /* by value, and one more: where its reads begin in |reads| */
    uint32_t *reads;    /* positions of instructions, ascending for each value */
    uint32_t *last;     /* by value: the last position where it is needed, including loops */
    bool *is_exposed;   /* by value: some stretch reads it before writing it */
    bool *is_written;   /* by value: an input, or written by an instruction */
    bool *is_result;    /* by value: needed at the end */
    uint32_t *written;  /* by value, if written: the first instruction to do so; 0 for inputs */
    uint32_t *loop_end; /* by position: the end of the outermost loop around it, or itself */
    bool *is_target;    /* by position, and one more: target of a jump */
    uint32_t *end;      /* by position: where its stretch without jumps ends */
    bool has_jumps;
    bool has_backward_jumps;
};

/* Allocates everything from |arena|. */
MUST_CHECK enum status rt_liveness_make(struct rt_liveness *live, const struct pte_plan *plan,
                                        struct arena *arena, struct error *err);

/* Is the content that |value| has before instruction |position| read there or later? */
bool rt_liveness_is_needed(const struct rt_liveness *live, uint32_t value, uint32_t position);

/* May |value| have been written before instruction |position| runs? It is an input, or written
 * earlier in the file, or later in a loop around both. */
bool rt_liveness_may_hold(const struct rt_liveness *live, uint32_t value, uint32_t position);

/* Returns how many of a call's first arguments are read. The arguments after them are only written.
 * All arguments of unknown operators and of delegates count as both read and written. */
uint32_t rt_liveness_read_count(const struct pte_plan *plan, const struct pte_instr *instr);

#endif
