/* SPDX-License-Identifier: MIT */
/* Chooses and opens the physical device. "vulkan:N" is the loader's N-th device; "vulkan" is the
 * first device of the best kind among those with all required features. */
#include "config.h"

#include "hal/vulkan/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/vulkan/inject.h"
#include "hal/vulkan/routine.h"

/* ---- physical devices ------------------------------------------------------------------------ */

static VkPhysicalDeviceProperties properties_of(const struct hal_vulkan_instance *instance,
                                                VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    instance->vkGetPhysicalDeviceProperties2(physical, &properties);
    return properties.properties;
}

static enum status check_physical(const struct hal_vulkan_instance *instance, uint32_t index,
                                  struct error *err)
{
    char name[24];
    must(index < instance->device_count);
    snprintf(name, sizeof(name), "vulkan:%u", index);
    VkPhysicalDeviceProperties properties = properties_of(instance, instance->devices[index]);
    if (properties.apiVersion < VK_API_VERSION_1_2) {
        return error_set(err, ST_UNSUPPORTED,
                         "%s: the device supports Vulkan %u.%u, expected 1.2 or later", name,
                         VK_API_VERSION_MAJOR(properties.apiVersion),
                         VK_API_VERSION_MINOR(properties.apiVersion));
    }
    return hal_vulkan_check_features(instance, instance->devices[index], name, err);
}

#define RANK_SOFTWARE 1 /* not a GPU: the CPU device is faster */

static int rank_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 2;
    default:
        return RANK_SOFTWARE;
    }
}

static const char *kind_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return "discrete GPU";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return "integrated GPU";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return "virtual GPU";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return "cpu (software Vulkan)";
    default:
        return "device of an unknown kind";
    }
}

/* Chooses the first device of the highest rank above |least|. If none is suitable, the error is
 * about the last device that was checked. */
static enum status choose_best(const struct hal_vulkan_instance *instance, int least,
                               uint32_t *out_index, struct error *err)
{
    int best = least;
    error_set(err, ST_UNSUPPORTED, "vulkan: the machine has no device of this kind");
    for (uint32_t i = 0; i < instance->device_count; i++) {
        int rank = rank_of(properties_of(instance, instance->devices[i]).deviceType);
        if (rank > best && check_physical(instance, i, err) == ST_OK) {
            best = rank;
            *out_index = i;
        }
    }
    return best > least ? ST_OK : err->code;
}

static enum status choose(const struct hal_vulkan_instance *instance, const char *name,
                          uint32_t *out_index, struct error *err)
{
    const char *colon = strchr(name, ':');
    if (!colon) {
        return choose_best(instance, 0, out_index, err);
    }
    if (strcmp(colon + 1, "gpu") == 0) {
        return choose_best(instance, RANK_SOFTWARE, out_index, err);
    }
    char *end;
    unsigned long index = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end) {
        return error_set(err, ST_NOT_FOUND, "device '%.64s': expected vulkan, or vulkan:N", name);
    }
    if (index >= instance->device_count) {
        return error_set(err, ST_UNSUPPORTED, "%.64s: the machine has %u Vulkan device%s", name,
                         instance->device_count, instance->device_count == 1 ? "" : "s");
    }
    *out_index = (uint32_t)index;
    return check_physical(instance, *out_index, err);
}

/* ---- the logical device ---------------------------------------------------------------------- */

/* The bits of a timestamp; 0: the queue has none. */
static uint64_t mask_of(uint32_t valid_bits)
{
    bool has_none = valid_bits == 0 || hal_vulkan_inject(HAL_VULKAN_TIMESTAMPS) != VK_SUCCESS;
    return has_none ? 0 : UINT64_MAX >> (valid_bits < 64 ? 64 - valid_bits : 0);
}

static enum status find_queue(struct hal_vulkan_device *device, struct error *err)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = sizeof(families) / sizeof(families[0]);
    device->instance->vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (families[i].queueCount > 0 && families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            device->queue_family = i;
            device->tick_mask = mask_of(families[i].timestampValidBits);
            return ST_OK;
        }
    }
    return error_set(err, ST_UNSUPPORTED, "%s: the device has no queue for compute work",
                     device->base.props.name);
}

static void look_up_functions(struct hal_vulkan_device *device)
{
    bool complete = true;
#define GLOBAL(name)
#define INSTANCE(name)
#define OPTIONAL(name)                                                                             \
    device->name = (PFN_##name)device->instance->vkGetDeviceProcAddr(device->handle, #name);
#define DEVICE(name)                                                                               \
    OPTIONAL(name)                                                                                 \
    complete &= device->name != NULL;
#include "hal/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
#undef OPTIONAL
    must(complete); /* Vulkan 1.2 has all of them */
}

static enum status create_device(struct hal_vulkan_device *device, struct error *err)
{
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = device->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };
    hal_vulkan_find_abilities(device->instance, device->physical, &device->abilities);
    VkResult result = hal_vulkan_inject(HAL_VULKAN_OPEN);
    if (result == VK_SUCCESS) {
        result = hal_vulkan_create_device(device->instance, device->physical, &device->abilities,
                                          info, &device->handle);
    }
    if (result != VK_SUCCESS) {
        return hal_vulkan_error(err, result, "creating a device");
    }
    look_up_functions(device);
    device->vkGetDeviceQueue(device->handle, device->queue_family, 0, &device->queue);
    device->import_align =
        hal_vulkan_can_import(&device->abilities) && device->vkGetMemoryHostPointerPropertiesEXT;
    return ST_OK;
}

/*
 * For example "llvmpipe (LLVM 15.0.6, 256 bits), cpu (software Vulkan); doubles, subgroups of 8".
 */
static void describe(struct hal_vulkan_device *device, const char *name)
{
    struct hal_device_props *props = &device->base.props;
    struct buf text;
    buf_init(&text, sizeof(props->description) - 1);
    buf_printf(&text, "%.64s, %s", name, props->kind);
    hal_vulkan_print_abilities(&device->abilities, &text);
    snprintf(props->description, sizeof(props->description), "%.*s", SPAN_FMT(buf_span(&text)));
    buf_fini(&text);
}

static void read_limits(struct hal_vulkan_device *device)
{
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceMaintenance3Properties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
        .pNext = device->import_align ? &host : NULL};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &sizes};
    device->instance->vkGetPhysicalDeviceProperties2(device->physical, &all);
    const VkPhysicalDeviceLimits *limits = &all.properties.limits;
    struct hal_device_props *props = &device->base.props;
    device->lanes_max = limits->maxComputeWorkGroupSize[0];
    if (device->lanes_max > limits->maxComputeWorkGroupInvocations) {
        device->lanes_max = limits->maxComputeWorkGroupInvocations;
    }
    memcpy(device->grid_max, limits->maxComputeWorkGroupCount, sizeof(device->grid_max));
    device->import_align = device->import_align ? (size_t)host.minImportedHostPointerAlignment : 0;
    props->is_gpu = rank_of(all.properties.deviceType) > RANK_SOFTWARE;
    snprintf(props->kind, sizeof(props->kind), "%s", kind_of(all.properties.deviceType));
    props->workers = 1;
    props->buffer_align = HAL_VULKAN_BUFFER_ALIGN;
    props->offset_align = 1;
    VkDeviceSize most = sizes.maxMemoryAllocationSize - HAL_VULKAN_BUFFER_ALIGN;
    props->memory_bytes_max = most < PTRDIFF_MAX ? (size_t)most : PTRDIFF_MAX;
    /* The limit of the host's kernels; shaders declare their own memory. */
    props->scratch_bytes_max = device->host->props.scratch_bytes_max;
    props->host_visible =
        device->memory_types[HAL_VULKAN_SHARED] == device->memory_types[HAL_VULKAN_LOCAL] &&
        !device->is_split;
    props->capabilities = device->abilities.capabilities;
    device->tick_ns = (double)limits->timestampPeriod;
    props->has_profile = device->tick_mask != 0 && device->tick_ns > 0;
    describe(device, all.properties.deviceName);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void destroy(struct hal_vulkan_device *device)
{
    hal_device_unref(device->host);
    hal_vulkan_pipelines_fini(device);
    hal_vulkan_memory_fini(device);
    if (device->timeline) {
        device->vkDestroySemaphore(device->handle, device->timeline, NULL);
    }
    if (device->handle) {
        device->vkDestroyDevice(device->handle, NULL);
    }
    pthread_mutex_destroy(&device->memory_lock);
    hal_vulkan_instance_release();
    hal_device_fini(&device->base);
    free(device);
}

static void vulkan_free(struct hal_device *base)
{
    struct hal_vulkan_device *device = hal_vulkan_device_of(base);
    hal_vulkan_queue_fini(device);
    hal_device_unref(device->host); /* waits for its last work, which may still hold buffers */
    device->host = NULL;
    must(atomic_load(&base->objects) == 0); /* buffers and command buffers are freed before */
    destroy(device);
}

/* Kernels without a shader run on the host. */
static bool can_run(const struct hal_kernel *kernel)
{
    return hal_kernel_has_spirv(kernel) || kernel->cpu != NULL;
}

const struct hal_device_ops hal_vulkan_ops = {
    .free = vulkan_free,
    .buffer_new = hal_vulkan_buffer_new,
    .buffer_import = hal_vulkan_buffer_import,
    .buffer_free = hal_vulkan_buffer_free,
    .command_compile = hal_vulkan_routine_new,
    .command_free = hal_vulkan_routine_free,
    .submit = hal_vulkan_queue_submit,
    .progress = hal_vulkan_queue_progress,
    .can_run = can_run,
};

static enum status init(struct hal_vulkan_device *device, const char *name,
                        const struct hal_device_options *options, struct error *err)
{
    uint32_t index;
    TRY(choose(device->instance, name, &index, err));
    snprintf(device->base.props.name, sizeof(device->base.props.name), "vulkan:%u", index);
    device->physical = device->instance->devices[index];
    TRY(hal_device_open("cpu", options, &device->host, err));
    TRY(find_queue(device, err));
    TRY(hal_vulkan_memory_init(device, err));
    TRY(create_device(device, err));
    read_limits(device);
    TRY(hal_vulkan_pipelines_init(device, options->cache_directory, err));
    return hal_vulkan_queue_init(device, err);
}

static enum status vulkan_open(const char *name, const struct hal_device_options *options,
                               struct hal_device **out_device, struct error *err)
{
    const struct hal_vulkan_instance *instance;
    TRY(hal_vulkan_instance_acquire(&instance, err));
    struct hal_vulkan_device *device = calloc(1, sizeof(*device));
    if (!device) {
        hal_vulkan_instance_release();
        return error_no_memory(err, "a Vulkan device");
    }
    device->instance = instance;
    hal_device_init(&device->base, &hal_vulkan_ops);
    list_init(&device->blocks[HAL_VULKAN_SHARED]);
    list_init(&device->blocks[HAL_VULKAN_LOCAL]);
    hal_vulkan_staging_init(device);
    must(pthread_mutex_init(&device->memory_lock, NULL) == 0);
    enum status status = init(device, name, options, err);
    if (status != ST_OK) {
        destroy(device);
        return status;
    }
    *out_device = &device->base;
    return ST_OK;
}

static void vulkan_list(struct buf *out)
{
    const struct hal_vulkan_instance *instance;
    struct error err;
    if (hal_vulkan_instance_acquire(&instance, &err) != ST_OK) {
        return;
    }
    for (uint32_t i = 0; i < instance->device_count; i++) {
        VkPhysicalDeviceProperties properties = properties_of(instance, instance->devices[i]);
        bool is_usable = check_physical(instance, i, &err) == ST_OK;
        buf_printf(out, "vulkan:%u\t%s, %s", i, properties.deviceName,
                   kind_of(properties.deviceType));
        if (is_usable) {
            struct hal_vulkan_abilities abilities;
            hal_vulkan_find_abilities(instance, instance->devices[i], &abilities);
            hal_vulkan_print_abilities(&abilities, out);
        } else {
            buf_printf(out, "; cannot be used: %s", err.text);
        }
        buf_add_char(out, '\n');
    }
    hal_vulkan_instance_release();
}

const struct hal_driver hal_vulkan_driver = {
    .name = "vulkan",
    .automatic = "vulkan:gpu",
    .open = vulkan_open,
    .list = vulkan_list,
    .has_form = hal_kernel_has_spirv,
};
