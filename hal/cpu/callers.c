/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/callers.h"

#include "base/check.h"

void hal_cpu_callers_init(struct hal_cpu_callers *callers)
{
    must(pthread_mutex_init(&callers->lock, NULL) == 0);
}

void hal_cpu_callers_fini(struct hal_cpu_callers *callers)
{
    must(callers->free_count + (spare_take(&callers->spare) != NULL) == callers->made_count);
    for (uint32_t i = 0; i < callers->made_count; i++) {
        hal_cpu_thread_memory_fini(&callers->memories[i]);
    }
    pthread_mutex_destroy(&callers->lock);
}

struct hal_cpu_thread_memory *hal_cpu_callers_take(struct hal_cpu_callers *callers)
{
    struct hal_cpu_thread_memory *memory = spare_take(&callers->spare);
    if (memory) {
        return memory;
    }
    pthread_mutex_lock(&callers->lock);
    if (callers->free_count) {
        memory = callers->free[--callers->free_count];
    } else if (callers->made_count < HAL_CPU_CALLERS_MAX &&
               hal_cpu_thread_memory_init(&callers->memories[callers->made_count])) {
        memory = &callers->memories[callers->made_count++];
    }
    pthread_mutex_unlock(&callers->lock);
    return memory;
}

void hal_cpu_callers_put(struct hal_cpu_callers *callers, struct hal_cpu_thread_memory *memory)
{
    must(memory != NULL);
    memory = spare_put(&callers->spare, memory);
    if (!memory) {
        return;
    }
    pthread_mutex_lock(&callers->lock);
    must(callers->free_count < callers->made_count);
    callers->free[callers->free_count++] = memory;
    pthread_mutex_unlock(&callers->lock);
}

uint32_t hal_cpu_callers_count(struct hal_cpu_callers *callers)
{
    pthread_mutex_lock(&callers->lock);
    uint32_t count = callers->made_count;
    pthread_mutex_unlock(&callers->lock);
    return count;
}
