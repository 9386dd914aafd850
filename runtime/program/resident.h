/* SPDX-License-Identifier: MIT */
/* The memory that a method keeps as long as it is loaded. Any thread. */
#ifndef PTED_RUNTIME_PROGRAM_RESIDENT_H
#define PTED_RUNTIME_PROGRAM_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct rt_method;
struct rt_value;

/* Bytes that the method's weights are read from: in place in the files, and in forms of their own.
 * Methods may share them. */
struct rt_resident {
    size_t file_bytes, own_bytes;
};

/* Call without a failure of the method; a pipeline has nothing of its own. */
MUST_CHECK enum status rt_method_resident(const struct rt_method *method, struct rt_resident *out,
                                          struct error *err);

/* Calls |fn| for each constant that calls of the method read. */
MUST_CHECK enum status rt_method_each_constant(const struct rt_method *method,
                                               void (*fn)(void *arg, const struct rt_value *value),
                                               void *arg, struct error *err);

/* Does the host decide over parts of a call while it runs? Then rt_method_measure() counts results,
 * and not what these parts take. */
bool rt_method_has_statements(const struct rt_method *method);

#endif
