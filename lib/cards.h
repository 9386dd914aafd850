/* SPDX-License-Identifier: MIT */
/*
 * The door of the library for cards of models (server/model/card/card.h). Cards put steps in front
 * of a program while it is loaded, give it names, and make inputs of files; they do so for the
 * daemon, which has no library between itself and the runtime. So this is not a part of pted.h, and
 * is not installed.
 */
#ifndef PTED_LIB_CARDS_H
#define PTED_LIB_CARDS_H

#include "base/status.h"
#include "lib/pted.h"

struct rt_invocation;
struct rt_load_options;
struct rt_method;
struct rt_program;

/* What becomes of a program while it is loaded. */
struct lib_adapter {
    void *own; /* passed to the functions */
    /* Before: sets what pted_load_options has not. */
    void (*begin)(void *own, struct rt_load_options *options);
    /* Afterwards, while nobody uses the program. */
    enum status (*end)(void *own, struct rt_program *program, struct error *err);
};

/* Loads as pted_program_load() does. */
PTED_CHECKED enum pted_status lib_program_load(struct pted_device *device, const char *path,
                                               const struct pted_load_options *options,
                                               const struct lib_adapter *adapter,
                                               struct pted_program **out_program,
                                               struct pted_error *err);

/* Give the runtime's objects, which are borrowed. That of a call is another one after
 * pted_call_reset(). */
struct rt_method *lib_method_runtime(const struct pted_method *method);
struct rt_invocation *lib_call_runtime(const struct pted_call *call);

#endif
