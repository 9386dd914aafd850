/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/list.h"
#include "hal/buffer.h"
#include "runtime/pte/packed.h"

#define BUCKETS 4096 /* of each index; a power of 2 */

/* Contents up to this size have a digest of all their bytes; of larger ones only pieces are looked
 * at. A buffer with the same digest is compared as a whole. */
#define SAMPLE_WHOLE 4096
#define SAMPLE_PIECES 16
#define SAMPLE_PIECE 64

/* Buffers with the same digest that a new one is compared with. Nobody has more by chance. */
#define CANDIDATES_MAX 4

/* One of the recipes of a content. */
struct name {
    struct list by_recipe, of_content;
    struct content *content;
    struct rt_recipe recipe;
};

/* A buffer in the table. */
struct content {
    struct list by_buffer, by_sample;
    struct list names;         /* struct name, owned but for |first| */
    struct name first;         /* the recipe that names it in others; unique */
    struct hal_buffer *buffer; /* no reference is held: see leave() */
    struct rt_packed *source;  /* whose mapping the buffer keeps; NULL: it has its own memory */
    uint64_t sample;
};

static struct {
    pthread_mutex_t mutex;
    struct list by_buffer[BUCKETS], by_sample[BUCKETS], by_recipe[BUCKETS];
    uint64_t put_count; /* contents that ever came */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void init_table(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        list_init(&table.by_buffer[i]);
        list_init(&table.by_sample[i]);
        list_init(&table.by_recipe[i]);
    }
}

static void lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_table);
    pthread_mutex_lock(&table.mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&table.mutex);
}

/* ---- looking, with the lock ------------------------------------------------------------------ */

static struct list *bucket_of(struct list *buckets, uint64_t number)
{
    return &buckets[number * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

_Static_assert(BUCKETS == 1 << 12, "the upper 12 bits choose");

static struct list *buffer_bucket(const struct hal_buffer *buffer)
{
    return bucket_of(table.by_buffer, (uintptr_t)buffer);
}

static struct content *find_content(const struct hal_buffer *buffer)
{
    struct list *bucket = buffer_bucket(buffer);
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct content *content = LIST_ENTRY(at, struct content, by_buffer);
        if (content->buffer == buffer) {
            return content;
        }
    }
    return NULL;
}

static struct name *find_name(const struct rt_recipe *recipe)
{
    struct list *bucket = bucket_of(table.by_recipe, recipe->words[0]);
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct name *name = LIST_ENTRY(at, struct name, by_recipe);
        if (memcmp(&name->recipe, recipe, sizeof(*recipe)) == 0) {
            return name;
        }
    }
    return NULL;
}

static void link_name(struct name *name, struct content *content, const struct rt_recipe *recipe)
{
    name->recipe = *recipe;
    name->content = content;
    list_push_back(bucket_of(table.by_recipe, recipe->words[0]), &name->by_recipe);
    list_push_back(&content->names, &name->of_content);
}

static enum status add_name(struct content *content, const struct rt_recipe *recipe,
                            struct error *err)
{
    if (!recipe || find_name(recipe)) {
        return ST_OK;
    }
    struct name *name = malloc(sizeof(*name));
    if (!name) {
        return error_no_memory(err, "weights");
    }
    link_name(name, content, recipe);
    return ST_OK;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* The last reference to the buffer of the content |arg| has been dropped. */
static void leave(void *arg)
{
    struct content *content = arg;
    lock();
    list_remove(&content->by_buffer);
    list_remove(&content->by_sample);
    while (!list_is_empty(&content->names)) {
        struct name *name = LIST_ENTRY(content->names.next, struct name, of_content);
        list_remove(&name->of_content);
        list_remove(&name->by_recipe);
        if (name != &content->first) {
            free(name);
        }
    }
    unlock();
    free(content);
}

/* ---- coming ---------------------------------------------------------------------------------- */

static struct span bytes_of(struct hal_buffer *buffer)
{
    return span_of(hal_buffer_map(buffer), hal_buffer_size(buffer));
}

static uint64_t take_sample(struct span bytes)
{
    struct digest digest;
    uint64_t words[2];
    digest_init(&digest);
    digest_add_number(&digest, bytes.len);
    size_t step = bytes.len / SAMPLE_PIECES;
    for (size_t i = 0; bytes.len > SAMPLE_WHOLE && i < SAMPLE_PIECES; i++) {
        digest_add(&digest, span_of(bytes.ptr + i * step, SAMPLE_PIECE));
    }
    if (bytes.len <= SAMPLE_WHOLE) {
        digest_add(&digest, bytes);
    }
    digest_end(&digest, words);
    return words[0];
}

/* Buffers that may have the same bytes, and how many contents had come when they were looked for.
 */
struct candidates {
    struct hal_buffer *items[CANDIDATES_MAX]; /* refs held */
    struct rt_packed *sources[CANDIDATES_MAX];
    uint32_t count;
    uint64_t put_count;
};

/* With the lock. */
static void find_candidates(struct hal_buffer *buffer, uint64_t sample, struct candidates *out)
{
    struct list *bucket = bucket_of(table.by_sample, sample);
    *out = (struct candidates){.put_count = table.put_count};
    for (struct list *at = bucket->next; at != bucket && out->count < CANDIDATES_MAX;
         at = at->next) {
        const struct content *content = LIST_ENTRY(at, struct content, by_sample);
        struct hal_buffer *other = content->buffer;
        if (content->sample == sample && hal_buffer_size(other) == hal_buffer_size(buffer) &&
            hal_buffer_device(other) == hal_buffer_device(buffer) && hal_buffer_try_ref(other)) {
            out->sources[out->count] = content->source;
            out->items[out->count++] = other;
        }
    }
}

/* May the caller's program use what lies in the mapping of |source|? The reference to the buffer
 * keeps the mapping. */
static bool may_use(struct rt_packed *packed, struct rt_packed *source)
{
    return !source || (packed && rt_packed_rely_on(packed, source));
}

/* The candidate with the same bytes, or NULL; drops the others. Without the lock. */
static struct hal_buffer *compare(struct hal_buffer *buffer, const struct candidates *candidates,
                                  struct rt_packed *packed)
{
    struct hal_buffer *same = NULL;
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct hal_buffer *other = candidates->items[i];
        if (!same && span_equal(bytes_of(other), bytes_of(buffer)) &&
            may_use(packed, candidates->sources[i])) {
            same = other;
        } else {
            hal_buffer_unref(other);
        }
    }
    return same;
}

/* A recipe that nothing else has. With the lock. */
static struct rt_recipe new_recipe(void)
{
    return (struct rt_recipe){{table.put_count, 0, 0, 0}};
}

/* |content| is the entry of |buffer| from now on. With the lock. */
static void insert(struct content *content, struct hal_buffer *buffer,
                   const struct rt_recipe *recipe)
{
    table.put_count++;
    struct rt_recipe own = recipe && !find_name(recipe) ? *recipe : new_recipe();
    content->buffer = buffer;
    list_init(&content->names);
    link_name(&content->first, content, &own);
    list_push_back(buffer_bucket(buffer), &content->by_buffer);
    list_push_back(bucket_of(table.by_sample, content->sample), &content->by_sample);
    hal_buffer_watch(buffer, leave, content);
}

/* Is |buffer| in the table? Then |recipe| makes it, too. */
static enum status find_own(struct hal_buffer *buffer, const struct rt_recipe *recipe,
                            bool *is_there, struct error *err)
{
    lock();
    struct content *content = find_content(buffer);
    *is_there = content != NULL;
    enum status status = content ? add_name(content, recipe, err) : ST_OK;
    unlock();
    return status;
}

/* A buffer with the same bytes, as a reference; NULL: there was none when the lock was taken, which
 * the caller has on return. */
static struct hal_buffer *find_same(struct hal_buffer *buffer, uint64_t sample,
                                    struct rt_packed *packed)
{
    struct candidates candidates;
    struct hal_buffer *same = NULL;
    bool is_last_look = false;
    lock();
    while (!same && !is_last_look) {
        find_candidates(buffer, sample, &candidates);
        unlock();
        same = compare(buffer, &candidates, packed);
        lock();
        is_last_look = candidates.put_count == table.put_count; /* no other came meanwhile */
    }
    return same;
}

/* |content|: for a buffer that is new; NULL once it is in the table. */
static enum status put(const struct rt_recipe *recipe, struct hal_buffer **buffer,
                       struct rt_packed *packed, struct content **content, struct error *err)
{
    enum status status = ST_OK;
    uint64_t sample = take_sample(bytes_of(*buffer));
    struct hal_buffer *same = find_same(*buffer, sample, packed), *unused = same;
    if (same) {
        status = add_name(find_content(same), recipe, err);
    } else {
        (*content)->source = packed ? rt_packed_source(packed, bytes_of(*buffer)) : NULL;
        (*content)->sample = sample;
        insert(*content, *buffer, recipe);
        *content = NULL;
    }
    unlock();
    if (same && status == ST_OK) {
        unused = *buffer;
        *buffer = same;
    }
    hal_buffer_unref(unused); /* that takes the lock */
    return status;
}

enum status rt_shared_put(const struct rt_recipe *recipe, struct hal_buffer **buffer,
                          struct rt_packed *packed, struct error *err)
{
    bool is_there = false;
    if (hal_buffer_map(*buffer)) {
        TRY(find_own(*buffer, recipe, &is_there, err));
    }
    if (!hal_buffer_map(*buffer) || is_there) {
        return ST_OK;
    }
    struct content *content = malloc(sizeof(*content));
    enum status status =
        content ? put(recipe, buffer, packed, &content, err) : error_no_memory(err, "weights");
    free(content);
    return status;
}

struct hal_buffer *rt_shared_find(const struct rt_recipe *recipe, struct rt_packed *packed)
{
    struct hal_buffer *buffer = NULL;
    struct rt_packed *source = NULL;
    lock();
    const struct name *name = find_name(recipe);
    if (name && hal_buffer_try_ref(name->content->buffer)) {
        buffer = name->content->buffer;
        source = name->content->source;
    }
    unlock();
    if (buffer && !may_use(packed, source)) {
        hal_buffer_unref(buffer);
        return NULL;
    }
    return buffer;
}

bool rt_shared_recipe(const struct hal_buffer *buffer, struct rt_recipe *out)
{
    lock();
    struct content *content = find_content(buffer);
    if (content) {
        *out = content->first.recipe;
    }
    unlock();
    return content != NULL;
}
