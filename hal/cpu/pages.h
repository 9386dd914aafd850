/* SPDX-License-Identifier: MIT */
/* Pages of the CPU device: ranges of a file in memory. */
#ifndef PTED_HAL_CPU_PAGES_H
#define PTED_HAL_CPU_PAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hal/device_priv.h"

/* The most parts of buffers that are pages at a time. The system allows a process 65,530 mappings,
 * and a part takes up to two: its own, and one for what is left of the buffer behind it. */
#define HAL_CPU_PAGES_PARTS_MAX 16384

/* All pages of a device. */
struct hal_cpu_pages_file {
    pthread_mutex_t lock; /* guards the members before |parts| */
    int fd;               /* -1: there is none yet */
    bool has_no_holes;    /* the system makes none in files, so there will be none */
    uint64_t end;         /* of the ranges that were given so far; none is given twice */
    atomic_uint parts;    /* of buffers */
};

/* That a buffer has parts of pages. */
struct hal_cpu_pages_use {
    struct hal_cpu_pages_use *next;
    struct hal_pages *pages; /* ref held */
    unsigned parts;
};

void hal_cpu_pages_init_file(struct hal_cpu_pages_file *file);
void hal_cpu_pages_fini_file(struct hal_cpu_pages_file *file);

enum status hal_cpu_pages_new(struct hal_device *device, size_t size, struct hal_pages **out_pages,
                              struct error *err);
void hal_cpu_pages_free(struct hal_pages *pages);
enum status hal_cpu_pages_take(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                               size_t offset, size_t size, struct error *err);
enum status hal_cpu_pages_map(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                              size_t offset, size_t size, struct error *err);

/* Call when the mapping of a buffer is gone: frees |uses|, which may be NULL. */
void hal_cpu_pages_end_use(struct hal_cpu_pages_file *file, struct hal_cpu_pages_use *uses);

#endif
