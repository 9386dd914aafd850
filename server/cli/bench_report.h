/* SPDX-License-Identifier: MIT */
/*
 * The results of a bench: as text for people, as CSV and as JSON. A step is one run of the load; a
 * sweep has several. Nothing here changes them. Any thread.
 */
#ifndef PTED_SERVER_CLI_BENCH_REPORT_H
#define PTED_SERVER_CLI_BENCH_REPORT_H

#include "base/buf.h"
#include "server/cli/bench_body.h"
#include "server/cli/bench_load.h"
#include "server/cli/bench_model.h"
#include "server/cli/bench_prompts.h"

struct bench_step {
    struct bench_run run;
    struct bench_result result;
    struct bench_stats stats; /* counted by the server meanwhile */
    bool has_stats;
};

struct bench_report {
    const char *target, *model;
    char server[BENCH_SERVER_MAX]; /* "pted 1.0.0"; "": it does not say */
    const struct bench_bodies *bodies;
    const struct bench_prompts_options *prompts; /* of a language model; NULL: of tensors */
    bool has_rows;                               /* a request is one or more rows */
    uint64_t warm_up_ms;
    struct bench_step *steps;
    uint32_t count;
};

/* Prints "HTTP 429 (10), timeout (2)"; "" without failures. */
void bench_report_print_failures(const struct bench_result *result, struct buf *out);

/* |width|: columns of the window; UINT32_MAX: all columns are wanted. */
void bench_report_print(const struct bench_report *report, uint32_t width, struct buf *out);

/* Prints a table whose first line has the names of the columns. A field that a step does not have
 * is empty. */
void bench_report_print_csv(const struct bench_report *report, struct buf *out);

/* Prints one object; docs/how-to/load.md explains its members. */
void bench_report_print_json(const struct bench_report *report, struct buf *out);

#endif
