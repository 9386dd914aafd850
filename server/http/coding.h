/* SPDX-License-Identifier: MIT */
/*
 * Content codings: gzip, and deflate, which in HTTP is the zlib format. Any thread.
 */
#ifndef PTED_SERVER_HTTP_CODING_H
#define PTED_SERVER_HTTP_CODING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/http/body.h"

enum coding { CODING_IDENTITY, CODING_GZIP, CODING_DEFLATE };

/* Tells a client that sent another coding which ones are accepted: RFC 9110 15.5.16. */
#define CODINGS_ACCEPTED "gzip, deflate"

/* Finds the coding in a Content-Encoding field; false for an unknown one. "" is identity. */
bool coding_find(struct span name, enum coding *out_coding);
const char *coding_name(enum coding coding);

/* Returns the best of our codings that Accept-Encoding allows; identity when in doubt. */
enum coding coding_accept(struct span value);

/*
 * Decodes all of |in| to the end of |out|, which bounds the result: ST_TOO_LARGE. Not for identity.
 */
MUST_CHECK enum status coding_inflate(enum coding coding, struct span in, struct body *out,
                                      struct error *err);

/* Appends |spans| to |out|, encoded. Not for identity. */
MUST_CHECK enum status coding_deflate(enum coding coding, const struct span *spans, size_t count,
                                      struct buf *out, struct error *err);

#endif
