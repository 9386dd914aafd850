/* SPDX-License-Identifier: MIT */
/* Is the process alive, does it take requests, and which protocol does it speak? */
#include "config.h"

#include "base/check.h"
#include "protocol/oip_reply.h"
#include "server/daemon/api/api.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/request/request.h"
#include "server/daemon/serving/recovery.h"
#include "server/process/options.h"

enum status api_server(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    (void)err;
    static const char *const extensions[] = {
        "binary_tensor_data",
        "classification",
        "logging",
        "model_configuration",
        "model_repository",
        "model_repository(unload_dependents)",
        "schedule_policy",
        "sequence",
        "sequence(string_id)",
        "statistics",
        "trace",
        "system_shared_memory",
    };
    static const enum token_scope all[] = {TOKEN_SCOPE_INFER, TOKEN_SCOPE_READ, TOKEN_SCOPE_ADMIN};
    bool is_shared = request->api->options->shared_memory != OPTIONS_SHARED_OFF;
    const char *scopes[sizeof(all) / sizeof(all[0])];
    struct oip_server_meta meta = {
        .name = PACKAGE_NAME,
        .version = PACKAGE_VERSION,
        .extensions = extensions,
        /* the last one is there only if it is in use */
        .extension_count = sizeof(extensions) / sizeof(extensions[0]) - !is_shared,
        .scopes = scopes,
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (request->client.scopes & all[i]) {
            scopes[meta.scope_count++] = token_scope_name(all[i]);
        }
    }
    oip_print_server(&request->out, &meta);
    return ST_OK;
}

enum status api_live(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    (void)err;
    buf_add_str(&request->out, "{\"live\":true}");
    return ST_OK;
}

enum status api_ready(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->api->loop->is_draining) {
        return error_set(err, ST_UNAVAILABLE, "stopping");
    }
    if (request->api->loop->is_starting) {
        return error_set(err, ST_UNAVAILABLE, "models are loading");
    }
    if (request->api->observed->recovery->is_active) {
        return error_set(err, ST_UNAVAILABLE, "the device was lost");
    }
    buf_add_str(&request->out, "{\"ready\":true}");
    return ST_OK;
}

/* For probes of other servers: the status says it. */
enum status api_health(struct request *request, struct error *err)
{
    TRY(api_ready(request, err));
    buf_reset(&request->out);
    buf_add_str(&request->out, "{\"status\":\"ok\"}");
    return ST_OK;
}

enum status api_version(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    (void)err;
    buf_add_str(&request->out, "{\"version\":\"" PACKAGE_VERSION "\"}");
    return ST_OK;
}

/* OPTIONS of any path: the fields of the answer say it all. */
enum status api_preflight(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    (void)err;
    buf_add_str(&request->out, "{}");
    return ST_OK;
}
