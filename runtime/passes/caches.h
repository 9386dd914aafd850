/* SPDX-License-Identifier: MIT */
/*
 * Caches that are written by index and read through a mask, as transformers' static cache is
 * exported, get the form of `llama::update_cache` and `llama::custom_sdpa`: they are written row by
 * row at a position that the host knows, and attention reads as far as the call has written them.
 *
 *     index_put(cache, [.., .., start + arange(n)], rows)        write_rows(cache, rows, start)
 *     bmm(softmax(bmm(q, k) + mask), v)                          attention(q, k, v, start)
 *     mask = where(arange(T) <= start + arange(n), 0, -inf)
 *
 * A buffer [1, heads, T, depth] becomes [heads, T, 1, depth]: the same memory, with its rows along
 * dim 1. A position below 0 counts from the end in the first form, and is refused in the other.
 */
#ifndef PTED_RUNTIME_PASSES_CACHES_H
#define PTED_RUNTIME_PASSES_CACHES_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* |input|: of the graph, whose only element is the position; |start|: the same as an int, which is
 * no input yet. */
struct rt_caches_found {
    uint32_t input, start;
};

#define RT_CACHES_NONE UINT32_MAX

/*
 * Inputs of |graph| from |first_state| on are mutable buffers. All of them that nodes read get the
 * new form, or none: then |out_found->input| is RT_CACHES_NONE and the graph is as it was. Behind
 * rt_pass_merge().
 */
MUST_CHECK enum status rt_pass_caches(struct rt_graph *graph, uint32_t first_state,
                                      struct rt_caches_found *out_found, struct error *err);

#endif
