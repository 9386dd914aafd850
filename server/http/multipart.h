/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type multipart/form-data (RFC 7578, in the form of RFC 2046): named fields, some of
 * which are files. The body is complete and stays where it is: parts are found one after the other
 * and borrow from it. Nothing is allocated, and each byte is looked at a bounded number of times.
 *
 *     multipart_init     with the value of Content-Type
 *     multipart_next     until there is none
 *
 * Names and values may hold anything; they need not be UTF-8. Any thread.
 */
#ifndef PTED_SERVER_HTTP_MULTIPART_H
#define PTED_SERVER_HTTP_MULTIPART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define MULTIPART_BOUNDARY_MAX 70
#define MULTIPART_PARTS_MAX 64
#define MULTIPART_HEAD_BYTES_MAX 4096 /* of one part */

struct multipart {
    struct span body;
    size_t at;      /* in |body|: behind the last boundary, or its end */
    uint32_t count; /* parts so far */
    bool is_over;   /* the last boundary has been read */
    char delimiter[4 + MULTIPART_BOUNDARY_MAX + 1]; /* CR LF "--" boundary */
    size_t delimiter_len;
};

struct multipart_part {
    struct span name;         /* as it stands between the quotes */
    struct span filename;     /* empty: none was given */
    struct span content_type; /* likewise */
    struct span data;
};

/* Fails with ST_INVALID: |content_type| is another type, or has no boundary, or a wrong one, or the
 * body has no line with it. */
MUST_CHECK enum status multipart_init(struct multipart *multipart, struct span content_type,
                                      struct span body, struct error *err);

/* |*out_found| is false after the last part. ST_INVALID: "part 2: ...", "the body ends within ..."
 */
MUST_CHECK enum status multipart_next(struct multipart *multipart, struct multipart_part *out,
                                      bool *out_found, struct error *err);

#endif
