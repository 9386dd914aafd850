/* SPDX-License-Identifier: MIT */
/*
 * Tensors that a call hands on to the next one. Some exporters have no mutable buffers: a cache is
 * an input and, with what the call adds, a result, which the caller gives to the next call. Here
 * such inputs become mutable buffers, so that states, sequences and joined steps work for them as
 * for other programs, and the cache is never copied from a result to an input.
 *
 * Two kinds are known. A cache of a fixed size: input and result have the same dims. A cache that
 * grows: they differ in one dim, the rows, of which the result has more, behind those of the input.
 * The buffer of such a cache has as many rows as the input may have. The method gets a further
 * input, behind all others: the rows that the caches have before the call, int64 [1].
 *
 * The plan is rewritten before it is imported: the inputs and results go, and instructions that cut
 * the rows out of the buffer, and write the new ones into it, come. Caches that grow and that only
 * attention reads need no such instructions: then the file's own plan is imported, and its graph is
 * changed (runtime/code/caches.h).
 */
#ifndef PTED_RUNTIME_LOAD_CARRY_H
#define PTED_RUNTIME_LOAD_CARRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

struct pte_plan;
struct pte_tensor;
struct rt_carries;

/* A cache of a plan, and what holds it in the rewritten one. */
struct rt_carried_cache {
    uint32_t input, result; /* of the plan as the file has it */
    const struct pte_tensor *buffer;
    bool grows; /* in dim 2 of 4 */
};

struct rt_carried {
    const struct pte_plan *plan; /* rewritten */
    struct rt_carried_cache *caches;
    uint32_t count;
    /* Some grow, all others are results as they are inputs (counters of a class of caches), and the
     * description has all results of the method. */
    bool may_grow;
};

/*
 * |out->plan| is |plan| with buffers for |carries|; it borrows from |plan|, and everything lives in
 * |arena|. ST_INVALID: they do not fit |plan|. ST_UNSUPPORTED: a cache of neither kind.
 */
MUST_CHECK enum status rt_carry_apply(const struct pte_plan *plan, const struct rt_carries *carries,
                                      struct arena *arena, struct rt_carried *out,
                                      struct error *err);

#endif
