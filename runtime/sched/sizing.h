/* SPDX-License-Identifier: MIT */
/*
 * How many rows of one model run as one. A trial at the start says how many may (rt_batch_prove())
 * and which number looked best (rt_batch_measure()); one trial on a noisy machine is often wrong.
 * So the number follows the cost of real runs while the model keeps the device busy.
 *
 * The sizes are 1, 2, 4 and so on up to the number that may be joined. Time is cut into epochs of
 * some runs each; time in which the device idles is no part of them. Most epochs have the best size
 * so far. Now and then one epoch tries the next larger or smaller size, between two epochs of the
 * best one: the three follow each other at once, so a load that changes slowly does not decide. The
 * ratio of their costs is noted, and the best size changes when a confidence interval around the
 * mean of these ratios says so: to a larger size that costs clearly less, or to a smaller one that
 * costs hardly more, since smaller batches end sooner. A size that is not better is tried ever more
 * rarely.
 *
 * No lock: the scheduler's. No memory of its own.
 */
#ifndef PTED_RUNTIME_SCHED_SIZING_H
#define PTED_RUNTIME_SCHED_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sched/sched.h"

enum rt_sizing_step { RT_SIZING_DOWN, RT_SIZING_UP };

enum rt_sizing_epoch {
    RT_SIZING_BEST,  /* an ordinary one */
    RT_SIZING_TRIAL, /* of a neighbour of the best size */
    RT_SIZING_AFTER, /* of the best size again, to compare with */
};

/* Trials of a neighbour of the best size: its cost over the cost of the best size. */
struct rt_sizing_trials {
    uint32_t count;
    double mean, squares; /* of the ratios: Welford's sums */
    uint32_t pause;       /* epochs between two trials */
};

struct rt_sizing {
    uint32_t count; /* of sizes; 1: there is nothing to learn */
    uint32_t best;
    struct rt_sched_size sizes[RT_SCHED_SIZES_MAX]; /* ascending */
    struct rt_sizing_trials trials[2];              /* by enum rt_sizing_step */
    enum rt_sizing_epoch epoch;
    enum rt_sizing_step step; /* of the trial, or of the next one */
    uint32_t until_trial;     /* epochs */
    double before, tried;     /* ns a row in the epochs of this trial */
    /* The epoch: it begins when |skip| more runs are over, which still had another size. */
    uint32_t skip;
    bool has_begun;    /* or goes on, after a pause */
    bool is_paused;    /* since rt_sizing_break() */
    uint64_t begin_ns; /* of the epoch, or since its last pause */
    uint64_t spent_ns; /* before that */
    uint64_t last_ns;  /* the end of the last run */
    int64_t rows;
    uint32_t runs, full_runs;
};

/* Always |rows|. */
void rt_sizing_fix(struct rt_sizing *sizing, int64_t rows);

/* Learns, up to |rows_max|, and begins with the largest size that is at most |rows|. If |sizing| is
 * not zeroed, it has learnt before: what it has measured stays, and it begins with the best size.
 */
void rt_sizing_learn(struct rt_sizing *sizing, int64_t rows_max, int64_t rows);

/* Finds the rows of the next run, at most; and the best size so far. */
int64_t rt_sizing_rows(const struct rt_sizing *sizing);
int64_t rt_sizing_best(const struct rt_sizing *sizing);

/* Call when a run of |rows| rows is over at |now_ns|, and |running| others go on. */
void rt_sizing_note(struct rt_sizing *sizing, int64_t rows, uint32_t running, uint64_t now_ns);

/* Call when the device idles, or works for other models as well: this time does not count, and runs
 * have the best size. The epoch goes on unless the pause lasts too long. */
void rt_sizing_break(struct rt_sizing *sizing);

#endif
