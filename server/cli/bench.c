/* SPDX-License-Identifier: MIT */
/* The command `pte bench`: asks the server what the model takes, makes requests of it, puts load on
 * it step by step, and says what came of it. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/cli/bench_compare.h"
#include "server/cli/bench_options.h"
#include "server/cli/bench_plot.h"
#include "server/cli/bench_report.h"
#include "server/cli/cli.h"
#include "server/cli/remote.h"
#include "server/process/amount.h"

#define NS_PER_MS UINT64_C(1000000)
#define NEVER UINT64_MAX
#define DOCUMENT_BYTES_MAX ((size_t)4 << 20) /* of the server's description of itself */
#define REPORT_BYTES_MAX ((size_t)16 << 20)
#define PATH_BYTES_MAX 4096
#define WIDTH 80 /* of a window of unknown width */
#define GRACE_NS (5000 * NS_PER_MS)
#define FAILED_STATUS 1

struct bench {
    struct bench_options options;
    struct cli_remote remote; /* for questions beside the load */
    struct bench_model model;
    struct bench_bodies bodies;
    struct buf path; /* of the requests, terminated */
    struct bench_load *load;
    struct bench_report report;
    struct document before; /* an earlier run, if |has_before| */
    bool has_before;
    uint32_t step; /* the current one */
    bool is_terminal, is_warming_up;
};

/* Ctrl-C ends the load; the second one ends the process, as without us. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- questions to the server ----------------------------------------------------------------- */

/* Asks for the model's path with |rest| behind it, or with NULL for the server's own. */
static enum status ask(struct bench *bench, const char *rest, struct span *out, struct error *err)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    if (rest) {
        target_print_path(&bench->options.target, rest, &path);
    } else {
        buf_add_str(&path, "/v2");
    }
    buf_add(&path, "", 1);
    const struct transfer_request request = {
        .path = (const char *)path.ptr,
        .answer_bytes_max = DOCUMENT_BYTES_MAX,
    };
    enum status status = buf_failed(&path) ? error_no_memory(err, "a path")
                                           : transfer_run(&bench->remote.transfer, &request, err);
    buf_fini(&path);
    *out = buf_span(&bench->remote.transfer.body);
    return status;
}

static enum status learn_model(struct bench *bench, struct error *err)
{
    struct span text;
    struct error ignored;
    TRY(cli_remote_ask_metadata(&bench->remote, err));
    bench_model_init(&bench->model, &bench->remote);
    if (ask(bench, "/config", &text, &ignored) != ST_OK ||
        bench_model_read_config(text, &bench->model, &ignored) != ST_OK) {
        bench->model.has_rows = false;
    }
    return ST_OK;
}

/* The server need not have a configuration, statistics or a name; then less is known. One of
 * OpenAI's API has none of them. */
static enum status learn(struct bench *bench, struct error *err)
{
    struct span text;
    struct error ignored;
    if (!bench->options.is_language) {
        TRY(learn_model(bench, err));
    }
    if (ask(bench, NULL, &text, &ignored) != ST_OK ||
        bench_server_read(text, bench->report.server, &ignored) != ST_OK) {
        bench->report.server[0] = '\0';
    }
    return ST_OK;
}

static bool read_stats(struct bench *bench, struct bench_stats *out)
{
    struct span text;
    struct error ignored;
    return !bench->options.is_language && ask(bench, "/stats", &text, &ignored) == ST_OK &&
           bench_stats_read(text, out, &ignored) == ST_OK;
}

/* ---- progress -------------------------------------------------------------------------------- */

static void on_progress(void *arg, const struct bench_run *run, const struct bench_result *result,
                        uint64_t ns)
{
    const struct bench *bench = arg;
    double seconds = (double)ns / 1e9;
    char rate[AMOUNT_TEXT_MAX], failed[AMOUNT_TEXT_MAX];
    fputs("\r\x1b[K", stderr);
    if (bench->report.count > 1) {
        fprintf(stderr, "step %u of %u, ", bench->step + 1, bench->report.count);
    }
    if (bench->is_warming_up) {
        fputs("warming up, ", stderr);
    }
    fprintf(stderr, "%.1f s", seconds);
    if (run->duration_ns != NEVER) {
        fprintf(stderr, " of %.1f s", (double)run->duration_ns / 1e9);
    }
    fprintf(stderr, ": %s requests/s, p99 %.2f ms, %s failed",
            amount_count(seconds > 0 ? (uint64_t)((double)result->ok / seconds) : 0, rate),
            (double)bench_histogram_at(&result->latency, 99000) / 1e6,
            amount_count(bench_result_failed(result), failed));
    fflush(stderr);
}

static void clear_progress(const struct bench *bench)
{
    if (bench->is_terminal) {
        fputs("\r\x1b[K", stderr);
        fflush(stderr);
    }
}

/* ---- the load -------------------------------------------------------------------------------- */

static struct bench_run run_of(const struct bench_options *options, uint32_t step)
{
    bool is_open = options->rates.count > 0;
    return (struct bench_run){
        .is_open = is_open,
        .rate = is_open ? options->rates.values[step] : 0,
        .is_poisson = options->arrivals == BENCH_POISSON,
        .seed = options->body.seed,
        .connections =
            (uint32_t)(is_open ? (double)options->connections : options->clients.values[step]),
        .duration_ns = options->duration_ms ? options->duration_ms * NS_PER_MS : NEVER,
        .count_max = options->count_max ? options->count_max : NEVER,
        .grace_ns = GRACE_NS,
    };
}

static uint32_t most_connections(const struct bench_options *options)
{
    double most = options->rates.count ? (double)options->connections : 1;
    for (uint32_t i = 0; i < options->clients.count; i++) {
        most = options->clients.values[i] > most ? options->clients.values[i] : most;
    }
    return (uint32_t)most;
}

/* A load of requests that the server refuses would measure nothing. One that is too busy is well.
 */
static enum status try_one(struct bench *bench, struct bench_result *result, struct error *err)
{
    const struct bench_run run = {.connections = 1, .duration_ns = NEVER, .count_max = 1};
    TRY(bench_load_run(bench->load, &run, result, err));
    if (result->ok == 0 && result->statuses[429] == 0 && !result->is_interrupted) {
        *err = result->first;
        return err->code == ST_INVALID ? (err->code = ST_CORRUPT) : err->code;
    }
    return ST_OK;
}

static enum status warm_up(struct bench *bench, const struct bench_run *measured,
                           struct bench_result *result, struct error *err)
{
    struct bench_run run = *measured;
    run.duration_ns = bench->options.warm_up_ms * NS_PER_MS;
    run.count_max = NEVER;
    run.grace_ns = 0;
    run.seed++; /* other arrivals than in the measured run */
    bench->is_warming_up = true;
    TRY(run.duration_ns ? bench_load_run(bench->load, &run, result, err) : ST_OK);
    bench->is_warming_up = false;
    return ST_OK;
}

/* The statistics are read while nothing is under way, so they count what the load counts. */
static enum status run_step(struct bench *bench, struct bench_step *step, struct error *err)
{
    struct bench_stats before, after;
    TRY(warm_up(bench, &step->run, &step->result, err));
    step->result.begun = 0;
    if (stop) {
        return ST_OK;
    }
    bool has_before = read_stats(bench, &before);
    TRY(bench_load_run(bench->load, &step->run, &step->result, err));
    clear_progress(bench);
    if (step->result.begun == 0 && !step->result.is_interrupted) {
        return error_set(err, ST_INVALID,
                         "no request was due: expected a longer --duration for %g requests/s",
                         step->run.rate);
    }
    step->has_stats = has_before && read_stats(bench, &after);
    if (step->has_stats) {
        step->stats = bench_stats_between(&before, &after);
    }
    return ST_OK;
}

static enum status run_steps(struct bench *bench, struct error *err)
{
    struct bench_report *report = &bench->report;
    uint32_t done = 0;
    enum status status = try_one(bench, &report->steps[0].result, err);
    while (status == ST_OK && !stop && done < report->count) {
        struct bench_step *step = &report->steps[done];
        bench->step = done;
        step->run = run_of(&bench->options, done);
        status = run_step(bench, step, err);
        done += status == ST_OK && step->result.begun > 0;
        if (step->result.is_too_slow) {
            break;
        }
    }
    clear_progress(bench);
    report->count = done;
    return status == ST_OK && done == 0
               ? error_set(err, ST_CANCELLED, "interrupted before anything was measured")
               : status;
}

/* ---- results --------------------------------------------------------------------------------- */

static uint32_t window_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return WIDTH;
}

typedef void print_f(const struct bench_report *report, struct buf *out);

static enum status write_results(const struct bench *bench, const char *option, const char *path,
                                 print_f *print, struct error *err)
{
    struct buf text;
    if (!path) {
        return ST_OK;
    }
    buf_init(&text, REPORT_BYTES_MAX);
    print(&bench->report, &text);
    enum status status = buf_failed(&text) ? error_no_memory(err, "the results")
                         : strcmp(path, "-") == 0
                             ? cli_write(&text, err)
                             : cli_write_file(option, path, buf_span(&text), span_of(NULL, 0), err);
    buf_fini(&text);
    return status;
}

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static enum status print_results(const struct bench *bench, struct error *err)
{
    const struct bench_options *options = &bench->options;
    uint32_t width = window_width();
    struct buf text;
    TRY(write_results(bench, "--csv", options->csv, bench_report_print_csv, err));
    TRY(write_results(bench, "--json", options->json, bench_report_print_json, err));
    if (is_stdout(options->csv) || is_stdout(options->json)) {
        return ST_OK;
    }
    buf_init(&text, REPORT_BYTES_MAX);
    bench_report_print(&bench->report, isatty(STDOUT_FILENO) ? width : UINT32_MAX, &text);
    if (!options->has_no_plot) {
        bench_plot_print(&bench->report, width, &text);
    }
    if (bench->has_before) {
        bench_compare_print(&bench->before, &bench->report, &text);
    }
    enum status status = cli_write(&text, err);
    buf_fini(&text);
    return status;
}

static void note_failures(const struct bench_step *step, const char *which)
{
    struct buf text;
    buf_init(&text, REPORT_BYTES_MAX);
    bench_report_print_failures(&step->result, &text);
    fprintf(stderr, "pte: %s%" PRIu64 " of %" PRIu64 " requests failed: %.*s\n", which,
            bench_result_failed(&step->result), step->result.begun + step->result.unsent,
            SPAN_FMT(buf_span(&text)));
    if (step->result.first.code != ST_OK) {
        fprintf(stderr, "pte: %sthe first one: %s\n", which, step->result.first.text);
    }
    buf_fini(&text);
}

/* Says on standard error what keeps the results from being good; true if something does. */
static bool note_problems(const struct bench_report *report, bool is_sweep)
{
    bool has_problem = false;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct bench_step *step = &report->steps[i];
        const struct bench_result *result = &step->result;
        double ns = result->ns ? (double)result->ns : 1;
        double busy = (double)result->cpu_ns / ns, starved = (double)result->starved_ns / ns;
        char which[64] = "";
        if (is_sweep) {
            snprintf(which, sizeof(which), "%s %.6g: ", step->run.is_open ? "rate" : "clients",
                     step->run.is_open ? step->run.rate : (double)step->run.connections);
        }
        if (bench_result_failed(result)) {
            note_failures(step, which);
            has_problem = true;
        }
        if (result->is_too_slow) {
            fprintf(stderr,
                    "pte: %sthe bench itself is the bottleneck and could not send %.6g requests/s: "
                    "it ran %.0f %% of the time and waited for a processor %.0f %%; the run has "
                    "ended there\n",
                    which, step->run.rate, 100 * busy, 100 * starved);
            has_problem = true;
        } else if (busy >= 0.95) {
            fprintf(stderr,
                    "pte: %sthe bench took %.0f %% of a processor: the figures may be its own and "
                    "not those of the server\n",
                    which, 100 * busy);
        }
    }
    return has_problem;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void note_shapes(const struct bench *bench)
{
    struct buf text;
    buf_init(&text, REPORT_BYTES_MAX);
    bench_bodies_print_inputs(&bench->bodies, true, &text);
    if (text.len) {
        fprintf(stderr, "pte: shapes chosen:%.*s (--shape sets others)\n",
                SPAN_FMT(buf_span(&text)));
    }
    buf_fini(&text);
}

static enum status open_load(struct bench *bench, struct error *err)
{
    const struct bench_options *options = &bench->options;
    if (options->is_language) {
        buf_add_str(&bench->path, "/v1/completions");
    } else {
        target_print_path(&options->target, "/infer", &bench->path);
    }
    buf_add(&bench->path, "", 1);
    if (buf_failed(&bench->path)) {
        return error_no_memory(err, "a path");
    }
    const struct bench_load_options load = {
        .client = &bench->remote.client,
        .path = (const char *)bench->path.ptr,
        .bodies = &bench->bodies,
        .is_language = options->is_language,
        .connections_max = most_connections(options),
        .stop = &stop,
        .on_progress = bench->is_terminal ? on_progress : NULL,
        .arg = bench,
    };
    return bench_load_new(&load, &bench->load, err);
}

static enum status make_bodies(struct bench *bench, struct error *err)
{
    const struct bench_options *options = &bench->options;
    bench->report.prompts = options->is_language ? &options->prompts : NULL;
    return options->is_language
               ? bench_prompts_make(options->target.model, &options->prompts, &bench->bodies, err)
               : bench_bodies_make(&bench->model, &options->body, &bench->bodies, err);
}

static enum status open_before(struct bench *bench, struct error *err)
{
    const char *path = bench->options.compare;
    if (!path) {
        return ST_OK;
    }
    if (bench_compare_open(path, &bench->before, err) != ST_OK) {
        return error_prefix(err, "--compare: %s: ", path);
    }
    bench->has_before = true;
    return ST_OK;
}

static enum status prepare(struct bench *bench, struct error *err)
{
    const struct bench_options *options = &bench->options;
    struct bench_report *report = &bench->report;
    TRY(open_before(bench, err));
    TRY(cli_remote_connect(&bench->remote, &options->target, &options->client, err));
    TRY(learn(bench, err));
    TRY(make_bodies(bench, err));
    note_shapes(bench);
    report->target = options->target.text;
    report->model = options->target.model;
    report->bodies = &bench->bodies;
    report->has_rows = bench->model.has_rows;
    report->warm_up_ms = options->warm_up_ms;
    report->count = options->rates.count + options->clients.count;
    report->steps = calloc(report->count, sizeof(*report->steps));
    if (!report->steps) {
        return error_no_memory(err, "%u steps", report->count);
    }
    return open_load(bench, err);
}

static void release(struct bench *bench)
{
    bench_load_free(bench->load);
    bench_bodies_fini(&bench->bodies);
    if (bench->has_before) {
        document_close(&bench->before);
    }
    cli_remote_close(&bench->remote);
    buf_fini(&bench->path);
    free(bench->report.steps);
}

/* Steps that were measured before an error are printed all the same. */
static enum status measure(struct bench *bench, bool *out_has_problem, struct error *err)
{
    struct error later;
    TRY(prepare(bench, err));
    catch_signals();
    bool is_sweep = bench->report.count > 1;
    enum status status = run_steps(bench, err);
    enum status written = print_results(bench, status == ST_OK ? err : &later);
    fflush(stdout);
    *out_has_problem = note_problems(&bench->report, is_sweep);
    return status == ST_OK ? written : status;
}

static int run(int argc, char *const argv[])
{
    static struct bench bench;
    struct error err;
    bool has_problem = false;
    bench.is_terminal = isatty(STDERR_FILENO);
    buf_init(&bench.path, PATH_BYTES_MAX);
    enum status status = bench_options_parse(argc, argv, &bench.options, &err);
    if (status == ST_OK) {
        status = measure(&bench, &has_problem, &err);
        release(&bench);
    }
    int result = cli_finish(&cli_bench_command, status, &err);
    return (result == 0 && has_problem) || status == ST_CANCELLED ? FAILED_STATUS : result;
}

const struct cli_command cli_bench_command = {
    .name = "bench",
    .usage = "bench [OPTION]... URL/MODEL",
    .summary = "put load on a model at a server and print rates and latencies",
    .about =
        "Sends requests to a model at a server, as many as the server can take (closed loop) or "
        "at\n"
        "a rate (open loop), and prints requests a second, percentiles of the latency and what "
        "the\n"
        "server counted meanwhile. In an open loop the latency begins when a request is due, so a\n"
        "server that stalls cannot hide it. Ctrl-C ends the load and prints what there is.\n"
        "The exit status is 1 if a request failed, or if the bench was the bottleneck.\n",
    .after = CLIENT_HELP
    "\n"
    "Examples:\n"
    "  pte bench http://127.0.0.1:8000/mlp --clients 1,2,4,8,16,32\n"
    "  pte bench http://127.0.0.1:8000/mlp --rate 100..2000x8 --duration 30s --csv mlp.csv\n"
    "  pte bench unix:/run/pted.sock:/net --shape input_0=8x3x224x224 --rate 50\n"
    "  pte bench http://127.0.0.1:8000/chat --prompt-tokens 100..500 --answer-tokens 128\n",
    .groups = bench_option_groups,
    .take = bench_options_take,
    .run = run,
};
