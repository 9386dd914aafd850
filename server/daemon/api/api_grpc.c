/* SPDX-License-Identifier: MIT */
/* Methods of gRPC that answer otherwise than the route of the HTTP side does, or stand for two
 * routes. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/grpc_describe.h"
#include "protocol/grpc_json.h"
#include "protocol/protobuf.h"
#include "server/daemon/api/api.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"

/* What is not ready is no error: the answer says it. */
static enum status print_ready(struct request *request, enum status status, struct error *err)
{
    if (status == ST_NOT_FOUND || status == ST_UNAVAILABLE) {
        buf_reset(&request->out);
        buf_add_str(&request->out, "{\"ready\":false}");
        err->code = ST_OK;
        return ST_OK;
    }
    return status;
}

/* ServerReady */
enum status api_grpc_ready(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return print_ready(request, api_ready(request, err), err);
}

/* ModelReady */
enum status api_grpc_model_ready(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return print_ready(request, api_model_ready(request, err), err);
}

/* ModelStatistics: of all models, if it names none. */
enum status api_grpc_stats(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request->match.model[0] ? api_model_stats(request, err) : api_stats(request, err);
}

/* TraceSetting: a request without settings changes nothing, and is told them. */
enum status api_grpc_trace(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request->match.model[0] ? api_set_model_trace(request, err)
                                   : api_set_trace(request, err);
}

/* ModelStreamInfer: its calls have answered. */
enum status api_grpc_calls(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    (void)err;
    must(request->grpc.stream && request->out.len == 0);
    return ST_OK;
}

/* ---- health ---------------------------------------------------------------------------------- */

static bool is_service(const char *name)
{
    static const char *const packages[GRPC_FILE_COUNT] = {
        [GRPC_INFERENCE] = "inference.", [GRPC_HEALTH] = "grpc.health.v1."};
    for (int i = 0; i < GRPC_SERVICE_COUNT; i++) {
        const char *package = packages[grpc_services[i].file];
        size_t len = package ? strlen(package) : 0;
        if (package && strncmp(name, package, len) == 0 &&
            strcmp(name + len, grpc_services[i].name) == 0) {
            return true;
        }
    }
    return false;
}

/* The server, which "" means, and its services are ready together. */
static bool is_serving(struct request *request)
{
    struct error err;
    bool is_ready = api_ready(request, &err) == ST_OK;
    buf_reset(&request->out);
    return is_ready;
}

/* Check of grpc.health.v1.Health. */
enum status api_grpc_health(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const char *name = request->match.region;
    if (*name && !is_service(name)) {
        return error_set(err, ST_NOT_FOUND, "no service '%s'", name);
    }
    buf_add_str(&request->out,
                is_serving(request) ? "{\"status\":\"SERVING\"}" : "{\"status\":\"NOT_SERVING\"}");
    return ST_OK;
}

/* Numbers of HealthCheckResponse.ServingStatus. */
enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

#define SERVICE_BYTES_MAX 64

/* The state of the service that the message names. */
static enum status find_state(struct request *request, uint32_t *out, struct error *err)
{
    char name[SERVICE_BYTES_MAX + 1] = "";
    struct grpc_frame frame;
    struct protobuf in;
    struct protobuf_field field;
    TRY(grpc_take_only(body_span(&request->body), &frame, err));
    if (frame.is_compressed) {
        return error_set(err, ST_UNSUPPORTED, "compressed questions are not taken");
    }
    for (protobuf_init(&in, frame.message); protobuf_next(&in, &field);) {
        if (field.number == GRPC_NUMBER_HealthCheckRequest_service &&
            field.type == PROTOBUF_BYTES) {
            size_t len = field.bytes.len <= SERVICE_BYTES_MAX ? field.bytes.len : 1;
            memcpy(name, field.bytes.ptr, len); /* no service has a longer name, or one of 1 */
            name[len] = '\0';
        }
    }
    if (in.is_wrong) {
        return grpc_refuse_message(GRPC_HealthCheckRequest, err);
    }
    *out = *name && !is_service(name) ? SERVICE_UNKNOWN
           : is_serving(request)      ? SERVING
                                      : NOT_SERVING;
    return ST_OK;
}

/* Watch of grpc.health.v1.Health: an answer for each change. */
enum status api_grpc_watch(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    static const uint8_t prefix[GRPC_PREFIX_BYTES] = {0, 0, 0, 0, 2};
    uint32_t state = NOT_SERVING;
    if (!request->grpc.is_complete) {
        return ST_OK;
    }
    TRY(find_state(request, &state, err));
    if (request->grpc.told == state + 1) {
        return request->api->loop->is_draining ? error_set(err, ST_UNAVAILABLE, "stopping") : ST_OK;
    }
    request->grpc.told = state + 1;
    buf_add(&request->out, prefix, sizeof(prefix));
    protobuf_put_number(&request->out, GRPC_NUMBER_HealthCheckResponse_status, state);
    return ST_OK;
}

/* ---- reflection ------------------------------------------------------------------------------ */

/* Questions of one call. An answer is some hundred times as long as its question. */
#define QUESTIONS_MAX 64
/* Names are short. */
#define QUESTION_BYTES_MAX 4096

static enum status answer_question(struct request *request, struct span question, struct error *err)
{
    struct buf *out = &request->out;
    size_t begin = out->len;
    uint8_t prefix[GRPC_PREFIX_BYTES] = {0};
    buf_add(out, prefix, sizeof(prefix));
    TRY(grpc_reflect(question, out, err));
    TRY(grpc_print_prefix(prefix, false, out->len - begin - sizeof(prefix), err));
    memcpy(out->ptr + begin, prefix, sizeof(prefix));
    return ST_OK;
}

static bool is_long_question(struct span rest)
{
    return rest.len >= GRPC_PREFIX_BYTES && load_be32(rest.ptr + 1) > QUESTION_BYTES_MAX;
}

/* ServerReflectionInfo: a message in answer to the next message. */
enum status api_grpc_reflect(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct request_grpc *grpc = &request->grpc;
    struct span body = body_span(&request->body);
    struct span rest = span_of(body.ptr + grpc->taken, body.len - grpc->taken);
    struct grpc_frame frame;
    if (is_long_question(rest)) {
        return error_set(err, ST_TOO_LARGE, "expected a question of at most %d bytes, got %u",
                         QUESTION_BYTES_MAX, load_be32(rest.ptr + 1));
    }
    if (rest.len == 0 || (!grpc->is_complete && grpc_is_partial(rest))) {
        return ST_OK;
    }
    if (grpc->question_count++ == QUESTIONS_MAX) {
        return error_set(err, ST_TOO_LARGE, "more than %d questions in one call", QUESTIONS_MAX);
    }
    TRY(grpc_take_next(&rest, &frame, err));
    grpc->taken = body.len - rest.len;
    return frame.is_compressed
               ? error_set(err, ST_UNSUPPORTED, "compressed questions are not taken")
               : answer_question(request, frame.message, err);
}
