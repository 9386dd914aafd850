/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"

#define ARENA_ALIGN 16
#define ARENA_CHUNK_MIN 4096

/* Bytes behind each allocation that nobody may touch. They do not count as used. */
#define ARENA_GAP (HAS_ASAN ? 2 * ARENA_ALIGN : 0)

/* Bytes that may be before the first allocation of a chunk: malloc() aligns less on 32-bit ARM. */
#define ARENA_SLACK                                                                                \
    (_Alignof(max_align_t) < ARENA_ALIGN ? ARENA_ALIGN - _Alignof(max_align_t) : (size_t)0)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* payload bytes, with gaps */
    size_t used;
    uint8_t *bytes; /* behind the chunk, aligned */
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    *arena = (struct arena){.max_bytes = max_bytes};
}

void arena_fini(struct arena *arena)
{
    if (!arena) {
        return;
    }
    for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    arena->chunks = NULL;
    arena->used_bytes = 0;
    arena->refusal = ST_OK;
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *keep = NULL;
    for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (!keep || chunk->size > keep->size) {
            free(keep);
            keep = chunk;
        } else {
            free(chunk);
        }
    }
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
        asan_poison(keep->bytes, keep->size);
    }
    arena->chunks = keep;
    arena->used_bytes = 0;
    arena->refusal = ST_OK;
}

/* Chunk sizes double, so the number of chunks grows with the logarithm of the bytes. */
static struct arena_chunk *grow(struct arena *arena, size_t size)
{
    size_t want = arena->chunks ? arena->chunks->size : ARENA_CHUNK_MIN / 2;
    want = want > SIZE_MAX / 4 ? size : want * 2;
    if (want < size) {
        want = size;
    }
    struct arena_chunk *chunk = malloc(sizeof(*chunk) + ARENA_SLACK + want);
    if (chunk) {
        uint8_t *bytes = (uint8_t *)(chunk + 1);
        bytes += (ARENA_ALIGN - (uintptr_t)bytes % ARENA_ALIGN) % ARENA_ALIGN;
        *chunk = (struct arena_chunk){.next = arena->chunks, .size = want, .bytes = bytes};
        asan_poison(chunk->bytes, want);
        arena->chunks = chunk;
    }
    return chunk;
}

/* The arena's maximum refuses. If the heap has refused before, that stays the reason. */
static void *refuse(struct arena *arena)
{
    arena->refusal = arena->refusal == ST_OK ? ST_TOO_LARGE : arena->refusal;
    return NULL;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    must(arena->max_bytes > 0);
    if (size > arena->max_bytes) {
        return refuse(arena);
    }
    size_t padded = size ? align_up(size, ARENA_ALIGN) : ARENA_ALIGN;
    if (!in_range(arena->used_bytes, padded, align_up(arena->max_bytes, ARENA_ALIGN))) {
        return refuse(arena);
    }
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || !in_range(chunk->used, padded + ARENA_GAP, chunk->size)) {
        chunk = grow(arena, padded + ARENA_GAP);
        if (!chunk) {
            arena->refusal = ST_EXHAUSTED;
            return NULL;
        }
    }
    void *mem = chunk->bytes + chunk->used;
    chunk->used += padded + ARENA_GAP;
    arena->used_bytes += padded;
    asan_unpoison(mem, size);
    return memset(mem, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return mul_size(count, size, &bytes) ? arena_alloc(arena, bytes) : refuse(arena);
}

char *arena_strdup(struct arena *arena, const void *text, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : refuse(arena);
    if (copy && len) {
        memcpy(copy, text, len);
    }
    return copy;
}

enum status arena_fail(const struct arena *arena, const char *what, struct error *err)
{
    return arena->refusal == ST_TOO_LARGE
               ? error_set(err, ST_TOO_LARGE, "%s needs more than %zu bytes of memory", what,
                           arena->max_bytes)
               : error_no_memory(err, "%s", what);
}
