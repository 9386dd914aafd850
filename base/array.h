/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow. The owner keeps a pointer to the items, their number, and the capacity: the
 * number of items that there is memory for. They begin with NULL and 0.
 *
 *     if (!ARRAY_ROOM(cells->items, cells->capacity, cells->count + 1)) {
 *         return error_no_memory(err, "the cells");
 *     }
 *     cells->items[cells->count++] = cell;
 *
 * The capacity at least doubles, so that n items that are added one by one are copied less than 2n
 * times. The owner checks bounds before.
 */
#ifndef PTED_BASE_ARRAY_H
#define PTED_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct arena;

/* Makes room for |count| items. False: there is no memory, and nothing has changed. New items are
 * not initialised. The array is one of malloc(). */
#define ARRAY_ROOM(items, capacity, count)                                                         \
    ((count) <= (capacity) || array_grow(&(items), sizeof(*(items)), &(capacity), (count)))

/* As ARRAY_ROOM(), for an array in |arena|: new items are zeroed, and the memory of the smaller
 * array stays there. */
#define ARENA_ROOM(arena, items, capacity, count)                                                  \
    ((count) <= (capacity) ||                                                                      \
     array_grow_in((arena), &(items), sizeof(*(items)), &(capacity), (count)))

/* For the macros: |items| is the address of the pointer, an item has |size| bytes, and |count| is
 * above |*capacity|. */
MUST_CHECK bool array_grow(void *items, size_t size, size_t *capacity, size_t count);
MUST_CHECK bool array_grow_in(struct arena *arena, void *items, size_t size, size_t *capacity,
                              size_t count);

#endif
