/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/openssl.h"

#include "server/process/library.h"

#define SYMBOL(name) LIBRARY_SYMBOL(name, struct openssl, name)

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

static struct openssl functions;

static struct library libcrypto = {
    LIBRARY_INIT(PTED_SONAME_CRYPTO, PTED_PACKAGE_CRYPTO, crypto_symbols, &functions,
                 ST_UNAVAILABLE),
};

static struct library libssl = {
    LIBRARY_INIT(PTED_SONAME_OPENSSL, PTED_PACKAGE_OPENSSL, tls_symbols, &functions,
                 ST_UNAVAILABLE),
};

/* As library_load(); the error says what the library is for. */
static enum status load_for(const char *purpose, struct library *library, struct error *err)
{
    struct error problem;
    enum status status = library_load(library, &problem);
    return status == ST_OK ? ST_OK : error_set(err, status, "%s for %s", problem.text, purpose);
}

enum status openssl_load_crypto(const char *purpose, const struct openssl **openssl,
                                struct error *err)
{
    *openssl = &functions;
    return load_for(purpose, &libcrypto, err);
}

enum status openssl_load_tls(const char *purpose, const struct openssl **openssl, struct error *err)
{
    TRY(openssl_load_crypto(purpose, openssl, err));
    return load_for(purpose, &libssl, err);
}
