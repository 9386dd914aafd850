/* SPDX-License-Identifier: MIT */
/*
 * For drivers: the contents of a recorded command buffer. Everything behind the pointers has been
 * checked and is the command buffer's own copy; it holds references to direct buffers.
 */
#ifndef PTED_HAL_COMMAND_PRIV_H
#define PTED_HAL_COMMAND_PRIV_H

#include "base/arena.h"
#include "base/refs.h"
#include "hal/command.h"

enum hal_record_kind { HAL_DISPATCH, HAL_COPY, HAL_BARRIER };

struct hal_record {
    struct hal_record *next;
    enum hal_record_kind kind;
    uint32_t binding_count; /* copy: source, target */
    const struct hal_binding *bindings;
    uint64_t cost;
    uint32_t number; /* of a command other than a barrier, in order */
    /* Of a dispatch only. */
    const void *constants;
    size_t constants_bytes;
    double macs;
    enum hal_macs macs_kind;
    uint64_t bytes; /* see struct hal_dispatch */
    const struct hal_kernel *kernel;
    enum hal_placement placement; /* set by hal_command_end() */
    uint32_t writes;              /* bits by binding; 0: any may be written */
    const char *label;
    uint32_t tag;
    uint32_t grid[3];
    size_t scratch_bytes;
};

/* The memory that each submission of a command buffer must put into a slot. */
struct hal_slot_need {
    size_t length;
    bool written;      /* by a copy */
    bool is_transient; /* may be memory that the host cannot access */
};

#define HAL_COMMAND_MAGIC 0xc0331a53u

struct hal_command {
    uint32_t magic;
    struct refs refs;
    bool ended;
    uint32_t slot_count;
    struct hal_device *device;
    struct arena arena; /* everything below */
    struct hal_slot_need *slots;
    struct hal_record *records, *last; /* in order; barriers separate regions */
    uint32_t count;                    /* records other than barriers */
    uint64_t cost;
    struct hal_command_stats stats; /* stages and transfers only */
    void *compiled;                 /* the driver's form, or NULL */
    /* The command buffer that this one is a host stage of, which outlives its submissions; NULL:
     * none. Then records have the numbers of |whole|'s records, and spans are about |whole|. */
    const struct hal_command *whole;
};

#endif
