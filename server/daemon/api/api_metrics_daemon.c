/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/api/api_metrics_priv.h"

#include <string.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/infer/seats.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/access_log.h"
#include "server/daemon/observe/metrics.h"
#include "server/daemon/observe/spans.h"
#include "server/daemon/request/access.h"
#include "server/daemon/serving/changes.h"

#include "runtime/program/held.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/serving/serving.h"
#include "server/process/fetch.h"

/* ---- the daemon ------------------------------------------------------------------------------ */

void api_metrics_put_ready(struct api_metrics_page *page)
{
    api_metrics_add(page, page->look->is_ready);
}

void api_metrics_put_models(struct api_metrics_page *page)
{
    uint64_t ready = 0, listed = 0;
    for (uint32_t i = 0; i < page->index->count; i++) {
        ready += model_is_ready(page->index->models[i]);
        listed += model_state(page->index->models[i]) == MODEL_UNKNOWN;
    }
    api_metrics_add_labelled(page, "state", "ready", ready);
    api_metrics_add_labelled(page, "state", "listed", listed);
    api_metrics_add_labelled(page, "state", "failed", page->index->count - ready - listed);
}

void api_metrics_put_changes(struct api_metrics_page *page)
{
    api_metrics_add_labelled(page, "result", "made", counter_get(&page->api->changes->counts.made));
    api_metrics_add_labelled(page, "result", "refused",
                             counter_get(&page->api->changes->counts.refused));
}

void api_metrics_put_fetches(struct api_metrics_page *page)
{
    struct fetch_counts counts = fetch_counts();
    api_metrics_add_labelled(page, "result", "fetched", counts.fetched);
    api_metrics_add_labelled(page, "result", "unchanged", counts.unchanged);
    api_metrics_add_labelled(page, "result", "failed", counts.failed);
}

void api_metrics_put_unloads(struct api_metrics_page *page)
{
    static const char *const reasons[CHANGES_UNLOADS] = {
        [CHANGES_IDLE] = "idle",           [CHANGES_ASKED] = "keep_alive",
        [CHANGES_DISPLACED] = "displaced", [CHANGES_ORDERED] = "ordered",
        [CHANGES_GONE] = "gone",
    };
    for (uint32_t i = 0; i < CHANGES_UNLOADS; i++) {
        api_metrics_add_labelled(page, "reason", reasons[i],
                                 counter_get(&page->api->changes->counts.unloads[i]));
    }
}

void api_metrics_put_connections(struct api_metrics_page *page)
{
    api_metrics_add(page, page->look->connections);
}

void api_metrics_put_accepted(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->conns->counts.accepted));
}

void api_metrics_put_turned_away(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->conns->counts.turned_away));
}

void api_metrics_put_weights(struct api_metrics_page *page)
{
    api_metrics_add(page, rt_held_total());
}

void api_metrics_put_displaced_connections(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->conns->places.displaced));
}

void api_metrics_put_floods(struct api_metrics_page *page)
{
    for (int flood = 0; flood < HTTP2_FLOOD_COUNT; flood++) {
        api_metrics_add_labelled(page, "kind", http2_flood_name((enum http2_flood)flood),
                                 counter_get(&page->api->conns->counts.floods[flood]));
    }
}

/* ---- traffic --------------------------------------------------------------------------------- */

void api_metrics_put_received(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->conns->counts.received_bytes));
}

void api_metrics_put_sent(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->conns->counts.sent_bytes));
}

/* The requests of route |id| and of later routes with its path, which differ by method. False: an
 * earlier one has that path. */
static bool sum_requests(const struct metrics *metrics, enum route_id id, struct status_counts *out)
{
    const char *pattern = route_pattern(id);
    for (int other = 0; other <= ROUTE_COUNT; other++) {
        if (strcmp(route_pattern((enum route_id)other), pattern) == 0) {
            if (other < (int)id) {
                return false;
            }
            status_counts_add_all(out, &metrics->requests[other]);
        }
    }
    return true;
}

/* The label is the path. A target without a route has the label "none". */
void api_metrics_put_requests(struct api_metrics_page *page)
{
    for (int id = 0; id <= ROUTE_COUNT; id++) {
        struct status_counts counts = {.used = 0};
        if (sum_requests(page->api->metrics, (enum route_id)id, &counts)) {
            prom_unlabel(&page->prom);
            prom_label(&page->prom, "route", span_str(route_pattern((enum route_id)id)));
            api_metrics_add_statuses(page, &counts, false);
        }
    }
}

void api_metrics_put_token_requests(struct api_metrics_page *page)
{
    const struct token_use *use = atomic_load(&page->api->access->tokens.uses);
    for (; use; use = atomic_load(&use->next)) {
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "token", span_str(use->name));
        api_metrics_add_labelled(page, "result", "admitted", counter_get(&use->admitted));
        api_metrics_add_labelled(page, "result", "refused", counter_get(&use->refused));
    }
}

void api_metrics_put_denied(struct api_metrics_page *page)
{
    for (int denial = 0; denial < ACCESS_DENIAL_COUNT; denial++) {
        api_metrics_add_labelled(page, "reason", access_denial_name((enum access_denial)denial),
                                 counter_get(&page->api->access->denied[denial]));
    }
}

/* Without TLS these three have no series. */
void api_metrics_put_tls_handshakes(struct api_metrics_page *page)
{
    for (int version = 0; page->look->tls_expiry_s && version < TLS_VERSION_COUNT; version++) {
        const struct counter *counters = page->api->tls->hub.handshakes[version];
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "version", span_str(tls_version_name((enum tls_version)version)));
        api_metrics_add_labelled(page, "session", "new", counter_get(&counters[0]));
        api_metrics_add_labelled(page, "session", "resumed", counter_get(&counters[1]));
    }
}

void api_metrics_put_tls_failures(struct api_metrics_page *page)
{
    for (int failure = 0; page->look->tls_expiry_s && failure < TLS_FAILURE_COUNT; failure++) {
        api_metrics_add_labelled(page, "reason", tls_failure_name((enum tls_failure)failure),
                                 counter_get(&page->api->tls->hub.failures[failure]));
    }
}

void api_metrics_put_tls_expiry(struct api_metrics_page *page)
{
    if (page->look->tls_expiry_s > 0) {
        api_metrics_add(page, (uint64_t)page->look->tls_expiry_s);
    }
}

void api_metrics_put_in_flight(struct api_metrics_page *page)
{
    api_metrics_add(page, page->look->requests);
}

void api_metrics_put_access_lines(struct api_metrics_page *page)
{
    api_metrics_add(page, access_log_counts(page->api->access_log).added);
}

void api_metrics_put_access_lost(struct api_metrics_page *page)
{
    api_metrics_add(page, access_log_counts(page->api->access_log).lost);
}

void api_metrics_put_traced(struct api_metrics_page *page)
{
    api_metrics_add(page, spans_counts(page->api->spans).added);
}

void api_metrics_put_traced_lost(struct api_metrics_page *page)
{
    api_metrics_add(page, spans_counts(page->api->spans).lost);
}

void api_metrics_put_loop_lag(struct api_metrics_page *page)
{
    prom_histogram(&page->prom, &page->api->loop->turns.lengths, &histogram_times);
}

void api_metrics_put_longest_turn(struct api_metrics_page *page)
{
    const struct turn_records *turns = &page->look->turns;
    for (int part = 0; part < TURN_PART_COUNT; part++) {
        const char *name = turn_part_name(&request_turn_steps, (enum turn_part)part);
        if (!name) {
            continue; /* a number between steps and parts */
        }
        size_t mark = prom_label_mark(&page->prom);
        prom_label(&page->prom, "step", span_str(name));
        prom_number(&page->prom, turns->longest_ns[part], API_METRICS_NS);
        prom_unlabel_to(&page->prom, mark);
    }
}

void api_metrics_put_step_bytes(struct api_metrics_page *page)
{
    const struct turn_records *turns = &page->look->turns;
    for (int step = 0; step < STEP_COUNT; step++) {
        api_metrics_add_labelled(page, "step", request_turn_steps.names[step],
                                 turns->step_bytes[step]);
    }
}

void api_metrics_put_pool_threads(struct api_metrics_page *page)
{
    api_metrics_add(page, page->look->pool_threads);
}

void api_metrics_put_pool_tasks(struct api_metrics_page *page)
{
    api_metrics_add_labelled(page, "kind", "request", page->look->pool_tasks[OFFLOAD_REQUEST]);
    api_metrics_add_labelled(page, "kind", "heavy", page->look->pool_tasks[OFFLOAD_HEAVY]);
    api_metrics_add_labelled(page, "kind", "model", page->look->pool_tasks[OFFLOAD_LONG]);
}

/* ---- memory; there is none after the device was lost ----------------------------------------- */
struct hal_pool_stats api_metrics_pool(struct hal_pool *pool)
{
    struct hal_pool_stats stats = {0};
    if (pool) {
        hal_pool_stats(pool, &stats);
    }
    return stats;
}

void api_metrics_put_ring_size(struct api_metrics_page *page)
{
    api_metrics_add(page, api_metrics_pool(page->serving->transfers).size_bytes);
}

void api_metrics_put_ring_used(struct api_metrics_page *page)
{
    api_metrics_add(page, api_metrics_pool(page->serving->transfers).used_bytes);
}

void api_metrics_put_ring_peak(struct api_metrics_page *page)
{
    api_metrics_add(page, api_metrics_pool(page->serving->transfers).used_peak_bytes);
}

void api_metrics_put_ring_held(struct api_metrics_page *page)
{
    api_metrics_add_labelled(page, "holder", "transfers",
                             api_metrics_pool(page->serving->transfers).held_bytes);
    api_metrics_add_labelled(page, "holder", "running",
                             api_metrics_pool(page->serving->running).held_bytes);
    api_metrics_add_labelled(page, "holder", "lists",
                             api_metrics_pool(page->serving->lists).held_bytes);
    api_metrics_add_labelled(page, "holder", "answers",
                             api_metrics_pool(page->serving->answers).held_bytes);
}

void api_metrics_put_evictions(struct api_metrics_page *page)
{
    api_metrics_add(page, page->look->evictions);
}

void api_metrics_put_sequences(struct api_metrics_page *page)
{
    api_metrics_add(
        page, page->serving->sequences ? rt_sequences_load(page->serving->sequences).count : 0);
}

void api_metrics_put_sequence_bytes(struct api_metrics_page *page)
{
    api_metrics_add(
        page, page->serving->sequences ? rt_sequences_load(page->serving->sequences).bytes : 0);
}

void api_metrics_put_streams_displaced(struct api_metrics_page *page)
{
    api_metrics_add(page, counter_get(&page->api->seats->displaced));
}

void api_metrics_put_sequences_displaced(struct api_metrics_page *page)
{
    struct rt_sequences *sequences = page->serving->sequences;
    api_metrics_add(page, sequences ? rt_sequences_load(sequences).displaced_count : 0);
}

static struct rt_prefixes_load look_at_prefixes(const struct api_metrics_page *page)
{
    struct rt_sequences *sequences = page->serving->sequences;
    return sequences ? rt_prefixes_load(rt_sequences_prefixes(sequences))
                     : (struct rt_prefixes_load){0};
}

void api_metrics_put_prefixes(struct api_metrics_page *page)
{
    api_metrics_add(page, look_at_prefixes(page).count);
}

void api_metrics_put_prefix_bytes(struct api_metrics_page *page)
{
    api_metrics_add(page, look_at_prefixes(page).bytes);
}
