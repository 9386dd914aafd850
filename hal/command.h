/* SPDX-License-Identifier: MIT */
/*
 * Command buffers: recorded once, immutable from hal_command_end() on, submitted any number of
 * times, also several times at once. A binding names memory directly (a buffer that the command
 * buffer references: weights) or by slot (each submission fills it in: inputs, results, the
 * workspace).
 *
 * Commands between two barriers form a region: they may run in any order and at the same time, so
 * they must not touch each other's writes. A barrier makes all writes before it visible to all
 * commands after it.
 *
 * One thread records. Arguments come from this program, so wrong ones are asserted, never reported.
 */
#ifndef PTED_HAL_COMMAND_H
#define PTED_HAL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "hal/kernel.h"

struct hal_buffer;
struct hal_command;
struct hal_device;

#define HAL_SLOTS_MAX 4096 /* and one more for a driver's own use */

/* A range of memory: of |buffer| if it is not NULL, else of the buffer that a submission puts into
 * |slot|. */
struct hal_binding {
    struct hal_buffer *buffer;
    uint16_t slot;
    size_t offset;
    size_t length;
};

/* Returns all bytes of |buffer|. Takes no reference. */
struct hal_binding hal_binding_whole(struct hal_buffer *buffer);

/* The numbers that multiply-adds multiply: each kind has a peak of its own. */
enum hal_macs {
    HAL_MACS_F32,
    HAL_MACS_U8, /* 8-bit integers */
    HAL_MACS_BF16,
};

struct hal_dispatch {
    const struct hal_kernel *kernel;
    uint32_t grid[3];       /* a 0 anywhere: nothing to do */
    const void *constants;  /* copied */
    size_t constants_bytes; /* <= HAL_CONSTANTS_MAX */
    const struct hal_binding *bindings;
    uint32_t binding_count; /* <= HAL_BINDINGS_MAX */
    uint32_t writes;        /* bit i: binding i is written; 0: any may be */
    size_t scratch_bytes;   /* that the kernel needs for each worker */
    uint64_t cost; /* rough ns of all tiles on one core; decides how many workers to wake */
    double macs;   /* multiply-adds of all tiles, for profiles; 0: it is about memory */
    enum hal_macs macs_kind;
    uint64_t bytes;    /* read and written, for profiles; 0: all bytes of the bindings */
    const char *label; /* the operator, for faults; static. NULL: the kernel's name */
    uint32_t tag;      /* the recorder's own, for hal_command_print() */
};

/* |slot_count| <= HAL_SLOTS_MAX. The caller owns a reference. */
MUST_CHECK enum status hal_command_new(struct hal_device *device, uint32_t slot_count,
                                       struct hal_command **out_command, struct error *err);
/*
 * During recording: declares that only the commands of a submission access |slot|, and that they
 * write it before they read it. So it may be memory of hal_pool_reserve_transient(), and a
 * submission may use other memory in its place.
 */
void hal_command_set_transient(struct hal_command *command, uint32_t slot);

struct hal_command *hal_command_ref(struct hal_command *command);
void hal_command_unref(struct hal_command *command); /* NULL is fine */

MUST_CHECK enum status hal_command_dispatch(struct hal_command *command,
                                            const struct hal_dispatch *dispatch, struct error *err);
/* Copies between ranges of equal lengths; the ranges do not overlap. */
MUST_CHECK enum status hal_command_copy(struct hal_command *command, struct hal_binding source,
                                        struct hal_binding target, struct error *err);
MUST_CHECK enum status hal_command_barrier(struct hal_command *command, struct error *err);
MUST_CHECK enum status hal_command_end(struct hal_command *command, struct error *err);

/* Returns rough ns of all that was recorded, on one core. The same on every run and on busy
 * machines. */
uint64_t hal_command_cost(const struct hal_command *command);

/* Where a dispatch runs, and why. */
enum hal_placement {
    HAL_PLACEMENT_DEVICE,
    HAL_PLACEMENT_NO_FORM, /* on the host, which has the only form of the kernel */
    HAL_PLACEMENT_CHEAPER, /* on the host, which runs the dispatches around it */
    HAL_PLACEMENTS
};

/* A recorded command other than a barrier, for profiles. */
struct hal_command_info {
    const char *name;  /* the kernel's, or "copy" */
    const char *label; /* NULL: not a dispatch */
    uint32_t tag;      /* of a dispatch */
    double macs;
    enum hal_macs macs_kind;
    uint64_t bytes; /* read and written, each of them once */
};

/* Returns the number of recorded commands without barriers. */
uint32_t hal_command_count(const struct hal_command *command);

/* Describes these commands, by number. |infos| has room for hal_command_count() of them. The
 * strings live as long as the command buffer. */
void hal_command_describe(const struct hal_command *command, struct hal_command_info *infos);

/* The parts of a submission. Stages and transfers are counted by hal_command_end(). */
struct hal_command_stats {
    uint32_t dispatches[HAL_PLACEMENTS];
    uint32_t copies, barriers;
    uint32_t device_stages, host_stages; /* stages that the device and its host run */
    uint32_t transfers;                  /* copies between them, added by the driver */
};

/* Returns all dispatches, on the device and on the host. */
uint32_t hal_command_stats_dispatches(const struct hal_command_stats *stats);

/* Adds the parts of |command| to |stats|. */
void hal_command_add_stats(const struct hal_command *command, struct hal_command_stats *stats);

/* Calls |fn| for each dispatch that does not run on the device. |label| is static. */
void hal_command_list_hosted(const struct hal_command *command,
                             void (*fn)(void *arg, const char *label, enum hal_placement placement),
                             void *arg);

/* Prints lines about a dispatch, before the dispatch's own line. */
typedef void hal_note_f(const void *arg, uint32_t tag, struct buf *out);

/* Prints one line for each command: the same text each time, for `pte inspect --plan` and golden
 * tests. |note| may be NULL. */
void hal_command_print(const struct hal_command *command, hal_note_f *note, const void *arg,
                       struct buf *out);

#endif
