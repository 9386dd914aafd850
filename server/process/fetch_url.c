/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/fetch_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/process/fetch.h"

#define HF_ENDPOINT "https://huggingface.co"
#define S3_REGION "us-east-1"
#define S3_VERSION "?versionId=" /* the only query of S3; any other ? is one of the key */

bool fetch_is_url(const char *path)
{
    size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return scheme > 0 && strncmp(path + scheme, "://", 3) == 0;
}

void fetch_show(const char *url, char out[FETCH_SHOWN_MAX])
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t len = (size_t)(host - url) + strcspn(host, "?#"), slash = strcspn(host, "/?#");
    for (size_t i = 0; i < slash; i++) { /* the user ends at the last @ */
        if (host[i] == '@' && strncmp(url, "hf:", 3) != 0) {
            return fetch_show(host + i + 1, out);
        }
    }
    len = len < FETCH_SHOWN_MAX ? len : utf8_floor((const uint8_t *)url, FETCH_SHOWN_MAX - 1);
    snprintf(out, FETCH_SHOWN_MAX, "%.*s", (int)len, url);
}

/* A variable that is set and not empty, or NULL. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- the target, part by part ---------------------------------------------------------------- */

/* What does not fit makes it longer than FETCH_URL_MAX, and is_whole() false. */
static void add(struct fetch_target *target, const char *bytes, size_t len)
{
    if (target->len + len < FETCH_URL_MAX) {
        memcpy(target->url + target->len, bytes, len);
        target->url[target->len + len] = '\0';
    }
    target->len += len;
}

static void add_str(struct fetch_target *target, const char *text)
{
    add(target, text, strlen(text));
}

static bool is_whole(const struct fetch_target *target)
{
    return target->len < FETCH_URL_MAX;
}

#define LOWER_AND_DIGITS "abcdefghijklmnopqrstuvwxyz0123456789"
#define UNRESERVED LOWER_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.~" /* RFC 3986 */

/* As Amazon signs it: a byte that is not in |kept| is %XX, with digits in upper case. Versions of
 * libcurl differ in what they do to such bytes; a URL with none is signed as it is sent. */
static void add_encoded(struct fetch_target *target, const char *bytes, size_t len,
                        const char *kept)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)bytes[i];
        if (bytes[i] && strchr(kept, bytes[i])) {
            add(target, bytes + i, 1);
        } else {
            add(target, (const char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
        }
    }
}

static void add_path(struct fetch_target *target, const char *bytes, size_t len)
{
    add_encoded(target, bytes, len, UNRESERVED "/");
}

/* With no slash at its end, so that the path behind it begins with one. */
static void add_endpoint(struct fetch_target *target, const char *endpoint)
{
    size_t len = strlen(endpoint);
    while (len > 0 && endpoint[len - 1] == '/') {
        len--;
    }
    add(target, endpoint, len);
}

/* ---- its forms ------------------------------------------------------------------------------- */

/* Amazon's host for a bucket. A name with a dot is no part of it, because of the certificate. */
static void add_amazon(struct fetch_target *target, const char *region, const char *bucket,
                       size_t len)
{
    bool is_label = strspn(bucket, LOWER_AND_DIGITS "-") >= len;
    add_str(target, "https://");
    add(target, bucket, is_label ? len : 0);
    add_str(target, is_label ? ".s3." : "s3.");
    add(target, region, strnlen(region, FETCH_REGION_MAX));
    add_str(target, strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com");
    if (!is_label) {
        add_str(target, "/");
        add_path(target, bucket, len);
    }
}

/* A part of the key is "." or "..", which libcurl takes out of other paths. */
static bool has_dots(const char *key, size_t len)
{
    bool has = false;
    for (size_t at = 0; at < len && !has; at++) {
        size_t dots = strspn(key + at + 1, ".");
        size_t end = at + 1 + dots;
        has = key[at] == '/' && dots > 0 && dots <= 2 && (end == len || key[end] == '/');
    }
    return has;
}

/* bucket/key at Amazon, or below the endpoint of another service. */
static bool find_s3(const struct fetch *fetch, const char *rest, size_t len,
                    struct fetch_target *target)
{
    const char *region = variable("AWS_REGION");
    region = region ? region : variable("AWS_DEFAULT_REGION");
    region = region ? region : S3_REGION;
    size_t bucket = strcspn(rest, "/");
    const char *version = strstr(rest, S3_VERSION);
    size_t key = version && version < rest + len ? (size_t)(version - rest) : len;
    if (bucket == 0 || bucket + 1 >= key) {
        return false;
    }
    if (variable("AWS_ACCESS_KEY_ID") && variable("AWS_SECRET_ACCESS_KEY")) {
        snprintf(target->sigv4, sizeof(target->sigv4), "aws:amz:%.*s:s3", FETCH_REGION_MAX, region);
    }
    target->has_dots = has_dots(rest + bucket, key - bucket);
    if (fetch->s3_endpoint) {
        add_endpoint(target, fetch->s3_endpoint);
        add_str(target, "/");
        add_path(target, rest, bucket);
    } else {
        add_amazon(target, region, rest, bucket);
    }
    add_path(target, rest + bucket, key - bucket);
    if (key < len) {
        add_str(target, S3_VERSION);
        add_encoded(target, rest + key + strlen(S3_VERSION), len - key - strlen(S3_VERSION),
                    UNRESERVED);
    }
    return is_whole(target);
}

/* owner/name[@revision]/path */
static bool find_hf(const struct fetch *fetch, const char *rest, size_t len,
                    struct fetch_target *target)
{
    size_t owner = strcspn(rest, "/");
    if (owner == 0 || owner + 1 >= len) {
        return false;
    }
    size_t name = strcspn(rest + owner + 1, "/@");
    const char *at = rest + owner + 1 + name, *revision = "main";
    size_t revision_len = 4;
    if (*at == '@') {
        revision = at + 1;
        revision_len = strcspn(revision, "/");
        at = revision + revision_len;
    }
    size_t path = at < rest + len ? len - (size_t)(at - rest) : 0;
    size_t query = strcspn(at, "?");
    target->token = variable("HF_TOKEN");
    add_endpoint(target, fetch->hf_endpoint ? fetch->hf_endpoint : HF_ENDPOINT);
    add_str(target, "/");
    add_path(target, rest, owner + 1 + name);
    add_str(target, "/resolve/");
    add(target, revision, revision_len); /* one with a slash is written with %2F */
    add_path(target, at, query < path ? query : path);
    if (query < path) {
        add(target, at + query, path - query);
    }
    return name > 0 && revision_len > 0 && path > 1 && *at == '/' && is_whole(target);
}

static void find_extension(const char *url, size_t len, char out[8])
{
    size_t dot = len;
    while (dot > 0 && url[dot - 1] != '.' && url[dot - 1] != '/') {
        dot--;
    }
    out[0] = '\0';
    if (dot > 0 && url[dot - 1] == '.' && len - dot + 2 <= 8) {
        memcpy(out, url + dot - 1, len - dot + 1);
        out[len - dot + 1] = '\0';
    }
}

/* Reads the part behind '#'. */
static enum status parse_fragment(const char *fragment, struct fetch_target *target,
                                  struct error *err)
{
    static const char prefix[] = "#sha256=";
    if (!*fragment) {
        return ST_OK;
    }
    target->has_hash = strncmp(fragment, prefix, sizeof(prefix) - 1) == 0 &&
                       sha256_parse(span_str(fragment + sizeof(prefix) - 1), target->hash);
    return target->has_hash
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected #sha256= and 64 hexadecimal digits, got '%.80s'", fragment);
}

enum status fetch_url_parse(const struct fetch *fetch, const char *url,
                            struct fetch_target *out_target, struct error *err)
{
    struct fetch_target *target = out_target;
    char shown[FETCH_SHOWN_MAX];
    size_t len = strcspn(url, "#");
    const char *rest = strstr(url, "://");
    bool is_good = rest && len < FETCH_URL_MAX;
    *target = (struct fetch_target){0};
    fetch_show(url, shown);
    if (parse_fragment(url + len, target, err) != ST_OK) {
        return error_prefix(err, "%s: ", shown);
    }
    size_t rest_len = is_good ? (size_t)(url + len - (rest + 3)) : 0;
    rest = is_good ? rest + 3 : url;
    if (is_good && strncmp(url, "s3:", 3) == 0) {
        is_good = find_s3(fetch, rest, rest_len, target);
    } else if (is_good && strncmp(url, "hf:", 3) == 0) {
        is_good = find_hf(fetch, rest, rest_len, target);
    } else if (is_good && strncmp(url, "file:", 5) == 0) {
        target->is_local = true;
        is_good = rest_len > 1 && rest[0] == '/';
        add(target, rest, rest_len);
    } else if (is_good) {
        is_good = rest_len > 0 && (strncmp(url, "https:", 6) == 0 || strncmp(url, "http:", 5) == 0);
        add(target, url, len);
    }
    find_extension(url, strcspn(url, "?#"), target->extension);
    return is_good ? ST_OK
                   : error_set(err, ST_INVALID,
                               "%s: expected https://HOST/PATH, s3://BUCKET/KEY, "
                               "hf://OWNER/NAME/PATH or file:///PATH",
                               shown);
}
