/* SPDX-License-Identifier: MIT */
/* The figures of a step under the names that CSV and JSON share. Any thread. */
#ifndef PTED_SERVER_CLI_BENCH_FIELDS_H
#define PTED_SERVER_CLI_BENCH_FIELDS_H

#include "server/cli/bench_report.h"

#define BENCH_FIELDS_MAX 80

struct bench_field {
    const char *name;
    double value;
    int decimals;
    bool is_absent; /* the step does not have it */
};

/* The shares of the percentiles that are reported, with their names. */
#define BENCH_SHARES 7
extern const struct bench_share {
    const char *name;  /* "p99.9" */
    const char *field; /* "p99_9_ms" */
    uint32_t share;    /* of BENCH_SHARE_ALL */
} bench_shares[BENCH_SHARES];

/* Returns the number of fields, which is the same for every step. */
uint32_t bench_fields_collect(const struct bench_step *step,
                              struct bench_field fields[BENCH_FIELDS_MAX]);

/* Returns 0 if |ns| is. */
double bench_tokens_per_second(uint64_t tokens, uint64_t ns);

/* Requests and rows a second, and the share of a processor; 0 for a run of no time. */
double bench_per_second(uint64_t count, const struct bench_result *result);
double bench_processor_share(const struct bench_result *result);

#endif
