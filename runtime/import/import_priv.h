/* SPDX-License-Identifier: MIT */
/*
 * One method being imported: what the files of this folder share. The instructions are walked once,
 * in the file's order; nodes go into the current block's graph until blocks.c ends it.
 */
#ifndef PTED_RUNTIME_IMPORT_IMPORT_PRIV_H
#define PTED_RUNTIME_IMPORT_IMPORT_PRIV_H

#include "runtime/code/code.h"
#include "runtime/import/kernels.h"
#include "runtime/import/liveness.h"

/* Mutable buffers of a method: each takes a slot or two of its submissions. */
#define IMPORT_STATES_MAX 256

struct rt_op;

/* Where the newest content of a plan value is. */
enum rt_import_place {
    RT_PLACE_NONE,     /* nobody made it yet: a constant, a view, state; or nobody needs it */
    RT_PLACE_GRAPH,    /* |current| was made in the current block */
    RT_PLACE_REGISTER, /* a register; |current|, if not 0, is the block's input for it */
    RT_PLACE_PENDING,  /* a register, once the current block and the queued steps have run */
};

struct rt_import_slot {
    enum rt_import_place place;
    uint32_t current; /* in the current graph, 0: none yet */
    uint32_t reg;     /* its register + 1, 0: none yet */
    bool is_held;     /* a queued step reads the register: it must not be written before */
    bool is_touched;  /* in |touched| */
    bool is_state;    /* a mutable buffer: needed at the end */
};

/* A register that the current block is to write. */
struct rt_import_output {
    uint32_t reg, value;
    uint32_t extent; /* graph value, 0: all rows mean something */
};

/* What was last written to a range of planned memory. */
struct rt_import_resident {
    uint32_t arena;
    uint64_t offset, bytes;
    enum dtype dtype;
    uint32_t index; /* of the plan value */
};

struct import {
    struct rt_files *files;
    const struct pte_plan *plan;  /* the method's, with room for values that the file lacks */
    struct pte_value *own_values; /* that room */
    uint32_t own_count;
    struct hal_device *device;
    struct rt_code *code;
    struct rt_block *block;
    struct rt_graph *graph; /* the block's */
    uint32_t graph_inputs_capacity;
    struct rt_import_slot *slots; /* by plan value */
    struct rt_liveness live;
    uint32_t *touched; /* plan values whose slot the current block concerns */
    uint32_t touched_count;
    struct rt_import_output *outs;
    uint32_t out_count, out_capacity;
    struct rt_step *queue; /* steps that follow the current block */
    uint32_t queue_count, queue_capacity;
    uint32_t step_capacity, register_capacity, block_capacity;
    uint32_t *step_of;                /* by instruction that is jumped to */
    struct rt_import_writer *writers; /* by register */
    uint32_t writer_capacity;
    bool has_branched; /* a jump, or a place that is jumped to, has been passed */
    struct rt_import_resident *residents; /* newest last */
    uint32_t resident_count;
    uint32_t delegate_calls;
    struct rt_state_uses *states;
    const struct rt_op *op;        /* of the call being imported */
    const struct pte_instr *instr; /* likewise */
    uint32_t position;             /* of the instruction */
    uint32_t index_list;           /* stands for argument 1 of this call, 0: nothing does */
    struct error *err;
};

/* ---- values.c / kernels.c -------------------------------------------------------------------- */

/* The error for memory that the import did not get, from an arena or from the heap. */
enum status rt_import_fail_full(struct import *im);

/* The graph value of plan value |index|: a scalar, a tensor or a none. */
MUST_CHECK enum status rt_import_use(struct import *im, uint32_t index, uint32_t *out_value);

/* Notes that plan value |index|, a tensor, now lies where the plan put it. */
void rt_import_settle(struct import *im, uint32_t index);

/* From here on, reading plan value |index| is reading |value| of the graph. */
MUST_CHECK enum status rt_import_publish(struct import *im, uint32_t index, uint32_t value);

/* The value of an argument: lists are made anew for each use. */
MUST_CHECK enum status rt_import_argument(struct import *im, uint32_t index, uint32_t *out_value);

/* In place when the bytes can be used as they are, else a row-major, aligned copy. */
MUST_CHECK enum status rt_import_constant(struct import *im, const struct pte_tensor *t,
                                          uint32_t *out_value);

/* A tensor that is to be written, with what the file says of its dims. */
MUST_CHECK enum status rt_import_declare(struct import *im, const struct pte_tensor *t,
                                         uint32_t *out_value);

/* |value| with the dims of |t|, which has as many elements. */
MUST_CHECK enum status rt_import_view(struct import *im, uint32_t value, const struct pte_tensor *t,
                                      uint32_t *out_value);

/* Two tensors that the plan put on top of each other. */
bool rt_import_same_place(const struct pte_tensor *a, const struct pte_tensor *b);

/* The mutable buffer that |t| is a name of, or NULL. */
struct rt_state_use *rt_import_find_state(const struct import *im, const struct pte_tensor *t);

/* A mutable buffer that the file's values do not have: see rt_delegate_state(). */
MUST_CHECK enum status rt_import_own_state(struct import *im, uint32_t delegate, uint32_t number,
                                           const struct pte_tensor *t, uint32_t *out_value);
struct rt_state_use *rt_import_find_own_state(const struct import *im, uint32_t delegate,
                                              uint32_t number);

/* Before |index| gets another content: a buffer that is only ever replaced is state, too. */
MUST_CHECK enum status rt_import_note_overwritten(struct import *im, uint32_t index);

/* The plan value that last wrote where |t| lies, or PTE_NO_VALUE. */
uint32_t rt_import_find_resident(const struct import *im, const struct pte_tensor *t);

/* ---- registers.c ----------------------------------------------------------------------------- */

/* What writes a register: a result is described by its only writer. */
struct rt_import_writer {
    uint32_t count, block, output;
    bool is_input, is_extent;
};

/* Room for one more in an array of |arena|; the old one stays behind there. */
bool rt_import_make_room(struct arena *arena, void **array, uint32_t count, uint32_t *capacity,
                         size_t size);

#define IMPORT_ROOM(im, array, count, capacity)                                                    \
    rt_import_make_room(&(im)->code->arena, (void **)&(array), count, &(capacity), sizeof(*(array)))

/* The current block concerns plan value |index|. */
void rt_import_touch(struct import *im, uint32_t index);

/* A register that begins with what the file has for |v|. */
struct rt_register rt_import_describe_register(const struct pte_value *v);

MUST_CHECK enum status rt_import_add_register(struct import *im, struct rt_register r,
                                              uint32_t *out_reg);

/* A register of no plan value, for graph value |value|. */
MUST_CHECK enum status rt_import_add_temporary(struct import *im, uint32_t value, bool is_extent,
                                               uint32_t *out_reg);

/* The register of plan value |index|, made if it has none. */
MUST_CHECK enum status rt_import_register_of(struct import *im, uint32_t index, uint32_t *out_reg);

/* Appends |value| to the graph's inputs. */
MUST_CHECK enum status rt_import_add_input(struct import *im, uint32_t reg, uint32_t value);

/* A new graph input that is the content of |reg|. */
MUST_CHECK enum status rt_import_register(struct import *im, uint32_t reg, uint32_t *out_value);

/* The block's input for plan value |index|, which is in its register. */
MUST_CHECK enum status rt_import_read_register(struct import *im, uint32_t index);

/* ---- blocks.c -------------------------------------------------------------------------------- */

/* The first block, with a register for each of the method's inputs. */
MUST_CHECK enum status rt_import_begin(struct import *im);

/* Ends blocks where instruction |position| is jumped to. */
MUST_CHECK enum status rt_import_arrive(struct import *im, uint32_t position);

/* Ends the current block before |position|. One that makes nothing goes on behind the queue. */
MUST_CHECK enum status rt_import_end_block(struct import *im, uint32_t position);

/* The next step of the code; or of what follows the current block. */
MUST_CHECK enum status rt_import_add_step(struct import *im, struct rt_step step);
MUST_CHECK enum status rt_import_enqueue(struct import *im, struct rt_step step);

/* The current block writes |value| to |reg|; of it as many rows as |extent| says, unless that is 0.
 */
MUST_CHECK enum status rt_import_add_out(struct import *im, uint32_t reg, uint32_t value,
                                         uint32_t extent);

/*
 * A register that holds what |index| holds now, when the queued steps so far have run. The block's
 * values get one of their own, since the value's may be written before the step reads it.
 */
MUST_CHECK enum status rt_import_capture(struct import *im, uint32_t index, uint32_t *out_reg);

/* The queued step's result is the new content of |index|. */
MUST_CHECK enum status rt_import_give_pending(struct import *im, uint32_t index, enum rt_kind kind,
                                              uint32_t *out_reg);

/* Before |index| is read, or written, in the graph: nothing queued is in the way. */
MUST_CHECK enum status rt_import_settle_value(struct import *im, uint32_t index, bool is_written);

/* Before a call is imported into the graph: its arguments are there, its outputs may be written. */
MUST_CHECK enum status rt_import_settle_call(struct import *im, const struct pte_instr *instr);

/*
 * Before |index| is read in the graph: what is in a register becomes an input. False: nothing made
 * it, so it is a constant, a view or state.
 */
MUST_CHECK enum status rt_import_fetch(struct import *im, uint32_t index, bool *out_is_there);

/* |value|, made in the current block, is the content of |index|. */
void rt_import_set(struct import *im, uint32_t index, uint32_t value);

/* |value| stands for |index| in the current block, which has not made it. */
void rt_import_note(struct import *im, uint32_t index, uint32_t value);

/* Output |value| of a node has only as many rows as tensor |extent| says: known after the block. */
MUST_CHECK enum status rt_import_extent(struct import *im, uint32_t index, uint32_t value,
                                        uint32_t extent);

/* ---- host_calls.c ---------------------------------------------------------------------------- */

/* What an operand is before the call runs, as far as that is known. */
struct rt_import_operand {
    struct rt_scalar scalar; /* the value, if it is constant */
    enum rt_kind kind;
    bool is_constant;
    bool is_in_graph; /* made or read in the current block */
};

/* Of plan value |index|, which has to be a number. */
MUST_CHECK enum status rt_import_look_at(struct import *im, uint32_t index,
                                         struct rt_import_operand *out);

/* If the call is one that the host makes: makes it a step. */
MUST_CHECK enum status rt_import_host_call(struct import *im, const struct pte_instr *instr,
                                           bool *out_is_done);

/* ---- delegate.c ------------------------------------------------------------------------------ */

/* A delegate's payload becomes nodes like any other call. */
MUST_CHECK enum status rt_import_delegate(struct import *im, const struct pte_instr *instr);

/* ---- masks.c --------------------------------------------------------------------------------- */

/* Masks among the indices of a call become their nonzero places: see im->index_list. */
MUST_CHECK enum status rt_import_masks(struct import *im, const struct pte_instr *instr);

/* ---- control.c ------------------------------------------------------------------------------- */

MUST_CHECK enum status rt_import_move(struct import *im, const struct pte_instr *instr);
MUST_CHECK enum status rt_import_jump(struct import *im, const struct pte_instr *instr);

/* The method's end: results and states into registers, or into the only block's outputs. */
MUST_CHECK enum status rt_import_end(struct import *im);

#endif
