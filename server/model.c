/* SPDX-License-Identifier: MIT */
/* The table of models: its content, its order, and finding a model in it. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/pool.h"
#include "runtime/sched/sched.h"
#include "server/log.h"
#include "server/model_priv.h"
#include "server/route.h"
#include "server/stats.h"

#define MODELS_ARENA_MAX (64 << 20)
#define MODELS_MAX 65536

void models_init(struct models *models, struct hal_device *device, struct hal_pool *pool,
                 struct rt_sched *sched)
{
    *models = (struct models){.device = device, .pool = pool, .sched = sched};
    arena_init(&models->arena, MODELS_ARENA_MAX);
}

struct rt_step_counts model_step_counts(const struct model *model, uint32_t step)
{
    struct rt_step_counts counts = {0};
    const struct rt_step_counts *before = &model->steps_before[step];
    if (model->method) {
        counts = rt_pipeline_step_counts(model->method, step);
    }
    counts.count += before->count;
    counts.ns += before->ns;
    counts.failed_count += before->failed_count;
    counts.failed_ns += before->failed_ns;
    return counts;
}

/* The method is released but its counts stay, and so do the names that they use. */
static void keep_counts(struct model *model)
{
    for (uint32_t i = 0; i < model->step_count; i++) {
        model->steps_before[i] = model_step_counts(model, i);
        model->steps_before[i].name = model->steps_before[i].model = NULL;
    }
}

void models_close(struct models *models)
{
    for (uint32_t i = 0; i < models->item_count; i++) {
        struct model *model = &models->items[i];
        keep_counts(model);
        rt_sched_queue_free(model->queue);
        rt_program_unref(model->program);
        hal_pool_free(model->pool);
        model->pool = NULL;
        model->queue = NULL;
        model->program = NULL;
        model->method = NULL;
    }
}

void models_fini(struct models *models)
{
    models_close(models);
    for (uint32_t i = 0; i < models->item_count; i++) {
        free(models->items[i].stats);
    }
    free(models->items);
    free(models->addresses);
    models->items = NULL;
    models->addresses = NULL;
    models->item_count = models->address_count = 0;
    arena_fini(&models->arena);
}

/* ---- one model ------------------------------------------------------------------------------- */

bool model_name_is_valid(struct span name)
{
    if (name.len == 0 || name.len > ROUTE_MODEL_MAX || name.ptr[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!isalnum(name.ptr[i]) && !strchr("._-", name.ptr[i])) {
            return false;
        }
    }
    return true;
}

static enum status grow(struct models *models, struct error *err)
{
    if (models->item_count < models->item_capacity) {
        return ST_OK;
    }
    uint32_t capacity = models->item_capacity ? models->item_capacity * 2 : 16;
    struct model *items =
        capacity > MODELS_MAX ? NULL : realloc(models->items, capacity * sizeof(*items));
    if (!items) {
        return error_set(err, ST_EXHAUSTED, "models: no room for more than %u", models->item_count);
    }
    models->items = items;
    models->item_capacity = capacity;
    return ST_OK;
}

enum status models_add(struct models *models, struct span file, struct span name, uint32_t version,
                       struct model **out_model, struct error *err)
{
    if (!model_name_is_valid(name)) {
        return error_set(err, ST_INVALID,
                         "model name '%.*s': expected 1 to %d of A-Z a-z 0-9 . _ -, no dot first",
                         SPAN_FMT(name), ROUTE_MODEL_MAX);
    }
    TRY(grow(models, err));
    const char *copy = arena_strdup(&models->arena, file.ptr, file.len);
    if (!copy) {
        return error_set(err, ST_EXHAUSTED, "models: out of memory");
    }
    struct model *model = &models->items[models->item_count++];
    *model = (struct model){.version = version, .file = copy};
    memcpy(model->name, name.ptr, name.len);
    snprintf(model->version_text, sizeof(model->version_text), "%u", version);
    *out_model = model;
    return ST_OK;
}

static int compare(const void *a, const void *b)
{
    const struct model *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order == 0 && left->version != right->version) {
        return left->version > right->version ? -1 : 1;
    }
    return order;
}

static enum status refuse_twins(const struct model *a, const struct model *b, struct error *err)
{
    return error_set(err, ST_INVALID, "model '%s' version %u: there are two of them, %s and %s",
                     a->name, a->version, a->path ? a->path : "a pipeline",
                     b->path ? b->path : "a pipeline");
}

static int compare_addresses(const void *a, const void *b)
{
    const struct model_address *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order == 0 && left->is_alias != right->is_alias) {
        return left->is_alias ? 1 : -1;
    }
    if (order == 0 && left->model->version != right->model->version) {
        return left->model->version > right->model->version ? -1 : 1;
    }
    return order;
}

static enum status list_addresses(struct models *models, struct error *err)
{
    models->addresses = calloc((size_t)models->item_count + 1, 2 * sizeof(models->addresses[0]));
    if (!models->addresses) {
        return error_set(err, ST_EXHAUSTED, "models: out of memory");
    }
    for (uint32_t i = 0; i < models->item_count; i++) {
        const struct model *model = &models->items[i];
        models->addresses[models->address_count++] =
            (struct model_address){.name = model->name, .model = model};
        if (model->alias) {
            models->addresses[models->address_count++] =
                (struct model_address){.name = model->alias, .model = model, .is_alias = true};
        }
    }
    if (models->address_count) {
        qsort(models->addresses, models->address_count, sizeof(models->addresses[0]),
              compare_addresses);
    }
    return ST_OK;
}

enum status models_sort(struct models *models, struct error *err)
{
    if (models->item_count) {
        qsort(models->items, models->item_count, sizeof(models->items[0]), compare);
    }
    for (uint32_t i = 1; i < models->item_count; i++) {
        if (compare(&models->items[i - 1], &models->items[i]) == 0) {
            return refuse_twins(&models->items[i - 1], &models->items[i], err);
        }
    }
    return list_addresses(models, err);
}

static bool is_called(const struct model *model, const char *name, bool by_alias)
{
    return by_alias ? model->alias && strcmp(model->alias, name) == 0
                    : strcmp(model->name, name) == 0;
}

static const struct model *find_best(const struct models *models, const char *name,
                                     uint32_t version, bool by_alias)
{
    const struct model *best = NULL;
    for (uint32_t i = 0; i < models->item_count; i++) {
        const struct model *model = &models->items[i];
        if (!is_called(model, name, by_alias) || (version && model->version != version)) {
            continue;
        }
        bool is_better =
            !best || model_is_ready(model) > model_is_ready(best) ||
            (model_is_ready(model) == model_is_ready(best) && model->version > best->version);
        best = is_better ? model : best;
    }
    return best;
}

const struct model *models_find_any(const struct models *models, const char *name, uint32_t version)
{
    const struct model *named = find_best(models, name, version, false);
    return named ? named : find_best(models, name, version, true);
}

void models_keep_stats(struct models *models, const struct models *from)
{
    for (uint32_t i = 0; i < models->item_count && from->item_count > 0; i++) {
        struct model *model = &models->items[i];
        const struct model *old =
            bsearch(model, from->items, from->item_count, sizeof(from->items[0]), compare);
        if (model->stats && old && old->stats) {
            *model->stats = *old->stats;
        }
        for (uint32_t k = 0; old && k < model->step_count && k < old->step_count; k++) {
            model->steps_before[k] = model_step_counts(old, k);
        }
    }
}

/* The first of |name|'s versions, which is the highest; or the place for it. */
static uint32_t lower_bound(const struct models *models, const char *name)
{
    uint32_t low = 0, high = models->address_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(models->addresses[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A model of a method of file |name|, or NULL. "resnet.large" may be a file of its own instead. */
static const struct model *find_method(const struct models *models, const char *name)
{
    for (uint32_t i = 0; i < models->item_count; i++) {
        if (strcmp(models->items[i].file, name) == 0) {
            return &models->items[i];
        }
    }
    return NULL;
}

/* A file without a default method has no model of its name. */
static void refuse_address(const struct models *models, const char *name, struct error *err)
{
    const struct model *method = find_method(models, name);
    if (method) {
        error_set(err, ST_NOT_FOUND, "no model '%s', but models of its methods, such as '%s'", name,
                  method->name);
    } else {
        error_set(err, ST_NOT_FOUND, "no model '%s'", name);
    }
}

const struct model *models_find(const struct models *models, const char *name, uint32_t version,
                                struct error *err)
{
    uint32_t first = lower_bound(models, name);
    const struct model *highest = NULL;
    for (uint32_t i = first; i < models->address_count; i++) {
        const struct model_address *address = &models->addresses[i];
        const struct model *model = address->model;
        if (strcmp(address->name, name) != 0 ||
            address->is_alias != models->addresses[first].is_alias) {
            break;
        }
        if (version ? model->version == version : model_is_ready(model)) {
            return model;
        }
        highest = highest ? highest : model;
    }
    if (highest && !version) {
        return highest; /* none is ready: the caller gives the reason */
    }
    if (highest) {
        error_set(err, ST_NOT_FOUND, "model '%s' has no version %u", name, version);
    } else {
        refuse_address(models, name, err);
    }
    return NULL;
}

/* Other threads read the reason once they have seen that there is one. */
void model_fail(struct model *model, const struct error *why)
{
    if (model_is_ready(model)) {
        model->failure = *why;
        atomic_store_explicit(&model->has_failed, true, memory_order_release);
    }
}

void models_verify_files(struct models *models)
{
    for (uint32_t i = 0; i < models->item_count; i++) {
        struct model *model = &models->items[i];
        struct error why;
        if (model_is_ready(model) && rt_program_verify_files(model->program, &why) != ST_OK) {
            log_line(LOG_ERROR, "model '%s' version %u cannot be called any more: %s", model->name,
                     model->version, why.text);
            model_fail(model, &why);
        }
    }
}

enum status model_verify_ready(const struct model *model, struct error *err)
{
    return model_is_ready(model) ? ST_OK
                                 : error_set(err, ST_UNAVAILABLE, "model '%s' cannot be called: %s",
                                             model->name, model->failure.text);
}

const struct model_io *model_find_io(const struct model_io *ios, uint32_t count, struct span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (rt_io_is_called(ios[i].io, name)) {
            return &ios[i];
        }
    }
    return NULL;
}

enum status model_refuse_name(const struct model *model, enum rt_side side, struct span name,
                              struct error *err)
{
    char names[RT_NAMES_TEXT_MAX];
    return error_set(err, ST_INVALID, "model '%s' has no %s '%.*s', expected %s", model->name,
                     side == RT_INPUT ? "input" : "output", SPAN_SHORT(name),
                     rt_names_print(model->method, side, names));
}
