/* SPDX-License-Identifier: MIT */
/*
 * A bounded bump allocator. Everything allocated from an arena is freed together by arena_fini() or
 * reused after arena_reset(). An arena cannot be made without a maximum: memory for anything that a
 * file or a request describes comes from one, so the maximum is the bound on that memory.
 *
 * Not thread-safe: one arena belongs to one owner at a time.
 */
#ifndef PTED_BASE_ARENA_H
#define PTED_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* owned; newest first */
    size_t used_bytes;          /* handed out, with padding */
    size_t max_bytes;           /* ceiling for used_bytes */
    enum status refusal;        /* since the last reset; see arena_fail() */
};

void arena_init(struct arena *arena, size_t max_bytes);
void arena_fini(struct arena *arena);

/* Frees all allocations but keeps the largest chunk, so that an arena that is used again and again
 * stops calling malloc(). */
void arena_reset(struct arena *arena);

/* |size| zeroed bytes aligned to 16; NULL: the maximum or the heap is exhausted. AddressSanitizer
 * sees a gap behind them. */
void *arena_alloc(struct arena *arena, size_t size);

/* Does as arena_alloc() for |count| elements of |size| bytes; the product cannot wrap. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Returns a terminated copy of |len| bytes, or NULL. */
char *arena_strdup(struct arena *arena, const void *text, size_t len);

/* Sets the error for memory that |what| did not get: ST_EXHAUSTED if the heap has refused the arena
 * something, which may be otherwise another time; ST_TOO_LARGE if only the maximum has.
 * ST_EXHAUSTED too if the arena has refused nothing: then other memory was refused. */
enum status arena_fail(const struct arena *arena, const char *what, struct error *err);

#endif
