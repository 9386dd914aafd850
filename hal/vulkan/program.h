/* SPDX-License-Identifier: MIT */
/*
 * A command buffer as Vulkan runs it: a list of stages, one after the other. A stage is work of the
 * GPU, a list of dispatches and barriers, or work of the host: a command buffer of the CPU device
 * for kernels that have no shader, and for what is cheaper there (placement.c). Where both see the
 * same memory nothing is copied between them; else transient slots are, as far as they are needed.
 * Within a region, what goes to the same side as the stage before comes first. Fills go to the GPU,
 * copies and updates to whoever is at it.
 *
 * What a submission needs for itself is a replay: a recorded VkCommandBuffer for each stage of the
 * GPU and a table of bindings in device memory. A program keeps its replays and makes one more when
 * all are in use; using one again is writing the addresses of the slots into its table.
 */
#ifndef PTED_HAL_VULKAN_PROGRAM_H
#define PTED_HAL_VULKAN_PROGRAM_H

#include "hal/command.h"
#include "hal/vulkan/device.h"

struct hal_command;
struct hal_vulkan_program;

struct hal_vulkan_stage {
    struct hal_command *host;        /* owned; NULL: the GPU's */
    uint32_t step_first, step_count; /* of the GPU */
};

struct hal_vulkan_replay {
    struct hal_vulkan_program *program;
    struct hal_buffer *memory;  /* owned: table, then constants, then mirrors */
    struct hal_binding mirrors; /* for the slot behind the last one, in stages of the host */
    struct list link;           /* among the program's idle ones */
    VkCommandBuffer commands[]; /* by stage; those of the host have none */
};

/* As struct hal_device_ops wants them. */
enum status hal_vulkan_program_new(struct hal_command *command, struct error *err);
void hal_vulkan_program_free(struct hal_command *command);

/* None: nothing needs to be submitted. */
uint32_t hal_vulkan_program_stages(const struct hal_command *command,
                                   const struct hal_vulkan_stage **out_stages);

/* A replay whose table says where the slots are: |addresses| by slot. Any thread. */
MUST_CHECK enum status hal_vulkan_program_take(struct hal_command *command,
                                               const uint64_t *addresses,
                                               struct hal_vulkan_replay **out_replay,
                                               struct error *err);
/* The device has done with it. */
void hal_vulkan_program_put(struct hal_vulkan_replay *replay);

#endif
