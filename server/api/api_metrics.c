/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics. The handler is called twice: on the loop, where it notes what only the loop may
 * read, and then on a thread, where it prints. The request holds its serving and the index of its
 * models meanwhile, so nothing that the page shows is freed.
 */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/pool.h"
#include "protocol/prom.h"
#include "runtime/program/program.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "server/api/api.h"
#include "server/language/generator.h"
#include "server/language/transcriber.h"
#include "server/observe/metrics.h"
#include "server/process/fetch.h"
#include "server/request/request.h"
#include "server/server.h"
#include "server/serving/serving.h"

#define US_DECIMALS 6
#define NS_DECIMALS 9

struct page {
    struct prom prom;
    const struct server *server;
    const struct serving *serving;
    const struct metrics_look *look;
    const struct repository_index *index;
};

typedef void server_put_f(struct page *page);
typedef void model_put_f(struct page *page, const struct model *model);

/* A row of metrics.def; one of the functions is set. */
struct metric {
    struct prom_family family;
    server_put_f *put;
    model_put_f *put_model;
};

#define SERVER_METRIC(id, ...) static server_put_f put_##id;
#define MODEL_METRIC(id, ...) static model_put_f put_##id;
#include "server/observe/metrics.def"
#undef SERVER_METRIC
#undef MODEL_METRIC

static const struct metric metrics[] = {
#define SERVER_METRIC(id, type, name, unit, labels, help)                                          \
    {{name, PROM_##type, unit, help}, put_##id, NULL},
#define MODEL_METRIC(id, type, name, unit, labels, help)                                           \
    {{name, PROM_##type, unit, help}, NULL, put_##id},
#include "server/observe/metrics.def"
#undef SERVER_METRIC
#undef MODEL_METRIC
};

/* ---- series ---------------------------------------------------------------------------------- */

static void put(struct page *page, uint64_t value)
{
    prom_number(&page->prom, value, 0);
}

/* A series with one more label, which is removed again. */
static void put_labelled(struct page *page, const char *name, const char *label, uint64_t value)
{
    size_t mark = prom_label_mark(&page->prom);
    prom_label(&page->prom, name, span_str(label));
    put(page, value);
    prom_unlabel_to(&page->prom, mark);
}

/* A series for each status that has occurred. With |has_ok| there is one for 200 in any case. */
static void put_statuses(struct page *page, const struct status_counts *counts, bool has_ok)
{
    uint32_t used = status_counts_used(counts);
    for (uint32_t i = 0; i < used; i++) {
        char code[12];
        has_ok = has_ok && counts->rows[i].status != 200;
        snprintf(code, sizeof(code), "%d", counts->rows[i].status);
        put_labelled(page, "code", i + 1 < STATUS_COUNTS_MAX ? code : "other",
                     counter_get(&counts->rows[i].count));
    }
    if (has_ok) {
        put_labelled(page, "code", "200", 0);
    }
}

/* ---- the process ----------------------------------------------------------------------------- */

static void put_build(struct page *page)
{
    prom_label(&page->prom, "version", span_str(PACKAGE_VERSION));
    prom_label(&page->prom, "compiler", span_str(__VERSION__));
    put(page, 1);
}

/* The fields of /proc/self/stat behind the name, which may hold anything: from the third one on. */
static bool read_stat(char text[1024], unsigned long long *out_start, long *out_pages)
{
    FILE *file = fopen("/proc/self/stat", "re");
    size_t len = file ? fread(text, 1, 1023, file) : 0;
    if (file) {
        fclose(file);
    }
    text[len] = '\0';
    const char *fields = strrchr(text, ')');
    return fields && sscanf(fields + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu %*u %ld",
                            out_start, out_pages) == 2;
}

/* When the system started, in s since 1970; 0 if it does not say. */
static unsigned long long boot_time_s(void)
{
    char line[256];
    unsigned long long seconds = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "btime %llu", &seconds) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return seconds;
}

static void put_start_time(struct page *page)
{
    char text[1024];
    unsigned long long ticks, boot_s = boot_time_s();
    long pages, hertz = sysconf(_SC_CLK_TCK);
    if (boot_s && hertz > 0 && read_stat(text, &ticks, &pages)) {
        prom_number(&page->prom, boot_s * 1000000 + ticks * 1000000 / (unsigned long)hertz,
                    US_DECIMALS);
    }
}

static uint64_t us_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void put_cpu_time(struct page *page)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        prom_number(&page->prom, us_of(usage.ru_utime) + us_of(usage.ru_stime), US_DECIMALS);
    }
}

static void put_resident(struct page *page)
{
    char text[1024];
    unsigned long long ticks;
    long pages, page_bytes = sysconf(_SC_PAGESIZE);
    if (page_bytes > 0 && read_stat(text, &ticks, &pages)) {
        put(page, (uint64_t)pages * (uint64_t)page_bytes);
    }
}

static void put_open_files(struct page *page)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return;
    }
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    put(page, count - 1); /* without the folder itself */
}

static void put_max_files(struct page *page)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        put(page, limit.rlim_cur);
    }
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void put_ready(struct page *page)
{
    put(page, page->look->is_ready);
}

static void put_models(struct page *page)
{
    uint64_t ready = 0, listed = 0;
    for (uint32_t i = 0; i < page->index->count; i++) {
        ready += model_is_ready(page->index->models[i]);
        listed += model_state(page->index->models[i]) == MODEL_UNKNOWN;
    }
    put_labelled(page, "state", "ready", ready);
    put_labelled(page, "state", "listed", listed);
    put_labelled(page, "state", "failed", page->index->count - ready - listed);
}

static void put_changes(struct page *page)
{
    put_labelled(page, "result", "made", counter_get(&page->server->metrics.changes));
    put_labelled(page, "result", "refused", counter_get(&page->server->metrics.refused_changes));
}

static void put_fetches(struct page *page)
{
    struct fetch_counts counts = fetch_counts();
    put_labelled(page, "result", "fetched", counts.fetched);
    put_labelled(page, "result", "unchanged", counts.unchanged);
    put_labelled(page, "result", "failed", counts.failed);
}

static void put_displaced(struct page *page)
{
    put(page, counter_get(&page->server->metrics.displaced));
}

static void put_connections(struct page *page)
{
    put(page, page->look->connections);
}

static void put_accepted(struct page *page)
{
    put(page, counter_get(&page->server->metrics.accepted));
}

static void put_turned_away(struct page *page)
{
    put(page, counter_get(&page->server->metrics.turned_away));
}

static void put_displaced_connections(struct page *page)
{
    put(page, counter_get(&page->server->places.displaced));
}

/* ---- what clients share ---------------------------------------------------------------------- */

/* The member of struct share_stats at |offset|, of each share. */
static void put_shares(struct page *page, size_t offset)
{
    const struct places *places = &page->server->places;
    for (int role = 0; role < LISTENER_ROLE_COUNT; role++) {
        struct share_stats stats;
        share_stats(&places->shares[role], &stats);
        if (places->has_role[role]) {
            put_labelled(page, "resource", places_name((enum listener_role)role),
                         *(const uint64_t *)(const void *)((const char *)&stats + offset));
        }
    }
}

static void put_share_size(struct page *page)
{
    put_shares(page, offsetof(struct share_stats, size));
}

static void put_share_used(struct page *page)
{
    put_shares(page, offsetof(struct share_stats, used));
}

static void put_share_most(struct page *page)
{
    put_shares(page, offsetof(struct share_stats, most_held));
}

static void put_share_clients(struct page *page)
{
    put_shares(page, offsetof(struct share_stats, client_count));
}

static void put_share_refused(struct page *page)
{
    put_shares(page, offsetof(struct share_stats, refused_count));
}

/* ---- traffic --------------------------------------------------------------------------------- */

static void put_received(struct page *page)
{
    put(page, counter_get(&page->server->metrics.received_bytes));
}

static void put_sent(struct page *page)
{
    put(page, counter_get(&page->server->metrics.sent_bytes));
}

/* A target without a route has the label "none". */
static void put_requests(struct page *page)
{
    for (int id = 0; id <= ROUTE_COUNT; id++) {
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "route", span_str(route_pattern((enum route_id)id)));
        put_statuses(page, &page->server->metrics.requests[id], false);
    }
}

static void put_token_requests(struct page *page)
{
    const struct token_use *use = atomic_load(&page->server->access.tokens.uses);
    for (; use; use = atomic_load(&use->next)) {
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "token", span_str(use->name));
        put_labelled(page, "result", "admitted", counter_get(&use->admitted));
        put_labelled(page, "result", "refused", counter_get(&use->refused));
    }
}

static void put_denied(struct page *page)
{
    for (int denial = 0; denial < ACCESS_DENIAL_COUNT; denial++) {
        put_labelled(page, "reason", access_denial_name((enum access_denial)denial),
                     counter_get(&page->server->access.denied[denial]));
    }
}

/* Without TLS these three have no series. */
static void put_tls_handshakes(struct page *page)
{
    for (int version = 0; page->look->tls_expiry_s && version < TLS_VERSION_COUNT; version++) {
        const struct counter *counters = page->server->tls.hub.handshakes[version];
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "version", span_str(tls_version_name((enum tls_version)version)));
        put_labelled(page, "session", "new", counter_get(&counters[0]));
        put_labelled(page, "session", "resumed", counter_get(&counters[1]));
    }
}

static void put_tls_failures(struct page *page)
{
    for (int failure = 0; page->look->tls_expiry_s && failure < TLS_FAILURE_COUNT; failure++) {
        put_labelled(page, "reason", tls_failure_name((enum tls_failure)failure),
                     counter_get(&page->server->tls.hub.failures[failure]));
    }
}

static void put_tls_expiry(struct page *page)
{
    if (page->look->tls_expiry_s > 0) {
        put(page, (uint64_t)page->look->tls_expiry_s);
    }
}

static void put_in_flight(struct page *page)
{
    put(page, page->look->requests);
}

static void put_access_lines(struct page *page)
{
    put(page, access_log_counts(&page->server->access_log).added);
}

static void put_access_lost(struct page *page)
{
    put(page, access_log_counts(&page->server->access_log).lost);
}

static void put_traced(struct page *page)
{
    put(page, spans_counts(&page->server->spans).added);
}

static void put_traced_lost(struct page *page)
{
    put(page, spans_counts(&page->server->spans).lost);
}

static void put_loop_lag(struct page *page)
{
    prom_histogram(&page->prom, &page->server->metrics.turns, &histogram_times);
}

static void put_longest_turn(struct page *page)
{
    const struct turn_records *turns = &page->look->turns;
    for (int part = 0; part < TURN_PART_COUNT; part++) {
        size_t mark = prom_label_mark(&page->prom);
        prom_label(&page->prom, "step", span_str(turn_part_name((enum turn_part)part)));
        prom_number(&page->prom, turns->longest_ns[part], NS_DECIMALS);
        prom_unlabel_to(&page->prom, mark);
    }
}

static void put_step_bytes(struct page *page)
{
    const struct turn_records *turns = &page->look->turns;
    for (int step = 0; step < STEP_COUNT; step++) {
        put_labelled(page, "step", turn_part_name((enum turn_part)step), turns->step_bytes[step]);
    }
}

static void put_pool_threads(struct page *page)
{
    put(page, page->look->pool_threads);
}

static void put_pool_tasks(struct page *page)
{
    put_labelled(page, "kind", "request", page->look->pool_tasks[OFFLOAD_REQUEST]);
    put_labelled(page, "kind", "heavy", page->look->pool_tasks[OFFLOAD_HEAVY]);
    put_labelled(page, "kind", "model", page->look->pool_tasks[OFFLOAD_LONG]);
}

/* ---- memory; there is none after the device was lost ----------------------------------------- */

static struct hal_pool_stats look_at(struct hal_pool *pool)
{
    struct hal_pool_stats stats = {0};
    if (pool) {
        hal_pool_stats(pool, &stats);
    }
    return stats;
}

static void put_ring_size(struct page *page)
{
    put(page, look_at(page->serving->clients).size_bytes);
}

static void put_ring_used(struct page *page)
{
    put(page, look_at(page->serving->clients).used_bytes);
}

static void put_ring_peak(struct page *page)
{
    put(page, look_at(page->serving->clients).used_peak_bytes);
}

static void put_ring_held(struct page *page)
{
    put_labelled(page, "holder", "clients", look_at(page->serving->clients).held_bytes);
    put_labelled(page, "holder", "running", look_at(page->serving->running).held_bytes);
    put_labelled(page, "holder", "lists", look_at(page->serving->lists).held_bytes);
    put_labelled(page, "holder", "answers", look_at(page->serving->answers).held_bytes);
}

static void put_evictions(struct page *page)
{
    put(page, page->look->evictions);
}

static void put_sequences(struct page *page)
{
    put(page, page->serving->sequences ? rt_sequences_load(page->serving->sequences).count : 0);
}

static void put_sequence_bytes(struct page *page)
{
    put(page, page->serving->sequences ? rt_sequences_load(page->serving->sequences).bytes : 0);
}

static void put_sequences_displaced(struct page *page)
{
    struct rt_sequences *sequences = page->serving->sequences;
    put(page, sequences ? rt_sequences_load(sequences).displaced_count : 0);
}

static struct rt_prefixes_load look_at_prefixes(const struct page *page)
{
    struct rt_sequences *sequences = page->serving->sequences;
    return sequences ? rt_prefixes_load(rt_sequences_prefixes(sequences))
                     : (struct rt_prefixes_load){0};
}

static void put_prefixes(struct page *page)
{
    put(page, look_at_prefixes(page).count);
}

static void put_prefix_bytes(struct page *page)
{
    put(page, look_at_prefixes(page).bytes);
}

/* ---- a model --------------------------------------------------------------------------------- */

/* Nothing is said of a file that is loaded when it is called, until then. */
static void put_model_ready(struct page *page, const struct model *model)
{
    enum model_state state = model_state(model);
    if (state == MODEL_READY || state == MODEL_FAILED) {
        put(page, state == MODEL_READY);
    }
}

/* A pipeline has no file. */
static void put_model_load(struct page *page, const struct model *model)
{
    if (model->origin->load_ns) {
        prom_number(&page->prom, model->origin->load_ns, NS_DECIMALS);
    }
}

static void put_model_requests(struct page *page, const struct model *model)
{
    if (model->stats) {
        put_statuses(page, &model->stats->statuses, true);
    }
}

/* A histogram begins with the first call: most of many models may never be called, or never get
 * files. */
static bool has_times(const struct histogram *histogram)
{
    return histogram_count(histogram, &histogram_times) > 0;
}

static bool has_calls(const struct model *model)
{
    return model->stats && has_times(&model->stats->durations);
}

static void put_model_duration(struct page *page, const struct model *model)
{
    if (has_calls(model)) {
        prom_histogram(&page->prom, &model->stats->durations, &histogram_times);
    }
}

static void put_model_phases(struct page *page, const struct model *model)
{
    static const char *const names[MODEL_PHASE_COUNT] = {
        [MODEL_PHASE_PREPARE] = "prepare", [MODEL_PHASE_DECODE] = "decode",
        [MODEL_PHASE_QUEUE] = "queue",     [MODEL_PHASE_COMPUTE] = "compute",
        [MODEL_PHASE_ENCODE] = "encode",
    };
    size_t mark = prom_label_mark(&page->prom);
    for (int i = 0; has_calls(model) && i < MODEL_PHASE_COUNT; i++) {
        if (!has_times(&model->stats->phases[i])) {
            continue;
        }
        prom_label(&page->prom, "phase", span_str(names[i]));
        prom_histogram(&page->prom, &model->stats->phases[i], &histogram_times);
        prom_unlabel_to(&page->prom, mark);
    }
}

static void put_model_batch(struct page *page, const struct model *model)
{
    if (has_calls(model)) {
        prom_histogram(&page->prom, &model->stats->rows, &histogram_rows);
    }
}

static bool has_tokens(const struct model *model)
{
    return model->generator || model->transcriber;
}

static void put_prompt_tokens(struct page *page, const struct model *model)
{
    if (has_tokens(model)) {
        put(page, counter_get(&model->stats->prompt_tokens));
    }
}

static void put_prefix_hits(struct page *page, const struct model *model)
{
    if (model->generator) {
        put(page, counter_get(&model->stats->prefix_hits));
    }
}

static void put_cached_tokens(struct page *page, const struct model *model)
{
    if (model->generator) {
        put(page, counter_get(&model->stats->cached_tokens));
    }
}

static void put_draft_tokens(struct page *page, const struct model *model)
{
    if (model->generator) {
        put(page, counter_get(&model->stats->draft_tokens));
    }
}

static void put_accepted_tokens(struct page *page, const struct model *model)
{
    if (model->generator) {
        put(page, counter_get(&model->stats->accepted_tokens));
    }
}

static void put_answer_tokens(struct page *page, const struct model *model)
{
    if (has_tokens(model)) {
        put(page, counter_get(&model->stats->answer_tokens));
    }
}

static void put_generations(struct page *page, const struct model *model)
{
    if (has_tokens(model)) {
        put(page, model->generator ? atomic_load(&model->generator->active)
                                   : atomic_load(&model->transcriber->active));
    }
}

static void put_transcriptions(struct page *page, const struct model *model)
{
    if (model->transcriber) {
        put(page, counter_get(&model->stats->transcriptions));
    }
}

static void put_sound(struct page *page, const struct model *model)
{
    if (model->transcriber) {
        prom_number(&page->prom, counter_get(&model->stats->sound_us), US_DECIMALS);
    }
}

static void put_first_token(struct page *page, const struct model *model)
{
    if (has_tokens(model)) {
        prom_histogram(&page->prom, &model->stats->first_tokens, &histogram_times);
    }
}

static void put_next_token(struct page *page, const struct model *model)
{
    if (has_tokens(model)) {
        prom_histogram(&page->prom, &model->stats->next_tokens, &histogram_times);
    }
}

static void put_model_waiting(struct page *page, const struct model *model)
{
    if (model->queue) {
        put(page, rt_sched_load(model->queue).waiting);
    }
}

static void put_model_waiting_bytes(struct page *page, const struct model *model)
{
    if (model->queue) {
        put(page, rt_sched_load(model->queue).waiting_bytes);
    }
}

static void put_model_running(struct page *page, const struct model *model)
{
    if (model->queue) {
        put(page, rt_sched_load(model->queue).running);
    }
}

static void put_model_memory(struct page *page, const struct model *model)
{
    if (model->pool) {
        put(page, look_at(model->pool).held_bytes);
    }
}

static void put_model_inputs(struct page *page, const struct model *model)
{
    if (model->method) {
        const struct rt_input_stats inputs = rt_method_input_stats(model->method);
        put_labelled(page, "how", "in_place", inputs.in_place);
        put_labelled(page, "how", "converted", inputs.converted);
    }
}

/* The methods that a pipeline calls have plans; the pipeline has none. */
static bool has_plans(const struct model *model)
{
    return model->method && rt_method_has_own_work(model->method);
}

static void put_model_plans(struct page *page, const struct model *model)
{
    if (has_plans(model)) {
        put(page, rt_method_plan_stats(model->method).count);
    }
}

static void put_model_plan_bytes(struct page *page, const struct model *model)
{
    if (has_plans(model)) {
        put(page, rt_method_plan_stats(model->method).bytes);
    }
}

static void put_model_plan_looks(struct page *page, const struct model *model)
{
    if (has_plans(model)) {
        const struct rt_plan_stats plans = rt_method_plan_stats(model->method);
        put_labelled(page, "result", "hit", plans.found);
        put_labelled(page, "result", "miss", plans.made);
    }
}

static void put_steps(struct page *page, const struct model *model)
{
    size_t mark = prom_label_mark(&page->prom);
    for (uint32_t i = 0; model->method && i < model->step_count; i++) {
        const struct rt_step_counts counts = model_step_counts(model, i);
        prom_label(&page->prom, "step", span_str(counts.name));
        prom_summary(&page->prom, counts.count, counts.ns, NS_DECIMALS);
        prom_unlabel_to(&page->prom, mark);
    }
}

static void put_step_failures(struct page *page, const struct model *model)
{
    for (uint32_t i = 0; model->method && i < model->step_count; i++) {
        const struct rt_step_counts counts = model_step_counts(model, i);
        put_labelled(page, "step", counts.name, counts.failed_count);
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_family(struct page *page, const struct metric *metric)
{
    prom_family(&page->prom, &metric->family);
    if (metric->put) {
        metric->put(page);
        return;
    }
    for (uint32_t i = 0; i < page->index->count; i++) {
        const struct model *model = page->index->models[i];
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "model", span_str(model->name));
        prom_label(&page->prom, "version", span_str(model->version_text));
        metric->put_model(page, model);
    }
}

static enum status print_page(struct request *request, struct error *err)
{
    struct page page = {
        .server = request->server,
        .serving = request->serving,
        .look = request->look,
        .index = request->listing,
    };
    OBJ_CHECK(page.index, REPOSITORY_INDEX_MAGIC);
    enum prom_format format = prom_accept(head_value(&request->head, HTTP_ACCEPT));
    prom_init(&page.prom, format, &request->out);
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        put_family(&page, &metrics[i]);
    }
    prom_end(&page.prom);
    request->content_type = prom_media_type(format);
    TRY(api_check_printed(request, err));
    return infer_compress_text(request, err);
}

enum status api_metrics(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->look) {
        return print_page(request, err);
    }
    struct metrics_look *look = arena_alloc(&request->infer.arena, sizeof(*look));
    if (!look) {
        return api_no_memory(err);
    }
    *look = metrics_take_look(request->server);
    request->look = look;
    request->listing = repository_ref_index(&request->serving->repository);
    return work_leave_loop(request, err);
}
