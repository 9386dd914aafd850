/* SPDX-License-Identifier: MIT */
/*
 * Orders of memory at the borders of a method. Its inputs and results are row-major unless a call
 * says otherwise. Where another order spares the compiled graph a reorder (runtime/passes/ends.h),
 * struct rt_io has that order, and a bit. A call with some of these bits runs in a form of the
 * method that takes those inputs, and gives those results, in their preferred order. Forms are made
 * when they are first needed. They share the weights, and the results are the same numbers. Clients
 * choose among many, so the plans of all forms together have the memory of one block's.
 *
 * A method of several statements, of a pipeline or with mutable buffers has no such orders.
 */
#ifndef PTED_RUNTIME_PROGRAM_ORDERS_H
#define PTED_RUNTIME_PROGRAM_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct rt_block;
struct rt_io;
struct rt_method;
struct rt_plan_stats;

/* Tensors of a method that may have another order, inputs first; the others are row-major. */
#define RT_ORDERS_MAX 6
#define RT_ORDERS_FORMS (1u << RT_ORDERS_MAX)

struct rt_orders_form {
    struct rt_block *block; /* owned; NULL: not made yet, or for no bits */
    uint64_t used_at;       /* the look at forms that found it last */
};

/* The method's mutex guards them. */
struct rt_orders {
    struct rt_orders_form forms[2 * RT_ORDERS_FORMS]; /* by bits: for one call, then for a batch */
    uint64_t look_count;
};

/* Gives |io| the order that it prefers, which may be NULL, and the next bit; |*taken| counts those
 * of its method. Does nothing to what is no tensor, or when all bits are taken. */
void rt_orders_prefer(struct rt_io *io, const uint8_t *order, uint32_t *taken);

/* Finds the orders of the inputs and results of |method|, which has been compiled. */
MUST_CHECK enum status rt_orders_find(struct rt_method *method, struct error *err);

void rt_orders_fini(struct rt_method *method);

/*
 * Finds the form of |from|, the method's only block or its form for several rows, for the tensors
 * whose bits are in |bits|, at least one. If |may_make| is false and there is none yet, |*out_form|
 * is NULL. It lives as long as the method. ST_UNSUPPORTED: there is no such form. Any thread.
 */
MUST_CHECK enum status rt_orders_form(struct rt_method *method, const struct rt_block *from,
                                      uint32_t bits, bool may_make, struct rt_block **out_form,
                                      struct error *err);

/* Call when |form| has made a plan: the other forms, those first that were used least recently,
 * drop theirs until the plans of all have at most |bytes_max| bytes. Any thread. */
void rt_orders_trim(struct rt_method *method, const struct rt_block *form, size_t bytes_max);

/* Adds the plans of all forms to |stats|. Any thread. */
void rt_orders_add_stats(struct rt_method *method, struct rt_plan_stats *stats);

#endif
