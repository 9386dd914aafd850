/* SPDX-License-Identifier: MIT */
/* The work of the present step, as far as it is known before it. */
#include "config.h"

#include "server/daemon/request/request_priv.h"

#include "base/check.h"

/* What is known of a step before it: bytes that it handles, and whether it may take long, whatever
 * its bytes. */
struct outlook {
    uint64_t bytes;
    bool is_long;
};

/* May a body of JSON begin with it? */
static bool is_json_first(uint8_t c)
{
    return c == '{' || c == '[' || c == '"' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * The bytes of JSON count. The body may also be a file, or tensors behind their JSON, which are
 * used where they lie, or tell when they are copied. Of a message of gRPC, too, all but the tensors
 * is small. The size of a body with a content coding is unknown. Files in the body tell of their
 * own work when they are opened.
 */
static struct outlook look_at_body(const struct request *request)
{
    const struct body *body = request->infer.body ? request->infer.body : &request->body;
    struct span text = body_span(body);
    bool is_coded =
        head_has(&request->head, HTTP_CONTENT_ENCODING) || request->grpc.coding != CODING_IDENTITY;
    if (request->grpc.is_on || head_has(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH)) {
        size_t announced = request->announced_json;
        return (struct outlook){announced < text.len ? announced : text.len, is_coded};
    }
    return (struct outlook){text.len > 0 && is_json_first(text.ptr[0]) ? text.len : 0,
                            is_coded || body->len > request->infer.env->params->inline_bytes_max};
}

static enum infer_step step_of_call(enum request_step step)
{
    return step == STEP_PARSE    ? INFER_PARSE
           : step == STEP_DECODE ? INFER_DECODE
           : step == STEP_SAMPLE ? INFER_SAMPLE
           : step == STEP_ENCODE ? INFER_ENCODE
                                 : INFER_OTHER;
}

static struct outlook look_at_call(const struct request *request)
{
    const struct infer *infer = &request->infer;
    enum infer_step step = step_of_call(request->step);
    struct outlook outlook = {0};
    if (step == INFER_PARSE || step == INFER_DECODE) {
        outlook = look_at_body(request);
        outlook.bytes *= infer_text_weight(infer);
    } else if (step == INFER_ENCODE) {
        /* The owner of a region can make any write to it wait, by fallocate(2) for example. */
        outlook = (struct outlook){infer_encode_bytes(infer), infer->has_shared_outputs};
    }
    outlook.is_long |= infer_is_long(infer, step);
    return outlook;
}

static struct outlook look_at_handler(const struct request *request, const struct route *route)
{
    bool is_large = request->out.len > request->infer.env->params->inline_bytes_max;
    return (struct outlook){.is_long = request->step == STEP_PARSE
                                           ? route->is_long
                                           : request->step == STEP_ENCODE && is_large};
}

enum work_place request_work_place(const struct request *request, uint64_t *out_known)
{
    const struct route *route = request_route(request);
    bool has_call = request->infer.ops && request->err.code == ST_OK;
    struct outlook outlook = route->handler ? look_at_handler(request, route)
                             : has_call     ? look_at_call(request)
                                            : (struct outlook){0};
    *out_known = outlook.bytes;
    return work_place(&request->infer.work, outlook.bytes, outlook.is_long);
}
