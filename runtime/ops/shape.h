/* SPDX-License-Identifier: MIT */
/* For shape functions: their arguments, and the checks and results that they share. */
#ifndef PTED_RUNTIME_OPS_SHAPE_H
#define PTED_RUNTIME_OPS_SHAPE_H

#include "base/status.h"
#include "runtime/graph/op.h"

static inline struct rt_value *rt_shape_arg(const struct rt_shape_call *call, uint32_t index)
{
    return rt_node_arg(call->graph, call->node, index);
}

static inline bool rt_shape_arg_is_none(const struct rt_shape_call *call, uint32_t index)
{
    return rt_shape_arg(call, index)->kind == RT_NONE;
}

/* Returns the element type of output |index| (the file or the pass declared it). */
static inline enum dtype rt_shape_out_dtype(const struct rt_shape_call *call, uint32_t index)
{
    return rt_node_out(call->graph, call->node, index)->dtype;
}

/* Sets output |index|'s dims; dims that the file declares must agree. */
MUST_CHECK enum status rt_shape_set_out(struct rt_shape_call *call, uint32_t index, uint8_t rank,
                                        const struct rt_dim *dims);
/* Does the same for item |item| of output |index|, which is a list of tensors. */
MUST_CHECK enum status rt_shape_set_out_item(struct rt_shape_call *call, uint32_t index,
                                             uint32_t item, uint8_t rank,
                                             const struct rt_dim *dims);
/* Sets the dims of argument |arg|. */
MUST_CHECK enum status rt_shape_set_out_like(struct rt_shape_call *call, uint32_t index,
                                             uint32_t arg);

/* Says that the requirement between argument and output does not hold: ST_INVALID with the text. */
enum status rt_shape_refuse(struct rt_shape_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Does the same for a call that this build cannot do yet: ST_UNSUPPORTED. */
enum status rt_shape_unsupported(struct rt_shape_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Argument |index| is a tensor (or none, if optional) of one of the types in
 * |dtypes| (1 << DT_…). */
MUST_CHECK enum status rt_shape_need_dtype(struct rt_shape_call *call, uint32_t index,
                                           uint32_t dtypes);
/* Does the same for output |index|: until this is asked, a file may declare what no kernel
 * writes. */
MUST_CHECK enum status rt_shape_need_out_dtype(struct rt_shape_call *call, uint32_t index,
                                               uint32_t dtypes);
/* Argument |index| is a tensor of f32 with these dims. */
MUST_CHECK enum status rt_shape_need_dims(struct rt_shape_call *call, uint32_t index, uint8_t rank,
                                          const struct rt_dim *dims);
/* Reads an int argument that must be a constant (dims, flags), into |out_value|. */
MUST_CHECK enum status rt_shape_need_const(struct rt_shape_call *call, uint32_t index,
                                           int64_t *out_value);
/* Reads a dim number in [-rank, rank) made non-negative; rank 0 takes -1 and 0. */
MUST_CHECK enum status rt_shape_need_dim(struct rt_shape_call *call, int64_t dim, uint8_t rank,
                                         uint8_t *out_dim);
/* From here on |dim| is at least |least|; |what| as for rt_dim_require_equal(). */
MUST_CHECK enum status rt_shape_need_at_least(struct rt_shape_call *call, struct rt_dim dim,
                                              struct rt_dim least, const char *what);
/* Numpy broadcasting of two lists of dims, aligned at the right. */
MUST_CHECK enum status rt_shape_broadcast(struct rt_shape_call *call, uint8_t rank_a,
                                          const struct rt_dim *a, uint8_t rank_b,
                                          const struct rt_dim *b, struct rt_dim out[SHAPE_RANK_MAX],
                                          uint8_t *out_rank);

#define RT_DTYPES_FLOAT (1u << DT_F32 | 1u << DT_F64 | 1u << DT_F16 | 1u << DT_BF16)
#define RT_DTYPES_INT                                                                              \
    (1u << DT_I8 | 1u << DT_I16 | 1u << DT_I32 | 1u << DT_I64 | 1u << DT_U8 | 1u << DT_U16 |       \
     1u << DT_U32 | 1u << DT_U64)
#define RT_DTYPES_REAL (RT_DTYPES_FLOAT | RT_DTYPES_INT)
#define RT_DTYPES_ALL (RT_DTYPES_REAL | 1u << DT_BOOL)
#define RT_DTYPES_COMPLEX (1u << DT_C32 | 1u << DT_C64 | 1u << DT_C128)
#define RT_DTYPES_ANY (RT_DTYPES_ALL | RT_DTYPES_COMPLEX)

#endif
