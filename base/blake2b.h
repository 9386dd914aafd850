/* SPDX-License-Identifier: MIT */
/*
 * BLAKE2b with 32 bytes of result and no key (RFC 7693): nobody finds two contents with one result.
 * For names of things that a hostile file may describe; base/digest.h is faster and tells apart
 * only what nobody has made alike. Any thread.
 */
#ifndef PTED_BASE_BLAKE2B_H
#define PTED_BASE_BLAKE2B_H

#include <stdint.h>

#include "base/bytes.h"

#define BLAKE2B_BYTES 32
#define BLAKE2B_BLOCK 128

struct blake2b {
    uint64_t state[8];
    uint64_t length;              /* bytes before those of |block| */
    uint8_t block[BLAKE2B_BLOCK]; /* the newest bytes: never hashed before more follow */
    size_t kept;                  /* of them */
};

void blake2b_init(struct blake2b *hash);
void blake2b_add(struct blake2b *hash, struct span bytes);
void blake2b_add_number(struct blake2b *hash, uint64_t number);

/* Ends the digest: nothing can be added afterwards. */
void blake2b_end(struct blake2b *hash, uint8_t out[BLAKE2B_BYTES]);

#endif
