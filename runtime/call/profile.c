/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/check.h"
#include "hal/device.h"
#include "runtime/call/inside.h"
#include "runtime/graph/op.h"

#define PROFILE_MAGIC 0x970f11e5u
#define PROFILE_ARENA_MAX ((size_t)64 << 20)
#define ROW_TEXT_MAX 512
#define NO_ROW UINT32_MAX

/* A command buffer that was submitted, and the block that it is a plan of. */
struct source {
    const struct hal_command *command; /* kept by |spans| */
    const struct rt_block *block;
    uint32_t number;      /* of the block in the method's code */
    uint64_t submissions; /* so far */
    uint64_t counted;     /* the part of them that is in the rows */
    uint32_t *by_command; /* the row of each command; NULL: not read yet */
    /* the row of each node, and behind them the row of the planner's copies; shared by all sources
     * of the block */
    uint32_t *by_node;
};

struct rt_profile {
    uint32_t magic;
    struct rt_method *method; /* its program: ref held */
    struct hal_profile *spans;
    struct source *sources;
    uint32_t source_count;
    size_t source_capacity;
    struct arena arena; /* has the memory of the members below */
    struct rt_profile_row *rows;
    uint32_t row_count;
    size_t row_capacity;
};

enum status rt_profile_new(struct rt_method *method, size_t span_max,
                           struct rt_profile **out_profile, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(hal_device_props(method->device)->has_profile);
    struct rt_profile *profile = calloc(1, sizeof(*profile));
    if (!profile) {
        return error_no_memory(err, "a profile");
    }
    if (hal_profile_new(span_max, &profile->spans, err) != ST_OK) {
        free(profile);
        return err->code;
    }
    profile->magic = PROFILE_MAGIC;
    profile->method = method;
    rt_program_ref(method->program);
    arena_init(&profile->arena, PROFILE_ARENA_MAX);
    *out_profile = profile;
    return ST_OK;
}

void rt_profile_free(struct rt_profile *profile)
{
    if (!profile) {
        return;
    }
    OBJ_CHECK(profile, PROFILE_MAGIC);
    hal_profile_free(profile->spans);
    rt_program_unref(profile->method->program);
    arena_fini(&profile->arena);
    free(profile->sources);
    free(profile->rows);
    profile->magic = 0;
    free(profile);
}

void rt_invocation_profile(struct rt_invocation *inv, struct rt_profile *profile)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    OBJ_CHECK(profile, PROFILE_MAGIC);
    must(inv->phase == RT_PHASE_FILLING || inv->phase == RT_PHASE_PREPARED);
    must(inv->method == profile->method);
    inv->profile = profile;
}

/* ---- during a call --------------------------------------------------------------------------- */

static uint32_t number_of(const struct rt_profile *profile, const struct rt_block *block)
{
    const struct rt_code *code = &profile->method->code;
    for (uint32_t i = 0; i < code->block_count; i++) {
        if (code->blocks[i] == block) {
            return i;
        }
    }
    unreachable();
}

static struct source *find_source(struct rt_profile *profile, const struct hal_command *command)
{
    for (uint32_t i = 0; i < profile->source_count; i++) {
        if (profile->sources[i].command == command) {
            return &profile->sources[i];
        }
    }
    return NULL;
}

static struct source *add_source(struct rt_profile *profile)
{
    return ARRAY_ROOM(profile->sources, profile->source_capacity, profile->source_count + 1)
               ? &profile->sources[profile->source_count++]
               : NULL;
}

enum status rt_profile_note(struct rt_profile *profile, const struct rt_block *block,
                            const struct rt_plan *plan, struct hal_profile **out_spans,
                            struct error *err)
{
    *out_spans = NULL;
    if (!profile) {
        return ST_OK;
    }
    OBJ_CHECK(profile, PROFILE_MAGIC);
    OBJ_CHECK(plan, RT_PLAN_MAGIC);
    struct source *source = find_source(profile, plan->command);
    if (!source) {
        source = add_source(profile);
        if (!source) {
            return error_no_memory(err, "a profile");
        }
        *source = (struct source){
            .command = plan->command, .block = block, .number = number_of(profile, block)};
    }
    source->submissions++;
    *out_spans = profile->spans;
    return ST_OK;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static struct rt_profile_row *add_row(struct rt_profile *profile)
{
    if (!ARRAY_ROOM(profile->rows, profile->row_capacity, profile->row_count + 1)) {
        return NULL;
    }
    profile->rows[profile->row_count] = (struct rt_profile_row){0};
    return &profile->rows[profile->row_count++];
}

/* A copy of |text| that lives as long as the profile; NULL: no memory. */
static const char *keep_text(struct rt_profile *profile, const struct buf *text)
{
    char *copy = arena_alloc(&profile->arena, text->len + 1);
    if (copy && text->len > 0) {
        memcpy(copy, text->ptr, text->len);
    }
    if (copy) {
        copy[text->len] = '\0';
    }
    return copy;
}

/* The texts of |node|. A text that is too long is left out. */
static bool describe_node(struct rt_profile *profile, const struct source *source,
                          const struct rt_node *node, struct rt_profile_row *row)
{
    const struct rt_notes notes = rt_method_notes(profile->method);
    struct buf layer, origin;
    buf_init(&layer, ROW_TEXT_MAX);
    buf_init(&origin, ROW_TEXT_MAX);
    rt_node_print_layer(&source->block->graph, node, &layer);
    rt_node_print_origin(node, &notes, "", &origin);
    row->op = node->op->name;
    row->layer = buf_failed(&layer) ? "" : keep_text(profile, &layer);
    row->source = buf_failed(&origin) ? "" : keep_text(profile, &origin);
    buf_fini(&layer);
    buf_fini(&origin);
    return row->layer && row->source;
}

/* The row of |info|, which is made if there is none yet; NO_ROW: no memory. */
static uint32_t row_for(struct rt_profile *profile, struct source *source,
                        const struct hal_command_info *info)
{
    const struct rt_graph *graph = &source->block->graph;
    uint32_t node = info->label ? info->tag : graph->node_count;
    must(node <= graph->node_count);
    if (source->by_node[node] != NO_ROW) {
        return source->by_node[node];
    }
    struct rt_profile_row *row = add_row(profile);
    if (!row) {
        return NO_ROW;
    }
    *row = (struct rt_profile_row){.op = "copy",
                                   .layer = "",
                                   .source = "",
                                   .kernel = info->name,
                                   .block = source->number,
                                   .node = info->label ? node : UINT32_MAX,
                                   .macs_kind = info->macs_kind};
    if (info->label && !describe_node(profile, source, &graph->nodes[node], row)) {
        profile->row_count--;
        return NO_ROW;
    }
    return source->by_node[node] = profile->row_count - 1;
}

static uint32_t *new_numbers(struct rt_profile *profile, uint32_t count)
{
    uint32_t *numbers = arena_array(&profile->arena, (size_t)count + 1, sizeof(*numbers));
    for (uint32_t i = 0; numbers && i <= count; i++) {
        numbers[i] = NO_ROW;
    }
    return numbers;
}

/* The numbers of another source of the same block, or new ones. */
static uint32_t *find_by_node(struct rt_profile *profile, const struct source *source)
{
    for (uint32_t i = 0; i < profile->source_count; i++) {
        if (profile->sources[i].block == source->block && profile->sources[i].by_node) {
            return profile->sources[i].by_node;
        }
    }
    return new_numbers(profile, source->block->graph.node_count);
}

/* Adds the submissions that are not counted yet to the rows of |infos|. */
static enum status count_commands(struct rt_profile *profile, struct source *source,
                                  const struct hal_command_info *infos, uint32_t count,
                                  struct error *err)
{
    uint64_t times = source->submissions - source->counted;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = row_for(profile, source, &infos[i]);
        if (row == NO_ROW) {
            return error_no_memory(err, "a profile");
        }
        source->by_command[i] = row;
        profile->rows[row].commands += times;
        profile->rows[row].macs += infos[i].macs * (double)times;
        profile->rows[row].bytes += (double)infos[i].bytes * (double)times;
    }
    source->counted = source->submissions;
    return ST_OK;
}

static enum status read_source(struct rt_profile *profile, struct source *source, struct error *err)
{
    uint32_t count = hal_command_count(source->command);
    struct hal_command_info *infos = calloc((size_t)count + 1, sizeof(*infos));
    if (!source->by_command) {
        source->by_node = find_by_node(profile, source);
        source->by_command = new_numbers(profile, count);
    }
    if (!infos || !source->by_node || !source->by_command) {
        free(infos);
        return error_no_memory(err, "a profile");
    }
    hal_command_describe(source->command, infos);
    enum status status = count_commands(profile, source, infos, count, err);
    free(infos);
    return status;
}

enum status rt_profile_read(struct rt_profile *profile, const struct rt_profile_row **out_rows,
                            uint32_t *out_count, struct error *err)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    for (uint32_t i = 0; i < profile->source_count; i++) {
        TRY(read_source(profile, &profile->sources[i], err));
    }
    for (uint32_t i = 0; i < profile->row_count; i++) {
        profile->rows[i].busy_ns = profile->rows[i].host_ns = 0;
    }
    size_t count;
    const struct hal_span *spans = hal_profile_spans(profile->spans, &count);
    for (size_t i = 0; i < count; i++) {
        struct rt_profile_row *row = &profile->rows[rt_profile_row_of(profile, &spans[i])];
        uint64_t ns = spans[i].end_ns - spans[i].begin_ns;
        row->busy_ns += ns;
        row->host_ns += spans[i].thread == HAL_THREAD_DEVICE ? 0 : ns;
    }
    *out_rows = profile->rows;
    *out_count = profile->row_count;
    return ST_OK;
}

const struct hal_span *rt_profile_spans(const struct rt_profile *profile, size_t *out_count)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    return hal_profile_spans(profile->spans, out_count);
}

uint32_t rt_profile_row_of(const struct rt_profile *profile, const struct hal_span *span)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    for (uint32_t i = 0; i < profile->source_count; i++) {
        const struct source *source = &profile->sources[i];
        if (source->command == span->command) {
            must(source->by_command && source->by_command[span->number] != NO_ROW);
            return source->by_command[span->number];
        }
    }
    unreachable();
}

size_t rt_profile_lost(const struct rt_profile *profile)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    return hal_profile_lost(profile->spans);
}
