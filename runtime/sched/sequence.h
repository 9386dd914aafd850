/* SPDX-License-Identifier: MIT */
/*
 * Sequences: rows of requests to one program that share its mutable buffers
 * (runtime/program/state.h). A sequence has an id of the client's, a number or a name, which is
 * known within its program only: all methods of a program see the same sequence, and two sequences
 * never see each other. The first request of a sequence says so; a request for a sequence that is
 * not there is refused, because its state has been lost. A request that starts an open sequence
 * begins it anew. The last request of a sequence says so, too, and frees the state when it has run;
 * the state of a sequence that has been idle for too long is freed as well.
 *
 * When there is no room for a new sequence, an idle one gives way: one with only one request so
 * far, or one of a client or of a model that holds more than the newcomer's would then. So one
 * client has all sequences as long as nobody else wants any, and others find room beside it.
 * Sequences of single requests count as those of a model of their own: they find room beside the
 * sequences that clients name.
 *
 * The memory of a state grows with its rows, call by call. A call that finds none left, also when
 * idle sequences have given way, fails and leaves its state as it was.
 *
 * A request holds the sequence from rt_sequences_open() to rt_sequence_close(); its job runs in the
 * sequence's lane, so that they follow each other. Any thread.
 */
#ifndef PTED_RUNTIME_SCHED_SEQUENCE_H
#define PTED_RUNTIME_SCHED_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/sched/sched.h"

struct rt_prefixes;
struct rt_program;
struct rt_sequence;
struct rt_sequences;
struct rt_state;
struct share_stats;

struct rt_sequences_options {
    uint32_t count_max;
    size_t bytes_max;        /* of all states, by what each has */
    size_t prefix_bytes_max; /* of states that are kept when they have ended; part of |bytes_max| */
    uint64_t idle_ns;        /* after which a sequence that nobody holds is forgotten */
    uint64_t (*clock)(void); /* ns, monotone */
};

#define RT_SEQUENCE_NAME_MAX 128

struct rt_sequence_key {
    struct rt_program *program; /* borrowed */
    uint64_t number;            /* with an empty |name| */
    struct span name;
    /* What follows does not tell sequences apart. */
    uint64_t client;    /* who holds it, as a number of base/share.h */
    bool is_of_request; /* one request holds it from its begin to its end */
};

MUST_CHECK enum status rt_sequences_new(const struct rt_sequences_options *options,
                                        struct rt_sequences **out_sequences, struct error *err);
void rt_sequences_free(struct rt_sequences *sequences); /* nobody holds one; NULL is fine */

/*
 * Opens the sequence |key|, which the caller holds until it closes it; new when |is_start|.
 * ST_INVALID when it is not there and has not been started; ST_TOO_LARGE for a name, or for a state
 * that is larger than all may have; ST_EXHAUSTED when there are too many.
 */
MUST_CHECK enum status rt_sequences_open(struct rt_sequences *sequences,
                                         const struct rt_sequence_key *key, bool is_start,
                                         struct rt_sequence **out_sequence, struct error *err);

/* Is the sequence |key| open? */
bool rt_sequences_has(struct rt_sequences *sequences, const struct rt_sequence_key *key);

/* Returns the open sequences of |program|. It looks at the sequences of all programs. */
uint32_t rt_sequences_count(struct rt_sequences *sequences, const struct rt_program *program);

/* Ends all sequences of |program|; their last holders free their states. */
void rt_sequences_end_all(struct rt_sequences *sequences, const struct rt_program *program);

struct rt_state *rt_sequence_state(struct rt_sequence *sequence);
struct rt_sched_lane *rt_sequence_lane(struct rt_sequence *sequence);

/* Call when the last request has run: the id is free, and the last holder's close frees the
 * state. */
void rt_sequence_end(struct rt_sequence *sequence);

/* NULL is fine. */
void rt_sequence_close(struct rt_sequence *sequence);

/* Sequences that exist now, and the bytes of their states. */
struct rt_sequences_load {
    uint32_t count;
    size_t bytes;
    uint64_t displaced_count; /* sequences that have given way so far */
};

struct rt_sequences_load rt_sequences_load(struct rt_sequences *sequences);

/* Counts by client how many sequences each holds, and the bytes of their states. */
void rt_sequences_stats(struct rt_sequences *sequences, struct share_stats *out_counts,
                        struct share_stats *out_bytes);

/* Has it no room for one more sequence of |program|, also when idle ones have given way? */
bool rt_sequences_is_full_for(struct rt_sequences *sequences, struct rt_program *program);

/* Returns the bytes of the states of |client|, a number of base/share.h. */
uint64_t rt_sequences_held_bytes(struct rt_sequences *sequences, uint64_t client);

/* States that are kept; they have the same idle time, and give way to sequences. */
struct rt_prefixes *rt_sequences_prefixes(struct rt_sequences *sequences);

/* Ends sequences that were idle for too long, and drops such states. Returns when to call again, or
 * RT_SCHED_NEVER. */
uint64_t rt_sequences_expire(struct rt_sequences *sequences);

#endif
