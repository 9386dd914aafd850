/* SPDX-License-Identifier: MIT */
/*
 * State: the content of a program's mutable buffers (counters, KV caches) between calls. A struct
 * rt_state is all of it for one sequence of calls. Callers make as many as they need, and states
 * never see each other.
 *
 * Buffers that several methods share, by name or by their place in a shared memory of the file, are
 * one cell of the program. If a call succeeds the state advances; if it fails or is cancelled the
 * state stays as it was. A call that writes only some rows of a buffer writes them where they are,
 * and what they overwrite is logged until the call has ended. Otherwise a cell is generational: a
 * call reads generation g and writes g + 1 beside it. A buffer that no call has written yet is the
 * program's own initial content and is not copied; if that is zeros, neither are rows that no call
 * has written.
 *
 * The state of a pipeline has the states of its steps as parts. Steps of one program share one part
 * and follow each other; their writes are kept if the whole call succeeds, and dropped otherwise.
 *
 *     rt_state_new               initial contents
 *     rt_invocation_set_state    before rt_invocation_prepare(); without it a call sees initial
 *                                contents, and its writes are dropped with it
 *     rt_state_unref
 *
 * At most one call of a state is in flight (asserted): the caller submits the next one after |done|
 * of the last. Otherwise any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_STATE_H
#define PTED_RUNTIME_PROGRAM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct rt_program;
struct rt_state;

/* Returns the most memory that one state of |program| takes, all generations; 0: the program has no
 * mutable buffers and needs no states. */
size_t rt_program_state_bytes(struct rt_program *program);

/* Returns the part of it that a state takes before its first call. A buffer of which calls write
 * some rows takes memory by pages, as rows are written; others take all of it. */
size_t rt_program_state_bytes_least(struct rt_program *program);

/* What pays for the memory of a state. Any thread. */
struct rt_state_account {
    /* The state may soon have |bytes|: it does, or ST_EXHAUSTED. */
    enum status (*charge)(const struct rt_state_account *account, size_t bytes, struct error *err);
    /* A call has ended, and the state has |bytes|: what was charged beyond that is given back. */
    void (*settle)(const struct rt_state_account *account, size_t bytes);
};

/* Borrowed; NULL: nobody pays. No call of the state is in flight. */
void rt_state_set_account(struct rt_state *state, const struct rt_state_account *account);

/* Returns the bytes of memory that |state| has. Content that it shares with another state is not
 * counted. */
size_t rt_state_bytes(const struct rt_state *state);

/* Makes a state, which keeps its program alive. The caller owns a reference. */
MUST_CHECK enum status rt_state_new(struct rt_program *program, struct rt_state **out_state,
                                    struct error *err);
struct rt_state *rt_state_ref(struct rt_state *state);
void rt_state_unref(struct rt_state *state); /* NULL is fine */

#define RT_STATE_ALL_ROWS INT64_MAX

/*
 * Copies on write. |state|, which no call has had, gets the content of |from|, which gets no calls
 * any more. Of a positional state (rt_method_is_positional()) the first |rows| positions are
 * enough: others are neither copied nor paid for. Both hold the same memory: rows of large buffers
 * by pages, until |state| writes a page; other buffers as a whole, until a call of |state| writes.
 * That call copies what was written before, except what it writes itself. It may take long the
 * first time that |from| is shared: its rows are moved to memory that can be.
 */
void rt_state_share(struct rt_state *state, struct rt_state *from, int64_t rows);

/* Frees memory for next generations: |state| gets no calls any more. Returns the bytes of its
 * content. Initial contents are not counted, nor are pages that it has from another state; buffers
 * that it shares as a whole are. */
size_t rt_state_trim(struct rt_state *state);

/*
 * Pages that |state| has made and that other states have, too, last as long as one of them: the
 * bytes of |state| that would not be free without it. SIZE_MAX: somebody else has a reference to
 * it, and may get all of it.
 */
size_t rt_state_lent_bytes(struct rt_state *state);

/* Frees all but these. |state|, to which nobody else has a reference, is not used any more, except
 * for rt_state_lent_bytes(). */
void rt_state_retire(struct rt_state *state);

/* Returns the bytes that calls may have written and that differ from untouched memory: the memory
 * that one generation really takes. */
size_t rt_state_touched_bytes(const struct rt_state *state);

/* Has the last call written rows [first, end) of each buffer that was ever written, and no others?
 * False if that is not known. */
bool rt_state_wrote(const struct rt_state *state, int64_t first, int64_t end);

#endif
