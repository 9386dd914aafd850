/* SPDX-License-Identifier: MIT */
/*
 * Caches in 8 bits: a mutable buffer of floats [batch, rows, heads, depth] that is written row by
 * row and read by attention alone becomes one of bytes [batch, rows, heads, depth + 4], as
 * "quantize_cache" makes them (runtime/ops/cache_int8.h):
 *
 *     write_rows(cache, rows, start)         write_rows(cache, quantize_cache(rows), start)
 *     attention(q, keys, values, ...)        attention_int8(q, keys, values, ...)
 */
#ifndef PTED_RUNTIME_PASSES_CACHES_INT8_H
#define PTED_RUNTIME_PASSES_CACHES_INT8_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* What nodes do with a mutable buffer. */
enum rt_cache_use {
    RT_CACHE_UNUSED,
    RT_CACHE_ROWS,  /* as above: it has been changed */
    RT_CACHE_OTHER, /* it is as it was */
};

/* A mutable buffer of a graph. */
struct rt_cache_int8 {
    uint32_t input;  /* of the graph, or RT_CACHE_NO_END: it does not read the buffer */
    uint32_t output; /* of the graph: its next content, or RT_CACHE_NO_END */
    enum rt_cache_use use;
    const char
        *why; /* of RT_CACHE_OTHER: the operator that is in the way, or other words; static */
};

#define RT_CACHE_NO_END UINT32_MAX

struct rt_caches_int8 {
    struct rt_cache_int8 *items; /* borrowed */
    uint32_t count;
};

/* It has another use than rows. The first reason stays. */
void rt_cache_int8_refuse(struct rt_cache_int8 *cache, const char *why);

/* Call behind rt_pass_lower(). Fills |use| and |why| of all buffers of the graph; those that have
 * been refused stay as they are. */
MUST_CHECK enum status rt_pass_caches_int8(struct rt_graph *graph,
                                           const struct rt_caches_int8 *caches, struct error *err);

#endif
