/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_NAME "libcurl.so.4"
#define VERSION_MIN 0x075800 /* 7.88.0 */

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "curl_" #member, offsetof(struct curl, member)                                             \
    }
    SYMBOL(easy_init),        SYMBOL(easy_setopt),         SYMBOL(easy_perform),
    SYMBOL(easy_getinfo),     SYMBOL(easy_reset),          SYMBOL(easy_cleanup),
    SYMBOL(easy_strerror),    SYMBOL(multi_init),          SYMBOL(multi_setopt),
    SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle), SYMBOL(multi_perform),
    SYMBOL(multi_poll),       SYMBOL(multi_wakeup),        SYMBOL(multi_info_read),
    SYMBOL(multi_cleanup),    SYMBOL(multi_strerror),      SYMBOL(slist_append),
    SYMBOL(slist_free_all),   SYMBOL(version_info),        SYMBOL(multi_socket_action),
#undef SYMBOL
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl functions; /* written once, by load() */
static char problem[200];     /* why there is no libcurl; empty if there is one */

static bool find_symbols(void *library)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            snprintf(problem, sizeof(problem), LIBRARY_NAME " has no %s()", symbols[i].name);
            return false;
        }
        memcpy((char *)&functions + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return true;
}

static void load(void)
{
    void *library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        snprintf(problem, sizeof(problem), "no " LIBRARY_NAME " (Debian: libcurl4): %.120s",
                 reason != NULL ? reason : "unknown");
        return;
    }
    CURLcode (*global_init)(long flags);
    void *symbol = dlsym(library, "curl_global_init");
    memcpy(&global_init, &symbol, sizeof(symbol));
    if (symbol == NULL || !find_symbols(library)) {
        return;
    }
    const curl_version_info_data *version = functions.version_info(CURLVERSION_NOW);
    if (version->version_num < VERSION_MIN) {
        snprintf(problem, sizeof(problem), LIBRARY_NAME " is %.40s; expected 7.88.0 or newer",
                 version->version);
    } else if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(problem, sizeof(problem), LIBRARY_NAME ": curl_global_init() failed");
    }
}

enum status curl_load(struct error *err, const struct curl **curl)
{
    pthread_once(&once, load);
    if (problem[0] != '\0') {
        return error_set(err, ST_UNAVAILABLE, "%s", problem);
    }
    *curl = &functions;
    return ST_OK;
}
