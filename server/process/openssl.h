/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL 3, loaded when something first needs it: it would make the start of the daemon a third
 * longer. Neither program is linked with it. Any thread.
 */
#ifndef PTED_SERVER_PROCESS_OPENSSL_H
#define PTED_SERVER_PROCESS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "base/status.h"

/* The functions of openssl.def, under their own names. */
struct openssl {
#define CRYPTO(name) __typeof__(name) *name;
#define TLS(name) __typeof__(name) *name;
#include "server/process/openssl.def"
#undef CRYPTO
#undef TLS
};

/*
 * Sets |*openssl| to the functions; the first call loads the library, which then stays until the
 * process ends. After openssl_load_crypto() the functions of libssl may be missing. ST_UNAVAILABLE:
 * the library is not installed, or lacks a function; the error says so, and that |purpose| needs
 * it.
 */
MUST_CHECK enum status openssl_load_crypto(const char *purpose, const struct openssl **openssl,
                                           struct error *err);
MUST_CHECK enum status openssl_load_tls(const char *purpose, const struct openssl **openssl,
                                        struct error *err);

#endif
