/* SPDX-License-Identifier: MIT */
/*
 * A resource that all clients take from: places for connections, generations, sequences, bytes. One
 * rule keeps them apart, and it binds only when the resource is nearly used up:
 *
 * - As long as more than |kept| units are free, any client may take any number.
 * - The last |kept| units are for clients that hold little: when a client has taken some of them,
 * at least as many must be free as it held before the last one (the rule of hal/pool.h, with a last
 *   unit for a client that has none).
 *
 * So a client that is alone takes all but |kept| units, and one that has none finds some, unless
 * very many others came before it.
 *
 * A client is a number here. The server makes it of a token or of an address
 * (server/http/client.h); other users of a share pass it on and need not know more.
 * SHARE_NOBODY stands for the daemon itself and for administrators: the rule does not bind it.
 *
 * A share says who may take, and not who has to give back. The owner of the resource decides that,
 * with share_is_over() and share_held().
 *
 * Any thread, unless share_init_for_one_thread() says otherwise. Each share has a lock of its own,
 * in which nothing else is locked.
 */
#ifndef PTED_BASE_SHARE_H
#define PTED_BASE_SHARE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define SHARE_NOBODY 0

struct share_part;

struct share {
    pthread_mutex_t mutex;
    bool is_of_one_thread; /* which needs no lock */
    uint64_t size;         /* units that there are */
    uint64_t kept;
    uint64_t used;
    uint64_t used_peak;
    uint64_t refused_count;    /* takes that failed */
    uint64_t taken_back_count; /* moves from one client to another */
    struct share_part *parts;  /* owned: a hash table, by client */
    uint32_t slot_count;       /* of |parts|: 0, or a power of two */
    uint32_t client_count;     /* that hold something */
};

struct share_stats {
    uint64_t size, used, used_peak, refused_count;
    uint64_t taken_back_count;
    uint64_t most_held; /* by one client */
    uint64_t client_count;
};

enum share_taken {
    SHARE_TAKEN,
    SHARE_ALL_IN_USE,   /* so many units are not free, or there is no memory to note it */
    SHARE_CLIENT_IS_UP, /* the client has its share, what is left is for others */
};

void share_init(struct share *share, uint64_t size, uint64_t kept);

/* For a share that one thread uses, often: the lock would be half of its cost. */
void share_init_for_one_thread(struct share *share, uint64_t size, uint64_t kept);

/* Call when nothing is held any more. */
void share_fini(struct share *share);

/* Changes the size. More may be in use than the new |size|; then nobody takes anything. */
void share_resize(struct share *share, uint64_t size, uint64_t kept);

/* |client| takes |amount| units, all or none; share_give() follows. */
MUST_CHECK enum share_taken share_take(struct share *share, uint64_t client, uint64_t amount);

/* |client| gives back |amount| of the units that it holds. */
void share_give(struct share *share, uint64_t client, uint64_t amount);

/* Gives back all that everybody holds. */
void share_clear(struct share *share);

/* |from| gives |amount| of the units that it holds to |to|, whatever the rule says: the owner has
 * decided. False: there is no memory to note it. */
MUST_CHECK bool share_move(struct share *share, uint64_t from, uint64_t to, uint64_t amount);

/* Returns what share_take() would say. Counts no refusal. */
enum share_taken share_look(const struct share *share, uint64_t client, uint64_t amount);

/* Does |client| hold more than the rule would give it now? Others may need what it holds. */
bool share_is_over(const struct share *share, uint64_t client);

/* Returns the units that |client| holds; 0 for SHARE_NOBODY, of which it is not known. */
uint64_t share_held(const struct share *share, uint64_t client);

/* Returns the units that are in use. */
uint64_t share_used(const struct share *share);

/* Looks at each client. */
void share_stats(const struct share *share, struct share_stats *out_stats);

/*
 * Makes the error of a share_take() that said |taken|: ST_EXHAUSTED, "all 256 generations are in
 * use", or "this client has 192 of 256 generations, the others are for other clients". |what| is
 * the plural of the units.
 */
enum status share_refuse(const struct share *share, enum share_taken taken, uint64_t client,
                         const char *what, struct error *err);

#endif
