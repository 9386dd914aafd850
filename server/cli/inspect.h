/* SPDX-License-Identifier: MIT */
/* Shared by the files of `pte inspect`: the facts of a program, as text and as JSON. One thread. */
#ifndef PTED_SERVER_CLI_INSPECT_H
#define PTED_SERVER_CLI_INSPECT_H

#include "base/buf.h"
#include "base/status.h"
#include "runtime/program/program.h"
#include "runtime/program/summary.h"

/* A program and its name. */
struct inspected {
    struct rt_program *program;
    const char *path;
    struct span name; /* under which a daemon serves it */
};

/* Memory of a call at given shapes: its inputs, results and intermediate values. */
struct call_memory {
    bool has_shapes; /* false: the sizes exclude each other */
    bool is_known;   /* false: |bytes| depends on data */
    size_t bytes;
    struct shape *shapes; /* owned; by raw input */
};

/* At the shapes that rt_example_shapes() chooses, or at the largest. The caller frees it. */
MUST_CHECK enum status call_memory_measure(struct rt_method *method, bool is_largest,
                                           struct call_memory *out, struct error *err);
void call_memory_fini(struct call_memory *memory);

/* Is it served under the program's own name, not as NAME.METHOD? */
bool inspect_is_default(const struct inspected *it, const struct rt_method *method);

/* Prints a page for people; everything as JSON for programs. */
MUST_CHECK enum status inspect_print_text(const struct inspected *it, struct buf *out,
                                          struct error *err);
MUST_CHECK enum status inspect_print_json(const struct inspected *it, struct buf *out,
                                          struct error *err);

#endif
