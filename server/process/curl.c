/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/curl.h"

#include <stdlib.h>
#include <unistd.h>

#include "server/process/library.h"

#define VERSION_MIN 0x075800 /* 7.88.0 */

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_SYMBOL(curl_##member, struct curl, member)
    SYMBOL(global_init),         SYMBOL(easy_init),        SYMBOL(easy_setopt),
    SYMBOL(easy_perform),        SYMBOL(easy_getinfo),     SYMBOL(easy_reset),
    SYMBOL(easy_cleanup),        SYMBOL(easy_strerror),    SYMBOL(multi_init),
    SYMBOL(multi_setopt),        SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle),
    SYMBOL(multi_perform),       SYMBOL(multi_poll),       SYMBOL(multi_wakeup),
    SYMBOL(multi_info_read),     SYMBOL(multi_cleanup),    SYMBOL(multi_strerror),
    SYMBOL(slist_append),        SYMBOL(slist_free_all),   SYMBOL(version_info),
    SYMBOL(multi_socket_action),
#undef SYMBOL
};

static struct curl functions;

/* The system's libcurl knows where certificates of authorities are. One that is linked in knows
 * only OpenSSL's places. */
#ifdef PTED_LINKED_LIBRARIES
static const char *authorities; /* NULL: OpenSSL's places */

static const char *find_authorities(void)
{
    static const char *const files[] = {
        "/etc/ssl/cert.pem",                  /* Alpine, Arch */
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* RHEL, Fedora */
        "/etc/ssl/ca-bundle.pem",             /* openSUSE */
    };
    if (getenv("SSL_CERT_FILE") || getenv("SSL_CERT_DIR")) {
        return NULL; /* OpenSSL reads both */
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (access(files[i], R_OK) == 0) {
            return files[i];
        }
    }
    return NULL;
}

static CURL *easy_init(void)
{
    CURL *easy = curl_easy_init();
    if (easy && authorities) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    }
    return easy;
}

static void easy_reset(CURL *easy)
{
    curl_easy_reset(easy);
    if (authorities) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    }
}

static void use_authorities(void)
{
    authorities = find_authorities();
    functions.easy_init = easy_init;
    functions.easy_reset = easy_reset;
}
#else
static void use_authorities(void)
{
}
#endif

static enum status prepare(struct error *err)
{
    use_authorities();
    const curl_version_info_data *version = functions.version_info(CURLVERSION_NOW);
    if (version->version_num < VERSION_MIN) {
        return error_set(err, ST_UNAVAILABLE,
                         PTED_SONAME_CURL " is %.40s; expected 7.88.0 or newer", version->version);
    }
    return functions.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? ST_OK
               : error_set(err, ST_UNAVAILABLE, PTED_SONAME_CURL ": curl_global_init() failed");
}

static struct library library = {
    LIBRARY_INIT(PTED_SONAME_CURL, PTED_PACKAGE_CURL, symbols, &functions, ST_UNAVAILABLE),
    .prepare = prepare,
};

enum status curl_load(struct error *err, const struct curl **curl)
{
    *curl = &functions;
    return library_load(&library, err);
}
