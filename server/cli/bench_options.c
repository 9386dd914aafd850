/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_options.h"

#include <stdio.h>
#include <string.h>

#include "server/process/args.h"
#include "server/process/options.h"
#include "server/cli/cli.h"

#define RATE_MIN 0.001
#define RATE_MAX 1000000
#define DURATION_MS_MAX (UINT64_C(7) * 24 * 3600 * 1000)
#define DURATION_MS 10000
#define WARM_UP_MS 1000
#define COUNT_MAX UINT64_C(1000000000000)
#define CONNECTIONS 512

static enum status take_number(struct args *args, const struct arg *arg, enum option_type type,
                               uint64_t min, uint64_t max, uint64_t *out, struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    enum status status = options_parse_number(text, type, min, max, out, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(arg->option));
}

static enum status take_sweep(struct args *args, const struct arg *arg,
                              const struct bench_sweep_limits *limits, struct bench_sweep *sweep,
                              struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    enum status status = bench_sweep_parse(text, limits, sweep, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "%.*s: ", SPAN_FMT(arg->option));
}

/* One of two words; |*out|: the second. */
static enum status take_word(struct args *args, const struct arg *arg, const char *first,
                             const char *second, bool *out, struct error *err)
{
    const char *text;
    TRY(args_value(args, arg, &text, err));
    *out = strcmp(text, second) == 0;
    return *out || strcmp(text, first) == 0
               ? ST_OK
               : error_set(err, ST_INVALID, "%.*s: expected %s or %s, got '%.40s'",
                           SPAN_FMT(arg->option), first, second, text);
}

static enum status take_numbers(struct bench_options *o, struct args *args, const struct arg *arg,
                                bool *out_is_taken, struct error *err)
{
    const struct {
        const char *name;
        enum option_type type;
        uint64_t min, max, *out;
    } rows[] = {
        {"--connections", OPTION_COUNT, 1, BENCH_CONNECTIONS_MAX, &o->connections},
        {"--duration", OPTION_MS, 1, DURATION_MS_MAX, &o->duration_ms},
        {"--warm-up", OPTION_MS, 0, DURATION_MS_MAX, &o->warm_up_ms},
        {"--requests", OPTION_COUNT, 1, COUNT_MAX, &o->count_max},
        {"--seed", OPTION_COUNT, 0, UINT64_MAX, &o->body.seed},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_is(arg->option, rows[i].name)) {
            *out_is_taken = true;
            return take_number(args, arg, rows[i].type, rows[i].min, rows[i].max, rows[i].out, err);
        }
    }
    return ST_OK;
}

static enum status take_texts(struct bench_options *o, struct args *args, const struct arg *arg,
                              bool *out_is_taken, struct error *err)
{
    const struct {
        const char *name, **out;
    } rows[] = {{"--method", &o->method}, {"--csv", &o->csv}, {"--json", &o->json}};
    *out_is_taken = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (span_is(arg->option, rows[i].name)) {
            return args_value(args, arg, rows[i].out, err);
        }
    }
    if (span_is(arg->option, "--shape")) {
        return args_add_value(args, arg, o->shapes, &o->body.shape_count, BENCH_TEXTS_MAX, err);
    }
    if (span_is(arg->option, "--data")) {
        return args_add_value(args, arg, o->data, &o->body.data_count, BENCH_TEXTS_MAX, err);
    }
    *out_is_taken = false;
    return ST_OK;
}

static enum status take_option(struct bench_options *o, struct args *args, const struct arg *arg,
                               struct error *err)
{
    static const struct bench_sweep_limits clients = {1, BENCH_CONNECTIONS_MAX, true},
                                           rates = {RATE_MIN, RATE_MAX, false};
    bool is_taken = false;
    TRY(client_take_option(&o->client, args, arg, &is_taken, err));
    TRY(is_taken ? ST_OK : take_numbers(o, args, arg, &is_taken, err));
    TRY(is_taken ? ST_OK : take_texts(o, args, arg, &is_taken, err));
    if (is_taken) {
        return ST_OK;
    }
    if (span_is(arg->option, "--clients")) {
        return take_sweep(args, arg, &clients, &o->clients, err);
    }
    if (span_is(arg->option, "--rate")) {
        return take_sweep(args, arg, &rates, &o->rates, err);
    }
    if (span_is(arg->option, "--arrivals")) {
        return take_word(args, arg, "poisson", "fixed", &o->is_fixed, err);
    }
    if (span_is(arg->option, "--form")) {
        return take_word(args, arg, "binary", "json", &o->body.is_json, err);
    }
    if (span_is(arg->option, "--no-plot")) {
        o->has_no_plot = true;
        return ST_OK;
    }
    return cli_refuse(&cli_bench_command, arg, err);
}

/* pted serves a method as a model of its own. */
static enum status name_method(struct bench_options *o, struct error *err)
{
    size_t len = strlen(o->target.model);
    int more = snprintf(o->target.model + len, sizeof(o->target.model) - len, ".%s", o->method);
    return more >= 0 && (size_t)more < sizeof(o->target.model) - len
               ? ST_OK
               : error_set(err, ST_INVALID, "--method: the name is too long");
}

static enum status finish(struct bench_options *o, struct error *err)
{
    if (!o->url) {
        return error_set(err, ST_INVALID, "expected URL/MODEL");
    }
    TRY(target_parse_model(o->url, &o->target, err));
    TRY(o->method ? name_method(o, err) : ST_OK);
    if (o->clients.count && o->rates.count) {
        return error_set(err, ST_INVALID,
                         "--clients is a closed loop and --rate an open one: "
                         "expected one of them");
    }
    if (!o->rates.count && (o->connections || o->is_fixed)) {
        return error_set(err, ST_INVALID, "%s: only with --rate",
                         o->connections ? "--connections" : "--arrivals");
    }
    if (o->csv && o->json && strcmp(o->csv, "-") == 0 && strcmp(o->json, "-") == 0) {
        return error_set(err, ST_INVALID, "--csv and --json: only one can be standard output");
    }
    if (!o->clients.count && !o->rates.count) {
        o->clients = (struct bench_sweep){.count = 1, .values = {1}};
    }
    o->connections = o->connections ? o->connections : CONNECTIONS;
    o->duration_ms = o->duration_ms || o->count_max ? o->duration_ms : DURATION_MS;
    return ST_OK;
}

enum status bench_options_parse(int argc, char *const argv[], struct bench_options *out,
                                struct error *err)
{
    struct args args = {.count = argc, .items = argv};
    *out = (struct bench_options){
        .client = CLIENT_OPTIONS_DEFAULT,
        .warm_up_ms = WARM_UP_MS,
    };
    for (struct arg arg; args_next(&args, &arg);) {
        if (arg.option.len > 0) {
            TRY(take_option(out, &args, &arg, err));
        } else if (out->url) {
            return error_set(err, ST_INVALID, "one URL/MODEL only, got '%.64s' too", arg.text);
        } else {
            out->url = arg.text;
        }
    }
    out->body.shapes = out->shapes;
    out->body.data = out->data;
    return finish(out, err);
}
