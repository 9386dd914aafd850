/* SPDX-License-Identifier: MIT */
/*
 * The pattern of a head: its bytes, with gaps for the values that differ from one request of a
 * client to its next, and the fields that were read from it. A head that has the pattern of the one
 * before it is not read again. Loop thread.
 */
#ifndef PTED_SERVER_HTTP_HEAD_PATTERN_H
#define PTED_SERVER_HTTP_HEAD_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "server/http/head.h"

struct head_pattern;

/* Makes the pattern of the head |bytes|, which has been read to |head|. NULL: there is no memory,
 * it is longer than a pattern is worth, or its Content-Length is in an unusual form. */
struct head_pattern *head_pattern_new(struct span bytes, const struct head *head);
void head_pattern_free(struct head_pattern *pattern);

/* Do |bytes| begin with a head of this pattern, of at most |bytes_max|? Returns its bytes; 0: they
 * do not. Borrows |bytes| until head_pattern_fill(). */
size_t head_pattern_match(struct head_pattern *pattern, struct span bytes, size_t bytes_max);

/* Fills the empty |out| with the head that was matched last. False: there is no memory. */
MUST_CHECK bool head_pattern_fill(const struct head_pattern *pattern, struct head *out);

/* Returns the Content-Length of that head; 0: it has none. */
uint64_t head_pattern_length(const struct head_pattern *pattern);

#endif
