/* SPDX-License-Identifier: MIT */
/*
 * Two kinds of memory. The host can access shared memory: requests are decoded into it, and results
 * are read from it. Local memory holds constants and data that only commands touch. If the device
 * has no separate memory of its own, both kinds are the same memory type.
 *
 * Ranges are pieces of blocks. A block is one allocation of the driver with one VkBuffer over all
 * of it.
 */
#ifndef PTED_HAL_VULKAN_MEMORY_H
#define PTED_HAL_VULKAN_MEMORY_H

#include "base/list.h"
#include "base/status.h"
#include "hal/vulkan/loader.h"

struct hal_binding;
struct hal_vulkan_device;

enum hal_vulkan_memory {
    HAL_VULKAN_SHARED, /* mapped, without flushing */
    HAL_VULKAN_LOCAL,  /* never mapped, unless it is the same as SHARED */
    HAL_VULKAN_MEMORIES
};

struct hal_vulkan_block {
    struct list link; /* in the device's list; alone if the block has only one buffer */
    enum hal_vulkan_memory kind;
    VkDeviceMemory memory;
    VkBuffer buffer;
    uint64_t address;
    uint8_t *host; /* NULL: not mapped */
    size_t size;
    struct list holes; /* free ranges by offset */
    bool is_shared;    /* it holds many ranges */
};

struct hal_vulkan_range {
    struct hal_vulkan_block *block; /* NULL: no range */
    size_t offset;
};

/* Chooses the memory types. */
MUST_CHECK enum status hal_vulkan_memory_init(struct hal_vulkan_device *device, struct error *err);
/* Frees the empty blocks that were kept, and the memory for uploads. */
void hal_vulkan_memory_fini(struct hal_vulkan_device *device);

/* |size| > 0 bytes, a multiple of HAL_VULKAN_BUFFER_ALIGN, with undefined contents. Any thread. */
MUST_CHECK enum status hal_vulkan_range_new(struct hal_vulkan_device *device, size_t size,
                                            enum hal_vulkan_memory kind,
                                            struct hal_vulkan_range *out_range, struct error *err);
/* |size| is the argument of hal_vulkan_range_new(). Any thread. */
void hal_vulkan_range_free(struct hal_vulkan_device *device, struct hal_vulkan_range range,
                           size_t size);

/* ---- upload.c -------------------------------------------------------------------------------- */

/* A copy in local memory of a range of a buffer with final contents. */
struct hal_vulkan_copy {
    struct list link; /* in the buffer's copies */
    size_t offset, length;
    struct hal_vulkan_range range;
};

#define HAL_VULKAN_STAGING_CHUNKS 4

/* A ring of chunks through which bytes of the host are copied to local memory. */
struct hal_vulkan_staging {
    pthread_mutex_t lock;           /* guards this struct and the copies of all buffers */
    struct hal_vulkan_range chunks; /* allocated by the first upload */
    VkCommandPool pool;
    VkCommandBuffer commands[HAL_VULKAN_STAGING_CHUNKS];
    uint64_t
        values[HAL_VULKAN_STAGING_CHUNKS]; /* the timeline's value at which each is free again */
};

void hal_vulkan_staging_init(struct hal_vulkan_device *device);
void hal_vulkan_staging_fini(struct hal_vulkan_device *device);

/* Finds the device's address of |binding|, which names a buffer and has bytes. If the buffer's
 * contents are final, this makes a copy in local memory that lives as long as the buffer. Blocks.
 * Any thread. */
MUST_CHECK enum status hal_vulkan_locate(struct hal_vulkan_device *device,
                                         const struct hal_binding *binding, uint64_t *out_address,
                                         struct error *err);

/* Frees the copies of a buffer that is being freed. */
void hal_vulkan_drop_copies(struct hal_vulkan_device *device, struct list *copies);

#endif
