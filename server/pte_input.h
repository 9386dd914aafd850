/* SPDX-License-Identifier: MIT */
/*
 * Inputs of `pte run`: from files, from JSON text, or a fixed pattern. One thread.
 */
#ifndef PTED_SERVER_PTE_INPUT_H
#define PTED_SERVER_PTE_INPUT_H

#include "base/status.h"
#include "runtime/program/program.h"

struct rt_invocation;

/* "2x3x4"; nothing is rank 0. */
MUST_CHECK enum status pte_input_parse_dims(const char *text, struct shape *out_shape,
                                            struct error *err);

/*
 * |text| is FILE.npy, FILE.bin (the declared shape), FILE.bin:2x3 or JSON, and becomes input
 * |index|. |shape|, of a tensor, is the shape that it has to have, or NULL; |out_shape| the one
 * that it has.
 */
MUST_CHECK enum status pte_input_set(struct rt_invocation *invocation, uint32_t index,
                                     const char *text, const struct shape *shape,
                                     struct shape *out_shape, struct error *err);

/* Values that depend on nothing but the position; fixed scalars stay. |shape| is of a tensor. */
MUST_CHECK enum status pte_input_fill(struct rt_invocation *invocation, uint32_t index,
                                      const struct shape *shape, struct error *err);

#endif
