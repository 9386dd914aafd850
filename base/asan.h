/* SPDX-License-Identifier: MIT */
/* Tells AddressSanitizer which parts of memory that we manage ourselves may be touched. */
#ifndef PTED_BASE_ASAN_H
#define PTED_BASE_ASAN_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif

#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

#if HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

static inline void asan_poison(void *ptr, size_t size)
{
#if HAS_ASAN
    void *volatile hidden = ptr; /* gcc believes that its bytes are read, and warns */
    __asan_poison_memory_region(hidden, size);
#else
    (void)ptr;
    (void)size;
#endif
}

static inline void asan_unpoison(void *ptr, size_t size)
{
#if HAS_ASAN
    __asan_unpoison_memory_region(ptr, size);
#else
    (void)ptr;
    (void)size;
#endif
}

#endif
