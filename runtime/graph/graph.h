/* SPDX-License-Identifier: MIT */
/*
 * The graph: nodes in topological order over values that are written once.
 *
 * Every argument of a node is a value, scalars and lists included. So a node is an operator with
 * two lists of value numbers, and a printed graph shows everything. Tensors are logical: dims and
 * element type, no memory. |order| says how a tensor lies in memory; only the layout pass sets it.
 * Passes rewrite the graph in place (runtime/passes/rewrite.h) and leave ordering and removal to
 * rt_graph_compact().
 *
 * Storage comes from the graph's arena. One thread builds and rewrites; afterwards the graph is
 * read-only.
 */
#ifndef PTED_RUNTIME_GRAPH_GRAPH_H
#define PTED_RUNTIME_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/precision.h"
#include "base/shape.h"
#include "runtime/graph/dim.h"

struct hal_buffer;
struct rt_op;

enum rt_kind {
    RT_NONE, /* an optional argument that is absent */
    RT_TENSOR,
    RT_INT, /* also dtypes and memory formats, as their numbers */
    RT_FLOAT,
    RT_BOOL,
    RT_STRING,
    RT_INTS,
    RT_FLOATS,
    RT_BOOLS,
    RT_TENSORS, /* a list of value numbers of tensors, or of RT_NONE where optional */
};

#define RT_NO_NODE UINT32_MAX

/* The part of the file that a node comes from, for people. */
struct rt_origin {
    uint32_t instr;  /* number of the instruction, or RT_NO_INSTR */
    uint32_t handle; /* the exporter's number of the node in a delegate's payload; 0: none */
};

#define RT_NO_INSTR UINT32_MAX

struct rt_value {
    enum rt_kind kind;
    enum dtype dtype; /* TENSOR */
    uint8_t rank;     /* TENSOR */
    bool is_constant; /* TENSOR: |bytes| is the content */
    bool is_packed;   /* TENSOR: the layout is private to a kernel; the dims describe storage */
    bool is_half;     /* TENSOR of f32: each number is representable in f16; see rt_graph_infer() */
    bool is_static;   /* TENSOR: |declared| are the exact dims, not only upper bounds */
    uint32_t symbol;  /* FLOAT, BOOL: the expression whose bits the value is; 0: it is constant */
    uint32_t count;   /* lists */
    uint32_t node;    /* the producer, or RT_NO_NODE: constant or method input */
    struct rt_dim *dims;           /* TENSOR: rank dims; NULL until rt_graph_infer() */
    const struct rt_dim *declared; /* TENSOR: constants that the file has for dims, or NULL */
    const uint8_t *order; /* TENSOR: dims from outermost to innermost in memory; NULL: row-major */
    struct span bytes;    /* constant TENSOR (in |order|), STRING */
    const char *name;     /* name of the TENSOR in the file from which it is computed; NULL: none */
    struct hal_buffer *buffer; /* owned: holds |bytes|, unless those are in the file */
    union {
        struct rt_dim i;
        double f;
        bool b;
        struct rt_dim *ints;
        double *floats;
        bool *bools;
        uint32_t *values;
    };
};

struct rt_node {
    const struct rt_op *op;
    uint32_t *args; /* by position in the operator's signature */
    uint32_t *outs;
    uint16_t arg_count, out_count;
    bool is_dead;
    struct rt_origin origin; /* a pass's node has that of the node which the pass visits */
};

#define RT_GRAPH_MAGIC 0x64a9481du

struct rt_graph {
    uint32_t magic;
    struct arena arena; /* owned */
    struct rt_dims dims;
    const char *name;         /* the method's */
    enum precision precision; /* in which passes may let its floats be computed */
    bool is_host; /* it runs on the CPU device: constants may have forms that only kernels of the
                     CPU read */
    uint32_t f32_per_read, bf16_speed, group_max; /* of that device: see hal/device.h */
    struct rt_value *values;
    uint32_t value_count;
    size_t value_capacity;
    struct rt_node *nodes;
    uint32_t node_count;
    size_t node_capacity;
    uint32_t *inputs, input_count; /* values, RT_NONE for unused inputs */
    uint32_t *outputs, output_count;
    struct rt_origin origin;      /* origin of the nodes that are made from now on */
    const struct rt_files *files; /* borrowed: where constants without a buffer lie */
    bool failed; /* the arena is exhausted: checked once after a batch of changes */
};

void rt_graph_init(struct rt_graph *graph, const char *name);
void rt_graph_fini(struct rt_graph *graph);

/* Call once a function below has run out of memory, and has returned value 0: ST_EXHAUSTED if the
 * heap had none, ST_TOO_LARGE if the graph or its sizes became too large. */
MUST_CHECK enum status rt_graph_check(const struct rt_graph *graph, struct error *err);

/* ---- building: each returns the new value's number ------------------------------------------- */

uint32_t rt_graph_none(struct rt_graph *graph);
uint32_t rt_graph_int(struct rt_graph *graph, struct rt_dim value);
uint32_t rt_graph_float(struct rt_graph *graph, double value);
uint32_t rt_graph_bool(struct rt_graph *graph, bool value);
/* Does the same for a number that only a run knows: the 64 bits of a double, or 0 and 1. */
uint32_t rt_graph_run_float(struct rt_graph *graph, struct rt_dim bits);
uint32_t rt_graph_run_bool(struct rt_graph *graph, struct rt_dim bits);
uint32_t rt_graph_string(struct rt_graph *graph, struct span text); /* borrowed */
uint32_t rt_graph_ints(struct rt_graph *graph, const struct rt_dim *items, uint32_t count);
uint32_t rt_graph_floats(struct rt_graph *graph, const double *items, uint32_t count);
uint32_t rt_graph_bools(struct rt_graph *graph, const bool *items, uint32_t count);
uint32_t rt_graph_tensors(struct rt_graph *graph, const uint32_t *items, uint32_t count);
/* |dims| NULL: not known yet. */
uint32_t rt_graph_tensor(struct rt_graph *graph, enum dtype dtype, uint8_t rank,
                         const struct rt_dim *dims);
/* |bytes| is borrowed for the life of the graph; row-major, as long as |shape| requires. */
uint32_t rt_graph_constant(struct rt_graph *graph, enum dtype dtype, const struct shape *shape,
                           struct span bytes);

/* Appends a node; |outs| are values without a producer. The lists are copied.
 * Returns its number. */
uint32_t rt_graph_node(struct rt_graph *graph, const struct rt_op *op, const uint32_t *args,
                       uint32_t arg_count, const uint32_t *outs, uint32_t out_count);

/*
 * Runs a node's shape function. To be called once for each node, in order, by the code that adds
 * the node, so that every value in a graph has dims. The error names the operator.
 *
 * It also marks floats that are widened halves and have only been moved since then.
 */
MUST_CHECK enum status rt_graph_infer(struct rt_graph *graph, uint32_t node, struct error *err);

/* Makes |value| a constant whose content is all of |buffer|; takes over the caller's reference. */
void rt_graph_set_constant(struct rt_graph *graph, uint32_t value, struct hal_buffer *buffer);

/* ---- looking --------------------------------------------------------------------------------- */

static inline struct rt_value *rt_graph_value(const struct rt_graph *graph, uint32_t value)
{
    return &graph->values[value];
}

/* Is every dim a constant? Then the shape into |out_shape|. */
bool rt_value_shape(const struct rt_value *value, struct shape *out_shape);

/* Are all dims of the two tensors the same? */
bool rt_value_same_dims(const struct rt_value *a, const struct rt_value *b);

/* Is every entry of the list of ints |value|? */
bool rt_ints_are(const struct rt_value *list, int64_t value);

/* Returns the product of all dims. */
struct rt_dim rt_value_numel(struct rt_graph *graph, const struct rt_value *value);

/* Is the number the same in every call? */
static inline bool rt_value_is_fixed(const struct rt_value *value)
{
    return value->kind == RT_INT ? rt_dim_is_const(value->i) : value->symbol == 0;
}

/*
 * Returns an int, float or bool that is the same in every call, as a double (ints beyond 2^53 lose
 * digits).
 */
static inline double rt_value_number(const struct rt_value *value)
{
    return value->kind == RT_INT     ? (double)value->i.value
           : value->kind == RT_FLOAT ? value->f
                                     : (double)value->b;
}

/* Returns an int, float or bool as the bits of a double. */
struct rt_dim rt_graph_double(struct rt_graph *graph, const struct rt_value *value);

/* Returns a node's argument / output. */
static inline struct rt_value *rt_node_arg(const struct rt_graph *graph, const struct rt_node *node,
                                           uint32_t index)
{
    return &graph->values[node->args[index]];
}

static inline struct rt_value *rt_node_out(const struct rt_graph *graph, const struct rt_node *node,
                                           uint32_t index)
{
    return &graph->values[node->outs[index]];
}

/*
 * Iterates over the tensors among |values|: the items of lists one by one; skips all other values.
 */
struct rt_tensors {
    const struct rt_graph *graph;
    const uint32_t *values;
    uint32_t count, at, item;
};

static inline struct rt_tensors rt_node_arg_tensors(const struct rt_graph *graph,
                                                    const struct rt_node *node)
{
    return (struct rt_tensors){.graph = graph, .values = node->args, .count = node->arg_count};
}

static inline struct rt_tensors rt_node_out_tensors(const struct rt_graph *graph,
                                                    const struct rt_node *node)
{
    return (struct rt_tensors){.graph = graph, .values = node->outs, .count = node->out_count};
}

/* Stores the next tensor in |out_value|; false: there is none. */
bool rt_tensors_next(struct rt_tensors *it, uint32_t *out_value);

/* Are the elements of |v|, a tensor, in the same places row-major and channels-last, whatever its
 * dims finally are? */
bool rt_value_orders_agree(const struct rt_value *v);

/* ---- tidying --------------------------------------------------------------------------------- */

/* Drops dead nodes and nodes whose outputs no node needs, frees unused constants, and sorts the
 * rest topologically, as near to the present order as possible. */
MUST_CHECK enum status rt_graph_compact(struct rt_graph *graph, struct error *err);

/* ---- text ------------------------------------------------------------------------------------ */

/* Appends what a file knows about instruction |instr|: a line of the exported model's source.
 * False: it knows nothing. */
typedef bool rt_note_f(const void *arg, uint32_t instr, struct buf *out);

struct rt_notes {
    rt_note_f *note;
    const void *arg;
};

/* Deterministic. Constants are printed by type, shape and name, other values with their content. A
 * line of the source stands before the nodes that come from it; |notes| may be NULL. */
void rt_graph_print(const struct rt_graph *graph, const struct rt_notes *notes, struct buf *out);

/* |before|, the node's source line and its handle, if there are any. */
void rt_node_print_origin(const struct rt_node *node, const struct rt_notes *notes,
                          const char *before, struct buf *out);
/* Prints "stem.0", the module that has its first weight; nothing if no name of a weight is
 * known. */
void rt_node_print_layer(const struct rt_graph *graph, const struct rt_node *node, struct buf *out);
/* Prints the names of its arguments, each in quotes after a blank. */
void rt_node_print_names(const struct rt_graph *graph, const struct rt_node *node, struct buf *out);

/* Prints "f32[s1,8]" or "ints [2,2]". */
void rt_value_print(const struct rt_graph *graph, uint32_t value, struct buf *out);

#endif
