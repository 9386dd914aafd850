/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/work.h"

#include <string.h>

#include "base/check.h"
#include "server/daemon/infer/infer_one.h"
#include "server/daemon/request/request_priv.h"
#include "server/daemon/server.h"

/* The bytes with which a body of JSON may begin. */
#define JSON_FIRST "{[\" \t\r\n"

static const struct body *body_of(const struct request *request)
{
    return request->infer.body ? request->infer.body : &request->body;
}

static bool is_announced(const struct request *request)
{
    return head_has(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
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
uint64_t work_known(const struct request *request)
{
    const struct infer_ops *ops = request->infer.ops;
    if (!ops || request->err.code != ST_OK) {
        return 0;
    }
    if (reads_body(request)) {
        return (uint64_t)json_bytes(request) * (ops->is_long ? INFER_TEXT_WEIGHT : 1);
    }
    return request->step == STEP_ENCODE ? infer_encode_bytes(request) : 0;
}

/* Tensors behind announced JSON are used where they lie, or tell when they are copied. The size of
 * a body with a content coding is unknown. */
static bool is_long_body(const struct request *request)
{
    return head_has(&request->head, HTTP_CONTENT_ENCODING) ||
           (!is_announced(request) &&
            body_of(request)->len > request->server->params->inline_bytes_max);
}

/* May the step take long, whatever its bytes? */
static bool is_long(const struct request *request)
{
    const struct infer_ops *ops = request->infer.ops;
    if (request_route(request)->handler) {
        return request->step == STEP_PARSE && request_route(request)->is_long;
    }
    if (!ops || request->err.code != ST_OK) {
        return false;
    }
    if (ops->is_long && ops->is_long(request)) {
        return true;
    }
    if (request->step == STEP_ENCODE) {
        /* The owner of a region can make any write to it wait, by fallocate(2) for example. */
        return request->infer.has_shared_outputs;
    }
    return reads_body(request) && is_long_body(request);
}

static uint64_t limit(const struct request *request, enum work_place place)
{
    const struct params *params = request->server->params;
    return place == WORK_ON_LOOP     ? params->inline_bytes_max
           : place == WORK_ON_THREAD ? params->light_bytes_max
                                     : UINT64_MAX;
}

enum work_place work_place(const struct request *request)
{
    uint64_t known = work_known(request), found = request->work.found;
    uint64_t bytes = known > found ? known : found;
    if (bytes > limit(request, WORK_ON_THREAD)) {
        return WORK_HEAVY;
    }
    return bytes > limit(request, WORK_ON_LOOP) || is_long(request) ? WORK_ON_THREAD : WORK_ON_LOOP;
}

void work_begin(struct request *request, enum work_place place)
{
    request->work.place = place;
    request->work.bytes = request->work.reserved = 0;
}

static enum status refuse(struct error *err)
{
    return error_set(err, ST_WOULD_BE_HEAVY, "%s", status_text(ST_WOULD_BE_HEAVY));
}

enum status work_add(struct request *request, uint64_t bytes, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct work *work = &request->work;
    if (bytes > limit(request, work->place) - work->bytes) {
        work->found = bytes < UINT64_MAX - work->bytes ? work->bytes + bytes : UINT64_MAX;
        return refuse(err);
    }
    work->bytes += bytes;
    return ST_OK;
}

enum status work_leave_loop(const struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request->work.place == WORK_ON_LOOP ? refuse(err) : ST_OK;
}

uint64_t work_piece_max(const struct request *request, enum work_place place)
{
    return place == WORK_HEAVY ? 0 : request->server->params->light_bytes_max;
}

void work_move_on(struct request *request)
{
    struct work *work = &request->work;
    uint64_t least = work->place == WORK_HEAVY ? 0 : limit(request, work->place) + 1;
    work->found = work->found > least ? work->found : least;
}

void work_reset(struct request *request)
{
    request->work.found = 0;
}
