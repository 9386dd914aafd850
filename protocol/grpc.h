/* SPDX-License-Identifier: MIT */
/*
 * How gRPC puts messages and the end of a call into HTTP
 * (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): a prefix in front of each message, the
 * field grpc-timeout, and the trailers grpc-status and grpc-message.
 *
 * Any thread: no state is shared.
 */
#ifndef PTED_PROTOCOL_GRPC_H
#define PTED_PROTOCOL_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

/* In front of a message: is it compressed, and its length in four bytes, the highest first. */
#define GRPC_PREFIX_BYTES 5

/* The most bytes of an encoded message of a status; longer texts are cut. */
#define GRPC_TEXT_BYTES_MAX 700

/* Is it the type of a request of gRPC: application/grpc or application/grpc+proto? */
bool grpc_is_type(struct span content_type);

/* Does it begin so, but means a form that is not spoken: grpc-web, or another coding of messages?
 * Sets |err| then. */
bool grpc_is_foreign_type(struct span content_type, struct error *err);

struct grpc_frame {
    struct span message;
    bool is_compressed;
};

/* Does the first message of |rest| go on behind its end? */
bool grpc_is_partial(struct span rest);

/* Fails for a prefix whose first byte says neither: ST_INVALID. */
enum status grpc_refuse_prefix(uint8_t begin, struct error *err);

/* Takes the first message of |*rest|, which is not empty. ST_INVALID: it is not whole. */
MUST_CHECK enum status grpc_take_next(struct span *rest, struct grpc_frame *out, struct error *err);

/* Takes the one message of |body|. ST_INVALID: there is none, or more than one. */
MUST_CHECK enum status grpc_take_only(struct span body, struct grpc_frame *out, struct error *err);

/* Writes the prefix of a message of |bytes|. ST_TOO_LARGE: 4 GiB or more. */
MUST_CHECK enum status grpc_print_prefix(uint8_t out[GRPC_PREFIX_BYTES], bool is_compressed,
                                         size_t bytes, struct error *err);

/* Reads the field grpc-timeout: at most eight digits and a unit of H, M, S, m, u, n. It is at least
 * 1 us, and no limit if it is too long to hold. False: it is something else. */
bool grpc_read_timeout(struct span text, uint64_t *out_us);

/* Returns the number of the status for a request that HTTP answers with |http_status|. */
unsigned grpc_status_of(int http_status);

/* Writes |text| as grpc-message has it: printable ASCII without '%', all else as %XX. Returns its
 * length, up to |max|; a character that does not fit is left out, with all behind it. */
size_t grpc_print_text(const char *text, char *out, size_t max);

#endif
