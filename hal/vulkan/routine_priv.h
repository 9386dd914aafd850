/* SPDX-License-Identifier: MIT */
/* The compiled routine, shared by routine.c, placement.c and replay.c. Everything is allocated from
 * the command buffer's arena. */
#ifndef PTED_HAL_VULKAN_ROUTINE_PRIV_H
#define PTED_HAL_VULKAN_ROUTINE_PRIV_H

#include <pthread.h>

#include "hal/command_priv.h"
#include "hal/vulkan/routine.h"

/* A dispatch; without a pipeline, a barrier. */
struct hal_vulkan_launch {
    VkPipeline pipeline;
    uint32_t grid[3];
    uint32_t binding_first;
    uint32_t number;  /* of the record; HAL_VULKAN_TRANSFER: the driver added it */
    uint32_t query;   /* the first of two in a replay for profiles: begin and end */
    size_t constants; /* offset in a replay's memory */
};

#define HAL_VULKAN_TRANSFER UINT32_MAX

enum hal_vulkan_source {
    HAL_VULKAN_FROM_SLOT,
    HAL_VULKAN_FROM_BUFFER,
    HAL_VULKAN_FROM_REPLAY, /* in its own memory: constants, mirrors */
};

struct hal_vulkan_entry {
    enum hal_vulkan_source source;
    uint16_t slot;
    uint64_t address; /* FROM_BUFFER; for the others an offset */
    uint64_t length;
};

/* A copy of a range of a transient slot in shared memory, for one host stage. */
struct hal_vulkan_mirror {
    uint16_t slot;
    size_t begin, end; /* in the slot */
    size_t at;         /* in the mirrors of a replay; congruent to |begin| modulo BUFFER_ALIGN */
    bool is_fetched;   /* it has been written before the stage */
    bool is_written;   /* by the stage */
};

#define HAL_VULKAN_ROUTINE_MAGIC 0x9b906a5du

struct hal_vulkan_routine {
    uint32_t magic;
    struct hal_vulkan_device *device;
    struct hal_vulkan_stage *stages;
    uint32_t stage_count;
    struct hal_vulkan_launch *launches;
    uint32_t launch_count, launch_max; /* |launch_max|: room */
    uint32_t query_count;              /* of all launches */
    struct hal_vulkan_entry *entries;  /* of all bindings of all launches */
    uint32_t entry_count, entry_max;
    uint8_t *constants; /* of all launches, stored after the table */
    size_t table_bytes, constants_bytes;
    size_t mirrors_at, mirrors_bytes; /* after the constants */
    pthread_mutex_t lock;             /* guards the pool and the lists */
    VkCommandPool pool;
    struct list idle, idle_profiled; /* replays, plain and for profiles */
};

static inline bool hal_vulkan_is_written(const struct hal_record *record, uint32_t binding)
{
    switch (record->kind) {
    case HAL_DISPATCH:
        return record->writes == 0 || record->writes >> binding & 1;
    case HAL_COPY:
        return binding == 1;
    case HAL_BARRIER:
        break;
    }
    return false;
}

/* ---- profile.c ------------------------------------------------------------------------------- */

/* Makes |replay| one for profiles. */
MUST_CHECK enum status hal_vulkan_profile_init(struct hal_vulkan_replay *replay, struct error *err);
void hal_vulkan_profile_fini(struct hal_vulkan_replay *replay); /* a plain replay is fine */

/* Record commands; for a plain replay, nothing. Before the launches of a stage, and around one. */
void hal_vulkan_profile_reset(const struct hal_vulkan_replay *replay,
                              const struct hal_vulkan_stage *stage, VkCommandBuffer commands);
void hal_vulkan_profile_begin(const struct hal_vulkan_replay *replay,
                              const struct hal_vulkan_launch *launch, VkCommandBuffer commands);
void hal_vulkan_profile_end(const struct hal_vulkan_replay *replay,
                            const struct hal_vulkan_launch *launch, VkCommandBuffer commands);

/* ---- placement.c ----------------------------------------------------------------------------- */

/* Decides record->placement of each dispatch. */
MUST_CHECK enum status hal_vulkan_place(const struct hal_vulkan_device *device,
                                        struct hal_command *command, struct error *err);

#endif
