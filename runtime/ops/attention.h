/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of attention.c. */
#ifndef PTED_RUNTIME_OPS_ATTENTION_H
#define PTED_RUNTIME_OPS_ATTENTION_H

#include "base/dtype.h"

/* Bounds the scratch memory of a worker. */
#define RT_ATTENTION_DEPTH_MAX 4096
/* Bounds the shared memory of a workgroup. */
#define RT_ATTENTION_SHADER_DEPTH_MAX 1024

struct rt_attention {
    int64_t queries,
        rows; /* rows of keys in memory; the rows in use end with the queries, or here */
    int64_t kv_heads, group, depth;
    int64_t q_seq, q_head, q_batch;    /* elements from one to the next, in the output too */
    int64_t kv_seq, kv_head, kv_batch; /* of keys and values */
    int64_t start;                     /* unless binding 5 holds it */
    int64_t mask_row;                  /* floats from one query's row to the next */
    int64_t block;                     /* rows of a tile: queries times the heads of a group */
    float scale;
    uint32_t is_causal, has_mask;
    enum dtype in, out;
};

#endif
