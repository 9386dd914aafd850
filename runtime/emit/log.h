/* SPDX-License-Identifier: MIT */
/*
 * The log of an update in place: what the update has overwritten, so that it can be undone. A tile
 * of the kernel has entries of its own, and writes one before it overwrites the bytes. An entry
 * says where its bytes were. All entries have room for the same number of bytes.
 *
 * A log lies in host memory that is aligned to 16 bytes: this struct, the number of entries of each
 * tile, the entries.
 */
#ifndef PTED_RUNTIME_EMIT_LOG_H
#define PTED_RUNTIME_EMIT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/wide.h"

struct rt_log {
    uint64_t back;            /* bytes from the log before this one; 0: this is the first */
    uint32_t cell;            /* the mutable buffer that is updated */
    uint32_t tiles;           /* of the kernel */
    uint64_t entries, stride; /* entries of a tile, bytes from one to the next */
};

struct rt_log_entry {
    uint64_t offset, bytes; /* in the buffer; the bytes follow */
};

/* |tiles| and |entries| of |entry_bytes| in |log|. Returns the log's bytes; SIZE_MAX: too many. */
static inline size_t rt_log_describe(struct rt_log *log, uint32_t tiles, uint64_t entries,
                                     uint64_t entry_bytes)
{
    size_t bytes, count, stride, counters = align_up(tiles * sizeof(uint64_t), 16);
    if (!wide_to_size(entries, &count) || !wide_to_size(entry_bytes, &stride) ||
        !add_size(sizeof(struct rt_log_entry), align_up(stride, 16), &stride) ||
        !mul_size(stride, count, &bytes) || !mul_size(bytes, tiles, &bytes) ||
        !add_size(bytes, sizeof(*log) + counters, &bytes)) {
        return SIZE_MAX;
    }
    *log = (struct rt_log){.tiles = tiles, .entries = entries, .stride = stride};
    return bytes;
}

static inline uint64_t *rt_log_counts(struct rt_log *log)
{
    return (uint64_t *)(log + 1);
}

static inline struct rt_log_entry *rt_log_entry(struct rt_log *log, uint32_t tile, uint64_t index)
{
    char *first = (char *)(log + 1) + align_up(log->tiles * sizeof(uint64_t), 16);
    return (struct rt_log_entry *)(void *)(first + (tile * log->entries + index) * log->stride);
}

/* |bytes| at |at| are about to be overwritten, |offset| bytes behind the beginning of the buffer.
 */
static inline void rt_log_put(struct rt_log *log, uint32_t tile, const void *at, uint64_t offset,
                              size_t bytes)
{
    uint64_t index = rt_log_counts(log)[tile];
    must(tile < log->tiles && index < log->entries &&
         bytes + sizeof(struct rt_log_entry) <= log->stride);
    struct rt_log_entry *entry = rt_log_entry(log, tile, index);
    *entry = (struct rt_log_entry){offset, bytes};
    memcpy(entry + 1, at, bytes);
    rt_log_counts(log)[tile] = index + 1;
}

#endif
