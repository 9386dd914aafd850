/* SPDX-License-Identifier: MIT */
/* gRPC's ModelInfer: a codec, and the call of one model that the message names. */
#ifndef PTED_SERVER_DAEMON_INFER_CODEC_GRPC_H
#define PTED_SERVER_DAEMON_INFER_CODEC_GRPC_H

#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer_ops.h"

extern const struct codec codec_grpc;
extern const struct infer_ops codec_grpc_ops;

#endif
