/* SPDX-License-Identifier: MIT */
/*
 * Answers to requests to generate as messages of gRPC, each with its prefix: a ModelInferResponse
 * with the output text_output, or, of a stream, as many ModelStreamInferResponse. The last one has
 * the parameters finish_reason, prompt_tokens and completion_tokens, and in a stream
 * triton_final_response is true. Of the stages of server/language/reply.h.
 */
#ifndef PTED_SERVER_LANGUAGE_REPLY_GRPC_H
#define PTED_SERVER_LANGUAGE_REPLY_GRPC_H

#include "server/language/reply.h"

/* Leaves the prefix of the only answer to grpc_end_reply(). */
void reply_grpc_print(const struct reply *reply, const struct reply_piece *piece, struct buf *out);
void reply_grpc_print_event(struct reply *reply, const struct reply_piece *piece, struct buf *out);

#endif
