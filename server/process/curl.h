/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when something first needs it. pted starts in a few milliseconds and serves
 * without the thirty libraries that libcurl brings along, so it is not linked with it.
 */
#ifndef PTED_SERVER_PROCESS_CURL_H
#define PTED_SERVER_PROCESS_CURL_H

#include <curl/curl.h>

#include "base/status.h"

/* The functions of libcurl that pted uses, under their names without the prefix "curl_". */
struct curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *easy);
    CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
    void (*easy_reset)(CURL *easy);
    void (*easy_cleanup)(CURL *easy);
    const char *(*easy_strerror)(CURLcode code);
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *fds, unsigned count, int timeout_ms,
                            int *ready);
    CURLMcode (*multi_wakeup)(CURLM *multi);
    CURLMcode (*multi_socket_action)(CURLM *multi, curl_socket_t socket, int events, int *running);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    CURLMcode (*multi_cleanup)(CURLM *multi);
    const char *(*multi_strerror)(CURLMcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
    curl_version_info_data *(*version_info)(CURLversion age);
};

/*
 * Sets |*curl| to the library's functions; the first call loads and initialises the library, which
 * then stays until the process ends. ST_UNAVAILABLE if it is not installed or is older than 7.88:
 * the error says so. From any thread.
 */
enum status curl_load(struct error *err, const struct curl **curl);

#endif
