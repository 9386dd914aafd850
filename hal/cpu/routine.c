/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/routine.h"

#include <string.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/device_priv.h"
#include "hal/profile.h"

/*
 * A system call wakes a parked worker, which begins some 40 us later: the work from a region to the
 * end should take longer than that. A spinning worker begins after 0.5 us: its share of a region
 * should outweigh that and the cache lines that move to it. A batch should outweigh the contended
 * cache line of the cursor.
 */
#define WAKE_COST_NS 60000
#define SHARE_COST_NS 4000
#define BATCH_COST_NS 2000
#define BATCH_COST_NS_FAIR 8000 /* a worker's fair part of a region has at most this cost */
#define BATCH_COST_NS_MAX 100000
#define BATCHES_PER_WORKER 4

struct builder {
    struct arena *arena;
    uint32_t workers;
    struct hal_cpu_region *region;     /* being built */
    struct hal_cpu_dispatch *dispatch; /* the next one */
    uint64_t cost;                     /* of the region */
};

static uint32_t min_u32(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Tiles of a grid; beyond the limit of a region the exact number no longer matters. */
static uint64_t grid_tiles(const uint32_t grid[3])
{
    uint64_t plane = (uint64_t)grid[0] * grid[1];
    if (plane > HAL_CPU_TILES_MAX && grid[2]) {
        return plane;
    }
    return plane * grid[2];
}

/*
 * How many tiles a worker takes at once. With helpers, a batch is large enough to outweigh the
 * atomic addition, and each worker gets its part in several steps. More tiles at once would only
 * make parts uneven: of nine batches one of two workers runs five. Alone, a worker may take all. A
 * batch costs at most BATCH_COST_NS_MAX, because a worker looks for waiting work only between
 * batches.
 */
static uint32_t batch_of(const struct builder *b, const struct hal_cpu_region *region)
{
    uint64_t tile_cost = b->cost / region->tiles + 1;
    uint64_t batch = region->tiles;
    if (region->helpers) {
        uint64_t fair = region->tiles / ((uint64_t)b->workers * BATCHES_PER_WORKER);
        uint64_t cheap = BATCH_COST_NS_FAIR / tile_cost;
        uint64_t worthwhile =
            min_u32(BATCH_COST_NS / tile_cost, region->tiles / (region->helpers + 1));
        fair = fair < cheap ? fair : cheap;
        batch = fair > worthwhile ? fair : worthwhile;
    }
    if (batch > BATCH_COST_NS_MAX / tile_cost) {
        batch = BATCH_COST_NS_MAX / tile_cost;
    }
    uint32_t least = region->tiles / HAL_CPU_BATCHES_MAX + 1;
    return batch > least ? min_u32(batch, HAL_CPU_BATCH_MAX) : least;
}

/* Ends the region, if anything is in it. */
static void end_region(struct builder *b, struct hal_cpu_routine *routine)
{
    struct hal_cpu_region *region = b->region;
    if (region->tiles == 0) {
        return;
    }
    uint64_t shares = b->cost / SHARE_COST_NS;
    region->helpers = min_u32(shares ? shares - 1 : 0, region->tiles - 1);
    region->helpers = min_u32(region->helpers, b->workers - 1);
    region->batch = batch_of(b, region);
    region->batches = (region->tiles - 1) / region->batch + 1;
    region->cost = b->cost;
    must(region->batch > 0 && region->batches <= HAL_CPU_BATCHES_MAX);
    routine->region_count++;
    b->cost = 0;
    *++b->region = (struct hal_cpu_region){.dispatches = b->dispatch};
}

/* Sets how many workers to wake, by the work from a region to the end. |end|: behind the last one.
 */
static void settle_waking(struct hal_cpu_region *end, struct hal_cpu_routine *routine)
{
    uint64_t cost = 0;
    routine->is_for_one = true;
    for (uint32_t i = 1; i <= routine->region_count; i++) {
        struct hal_cpu_region *region = end - i;
        cost += region->helpers ? region->cost : 0;
        region->wake = min_u32(cost / WAKE_COST_NS, region->helpers);
        routine->is_for_one &= region->wake == 0;
    }
}

static enum status bind(struct builder *b, const struct hal_record *record, struct error *err)
{
    size_t count = record->binding_count;
    must(count <= HAL_BINDINGS_MAX);
    struct hal_cpu_binding *bindings = arena_array(b->arena, count, sizeof(*bindings));
    size_t *lengths = arena_array(b->arena, count, sizeof(*lengths));
    if (!bindings || !lengths) {
        return error_set(err, ST_EXHAUSTED, "no memory to compile a command buffer");
    }
    for (size_t i = 0; i < count; i++) {
        const struct hal_binding *from = &record->bindings[i];
        lengths[i] = from->length;
        bindings[i] = (struct hal_cpu_binding){.slot = from->slot, .offset = from->offset};
        if (from->buffer && from->length) {
            bindings[i].host = (uint8_t *)from->buffer->host + from->offset;
        }
    }
    b->dispatch->bindings = bindings;
    b->dispatch->lengths = lengths;
    b->dispatch->binding_count = record->binding_count;
    return ST_OK;
}

static enum status add_dispatch(struct builder *b, const struct hal_record *record,
                                struct hal_cpu_routine *routine, struct error *err)
{
    struct hal_cpu_dispatch *dispatch = b->dispatch;
    if (record->kind == HAL_DISPATCH) {
        dispatch->fn = record->kernel->cpu;
        dispatch->keeps_rows = record->kernel->keeps_rows && b->workers > 1;
        memcpy(dispatch->grid, record->grid, sizeof(dispatch->grid));
        must(dispatch->fn); /* the device's can_run() has checked it */
    } else {
        dispatch->fn = hal_cpu_copy;
        hal_cpu_copy_grid(record, dispatch->grid);
    }
    uint64_t tiles = grid_tiles(dispatch->grid);
    if (tiles == 0) {
        return ST_OK;
    }
    if (tiles > HAL_CPU_TILES_MAX - b->region->tiles) {
        return error_set(err, ST_TOO_LARGE, "a region has more than %u tiles",
                         (unsigned)HAL_CPU_TILES_MAX);
    }
    TRY(bind(b, record, err));
    dispatch->label = record->label;
    dispatch->number = record->number;
    dispatch->constants = record->constants;
    dispatch->scratch_bytes = record->scratch_bytes;
    dispatch->tile_first = b->region->tiles;
    dispatch->tiles = (uint32_t)tiles;
    routine->needs_scratch |= record->scratch_bytes != 0;
    b->region->tiles += dispatch->tiles;
    b->region->dispatch_count++;
    b->cost += record->cost;
    b->dispatch++;
    return ST_OK;
}

static void find_workspace(const struct hal_command *command, struct hal_cpu_routine *routine)
{
    for (uint32_t i = 0; i < command->slot_count; i++) {
        if (command->slots[i].is_transient && command->slots[i].length > routine->workspace_bytes) {
            routine->workspace_slot = i;
            routine->workspace_bytes = command->slots[i].length;
        }
    }
}

enum status hal_cpu_routine_new(struct hal_command *command, uint32_t workers,
                                const struct hal_cpu_routine **out_routine, struct error *err)
{
    must(workers > 0);
    struct arena *arena = &command->arena;
    size_t dispatches = 1, regions = 2; /* the builder stands one behind the last of each */
    for (const struct hal_record *r = command->records; r; r = r->next) {
        *(r->kind == HAL_BARRIER ? &regions : &dispatches) += 1;
    }
    if (regions > HAL_CPU_REGIONS_MAX) {
        return error_set(err, ST_TOO_LARGE, "%zu barriers", regions - 2);
    }
    struct hal_cpu_routine *routine = arena_alloc(arena, sizeof(*routine));
    struct builder b = {
        .arena = arena,
        .workers = workers,
        .region = arena_array(arena, regions, sizeof(*b.region)),
        .dispatch = arena_array(arena, dispatches, sizeof(*b.dispatch)),
    };
    if (!routine || !b.region || !b.dispatch) {
        return error_set(err, ST_EXHAUSTED, "no memory to compile a command buffer");
    }
    routine->magic = HAL_CPU_ROUTINE_MAGIC;
    routine->regions = b.region;
    b.region->dispatches = b.dispatch;
    for (const struct hal_record *r = command->records; r; r = r->next) {
        if (r->kind == HAL_BARRIER) {
            end_region(&b, routine);
        } else {
            TRY(add_dispatch(&b, r, routine, err));
        }
    }
    end_region(&b, routine);
    settle_waking(b.region, routine);
    find_workspace(command, routine);
    *out_routine = routine;
    return ST_OK;
}

/* The dispatch that tile |number| belongs to. */
static const struct hal_cpu_dispatch *find_dispatch(const struct hal_cpu_region *region,
                                                    uint32_t number)
{
    uint32_t low = 0, high = region->dispatch_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (region->dispatches[middle].tile_first <= number) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &region->dispatches[low];
}

static void resolve(const struct hal_cpu_dispatch *dispatch, uint8_t *const *slots,
                    void *out_addresses[HAL_BINDINGS_MAX])
{
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const struct hal_cpu_binding *binding = &dispatch->bindings[i];
        if (binding->host) {
            out_addresses[i] = binding->host;
        } else if (dispatch->lengths[i]) {
            out_addresses[i] = slots[binding->slot] + binding->offset;
        } else {
            out_addresses[i] = NULL;
        }
    }
}

static struct hal_tile tile_of(const struct hal_cpu_dispatch *dispatch, uint32_t number)
{
    const uint32_t *grid = dispatch->grid;
    if (dispatch->keeps_rows) {
        uint32_t rows = number / grid[2];
        return (struct hal_tile){rows % grid[0], rows / grid[0], number % grid[2]};
    }
    uint32_t rows = number / grid[0];
    return (struct hal_tile){number % grid[0], rows % grid[1], rows / grid[1]};
}

static enum status run_dispatch(const struct hal_cpu_dispatch *dispatch, uint32_t first,
                                uint32_t count, const struct hal_args *args,
                                const atomic_bool *cancel)
{
    for (uint32_t i = 0; i < count; i++) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed)) {
            return ST_CANCELLED;
        }
        dispatch->fn(args, tile_of(dispatch, first + i));
        if (hal_fault_code_of(args->fault) != HAL_FAULT_NONE) {
            return ST_INVALID;
        }
    }
    return ST_OK;
}

static void note_span(const struct hal_cpu_run *run, const struct hal_cpu_dispatch *dispatch,
                      uint32_t tiles, uint64_t begin_ns)
{
    const struct hal_command *command = run->command->whole ? run->command->whole : run->command;
    hal_profile_add(run->profile, &(struct hal_span){
                                      .command = command,
                                      .number = dispatch->number,
                                      .thread = run->thread,
                                      .tiles = tiles,
                                      .begin_ns = begin_ns,
                                      .end_ns = hal_profile_now(),
                                  });
}

enum status hal_cpu_run_tiles(const struct hal_cpu_region *region, uint32_t first, uint32_t count,
                              const struct hal_cpu_run *run)
{
    must(in_range(first, count, region->tiles));
    const struct hal_cpu_dispatch *dispatch = find_dispatch(region, first);
    void *addresses[HAL_BINDINGS_MAX];
    for (; count; dispatch++) {
        uint32_t begin = first - dispatch->tile_first;
        uint32_t tiles = min_u32(count, dispatch->tiles - begin);
        const struct hal_args args = {
            .bindings = addresses,
            .lengths = dispatch->lengths,
            .binding_count = dispatch->binding_count,
            .constants = dispatch->constants,
            .grid = {dispatch->grid[0], dispatch->grid[1], dispatch->grid[2]},
            .scratch = run->scratch,
            .label = dispatch->label,
            .fault = run->fault,
        };
        resolve(dispatch, run->slots, addresses);
        asan_unpoison(run->scratch, dispatch->scratch_bytes);
        uint64_t begin_ns = run->profile ? hal_profile_now() : 0;
        enum status status = run_dispatch(dispatch, begin, tiles, &args, run->cancel);
        if (run->profile) {
            note_span(run, dispatch, tiles, begin_ns);
        }
        asan_poison(run->scratch, dispatch->scratch_bytes);
        TRY(status);
        first += tiles;
        count -= tiles;
    }
    return ST_OK;
}
