/* SPDX-License-Identifier: MIT */
/*
 * The row of an operator. An operator is one row in one family file of runtime/ops/: its names in
 * each dialect, its signature, its shape function and how it becomes dispatches. runtime/ops/op.c
 * lists the families; nothing else names an operator but the pass that knows its meaning.
 *
 * A row is used in two places. At load, |shape| runs once over symbolic dims: it checks everything
 * that the signature does not say (element types, ranks, values of attributes) and finds the dims
 * of the outputs. For each set of concrete dims, |emit| appends dispatches: kernels, bindings,
 * constants, grids. It touches no data and refuses nothing that |shape| accepted, except what
 * depends on concrete dims.
 */
#ifndef PTED_RUNTIME_GRAPH_OP_H
#define PTED_RUNTIME_GRAPH_OP_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* What a shape function gets: its node, in its graph. */
struct rt_shape_call {
    struct rt_graph *graph;
    const struct rt_node *node;
    struct error *err; /* text without the operator's name: the caller puts it before */
};

/*
 * What a batch rule gets: a node of which some argument carries rows (runtime/passes/batch.h). Dim
 * 0 of a tensor that does is |rows| times what it is for one row, and the others are as they were.
 * The rule has to say whether the operator treats each row by itself, by what is true of it for all
 * dims that its shape function accepts: that dim 0 of its results is |rows| times what it was is
 * seen afterwards. It may give the node other arguments. ST_UNSUPPORTED: why not.
 */
struct rt_batch_call {
    struct rt_graph *graph;
    struct rt_node *node;
    struct rt_dim rows;
    const bool *has_rows; /* by value */
    struct error *err;    /* text without the operator's name */
};

struct hal_kernel;
struct rt_emit; /* runtime/emit/emit.h */

typedef enum status rt_op_batch_f(struct rt_batch_call *call);
typedef enum status rt_op_shape_f(struct rt_shape_call *call);
/*
 * Of argument |arg|, an int that varies and is among the row's |read| ones: what kernels have to
 * know of it in a run, as an expression (a place counted from the beginning, clamped); a constant
 * where the dims of the outputs say all. What must be true of it is required here.
 */
typedef enum status rt_op_place_f(struct rt_shape_call *call, uint32_t arg,
                                  struct rt_dim *out_place);
typedef enum status rt_op_emit_f(struct rt_emit *emit, struct error *err);

/* What an operator asks of the memory order of its tensors; see runtime/passes/layout.c. */
enum rt_op_layout {
    RT_LAYOUT_ROW_MAJOR,     /* all tensors row-major */
    RT_LAYOUT_ANY,           /* any order for each input, by strides; outputs row-major */
    RT_LAYOUT_ELEMENTWISE,   /* any orders, by strides; fast when all are alike: the output follows
                                the first input of its own shape */
    RT_LAYOUT_CHANNELS_LAST, /* argument 0 and output 0 channels-last, all others row-major */
};

enum rt_op_flags {
    RT_OP_VIEW = 1 << 0, /* output 0 is argument 0's bytes as they lie: no dispatch, emit is NULL */
    RT_OP_SCALAR = 1 << 1,   /* all outputs are scalars that |shape| sets: no dispatch */
    RT_OP_IN_PLACE = 1 << 2, /* output 0 may share argument 0's memory when types and dims agree */
    RT_OP_EPILOGUE = 1 << 3, /* |detail| is a struct rt_epilogue: what fusion can add to the node */
    /*
     * Arguments marked '!' get a new content without the old one being read: the importer passes
     * none for them (their letter is "T?!"), so that a buffer which is only ever replaced is not
     * taken for state.
     */
    RT_OP_OVERWRITES = 1 << 4,
    /*
     * Dim 0 of output 0 is only a capacity, a bound of what the data says. The row's last output is
     * an i64 tensor of rank 0 that kernel calls do not have: how many rows mean something, at most
     * the capacity. The importer declares it and ends the block there; what follows sees a tensor
     * of that many rows.
     */
    RT_OP_EXTENT = 1 << 10,
    RT_OP_COPY = 1 << 5,      /* when type and dims agree output 0 is the last tensor argument */
    RT_OP_RANDOM = 1 << 9,    /* its numbers are others each time: never folded */
    RT_OP_POINTWISE = 1 << 7, /* an element of the output follows from those at its own place in the
                                 arguments, which are broadcast to it, and from nothing else */
    RT_OP_MOVES = 1 << 11,    /* an element of the outputs is one of a tensor argument, or 0 */
    RT_OP_COMPLEX = 1 << 8,   /* takes complex tensors: it only moves elements, or checks itself */
};

/* Arguments of a node that computes clamp(… + residual, min, max); an index 0 means: it cannot. */
struct rt_epilogue {
    uint8_t residual; /* none, or a tensor like output 0, in its order */
    uint8_t min, max; /* floats */
    bool rounds;      /* where output 0 is marked as halves, each result is rounded to one */
};

struct rt_op {
    const char *name;    /* in graphs */
    const char *kernels; /* kernel calls that mean this, separated by spaces: "aten::add.out" */
    /*
     * Kinds of the arguments in schema order, '>' and those of the outputs. A letter each; followed
     * by '?' the argument may be none:
     *   T tensor   I int   F float (an int will do)   B bool   S number of any kind   Z string
     *   L ints     D floats    O bools    X tensors   Y tensors or nones
     * A 'T' followed by '!' is an argument that the kernel call changes: "T!YTB>". Values are
     * written once, so the node has an output of its own for the changed tensor, declared like the
     * argument; these outputs come after those behind '>', in the order of the arguments. Readers
     * of the argument after the call read that output. The shape function sets its dims (those of
     * the argument) and emit writes all of it; with RT_OP_IN_PLACE only what differs has to be
     * written where the two share memory.
     */
    const char *args;
    rt_op_shape_f *shape;
    rt_op_emit_f *emit;
    uint32_t flags;
    enum rt_op_layout layout;
    const void *detail;   /* what the family's own functions want to know of the row */
    rt_op_batch_f *batch; /* NULL: rt_batch_pointwise for those, and never as a batch for others */
    /*
     * Element types of the first tensor argument, or of output 0 where there is none; others are
     * refused before |shape| is asked, which says what must follow from them. None: all scalars.
     */
    uint32_t dtypes;
    /*
     * The kernel that does most of the work; its forms say which devices run it. NULL: there is
     * nothing to run, or passes or the importer replace the row by another one, |becomes|.
     */
    const struct hal_kernel *runs;
    const char *becomes;
    uint32_t read;        /* a bit for each int argument that a plan need not know: |emit| asks for
                             it by rt_emit_place(), never by rt_emit_int() */
    rt_op_place_f *place; /* of those */
};

#endif
