/* SPDX-License-Identifier: MIT */
/*
 * Buffers are ranges of blocks. A block is one allocation of the driver with one VkBuffer over all
 * of it: drivers allow only a few thousand allocations, and a model has more weights than that.
 * Large buffers get their own block. Free ranges are sorted by offset and merged with neighbours;
 * the first range that is large enough is taken.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/vulkan/device.h"
#include "hal/vulkan/inject.h"

/*
 * Local memory that the host can access serves as shared memory too, unless it is only a small
 * window (less than this), or the host does not cache it: reading results from a discrete GPU's
 * memory takes longer than a transfer.
 */
#define LOCAL_HEAP_MIN ((VkDeviceSize)1 << 30)

#define BLOCK_BYTES ((size_t)32 << 20)
#define SHARED_MAX (BLOCK_BYTES / 8) /* a larger buffer gets its own block */

struct hole {
    struct list link;
    size_t begin, end;
};

/* ---- types ----------------------------------------------------------------------------------- */

static VkDeviceSize heap_bytes(const struct hal_vulkan_device *device, uint32_t type)
{
    return device->memory.memoryHeaps[device->memory.memoryTypes[type].heapIndex].size;
}

static bool is_local(const struct hal_vulkan_device *device, uint32_t type)
{
    return device->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

/* 0: not accessible to the host, or only with explicit flushes. */
static int rank_shared(const struct hal_vulkan_device *device, uint32_t type)
{
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryPropertyFlags flags = device->memory.memoryTypes[type].propertyFlags;
    bool is_cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    bool is_home =
        is_local(device, type) && is_cached && heap_bytes(device, type) >= LOCAL_HEAP_MIN;
    bool is_window = is_local(device, type) && !is_home;
    return (flags & visible) == visible ? 2 + 4 * is_home + 2 * is_cached - is_window : 0;
}

/* 0: not the device's own memory. Memory that the host cannot access ranks first, so that a small
 * host-visible window stays free. */
static int rank_local(const struct hal_vulkan_device *device, uint32_t type)
{
    VkMemoryPropertyFlags flags = device->memory.memoryTypes[type].propertyFlags;
    return is_local(device, type) ? 1 + !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) : 0;
}

/* Finds the first memory type of the highest rank. */
static bool find_type(const struct hal_vulkan_device *device,
                      int (*rank_of)(const struct hal_vulkan_device *device, uint32_t type),
                      uint32_t *out_type)
{
    int best = 0;
    for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++) {
        int rank = rank_of(device, i);
        if (rank > best) {
            best = rank;
            *out_type = i;
        }
    }
    return best > 0;
}

enum status hal_vulkan_memory_init(struct hal_vulkan_device *device, struct error *err)
{
    const char *how = getenv("PTED_VULKAN_MEMORY");
    uint32_t *types = device->memory_types;
    device->instance->vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
    device->is_split = how && strcmp(how, "split") == 0;
    if (!find_type(device, rank_shared, &types[HAL_VULKAN_SHARED])) {
        return error_set(err, ST_UNSUPPORTED, "%s: the device has no host-visible memory",
                         device->base.props.name);
    }
    types[HAL_VULKAN_LOCAL] = types[HAL_VULKAN_SHARED];
    if (!is_local(device, types[HAL_VULKAN_SHARED])) {
        find_type(device, rank_local, &types[HAL_VULKAN_LOCAL]);
    }
    must(types[HAL_VULKAN_SHARED] < device->memory.memoryTypeCount &&
         types[HAL_VULKAN_LOCAL] < device->memory.memoryTypeCount);
    return ST_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The block is in no list any more. */
static void destroy_block(struct hal_vulkan_device *device, struct hal_vulkan_block *block)
{
    must(list_is_empty(&block->link));
    while (!list_is_empty(&block->holes)) {
        struct list *link = block->holes.next;
        list_remove(link);
        free(LIST_ENTRY(link, struct hole, link));
    }
    device->vkDestroyBuffer(device->handle, block->buffer, NULL);
    device->vkFreeMemory(device->handle, block->memory, NULL);
    free(block);
}

static bool add_hole(struct list *before, size_t begin, size_t end)
{
    must(begin < end);
    struct hole *hole = malloc(sizeof(*hole));
    if (hole) {
        *hole = (struct hole){.begin = begin, .end = end};
        list_push_back(before, &hole->link);
    }
    return hole != NULL;
}

/* |external| describes imported memory, or is NULL. */
static VkResult create_buffer(struct hal_vulkan_device *device, struct hal_vulkan_block *block,
                              const VkExternalMemoryBufferCreateInfo *external)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = external,
        .size = block->size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    return device->vkCreateBuffer(device->handle, &info, NULL, &block->buffer);
}

/* Allocates memory of |type| for the block's buffer; |import| describes memory to import, or is
 * NULL. */
static VkResult allocate(struct hal_vulkan_device *device, struct hal_vulkan_block *block,
                         uint32_t type, const VkImportMemoryHostPointerInfoEXT *import)
{
    must(type < device->memory.memoryTypeCount);
    VkMemoryRequirements needs;
    device->vkGetBufferMemoryRequirements(device->handle, block->buffer, &needs);
    if (!(needs.memoryTypeBits >> type & 1)) {
        return VK_ERROR_FEATURE_NOT_PRESENT;
    }
    const VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .pNext = import,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &flags,
        .allocationSize = import ? block->size : needs.size,
        .memoryTypeIndex = type,
    };
    VkResult result = hal_vulkan_inject(HAL_VULKAN_MEMORY);
    if (result == VK_SUCCESS) {
        result = device->vkAllocateMemory(device->handle, &info, NULL, &block->memory);
    }
    return result != VK_SUCCESS
               ? result
               : device->vkBindBufferMemory(device->handle, block->buffer, block->memory, 0);
}

static void find_address(struct hal_vulkan_device *device, struct hal_vulkan_block *block)
{
    const VkBufferDeviceAddressInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
        .buffer = block->buffer,
    };
    block->address = device->vkGetBufferDeviceAddress(device->handle, &info);
}

static struct hal_vulkan_block *new_block(size_t size)
{
    struct hal_vulkan_block *block = calloc(1, sizeof(*block));
    if (block) {
        list_init(&block->link);
        list_init(&block->holes);
        block->size = size;
    }
    return block;
}

static enum status no_memory(size_t size, struct error *err)
{
    return error_no_memory(err, "a buffer of %zu bytes", size);
}

static bool is_mapped(const struct hal_vulkan_device *device, enum hal_vulkan_memory kind)
{
    return kind == HAL_VULKAN_SHARED || device->base.props.host_visible;
}

static enum status create_block(struct hal_vulkan_device *device, size_t size,
                                enum hal_vulkan_memory kind, struct hal_vulkan_block **out_block,
                                struct error *err)
{
    must(size > 0 && kind < HAL_VULKAN_MEMORIES);
    struct hal_vulkan_block *block = new_block(size);
    void *host = NULL;
    if (!block) {
        return no_memory(size, err);
    }
    VkResult result = create_buffer(device, block, NULL);
    if (result == VK_SUCCESS) {
        result = allocate(device, block, device->memory_types[kind], NULL);
    }
    if (result == VK_SUCCESS && is_mapped(device, kind)) {
        result = device->vkMapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &host);
    }
    if (result != VK_SUCCESS) {
        destroy_block(device, block);
        return hal_vulkan_error(err, result, "allocating memory");
    }
    block->kind = kind;
    block->host = host;
    find_address(device, block);
    *out_block = block;
    return ST_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Call with the lock held. */
static bool take(struct hal_vulkan_block *block, size_t size, size_t *out_offset)
{
    for (struct list *l = block->holes.next; l != &block->holes; l = l->next) {
        struct hole *hole = LIST_ENTRY(l, struct hole, link);
        if (hole->end - hole->begin < size) {
            continue;
        }
        *out_offset = hole->begin;
        hole->begin += size;
        must(hole->begin <= hole->end && hole->end <= block->size);
        if (hole->begin == hole->end) {
            list_remove(&hole->link);
            free(hole);
        }
        return true;
    }
    return false;
}

/* Call with the lock held. If memory for a new hole is missing, its range stays unused until the
 * block is freed. */
static void give_back(struct hal_vulkan_block *block, size_t begin, size_t end)
{
    must(begin < end && end <= block->size);
    struct list *next = block->holes.next;
    while (next != &block->holes && LIST_ENTRY(next, struct hole, link)->begin < begin) {
        next = next->next;
    }
    struct hole *after = next != &block->holes ? LIST_ENTRY(next, struct hole, link) : NULL;
    struct hole *before =
        next->prev != &block->holes ? LIST_ENTRY(next->prev, struct hole, link) : NULL;
    /* Otherwise the range is freed twice, or with a wrong size. */
    must((!before || before->end <= begin) && (!after || end <= after->begin));
    if (before && before->end == begin) {
        before->end = end;
        if (after && after->begin == end) {
            before->end = after->end;
            list_remove(&after->link);
            free(after);
        }
    } else if (after && after->begin == end) {
        after->begin = begin;
    } else {
        (void)add_hole(next, begin, end);
    }
}

static bool is_empty(const struct hal_vulkan_block *block)
{
    const struct hole *first = LIST_ENTRY(block->holes.next, struct hole, link);
    return !list_is_empty(&block->holes) && first->begin == 0 && first->end == block->size;
}

/* Call with the lock held: takes a range of an existing block. */
static bool take_shared(struct hal_vulkan_device *device, size_t size, enum hal_vulkan_memory kind,
                        struct hal_vulkan_range *out_range)
{
    struct list *blocks = &device->blocks[kind];
    for (struct list *l = blocks->next; l != blocks; l = l->next) {
        out_range->block = LIST_ENTRY(l, struct hal_vulkan_block, link);
        if (take(out_range->block, size, &out_range->offset)) {
            return true;
        }
    }
    return false;
}

/* Call with the lock held: takes the first range of a new block. */
static enum status take_new(struct hal_vulkan_device *device, size_t size,
                            enum hal_vulkan_memory kind, struct hal_vulkan_range *out_range,
                            struct error *err)
{
    struct hal_vulkan_block *block;
    TRY(create_block(device, BLOCK_BYTES, kind, &block, err));
    if (!add_hole(&block->holes, size, BLOCK_BYTES)) {
        destroy_block(device, block);
        return no_memory(size, err);
    }
    block->is_shared = true;
    list_push_front(&device->blocks[kind], &block->link);
    *out_range = (struct hal_vulkan_range){.block = block};
    return ST_OK;
}

enum status hal_vulkan_range_new(struct hal_vulkan_device *device, size_t size,
                                 enum hal_vulkan_memory kind, struct hal_vulkan_range *out_range,
                                 struct error *err)
{
    must(size > 0 && size % HAL_VULKAN_BUFFER_ALIGN == 0);
    VkResult injected = hal_vulkan_inject(HAL_VULKAN_RANGE);
    if (injected != VK_SUCCESS) {
        return hal_vulkan_error(err, injected, "allocating memory");
    }
    if (size > SHARED_MAX) {
        out_range->offset = 0;
        return create_block(device, size, kind, &out_range->block, err);
    }
    kind = device->base.props.host_visible ? HAL_VULKAN_SHARED
                                           : kind; /* both kinds are the same memory */
    pthread_mutex_lock(&device->memory_lock);
    enum status status = ST_OK;
    if (!take_shared(device, size, kind, out_range)) {
        status = take_new(device, size, kind, out_range, err);
    }
    pthread_mutex_unlock(&device->memory_lock);
    return status;
}

void hal_vulkan_range_free(struct hal_vulkan_device *device, struct hal_vulkan_range range,
                           size_t size)
{
    struct hal_vulkan_block *block = range.block;
    must(block->is_shared || range.offset == 0);
    if (!block->is_shared) {
        destroy_block(device, block);
        return;
    }
    pthread_mutex_lock(&device->memory_lock);
    const struct list *blocks = &device->blocks[block->kind];
    give_back(block, range.offset, range.offset + size);
    /* The last block is kept for later ranges. */
    if (is_empty(block) && blocks->next->next != blocks) {
        list_remove(&block->link);
        destroy_block(device, block);
    }
    pthread_mutex_unlock(&device->memory_lock);
}

void hal_vulkan_memory_fini(struct hal_vulkan_device *device)
{
    hal_vulkan_staging_fini(device);
    for (int kind = 0; kind < HAL_VULKAN_MEMORIES; kind++) {
        while (!list_is_empty(&device->blocks[kind])) {
            struct hal_vulkan_block *block =
                LIST_ENTRY(device->blocks[kind].next, struct hal_vulkan_block, link);
            list_remove(&block->link);
            destroy_block(device, block);
        }
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

static size_t padded(size_t size)
{
    return align_up(size, HAL_VULKAN_BUFFER_ALIGN);
}

static struct hal_vulkan_buffer *new_buffer(void)
{
    struct hal_vulkan_buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer) {
        list_init(&buffer->copies);
    }
    return buffer;
}

enum status hal_vulkan_buffer_new(struct hal_device *base, size_t size, enum hal_memory memory,
                                  struct hal_buffer **out_buffer, struct error *err)
{
    struct hal_vulkan_device *device = hal_vulkan_device_of(base);
    struct hal_vulkan_buffer *buffer = new_buffer();
    if (!buffer) {
        return no_memory(size, err);
    }
    uint8_t *host = NULL;
    if (size > 0) {
        struct hal_vulkan_range *range = &buffer->range;
        enum hal_vulkan_memory kind =
            memory == HAL_MEMORY_TRANSIENT ? HAL_VULKAN_LOCAL : HAL_VULKAN_SHARED;
        enum status status = hal_vulkan_range_new(device, padded(size), kind, range, err);
        if (status != ST_OK) {
            free(buffer);
            return status;
        }
        host = range->block->host ? range->block->host + range->offset : NULL;
        must(host || memory == HAL_MEMORY_TRANSIENT);
        if (hal_memory_is_zeroed(memory)) {
            memset(host, 0, size);
        }
        buffer->address = range->block->address + range->offset;
    }
    hal_buffer_init(&buffer->base, base, size, host);
    *out_buffer = &buffer->base;
    return ST_OK;
}

/* Finds the first memory type that |ptr| can be imported with. */
static VkResult import_type(struct hal_vulkan_device *device, const void *ptr, uint32_t *out_type)
{
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT,
    };
    VkResult result = device->vkGetMemoryHostPointerPropertiesEXT(
        device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, ptr, &properties);
    for (uint32_t i = 0; result == VK_SUCCESS && i < device->memory.memoryTypeCount; i++) {
        bool coherent =
            device->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        if (properties.memoryTypeBits >> i & 1 && coherent) {
            *out_type = i;
            return VK_SUCCESS;
        }
    }
    return VK_ERROR_FEATURE_NOT_PRESENT;
}

static VkResult import_block(struct hal_vulkan_device *device, struct hal_vulkan_block *block,
                             void *ptr)
{
    const VkExternalMemoryHandleTypeFlagBits handle =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = handle,
    };
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = handle,
        .pHostPointer = ptr,
    };
    uint32_t type;
    VkResult result = import_type(device, ptr, &type);
    if (result == VK_SUCCESS) {
        result = create_buffer(device, block, &external);
    }
    return result != VK_SUCCESS ? result : allocate(device, block, type, &import);
}

/* Imports cover whole pages of the device: bytes after |size| on the last page are never bound. */
static bool can_import(const struct hal_vulkan_device *device, const void *ptr, size_t size)
{
    size_t align = device->import_align;
    return align > 0 && align <= (size_t)sysconf(_SC_PAGESIZE) && (uintptr_t)ptr % align == 0 &&
           size > 0;
}

static enum status import_buffer(struct hal_vulkan_device *device, void *ptr, size_t size,
                                 struct hal_vulkan_buffer *buffer, struct error *err)
{
    if (!can_import(device, ptr, size)) {
        return error_set(err, ST_UNSUPPORTED, "%s: %zu bytes of host memory are not aligned to %zu",
                         device->base.props.name, size, device->import_align);
    }
    struct hal_vulkan_block *block = new_block(align_up(size, device->import_align));
    if (!block) {
        return no_memory(size, err);
    }
    VkResult result = import_block(device, block, ptr);
    if (result != VK_SUCCESS) {
        destroy_block(device, block);
        return error_set(err, ST_UNSUPPORTED, "%s: host memory cannot be used in place: %s",
                         device->base.props.name, hal_vulkan_result_name(result));
    }
    find_address(device, block);
    buffer->range.block = block;
    buffer->address = block->address;
    return ST_OK;
}

/* If the contents are final and the device has separate memory, nothing is imported: upload.c
 * copies each range when a kernel needs it. */
enum status hal_vulkan_buffer_import(struct hal_device *base, void *ptr, size_t size, bool is_final,
                                     struct hal_buffer **out_buffer, struct error *err)
{
    OBJ_CHECK(base, HAL_DEVICE_MAGIC);
    struct hal_vulkan_device *device = hal_vulkan_device_of(base);
    struct hal_vulkan_buffer *buffer = new_buffer();
    if (!buffer) {
        return no_memory(size, err);
    }
    enum status status = ST_OK;
    if (!is_final || base->props.host_visible) {
        status = import_buffer(device, ptr, size, buffer, err);
    }
    if (status != ST_OK) {
        free(buffer);
        return status;
    }
    hal_buffer_init(&buffer->base, base, size, ptr);
    *out_buffer = &buffer->base;
    return ST_OK;
}

void hal_vulkan_buffer_free(struct hal_buffer *base)
{
    OBJ_CHECK(base, HAL_BUFFER_MAGIC);
    struct hal_vulkan_buffer *buffer = hal_vulkan_buffer_of(base);
    struct hal_vulkan_device *device = hal_vulkan_device_of(base->device);
    hal_vulkan_drop_copies(device, &buffer->copies);
    if (buffer->range.block) {
        hal_vulkan_range_free(device, buffer->range, padded(base->size));
    }
    hal_buffer_fini(base);
    free(buffer);
}

uint64_t hal_vulkan_address(const struct hal_buffer *buffer, size_t offset)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    const struct hal_vulkan_buffer *root = (const struct hal_vulkan_buffer *)buffer->root;
    return root->address ? root->address + buffer->root_offset + offset : 0;
}
