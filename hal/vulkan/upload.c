/* SPDX-License-Identifier: MIT */
/*
 * Constants in local memory. Their bytes pass through a small ring of chunks in shared memory:
 * while the device copies one chunk, the host fills the next. Uploads happen when a command buffer
 * is compiled, never during a call.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/command.h"
#include "hal/vulkan/device.h"

#define CHUNK_BYTES ((size_t)1 << 20)

void hal_vulkan_staging_init(struct hal_vulkan_device *device)
{
    must(pthread_mutex_init(&device->staging.lock, NULL) == 0);
}

void hal_vulkan_staging_fini(struct hal_vulkan_device *device)
{
    struct hal_vulkan_staging *staging = &device->staging;
    if (staging->pool) {
        device->vkDestroyCommandPool(device->handle, staging->pool, NULL);
    }
    if (staging->chunks.block) {
        hal_vulkan_range_free(device, staging->chunks, HAL_VULKAN_STAGING_CHUNKS * CHUNK_BYTES);
    }
    pthread_mutex_destroy(&staging->lock);
}

/* Call with the lock held. */
static enum status prepare(struct hal_vulkan_device *device, struct error *err)
{
    struct hal_vulkan_staging *staging = &device->staging;
    if (!staging->chunks.block) {
        TRY(hal_vulkan_range_new(device, HAL_VULKAN_STAGING_CHUNKS * CHUNK_BYTES, HAL_VULKAN_SHARED,
                                 &staging->chunks, err));
    }
    if (staging->pool) {
        return ST_OK;
    }
    const VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device->queue_family,
    };
    VkResult result = device->vkCreateCommandPool(device->handle, &info, NULL, &staging->pool);
    if (result == VK_SUCCESS) {
        const VkCommandBufferAllocateInfo buffers = {
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = staging->pool,
            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
            .commandBufferCount = HAL_VULKAN_STAGING_CHUNKS,
        };
        result = device->vkAllocateCommandBuffers(device->handle, &buffers, staging->commands);
        if (result != VK_SUCCESS) {
            device->vkDestroyCommandPool(device->handle, staging->pool, NULL);
            staging->pool = VK_NULL_HANDLE;
        }
    }
    return result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, "preparing an upload");
}

/* Records the copy and a barrier for all later work on the queue. */
static VkResult record(const struct hal_vulkan_device *device, VkCommandBuffer commands,
                       VkBuffer from, VkBuffer to, const VkBufferCopy *copy)
{
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT,
    };
    VkResult result = device->vkBeginCommandBuffer(commands, &begin);
    if (result != VK_SUCCESS) {
        return result;
    }
    device->vkCmdCopyBuffer(commands, from, to, 1, copy);
    device->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0,
                                 NULL);
    return device->vkEndCommandBuffer(commands);
}

/* Call with the lock held: copies |bytes| to |range|, chunk by chunk, and waits for the end. */
static VkResult upload(struct hal_vulkan_device *device, struct hal_vulkan_range range,
                       struct span bytes)
{
    struct hal_vulkan_staging *staging = &device->staging;
    const struct hal_vulkan_block *chunks = staging->chunks.block;
    VkResult result = VK_SUCCESS;
    unsigned chunk = 0;
    must(in_range(range.offset, bytes.len, range.block->size));
    for (size_t done = 0; result == VK_SUCCESS && done < bytes.len; done += CHUNK_BYTES) {
        size_t at = staging->chunks.offset + chunk * CHUNK_BYTES;
        size_t size = bytes.len - done < CHUNK_BYTES ? bytes.len - done : CHUNK_BYTES;
        const VkBufferCopy copy = {.srcOffset = at, .dstOffset = range.offset + done, .size = size};
        result = hal_vulkan_queue_wait(device, staging->values[chunk]);
        if (result == VK_SUCCESS) {
            memcpy(chunks->host + at, bytes.ptr + done, size);
            result = record(device, staging->commands[chunk], chunks->buffer, range.block->buffer,
                            &copy);
        }
        if (result == VK_SUCCESS) {
            result =
                hal_vulkan_queue_put(device, staging->commands[chunk], &staging->values[chunk]);
        }
        chunk = (chunk + 1) % HAL_VULKAN_STAGING_CHUNKS;
    }
    for (unsigned i = 0; i < HAL_VULKAN_STAGING_CHUNKS; i++) {
        VkResult waited = hal_vulkan_queue_wait(device, staging->values[i]);
        result = result == VK_SUCCESS ? waited : result;
        staging->values[i] = 0;
    }
    return result;
}

/* Call with the lock held. */
static enum status make_copy(struct hal_vulkan_device *device, struct hal_vulkan_buffer *buffer,
                             const struct hal_binding *binding, struct hal_vulkan_copy **out_copy,
                             struct error *err)
{
    /* A buffer with final contents is no range of a pool, so |offset| is relative to its root. */
    must(binding->buffer == &buffer->base && buffer->base.host);
    must(in_range(binding->offset, binding->length, buffer->base.size));
    size_t size = align_up(binding->length, HAL_VULKAN_BUFFER_ALIGN);
    struct hal_vulkan_copy *copy = calloc(1, sizeof(*copy));
    if (!copy) {
        return error_no_memory(err, "a copy of a constant");
    }
    enum status status = prepare(device, err);
    if (status == ST_OK) {
        status = hal_vulkan_range_new(device, size, HAL_VULKAN_LOCAL, &copy->range, err);
    }
    if (status == ST_OK) {
        const uint8_t *host = buffer->base.host;
        VkResult result =
            upload(device, copy->range, span_of(host + binding->offset, binding->length));
        if (result != VK_SUCCESS) {
            hal_vulkan_range_free(device, copy->range, size);
            status = hal_vulkan_error(err, result, "uploading a constant");
        }
    }
    if (status != ST_OK) {
        free(copy);
        return status;
    }
    copy->offset = binding->offset;
    copy->length = binding->length;
    list_push_front(&buffer->copies, &copy->link);
    *out_copy = copy;
    return ST_OK;
}

static struct hal_vulkan_copy *find_copy(const struct hal_vulkan_buffer *buffer,
                                         const struct hal_binding *binding)
{
    for (struct list *l = buffer->copies.next; l != &buffer->copies; l = l->next) {
        struct hal_vulkan_copy *copy = LIST_ENTRY(l, struct hal_vulkan_copy, link);
        if (copy->offset == binding->offset && copy->length == binding->length) {
            return copy;
        }
    }
    return NULL;
}

enum status hal_vulkan_locate(struct hal_vulkan_device *device, const struct hal_binding *binding,
                              uint64_t *out_address, struct error *err)
{
    must(binding->buffer && binding->length > 0);
    struct hal_vulkan_buffer *buffer = hal_vulkan_buffer_of(binding->buffer->root);
    if (device->base.props.host_visible || !binding->buffer->is_final) {
        *out_address = hal_vulkan_address(binding->buffer, binding->offset);
        return ST_OK;
    }
    enum status status = ST_OK;
    pthread_mutex_lock(&device->staging.lock);
    struct hal_vulkan_copy *copy = find_copy(buffer, binding);
    if (!copy) {
        status = make_copy(device, buffer, binding, &copy, err);
    }
    if (status == ST_OK) {
        *out_address = copy->range.block->address + copy->range.offset;
    }
    pthread_mutex_unlock(&device->staging.lock);
    return status;
}

void hal_vulkan_drop_copies(struct hal_vulkan_device *device, struct list *copies)
{
    while (!list_is_empty(copies)) {
        struct hal_vulkan_copy *copy = LIST_ENTRY(copies->next, struct hal_vulkan_copy, link);
        list_remove(&copy->link);
        hal_vulkan_range_free(device, copy->range, align_up(copy->length, HAL_VULKAN_BUFFER_ALIGN));
        free(copy);
    }
}
