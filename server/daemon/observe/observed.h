/* SPDX-License-Identifier: MIT */
/* The parts of the daemon whose present state operators can look at, in metrics and dumps. */
#ifndef PTED_SERVER_DAEMON_OBSERVE_OBSERVED_H
#define PTED_SERVER_DAEMON_OBSERVE_OBSERVED_H

struct conns;
struct loop;
struct offload;
struct recovery;
struct requests;
struct servings;
struct tls;

/* All of it is borrowed. */
struct observed {
    const struct loop *loop;
    const struct offload *offload;
    const struct servings *servings;
    const struct recovery *recovery;
    const struct conns *conns;
    const struct tls *tls;
    struct requests *requests;
};

#endif
