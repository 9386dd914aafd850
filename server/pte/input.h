/* SPDX-License-Identifier: MIT */
/* Inputs of `pte run`: from files, from JSON text, or a fixed pattern. One thread. */
#ifndef PTED_SERVER_PTE_INPUT_H
#define PTED_SERVER_PTE_INPUT_H

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/program/program.h"

struct rt_invocation;

/* "2x3x4"; an empty text is rank 0. */
MUST_CHECK enum status pte_input_parse_dims(const char *text, struct shape *out_shape,
                                            struct error *err);

/*
 * |text| is FILE.npy, FILE.bin (with the declared shape), FILE.bin:2x3 or JSON, and becomes input
 * |index|. |shape| is the shape that a tensor must have, or NULL; |out_shape| receives the one that
 * it has.
 */
MUST_CHECK enum status pte_input_set(struct rt_invocation *invocation, uint32_t index,
                                     const char *text, const struct shape *shape,
                                     struct shape *out_shape, struct error *err);

/*
 * Values that depend on the position alone; fixed scalars keep their value. |shape|: of a tensor.
 */
MUST_CHECK enum status pte_input_fill(struct rt_invocation *invocation, uint32_t index,
                                      const struct shape *shape, struct error *err);

/* Stores |value| as element |i| of the |dtype|, which a request may have. */
void pte_input_store(void *memory, enum dtype dtype, size_t i, double value);

#endif
