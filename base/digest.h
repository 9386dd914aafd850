/* SPDX-License-Identifier: MIT */
/*
 * A digest of 128 bits that tells different contents apart, at the speed of memory: to recognise
 * what has been seen before, not to resist a person who looks for two contents with one digest. Its
 * numbers are the same on all machines of one byte order, and may differ between versions.
 */
#ifndef PTED_BASE_DIGEST_H
#define PTED_BASE_DIGEST_H

#include <stdint.h>

#include "base/bytes.h"

#define DIGEST_LANES 8
#define DIGEST_BLOCK (DIGEST_LANES * sizeof(uint64_t))

struct digest {
    uint64_t lanes[DIGEST_LANES];
    uint64_t length; /* bytes so far */
    uint8_t rest[DIGEST_BLOCK];
};

void digest_init(struct digest *digest);

/* Adds bytes: the digest depends on the bytes in their order, not on how they are divided among
 * calls. */
void digest_add(struct digest *digest, struct span bytes);
void digest_add_number(struct digest *digest, uint64_t number);

/* Adds a text with its end: "ab", "c" differs from "a", "bc". */
void digest_add_text(struct digest *digest, const char *text);

/* Gives the digest of all bytes so far; more may follow. */
void digest_end(const struct digest *digest, uint64_t out[2]);

#endif
