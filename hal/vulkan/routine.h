/* SPDX-License-Identifier: MIT */
/*
 * A command buffer as Vulkan runs it: a list of stages that run one after the other. A GPU stage is
 * a list of dispatches and barriers. A host stage is a command buffer of the CPU device, for
 * kernels that have no shader or that are cheaper there (placement.c). If both sides access the
 * same memory, nothing is copied between them; if not, the transient slots in use are copied.
 * Within a region, the records for the side of the preceding stage come first. Fills go to the GPU;
 * copies and updates go to either side.
 *
 * A submission needs a replay: a recorded VkCommandBuffer for each GPU stage, and a table of
 * bindings in device memory. A routine keeps its replays and makes another one if all are in use;
 * to use a replay again, the addresses of the slots are written into its table.
 */
#ifndef PTED_HAL_VULKAN_ROUTINE_H
#define PTED_HAL_VULKAN_ROUTINE_H

#include "hal/command.h"
#include "hal/vulkan/device.h"

struct hal_command;
struct hal_vulkan_routine;

struct hal_vulkan_stage {
    struct hal_command *host;            /* owned; NULL: a GPU stage */
    uint32_t launch_first, launch_count; /* of a GPU stage */
};

struct hal_vulkan_replay {
    struct hal_vulkan_routine *routine;
    struct hal_buffer *memory;  /* owned: table, then constants, then mirrors */
    struct hal_binding mirrors; /* host stages see it as one slot after the last */
    struct list link;           /* in the routine's list of idle replays */
    VkCommandBuffer commands[]; /* by stage; unused for host stages */
};

/* See struct hal_device_ops. */
enum status hal_vulkan_routine_new(struct hal_command *command, struct error *err);
void hal_vulkan_routine_free(struct hal_command *command);

/* The stages of a compiled command buffer; 0: nothing needs to be submitted. */
uint32_t hal_vulkan_routine_stages(const struct hal_command *command,
                                   const struct hal_vulkan_stage **out_stages);

/* Takes a replay and writes |addresses|, by slot, into its table. Any thread. */
MUST_CHECK enum status hal_vulkan_routine_take(struct hal_command *command,
                                               const uint64_t *addresses,
                                               struct hal_vulkan_replay **out_replay,
                                               struct error *err);
/* Returns the replay after the device has finished with it. */
void hal_vulkan_routine_put(struct hal_vulkan_replay *replay);

#endif
