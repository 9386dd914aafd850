/* SPDX-License-Identifier: MIT */
/*
 * The parts of a daemon that handlers of routes see, made one by one: a device with models of
 * tests/models, a request, and around them what is looked at and counted. There is no server, no
 * socket and no thread of the pool; nothing turns the loop. An unexpected failure ends the test.
 */
#ifndef PTED_TESTS_UNIT_API_SUPPORT_H
#define PTED_TESTS_UNIT_API_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/daemon/api/api.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/access_log.h"
#include "server/daemon/observe/metrics.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/observe/spans.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/recovery.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"

struct api_world {
    struct options options;
    struct loop loop;
    struct alarm alarm; /* zeroed: nothing is due */
    struct offload offload;
    struct serving *serving;
    struct servings servings;
    struct recovery recovery;
    struct changes changes;
    struct waits waits;
    struct conns conns;
    struct tls tls;
    struct metrics metrics;
    struct access_log access_log;
    struct spans spans;
    struct requests requests;
    struct observed observed;
    struct api api;
    struct request request;
    struct error err;
};

/* |arguments| are options and files of pted, up to NULL; an @ in them is the folder tests/models.
 * The models are loaded. api_world_close() also checks that the request has left nothing. */
void api_world_open(struct api_world *world, const char *const *arguments);
void api_world_close(struct api_world *world);

/* The request keeps no memory of earlier ones. */
void api_world_renew(struct api_world *world);

/* The request is for |model|, "" for none, with |body|, and has asked for nothing before. */
void api_world_begin(struct api_world *world, const char *model, const char *body);

/* Calls |handler| as the daemon does: again while it is unfinished, and in a heavy task if it
 * leaves the loop. world->err is set if it fails. api_world_ask(): for a new request. */
enum status api_world_call(struct api_world *world, api_handler_f *handler);
enum status api_world_ask(struct api_world *world, api_handler_f *handler, const char *model,
                          const char *body);

/* The text of the answer. It is overwritten by the next request. */
const char *api_world_answer(struct api_world *world);

/* A field of the head of the request; between api_world_begin() and the handler. */
void api_world_add_field(struct api_world *world, const char *name, const char *value);

/* Checks that the answer is the JSON |expected|, whatever the order of members. A ` stands for
 * a quote in |expected|. */
void api_world_check(struct api_world *world, const char *expected);

/* Likewise that the answer, an object, has the members of |expected|, whatever else it has. */
void api_world_check_members(struct api_world *world, const char *expected);

#endif
