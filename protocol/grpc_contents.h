/* SPDX-License-Identifier: MIT */
/*
 * Tensors as typed numbers of gRPC: the message InferTensorContents has a list for each kind of
 * elements. As in Triton INT8, INT16 and INT32 are in int_contents, UINT8, UINT16 and UINT32 in
 * uint_contents, and FP16 and BF16 have no list: they come as raw_input_contents. |input->data| is
 * the message.
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_GRPC_CONTENTS_H
#define PTED_PROTOCOL_GRPC_CONTENTS_H

#include "protocol/oip.h"

/* Is the message nothing but packed numbers that are the bytes of a tensor of that type as they
 * stand? Gives these bytes. */
bool grpc_contents_are_bytes(const struct oip_request_input *input, struct span *out);

/* Checks before memory is taken: the type has a list, and the message may hold so many elements. */
MUST_CHECK enum status grpc_check_contents(const struct oip_request_input *input,
                                           struct error *err);

/* Writes the input->bytes bytes of the tensor, or finds the strings. ST_INVALID: there are too few
 * or too many elements, or a number is outside of the range of the type. */
MUST_CHECK enum status grpc_decode_contents(const struct oip_request_input *input, uint8_t *dst,
                                            struct error *err);
MUST_CHECK enum status grpc_decode_strings(const struct oip_request_input *input,
                                           struct arena *arena, struct span **out_strings,
                                           struct error *err);

#endif
