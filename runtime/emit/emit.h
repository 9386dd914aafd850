/* SPDX-License-Identifier: MIT */
/*
 * The view of an operator while it turns its node into dispatches: tensors at concrete dims,
 * numbers, and the machine that the work is cut for. Kernels of several families (runtime/ops/) and
 * the operators themselves use this; runtime/plan/ stands behind it (runtime/emit/planner.h). One
 * thread makes a plan; nothing here is kept beyond the call of the emit function.
 */
#ifndef PTED_RUNTIME_EMIT_EMIT_H
#define PTED_RUNTIME_EMIT_EMIT_H

#include "base/status.h"
#include "hal/command.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/update.h"
#include "runtime/graph/graph.h"

struct rt_emit;
struct rt_op;

/* A tensor at concrete dims, in memory. */
struct rt_tensor {
    enum dtype dtype;
    uint8_t rank;
    bool is_row_major; /* also when another order comes to the same bytes */
    bool is_half;      /* stored as halves: see struct rt_value */
    int64_t dims[SHAPE_RANK_MAX];
    int64_t strides[SHAPE_RANK_MAX]; /* in elements */
    int64_t pitch; /* of an image with channels innermost: elements from one pixel to the next, more
                      than the channels only if RT_OP_PARTS allows it */
    int64_t numel;
    size_t bytes;
    struct hal_binding binding; /* whole tensor */
};

/* Returns the node's row. */
const struct rt_op *rt_emit_op(const struct rt_emit *emit);
/* Returns argument |index|, a tensor; NULL if it is none. Valid while the plan is made. */
const struct rt_tensor *rt_emit_arg(struct rt_emit *emit, uint32_t index);
/* Output |index|. From 1 on NULL if no node uses it; it has no memory then. */
const struct rt_tensor *rt_emit_out(struct rt_emit *emit, uint32_t index);
/* Item |item| of a list of tensors. */
const struct rt_tensor *rt_emit_arg_item(struct rt_emit *emit, uint32_t index, uint32_t item);
const struct rt_tensor *rt_emit_out_item(struct rt_emit *emit, uint32_t index, uint32_t item);

/* Returns the argument's value, for kinds, counts, floats and strings. */
const struct rt_value *rt_emit_value(const struct rt_emit *emit, uint32_t index);
/* Returns an int, or item |item| of ints, at the concrete dims. */
int64_t rt_emit_int(const struct rt_emit *emit, uint32_t index);
int64_t rt_emit_ints(const struct rt_emit *emit, uint32_t index, uint32_t item);
/* An int that the row's |read| names: known to the plan, or a word that kernels read. */
struct rt_place {
    int64_t known;
    bool is_read;
    uint32_t word; /* of the run */
};

struct rt_place rt_emit_place(const struct rt_emit *emit, uint32_t index);
/* Returns the i64 from which kernels read a place; without bytes if the place is known. */
struct hal_binding rt_emit_word(const struct rt_emit *emit, struct rt_place place);

/* Returns an S or F argument at the concrete dims. */
double rt_emit_number(const struct rt_emit *emit, uint32_t index);

/* Returns the machine that the tiles of |kernel| are cut for: see runtime/emit/cut.h. */
const struct rt_machine *rt_emit_machine(const struct rt_emit *emit,
                                         const struct hal_kernel *kernel);

/*
 * A node writes |count| of |rows| rows of |row_bytes|, repeated as often as needed: those from
 * |first| on; or, if |tiles| is not 0, rows that only its kernel knows. Each of its tiles then logs
 * at most |entries| pieces of |entry_bytes| (rt_update_log()).
 */
struct rt_update {
    int64_t rows, row_bytes;
    struct rt_place first;
    int64_t count;
    uint32_t tiles;
    int64_t entries, entry_bytes;
};

/* Gives the words for the node's update; without bytes there are none, and the kernel writes all of
 * the output. */
MUST_CHECK enum status rt_emit_update(struct rt_emit *emit, const struct rt_update *update,
                                      struct hal_binding *out_words, struct error *err);

/* Is the device the host's processors? */
bool rt_emit_is_host(const struct rt_emit *emit);

/* |bytes| of memory that only this node has, aligned to RT_EMIT_WORKSPACE_ALIGN. Its content is
 * undefined before and after the node. */
#define RT_EMIT_WORKSPACE_ALIGN 64
MUST_CHECK enum status rt_emit_workspace(struct rt_emit *emit, size_t bytes,
                                         struct hal_binding *out_binding, struct error *err);

/* Makes the node's dispatches from here on see what those before have written. */
MUST_CHECK enum status rt_emit_barrier(struct rt_emit *emit, struct error *err);

/* Records a dispatch in the node's region. Dispatches of one node run side by side unless a
 * barrier is between them: none reads what another writes. A grid with a zero records nothing. */
MUST_CHECK enum status rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                        struct error *err);

/* Does the same, cut along one dim: |count| things, |tile| of them in a tile. |dispatch| has no
 * grid yet. */
MUST_CHECK enum status rt_emit_tiles(struct rt_emit *emit, int64_t count, int64_t tile,
                                     const struct hal_dispatch *dispatch, struct error *err);

#endif
