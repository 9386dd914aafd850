/* SPDX-License-Identifier: MIT */
/* The command `pte fetch`. */
#include "config.h"

#include "server/process/fetch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/cli.h"
#include "server/cli/option.h"
#include "server/process/amount.h"
#include "server/process/options.h"

#define URLS_MAX 256

struct arguments {
    struct options options; /* the daemon's: its defaults hold here, too */
    const char *urls[URLS_MAX];
    uint32_t url_count;
};

/* On a terminal, one line that changes. */
static void on_progress(void *arg, const char *shown_url, uint64_t bytes, uint64_t total)
{
    char some[AMOUNT_TEXT_MAX], all[AMOUNT_TEXT_MAX];
    (void)arg;
    fprintf(stderr, "\r\x1b[K%.60s: %s%s%s", shown_url, amount_bytes(bytes, some),
            total ? " of " : "", total ? amount_bytes(total, all) : "");
    fflush(stderr);
}

static void on_retry(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "pte: %s\n", line);
}

static const struct cli_option own_options[] = {
    {.name = "cache-dir",
     .value = "DIR",
     .type = OPTION_FILE,
     .at = offsetof(struct arguments, options.cache_dir),
     .doc = "the cache; else $CACHE_DIRECTORY, or pted in the user's"},
    {.name = "hf-endpoint",
     .value = "URL",
     .type = OPTION_TEXT,
     .at = offsetof(struct arguments, options.hf_endpoint),
     .doc = "files of hf://OWNER/NAME/PATH come from there"},
    {.name = "s3-endpoint",
     .value = "URL",
     .type = OPTION_TEXT,
     .at = offsetof(struct arguments, options.s3_endpoint),
     .doc = "files of s3://BUCKET/KEY come from there"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "fetch", .options = own_options},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct arguments *a = own;
    if (a->url_count == URLS_MAX) {
        return error_set(err, ST_INVALID, "expected at most %d URLs", URLS_MAX);
    }
    a->urls[a->url_count++] = text;
    return ST_OK;
}

static enum status fetch_one(const struct arguments *a, const char *url, struct error *err)
{
    struct fetch fetch = fetch_of(&a->options);
    char path[PATH_MAX];
    bool is_terminal = isatty(STDERR_FILENO);
    fetch.on_progress = is_terminal ? on_progress : NULL;
    fetch.on_retry = on_retry;
    enum status status = fetch_file(&fetch, url, err);
    if (is_terminal) {
        fputs("\r\x1b[K", stderr);
    }
    if (status == ST_OK) {
        status = fetch_path(&fetch, url, path, sizeof(path), err);
    }
    if (status == ST_OK && access(path, R_OK) < 0) { /* a file:// URL is not fetched */
        status = error_set(err, status_of_errno(errno), "%.160s: %s", url, strerror(errno));
    }
    if (status == ST_OK) {
        puts(path);
    }
    if (status == ST_INVALID) { /* the command line is well; usage would not help */
        err->code = status = ST_NOT_FOUND;
    }
    return status;
}

static enum status fetch(struct arguments *a, int argc, char *const argv[], struct error *err)
{
    options_init(&a->options);
    TRY(cli_option_parse(&cli_fetch_command, argc, argv, a, err));
    if (a->url_count == 0) {
        return error_set(err, ST_INVALID, "expected URLs");
    }
    for (uint32_t i = 0; i < a->url_count; i++) {
        if (!fetch_is_url(a->urls[i])) {
            return error_set(err, ST_INVALID, "expected a URL, got '%.64s'", a->urls[i]);
        }
        TRY(fetch_one(a, a->urls[i], err));
    }
    return ST_OK;
}

static int run(int argc, char *const argv[])
{
    static struct arguments arguments;
    struct error err;
    return cli_finish(&cli_fetch_command, fetch(&arguments, argc, argv, &err), &err);
}

const struct cli_command cli_fetch_command = {
    .name = "fetch",
    .usage = "fetch [OPTION]... URL...",
    .summary = "get files of URLs into the cache, as pted does",
    .about = "Prints where each file is. A file that has not changed does not come again.\n",
    .after = "A URL may end in #sha256= and the 64 digits that the file must have.\n"
             "\n"
             "Example:\n"
             "  pte fetch --cache-dir /var/cache/pted https://example.org/net.pte\n",
    .groups = groups,
    .take = take,
    .run = run,
};
