/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/oom/failing.h"

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

long allocations_left = -1;

static bool may_allocate(void)
{
    return allocations_left < 0 || allocations_left-- > 0;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return may_allocate() ? __real_realloc(ptr, size) : NULL;
}
