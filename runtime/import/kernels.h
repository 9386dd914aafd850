/* SPDX-License-Identifier: MIT */
/*
 * The plain dialect: a method's kernel calls become a graph with value semantics.
 *
 * In the file, values are registers: a kernel writes into an out argument whose memory the exporter
 * planned. Here each write makes a new value, so planned memory has no meaning any more, with two
 * exceptions. Two tensors at the same place and of the same size, of which only one is ever
 * written, are a view that the exporter optimised away. And a tensor that is read or changed before
 * anything wrote it is a mutable buffer, whose content outlives the call.
 *
 * Jumps, moves, extents that depend on data and what only the host computes cut a method into
 * blocks with steps between them: blocks.c. dim_order is dropped: values are logical, and a
 * constant that is stored in another order is rewritten row-major. Calls of delegates are imported
 * by runtime/import/delegate.h.
 */
#ifndef PTED_RUNTIME_IMPORT_KERNELS_H
#define PTED_RUNTIME_IMPORT_KERNELS_H

#include "base/status.h"
#include "runtime/code/code.h"
#include "runtime/pte/pte.h"

struct hal_device;
struct rt_files;

/* A mutable buffer of a method, in the order in which it first uses them. */
struct rt_state_use {
    const struct pte_tensor *tensor; /* of the plan, or in the code's arena */
    uint32_t index;                  /* of the plan's value, or beyond those */
    uint32_t reg;                    /* in code of several steps */
    uint32_t delegate, number;       /* beyond: whose own buffer it is, and what it is there */
    bool is_written;
};

struct rt_state_uses {
    struct rt_state_use *items; /* storage in the code's arena */
    uint32_t count;
};

/*
 * Fills |code|, which is empty but for its arena; on failure only rt_code_fini() may follow. Its
 * blocks are to be compiled. Constants borrow the file's bytes, which |mapping| holds, or get
 * memory of |device|, which the host sees.
 *
 * Code of one block: the graph's inputs are the plan's, then those of |states|; its outputs the
 * plan's, then those of the states that are written.
 */
MUST_CHECK enum status rt_import_kernels(struct rt_files *files, const struct pte_plan *plan,
                                         struct hal_device *device, struct rt_code *code,
                                         struct rt_state_uses *states, struct error *err);

/* Copies the bytes of |t|, which are stored in its dim_order, row-major to |to|. */
void rt_import_row_major(const struct pte_tensor *t, uint8_t *to);

/* Calls |fn| with the name of every kernel call that the host can take itself, between blocks. */
void rt_import_host_call_each(void (*fn)(const char *kernel, void *arg), void *arg);

#endif
