/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "lib/inside.h"

#define MEMORY_BYTES_DEFAULT ((size_t)4 << 30)

enum status lib_options_take(void *all, size_t size, const void *given, struct error *err)
{
    size_t given_size;
    if (!given) {
        return ST_OK;
    }
    memcpy(&given_size, given, sizeof(given_size));
    for (size_t i = size; i < given_size; i++) {
        if (((const uint8_t *)given)[i] != 0) {
            return error_set(err, ST_UNSUPPORTED,
                             "options of %zu bytes: expected zeros behind the %zu bytes that "
                             "version %s knows",
                             given_size, size, pted_version());
        }
    }
    memcpy(all, given, given_size < size ? given_size : size);
    return ST_OK;
}

static enum status open_device(struct pted_device *device,
                               const struct pted_device_options *options, struct error *err)
{
    struct pted_device_options all = PTED_DEVICE_OPTIONS_INIT;
    TRY(lib_options_take(&all, sizeof(all), options, err));
    const struct hal_device_options hal = {
        .workers = all.workers, .nice = all.nice, .cpu_level = all.cpu_level};
    TRY(hal_device_open(all.name ? all.name : "cpu", &hal, &device->hal, err));
    return all.memory_bytes
               ? hal_pool_new(device->hal, all.memory_bytes, &device->pool, err)
               : hal_pool_new_up_to(device->hal, MEMORY_BYTES_DEFAULT, &device->pool, err);
}

enum pted_status pted_device_open(const struct pted_device_options *options,
                                  struct pted_device **out_device, struct pted_error *err)
{
    struct pted_device *device = calloc(1, sizeof(*device));
    struct error own;
    *out_device = NULL;
    if (!device) {
        return lib_give(error_no_memory(&own, "a device"), &own, err);
    }
    device->magic = LIB_DEVICE_MAGIC;
    refs_init(&device->refs);
    enum status status = open_device(device, options, &own);
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

const char *pted_device_name(const struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    return hal_device_props(device->hal)->name;
}

bool pted_device_is_cpu(const struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    return hal_device_props(device->hal)->is_host;
}

uint32_t pted_device_workers(const struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    return hal_device_props(device->hal)->workers;
}

enum pted_status pted_device_measure_peaks(struct pted_device *device, struct pted_peaks *out_peaks,
                                           struct pted_error *err)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    struct hal_peaks peaks;
    struct error own;
    enum status status = hal_device_probe(device->hal, &peaks, &own);
    if (status == ST_OK) {
        *out_peaks = (struct pted_peaks){
            .float32_macs = peaks.f32_macs,
            .bfloat16_macs = peaks.bf16_macs,
            .int8_macs = peaks.u8_macs,
            .read_bytes = peaks.read_bytes,
        };
    }
    return lib_give(status, &own, err);
}

const char *pted_device_description(const struct pted_device *device)
{
    OBJ_CHECK(device, LIB_DEVICE_MAGIC);
    return hal_device_props(device->hal)->description;
}
