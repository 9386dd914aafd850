/* SPDX-License-Identifier: MIT */
/*
 * Memory by kind. What the host sees, too, is where requests are decoded and results are read: the
 * staging memory of calls. A device whose own memory is another one has that for constants and for
 * what only commands touch; where both are one, both kinds are the same memory type.
 *
 * Ranges are pieces of blocks, each of which is one allocation of the driver with one VkBuffer over
 * all of it.
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
    HAL_VULKAN_LOCAL,  /* never mapped, unless it is the same as the other */
    HAL_VULKAN_MEMORIES
};

struct hal_vulkan_block {
    struct list link; /* among the device's; alone when it is of one buffer */
    enum hal_vulkan_memory kind;
    VkDeviceMemory memory;
    VkBuffer buffer;
    uint64_t address;
    uint8_t *host; /* NULL: not mapped */
    size_t size;
    struct list holes; /* free ranges by offset */
    bool is_shared;    /* for many ranges */
};

struct hal_vulkan_range {
    struct hal_vulkan_block *block; /* NULL: no range */
    size_t offset;
};

/* Chooses the memory types. */
MUST_CHECK enum status hal_vulkan_memory_init(struct hal_vulkan_device *device, struct error *err);
/* Frees the empty blocks that were kept, and what uploads need. */
void hal_vulkan_memory_fini(struct hal_vulkan_device *device);

/* |size| bytes, a multiple of HAL_VULKAN_BUFFER_ALIGN; undefined contents. Any thread. */
MUST_CHECK enum status hal_vulkan_range_new(struct hal_vulkan_device *device, size_t size,
                                            enum hal_vulkan_memory kind,
                                            struct hal_vulkan_range *out_range, struct error *err);
void hal_vulkan_range_free(struct hal_vulkan_device *device, struct hal_vulkan_range range,
                           size_t size);

/* ---- upload.c -------------------------------------------------------------------------------- */

/* A copy in local memory of a range of a buffer whose contents are final. */
struct hal_vulkan_copy {
    struct list link; /* in the buffer's copies */
    size_t offset, length;
    struct hal_vulkan_range range;
};

#define HAL_VULKAN_STAGING_CHUNKS 4

/* A ring of chunks through which the host's bytes go to local memory. */
struct hal_vulkan_staging {
    pthread_mutex_t lock;           /* for all of it, and for the copies of all buffers */
    struct hal_vulkan_range chunks; /* made with the first upload */
    VkCommandPool pool;
    VkCommandBuffer commands[HAL_VULKAN_STAGING_CHUNKS];
    uint64_t values[HAL_VULKAN_STAGING_CHUNKS]; /* of the timeline, when each is free again */
};

void hal_vulkan_staging_init(struct hal_vulkan_device *device);
void hal_vulkan_staging_fini(struct hal_vulkan_device *device);

/*
 * Where commands find the bytes of |binding|, which names a buffer: of one whose contents are final
 * a copy in local memory, which is made now and lives as long as the buffer. Blocks. Any thread.
 */
MUST_CHECK enum status hal_vulkan_locate(struct hal_vulkan_device *device,
                                         const struct hal_binding *binding, uint64_t *out_address,
                                         struct error *err);

/* Of a buffer that goes. */
void hal_vulkan_drop_copies(struct hal_vulkan_device *device, struct list *copies);

#endif
