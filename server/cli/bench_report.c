/* SPDX-License-Identifier: MIT */
/* The text for people: some lines for a single step, or a table with a row for each. */
#include "config.h"

#include "server/cli/bench_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/cli/bench_fields.h"
#include "server/process/amount.h"

#define CELL_MAX 24
#define COLUMN_BYTES 9 /* of a table, with the blank before it */
#define NS_PER_MS 1e6
#define NS_PER_S 1e9

/* ---- numbers --------------------------------------------------------------------------------- */

/* Four digits, in ms. */
static const char *print_ms(double ns, char text[CELL_MAX])
{
    double ms = ns / NS_PER_MS;
    int decimals = ms < 9.9995 ? 3 : ms < 99.995 ? 2 : ms < 999.95 ? 1 : 0;
    snprintf(text, CELL_MAX, "%.*f", decimals, ms);
    return text;
}

/* A rate with as many digits as are of use. */
static const char *print_rate(double rate, char text[CELL_MAX])
{
    char digits[AMOUNT_TEXT_MAX];
    if (rate >= 1000) {
        snprintf(text, CELL_MAX, "%s", amount_count((uint64_t)(rate + 0.5), digits));
    } else {
        snprintf(text, CELL_MAX, rate >= 100 ? "%.1f" : "%.2f", rate);
    }
    return text;
}

static double share_of(uint64_t part, uint64_t all)
{
    return all ? 100 * (double)part / (double)all : 0;
}

static uint64_t late(const struct bench_result *result)
{
    return result->waited + result->delayed;
}

void bench_report_print_failures(const struct bench_result *result, struct buf *out)
{
    const char *before = "";
    for (uint32_t i = 0; i < BENCH_STATUSES; i++) {
        if (result->statuses[i] && i != 200) {
            buf_printf(out, "%sHTTP %u (%" PRIu64 ")", before, i, result->statuses[i]);
            before = ", ";
        }
    }
    for (uint32_t i = 0; i < BENCH_FAILURES; i++) {
        if (result->failures[i]) {
            buf_printf(out, "%s%s (%" PRIu64 ")", before, bench_failure_texts[i],
                       result->failures[i]);
            before = ", ";
        }
    }
    if (result->unsent) {
        buf_printf(out, "%snever sent (%" PRIu64 ")", before, result->unsent);
    }
}

/* ---- what was measured ----------------------------------------------------------------------- */

static void print_loop(const struct bench_report *report, struct buf *out)
{
    const struct bench_run *run = &report->steps[0].run;
    char rate[CELL_MAX];
    bool is_sweep = report->count > 1;
    if (run->is_open) {
        buf_printf(out, "open loop%s%s%s, %s arrivals, at most %u requests under way",
                   is_sweep ? "" : ", ", is_sweep ? "" : print_rate(run->rate, rate),
                   is_sweep ? "" : " requests/s", run->is_poisson ? "Poisson" : "fixed",
                   run->connections);
    } else if (is_sweep) {
        buf_add_str(out, "closed loop");
    } else {
        buf_printf(out, "closed loop, %u client%s", run->connections,
                   run->connections == 1 ? "" : "s");
    }
    if (report->warm_up_ms) {
        buf_printf(out, ", after %.1f s of warm-up", (double)report->warm_up_ms / 1000);
    }
}

static void print_inputs(const struct bench_bodies *bodies, struct buf *out)
{
    buf_printf(out, "inputs   ");
    size_t before = out->len;
    bench_bodies_print_inputs(bodies, false, out);
    buf_add_str(out, out->len == before ? " none" : "");
    buf_printf(out, ", %s", bodies->is_json ? "as JSON" : "binary");
}

static void print_prompts(const struct bench_prompts_options *prompts, struct buf *out)
{
    buf_add_str(out, "prompts   ");
    if (prompts->file) {
        buf_add_str(out, prompts->file);
    } else {
        bench_lengths_print(&prompts->prompts, out);
    }
    buf_add_str(out, "; answers ");
    bench_lengths_print(&prompts->answers, out);
}

static void print_head(const struct bench_report *report, struct buf *out)
{
    buf_printf(out, "model     %s at %s%s%s%s\n", report->model, report->target,
               report->server[0] ? " (" : "", report->server, report->server[0] ? ")" : "");
    if (report->prompts) {
        print_prompts(report->prompts, out);
    } else {
        print_inputs(report->bodies, out);
    }
    if (report->bodies->count > 1) {
        buf_printf(out, ", %u different requests", report->bodies->count);
    }
    buf_add_str(out, "\nload      ");
    print_loop(report, out);
    buf_add_str(out, "\n\n");
}

/* ---- one step -------------------------------------------------------------------------------- */

static void print_requests(const struct bench_report *report, const struct bench_result *result,
                           struct buf *out)
{
    char count[AMOUNT_TEXT_MAX], rate[CELL_MAX], more[AMOUNT_TEXT_MAX];
    buf_printf(out, "requests  %s answered in %.2f s, %s a second\n",
               amount_count(result->ok, count), (double)result->ns / NS_PER_S,
               print_rate(bench_per_second(result->ok, result), rate));
    if (report->has_rows) {
        buf_printf(out, "rows      %s, %s a second\n", amount_count(result->rows, count),
                   print_rate(bench_per_second(result->rows, result), rate));
    }
    buf_printf(out, "bodies    %s/s sent, %s/s received\n",
               amount_bytes((uint64_t)bench_per_second(result->sent_bytes, result), count),
               amount_bytes((uint64_t)bench_per_second(result->received_bytes, result), more));
}

/* As vLLM's bench has it, and pp and tg of llama.cpp's: prompts up to the first token, and tokens
 * behind it, of one request. */
static void print_tokens(const struct bench_result *result, struct buf *out)
{
    const struct bench_language *language = &result->language;
    char count[AMOUNT_TEXT_MAX], more[AMOUNT_TEXT_MAX], rate[CELL_MAX];
    uint64_t all = language->prompt_tokens + language->answer_tokens;
    if (language->uncounted) {
        buf_printf(out, "tokens    the server did not count those of %s of %s answers\n",
                   amount_count(language->uncounted, count),
                   amount_count(language->ttft.count, more));
        return;
    }
    buf_printf(out, "tokens    %s of prompts", amount_count(language->prompt_tokens, count));
    buf_printf(out, ", %s of answers, ", amount_count(language->answer_tokens, count));
    buf_printf(out, "%s output tok/s, ",
               print_rate(bench_per_second(language->answer_tokens, result), rate));
    buf_printf(out, "%s total tok/s\n", print_rate(bench_per_second(all, result), rate));
    double pp = bench_tokens_per_second(language->prompt_tokens, language->first_ns);
    double tg = bench_tokens_per_second(language->later_tokens, language->later_ns);
    buf_printf(out, "request   pp %s t/s", print_rate(pp, rate));
    buf_printf(out, ", tg %s t/s\n", print_rate(tg, rate));
}

static void print_problems(const struct bench_step *step, struct buf *out)
{
    const struct bench_result *result = &step->result;
    char count[AMOUNT_TEXT_MAX], ms[CELL_MAX];
    uint64_t failed = bench_result_failed(result);
    if (failed) {
        buf_printf(out, "failed    %s: ", amount_count(failed, count));
        bench_report_print_failures(result, out);
        buf_add_char(out, '\n');
    }
    if (result->abandoned) {
        buf_printf(out, "abandoned %s requests under way at the end\n",
                   amount_count(result->abandoned, count));
    }
    if (step->run.is_open) {
        buf_printf(out, "late      %s began more than 1 ms after they were due (%.1f %%)",
                   amount_count(late(result), count), share_of(late(result), result->begun));
        if (late(result)) {
            buf_printf(out, ", at most %s ms:", print_ms((double)result->late_ns_max, ms));
            buf_printf(out, " %s waited for an answer on each connection,",
                       amount_count(result->waited, count));
            buf_printf(out, " %s for the bench", amount_count(result->delayed, count));
        }
        buf_add_char(out, '\n');
    }
}

static void print_bench(const struct bench_result *result, struct buf *out)
{
    char count[AMOUNT_TEXT_MAX];
    buf_printf(out, "bench     ran %.0f %% of the time", 100 * bench_processor_share(result));
    if (result->ns && result->starved_ns > result->ns / 20) {
        buf_printf(out, " and waited for a processor %.0f %%",
                   100 * (double)result->starved_ns / (double)result->ns);
    }
    buf_printf(out, ", %s new connections\n", amount_count(result->connects, count));
}

static void print_server(const struct bench_step *step, struct buf *out)
{
    const struct bench_stats *stats = &step->stats;
    char count[AMOUNT_TEXT_MAX];
    if (!step->has_stats) {
        return;
    }
    buf_printf(out, "server    %s rows", amount_count(stats->inferences, count));
    buf_printf(out, " in %s executions", amount_count(stats->executions, count));
    if (stats->executions) {
        buf_printf(out, ", %.2f rows each", (double)stats->inferences / (double)stats->executions);
    }
    if (stats->failed) {
        buf_printf(out, "; %s requests failed", amount_count(stats->failed, count));
    }
    if (stats->requests) {
        double us = 1000.0 * (double)stats->requests;
        double rest = (double)stats->total_ns - (double)stats->prepare_ns -
                      (double)stats->decode_ns - (double)stats->queue_ns -
                      (double)stats->compute_ns;
        buf_printf(out, "\n          a request: %.1f us = %.1f prepare",
                   (double)stats->total_ns / us, (double)stats->prepare_ns / us);
        if (stats->decode_ns) {
            buf_printf(out, " + %.1f decode", (double)stats->decode_ns / us);
        }
        buf_printf(out, " + %.1f queue + %.1f compute + %.1f encode and send",
                   (double)stats->queue_ns / us, (double)stats->compute_ns / us,
                   rest > 0 ? rest / us : 0);
    }
    buf_add_char(out, '\n');
}

static void print_times(const char *name, const struct bench_histogram *latency, struct buf *out)
{
    char ms[CELL_MAX];
    if (latency->count == 0) {
        return;
    }
    buf_printf(out, "%7s %8s", name, print_ms((double)latency->min_ns, ms));
    buf_printf(out, " %8s", print_ms(bench_histogram_mean(latency), ms));
    for (uint32_t i = 0; i < BENCH_SHARES; i++) {
        double ns = (double)bench_histogram_at(latency, bench_shares[i].share);
        buf_printf(out, " %7s", print_ms(ns, ms));
    }
    buf_add_char(out, '\n');
}

static void print_latency(const struct bench_report *report, const struct bench_result *result,
                          struct buf *out)
{
    const struct bench_language *language = &result->language;
    if (result->latency.count == 0) {
        return;
    }
    buf_printf(out, "\n%7s %8s %8s", report->prompts ? "in ms" : "latency", "min", "mean");
    for (uint32_t i = 0; i < BENCH_SHARES; i++) {
        buf_printf(out, " %7s", bench_shares[i].name);
    }
    buf_add_char(out, '\n');
    print_times("TTFT", &language->ttft, out);
    print_times("TPOT", &language->tpot, out);
    print_times("ITL", &language->itl, out);
    print_times(report->prompts ? "E2EL" : "in ms", &result->latency, out);
}

static void print_single(const struct bench_report *report, struct buf *out)
{
    const struct bench_step *step = &report->steps[0];
    print_requests(report, &step->result, out);
    if (report->prompts) {
        print_tokens(&step->result, out);
    }
    print_problems(step, out);
    print_server(step, out);
    print_bench(&step->result, out);
    print_latency(report, &step->result, out);
}

/* ---- a table --------------------------------------------------------------------------------- */

enum column_need { ALWAYS, ROWS, OPEN, STATS, TENSORS, LANGUAGE };

typedef void print_cell_f(const struct bench_step *step, char text[CELL_MAX]);

static void print_asked(const struct bench_step *step, char text[CELL_MAX])
{
    print_rate(step->run.is_open ? step->run.rate : step->run.connections, text);
    if (!step->run.is_open) {
        snprintf(text, CELL_MAX, "%u", step->run.connections);
    }
}

static void print_reached(const struct bench_step *step, char text[CELL_MAX])
{
    print_rate(bench_per_second(step->result.ok, &step->result), text);
}

static void print_rows(const struct bench_step *step, char text[CELL_MAX])
{
    print_rate(bench_per_second(step->result.rows, &step->result), text);
}

static void print_failed(const struct bench_step *step, char text[CELL_MAX])
{
    char count[AMOUNT_TEXT_MAX];
    snprintf(text, CELL_MAX, "%s", amount_count(bench_result_failed(&step->result), count));
}

static void print_late(const struct bench_step *step, char text[CELL_MAX])
{
    snprintf(text, CELL_MAX, "%.1f", share_of(late(&step->result), step->result.begun));
}

static void print_share(const struct bench_step *step, uint32_t index, char text[CELL_MAX])
{
    const struct bench_histogram *latency = &step->result.latency;
    snprintf(text, CELL_MAX, "-");
    if (latency->count) {
        print_ms((double)bench_histogram_at(latency, bench_shares[index].share), text);
    }
}

#define SHARE(index)                                                                               \
    static void print_share_##index(const struct bench_step *step, char text[CELL_MAX])            \
    {                                                                                              \
        print_share(step, index, text);                                                            \
    }
SHARE(0)
SHARE(1)
SHARE(3)
SHARE(4)
SHARE(5)
SHARE(6)
#undef SHARE

static void print_batch(const struct bench_step *step, char text[CELL_MAX])
{
    const struct bench_stats *stats = &step->stats;
    snprintf(text, CELL_MAX, "-");
    if (stats->executions) {
        snprintf(text, CELL_MAX, "%.2f", (double)stats->inferences / (double)stats->executions);
    }
}

static void print_mean(uint64_t ns, const struct bench_step *step, char text[CELL_MAX])
{
    snprintf(text, CELL_MAX, "-");
    if (step->stats.requests) {
        print_ms((double)ns / (double)step->stats.requests, text);
    }
}

static void print_queue(const struct bench_step *step, char text[CELL_MAX])
{
    print_mean(step->stats.queue_ns, step, text);
}

static void print_compute(const struct bench_step *step, char text[CELL_MAX])
{
    print_mean(step->stats.compute_ns, step, text);
}

static void print_output(const struct bench_step *step, char text[CELL_MAX])
{
    const struct bench_language *language = &step->result.language;
    snprintf(text, CELL_MAX, "-");
    if (language->uncounted == 0) {
        print_rate(bench_per_second(language->answer_tokens, &step->result), text);
    }
}

static void print_part(const struct bench_histogram *times, uint32_t share, char text[CELL_MAX])
{
    snprintf(text, CELL_MAX, "-");
    if (times->count) {
        print_ms((double)bench_histogram_at(times, share), text);
    }
}

#define TIME(name, share)                                                                          \
    static void print_##name##_##share(const struct bench_step *step, char text[CELL_MAX])         \
    {                                                                                              \
        print_part(&step->result.language.name, (share)*1000, text);                               \
    }
TIME(ttft, 50)
TIME(ttft, 99)
TIME(tpot, 50)
TIME(itl, 50)
TIME(itl, 99)
#undef TIME

static void print_processor(const struct bench_step *step, char text[CELL_MAX])
{
    snprintf(text, CELL_MAX, "%.0f", 100 * bench_processor_share(&step->result));
}

/* Where the window is too narrow, columns of the highest |rank| are left out first. */
static const struct column {
    const char *name;
    print_cell_f *print;
    enum column_need need;
    int rank;
} columns[] = {
    {NULL, print_asked, ALWAYS, 0},           {"req/s", print_reached, ALWAYS, 0},
    {"rows/s", print_rows, ROWS, 5},          {"failed", print_failed, ALWAYS, 1},
    {"late %", print_late, OPEN, 2},          {"tok/s", print_output, LANGUAGE, 0},
    {"TTFT p50", print_ttft_50, LANGUAGE, 1}, {"TTFT p99", print_ttft_99, LANGUAGE, 1},
    {"TPOT p50", print_tpot_50, LANGUAGE, 2}, {"ITL p50", print_itl_50, LANGUAGE, 3},
    {"ITL p99", print_itl_99, LANGUAGE, 1},   {"E2EL p50", print_share_0, LANGUAGE, 2},
    {"E2EL p99", print_share_3, LANGUAGE, 1}, {"p50", print_share_0, TENSORS, 1},
    {"p90", print_share_1, TENSORS, 6},       {"p99", print_share_3, TENSORS, 1},
    {"p99.9", print_share_4, TENSORS, 3},     {"p99.99", print_share_5, TENSORS, 7},
    {"max", print_share_6, TENSORS, 4},       {"batch", print_batch, STATS, 5},
    {"queue", print_queue, STATS, 6},         {"compute", print_compute, STATS, 6},
    {"bench %", print_processor, ALWAYS, 4},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static bool has_stats(const struct bench_report *report)
{
    for (uint32_t i = 0; i < report->count; i++) {
        if (report->steps[i].has_stats) {
            return true;
        }
    }
    return false;
}

static bool is_uncounted(const struct bench_report *report)
{
    for (uint32_t i = 0; i < report->count; i++) {
        if (report->steps[i].result.language.uncounted) {
            return true;
        }
    }
    return false;
}

static bool is_needed(const struct bench_report *report, const struct column *column)
{
    switch (column->need) {
    case ROWS:
        return report->has_rows;
    case OPEN:
        return report->steps[0].run.is_open;
    case STATS:
        return has_stats(report);
    case TENSORS:
        return !report->prompts;
    case LANGUAGE:
        return report->prompts != NULL;
    case ALWAYS:
        break;
    }
    return true;
}

static uint32_t count_columns(const struct bench_report *report, int rank_max)
{
    uint32_t count = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        count += is_needed(report, &columns[i]) && columns[i].rank <= rank_max;
    }
    return count;
}

/* The highest rank with which the table fits. */
static int choose_rank(const struct bench_report *report, uint32_t width)
{
    int rank = 9;
    while (rank > 0 && count_columns(report, rank) * COLUMN_BYTES > width) {
        rank--;
    }
    return rank;
}

static void print_table_row(const struct bench_report *report, const struct bench_step *step,
                            int rank, struct buf *out)
{
    char text[CELL_MAX];
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *column = &columns[i];
        if (!is_needed(report, column) || column->rank > rank) {
            continue;
        }
        if (step) {
            column->print(step, text);
        } else {
            snprintf(text, sizeof(text), "%s",
                     column->name                   ? column->name
                     : report->steps[0].run.is_open ? "rate"
                                                    : "clients");
        }
        buf_printf(out, "%*s", i ? COLUMN_BYTES : COLUMN_BYTES - 1, text);
    }
    buf_add_char(out, '\n');
}

static void print_table(const struct bench_report *report, uint32_t width, struct buf *out)
{
    int rank = choose_rank(report, width);
    print_table_row(report, NULL, rank, out);
    for (uint32_t i = 0; i < report->count; i++) {
        print_table_row(report, &report->steps[i], rank, out);
    }
    buf_add_str(out, "times in ms");
    buf_add_str(out, has_stats(report) ? "; of the server: batch, the rows of an execution; queue "
                                         "and compute of a request\n"
                                       : "\n");
    if (is_uncounted(report)) {
        buf_add_str(out, "tok/s is unknown where the server did not count the tokens of answers\n");
    }
}

void bench_report_print(const struct bench_report *report, uint32_t width, struct buf *out)
{
    if (report->count == 0) {
        return;
    }
    print_head(report, out);
    if (report->count == 1) {
        print_single(report, out);
    } else {
        print_table(report, width, out);
    }
}
