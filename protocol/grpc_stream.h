/* SPDX-License-Identifier: MIT */
/*
 * What ModelStreamInfer has beside ModelInfer: ModelStreamInferResponse is an answer of ModelInfer
 * or the text of an error, and the parameter triton_final_response of an answer says whether it is
 * the last one of its request (github.com/triton-inference-server/server, decoupled_models.md).
 *
 * Any thread: no state is shared.
 */
#ifndef PTED_PROTOCOL_GRPC_STREAM_H
#define PTED_PROTOCOL_GRPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

/* What stands in front of an answer of ModelInfer, its prefix included. */
#define GRPC_STREAM_HEAD_BYTES_MAX 64

/* The most bytes of a message with an error, of a text as struct error has it. */
#define GRPC_STREAM_ERROR_BYTES_MAX 2048

/* What of a request decides when it may begin and when its answers may go; borrows from it. */
struct grpc_order {
    struct span id;    /* empty: it has none */
    uint64_t sequence; /* a hash of its name or its number; 0: it belongs to none */
    bool is_unknown;   /* it is compressed, damaged or too long to look at */
};

/* Looks at a request, but at no more than GRPC_FIELDS_MAX of its fields, and
 * GRPC_PARAMETERS_BYTES_MAX of parameters. */
struct grpc_order grpc_read_order(struct span message);

/* Writes the prefix and all that stands in front of the |bytes| of an answer of ModelInfer. Returns
 * its length. ST_TOO_LARGE: they are 4 GiB with it. */
MUST_CHECK enum status grpc_print_stream_head(uint8_t out[GRPC_STREAM_HEAD_BYTES_MAX], size_t bytes,
                                              bool is_final, size_t *out_len, struct error *err);

/* Such an answer in a buffer: what stands in front of it, the fields of the answer, which the
 * caller appends, and the end. It has less than 4 GiB. */
struct grpc_stream_answer {
    size_t begin, fields;
};

struct grpc_stream_answer grpc_begin_stream_answer(struct buf *out, bool is_final);
void grpc_end_stream_answer(struct buf *out, const struct grpc_stream_answer *answer);

/* Appends a message that says why the request with |id| has no answer, with its prefix. */
void grpc_print_stream_error(struct span id, const char *text, struct buf *out);

#endif
