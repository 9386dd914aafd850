/* SPDX-License-Identifier: MIT */
/* The inside of states: the cells of a program, and the functions by which an invocation uses a
 * state. */
#ifndef PTED_RUNTIME_PROGRAM_STATE_CELLS_H
#define PTED_RUNTIME_PROGRAM_STATE_CELLS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/refs.h"
#include "runtime/program/state.h"
#include "runtime/pte/pte.h"

struct hal_buffer;
struct hal_device;
struct rt_log;
struct rt_method;
struct rt_pages;

/* A mutable buffer of a program. Immutable after loading. */
struct rt_state_cell {
    struct pte_tensor tensor;    /* of the method that has it first */
    const struct pte_plan *plan; /* that method's */
    struct hal_buffer *initial;  /* owned: the content before any call, row-major */
    bool begins_zero;            /* that content is zeros, as new memory is */
    bool is_written;             /* by some method */
    bool is_replaced;            /* some method writes more than rows of it: two generations */
    bool is_int8;                /* its rows are in 8 bits (runtime/load/cells_int8.h) */
    bool is_other;               /* some method has it in another way than in such rows */
    const char *not_int8;        /* what that method does with it, where that is known; static */
};

/* All cells of a program. */
struct rt_state_cells {
    struct rt_state_cell *items; /* owned */
    uint32_t count;
    size_t capacity;
};

/*
 * Adds the cell of mutable buffer |tensor| of |plan|: an existing one if another method has the
 * buffer under the same name or at the same place of a shared memory of the file, otherwise a new
 * one. ST_UNSUPPORTED if its initial content is in a file that was not given.
 */
MUST_CHECK enum status rt_state_cells_add(struct rt_state_cells *cells, struct hal_device *device,
                                          const struct pte_plan *plan,
                                          const struct pte_tensor *tensor, bool is_written,
                                          uint32_t *out_cell, struct error *err);
void rt_state_cells_fini(struct rt_state_cells *cells);

/* Rows [first, end) of a buffer of |rows| rows of |row_bytes|, once or more; 0 rows: all of it;
 * RT_ROWS_NONE: nothing of it. */
struct rt_rows {
    int64_t rows, row_bytes, first, end;
};

#define RT_ROWS_NONE (-1)

/* Returns rows that hold both |a| and |b|. */
struct rt_rows rt_rows_join(struct rt_rows a, struct rt_rows b);

#define RT_STATE_MAGIC 0x57a7e501u

struct rt_state {
    uint32_t magic;
    struct refs refs;
    atomic_bool is_busy; /* a call of it is in flight */
    /* of a pipeline's state; the end of the pipeline's call settles its writes */
    bool is_part;
    struct rt_program *program;         /* ref held */
    const struct rt_state_cells *cells; /* the program's */
    struct hal_buffer **current;        /* by cell, owned: this generation */
    struct hal_buffer **spare;          /* by cell, owned: memory for the next one, or NULL */
    struct hal_buffer **shared;         /* by cell, owned: the generation that others may hold, too,
                                           and nobody writes; else NULL */
    struct hal_buffer **settled;        /* by cell, owned: the generation that a call which has not
                                           ended found, once it has advanced; else NULL */
    struct rt_rows *stale;              /* by cell: where |spare| may differ from |current| */
    struct rt_rows *unsettled;          /* by cell: where |settled| may */
    struct rt_rows *touched;            /* by cell: where |current| may differ from the initial
                                           content */
    struct rt_rows *paged;  /* by cell: rows at its beginning; the whole pages in which they lie
                               are |pages|, and so is the content of |current| there */
    struct rt_pages *pages; /* owned: what other states may have, too; or NULL */
    uint32_t made_count;    /* how many of |pages|, from above, have rows that this state wrote */
    size_t made_bytes;      /* of these */
    pthread_mutex_t
        lending; /* guards |pages|, |paged| and made_... of a state that gets no calls */
    const struct rt_state_account *account; /* borrowed, or NULL */
    size_t growth;                          /* what the call in flight has charged for cells */
    bool *is_overwritten;    /* by cell: the call in flight writes |current| itself */
    struct hal_buffer *log;  /* owned: of what it has overwritten; or NULL */
    struct rt_state **parts; /* owned; of a pipeline: of each program of its steps that
                                has mutable buffers */
    uint32_t part_count;
};

/* Returns the sum, or SIZE_MAX. */
static inline size_t rt_add_or_max(size_t a, size_t b)
{
    size_t sum;
    return add_size(a, b, &sum) ? sum : SIZE_MAX;
}

/* Returns the bytes of |cell| if |rows| of it have been written and nothing else has: whole
 * pages. */
size_t rt_state_rows_bytes(const struct rt_state_cell *cell, struct rt_rows rows);

/* Returns the bytes of one generation of |cell| that |state| has for itself. */
size_t rt_state_cell_bytes(const struct rt_state *state, uint32_t cell);

/* Charges for a call in flight that may bring the cells to |bytes| more than they have had, and
 * next reserves |log_bytes| of logs (rt_state_reserve_log()): the account may refuse that. */
MUST_CHECK enum status rt_state_charge(struct rt_state *state, size_t bytes, size_t log_bytes,
                                       struct error *err);

/* Returns the part of a pipeline's state that calls of |program| share; NULL: they have none. */
struct rt_state *rt_state_part(struct rt_state *state, const struct rt_program *program);

/* Makes sure that cell |cell| has memory for the next generation. */
MUST_CHECK enum status rt_state_reserve(struct rt_state *state, uint32_t cell, struct error *err);

/*
 * Opens memory for the next generation of |cell|, borrowed. If |may_overwrite| and nobody else may
 * hold the memory of the current one, it is that. The call then logs what it overwrites
 * (rt_state_log()), or rt_state_leave() cannot undo it. ST_EXHAUSTED.
 */
MUST_CHECK enum status rt_state_open(struct rt_state *state, uint32_t cell, bool may_overwrite,
                                     struct hal_buffer **out_target, struct error *err);

/* Makes room for logs of |bytes|, each a multiple of 16. */
MUST_CHECK enum status rt_state_reserve_log(struct rt_state *state, size_t bytes,
                                            struct error *err);

/* Returns the next log of |bytes|, as |like| describes it, of an update of |cell|. */
struct rt_log *rt_state_log(struct rt_state *state, uint32_t cell, const struct rt_log *like,
                            size_t bytes);

/* Returns which of |rows| rows of |row_bytes| of |cell| may have another content than the initial
 * one. */
struct rt_rows rt_state_touched(const struct rt_state *state, uint32_t cell, int64_t rows,
                                int64_t row_bytes);

/* Everything that the call has overwritten gets its old content back. And: it stays. One of them at
 * the end of a call; both by rt_state_leave(). */
void rt_state_undo(struct rt_state *state);
void rt_state_forget(struct rt_state *state);
void rt_state_drop_logs(struct rt_state *state);
size_t rt_state_log_bytes(const struct rt_state *state);
/* Returns by how much rt_state_reserve_log() of |bytes| would make that more. */
size_t rt_state_log_growth(const struct rt_state *state, size_t bytes);

/* ---- runtime/program/state_pages.c ---- */

/* |state| has just got the content of |from|, and wants the first |rows| rows: the two have them in
 * common from now on, as far as they are whole pages. The rest is copied, if its account pays for
 * that. */
void rt_state_borrow(struct rt_state *state, struct rt_state *from, int64_t rows);

/* Returns the bytes of the pages of |cell| that have rows before |end| and that |state| does not
 * count. */
size_t rt_state_paged_bytes(const struct rt_state *state, uint32_t cell, int64_t end);

/* Call when a call has written |written|, or something at |offset| and behind it in all blocks:
 * these pages are |state|'s own from now on. */
void rt_state_own(struct rt_state *state, uint32_t cell, struct rt_rows written);
void rt_state_own_from(struct rt_state *state, uint32_t cell, size_t offset);

void rt_pages_unref(struct rt_pages *pages); /* NULL is fine */

/* Makes the program of part |index| of a pipeline, if that is the first part that has it; else
 * NULL. */
struct rt_program *rt_state_new_part(const struct rt_method *method, uint32_t index);

/*
 * Call when a call begins; when a call has ended, and its writes are kept or everything is as the
 * call found it.
 */
void rt_state_enter(struct rt_state *state);
void rt_state_leave(struct rt_state *state, bool is_kept);

/* Call before the spare memory of |cell| is written; returns where it has differed until now. */
struct rt_rows rt_state_spoil(struct rt_state *state, uint32_t cell);

/* Call when the spare memory of |cell|, or the memory that rt_state_open() has given, holds the
 * next generation, which differs from the current one in |written|, and becomes the current one. */
void rt_state_advance(struct rt_state *state, uint32_t cell, struct rt_rows written);

#endif
