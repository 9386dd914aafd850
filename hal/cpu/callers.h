/* SPDX-License-Identifier: MIT */
/*
 * Memory for callers: threads that are no workers, and run a submission themselves. A caller takes
 * the memory that was used last, because a cache may still hold it. Any thread.
 */
#ifndef PTED_HAL_CPU_CALLERS_H
#define PTED_HAL_CPU_CALLERS_H

#include <pthread.h>
#include <stdint.h>

#include "base/spare.h"
#include "hal/cpu/thread_memory.h"

/* Callers that can have memory at the same time. */
#define HAL_CPU_CALLERS_MAX 16

struct hal_cpu_callers {
    struct spare spare;   /* one that is free and not in |free| */
    pthread_mutex_t lock; /* guards everything below, but not what is in |memories| */
    struct hal_cpu_thread_memory memories[HAL_CPU_CALLERS_MAX];
    uint32_t made_count, free_count;
    struct hal_cpu_thread_memory *free[HAL_CPU_CALLERS_MAX]; /* of those that were made */
};

void hal_cpu_callers_init(struct hal_cpu_callers *callers);

/* Call when no caller has memory any more. */
void hal_cpu_callers_fini(struct hal_cpu_callers *callers);

/* Returns NULL: too many callers have memory, or there is no address space. */
struct hal_cpu_thread_memory *hal_cpu_callers_take(struct hal_cpu_callers *callers);
void hal_cpu_callers_put(struct hal_cpu_callers *callers, struct hal_cpu_thread_memory *memory);

/* Returns how many memories there are. They stay until the end. */
uint32_t hal_cpu_callers_count(struct hal_cpu_callers *callers);

#endif
