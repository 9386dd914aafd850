/* SPDX-License-Identifier: MIT */
/*
 * The part of a request's head that is kept: the target and the few fields that mean something to
 * us. The parser hands over fragments, cut anywhere; head_*() joins them. The number of bytes and
 * fields has been limited before (server/http/framing.h). Values borrow from the head's own buffer
 * until head_reset().
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_HTTP_HEAD_H
#define PTED_SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "server/http/http.h"
#include "server/process/options.h"

/* The position of a value in the buffer, which moves while it grows. */
struct head_range {
    uint32_t off, len;
};

/* Lines of a field that is a list, of which the last ones are kept. */
#define HEAD_LINES_MAX 8

enum head_list { HEAD_FORWARDED, HEAD_X_FORWARDED_FOR, HEAD_LIST_COUNT };

struct head {
    struct buf text; /* the target, then the values */
    struct head_range target;
    struct head_range values[HTTP_FIELD_COUNT];
    uint8_t counts[HTTP_FIELD_COUNT]; /* how often each field came, up to 255 */
    struct head_range lines[HEAD_LIST_COUNT]
                           [HEAD_LINES_MAX - 1]; /* before the last, newest first */
    char name[HTTP_FIELD_NAME_MAX];              /* of the current field */
    uint8_t name_len;      /* HTTP_FIELD_NAME_MAX + 1: longer than any field that we know */
    enum http_field field; /* the field whose value is being read */
    uint32_t field_count;  /* fields that have begun */
    uint32_t bytes;        /* bytes received, for the log */
};

void head_init(struct head *head, const struct params *params);
void head_fini(struct head *head);
void head_reset(struct head *head);

/* Fragments. Each function returns 0, or an HTTP status with the text in |err|: 414 if the target
 * is beyond its limit, 503 without memory. */
int head_add_target(struct head *head, const struct params *params, struct span part,
                    struct error *err);
void head_add_name(struct head *head, struct span part);
int head_add_value(struct head *head, struct span part, struct error *err);
void head_end_field(struct head *head);

/* Never NULL: the target of a head that has kept nothing yet is empty. */
static inline struct span head_span(const struct head *head, struct head_range range)
{
    return range.len ? span_of(head->text.ptr + range.off, range.len) : span_str("");
}

static inline struct span head_target(const struct head *head)
{
    return head_span(head, head->target);
}

/*
 * Returns the path of a target: without the origin of its absolute form (RFC 9112, 3.2.2), which
 * may have a user and a password, and without its query, in which clients send tokens. Logs and
 * traces have this, never the target.
 */
struct span head_path_of(struct span target);

static inline struct span head_path(const struct head *head)
{
    return head_path_of(head_target(head));
}

static inline bool head_has(const struct head *head, enum http_field field)
{
    return head->counts[field] > 0;
}

/* Returns the value without white space around it; the last one if there are several. */
static inline struct span head_value(const struct head *head, enum http_field field)
{
    struct span value = head_span(head, head->values[field]);
    return value.len ? span_trim(value, " \t") : value;
}

/* Returns the value of one line of Forwarded or X-Forwarded-For, which are lists that may have
 * several lines. |line| 0 is the last line, and so on; there are head_line_count() of them. */
uint32_t head_line_count(const struct head *head, enum http_field field);
struct span head_line(const struct head *head, enum http_field field, uint32_t line);

/* Does the client take trailers (RFC 9110, section 10.1.4)? */
bool head_takes_trailers(const struct head *head);

/* Checks that need the whole head but no route. Returns 0, or the status to answer with; after a
 * 4xx or 5xx from here the framing cannot be trusted. */
int head_verify(const struct head *head, bool is_http_1_0, struct error *err);

#endif
