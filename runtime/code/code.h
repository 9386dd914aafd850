/* SPDX-License-Identifier: MIT */
/*
 * Code: the work of a call as statements that runtime/vm/ walks. A method without control flow
 * whose sizes follow from its inputs is one block and has no statements: the graph's inputs and
 * outputs are the method's own. Otherwise a block ends where the host must know a result of the
 * device (a condition, a size), and the host executes the statements between blocks.
 *
 * Between statements values are in registers. A register holds one tensor with its current shape,
 * or one scalar; each value of the method that outlives a block has a register of its own.
 * Registers 0 to input_count - 1 are the method's inputs.
 */
#ifndef PTED_RUNTIME_CODE_CODE_H
#define PTED_RUNTIME_CODE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "runtime/code/block.h"
#include "runtime/code/scalar.h"

enum rt_stmt_kind {
    RT_STMT_BLOCK,      /* run block |target| */
    RT_STMT_JUMP,       /* to statement |target| */
    RT_STMT_JUMP_FALSE, /* to statement |target| if bool a, or any element of bool tensor a, is
                           false */
    RT_STMT_SCALAR,     /* target = op(a, b, c) */
    RT_STMT_SIZE,       /* target = size of tensor a in dim |op|, or of all (RT_STMT_NUMEL) */
    RT_STMT_READ,       /* target = first element of tensor a */
    RT_STMT_COPY_INDEX, /* row c of tensor target = tensor b; target then has c + 1 rows */
};

#define RT_STMT_NUMEL UINT8_MAX

struct rt_stmt {
    enum rt_stmt_kind kind;
    uint8_t op;      /* SCALAR: enum rt_scalar_op */
    uint32_t target; /* block, statement or register */
    uint32_t a, b, c;
    uint32_t origin; /* instruction in the file, for errors */
};

#define RT_STMT_OPERANDS 3

/* Returns the registers that a statement itself reads, at |operands|; returns their number. What a
 * block reads is in its |ins|. */
uint32_t rt_stmt_operands(const struct rt_stmt *stmt, uint32_t operands[RT_STMT_OPERANDS]);

/* Does the statement itself read or write register |reg|? */
bool rt_stmt_uses(const struct rt_stmt *stmt, uint32_t reg);

/* The possible content of a register. */
struct rt_register {
    struct rt_scalar initial; /* its value at the beginning; RT_NONE: it holds nothing */
    enum rt_kind kind;        /* TENSOR, INT, FLOAT, BOOL; STRING and NONE are never read */
    enum dtype dtype;         /* of a tensor */
    struct shape bound;       /* of a tensor, as the file declares it */
    uint32_t fixed_dims;      /* bit d is set: dim d is never less than its bound */
    size_t bytes;             /* of |bound| */
};

/* Where a result of the method is at the end, and which of a tensor's dims are known beforehand. */
struct rt_code_result {
    uint32_t reg;
    uint32_t block, output; /* the block and its output that give a tensor its dims, if that is
                               always the same one; otherwise */
    bool has_source;        /* this is false, and only the file's bounds are known */
    bool is_computed;       /* a statement writes it */
    bool is_extent;         /* dim 0 is only a bound there */
    bool is_kept;           /* an intermediate value: there is none if no block made it */
};

struct rt_code {
    struct arena arena;       /* owned */
    struct rt_block **blocks; /* owned; [0] is the entry, which takes the method's inputs first */
    uint32_t block_count;
    struct rt_stmt *stmts; /* none: run the entry */
    uint32_t stmt_count;
    struct rt_register *registers;
    uint32_t register_count;
    struct rt_code_result *results;
    uint32_t result_count;
    uint32_t ins_max, outs_max; /* of any block: graph inputs, and the larger of outs and outputs */
    uint32_t words_max;         /* likewise: numbers for a run */
    bool has_loop;              /* a statement jumps backwards */
};

/* Computes, when all blocks are compiled, the sizes of the code. */
void rt_code_measure(struct rt_code *code);
void rt_code_fini(struct rt_code *code);

/* Leaves all as it was before an import, but for what the arena has given. */
void rt_code_clear(struct rt_code *code);

/*
 * May a call run the block? A block that has been cut out of code of several statements has no
 * results.
 */
bool rt_code_reaches(const struct rt_code *code, uint32_t block);

/* Prints all blocks and statements; deterministic. */
void rt_code_print(const struct rt_code *code, const struct rt_notes *notes, struct buf *out);

#endif
