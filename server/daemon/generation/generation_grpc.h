/* SPDX-License-Identifier: MIT */
/*
 * gRPC's ModelInfer and ModelStreamInfer for all models. A request with the input text_input, for a
 * language model, is a generation, as Triton's backends of language models take it: the members of
 * /generate are inputs or parameters, and each answer has the output text_output. All others are
 * calls of tensors (server/daemon/infer/codec_grpc.h).
 *
 * Rules as in generation.h.
 */
#ifndef PTED_SERVER_DAEMON_GENERATION_GENERATION_GRPC_H
#define PTED_SERVER_DAEMON_GENERATION_GENERATION_GRPC_H

#include "server/daemon/infer/infer_ops.h"

extern const struct infer_ops generation_grpc_ops;

#endif
