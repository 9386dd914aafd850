/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands that talk to a server: the options for it, and a handle of libcurl with
 * these options. server/cli/transfer.h makes requests with such handles.
 *
 * Proxies come from the environment as curl takes them (http_proxy, HTTPS_PROXY, ALL_PROXY,
 * NO_PROXY), and so do files of certificates (CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR). A
 * redirect is never followed, so a token goes only to the server that was named.
 *
 * A client is immutable after client_init(), and any number of handles, on any threads, may come
 * from it. A server that goes away must not end the process by SIGPIPE, which OpenSSL can raise:
 * libcurl ignores it while it works, which is enough for one thread. A process whose threads work
 * at the same time ignores it itself.
 */
#ifndef PTED_SERVER_CLI_CLIENT_H
#define PTED_SERVER_CLI_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/cli/option.h"
#include "server/cli/target.h"
#include "server/process/curl.h"

#define CLIENT_TOKEN_MAX 4096

struct client_options {
    const char *token, *token_file;  /* borrowed, as all texts here; NULL: not given */
    const char *cacert, *cert, *key; /* files in PEM */
    bool is_insecure;                /* any certificate will do */
    bool is_direct;                  /* no proxy, whatever the environment says */
    uint64_t timeout_ms;             /* from the connection's beginning to the answer's end */
};

#define CLIENT_OPTIONS_DEFAULT                                                                     \
    {                                                                                              \
        .timeout_ms = 300000                                                                       \
    }

/* The options that set them. */
extern const struct cli_option client_option_table[];

/* Behind the options of a command that have these. */
#define CLIENT_HELP                                                                                \
    "URL is HOST:PORT, http://HOST:PORT, https://HOST or unix:PATH; with a model behind it also\n" \
    "unix:PATH:/MODEL.\n"

struct client {
    const struct curl *curl;
    struct target target;
    struct client_options options;
    char token[CLIENT_TOKEN_MAX + 1]; /* "": none */
};

/* Loads libcurl and reads the token. ST_INVALID, ST_UNAVAILABLE and what file_read() has. There is
 * nothing to free. */
MUST_CHECK enum status client_init(struct client *client, const struct target *target,
                                   const struct client_options *options, struct error *err);

/* Returns the longest time for connecting: that of --timeout, or less. */
uint64_t client_connect_ms(const struct client *client);

/* Sets everything of |client| on |easy|, which is new or was reset: the way to the server, the
 * token, certificates, time limits. The caller sets URL, request and callbacks. */
MUST_CHECK enum status client_set_up(const struct client *client, CURL *easy, struct error *err);

/* Makes a new handle that is set up so; curl->easy_cleanup() frees it. */
MUST_CHECK enum status client_handle_new(const struct client *client, CURL **out_easy,
                                         struct error *err);

#endif
