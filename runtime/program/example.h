/* SPDX-License-Identifier: MIT */
/*
 * Shapes to call a method with when the user gives none: for an example, a measurement, a load
 * test. A file gives only an upper bound for a dim that may vary; and it says so for every dim of
 * such a tensor, also for dims that never vary. So:
 *
 *     1. Dim 0 of an input with two or more dims counts as a batch: 1.
 *     2. Every other dim is its upper bound: exporters write the size of their example there, or
 *        the longest sequence.
 *     3. In a method with state the other dims of an input of integers are 1: such a call is a
 *        step, which takes one token.
 *     4. Dims that have to be equal are equal, and all other requirements of the method hold; a
 *        dim is then as near to these rules as that allows.
 *
 * Any thread.
 */
#ifndef PTED_RUNTIME_PROGRAM_EXAMPLE_H
#define PTED_RUNTIME_PROGRAM_EXAMPLE_H

#include "base/shape.h"
#include "base/status.h"
#include "runtime/program/program.h"

struct rt_result_info;

/*
 * |given|: by raw input, the shape that the caller wants for it, or NULL; the others are chosen to
 * match. |given| itself may be NULL. |out_shapes|: by raw input, rank 0 if the method takes no
 * tensor there. rt_method_result_shapes() accepts them. If no shapes can be found: ST_INVALID, and
 * why the first ones were refused. The method has no failure.
 */
MUST_CHECK enum status rt_example_shapes(struct rt_method *method, const struct shape *const *given,
                                         struct shape *out_shapes, struct error *err);

/* Does the same, and the results that go with the shapes: |out_infos|, by raw result. No entry of
 * |given| is needed, but the list is. */
MUST_CHECK enum status rt_example_find(struct rt_method *method, const struct shape *const *given,
                                       struct shape *out_shapes, struct rt_result_info *out_infos,
                                       struct error *err);

/* Is dim |dim| of input |input| a batch by rule 1? It is if it may vary and is the first dim with
 * its size. */
bool rt_example_is_batch(const struct rt_method *method, uint32_t input, uint8_t dim);

#endif
