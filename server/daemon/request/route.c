/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/route.h"

#include <string.h>
#include <strings.h>

#include "server/http/head.h"
#include "server/http/percent.h"

struct route_info {
    const char *pattern;
    enum route_method method;
};

#define ROUTE_GET ROUTE_GET_ONLY
#define ROUTE_POST ROUTE_POST_ONLY
static const struct route_info routes[ROUTE_COUNT] = {
#define ROUTE(id, method, pattern, behaviour) [ROUTE_##id] = {pattern, ROUTE_##method},
#include "server/daemon/request/route.def"
#undef ROUTE
};

const char *route_pattern(enum route_id id)
{
    return id < ROUTE_COUNT ? routes[id].pattern : "none";
}

/* "http://host/path" means the same as "/path". */
static bool is_path(struct span target)
{
    static const char scheme[] = "http://";
    size_t len = sizeof(scheme) - 1;
    return target.len > 0 &&
           (target.ptr[0] == '/' ||
            (target.len >= len && strncasecmp((const char *)target.ptr, scheme, len) == 0));
}

/* The names that a pattern has taken out of a path. */
struct taken {
    struct span model, region;
    uint32_t version;
};

/* One segment, or its part before |stop|, into |taken|, which the pattern calls 'm', 'r' or 'v';
 * false: it cannot be that. */
static bool take_segment(char what, char stop, const uint8_t **at, const uint8_t *end,
                         struct taken *taken)
{
    const uint8_t *first = *at;
    while (*at < end && **at != '/' && !(stop == ':' && **at == ':')) {
        ++*at;
    }
    struct span segment = span_of(first, (size_t)(*at - first));
    if (what == 'm' || what == 'r') {
        *(what == 'm' ? &taken->model : &taken->region) = segment;
        return segment.len > 0;
    }
    return model_name_parse_version(segment, &taken->version);
}

/* Byte by byte, so that most patterns fail early. A part in brackets is tried, then left out. */
static bool pattern_matches(const char *pattern, const uint8_t *at, const uint8_t *end,
                            struct taken *taken)
{
    for (; *pattern; pattern++) {
        if (*pattern == '[') {
            if (pattern_matches(pattern + 1, at, end, taken)) {
                return true;
            }
            taken->version = 0;
            taken->region = span_str("");
            pattern = strchr(pattern, ']');
        } else if (*pattern == '{') {
            if (!take_segment(pattern[1], pattern[3], &at, end, taken)) {
                return false;
            }
            pattern += 2; /* to the closing brace */
        } else if (*pattern != ']' && (at == end || *at++ != (uint8_t)*pattern)) {
            return false;
        }
    }
    return at == end;
}

static bool method_fits(enum route_method route, enum route_method method)
{
    return route == method || (route == ROUTE_GET_ONLY && method == ROUTE_HEAD_ONLY);
}

/* The methods that a path allows, by whether GET and POST have a route there. */
static const char *const allowed[2][2] = {{NULL, "POST"}, {"GET, HEAD", "GET, HEAD, POST"}};

/* A name that the pattern does not have is "". */
static bool take_names(const struct taken *taken, struct route_match *match, struct error *err)
{
    bool is_model = percent_decode(taken->model, match->model, MODEL_NAME_MAX);
    if (!is_model || !percent_decode(taken->region, match->region, MODEL_NAME_MAX)) {
        error_set(err, ST_INVALID, "%s name: expected at most %d characters, with valid %%XX",
                  is_model ? "region" : "model", MODEL_NAME_MAX);
        return false;
    }
    return true;
}

/* Is |path| |folder|, or in it? */
static bool is_below(struct span path, const char *folder)
{
    size_t len = strlen(folder);
    return path.len >= len && memcmp(path.ptr, folder, len) == 0 &&
           (path.len == len || path.ptr[len] == '/');
}

enum route_id route_none_of(struct span target)
{
    struct span path = head_path_of(target);
    return is_below(path, "/v1/messages") ? ROUTE_NONE_OF_MESSAGES
           : is_below(path, "/v1")        ? ROUTE_NONE_OF_V1
                                          : ROUTE_COUNT;
}

#define SUFFIXES_MAX 4 /* of a path that are compared with routes */

/* Is |path| the pattern, which has no names, or its rest behind "/v1"? */
static bool is_meant(const char *pattern, struct span path)
{
    static const char base[] = "/v1";
    size_t len = sizeof(base) - 1;
    return !strpbrk(pattern, "{[") &&
           (span_is(path, pattern) ||
            (strncmp(pattern, base, len) == 0 && span_is(path, pattern + len)));
}

static const char *find_meant(struct span path, enum route_method method)
{
    for (int i = 0; i < ROUTE_COUNT; i++) {
        if (method_fits(routes[i].method, method) && is_meant(routes[i].pattern, path)) {
            return routes[i].pattern;
        }
    }
    return NULL;
}

/* The route that |path| ends with, if there is one: clients are given URLs with too much or too
 * little before the paths that they add, as "/v3" or without "/v1". */
static const char *guess(struct span path, enum route_method method)
{
    const char *meant = NULL;
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    for (int i = 0; i < SUFFIXES_MAX && path.len > 1 && !meant; i++) {
        meant = find_meant(path, method);
        const uint8_t *slash = memchr(path.ptr + 1, '/', path.len - 1);
        path = slash ? span_of(slash, (size_t)(path.ptr + path.len - slash)) : span_str("");
    }
    return meant;
}

int route_find(struct span target, enum route_method method, struct route_match *out_match,
               struct error *err)
{
    struct span path = head_path_of(target);
    bool has_get = false, has_post = false;
    out_match->id = ROUTE_COUNT;
    out_match->none = ROUTE_COUNT;
    if (!is_path(target)) {
        error_set(err, ST_INVALID, "request target: expected a path that begins with '/'");
        return 400;
    }
    for (int i = 0; i < ROUTE_COUNT; i++) {
        struct taken taken = {.version = 0};
        if (!pattern_matches(routes[i].pattern, path.ptr, path.ptr + path.len, &taken)) {
            continue;
        }
        if (!method_fits(routes[i].method, method)) {
            has_get |= routes[i].method == ROUTE_GET_ONLY;
            has_post |= routes[i].method == ROUTE_POST_ONLY;
            continue;
        }
        out_match->version = taken.version;
        out_match->id = (enum route_id)i; /* its errors have the form of the route */
        return take_names(&taken, out_match, err) ? 200 : 400;
    }
    out_match->none = route_none_of(target);
    out_match->allow = allowed[has_get][has_post];
    if (out_match->allow) {
        error_set(err, ST_INVALID, "method not allowed here: expected %s", out_match->allow);
        return 405;
    }
    const char *meant = guess(path, method);
    error_set(err, ST_NOT_FOUND, "no such path, see GET /openapi.json%s%s%s",
              meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
    return 404;
}
