/* SPDX-License-Identifier: MIT */
/* Results of a bench for programs: CSV (RFC 4180, with LF) and JSON. */
#include "config.h"

#include <inttypes.h>

#include "protocol/json.h"
#include "protocol/tensor_text.h"
#include "server/cli/bench_fields.h"
#include "server/cli/bench_report.h"

#define FORMAT 1 /* of the JSON document */

static void print_number(const struct bench_field *field, struct buf *out)
{
    buf_printf(out, "%.*f", field->decimals, field->value);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Texts are our own and have no quote, comma or line's end, but failures have commas. */
static void print_csv_step(const struct bench_step *step, struct buf *out)
{
    struct bench_field fields[BENCH_FIELDS_MAX];
    uint32_t count = bench_fields_collect(step, fields);
    buf_printf(out, "%s",
               step->run.is_open ? step->run.is_poisson ? "poisson" : "fixed" : "closed");
    for (uint32_t i = 0; i < count; i++) {
        buf_add_char(out, ',');
        if (!fields[i].is_absent) {
            print_number(&fields[i], out);
        }
    }
    buf_add_str(out, ",\"");
    bench_report_print_failures(&step->result, out);
    buf_add_str(out, "\"\n");
}

void bench_report_print_csv(const struct bench_report *report, struct buf *out)
{
    struct bench_field fields[BENCH_FIELDS_MAX];
    static const struct bench_step none;
    uint32_t count = bench_fields_collect(&none, fields);
    buf_add_str(out, "loop");
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, ",%s", fields[i].name);
    }
    buf_add_str(out, ",failures\n");
    for (uint32_t i = 0; i < report->count; i++) {
        print_csv_step(&report->steps[i], out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "\"%s\":", name);
    json_print_string(out, span_str(text));
    buf_add_char(out, ',');
}

static void print_counts(const struct bench_result *result, struct buf *out)
{
    const char *before = "";
    buf_add_str(out, "\"statuses\":{");
    for (uint32_t i = 0; i < BENCH_STATUSES; i++) {
        if (result->statuses[i]) {
            buf_printf(out, "%s\"%u\":%" PRIu64, before, i, result->statuses[i]);
            before = ",";
        }
    }
    before = "";
    buf_add_str(out, "},\"failures\":{");
    for (uint32_t i = 0; i < BENCH_FAILURES; i++) {
        if (result->failures[i]) {
            buf_printf(out, "%s\"%s\":%" PRIu64, before, bench_failure_texts[i],
                       result->failures[i]);
            before = ",";
        }
    }
    buf_add_str(out, "},\"first_failure\":");
    if (result->first.code == ST_OK) {
        buf_add_str(out, "null");
    } else {
        json_print_string(out, span_str(result->first.text));
    }
}

static void print_step(const struct bench_step *step, struct buf *out)
{
    struct bench_field fields[BENCH_FIELDS_MAX];
    uint32_t count = bench_fields_collect(step, fields);
    const struct bench_result *result = &step->result;
    buf_printf(out, "{\"loop\":\"%s\",", step->run.is_open ? "open" : "closed");
    if (step->run.is_open) {
        buf_printf(out, "\"arrivals\":\"%s\",", step->run.is_poisson ? "poisson" : "fixed");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!fields[i].is_absent) {
            buf_printf(out, "\"%s\":", fields[i].name);
            print_number(&fields[i], out);
            buf_add_char(out, ',');
        }
    }
    buf_printf(out, "\"is_interrupted\":%s,\"bench_is_too_slow\":%s,",
               result->is_interrupted ? "true" : "false", result->is_too_slow ? "true" : "false");
    print_counts(result, out);
    buf_add_char(out, '}');
}

static void print_inputs(const struct bench_bodies *bodies, struct buf *out)
{
    const char *before = "";
    buf_add_str(out, "\"inputs\":[");
    for (uint32_t i = 0; i < bodies->input_count; i++) {
        const struct bench_body_input *input = &bodies->inputs[i];
        if (input->count == 0) {
            continue;
        }
        const struct shape *shape = &input->values[0].shape;
        buf_printf(out, "%s{", before);
        print_text(out, "name", input->input->name);
        print_text(out, "datatype",
                   input->input->is_bytes ? "BYTES" : dtype_infos[input->input->dtype].oip);
        buf_add_str(out, "\"shape\":");
        tensor_text_print(out, DT_I64, shape->dims, shape->rank, NUMBER_NAN_STRING);
        buf_add_char(out, '}');
        before = ",";
    }
    buf_add_str(out, "],");
}

void bench_report_print_json(const struct bench_report *report, struct buf *out)
{
    buf_printf(out, "{\"format\":%d,", FORMAT);
    print_text(out, "target", report->target);
    print_text(out, "model", report->model);
    print_text(out, "server", report->server);
    print_text(out, "form", report->bodies->is_json ? "json" : "binary");
    print_inputs(report->bodies, out);
    buf_printf(out, "\"bodies\":%u,\"warm_up_ms\":%" PRIu64 ",\"steps\":[", report->bodies->count,
               report->warm_up_ms);
    for (uint32_t i = 0; i < report->count; i++) {
        buf_add_str(out, i ? "," : "");
        print_step(&report->steps[i], out);
    }
    buf_add_str(out, "]}\n");
}
