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
 * So do caches that grow, as its default is exported. There |before| has |start| rows, and T is
 * start + n:
 *
 *     cat([before, rows], 2)                                     write_rows(cache, rows, start)
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

/* The dim of a cache [1, heads, rows, depth] that has its rows. */
#define RT_CACHES_ROWS 2

/* Caches that grow, by mutable buffer: values of a graph in which no node reads or writes the
 * buffers yet. */
struct rt_caches_growing {
    const uint32_t *before; /* the rows that are there, [1, heads, rows, depth]; no input is it */
    const uint32_t *after;  /* the same with those of the call, an output of the graph */
    struct rt_dim rows;     /* of each |before|: a symbol */
    uint32_t input;         /* of the graph, whose only element is that number */
};

/*
 * Inputs of |graph| from |first_state| on are mutable buffers. All of them that nodes read get the
 * new form, or none: then |out_found->input| is RT_CACHES_NONE and the graph is as it was. Behind
 * rt_pass_merge(). |growing|: NULL if the buffers are written by index.
 */
MUST_CHECK enum status rt_pass_caches(struct rt_graph *graph, uint32_t first_state,
                                      const struct rt_caches_growing *growing,
                                      struct rt_caches_found *out_found, struct error *err);

#endif
