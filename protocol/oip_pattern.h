/* SPDX-License-Identifier: MIT */
/*
 * The pattern of a request: its JSON with gaps where the elements of its inputs and its id stand,
 * and what oip_parse_infer() made of it. Clients send one request after the other that differ in
 * the gaps alone. Such a request is compared with the pattern, byte by byte, and not parsed again:
 * whatever stands in a gap is checked as the parser would.
 *
 * A pattern belongs to one owner at a time, and the request that it gives borrows from it.
 */
#ifndef PTED_PROTOCOL_OIP_PATTERN_H
#define PTED_PROTOCOL_OIP_PATTERN_H

#include "protocol/oip.h"

struct oip_pattern;

/*
 * Makes the pattern of |request|, which oip_parse_infer() has just made of |body|; the memory of
 * |old|, which may be NULL, is used again. NULL: there is no memory, or the request is of a rare
 * kind, with promises, memory that is shared, strides, escapes in its names, or more text than a
 * pattern is worth.
 */
struct oip_pattern *oip_pattern_new(struct oip_pattern *old, const struct oip_body *body,
                                    const struct oip_request *request);
void oip_pattern_free(struct oip_pattern *pattern);

/* Has |body| the pattern? Then |*out| is what oip_parse_infer() would make of it with the same
 * limits; it borrows from |pattern| and |body|. */
bool oip_pattern_match(struct oip_pattern *pattern, const struct oip_body *body,
                       const struct oip_limits *limits, struct oip_request *out);

#endif
