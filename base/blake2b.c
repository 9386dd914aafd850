/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/blake2b.h"

#include <stdbool.h>

#define ROUNDS 12

static const uint64_t initial[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

/* The order in which each round takes the words of a block; two more rounds begin again. */
static const uint8_t orders[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x >> bits | x << (64 - bits);
}

static void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, const uint64_t words[2])
{
    *a += *b + words[0];
    *d = rotate(*d ^ *a, 32);
    *c += *d;
    *b = rotate(*b ^ *c, 24);
    *a += *b + words[1];
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 63);
}

/* |length|: bytes up to the end of the block. */
static void compress(struct blake2b *hash, uint64_t length, bool is_last)
{
    uint64_t v[16], words[16];
    for (unsigned i = 0; i < 16; i++) {
        words[i] = load_le64(hash->block + i * sizeof(uint64_t));
        v[i] = i < 8 ? hash->state[i] : initial[i - 8];
    }
    v[12] ^= length;
    v[14] = is_last ? ~v[14] : v[14];
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint8_t *order = orders[round % 10];
        for (unsigned i = 0; i < 8; i++) {
            const uint64_t pair[2] = {words[order[2 * i]], words[order[2 * i + 1]]};
            unsigned column = i % 4, turn = i / 4; /* four columns, then four diagonals */
            mix(&v[column], &v[4 + (column + turn) % 4], &v[8 + (column + 2 * turn) % 4],
                &v[12 + (column + 3 * turn) % 4], pair);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        hash->state[i] ^= v[i] ^ v[i + 8];
    }
}

void blake2b_init(struct blake2b *hash)
{
    *hash = (struct blake2b){.length = 0};
    memcpy(hash->state, initial, sizeof(initial));
    hash->state[0] ^= 0x01010000u ^ BLAKE2B_BYTES;
}

void blake2b_add(struct blake2b *hash, struct span bytes)
{
    while (bytes.len > 0) {
        if (hash->kept == BLAKE2B_BLOCK) {
            hash->length += BLAKE2B_BLOCK;
            compress(hash, hash->length, false);
            hash->kept = 0;
        }
        size_t room = BLAKE2B_BLOCK - hash->kept, taken = bytes.len < room ? bytes.len : room;
        memcpy(hash->block + hash->kept, bytes.ptr, taken);
        hash->kept += taken;
        bytes = span_of(bytes.ptr + taken, bytes.len - taken);
    }
}

void blake2b_add_number(struct blake2b *hash, uint64_t number)
{
    blake2b_add(hash, span_of(&number, sizeof(number)));
}

void blake2b_end(struct blake2b *hash, uint8_t out[BLAKE2B_BYTES])
{
    memset(hash->block + hash->kept, 0, BLAKE2B_BLOCK - hash->kept);
    compress(hash, hash->length + hash->kept, true);
    for (unsigned i = 0; i < BLAKE2B_BYTES; i++) {
        out[i] = (uint8_t)(hash->state[i / 8] >> (8 * (i % 8)));
    }
}
