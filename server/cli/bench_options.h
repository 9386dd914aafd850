/* SPDX-License-Identifier: MIT */
/* The command line of `pte bench`. Texts are borrowed from it. */
#ifndef PTED_SERVER_CLI_BENCH_OPTIONS_H
#define PTED_SERVER_CLI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/cli/bench_body.h"
#include "server/cli/bench_load.h"
#include "server/cli/bench_prompts.h"
#include "server/cli/bench_sweep.h"
#include "server/cli/client.h"

#define BENCH_TEXTS_MAX 256 /* of --shape, and of --data */

enum bench_arrivals { BENCH_POISSON, BENCH_FIXED };
enum bench_form { BENCH_BINARY, BENCH_JSON };

struct bench_options {
    struct client_options client;
    struct target target; /* with the method in its model's name */
    const char *url, *method;
    const char *shapes[BENCH_TEXTS_MAX], *data[BENCH_TEXTS_MAX];
    struct bench_body_options body;              /* borrows from the two above */
    struct bench_prompts_options prompts;        /* of language models */
    bool is_language;                            /* and they are asked for */
    struct bench_sweep clients, rates;           /* one of them has steps */
    unsigned arrivals, form;                     /* enum bench_arrivals, enum bench_form */
    uint64_t connections;                        /* of an open loop; 0: not given */
    uint64_t duration_ms, warm_up_ms, count_max; /* a duration of 0: not given */
    const char *csv, *json, *compare;
    bool has_no_plot;
};

extern const struct cli_option_group bench_option_groups[];

/* For |take| of the command. */
MUST_CHECK enum status bench_options_take(void *own, const char *text, struct error *err);

/* Parses the options; ST_INVALID says which argument is wrong. */
MUST_CHECK enum status bench_options_parse(int argc, char *const argv[], struct bench_options *out,
                                           struct error *err);

#endif
