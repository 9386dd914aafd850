/* SPDX-License-Identifier: MIT */
/*
 * What a program may call, for people and for tools: the operators of graphs, and what the host
 * computes between blocks. Constant; any thread.
 */
#ifndef PTED_RUNTIME_IMPORT_OPERATORS_H
#define PTED_RUNTIME_IMPORT_OPERATORS_H

#include <stdint.h>

struct rt_operator {
    const char *name;    /* in graphs; NULL: it is in none, the host computes it */
    const char *args;    /* kinds of arguments and results, see runtime/graph/op.h; NULL likewise */
    const char *kernels; /* the kernel calls that mean it, between blanks; NULL: no call does */
    const char *kind;    /* "view", "scalar", "in place", "host", or "" */
    uint32_t dtypes;     /* bit d is set: its first tensor may be of enum dtype d; 0: it has none */
    uint32_t drivers;    /* bit i is set: devices of hal_driver_name(i) have a form, or need none */
};

typedef void rt_operator_f(const struct rt_operator *op, void *arg);

/* Calls |fn| for each, family by family; those of the host come last. */
void rt_operators_each(rt_operator_f *fn, void *arg);

#endif
