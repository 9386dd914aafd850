/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CRYPTO_NAME "libcrypto.so.3"
#define TLS_NAME "libssl.so.3"

struct symbol {
    const char *name;
    size_t offset;
};

#define SYMBOL(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct openssl, name)                                                      \
    }

static const struct symbol crypto_symbols[] = {
#define CRYPTO(name) SYMBOL(name),
#define TLS(name)
#include "server/process/openssl.def"
#undef CRYPTO
#undef TLS
};

static const struct symbol tls_symbols[] = {
#define CRYPTO(name)
#define TLS(name) SYMBOL(name),
#include "server/process/openssl.def"
#undef CRYPTO
#undef TLS
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static pthread_once_t crypto_once = PTHREAD_ONCE_INIT, tls_once = PTHREAD_ONCE_INIT;
static struct openssl functions; /* each written once, by load() */
/* Why a library is not there; empty if it is. */
static char crypto_problem[160], tls_problem[160];

static void load(const char *library, const struct symbol *symbols, size_t count,
                 char problem[sizeof(crypto_problem)])
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(problem, sizeof(crypto_problem), "no %s of OpenSSL (Debian: libssl3)", library);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol) {
            snprintf(problem, sizeof(crypto_problem), "%s has no %s()", library, symbols[i].name);
            return;
        }
        memcpy((char *)&functions + symbols[i].offset, &symbol, sizeof(symbol));
    }
}

static void load_crypto(void)
{
    load(CRYPTO_NAME, crypto_symbols, COUNT_OF(crypto_symbols), crypto_problem);
}

static void load_tls(void)
{
    load(TLS_NAME, tls_symbols, COUNT_OF(tls_symbols), tls_problem);
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
