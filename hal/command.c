/* SPDX-License-Identifier: MIT */
/*
 * Recording. All of a command buffer lives in one arena, and a record says the same about every
 * kind of command: what it binds, its constants and its cost. Drivers turn the list into their own
 * form at hal_command_end().
 */
#include "config.h"

#include "hal/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/device_priv.h"

#define COMMAND_BYTES_MAX ((size_t)256 << 20)
#define BYTES_PER_NS 8 /* moved by one core: the cost of copies */

struct hal_binding hal_binding_whole(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    return (struct hal_binding){.buffer = buffer, .length = hal_buffer_size(buffer)};
}

enum status hal_command_new(struct hal_device *device, uint32_t slot_count,
                            struct hal_command **out_command, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    must(slot_count <= HAL_SLOTS_MAX + 1);
    struct hal_command *command = calloc(1, sizeof(*command));
    if (!command) {
        return error_no_memory(err, "a command buffer");
    }
    arena_init(&command->arena, COMMAND_BYTES_MAX);
    command->slots = arena_array(&command->arena, slot_count, sizeof(*command->slots));
    if (!command->slots) {
        free(command);
        return error_no_memory(err, "the %u slots of a command buffer", slot_count);
    }
    command->magic = HAL_COMMAND_MAGIC;
    refs_init(&command->refs);
    command->slot_count = slot_count;
    command->device = device;
    atomic_fetch_add_explicit(&device->objects, 1, memory_order_relaxed);
    *out_command = command;
    return ST_OK;
}

void hal_command_set_transient(struct hal_command *command, uint32_t slot)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    must(slot < command->slot_count && !command->ended);
    command->slots[slot].is_transient = true;
}

struct hal_command *hal_command_ref(struct hal_command *command)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    refs_take(&command->refs);
    return command;
}

static void free_command(struct hal_command *command)
{
    struct hal_device *device = command->device;
    if (command->compiled && device->ops->command_free) {
        device->ops->command_free(command);
    }
    for (const struct hal_record *record = command->records; record; record = record->next) {
        for (uint32_t i = 0; i < record->binding_count; i++) {
            hal_buffer_unref(record->bindings[i].buffer);
        }
    }
    command->magic = 0;
    arena_fini(&command->arena);
    free(command);
    atomic_fetch_sub_explicit(&device->objects, 1, memory_order_release);
}

void hal_command_unref(struct hal_command *command)
{
    if (!command) {
        return;
    }
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    if (refs_drop(&command->refs)) {
        free_command(command);
    }
}

static void check_binding(struct hal_command *command, const struct hal_binding *binding,
                          bool written)
{
    must(binding->offset % command->device->props.offset_align == 0);
    if (binding->buffer) {
        OBJ_CHECK(binding->buffer, HAL_BUFFER_MAGIC);
        must(hal_buffer_is_usable(binding->buffer, command->device));
        must(in_range(binding->offset, binding->length, binding->buffer->size));
        must(!written || !binding->buffer->read_only);
        return;
    }
    must(binding->slot < command->slot_count);
    struct hal_slot_need *need = &command->slots[binding->slot];
    size_t end;
    must(add_size(binding->offset, binding->length, &end));
    need->length = end > need->length ? end : need->length;
    need->written |= written;
}

/* Appends a copy of |like|, with copies of its bindings and constants. */
static enum status append(struct hal_command *command, const struct hal_record *like,
                          struct error *err)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    must(!command->ended);
    struct arena *arena = &command->arena;
    struct hal_record *record = arena_alloc(arena, sizeof(*record));
    struct hal_binding *bindings = arena_array(arena, like->binding_count, sizeof(*bindings));
    void *constants = arena_alloc(arena, like->constants_bytes);
    if (!record || !bindings || !constants) {
        return arena_fail(arena, "a command buffer", err);
    }
    *record = *like;
    for (uint32_t i = 0; i < like->binding_count; i++) {
        bindings[i] = like->bindings[i];
        if (bindings[i].buffer) {
            hal_buffer_ref(bindings[i].buffer);
        }
    }
    if (like->constants_bytes) {
        memcpy(constants, like->constants, like->constants_bytes);
    }
    record->bindings = bindings;
    record->constants = like->constants_bytes ? constants : NULL;
    record->number = command->count;
    command->count += like->kind != HAL_BARRIER;
    *(command->last ? &command->last->next : &command->records) = record;
    command->last = record;
    command->cost += record->cost;
    return ST_OK;
}

uint64_t hal_command_cost(const struct hal_command *command)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    return command->cost;
}

enum status hal_command_dispatch(struct hal_command *command, const struct hal_dispatch *dispatch,
                                 struct error *err)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    const struct hal_device_props *props = &command->device->props;
    const struct hal_kernel *kernel = dispatch->kernel;
    must(dispatch->binding_count <= HAL_BINDINGS_MAX);
    must(dispatch->constants_bytes <= HAL_CONSTANTS_MAX);
    must((uint64_t)dispatch->writes >> dispatch->binding_count == 0);
    if (!command->device->ops->can_run(kernel)) {
        return error_set(err, ST_UNSUPPORTED, "kernel '%s' has no form for %s", kernel->name,
                         props->name);
    }
    if (dispatch->scratch_bytes > props->scratch_bytes_max) {
        return error_set(err, ST_TOO_LARGE, "kernel '%s' needs %zu bytes of scratch, %s has %zu",
                         kernel->name, dispatch->scratch_bytes, props->name,
                         props->scratch_bytes_max);
    }
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        check_binding(command, &dispatch->bindings[i], false);
    }
    const struct hal_record record = {
        .kind = HAL_DISPATCH,
        .binding_count = dispatch->binding_count,
        .bindings = dispatch->bindings,
        .constants = dispatch->constants,
        .constants_bytes = dispatch->constants_bytes,
        .cost = dispatch->cost,
        .macs = dispatch->macs,
        .macs_kind = dispatch->macs_kind,
        .bytes = dispatch->bytes,
        .kernel = kernel,
        .writes = dispatch->writes,
        .label = dispatch->label ? dispatch->label : kernel->name,
        .tag = dispatch->tag,
        .grid = {dispatch->grid[0], dispatch->grid[1], dispatch->grid[2]},
        .scratch_bytes = dispatch->scratch_bytes,
    };
    return append(command, &record, err);
}

enum status hal_command_copy(struct hal_command *command, struct hal_binding source,
                             struct hal_binding target, struct error *err)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    must(source.length == target.length);
    check_binding(command, &source, false);
    check_binding(command, &target, true);
    const struct hal_record record = {
        .kind = HAL_COPY,
        .binding_count = 2,
        .bindings = (const struct hal_binding[]){source, target},
        .cost = target.length / BYTES_PER_NS,
    };
    return append(command, &record, err);
}

/* A barrier that follows another barrier, or comes first, orders nothing and is left out. */
enum status hal_command_barrier(struct hal_command *command, struct error *err)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    const struct hal_record record = {.kind = HAL_BARRIER};
    must(!command->ended);
    if (!command->last || command->last->kind == HAL_BARRIER) {
        return ST_OK;
    }
    return append(command, &record, err);
}

enum status hal_command_end(struct hal_command *command, struct error *err)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    const struct hal_device_ops *ops = command->device->ops;
    must(!command->ended);
    if (ops->command_compile) {
        TRY(ops->command_compile(command, err));
    }
    command->ended = true;
    return ST_OK;
}

uint32_t hal_command_stats_dispatches(const struct hal_command_stats *stats)
{
    uint32_t sum = 0;
    for (uint32_t placement = 0; placement < HAL_PLACEMENTS; placement++) {
        sum += stats->dispatches[placement];
    }
    return sum;
}

void hal_command_add_stats(const struct hal_command *command, struct hal_command_stats *stats)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    stats->device_stages += command->stats.device_stages;
    stats->host_stages += command->stats.host_stages;
    stats->transfers += command->stats.transfers;
    for (const struct hal_record *r = command->records; r; r = r->next) {
        stats->barriers += r->kind == HAL_BARRIER;
        stats->copies += r->kind == HAL_COPY;
        stats->dispatches[r->placement] += r->kind == HAL_DISPATCH;
    }
}

void hal_command_list_hosted(const struct hal_command *command,
                             void (*fn)(void *arg, const char *label, enum hal_placement placement),
                             void *arg)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    for (const struct hal_record *r = command->records; r; r = r->next) {
        if (r->kind == HAL_DISPATCH && r->placement != HAL_PLACEMENT_DEVICE) {
            fn(arg, r->label, r->placement);
        }
    }
}

uint32_t hal_command_count(const struct hal_command *command)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    return command->count;
}

static const char *name_of(const struct hal_record *record)
{
    switch (record->kind) {
    case HAL_DISPATCH:
        return record->kernel->name;
    case HAL_COPY:
        return "copy";
    case HAL_BARRIER:
        break;
    }
    unreachable();
}

void hal_command_describe(const struct hal_command *command, struct hal_command_info *infos)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    must(command->ended && !command->whole);
    for (const struct hal_record *r = command->records; r; r = r->next) {
        if (r->kind == HAL_BARRIER) {
            continue;
        }
        struct hal_command_info *info = &infos[r->number];
        *info = (struct hal_command_info){.name = name_of(r),
                                          .label = r->label,
                                          .tag = r->tag,
                                          .macs = r->macs,
                                          .macs_kind = r->macs_kind,
                                          .bytes = r->bytes};
        for (uint32_t i = 0; !r->bytes && i < r->binding_count; i++) {
            info->bytes += r->bindings[i].length;
        }
    }
}

static void print_bindings(const struct hal_record *record, struct buf *out)
{
    for (uint32_t i = 0; i < record->binding_count; i++) {
        const struct hal_binding *binding = &record->bindings[i];
        if (binding->buffer) {
            buf_add_str(out, " buffer");
        } else {
            buf_printf(out, " slot%u", binding->slot);
        }
        buf_printf(out, "+%zu:%zu", binding->offset, binding->length);
    }
}

static void print_dispatch(const struct hal_record *record, struct buf *out)
{
    static const char *const placements[HAL_PLACEMENTS] = {
        [HAL_PLACEMENT_DEVICE] = "",
        [HAL_PLACEMENT_NO_FORM] = " on the host",
        [HAL_PLACEMENT_CHEAPER] = " on the host as well",
    };
    buf_printf(out, " %s%s grid %ux%ux%u", record->kernel->name, placements[record->placement],
               record->grid[0], record->grid[1], record->grid[2]);
    if (record->constants_bytes) {
        buf_printf(out, " constants %zu", record->constants_bytes);
    }
    if (record->scratch_bytes) {
        buf_printf(out, " scratch %zu", record->scratch_bytes);
    }
    if (record->binding_count) {
        buf_add_str(out, " bindings");
    }
}

void hal_command_print(const struct hal_command *command, hal_note_f *note, const void *arg,
                       struct buf *out)
{
    OBJ_CHECK(command, HAL_COMMAND_MAGIC);
    static const char *const words[] = {
        [HAL_DISPATCH] = "dispatch",
        [HAL_COPY] = "copy",
        [HAL_BARRIER] = "barrier",
    };
    for (const struct hal_record *record = command->records; record; record = record->next) {
        if (note && record->kind == HAL_DISPATCH) {
            note(arg, record->tag, out);
        }
        buf_add_str(out, words[record->kind]);
        if (record->kind == HAL_DISPATCH) {
            print_dispatch(record, out);
        }
        print_bindings(record, out);
        buf_add_char(out, '\n');
    }
}
