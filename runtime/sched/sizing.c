/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/sched/sizing.h"

#include <math.h>

#include "base/check.h"

/* An epoch has that many runs, and takes that long: then a turn of the system's scheduler or one
 * slow run is a small part of it. With 2 ms the ratios of a small model had a deviation of 0.4, so
 * nothing was ever decided. */
#define EPOCH_RUNS 8
#define EPOCH_NS 20000000u

/* A longer pause ends the epoch: the epoch that it would be compared with is too long ago. */
#define PAUSE_NS_MAX 200000000u

/* Epochs between two trials: at first, and at most. */
#define PAUSE_MIN 4
#define PAUSE_MAX 256

/* Trials of a neighbour until something is decided; with fewer the deviation is not known. */
#define TRIALS_MIN 4
#define TRIALS_MAX 16

/* Half the width of the interval, in standard errors: for 95 % and some more trials than few. */
#define ERRORS 2.5

/* A larger size must cost less than that, for its longer runs; a smaller one hardly more. Their
 * product is below 1, so two sizes do not take turns as the best one. */
#define RATIO_UP 0.97
#define RATIO_DOWN 1.02

/* The cost that is shown is a moving average; each new epoch has that weight. */
#define WEIGHT 0.25

static bool has_neighbour(const struct rt_sizing *sizing, enum rt_sizing_step step)
{
    return step == RT_SIZING_UP ? sizing->best + 1 < sizing->count : sizing->best > 0;
}

/* The next trial goes the other way, if there is a size. */
static void plan_trial(struct rt_sizing *sizing)
{
    enum rt_sizing_step other = sizing->step == RT_SIZING_UP ? RT_SIZING_DOWN : RT_SIZING_UP;
    sizing->step = has_neighbour(sizing, other) ? other : sizing->step;
    sizing->until_trial = sizing->trials[sizing->step].pause;
}

/* The best size has other neighbours now. */
static void forget_trials(struct rt_sizing *sizing)
{
    sizing->trials[RT_SIZING_DOWN] = (struct rt_sizing_trials){.pause = PAUSE_MIN};
    sizing->trials[RT_SIZING_UP] = (struct rt_sizing_trials){.pause = PAUSE_MIN};
    sizing->step = RT_SIZING_DOWN;
    plan_trial(sizing);
}

void rt_sizing_fix(struct rt_sizing *sizing, int64_t rows)
{
    *sizing = (struct rt_sizing){.count = 1, .sizes[0].rows = rows};
}

/* The sizes 1, 2, 4 and so on up to |rows_max|, with nothing measured. */
static void list_sizes(struct rt_sizing *sizing, int64_t rows_max)
{
    *sizing = (struct rt_sizing){.count = 0};
    for (int64_t size = 1; sizing->count < RT_SCHED_SIZES_MAX; size *= 2) {
        bool is_last = size >= rows_max || sizing->count + 1 == RT_SCHED_SIZES_MAX;
        sizing->sizes[sizing->count].rows = is_last && size > rows_max ? rows_max : size;
        sizing->count++;
        if (is_last) {
            break;
        }
    }
}

/* Takes the costs of |from|. True: there are some. */
static bool take_costs(struct rt_sizing *sizing, const struct rt_sizing *from)
{
    uint64_t epochs = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        epochs += from->sizes[i].epochs;
        for (uint32_t k = 0; k < sizing->count; k++) {
            if (sizing->sizes[k].rows == from->sizes[i].rows) {
                sizing->sizes[k] = from->sizes[i];
            }
        }
    }
    return epochs > 0;
}

void rt_sizing_learn(struct rt_sizing *sizing, int64_t rows_max, int64_t rows)
{
    must(rows_max >= 1 && rows >= 1 && rows <= rows_max);
    const struct rt_sizing before = *sizing;
    list_sizes(sizing, rows_max);
    if (take_costs(sizing, &before)) {
        rows = rt_sizing_best(&before);
    }
    for (uint32_t i = 0; i < sizing->count && sizing->sizes[i].rows <= rows; i++) {
        sizing->best = i;
    }
    forget_trials(sizing);
}

static uint32_t tried(const struct rt_sizing *sizing)
{
    return sizing->step == RT_SIZING_UP ? sizing->best + 1 : sizing->best - 1;
}

static uint32_t current(const struct rt_sizing *sizing)
{
    return sizing->epoch == RT_SIZING_TRIAL ? tried(sizing) : sizing->best;
}

int64_t rt_sizing_rows(const struct rt_sizing *sizing)
{
    return sizing->is_paused ? rt_sizing_best(sizing) : sizing->sizes[current(sizing)].rows;
}

int64_t rt_sizing_best(const struct rt_sizing *sizing)
{
    return sizing->sizes[sizing->best].rows;
}

/* ---- what a trial says ----------------------------------------------------------------------- */

enum verdict { UNKNOWN, BETTER, NOT_BETTER };

static enum verdict judge(const struct rt_sizing_trials *trials, double wanted)
{
    if (trials->count < TRIALS_MIN) {
        return UNKNOWN;
    }
    double n = trials->count;
    double error = ERRORS * sqrt(trials->squares / (n - 1) / n);
    if (trials->mean + error < wanted) {
        return BETTER;
    }
    return trials->mean - error > wanted || trials->count >= TRIALS_MAX ? NOT_BETTER : UNKNOWN;
}

static void add_ratio(struct rt_sizing_trials *trials, double ratio)
{
    double off = ratio - trials->mean;
    trials->count++;
    trials->mean += off / trials->count;
    trials->squares += off * (ratio - trials->mean);
}

/* The three epochs of a trial are over. */
static void decide(struct rt_sizing *sizing, double after)
{
    struct rt_sizing_trials *trials = &sizing->trials[sizing->step];
    add_ratio(trials, sizing->tried / ((sizing->before + after) / 2));
    switch (judge(trials, sizing->step == RT_SIZING_UP ? RATIO_UP : RATIO_DOWN)) {
    case BETTER:
        sizing->best = tried(sizing);
        forget_trials(sizing);
        return;
    case NOT_BETTER:
        *trials = (struct rt_sizing_trials){
            .pause = trials->pause < PAUSE_MAX / 2 ? trials->pause * 2 : PAUSE_MAX};
        break;
    case UNKNOWN:
        break;
    }
    plan_trial(sizing);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Runs of the epoch before are still under way, and the first of the new one may make a plan. */
static void begin_epoch(struct rt_sizing *sizing, enum rt_sizing_epoch epoch, uint32_t running)
{
    sizing->epoch = epoch;
    sizing->skip = running + 1;
    sizing->has_begun = false;
    sizing->spent_ns = 0;
    sizing->rows = 0;
    sizing->runs = sizing->full_runs = 0;
}

/* A trial says something only if the other size makes other runs: a larger one if they are as large
 * as they may be, a smaller one if they are larger than that. */
static bool is_full(const struct rt_sizing *sizing, int64_t rows)
{
    return sizing->step == RT_SIZING_UP ? rows >= rt_sizing_best(sizing)
                                        : rows > sizing->sizes[tried(sizing)].rows;
}

static bool is_trial_due(struct rt_sizing *sizing)
{
    sizing->until_trial -= sizing->until_trial > 0;
    if (sizing->until_trial > 0) {
        return false;
    }
    if (sizing->full_runs * 2 < sizing->runs) {
        plan_trial(sizing); /* the other size may say something */
        return false;
    }
    return true;
}

static uint64_t spent_ns(const struct rt_sizing *sizing, uint64_t now_ns)
{
    return sizing->spent_ns + (sizing->has_begun ? now_ns - sizing->begin_ns : 0);
}

static void end_epoch(struct rt_sizing *sizing, uint32_t running, uint64_t now_ns)
{
    struct rt_sched_size *size = &sizing->sizes[current(sizing)];
    double cost = (double)spent_ns(sizing, now_ns) / (double)sizing->rows;
    enum rt_sizing_epoch next = RT_SIZING_BEST;
    size->row_ns = size->epochs ? size->row_ns + WEIGHT * (cost - size->row_ns) : cost;
    size->epochs++;
    switch (sizing->epoch) {
    case RT_SIZING_BEST:
        sizing->before = cost;
        next = is_trial_due(sizing) ? RT_SIZING_TRIAL : RT_SIZING_BEST;
        break;
    case RT_SIZING_TRIAL:
        sizing->tried = cost;
        next = RT_SIZING_AFTER;
        break;
    case RT_SIZING_AFTER:
        decide(sizing, cost);
        break;
    }
    begin_epoch(sizing, next, next == sizing->epoch ? 0 : running);
}

/* Returns the end of a run. Its thread read the clock before it waited for the scheduler's lock, so
 * ends may come out of order; time does not go back here. Runs that began in a pause had the best
 * size. */
static uint64_t go_on(struct rt_sizing *sizing, uint32_t running, uint64_t now_ns)
{
    now_ns = now_ns > sizing->last_ns ? now_ns : sizing->last_ns;
    if (sizing->is_paused && now_ns - sizing->last_ns > PAUSE_NS_MAX) {
        begin_epoch(sizing, RT_SIZING_BEST, 0);
    } else if (sizing->is_paused && sizing->epoch == RT_SIZING_TRIAL) {
        sizing->skip = running + 1;
    }
    sizing->is_paused = false;
    sizing->last_ns = now_ns;
    return now_ns;
}

void rt_sizing_note(struct rt_sizing *sizing, int64_t rows, uint32_t running, uint64_t now_ns)
{
    must(rows > 0 && sizing->count > 0);
    if (sizing->count == 1) {
        return;
    }
    now_ns = go_on(sizing, running, now_ns);
    if (sizing->skip > 0) {
        sizing->skip--;
    } else if (!sizing->has_begun) {
        sizing->has_begun = true;
        sizing->begin_ns = now_ns;
    } else {
        sizing->rows += rows;
        sizing->runs++;
        sizing->full_runs += is_full(sizing, rows);
    }
    if (sizing->runs >= EPOCH_RUNS && spent_ns(sizing, now_ns) >= EPOCH_NS && sizing->rows > 0) {
        end_epoch(sizing, running, now_ns);
    }
}

void rt_sizing_break(struct rt_sizing *sizing)
{
    if (sizing->count > 1) {
        sizing->spent_ns = spent_ns(sizing, sizing->last_ns);
        sizing->has_begun = false;
        sizing->is_paused = true;
    }
}
