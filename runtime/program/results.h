/* SPDX-License-Identifier: MIT */
/*
 * Results before they are computed: a method's shape program evaluated for given inputs. Nothing is
 * planned or run; a call would refuse the same sizes. A method of several blocks tells the sizes
 * that do not depend on data (runtime/program/foresee.h). Any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_RESULTS_H
#define PTED_RUNTIME_PROGRAM_RESULTS_H

#include "base/shape.h"
#include "base/status.h"
#include "runtime/program/program.h"

struct rt_result_info {
    struct shape shape;  /* of a tensor; a dim that is not known is at most that */
    size_t bytes;        /* of |shape| */
    uint32_t known_dims; /* bit d: dim d is known; else it depends on data or on control flow */
    bool is_tensor;
    bool is_known; /* all of its dims are */
};

/*
 * |inputs| by raw index, NULL where the method takes no tensor; |out_infos| by raw index. The
 * method has no failure. Sizes that have to be equal are compared. Other refusals of an operator,
 * such as an image of no pixels, come when a call is prepared.
 */
MUST_CHECK enum status rt_method_result_shapes(struct rt_method *method,
                                               const struct shape *const *inputs,
                                               struct rt_result_info *out_infos, struct error *err);

/* Does the same for a caller that knows the inputs as arguments, as rt_invocation_say_paths(). */
MUST_CHECK enum status rt_method_call_shapes(struct rt_method *method,
                                             const struct shape *const *inputs,
                                             struct rt_result_info *out_infos, struct error *err);

/*
 * Does as rt_method_result_shapes(). Unless |out_bytes| is NULL it gets the pool memory that a call
 * takes beside its inputs: for results and intermediate values of known size, and for written
 * mutable buffers. If sizes depend on data, it is the least.
 */
MUST_CHECK enum status rt_method_measure(struct rt_method *method,
                                         const struct shape *const *inputs,
                                         struct rt_result_info *out_infos, size_t *out_bytes,
                                         struct error *err);

/* Measures the callable's |measure| of methods that come from a file. */
MUST_CHECK enum status rt_results_measure(struct rt_method *method,
                                          const struct shape *const *inputs, bool says_paths,
                                          struct rt_result_info *out_infos, size_t *out_bytes,
                                          struct error *err);

/*
 * |extent| is the shape of result |index| in a call that has run, and makes |info| exact.
 * ST_INVALID if the call cannot have given such a shape; the caller puts a name before the text.
 */
MUST_CHECK enum status rt_method_take_extent(const struct rt_method *method, uint32_t index,
                                             const struct shape *extent,
                                             struct rt_result_info *info, struct error *err);

/* Returns the bounds of a result, which are known without the inputs. */
struct rt_result_info rt_result_bounds(const struct rt_io *io);

#endif
