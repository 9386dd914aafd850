/* SPDX-License-Identifier: MIT */
/* The inside of states: the slots of a program, and what an invocation does with a state. */
#ifndef PTED_RUNTIME_PROGRAM_STATE_SLOTS_H
#define PTED_RUNTIME_PROGRAM_STATE_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/refs.h"
#include "runtime/program/state.h"
#include "runtime/pte/pte.h"

struct hal_buffer;
struct hal_device;

/* A mutable buffer of a program. Immutable after loading. */
struct rt_state_slot {
    struct pte_tensor tensor;    /* of the method that has it first */
    const struct pte_plan *plan; /* that method's */
    struct hal_buffer *initial;  /* owned: the content before any call, row-major */
    bool is_written;             /* by some method: there are generations */
};

/* All slots of a program. */
struct rt_state_slots {
    struct rt_state_slot *items; /* owned */
    uint32_t count, capacity;
};

/*
 * The slot of mutable buffer |tensor| of |plan|: an existing one if another method has the buffer
 * under the same name or at the same place of a shared arena, otherwise a new one. ST_UNSUPPORTED
 * if its initial content is in a file that was not given.
 */
MUST_CHECK enum status rt_state_slots_add(struct rt_state_slots *slots, struct hal_device *device,
                                          const struct pte_plan *plan,
                                          const struct pte_tensor *tensor, bool is_written,
                                          uint32_t *out_slot, struct error *err);
void rt_state_slots_fini(struct rt_state_slots *slots);

/* Rows [first, end) of a buffer of |rows| rows of |row_bytes|, once or more; 0 rows: all of it. */
struct rt_rows {
    int64_t rows, row_bytes, first, end;
};

#define RT_STATE_MAGIC 0x57a7e501u

struct rt_state {
    uint32_t magic;
    struct refs refs;
    atomic_bool is_busy;                /* a call of it is in flight */
    bool is_part;                       /* of a pipeline's, whose end settles what was written */
    struct rt_program *program;         /* ref held */
    const struct rt_state_slots *slots; /* the program's */
    struct hal_buffer **current;        /* by slot, owned: this generation */
    struct hal_buffer **spare;          /* by slot, owned: memory for the next one, or NULL */
    struct hal_buffer **settled;        /* by slot, owned: the generation that a call which has not
                                           ended found, once it has advanced; else NULL */
    struct rt_rows *stale;              /* by slot: where |spare| may differ from |current| */
    struct rt_rows *unsettled;          /* by slot: where |settled| may */
    struct rt_state **parts;            /* owned; of a pipeline: of each program of its steps that
                                           has mutable buffers */
    uint32_t part_count;
};

/* The part of a pipeline's state that calls of |program| share; NULL: they have none. */
struct rt_state *rt_state_part(struct rt_state *state, const struct rt_program *program);

/* Makes sure that slot |slot| has memory for the next generation. */
MUST_CHECK enum status rt_state_reserve(struct rt_state *state, uint32_t slot, struct error *err);

/*
 * A call begins; a call has ended, and its writes are kept or everything is as the call found it.
 */
void rt_state_enter(struct rt_state *state);
void rt_state_leave(struct rt_state *state, bool is_kept);

/* The spare memory of |slot| is written from now on; returns where it has differed until now. */
struct rt_rows rt_state_spoil(struct rt_state *state, uint32_t slot);

/* The spare memory of |slot| holds the next generation, which differs from the current one in
 * |written|, and becomes the current one. */
void rt_state_advance(struct rt_state *state, uint32_t slot, struct rt_rows written);

#endif
