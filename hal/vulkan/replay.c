/* SPDX-License-Identifier: MIT */
/* A routine for one submission at a time: recorded commands and a table of bindings. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/vulkan/routine_priv.h"

/* ---- recording ------------------------------------------------------------------------------- */

static void barrier(const struct hal_vulkan_device *device, VkCommandBuffer commands,
                    VkPipelineStageFlags to, VkAccessFlags access)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = access,
    };
    device->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 1, &memory,
                                 0, NULL, 0, NULL);
}

static uint32_t part(uint32_t total, uint32_t base, uint32_t max)
{
    return total - base < max ? total - base : max;
}

/* Splits the grid into as many dispatches as the device's limits require. */
static void record_dispatch(const struct hal_vulkan_device *device, VkCommandBuffer commands,
                            const struct hal_vulkan_launch *launch, struct hal_vulkan_push push)
{
    const uint32_t *max = device->grid_max, *grid = launch->grid;
    uint32_t *at = push.base;
    memcpy(push.grid, grid, sizeof(push.grid));
    for (at[2] = 0; at[2] < grid[2]; at[2] += part(grid[2], at[2], max[2])) {
        for (at[1] = 0; at[1] < grid[1]; at[1] += part(grid[1], at[1], max[1])) {
            for (at[0] = 0; at[0] < grid[0]; at[0] += part(grid[0], at[0], max[0])) {
                device->vkCmdPushConstants(commands, device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                           sizeof(push), &push);
                device->vkCmdDispatch(commands, part(grid[0], at[0], max[0]),
                                      part(grid[1], at[1], max[1]), part(grid[2], at[2], max[2]));
            }
        }
    }
}

/* Between two dispatches. */
static void record_order(const struct hal_vulkan_device *device, VkCommandBuffer commands)
{
    barrier(device, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static void record_launches(const struct hal_vulkan_replay *replay,
                            const struct hal_vulkan_stage *stage, VkCommandBuffer commands)
{
    const struct hal_vulkan_routine *routine = replay->routine;
    const struct hal_vulkan_device *device = routine->device;
    uint64_t address = hal_vulkan_address(replay->memory, 0);
    bool is_written = false; /* by a dispatch since the last barrier */
    must(in_range(stage->launch_first, stage->launch_count, routine->launch_count));
    hal_vulkan_profile_reset(replay, stage, commands);
    for (uint32_t i = 0; i < stage->launch_count; i++) {
        const struct hal_vulkan_launch *launch = &routine->launches[stage->launch_first + i];
        if (launch->pipeline) {
            const struct hal_vulkan_push push = {
                .bindings = address + launch->binding_first * sizeof(struct hal_vulkan_binding),
                .constants = address + launch->constants,
            };
            if (is_written && replay->queries) {
                record_order(device, commands);
            }
            device->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, launch->pipeline);
            hal_vulkan_profile_begin(replay, launch, commands);
            record_dispatch(device, commands, launch, push);
            hal_vulkan_profile_end(replay, launch, commands);
            is_written = true;
        } else if (is_written) {
            record_order(device, commands);
            is_written = false;
        }
    }
    barrier(device, commands, VK_PIPELINE_STAGE_HOST_BIT,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
}

/* ---- replays --------------------------------------------------------------------------------- */

/* Writes the constants, and all of the table except the slots. */
static void fill_memory(const struct hal_vulkan_routine *routine, struct hal_buffer *memory)
{
    uint8_t *host = hal_buffer_map(memory);
    uint64_t address = hal_vulkan_address(memory, 0);
    must(routine->entry_count * sizeof(struct hal_vulkan_binding) <= routine->table_bytes);
    must(in_range(routine->table_bytes, routine->constants_bytes, routine->mirrors_at));
    for (uint32_t i = 0; i < routine->entry_count; i++) {
        const struct hal_vulkan_entry *entry = &routine->entries[i];
        struct hal_vulkan_binding binding = {.length = entry->length};
        if (entry->source != HAL_VULKAN_FROM_SLOT) {
            binding.address =
                entry->address + (entry->source == HAL_VULKAN_FROM_REPLAY ? address : 0);
        }
        memcpy(host + i * sizeof(binding), &binding, sizeof(binding));
    }
    if (routine->constants_bytes) {
        memcpy(host + routine->table_bytes, routine->constants, routine->constants_bytes);
    }
}

static VkResult record(const struct hal_vulkan_replay *replay, const struct hal_vulkan_stage *stage,
                       VkCommandBuffer *out_commands)
{
    const struct hal_vulkan_device *device = replay->routine->device;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = replay->routine->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
    };
    VkResult result = device->vkAllocateCommandBuffers(device->handle, &info, out_commands);
    if (result == VK_SUCCESS) {
        result = device->vkBeginCommandBuffer(*out_commands, &begin);
    }
    if (result != VK_SUCCESS) {
        return result; /* freeing the pool frees the buffer */
    }
    record_launches(replay, stage, *out_commands);
    return device->vkEndCommandBuffer(*out_commands);
}

static VkResult record_all(struct hal_vulkan_replay *replay)
{
    const struct hal_vulkan_routine *routine = replay->routine;
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; result == VK_SUCCESS && i < routine->stage_count; i++) {
        if (!routine->stages[i].host) {
            result = record(replay, &routine->stages[i], &replay->commands[i]);
        }
    }
    return result;
}

/* Everything that can fail; hal_vulkan_replay_free() frees what it has made. */
static enum status init_replay(struct hal_vulkan_replay *replay, bool is_profiled,
                               struct error *err)
{
    struct hal_vulkan_routine *routine = replay->routine;
    TRY(hal_buffer_new(&routine->device->base, routine->mirrors_at + routine->mirrors_bytes,
                       &replay->memory, err));
    replay->mirrors = (struct hal_binding){
        .buffer = replay->memory, .offset = routine->mirrors_at, .length = routine->mirrors_bytes};
    fill_memory(routine, replay->memory);
    TRY(is_profiled ? hal_vulkan_profile_init(replay, err) : ST_OK);
    VkResult result = record_all(replay);
    return result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, "recording commands");
}

static enum status make_replay(struct hal_vulkan_routine *routine, bool is_profiled,
                               struct hal_vulkan_replay **out_replay, struct error *err)
{
    struct hal_vulkan_replay *replay =
        calloc(1, sizeof(*replay) + routine->stage_count * sizeof(replay->commands[0]));
    if (!replay) {
        return error_no_memory(err, "a replay");
    }
    replay->routine = routine;
    list_init(&replay->link);
    enum status status = init_replay(replay, is_profiled, err);
    if (status != ST_OK) {
        hal_vulkan_replay_free(replay);
        return status;
    }
    *out_replay = replay;
    return ST_OK;
}

void hal_vulkan_replay_free(struct hal_vulkan_replay *replay)
{
    hal_vulkan_profile_fini(replay);
    hal_buffer_unref(replay->memory);
    free(replay); /* its commands are freed with the pool */
}

static void set_slots(const struct hal_vulkan_replay *replay, const uint64_t *addresses)
{
    const struct hal_vulkan_routine *routine = replay->routine;
    uint8_t *host = hal_buffer_map(replay->memory);
    for (uint32_t i = 0; i < routine->entry_count; i++) {
        const struct hal_vulkan_entry *entry = &routine->entries[i];
        if (entry->source == HAL_VULKAN_FROM_SLOT) {
            uint64_t address = addresses[entry->slot] + entry->address;
            memcpy(host + i * sizeof(struct hal_vulkan_binding), &address, sizeof(address));
        }
    }
}

enum status hal_vulkan_routine_take(struct hal_command *command, const uint64_t *addresses,
                                    bool is_profiled, struct hal_vulkan_replay **out_replay,
                                    struct error *err)
{
    struct hal_vulkan_routine *routine;
    OBJ_CAST(routine, command->compiled, HAL_VULKAN_ROUTINE_MAGIC);
    struct list *idle = is_profiled ? &routine->idle_profiled : &routine->idle;
    enum status status = ST_OK;
    pthread_mutex_lock(&routine->lock);
    if (list_is_empty(idle)) {
        status = make_replay(routine, is_profiled, out_replay, err);
    } else {
        *out_replay = LIST_ENTRY(idle->next, struct hal_vulkan_replay, link);
        list_remove(&(*out_replay)->link);
    }
    pthread_mutex_unlock(&routine->lock);
    if (status == ST_OK) {
        set_slots(*out_replay, addresses);
    }
    return status;
}

void hal_vulkan_routine_put(struct hal_vulkan_replay *replay)
{
    struct hal_vulkan_routine *routine = replay->routine;
    OBJ_CHECK(routine, HAL_VULKAN_ROUTINE_MAGIC);
    pthread_mutex_lock(&routine->lock);
    must(list_is_empty(&replay->link)); /* it is not idle already */
    list_push_front(replay->queries ? &routine->idle_profiled : &routine->idle, &replay->link);
    pthread_mutex_unlock(&routine->lock);
}
