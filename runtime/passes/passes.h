/* SPDX-License-Identifier: MIT */
/*
 * The passes between import and planning. runtime/passes/passes.def says what each does, when, and
 * in which order they run: rt_pass_resolve() is the first one, rt_pass_moves() the last one.
 */
#ifndef PTED_RUNTIME_PASSES_PASSES_H
#define PTED_RUNTIME_PASSES_PASSES_H

#include "base/status.h"
#include "runtime/graph/graph.h"

#define PREPARE_PASS(name) PASS(name, ALWAYS)
#define PASS(name, when)                                                                           \
    MUST_CHECK enum status rt_pass_##name(struct rt_graph *graph, struct error *err);
#define CACHES_PASS(name) /* runtime/passes/caches_int8.h declares it */
#define FOLD()            /* runtime/code/fold.h */
#include "runtime/passes/passes.def"
#undef PREPARE_PASS
#undef PASS
#undef CACHES_PASS
#undef FOLD

#endif
