/* SPDX-License-Identifier: MIT */
/*
 * For drivers: the structs behind the handles. A driver's own structs have these as first member,
 * and its row in drivers.c opens its devices. The public functions have checked every argument.
 */
#ifndef PTED_HAL_DEVICE_PRIV_H
#define PTED_HAL_DEVICE_PRIV_H

#include "base/refs.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/pages.h"
#include "hal/queue.h"

/* The purpose of a new buffer. */
enum hal_memory {
    HAL_MEMORY_ZEROED,    /* visible to host and device, filled with zeros */
    HAL_MEMORY_SPARSE,    /* likewise; its memory is taken by pages, when they are touched */
    HAL_MEMORY_CONSTANT,  /* likewise; soon written as a whole, then only read */
    HAL_MEMORY_RAW,       /* visible to host and device, contents undefined */
    HAL_MEMORY_TRANSIENT, /* the device's own memory if that is faster, contents undefined */
};

static inline bool hal_memory_is_zeroed(enum hal_memory memory)
{
    return memory == HAL_MEMORY_ZEROED || memory == HAL_MEMORY_SPARSE ||
           memory == HAL_MEMORY_CONSTANT;
}

struct hal_device_ops {
    /* Completes all work, then frees the device. */
    void (*free)(struct hal_device *device);
    enum status (*buffer_new)(struct hal_device *device, size_t size, enum hal_memory memory,
                              struct hal_buffer **out_buffer, struct error *err);
    /* (optional) Default: one by one. See hal_buffer_new_constants(), which frees the buffers that
     * were made before one fails. */
    enum status (*buffers_new)(struct hal_device *device, const size_t *sizes, size_t count,
                               struct hal_buffer **out_buffers, struct error *err);
    /*
     * (optional) Default: ST_UNSUPPORTED. |is_final|: the bytes will never change, and the buffer
     * is never put into a slot, so the device may work on a copy.
     */
    enum status (*buffer_import)(struct hal_device *device, void *ptr, size_t size, bool is_final,
                                 struct hal_buffer **out_buffer, struct error *err);
    /* Frees a buffer of the functions above, and its memory unless it was imported. */
    void (*buffer_free)(struct hal_buffer *buffer);
    /* (optional) |size| bytes of a RAW buffer are no longer needed: their memory may go back to the
     * system, and their contents are undefined until they are written again. */
    void (*buffer_discard)(struct hal_buffer *buffer, size_t offset, size_t size);
    /* (optional) See hal_buffer_page_bytes(). Default: 0. */
    size_t (*buffer_page_bytes)(const struct hal_buffer *buffer);
    /* (optional) See hal_buffer_compact(). Default: nothing moves. */
    void (*buffer_compact)(struct hal_buffer *buffer, size_t offset, size_t size, size_t old);
    /* (optional) hal_buffer_clear() of a RAW buffer. Default: the host writes zeros. */
    void (*buffer_clear)(struct hal_buffer *buffer, size_t offset, size_t size);
    /* (optional, all of them or none) See hal/pages.h. Default: ST_UNSUPPORTED. */
    enum status (*pages_new)(struct hal_device *device, size_t size, struct hal_pages **out_pages,
                             struct error *err);
    void (*pages_free)(struct hal_pages *pages);
    enum status (*pages_take)(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                              size_t offset, size_t size, struct error *err);
    enum status (*pages_map)(struct hal_pages *pages, size_t at, struct hal_buffer *buffer,
                             size_t offset, size_t size, struct error *err);
    /* (optional) Compiles the records into the device's own form, at hal_command_end(). */
    enum status (*command_compile)(struct hal_command *command, struct error *err);
    /* (optional) Frees the result of command_compile. */
    void (*command_free)(struct hal_command *command);
    enum status (*submit)(struct hal_device *device, const struct hal_submission *submission,
                          struct error *err);
    struct hal_progress (*progress)(struct hal_device *device);
    /* (optional) hal_device_trim(). */
    bool (*trim)(struct hal_device *device, size_t bytes_max);
    /* (optional) Default: ST_UNSUPPORTED. */
    enum status (*probe)(struct hal_device *device, struct hal_peaks *out_peaks, struct error *err);
    /* Can a dispatch of |kernel| be recorded: by a form of the device's own, or another way? */
    bool (*can_run)(const struct hal_kernel *kernel);
};

#define HAL_DEVICE_MAGIC 0xde71ce51u
#define HAL_BUFFER_MAGIC 0xb0ff3e52u
#define HAL_PAGES_MAGIC 0xba6e5a6eu

struct hal_device {
    uint32_t magic;
    const struct hal_device_ops *ops;
    struct refs refs;
    atomic_bool is_lost;
    atomic_size_t objects; /* buffers, pages and command buffers; 0 when the device is freed */
    struct hal_device_props props;
};

struct hal_buffer {
    uint32_t magic;
    struct hal_device *device;
    struct refs refs;
    bool read_only;
    bool is_final; /* hal_buffer_freeze() */
    size_t size;
    void *host; /* NULL: no bytes, or not visible to the host */
    /* A range of a pool lies in the driver's buffer |root|; any other buffer is its own root. */
    struct hal_buffer *root;
    size_t root_offset;
    void (*recycle)(struct hal_buffer *buffer); /* instead of freeing; NULL: not a pool's */
    hal_buffer_release_f *release;              /* NULL: none */
    void *release_arg;
    hal_buffer_release_f *leave; /* hal_buffer_watch(); NULL: nobody */
    void *leave_arg;
};

struct hal_pages {
    uint32_t magic;
    struct hal_device *device;
    struct refs refs;
    size_t size;
};

/* A kind of device: a row of drivers.c. */
struct hal_driver {
    const char *name; /* of the driver; its devices are "NAME" and "NAME:..." */
    /* The name that "auto" opens: a device that computes faster than the CPU. NULL: the driver has
     * no such devices. */
    const char *automatic;
    /* |name| is the complete name, "NAME:1". */
    enum status (*open)(const char *name, const struct hal_device_options *options,
                        struct hal_device **out_device, struct error *err);
    /* Prints a line for each device of this kind. */
    void (*list)(struct buf *out);
    /* Does |kernel| have a form that these devices run themselves? */
    bool (*has_form)(const struct hal_kernel *kernel);
};

extern const struct hal_driver *const hal_drivers[]; /* HAL_DRIVER_HOST first; NULL ends it */

/* Can |device| use |buffer|? The CPU can use all memory that the host can access, other devices
 * only their own buffers. */
static inline bool hal_buffer_is_usable(const struct hal_buffer *buffer,
                                        const struct hal_device *device)
{
    return buffer->device == device || (device->props.is_host && buffer->host);
}

/* Does as hal_buffer_new(), for |memory|: for pools and drivers. */
MUST_CHECK enum status hal_buffer_new_in(struct hal_device *device, size_t size,
                                         enum hal_memory memory, struct hal_buffer **out_buffer,
                                         struct error *err);

/* Call first in a driver's functions that open devices and make buffers. */
void hal_device_init(struct hal_device *device, const struct hal_device_ops *ops);
void hal_buffer_init(struct hal_buffer *buffer, struct hal_device *device, size_t size, void *host);
void hal_pages_init(struct hal_pages *pages, struct hal_device *device, size_t size);

/* Call last in a driver's functions that free devices, buffers and pages. By then, the device has
 * no objects left. */
void hal_device_fini(struct hal_device *device);
void hal_buffer_fini(struct hal_buffer *buffer);
void hal_pages_fini(struct hal_pages *pages);

#endif
