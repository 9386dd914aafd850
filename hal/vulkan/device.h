/* SPDX-License-Identifier: MIT */
/*
 * The Vulkan device: declarations that the files of this folder share. No file above this folder
 * includes vulkan.h.
 *
 * Shaders access memory by address (VK_KHR_buffer_device_address), not through descriptors: a
 * dispatch's push constants point to a table of its bindings. To replay a command buffer with other
 * buffers, it suffices to write their addresses into that table. See shaders/kernel.glsl.
 */
#ifndef PTED_HAL_VULKAN_DEVICE_H
#define PTED_HAL_VULKAN_DEVICE_H

#include <pthread.h>

#include "base/check.h"
#include "base/list.h"
#include "hal/device_priv.h"
#include "hal/vulkan/features.h"
#include "hal/vulkan/loader.h"
#include "hal/vulkan/memory.h"

/* Alignment of every buffer: a cache line, which is enough for any element or vector. */
#define HAL_VULKAN_BUFFER_ALIGN 64

/* Invocations of a workgroup, unless the SPIR-V form asks for more or a subgroup is larger. */
#define HAL_VULKAN_WORKGROUP 64

/* The push constants of a dispatch; shaders/kernel.glsl declares them for shaders. */
struct hal_vulkan_push {
    uint64_t bindings;  /* address of a struct hal_vulkan_binding for each */
    uint64_t constants; /* address of the recorded constants */
    uint32_t base[3];   /* of a part of the grid: added to the workgroup's number */
    uint32_t grid[3];
};
_Static_assert(sizeof(struct hal_vulkan_push) <= 128, "every device has 128 bytes for them");

struct hal_vulkan_binding {
    uint64_t address; /* 0: no bytes */
    uint64_t length;
};

struct hal_vulkan_buffer {
    struct hal_buffer base;
    uint64_t address;              /* 0: no bytes, or none that the device can access */
    struct hal_vulkan_range range; /* none: no bytes, or the host's own memory */
    struct list copies;            /* copies of parts of it in local memory: upload.c */
};

struct hal_vulkan_device {
    struct hal_device base;
    struct hal_device *host; /* owned: the CPU device that runs kernels without a shader */
    const struct hal_vulkan_instance *instance;
    VkPhysicalDevice physical;
    struct hal_vulkan_abilities abilities;
    VkDevice handle;
    VkQueue queue;
    uint32_t queue_family;
    uint64_t tick_mask; /* valid bits of a timestamp; 0: there are none, and no profiles */
    double tick_ns;
    uint32_t grid_max[3]; /* workgroups of one dispatch */
    uint32_t lanes_max;   /* invocations of a workgroup */
    bool is_split;        /* for tests: local memory counts as separate, even if it is the same */
    size_t import_align;  /* required of host memory to be imported; 0: none can be imported */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t memory_types[HAL_VULKAN_MEMORIES]; /* by kind; both may be the same type */

    VkPipelineLayout layout; /* of all kernels */
    VkPipelineCache cache;
    char *cache_path;              /* owned; NULL: the cache is not saved */
    pthread_mutex_t pipeline_lock; /* guards the table */
    struct hal_vulkan_pipeline *pipelines;
    size_t pipeline_count, pipeline_capacity;

    pthread_mutex_t memory_lock; /* guards the blocks */
    struct list blocks[HAL_VULKAN_MEMORIES];
    struct hal_vulkan_staging staging;

    VkSemaphore timeline;       /* reaches n when the n-th batch of work has completed */
    pthread_mutex_t queue_lock; /* guards the queue and everything below */
    pthread_cond_t changed;     /* a submission was queued, or in_flight is 0, or |stop| is set */
    uint64_t submitted;         /* the timeline's value when all submitted work is done */
    struct list running;        /* submissions on the queue, in order */
    struct list idle;           /* submissions that can be used again */
    unsigned in_flight;         /* submissions that have not been recycled */
    uint64_t completed;         /* stages and submissions so far */
    bool stop;
    pthread_t retirer;

#define GLOBAL(name)
#define INSTANCE(name)
#define DEVICE(name) PFN_##name name;
#define OPTIONAL(name) PFN_##name name;
#include "hal/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
#undef OPTIONAL
};

extern const struct hal_driver hal_vulkan_driver;

/* ---- memory.c -------------------------------------------------------------------------------- */

enum status hal_vulkan_buffer_new(struct hal_device *device, size_t size, enum hal_memory memory,
                                  struct hal_buffer **out_buffer, struct error *err);
enum status hal_vulkan_buffer_import(struct hal_device *device, void *ptr, size_t size,
                                     bool is_final, struct hal_buffer **out_buffer,
                                     struct error *err);
void hal_vulkan_buffer_free(struct hal_buffer *buffer);

/* Returns the device's address of |offset| in |buffer|, which may be a range of a pool; 0 if it has
 * no bytes. */
uint64_t hal_vulkan_address(const struct hal_buffer *buffer, size_t offset);

/* ---- pipeline.c ------------------------------------------------------------------------------ */

/* |cache_directory| may be NULL. */
MUST_CHECK enum status hal_vulkan_pipelines_init(struct hal_vulkan_device *device,
                                                 const char *cache_directory, struct error *err);
void hal_vulkan_pipelines_fini(struct hal_vulkan_device *device);

/* Gives the pipeline of |kernel|. The first request makes it; it lives as long as the device. */
MUST_CHECK enum status hal_vulkan_pipeline(struct hal_vulkan_device *device,
                                           const struct hal_kernel *kernel,
                                           VkPipeline *out_pipeline, struct error *err);

/* The kernel of copies. */
extern const struct hal_kernel hal_vulkan_copy;

/* ---- queue.c --------------------------------------------------------------------------------- */

MUST_CHECK enum status hal_vulkan_queue_init(struct hal_vulkan_device *device, struct error *err);
/* Submits |commands| as a batch of the timeline; it is done when the timeline reaches |*out_value|.
 * Any thread. */
MUST_CHECK VkResult hal_vulkan_queue_put(struct hal_vulkan_device *device, VkCommandBuffer commands,
                                         uint64_t *out_value);
/* Waits until the timeline has reached |value|; 0 returns at once. Any thread. */
MUST_CHECK VkResult hal_vulkan_queue_wait(struct hal_vulkan_device *device, uint64_t value);
/* Waits until nothing is in flight, then ends the thread that waits for batches. */
void hal_vulkan_queue_fini(struct hal_vulkan_device *device);
struct hal_progress hal_vulkan_queue_progress(struct hal_device *device);
enum status hal_vulkan_queue_submit(struct hal_device *device,
                                    const struct hal_submission *submission, struct error *err);

extern const struct hal_device_ops hal_vulkan_ops;

/* |base| as a device of this driver, which must have opened it. */
static inline struct hal_vulkan_device *hal_vulkan_device_of(struct hal_device *base)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    must(base->ops == &hal_vulkan_ops);
    return (struct hal_vulkan_device *)base;
}

/* |base| as a buffer of this driver; it must not be a range of a pool. */
static inline struct hal_vulkan_buffer *hal_vulkan_buffer_of(struct hal_buffer *base)
{
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    must(base->root == base && base->device->ops == &hal_vulkan_ops);
    return (struct hal_vulkan_buffer *)base;
}

#endif
