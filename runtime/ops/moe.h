/* SPDX-License-Identifier: MIT */
/* What the operators of mixtures of experts and the lower pass know of each other. */
#ifndef PTED_RUNTIME_OPS_MOE_H
#define PTED_RUNTIME_OPS_MOE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops/torchao.h"

/* Sizes and counts: the sum of a row's 8-bit products has to fit 32 bits. */
#define RT_MOE_MAX UK_DEPTH_U8_MAX

/*
 * Arguments of "moe_ffn", which ExecuTorch calls llama::quantized_moe_ffn
 * (extension/llm/custom_ops/op_moe.h). For a row x it is
 *
 *     s = gate x, perhaps sigmoid(s)
 *     of the experts with the largest s, plus their bias: the sum of f_e * down_e (silu(a) * b)
 *     where a, b are the upper and the lower half of up_e x
 *
 * The factors f are s / sum(s) * scale for "sigmoid", and for "softmax" the softmax over the
 * experts that are chosen. Inputs of products with |up| and |down| are rounded to 8 bits, row by
 * row.
 */
enum rt_moe_arg {
    RT_MOE_X,    /* f32 [rows, dim] */
    RT_MOE_GATE, /* f32 [experts, dim] */
    RT_MOE_BIAS, /* f32 [experts], or without elements */
    RT_MOE_UP,   /* u8 [experts, bytes]: packed [2 * hidden, dim] each; see torchao.h */
    RT_MOE_DOWN, /* u8 [experts, bytes]: packed [dim, hidden] each */
    RT_MOE_CHOSEN,
    RT_MOE_EXPERTS,
    RT_MOE_HIDDEN,
    RT_MOE_DIM,
    RT_MOE_GROUP, /* weights that share a scale */
    RT_MOE_BITS,  /* of a weight: 4 or 8 */
    RT_MOE_SCORE, /* "sigmoid" or "softmax" */
    RT_MOE_SCALE,
    RT_MOE_ARGS
};

struct rt_moe {
    int64_t experts, hidden, dim, group;
    bool is_4bit;
};

static inline struct rt_torchao rt_moe_up(const struct rt_moe *moe)
{
    return (struct rt_torchao){2 * moe->hidden, moe->dim, moe->group, moe->is_4bit};
}

static inline struct rt_torchao rt_moe_down(const struct rt_moe *moe)
{
    return (struct rt_torchao){moe->dim, moe->hidden, moe->group, moe->is_4bit};
}

/* Panels of an expert's matrix of so many rows. |is_gated|: two for each panel of half of them. */
int64_t rt_moe_panels(int64_t rows, bool is_gated);

#endif
