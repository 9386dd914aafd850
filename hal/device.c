/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/device.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "hal/device_priv.h"
#include "hal/kernel.h"
#include "hal/semaphore.h"
#include "hal/thread.h"

void hal_device_init(struct hal_device *device, const struct hal_device_ops *ops)
{
    must(ops->free && ops->buffer_new && ops->buffer_free && ops->submit);
    must(ops->progress && ops->can_run);
    device->magic = HAL_DEVICE_MAGIC;
    device->ops = ops;
    refs_init(&device->refs);
    atomic_init(&device->is_lost, false);
    atomic_init(&device->objects, 0);
}

void hal_device_fini(struct hal_device *device)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    must(atomic_load(&device->objects) == 0);
    device->magic = 0;
}

/* "NAME" and "NAME:1" are of the driver "NAME". */
static bool is_of(const char *name, const struct hal_driver *driver)
{
    size_t len = strlen(driver->name);
    return strncmp(name, driver->name, len) == 0 && (name[len] == '\0' || name[len] == ':');
}

static enum status fail_unknown(const char *name, struct error *err)
{
    char names[64] = "auto";
    for (const struct hal_driver *const *driver = hal_drivers; *driver; driver++) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", driver[1] ? ", " : " or ",
                 (*driver)->name);
    }
    return error_set(err, ST_NOT_FOUND, "device '%.64s': expected %s", name, names);
}

static enum status open_named(const char *name, const struct hal_device_options *options,
                              struct hal_device **out_device, struct error *err)
{
    for (const struct hal_driver *const *driver = hal_drivers; *driver; driver++) {
        if (is_of(name, *driver)) {
            return (*driver)->open(name, options, out_device, err);
        }
    }
    return fail_unknown(name, err);
}

/* Opens the first driver's device that is faster than the host, or the host. */
static enum status open_automatic(const struct hal_device_options *options,
                                  struct hal_device **out_device, struct error *err)
{
    const struct hal_driver *host = hal_drivers[HAL_DRIVER_HOST];
    for (const struct hal_driver *const *driver = hal_drivers; *driver; driver++) {
        const char *name = (*driver)->automatic;
        if (name && (*driver)->open(name, options, out_device, err) == ST_OK) {
            return ST_OK;
        }
    }
    return host->open(host->name, options, out_device, err);
}

enum status hal_device_open(const char *name, const struct hal_device_options *options,
                            struct hal_device **out_device, struct error *err)
{
    static const struct hal_device_options defaults = {0};
    options = options ? options : &defaults;
    return strcmp(name, "auto") == 0 ? open_automatic(options, out_device, err)
                                     : open_named(name, options, out_device, err);
}

void hal_device_list(struct buf *out)
{
    for (const struct hal_driver *const *driver = hal_drivers; *driver; driver++) {
        (*driver)->list(out);
    }
}

const char *hal_driver_name(unsigned index)
{
    return hal_drivers[index] ? hal_drivers[index]->name : NULL;
}

bool hal_driver_has_form(unsigned index, const struct hal_kernel *kernel)
{
    must(hal_drivers[index] && kernel);
    return hal_drivers[index]->has_form(kernel);
}

struct hal_device *hal_device_ref(struct hal_device *device)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    refs_take(&device->refs);
    return device;
}

static void *free_device(void *arg)
{
    struct hal_device *device;
    OBJ_CAST(device, arg, HAL_DEVICE_MAGIC);
    device->ops->free(device);
    return NULL;
}

/* If no thread can be started, the device leaks: waiting here would be waiting for this thread. */
static void free_elsewhere(struct hal_device *device)
{
    pthread_t thread;
    if (hal_thread_start(&thread, free_device, device) == 0) {
        pthread_detach(thread);
    }
}

void hal_device_unref(struct hal_device *device)
{
    if (!device) {
        return;
    }
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    if (!refs_drop(&device->refs)) {
        return;
    }
    if (hal_semaphore_is_calling()) {
        free_elsewhere(device);
    } else {
        device->ops->free(device);
    }
}

bool hal_device_is_lost(const struct hal_device *device)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    return atomic_load_explicit(&device->is_lost, memory_order_acquire);
}

struct hal_progress hal_device_progress(struct hal_device *device)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    return device->ops->progress(device);
}

bool hal_device_trim(struct hal_device *device, size_t bytes_max)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    return device->ops->trim && device->ops->trim(device, bytes_max);
}

enum status hal_device_probe(struct hal_device *device, struct hal_peaks *out_peaks,
                             struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    if (!device->ops->probe) {
        return error_set(err, ST_UNSUPPORTED, "device %s cannot measure its peaks",
                         device->props.name);
    }
    return device->ops->probe(device, out_peaks, err);
}

const char *hal_capability_word(unsigned index)
{
    static const char *const words[HAL_CAPABILITIES] = {
#define CAPABILITY(name, word) [HAL_INDEX_##name] = word,
#include "hal/capability.def"
#undef CAPABILITY
    };
    must(index < HAL_CAPABILITIES);
    return words[index];
}

const struct hal_device_props *hal_device_props(const struct hal_device *device)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    return &device->props;
}
