/* SPDX-License-Identifier: MIT */
/*
 * Devices. A driver opens devices; a device allocates buffers, records command buffers and runs
 * them on its queue. A driver is a folder of hal/ and a row of drivers.c; everything else calls the
 * functions of these headers, which check their arguments once so that drivers need not.
 *
 * Reference counts are atomic; every function here may be called from any thread.
 */
#ifndef PTED_HAL_DEVICE_H
#define PTED_HAL_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct hal_device;
struct hal_kernel;

/* Properties for plans and metadata; filled by the driver, constant afterwards. */
struct hal_device_props {
    bool is_host;          /* the CPU device: it can use all memory that the host can access */
    bool is_gpu;           /* the hardware is a GPU; false for a driver that computes on the CPU */
    char name[16];         /* opens the same device again: "cpu", or a driver and a number */
    char kind[32];         /* of hardware, for people: "cpu", "discrete GPU" */
    char description[192]; /* "avx512_vnni, 4 workers" */
    uint32_t workers;      /* threads, or 1 */
    size_t buffer_align;   /* of every buffer's address, a power of two */
    size_t offset_align;   /* of binding offsets; 1: only what the kernel itself needs */
    size_t memory_bytes_max;  /* largest single buffer */
    size_t scratch_bytes_max; /* that a dispatch may ask for */
    uint32_t capabilities;    /* bits of enum hal_capability, which select forms of kernels */
    /* multiply-adds that take as long as one float from memory, about; 0: not known */
    uint32_t f32_per_read;
    uint32_t bf16_speed; /* products of bfloat16 in the time of one of floats; 0: no instructions */
    uint32_t group_max;  /* channels of a group for uk->group_f32; 0: it is not there */
    bool has_profile;    /* submissions can be timed: hal/profile.h */
    bool host_visible; /* host and device share all memory; else the device has transient memory */
};

/* Options for opening a device. Zero means: choose. */
struct hal_device_options {
    uint32_t workers;      /* cpu: threads of the pool; 0: as many as the process may use */
    uint32_t nice;         /* cpu: added to the niceness of the threads of the pool */
    const char *cpu_level; /* cpu: "generic", "avx2", "avx512", …; NULL: the best there is */
    const char *cache_directory; /* for kernels that drivers compiled; NULL: they are not kept */
};

/*
 * |name| is the name of a driver, which opens its best usable device; a driver, a colon and a
 * number, as hal_device_list() prints them; or "auto": the best GPU, or the CPU if there is no GPU.
 * The caller owns a reference. ST_UNSUPPORTED: this machine has no such device, or cannot use it;
 * the error says why. ST_NOT_FOUND: no device has such a name.
 */
MUST_CHECK enum status hal_device_open(const char *name, const struct hal_device_options *options,
                                       struct hal_device **out_device, struct error *err);

/* Lists a line for each device that could be opened, for `pte devices`. */
void hal_device_list(struct buf *out);

/*
 * Drivers by number, in the order of their rows: the name of a driver (NULL: there are no more),
 * and whether its devices have a form of |kernel| of their own. The first driver is the host's.
 */
#define HAL_DRIVER_HOST 0
const char *hal_driver_name(unsigned index);
bool hal_driver_has_form(unsigned index, const struct hal_kernel *kernel);

struct hal_device *hal_device_ref(struct hal_device *device);
/*
 * Dropping the last reference waits until all submissions have completed, then frees the device. If
 * it is dropped inside a completion callback, a separate thread waits and frees the device.
 * Buffers, pools and command buffers hold no reference to their device: free them first (asserted).
 */
void hal_device_unref(struct hal_device *device);

/*
 * True once the device is lost for good: all earlier and later submissions fail with
 * ST_UNAVAILABLE. Its memory can still be mapped and freed, but its contents are undefined. To go
 * on, free everything of this device and open it again.
 */
bool hal_device_is_lost(const struct hal_device *device);

/*
 * The progress of a device, for a watchdog. If two reports are both busy and have the same mark,
 * the device completed nothing between them, not even a part of a submission.
 */
struct hal_progress {
    bool is_busy; /* submissions are not complete */
    uint64_t mark;
};

struct hal_progress hal_device_progress(struct hal_device *device);

/*
 * Gives memory that the device keeps for submissions back to the system, if no submission has used
 * it since the last round: about |bytes_max| bytes. True: the round has not ended, call it again.
 * Any thread.
 */
bool hal_device_trim(struct hal_device *device, size_t bytes_max);

/* The speed of all workers of a device together, each in a loop that does nothing else. */
struct hal_peaks {
    /* Multiply-adds a second; u8: of u8 by s8; bf16: 0 if there are no instructions for it. */
    double f32_macs, u8_macs, bf16_macs;
    double read_bytes; /* bytes of memory a second */
};

/*
 * Measures the peaks now, which takes some tenths of a second and 192 to 512 MiB; nothing else
 * should run on the device. ST_UNSUPPORTED: this kind of device has no probe.
 */
MUST_CHECK enum status hal_device_probe(struct hal_device *device, struct hal_peaks *out_peaks,
                                        struct error *err);

/* Returns the word for capability |index|, for example "doubles". */
const char *hal_capability_word(unsigned index);

const struct hal_device_props *hal_device_props(const struct hal_device *device);

#endif
