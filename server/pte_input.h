/* SPDX-License-Identifier: MIT */
/*
 * Inputs of `pte run`: from files, from JSON text, or a fixed pattern. One thread.
 */
#ifndef PTED_SERVER_PTE_INPUT_H
#define PTED_SERVER_PTE_INPUT_H

#include "base/status.h"
#include "runtime/program.h"

struct rt_invocation;

/*
 * |text| is FILE.npy, FILE.bin (the declared shape), FILE.bin:2x3 or JSON, and becomes input
 * |index|.
 */
MUST_CHECK enum status pte_input_set(struct rt_invocation *invocation, uint32_t index,
                                     const char *text, struct error *err);

/* Values that depend on nothing but the position, at the largest shape; fixed scalars stay. */
MUST_CHECK enum status pte_input_fill(struct rt_invocation *invocation, uint32_t index,
                                      struct error *err);

#endif
