/* SPDX-License-Identifier: MIT */
/*
 * The load of a bench: many requests under way at once, on one thread, by libcurl's multi interface
 * and one epoll.
 *
 *     bench_load_new()    once; connections stay open from run to run
 *     bench_load_run()    each run: a closed loop of clients or an open loop of arrivals
 *     bench_load_free()
 *
 * In a closed loop each of N clients sends its next request when it has the answer to the last one.
 * In an open loop requests are due at times that do not depend on the server, and the latency of
 * one begins when it is due: a server that stalls makes all of them late that it keeps waiting, and
 * none is left out (coordinated omission).
 *
 * An answer with status 200 is one; everything else has failed and is counted by its kind.
 */
#ifndef PTED_SERVER_CLI_BENCH_LOAD_H
#define PTED_SERVER_CLI_BENCH_LOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/cli/bench_body.h"
#include "server/cli/bench_histogram.h"
#include "server/cli/bench_stream.h"
#include "server/cli/client.h"

#define BENCH_CONNECTIONS_MAX 4096
#define BENCH_STATUSES 600 /* of HTTP: 0 to 599 */

/* Why no answer came. */
enum bench_failure {
    BENCH_NO_CONNECTION, /* nobody listens, no such host, TLS */
    BENCH_LOST,          /* the connection ended before the answer */
    BENCH_TIMEOUT,
    BENCH_NO_ANSWER, /* the answer is no HTTP, or too large */
    BENCH_FAILURES,
};

extern const char *const bench_failure_texts[BENCH_FAILURES];

struct bench_run {
    bool is_open;
    double rate;          /* of an open loop: requests a second */
    bool is_poisson;      /* a Poisson process, else equal gaps */
    uint64_t seed;        /* of these gaps */
    uint32_t connections; /* clients, or the most requests under way at once */
    uint64_t duration_ns; /* no request begins, or is due, later; UINT64_MAX: no end */
    uint64_t count_max;   /* of requests; UINT64_MAX: no end */
    uint64_t grace_ns;    /* after the duration, for requests that were due and could not begin */
};

struct bench_result {
    struct bench_histogram latency;      /* of answers with status 200 */
    struct bench_language language;      /* of those that are streams of text */
    uint64_t begun, ok, rows;            /* requests; rows of requests that are |ok| */
    uint64_t statuses[BENCH_STATUSES];   /* answers; 200 is |ok| */
    uint64_t failures[BENCH_FAILURES];   /* no answers */
    uint64_t abandoned;                  /* under way when the run was interrupted */
    uint64_t unsent;                     /* due, and never begun */
    uint64_t sent_bytes, received_bytes; /* of bodies; only of answers with status 200 */
    uint64_t connects;
    uint64_t waited, delayed, late_ns_max; /* of an open loop: see bench_arrivals.h */
    uint64_t ns, cpu_ns;                   /* from its beginning to the last answer */
    uint64_t
        starved_ns; /* we were ready to run and had no processor; 0 if the system does not say */
    bool is_interrupted;
    bool is_too_slow;   /* the bench itself could not keep the rate, and has ended the run */
    struct error first; /* the first failure; ST_OK: none */
};

/* Returns all that was not answered by 200, without |abandoned|. */
uint64_t bench_result_failed(const struct bench_result *result);

/* Called a few times a second, with the counts so far. */
typedef void bench_progress_f(void *arg, const struct bench_run *run,
                              const struct bench_result *result, uint64_t ns);

struct bench_load;

struct bench_load_options {
    const struct client *client;       /* borrowed, as the others */
    const char *path;                  /* of the requests */
    const struct bench_bodies *bodies; /* taken in turn */
    bool is_language;                  /* answers are streams of text */
    uint32_t connections_max;          /* of any run */
    const volatile sig_atomic_t *stop; /* not 0: end the run */
    bench_progress_f *on_progress;     /* NULL: none */
    void *arg;
};

MUST_CHECK enum status bench_load_new(const struct bench_load_options *options,
                                      struct bench_load **out, struct error *err);

/* Fills |result|. Failed requests are counted and are no error; ST_SYSTEM and ST_EXHAUSTED are. */
MUST_CHECK enum status bench_load_run(struct bench_load *load, const struct bench_run *run,
                                      struct bench_result *result, struct error *err);

void bench_load_free(struct bench_load *load);

#endif
