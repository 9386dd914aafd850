/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/bench_arrivals.h"

#include <math.h>

#include "base/check.h"

#define NS_PER_S 1e9
#define NS_MAX 9e18 /* the largest double that becomes a uint64_t */

/* At a fixed rate each time is a multiple of the gap, so no error adds up. */
static void plan(struct bench_arrivals *a)
{
    if (a->is_poisson) {
        a->at_ns -= log(bench_random_unit(&a->random)) * a->gap_ns;
    } else {
        a->at_ns = (double)a->count * a->gap_ns;
    }
    a->due_ns = a->at_ns < NS_MAX ? (uint64_t)a->at_ns : UINT64_MAX;
}

void bench_arrivals_init(struct bench_arrivals *arrivals, double rate, bool is_poisson,
                         uint64_t seed, uint64_t end_ns, uint64_t count_max)
{
    must(rate > 0);
    *arrivals = (struct bench_arrivals){
        .gap_ns = NS_PER_S / rate,
        .is_poisson = is_poisson,
        .end_ns = end_ns,
        .count_max = count_max,
        .random = bench_random_of(seed),
    };
    plan(arrivals);
}

bool bench_arrivals_are_over(const struct bench_arrivals *arrivals)
{
    return arrivals->count >= arrivals->count_max || arrivals->due_ns >= arrivals->end_ns;
}

static void note_late(struct bench_arrivals *a, uint64_t late_ns)
{
    a->late_ns_max = late_ns > a->late_ns_max ? late_ns : a->late_ns_max;
    if (late_ns <= BENCH_LATE_NS) {
        return;
    }
    if (a->was_blocked && a->due_ns <= a->blocked_ns) {
        a->waited++;
    } else {
        a->delayed++;
    }
}

bool bench_arrivals_take(struct bench_arrivals *arrivals, uint64_t now_ns, uint64_t *out_due_ns)
{
    if (bench_arrivals_are_over(arrivals) || arrivals->due_ns > now_ns) {
        return false;
    }
    *out_due_ns = arrivals->due_ns;
    note_late(arrivals, now_ns - arrivals->due_ns);
    arrivals->count++;
    plan(arrivals);
    return true;
}

void bench_arrivals_block(struct bench_arrivals *arrivals, uint64_t now_ns)
{
    if (arrivals->due_ns <= now_ns) {
        arrivals->was_blocked = true;
        arrivals->blocked_ns = now_ns;
    }
}

uint64_t bench_arrivals_give_up(struct bench_arrivals *arrivals, uint64_t now_ns)
{
    uint64_t count = 0;
    while (!bench_arrivals_are_over(arrivals) && arrivals->due_ns <= now_ns) {
        count++;
        arrivals->count++;
        plan(arrivals);
    }
    arrivals->count_max = arrivals->count;
    return count;
}
