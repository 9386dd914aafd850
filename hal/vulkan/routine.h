/* SPDX-License-Identifier: MIT */
/*
 * A command buffer as Vulkan runs it: a list of stages that run one after the other. A GPU stage is
 * a list of dispatches and barriers. A host stage is a command buffer of the CPU device, for
 * kernels that have no shader or that are cheaper there (placement.c). If both sides access the
 * same memory, nothing is copied between them; if not, the transient slots in use are copied.
 * Within a region, the records for the side of the preceding stage come first. Copies go to either
 * side.
 *
 * A submission needs a replay: a recorded VkCommandBuffer for each GPU stage, and a table of
 * bindings in device memory. A routine keeps its replays and makes another one if all are in use;
 * to use a replay again, the addresses of the slots are written into its table.
 *
 * Submissions with a profile have replays of their own, with a timestamp before and after each
 * dispatch, and with a barrier between any two. So the time of a dispatch covers its own work
 * alone, even if dispatches overlap in a plain replay.
 */
#ifndef PTED_HAL_VULKAN_ROUTINE_H
#define PTED_HAL_VULKAN_ROUTINE_H

#include "hal/command.h"
#include "hal/vulkan/device.h"

struct hal_command;
struct hal_profile;
struct hal_vulkan_routine;

struct hal_vulkan_stage {
    struct hal_command *host;            /* owned; NULL: a GPU stage */
    uint32_t launch_first, launch_count; /* of a GPU stage */
    uint32_t query_first, query_count;   /* of its launches */
};

struct hal_vulkan_replay {
    struct hal_vulkan_routine *routine;
    struct hal_buffer *memory;  /* owned: table, then constants, then mirrors */
    struct hal_binding mirrors; /* host stages see it as one slot after the last */
    struct list link;           /* in one of the routine's lists of idle replays */
    VkQueryPool queries;        /* owned; VK_NULL_HANDLE: not for profiles */
    uint64_t *ticks;            /* owned; room for the results of the queries of a stage */
    VkCommandBuffer commands[]; /* by stage; unused for host stages */
};

/* See struct hal_device_ops. */
enum status hal_vulkan_routine_new(struct hal_command *command, struct error *err);
void hal_vulkan_routine_free(struct hal_command *command);

/* Returns the stages of a compiled command buffer; 0: nothing needs to be submitted. */
uint32_t hal_vulkan_routine_stages(const struct hal_command *command,
                                   const struct hal_vulkan_stage **out_stages);

/* Takes a replay, for a profile or a plain one, and writes |addresses|, by slot, into its table.
 * Any thread. */
MUST_CHECK enum status hal_vulkan_routine_take(struct hal_command *command,
                                               const uint64_t *addresses, bool is_profiled,
                                               struct hal_vulkan_replay **out_replay,
                                               struct error *err);
/* Returns the replay after the device has finished with it. */
void hal_vulkan_routine_put(struct hal_vulkan_replay *replay);
/* Frees a replay that is in no list, with the routine's lock held or by its last user. */
void hal_vulkan_replay_free(struct hal_vulkan_replay *replay);

/* ---- profile.c ------------------------------------------------------------------------------- */

/* Adds the spans of GPU stage |stage| of |command|, which the device has just completed with
 * |replay|, a replay for profiles. Any thread. */
MUST_CHECK enum status hal_vulkan_profile_read(const struct hal_vulkan_replay *replay,
                                               const struct hal_command *command, uint32_t stage,
                                               struct hal_profile *profile, struct error *err);

#endif
