/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/curl.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "server/process/library.h"

#define LIBRARY_NAME "libcurl.so.4"
#define VERSION_MIN 0x075800 /* 7.88.0 */

static const struct library_symbol symbols[] = {
#define SYMBOL(member)                                                                             \
    {                                                                                              \
        "curl_" #member, offsetof(struct curl, member)                                             \
    }
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl functions;             /* written once, by load() */
static char problem[LIBRARY_PROBLEM_MAX]; /* why there is no libcurl; empty if there is one */

static void load(void)
{
    library_load(LIBRARY_NAME, "libcurl4", symbols, sizeof(symbols) / sizeof(symbols[0]),
                 &functions, problem);
    if (problem[0] != '\0') {
        return;
    }
    const curl_version_info_data *version = functions.version_info(CURLVERSION_NOW);
    if (version->version_num < VERSION_MIN) {
        snprintf(problem, sizeof(problem), LIBRARY_NAME " is %.40s; expected 7.88.0 or newer",
                 version->version);
    } else if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
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
