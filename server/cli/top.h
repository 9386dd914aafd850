/* SPDX-License-Identifier: MIT */
/* The parts of `pte top`: a sample of a server's statistics, and the changes between two samples.
 * One thread. */
#ifndef PTED_SERVER_CLI_TOP_H
#define PTED_SERVER_CLI_TOP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/cli/target.h"

#define TOP_ROWS_MAX 100000

/* A model's counters since it was loaded, and its present state. */
struct top_row {
    char name[TARGET_NAME_MAX + 1];
    char version[TARGET_VERSION_MAX + 1];
    uint64_t rows, runs; /* that were answered; executions, each with one row or several */
    uint64_t run_rows;   /* of all executions: a generation is one row and many executions */
    uint64_t ok, failed; /* calls */
    uint64_t total_ns;   /* of the calls that are ok */
    uint64_t queue_count, queue_ns, compute_count, compute_ns;
    uint64_t waiting, running; /* calls, now */
    uint64_t held_bytes;       /* of calls that wait */
};

struct top_sample {
    struct top_row *rows; /* owned; by name and version */
    uint32_t count;
    uint64_t at_ns;                   /* CLOCK_MONOTONIC */
    uint64_t ring_used, ring_bytes;   /* memory for requests; 0: not known */
    uint64_t resident_bytes, start_s; /* of the process, from /metrics; likewise */
};

/* Reads an answer to /v2/models/stats. ST_INVALID says what is wrong in it; then there is nothing
 * to free. */
MUST_CHECK enum status top_sample_parse(struct span json, struct top_sample *out,
                                        struct error *err);
void top_sample_fini(struct top_sample *sample);

/* Takes what it needs from a page of /metrics, and nothing if it is another page. */
void top_sample_take_metrics(struct top_sample *sample, struct span page);

/* A model's changes between two samples. */
struct top_rate {
    const struct top_row *row; /* of the later one */
    double requests_s, rows_s, errors_s;
    double batch;                          /* rows of an execution; 0: there was none */
    double queue_us, compute_us, total_us; /* of a call; 0: there was none */
};

/* Fills |rates|, one for each row of |now|, the busiest first. A counter that went back belongs to
 * a model that was loaded again. */
void top_compare(const struct top_sample *before, const struct top_sample *now,
                 struct top_rate *rates);

/* At most |row_max| models, and lines of at most |columns| bytes; 0: no bound. */
void top_print(const char *server, const struct top_sample *now, const struct top_rate *rates,
               uint32_t columns, uint32_t row_max, struct buf *out);

/* Prints the same as one line of JSON. */
void top_print_json(const char *server, const struct top_sample *now, const struct top_rate *rates,
                    struct buf *out);

#endif
