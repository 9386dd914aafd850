/* SPDX-License-Identifier: MIT */
/*
 * How long the models of a file stay loaded while nobody calls them: --idle-unload, and the
 * keep_alive of requests. Pure functions; the owner decides about threads.
 *
 * Each request says from its end on how long the file is needed: the time of its model, or its
 * keep_alive. The latest of all that has been said counts, so no client takes a model from others.
 * Until the first request --idle-unload counts from the load on. The first request replaces that
 * time, also by a shorter one.
 *
 * A client's word is bounded: it keeps a model no longer than --idle-unload or --keep-alive-max,
 * and not at all shorter if the operator has pinned it. And however short, a model stays ten times
 * as long as its load has taken, so that no client makes the daemon do little but load. What an
 * operator says counts as it is, and instead of all earlier.
 */
#ifndef PTED_SERVER_MODEL_KEEP_H
#define PTED_SERVER_MODEL_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#define KEEP_FOR_EVER UINT64_MAX

struct keep {
    uint64_t idle_ns;  /* the longest --idle-unload of the models; KEEP_FOR_EVER: one is pinned */
    uint64_t begin_ns; /* since when it is loaded */
    uint64_t load_ns;  /* how long that took */
    uint64_t due_ns;   /* nobody needs it from then on; KEEP_FOR_EVER: it stays */
    bool is_used;      /* by a request, since it was loaded */
    bool is_asked;     /* keep_alive of a request has set |due_ns| */
};

/* What a request says. */
struct keep_wish {
    bool is_given;   /* it has a keep_alive */
    bool is_order;   /* it is an operator's */
    uint64_t ns;     /* KEEP_FOR_EVER: for ever */
    uint64_t ns_max; /* --keep-alive-max of its model */
};

/* Call when the file has been loaded, and |idle_ns| is known. */
void keep_begin(struct keep *keep, uint64_t now_ns, uint64_t load_ns);

/* Call when a request for one of its models has ended at |now_ns|. */
void keep_use(struct keep *keep, const struct keep_wish *wish, uint64_t now_ns);

#endif
