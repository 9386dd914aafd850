/* SPDX-License-Identifier: MIT */
/* The answer of a request: a status and fields, and the bytes where they lie. */
#include "config.h"

#include "base/check.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"

_Static_assert(INFER_SPANS_MAX <= EXCHANGE_PARTS_MAX, "one write takes any answer");

/* The client's X-Request-Id, if that can be a field of ours as it is. */
static struct span repeat_id(const struct request *request)
{
    struct span id = head_value(&request->head, HTTP_X_REQUEST_ID);
    bool is_plain = id.len <= HTTP_REQUEST_ID_MAX;
    for (size_t i = 0; is_plain && i < id.len; i++) {
        is_plain = id.ptr[i] > ' ' && id.ptr[i] < 0x7f;
    }
    return is_plain ? id : span_str("");
}

static struct span continue_trace(struct request *request)
{
    const struct trace *trace = request_trace(request);
    if (!trace) {
        return span_str("");
    }
    trace_print(trace, request->trace.answer);
    return span_of(request->trace.answer, sizeof(request->trace.answer));
}

static struct http_answer describe_answer(struct request *request)
{
    if (!request->retry_after_s && (request->http_status == 429 || request->http_status == 503)) {
        request->retry_after_s = 1; /* there is no better one */
    }
    struct http_answer answer = {
        .status = request->http_status ? request->http_status : 200,
        .content_type = request->content_type         ? request->content_type
                        : request->infer.content_type ? request->infer.content_type
                                                      : "application/json",
        .content_length = request->out.len,
        .allow = request->match.allow,
        .accept_encoding = request->http_status == 415 ? CODINGS_ACCEPTED : NULL,
        .retry_after_s = request->retry_after_s,
        .cut_texts = request->http_status ? 0 : request->infer.cut_texts,
        .is_page = request->is_page,
        .request_id = repeat_id(request),
        .traceparent = continue_trace(request),
    };
    access_describe(request, &answer);
    const struct infer *infer = &request->infer;
    if (infer->encoded.has_binary) {
        answer.content_length = infer->encoded.total_bytes;
        answer.content_type = "application/octet-stream";
        answer.json_bytes = infer->encoded.json_bytes;
    }
    if (infer->coding != CODING_IDENTITY) {
        answer.content_length = infer->deflated.len;
        answer.content_encoding = coding_name(infer->coding);
    }
    return answer;
}

/* The type of the body: JSON, or JSON and tensors, or either with a content coding. */
static const struct span *answer_spans(const struct request *request, struct span *whole,
                                       size_t *out_count)
{
    const struct infer *infer = &request->infer;
    *out_count = 1;
    if (infer->coding != CODING_IDENTITY) {
        *whole = buf_span(&infer->deflated);
    } else if (infer->encoded.has_binary) {
        *out_count = infer->encoded.span_count;
        return infer->encoded.spans;
    } else {
        *whole = buf_span(&request->out);
    }
    return whole;
}

size_t request_answer_heap_bytes(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request->out.capacity + request->infer.deflated.capacity;
}

size_t request_answer_pool_bytes(const struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct infer *infer = &request->infer;
    bool has_results = infer->encoded.has_binary && infer->coding == CODING_IDENTITY;
    return has_results ? infer->encoded.total_bytes - infer->encoded.json_bytes : 0;
}

enum exchange_written request_answer_write(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->step == STEP_WRITE && !exchange_has_begun(request->exchange));
    struct http_answer answer = describe_answer(request);
    struct span whole;
    size_t count;
    const struct span *parts = answer_spans(request, &whole, &count);
    must(count <= EXCHANGE_PARTS_MAX);
    unsigned trailers = request->grpc.is_on ? request_grpc_describe(request, &answer) : 0;
    const struct exchange_part part = {.answer = &answer,
                                       .spans = parts,
                                       .count = (unsigned)count,
                                       .is_last = true,
                                       .trailers = request->grpc.trailers,
                                       .trailer_count = trailers};
    return exchange_write(request->exchange, &part);
}

static const char *stream_type(const struct request *request)
{
    const struct codec *codec = request->infer.call.codec;
    return codec && codec->stream_type ? codec->stream_type : "text/event-stream; charset=utf-8";
}

static enum exchange_written send_spans(struct request *request, const struct span *spans,
                                        unsigned count, bool is_last)
{
    bool is_first = !exchange_has_begun(request->exchange);
    struct http_answer answer = {0};
    if (is_first) {
        request->content_type = stream_type(request);
        answer = describe_answer(request);
        answer.is_stream = true;
    }
    answer.status = is_first ? answer.status : request->http_status ? request->http_status : 200;
    unsigned trailers = request->grpc.is_on ? request_grpc_describe(request, &answer) : 0;
    const struct exchange_part part = {.answer = is_first ? &answer : NULL,
                                       .spans = spans,
                                       .count = count,
                                       .is_last = is_last,
                                       .trailers = request->grpc.trailers,
                                       .trailer_count = is_last ? trailers : 0};
    return exchange_write(request->exchange, &part);
}

enum exchange_written request_answer_send(struct request *request, bool is_last)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->step == STEP_SEND || request->step == STEP_WRITE || request->grpc.is_on);
    const struct span events = buf_span(&request->out);
    return send_spans(request, &events, 1, is_last);
}

enum exchange_written request_answer_relay(struct request *request, const struct span *spans,
                                           unsigned count)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    must(request->step == STEP_READ && request->grpc.stream);
    return send_spans(request, spans, count, false);
}
