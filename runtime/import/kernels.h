/* SPDX-License-Identifier: MIT */
/*
 * The plain dialect: a method's kernel calls become a graph with value semantics.
 *
 * In the file, values are registers: a kernel writes into an out argument whose memory the exporter
 * planned. Here each write makes a new value, so planned memory has no meaning any more, with one
 * exception: two tensors at the same place and of the same size, of which only one is ever written,
 * are a view that the exporter optimised away.
 *
 * dim_order is dropped: values are logical, and a constant that is stored in another order is
 * rewritten row-major. Jumps, moves, delegates and mutable buffers are ST_UNSUPPORTED with the
 * instruction's number.
 */
#ifndef PTED_RUNTIME_IMPORT_KERNELS_H
#define PTED_RUNTIME_IMPORT_KERNELS_H

#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/pte/pte.h"

struct hal_device;

/*
 * Fills |graph|, which is initialised and empty; on failure only its inputs may be looked at.
 * Constants borrow the file's bytes, or get memory of |device|, which the host sees. Graph inputs
 * and outputs are the plan's, in order.
 */
MUST_CHECK enum status rt_import_kernels(const struct pte_plan *plan, struct hal_device *device,
                                         struct rt_graph *graph, struct error *err);

#endif
