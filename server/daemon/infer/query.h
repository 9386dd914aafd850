/* SPDX-License-Identifier: MIT */
/*
 * The query of a request's target: the text behind its '?'. It is read once, when the head is
 * there. Proxies and clients add parameters of their own, which are passed over. Only one whose
 * name is like one of ours, and that the route does not take, is refused, so that a client notices
 * a typo. Routes for the clients of other servers, for probes and for browsers do not look at the
 * query (struct route). Any thread.
 */
#ifndef PTED_SERVER_DAEMON_INFER_QUERY_H
#define PTED_SERVER_DAEMON_INFER_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

enum query_id {
#define QUERY(id, word, read, member) QUERY_##id,
#include "server/daemon/infer/query.def"
#undef QUERY
    QUERY_COUNT
};

/* A set of them. */
#define QUERY_BIT(id) (1u << QUERY_##id)

struct query {
    uint32_t given;                    /* a set */
    uint32_t is_binary, wants_profile; /* 0 or 1 */
    uint32_t is_channels_last;         /* 0 or 1 */
    uint32_t top_k;
    uint32_t fv;
};

static inline bool query_has(const struct query *query, enum query_id id)
{
    return query->given & 1u << id;
}

/* Reads the query of |target|, which may have none. |known|: the set that the route takes. Empty
 * parameters ("?", "&&") are passed over. ST_INVALID: one of ours is not of the route, misspelt,
 * given twice or malformed. */
MUST_CHECK enum status query_parse(struct span target, uint32_t known, struct query *out,
                                   struct error *err);

/*
 * Finds the value of the parameter |word| of |target|, of routes that have a query of another
 * server: |out| gets it decoded, of at most |max| characters, and terminated; empty if there is
 * none. Of several the first counts. ST_INVALID: it is malformed or longer.
 */
MUST_CHECK enum status query_find(struct span target, const char *word, char *out, size_t max,
                                  struct error *err);

#endif
