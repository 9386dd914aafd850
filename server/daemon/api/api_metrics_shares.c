/* SPDX-License-Identifier: MIT */
/* What clients share: for each resource of base/resource.def how much there is, and who has it. */
#include "config.h"

#include "server/daemon/api/api_metrics_priv.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/waits.h"
#include "server/process/offload.h"
#include "server/process/options.h"

#include <stddef.h>
#include <sys/resource.h>

#include "base/resource.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/seats.h"
#include "server/daemon/serving/serving.h"
#include "server/language/generator.h"
#include "server/language/transcriber.h"

/* A figure that a resource does not have: there is no series for it. */
#define NONE UINT64_MAX

/* False: the daemon lacks the resource, or another metric shows it. */
typedef bool look_f(const struct api_metrics_page *page, struct share_stats *out_stats);

#define RESOURCE(ID, name, ...) static look_f look_at_##name;
#include "base/resource.def"
#undef RESOURCE

static look_f *const looks[RESOURCE_COUNT] = {
#define RESOURCE(ID, name, ...) [RESOURCE_##ID] = look_at_##name,
#include "base/resource.def"
#undef RESOURCE
};

/* Of a resource of which only the sum is known. */
static struct share_stats sum_of(uint64_t size, uint64_t used)
{
    return (struct share_stats){
        .size = size, .used = used, .refused_count = NONE, .taken_back_count = NONE};
}

/* ---- connections and requests ---------------------------------------------------------------- */

static bool look_at_role(const struct api_metrics_page *page, enum listener_role role,
                         struct share_stats *out_stats)
{
    share_stats(&page->api->conns->places.shares[role], out_stats);
    return page->api->conns->places.has_role[role];
}

static bool look_at_connections(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    return look_at_role(page, LISTENER_PUBLIC, out_stats);
}

static bool look_at_connections_admin(const struct api_metrics_page *page,
                                      struct share_stats *out_stats)
{
    return look_at_role(page, LISTENER_ADMIN, out_stats);
}

static bool look_at_connections_health(const struct api_metrics_page *page,
                                       struct share_stats *out_stats)
{
    return look_at_role(page, LISTENER_HEALTH, out_stats);
}

static bool look_at_requests(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = page->look->shared_requests;
    out_stats->taken_back_count = NONE;
    return true;
}

/* ---- memory of requests ---------------------------------------------------------------------- */

static struct share_stats sum_of_pool(struct hal_pool *pool)
{
    const struct hal_pool_stats stats = api_metrics_pool(pool);
    return sum_of(stats.size_bytes, stats.held_bytes);
}

static bool look_at_transfers(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    const struct hal_pool_stats pool = api_metrics_pool(page->serving->transfers);
    *out_stats = page->look->shared_transfers;
    out_stats->size = pool.size_bytes;
    out_stats->used = pool.held_bytes; /* with what is charged before it comes */
    out_stats->refused_count = NONE;   /* they wait */
    return true;
}

/* Adds the part of a model. */
static void add_model(struct share_stats *stats, uint64_t held)
{
    stats->used += held;
    stats->most_held = held > stats->most_held ? held : stats->most_held;
    stats->client_count += held > 0;
}

static struct share_stats no_models(uint64_t size)
{
    return (struct share_stats){.size = size, .refused_count = NONE, .taken_back_count = NONE};
}

static bool look_at_inputs(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = no_models(api_metrics_pool(page->serving->transfers).size_bytes);
    for (uint32_t i = 0; i < page->index->count; i++) {
        add_model(out_stats, api_metrics_pool(page->index->models[i]->pool).held_bytes);
    }
    return true;
}

static bool look_at_runs(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = no_models(api_metrics_pool(page->serving->running).size_bytes);
    for (uint32_t i = 0; i < page->index->count; i++) {
        add_model(out_stats, api_metrics_pool(page->index->models[i]->run_pool).held_bytes);
    }
    return true;
}

static bool look_at_lists(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = sum_of_pool(page->serving->lists);
    return true;
}

static bool look_at_answers(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = sum_of_pool(page->serving->answers);
    return true;
}

/* ---- queues and generations: each model has its own limit ------------------------------------ */

static void add_stats(struct share_stats *sum, uint64_t size, const struct share_stats *stats)
{
    sum->size += size;
    sum->used += stats->used;
    sum->most_held = stats->most_held > sum->most_held ? stats->most_held : sum->most_held;
    sum->client_count += stats->client_count;
}

static bool look_at_queues(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = (struct share_stats){.taken_back_count = NONE};
    if (!page->serving->sched) {
        return false; /* the device was lost */
    }
    for (uint32_t i = 0; i < page->index->count; i++) {
        const struct model *model = page->index->models[i];
        if (model->queue) {
            struct share_stats stats;
            rt_sched_places(model->queue, &stats);
            add_stats(out_stats, model->params.queue_count_max, &stats);
        }
    }
    out_stats->refused_count = rt_sched_refused(page->serving->sched);
    return true;
}

static bool look_at_generations(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    const struct seats *seats = page->api->seats;
    *out_stats = (struct share_stats){.refused_count = counter_get(&seats->refused),
                                      .taken_back_count = counter_get(&seats->displaced)};
    for (uint32_t i = 0; i < page->index->count; i++) {
        const struct model *model = page->index->models[i];
        const struct share *share = model->generator     ? &model->generator->seats
                                    : model->transcriber ? &model->transcriber->seats
                                                         : NULL;
        if (share) {
            struct share_stats stats;
            share_stats(share, &stats);
            add_stats(out_stats, seats_count(model, page->api->params), &stats);
        }
    }
    return true;
}

/* ---- loading models -------------------------------------------------------------------------- */

static bool look_at_loading(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    share_stats(&page->api->waits->places, out_stats);
    out_stats->taken_back_count = NONE;
    return true;
}

static bool look_at_loads(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    share_stats(&page->api->changes->loads, out_stats);
    out_stats->taken_back_count = NONE;
    return true;
}

/* ---- what lasts longer than requests --------------------------------------------------------- */

static bool look_at_sequences(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    struct share_stats states;
    if (page->serving->sequences) {
        rt_sequences_stats(page->serving->sequences, out_stats, &states);
    }
    return page->serving->sequences != NULL;
}

static bool look_at_states(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    struct share_stats sequences;
    if (page->serving->sequences) {
        rt_sequences_stats(page->serving->sequences, &sequences, out_stats);
        out_stats->refused_count = out_stats->taken_back_count = NONE; /* see the sequences */
    }
    return page->serving->sequences != NULL;
}

static bool look_at_prefixes(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    struct rt_sequences *sequences = page->serving->sequences;
    if (sequences) {
        rt_prefixes_stats(rt_sequences_prefixes(sequences), out_stats);
    }
    return sequences != NULL;
}

static bool look_at_regions(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats =
        sum_of(page->api->params->region_count_max, regions_load(page->api->regions).count);
    return true;
}

static bool look_at_region_bytes(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats =
        sum_of(page->api->params->region_bytes_max, regions_load(page->api->regions).bytes);
    return true;
}

/* ---- the process ----------------------------------------------------------------------------- */

static bool look_at_threads(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    share_stats(&page->api->offload->heavy, out_stats);
    out_stats->refused_count = out_stats->taken_back_count = NONE; /* they wait */
    return true;
}

static bool look_at_files(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    struct rlimit limit = {0};
    *out_stats =
        sum_of(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0, page->open_files);
    return true;
}

static bool look_at_log_lines(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    *out_stats = log_limits_stats(&page->api->loop->log.limits);
    out_stats->taken_back_count = NONE;
    return true;
}

static bool look_at_frames(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    (void)page;
    (void)out_stats;
    return false;
}

static bool look_at_turns(const struct api_metrics_page *page, struct share_stats *out_stats)
{
    (void)page;
    (void)out_stats;
    return false;
}

void api_metrics_look_at_shares(struct api_metrics_page *page)
{
    for (enum resource resource = 0; resource < RESOURCE_COUNT; resource++) {
        page->has_share[resource] = looks[resource](page, &page->shares[resource]);
    }
}

/* ---- series ---------------------------------------------------------------------------------- */

/* The member of struct share_stats at |offset|, of each resource that has it. */
static void put_member(struct api_metrics_page *page, size_t offset)
{
    bool is_of_party = offset == offsetof(struct share_stats, most_held) ||
                       offset == offsetof(struct share_stats, client_count);
    for (enum resource resource = 0; resource < RESOURCE_COUNT; resource++) {
        const struct share_stats *stats = &page->shares[resource];
        bool has_member = !is_of_party || resource_party(resource) != RESOURCE_PARTY_ALL;
        if (has_member && page->has_share[resource]) {
            uint64_t value = *(const uint64_t *)(const void *)((const char *)stats + offset);
            if (value != NONE) {
                api_metrics_add_labelled(page, "resource", resource_name(resource), value);
            }
        }
    }
}

void api_metrics_put_share_size(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, size));
}

void api_metrics_put_share_used(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, used));
}

void api_metrics_put_share_most(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, most_held));
}

void api_metrics_put_share_holders(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, client_count));
}

void api_metrics_put_share_refused(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, refused_count));
}

void api_metrics_put_share_taken_back(struct api_metrics_page *page)
{
    put_member(page, offsetof(struct share_stats, taken_back_count));
}
