/* SPDX-License-Identifier: MIT */
/*
 * Files that come from a URL, kept in a folder, the cache. A URL is one of
 *
 *     https://host/path, http://host/path
 *     s3://bucket/key[?versionId=id]   signed if AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are
 * set hf://owner/name[@revision]/path  of a hub like Hugging Face; with HF_TOKEN, if it is set
 *     file:///path                     used where it lies
 *
 * where the key, or the path in a hub, is the name of a file as it is, without %XX. A URL may end
 * in #sha256= and 64 hexadecimal digits, which the file must have. A file of the cache with such an
 * end is used as it is; any other is asked for again, and comes again if it has changed (ETag,
 * Last-Modified). A download that was cut goes on where it ended. A file takes its place in the
 * cache at once, when it is complete and right. Processes may share a cache.
 *
 * What proves who asks (keys, tokens, a user in the URL) goes to the origin that the URL names, and
 * not where a redirect leads.
 *
 * Any thread; all but fetch_is_url() and fetch_cancel() wait for files or for the network.
 */
#ifndef PTED_SERVER_PROCESS_FETCH_H
#define PTED_SERVER_PROCESS_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct options;

/* Borrowed texts. */
struct fetch {
    const char *cache_dir;   /* NULL: CACHE_DIRECTORY, or else pted in the user's cache folder */
    const char *hf_endpoint; /* NULL: https://huggingface.co */
    const char *s3_endpoint; /* NULL: that of Amazon */
    uint64_t bytes_max;      /* of a file */
    uint64_t idle_ms;        /* without a byte */
    /* Called now and then: |bytes| of |total| have come; 0: the total is not known. May be NULL. */
    void (*on_progress)(void *arg, const char *shown_url, uint64_t bytes, uint64_t total);
    /* Called before an attempt that follows a failed one: |line| says which URL and why. May be
     * NULL. */
    void (*on_retry)(void *arg, const char *line);
    void *arg;
};

struct fetch fetch_of(const struct options *options);

/* Does |path| have the form of a URL? */
bool fetch_is_url(const char *path);

/* Finds where the file of |url| is, or will be: |size| bytes at |out|. ST_INVALID: the URL is not
 * good. */
MUST_CHECK enum status fetch_path(const struct fetch *fetch, const char *url, char *out,
                                  size_t size, struct error *err);

/* The URL without what may be secret: its user, its query. */
#define FETCH_SHOWN_MAX 200
void fetch_show(const char *url, char out[FETCH_SHOWN_MAX]);

/*
 * Gets the file of |url|, or finds that the cache has it. ST_NOT_FOUND, ST_UNAVAILABLE,
 * ST_TOO_LARGE, ST_TIMEOUT, ST_CORRUPT (another hash), ST_CANCELLED, ST_SYSTEM, ST_UNWRITTEN
 * (no room in the cache): the text has the URL, and what was expected and got. An older file in the
 * cache stays.
 */
MUST_CHECK enum status fetch_file(const struct fetch *fetch, const char *url, struct error *err);

/* Call when the process ends: all downloads do, soon. */
void fetch_cancel(void);

/* Files since the process began. */
struct fetch_counts {
    uint64_t fetched, unchanged, failed;
};
struct fetch_counts fetch_counts(void);

#endif
