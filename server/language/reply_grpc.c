/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/reply_grpc.h"

#include "base/check.h"
#include "protocol/grpc.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_schema.h"
#include "protocol/grpc_stream.h"
#include "protocol/protobuf.h"

#define REPLY(name) GRPC_NUMBER_ModelInferResponse_##name
#define RESULT(name) GRPC_NUMBER_ModelInferResponse_InferOutputTensor_##name

static const uint8_t prefix[GRPC_PREFIX_BYTES];

static const char *reason_text(enum reply_reason reason)
{
    return reason == REPLY_LENGTH ? "length" : "stop";
}

static void put_text_output(struct span text, struct buf *out)
{
    const uint8_t length[] = {(uint8_t)text.len, (uint8_t)(text.len >> 8),
                              (uint8_t)(text.len >> 16), (uint8_t)(text.len >> 24)};
    size_t result = protobuf_begin(out, REPLY(outputs));
    protobuf_put_text(out, RESULT(name), "text_output");
    protobuf_put_text(out, RESULT(datatype), "BYTES");
    protobuf_put_number(out, RESULT(shape), 1);
    protobuf_end(out, result);
    protobuf_put_head(out, REPLY(raw_output_contents), sizeof(length) + text.len);
    buf_add(out, length, sizeof(length));
    buf_add(out, text.ptr, text.len);
}

static void put_answer(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    protobuf_put_text(out, REPLY(model_name), reply->model);
    protobuf_put_text(out, REPLY(model_version), reply->version);
    if (reply->ask->id.len > 0) {
        protobuf_put_bytes(out, REPLY(id), reply->ask->id);
    }
    if (piece->reason != REPLY_GOES_ON) {
        grpc_put_text_parameter(out, REPLY(parameters), "finish_reason",
                                span_str(reason_text(piece->reason)));
        grpc_put_number_parameter(out, REPLY(parameters), "prompt_tokens", reply->prompt_tokens);
        grpc_put_number_parameter(out, REPLY(parameters), "completion_tokens",
                                  reply->answer_tokens);
    }
    put_text_output(piece->text, out);
}

void reply_grpc_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    must(out->len == 0);
    buf_add(out, prefix, sizeof(prefix));
    put_answer(reply, piece, out);
}

void reply_grpc_print_event(struct reply *reply, const struct reply_piece *piece, struct buf *out)
{
    struct grpc_stream_answer answer =
        grpc_begin_stream_answer(out, piece->reason != REPLY_GOES_ON);
    put_answer(reply, piece, out);
    grpc_end_stream_answer(out, &answer);
}
