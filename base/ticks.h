/* SPDX-License-Identifier: MIT */
/*
 * A clock that costs one instruction to read, in units of its own: what it says is compared with
 * other readings of the same time alone. A thread that moves between processors may see it stand
 * still or go back.
 */
#ifndef PTED_BASE_TICKS_H
#define PTED_BASE_TICKS_H

#include <stdint.h>
#include <time.h>

/* Returns the clock. Any thread. */
static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Returns the ticks between two readings; 0 if the clock went back. */
static inline uint64_t ticks_between(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

#endif
