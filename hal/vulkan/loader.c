/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/vulkan/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/asan.h"
#include "base/check.h"

#define LOADER_NAME "libvulkan.so.1"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static unsigned refs;
static void *library;
static struct hal_vulkan_instance shared;

const char *hal_vulkan_result_name(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
#define NAME(result) {result, #result}
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY),    NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY),
        NAME(VK_ERROR_INITIALIZATION_FAILED), NAME(VK_ERROR_DEVICE_LOST),
        NAME(VK_ERROR_MEMORY_MAP_FAILED),     NAME(VK_ERROR_LAYER_NOT_PRESENT),
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT), NAME(VK_ERROR_FEATURE_NOT_PRESENT),
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER),   NAME(VK_ERROR_TOO_MANY_OBJECTS),
        NAME(VK_ERROR_INVALID_SHADER_NV),     NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE),
#undef NAME
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].result == result) {
            return names[i].name;
        }
    }
    return "an unknown VkResult";
}

enum status hal_vulkan_error(struct error *err, VkResult result, const char *what)
{
    must(result != VK_SUCCESS);
    enum status status = ST_INTERNAL;
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
        status = ST_EXHAUSTED;
        break;
    case VK_ERROR_DEVICE_LOST:
        status = ST_UNAVAILABLE;
        break;
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_INCOMPATIBLE_DRIVER:
    case VK_ERROR_INITIALIZATION_FAILED:
        status = ST_UNSUPPORTED;
        break;
    default:
        break;
    }
    return error_set(err, status, "vulkan: %s: %s", what, hal_vulkan_result_name(result));
}

static PFN_vkVoidFunction look_up(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                  const char *name, bool *complete)
{
    PFN_vkVoidFunction function = get(instance, name);
    *complete &= function != NULL;
    return function;
}

static enum status check_version(struct error *err)
{
    uint32_t version;
    VkResult result = shared.vkEnumerateInstanceVersion(&version);
    if (result != VK_SUCCESS) {
        return hal_vulkan_error(err, result, "asking the loader's version");
    }
    if (version < VK_API_VERSION_1_2) {
        return error_set(err, ST_UNSUPPORTED,
                         "vulkan: the loader supports %u.%u, expected 1.2 or later",
                         VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    }
    return ST_OK;
}

static enum status list_devices(struct error *err)
{
    shared.device_count = HAL_VULKAN_DEVICES_MAX;
    VkResult result =
        shared.vkEnumeratePhysicalDevices(shared.handle, &shared.device_count, shared.devices);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        shared.vkDestroyInstance(shared.handle, NULL);
        return hal_vulkan_error(err, result, "listing devices");
    }
    return ST_OK;
}

static enum status create_instance(PFN_vkGetInstanceProcAddr get, struct error *err)
{
    bool complete = true;
#define GLOBAL(name) shared.name = (PFN_##name)look_up(get, NULL, #name, &complete);
#define INSTANCE(name)
#define DEVICE(name)
#define OPTIONAL(name)
#include "hal/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
    if (!complete) {
        return error_set(err, ST_UNSUPPORTED, "vulkan: the loader does not support Vulkan 1.1");
    }
    TRY(check_version(err));
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "pted",
        .apiVersion = VK_API_VERSION_1_2,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    VkResult result = shared.vkCreateInstance(&info, NULL, &shared.handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) { /* how a loader without drivers answers */
        return error_set(err, ST_UNSUPPORTED, "vulkan: no driver is installed");
    }
    if (result != VK_SUCCESS) {
        return hal_vulkan_error(err, result, "creating an instance");
    }
#define GLOBAL(name)
#define INSTANCE(name) shared.name = (PFN_##name)look_up(get, shared.handle, #name, &complete);
#include "hal/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
#undef OPTIONAL
    must(complete); /* Vulkan 1.2 has all of them */
    shared.list_matrices = (hal_vulkan_matrix_list_f *)look_up(
        get, shared.handle, HAL_VULKAN_MATRIX_FUNCTION, &complete);
    return list_devices(err);
}

/* ISO C does not convert an object's address to a function's; POSIX guarantees that it works. */
static PFN_vkGetInstanceProcAddr entry_point(void)
{
    PFN_vkGetInstanceProcAddr get;
    void *symbol = dlsym(library, "vkGetInstanceProcAddr");
    _Static_assert(sizeof(get) == sizeof(symbol), "both kinds of address have the same size");
    memcpy(&get, &symbol, sizeof(get));
    return get;
}

static enum status open_loader(struct error *err)
{
    library = dlopen(LOADER_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return error_set(err, ST_UNSUPPORTED, "vulkan: no loader found: %.160s", dlerror());
    }
    PFN_vkGetInstanceProcAddr get = entry_point();
    enum status status = ST_UNSUPPORTED;
    if (get) {
        status = create_instance(get, err);
    } else {
        error_set(err, status, "vulkan: %s has no vkGetInstanceProcAddr", LOADER_NAME);
    }
    if (status != ST_OK) {
        dlclose(library);
    }
    return status;
}

/* ---- drivers under LeakSanitizer ------------------------------------------------------------- */

#define DRIVER_PREFIX "/libvulkan_"
#define DRIVERS_MAX 16

struct drivers {
    char paths[DRIVERS_MAX][256];
    uint32_t count;
};

static int note_driver(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct drivers *drivers = arg;
    size_t len = strlen(info->dlpi_name);
    (void)bytes;
    if (drivers->count < DRIVERS_MAX && len < sizeof(drivers->paths[0]) &&
        strstr(info->dlpi_name, DRIVER_PREFIX)) {
        memcpy(drivers->paths[drivers->count++], info->dlpi_name, len + 1);
    }
    return 0;
}

/* LeakSanitizer checks when the process ends. It finds the memory that a driver keeps in its
 * globals (Mesa: a table of the processor's caches) only if the driver is still mapped then. */
static void keep_drivers(void)
{
    struct drivers drivers = {.count = 0};
    dl_iterate_phdr(note_driver, &drivers);
    for (uint32_t i = 0; i < drivers.count; i++) {
        void *driver = dlopen(drivers.paths[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (driver) {
            dlclose(driver);
        }
    }
}

/* ---------------------------------------------------------------------------------------------- */

enum status hal_vulkan_instance_acquire(const struct hal_vulkan_instance **out_instance,
                                        struct error *err)
{
    pthread_mutex_lock(&lock);
    enum status status = refs > 0 ? ST_OK : open_loader(err);
    refs += status == ST_OK;
    pthread_mutex_unlock(&lock);
    *out_instance = &shared;
    return status;
}

void hal_vulkan_instance_release(void)
{
    pthread_mutex_lock(&lock);
    must(refs > 0);
    if (--refs == 0) {
        if (HAS_ASAN) {
            keep_drivers();
        }
        shared.vkDestroyInstance(shared.handle, NULL);
        dlclose(library);
    }
    pthread_mutex_unlock(&lock);
}
