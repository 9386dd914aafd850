/* SPDX-License-Identifier: MIT */
/*
 * Times of the dispatches of GPU stages. A replay for profiles has two timestamp queries for each
 * dispatch. Both are written at the compute stage, so the first is written when the dispatches
 * before have ended, and the second when this one has ended.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/profile.h"
#include "hal/vulkan/inject.h"
#include "hal/vulkan/routine_priv.h"

/* ---- recording ------------------------------------------------------------------------------- */

static VkResult make_queries(struct hal_vulkan_device *device, uint32_t count, VkQueryPool *out)
{
    const VkQueryPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = count,
    };
    VkResult result = hal_vulkan_inject(HAL_VULKAN_QUERIES);
    return result == VK_SUCCESS ? device->vkCreateQueryPool(device->handle, &info, NULL, out)
                                : result;
}

enum status hal_vulkan_profile_init(struct hal_vulkan_replay *replay, struct error *err)
{
    const struct hal_vulkan_routine *routine = replay->routine;
    uint32_t count = routine->query_count ? routine->query_count : 1; /* a pool is not empty */
    replay->ticks = calloc(count, sizeof(*replay->ticks));
    if (!replay->ticks) {
        return error_no_memory(err, "timestamps");
    }
    VkResult result = make_queries(routine->device, count, &replay->queries);
    return result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, "creating timestamps");
}

void hal_vulkan_profile_fini(struct hal_vulkan_replay *replay)
{
    const struct hal_vulkan_device *device = replay->routine->device;
    if (replay->queries) {
        device->vkDestroyQueryPool(device->handle, replay->queries, NULL);
    }
    free(replay->ticks);
}

void hal_vulkan_profile_reset(const struct hal_vulkan_replay *replay,
                              const struct hal_vulkan_stage *stage, VkCommandBuffer commands)
{
    if (replay->queries && stage->query_count) {
        replay->routine->device->vkCmdResetQueryPool(commands, replay->queries, stage->query_first,
                                                     stage->query_count);
    }
}

static void write_time(const struct hal_vulkan_replay *replay, uint32_t query,
                       VkCommandBuffer commands)
{
    if (replay->queries) {
        replay->routine->device->vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                                     replay->queries, query);
    }
}

void hal_vulkan_profile_begin(const struct hal_vulkan_replay *replay,
                              const struct hal_vulkan_launch *launch, VkCommandBuffer commands)
{
    write_time(replay, launch->query, commands);
}

void hal_vulkan_profile_end(const struct hal_vulkan_replay *replay,
                            const struct hal_vulkan_launch *launch, VkCommandBuffer commands)
{
    write_time(replay, launch->query + 1, commands);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A clock of the device, and the time of the host at its last timestamp. */
struct clock {
    uint64_t mask;
    double tick_ns;
    uint64_t last_ticks, last_ns;
};

/* The host's time at |ticks|, which wrap. A timestamp after the last one counts as the last one. */
static uint64_t time_of(const struct clock *clock, uint64_t ticks)
{
    uint64_t ago = (clock->last_ticks - ticks) & clock->mask;
    double ago_ns = ago > clock->mask / 2 ? 0 : (double)ago * clock->tick_ns;
    return ago_ns < (double)clock->last_ns ? clock->last_ns - (uint64_t)ago_ns : 0;
}

static uint32_t tiles_of(const struct hal_vulkan_launch *launch)
{
    uint64_t plane = (uint64_t)launch->grid[0] * launch->grid[1], tiles;
    bool is_too_many = __builtin_mul_overflow(plane, launch->grid[2], &tiles);
    return is_too_many || tiles > UINT32_MAX ? UINT32_MAX : (uint32_t)tiles;
}

static void add_span(const struct clock *clock, const uint64_t ticks[2],
                     const struct hal_command *command, const struct hal_vulkan_launch *launch,
                     struct hal_profile *profile)
{
    uint64_t begin_ns = time_of(clock, ticks[0]), end_ns = time_of(clock, ticks[1]);
    hal_profile_add(profile, &(struct hal_span){
                                 .command = command,
                                 .number = launch->number,
                                 .thread = HAL_THREAD_DEVICE,
                                 .tiles = tiles_of(launch),
                                 .begin_ns = begin_ns < end_ns ? begin_ns : end_ns,
                                 .end_ns = end_ns,
                             });
}

static VkResult read_ticks(const struct hal_vulkan_replay *replay,
                           const struct hal_vulkan_stage *stage)
{
    const struct hal_vulkan_device *device = replay->routine->device;
    return device->vkGetQueryPoolResults(
        device->handle, replay->queries, stage->query_first, stage->query_count,
        stage->query_count * sizeof(*replay->ticks), replay->ticks, sizeof(*replay->ticks),
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

enum status hal_vulkan_profile_read(const struct hal_vulkan_replay *replay,
                                    const struct hal_command *command, uint32_t index,
                                    struct hal_profile *profile, struct error *err)
{
    const struct hal_vulkan_routine *routine = replay->routine;
    const struct hal_vulkan_stage *stage = &routine->stages[index];
    must(index < routine->stage_count && !stage->host && replay->queries);
    if (stage->query_count == 0) {
        return ST_OK;
    }
    struct clock clock = {routine->device->tick_mask, routine->device->tick_ns,
                          .last_ns = hal_profile_now()};
    VkResult result = read_ticks(replay, stage);
    if (result != VK_SUCCESS) {
        return hal_vulkan_error(err, result, "reading timestamps");
    }
    clock.last_ticks = replay->ticks[stage->query_count - 1];
    for (uint32_t i = 0; i < stage->launch_count; i++) {
        const struct hal_vulkan_launch *launch = &routine->launches[stage->launch_first + i];
        if (launch->pipeline && launch->number != HAL_VULKAN_TRANSFER) {
            must(in_range(launch->query - stage->query_first, 2, stage->query_count));
            add_span(&clock, &replay->ticks[launch->query - stage->query_first], command, launch,
                     profile);
        }
    }
    return ST_OK;
}
