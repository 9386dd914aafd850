/* SPDX-License-Identifier: MIT */
/*
 * Prepares imported code: the first passes on each block, and the same between blocks. Registers
 * that hold the same content become one where a block reads them, so that a number that is read
 * twice is one symbol in the graphs. Statements and outputs that nobody reads any more go.
 *
 * Registers hold the same if they got it from equal outputs of one block, or from equal statements.
 * That is followed along the statements; where jumps arrive, nothing is known.
 */
#ifndef PTED_RUNTIME_CODE_UNIFY_H
#define PTED_RUNTIME_CODE_UNIFY_H

#include <stdbool.h>

#include "base/status.h"

struct rt_code;

/* |is_state|, by register: a mutable buffer, which the next call reads. Once, before the blocks are
 * compiled. */
MUST_CHECK enum status rt_code_unify(struct rt_code *code, const bool *is_state, struct error *err);

#endif
