/* SPDX-License-Identifier: MIT */
/*
 * Predicts how calls scale to more workers than this machine has processors.
 *
 * usage: bench_cores [--calls N] [--dim N] [--slower PERCENT] FILE...
 *
 * For 1, 2, 8, 16 and 64 workers it opens a device of so many, so that operators are cut as they
 * are for that machine, and calls the file's default method. All threads share one processor: a
 * tile takes what it takes alone, for each operator the lower quartile of its spans. Then it
 * replays the regions between barriers: workers take batches in turns, as hal/cpu/workers.c lets
 * them. For each number of workers it prints
 *
 *     FILE WORKERS: ms of a call, how many times as fast as one worker, and where the time of all
 *         workers goes, in percent: work (what one worker would take), cutting (the work that
 *         smaller tiles add), moved (lines from other caches), taking (waits for the cursor), few
 *         (the region had no batch for a worker), end (waits for the last batch), start (until
 *         woken workers come)
 *
 * and behind the last row the operators with the most time of idle workers.
 *
 * Its constants were measured on a Zen 4 of two processors (docs/project/figures.md). --slower says
 * how much longer a tile takes if another worker wrote all of its input: 25 % by default. A
 * machine of several sockets is slower than what is printed.
 */
#include "config.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/routine.h"
#include "hal/device.h"
#include "runtime/call/profile.h"
#include "tests/bench/bench_call.h"

#define SPANS_MAX (1u << 20)
#define WORKERS_MAX 64
#define LINE_NS 50.0     /* until another core has a contended line */
#define START_NS 60000.0 /* until a parked worker comes */
#define TOP 5            /* operators that are printed */
#define LABELS_MAX 256   /* operators of a file */

static const uint32_t counts[] = {1, 2, 8, 16, WORKERS_MAX};

struct options {
    uint32_t calls;
    int64_t dim;   /* of inputs whose dims vary */
    double slower; /* part of a tile's time */
};

/* Where the time of all workers goes, in ns. */
struct times {
    double call, work, moved, taking, few, end, start;
};

/* What one dispatch costs: of its spans, one for each batch or part of it. */
struct tile_cost {
    double ns;   /* of a tile */
    double idle; /* of all workers, in the region that it begins */
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* All spans of a profile, and room for a number of each. */
struct spans {
    const struct hal_span *all;
    size_t count;
    double *room;
};

/* The lower quartile of ns a tile over the spans of a command's |number|; 0: there are none. */
static double quartile(const struct spans *spans, const struct hal_command *command,
                       uint32_t number)
{
    size_t found = 0;
    double *room = spans->room;
    for (const struct hal_span *span = spans->all; span < spans->all + spans->count; span++) {
        if (span->command == command && span->number == number) {
            room[found++] = (double)(span->end_ns - span->begin_ns) / span->tiles;
        }
    }
    qsort(room, found, sizeof(*room), compare);
    return found ? room[found / 4] : 0;
}

/* ---- the replay ------------------------------------------------------------------------------ */

struct replay {
    uint32_t workers;
    double slower;
    double free_ns[WORKERS_MAX]; /* when each worker is free */
    double line_ns;              /* when the line of the cursor is free */
    struct tile_cost *costs;     /* by number of command */
    struct times times;
};

/* The time of |count| tiles from |first| on, beside no other worker. */
static double tiles_ns(const struct replay *r, const struct hal_cpu_region *region, uint32_t first,
                       uint32_t count)
{
    double ns = 0;
    for (uint32_t i = 0; i < region->dispatch_count; i++) {
        const struct hal_cpu_dispatch *d = &region->dispatches[i];
        uint32_t begin = first > d->tile_first ? first : d->tile_first;
        uint32_t end = d->tile_first + d->tiles;
        end = first + count < end ? first + count : end;
        ns += end > begin ? (end - begin) * r->costs[d->number].ns : 0;
    }
    return ns;
}

/* The worker that takes the next batch: of those that may help, the one that is free first. */
static uint32_t next_worker(const struct replay *r, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        best = r->free_ns[i] < r->free_ns[best] ? i : best;
    }
    return best;
}

static void take_batch(struct replay *r, const struct hal_cpu_region *region, uint32_t batch,
                       uint32_t count)
{
    uint32_t worker = next_worker(r, count), first = batch * region->batch;
    uint32_t left = region->tiles - first;
    double *now = &r->free_ns[worker], begin = *now;
    if (r->workers > 1 && count > 1) {
        *now = (r->line_ns > *now ? r->line_ns : *now) + LINE_NS;
        r->line_ns = *now;
    }
    r->times.taking += *now - begin;
    double work = tiles_ns(r, region, first, left < region->batch ? left : region->batch);
    double moved = work * r->slower * (1 - 1.0 / count);
    *now += work + moved;
    r->times.work += work;
    r->times.moved += moved;
}

/* |begin|: when the region begins. Returns when it ends. */
static double replay_region(struct replay *r, const struct hal_cpu_region *region, double begin)
{
    uint32_t count = region->helpers + 1, took;
    double came[WORKERS_MAX], end = begin, idle = 0;
    count = count < r->workers ? count : r->workers;
    took = region->batches < count ? region->batches : count;
    for (uint32_t i = 0; i < r->workers; i++) {
        came[i] = r->free_ns[i] = r->free_ns[i] > begin ? r->free_ns[i] : begin;
    }
    for (uint32_t batch = 0; batch < region->batches; batch++) {
        take_batch(r, region, batch, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        end = r->free_ns[i] > came[i] && r->free_ns[i] > end ? r->free_ns[i] : end;
    }
    for (uint32_t i = 0; i < r->workers; i++) {
        double wait = r->free_ns[i] < end ? end - r->free_ns[i] : 0;
        *(i < took ? &r->times.end : &r->times.few) += wait;
        r->times.start += (came[i] < end ? came[i] : end) - begin;
        idle += wait;
    }
    r->costs[region->dispatches[0].number].idle += idle;
    return end;
}

/* Adds a submission of |routine|, whose first worker is the caller. */
static void replay(struct replay *r, const struct hal_cpu_routine *routine)
{
    double now = 0;
    r->line_ns = 0;
    for (uint32_t i = 0; i < r->workers; i++) {
        r->free_ns[i] = i == 0 ? 0 : START_NS;
    }
    for (uint32_t i = 0; i < routine->region_count; i++) {
        now = replay_region(r, &routine->regions[i], now);
    }
    r->times.call += now;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Where workers are idle, by operator. */
struct idle {
    const char *label;
    double ns;
};

struct idles {
    struct idle all[LABELS_MAX];
    uint32_t count;
};

static void add_idle(struct idles *idles, const char *label, double ns)
{
    uint32_t i = 0;
    while (i < idles->count && strcmp(idles->all[i].label, label) != 0) {
        i++;
    }
    must(i < LABELS_MAX);
    idles->count = i < idles->count ? idles->count : i + 1;
    idles->all[i].label = label;
    idles->all[i].ns += ns;
}

/* Replays one submission of |command| with the costs that |spans| tell. */
static void replay_command(struct replay *r, const struct hal_command *command,
                           const struct spans *spans, struct idles *idles)
{
    const struct hal_cpu_routine *routine;
    OBJ_CAST(routine, command->compiled, HAL_CPU_ROUTINE_MAGIC);
    struct hal_command_info *infos = calloc(command->count, sizeof(*infos));
    r->costs = calloc(command->count, sizeof(*r->costs));
    must(infos && r->costs);
    for (uint32_t i = 0; i < command->count; i++) {
        r->costs[i].ns = quartile(spans, command, i);
    }
    replay(r, routine);
    hal_command_describe(command, infos);
    for (uint32_t i = 0; i < command->count; i++) {
        add_idle(idles, infos[i].label ? infos[i].label : infos[i].name, r->costs[i].idle);
    }
    free(r->costs);
    free(infos);
}

static bool is_first_of_command(const struct spans *spans, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (spans->all[i].command == spans->all[index].command) {
            return false;
        }
    }
    return true;
}

static void print_row(const struct bench_model *model, const struct times *times, uint32_t workers,
                      const struct times *alone)
{
    double all = times->call * workers / 100, cutting = times->work - alone->work;
    printf("%s %u: %.2f ms, %.2f times; work %.0f, cutting %.0f, moved %.0f, taking %.0f, few "
           "%.0f, end %.0f, start %.0f\n",
           model->name, workers, times->call / 1e6, alone->call / times->call, alone->work / all,
           cutting / all, times->moved / all, times->taking / all, times->few / all,
           times->end / all, times->start / all);
}

static int compare_idle(const void *a, const void *b)
{
    const struct idle *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void print_idlest(const struct replay *r, struct idles *idles)
{
    double all = r->times.call * r->workers / 100;
    qsort(idles->all, idles->count, sizeof(*idles->all), compare_idle);
    printf("    idle in regions of:");
    for (uint32_t i = 0; i < TOP && i < idles->count; i++) {
        printf("%s %s %.0f%%", i ? "," : "", idles->all[i].label, idles->all[i].ns / all);
    }
    printf("\n");
}

/* Predicts the call that |spans| were taken of: each of its commands once. |alone|: the row of one
 * worker, set by the first call. */
static void predict(const struct bench_model *model, const struct spans *spans, uint32_t workers,
                    const struct options *options, struct times *alone)
{
    struct replay r = {.workers = workers, .slower = options->slower};
    struct idles idles = {.count = 0};
    for (size_t i = 0; i < spans->count; i++) {
        if (is_first_of_command(spans, i)) {
            replay_command(&r, spans->all[i].command, spans, &idles);
        }
    }
    if (workers == 1) {
        *alone = r.times;
    }
    print_row(model, &r.times, workers, alone);
    if (workers == WORKERS_MAX) {
        print_idlest(&r, &idles);
    }
}

static enum status profile_calls(const struct bench_model *model, uint32_t workers,
                                 const struct options *options, struct times *alone,
                                 struct error *err)
{
    struct rt_profile *profile;
    const struct rt_profile_row *rows;
    uint32_t row_count;
    struct spans spans;
    TRY(rt_profile_new(model->method, SPANS_MAX, &profile, err));
    const struct bench_call call = {.dim = options->dim, .number = 1, .profile = profile};
    enum status status = ST_OK;
    for (uint32_t i = 0; status == ST_OK && i < options->calls; i++) {
        status = bench_call_run(model, &call, err);
    }
    if (status == ST_OK) {
        status = rt_profile_read(profile, &rows, &row_count, err);
    }
    spans.all = rt_profile_spans(profile, &spans.count);
    spans.room = calloc(spans.count + 1, sizeof(*spans.room));
    must(spans.room);
    if (status == ST_OK) {
        predict(model, &spans, workers, options, alone);
    }
    free(spans.room);
    rt_profile_free(profile);
    return status;
}

static enum status scale(const char *path, const struct options *options, struct error *err)
{
    struct times alone = {0};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const struct hal_device_options of_device = {.workers = counts[i]};
        struct hal_device *device;
        struct bench_model model;
        TRY(hal_device_open("cpu", &of_device, &device, err));
        enum status status = bench_model_open(path, device, &model, err);
        if (status == ST_OK) {
            status = profile_calls(&model, counts[i], options, &alone, err);
            bench_model_close(&model);
        }
        hal_device_unref(device);
        TRY(status);
    }
    return ST_OK;
}

/* So that no tile runs beside another one. */
static void use_one_processor(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(cpu < 0 ? 0 : cpu, &set);
    must(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static bool read_options(int argc, char *argv[], struct options *out)
{
    static const struct option known[] = {{"calls", required_argument, NULL, 'c'},
                                          {"dim", required_argument, NULL, 'd'},
                                          {"slower", required_argument, NULL, 's'},
                                          {0}};
    *out = (struct options){.calls = 10, .dim = 1, .slower = 0.25};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'c') {
            out->calls = (uint32_t)strtoul(optarg, NULL, 10);
        } else if (option == 'd') {
            out->dim = strtol(optarg, NULL, 10);
        } else if (option == 's') {
            out->slower = strtod(optarg, NULL) / 100;
        } else {
            return false;
        }
    }
    return out->calls > 0 && optind < argc;
}

int main(int argc, char *argv[])
{
    struct options options;
    struct error err;
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: bench_cores [--calls N] [--dim N] [--slower PERCENT] FILE...\n");
        return EXIT_FAILURE;
    }
    use_one_processor();
    for (int i = optind; i < argc; i++) {
        if (scale(argv[i], &options, &err) != ST_OK) {
            fprintf(stderr, "bench_cores: %s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
