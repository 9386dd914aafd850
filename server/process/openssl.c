/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/openssl.h"

#include <pthread.h>
#include <stddef.h>

#include "server/process/library.h"

#define CRYPTO_NAME "libcrypto.so.3"
#define TLS_NAME "libssl.so.3"

#define SYMBOL(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct openssl, name)                                                      \
    }

static const struct library_symbol crypto_symbols[] = {
#define CRYPTO(name) SYMBOL(name),
#define TLS(name)
#include "server/process/openssl.def"
#undef CRYPTO
#undef TLS
};

static const struct library_symbol tls_symbols[] = {
#define CRYPTO(name)
#define TLS(name) SYMBOL(name),
#include "server/process/openssl.def"
#undef CRYPTO
#undef TLS
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static pthread_once_t crypto_once = PTHREAD_ONCE_INIT, tls_once = PTHREAD_ONCE_INIT;
static struct openssl functions; /* each written once, by library_load() */
/* Why a library is not there; empty if it is. */
static char crypto_problem[LIBRARY_PROBLEM_MAX], tls_problem[LIBRARY_PROBLEM_MAX];

static void load_crypto(void)
{
    library_load(CRYPTO_NAME, "libssl3", crypto_symbols, COUNT_OF(crypto_symbols), &functions,
                 crypto_problem);
}

static void load_tls(void)
{
    library_load(TLS_NAME, "libssl3", tls_symbols, COUNT_OF(tls_symbols), &functions, tls_problem);
}

enum status openssl_load_crypto(const char *purpose, const struct openssl **openssl,
                                struct error *err)
{
    pthread_once(&crypto_once, load_crypto);
    if (crypto_problem[0]) {
        return error_set(err, ST_UNAVAILABLE, "%s for %s", crypto_problem, purpose);
    }
    *openssl = &functions;
    return ST_OK;
}

enum status openssl_load_tls(const char *purpose, const struct openssl **openssl, struct error *err)
{
    TRY(openssl_load_crypto(purpose, openssl, err));
    pthread_once(&tls_once, load_tls);
    return tls_problem[0] ? error_set(err, ST_UNAVAILABLE, "%s for %s", tls_problem, purpose)
                          : ST_OK;
}
