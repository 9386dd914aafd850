/* SPDX-License-Identifier: MIT */
/* The CPU device: declarations that its files share. */
#ifndef PTED_HAL_CPU_DEVICE_H
#define PTED_HAL_CPU_DEVICE_H

#include <pthread.h>

#include "base/check.h"
#include "base/list.h"
#include "hal/cpu/callers.h"
#include "hal/cpu/isa.h"
#include "hal/cpu/pages.h"
#include "hal/cpu/workers.h"
#include "hal/device_priv.h"

#define HAL_CPU_BUFFER_ALIGN 64

struct hal_cpu_device {
    struct hal_device base;
    enum hal_cpu_isa isa;
    struct hal_cpu_workers *workers;
    struct hal_cpu_callers callers;
    struct hal_cpu_pages_file pages;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t idle;  /* in_flight has become 0 */
    unsigned in_flight;
    uint64_t completed; /* submissions so far */
    struct list free_submissions;
    struct hal_cpu_slab *slabs;
    uint32_t trimmed; /* workspaces that the present round of hal_device_trim() has looked at */
};

extern const struct hal_driver hal_cpu_driver;
extern const struct hal_device_ops hal_cpu_ops;

/* |base| as a device of this driver, which must have opened it. */
static inline struct hal_cpu_device *hal_cpu_device_of(struct hal_device *base)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    must(base->ops == &hal_cpu_ops);
    return (struct hal_cpu_device *)base;
}

/* hal/cpu/buffer.c */
enum status hal_cpu_buffer_new(struct hal_device *device, size_t size, enum hal_memory memory,
                               struct hal_buffer **out_buffer, struct error *err);
enum status hal_cpu_buffers_new(struct hal_device *device, const size_t *sizes, size_t count,
                                struct hal_buffer **out_buffers, struct error *err);
enum status hal_cpu_buffer_import(struct hal_device *device, void *ptr, size_t size, bool is_final,
                                  struct hal_buffer **out_buffer, struct error *err);
void hal_cpu_buffer_free(struct hal_buffer *buffer);
void hal_cpu_buffer_discard(struct hal_buffer *buffer, size_t offset, size_t size);
size_t hal_cpu_buffer_page_bytes(const struct hal_buffer *buffer);
void hal_cpu_buffer_compact(struct hal_buffer *buffer, size_t offset, size_t size, size_t old);
void hal_cpu_buffer_clear(struct hal_buffer *buffer, size_t offset, size_t size);
/* Returns where |buffer| notes its pages. */
struct hal_cpu_pages_use **hal_cpu_buffer_pages(struct hal_buffer *buffer);

/* hal/cpu/queue.c */
MUST_CHECK enum status hal_cpu_queue_init(struct hal_cpu_device *device, struct error *err);
/* Waits until nothing is in flight. */
void hal_cpu_queue_drain(struct hal_cpu_device *device);
void hal_cpu_queue_fini(struct hal_cpu_device *device);
enum status hal_cpu_queue_submit(struct hal_device *device, const struct hal_submission *submission,
                                 struct error *err);
struct hal_progress hal_cpu_queue_progress(struct hal_device *device);

/* hal/cpu/probe.c */
enum status hal_cpu_probe(struct hal_device *device, struct hal_peaks *out_peaks,
                          struct error *err);

#endif
