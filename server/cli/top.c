/* SPDX-License-Identifier: MIT */
/* The command `pte top`. A request is made with libcurl's multi interface, so that a key or a
 * signal ends the program also while a server is silent. */
#include "config.h"

#include "server/cli/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <uv.h>

#include "server/cli/cli.h"
#include "server/cli/remote.h"
#include "server/cli/screen.h"
#include "server/process/options.h"

#define STATS_PATH "/v2/models/stats"
#define STEP_MS 100              /* between two looks at the keys */
#define METRICS_NS 5000000000ull /* between two looks at /metrics, which can be a large page */
#define INTERVAL_MS_MIN 50
#define INTERVAL_MS_MAX 3600000
#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define HEAD_ROWS 4 /* of a screen: three lines above the models, one below */

struct top {
    const char *url;
    struct client_options options;
    uint64_t interval_ms;
    bool is_json, is_once;

    bool has_screen;
    bool is_over;
    struct client client;
    struct transfer transfer;
    CURLM *multi; /* owned */
    struct top_sample before, now;
    uint64_t metrics_ns; /* when /metrics was last read; 0: never */
};

/* ---- the command line ------------------------------------------------------------------------ */

static const struct cli_option own_options[] = {
    {.name = "interval",
     .value = "TIME",
     .type = OPTION_MS,
     .at = offsetof(struct top, interval_ms),
     .min = INTERVAL_MS_MIN,
     .max = INTERVAL_MS_MAX,
     .preset = "1s",
     .doc = "time between two tables, as 500ms or 10s",
     .more = "It is also the time before the first table."},
    {.name = "once",
     .type = OPTION_SWITCH,
     .at = offsetof(struct top, is_once),
     .doc = "print one table, of what happens in one interval"},
    {.name = "json",
     .type = OPTION_SWITCH,
     .at = offsetof(struct top, is_json),
     .doc = "print each table as a line of JSON"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "top", .options = own_options},
    {.name = "client", .options = client_option_table, .at = offsetof(struct top, options)},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct top *top = own;
    return cli_take_only(&top->url, "URL", text, err);
}

static enum status parse(struct top *top, int argc, char *const argv[], struct error *err)
{
    TRY(cli_option_parse(&cli_top_command, argc, argv, top, err));
    return top->url ? ST_OK : error_set(err, ST_INVALID, "expected a URL");
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Also where there is no screen: then only a signal's default ends the process. */
static bool is_over(struct top *top)
{
    top->is_over |= top->has_screen && screen_is_over();
    return top->is_over;
}

/* Waits for the transfer, or for the end of the program: ST_CANCELLED. */
static enum status wait_for_answer(struct top *top, CURLcode *out_code, struct error *err)
{
    const struct curl *curl = top->client.curl;
    int running = 1, left;
    while (running > 0 && !is_over(top)) {
        CURLMcode code = curl->multi_perform(top->multi, &running);
        if (code == CURLM_OK && running > 0) {
            code = curl->multi_poll(top->multi, NULL, 0, STEP_MS, NULL);
        }
        if (code != CURLM_OK) {
            return error_set(err, ST_SYSTEM, "libcurl: %s", curl->multi_strerror(code));
        }
    }
    const CURLMsg *message = running ? NULL : curl->multi_info_read(top->multi, &left);
    if (!message) {
        return error_set(err, ST_CANCELLED, "ended");
    }
    *out_code = message->data.result;
    return ST_OK;
}

static enum status get(struct top *top, const char *path, struct error *err)
{
    const struct curl *curl = top->client.curl;
    const struct transfer_request request = {.path = path,
                                             .answer_bytes_max = TRANSFER_TEXT_BYTES_MAX};
    CURLcode code = CURLE_OK;
    TRY(transfer_prepare(&top->transfer, &request, err));
    if (curl->multi_add_handle(top->multi, top->transfer.easy) != CURLM_OK) {
        return error_no_memory(err, "a request");
    }
    enum status status = wait_for_answer(top, &code, err);
    curl->multi_remove_handle(top->multi, top->transfer.easy);
    TRY(status);
    TRY(transfer_end(&top->transfer, code, err));
    return transfer_check(&top->transfer, err);
}

/* A server without such a page has no memory and no start to show. */
static enum status ask_metrics(struct top *top, struct error *err)
{
    const struct top_sample *before = &top->before;
    struct error ignored;
    top->now.resident_bytes = before->resident_bytes;
    top->now.start_s = before->start_s;
    if (top->metrics_ns && top->now.at_ns - top->metrics_ns < METRICS_NS) {
        return ST_OK;
    }
    top->metrics_ns = top->now.at_ns;
    enum status status = get(top, "/metrics", &ignored);
    if (status == ST_OK) {
        top_sample_take_metrics(&top->now, buf_span(&top->transfer.body));
    }
    if (status == ST_CANCELLED) {
        *err = ignored;
        return status;
    }
    return ST_OK;
}

/* The next sample. On failure the old ones stay. */
static enum status sample(struct top *top, struct error *err)
{
    struct top_sample next;
    TRY(get(top, STATS_PATH, err));
    if (top_sample_parse(buf_span(&top->transfer.body), &next, err) != ST_OK) {
        return transfer_blame(&top->transfer, STATS_PATH, err);
    }
    next.at_ns = uv_hrtime();
    top_sample_fini(&top->before);
    top->before = top->now;
    top->now = next;
    return ask_metrics(top, err);
}

/* ---- showing --------------------------------------------------------------------------------- */

static void print_screen(const struct top *top, const struct top_rate *rates, const char *problem,
                         struct buf *out)
{
    uint32_t columns, rows;
    screen_size(&columns, &rows);
    top_print(top->client.target.text, &top->now, rates, columns,
              rows > HEAD_ROWS ? rows - HEAD_ROWS : 1, out);
    if (problem) {
        buf_printf(out, "%.*s", (int)columns, problem);
    }
    screen_draw(out);
}

/* |problem|: why there is no newer sample, or NULL. */
static enum status show(const struct top *top, const char *problem, struct error *err)
{
    struct buf out;
    struct top_rate *rates = calloc((size_t)top->now.count + 1, sizeof(*rates));
    enum status status = ST_OK;
    if (!rates) {
        return error_no_memory(err, "the table");
    }
    buf_init(&out, TEXT_BYTES_MAX);
    top_compare(&top->before, &top->now, rates);
    if (top->has_screen) {
        print_screen(top, rates, problem, &out);
    } else {
        const char *server = top->client.target.text;
        if (top->is_json) {
            top_print_json(server, &top->now, rates, &out);
        } else {
            top_print(server, &top->now, rates, 0, 0, &out);
            buf_add_str(&out, top->is_once ? "" : "\n");
        }
        status = cli_write(&out, err);
        status = status == ST_OK ? cli_flush(err) : status;
    }
    buf_fini(&out);
    free(rates);
    return status;
}

/* Sleeps till the next sample is due; draws the screen again when the window has another size. */
static enum status pause_until(struct top *top, uint64_t due_ns, const char *problem,
                               struct error *err)
{
    while (!is_over(top)) {
        uint64_t now_ns = uv_hrtime();
        if (now_ns >= due_ns) {
            break;
        }
        uint64_t left_ms = (due_ns - now_ns) / 1000000 + 1;
        uv_sleep(left_ms < STEP_MS ? (unsigned)left_ms : STEP_MS);
        if (top->has_screen && screen_has_changed()) {
            TRY(show(top, problem, err));
        }
    }
    return ST_OK;
}

/* On a screen, a server that is away may come back; elsewhere the program ends. */
static enum status watch(struct top *top, struct error *err)
{
    struct error problem = {.code = ST_OK};
    TRY(sample(top, err));
    if (top->has_screen) {
        TRY(show(top, "", err));
    }
    while (true) {
        const char *text = problem.code == ST_OK ? NULL : problem.text;
        TRY(pause_until(top, uv_hrtime() + top->interval_ms * 1000000, text, err));
        if (top->is_over) {
            return ST_OK;
        }
        problem.code = sample(top, &problem);
        if (problem.code != ST_OK && (!top->has_screen || top->is_over)) {
            *err = problem;
            return problem.code;
        }
        TRY(show(top, problem.code == ST_OK ? NULL : problem.text, err));
        if (top->is_once) {
            return ST_OK;
        }
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum status open_top(struct top *top, struct error *err)
{
    struct target target;
    TRY(target_parse_server(top->url, &target, err));
    TRY(client_init(&top->client, &target, &top->options, err));
    TRY(transfer_init(&top->transfer, &top->client, err));
    top->multi = top->client.curl->multi_init();
    return top->multi ? ST_OK : error_no_memory(err, "a connection");
}

static void close_top(struct top *top)
{
    if (top->multi) {
        top->client.curl->multi_cleanup(top->multi);
    }
    transfer_fini(&top->transfer);
    top_sample_fini(&top->before);
    top_sample_fini(&top->now);
}

static enum status run_top(struct top *top, int argc, char *const argv[], struct error *err)
{
    TRY(parse(top, argc, argv, err));
    TRY(open_top(top, err));
    top->has_screen = !top->is_once && !top->is_json && screen_is_there();
    if (top->has_screen) {
        screen_enter();
    }
    enum status status = watch(top, err);
    screen_leave();
    return status == ST_CANCELLED ? ST_OK : status;
}

static int run(int argc, char *const argv[])
{
    struct top top = {.options = CLIENT_OPTIONS_DEFAULT, .interval_ms = 1000};
    struct error err;
    enum status status = run_top(&top, argc, argv, &err);
    close_top(&top);
    return cli_finish(&cli_top_command, status, &err);
}

const struct cli_command cli_top_command = {
    .name = "top",
    .usage = "top [OPTION]... URL",
    .summary = "show what the models of a server do now",
    .about =
        "A table that is refreshed each second, the busiest model first; q or Ctrl-C ends it.\n"
        "Where standard output is no terminal, one table follows the other.\n"
        "\n"
        "  REQ/S, ROWS/S, ERR/S   calls, rows and failed calls a second\n"
        "  BATCH                  rows that ran as one, on average\n"
        "  WAIT, RUN              calls in the queue and on the device, now\n"
        "  QUEUE, COMPUTE, TOTAL  mean times of a call\n"
        "  HELD                   memory of calls that wait\n",
    .after = CLIENT_HELP "\n"
                         "Examples:\n"
                         "  pte top http://127.0.0.1:8000\n"
                         "  pte top --once --json unix:/run/pted.sock\n",
    .groups = groups,
    .take = take,
    .run = run,
};
