/* SPDX-License-Identifier: MIT */
/* Handlers of the routes that run no model. Each handler prints its JSON to request->out and
 * returns ST_OK, or sets the reason why it cannot. Handlers do not block. A handler on the loop
 * whose work has no bound prints a piece, sets request->is_unfinished and is called again; one that
 * calls work_leave_loop() is called again on a thread. */
#ifndef PTED_SERVER_DAEMON_API_API_H
#define PTED_SERVER_DAEMON_API_API_H

#include "base/status.h"
#include "server/daemon/request/routes.h"

struct access;
struct access_log;
struct buf;
struct changes;
struct conns;
struct loop;
struct metrics;
struct model;
struct observed;
struct offload;
struct options;
struct params;
struct regions;
struct request;
struct seats;
struct servings;
struct spans;
struct tls;
struct transfers;
struct waits;

/* The parts of the daemon that handlers read or change, beside the request and its models. All of
 * them are borrowed. The page of metrics reads most of them, a handler of another kind one or two.
 */
struct api {
    const struct options *options;
    const struct params *params; /* of |options| */
    struct loop *loop;
    const struct observed *observed;
    const struct servings *servings;
    const struct changes *changes;
    const struct waits *waits;
    const struct offload *offload;
    struct regions *regions;
    const struct seats *seats;
    const struct transfers *transfers;
    const struct access *access;
    const struct conns *conns;
    const struct tls *tls;
    const struct metrics *metrics;
    const struct access_log *access_log;
    struct spans *spans;
};

api_handler_f api_server, api_live, api_ready, api_preflight;    /* api_health.c */
api_handler_f api_health, api_version;                           /* api_health.c */
api_handler_f api_models, api_model, api_model_ready, api_index; /* api_model.c */
api_handler_f api_v1_models, api_v1_model;                       /* api_v1.c */
api_handler_f api_signature, api_shape;                          /* api_signature.c */
api_handler_f api_results;                                       /* api_results.c */
api_handler_f api_tokenize, api_detokenize, api_decode;          /* api_tokenize.c */
api_handler_f api_apply_template, api_count_tokens;              /* api_chat.c */
api_handler_f api_props;                                         /* api_props.c */
api_handler_f api_tags, api_ps, api_show, api_refuse_change;     /* api_ollama.c */
api_handler_f api_info;                                          /* api_info.c */
api_handler_f api_graph;                                         /* api_graph.c */
api_handler_f api_grpc_ready, api_grpc_model_ready;              /* api_grpc.c */
api_handler_f api_grpc_stats, api_grpc_trace, api_grpc_health, api_grpc_reflect, api_grpc_calls;
api_handler_f api_grpc_watch; /* api_grpc.c, likewise */
api_handler_f api_openapi;                   /* api_openapi.c */
api_handler_f api_console;                   /* api_console.c */
api_handler_f api_load, api_unload;          /* api_change.c */
api_handler_f api_log_settings, api_set_log; /* api_settings.c */
api_handler_f api_trace_settings, api_set_trace;
api_handler_f api_model_trace_settings, api_set_model_trace;
api_handler_f api_region_status, api_register, api_unregister; /* api_region.c */
api_handler_f api_cuda_status, api_cuda_register, api_cuda_unregister;
api_handler_f api_config, api_stats, api_model_stats; /* api_model.c */

api_handler_f api_metrics; /* api_metrics.c */

/*
 * Shared by the handlers. api_find_ready(): the model that the target names, which the request
 * holds from now on; NULL with |err| set if it is unknown or cannot be called. api_no_memory():
 * ST_EXHAUSTED. api_check_printed(): has request->out taken everything? Else ST_TOO_LARGE or
 * ST_EXHAUSTED.
 */
const struct model *api_find_ready(struct request *request, struct error *err);
enum status api_no_memory(struct error *err);
MUST_CHECK enum status api_check_printed(const struct request *request, struct error *err);

/* Finds it likewise for routes that name no model: |name|, or with NULL the only one that
 * |can_answer|, which is a |what|. */
const struct model *api_find_named(struct request *request, const char *name,
                                   bool (*can_answer)(const struct model *model), const char *what,
                                   struct error *err);
/* Returns the name by which requests of OpenAI's API call it (api_v1.c). */
const char *api_v1_id(const struct model *model);

/* Tells whether it makes texts. For api_find_named(). */
bool api_generates(const struct model *model);

/* Appends to |text| the prompt of the chat in the body, whose form is |form|, an enum ask_form
 * (api_chat.c). The request holds the model from then on. On a thread: it takes long. */
MUST_CHECK enum status api_render_chat(struct request *request, unsigned form, struct buf *text,
                                       struct error *err);

#endif
