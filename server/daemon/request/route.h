/* SPDX-License-Identifier: MIT */
/*
 * From a request target to a row of route.def, with the model's name and version taken out. Names
 * are decoded once, after the path was split, and looked up in tables; no part of a target ever
 * becomes the name of a file. Any thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_ROUTE_H
#define PTED_SERVER_DAEMON_REQUEST_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "server/process/model_name.h"

enum route_id {
#define ROUTE(id, method, pattern, behaviour) ROUTE_##id,
#include "server/daemon/request/route.def"
#undef ROUTE
    ROUTE_COUNT,
    /* No route below /v1: errors have the form of OpenAI's; below /v1/messages Anthropic's. */
    ROUTE_NONE_OF_V1 = ROUTE_COUNT + 1,
    ROUTE_NONE_OF_MESSAGES,
    ROUTE_ROW_COUNT
};

enum route_method { ROUTE_GET_ONLY, ROUTE_HEAD_ONLY, ROUTE_POST_ONLY, ROUTE_OTHER };

struct route_match {
    enum route_id id;                /* ROUTE_COUNT: none */
    char model[MODEL_NAME_MAX + 1];  /* decoded, terminated; "" when the route has none */
    char region[MODEL_NAME_MAX + 1]; /* of shared memory; likewise */
    uint32_t version;                /* 0: none was named */
    const char *allow;               /* of a 405 */
    enum route_id none;              /* with ROUTE_COUNT: the row that has the form of errors */
};

/*
 * 200, or the status to answer with: 400 for a target that is malformed, 404 for one that nobody
 * serves, 405 with |allow|. The query is ignored here: server/daemon/infer/query.h reads it.
 */
int route_find(struct span target, enum route_method method, struct route_match *out_match,
               struct error *err);

/* Returns the row for errors about |target|, which has no route: its path tells their form. */
enum route_id route_none_of(struct span target);

/* Returns the pattern of route.def, for people: "/v2/models/{m}/infer"; of ROUTE_COUNT "none". */
const char *route_pattern(enum route_id id);

#endif
