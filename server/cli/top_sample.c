/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/remote.h"
#include "server/cli/top.h"
#include "server/process/document.h"

#define VALUES_MAX 2000000
#define NUMBER_BYTES 64
#define US_PER_NS 1e-3

/* ---- reading --------------------------------------------------------------------------------- */

/* The number at |key|, or at |key|.|inner|; 0 where the server has none. */
static enum status read_number(const struct document *document, const struct cJSON *object,
                               const char *key, const char *inner, uint64_t *out, struct error *err)
{
    const struct cJSON *value = document_find(object, key);
    *out = 0;
    if (value && inner) {
        TRY(document_need(document, value, JSON_OBJECT, err));
        value = document_find(value, inner);
    }
    return value ? document_u64(document, value, UINT64_MAX, out, err) : ST_OK;
}

static enum status read_text(const struct document *document, const struct cJSON *object,
                             const char *key, char *out, size_t max, struct error *err)
{
    const struct cJSON *value = document_find(object, key);
    const char *text = "";
    if (value) {
        TRY(document_text(document, value, &text, err));
    }
    size_t len = strlen(text);
    if (len > max || (len > 0 && !cli_remote_is_name(span_str(text)))) {
        return document_fail(document, value, err, ST_INVALID,
                             "expected at most %zu bytes without control characters", max);
    }
    memcpy(out, text, len + 1);
    return ST_OK;
}

static enum status read_calls(const struct document *document, const struct cJSON *item,
                              struct top_row *row, struct error *err)
{
    const struct cJSON *stats = document_find(item, "inference_stats");
    if (!stats) {
        return ST_OK;
    }
    TRY(document_need(document, stats, JSON_OBJECT, err));
    TRY(read_number(document, stats, "success", "count", &row->ok, err));
    TRY(read_number(document, stats, "success", "ns", &row->total_ns, err));
    TRY(read_number(document, stats, "fail", "count", &row->failed, err));
    TRY(read_number(document, stats, "queue", "count", &row->queue_count, err));
    TRY(read_number(document, stats, "queue", "ns", &row->queue_ns, err));
    TRY(read_number(document, stats, "compute_infer", "count", &row->compute_count, err));
    return read_number(document, stats, "compute_infer", "ns", &row->compute_ns, err);
}

/* Without |row->runs| in "batch_stats", each row that was answered was in one execution. */
static enum status read_batches(const struct document *document, const struct cJSON *item,
                                struct top_row *row, struct error *err)
{
    const struct cJSON *list = document_find(item, "batch_stats");
    uint64_t runs = 0, rows = 0, size, count;
    row->run_rows = row->rows;
    if (!list) {
        return ST_OK;
    }
    TRY(document_need(document, list, JSON_ARRAY, err));
    for (item = document_first(list); item; item = document_next(item)) {
        TRY(document_need(document, item, JSON_OBJECT, err));
        TRY(read_number(document, item, "batch_size", NULL, &size, err));
        TRY(read_number(document, item, "compute_infer", "count", &count, err));
        runs += count;
        rows += size * count;
    }
    row->run_rows = runs == row->runs ? rows : row->rows;
    return ST_OK;
}

static enum status read_row(const struct document *document, const struct cJSON *item,
                            struct top_row *row, struct error *err)
{
    TRY(document_need(document, item, JSON_OBJECT, err));
    TRY(read_text(document, item, "name", row->name, TARGET_NAME_MAX, err));
    TRY(read_text(document, item, "version", row->version, TARGET_VERSION_MAX, err));
    TRY(read_number(document, item, "inference_count", NULL, &row->rows, err));
    TRY(read_number(document, item, "execution_count", NULL, &row->runs, err));
    TRY(read_batches(document, item, row, err));
    TRY(read_calls(document, item, row, err));
    TRY(read_number(document, item, "load", "waiting", &row->waiting, err));
    TRY(read_number(document, item, "load", "running", &row->running, err));
    return read_number(document, item, "memory", "held", &row->held_bytes, err);
}

static int compare_rows(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->version, b->version);
}

static enum status read_rows(const struct document *document, const struct cJSON *list,
                             struct top_sample *out, struct error *err)
{
    size_t count = 0;
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        count++;
    }
    if (count > TOP_ROWS_MAX) {
        return document_fail(document, list, err, ST_TOO_LARGE, "expected at most %d models",
                             TOP_ROWS_MAX);
    }
    out->rows = calloc(count + 1, sizeof(*out->rows));
    if (!out->rows) {
        return error_no_memory(err, "the statistics");
    }
    for (const struct cJSON *item = document_first(list); item; item = document_next(item)) {
        TRY(read_row(document, item, &out->rows[out->count], err));
        out->count++;
    }
    qsort(out->rows, out->count, sizeof(*out->rows), compare_rows);
    return ST_OK;
}

static enum status read_sample(const struct document *document, struct top_sample *out,
                               struct error *err)
{
    TRY(document_need(document, document->root, JSON_OBJECT, err));
    const struct cJSON *list = document_find(document->root, "model_stats");
    const struct cJSON *memory = document_find(document->root, "memory");
    if (!list) {
        return document_fail(document, document->root, err, ST_INVALID,
                             "expected a member 'model_stats'");
    }
    TRY(document_need(document, list, JSON_ARRAY, err));
    TRY(read_rows(document, list, out, err));
    if (memory && document_type(memory) == JSON_OBJECT) {
        TRY(read_number(document, memory, "used", NULL, &out->ring_used, err));
        TRY(read_number(document, memory, "bytes", NULL, &out->ring_bytes, err));
    }
    return ST_OK;
}

enum status top_sample_parse(struct span json, struct top_sample *out, struct error *err)
{
    const struct document_limits limits = {TRANSFER_TEXT_BYTES_MAX, VALUES_MAX};
    struct document document;
    *out = (struct top_sample){.rows = NULL};
    TRY(document_parse(json, &limits, &document, err));
    enum status status = read_sample(&document, out, err);
    document_close(&document);
    if (status != ST_OK) {
        top_sample_fini(out);
    }
    return status;
}

void top_sample_fini(struct top_sample *sample)
{
    free(sample->rows);
    sample->rows = NULL;
    sample->count = 0;
}

/* ---- /metrics -------------------------------------------------------------------------------- */

/* The value of a metric without labels; 0: there is none. */
static uint64_t find_metric(struct span page, const char *name)
{
    char number[NUMBER_BYTES];
    size_t len = strlen(name);
    for (size_t at = 0; at < page.len;) {
        const uint8_t *end = memchr(page.ptr + at, '\n', page.len - at);
        struct span line =
            span_of(page.ptr + at, end ? (size_t)(end - page.ptr) - at : page.len - at);
        if (line.len > len && memcmp(line.ptr, name, len) == 0 && line.ptr[len] == ' ') {
            snprintf(number, sizeof(number), "%.*s",
                     SPAN_SHORT(span_of(line.ptr + len + 1, line.len - len - 1)));
            double value = strtod(number, NULL);
            return value > 0 && value < 1e18 ? (uint64_t)value : 0;
        }
        at += line.len + 1;
    }
    return 0;
}

void top_sample_take_metrics(struct top_sample *sample, struct span page)
{
    sample->resident_bytes = find_metric(page, "process_resident_memory_bytes");
    sample->start_s = find_metric(page, "process_start_time_seconds");
}

/* ---- between two ----------------------------------------------------------------------------- */

/* Has a counter gone back? Then all of them began anew. */
static bool has_begun_anew(const struct top_row *before, const struct top_row *now)
{
    return now->ok < before->ok || now->failed < before->failed || now->rows < before->rows ||
           now->runs < before->runs || now->total_ns < before->total_ns ||
           now->queue_count < before->queue_count || now->queue_ns < before->queue_ns ||
           now->compute_count < before->compute_count || now->compute_ns < before->compute_ns;
}

/* A sum that a server did not count this time can have gone back by itself. */
static double grown(uint64_t before, uint64_t now)
{
    return now > before ? (double)(now - before) : 0;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void compare(const struct top_row *before, const struct top_row *now, double seconds,
                    struct top_rate *out)
{
    static const struct top_row none;
    before = before && !has_begun_anew(before, now) ? before : &none;
    double ok = grown(before->ok, now->ok), failed = grown(before->failed, now->failed);
    double rows = grown(before->rows, now->rows);
    *out = (struct top_rate){
        .row = now,
        .requests_s = ratio(ok + failed, seconds),
        .rows_s = ratio(rows, seconds),
        .errors_s = ratio(failed, seconds),
        .batch = ratio(grown(before->run_rows, now->run_rows), grown(before->runs, now->runs)),
        .queue_us = ratio(grown(before->queue_ns, now->queue_ns) * US_PER_NS,
                          grown(before->queue_count, now->queue_count)),
        .compute_us = ratio(grown(before->compute_ns, now->compute_ns) * US_PER_NS,
                            grown(before->compute_count, now->compute_count)),
        .total_us = ratio(grown(before->total_ns, now->total_ns) * US_PER_NS, ok),
    };
}

static int compare_rates(const void *left, const void *right)
{
    const struct top_rate *a = left, *b = right;
    if (a->requests_s != b->requests_s) {
        return a->requests_s < b->requests_s ? 1 : -1;
    }
    uint64_t busy_a = a->row->waiting + a->row->running, busy_b = b->row->waiting + b->row->running;
    return busy_a != busy_b ? (busy_a < busy_b ? 1 : -1) : compare_rows(a->row, b->row);
}

void top_compare(const struct top_sample *before, const struct top_sample *now,
                 struct top_rate *rates)
{
    double seconds = (double)(now->at_ns - before->at_ns) * 1e-9;
    for (uint32_t i = 0; i < now->count; i++) {
        const struct top_row *old = before->count
                                        ? bsearch(&now->rows[i], before->rows, before->count,
                                                  sizeof(*before->rows), compare_rows)
                                        : NULL;
        compare(old, &now->rows[i], seconds, &rates[i]);
    }
    qsort(rates, now->count, sizeof(*rates), compare_rates);
}
