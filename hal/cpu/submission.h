/* SPDX-License-Identifier: MIT */
/*
 * A submission in flight: the unit that workers serve. One word, the cursor, has the number of the
 * current region and the numbers of batches of tiles that were taken from its begin and its end, so
 * one atomic addition gives a worker a batch and the number of its region. The worker that finishes
 * the last tile of a region begins the next region.
 *
 * Every other worker takes batches from the end. If tiles are bands of an image, a worker then
 * mostly reads what it wrote in the preceding region, from its own cache. A depthwise convolution
 * takes twice as long when its input comes from the cache of another core.
 *
 * Objects come from slabs, are used again, and are freed with the device. The tables of slots have
 * their maximum size: parts that are not touched cost only address space.
 */
#ifndef PTED_HAL_CPU_SUBMISSION_H
#define PTED_HAL_CPU_SUBMISSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "hal/cpu/routine.h"
#include "hal/queue.h"
#include "hal/timepoints.h"

struct hal_cpu_device;
struct hal_cpu_submission;
struct hal_cpu_thread_memory;

/* The magic number of a submission in flight, and of one in the device's free list. */
#define HAL_CPU_SUBMISSION_MAGIC 0x5b3155a8u
#define HAL_CPU_SUBMISSION_FREE_MAGIC 0xf4ee5ba9u

struct hal_cpu_submission {
    /* Workers write these; nothing else is in this cache line. */
    _Alignas(64) _Atomic uint64_t cursor; /* see hal_cpu_cursor_region(); may run past the end */
    atomic_uint unfinished;               /* tiles of the region that have not been run */
    atomic_int status;                    /* the first failure */
    atomic_uint visitors;                 /* threads in here; written under the workers' lock */
    atomic_bool is_complete;              /* its signals have been given */

    _Alignas(64) uint32_t magic; /* in flight, or waiting in the free list */
    struct list link;            /* in the workers' list, or the device's free list */
    uint32_t share;              /* below HAL_SHARES */
    uint32_t weight;             /* of the share; at least 1 */
    bool keeps_slots;            /* see struct hal_submission */
    bool nothing_to_run;         /* no regions, or a wait has failed */
    bool is_placed;              /* under the workers' lock: a thread has begun it */
    bool finished;               /* likewise */
    struct hal_cpu_device *device;
    struct hal_command *command;
    const struct hal_cpu_routine *routine;
    const atomic_bool *cancel;
    struct hal_fault_record *fault;    /* the submitter's or our own */
    struct hal_fault_record own_fault; /* used if the submitter supplies none */
    struct hal_profile *profile;       /* the submitter's, or NULL */

    struct hal_timepoints timepoints;

    struct hal_cpu_thread_memory *memory; /* whose workspace it uses, or NULL */
    uint32_t slot_count;
    struct hal_buffer *buffers[HAL_SLOTS_MAX + 1];
    uint8_t *slots[HAL_SLOTS_MAX + 1];
};

/* A cursor: 24 bits are the region, 20 each the batches taken from its begin and from its end. */
#define HAL_CPU_CURSOR_REGION ((uint64_t)1 << 40)
#define HAL_CPU_CURSOR_FRONT ((uint64_t)1 << 20)
#define HAL_CPU_CURSOR_BACK ((uint64_t)1)

static inline uint32_t hal_cpu_cursor_region(uint64_t cursor)
{
    return (uint32_t)(cursor / HAL_CPU_CURSOR_REGION);
}

static inline uint32_t hal_cpu_cursor_front(uint64_t cursor)
{
    return (uint32_t)(cursor % HAL_CPU_CURSOR_REGION / HAL_CPU_CURSOR_FRONT);
}

static inline uint32_t hal_cpu_cursor_back(uint64_t cursor)
{
    return (uint32_t)(cursor % HAL_CPU_CURSOR_FRONT);
}

/* |submission| is begun by a thread with |memory|, whose workspace replaces its transient
 * slot. Later calls have no effect. With the workers' lock held. */
void hal_cpu_submission_place(struct hal_cpu_submission *submission,
                              struct hal_cpu_thread_memory *memory);

/* Drops the buffers and gives the signals, or fails them. Called by the worker that finished the
 * submission. */
void hal_cpu_submission_complete(struct hal_cpu_submission *submission);

/* Makes the object free for another submission. Called by the last worker that leaves a finished
 * submission. */
void hal_cpu_submission_recycle(struct hal_cpu_submission *submission);

#endif
