/* SPDX-License-Identifier: MIT */
/*
 * The serving in use, and those that were replaced and that requests still hold. Whoever runs calls
 * holds the serving that it began with until it is over. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_SERVINGS_H
#define PTED_SERVER_DAEMON_SERVING_SERVINGS_H

struct serving;

/* Told of the memory for transfers of the serving in use, to which bytes of clients outside it are
 * charged: it is about to go; there is one again. */
struct servings_ops {
    void (*leave_pool)(void *owner);
    void (*enter_pool)(void *owner);
};

struct servings {
    struct serving *current; /* owned; NULL: none yet */
    const struct servings_ops *ops;
    void *owner; /* given to |ops| */
};

/* Begins with none. */
void servings_init(struct servings *servings, const struct servings_ops *ops, void *owner);

/* Call when nobody holds any. */
void servings_fini(struct servings *servings);

/* For a request, from its beginning to its end. */
struct serving *servings_hold(struct servings *servings);
void servings_let_go(struct servings *servings, struct serving *serving);

/* Takes |fresh| over. The old one goes now, or with the last request that holds it. */
void servings_replace(struct servings *servings, struct serving *fresh);

/* Call when nobody holds the present one, and all its models have failed: gives up everything but
 * the names of the models. */
void servings_shed(struct servings *servings);

#endif
