/* SPDX-License-Identifier: MIT */
/*
 * Who gets an answer: by the scope that a route needs and the token that the client has sent
 * (server/daemon/request/tokens.h); and which pages of browsers may read it (CORS, the Fetch
 * standard, https://fetch.spec.whatwg.org/). Loop thread, except the counters.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_ACCESS_H
#define PTED_SERVER_DAEMON_REQUEST_ACCESS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/status.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/tokens.h"
#include "server/process/options.h"

struct request;

enum access_denial {
    ACCESS_NO_TOKEN,      /* 401 */
    ACCESS_UNKNOWN_TOKEN, /* 401 */
    ACCESS_NO_SCOPE,      /* 403 */
    ACCESS_DENIAL_COUNT,
};

/* Zeroed at first. */
struct access {
    struct tokens tokens;
    struct counter denied[ACCESS_DENIAL_COUNT];
};

/* Reads the token file that |options| name, if they do; again after SIGHUP. If that fails the old
 * tokens stay. */
MUST_CHECK enum status access_read(struct access *access, const struct options *options,
                                   struct error *err);

/* Only looks whether the file is good, for --check-config. */
MUST_CHECK enum status access_verify(const struct options *options, struct error *err);
void access_fini(struct access *access);

/* Call when the route is known: 200, or the status to answer with and |request->err|. */
int access_begin(struct request *request);

/* Call when the request is over. */
void access_end(struct request *request);

/* For a request that has been let in, and asks for more than its route says: may it have |scope|,
 * which clients of an address for administrators have? 0, or the status to refuse it with. */
MUST_CHECK int access_raise(struct request *request, enum token_scope scope, struct error *err);

/* Does a browser ask whether its page may send a request? It is answered without a token. */
bool access_is_preflight(const struct request *request, const struct exchange_head *head);

/* Adds to the answer what lets the page read it. */
struct http_answer;
void access_describe(const struct request *request, struct http_answer *answer);

/* Returns "no token" */
const char *access_denial_name(enum access_denial denial);

#endif
