/* SPDX-License-Identifier: MIT */
/*
 * Prefixes: states of generations that have ended, kept because a later prompt may begin with the
 * same tokens. The next turn of a chat does, and so does a prompt with the same instructions. It
 * then shares the state (rt_state_share()) and computes only what is new.
 *
 * A kept state is found by its method, its owner and its tokens. From a positional state
 * (rt_method_is_positional()) any beginning can be used, from another state only all of its tokens.
 * At the limits of bytes and of number a state gives way that has not been used for longest, of
 * those whose client is the same or has more of them than the newcomer's would have. If none does,
 * the newcomer is not kept. So one client does not push out what others have left, and a client
 * that is alone may have all. A state that has not been used for |idle_ns| goes, too, and sequences
 * (runtime/sched/sequence.h) take the memory that they need. A method whose model is replaced is
 * closed: its states go, and no new ones are kept.
 *
 * Pages of a kept state that others have, too, count once: here and for its client, also when it
 * has been dropped, as long as a state has them. As long as somebody who found it has a reference,
 * all of it counts. A state of which others have most stays when memory is needed.
 *
 * Any thread. States are freed by the thread that displaces them.
 */
#ifndef PTED_RUNTIME_SCHED_PREFIX_H
#define PTED_RUNTIME_SCHED_PREFIX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct rt_method;
struct rt_prefixes;
struct rt_state;
struct share_stats;

#define RT_PREFIX_OWNER_MAX 128

/* Fewer tokens than that in common are not worth a place: computing them takes one step, too. */
#define RT_PREFIX_TOKENS_MIN 8

/* States that are kept at a time: a search goes through all of them with the lock held, and states
 * of a few bytes would be too many within |bytes_max|. */
#define RT_PREFIX_COUNT_MAX 1024

struct rt_prefixes_options {
    size_t bytes_max; /* of all kept states with their tokens; 0: none is kept */
    uint64_t idle_ns;
    uint64_t (*clock)(void); /* ns, monotone */
};

struct rt_prefix_key {
    const struct rt_method *method; /* borrowed; a kept state keeps its program alive */
    /* other owners do not find it. Up to RT_PREFIX_OWNER_MAX bytes; longer names keep nothing */
    const char *owner;
    const uint32_t *tokens;
    uint32_t count;
    uint64_t client; /* who is charged for what is kept, a number of base/share.h */
};

MUST_CHECK enum status rt_prefixes_new(const struct rt_prefixes_options *options,
                                       struct rt_prefixes **out_prefixes, struct error *err);
void rt_prefixes_free(struct rt_prefixes *prefixes); /* NULL is fine */

/*
 * |state| has had the tokens of |key|, and gets no calls any more. The caller keeps its reference.
 * Nothing is kept if |*is_closed|, if there is no memory, if the state is larger than all may be,
 * or if no other state gives way. A state whose tokens another one begins with is not kept beside
 * it, if both are positional.
 */
void rt_prefixes_keep(struct rt_prefixes *prefixes, const struct rt_prefix_key *key,
                      struct rt_state *state, bool is_positional, const atomic_bool *is_closed);

/*
 * Returns the state that has most tokens at the beginning of |key|, but not all of them: the last
 * one is left for a call. Returns the number of tokens, and a reference in |out_state|; 0: there is
 * none. |*out_has_more|: the state has had other tokens behind them, and is positional.
 */
uint32_t rt_prefixes_find(struct rt_prefixes *prefixes, const struct rt_prefix_key *key,
                          struct rt_state **out_state, bool *out_has_more);

/* Sets |*is_closed|, and drops all states of |method|. */
void rt_prefixes_close(struct rt_prefixes *prefixes, const struct rt_method *method,
                       atomic_bool *is_closed);

/* Drops states until they have |bytes| or less. Returns the bytes that are left: more, if they
 * cannot be freed because of states that are in use. */
size_t rt_prefixes_shrink(struct rt_prefixes *prefixes, size_t bytes);

/* Frees what nobody has any more of dropped states. */
void rt_prefixes_sweep(struct rt_prefixes *prefixes);

/* Drops states that were idle for too long. Returns when to call again, or RT_SCHED_NEVER. */
uint64_t rt_prefixes_expire(struct rt_prefixes *prefixes);

struct rt_prefixes_load {
    uint32_t count;
    size_t bytes; /* with those of dropped states that others have */
};

struct rt_prefixes_load rt_prefixes_load(struct rt_prefixes *prefixes);

/* Counts bytes, by client. Taken back: states that gave way. Refused: states that were not kept,
 * because none did. */
void rt_prefixes_stats(struct rt_prefixes *prefixes, struct share_stats *out_bytes);

#endif
