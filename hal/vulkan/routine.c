/* SPDX-License-Identifier: MIT */
/*
 * First the records are distributed to stages, in order; then each stage is built. Host stages may
 * use transient slots whose memory the host cannot access. Such slots get a mirror in shared
 * memory. The preceding GPU stage copies what has been written so far into the mirror, and the
 * following GPU stage copies the host's results back.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "hal/vulkan/routine_priv.h"

/*
 * Bytes of the target for each workgroup of a copy. Processors run workgroups one after the other
 * and want large tiles. On a GPU a tile is a few steps of all lanes, unless that would be more
 * workgroups than can run side by side.
 */
#define TRANSFER_TILE 65536
#define TRANSFER_TILE_GPU 4096
#define TRANSFER_TILES_GPU 16384

/* A record of a stage; a NULL record is a barrier. */
struct item {
    const struct hal_record *record;
};

/* A stage under construction. */
struct draft {
    bool is_host;
    uint32_t item_first, item_count;
    struct hal_vulkan_mirror *mirrors;
    uint32_t mirror_count;
};

/* A range of a transient slot that has been written so far. */
struct trace {
    uint16_t slot;
    size_t begin, end;
};

struct compiler {
    struct hal_vulkan_routine *routine;
    struct hal_command *command;
    struct draft *drafts;
    struct item *items;
    uint32_t item_count, item_max; /* |..._max|: room */
    struct trace *traces;
    uint32_t trace_count, trace_max;
    uint32_t draft_max;
    bool has_mirrors; /* there are host stages, and memory that they cannot access */
};

/* ---- distribution to stages ------------------------------------------------------------------ */

enum side { EITHER, GPU, HOST };

static enum side side_of(const struct hal_record *record)
{
    if (record->kind != HAL_DISPATCH) {
        return EITHER;
    }
    return record->placement == HAL_PLACEMENT_DEVICE ? GPU : HOST;
}

static struct draft *last_draft(struct compiler *c)
{
    return c->routine->stage_count ? &c->drafts[c->routine->stage_count - 1] : NULL;
}

static enum side side_of_draft(const struct draft *draft)
{
    return !draft ? EITHER : draft->is_host ? HOST : GPU;
}

static bool has_tiles(const struct hal_record *record)
{
    return record->kind == HAL_DISPATCH ? record->grid[0] && record->grid[1] && record->grid[2]
                                        : record->bindings[0].length > 0;
}

static void add_item(struct compiler *c, const struct hal_record *record)
{
    must(c->item_count < c->item_max);
    c->items[c->item_count++].record = record;
    last_draft(c)->item_count++;
}

/* Adds the records of |side| from |first| to the next barrier or the end; with |with_either| also
 * records that both sides can run. */
static void distribute_region(struct compiler *c, const struct hal_record *first, enum side side,
                              bool with_either)
{
    for (const struct hal_record *r = first; r && r->kind != HAL_BARRIER; r = r->next) {
        bool is_chosen = side_of(r) == side || (with_either && side_of(r) == EITHER);
        if (!is_chosen || !has_tiles(r)) {
            continue;
        }
        if (side_of_draft(last_draft(c)) != side) {
            must(c->routine->stage_count < c->draft_max);
            c->drafts[c->routine->stage_count++] =
                (struct draft){.is_host = side == HOST, .item_first = c->item_count};
        }
        add_item(c, r);
    }
}

/* Within a region, the records for the side of the preceding stage come first. */
static void distribute(struct compiler *c)
{
    for (const struct hal_record *r = c->command->records; r; r = r->next) {
        enum side first = side_of_draft(last_draft(c)) == HOST ? HOST : GPU;
        distribute_region(c, r, first, true);
        distribute_region(c, r, first == GPU ? HOST : GPU, false);
        while (r->next && r->kind != HAL_BARRIER) {
            r = r->next;
        }
        if (r->kind == HAL_BARRIER && last_draft(c)) {
            add_item(c, NULL);
        }
    }
}

/* ---- mirrors --------------------------------------------------------------------------------- */

static bool is_mirrored(const struct compiler *c, const struct hal_binding *binding)
{
    return c->has_mirrors && !binding->buffer && binding->length > 0 &&
           c->command->slots[binding->slot].is_transient;
}

static int by_begin(const void *a, const void *b)
{
    const struct hal_vulkan_mirror *x = a, *y = b;
    if (x->slot != y->slot) {
        return x->slot < y->slot ? -1 : 1;
    }
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Merges ranges that overlap. */
static void join_mirrors(struct draft *draft)
{
    struct hal_vulkan_mirror *m = draft->mirrors;
    uint32_t count = 0;
    if (draft->mirror_count) {
        qsort(m, draft->mirror_count, sizeof(*m), by_begin);
    }
    for (uint32_t i = 0; i < draft->mirror_count; i++) {
        struct hal_vulkan_mirror *last = count ? &m[count - 1] : NULL;
        if (last && last->slot == m[i].slot && m[i].begin < last->end) {
            last->end = m[i].end > last->end ? m[i].end : last->end;
            last->is_written |= m[i].is_written;
        } else {
            m[count++] = m[i];
        }
    }
    draft->mirror_count = count;
}

static bool is_traced(const struct compiler *c, const struct hal_vulkan_mirror *mirror)
{
    for (uint32_t i = 0; i < c->trace_count; i++) {
        const struct trace *trace = &c->traces[i];
        if (trace->slot == mirror->slot && trace->begin < mirror->end &&
            mirror->begin < trace->end) {
            return true;
        }
    }
    return false;
}

/* Stages run one after the other, so all use the same memory for mirrors. */
static void place_mirrors(struct compiler *c, struct draft *draft)
{
    size_t end = 0;
    for (uint32_t i = 0; i < draft->mirror_count; i++) {
        struct hal_vulkan_mirror *mirror = &draft->mirrors[i];
        mirror->at = end + mirror->begin % HAL_VULKAN_BUFFER_ALIGN;
        mirror->is_fetched = is_traced(c, mirror);
        end = align_up(mirror->at + mirror->end - mirror->begin, HAL_VULKAN_BUFFER_ALIGN);
    }
    if (end > c->routine->mirrors_bytes) {
        c->routine->mirrors_bytes = end;
    }
}

static void add_traces(struct compiler *c, const struct hal_record *record)
{
    for (uint32_t i = 0; i < record->binding_count; i++) {
        const struct hal_binding *binding = &record->bindings[i];
        if (is_mirrored(c, binding) && hal_vulkan_is_written(record, i)) {
            must(c->trace_count < c->trace_max);
            c->traces[c->trace_count++] =
                (struct trace){binding->slot, binding->offset, binding->offset + binding->length};
        }
    }
}

static const struct hal_record *record_at(const struct compiler *c, const struct draft *draft,
                                          uint32_t index)
{
    return c->items[draft->item_first + index].record;
}

static enum status find_mirrors(struct compiler *c, struct draft *draft, struct error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < draft->item_count; i++) {
        const struct hal_record *record = record_at(c, draft, i);
        count += record ? record->binding_count : 0;
    }
    draft->mirrors = arena_array(&c->command->arena, count, sizeof(*draft->mirrors));
    if (!draft->mirrors) {
        return error_no_memory(err, "a command buffer");
    }
    for (uint32_t i = 0; i < draft->item_count; i++) {
        const struct hal_record *record = record_at(c, draft, i);
        for (uint32_t b = 0; record && b < record->binding_count; b++) {
            const struct hal_binding *binding = &record->bindings[b];
            if (is_mirrored(c, binding)) {
                draft->mirrors[draft->mirror_count++] = (struct hal_vulkan_mirror){
                    .slot = binding->slot,
                    .begin = binding->offset,
                    .end = binding->offset + binding->length,
                    .is_written = hal_vulkan_is_written(record, b),
                };
            }
        }
    }
    join_mirrors(draft);
    place_mirrors(c, draft);
    return ST_OK;
}

/* In execution order, because this needs to know what has been written before each stage. */
static enum status find_all_mirrors(struct compiler *c, struct error *err)
{
    for (uint32_t s = 0; s < c->routine->stage_count; s++) {
        struct draft *draft = &c->drafts[s];
        if (draft->is_host) {
            TRY(find_mirrors(c, draft, err));
        }
        for (uint32_t i = 0; i < draft->item_count; i++) {
            const struct hal_record *record = record_at(c, draft, i);
            if (record) {
                add_traces(c, record);
            }
        }
    }
    return ST_OK;
}

/* |binding| as a host stage sees it. find_mirrors() has made a mirror for each range that needs
 * one.
 */
static struct hal_binding mirrored(const struct compiler *c, const struct draft *draft,
                                   const struct hal_binding *binding)
{
    struct hal_binding seen = *binding;
    for (uint32_t i = 0; is_mirrored(c, binding) && i < draft->mirror_count; i++) {
        const struct hal_vulkan_mirror *mirror = &draft->mirrors[i];
        if (mirror->slot == binding->slot && mirror->begin <= binding->offset &&
            binding->offset < mirror->end) {
            must(binding->offset + binding->length <= mirror->end);
            seen.slot = (uint16_t)c->command->slot_count;
            seen.offset = mirror->at + binding->offset - mirror->begin;
        }
    }
    must(!is_mirrored(c, binding) || seen.slot == c->command->slot_count);
    return seen;
}

/* ---- stages of the GPU ----------------------------------------------------------------------- */

/* A zeroed launch is a barrier. */
static struct hal_vulkan_launch *new_launch(struct hal_vulkan_routine *routine)
{
    must(routine->launch_count < routine->launch_max);
    return &routine->launches[routine->launch_count++];
}

static struct hal_vulkan_entry *new_entry(struct hal_vulkan_routine *routine)
{
    must(routine->entry_count < routine->entry_max);
    return &routine->entries[routine->entry_count++];
}

static enum status add_entry(struct hal_vulkan_routine *routine, const struct hal_binding *binding,
                             struct error *err)
{
    struct hal_vulkan_entry *entry = new_entry(routine);
    *entry = (struct hal_vulkan_entry){
        .source = HAL_VULKAN_FROM_BUFFER, .slot = binding->slot, .length = binding->length};
    if (binding->length > 0 && binding->buffer) {
        return hal_vulkan_locate(routine->device, binding, &entry->address, err);
    }
    if (binding->length > 0) {
        entry->source = HAL_VULKAN_FROM_SLOT;
        entry->address = binding->offset;
    }
    return ST_OK;
}

static void set_transfer_grid(const struct hal_vulkan_device *device,
                              struct hal_vulkan_launch *launch, size_t length)
{
    bool is_gpu = device->base.props.capabilities & HAL_GPU;
    size_t tile = is_gpu ? TRANSFER_TILE_GPU : TRANSFER_TILE;
    size_t tiles = length / tile + (length % tile != 0);
    tiles = is_gpu && tiles > TRANSFER_TILES_GPU ? TRANSFER_TILES_GPU : tiles;
    launch->grid[0] = (uint32_t)tiles;
    launch->grid[1] = launch->grid[2] = 1;
}

static void add_barrier(struct hal_vulkan_routine *routine)
{
    (void)new_launch(routine);
}

/* A launch of |kernel|; the caller adds its entries. |number|: see struct hal_vulkan_launch. */
static enum status new_dispatch(struct hal_vulkan_routine *routine, const struct hal_kernel *kernel,
                                uint32_t number, struct hal_vulkan_launch **out_launch,
                                struct error *err)
{
    struct hal_vulkan_launch *launch = *out_launch = new_launch(routine);
    TRY(hal_vulkan_pipeline(routine->device, kernel, &launch->pipeline, err));
    launch->binding_first = routine->entry_count;
    launch->number = number;
    launch->query = routine->query_count;
    routine->query_count += 2;
    return ST_OK;
}

static enum status add_launch(struct hal_vulkan_routine *routine, const struct hal_record *record,
                              struct error *err)
{
    struct hal_vulkan_launch *launch;
    const struct hal_kernel *kernel =
        record->kind == HAL_DISPATCH ? record->kernel : &hal_vulkan_copy;
    TRY(new_dispatch(routine, kernel, record->number, &launch, err));
    launch->constants = routine->table_bytes + routine->constants_bytes;
    must(in_range(launch->constants, record->constants_bytes, routine->mirrors_at));
    if (record->constants_bytes) {
        memcpy(routine->constants + routine->constants_bytes, record->constants,
               record->constants_bytes);
    }
    routine->constants_bytes += align_up(record->constants_bytes, 16);
    for (uint32_t i = 0; i < record->binding_count; i++) {
        TRY(add_entry(routine, &record->bindings[i], err));
    }
    if (record->kind == HAL_DISPATCH) {
        memcpy(launch->grid, record->grid, sizeof(launch->grid));
    } else {
        set_transfer_grid(routine->device, launch, record->bindings[0].length);
    }
    return ST_OK;
}

/* Adds a copy between a transient slot and its mirror. */
static enum status add_transfer(struct hal_vulkan_routine *routine,
                                const struct hal_vulkan_mirror *mirror, bool is_fetched,
                                struct error *err)
{
    struct hal_vulkan_launch *launch;
    const struct hal_vulkan_entry in_slot = {.source = HAL_VULKAN_FROM_SLOT,
                                             .slot = mirror->slot,
                                             .address = mirror->begin,
                                             .length = mirror->end - mirror->begin};
    const struct hal_vulkan_entry in_mirror = {.source = HAL_VULKAN_FROM_REPLAY,
                                               .address = routine->mirrors_at + mirror->at,
                                               .length = in_slot.length};
    TRY(new_dispatch(routine, &hal_vulkan_copy, HAL_VULKAN_TRANSFER, &launch, err));
    launch->constants = routine->table_bytes; /* the copy has no constants */
    *new_entry(routine) = is_fetched ? in_slot : in_mirror;
    *new_entry(routine) = is_fetched ? in_mirror : in_slot;
    set_transfer_grid(routine->device, launch, (size_t)in_slot.length);
    return ST_OK;
}

/* Adds copies for the mirrors that the host stage reads, or for the mirrors that it has written. */
static enum status add_transfers(struct compiler *c, const struct draft *host, bool is_fetched,
                                 struct error *err)
{
    add_barrier(c->routine);
    for (uint32_t i = 0; i < host->mirror_count; i++) {
        const struct hal_vulkan_mirror *mirror = &host->mirrors[i];
        if (is_fetched ? mirror->is_fetched : mirror->is_written) {
            TRY(add_transfer(c->routine, mirror, is_fetched, err));
            c->command->stats.transfers++;
        }
    }
    add_barrier(c->routine);
    return ST_OK;
}

static enum status make_gpu_stage(struct compiler *c, uint32_t index, struct error *err)
{
    struct hal_vulkan_routine *routine = c->routine;
    const struct draft *draft = &c->drafts[index];
    struct hal_vulkan_stage *stage = &routine->stages[index];
    stage->launch_first = routine->launch_count;
    stage->query_first = routine->query_count;
    if (index > 0) {
        TRY(add_transfers(c, &c->drafts[index - 1], false, err));
    }
    for (uint32_t i = 0; i < draft->item_count; i++) {
        const struct hal_record *record = record_at(c, draft, i);
        if (record) {
            TRY(add_launch(routine, record, err));
        } else {
            add_barrier(routine);
        }
    }
    if (index + 1 < routine->stage_count) {
        TRY(add_transfers(c, &c->drafts[index + 1], true, err));
    }
    stage->launch_count = routine->launch_count - stage->launch_first;
    stage->query_count = routine->query_count - stage->query_first;
    return ST_OK;
}

/* ---- stages of the host ---------------------------------------------------------------------- */

static enum status add_host(struct hal_command *host, const struct hal_record *record,
                            const struct hal_binding *bindings, struct error *err)
{
    if (record->kind == HAL_COPY) {
        return hal_command_copy(host, bindings[0], bindings[1], err);
    }
    const struct hal_dispatch dispatch = {
        .kernel = record->kernel,
        .label = record->label,
        .grid = {record->grid[0], record->grid[1], record->grid[2]},
        .constants = record->constants,
        .constants_bytes = record->constants_bytes,
        .bindings = bindings,
        .binding_count = record->binding_count,
        .scratch_bytes = record->scratch_bytes,
        .cost = record->cost,
    };
    return hal_command_dispatch(host, &dispatch, err);
}

static enum status make_host_stage(struct compiler *c, uint32_t index, struct error *err)
{
    const struct draft *draft = &c->drafts[index];
    struct hal_vulkan_stage *stage = &c->routine->stages[index];
    struct hal_binding bindings[HAL_BINDINGS_MAX];
    TRY(hal_command_new(c->routine->device->host, c->command->slot_count + 1, &stage->host, err));
    for (uint32_t i = 0; i < draft->item_count; i++) {
        const struct hal_record *record = record_at(c, draft, i);
        if (!record) {
            TRY(hal_command_barrier(stage->host, err));
            continue;
        }
        for (uint32_t b = 0; b < record->binding_count; b++) {
            bindings[b] = mirrored(c, draft, &record->bindings[b]);
        }
        TRY(add_host(stage->host, record, bindings, err));
        stage->host->last->number = record->number;
    }
    stage->host->whole = c->command;
    return hal_command_end(stage->host, err);
}

/* ---- compilation ----------------------------------------------------------------------------- */

/* Upper bounds: all records run on the GPU, and each host dispatch is its own stage with a copy for
 * each binding before and after it. */
static enum status make_room(struct compiler *c, struct error *err)
{
    struct hal_vulkan_routine *routine = c->routine;
    struct arena *arena = &c->command->arena;
    uint32_t records = 0, bindings = 0, host_bindings = 0, hosts = 0;
    size_t constants = 0;
    for (const struct hal_record *r = c->command->records; r; r = r->next) {
        bool is_host = side_of(r) == HOST;
        records++;
        bindings += r->binding_count;
        hosts += is_host;
        constants += is_host ? 0 : align_up(r->constants_bytes, 16);
    }
    c->has_mirrors = hosts > 0 && !routine->device->base.props.host_visible;
    host_bindings = c->has_mirrors ? bindings : 0;
    routine->entry_max = bindings + 4 * host_bindings;
    routine->launch_max = 3 * records + 2 + 2 * host_bindings;
    c->draft_max = records;
    c->item_max = 2 * records;
    c->trace_max = host_bindings;
    routine->table_bytes = routine->entry_max * sizeof(struct hal_vulkan_binding);
    routine->mirrors_at = align_up(routine->table_bytes + constants, HAL_VULKAN_BUFFER_ALIGN);
    routine->stages = arena_array(arena, records, sizeof(*routine->stages));
    routine->launches = arena_array(arena, routine->launch_max, sizeof(*routine->launches));
    routine->entries = arena_array(arena, routine->entry_max, sizeof(*routine->entries));
    routine->constants = arena_alloc(arena, constants);
    c->drafts = arena_array(arena, c->draft_max, sizeof(*c->drafts));
    c->items = arena_array(arena, c->item_max, sizeof(*c->items));
    c->traces = arena_array(arena, c->trace_max, sizeof(*c->traces));
    return routine->stages && routine->launches && routine->entries && routine->constants &&
                   c->drafts && c->items && c->traces
               ? ST_OK
               : error_no_memory(err, "a command buffer");
}

static void count_stages(struct compiler *c)
{
    struct hal_command_stats *stats = &c->command->stats;
    for (uint32_t i = 0; i < c->routine->stage_count; i++) {
        stats->host_stages += c->drafts[i].is_host;
        stats->device_stages += !c->drafts[i].is_host;
    }
}

static enum status compile(struct hal_vulkan_routine *routine, struct hal_command *command,
                           struct error *err)
{
    struct compiler c = {.routine = routine, .command = command};
    TRY(hal_vulkan_place(routine->device, command, err));
    TRY(make_room(&c, err));
    distribute(&c);
    TRY(find_all_mirrors(&c, err));
    count_stages(&c);
    for (uint32_t i = 0; i < routine->stage_count; i++) {
        TRY(c.drafts[i].is_host ? make_host_stage(&c, i, err) : make_gpu_stage(&c, i, err));
    }
    return ST_OK;
}

static void drop_stages(struct hal_vulkan_routine *routine)
{
    for (uint32_t i = 0; i < routine->stage_count; i++) {
        hal_command_unref(routine->stages[i].host);
    }
}

enum status hal_vulkan_routine_new(struct hal_command *command, struct error *err)
{
    must(!command->compiled && !command->ended);
    struct hal_vulkan_device *device = hal_vulkan_device_of(command->device);
    struct hal_vulkan_routine *routine = arena_alloc(&command->arena, sizeof(*routine));
    if (!routine) {
        return error_no_memory(err, "a command buffer");
    }
    *routine = (struct hal_vulkan_routine){.magic = HAL_VULKAN_ROUTINE_MAGIC, .device = device};
    enum status status = compile(routine, command, err);
    const VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = device->queue_family,
    };
    if (status == ST_OK) {
        VkResult result = device->vkCreateCommandPool(device->handle, &info, NULL, &routine->pool);
        status =
            result == VK_SUCCESS ? ST_OK : hal_vulkan_error(err, result, "creating a command pool");
    }
    if (status != ST_OK) {
        drop_stages(routine);
        return status;
    }
    must(pthread_mutex_init(&routine->lock, NULL) == 0);
    list_init(&routine->idle);
    list_init(&routine->idle_profiled);
    command->compiled = routine;
    return ST_OK;
}

static void drop_replays(struct list *idle)
{
    while (!list_is_empty(idle)) {
        struct hal_vulkan_replay *replay = LIST_ENTRY(idle->next, struct hal_vulkan_replay, link);
        list_remove(&replay->link);
        hal_vulkan_replay_free(replay);
    }
}

void hal_vulkan_routine_free(struct hal_command *command)
{
    struct hal_vulkan_routine *routine;
    OBJ_CAST(routine, command->compiled, HAL_VULKAN_ROUTINE_MAGIC);
    struct hal_vulkan_device *device = routine->device;
    drop_replays(&routine->idle);
    drop_replays(&routine->idle_profiled);
    drop_stages(routine);
    device->vkDestroyCommandPool(device->handle, routine->pool, NULL);
    pthread_mutex_destroy(&routine->lock);
    routine->magic = 0;
}

uint32_t hal_vulkan_routine_stages(const struct hal_command *command,
                                   const struct hal_vulkan_stage **out_stages)
{
    const struct hal_vulkan_routine *routine;
    OBJ_CAST(routine, command->compiled, HAL_VULKAN_ROUTINE_MAGIC);
    *out_stages = routine->stages;
    return routine->stage_count;
}
