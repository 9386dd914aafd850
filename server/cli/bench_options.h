/* SPDX-License-Identifier: MIT */
/* The command line of `pte bench`. Texts are borrowed from it. */
#ifndef PTED_SERVER_CLI_BENCH_OPTIONS_H
#define PTED_SERVER_CLI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/cli/bench_body.h"
#include "server/cli/bench_load.h"
#include "server/cli/bench_sweep.h"
#include "server/cli/client.h"

#define BENCH_TEXTS_MAX 256 /* of --shape, and of --data */

struct bench_options {
    struct client_options client;
    struct target target; /* with the method in its model's name */
    const char *url, *method;
    const char *shapes[BENCH_TEXTS_MAX], *data[BENCH_TEXTS_MAX];
    struct bench_body_options body;    /* borrows from the two above */
    struct bench_sweep clients, rates; /* one of them has steps */
    /* arrivals at a fixed rate, else of a Poisson process */
    bool is_fixed;
    uint64_t connections;                        /* of an open loop; 0: not given */
    uint64_t duration_ms, warm_up_ms, count_max; /* a duration of 0: not given */
    const char *csv, *json;
    bool has_no_plot;
};

#define BENCH_OPTIONS_HELP                                                                         \
    "  --clients N[,N]...   closed loop: N clients, each of which waits for its answer (1)\n"      \
    "  --rate R[,R]...      open loop: R requests a second, whatever the answers do\n"             \
    "                       several values, or a range as 100..2000x8, are a sweep\n"              \
    "  --arrivals KIND      of an open loop: poisson, as of independent users, or fixed gaps\n"    \
    "                       (poisson)\n"                                                           \
    "  --connections N      of an open loop: at most N requests under way at once (512)\n"         \
    "  --duration TIME      how long a step measures (10s; with --requests: no end)\n"             \
    "  --requests N         end a step after N requests\n"                                         \
    "  --warm-up TIME       load before each step that is not measured (1s)\n"                     \
    "  --method NAME        a method other than the model's default\n"                             \
    "  --shape NAME=2x3x4   shape of an input, else the server's example; repeatable\n"            \
    "  --data NAME=FILE     an input from FILE.npy or from all of them in a folder, in turn; of\n" \
    "                       BYTES from any file; else random values; repeatable\n"                 \
    "  --form FORM          tensors as binary or as json (binary)\n"                               \
    "  --seed N             of random values and arrivals (0)\n"                                   \
    "  --csv FILE           write a line for each step; - is standard output\n"                    \
    "  --json FILE          write all results as a JSON document; - is standard output\n"          \
    "  --no-plot            print no plot\n"

/* ST_INVALID says which argument is wrong. */
MUST_CHECK enum status bench_options_parse(int argc, char *const argv[], struct bench_options *out,
                                           struct error *err);

#endif
