/* SPDX-License-Identifier: MIT */
/*
 * For drivers: what stands behind the handles. A driver's own structs embed these first and its
 * entry in drivers.c opens devices of its kind. The public wrappers have checked every argument.
 */
#ifndef PTED_HAL_DEVICE_PRIV_H
#define PTED_HAL_DEVICE_PRIV_H

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/queue.h"

struct hal_device_ops {
    /* Completes all work, then frees the device. */
    void (*free)(struct hal_device *device);
    enum status (*buffer_new)(struct hal_device *device, size_t size,
                              struct hal_buffer **out_buffer, struct error *err);
    /* (optional) Default: ST_UNSUPPORTED. */
    enum status (*buffer_import)(struct hal_device *device, void *ptr, size_t size,
                                 bool read_only, struct hal_buffer **out_buffer,
                                 struct error *err);
    /* Frees the driver's part of a buffer made by one of the two above. */
    void (*buffer_free)(struct hal_buffer *buffer);
    /* (optional) Turns what was recorded into the device's own form, at hal_command_end(). */
    enum status (*command_compile)(struct hal_command *command, struct error *err);
    /* (optional) Frees what command_compile made. */
    void (*command_free)(struct hal_command *command);
    enum status (*submit)(struct hal_device *device, const struct hal_submission *submission,
                          struct error *err);
};

struct hal_device {
    const struct hal_device_ops *ops;
    atomic_uint refs;
    struct hal_device_props props;
};

#endif
