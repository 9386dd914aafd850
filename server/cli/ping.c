/* SPDX-License-Identifier: MIT */
/* The command `pte ping`: whether a server, or a model at it, can be called. For probes of
 * containers that have no other client; so all of it ends after --timeout. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/cli.h"
#include "server/cli/transfer.h"
#include "server/process/options.h"

#define PING_TIMEOUT_MS 5000
#define EXIT_NOT_READY 1
#define ANSWER_BYTES_MAX ((size_t)64 << 10)
#define PATH_BYTES_MAX 2048

struct ping_options {
    const char *url;
    struct client_options client;
    bool is_live;
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct ping_options *options = own;
    return cli_take_only(&options->url, "URL", text, err);
}

static const struct cli_option ping_options[] = {
    {.name = "live",
     .type = OPTION_SWITCH,
     .at = offsetof(struct ping_options, is_live),
     .doc = "ask only whether the server answers; it may still load models, or be stopping"},
    {.name = NULL},
};

static const struct cli_option_group ping_groups[] = {
    {.name = "ping", .options = ping_options},
    {.name = "client", .options = client_option_table, .at = offsetof(struct ping_options, client)},
    {.name = NULL},
};

/* ---- where pted listens ---------------------------------------------------------------------- */

/* The first of the addresses that the variable |name| has for pted; NULL: none. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[strspn(value, ",")] ? value + strspn(value, ",") : NULL;
}

/* A daemon with the same environment listens at |address|, and what listens at all addresses of the
 * machine listens at its own: "tls:0.0.0.0:8000" becomes "https://127.0.0.1:8000". */
static enum status target_of_listen(const char *address, struct target *out, struct error *err)
{
    static const char *const alls[][2] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};
    char text[TARGET_TEXT_MAX];
    bool is_tls = strncmp(address, "tls:", 4) == 0;
    const char *at = is_tls ? address + 4 : address, *host = "";
    for (size_t i = 0; i < sizeof(alls) / sizeof(alls[0]); i++) {
        size_t len = strlen(alls[i][0]);
        if (strncmp(at, alls[i][0], len) == 0) {
            host = alls[i][1];
            at += len;
            break;
        }
    }
    int len = snprintf(text, sizeof(text), "%s%s%.*s", is_tls ? "https://" : "", host,
                       (int)strcspn(at, ","), at);
    if (len < 0 || (size_t)len >= sizeof(text)) {
        return error_set(err, ST_INVALID, "expected an address of at most %zu bytes",
                         sizeof(text) - 1);
    }
    return target_parse(text, out, err);
}

/* The first address of a list that answers HTTP; an empty text if there is none. */
static const char *skip_grpc(const char *list)
{
    while (list && strncmp(list, "grpc:", 5) == 0 &&
           memchr(list + 5, ':', strcspn(list + 5, ","))) {
        list = strchr(list, ',');
        list = list ? list + 1 : "";
    }
    return list;
}

static enum status find_target(const struct ping_options *options, struct target *out,
                               struct error *err)
{
    static const char *const names[] = {"PTED_HEALTH_LISTEN", "PTED_LISTEN"};
    if (options->url) {
        return target_parse(options->url, out, err);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *address = skip_grpc(variable(names[i]));
        if (address) {
            return target_of_listen(address, out, err) == ST_OK
                       ? ST_OK
                       : error_prefix(err, "%s: ", names[i]);
        }
    }
    return target_parse(OPTIONS_LISTEN, out, err);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A server that says no has said so with 503, or with 400 as Triton does. */
static bool is_refusal(long http_status)
{
    return http_status == 400 || http_status >= 500;
}

static enum status ask(struct transfer *transfer, const struct ping_options *options,
                       bool *out_is_refused, struct error *err)
{
    const struct target *target = &transfer->client->target;
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    if (target->model[0]) {
        target_print_path(target, "/ready", &path);
    } else {
        buf_add_str(&path, options->is_live ? "/v2/health/live" : "/v2/health/ready");
    }
    buf_add(&path, "", 1);
    const struct transfer_request request = {.path = (const char *)path.ptr,
                                             .answer_bytes_max = ANSWER_BYTES_MAX};
    enum status status = buf_failed(&path) ? error_no_memory(err, "the path of the request")
                                           : transfer_run(transfer, &request, err);
    *out_is_refused = status != ST_OK && is_refusal(transfer->status);
    if (status == ST_OK) {
        printf("%s%s%s: %s\n", target->text, target->model[0] ? ": " : "", target->model,
               options->is_live ? "live" : "ready");
    }
    buf_fini(&path);
    return status;
}

static enum status ping(int argc, char *const argv[], bool *out_is_refused, struct error *err)
{
    struct ping_options options = {.client = CLIENT_OPTIONS_DEFAULT};
    struct target target;
    struct client client;
    struct transfer transfer;
    options.client.timeout_ms = PING_TIMEOUT_MS;
    TRY(cli_option_parse(&cli_ping_command, argc, argv, &options, err));
    TRY(find_target(&options, &target, err));
    options.client.is_direct = !options.url; /* a daemon of this machine */
    if (options.is_live && target.model[0]) {
        return error_set(err, ST_INVALID, "--live: expected a server without a model");
    }
    TRY(client_init(&client, &target, &options.client, err));
    TRY(transfer_init(&transfer, &client, err));
    enum status status = ask(&transfer, &options, out_is_refused, err);
    transfer_fini(&transfer);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    bool is_refused = false;
    enum status status = ping(argc, argv, &is_refused, &err);
    int code = cli_finish(&cli_ping_command, status, &err);
    return is_refused ? EXIT_NOT_READY : code;
}

const struct cli_command cli_ping_command = {
    .name = "ping",
    .usage = "ping [--live] [OPTION]... [URL[/MODEL]]",
    .summary = "is a server ready, or a model? for probes",
    .about =
        "Asks a server once whether it is ready, and a model behind it whether it can be\n"
        "called. Exit status 0: it is; 1: the server says that it is not. No answer is 75, no\n"
        "server 77, no such model 66.\n",
    .after = CLIENT_HELP
    "Without a URL it is the first address for HTTP of $PTED_HEALTH_LISTEN, else of "
    "$PTED_LISTEN,\n"
    "else " OPTIONS_LISTEN ", where pted listens.\n"
    "\n"
    "Examples:\n"
    "  pte ping\n"
    "  pte ping --live --timeout 1s unix:/run/pted/pted.sock\n"
    "  pte ping http://127.0.0.1:8000/mobilenet\n",
    .groups = ping_groups,
    .take = take,
    .run = run,
};
