/* SPDX-License-Identifier: MIT */
/*
 * Methods whose steps are the same graph but for the content of some constants, as ExecuTorch makes
 * the adapters (LoRA) of one base. Sequences of siblings run as rows of one step: a product whose
 * weights are the same in all of them runs once for all rows, and a product with an adapter's own
 * weights once for each row.
 *
 * Siblings share a counted object that says which constants may differ. So a method that differs
 * from them in further ones is no sibling of theirs.
 */
#ifndef PTED_RUNTIME_CALL_SIBLINGS_H
#define PTED_RUNTIME_CALL_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/refs.h"
#include "base/status.h"
#include "runtime/call/pace.h"

struct hal_pool;
struct rt_method;

struct rt_siblings {
    struct refs refs;
    uint32_t value_count, varying_count;
    bool varies[]; /* by value of the steps' graphs: a constant that may differ */
};

/*
 * Makes |method| and |other| siblings, if they are. Both have the form of a step: rt_steps_prove()
 * has proven more than one row. ST_UNSUPPORTED says what differs; then nothing has changed. On the
 * thread that proves both; steps of both may run meanwhile.
 */
MUST_CHECK enum status rt_siblings_meet(struct rt_method *method, struct rt_method *other,
                                        struct error *err);

/*
 * Proves rows of |method| and of its sibling |other|, which take turns, as rt_batch_prove() proves
 * those of one method; |method| gets the forms, which then serve rows of all siblings. Likewise
 * rt_batch_measure(), with |rows| above 1.
 */
MUST_CHECK enum status rt_siblings_prove(struct rt_method *method, struct rt_method *other,
                                         struct hal_pool *pool, const struct rt_pace *pace,
                                         int64_t rows_max, int64_t *io_rows, struct error *err);
MUST_CHECK enum status rt_siblings_measure(struct rt_method *method, struct rt_method *other,
                                           struct hal_pool *pool, const struct rt_pace *pace,
                                           int64_t rows, int64_t *out_rows, struct error *err);

/* Are these siblings? Any thread. */
bool rt_siblings_are(const struct rt_method *a, const struct rt_method *b);

/* NULL is fine. */
void rt_siblings_unref(struct rt_siblings *siblings);

#endif
