/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/held.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/list.h"
#include "runtime/graph/graph.h"
#include "runtime/program/method.h"
#include "runtime/program/resident.h"
#include "runtime/program/summary.h"
#include "runtime/pte/files.h"

#define BUCKETS 4096 /* a power of 2 */

struct rt_held_item {
    struct list link;
    const uint8_t *address;
    size_t bytes;
    atomic_uint programs;
};

static struct {
    pthread_mutex_t mutex;
    struct list buckets[BUCKETS];
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static atomic_uint_fast64_t total; /* bytes in the table */

static void init_table(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        list_init(&table.buckets[i]);
    }
}

static void lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_table);
    pthread_mutex_lock(&table.mutex);
}

static struct list *bucket_of(const uint8_t *address)
{
    return &table.buckets[(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

_Static_assert(BUCKETS == 1 << 12, "the upper 12 bits choose");

/* One more program has the constant. NULL: there is no memory. With the lock. */
static struct rt_held_item *take(struct span bytes)
{
    struct list *bucket = bucket_of(bytes.ptr);
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct rt_held_item *item = LIST_ENTRY(at, struct rt_held_item, link);
        if (item->address == bytes.ptr) {
            atomic_fetch_add_explicit(&item->programs, 1, memory_order_relaxed);
            return item;
        }
    }
    struct rt_held_item *item = malloc(sizeof(*item));
    if (item) {
        item->address = bytes.ptr;
        item->bytes = bytes.len;
        atomic_init(&item->programs, 1);
        list_push_back(bucket, &item->link);
        atomic_fetch_add_explicit(&total, bytes.len, memory_order_relaxed);
    }
    return item;
}

/* One less. With the lock. */
static void drop(struct rt_held_item *item)
{
    unsigned before = atomic_fetch_sub_explicit(&item->programs, 1, memory_order_relaxed);
    must(before > 0);
    if (before == 1) {
        list_remove(&item->link);
        atomic_fetch_sub_explicit(&total, item->bytes, memory_order_relaxed);
        free(item);
    }
}

/* ---- the constants of a program -------------------------------------------------------------- */

struct constants {
    struct span *items; /* owned; NULL: they are only counted */
    size_t count;
};

static void add(void *arg, const struct rt_value *value)
{
    struct constants *constants = arg;
    if (value->bytes.len == 0) {
        return;
    }
    if (constants->items) {
        constants->items[constants->count] = value->bytes;
    }
    constants->count++;
}

static enum status each_constant(const struct rt_program *program, struct constants *constants,
                                 struct error *err)
{
    constants->count = 0;
    for (uint32_t i = 0; i < program->method_count; i++) {
        const struct rt_method *method = &program->methods[i];
        TRY(rt_method_failure(method) ? ST_OK
                                      : rt_method_each_constant(method, add, constants, err));
    }
    return ST_OK;
}

/* By address, and the longest first of those that begin there. */
static int compare(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    uintptr_t at_a = (uintptr_t)a->ptr, at_b = (uintptr_t)b->ptr;
    return at_a != at_b ? (at_a > at_b) - (at_a < at_b) : (a->len < b->len) - (a->len > b->len);
}

/* |constants| has all, some of them several times. */
static enum status take_all(struct rt_held *held, struct constants *constants, struct error *err)
{
    bool has_all = true;
    qsort(constants->items, constants->count, sizeof(*constants->items), compare);
    lock();
    for (size_t i = 0; has_all && i < constants->count; i++) {
        if (i > 0 && constants->items[i].ptr == constants->items[i - 1].ptr) {
            continue;
        }
        struct rt_held_item *item = take(constants->items[i]);
        has_all = item != NULL;
        if (item) {
            held->items[held->count++] = item;
        }
    }
    pthread_mutex_unlock(&table.mutex);
    return has_all ? ST_OK : error_no_memory(err, "the list of constants");
}

/* Bytes of the own file that the methods' weights are. */
static enum status count_weights(const struct rt_program *program, uint64_t *out_bytes,
                                 struct error *err)
{
    struct constants constants = {.items = NULL};
    for (uint32_t i = 0; i < program->method_count; i++) {
        constants.count += program->methods[i].weights.count;
    }
    constants.items = calloc(constants.count + 1, sizeof(*constants.items));
    if (!constants.items) {
        return error_no_memory(err, "the list of constants");
    }
    constants.count = 0;
    for (uint32_t i = 0; i < program->method_count; i++) {
        const struct rt_weights *weights = &program->methods[i].weights;
        for (uint32_t k = 0; k < weights->count; k++) {
            constants.items[constants.count++] = weights->items[k].bytes;
        }
    }
    qsort(constants.items, constants.count, sizeof(*constants.items), compare);
    *out_bytes = 0;
    for (size_t i = 0; i < constants.count; i++) {
        bool is_new = i == 0 || constants.items[i].ptr != constants.items[i - 1].ptr;
        if (is_new && rt_files_are_own(&program->files, constants.items[i])) {
            *out_bytes += constants.items[i].len;
        }
    }
    free(constants.items);
    return ST_OK;
}

enum status rt_held_init(struct rt_held *held, const struct rt_program *program, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    must(held->count == 0 && !held->items);
    struct constants constants = {.items = NULL};
    uint64_t file = rt_program_file_bytes(program), weights = 0;
    TRY(count_weights(program, &weights, err));
    held->rest = file > weights ? file - weights : 0;
    TRY(each_constant(program, &constants, err));
    if (constants.count == 0) {
        return ST_OK;
    }
    held->items = calloc(constants.count, sizeof(struct rt_held_item *));
    constants.items = calloc(constants.count, sizeof(*constants.items));
    enum status status = held->items && constants.items
                             ? each_constant(program, &constants, err)
                             : error_no_memory(err, "the list of constants");
    if (status == ST_OK) {
        status = take_all(held, &constants, err);
    }
    free(constants.items);
    return status;
}

void rt_held_fini(struct rt_held *held)
{
    lock();
    while (held->count > 0) {
        drop(held->items[--held->count]);
    }
    pthread_mutex_unlock(&table.mutex);
    free(held->items);
    held->items = NULL;
}

struct rt_held_bytes rt_program_held(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    struct rt_held_bytes bytes = {.rest = program->held.rest};
    for (uint32_t i = 0; i < program->held.count; i++) {
        const struct rt_held_item *item = program->held.items[i];
        unsigned programs = atomic_load_explicit(&item->programs, memory_order_relaxed);
        if (programs == 1) {
            bytes.own += item->bytes;
        } else {
            bytes.shared += item->bytes;
            bytes.part += item->bytes / programs;
        }
    }
    return bytes;
}

uint64_t rt_program_extends(const struct rt_program *program, const struct rt_program *base)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    OBJ_CHECK(base, RT_PROGRAM_MAGIC);
    const struct rt_held *all = &program->held, *some = &base->held;
    uint64_t common = 0, more = 0;
    uint32_t at = 0;
    if (some->count == 0 || some->count >= all->count ||
        some->items[0]->address < all->items[0]->address ||
        some->items[some->count - 1]->address > all->items[all->count - 1]->address) {
        return 0; /* items are in the order of their addresses */
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const struct rt_held_item *item = all->items[i];
        bool is_common = at < some->count && item == some->items[at];
        if (at < some->count && some->items[at]->address < item->address) {
            return 0; /* the base reads something else */
        }
        at += is_common;
        common += is_common ? item->bytes : 0;
        more += is_common ? 0 : item->bytes;
    }
    return at == some->count && more > 0 && more <= common ? common : 0;
}

uint64_t rt_held_total(void)
{
    return atomic_load_explicit(&total, memory_order_relaxed);
}
