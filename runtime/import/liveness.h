/* SPDX-License-Identifier: MIT */
/*
 * Which plan values somebody still reads, so that only those survive the end of a block. An upper
 * bound, from one look at the instructions: a value that each stretch without jumps writes before
 * it reads it is not needed beyond; any other is kept up to its last read, or to the end of the
 * loops around that.
 */
#ifndef PTED_RUNTIME_IMPORT_LIVENESS_H
#define PTED_RUNTIME_IMPORT_LIVENESS_H

#include "base/arena.h"
#include "base/status.h"
#include "runtime/pte/pte.h"

struct rt_liveness {
    uint32_t *first;    /* by value, and one behind: where its reads begin in |reads| */
    uint32_t *reads;    /* positions of instructions, ascending for each value */
    uint32_t *last;     /* by value: the last position where it is needed, loops considered */
    bool *is_exposed;   /* by value: some stretch reads it before writing it */
    bool *is_written;   /* by value: an input, or some instruction writes it */
    bool *is_result;    /* by value: needed at the end */
    uint32_t *written;  /* by value, if it is: the first instruction that does so; 0 for inputs */
    uint32_t *loop_end; /* by position: the end of the outermost loop around it, or itself */
    bool *is_target;    /* by position, and one behind: something jumps there */
    uint32_t *end;      /* by position: where its stretch without jumps ends */
    bool has_jumps;
    bool has_backward_jumps;
};

/* All storage from |arena|. */
MUST_CHECK enum status rt_liveness_make(struct rt_liveness *live, const struct pte_plan *plan,
                                        struct arena *arena, struct error *err);

/* Is the content that |value| has before instruction |position| read there or later? */
bool rt_liveness_is_needed(const struct rt_liveness *live, uint32_t value, uint32_t position);

/*
 * May something have written |value| before instruction |position| runs: an input, what comes
 * earlier in the file, or what comes later in a loop around both?
 */
bool rt_liveness_may_hold(const struct rt_liveness *live, uint32_t value, uint32_t position);

/*
 * How many of a call's arguments come before those it only writes. Of operators that nobody knows,
 * and of delegates, all count as read and written.
 */
uint32_t rt_liveness_read_count(const struct pte_plan *plan, const struct pte_instr *instr);

#endif
