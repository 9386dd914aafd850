/* SPDX-License-Identifier: MIT */
/* Hashes for tables and for what stat() says: not to resist a person who looks for collisions. */
#ifndef PTED_BASE_HASH_H
#define PTED_BASE_HASH_H

#include <stdint.h>

/* |hash| of what came before, and |number| behind it. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

#endif
