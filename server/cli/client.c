/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/process/file.h"

#define CONNECT_MS_MAX 15000
#define TIMEOUT_MS_MAX (24 * 3600 * 1000)
#define TOKEN_FILE_MAX (64 << 10)

/* ---- options --------------------------------------------------------------------------------- */

const struct cli_option client_option_table[] = {
    {.name = "token",
     .value = "TOKEN",
     .type = OPTION_TEXT,
     .at = offsetof(struct client_options, token),
     .only = CLI_ONLY_URL,
     .doc = "show this token; other users can see it in the list of processes"},
    {.name = "token-file",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct client_options, token_file),
     .only = CLI_ONLY_URL,
     .doc = "the token is the line in FILE; else it is $PTED_TOKEN"},
    {.name = "cacert",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct client_options, cacert),
     .only = CLI_ONLY_URL,
     .doc = "trust the certificates in FILE (PEM), not the system's"},
    {.name = "cert",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct client_options, cert),
     .only = CLI_ONLY_URL,
     .doc = "show this certificate to the server"},
    {.name = "key",
     .value = "FILE",
     .type = OPTION_FILE,
     .at = offsetof(struct client_options, key),
     .only = CLI_ONLY_URL,
     .doc = "its key, if it is not in the same file"},
    {.name = "insecure",
     .type = OPTION_SWITCH,
     .at = offsetof(struct client_options, is_insecure),
     .only = CLI_ONLY_URL,
     .doc = "trust any certificate"},
    {.name = "timeout",
     .value = "TIME",
     .type = OPTION_MS,
     .at = offsetof(struct client_options, timeout_ms),
     .min = 1,
     .max = TIMEOUT_MS_MAX,
     .only = CLI_ONLY_URL,
     .preset = "300s, of ping 5s",
     .doc = "wait that long for an answer, as 10s or 500ms",
     .more = "That is from the beginning of a request to the end of its answer;\n"
             "for\n.Cm chat\nthe longest silence."},
    {.name = NULL},
};

/* ---- the token ------------------------------------------------------------------------------- */

/* The token goes into a header, so nothing else may be in it. */
static enum status set_token(struct client *client, struct span token, struct error *err)
{
    bool is_good = token.len > 0 && token.len <= CLIENT_TOKEN_MAX;
    for (size_t i = 0; i < token.len && is_good; i++) {
        is_good = token.ptr[i] > 0x20 && token.ptr[i] < 0x7f;
    }
    if (!is_good) {
        return error_set(err, ST_INVALID,
                         "expected a token, 1 to %d visible characters without blanks, as "
                         "`pte token` prints it on standard error",
                         CLIENT_TOKEN_MAX);
    }
    memcpy(client->token, token.ptr, token.len);
    client->token[token.len] = '\0';
    return ST_OK;
}

static enum status read_token(struct client *client, const char *path, struct error *err)
{
    struct buf text;
    buf_init(&text, TOKEN_FILE_MAX);
    enum status status = file_read(path, &text, err);
    if (status == ST_OK) {
        status = set_token(client, span_trim(buf_span(&text), " \t\r\n"), err);
    }
    buf_fini(&text);
    return status == ST_OK ? ST_OK : error_prefix(err, "--token-file %.128s: ", path);
}

static enum status find_token(struct client *client, struct error *err)
{
    const struct client_options *options = &client->options;
    const char *variable = getenv("PTED_TOKEN");
    if (options->token) {
        return set_token(client, span_str(options->token), err) == ST_OK
                   ? ST_OK
                   : error_prefix(err, "--token: ");
    }
    if (options->token_file) {
        return read_token(client, options->token_file, err);
    }
    if (variable && *variable) {
        return set_token(client, span_trim(span_str(variable), " \t\r\n"), err) == ST_OK
                   ? ST_OK
                   : error_prefix(err, "PTED_TOKEN: ");
    }
    return ST_OK;
}

enum status client_init(struct client *client, const struct target *target,
                        const struct client_options *options, struct error *err)
{
    *client = (struct client){.target = *target, .options = *options};
    TRY(find_token(client, err));
    return curl_load(err, &client->curl);
}

/* ---- handles --------------------------------------------------------------------------------- */

/* A handle whose options are being set; options after the first failure are not set. */
struct set_up {
    const struct curl *curl;
    CURL *easy;
    CURLcode code;
};

static void set_number(struct set_up *s, CURLoption option, long value)
{
    s->code = s->code == CURLE_OK ? s->curl->easy_setopt(s->easy, option, value) : s->code;
}

/* NULL: the option stays as it is. */
static void set_text(struct set_up *s, CURLoption option, const char *text)
{
    if (text) {
        s->code = s->code == CURLE_OK ? s->curl->easy_setopt(s->easy, option, text) : s->code;
    }
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The option, or else what curl's users have in their environment. */
static void set_certificates(const struct client *client, struct set_up *s)
{
    const struct client_options *options = &client->options;
    const char *file = options->cacert ? options->cacert : variable("CURL_CA_BUNDLE");
    set_text(s, CURLOPT_CAINFO, file ? file : variable("SSL_CERT_FILE"));
    set_text(s, CURLOPT_CAPATH, file ? NULL : variable("SSL_CERT_DIR"));
    set_text(s, CURLOPT_SSLCERT, options->cert);
    set_text(s, CURLOPT_SSLKEY, options->key);
    if (options->is_insecure) {
        set_number(s, CURLOPT_SSL_VERIFYPEER, 0);
        set_number(s, CURLOPT_SSL_VERIFYHOST, 0);
    }
}

uint64_t client_connect_ms(const struct client *client)
{
    uint64_t ms = client->options.timeout_ms;
    return ms < CONNECT_MS_MAX ? ms : CONNECT_MS_MAX;
}

static void set_way(const struct client *client, struct set_up *s)
{
    const struct target *target = &client->target;
    set_text(s, CURLOPT_PROTOCOLS_STR, "http,https");
    set_number(s, CURLOPT_FOLLOWLOCATION, 0);
    set_number(s, CURLOPT_PATH_AS_IS, 1);
    set_number(s, CURLOPT_TIMEOUT_MS, (long)client->options.timeout_ms);
    set_number(s, CURLOPT_CONNECTTIMEOUT_MS, (long)client_connect_ms(client));
    set_number(s, CURLOPT_QUICK_EXIT, 1); /* else a slow resolver is waited for in any case */
    if (target->socket[0]) {
        set_text(s, target->is_abstract ? CURLOPT_ABSTRACT_UNIX_SOCKET : CURLOPT_UNIX_SOCKET_PATH,
                 target->socket);
    }
    set_text(s, CURLOPT_PROXY, target->socket[0] || client->options.is_direct ? "" : NULL);
}

enum status client_set_up(const struct client *client, CURL *easy, struct error *err)
{
    struct set_up s = {.curl = client->curl, .easy = easy, .code = CURLE_OK};
    set_text(&s, CURLOPT_USERAGENT, "pte/" VERSION);
    set_way(client, &s);
    set_certificates(client, &s);
    if (client->token[0]) {
        set_number(&s, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        set_text(&s, CURLOPT_XOAUTH2_BEARER, client->token);
    }
    return s.code == CURLE_OK
               ? ST_OK
               : error_set(err, ST_UNSUPPORTED, "libcurl: %s", client->curl->easy_strerror(s.code));
}

enum status client_handle_new(const struct client *client, CURL **out_easy, struct error *err)
{
    CURL *easy = client->curl->easy_init();
    if (!easy) {
        return error_no_memory(err, "a connection");
    }
    enum status status = client_set_up(client, easy, err);
    if (status != ST_OK) {
        client->curl->easy_cleanup(easy);
        return status;
    }
    *out_easy = easy;
    return ST_OK;
}
