/* SPDX-License-Identifier: MIT */
/* From a URL of fetch.h to the request to make. Any thread. */
#ifndef PTED_SERVER_PROCESS_FETCH_URL_H
#define PTED_SERVER_PROCESS_FETCH_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/process/sha256.h"

#define FETCH_URL_MAX 2048

struct fetch;

struct fetch_target {
    char url[FETCH_URL_MAX]; /* for libcurl, without its fragment; of file:// the path */
    char extension[8];       /* ".pte": of its last part, or "" */
    char sigv4[128];         /* of CURLOPT_AWS_SIGV4; "": not signed */
    const char *token;       /* a bearer token; NULL: none */
    uint8_t hash[SHA256_BYTES];
    bool has_hash, is_local;
};

/* ST_INVALID says what is wrong. */
MUST_CHECK enum status fetch_url_parse(const struct fetch *fetch, const char *url,
                                       struct fetch_target *out_target, struct error *err);

#endif
