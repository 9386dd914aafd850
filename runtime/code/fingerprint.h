/* SPDX-License-Identifier: MIT */
#ifndef PTED_RUNTIME_CODE_FINGERPRINT_H
#define PTED_RUNTIME_CODE_FINGERPRINT_H

#include <stdint.h>

struct rt_graph;

/*
 * Computes a digest of what |graph|, whose arguments are all constant, computes: its operators,
 * their arguments, its outputs, and the contents of constants that are neither in the program's own
 * file nor computed (runtime/pte/packed.h says who vouches for those).
 */
void rt_fingerprint(const struct rt_graph *graph, uint64_t out[2]);

#endif
