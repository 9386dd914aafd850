/* SPDX-License-Identifier: MIT */
/* Attention of one query over a long cache, cut along the cache: see attention_parts.c. */
#ifndef PTED_RUNTIME_OPS_ATTENTION_PARTS_H
#define PTED_RUNTIME_OPS_ATTENTION_PARTS_H

#include <math.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/attention.h"

/* Up to so many heads of one query share keys that are not packed for a matrix product: packing
 * would cost more than it saves. */
#define RT_ATTENTION_FEW 11

/* Without a mask or a start these are absent. */
struct rt_attention_tensors {
    struct hal_binding out, q, k, v, mask, start;
    enum dtype kv; /* of k and v; DT_I8: with scales */
};

/* Is this attention cut along its cache? */
bool rt_attention_has_parts(const struct rt_emit *emit, const struct rt_attention *attention);

/* |used|: the number of keys that are expected to be in use. */
MUST_CHECK enum status rt_attention_emit_parts(struct rt_emit *emit,
                                               const struct rt_attention *attention, int64_t batch,
                                               int64_t used, const struct rt_attention_tensors *t,
                                               struct error *err);

/* Of the keys [0, n), those up to the last one that the mask shows to a query; |mask| NULL: all.
 * Later keys need not be read: they add nothing, whatever they contain. */
static inline int64_t rt_attention_seen(const float *mask, int64_t mask_row, int64_t queries,
                                        int64_t n)
{
    for (bool is_seen = !mask; mask && n > 0 && !is_seen; n -= !is_seen) {
        for (int64_t i = 0; i < queries && !is_seen; i++) {
            is_seen = mask[i * mask_row + n - 1] != -INFINITY;
        }
    }
    return n;
}

#endif
