/* SPDX-License-Identifier: MIT */
/*
 * Steps: calls of a method with mutable buffers, each of its smallest size and of a state of its
 * own, as one call. For a language model these are the steps that decode one token of different
 * sequences. The products read the weights once for all; each row has its own buffers and its own
 * position (runtime/code/step.h, runtime/passes/rows.h).
 *
 * The joined call reads the inputs of the rows where they lie, and writes results and the next
 * generations of states where the rows want them: nothing is copied on the host. Each row ends for
 * itself: a cancelled one keeps its state as it was, and the others go on. Inside batches
 * (runtime/call/batch.c), which own the runs.
 *
 * Rows may be of several methods that differ in the content of some constants, as the adapters of
 * one base do (runtime/call/siblings.h). Then each row gives the joined call its own constants.
 */
#ifndef PTED_RUNTIME_CALL_STEPS_H
#define PTED_RUNTIME_CALL_STEPS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/call/inside.h"
#include "runtime/call/pace.h"
#include "runtime/call/speculation.h"
#include "runtime/code/step.h"
#include "runtime/program/method.h"

struct rt_siblings;

/* Rows of a joined call. Each number of rows has a graph and a plan of its own. */
#define RT_STEPS_ROWS_MAX 8

/* Of a method; made before its first call. A form is made by the thread that proves it, before any
 * other uses it; forms that have been proven may be in use meanwhile. */
struct rt_steps {
    struct rt_step step;
    bool has_step;
    struct rt_siblings *_Atomic siblings;           /* ref held; set once; NULL: it has none */
    bool *is_private;                               /* by input of the step's graph */
    struct rt_method *forms[RT_STEPS_ROWS_MAX + 1]; /* owned; by rows; NULL: not made */
    struct rt_method *mixed[RT_STEPS_ROWS_MAX + 1]; /* owned: the same for rows of siblings */
    _Atomic uint32_t mixed_rows;                    /* up to which these are proven */
    struct rt_method
        *speculation[RT_SPECULATION_STEPS_MAX + 1]; /* the same for steps of one sequence */
};

/* Steps that run as one. */
struct rt_steps_run {
    struct rt_steps *steps; /* of the method that has the form */
    uint32_t count;
    struct rt_invocation *parts[RT_STEPS_ROWS_MAX]; /* borrowed: they do not leave */
    bool is_kept[RT_STEPS_ROWS_MAX];                /* its results and its writes */
    bool has_states;                                /* the states are busy with this run */
};

/* Gives |method|, which has mutable buffers, the storage for joined steps. */
MUST_CHECK enum status rt_steps_open(struct rt_method *method, struct error *err);
void rt_steps_free(struct rt_method *method);

/* Makes the form for |rows| calls unless it is there. One thread. The same for rows of |method| and
 * of its siblings. */
MUST_CHECK enum status rt_steps_make_form(struct rt_method *method, uint32_t rows,
                                          struct error *err);
MUST_CHECK enum status rt_steps_make_mixed_form(struct rt_method *method, uint32_t rows,
                                                struct error *err);

/* For forms: a method of the same program and device, without code; NULL: no memory. Describes an
 * input or result of a form as one of a method. The only element of a call's input, or NULL. */
struct rt_method *rt_steps_new_form(const struct rt_method *method);
void rt_steps_describe(struct rt_io *io, const struct rt_graph *graph, uint32_t value,
                       const char *label);
const int64_t *rt_steps_element(const struct rt_invocation *inv, uint32_t input);

/* 1 if the planned call may be one of several rows; else 0. */
int64_t rt_steps_rows(const struct rt_invocation *invocation);

/*
 * Makes the call that runs the parts of |run| as one, and prepares it: the states of the parts are
 * busy from now on. They are of one method, or of siblings of which one has the mixed form.
 * |*out_joined| is set also after a failure. rt_steps_abandon() if the call is
 * not submitted.
 */
MUST_CHECK enum status rt_steps_join(struct rt_steps_run *run, struct hal_pool *pool,
                                     struct rt_invocation **out_joined, struct error *err);
void rt_steps_abandon(struct rt_steps_run *run);

/* Finds how many rows give the same bits together as alone, up to |rows_max|, and how many are
 * worth it: see rt_batch_prove() and rt_batch_measure(). */
MUST_CHECK enum status rt_steps_prove(struct rt_method *method, struct hal_pool *pool,
                                      const struct rt_pace *pace, int64_t rows_max,
                                      int64_t *io_rows, struct error *err);
MUST_CHECK enum status rt_steps_measure(struct rt_method *method, struct hal_pool *pool,
                                        const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                                        struct error *err);

#endif
