/* SPDX-License-Identifier: MIT */
#ifndef PTED_RUNTIME_LOAD_METHOD_H
#define PTED_RUNTIME_LOAD_METHOD_H

#include "base/status.h"
#include "runtime/load/load.h"
#include "runtime/program/method.h"

/*
 * Compiles |plan|. A method that cannot be used keeps the reason in |failure| and ST_OK is
 * returned; anything else is returned (memory, a bug).
 */
MUST_CHECK enum status rt_load_method(struct rt_method *method, struct rt_program *program,
                                      struct rt_files *files, const struct pte_plan *plan,
                                      const struct rt_load_options *options, struct error *err);
#endif
