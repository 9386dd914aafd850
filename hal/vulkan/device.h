/* SPDX-License-Identifier: MIT */
/*
 * The Vulkan device: the parts that its files share. vulkan.h is included here and nowhere above
 * this folder.
 *
 * Shaders get memory by address (VK_KHR_buffer_device_address), not by descriptors: a dispatch's
 * push constants point to a table of its bindings, so that replaying a command buffer with other
 * buffers is writing addresses into that table. See shaders/kernel.glsl.
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

/* Of every buffer: a cache line, and what any element or vector needs. */
#define HAL_VULKAN_BUFFER_ALIGN 64

/* Invocations of a workgroup, where a form does not say and subgroups are not larger. */
#define HAL_VULKAN_WORKGROUP 64

/* What one dispatch is told, as push constants; the shaders' side is in shaders/kernel.glsl. */
struct hal_vulkan_push {
    uint64_t bindings;  /* address of a struct hal_vulkan_binding for each */
    uint64_t constants; /* address of the recorded ones */
    uint32_t base[3];   /* to add to the workgroup's number: a grid may be dispatched in parts */
    uint32_t grid[3];
};

struct hal_vulkan_binding {
    uint64_t address; /* 0: no bytes */
    uint64_t length;
};

struct hal_vulkan_buffer {
    struct hal_buffer base;
    uint64_t address;              /* 0: no bytes, or none that the device can reach */
    struct hal_vulkan_range range; /* none: no bytes, or the host's own */
    struct list copies;            /* of ranges of it, in local memory: upload.c */
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
    uint32_t grid_max[3]; /* workgroups of one dispatch */
    uint32_t lanes_max;   /* invocations of a workgroup */
    bool is_split;        /* local memory is treated as another one, whatever it is: for tests */
    size_t import_align;  /* of host memory that can be imported; 0: none can */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t memory_types[HAL_VULKAN_MEMORIES]; /* by kind; maybe the same */

    VkPipelineLayout layout; /* of all kernels */
    VkPipelineCache cache;
    char *cache_path;              /* owned; NULL: the cache is not kept */
    pthread_mutex_t pipeline_lock; /* for the table */
    struct hal_vulkan_pipeline *pipelines;
    size_t pipeline_count, pipeline_capacity;

    pthread_mutex_t memory_lock; /* for the blocks */
    struct list blocks[HAL_VULKAN_MEMORIES];
    struct hal_vulkan_staging staging;

    VkSemaphore timeline;       /* reaches n when the n-th batch of work has completed */
    pthread_mutex_t queue_lock; /* for the queue and everything below */
    pthread_cond_t changed;     /* something was submitted, or in_flight has become 0, or stop */
    uint64_t submitted;         /* the timeline's value when all that was submitted is done */
    struct list running;        /* submissions on the queue, in order */
    struct list idle;           /* submissions to use again */
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

/* Where the device finds |offset| of |buffer|, which may be a range of a pool; 0 for no bytes. */
uint64_t hal_vulkan_address(const struct hal_buffer *buffer, size_t offset);

/* ---- pipeline.c ------------------------------------------------------------------------------ */

/* |cache_directory| may be NULL. */
MUST_CHECK enum status hal_vulkan_pipelines_init(struct hal_vulkan_device *device,
                                                 const char *cache_directory, struct error *err);
void hal_vulkan_pipelines_fini(struct hal_vulkan_device *device);

/* The pipeline of |kernel|, made when first asked for; it lives as long as the device. */
MUST_CHECK enum status hal_vulkan_pipeline(struct hal_vulkan_device *device,
                                           const struct hal_kernel *kernel,
                                           VkPipeline *out_pipeline, struct error *err);

/* What fills, copies and updates run. */
extern const struct hal_kernel hal_vulkan_fill, hal_vulkan_copy;

/* ---- queue.c --------------------------------------------------------------------------------- */

MUST_CHECK enum status hal_vulkan_queue_init(struct hal_vulkan_device *device, struct error *err);
/* |commands| as a batch of the timeline, done when it reaches |*out_value|. Any thread. */
MUST_CHECK VkResult hal_vulkan_queue_put(struct hal_vulkan_device *device, VkCommandBuffer commands,
                                         uint64_t *out_value);
/* Until it has; 0 is over. Any thread. */
MUST_CHECK VkResult hal_vulkan_queue_wait(struct hal_vulkan_device *device, uint64_t value);
/* Waits until nothing is in flight, then ends the thread. */
void hal_vulkan_queue_fini(struct hal_vulkan_device *device);
struct hal_progress hal_vulkan_queue_progress(struct hal_device *device);
enum status hal_vulkan_queue_submit(struct hal_device *device,
                                    const struct hal_submission *submission, struct error *err);

extern const struct hal_device_ops hal_vulkan_ops;

/* |base|, which was opened by this driver. */
static inline struct hal_vulkan_device *hal_vulkan_device_of(struct hal_device *base)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    must(base->ops == &hal_vulkan_ops);
    return (struct hal_vulkan_device *)base;
}

/* |base|, which is a buffer of this driver and no range of a pool. */
static inline struct hal_vulkan_buffer *hal_vulkan_buffer_of(struct hal_buffer *base)
{
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    must(base->root == base && base->device->ops == &hal_vulkan_ops);
    return (struct hal_vulkan_buffer *)base;
}

#endif
