/* SPDX-License-Identifier: MIT */
/*
 * Messages of gRPC as JSON and back, by the table of grpc_schema.def. So a handler of the HTTP side
 * serves both protocols: it gets the JSON of a message as its body, and its JSON becomes a message.
 *
 * The JSON is that of the HTTP side, which is not always protocol buffers' own form of it:
 *
 * - A message whose fields are a choice, or a list of texts, is written as what it holds: an
 *   InferParameter as true, 7 or "text"; a SettingValue as null, "text" or ["a", "b"].
 * - A map is an object; where it stands for an array of objects, their "name" is the key.
 * - With |is_wrapped| the JSON is the first field of the message, and has no member of its name.
 * - A member that the message lacks is passed; a field that the JSON lacks is left out.
 *
 * Any thread: no state is shared.
 */
#ifndef PTED_PROTOCOL_GRPC_JSON_H
#define PTED_PROTOCOL_GRPC_JSON_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/grpc_schema.h"
#include "protocol/protobuf.h"

struct json;

/* Appends the JSON of |message|. ST_INVALID: it is damaged, or a text in it is not UTF-8. */
MUST_CHECK enum status grpc_to_json(struct span message, enum grpc_message id, bool is_wrapped,
                                    struct buf *out, struct error *err);

/* Appends one field of a message, a map or a list with all its items, as a JSON value. */
MUST_CHECK enum status grpc_field_to_json(struct span message, const struct grpc_field_info *field,
                                          struct buf *out, struct error *err);

/* Appends the message of |json|, which is ours. ST_INVALID: the table says something else. */
MUST_CHECK enum status grpc_from_json(struct span json, enum grpc_message id, bool is_wrapped,
                                      struct buf *out, struct error *err);

/* Fails for |message|, which is damaged: ST_INVALID. */
enum status grpc_refuse_message(enum grpc_message id, struct error *err);

#endif
