/* SPDX-License-Identifier: MIT */
/*
 * The parts are in an open table with linear probing. It is never more than three quarters full. A
 * part that is given back wholly leaves the table, and the parts behind it move up (Knuth, "The Art
 * of Computer Programming", volume 3, section 6.4, algorithm R), so the table holds nothing of
 * clients that have gone.
 */
#include "config.h"

#include "base/share.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/check.h"

#define SLOTS_MIN 16

struct share_part {
    uint64_t client; /* SHARE_NOBODY: the slot is free */
    uint64_t held;
};

/* The lock is no part of what a share says, so looking at one locks it, too. */
static void lock(const struct share *share)
{
    if (!share->is_of_one_thread) {
        pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&share->mutex);
    }
}

static void unlock(const struct share *share)
{
    if (!share->is_of_one_thread) {
        pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&share->mutex);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* A multiplier that clients do not know, so they cannot choose numbers that share a slot. */
static uint64_t multiplier;
static pthread_once_t multiplier_once = PTHREAD_ONCE_INIT;

static void choose_multiplier(void)
{
    if (getrandom(&multiplier, sizeof(multiplier), GRND_NONBLOCK) != (ssize_t)sizeof(multiplier)) {
        multiplier = UINT64_C(0x9e3779b97f4a7c15); /* early at boot: the golden ratio */
    }
    multiplier |= 1;
}

/* The highest bits of the product depend on all bits of |client|. */
static uint32_t slot_of(const struct share *share, uint64_t client)
{
    return (uint32_t)((client * multiplier >> 32) * share->slot_count >> 32);
}

/* The part of |client|, or the free slot where it would be. The table has slots. */
static struct share_part *find(const struct share *share, uint64_t client)
{
    uint32_t slot = slot_of(share, client);
    while (share->parts[slot].client != SHARE_NOBODY && share->parts[slot].client != client) {
        slot = (slot + 1) & (share->slot_count - 1);
    }
    return &share->parts[slot];
}

static uint64_t held_by(const struct share *share, uint64_t client)
{
    return client == SHARE_NOBODY || !share->parts ? 0 : find(share, client)->held;
}

/* Makes room for one more part; false: there is no memory. */
static bool reserve(struct share *share)
{
    if (share->client_count < share->slot_count / 4 * 3) {
        return true;
    }
    struct share_part *old = share->parts;
    uint32_t old_count = share->slot_count, count = old ? 2 * old_count : SLOTS_MIN;
    struct share_part *parts = calloc(count, sizeof(*parts));
    if (!parts) {
        return false;
    }
    share->parts = parts;
    share->slot_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i].client != SHARE_NOBODY) {
            *find(share, old[i].client) = old[i];
        }
    }
    free(old);
    return true;
}

static bool add(struct share *share, uint64_t client, uint64_t amount)
{
    if (client == SHARE_NOBODY) {
        return true;
    }
    if (!reserve(share)) {
        return false;
    }
    struct share_part *part = find(share, client);
    share->client_count += part->client == SHARE_NOBODY;
    part->client = client;
    part->held += amount;
    return true;
}

/* Frees |slot|. A part behind it moves there if its search would pass by. */
static void clear(struct share *share, uint32_t slot)
{
    uint32_t mask = share->slot_count - 1;
    for (uint32_t next = (slot + 1) & mask; share->parts[next].client != SHARE_NOBODY;
         next = (next + 1) & mask) {
        uint32_t home = slot_of(share, share->parts[next].client);
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            share->parts[slot] = share->parts[next];
            slot = next;
        }
    }
    share->parts[slot] = (struct share_part){.client = SHARE_NOBODY};
    share->client_count--;
}

static void subtract(struct share *share, uint64_t client, uint64_t amount)
{
    if (client == SHARE_NOBODY) {
        return;
    }
    must(share->parts);
    struct share_part *part = find(share, client);
    must(part->held >= amount);
    part->held -= amount;
    if (part->held == 0 && part->client == client) {
        clear(share, (uint32_t)(part - share->parts));
    }
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* |held|: by the client before it takes |amount|. */
static enum share_taken decide(const struct share *share, uint64_t client, uint64_t amount)
{
    uint64_t left = share->size > share->used ? share->size - share->used : 0;
    if (amount > left) {
        return SHARE_ALL_IN_USE;
    }
    left -= amount;
    bool is_bound = client != SHARE_NOBODY && left < share->kept && amount > 0;
    return is_bound && held_by(share, client) + amount - 1 > left ? SHARE_CLIENT_IS_UP
                                                                  : SHARE_TAKEN;
}

void share_init(struct share *share, uint64_t size, uint64_t kept)
{
    pthread_once(&multiplier_once, choose_multiplier);
    *share = (struct share){.size = size, .kept = kept};
    int rc = pthread_mutex_init(&share->mutex, NULL);
    must(rc == 0);
}

void share_init_for_one_thread(struct share *share, uint64_t size, uint64_t kept)
{
    share_init(share, size, kept);
    share->is_of_one_thread = true;
}

void share_fini(struct share *share)
{
    must(share->used == 0 && share->client_count == 0);
    free(share->parts);
    share->parts = NULL;
    pthread_mutex_destroy(&share->mutex);
}

void share_resize(struct share *share, uint64_t size, uint64_t kept)
{
    lock(share);
    share->size = size;
    share->kept = kept;
    unlock(share);
}

void share_clear(struct share *share)
{
    lock(share);
    share->used = 0;
    share->client_count = 0;
    for (uint32_t i = 0; i < share->slot_count; i++) {
        share->parts[i] = (struct share_part){.client = SHARE_NOBODY};
    }
    unlock(share);
}

enum share_taken share_look(const struct share *share, uint64_t client, uint64_t amount)
{
    lock(share);
    enum share_taken taken = decide(share, client, amount);
    unlock(share);
    return taken;
}

enum share_taken share_take(struct share *share, uint64_t client, uint64_t amount)
{
    lock(share);
    enum share_taken taken = decide(share, client, amount);
    if (taken == SHARE_TAKEN && amount > 0 && !add(share, client, amount)) {
        taken = SHARE_ALL_IN_USE;
    }
    if (taken == SHARE_TAKEN) {
        share->used += amount;
        share->used_peak = share->used > share->used_peak ? share->used : share->used_peak;
    } else {
        share->refused_count++;
    }
    unlock(share);
    return taken;
}

void share_give(struct share *share, uint64_t client, uint64_t amount)
{
    if (amount == 0) {
        return;
    }
    lock(share);
    must(share->used >= amount);
    share->used -= amount;
    subtract(share, client, amount);
    unlock(share);
}

bool share_move(struct share *share, uint64_t from, uint64_t to, uint64_t amount)
{
    lock(share);
    bool is_moved = amount == 0 || from == to || add(share, to, amount);
    if (is_moved && from != to && amount > 0) {
        subtract(share, from, amount);
        share->taken_back_count++;
    }
    unlock(share);
    return is_moved;
}

/* ---- looking --------------------------------------------------------------------------------- */

bool share_is_over(const struct share *share, uint64_t client)
{
    lock(share);
    uint64_t left = share->size > share->used ? share->size - share->used : 0;
    bool is_over = left < share->kept && held_by(share, client) > left;
    unlock(share);
    return is_over;
}

uint64_t share_held(const struct share *share, uint64_t client)
{
    lock(share);
    uint64_t held = held_by(share, client);
    unlock(share);
    return held;
}

uint64_t share_used(const struct share *share)
{
    lock(share);
    uint64_t used = share->used;
    unlock(share);
    return used;
}

void share_stats(const struct share *share, struct share_stats *out_stats)
{
    lock(share);
    *out_stats = (struct share_stats){
        .size = share->size,
        .used = share->used,
        .used_peak = share->used_peak,
        .refused_count = share->refused_count,
        .taken_back_count = share->taken_back_count,
        .client_count = share->client_count,
    };
    for (uint32_t i = 0; i < share->slot_count; i++) {
        uint64_t held = share->parts[i].held;
        out_stats->most_held = held > out_stats->most_held ? held : out_stats->most_held;
    }
    unlock(share);
}

enum status share_refuse(const struct share *share, enum share_taken taken, uint64_t client,
                         const char *what, struct error *err)
{
    must(taken != SHARE_TAKEN);
    lock(share);
    uint64_t size = share->size, held = held_by(share, client);
    unlock(share);
    if (taken == SHARE_ALL_IN_USE) {
        return error_set(err, ST_EXHAUSTED, "all %" PRIu64 " %s are in use", size, what);
    }
    return error_set(err, ST_EXHAUSTED,
                     "this client has %" PRIu64 " of %" PRIu64
                     " %s, the others are for other clients",
                     held, size, what);
}
