/* SPDX-License-Identifier: MIT */
/* gRPC's ModelInfer: the codec of tensors. */
#ifndef PTED_SERVER_DAEMON_INFER_CODEC_GRPC_H
#define PTED_SERVER_DAEMON_INFER_CODEC_GRPC_H

#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_ops.h"

extern const struct codec codec_grpc;

/* Finds the model that the message names. */
MUST_CHECK enum status codec_grpc_find_model(struct infer *infer, struct span message,
                                             struct error *err);

#endif
