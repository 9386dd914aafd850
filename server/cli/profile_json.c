/* SPDX-License-Identifier: MIT */
/* `pte profile --json` and `--trace`. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/table.h"
#include "protocol/json.h"
#include "server/cli/call.h"
#include "server/cli/profile.h"
#include "server/profile/layers.h"

#define PROFILE_FORMAT 1
/* Tracks behind the tracks of threads: calls, and a device other than the CPU. */
#define TRACE_CALLS 1000000
#define TRACE_DEVICE 1000001

static void print_text(struct buf *out, const char *before, const char *key, struct span text)
{
    buf_printf(out, "%s\"%s\":", before, key);
    json_print_string(out, text);
}

/* ---- the object ------------------------------------------------------------------------------ */

static void print_times(const struct cli_profile *p, struct buf *out)
{
    static const struct {
        const char *name;
        double q;
    } rows[] = {{"median", 0.5}, {"p10", 0.1}, {"p90", 0.9}, {"min", 0}, {"max", 1}};
    buf_add_str(out, ",\"call_us\":");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        buf_printf(out, "%s\"%s\":%.3f", i ? "," : "{", rows[i].name,
                   (double)cli_call_quantile(p->sorted_ns, p->call_count, rows[i].q) / 1000);
    }
    buf_add_char(out, '}');
}

static void print_peaks(const struct pted_peaks *peaks, struct buf *out)
{
    buf_printf(out,
               ",\"peak\":{\"float32_flops\":%.0f,\"bfloat16_flops\":%.0f,\"integer_ops\":%.0f,"
               "\"read_bytes\":%.0f}",
               2 * peaks->float32_macs, 2 * peaks->bfloat16_macs, 2 * peaks->int8_macs,
               peaks->read_bytes);
}

static struct layers_row row_at(const void *profile, uint32_t index)
{
    static const char *const numbers[] = {[PTED_NUMBERS_FLOAT32] = "float32",
                                          [PTED_NUMBERS_INT8] = "int8",
                                          [PTED_NUMBERS_BFLOAT16] = "bfloat16"};
    TABLE_ENDS_WITH(numbers, PTED_NUMBERS_BFLOAT16);
    const struct pted_profile_row *row = pted_profile_row(profile, index);
    return (struct layers_row){
        .operation = row->operation,
        .layer = row->layer,
        .source = row->source,
        .kernel = row->kernel,
        .numbers = numbers[row->numbers],
        .block = row->block,
        .node = row->node,
        .dispatches = row->dispatches,
        .busy_ns = row->busy_ns,
        .host_ns = row->host_ns,
        .macs = row->macs,
        .bytes = row->bytes,
    };
}

void cli_profile_print_json(const struct cli_profile *p, struct buf *out)
{
    buf_printf(out, "{\"format\":%d", PROFILE_FORMAT);
    print_text(out, ",", "program", span_str(p->program));
    print_text(out, ",", "method", span_str(p->method));
    print_text(out, ",", "device", span_str(pted_device_name(p->device)));
    print_text(out, ",", "description", span_str(pted_device_description(p->device)));
    buf_printf(out, ",\"workers\":%u,\"calls\":%" PRIu64, pted_device_workers(p->device),
               p->call_count);
    print_times(p, out);
    if (p->has_peaks) {
        print_peaks(&p->peaks, out);
    }
    buf_add_char(out, ',');
    layers_print_json(pted_profile_lost(p->profile), row_at, p->profile, p->row_count,
                      p->call_count, out);
    buf_add_str(out, "}\n");
}

/* ---- the trace ------------------------------------------------------------------------------- */

static void print_track(uint32_t track, const char *name, struct buf *out)
{
    buf_printf(out,
               "{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":"
               "\"%s\"}},\n",
               track, name);
}

/* Names the tracks up to that of worker |last|. */
static void print_tracks(const struct cli_profile *p, uint32_t last, struct buf *out)
{
    char name[24];
    print_track(0, "caller 0", out);
    for (uint32_t i = 1; i <= last; i++) {
        snprintf(name, sizeof(name), "worker %u", i);
        print_track(i, name, out);
    }
    if (!pted_device_is_cpu(p->device)) {
        print_track(TRACE_DEVICE, pted_device_name(p->device), out);
    }
}

/* An event on a track, its time counted from |start_ns|; its arguments follow. */
static void begin_event(const char *category, uint32_t thread, uint64_t start_ns, uint64_t begin_ns,
                        uint64_t end_ns, struct buf *out)
{
    buf_printf(out, "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f",
               thread, category, (double)(begin_ns - start_ns) / 1000,
               (double)(end_ns - begin_ns) / 1000);
}

static uint32_t track_of(const struct pted_profile_span *span)
{
    return span->thread == PTED_THREAD_DEVICE ? TRACE_DEVICE : span->thread;
}

static struct pted_profile_span span_at(const struct cli_profile *p, size_t index)
{
    struct pted_profile_span span = {0};
    bool is_there = pted_profile_span(p->profile, index, &span);
    must(is_there);
    return span;
}

/* The number of the last of the CPU's threads that have a track. */
static uint32_t last_thread(const struct cli_profile *p, size_t span_count)
{
    uint32_t last = pted_device_is_cpu(p->device) ? pted_device_workers(p->device) : 0;
    for (size_t i = 0; i < span_count; i++) {
        uint32_t thread = span_at(p, i).thread;
        last = thread != PTED_THREAD_DEVICE && thread > last ? thread : last;
    }
    return last;
}

static void print_span(const struct cli_profile *p, const struct pted_profile_span *span,
                       uint64_t start_ns, struct buf *out)
{
    const struct pted_profile_row *row = pted_profile_row(p->profile, span->row);
    begin_event("operator", track_of(span), start_ns, span->begin_ns, span->end_ns, out);
    print_text(out, ",", "name", span_str(row->operation));
    print_text(out, ",\"args\":{", "layer", span_str(row->layer));
    print_text(out, ",", "source", span_str(row->source));
    print_text(out, ",", "kernel", span_str(row->kernel));
    buf_printf(out, ",\"tiles\":%u}},\n", span->tiles);
}

void cli_profile_print_trace(const struct cli_profile *p, struct buf *out)
{
    size_t count = pted_profile_span_count(p->profile);
    uint64_t start_ns = p->calls[0].begin_ns;
    buf_add_str(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    print_tracks(p, last_thread(p, count), out);
    for (size_t i = 0; i < count; i++) {
        const struct pted_profile_span span = span_at(p, i);
        print_span(p, &span, start_ns, out);
    }
    for (uint64_t i = 0; i < p->call_count; i++) {
        begin_event("call", TRACE_CALLS, start_ns, p->calls[i].begin_ns, p->calls[i].end_ns, out);
        buf_printf(out, ",\"name\":\"call %" PRIu64 "\"},\n", i);
    }
    buf_printf(out,
               "{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
               "\"calls\"}}\n]}\n",
               TRACE_CALLS);
}
