/* SPDX-License-Identifier: MIT */
/*
 * The behaviour of a route: a row for each route of route.def. The table of all rows is lent to
 * struct requests. ROUTE_COUNT, ROUTE_NONE_OF_V1 and ROUTE_NONE_OF_MESSAGES, of requests that have
 * no route, have rows too, which print errors.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_ROUTES_H
#define PTED_SERVER_DAEMON_REQUEST_ROUTES_H

#include "base/buf.h"
#include "base/status.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/query.h"
#include "server/daemon/request/request_grpc.h"
#include "server/daemon/request/route.h"
#include "server/daemon/request/tokens.h"

struct request;

/* Prints the answer of a route that calls no model, see server/daemon/api/api.h. */
typedef enum status api_handler_f(struct request *request, struct error *err);

struct route {
    api_handler_f *handler; /* prints the answer; NULL: the request calls models, by |ops| */
    bool is_long;           /* the handler runs on a thread */
    enum token_scope scope; /* that a client of --listen needs */
    bool is_for_probes;     /* answered at --health-listen, too */
    bool changes;           /* without a token, not for pages of other origins */
    bool changes_models;    /* the handler says in request->order what is to change */
    const struct infer_ops *ops;
    const struct codec *codec;
    uint32_t queries;       /* the parameters of a query that it takes, a set of
                               server/daemon/infer/query.h */
    bool ignores_queries;   /* a query is not looked at */
    struct route_grpc grpc; /* of a method of gRPC */
    /* The form of an error's body. */
    void (*print_error)(struct buf *out, const char *text, int http_status);
};

#endif
