/* SPDX-License-Identifier: MIT */
/*
 * A table of chains under one mutex. A sequence that nobody holds is also in a list by the time of
 * its last use, so that the first of a list is the next to be forgotten. There are two such lists:
 * one of the sequences that went on after their first request, and one of the others. |claims| says
 * in which order they give way to new sequences when the table is full. A sequence that has ended,
 * or has been started anew by another request, is out of the table and lives until its last holder
 * closes it.
 */
#include "config.h"

#include "runtime/sched/sequence.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/share.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "runtime/sched/prefix.h"

#define CHAINS 1024

/* Idle sequences that are looked at for one that gives way. */
#define LOOKS_MAX 4096

/* Who shares: clients, and models. */
enum party { CLIENT, MODEL, PARTIES };

#define RT_SEQUENCE_MAGIC 0x5e9e0ce1u

struct rt_sequence {
    uint32_t magic;
    struct rt_sequences *sequences;  /* borrowed */
    struct rt_sequence *next;        /* in its chain, while |is_listed| */
    struct list link;                /* in a list of |sequences| while nobody holds it */
    struct rt_program *program;      /* kept alive by |state| */
    struct rt_state *state;          /* ref held */
    struct rt_state_account account; /* of |state|: pays from |bytes| */
    struct rt_sched_lane lane;
    size_t bytes;
    uint64_t parties[PARTIES]; /* that it counts for */
    uint64_t used_ns;          /* when it was last let go */
    uint64_t number;
    uint32_t holder_count;
    bool is_listed;
    bool has_gone_on; /* has had more than one request */
    uint32_t name_len;
    uint8_t name[RT_SEQUENCE_NAME_MAX];
};

#define RT_SEQUENCES_MAGIC 0x5e9e0ce5u

struct rt_sequences {
    uint32_t magic;
    struct rt_sequences_options options;
    struct rt_prefixes *prefixes; /* owned; its lock may be taken under |lock| */
    pthread_mutex_t lock;
    struct rt_sequence *chains[CHAINS];
    struct list idle;    /* have had several requests; longest idle first */
    struct list started; /* have had one request; in the same order */
    uint32_t count;      /* with states that are out of the table */
    size_t bytes;
    struct share counts[PARTIES], sizes[PARTIES]; /* who holds how many of both; they bind nobody */
    uint64_t displaced_count, refused_count;
};

enum status rt_sequences_new(const struct rt_sequences_options *options,
                             struct rt_sequences **out_sequences, struct error *err)
{
    struct rt_sequences *sequences = calloc(1, sizeof(*sequences));
    if (!sequences) {
        return error_no_memory(err, "sequences");
    }
    const struct rt_prefixes_options prefixes = {
        .bytes_max = options->prefix_bytes_max < options->bytes_max ? options->prefix_bytes_max
                                                                    : options->bytes_max,
        .idle_ns = options->idle_ns,
        .clock = options->clock,
    };
    if (rt_prefixes_new(&prefixes, &sequences->prefixes, err) != ST_OK) {
        free(sequences);
        return err->code;
    }
    sequences->magic = RT_SEQUENCES_MAGIC;
    sequences->options = *options;
    must(pthread_mutex_init(&sequences->lock, NULL) == 0);
    list_init(&sequences->idle);
    list_init(&sequences->started);
    for (int i = 0; i < PARTIES; i++) {
        share_init(&sequences->counts[i], UINT64_MAX, 0);
        share_init(&sequences->sizes[i], UINT64_MAX, 0);
    }
    *out_sequences = sequences;
    return ST_OK;
}

/* ---- with the lock held ---------------------------------------------------------------------- */

static struct span name_of(const struct rt_sequence *sequence)
{
    return span_of(sequence->name, sequence->name_len);
}

/* FNV-1a. */
static uint32_t chain_of(struct rt_program *program, uint64_t number, struct span name)
{
    uint64_t hash = 0xcbf29ce484222325u ^ number ^ (uintptr_t)program;
    for (size_t i = 0; i < name.len; i++) {
        hash = (hash ^ name.ptr[i]) * 0x100000001b3u;
    }
    hash *= 0x100000001b3u;
    return (uint32_t)(hash >> 32) % CHAINS;
}

/* The place of the pointer to the sequence, or of the NULL at the end of its chain. */
static struct rt_sequence **find(struct rt_sequences *sequences, const struct rt_sequence_key *key)
{
    struct rt_sequence **at = &sequences->chains[chain_of(key->program, key->number, key->name)];
    while (*at) {
        struct span name = name_of(*at);
        if ((*at)->program == key->program && (*at)->number == key->number &&
            name.len == key->name.len &&
            (name.len == 0 || memcmp(name.ptr, key->name.ptr, name.len) == 0)) {
            break;
        }
        at = &(*at)->next;
    }
    return at;
}

static void find_parties(const struct rt_sequence_key *key, uint64_t parties[PARTIES])
{
    parties[CLIENT] = key->client;
    parties[MODEL] = (uint64_t)(uintptr_t)key->program << 1 | key->is_of_request;
}

/* The first |count| parties give a sequence of |bytes| back. */
static void give_back(struct rt_sequences *sequences, const uint64_t parties[PARTIES], size_t bytes,
                      int count)
{
    for (int i = 0; i < count; i++) {
        share_give(&sequences->counts[i], parties[i], 1);
        share_give(&sequences->sizes[i], parties[i], bytes);
    }
}

/* All or none take one; false: there is no memory to note it. */
static bool take(struct rt_sequences *sequences, const uint64_t parties[PARTIES], size_t bytes)
{
    for (int i = 0; i < PARTIES; i++) {
        bool has_one = share_take(&sequences->counts[i], parties[i], 1) == SHARE_TAKEN;
        if (!has_one || share_take(&sequences->sizes[i], parties[i], bytes) != SHARE_TAKEN) {
            share_give(&sequences->counts[i], parties[i], has_one);
            give_back(sequences, parties, bytes, i);
            return false;
        }
    }
    return true;
}

static void destroy(struct rt_sequence *sequence)
{
    struct rt_sequences *sequences = sequence->sequences;
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    must(sequence->holder_count == 0 && !sequence->is_listed);
    must(sequences->count > 0 && sequences->bytes >= sequence->bytes);
    list_remove(&sequence->link);
    sequences->count--;
    sequences->bytes -= sequence->bytes;
    give_back(sequences, sequence->parties, sequence->bytes, PARTIES);
    rt_state_set_account(sequence->state, NULL); /* others may keep it */
    rt_state_unref(sequence->state);
    sequence->magic = 0;
    free(sequence);
}

/* Takes the sequence out of the table: its id is free. It is freed when its last holder closes it.
 */
static void unlist(struct rt_sequence *sequence)
{
    if (!sequence->is_listed) {
        return;
    }
    const struct rt_sequence_key key = {
        .program = sequence->program, .number = sequence->number, .name = name_of(sequence)};
    struct rt_sequence **at = find(sequence->sequences, &key);
    must(*at == sequence);
    *at = sequence->next;
    sequence->is_listed = false;
    if (sequence->holder_count == 0) {
        destroy(sequence);
    }
}

static struct rt_sequence *first_of(struct list *list)
{
    return LIST_ENTRY(list->next, struct rt_sequence, link);
}

static uint64_t expire_list(struct rt_sequences *sequences, struct list *list, uint64_t now)
{
    while (!list_is_empty(list)) {
        struct rt_sequence *first = first_of(list);
        if (now - first->used_ns < sequences->options.idle_ns) {
            return first->used_ns + sequences->options.idle_ns;
        }
        unlist(first);
    }
    return RT_SCHED_NEVER;
}

static uint64_t expire(struct rt_sequences *sequences, uint64_t now)
{
    uint64_t idle = expire_list(sequences, &sequences->idle, now);
    uint64_t started = expire_list(sequences, &sequences->started, now);
    return idle < started ? idle : started;
}

static bool lacks_bytes(const struct rt_sequences *sequences, size_t bytes)
{
    size_t max = sequences->options.bytes_max;
    return bytes > max || sequences->bytes > max - bytes;
}

/* Are |bytes| more, and kept states, too much? What sequences have in common with kept states is
 * memory that these cannot give back. */
static bool is_crowded(struct rt_sequences *sequences, size_t bytes)
{
    if (lacks_bytes(sequences, bytes)) {
        return true;
    }
    size_t rest = sequences->options.bytes_max - sequences->bytes - bytes;
    return rt_prefixes_shrink(sequences->prefixes, rest) > rest;
}

static bool is_full(struct rt_sequences *sequences, size_t bytes)
{
    return sequences->count >= sequences->options.count_max || is_crowded(sequences, bytes);
}

/* Why an idle sequence may have to give way: its party holds more than the newcomer's would then,
 * or it is of the same client. */
enum claim { CLIENT_HOLDS_MORE, MODEL_HOLDS_MORE, SAME_CLIENT, ANY };

struct newcomer {
    uint64_t parties[PARTIES];
    size_t bytes;
    bool is_open; /* it is counted already, and needs only bytes */
};

static bool holds_more(struct rt_sequences *sequences, enum party party, uint64_t holder,
                       const struct newcomer *newcomer)
{
    struct share *counts = &sequences->counts[party], *sizes = &sequences->sizes[party];
    uint64_t taker = newcomer->parties[party];
    return !newcomer->is_open && sequences->count >= sequences->options.count_max
               ? share_held(counts, holder) > share_held(counts, taker) + 1
               : share_held(sizes, holder) > share_held(sizes, taker) + newcomer->bytes;
}

static bool gives_way(const struct rt_sequence *sequence, enum claim claim,
                      const struct newcomer *newcomer)
{
    switch (claim) {
    case CLIENT_HOLDS_MORE:
        return holds_more(sequence->sequences, CLIENT, sequence->parties[CLIENT], newcomer);
    case MODEL_HOLDS_MORE:
        return holds_more(sequence->sequences, MODEL, sequence->parties[MODEL], newcomer);
    case SAME_CLIENT:
        return sequence->parties[CLIENT] == newcomer->parties[CLIENT];
    case ANY:
        return true;
    }
    unreachable();
}

/* The sequence that has been idle longest of those that give way; NULL: there is none. */
static struct rt_sequence *find_first(struct list *list, enum claim claim,
                                      const struct newcomer *newcomer)
{
    int looks = 0;
    for (struct list *link = list->next; link != list && looks < LOOKS_MAX; link = link->next) {
        struct rt_sequence *sequence = LIST_ENTRY(link, struct rt_sequence, link);
        if (gives_way(sequence, claim, newcomer)) {
            return sequence;
        }
        looks++;
    }
    return NULL;
}

static struct rt_sequence *find_displaced(struct rt_sequences *sequences,
                                          const struct newcomer *newcomer)
{
    const struct {
        struct list *list;
        enum claim claim;
    } claims[] = {
        {&sequences->started, CLIENT_HOLDS_MORE}, {&sequences->started, MODEL_HOLDS_MORE},
        {&sequences->started, SAME_CLIENT},       {&sequences->started, ANY},
        {&sequences->idle, CLIENT_HOLDS_MORE},    {&sequences->idle, MODEL_HOLDS_MORE},
    };
    struct rt_sequence *found = NULL;
    for (size_t i = 0; !found && i < sizeof(claims) / sizeof(claims[0]); i++) {
        found = find_first(claims[i].list, claims[i].claim, newcomer);
    }
    return found;
}

/* Forgets idle sequences until there is room for the new one, or none gives way. */
static void make_room(struct rt_sequences *sequences, const struct newcomer *newcomer)
{
    struct rt_sequence *displaced = NULL;
    while ((newcomer->is_open ? is_crowded(sequences, newcomer->bytes)
                              : is_full(sequences, newcomer->bytes)) &&
           (displaced = find_displaced(sequences, newcomer)) != NULL) {
        sequences->displaced_count++;
        unlist(displaced);
    }
}

/* ---- growing states -------------------------------------------------------------------------- */

static struct rt_sequence *sequence_of(const struct rt_state_account *account)
{
    struct rt_sequence *sequence =
        LIST_ENTRY((struct rt_state_account *)(uintptr_t)account, struct rt_sequence, account);
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    return sequence;
}

/* All parties take, or none; false: there is no memory to note it. */
static bool take_bytes(struct rt_sequences *sequences, const uint64_t parties[PARTIES],
                       size_t bytes)
{
    for (int i = 0; i < PARTIES; i++) {
        if (share_take(&sequences->sizes[i], parties[i], bytes) != SHARE_TAKEN) {
            while (i-- > 0) {
                share_give(&sequences->sizes[i], parties[i], bytes);
            }
            return false;
        }
    }
    return true;
}

/* With the lock: |sequence| gets |more| bytes, also those of idle sequences that give way. */
static enum status enlarge(struct rt_sequence *sequence, size_t more, struct error *err)
{
    struct rt_sequences *sequences = sequence->sequences;
    struct newcomer newcomer = {.bytes = more, .is_open = true};
    memcpy(newcomer.parties, sequence->parties, sizeof(newcomer.parties));
    make_room(sequences, &newcomer);
    if (is_crowded(sequences, more)) {
        sequences->refused_count++;
        return error_set(err, ST_EXHAUSTED,
                         "the state of this sequence has %zu bytes and needs %zu more: all "
                         "sequences have %zu, at most %zu",
                         sequence->bytes, more, sequences->bytes, sequences->options.bytes_max);
    }
    if (!take_bytes(sequences, sequence->parties, more)) {
        return error_no_memory(err, "a sequence");
    }
    sequence->bytes += more;
    sequences->bytes += more;
    return ST_OK;
}

/* A call may bring the state to |bytes|. Any thread. */
static enum status charge(const struct rt_state_account *account, size_t bytes, struct error *err)
{
    struct rt_sequence *sequence = sequence_of(account);
    struct rt_sequences *sequences = sequence->sequences;
    enum status status = ST_OK;
    pthread_mutex_lock(&sequences->lock);
    if (bytes > sequence->bytes) {
        status = enlarge(sequence, bytes - sequence->bytes, err);
    }
    pthread_mutex_unlock(&sequences->lock);
    return status;
}

static void settle(const struct rt_state_account *account, size_t bytes)
{
    struct rt_sequence *sequence = sequence_of(account);
    struct rt_sequences *sequences = sequence->sequences;
    pthread_mutex_lock(&sequences->lock);
    if (bytes < sequence->bytes) {
        size_t less = sequence->bytes - bytes;
        for (int i = 0; i < PARTIES; i++) {
            share_give(&sequences->sizes[i], sequence->parties[i], less);
        }
        sequence->bytes -= less;
        sequences->bytes -= less;
    }
    pthread_mutex_unlock(&sequences->lock);
}

/* ---- new ones -------------------------------------------------------------------------------- */

static enum status add(struct rt_sequences *sequences, const struct rt_sequence_key *key,
                       struct rt_sequence **out_sequence, struct error *err)
{
    size_t bytes = rt_program_state_bytes_least(key->program);
    struct newcomer newcomer = {.bytes = bytes};
    find_parties(key, newcomer.parties);
    if (bytes > sequences->options.bytes_max) {
        return error_set(err, ST_TOO_LARGE,
                         "a sequence of this model needs %zu bytes, more than all sequences may "
                         "have (%zu)",
                         bytes, sequences->options.bytes_max);
    }
    make_room(sequences, &newcomer);
    if (is_full(sequences, bytes)) {
        sequences->refused_count++;
        return error_set(err, ST_EXHAUSTED,
                         "%u sequences with %zu bytes are open already, of at most %u with %zu",
                         sequences->count, sequences->bytes, sequences->options.count_max,
                         sequences->options.bytes_max);
    }
    struct rt_sequence *sequence = calloc(1, sizeof(*sequence));
    if (!sequence) {
        return error_no_memory(err, "a sequence");
    }
    if (rt_state_new(key->program, &sequence->state, err) != ST_OK) {
        free(sequence);
        return err->code;
    }
    if (!take(sequences, newcomer.parties, bytes)) {
        rt_state_unref(sequence->state);
        free(sequence);
        return error_no_memory(err, "a sequence");
    }
    sequence->magic = RT_SEQUENCE_MAGIC;
    memcpy(sequence->parties, newcomer.parties, sizeof(newcomer.parties));
    sequence->sequences = sequences;
    sequence->program = key->program;
    sequence->number = key->number;
    sequence->name_len = (uint32_t)key->name.len;
    if (key->name.len) {
        memcpy(sequence->name, key->name.ptr, key->name.len);
    }
    sequence->bytes = bytes;
    sequence->account = (struct rt_state_account){.charge = charge, .settle = settle};
    rt_state_set_account(sequence->state, &sequence->account);
    sequence->is_listed = true;
    list_init(&sequence->link);
    rt_sched_lane_init(&sequence->lane);
    struct rt_sequence **chain = &sequences->chains[chain_of(key->program, key->number, key->name)];
    sequence->next = *chain;
    *chain = sequence;
    sequences->count++;
    sequences->bytes += bytes;
    *out_sequence = sequence;
    return ST_OK;
}

static enum status find_or_add(struct rt_sequences *sequences, const struct rt_sequence_key *key,
                               bool is_start, struct rt_sequence **out_sequence, struct error *err)
{
    struct rt_sequence *found = *find(sequences, key);
    if (found && is_start) {
        unlist(found);
        found = NULL;
    }
    if (found) {
        found->has_gone_on = true;
        *out_sequence = found;
        return ST_OK;
    }
    if (!is_start) {
        return error_set(err, ST_INVALID,
                         "this sequence is not open, or not any more: its first request has to say "
                         "sequence_start");
    }
    return add(sequences, key, out_sequence, err);
}

/* ---- from outside ---------------------------------------------------------------------------- */

enum status rt_sequences_open(struct rt_sequences *sequences, const struct rt_sequence_key *key,
                              bool is_start, struct rt_sequence **out_sequence, struct error *err)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    if (key->name.len > RT_SEQUENCE_NAME_MAX) {
        return error_set(err, ST_TOO_LARGE, "expected at most %d bytes, got %zu",
                         RT_SEQUENCE_NAME_MAX, key->name.len);
    }
    pthread_mutex_lock(&sequences->lock);
    uint64_t now = sequences->options.clock(); /* no use is later */
    expire(sequences, now);
    struct rt_sequence *sequence = NULL;
    enum status status = find_or_add(sequences, key, is_start, &sequence, err);
    if (status == ST_OK) {
        list_remove(&sequence->link);
        sequence->holder_count++;
        *out_sequence = sequence;
    }
    pthread_mutex_unlock(&sequences->lock);
    return status;
}

bool rt_sequences_has(struct rt_sequences *sequences, const struct rt_sequence_key *key)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    if (key->name.len > RT_SEQUENCE_NAME_MAX) {
        return false;
    }
    pthread_mutex_lock(&sequences->lock);
    uint64_t now = sequences->options.clock(); /* no use is later */
    expire(sequences, now);
    bool has = *find(sequences, key) != NULL;
    pthread_mutex_unlock(&sequences->lock);
    return has;
}

uint32_t rt_sequences_count(struct rt_sequences *sequences, const struct rt_program *program)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    uint32_t count = 0;
    pthread_mutex_lock(&sequences->lock);
    for (uint32_t i = 0; i < CHAINS; i++) {
        for (const struct rt_sequence *at = sequences->chains[i]; at; at = at->next) {
            count += at->program == program;
        }
    }
    pthread_mutex_unlock(&sequences->lock);
    return count;
}

void rt_sequences_end_all(struct rt_sequences *sequences, const struct rt_program *program)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    pthread_mutex_lock(&sequences->lock);
    for (uint32_t i = 0; i < CHAINS; i++) {
        for (struct rt_sequence *at = sequences->chains[i], *next; at; at = next) {
            next = at->next;
            if (at->program == program) {
                unlist(at);
            }
        }
    }
    pthread_mutex_unlock(&sequences->lock);
}

struct rt_state *rt_sequence_state(struct rt_sequence *sequence)
{
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    return sequence->state;
}

struct rt_sched_lane *rt_sequence_lane(struct rt_sequence *sequence)
{
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    return &sequence->lane;
}

void rt_sequence_end(struct rt_sequence *sequence)
{
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    struct rt_sequences *sequences = sequence->sequences;
    pthread_mutex_lock(&sequences->lock);
    must(sequence->holder_count > 0);
    unlist(sequence);
    pthread_mutex_unlock(&sequences->lock);
}

void rt_sequence_close(struct rt_sequence *sequence)
{
    if (!sequence) {
        return;
    }
    OBJ_CHECK(sequence, RT_SEQUENCE_MAGIC);
    struct rt_sequences *sequences = sequence->sequences;
    pthread_mutex_lock(&sequences->lock);
    uint64_t now = sequences->options.clock(); /* no use is later */
    must(sequence->holder_count > 0);
    if (--sequence->holder_count == 0) {
        sequence->used_ns = now;
        list_push_back(sequence->has_gone_on ? &sequences->idle : &sequences->started,
                       &sequence->link);
        if (!sequence->is_listed) {
            destroy(sequence);
        }
    }
    pthread_mutex_unlock(&sequences->lock);
    rt_prefixes_sweep(sequences->prefixes);
}

uint64_t rt_sequences_expire(struct rt_sequences *sequences)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    pthread_mutex_lock(&sequences->lock);
    uint64_t now = sequences->options.clock(); /* no use is later */
    uint64_t next = expire(sequences, now);
    pthread_mutex_unlock(&sequences->lock);
    uint64_t prefixes = rt_prefixes_expire(sequences->prefixes);
    return next < prefixes ? next : prefixes;
}

struct rt_prefixes *rt_sequences_prefixes(struct rt_sequences *sequences)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    return sequences->prefixes;
}

struct rt_sequences_load rt_sequences_load(struct rt_sequences *sequences)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    pthread_mutex_lock(&sequences->lock);
    const struct rt_sequences_load load = {sequences->count, sequences->bytes,
                                           sequences->displaced_count};
    pthread_mutex_unlock(&sequences->lock);
    return load;
}

void rt_sequences_stats(struct rt_sequences *sequences, struct share_stats *out_counts,
                        struct share_stats *out_bytes)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    pthread_mutex_lock(&sequences->lock);
    share_stats(&sequences->counts[CLIENT], out_counts);
    share_stats(&sequences->sizes[CLIENT], out_bytes);
    out_counts->size = sequences->options.count_max;
    out_bytes->size = sequences->options.bytes_max;
    out_counts->refused_count = sequences->refused_count;
    out_counts->taken_back_count = sequences->displaced_count;
    pthread_mutex_unlock(&sequences->lock);
}

bool rt_sequences_is_full_for(struct rt_sequences *sequences, struct rt_program *program)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    pthread_mutex_lock(&sequences->lock);
    bool is_without_room = sequences->count >= sequences->options.count_max ||
                           lacks_bytes(sequences, rt_program_state_bytes_least(program));
    pthread_mutex_unlock(&sequences->lock);
    return is_without_room;
}

uint64_t rt_sequences_held_bytes(struct rt_sequences *sequences, uint64_t client)
{
    OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
    return share_held(&sequences->sizes[CLIENT], client);
}

void rt_sequences_free(struct rt_sequences *sequences)
{
    if (sequences) {
        OBJ_CHECK(sequences, RT_SEQUENCES_MAGIC);
        while (!list_is_empty(&sequences->idle)) {
            unlist(first_of(&sequences->idle));
        }
        while (!list_is_empty(&sequences->started)) {
            unlist(first_of(&sequences->started));
        }
        must(sequences->count == 0);
        must(sequences->bytes == 0);
        for (int i = 0; i < PARTIES; i++) {
            share_fini(&sequences->counts[i]);
            share_fini(&sequences->sizes[i]);
        }
        rt_prefixes_free(sequences->prefixes);
        pthread_mutex_destroy(&sequences->lock);
        sequences->magic = 0;
        free(sequences);
    }
}
