/* SPDX-License-Identifier: MIT */
/*
 * The times at which the requests of an open loop are due, and which of them begin late and why.
 * Times are in ns since the beginning of the run. A request that is due waits for a free connection
 * here and in no queue: as the requests come in their order, the next one is all that has to be
 * known, however far the server is behind. Nothing in here reads a clock.
 */
#ifndef PTED_SERVER_CLI_BENCH_ARRIVALS_H
#define PTED_SERVER_CLI_BENCH_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/cli/bench_random.h"

/* A request that begins later than this after it was due is late. */
#define BENCH_LATE_NS UINT64_C(1000000)

struct bench_arrivals {
    double gap_ns; /* the mean */
    bool is_poisson;
    uint64_t end_ns;    /* requests that would be due from then on are none */
    uint64_t count_max; /* and there are at most so many */
    struct bench_random random;
    double at_ns;        /* of a Poisson process: of the next one */
    uint64_t count;      /* that have been taken */
    uint64_t due_ns;     /* when the next one is due */
    uint64_t blocked_ns; /* the last time when a request was due and no connection was free */
    bool was_blocked;

    uint64_t waited;  /* late, because no connection was free when they were due */
    uint64_t delayed; /* late, although one was: the bench was not fast enough */
    uint64_t late_ns_max;
};

/* |rate|: requests a second, above 0. */
void bench_arrivals_init(struct bench_arrivals *arrivals, double rate, bool is_poisson,
                         uint64_t seed, uint64_t end_ns, uint64_t count_max);

/* Will no further request be due? */
bool bench_arrivals_are_over(const struct bench_arrivals *arrivals);

/* Takes the next request, which begins at |now_ns|, if it is due by then. */
bool bench_arrivals_take(struct bench_arrivals *arrivals, uint64_t now_ns, uint64_t *out_due_ns);

/* Call when no connection is free at |now_ns|. */
void bench_arrivals_block(struct bench_arrivals *arrivals, uint64_t now_ns);

/* Takes all arrivals that are left, none of which begins, and counts those that were due. */
uint64_t bench_arrivals_give_up(struct bench_arrivals *arrivals, uint64_t now_ns);

#endif
