/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/tls.h"

#include <time.h>

#include "base/check.h"
#include "server/daemon/connection/protocol.h"
#include "server/daemon/loop/loop.h"
#include "server/process/log.h"

/* A signature by a longer RSA key takes more of the loop's time than a turn may have. */
#define RSA_BITS_MAX 2048

enum status tls_read(const struct options *options, struct tls_context **out, struct error *err)
{
    const struct tls_files files = {
        .certificate = options->tls_cert,
        .key = options->tls_key,
        .client_ca = options->tls_client_ca,
        .needs_1_3 = options->tls_needs_1_3,
        .protocols = protocol_names(),
    };
    *out = NULL;
    return files.certificate ? tls_context_new(&files, out, err) : ST_OK;
}

enum status tls_verify(const struct options *options, struct error *err)
{
    struct tls_context *context;
    TRY(tls_read(options, &context, err));
    tls_context_free(context);
    return ST_OK;
}

static bool has_time(void *user)
{
    struct loop *loop = user;
    turn_watch_enter(&loop->watch, TURN_TLS);
    return turns_has_time(&loop->turns);
}

static void on_failed(void *user, const struct transport *transport, enum tls_failure failure,
                      const char *why)
{
    struct loop *loop = user;
    if (log_gate_admits(&loop->log, LOG_KIND_TLS, transport->peer.client)) {
        log_line(LOG_INFO, "TLS: no handshake with %s: %s (%s)", transport->peer.remote, why,
                 tls_failure_name(failure));
    }
}

static const struct tls_hub_ops hub_ops = {.has_time = has_time, .failed = on_failed};

void tls_init(struct tls *tls, struct loop *loop)
{
    tls->loop = loop;
    tls_hub_init(&tls->hub, &loop->uv, &hub_ops, loop);
}

enum status tls_open(struct tls *tls, const struct options *options, struct error *err)
{
    struct tls_context *context;
    TRY(tls_read(options, &context, err));
    if (!context) {
        return ST_OK;
    }
    enum status status = tls_hub_open(&tls->hub, context->openssl, err);
    if (status != ST_OK) {
        tls_context_free(context);
        return status;
    }
    tls_use(tls, context);
    return ST_OK;
}

void tls_fini(struct tls *tls)
{
    tls_context_free(tls->context);
    tls->context = NULL;
    tls_hub_fini(&tls->hub);
}

/* ---- the certificate ------------------------------------------------------------------------- */

/* "2027-01-31T12:00:00Z" */
static const char *print_time(int64_t seconds, char text[32])
{
    time_t time = (time_t)seconds;
    struct tm utc;
    text[0] = '\0';
    if (gmtime_r(&time, &utc)) {
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    return text;
}

static void log_doubts(const struct tls_context *context)
{
    char text[32];
    int64_t now = time(NULL);
    if (now < context->begin_s) {
        log_line(LOG_WARNING, "TLS: the certificate is not valid before %s",
                 print_time(context->begin_s, text));
    } else if (now >= context->expiry_s) {
        log_line(LOG_WARNING, "TLS: the certificate has expired");
    }
    if (context->is_key_public) {
        log_line(LOG_WARNING, "TLS: every user of this machine may read the file of the key");
    }
    if (context->rsa_bits > RSA_BITS_MAX) {
        log_line(
            LOG_WARNING,
            "TLS: a handshake with an RSA key of %d bits takes milliseconds, in which all clients "
            "wait; an ECDSA key (P-256) is faster",
            context->rsa_bits);
    }
}

void tls_use(struct tls *tls, struct tls_context *context)
{
    if (!context) {
        return;
    }
    char text[32];
    tls_context_free(tls->context);
    tls->context = context;
    log_line(LOG_NOTICE, "TLS: the certificate of %s is valid until %s", context->subject,
             print_time(context->expiry_s, text));
    log_doubts(context);
}

int64_t tls_expiry_s(const struct tls *tls)
{
    return tls->context ? tls->context->expiry_s : 0;
}
