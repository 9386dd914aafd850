/* SPDX-License-Identifier: MIT */
/*
 * Server reflection: descriptions of the messages and services of grpc_schema.def, as protocol
 * buffers describe themselves (descriptor.proto), so that clients such as grpcurl need no files.
 * They ask by ServerReflectionRequest, of v1 or v1alpha of the reflection protocol, whose messages
 * are the same.
 *
 * Any thread: what is shared is made once and never changes.
 */
#ifndef PTED_PROTOCOL_GRPC_DESCRIBE_H
#define PTED_PROTOCOL_GRPC_DESCRIBE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

/* Appends the answer to one request; what is not known is an answer, too. ST_INVALID: the request
 * is damaged. */
MUST_CHECK enum status grpc_reflect(struct span request, struct buf *out, struct error *err);

/* Appends the full name of service |index|, "inference.GRPCInferenceService", and returns true;
 * false: there are fewer. */
bool grpc_service_name(unsigned index, struct buf *out);

#endif
