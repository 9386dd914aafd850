/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "lib/inside.h"

#define MEMORY_BYTES_DEFAULT ((size_t)4 << 30)

/* The members that the caller knows; the others are zero. */
static struct pted_device_options known(const struct pted_device_options *options)
{
    struct pted_device_options all = PTED_DEVICE_OPTIONS_INIT;
    if (options) {
        memcpy(&all, options, options->size < sizeof(all) ? options->size : sizeof(all));
    }
    return all;
}

static enum status open_device(struct pted_device *device, const struct pted_device_options *given,
                               struct error *err)
{
    const struct hal_device_options options = {
        .workers = given->workers, .nice = given->nice, .cpu_level = given->cpu_level};
    TRY(hal_device_open(given->name ? given->name : "cpu", &options, &device->hal, err));
    return given->memory_bytes
               ? hal_pool_new(device->hal, given->memory_bytes, &device->pool, err)
               : hal_pool_new_up_to(device->hal, MEMORY_BYTES_DEFAULT, &device->pool, err);
}

enum pted_status pted_device_open(const struct pted_device_options *options,
                                  struct pted_device **out_device, struct pted_error *err)
{
    const struct pted_device_options all = known(options);
    struct pted_device *device = calloc(1, sizeof(*device));
    struct error own;
    *out_device = NULL;
    if (!device) {
        return lib_give(error_no_memory(&own, "a device"), &own, err);
    }
    device->magic = LIB_DEVICE_MAGIC;
    refs_init(&device->refs);
    enum status status = open_device(device, &all, &own);
    if (status != ST_OK) {
        pted_device_free(device);
        return lib_give(status, &own, err);
    }
    *out_device = device;
    return PTED_OK;
}

struct pted_device *lib_device_ref(struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    refs_take(&device->refs);
    return device;
}

void pted_device_free(struct pted_device *device)
{
    if (!device) {
        return;
    }
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    if (!refs_drop(&device->refs)) {
        return;
    }
    hal_pool_free(device->pool);
    if (device->hal) {
        hal_device_unref(device->hal);
    }
    device->magic = 0;
    free(device);
}

const char *pted_device_description(const struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    return hal_device_props(device->hal)->description;
}
