/* SPDX-License-Identifier: MIT */
/* The work of the present step, as far as it is known before it. */
#include "config.h"

#include "server/daemon/request/request_priv.h"

#include <string.h>

#include "base/check.h"

/* The bytes with which a body of JSON may begin. */
#define JSON_FIRST "{[\" \t\r\n"

static const struct body *body_of(const struct request *request)
{
    return request->infer.body ? request->infer.body : &request->body;
}

/* Of a message of gRPC, too, all but the tensors is small. */
static bool is_announced(const struct request *request)
{
    return request->grpc.is_on || head_has(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
}

/* Bytes of JSON. The body of a request may also be a file, or tensors behind their JSON. */
static size_t json_bytes(const struct request *request)
{
    struct span text = body_span(body_of(request));
    if (is_announced(request)) {
        size_t announced = request_announced_json(request);
        return announced < text.len ? announced : text.len;
    }
    return text.len > 0 && memchr(JSON_FIRST, text.ptr[0], strlen(JSON_FIRST)) ? text.len : 0;
}

static bool reads_body(const struct request *request)
{
    return request->step == STEP_PARSE || request->step == STEP_DECODE;
}

/* Files in the body tell of their own work when they are opened. */
uint64_t request_work_known(const struct request *request)
{
    bool is_encode = request->step == STEP_ENCODE;
    if (!(is_encode || reads_body(request)) || !request->infer.ops || request->err.code != ST_OK) {
        return 0;
    }
    return is_encode ? infer_encode_bytes(&request->infer)
                     : (uint64_t)json_bytes(request) * infer_text_weight(&request->infer);
}

/* Tensors behind announced JSON are used where they lie, or tell when they are copied. The size of
 * a body with a content coding is unknown. */
static bool is_long_body(const struct request *request)
{
    return head_has(&request->head, HTTP_CONTENT_ENCODING) ||
           request->grpc.coding != CODING_IDENTITY ||
           (!is_announced(request) &&
            body_of(request)->len > request->infer.env->params->inline_bytes_max);
}

static enum infer_step step_of_call(enum request_step step)
{
    return step == STEP_PARSE    ? INFER_PARSE
           : step == STEP_DECODE ? INFER_DECODE
           : step == STEP_SAMPLE ? INFER_SAMPLE
           : step == STEP_ENCODE ? INFER_ENCODE
                                 : INFER_OTHER;
}

/* May the step take long, whatever its bytes? */
static bool is_long(const struct request *request)
{
    if (request_route(request)->handler) {
        bool is_large = request->out.len > request->infer.env->params->inline_bytes_max;
        return request->step == STEP_PARSE ? request_route(request)->is_long
                                           : request->step == STEP_ENCODE && is_large;
    }
    if (!request->infer.ops || request->err.code != ST_OK) {
        return false;
    }
    if (infer_is_long(&request->infer, step_of_call(request->step))) {
        return true;
    }
    if (request->step == STEP_ENCODE) {
        /* The owner of a region can make any write to it wait, by fallocate(2) for example. */
        return request->infer.has_shared_outputs;
    }
    return reads_body(request) && is_long_body(request);
}

enum work_place request_work_place(const struct request *request, uint64_t known)
{
    return work_place(&request->infer.work, known, is_long(request));
}
