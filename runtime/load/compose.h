/* SPDX-License-Identifier: MIT */
/*
 * One method of two that follow each other. The results of the first one become inputs of the
 * second one: in their order, each the next input of its element type and rank. The new method has
 * the inputs of the first one, then the other inputs of the second one, and the results and mutable
 * buffers of the second one. The two methods stay as they are.
 *
 * The plans are joined before they are imported, so everything that holds for a method holds for
 * the new one: its graph is compiled as one, and its calls are batched and joined like others.
 */
#ifndef PTED_RUNTIME_LOAD_COMPOSE_H
#define PTED_RUNTIME_LOAD_COMPOSE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

struct pte_plan;
struct rt_composition;

/*
 * |*out_plan| is the new method of the |count| |plans| of a file. It borrows from them and lives in
 * |arena|. NULL: one of the two is missing, the file has a method of that name, or the results of
 * the first one are no inputs of the second one. ST_EXHAUSTED, ST_TOO_LARGE.
 */
MUST_CHECK enum status rt_compose(const struct pte_plan *plans, uint32_t count,
                                  const struct rt_composition *composition, struct arena *arena,
                                  const struct pte_plan **out_plan, struct error *err);

#endif
