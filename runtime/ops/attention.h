/* SPDX-License-Identifier: MIT */
/* What the kernel of attention.c is told. */
#ifndef PTED_RUNTIME_OPS_ATTENTION_H
#define PTED_RUNTIME_OPS_ATTENTION_H

#include "base/dtype.h"

/* Bounds the scratch of a worker. */
#define RT_ATTENTION_DEPTH_MAX 4096
/* The same of a workgroup's memory. */
#define RT_ATTENTION_SHADER_DEPTH_MAX 1024

struct rt_attention {
    int64_t queries, rows; /* rows of keys: those that are used end with the queries, or here */
    int64_t kv_heads, group, depth;
    int64_t q_seq, q_head, q_batch;    /* elements from one to the next, the output's too */
    int64_t kv_seq, kv_head, kv_batch; /* of keys and values */
    int64_t start;                     /* unless binding 5 has it */
    int64_t mask_row;                  /* floats from one query's to the next */
    int64_t block;                     /* rows of a tile: queries times the heads of a group */
    float scale;
    uint32_t is_causal, has_mask;
    enum dtype in, out;
};

#endif
