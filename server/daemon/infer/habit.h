/* SPDX-License-Identifier: MIT */
/*
 * What the client of an exchange has asked for before, as far as that saves work when it asks for
 * the same again. It belongs to the exchange, and to the call while there is one. A client's first
 * request leaves nothing: it may be the only one.
 */
#ifndef PTED_SERVER_DAEMON_INFER_HABIT_H
#define PTED_SERVER_DAEMON_INFER_HABIT_H

#include <stdbool.h>
#include <stdint.h>

struct oip_body;
struct oip_limits;
struct oip_pattern;
struct oip_request;

struct habit {
    uint32_t request_count;
    uint32_t miss_count;         /* requests in a row without the pattern */
    struct oip_pattern *pattern; /* owned; or NULL */
};

/* Takes the habit out of |from|, which has none then. */
struct habit habit_take(struct habit *from);

/* Gives it back to |to|, after a request. */
void habit_give(struct habit *to, struct habit *habit);
void habit_fini(struct habit *habit);

/* Has the body the pattern of one before it? Then |*out| is the request, which borrows from
 * both. */
bool habit_recall(struct habit *habit, const struct oip_body *body, const struct oip_limits *limits,
                  struct oip_request *out);

/* Call when habit_recall() has found nothing, and |body| has been parsed to |request|. */
void habit_learn(struct habit *habit, const struct oip_body *body,
                 const struct oip_request *request);

#endif
