/* SPDX-License-Identifier: MIT */
/*
 * Operators. An operator is one row in one family file of this folder: its names in each dialect,
 * its signature, its shape function and how it becomes dispatches. ops.c lists the families;
 * nothing else names an operator but the pass that knows its meaning.
 *
 * A row is used in two places. At load, |shape| runs once over symbolic dims: it checks everything
 * that the signature does not say (element types, ranks, values of attributes) and finds the dims
 * of the outputs. For each set of concrete dims, |emit| appends dispatches: kernels, bindings,
 * constants, grids. It touches no data and refuses nothing that |shape| accepted, except what
 * depends on concrete dims.
 */
#ifndef PTED_RUNTIME_OPS_OP_H
#define PTED_RUNTIME_OPS_OP_H

#include "base/status.h"
#include "hal/command.h"
#include "runtime/graph/graph.h"

/* What a shape function gets: its node, in its graph. */
struct rt_shape_call {
    struct rt_graph *graph;
    const struct rt_node *node;
    struct error *err; /* text without the operator's name: the caller puts it before */
};

struct rt_emit;

typedef enum status rt_op_shape_f(struct rt_shape_call *call);
typedef enum status rt_op_emit_f(struct rt_emit *emit, struct error *err);

/* What an operator asks of the memory order of its tensors; see runtime/graph/layout.c. */
enum rt_op_layout {
    RT_LAYOUT_ROW_MAJOR,     /* all tensors row-major */
    RT_LAYOUT_ANY,           /* any order for each input, by strides; outputs row-major */
    RT_LAYOUT_ELEMENTWISE,   /* any orders, by strides; fast when all are alike: the output follows
                                the first input of its own shape */
    RT_LAYOUT_CHANNELS_LAST, /* argument 0 and output 0 channels-last, all others row-major */
};

enum rt_op_flags {
    RT_OP_VIEW = 1 << 0, /* output 0 is argument 0's bytes, row-major: no dispatch, emit is NULL */
    RT_OP_SCALAR = 1 << 1,   /* all outputs are scalars that |shape| sets: no dispatch */
    RT_OP_IN_PLACE = 1 << 2, /* output 0 may share argument 0's memory when types and dims agree */
    RT_OP_EPILOGUE = 1 << 3, /* |detail| is a struct rt_epilogue: what fusion can add to the node */
};

/* Arguments of a node that computes clamp(… + residual, min, max); an index 0 means: it cannot. */
struct rt_epilogue {
    uint8_t residual; /* none, or a tensor like output 0, in its order */
    uint8_t min, max; /* floats */
};

struct rt_op {
    const char *name;    /* in graphs */
    const char *kernels; /* kernel calls that mean this, separated by spaces: "aten::add.out" */
    /*
     * Kinds of the arguments in schema order, '>' and those of the outputs. A letter each; followed
     * by '?' the argument may be none:
     *   T tensor   I int   F float (an int will do)   B bool   S number of any kind   Z string
     *   L ints     D floats    O bools    X tensors   Y tensors or nones
     */
    const char *args;
    rt_op_shape_f *shape;
    rt_op_emit_f *emit;
    uint32_t flags;
    enum rt_op_layout layout;
    const void *detail; /* what the family's own functions want to know of the row */
};

/* Families end with a row whose name is NULL. */
extern const struct rt_op rt_ops_along[], rt_ops_conv[], rt_ops_create[], rt_ops_index[],
    rt_ops_matmul[], rt_ops_norm[], rt_ops_pad[], rt_ops_pointwise[], rt_ops_pool[],
    rt_ops_reduce[], rt_ops_scalar[], rt_ops_slice[], rt_ops_stride[], rt_ops_upsample[],
    rt_ops_view[];

/* By graph name, or by the name a kernel call uses; NULL when there is none. */
const struct rt_op *rt_op_find(const char *name);
const struct rt_op *rt_op_find_kernel(struct span kernel);

/* Calls |fn| for every row of every family. */
void rt_op_each(void (*fn)(const struct rt_op *op, void *arg), void *arg);

/* ---- for shape functions --------------------------------------------------------------------- */

static inline struct rt_value *rt_arg(const struct rt_shape_call *call, uint32_t index)
{
    return rt_node_arg(call->graph, call->node, index);
}

static inline bool rt_arg_is_none(const struct rt_shape_call *call, uint32_t index)
{
    return rt_arg(call, index)->kind == RT_NONE;
}

/* Is the number the same for every call? */
static inline bool rt_value_is_fixed(const struct rt_value *value)
{
    return value->kind != RT_INT || rt_dim_is_const(value->i);
}

/* The element type of output |index| (the file or the pass declared it). */
static inline enum dtype rt_out_dtype(const struct rt_shape_call *call, uint32_t index)
{
    return rt_node_out(call->graph, call->node, index)->dtype;
}

/* Sets output |index|'s dims; what the file declares for them must agree. */
MUST_CHECK enum status rt_set_out(struct rt_shape_call *call, uint32_t index, uint8_t rank,
                                  const struct rt_dim *dims);
/* The same for item |item| of output |index|, which is a list of tensors. */
MUST_CHECK enum status rt_set_out_item(struct rt_shape_call *call, uint32_t index, uint32_t item,
                                       uint8_t rank, const struct rt_dim *dims);
/* As the dims of argument |arg|. */
MUST_CHECK enum status rt_set_out_like(struct rt_shape_call *call, uint32_t index, uint32_t arg);

/* Says that the requirement between argument and output does not hold: ST_INVALID with the text. */
enum status rt_refuse(struct rt_shape_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for what this build cannot do yet: ST_UNSUPPORTED. */
enum status rt_unsupported(struct rt_shape_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Argument |index| is a tensor (or none, if optional) of one of the types in
 * |dtypes| (1 << DT_…). */
MUST_CHECK enum status rt_need_dtype(struct rt_shape_call *call, uint32_t index, uint32_t dtypes);
/* The same of output |index|: until this is asked, a file may declare what no kernel writes. */
MUST_CHECK enum status rt_need_out_dtype(struct rt_shape_call *call, uint32_t index,
                                         uint32_t dtypes);
/* An int argument that must be a constant (dims, flags), into |out_value|. */
MUST_CHECK enum status rt_need_const(struct rt_shape_call *call, uint32_t index,
                                     int64_t *out_value);
/* A dim number in [-rank, rank) made non-negative; rank 0 takes -1 and 0. */
MUST_CHECK enum status rt_need_dim(struct rt_shape_call *call, int64_t dim, uint8_t rank,
                                   uint8_t *out_dim);
/* Numpy broadcasting of two lists of dims, aligned at the right. */
MUST_CHECK enum status rt_broadcast(struct rt_shape_call *call, uint8_t rank_a,
                                    const struct rt_dim *a, uint8_t rank_b, const struct rt_dim *b,
                                    struct rt_dim out[SHAPE_RANK_MAX], uint8_t *out_rank);
/* An S argument as a double, an I64 or a bool: its number as a double (ints beyond 2^53 lose). */
double rt_arg_number(const struct rt_value *value);

#define RT_DTYPES_FLOAT (1u << DT_F32 | 1u << DT_F64 | 1u << DT_F16 | 1u << DT_BF16)
#define RT_DTYPES_INT                                                                              \
    (1u << DT_I8 | 1u << DT_I16 | 1u << DT_I32 | 1u << DT_I64 | 1u << DT_U8 | 1u << DT_U16 |       \
     1u << DT_U32 | 1u << DT_U64)
#define RT_DTYPES_REAL (RT_DTYPES_FLOAT | RT_DTYPES_INT)
#define RT_DTYPES_ALL (RT_DTYPES_REAL | 1u << DT_BOOL)

/* ---- for emit functions ---------------------------------------------------------------------- */

/* A tensor at concrete dims, in memory. */
struct rt_tensor {
    enum dtype dtype;
    uint8_t rank;
    bool is_row_major; /* also when another order comes to the same bytes */
    int64_t dims[SHAPE_RANK_MAX];
    int64_t strides[SHAPE_RANK_MAX]; /* in elements */
    int64_t numel;
    size_t bytes;
    struct hal_binding binding; /* whole tensor */
};

/* The node's row. */
const struct rt_op *rt_emit_op(const struct rt_emit *emit);
/* Argument |index|, which is a tensor; NULL when it is none. Valid as long as the plan is made. */
const struct rt_tensor *rt_emit_arg(struct rt_emit *emit, uint32_t index);
/* Output |index|; from 1 on NULL when nothing uses it: it has no memory then. */
const struct rt_tensor *rt_emit_out(struct rt_emit *emit, uint32_t index);
/* Item |item| of a list of tensors. */
const struct rt_tensor *rt_emit_arg_item(struct rt_emit *emit, uint32_t index, uint32_t item);
const struct rt_tensor *rt_emit_out_item(struct rt_emit *emit, uint32_t index, uint32_t item);

/* The argument's value, for kinds, counts, floats and strings. */
const struct rt_value *rt_emit_value(const struct rt_emit *emit, uint32_t index);
/* An int, or item |item| of ints, at the concrete dims. */
int64_t rt_emit_int(const struct rt_emit *emit, uint32_t index);
int64_t rt_emit_ints(const struct rt_emit *emit, uint32_t index, uint32_t item);
/* An S or F argument at the concrete dims. */
double rt_emit_number(const struct rt_emit *emit, uint32_t index);

/* Records a dispatch in the node's region. Dispatches of one node run side by side: none reads what
 * another writes. A grid with a zero records nothing. */
MUST_CHECK enum status rt_emit_dispatch(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                                        struct error *err);

#endif
