/* SPDX-License-Identifier: MIT */
/* The operators that a program may call, for people and for tools: operators of graphs, and calls
 * that the host executes between blocks. Constant; any thread. */
#ifndef PTED_RUNTIME_IMPORT_OPERATORS_H
#define PTED_RUNTIME_IMPORT_OPERATORS_H

#include <stdint.h>

struct rt_operator {
    const char *name;    /* in graphs; NULL: only the host executes it */
    const char *args;    /* kinds of arguments and results, see runtime/graph/op.h; NULL likewise */
    const char *kernels; /* the names of its kernel calls, between blanks; NULL: none */
    const char *kind;    /* "view", "scalar", "in place", "host", or "" */
    uint32_t dtypes;     /* bit d: its first tensor may have enum dtype d; 0: it has no tensor */
    uint32_t drivers; /* bit i: devices of hal_driver_name(i) have a kernel for it, or need none */
};

typedef void rt_operator_f(const struct rt_operator *op, void *arg);

/* Calls |fn| for each operator, family by family; calls of the host come last. */
void rt_operators_each(rt_operator_f *fn, void *arg);

#endif
