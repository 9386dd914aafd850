/* SPDX-License-Identifier: MIT */
/*
 * The row of an operator. An operator is one row in one family file of runtime/ops/: its names in
 * each dialect, its signature, its shape function and its emit function. runtime/ops/op.c lists the
 * families; other layers name an operator only if they know its meaning.
 *
 * A row is used in two places. At load, |shape| runs once over symbolic dims. It checks everything
 * that the signature does not say (element types, ranks, values of attributes) and computes the
 * dims of the outputs. For each set of concrete dims, |emit| appends dispatches: kernels, bindings,
 * constants, grids. It touches no data and refuses nothing that |shape| accepted, except for
 * reasons that depend on concrete dims.
 */
#ifndef PTED_RUNTIME_GRAPH_OP_H
#define PTED_RUNTIME_GRAPH_OP_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* The argument of a shape function: its node and its graph. */
struct rt_shape_call {
    struct rt_graph *graph;
    const struct rt_node *node;
    struct error *err; /* text without the operator's name, which the caller puts in front */
};

/*
 * The argument of a batch rule: a node with an argument that carries rows (runtime/passes/batch.h).
 * In a tensor that carries rows, dim 0 is |rows| times what it is for one row, and the other dims
 * are unchanged. The rule decides whether the operator treats each row by itself, for all dims that
 * its shape function accepts. (The caller then checks that dim 0 of the results is |rows| times
 * larger.) The rule may change the node's arguments. ST_UNSUPPORTED with the reason otherwise.
 */
struct rt_batch_call {
    struct rt_graph *graph;
    struct rt_node *node;
    struct rt_dim rows;
    const bool *has_rows; /* by value, of |value_count|: rules may add others */
    uint32_t value_count;
    struct error *err; /* text without the operator's name */
};

struct hal_kernel;
struct rt_emit; /* runtime/emit/emit.h */

typedef enum status rt_op_batch_f(struct rt_batch_call *call);
typedef enum status rt_op_shape_f(struct rt_shape_call *call);
/*
 * For argument |arg|, a varying int among the row's |read| arguments: the expression that kernels
 * need to know in a run (a position counted from the beginning, clamped), or a constant if the dims
 * of the outputs already decide it. Also states the requirements on the argument.
 */
typedef enum status rt_op_place_f(struct rt_shape_call *call, uint32_t arg,
                                  struct rt_dim *out_place);
typedef enum status rt_op_emit_f(struct rt_emit *emit, struct error *err);

/* Requirements of an operator on the memory order of its tensors; see runtime/passes/layout.c. */
enum rt_op_layout {
    RT_LAYOUT_ROW_MAJOR,       /* all tensors row-major */
    RT_LAYOUT_ANY,             /* any order for each input, by strides; outputs row-major */
    RT_LAYOUT_ELEMENTWISE,     /* any orders, by strides; fast if all are alike: the output gets the
                                  order of the first input with its shape */
    RT_LAYOUT_CHANNELS_LAST,   /* argument 0 and output 0 channels-last, all others row-major */
    RT_LAYOUT_CHANNELS_INSIDE, /* the same, but all row-major if output 0 leaves the graph */
};

enum rt_op_flags {
    RT_OP_VIEW = 1 << 0,     /* output 0 has argument 0's bytes: no dispatch, emit is NULL */
    RT_OP_SCALAR = 1 << 1,   /* all outputs are scalars that |shape| sets: no dispatch */
    RT_OP_IN_PLACE = 1 << 2, /* output 0 may use argument 0's memory if types and dims agree */
    /* |detail| is a struct rt_epilogue, to which fusion adds operations. Output 0 may use the
     * memory of a residual of bfloat16. */
    RT_OP_EPILOGUE = 1 << 3,
    /*
     * Arguments marked '!' get a new content, and the old one is not read. The importer passes none
     * for them (their letter is "T?!"), so that a buffer whose content is always replaced does not
     * count as state.
     */
    RT_OP_OVERWRITES = 1 << 4,
    /*
     * Dim 0 of output 0 is only a capacity, an upper bound of a number that depends on data. The
     * row's last output, which kernel calls do not have, is an i64 tensor of rank 0 with the number
     * of valid rows, at most the capacity. The importer declares that output and ends the block;
     * later blocks see a tensor with that many rows.
     */
    RT_OP_EXTENT = 1 << 5,
    RT_OP_COPY = 1 << 6,      /* if type and dims agree, output 0 equals the last tensor argument */
    RT_OP_RANDOM = 1 << 7,    /* gives different numbers each time, so it is never folded */
    RT_OP_POINTWISE = 1 << 8, /* an element of the output depends only on the elements at the same
                                 position in the arguments, which are broadcast */
    RT_OP_MOVES = 1 << 9,     /* an element of an output is an element of a tensor argument, or 0 */
    RT_OP_JOINS = 1 << 10,    /* output 0 consists of the tensors of list 0, side by side along the
                                 dim that argument 1 is */
    RT_OP_PARTS = 1 << 11,    /* output 0 may be a part of the channels of a larger image, if there
                                 is no residual: see |pitch| of struct rt_tensor */
    RT_OP_COMPLEX = 1 << 12,  /* accepts complex tensors: moves their elements, or checks them */
    RT_OP_ROWS = 1 << 13,     /* output 0 is argument 0 but for some rows (rt_emit_update()) */
    RT_OP_CUTS = 1 << 14,     /* output 0 is a part of argument 0: of dim argument 1, from index
                                 argument 2 on; a step is argument 4 */
};

/*
 * Arguments of a node that computes activation(clamp(... + residual, min, max)); index 0 means that
 * it cannot.
 */
struct rt_epilogue {
    uint8_t residual;   /* none, or a tensor with the dims and the order of output 0 */
    uint8_t min, max;   /* floats */
    bool rounds;        /* if output 0 is marked as halves, each result is rounded to a half */
    uint8_t activation; /* none, or the name of a loop: see activation.h; only on the CPU */
};

struct rt_op {
    const char *name;    /* name in graphs */
    const char *kernels; /* kernel calls with this meaning, separated by spaces: "aten::add.out" */
    /*
     * Kinds of the arguments in schema order, '>' and kinds of the outputs. A letter each; followed
     * by '?' the argument may be none:
     *   T tensor   I int   F float (an int will do)   B bool   S number of any kind   Z string
     *   L ints     D floats    O bools    X tensors   Y tensors or nones
     * A 'T' followed by '!' is an argument that the kernel call changes: "T!YTB>". Values are
     * written once, so the node has an output of its own for the changed tensor, declared like the
     * argument; these outputs come after those behind '>', in the order of the arguments. Readers
     * of the argument after the call read that output. The shape function gives it the argument's
     * dims, and emit writes all of it. With RT_OP_IN_PLACE, emit may leave out equal parts where
     * the two share memory.
     */
    const char *args;
    rt_op_shape_f *shape;
    rt_op_emit_f *emit;
    uint32_t flags;
    enum rt_op_layout layout;
    const void *detail; /* data for the family's own functions */
    /* NULL: rt_batch_pointwise for pointwise rows; other rows are never batched. */
    rt_op_batch_f *batch;
    /* Element types of the first tensor argument, or of output 0 if there is none. Other types are
     * refused before |shape| is called. None: all arguments are scalars. */
    uint32_t dtypes;
    /*
     * The kernel that does most of the work; its forms say which devices run it. NULL: there is
     * nothing to run, or passes or the importer replace the row by another one, |becomes|.
     */
    const struct hal_kernel *runs;
    const char *becomes;
    uint32_t read; /* a bit for each int argument that a plan need not know: |emit| asks for it with
                      rt_emit_place(), never with rt_emit_int() */
    rt_op_place_f *place; /* for the arguments in |read| */
};

#endif
