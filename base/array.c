/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"

#define CAPACITY_MIN 4

static size_t larger(size_t capacity, size_t count)
{
    size_t twice = capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity;
    size_t least = count > CAPACITY_MIN ? count : CAPACITY_MIN;
    return twice > least ? twice : least;
}

/* Pointers to objects of all types are alike (POSIX), but an object of one type must not be read as
 * one of another. */
static void *load(const void *items)
{
    void *array;
    memcpy(&array, items, sizeof(array));
    return array;
}

static bool store(void *items, void *array, size_t *capacity, size_t wanted)
{
    if (array) {
        memcpy(items, &array, sizeof(array));
        *capacity = wanted;
    }
    return array != NULL;
}

bool array_grow(void *items, size_t size, size_t *capacity, size_t count)
{
    size_t wanted = larger(*capacity, count), bytes;
    void *array = mul_size(wanted, size, &bytes) ? realloc(load(items), bytes) : NULL;
    return store(items, array, capacity, wanted);
}

bool array_grow_in(struct arena *arena, void *items, size_t size, size_t *capacity, size_t count)
{
    size_t wanted = larger(*capacity, count);
    const void *old = load(items);
    void *array = arena_array(arena, wanted, size);
    if (array && old) {
        memcpy(array, old, *capacity * size);
    }
    return store(items, array, capacity, wanted);
}
