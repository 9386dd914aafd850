/* SPDX-License-Identifier: MIT */
/*
 * The VM: walks the statements of a method's code (runtime/code/code.h) for one call. A struct vm
 * belongs to its invocation and is allocated with it: a warm call does not malloc.
 *
 * Threads: one thread at a time walks. The walk begins on the submitting thread, hands a block to
 * the device, and goes on where the block completed, on a worker, without the event loop. The stack
 * does not grow with the number of statements: if a block is complete before the walk begins to
 * wait, the walk's own loop notices.
 *
 * Memory comes from the call's pool and is used again by later statements, so that a loop needs no
 * more than its widest turn. If the pool is full in the middle of a call, the memory that this call
 * keeps for later goes back first; if that is not enough the call fails with ST_EXHAUSTED at once.
 * Nothing waits inside a call, so calls cannot wait for each other's memory.
 */
#ifndef PTED_RUNTIME_VM_VM_H
#define PTED_RUNTIME_VM_VM_H

#include <stdatomic.h>

#include "base/check.h"
#include "base/shape.h"
#include "hal/command.h"
#include "hal/queue.h"
#include "runtime/call/inside.h"
#include "runtime/call/overwrite.h"
#include "runtime/code/code.h"
#include "runtime/program/state_cells.h"

enum vm_owner {
    VM_OWNER_POOL,  /* this call: goes back to the idle memory */
    VM_OWNER_INPUT, /* the caller: only read */
    VM_OWNER_STATE, /* the state's present generation, or the program: read, and overwritten only
                       where no other register has it (rt_state_open()) */
    VM_OWNER_SPARE, /* the state's next generation */
};

/* A range of memory that registers share. */
struct vm_memory {
    struct hal_binding binding; /* buffer: ref held, NULL for no bytes */
    enum vm_owner owner;
    uint32_t refs;
    uint32_t state;         /* STATE, SPARE: which of the method's states */
    struct vm_memory *next; /* in a list of idle or unused ones */
};

struct vm_value {
    enum rt_kind kind; /* NONE: nothing yet */
    struct shape shape;
    struct vm_memory *memory; /* of a tensor: a ref */
    int64_t number;           /* of a scalar, as in struct rt_scalar */
};

/* The memory of a written state during a call. */
struct vm_spare {
    bool is_used;    /* some value is there */
    bool is_spoiled; /* it is no longer what the state says of it */
    bool has_base;   /* the running block, which writes it, reads the present generation for it */
    bool is_overwritten;             /* a block has overwritten the present generation, too */
    struct rt_rows stale;            /* where it differs from that one before the block, .. */
    struct rt_rows written;          /* .. and after the last block that wrote it */
    struct rt_growth grown;          /* what the call has been charged for it .. */
    struct rt_growth grown_in_place; /* .. and for the present generation */
};

#define VM_MAGIC 0x7a1c3e55u

struct vm {
    uint32_t magic;
    const struct rt_code *code;
    size_t heap_bytes; /* of this and the arrays behind it */
    struct vm_value *registers;
    struct vm_value *frame;       /* by graph input of the running block */
    struct vm_memory **outputs;   /* by graph output, refs held */
    struct vm_value *fresh;       /* by out of the block that has run */
    struct rt_block_input *given; /* by graph input */
    struct hal_binding *slots;
    int64_t *words;          /* numbers for the running block */
    struct vm_spare *spares; /* by the method's states */
    struct vm_memory *idle, *unused;
    uint32_t idle_count;
    uint32_t pc;
    uint64_t stmts_left;
    enum hal_caller caller; /* which work of a block this thread may do */
    struct rt_plan *plan;   /* of the running block: ref held */
    struct vm_memory *workspace;
    atomic_uint arrivals; /* of the walk and of the block's completion: the second one goes on */
    enum status reached;
};

extern const struct rt_callable vm_callable;

/* Returns the VM of a call. */
static inline struct vm *vm_of(const struct rt_invocation *invocation)
{
    struct vm *vm = invocation->own;
    OBJ_CHECK(vm, VM_MAGIC);
    return vm;
}

/* Makes one allocation; free() it. NULL: no memory. */
struct vm *vm_new(const struct rt_method *method);

/* Inputs and states into registers; the walk; the end of the invocation, by
 * rt_invocation_finish(). */
void vm_run(struct rt_invocation *invocation, enum hal_caller caller);

/* ---- memory.c -------------------------------------------------------------------------------- */

/* |bytes| of pool memory with one reference. ST_EXHAUSTED or ST_TOO_LARGE with a text. */
MUST_CHECK enum status vm_allocate(struct rt_invocation *invocation, size_t bytes,
                                   struct vm_memory **out_memory);
/* Borrows memory of another owner, with one reference, and takes one of its buffer. */
struct vm_memory *vm_borrow(struct vm *vm, struct hal_binding binding, enum vm_owner owner);
void vm_drop(struct vm *vm, struct vm_memory *memory); /* NULL is fine */
/* Gives everything back to the pool. */
void vm_release(struct vm *vm);

/* vm_share(): a copy of |value| with its own reference. vm_put(): gives the register a new value
 * and drops the old one. */
struct vm_value vm_share(const struct vm_value *value);
void vm_put(struct vm *vm, uint32_t reg, struct vm_value value);

/* Returns the bytes of a tensor, which the host can access; NULL for none. */
uint8_t *vm_map(const struct vm_memory *memory);

/* ---- block.c --------------------------------------------------------------------------------- */

/*
 * Plans and submits the block; a block without work counts as run. The error is the invocation's.
 */
MUST_CHECK enum status vm_block_begin(struct rt_invocation *invocation, struct rt_block *block);
/* Call when the block has run with |status|, or could not begin: its results go into registers, and
 * the walk to the next statement. */
MUST_CHECK enum status vm_block_finish(struct rt_invocation *invocation, enum status status);
/* Drops what a block held while it ran, also if it did not get that far. */
void vm_block_leave(struct vm *vm);

/* ---- results.c ------------------------------------------------------------------------------- */

/* Turns registers into the invocation's results, and then into its state's next generation. */
MUST_CHECK enum status vm_give_results(struct rt_invocation *invocation);
MUST_CHECK enum status vm_advance_states(struct rt_invocation *invocation);

/* ---- host.c ---------------------------------------------------------------------------------- */

/* Executes a statement that is not a block; sets vm->pc. The error is the invocation's. */
MUST_CHECK enum status vm_host_stmt(struct rt_invocation *invocation, const struct rt_stmt *stmt);

#endif
