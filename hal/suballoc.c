/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/suballoc.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"

#define COLUMN_BITS 3
_Static_assert(1 << COLUMN_BITS == HAL_SUBALLOC_COLUMNS, "a column for each of these bits");

/* The most ranges that are looked at in a bin that also has smaller ranges. */
#define LOOKS_MAX 32

/* New ranges that an operation needs at most. */
#define SPARE_MAX 2

/* ---- bins ------------------------------------------------------------------------------------ */

struct place {
    uint32_t row, column;
};

/* The bin of ranges of |size| bytes: all in it are at least as large as its smallest size. */
static struct place place_of(size_t size)
{
    must(size > 0);
    uint32_t row = 63 - (uint32_t)__builtin_clzll(size);
    uint64_t rest = row >= COLUMN_BITS ? (uint64_t)size >> (row - COLUMN_BITS)
                                       : (uint64_t)size << (COLUMN_BITS - row);
    return (struct place){row, (uint32_t)rest & (HAL_SUBALLOC_COLUMNS - 1)};
}

static void init_bins(struct hal_suballoc_bins *bins)
{
    *bins = (struct hal_suballoc_bins){0};
    for (uint32_t row = 0; row < HAL_SUBALLOC_ROWS; row++) {
        for (uint32_t column = 0; column < HAL_SUBALLOC_COLUMNS; column++) {
            list_init(&bins->bins[row][column]);
        }
    }
}

static struct hal_suballoc_bins *bins_of(struct hal_suballoc *suballoc, enum hal_range_state state)
{
    must(state != HAL_RANGE_USED);
    return state == HAL_RANGE_FREE ? &suballoc->free : &suballoc->kept;
}

/* Puts |range|, which is in no bin, into the bin for its size and |state| (free or kept). */
static void put(struct hal_suballoc *suballoc, struct hal_range *range, enum hal_range_state state)
{
    struct hal_suballoc_bins *bins = bins_of(suballoc, state);
    struct place place = place_of(range->size);
    must(list_is_empty(&range->link));
    range->state = state;
    list_push_front(&bins->bins[place.row][place.column], &range->link);
    bins->rows |= (uint64_t)1 << place.row;
    bins->columns[place.row] |= (uint8_t)(1u << place.column);
}

static void take(struct hal_suballoc *suballoc, struct hal_range *range)
{
    struct hal_suballoc_bins *bins = bins_of(suballoc, range->state);
    struct place place = place_of(range->size);
    must(!list_is_empty(&range->link)); /* it is in a bin */
    list_remove(&range->link);
    if (!list_is_empty(&bins->bins[place.row][place.column])) {
        return;
    }
    bins->columns[place.row] &= (uint8_t) ~(1u << place.column);
    if (bins->columns[place.row] == 0) {
        bins->rows &= ~((uint64_t)1 << place.row);
    }
}

static struct hal_range *first_of(const struct list *bin)
{
    return LIST_ENTRY(bin->next, struct hal_range, link);
}

/* A large enough range of the bin that |size| belongs to, which may have smaller ones; or NULL. */
static struct hal_range *search_bin(const struct hal_suballoc_bins *bins, size_t size)
{
    struct place place = place_of(size);
    const struct list *bin = &bins->bins[place.row][place.column];
    uint32_t looks = LOOKS_MAX;
    for (struct list *l = bin->next; l != bin && looks > 0; l = l->next, looks--) {
        struct hal_range *range = LIST_ENTRY(l, struct hal_range, link);
        if (range->size >= size) {
            return range;
        }
    }
    return NULL;
}

/* A range of the smallest bin that has only ranges of |size| or more; or NULL. */
static struct hal_range *find(const struct hal_suballoc_bins *bins, size_t size)
{
    struct place place = place_of(size);
    uint32_t columns = bins->columns[place.row] & (uint32_t)(0xfe << place.column);
    if (columns) {
        return first_of(&bins->bins[place.row][__builtin_ctz(columns)]);
    }
    uint64_t rows = place.row < 63 ? bins->rows & (UINT64_MAX << (place.row + 1)) : 0;
    if (rows) {
        uint32_t row = (uint32_t)__builtin_ctzll(rows);
        return first_of(&bins->bins[row][__builtin_ctz(bins->columns[row])]);
    }
    return search_bin(bins, size);
}

/* ---- bookkeeping ----------------------------------------------------------------------------- */

static void retire(struct hal_suballoc *suballoc, struct hal_range *range)
{
    list_push_front(&suballoc->unused, &range->link);
    suballoc->unused_count++;
}

/* Makes sure that there are as many unused objects as one operation needs. False: no memory. */
static bool stock_up(struct hal_suballoc *suballoc)
{
    while (suballoc->unused_count < SPARE_MAX) {
        struct hal_range *range = malloc(sizeof(*range));
        if (!range) {
            return false;
        }
        list_init(&range->link);
        retire(suballoc, range);
    }
    return true;
}

/* Cuts |size| bytes off the end of |before|, as a new range behind it. */
static struct hal_range *split_end(struct hal_suballoc *suballoc, struct hal_range *before,
                                   size_t size)
{
    must(suballoc->unused_count > 0 && size > 0 && size < before->size);
    struct hal_range *range = LIST_ENTRY(suballoc->unused.next, struct hal_range, link);
    list_remove(&range->link);
    suballoc->unused_count--;
    before->size -= size;
    *range = (struct hal_range){
        .begin = before->begin + before->size,
        .size = size,
        .state = HAL_RANGE_USED,
        .before = before,
        .behind = before->behind,
    };
    list_init(&range->link);
    if (before->behind) {
        before->behind->before = range;
    }
    before->behind = range;
    return range;
}

/* Merges the range behind |range|, which is in no bin, into |range|. */
static void swallow_behind(struct hal_suballoc *suballoc, struct hal_range *range)
{
    struct hal_range *behind = range->behind;
    must(behind->before == range && behind->begin == range->begin + range->size);
    range->size += behind->size;
    range->behind = behind->behind;
    if (range->behind) {
        range->behind->before = range;
    }
    retire(suballoc, behind);
}

bool hal_suballoc_init(struct hal_suballoc *suballoc, size_t size)
{
    *suballoc = (struct hal_suballoc){0};
    list_init(&suballoc->unused);
    init_bins(&suballoc->free);
    init_bins(&suballoc->kept);
    struct hal_range *whole = malloc(sizeof(*whole));
    if (!whole) {
        return false;
    }
    *whole = (struct hal_range){.size = size};
    list_init(&whole->link);
    suballoc->first = whole;
    put(suballoc, whole, HAL_RANGE_FREE);
    return true;
}

void hal_suballoc_fini(struct hal_suballoc *suballoc)
{
    struct hal_range *whole = suballoc->first;
    if (whole) {
        must(whole->state == HAL_RANGE_FREE && !whole->behind);
        free(whole);
        suballoc->first = NULL;
    }
    while (suballoc->unused_count > 0) {
        must(!list_is_empty(&suballoc->unused));
        struct hal_range *range = LIST_ENTRY(suballoc->unused.next, struct hal_range, link);
        list_remove(&range->link);
        suballoc->unused_count--;
        free(range);
    }
}

/* ---- allocating and freeing ------------------------------------------------------------------ */

/* A free range with room for |growth| as well; if there is none, one with room for |size|. */
static struct hal_range *find_free(const struct hal_suballoc *suballoc, size_t size, size_t growth)
{
    size_t all;
    struct hal_range *range =
        growth && add_size(size, growth, &all) ? find(&suballoc->free, all) : NULL;
    return range ? range : find(&suballoc->free, size);
}

/* Uses the beginning of a free range; the rest stays free, or is kept for the range to grow. */
static struct hal_range *use_begin(struct hal_suballoc *suballoc, struct hal_range *range,
                                   size_t size, size_t growth)
{
    take(suballoc, range);
    range->state = HAL_RANGE_USED;
    if (range->size == size) {
        return range;
    }
    struct hal_range *rest = split_end(suballoc, range, range->size - size);
    if (growth > 0 && growth < rest->size) {
        put(suballoc, split_end(suballoc, rest, rest->size - growth), HAL_RANGE_FREE);
    }
    put(suballoc, rest, growth > 0 ? HAL_RANGE_KEPT : HAL_RANGE_FREE);
    return range;
}

/* Uses the end of a range that is kept for its neighbour, so that the neighbour can still grow. */
static struct hal_range *use_end(struct hal_suballoc *suballoc, struct hal_range *kept, size_t size)
{
    take(suballoc, kept);
    if (kept->size == size) {
        kept->state = HAL_RANGE_USED;
        return kept;
    }
    struct hal_range *range = split_end(suballoc, kept, size);
    put(suballoc, kept, HAL_RANGE_KEPT);
    return range;
}

struct hal_range *hal_suballoc_alloc(struct hal_suballoc *suballoc, size_t size, size_t growth)
{
    must(suballoc->first && size > 0);
    if (!stock_up(suballoc)) {
        return NULL;
    }
    struct hal_range *range = find_free(suballoc, size, growth);
    if (range) {
        return use_begin(suballoc, range, size, growth);
    }
    range = find(&suballoc->kept, size);
    return range ? use_end(suballoc, range, size) : NULL;
}

static bool is_state(const struct hal_range *range, enum hal_range_state state)
{
    return range && range->state == state;
}

/* Makes |range|, which is in no bin, free, and merges it with its free neighbours. */
static void release(struct hal_suballoc *suballoc, struct hal_range *range)
{
    if (is_state(range->behind, HAL_RANGE_FREE)) {
        take(suballoc, range->behind);
        swallow_behind(suballoc, range);
    }
    if (is_state(range->before, HAL_RANGE_FREE)) {
        range = range->before;
        take(suballoc, range);
        swallow_behind(suballoc, range);
    }
    put(suballoc, range, HAL_RANGE_FREE);
}

/* Makes the room that was kept for |range| free for all. */
static void give_up_kept(struct hal_suballoc *suballoc, struct hal_range *range)
{
    struct hal_range *kept = range->behind;
    if (is_state(kept, HAL_RANGE_KEPT)) {
        take(suballoc, kept);
        release(suballoc, kept);
    }
}

void hal_suballoc_free(struct hal_suballoc *suballoc, struct hal_range *range)
{
    must(suballoc->first && range->size > 0);
    must(range->state == HAL_RANGE_USED);
    give_up_kept(suballoc, range);
    release(suballoc, range);
}

/* Bytes behind |range| up to the next range that is in use. */
static size_t room_behind(const struct hal_range *range)
{
    size_t room = 0;
    for (range = range->behind; range && range->state != HAL_RANGE_USED; range = range->behind) {
        room += range->size;
    }
    return room;
}

/* Extends |range| by |more| bytes, at most room_behind(). */
static void grow(struct hal_suballoc *suballoc, struct hal_range *range, size_t more)
{
    while (more > 0) {
        struct hal_range *behind = range->behind;
        must(behind && behind->state != HAL_RANGE_USED); /* the caller has counted the room */
        enum hal_range_state state = behind->state;
        size_t part = behind->size < more ? behind->size : more;
        take(suballoc, behind);
        more -= part;
        if (part == behind->size) {
            swallow_behind(suballoc, range);
            continue;
        }
        range->size += part;
        behind->begin += part;
        behind->size -= part;
        put(suballoc, behind, state);
    }
}

bool hal_suballoc_resize(struct hal_suballoc *suballoc, struct hal_range *range, size_t size)
{
    must(range->state == HAL_RANGE_USED && size > 0);
    if (size > range->size) {
        bool has_room = room_behind(range) >= size - range->size;
        if (has_room) {
            grow(suballoc, range, size - range->size);
        }
        return has_room;
    }
    if (!stock_up(suballoc)) {
        return false;
    }
    give_up_kept(suballoc, range);
    if (size < range->size) {
        release(suballoc, split_end(suballoc, range, range->size - size));
    }
    must(range->size == size);
    return true;
}
