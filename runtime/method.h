/* SPDX-License-Identifier: MIT */
/*
 * The inside of a method: what runtime/ shares between loading, planning and calling it. Everything
 * but the plan cache and the free invocations is immutable once rt_method_compile() returned.
 */
#ifndef PTED_RUNTIME_METHOD_H
#define PTED_RUNTIME_METHOD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/flow.h"
#include "runtime/plan/plan.h"
#include "runtime/program.h"
#include "runtime/pte/pte.h"
#include "runtime/signature.h"

struct hal_device;

struct rt_method {
    struct rt_program *program;  /* borrowed: the method is part of it */
    const struct pte_plan *plan; /* borrowed from the program's file */
    struct hal_device *device;   /* borrowed from the program */
    bool poison_arenas;
    struct error failure;           /* code ST_OK: none */
    struct rt_io *inputs, *results; /* owned */
    struct rt_graph graph;          /* meaningful without failure */
    struct rt_flow flow;            /* storage in the graph's arena */
    struct arena signature_arena;
    struct rt_signature signature; /* storage in signature_arena */
    uint32_t *symbols;             /* expressions that requests choose, in graph.arena */
    uint32_t symbol_count;

    atomic_uint_fast64_t inputs_in_place, converted_inputs; /* bound so far */

    pthread_mutex_t mutex; /* guards what follows */
    struct list plans;     /* struct cached_plan, most recently used first */
    uint32_t plan_count;
    size_t plan_bytes;
    int64_t *values;         /* by expression, of the call being planned; in graph.arena */
    struct list invocations; /* free ones, struct rt_invocation */
    uint32_t invocation_count;
};

/*
 * Compiles |plan|. A method that cannot be used keeps the reason in |failure| and ST_OK is
 * returned; anything else is returned (memory, a bug).
 */
MUST_CHECK enum status rt_method_compile(struct rt_method *method, struct rt_program *program,
                                         const struct pte_plan *plan, struct hal_device *device,
                                         struct hal_buffer *file, struct error *err);
void rt_method_fini(struct rt_method *method);

/*
 * The plan for the dims in |shapes| (by input; only those of tensors mean anything), which have
 * been checked one by one: from the cache, or made now. ST_INVALID when the dims do not go
 * together. The caller owns a reference.
 */
MUST_CHECK enum status rt_method_plan(struct rt_method *method, const struct shape *const *shapes,
                                      struct rt_plan **out_plan, struct error *err);

/*
 * Puts the symbols' values into |values| (by expression) from the inputs' shapes, each of which
 * fits its input. ST_INVALID when two inputs disagree.
 */
MUST_CHECK enum status rt_method_symbols(const struct rt_method *method,
                                         const struct shape *const *shapes, int64_t *values,
                                         struct error *err);

/* Frees an invocation for good; runtime/vm/invocation.c has it, the method calls it at its end. */
void rt_invocation_destroy(struct list *link);

#endif
