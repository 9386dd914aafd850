/* SPDX-License-Identifier: MIT */
/* From a URL of fetch.h to the request to make. Any thread. */
#ifndef PTED_SERVER_PROCESS_FETCH_URL_H
#define PTED_SERVER_PROCESS_FETCH_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "server/process/sha256.h"

/* A key of S3 has at most 1024 bytes, each of which may become three. */
#define FETCH_URL_MAX 4096
#define FETCH_REGION_MAX 64

struct fetch;

struct fetch_target {
    char url[FETCH_URL_MAX]; /* for libcurl, without its fragment; of file:// the path */
    size_t len;              /* of it */
    char extension[8];       /* ".pte": of its last part, or "" */
    char sigv4[128];         /* of CURLOPT_AWS_SIGV4; "": not signed */
    const char *token;       /* a bearer token; NULL: none */
    uint8_t hash[SHA256_BYTES];
    bool has_hash, is_local;
    bool has_dots; /* a part of its path is "." or "..", and means just that, as in a key of S3 */
};

/* Splits |url|. ST_INVALID says what is wrong. */
MUST_CHECK enum status fetch_url_parse(const struct fetch *fetch, const char *url,
                                       struct fetch_target *out_target, struct error *err);

#endif
