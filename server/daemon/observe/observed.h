/* SPDX-License-Identifier: MIT */
/* The parts of the daemon whose present state operators can look at, in metrics and dumps. */
#ifndef PTED_SERVER_DAEMON_OBSERVE_OBSERVED_H
#define PTED_SERVER_DAEMON_OBSERVE_OBSERVED_H

#include <stdint.h>

struct conns;
struct loop;
struct offload;
struct recovery;
struct servings;
struct share;
struct tls;
struct transfers;

/* All of it is borrowed. */
struct observed {
    const struct loop *loop;
    const struct offload *offload;
    const struct servings *servings;
    const struct recovery *recovery;
    const struct conns *conns;
    const struct tls *tls;
    struct transfers *transfers;
    const struct share *requests;       /* that have been admitted, by client */
    const uint32_t *busy_request_count; /* includes requests whose client has gone */
};

#endif
