/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/fetch_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/process/fetch.h"

#define HF_ENDPOINT "https://huggingface.co"
#define S3_REGION "us-east-1"

bool fetch_is_url(const char *path)
{
    size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return scheme > 0 && strncmp(path + scheme, "://", 3) == 0;
}

void fetch_show(const char *url, char out[FETCH_SHOWN_MAX])
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t scheme = (size_t)(host - url), len = strcspn(host, "?#");
    size_t slash = strcspn(host, "/?#");
    for (size_t i = 0; i < slash; i++) { /* the user ends at the last @ */
        if (host[i] == '@' && strncmp(url, "hf:", 3) != 0) {
            return fetch_show(host + i + 1, out);
        }
    }
    snprintf(out, FETCH_SHOWN_MAX, "%.*s%.*s", (int)scheme, url, (int)len, host);
}

/* A variable that is set and not empty, or NULL. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* False: it does not fit. */
static bool is_whole(int printed)
{
    return printed >= 0 && printed < FETCH_URL_MAX;
}

/* bucket/key at Amazon, or below the endpoint of another service. */
static bool find_s3(const struct fetch *fetch, const char *rest, int len,
                    struct fetch_target *target)
{
    const char *region = variable("AWS_REGION");
    region = region ? region : variable("AWS_DEFAULT_REGION");
    region = region ? region : S3_REGION;
    int bucket = (int)strcspn(rest, "/");
    if (bucket == 0 || bucket + 1 >= len) {
        return false;
    }
    if (variable("AWS_ACCESS_KEY_ID") && variable("AWS_SECRET_ACCESS_KEY")) {
        snprintf(target->sigv4, sizeof(target->sigv4), "aws:amz:%.64s:s3", region);
    }
    const char *endpoint = fetch->s3_endpoint;
    return endpoint ? is_whole(snprintf(target->url, sizeof(target->url), "%s/%.*s", endpoint, len,
                                        rest))
                    : is_whole(snprintf(target->url, sizeof(target->url),
                                        "https://%.*s.s3.%.64s.amazonaws.com%.*s", bucket, rest,
                                        region, len - bucket, rest + bucket));
}

/* owner/name[@revision]/path */
static bool find_hf(const struct fetch *fetch, const char *rest, int len,
                    struct fetch_target *target)
{
    const char *endpoint = fetch->hf_endpoint ? fetch->hf_endpoint : HF_ENDPOINT;
    int owner = (int)strcspn(rest, "/");
    if (owner == 0 || owner + 1 >= len) {
        return false;
    }
    int name = (int)strcspn(rest + owner + 1, "/@");
    const char *at = rest + owner + 1 + name, *revision = "main";
    int revision_len = 4;
    if (*at == '@') {
        revision = at + 1;
        revision_len = (int)strcspn(revision, "/");
        at = revision + revision_len;
    }
    int path = len - (int)(at - rest);
    target->token = variable("HF_TOKEN");
    return name > 0 && revision_len > 0 && path > 1 && *at == '/' &&
           is_whole(snprintf(target->url, sizeof(target->url), "%s/%.*s/resolve/%.*s%.*s", endpoint,
                             owner + 1 + name, rest, revision_len, revision, path, at));
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
    int rest_len = is_good ? (int)(url + len - (rest + 3)) : 0;
    rest = is_good ? rest + 3 : url;
    if (is_good && strncmp(url, "s3:", 3) == 0) {
        is_good = find_s3(fetch, rest, rest_len, target);
    } else if (is_good && strncmp(url, "hf:", 3) == 0) {
        is_good = find_hf(fetch, rest, rest_len, target);
    } else if (is_good && strncmp(url, "file:", 5) == 0) {
        target->is_local = true;
        is_good = rest_len > 1 && rest[0] == '/';
        snprintf(target->url, sizeof(target->url), "%.*s", rest_len, rest);
    } else if (is_good) {
        is_good = rest_len > 0 && (strncmp(url, "https:", 6) == 0 || strncmp(url, "http:", 5) == 0);
        snprintf(target->url, sizeof(target->url), "%.*s", (int)len, url);
    }
    find_extension(url, strcspn(url, "?#"), target->extension);
    return is_good ? ST_OK
                   : error_set(err, ST_INVALID,
                               "%s: expected https://HOST/PATH, s3://BUCKET/KEY, "
                               "hf://OWNER/NAME/PATH or file:///PATH",
                               shown);
}
