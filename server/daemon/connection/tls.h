/* SPDX-License-Identifier: MIT */
/*
 * TLS of the daemon: the certificate in use, which SIGHUP replaces, and the state that all
 * connections of TLS share. An open connection keeps the certificate that it began with. Loop
 * thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_TLS_H
#define PTED_SERVER_DAEMON_CONNECTION_TLS_H

#include <stdint.h>

#include "base/status.h"
#include "server/http/transport_tls.h"
#include "server/process/options.h"

struct loop;

/* Zeroed at first. */
struct tls {
    struct loop *loop; /* borrowed */
    struct tls_hub hub;
    struct tls_context *context; /* owned; NULL: there is no certificate */
};

/* Reads what --tls-cert and its companions name. |*out| is NULL if there is no --tls-cert. */
MUST_CHECK enum status tls_read(const struct options *options, struct tls_context **out,
                                struct error *err);

/* Only looks whether they are good, for --check-config. */
MUST_CHECK enum status tls_verify(const struct options *options, struct error *err);

void tls_init(struct tls *tls, struct loop *loop);

/* Reads the certificate that |options| name, if they do. */
MUST_CHECK enum status tls_open(struct tls *tls, const struct options *options, struct error *err);
void tls_fini(struct tls *tls);

/* New connections use |context|, which is taken over; NULL changes nothing. Says in the log what is
 * doubtful about it. */
void tls_use(struct tls *tls, struct tls_context *context);

/* Returns when the certificate in use expires, in s since 1970; 0: there is none. */
int64_t tls_expiry_s(const struct tls *tls);

#endif
