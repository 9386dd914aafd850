/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: a kernel's SPIR-V, compiled for this device. All share one layout, with push constants
 * and without descriptors. If a directory is given, the driver's cache is stored there between
 * runs: one file for each device, which is always replaced as a whole.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/check.h"
#include "hal/vulkan/device.h"
#include "hal/vulkan/shaders/generated/spirv.h"

#define CACHE_BYTES_MAX ((size_t)256 << 20)

const struct hal_kernel hal_vulkan_copy = {.name = "copy", .spirv = HAL_SPIRV(copy_spirv)};

struct hal_vulkan_pipeline {
    const struct hal_kernel *kernel;
    VkPipeline handle;
};

/* ---- the cache on disk ----------------------------------------------------------------------- */

/* "DIRECTORY/vulkan-10005-0-UUID.cache"; NULL if there is no memory. */
static char *cache_path(const struct hal_vulkan_device *device, const char *directory)
{
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    device->instance->vkGetPhysicalDeviceProperties2(device->physical, &all);
    struct buf path;
    buf_init(&path, 4096);
    buf_printf(&path, "%s/vulkan-%x-%x-", directory, all.properties.vendorID,
               all.properties.deviceID);
    for (unsigned i = 0; i < VK_UUID_SIZE; i++) {
        buf_printf(&path, "%02x", all.properties.pipelineCacheUUID[i]);
    }
    buf_add_str(&path, ".cache");
    buf_add_char(&path, '\0');
    char *copy = buf_failed(&path) ? NULL : strdup((const char *)path.ptr);
    buf_fini(&path);
    return copy;
}

/* Reads a regular file of a sane size as a whole, or returns NULL. The driver checks its own
 * header. */
static void *read_file(const char *path, size_t *out_size)
{
    void *bytes = NULL;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out_size = 0;
    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        (size_t)info.st_size <= CACHE_BYTES_MAX) {
        bytes = malloc((size_t)info.st_size);
    }
    if (bytes && read(fd, bytes, (size_t)info.st_size) == info.st_size) {
        *out_size = (size_t)info.st_size;
    }
    close(fd);
    return bytes;
}

/* Writes a temporary file and renames it, so that no reader sees half a file. Best effort. */
static void write_file(const char *path, const void *bytes, size_t size)
{
    struct buf beside;
    buf_init(&beside, 4096);
    buf_printf(&beside, "%s.%ld", path, (long)getpid());
    buf_add_char(&beside, '\0');
    const char *name = (const char *)beside.ptr;
    if (!buf_failed(&beside)) {
        unlink(
            name); /* of a process with this number that was killed; in a container each has it */
    }
    int fd = buf_failed(&beside) ? -1 : open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        bool is_written = write(fd, bytes, size) == (ssize_t)size;
        is_written &= close(fd) == 0;
        if (!is_written || rename(name, path) != 0) {
            unlink(name);
        }
    }
    buf_fini(&beside);
}

static void save_cache(struct hal_vulkan_device *device)
{
    size_t size = 0;
    if (!device->cache_path || device->pipeline_count == 0 ||
        device->vkGetPipelineCacheData(device->handle, device->cache, &size, NULL) != VK_SUCCESS ||
        size > CACHE_BYTES_MAX) {
        return;
    }
    void *bytes = malloc(size);
    if (bytes &&
        device->vkGetPipelineCacheData(device->handle, device->cache, &size, bytes) == VK_SUCCESS) {
        write_file(device->cache_path, bytes, size);
    }
    free(bytes);
}

static VkResult create_cache(struct hal_vulkan_device *device)
{
    size_t size = 0;
    void *bytes = device->cache_path ? read_file(device->cache_path, &size) : NULL;
    const VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = size,
        .pInitialData = size ? bytes : NULL,
    };
    VkResult result = device->vkCreatePipelineCache(device->handle, &info, NULL, &device->cache);
    free(bytes);
    return result;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

enum status hal_vulkan_pipelines_init(struct hal_vulkan_device *device, const char *cache_directory,
                                      struct error *err)
{
    const VkPushConstantRange range = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = sizeof(struct hal_vulkan_push),
    };
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    must(pthread_mutex_init(&device->pipeline_lock, NULL) == 0);
    device->cache_path = cache_directory ? cache_path(device, cache_directory) : NULL;
    VkResult result = device->vkCreatePipelineLayout(device->handle, &info, NULL, &device->layout);
    if (result == VK_SUCCESS) {
        result = create_cache(device);
    }
    return result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, "preparing for kernels");
}

void hal_vulkan_pipelines_fini(struct hal_vulkan_device *device)
{
    if (!device->layout) {
        return;
    }
    if (device->cache) {
        save_cache(device);
        device->vkDestroyPipelineCache(device->handle, device->cache, NULL);
    }
    for (size_t i = 0; i < device->pipeline_count; i++) {
        device->vkDestroyPipeline(device->handle, device->pipelines[i].handle, NULL);
    }
    device->vkDestroyPipelineLayout(device->handle, device->layout, NULL);
    pthread_mutex_destroy(&device->pipeline_lock);
    free(device->pipelines);
    free(device->cache_path);
}

/* The specialization constants of shaders/kernel.glsl, in the order of their numbers. */
struct constants {
    uint32_t lanes, variant;
    struct hal_vulkan_shape shape;
    uint32_t subgroups;
    uint32_t on_processor;
};

#define CONSTANTS (sizeof(struct constants) / sizeof(uint32_t))

/* A multiple of the subgroup, within the device's limits. */
static uint32_t lanes_for(const struct hal_vulkan_device *device, const struct hal_spirv *form)
{
    bool is_gpu = device->base.props.capabilities & HAL_GPU;
    uint32_t subgroup = device->abilities.subgroup;
    uint32_t lanes = is_gpu && form->lanes ? form->lanes : HAL_VULKAN_WORKGROUP;
    lanes = lanes < device->lanes_max ? lanes : device->lanes_max;
    return lanes > subgroup ? lanes / subgroup * subgroup : subgroup;
}

static struct constants constants_of(const struct hal_vulkan_device *device,
                                     const struct hal_spirv *form, uint32_t variant)
{
    const struct hal_vulkan_abilities *abilities = &device->abilities;
    uint32_t lanes = lanes_for(device, form);
    return (struct constants){
        .lanes = lanes,
        .variant = variant,
        .shape = form->needs & HAL_MATRICES_S8 ? abilities->matrices_s8 : abilities->matrices_f16,
        .subgroups = lanes / abilities->subgroup,
        .on_processor = abilities->is_processor,
    };
}

static VkResult create_pipeline(const struct hal_vulkan_device *device,
                                const struct hal_spirv *form, uint32_t variant,
                                VkShaderModule module, VkPipeline *out_pipeline)
{
    const struct constants constants = constants_of(device, form, variant);
    const uint32_t subgroups = HAL_SUBGROUPS | HAL_MATRICES_F16 | HAL_MATRICES_S8;
    bool is_full = device->abilities.full_subgroups && form->needs & subgroups;
    VkSpecializationMapEntry entries[CONSTANTS];
    for (uint32_t i = 0; i < CONSTANTS; i++) {
        entries[i] = (VkSpecializationMapEntry){i, i * sizeof(uint32_t), sizeof(uint32_t)};
    }
    const VkSpecializationInfo specialization = {
        .mapEntryCount = CONSTANTS,
        .pMapEntries = entries,
        .dataSize = sizeof(constants),
        .pData = &constants,
    };
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .flags =
                      is_full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &specialization},
        .layout = device->layout,
    };
    return device->vkCreateComputePipelines(device->handle, device->cache, 1, &info, NULL,
                                            out_pipeline);
}

/*
 * Shaders must treat NaN as C does. By itself Vulkan permits a driver to assume that there is none,
 * and NVIDIA's makes max(a, 0), which is never NaN, of "a < 0 ? 0 : a". Shaders cannot ask for more
 * in their source, because a device need not support it. So the words that ask are added here.
 *
 * Source: SPIR-V 1.5, 2.4 (the order of instructions), 3.6 and 3.31 (SignedZeroInfNanPreserve).
 */
enum { SPIRV_HEADER = 5, SPIRV_ENTRY_POINT = 15, SPIRV_EXECUTION_MODE = 16, SPIRV_CAPABILITY = 17 };
enum { SPIRV_MODE_KEEPS_NAN = 4461, SPIRV_CAPABILITY_KEEPS_NAN = 4466 };
enum { SPIRV_CAPABILITY_WORDS = 2, SPIRV_MODE_WORDS = 4 };

/* The word behind the only entry point; its number is stored in |out_entry|. */
static size_t find_modes(const uint32_t *words, size_t count, uint32_t *out_entry)
{
    size_t at = SPIRV_HEADER;
    while (at < count && (words[at] & 0xffff) != SPIRV_ENTRY_POINT) {
        at += words[at] >> 16;
    }
    must(at + 2 < count);
    *out_entry = words[at + 2];
    return at + (words[at] >> 16);
}

/* |words| with more demands on the device; to be freed. NULL: no memory. */
static uint32_t *keep_nan(const uint32_t *words, size_t count, size_t *out_count)
{
    uint32_t entry;
    size_t modes = find_modes(words, count, &entry);
    const uint32_t capability[SPIRV_CAPABILITY_WORDS] = {
        SPIRV_CAPABILITY_WORDS << 16 | SPIRV_CAPABILITY, SPIRV_CAPABILITY_KEEPS_NAN};
    const uint32_t mode[SPIRV_MODE_WORDS] = {SPIRV_MODE_WORDS << 16 | SPIRV_EXECUTION_MODE, entry,
                                             SPIRV_MODE_KEEPS_NAN, 32};
    *out_count = count + SPIRV_CAPABILITY_WORDS + SPIRV_MODE_WORDS;
    uint32_t *out = malloc(*out_count * sizeof(*out)), *to = out;
    if (out) {
        memcpy(to, words, SPIRV_HEADER * sizeof(*to));
        memcpy(to += SPIRV_HEADER, capability, sizeof(capability));
        memcpy(to += SPIRV_CAPABILITY_WORDS, words + SPIRV_HEADER,
               (modes - SPIRV_HEADER) * sizeof(*to));
        memcpy(to += modes - SPIRV_HEADER, mode, sizeof(mode));
        memcpy(to + SPIRV_MODE_WORDS, words + modes, (count - modes) * sizeof(*to));
    }
    return out;
}

static VkResult create_module(const struct hal_vulkan_device *device, const struct hal_spirv *form,
                              VkShaderModule *out_module)
{
    const uint32_t *words = (const uint32_t *)(const void *)form->words.ptr;
    size_t count = form->words.len / sizeof(*words);
    must(form->words.len % sizeof(*words) == 0 && (uintptr_t)words % _Alignof(uint32_t) == 0);
    uint32_t *changed = NULL;
    if (device->abilities.keeps_nan) {
        words = changed = keep_nan(words, count, &count);
    }
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = count * sizeof(*words),
        .pCode = words,
    };
    VkResult result = words ? device->vkCreateShaderModule(device->handle, &info, NULL, out_module)
                            : VK_ERROR_OUT_OF_HOST_MEMORY;
    free(changed);
    return result;
}

static enum status compile(const struct hal_vulkan_device *device, const struct hal_kernel *kernel,
                           VkPipeline *out_pipeline, struct error *err)
{
    VkShaderModule module;
    const struct hal_spirv *form = hal_kernel_spirv(kernel, device->base.props.capabilities);
    must(form); /* placement.c has checked this */
    VkResult result = create_module(device, form, &module);
    if (result == VK_SUCCESS) {
        result = create_pipeline(device, form, kernel->variant, module, out_pipeline);
        device->vkDestroyShaderModule(device->handle, module, NULL);
    }
    return result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, kernel->name);
}

/* Call with the lock held. There are a few hundred kernels at most. */
static enum status find_or_compile(struct hal_vulkan_device *device,
                                   const struct hal_kernel *kernel, VkPipeline *out_pipeline,
                                   struct error *err)
{
    for (size_t i = 0; i < device->pipeline_count; i++) {
        if (device->pipelines[i].kernel == kernel) {
            *out_pipeline = device->pipelines[i].handle;
            return ST_OK;
        }
    }
    if (!ARRAY_ROOM(device->pipelines, device->pipeline_capacity, device->pipeline_count + 1)) {
        return error_no_memory(err, "a pipeline");
    }
    TRY(compile(device, kernel, out_pipeline, err));
    device->pipelines[device->pipeline_count++] =
        (struct hal_vulkan_pipeline){kernel, *out_pipeline};
    return ST_OK;
}

enum status hal_vulkan_pipeline(struct hal_vulkan_device *device, const struct hal_kernel *kernel,
                                VkPipeline *out_pipeline, struct error *err)
{
    pthread_mutex_lock(&device->pipeline_lock);
    enum status status = find_or_compile(device, kernel, out_pipeline, err);
    pthread_mutex_unlock(&device->pipeline_lock);
    return status;
}
