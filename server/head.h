/* SPDX-License-Identifier: MIT */
/*
 * What is kept of a request's head: the target and the few fields that mean something to us. The
 * parser hands over fragments in any cut; head_*() put them together. The bytes and the fields of a
 * head were limited before (server/framing.h). Values borrow from the head's own buffer until
 * head_reset().
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_HEAD_H
#define PTED_SERVER_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "server/http.h"
#include "server/options.h"

/* A value's place in the buffer, which moves while it grows. */
struct head_range {
    uint32_t off, len;
};

struct head {
    struct buf text; /* the target, then the values */
    struct head_range target;
    struct head_range values[HTTP_FIELD_COUNT];
    uint8_t counts[HTTP_FIELD_COUNT]; /* how often each field came, up to 255 */
    char name[HTTP_FIELD_NAME_MAX];   /* of the field that is being read */
    uint8_t name_len;                 /* HTTP_FIELD_NAME_MAX + 1: longer than any that we know */
    enum http_field field;            /* whose value is being read */
    uint32_t field_count;             /* that have begun */
    uint32_t bytes;                   /* that have come, for the log */
};

void head_init(struct head *head, const struct params *params);
void head_fini(struct head *head);
void head_reset(struct head *head);

/*
 * Fragments. Each returns 0, or an HTTP status with the text in |err|: 414 for a target beyond its
 * limit, 503 when there is no memory.
 */
int head_add_target(struct head *head, const struct params *params, struct span part,
                    struct error *err);
void head_add_name(struct head *head, struct span part);
int head_add_value(struct head *head, struct span part, struct error *err);
void head_end_field(struct head *head);

/* Never NULL: an empty one may be of a head that has kept nothing yet. */
static inline struct span head_span(const struct head *head, struct head_range range)
{
    return range.len ? span_of(head->text.ptr + range.off, range.len) : span_str("");
}

static inline struct span head_target(const struct head *head)
{
    return head_span(head, head->target);
}

static inline bool head_has(const struct head *head, enum http_field field)
{
    return head->counts[field] > 0;
}

/* Without the white space around it; of the last one when there are several. */
struct span head_value(const struct head *head, enum http_field field);

/*
 * The checks that need the whole head but no route: 0, or the status to answer with. After a 4xx or
 * 5xx from here the framing cannot be trusted.
 */
int head_verify(const struct head *head, bool is_http_1_0, struct error *err);

#endif
