/* SPDX-License-Identifier: MIT */
/*
 * A list of states under one mutex, the state that was used longest ago first. There are few of
 * them, because each takes as much memory as a sequence, so a search compares the tokens of all.
 * Dropped states are collected, and freed without the lock.
 *
 * Of a dropped state others may have pages (rt_state_lent_bytes()). It is then in a second list,
 * and its bytes count, also for its client, until nobody has them. Somebody who has found a state
 * may get all of it: until then all counts.
 */
#include "config.h"

#include "runtime/sched/prefix.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/list.h"
#include "base/share.h"
#include "runtime/program/state.h"
#include "runtime/sched/sched.h"

#define PREFIX_MAGIC 0x94ef1815u

struct prefix {
    uint32_t magic;
    struct list link;
    const struct rt_method *method; /* only compared */
    struct rt_state *state;         /* ref held */
    bool is_positional;
    bool is_retired; /* the state; written by the thread that has it in a list of its own */
    size_t bytes;
    size_t lent; /* of |bytes|, those that count though it was dropped; they only get fewer */
    uint64_t client;
    uint64_t used_ns;
    char owner[RT_PREFIX_OWNER_MAX + 1];
    uint32_t count;
    uint32_t tokens[];
};

#define PREFIXES_MAGIC 0x94ef1816u

struct rt_prefixes {
    uint32_t magic;
    struct rt_prefixes_options options;
    pthread_mutex_t lock;
    struct list list;
    uint32_t count;
    size_t bytes;               /* with |lent| */
    struct list gone;           /* states that were dropped, and of which others have pages */
    size_t lent;                /* the bytes of these */
    struct share counts, sizes; /* by client; they bind nobody */
    uint64_t displaced_count, refused_count;
};

enum status rt_prefixes_new(const struct rt_prefixes_options *options,
                            struct rt_prefixes **out_prefixes, struct error *err)
{
    struct rt_prefixes *prefixes = calloc(1, sizeof(*prefixes));
    if (!prefixes) {
        return error_no_memory(err, "prefixes");
    }
    prefixes->magic = PREFIXES_MAGIC;
    prefixes->options = *options;
    must(pthread_mutex_init(&prefixes->lock, NULL) == 0);
    list_init(&prefixes->list);
    list_init(&prefixes->gone);
    share_init(&prefixes->counts, UINT64_MAX, 0);
    share_init(&prefixes->sizes, UINT64_MAX, 0);
    *out_prefixes = prefixes;
    return ST_OK;
}

static struct prefix *prefix_of(struct list *link)
{
    struct prefix *prefix = LIST_ENTRY(link, struct prefix, link);
    OBJ_CHECK(prefix, PREFIX_MAGIC);
    return prefix;
}

static void free_prefix(struct prefix *prefix)
{
    OBJ_CHECK(prefix, PREFIX_MAGIC);
    must(prefix->lent == 0);
    list_remove(&prefix->link);
    rt_state_unref(prefix->state);
    prefix->magic = 0;
    free(prefix);
}

/* Bytes of |prefix| that others have, too, or may get. */
static size_t lent_of(const struct prefix *prefix)
{
    size_t lent = rt_state_lent_bytes(prefix->state);
    return lent < prefix->bytes ? lent : prefix->bytes;
}

/* With the lock: |lent| bytes of a dropped state are left. */
static void count_lent(struct rt_prefixes *prefixes, struct prefix *prefix, size_t lent)
{
    must(lent <= prefix->lent);
    size_t freed = prefix->lent - lent;
    prefixes->lent -= freed;
    prefixes->bytes -= freed;
    prefix->lent = lent;
    share_give(&prefixes->sizes, prefix->client, freed);
}

/* Without the lock: frees a dropped state, or what nobody else has of it. Nobody finds it any more,
 * so what others have gets no more. */
static void let_go(struct rt_prefixes *prefixes, struct prefix *prefix)
{
    if (!prefix->is_retired && rt_state_lent_bytes(prefix->state) != SIZE_MAX) {
        rt_state_retire(prefix->state);
        prefix->is_retired = true;
    }
    size_t lent = prefix->is_retired ? lent_of(prefix) : prefix->lent;
    bool is_free = prefix->is_retired && lent == 0;
    pthread_mutex_lock(&prefixes->lock);
    count_lent(prefixes, prefix, lent);
    list_remove(&prefix->link);
    if (!is_free) {
        list_push_back(&prefixes->gone, &prefix->link);
    }
    pthread_mutex_unlock(&prefixes->lock);
    if (is_free) {
        free_prefix(prefix);
    }
}

static void let_go_all(struct rt_prefixes *prefixes, struct list *dropped)
{
    while (!list_is_empty(dropped)) {
        let_go(prefixes, prefix_of(dropped->next));
    }
}

/* Has |prefix|, which was dropped, more to free than when it was looked at last? */
static bool has_changed(const struct prefix *prefix)
{
    return rt_state_lent_bytes(prefix->state) != SIZE_MAX &&
           (!prefix->is_retired || lent_of(prefix) < prefix->lent);
}

/* False: nothing has changed. */
static bool sweep(struct rt_prefixes *prefixes)
{
    struct list changed;
    list_init(&changed);
    pthread_mutex_lock(&prefixes->lock);
    for (struct list *at = prefixes->gone.next, *next; at != &prefixes->gone; at = next) {
        struct prefix *prefix = prefix_of(at);
        next = at->next;
        if (has_changed(prefix)) {
            list_remove(&prefix->link);
            list_push_back(&changed, &prefix->link);
        }
    }
    pthread_mutex_unlock(&prefixes->lock);
    bool has_any = !list_is_empty(&changed);
    let_go_all(prefixes, &changed);
    return has_any;
}

/* A dropped state that goes may have been the last to have pages of another. */
void rt_prefixes_sweep(struct rt_prefixes *prefixes)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    while (sweep(prefixes)) {
    }
}

/* ---- with the lock held ---------------------------------------------------------------------- */

static void drop(struct rt_prefixes *prefixes, struct prefix *prefix, struct list *dropped)
{
    must(prefixes->count > 0 && prefixes->bytes >= prefix->bytes);
    prefixes->count--;
    prefixes->lent += prefix->bytes;
    prefix->lent = prefix->bytes;
    count_lent(prefixes, prefix, lent_of(prefix));
    share_give(&prefixes->counts, prefix->client, 1);
    list_remove(&prefix->link);
    list_push_back(dropped, &prefix->link);
}

static bool is_full(const struct rt_prefixes *prefixes, size_t bytes)
{
    return prefixes->bytes > prefixes->options.bytes_max - bytes ||
           prefixes->count >= RT_PREFIX_COUNT_MAX;
}

/* A state of which others have most would hardly free anything: as long as it is here, more of them
 * can have it. */
static bool frees_memory(struct prefix *prefix)
{
    return lent_of(prefix) <= prefix->bytes / 2;
}

static bool gives_way(const struct rt_prefixes *prefixes, const struct prefix *prefix,
                      const struct prefix *fresh)
{
    bool is_of_number = prefixes->count >= RT_PREFIX_COUNT_MAX;
    const struct share *share = is_of_number ? &prefixes->counts : &prefixes->sizes;
    uint64_t more = is_of_number ? 1 : fresh->bytes;
    return prefix->client == fresh->client || prefix->client == SHARE_NOBODY ||
           share_held(share, prefix->client) > share_held(share, fresh->client) + more;
}

/* Drops states that give way to |fresh|, longest unused first, until there is room for it. False:
 * too few do. */
static bool make_room(struct rt_prefixes *prefixes, const struct prefix *fresh,
                      struct list *dropped)
{
    struct list *at = prefixes->list.next;
    while (at != &prefixes->list && is_full(prefixes, fresh->bytes)) {
        struct prefix *prefix = prefix_of(at);
        at = at->next;
        if (gives_way(prefixes, prefix, fresh) && frees_memory(prefix)) {
            drop(prefixes, prefix, dropped);
            prefixes->displaced_count++;
        }
    }
    return !is_full(prefixes, fresh->bytes);
}

/* Bytes of it that count already remain. False: there is no memory to note it. */
static bool charge(struct rt_prefixes *prefixes, const struct prefix *fresh)
{
    if (share_take(&prefixes->counts, fresh->client, 1) != SHARE_TAKEN) {
        return false;
    }
    size_t bytes = fresh->bytes - fresh->lent;
    if (share_take(&prefixes->sizes, fresh->client, bytes) != SHARE_TAKEN) {
        share_give(&prefixes->counts, fresh->client, 1);
        return false;
    }
    prefixes->count++;
    prefixes->bytes += bytes;
    return true;
}

/* What went in vain comes back, in the order of its last use. */
static void take_back(struct rt_prefixes *prefixes, struct list *dropped)
{
    struct list *next;
    for (struct list *at = dropped->next; at != dropped; at = next) {
        struct prefix *prefix = prefix_of(at);
        struct list *before = prefixes->list.prev;
        next = at->next;
        if (!charge(prefixes, prefix)) {
            continue;
        }
        prefixes->lent -= prefix->lent;
        prefix->lent = 0;
        while (before != &prefixes->list && prefix_of(before)->used_ns > prefix->used_ns) {
            before = before->prev;
        }
        list_remove(&prefix->link);
        list_push_front(before, &prefix->link);
    }
}

/* False: there is no room for |fresh|, and all is as before, what it contains included. */
static bool add(struct rt_prefixes *prefixes, struct prefix *fresh, struct list *dropped)
{
    uint64_t displaced = prefixes->displaced_count;
    if (!make_room(prefixes, fresh, dropped) || !charge(prefixes, fresh)) {
        prefixes->refused_count++;
        prefixes->displaced_count = displaced;
        take_back(prefixes, dropped);
        return false;
    }
    return true;
}

static void touch(struct rt_prefixes *prefixes, struct prefix *prefix)
{
    prefix->used_ns = prefixes->options.clock();
    list_remove(&prefix->link);
    list_push_back(&prefixes->list, &prefix->link);
}

static bool is_of(const struct prefix *prefix, const struct rt_prefix_key *key)
{
    return prefix->method == key->method && strcmp(prefix->owner, key->owner) == 0;
}

/* How many tokens at the beginning are the same. */
static uint32_t common(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && a[i] == b[i]) {
        i++;
    }
    return i;
}

/* Tokens of |key| that need not be computed with |prefix|. */
static uint32_t usable(const struct prefix *prefix, const struct rt_prefix_key *key)
{
    if (!is_of(prefix, key) || key->count == 0) {
        return 0;
    }
    uint32_t most = key->count - 1;
    most = most < prefix->count ? most : prefix->count;
    uint32_t same = common(prefix->tokens, key->tokens, most);
    bool is_enough = prefix->is_positional ? same >= RT_PREFIX_TOKENS_MIN : same == prefix->count;
    return is_enough ? same : 0;
}

static bool begins(const uint32_t *tokens, uint32_t count, const uint32_t *with,
                   uint32_t with_count)
{
    return with_count <= count && common(tokens, with, with_count) == with_count;
}

/* States that the one of |key| can do for go; true: another one can do for it. */
static bool drop_contained(struct rt_prefixes *prefixes, const struct rt_prefix_key *key,
                           bool is_positional, struct list *dropped)
{
    struct list *at = prefixes->list.next;
    while (at != &prefixes->list) {
        struct prefix *prefix = prefix_of(at);
        at = at->next;
        if (prefix->is_positional != is_positional || !is_of(prefix, key) ||
            (!is_positional && prefix->count != key->count)) {
            continue;
        }
        if (begins(prefix->tokens, prefix->count, key->tokens, key->count)) {
            touch(prefixes, prefix);
            return true;
        }
        if (begins(key->tokens, key->count, prefix->tokens, prefix->count)) {
            drop(prefixes, prefix, dropped);
        }
    }
    return false;
}

/* ---- from outside ---------------------------------------------------------------------------- */

/* Frees what nobody has any more of dropped states, those that were dropped before included: a
 * state of which only these had pages goes, too. */
static void free_dropped(struct rt_prefixes *prefixes, struct list *dropped)
{
    let_go_all(prefixes, dropped);
    rt_prefixes_sweep(prefixes);
}

static void free_list(struct rt_prefixes *prefixes, struct list *list)
{
    while (!list_is_empty(list)) {
        struct prefix *prefix = prefix_of(list->next);
        count_lent(prefixes, prefix, 0);
        free_prefix(prefix);
    }
}

void rt_prefixes_free(struct rt_prefixes *prefixes)
{
    struct list dropped;
    list_init(&dropped);
    if (!prefixes) {
        return;
    }
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    while (!list_is_empty(&prefixes->list)) {
        drop(prefixes, prefix_of(prefixes->list.next), &dropped);
    }
    free_list(prefixes, &dropped);
    free_list(prefixes, &prefixes->gone);
    must(prefixes->bytes == 0 && prefixes->lent == 0);
    share_fini(&prefixes->counts);
    share_fini(&prefixes->sizes);
    pthread_mutex_destroy(&prefixes->lock);
    prefixes->magic = 0;
    free(prefixes);
}

static struct prefix *make(const struct rt_prefix_key *key, struct rt_state *state,
                           bool is_positional)
{
    size_t owner_len = strlen(key->owner), token_bytes = key->count * sizeof(key->tokens[0]);
    struct prefix *prefix =
        owner_len <= RT_PREFIX_OWNER_MAX ? malloc(sizeof(*prefix) + token_bytes) : NULL;
    if (!prefix) {
        return NULL;
    }
    *prefix = (struct prefix){.magic = PREFIX_MAGIC,
                              .method = key->method,
                              .state = rt_state_ref(state),
                              .is_positional = is_positional,
                              .client = key->client,
                              .count = key->count};
    memcpy(prefix->owner, key->owner, owner_len + 1);
    memcpy(prefix->tokens, key->tokens, token_bytes);
    size_t bytes = rt_state_trim(state);
    prefix->bytes = add_size(bytes, sizeof(*prefix) + token_bytes, &bytes) ? bytes : SIZE_MAX;
    list_init(&prefix->link);
    return prefix;
}

void rt_prefixes_keep(struct rt_prefixes *prefixes, const struct rt_prefix_key *key,
                      struct rt_state *state, bool is_positional, const atomic_bool *is_closed)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    struct list dropped;
    list_init(&dropped);
    if (prefixes->options.bytes_max == 0 || key->count < RT_PREFIX_TOKENS_MIN) {
        return;
    }
    struct prefix *prefix = make(key, state, is_positional), *unwanted = NULL;
    if (!prefix) {
        return;
    }
    size_t max = prefixes->options.bytes_max;
    pthread_mutex_lock(&prefixes->lock);
    if (atomic_load(is_closed) || prefix->bytes > max ||
        drop_contained(prefixes, key, is_positional, &dropped) ||
        !add(prefixes, prefix, &dropped)) {
        unwanted = prefix;
    } else {
        touch(prefixes, prefix);
    }
    pthread_mutex_unlock(&prefixes->lock);
    free_dropped(prefixes, &dropped);
    if (unwanted) {
        free_prefix(unwanted);
    }
}

uint32_t rt_prefixes_find(struct rt_prefixes *prefixes, const struct rt_prefix_key *key,
                          struct rt_state **out_state, bool *out_has_more)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    struct prefix *best = NULL;
    uint32_t most = 0;
    pthread_mutex_lock(&prefixes->lock);
    for (struct list *at = prefixes->list.next; at != &prefixes->list; at = at->next) {
        uint32_t count = usable(prefix_of(at), key);
        if (count > 0 && count >= most) {
            most = count;
            best = prefix_of(at);
        }
    }
    if (best) {
        touch(prefixes, best);
        *out_state = rt_state_ref(best->state);
        *out_has_more = most < best->count;
    }
    pthread_mutex_unlock(&prefixes->lock);
    return most;
}

void rt_prefixes_close(struct rt_prefixes *prefixes, const struct rt_method *method,
                       atomic_bool *is_closed)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    struct list dropped;
    list_init(&dropped);
    pthread_mutex_lock(&prefixes->lock);
    atomic_store(is_closed, true);
    struct list *at = prefixes->list.next;
    while (at != &prefixes->list) {
        struct prefix *prefix = prefix_of(at);
        at = at->next;
        if (prefix->method == method) {
            drop(prefixes, prefix, &dropped);
        }
    }
    pthread_mutex_unlock(&prefixes->lock);
    free_dropped(prefixes, &dropped);
}

/* Drops states until they have |bytes| or less. False: none was dropped. */
static bool drop_some(struct rt_prefixes *prefixes, size_t bytes)
{
    struct list dropped;
    list_init(&dropped);
    pthread_mutex_lock(&prefixes->lock);
    struct list *at = prefixes->list.next;
    while (at != &prefixes->list && prefixes->bytes > bytes) {
        struct prefix *prefix = prefix_of(at);
        at = at->next;
        if (frees_memory(prefix)) {
            drop(prefixes, prefix, &dropped);
        }
    }
    pthread_mutex_unlock(&prefixes->lock);
    bool has_any = !list_is_empty(&dropped);
    free_dropped(prefixes, &dropped);
    return has_any;
}

/* A state of which dropped ones had pages may be the next one to go. */
size_t rt_prefixes_shrink(struct rt_prefixes *prefixes, size_t bytes)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    rt_prefixes_sweep(prefixes);
    while (drop_some(prefixes, bytes)) {
    }
    return rt_prefixes_load(prefixes).bytes;
}

uint64_t rt_prefixes_expire(struct rt_prefixes *prefixes)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    struct list dropped;
    list_init(&dropped);
    uint64_t next = RT_SCHED_NEVER;
    pthread_mutex_lock(&prefixes->lock);
    uint64_t now = prefixes->options.clock(); /* no use is later */
    while (!list_is_empty(&prefixes->list) && next == RT_SCHED_NEVER) {
        struct prefix *first = prefix_of(prefixes->list.next);
        if (now - first->used_ns < prefixes->options.idle_ns) {
            next = first->used_ns + prefixes->options.idle_ns;
        } else {
            drop(prefixes, first, &dropped);
        }
    }
    pthread_mutex_unlock(&prefixes->lock);
    free_dropped(prefixes, &dropped);
    return next;
}

struct rt_prefixes_load rt_prefixes_load(struct rt_prefixes *prefixes)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    pthread_mutex_lock(&prefixes->lock);
    const struct rt_prefixes_load load = {prefixes->count, prefixes->bytes};
    pthread_mutex_unlock(&prefixes->lock);
    return load;
}

void rt_prefixes_stats(struct rt_prefixes *prefixes, struct share_stats *out_bytes)
{
    OBJ_CHECK(prefixes, PREFIXES_MAGIC);
    pthread_mutex_lock(&prefixes->lock);
    share_stats(&prefixes->sizes, out_bytes);
    out_bytes->size = prefixes->options.bytes_max;
    out_bytes->refused_count = prefixes->refused_count;
    out_bytes->taken_back_count = prefixes->displaced_count;
    pthread_mutex_unlock(&prefixes->lock);
}
