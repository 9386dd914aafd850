/* SPDX-License-Identifier: MIT */
/* Facts about a loaded program for people and programs; `pte inspect` prints them. Immutable, like
 * the program; any thread. Names live as long as the program. */
#ifndef PTED_RUNTIME_PROGRAM_SUMMARY_H
#define PTED_RUNTIME_PROGRAM_SUMMARY_H

#include "base/shape.h"
#include "base/status.h"
#include "runtime/code/weights.h"
#include "runtime/program/program.h"
#include "runtime/program/resident.h"

/* ---- the file -------------------------------------------------------------------------------- */

size_t rt_program_file_bytes(const struct rt_program *program);

/* Data files that were found or named: number |index|, or NULL. */
const char *rt_program_data_path(const struct rt_program *program, uint32_t index);

/* Does the file know the source lines of its instructions? Does it have names of weights or mutable
 * buffers? */
bool rt_program_has_sources(const struct rt_program *program);
bool rt_program_has_names(const struct rt_program *program);

/* ---- weights --------------------------------------------------------------------------------- */

/* Numbers of one element type. */
struct rt_weight_type {
    const char *name; /* "float32", "int4" */
    uint64_t count;
    size_t bytes;
};

#define RT_WEIGHT_TYPES_MAX 24

/* Everything that the file stores for computing: weights, biases, scales. Each tensor once. */
struct rt_weight_sum {
    uint64_t count; /* of numbers */
    size_t bytes;
    uint32_t tensors, named;
    struct rt_weight_type types[RT_WEIGHT_TYPES_MAX]; /* most numbers first */
    uint32_t type_count;
};

/* Adds up weights of |method|, or, with NULL, of all methods, which may share tensors. A method
 * with a failure has none. */
MUST_CHECK enum status rt_program_sum_weights(const struct rt_program *program,
                                              const struct rt_method *method,
                                              struct rt_weight_sum *out, struct error *err);

struct rt_weight_info {
    const char *name; /* or NULL */
    const char *type;
    struct shape shape; /* as the file stores it: of int4, bytes */
    uint64_t count;
    size_t bytes;
};

void rt_method_each_weight(const struct rt_method *method,
                           void (*fn)(void *arg, const struct rt_weight_info *weight), void *arg);

enum rt_activations rt_method_activations(const struct rt_method *method);

/* ---- methods --------------------------------------------------------------------------------- */

bool rt_method_has_state(const struct rt_method *method);

/* An operator or delegate that a method's instructions call, in the file's order. */
struct rt_callee {
    const char *name; /* "aten::add.out", "XnnpackBackend" */
    bool is_delegate;
    uint32_t calls;
    size_t bytes; /* of a delegate's payload */
};

MUST_CHECK enum status rt_method_each_callee(const struct rt_method *method,
                                             void (*fn)(void *arg, const struct rt_callee *callee),
                                             void *arg, struct error *err);

#define RT_DIM_NAME_MAX 16

/*
 * Returns the name of a dim of an input or of a result, so that equal sizes can be recognised:
 * "batch", or "s3" as in graphs, in |text|. NULL: the dim never varies, or is no size of an input.
 */
const char *rt_method_dim_name(const struct rt_method *method, bool is_input, uint32_t index,
                               uint8_t dim, char text[RT_DIM_NAME_MAX]);

#endif
