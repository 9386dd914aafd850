/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_compare.h"

#include <string.h>

#include "server/cli/bench_fields.h"

#define BYTES_MAX ((size_t)16 << 20)
#define VALUES_MAX (1u << 20)
#define CHANGE_MAX 1e6 /* in %; nothing is said of more */

/* What is compared, if both have it. */
static const char *const names[] = {
    "requests_per_s",
    "rows_per_s",
    "output_throughput",
    "pp",
    "tg",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "p99_itl_ms",
    "mean_ms",
    "p50_ms",
    "p99_ms",
};

static const struct cJSON *first_step(const struct document *document)
{
    const struct cJSON *steps = document_find(document->root, "steps");
    return steps && document_type(steps) == JSON_ARRAY ? document_first(steps) : NULL;
}

enum status bench_compare_open(const char *path, struct document *out, struct error *err)
{
    const struct document_limits limits = {BYTES_MAX, VALUES_MAX};
    TRY(document_open(path, &limits, out, err));
    if (first_step(out)) {
        return ST_OK;
    }
    document_close(out);
    return error_set(err, ST_INVALID, "expected a document that --json has written");
}

static bool find_number(const struct document *document, const struct cJSON *step, const char *name,
                        double *out)
{
    struct error ignored;
    const struct cJSON *value = document_find(step, name);
    return value && document_type(value) == JSON_NUMBER &&
           document_f64(document, value, out, &ignored) == ST_OK;
}

/* The step of the same load; NULL: there is none. */
static const struct cJSON *find_step(const struct document *before, const struct bench_run *run)
{
    const char *name = run->is_open ? "rate" : "clients";
    double wanted = run->is_open ? run->rate : run->connections, value;
    for (const struct cJSON *at = first_step(before); at; at = document_next(at)) {
        double far = 0;
        if (find_number(before, at, name, &value)) {
            far = value > wanted ? value - wanted : wanted - value;
            if (far <= wanted / 1000) {
                return at;
            }
        }
    }
    return NULL;
}

static const struct bench_field *find_field(const struct bench_field *fields, uint32_t count,
                                            const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!fields[i].is_absent && strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static void print_step(const struct document *before, const struct bench_step *step,
                       struct buf *out)
{
    struct bench_field fields[BENCH_FIELDS_MAX];
    uint32_t count = bench_fields_collect(step, fields);
    const struct cJSON *old = find_step(before, &step->run);
    double asked = step->run.is_open ? step->run.rate : step->run.connections, value;
    for (size_t i = 0; old && i < sizeof(names) / sizeof(names[0]); i++) {
        const struct bench_field *now = find_field(fields, count, names[i]);
        bool is_both = now && find_number(before, old, names[i], &value);
        if (!is_both || (value == 0 && now->value == 0)) {
            continue;
        }
        buf_printf(out, "%8.6g %-18s %12.6g %12.6g", asked, names[i], value, now->value);
        double change = value > 0 ? 100 * ((now->value - value) / value) : CHANGE_MAX;
        if (change < CHANGE_MAX) {
            buf_printf(out, " %+8.1f %%", change);
        }
        buf_add_char(out, '\n');
    }
}

void bench_compare_print(const struct document *before, const struct bench_report *report,
                         struct buf *out)
{
    size_t begin, head;
    if (report->count == 0) {
        return;
    }
    begin = out->len;
    buf_printf(out, "\n%8s %-18s %12s %12s %10s\n",
               report->steps[0].run.is_open ? "rate" : "clients", "figure", "before", "now",
               "change");
    head = out->len;
    for (uint32_t i = 0; i < report->count; i++) {
        print_step(before, &report->steps[i], out);
    }
    if (out->len == head) {
        out->len = begin;
        buf_add_str(out, "\nthe run before had no step of such a load\n");
    }
}
