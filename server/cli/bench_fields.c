/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_fields.h"

#include "base/check.h"

#define NS_PER_MS 1e6
#define NS_PER_US 1e3
#define NS_PER_S 1e9

const struct bench_share bench_shares[BENCH_SHARES] = {
    {"p50", "p50_ms", 50000},           {"p90", "p90_ms", 90000},
    {"p95", "p95_ms", 95000},           {"p99", "p99_ms", 99000},
    {"p99.9", "p99_9_ms", 99900},       {"p99.99", "p99_99_ms", 99990},
    {"max", "max_ms", BENCH_SHARE_ALL},
};

double bench_per_second(uint64_t count, const struct bench_result *result)
{
    return result->ns ? (double)count * NS_PER_S / (double)result->ns : 0;
}

double bench_processor_share(const struct bench_result *result)
{
    return result->ns ? (double)result->cpu_ns / (double)result->ns : 0;
}

struct list_of_fields {
    struct bench_field *items;
    uint32_t count;
};

static void add(struct list_of_fields *list, const char *name, double value, int decimals,
                bool is_absent)
{
    must(list->count < BENCH_FIELDS_MAX);
    list->items[list->count++] = (struct bench_field){name, value, decimals, is_absent};
}

static void add_load(struct list_of_fields *list, const struct bench_step *step)
{
    const struct bench_run *run = &step->run;
    const struct bench_result *result = &step->result;
    add(list, "clients", run->connections, 0, run->is_open);
    add(list, "rate", run->rate, 3, !run->is_open);
    add(list, "seconds", (double)result->ns / NS_PER_S, 6, false);
    add(list, "requests", (double)result->begun, 0, false);
    add(list, "ok", (double)result->ok, 0, false);
    add(list, "failed", (double)bench_result_failed(result), 0, false);
    add(list, "unsent", (double)result->unsent, 0, !run->is_open);
    add(list, "abandoned", (double)result->abandoned, 0, false);
    add(list, "requests_per_s", bench_per_second(result->ok, result), 3, false);
    add(list, "rows_per_s", bench_per_second(result->rows, result), 3, false);
    add(list, "sent_bytes", (double)result->sent_bytes, 0, false);
    add(list, "received_bytes", (double)result->received_bytes, 0, false);
    add(list, "connects", (double)result->connects, 0, false);
    add(list, "late_waited", (double)result->waited, 0, !run->is_open);
    add(list, "late_bench", (double)result->delayed, 0, !run->is_open);
    add(list, "late_max_ms", (double)result->late_ns_max / NS_PER_MS, 6, !run->is_open);
    add(list, "bench_processor", bench_processor_share(result), 4, false);
    add(list, "bench_starved", result->ns ? (double)result->starved_ns / (double)result->ns : 0, 4,
        false);
}

static void add_latency(struct list_of_fields *list, const struct bench_histogram *latency)
{
    bool has_none = latency->count == 0;
    add(list, "min_ms", (double)latency->min_ns / NS_PER_MS, 6, has_none);
    add(list, "mean_ms", bench_histogram_mean(latency) / NS_PER_MS, 6, has_none);
    for (uint32_t i = 0; i < BENCH_SHARES; i++) {
        double ns = (double)bench_histogram_at(latency, bench_shares[i].share);
        add(list, bench_shares[i].field, ns / NS_PER_MS, 6, has_none);
    }
}

static void add_server(struct list_of_fields *list, const struct bench_step *step)
{
    const struct bench_stats *stats = &step->stats;
    bool has_none = !step->has_stats, is_idle = has_none || stats->requests == 0;
    double requests = is_idle ? 1 : (double)stats->requests;
    add(list, "server_requests", (double)stats->requests, 0, has_none);
    add(list, "server_failed", (double)stats->failed, 0, has_none);
    add(list, "server_rows", (double)stats->inferences, 0, has_none);
    add(list, "server_executions", (double)stats->executions, 0, has_none);
    add(list, "server_batch_rows",
        stats->executions ? (double)stats->inferences / (double)stats->executions : 0, 3,
        has_none || stats->executions == 0);
    add(list, "server_total_us", (double)stats->total_ns / requests / NS_PER_US, 3, is_idle);
    add(list, "server_prepare_us", (double)stats->prepare_ns / requests / NS_PER_US, 3, is_idle);
    add(list, "server_decode_us", (double)stats->decode_ns / requests / NS_PER_US, 3, is_idle);
    add(list, "server_queue_us", (double)stats->queue_ns / requests / NS_PER_US, 3, is_idle);
    add(list, "server_compute_us", (double)stats->compute_ns / requests / NS_PER_US, 3, is_idle);
    add(list, "server_encode_us", (double)stats->encode_ns / requests / NS_PER_US, 3, is_idle);
}

double bench_tokens_per_second(uint64_t tokens, uint64_t ns)
{
    return ns ? (double)tokens * NS_PER_S / (double)ns : 0;
}

/* The names of vLLM's bench, and pp and tg as llama.cpp's has them. */
static void add_language(struct list_of_fields *list, const struct bench_result *result)
{
    const struct bench_language *language = &result->language;
    bool has_none = language->ttft.count == 0;
    bool has_no_tokens = has_none || language->uncounted > 0;
    uint64_t all = language->prompt_tokens + language->answer_tokens;
    const struct {
        const char *mean, *median, *p90, *p99;
        const struct bench_histogram *times;
    } rows[] = {
        {"mean_ttft_ms", "median_ttft_ms", "p90_ttft_ms", "p99_ttft_ms", &language->ttft},
        {"mean_tpot_ms", "median_tpot_ms", "p90_tpot_ms", "p99_tpot_ms", &language->tpot},
        {"mean_itl_ms", "median_itl_ms", "p90_itl_ms", "p99_itl_ms", &language->itl},
        {"mean_e2el_ms", "median_e2el_ms", "p90_e2el_ms", "p99_e2el_ms", &result->latency},
    };
    add(list, "total_input_tokens", (double)language->prompt_tokens, 0, has_no_tokens);
    add(list, "total_output_tokens", (double)language->answer_tokens, 0, has_no_tokens);
    add(list, "output_throughput", bench_per_second(language->answer_tokens, result), 3,
        has_no_tokens);
    add(list, "total_token_throughput", bench_per_second(all, result), 3, has_no_tokens);
    add(list, "pp", bench_tokens_per_second(language->prompt_tokens, language->first_ns), 3,
        has_no_tokens);
    add(list, "tg", bench_tokens_per_second(language->later_tokens, language->later_ns), 3,
        has_no_tokens);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct bench_histogram *times = rows[i].times;
        bool is_empty = has_none || times->count == 0;
        add(list, rows[i].mean, bench_histogram_mean(times) / NS_PER_MS, 6, is_empty);
        add(list, rows[i].median, (double)bench_histogram_at(times, 50000) / NS_PER_MS, 6,
            is_empty);
        add(list, rows[i].p90, (double)bench_histogram_at(times, 90000) / NS_PER_MS, 6, is_empty);
        add(list, rows[i].p99, (double)bench_histogram_at(times, 99000) / NS_PER_MS, 6, is_empty);
    }
}

uint32_t bench_fields_collect(const struct bench_step *step,
                              struct bench_field fields[BENCH_FIELDS_MAX])
{
    struct list_of_fields list = {fields, 0};
    add_load(&list, step);
    add_latency(&list, &step->result.latency);
    add_server(&list, step);
    add_language(&list, &step->result);
    return list.count;
}
