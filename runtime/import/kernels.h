/* SPDX-License-Identifier: MIT */
/*
 * The plain dialect: a method's kernel calls become a graph with value semantics.
 *
 * In the file, values are registers: a kernel writes into an out argument whose memory the exporter
 * planned. Here each write makes a new value, so planned memory has no meaning any more, with two
 * exceptions. First, if two tensors have the same place and size and only one of them is ever
 * written, the other is a view that the exporter optimised away. Second, a tensor that is read or
 * changed before it is written is a mutable buffer, whose content outlives the call.
 *
 * A method is cut into blocks with statements between them by jumps, moves, extents that depend on
 * data and calls that only the host can execute: blocks.c. dim_order is dropped: values are
 * logical, and a constant stored in another order is rewritten row-major. Calls of delegates are
 * imported by runtime/import/delegate.h.
 */
#ifndef PTED_RUNTIME_IMPORT_KERNELS_H
#define PTED_RUNTIME_IMPORT_KERNELS_H

#include "base/status.h"
#include "runtime/code/code.h"
#include "runtime/pte/pte.h"

struct hal_device;
struct rt_files;

/* A mutable buffer of a method, in the order of first use. */
struct rt_state_use {
    const struct pte_tensor *tensor; /* of the plan, or in the code's arena */
    uint32_t index;            /* plan value, or the number of a delegate's own one beyond those */
    uint32_t reg;              /* if the code has several statements */
    uint32_t delegate, number; /* of a delegate's own buffer */
    bool is_written;
};

struct rt_state_uses {
    struct rt_state_use *items; /* storage in the code's arena */
    uint32_t count;
};

/*
 * Fills |code|, which is empty except for its arena; after a failure only rt_code_fini() may be
 * called. The caller compiles the blocks. Constants borrow the bytes of |files|, or get memory of
 * |device| that the host can access.
 *
 * If the code is a single block, the graph's inputs are the plan's, then those of |states|; its
 * outputs are the plan's, then the written states.
 */
MUST_CHECK enum status rt_import_kernels(struct rt_files *files, const struct pte_plan *plan,
                                         struct hal_device *device, struct rt_code *code,
                                         struct rt_state_uses *states, struct error *err);

/* Copies the bytes of |t|, which are stored in its dim_order, to |to| in row-major order. */
void rt_import_row_major(const struct pte_tensor *t, uint8_t *to);

/* Calls |fn| with the name of each kernel call that the host can execute between blocks. */
void rt_import_host_call_each(void (*fn)(const char *kernel, void *arg), void *arg);

#endif
