/* SPDX-License-Identifier: MIT */
/*
 * Inference requests and answers of gRPC: ModelInferRequest and ModelInferResponse to and from the
 * structs of protocol/oip.h, so that whoever decodes inputs and makes results knows no protocol.
 *
 * The bytes of raw_input_contents stay where they are in the message, as binary tensors over HTTP
 * do, and so do typed numbers whose packed form is the tensor. Parameters are read by the readers
 * of their JSON form. What a request makes us allocate comes from the arena; everything else
 * borrows from the message, which has to outlive the request.
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_GRPC_INFER_H
#define PTED_PROTOCOL_GRPC_INFER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/oip.h"
#include "protocol/oip_reply.h"

/* Fields of a request, its inputs' and outputs' included, lists of typed numbers excepted. */
#define GRPC_FIELDS_MAX 8192

/* The most bytes of all parameters of a message: those of the request, its inputs and its outputs.
 * Each of these has at most as many as JSON, too. */
#define GRPC_PARAMETERS_BYTES_MAX (64 << 10)

/* Finds the names of the model and of its version in the message; "": it has none. */
MUST_CHECK enum status grpc_read_model(struct span message, struct span *out_model,
                                       struct span *out_version, struct error *err);

/* Returns where the bytes of the first of raw_input_contents lie behind the beginning of a message,
 * of which |begin| has come; 0: they do not begin there. */
size_t grpc_find_tensor(struct span begin);

/* Has the message an input of that name? Looks at no more than GRPC_FIELDS_MAX fields. */
bool grpc_has_input(struct span message, struct span name);

MUST_CHECK enum status grpc_parse_infer(struct span message, const struct oip_limits *limits,
                                        struct arena *arena, struct oip_request *out,
                                        struct error *err);

/*
 * Prints an answer, with its prefix in front. grpc_print_reply() is called where
 * oip_print_members() would be, with an |encoded| for one span more than twice the results;
 * grpc_print_tail() behind oip_encode_end_json(); and grpc_end_reply() after oip_encode_end().
 * ST_TOO_LARGE: the message has 4 GiB.
 */
void grpc_print_reply(const struct oip_reply *reply, struct span id, struct buf *out,
                      struct oip_encoded *encoded);
void grpc_print_tail(const struct oip_reply *reply, struct buf *out);
MUST_CHECK enum status grpc_end_reply(struct buf *out, const struct oip_encoded *encoded,
                                      struct error *err);

/* Appends an entry of a map of parameters, the field |number|. */
void grpc_put_text_parameter(struct buf *out, uint32_t number, const char *name, struct span text);
void grpc_put_number_parameter(struct buf *out, uint32_t number, const char *name, uint64_t value);

#endif
