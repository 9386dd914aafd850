/* SPDX-License-Identifier: MIT */
/*
 * The import of one method: declarations that the files of this folder share. The import visits the
 * instructions once, in the file's order, and appends nodes to the current block's graph until
 * blocks.c ends the block.
 */
#ifndef PTED_RUNTIME_IMPORT_IMPORT_PRIV_H
#define PTED_RUNTIME_IMPORT_IMPORT_PRIV_H

#include "runtime/code/code.h"
#include "runtime/import/kernels.h"
#include "runtime/import/liveness.h"

/* Mutable buffers of a method: each takes one or two slots of a submission. */
#define IMPORT_STATES_MAX 256

struct rt_op;

/* Where the newest content of a plan value is. */
enum rt_import_place {
    RT_PLACE_NONE,     /* not written yet (a constant, a view, state), or not needed any more */
    RT_PLACE_GRAPH,    /* |current| was made in the current block */
    RT_PLACE_REGISTER, /* in a register; |current|, if not 0, is the block's input for it */
    RT_PLACE_PENDING, /* in a register after the current block and the queued statements have run */
};

struct rt_import_content {
    enum rt_import_place place;
    uint32_t current; /* its value in the current graph, 0: none yet */
    uint32_t reg;     /* its register + 1, 0: none yet */
    bool is_held;     /* a queued statement reads the register: it must not be written before */
    bool is_touched;  /* in |touched| */
    bool is_state;    /* a mutable buffer: needed at the end of the method */
};

/* A register that the current block writes. */
struct rt_import_output {
    uint32_t reg, value;
    uint32_t extent; /* graph value with the number of rows, 0: all rows are valid */
};

/* The newest write to a range of planned memory. */
struct rt_import_resident {
    uint32_t memory;
    uint64_t offset, bytes;
    enum dtype dtype;
    uint32_t index; /* of the plan value */
};

struct import {
    struct rt_files *files;
    const struct pte_plan
        *plan; /* the method's, with room for values that the file does not have */
    struct pte_value *own_values; /* that room */
    uint32_t own_count;
    struct hal_device *device;
    struct rt_code *code;
    struct rt_block *block;
    struct rt_graph *graph;                              /* the block's */
    size_t graph_inputs_capacity, block_inputs_capacity; /* graph->inputs, block->ins */
    struct rt_import_content *contents;                  /* by plan value */
    struct rt_liveness live;
    uint32_t *touched; /* plan values whose content belongs to the current block */
    uint32_t touched_count;
    struct rt_import_output *outs;
    uint32_t out_count;
    size_t out_capacity;
    struct rt_stmt *queue; /* statements that follow the current block */
    uint32_t queue_count;
    size_t queue_capacity;
    size_t stmt_capacity, register_capacity, block_capacity; /* of |code| */
    uint32_t *stmt_of;                /* by instruction, for targets of jumps */
    struct rt_import_writer *writers; /* by register */
    size_t writer_capacity;
    bool has_branched;                    /* the import has passed a jump or the target of a jump */
    struct rt_import_resident *residents; /* newest last */
    uint32_t resident_count;
    uint32_t delegate_calls;
    struct rt_state_uses *states;
    const struct rt_op *op;        /* of the call being imported */
    const struct pte_instr *instr; /* likewise */
    uint32_t position;             /* of the instruction */
    uint32_t index_list;           /* replaces argument 1 of this call, 0: nothing does */
    struct error *err;
};

/* ---- values.c / kernels.c -------------------------------------------------------------------- */

/* Returns the error for memory that the import did not get, from an arena or from the heap. */
enum status rt_import_fail_full(struct import *im);

/* Imports the graph value of plan value |index|: a scalar, a tensor or a none. Read it once for
 * each use: another write may follow. */
MUST_CHECK enum status rt_import_use(struct import *im, uint32_t index, uint32_t *out_value);

/* Records that the memory planned for tensor |index| now holds that tensor. */
void rt_import_settle(struct import *im, uint32_t index);

/* From here on, |value| of the graph is the content of plan value |index|. */
MUST_CHECK enum status rt_import_publish(struct import *im, uint32_t index, uint32_t value);

/* Imports the value of an argument. Lists are made again for each use: their items may have been
 * overwritten in between. */
MUST_CHECK enum status rt_import_argument(struct import *im, uint32_t index, uint32_t *out_value);

/* Uses the bytes in place if possible, else makes a row-major, aligned copy. */
MUST_CHECK enum status rt_import_constant(struct import *im, const struct pte_tensor *t,
                                          uint32_t *out_value);

/* Imports a tensor to be written, with the dims that the file declares. */
MUST_CHECK enum status rt_import_declare(struct import *im, const struct pte_tensor *t,
                                         uint32_t *out_value);

/* |value| with the dims of |t|, which has the same number of elements. */
MUST_CHECK enum status rt_import_view(struct import *im, uint32_t value, const struct pte_tensor *t,
                                      uint32_t *out_value);

/* Did the exporter plan both tensors at the same range of memory, with the same type? */
bool rt_import_same_place(const struct pte_tensor *a, const struct pte_tensor *b);

/* Returns the mutable buffer that has the same memory as |t|, or NULL. */
struct rt_state_use *rt_import_find_state(const struct import *im, const struct pte_tensor *t);

/* Imports a mutable buffer that is not among the file's values: see rt_delegate_state(). */
MUST_CHECK enum status rt_import_own_state(struct import *im, uint32_t delegate, uint32_t number,
                                           const struct pte_tensor *t, uint32_t *out_value);
struct rt_state_use *rt_import_find_own_state(const struct import *im, uint32_t delegate,
                                              uint32_t number);

/* Call this before |index| is overwritten: a buffer that is only ever overwritten is state, too. */
MUST_CHECK enum status rt_import_note_overwritten(struct import *im, uint32_t index);

/* Returns the plan value that last wrote the memory of |t|, or PTE_NO_VALUE. */
uint32_t rt_import_find_resident(const struct import *im, const struct pte_tensor *t);

/* ---- registers.c ----------------------------------------------------------------------------- */

/* The writers of a register: if a result has only one writer, that one describes it. */
struct rt_import_writer {
    uint32_t count, block, output;
    bool is_input, is_extent;
};

/* Notes that the current block uses plan value |index|. */
void rt_import_touch(struct import *im, uint32_t index);

/* Returns a register with the type and the initial value that the file declares for |v|. */
struct rt_register rt_import_describe_register(const struct pte_value *v);

MUST_CHECK enum status rt_import_add_register(struct import *im, struct rt_register r,
                                              uint32_t *out_reg);

/* Adds a register for graph value |value|, not for a plan value. */
MUST_CHECK enum status rt_import_add_temporary(struct import *im, uint32_t value, bool is_extent,
                                               uint32_t *out_reg);

/* Finds the register of plan value |index|; makes it if needed. */
MUST_CHECK enum status rt_import_register_of(struct import *im, uint32_t index, uint32_t *out_reg);

/* Appends |value| to the graph's inputs. */
MUST_CHECK enum status rt_import_add_input(struct import *im, uint32_t reg, uint32_t value);

/* Adds a new graph input that has the content of |reg|. */
MUST_CHECK enum status rt_import_register(struct import *im, uint32_t reg, uint32_t *out_value);

/* Makes plan value |index|, which is in its register, an input of the block. */
MUST_CHECK enum status rt_import_read_register(struct import *im, uint32_t index);

/* ---- blocks.c -------------------------------------------------------------------------------- */

/* Opens the first block and adds a register for each of the method's inputs. */
MUST_CHECK enum status rt_import_begin(struct import *im);

/* Ends the block if instruction |position| is the target of a jump. */
MUST_CHECK enum status rt_import_arrive(struct import *im, uint32_t position);

/* Ends the current block before |position|. A block without outputs continues after the queued
 * statements. */
MUST_CHECK enum status rt_import_end_block(struct import *im, uint32_t position);

/* Appends a statement to the code, or to the queue that follows the current block. */
MUST_CHECK enum status rt_import_add_stmt(struct import *im, struct rt_stmt stmt);
MUST_CHECK enum status rt_import_enqueue(struct import *im, struct rt_stmt stmt);

/* Makes the current block write |value| to |reg|; only as many rows as |extent| says, unless it is
 * 0. */
MUST_CHECK enum status rt_import_add_out(struct import *im, uint32_t reg, uint32_t value,
                                         uint32_t extent);

/*
 * Finds a register that has the present content of |index| when the queued statements so far have
 * run. A value of the block is copied into a register of its own, because the plan value's register
 * may be written before the statement reads it.
 */
MUST_CHECK enum status rt_import_capture(struct import *im, uint32_t index, uint32_t *out_reg);

/* Makes the queued statement's result the content of |index|. */
MUST_CHECK enum status rt_import_give_pending(struct import *im, uint32_t index, enum rt_kind kind,
                                              uint32_t *out_reg);

/* Call this before the graph reads or writes |index|: ends the block if a queued statement
 * conflicts. */
MUST_CHECK enum status rt_import_settle_value(struct import *im, uint32_t index, bool is_written);

/* Call this before a call is imported into the graph: its arguments are available and its outputs
 * may be written afterwards. */
MUST_CHECK enum status rt_import_settle_call(struct import *im, const struct pte_instr *instr);

/* Call this before the graph reads |index|: a value in a register becomes an input. False: nothing
 * has written the value, so it is a constant, a view or state. */
MUST_CHECK enum status rt_import_fetch(struct import *im, uint32_t index, bool *out_is_there);

/* |value|, made in the current block, becomes the content of |index|. */
void rt_import_set(struct import *im, uint32_t index, uint32_t value);

/* |value| represents |index| in the current block, which did not make it. */
void rt_import_note(struct import *im, uint32_t index, uint32_t value);

/* Only as many rows of output |value| are valid as tensor |extent| says; their number is known
 * after the block. */
MUST_CHECK enum status rt_import_extent(struct import *im, uint32_t index, uint32_t value,
                                        uint32_t extent);

/* ---- host_calls.c ---------------------------------------------------------------------------- */

/* An operand, as far as it is known before the call runs. */
struct rt_import_operand {
    struct rt_scalar scalar; /* the value, if it is constant */
    enum rt_kind kind;
    bool is_constant;
    bool is_in_graph; /* made or read in the current block */
};

/* Examines plan value |index|, which has to be a number. */
MUST_CHECK enum status rt_import_look_at(struct import *im, uint32_t index,
                                         struct rt_import_operand *out);

/* Makes the call a statement if the host executes it. */
MUST_CHECK enum status rt_import_host_call(struct import *im, const struct pte_instr *instr,
                                           bool *out_is_done);

/* ---- delegate.c ------------------------------------------------------------------------------ */

/* Imports the delegate's payload as nodes, like any other call. */
MUST_CHECK enum status rt_import_delegate(struct import *im, const struct pte_instr *instr);

/* ---- masks.c --------------------------------------------------------------------------------- */

/* Replaces masks among the indices of a call by the places of their nonzero elements: see
 * im->index_list. */
MUST_CHECK enum status rt_import_masks(struct import *im, const struct pte_instr *instr);

/* ---- control.c ------------------------------------------------------------------------------- */

MUST_CHECK enum status rt_import_move(struct import *im, const struct pte_instr *instr);
MUST_CHECK enum status rt_import_jump(struct import *im, const struct pte_instr *instr);

/* Ends the method: results and states go into registers, or become the only block's outputs. */
MUST_CHECK enum status rt_import_end(struct import *im);

#endif
