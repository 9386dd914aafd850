/* SPDX-License-Identifier: MIT */
/*
 * Timeline semaphores: a u64 that only grows, until the semaphore fails with a status, which is
 * final. They order all work of host threads and devices.
 *
 * Any thread. Callbacks run on the thread that signals, outside all locks; they must not block.
 */
#ifndef PTED_HAL_SEMAPHORE_H
#define PTED_HAL_SEMAPHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/status.h"

struct hal_semaphore;

/*
 * A point on a timeline: it is reached when the semaphore's value is >= |value|. If the semaphore
 * fails first, the point fails, too.
 */
struct hal_timepoint {
    struct hal_semaphore *semaphore; /* borrowed: the maker of the timepoint holds a reference */
    uint64_t value;
};

/*
 * |fn| is called once, when the timepoint is reached (ST_OK) or the semaphore fails (its status).
 * The caller owns the memory, and may use it again as soon as |fn| begins.
 */
struct hal_semaphore_waiter {
    struct list link;
    uint64_t value;
    void (*fn)(struct hal_semaphore_waiter *waiter, enum status status);
};

MUST_CHECK enum status hal_semaphore_new(uint64_t value, struct hal_semaphore **out_semaphore,
                                         struct error *err);
struct hal_semaphore *hal_semaphore_ref(struct hal_semaphore *semaphore);
void hal_semaphore_unref(struct hal_semaphore *semaphore);

/* Reads the current value; ST_OK, or the status it failed with. */
enum status hal_semaphore_query(struct hal_semaphore *semaphore, uint64_t *out_value);

/* |value| is greater than the current one (asserted), unless the semaphore has failed: no effect.
 */
void hal_semaphore_signal(struct hal_semaphore *semaphore, uint64_t value);

/* First failure wins. |status| is not ST_OK. */
void hal_semaphore_fail(struct hal_semaphore *semaphore, enum status status);

/* Waits for at most |timeout_ns| (UINT64_MAX: for ever). ST_TIMEOUT, or the failure's status. */
MUST_CHECK enum status hal_semaphore_wait(struct hal_semaphore *semaphore, uint64_t value,
                                          uint64_t timeout_ns);

/* Adds |waiter|; the caller has set its value and fn. If there is nothing to wait for, this
 * function calls fn itself. */
void hal_semaphore_on(struct hal_semaphore *semaphore, struct hal_semaphore_waiter *waiter);

/* Is this thread inside a callback of a waiter? */
bool hal_semaphore_is_calling(void);

#endif
